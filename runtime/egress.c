/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/egress.c - the keeper's side of the egress proxies
 *
 * Runs in the keeper. A proxy has parsed hostile bytes: what it says is a fixed-size struct whose every
 * field is checked, and all it can bring about is a line in a result or another log file. The sockets are
 * kept here too, so that a proxy that died can be replaced.
 */
#include "runtime/egress.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/log.h"
#include "runtime/base/str.h"
#include "runtime/egress_log.h"
#include "runtime/net.h"
#include "runtime/proxy/wire.h"
#include "runtime/registry.h"

enum {
	BLOCKED_KEPT = 16,          /* per sandbox */
	MESSAGES_MAX = 128,         /* of one event */
	RETRY_MS = 200,             /* before a proxy that died at once is replaced; doubled each time */
	RETRY_MAX_MS = 10 * 1000,
	STEADY_MS = 10 * 1000,      /* one that lived so long is replaced at once */
	RESOLV_POLL_MS = 5 * 1000,
	NS_PER_MS = 1000000,
};

_Static_assert((int)PROXY_LISTEN_PROXY == (int)NET_SOCKET_PROXY &&
		       (int)PROXY_LISTEN_DNS_UDP == (int)NET_SOCKET_DNS_UDP &&
		       (int)PROXY_LISTEN_DNS_TCP == (int)NET_SOCKET_DNS_TCP,
	       "sockets keep their order");

struct blocked {
	uint64_t seq; /* 0: free */
	char text[API_BLOCKED_TEXT_MAX];
};

struct egress_box {
	struct egress_proxy *proxy;
	struct egress_box *next;
	uint64_t id;
	char key[KEY_MAX];
	int fds[PROXY_LISTENERS_MAX];
	uint64_t seq;
	struct blocked blocked[BLOCKED_KEPT];
};

struct egress_proxy {
	struct egress *egress;
	struct egress_proxy *next;
	char owner[OWNER_ID_LEN + 1];
	uint32_t id; /* kernel id */
	struct loop_source source; /* fd -1: none runs, or it is on its way out */
	struct reap_child child;
	struct loop_timer retry;
	uint64_t started_ns, delay_ms;
	struct egress_box *boxes;
};

struct egress {
	struct registry *reg;
	struct egress_proxy *proxies;
	uint64_t next_box;
	struct loop_timer resolv_poll;
	struct timespec resolv_mtime;
	ino_t resolv_ino;
};

static void start_proxy(struct egress_proxy *p);

/* ---- to the proxy ---- */

static void stop_proxy(struct egress_proxy *p)
{
	int fd = p->source.fd;

	if (fd < 0)
		return;
	loop_remove(&p->source);
	close_fd(&fd); /* it ends by itself then */
}

/* One that does not read is replaced like one that died. */
static void tell(struct egress_proxy *p, const void *msg, size_t size, int fd)
{
	if (p->source.fd < 0 || fd_send_msg(p->source.fd, msg, size, &fd, fd >= 0) == 0)
		return;
	log_warn("egress proxy of %s: %s", p->owner, strerror(errno));
	stop_proxy(p);
	if (p->child.pid > 0)
		(void)kill(p->child.pid, SIGKILL);
}

static void tell_config(struct egress_proxy *p)
{
	static struct proxy_config msg;
	const struct settings *s = p->egress->reg->settings;
	struct net_grant grant = net_grant_of(s, p->owner);

	msg = (struct proxy_config){ .h = { PROXY_CONFIG, sizeof(msg) }, .net = grant.mode,
				     .log_max_bytes = EGRESS_LOG_MAX_BYTES };
	(void)str_copy(msg.owner, sizeof(msg.owner), p->owner);
	(void)str_copy(msg.allow, sizeof(msg.allow), grant.allow);
	(void)str_copy(msg.lists, sizeof(msg.lists), s->net_lists);
	(void)str_copy(msg.apt_hosts, sizeof(msg.apt_hosts), s->net_apt_hosts);
	(void)str_copy(msg.dns, sizeof(msg.dns), s->net_dns);
	(void)str_copy(msg.upstream, sizeof(msg.upstream), s->net_upstream);
	tell(p, &msg, sizeof(msg), -1);
}

