/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/proxy/main.c - the egress proxy: start, confinement, the keeper's messages
 *
 * "mcp-sandbox @proxy ID": executed by the keeper with its id, which is given up before the first
 * message is read. Afterwards there are sockets and nothing else: no file, no program, no signal, and
 * the id is nobody's. Trusts the keeper; every other byte is hostile.
 */
#include "runtime/proxy/proxy.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/close_range.h>
#include <linux/seccomp.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/log.h"
#include "runtime/caps.h"
#include "runtime/landlock.h"
#include "runtime/proxy/internal.h"
#include "runtime/seccomp.h"

enum { RESOLV_CONF_MAX = 16 * 1024 };

static struct proxy the_proxy;

/* ---- the keeper's messages ---- */

static bool is_terminated(const char *field, size_t size)
{
	return memchr(field, '\0', size) != NULL;
}

static int set_upstream(struct proxy *p, const char *text, struct err *e)
{
	p->has_upstream = text[0] != '\0';
	if (p->has_upstream &&
	    net_dest_port_parse(text, strlen(text), -1, &p->upstream, &p->upstream_port) < 0)
		return err_set(e, ERR_PROTOCOL, "damaged upstream proxy");
	return 0;
}

static int on_config(struct proxy *p, const void *message, int *fd, struct err *e)
{
	const struct proxy_config *msg = message;

	(void)fd;
	if (p->configured || msg->net > NET_INTERNET || !is_terminated(msg->owner, sizeof(msg->owner)) ||
	    !is_terminated(msg->allow, sizeof(msg->allow)) ||
	    !is_terminated(msg->lists, sizeof(msg->lists)) ||
	    !is_terminated(msg->apt_hosts, sizeof(msg->apt_hosts)) ||
	    !is_terminated(msg->dns, sizeof(msg->dns)) ||
	    !is_terminated(msg->upstream, sizeof(msg->upstream)))
		return err_set(e, ERR_PROTOCOL, "damaged configuration");
	if (net_policy_parse(&p->policy, (enum net_mode)msg->net, msg->allow, msg->lists, msg->apt_hosts,
			     e) < 0 ||
	    set_upstream(p, msg->upstream, e) < 0)
		return -1;
	memcpy(p->owner, msg->owner, sizeof(p->owner));
	memcpy(p->allow, msg->allow, sizeof(p->allow));
	p->servers_fixed = msg->dns[0] != '\0';
	if (p->servers_fixed)
		p->server_count = dns_parse_list(msg->dns, p->servers);
	p->log_max_bytes = msg->log_max_bytes;
	p->configured = true;
	return 0;
}

static int on_listen(struct proxy *p, const void *message, int *fd, struct err *e)
{
	if (*fd < 0 || box_listen(p, message, *fd, e) < 0)
		return -1;
	(void)take_fd(fd);
	return 0;
}

static int on_forget(struct proxy *p, const void *message, int *fd, struct err *e)
{
	const struct proxy_forget *msg = message;

	(void)fd;
	(void)e;
	box_forget(p, msg->box);
	return 0;
}

static int on_resolv(struct proxy *p, const void *message, int *fd, struct err *e)
{
	static char text[RESOLV_CONF_MAX];
	ssize_t len = pread(*fd, text, sizeof(text) - 1, 0);

	(void)message;
	(void)e;
	if (len < 0 || p->servers_fixed)
		return 0;
	text[len] = '\0';
	p->server_count = dns_parse_resolv_conf(text, p->servers);
	return 0;
}

static int on_log(struct proxy *p, const void *message, int *fd, struct err *e)
{
	(void)message;
	(void)e;
	close_fd(&p->log_fd);
	p->log_fd = take_fd(fd);
	p->log_full = false;
	return 0;
}

static const struct {
	uint32_t op;
	size_t size;
	bool with_fd;
	int (*serve)(struct proxy *p, const void *message, int *fd, struct err *e);
} messages[] = {
	{ PROXY_CONFIG, sizeof(struct proxy_config), false, on_config },
	{ PROXY_LISTEN, sizeof(struct proxy_listen), true, on_listen },
	{ PROXY_FORGET, sizeof(struct proxy_forget), false, on_forget },
	{ PROXY_RESOLV, sizeof(struct proxy_descriptor), true, on_resolv },
	{ PROXY_LOG, sizeof(struct proxy_descriptor), true, on_log },
};