static void tell_resolv(struct egress_proxy *p)
{
	struct proxy_descriptor msg = { .h = { PROXY_RESOLV, sizeof(msg) } };
	_cleanup_fd_ int fd = open("/etc/resolv.conf", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		tell(p, &msg, sizeof(msg), fd);
	else
		log_warn("no /etc/resolv.conf: set SANDBOX_DNS");
}

static void tell_log(struct egress_proxy *p)
{
	struct proxy_descriptor msg = { .h = { PROXY_LOG, sizeof(msg) } };
	struct err e = { 0 };
	_cleanup_fd_ int fd = egress_log_open(p->egress->reg->store, p->owner, &e);

	if (fd >= 0)
		tell(p, &msg, sizeof(msg), fd);
	else
		log_warn("no egress log for %s: %s", p->owner, e.message);
}

static void tell_box(struct egress_box *b)
{
	struct proxy_listen msg = { .h = { PROXY_LISTEN, sizeof(msg) }, .box = b->id };

	memcpy(msg.key, b->key, sizeof(msg.key));
	for (uint32_t i = 0; i < PROXY_LISTENERS_MAX; i++) {
		msg.kind = i;
		if (b->fds[i] >= 0)
			tell(b->proxy, &msg, sizeof(msg), b->fds[i]);
	}
}

static void on_resolv_poll(struct loop_timer *t)
{
	struct egress *g = t->ctx;
	struct stat st;

	if (stat("/etc/resolv.conf", &st) == 0 &&
	    (st.st_ino != g->resolv_ino || st.st_mtim.tv_sec != g->resolv_mtime.tv_sec ||
	     st.st_mtim.tv_nsec != g->resolv_mtime.tv_nsec)) {
		g->resolv_ino = st.st_ino;
		g->resolv_mtime = st.st_mtim;
		for (struct egress_proxy *p = g->proxies; p; p = p->next)
			tell_resolv(p);
	}
	if (g->proxies)
		(void)loop_timer_set(g->reg->loop, t, RESOLV_POLL_MS, on_resolv_poll, g);
}

/* ---- from the proxy ---- */

static bool is_printable(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	if (len == 0 || len == size)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < ' ' || text[i] > '~')
			return false;
	}
	return true;
}

static const char *reason_text(uint32_t reason)
{
	if (reason == PROXY_UNLISTED)
		return "not listed";
	if (reason == PROXY_BAD_NAME)
		return "not a valid name";
	return net_range_name((enum net_range_kind)reason);
}

static void note_blocked(struct egress_box *b, const struct proxy_blocked *msg)
{
	char text[API_BLOCKED_TEXT_MAX];
	struct blocked *at = &b->blocked[0];

	(void)snprintf(text, sizeof(text), "%s (%s)", msg->what, reason_text(msg->reason));
	for (size_t i = 0; i < BLOCKED_KEPT; i++) {
		if (b->blocked[i].seq && strcmp(b->blocked[i].text, text) == 0) {
			at = &b->blocked[i];
			break;
		}
		if (b->blocked[i].seq < at->seq)
			at = &b->blocked[i];
	}
	memcpy(at->text, text, sizeof(at->text));
	at->seq = ++b->seq;
}

static int take_message(struct egress_proxy *p, const struct proxy_blocked *msg, size_t size)
{
	struct egress_box *b = p->boxes;

	if (size >= sizeof(msg->h) && msg->h.op == PROXY_LOG_FULL && msg->h.size == size &&
	    size == sizeof(struct proxy_descriptor)) {
		tell_log(p);
		return 0;
	}
	if (size != sizeof(*msg) || msg->h.op != PROXY_BLOCKED || msg->h.size != size ||
	    msg->reason >= PROXY_REASONS || msg->reason == NET_RANGE_PUBLIC ||
	    !is_printable(msg->what, sizeof(msg->what)))
		return -1;
	while (b && b->id != msg->box)
		b = b->next;
	if (b) /* else it is gone meanwhile */
		note_blocked(b, msg);
	return 0;
}

static void read_messages(struct egress_proxy *p)
{
	for (unsigned int i = 0; i < MESSAGES_MAX && p->source.fd >= 0; i++) {
		struct proxy_blocked msg;
		ssize_t n = fd_recv_msg(p->source.fd, &msg, sizeof(msg), NULL, NULL);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n > 0 && take_message(p, &msg, (size_t)n) == 0)
			continue;
		if (n > 0 || n < 0)
			log_error("egress proxy of %s: a damaged message; it is replaced", p->owner);
		stop_proxy(p);
		if (p->child.pid > 0)
			(void)kill(p->child.pid, SIGKILL);
	}
}

static void on_proxy(struct loop_source *s, uint32_t events)
{
	(void)events;
	read_messages(s->ctx);
}

/* ---- its life ---- */

static void free_proxy(struct egress_proxy *p)
{
	struct egress_proxy **at = &p->egress->proxies;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	loop_timer_cancel(p->egress->reg->loop, &p->retry);
	free(p);
}

static void on_retry(struct loop_timer *t)
{
	struct egress_proxy *p = t->ctx;

	if (p->boxes)
		start_proxy(p);
	else
		free_proxy(p);
}

static void retry_later(struct egress_proxy *p)
{
	bool steady = (loop_now_ns() - p->started_ns) / NS_PER_MS >= STEADY_MS;

	p->delay_ms = steady || p->delay_ms == 0 ? RETRY_MS : 2 * p->delay_ms;
	if (p->delay_ms > RETRY_MAX_MS)
		p->delay_ms = RETRY_MAX_MS;
	(void)loop_timer_set(p->egress->reg->loop, &p->retry, steady ? 0 : p->delay_ms, on_retry, p);
}

static void on_reaped(struct reap_child *c, struct reap_status status)
{
	struct egress_proxy *p = c->ctx;

	stop_proxy(p);
	if (!p->boxes) {
		free_proxy(p);
		return;
	}
	log_error("egress proxy of %s has ended (%s %d); it is replaced", p->owner,
		  status.signal ? "signal" : "status", status.signal ? status.signal : status.exit_code);
	retry_later(p);
}

/* Child: 0, 1, 2 and the socket survive, in an environment that holds nothing. */
static void __attribute__((noreturn)) exec_proxy(int sock, uint32_t id, pid_t parent)
{
	char number[16];
	char *argv[] = { (char[]){ "mcp-sandbox" }, (char[]){ "@proxy" }, number, NULL };
	char *env[] = { NULL };
	sigset_t none;

	(void)snprintf(number, sizeof(number), "%u", id);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	/* dup3() refuses equal numbers, and then the close-on-exec flag must go. */
	if ((sock == PROXY_KEEPER_FD ? fd_set_cloexec(sock, false) : dup2(sock, PROXY_KEEPER_FD)) < 0 ||
	    close_range(PROXY_KEEPER_FD + 1, ~0U, 0) < 0)
		_exit(1);
	execve("/proc/self/exe", argv, env);
	_exit(1);
}

static int fork_proxy(struct egress_proxy *p, struct err *e)
{
	struct registry *reg = p->egress->reg;
	pid_t pid, self = getpid();
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socket to the egress proxy");
	pid = fork();
	if (pid == 0)
		exec_proxy(pair[1], p->id, self);
	close_fd(&pair[1]);
	if (pid < 0 || fd_set_nonblock(pair[0], true) < 0 ||
	    loop_add(reg->loop, &p->source, pair[0], EPOLLIN, on_proxy, p, e) < 0) {
		(void)err_sys(e, "start the egress proxy");
		p->source.fd = -1;
		close_fd(&pair[0]);
	}
	if (pid > 0 && reap_watch(reg->reaper, &p->child, pid, on_reaped, p) < 0)
		return err_sys(e, "watch the egress proxy");
	return p->source.fd < 0 ? -1 : 0;
}

static void start_proxy(struct egress_proxy *p)
{
	struct err e = { 0 };

	p->started_ns = loop_now_ns();
	if (fork_proxy(p, &e) < 0) {
		log_error("%s", e.message);
		if (p->child.pid == 0)
			retry_later(p);
		return;
	}
	tell_config(p);
	tell_resolv(p);
	tell_log(p);
	for (struct egress_box *b = p->boxes; b; b = b->next)
		tell_box(b);
}

static struct egress *get_egress(struct registry *reg)
{
	if (!reg->egress) {
		reg->egress = calloc(1, sizeof(*reg->egress));
		if (reg->egress)
			reg->egress->reg = reg;
	}
	return reg->egress;
}

static struct egress_proxy *get_proxy(struct egress *g, const struct sandbox *sb)
{
	struct egress_proxy *p = g->proxies;