static int serve_message(struct proxy *p, const struct proxy_header *h, size_t size, int *fd, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		if (messages[i].op != h->op)
			continue;
		if (size != messages[i].size || h->size != size || messages[i].with_fd != (*fd >= 0) ||
		    (!p->configured && h->op != PROXY_CONFIG))
			break;
		return messages[i].serve(p, h, fd, e);
	}
	return err_set(e, ERR_PROTOCOL, "damaged message %u from the keeper", h->op);
}

static void on_keeper(struct loop_source *s, uint32_t events)
{
	static _Alignas(16) unsigned char message[sizeof(struct proxy_config)];
	struct proxy *p = s->ctx;
	int fds[FD_PASS_MAX];
	size_t count = ARRAY_SIZE(fds);
	ssize_t n = fd_recv_msg(s->fd, message, sizeof(message), fds, &count);
	struct err e = { 0 };
	int fd = -1;

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) { /* the keeper is gone, and with it the sandboxes */
		loop_stop(p->loop, 0);
		return;
	}
	for (size_t i = count; i > 1; i--)
		close_fd(&fds[i - 1]);
	if (count > 0)
		fd = fds[0];
	if ((size_t)n < sizeof(struct proxy_header) ||
	    serve_message(p, (const struct proxy_header *)message, (size_t)n, &fd, &e) < 0) {
		log_error("egress proxy: %s", e.message);
		loop_stop(p->loop, 1);
	}
	close_fd(&fd);
}

/* ---- the start ---- */

static int become(uint32_t id, struct err *e)
{
	static const struct rlimit none = { 0, 0 };

	if (close_range(PROXY_KEEPER_FD + 1, ~0U, 0) < 0)
		return err_sys(e, "close inherited descriptors");
	if (id != PROXY_KEEP_ID && (setgroups(0, NULL) < 0 || setresgid(id, id, id) < 0 ||
				    setresuid(id, id, id) < 0))
		return err_sys(e, "become id %u", id);
	if (caps_drop_all(e) < 0)
		return -1;
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
		return err_sys(e, "forbid core dumps");
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) /* the change of id has undone the keeper's */
		return err_sys(e, "tie to the keeper");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(e, "no_new_privs");
	return 0;
}

static int confine(struct err *e)
{
	struct seccomp_program program = { 0 };
	long r;

	if (landlock_confine(true, e) < 0 || seccomp_compile(SECCOMP_PROXY, "native", &program, e) < 0)
		return -1;
	r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program.prog);
	if (r < 0)
		(void)err_sys(e, "load the proxy's system call filter");
	seccomp_program_done(&program);
	return r < 0 ? -1 : 0;
}

/* How many connections the descriptor limit is good for. */
static unsigned int count_conns(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) < 0)
		return 1;
	rl.rlim_cur = rl.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &rl);
	if (rl.rlim_cur < 2 * RESERVED_DESCRIPTORS)
		return 1;
	if (rl.rlim_cur > CONNS_MAX * CONN_DESCRIPTORS + RESERVED_DESCRIPTORS)
		return CONNS_MAX;
	return (unsigned int)(rl.rlim_cur - RESERVED_DESCRIPTORS) / CONN_DESCRIPTORS;
}

static int prepare(struct proxy *p, struct err *e)
{
	time_t now = time(NULL);
	struct tm tm;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)gmtime_r(&now, &tm); /* reads its tables while there are files */
	p->log_fd = p->keeper.fd = -1;
	p->conns_max = count_conns();
	p->route_fd = route_open(e);
	if (p->route_fd < 0 || fd_set_nonblock(PROXY_KEEPER_FD, true) < 0)
		return -1;
	return 0;
}

int proxy_run(uint32_t id, struct err *e)
{
	struct proxy *p = &the_proxy;
	int status = -1;

	if (become(id, e) < 0 || prepare(p, e) < 0 || confine(e) < 0)
		return -1;
	p->loop = loop_new(e);
	if (p->loop &&
	    loop_add(p->loop, &p->keeper, PROXY_KEEPER_FD, EPOLLIN, on_keeper, p, e) == 0)
		status = loop_run(p->loop, e);
	boxes_done(p);
	close_fd(&p->log_fd);
	close_fd(&p->route_fd);
	return status;
}