	while (p && strcmp(p->owner, sb->owner) != 0)
		p = p->next;
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->egress = g;
	memcpy(p->owner, sb->owner, sizeof(p->owner));
	p->id = sb->ids->base + ID_PROXY;
	p->source.fd = -1;
	p->next = g->proxies;
	g->proxies = p;
	if (!p->next)
		(void)loop_timer_set(g->reg->loop, &g->resolv_poll, RESOLV_POLL_MS, on_resolv_poll, g);
	return p;
}

/* ---- sandboxes ---- */

static struct egress_box *new_box(struct egress_proxy *p, struct sandbox *sb)
{
	struct egress_box *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->proxy = p;
	b->id = ++p->egress->next_box;
	memcpy(b->key, sb->key, sizeof(b->key));
	for (size_t i = 0; i < PROXY_LISTENERS_MAX; i++)
		b->fds[i] = take_fd(&sb->launch.socket[i]);
	b->next = p->boxes;
	p->boxes = b;
	return b;
}

int egress_attach(struct sandbox *sb, struct err *e)
{
	struct registry *reg = sb->reg;
	enum net_mode mode = sb->launch.inside.mode;
	struct egress *g = get_egress(reg);
	struct egress_proxy *p;

	if (mode == NET_NONE)
		return 0;
	/* Where only the proxy resolves, a program that asks for itself hears at once that nobody does. */
	if (mode == NET_ALLOWLIST) {
		close_fd(&sb->launch.socket[NET_SOCKET_DNS_UDP]);
		close_fd(&sb->launch.socket[NET_SOCKET_DNS_TCP]);
	}
	p = g ? get_proxy(g, sb) : NULL;
	sb->egress = p ? new_box(p, sb) : NULL;
	if (!sb->egress)
		return err_set(e, ERR_NOMEM, "no memory for a sandbox's network");
	if (p->source.fd >= 0)
		tell_box(sb->egress);
	else if (p->child.pid == 0)
		start_proxy(p);
	return 0;
}

void egress_detach(struct sandbox *sb)
{
	struct egress_box *b = sb->egress, **at;
	struct proxy_forget msg = { .h = { PROXY_FORGET, sizeof(msg) } };

	if (!b)
		return;
	sb->egress = NULL;
	msg.box = b->id;
	tell(b->proxy, &msg, sizeof(msg), -1);
	for (at = &b->proxy->boxes; *at != b; at = &(*at)->next)
		;
	*at = b->next;
	for (size_t i = 0; i < PROXY_LISTENERS_MAX; i++)
		close_fd(&b->fds[i]);
	if (!b->proxy->boxes) {
		stop_proxy(b->proxy);
		if (b->proxy->child.pid == 0)
			free_proxy(b->proxy);
	}
	free(b);
}

bool egress_has_proxy(const struct sandbox *sb)
{
	return sb->egress && sb->egress->fds[PROXY_LISTEN_PROXY] >= 0;
}

uint64_t egress_mark(const struct sandbox *sb)
{
	return sb->egress ? sb->egress->seq : 0;
}

uint32_t egress_blocked(struct sandbox *sb, uint64_t mark,
			char ret[API_BLOCKED_MAX][API_BLOCKED_TEXT_MAX])
{
	struct egress_box *b = sb->egress;
	uint32_t count = 0;

	if (!b)
		return 0;
	read_messages(b->proxy); /* it spoke to us before it spoke to the command */
	for (;;) { /* in the order they happened */
		const struct blocked *first = NULL;

		for (size_t i = 0; i < BLOCKED_KEPT; i++) {
			if (b->blocked[i].seq > mark && (!first || b->blocked[i].seq < first->seq))
				first = &b->blocked[i];
		}
		if (!first)
			return count;
		if (count < API_BLOCKED_MAX)
			memcpy(ret[count], first->text, sizeof(first->text));
		count++;
		mark = first->seq;
	}
}

void egress_done(struct registry *reg)
{
	struct egress *g = reg->egress;

	if (!g)
		return;
	loop_timer_cancel(reg->loop, &g->resolv_poll);
	while (g->proxies) {
		struct egress_proxy *p = g->proxies;

		while (p->boxes) {
			struct egress_box *b = p->boxes;

			p->boxes = b->next;
			for (size_t i = 0; i < PROXY_LISTENERS_MAX; i++)
				close_fd(&b->fds[i]);
			free(b);
		}
		stop_proxy(p);
		reap_forget(reg->reaper, &p->child);
		free_proxy(p);
	}
	free(g);
	reg->egress = NULL;
}
