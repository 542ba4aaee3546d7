/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/keeper.c - start, peers and end of the process that owns every sandbox
 *
 * Runs as host root with a cut bounding set, or as root of the storage namespace; ids, cgroup and
 * capabilities were settled by its caller. What cannot be prepared is not the end: the peer is told in
 * API_HELLO, and so is whoever asks for a sandbox. When the main peer is gone everything ends.
 */
#include "runtime/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/adopt.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/log.h"
#include "runtime/base/str.h"
#include "runtime/control.h"
#include "runtime/doors.h"
#include "runtime/egress.h"
#include "runtime/exec.h"
#include "runtime/handover.h"
#include "runtime/keeper_ops.h"
#include "runtime/keeper_state.h"
#include "runtime/notify.h"
#include "runtime/registry.h"
#include "runtime/registry_net.h"
#include "runtime/seccomp.h"

enum { END_DEADLINE_MS = 1700, FIRST_CONTROL_ID = 1 };

/* One keeper per process; kept out of the heap and touched page by page. */
static struct keeper the_keeper;

static struct keeper *keeper_of(struct peer *p)
{
	struct peers *ps = p->source.ctx;

	return ps->keeper;
}

static int on_message(struct peer *p, const struct api_header *h, struct err *e)
{
	struct keeper *k = keeper_of(p);

	return operation_serve(&k->registry, &k->failure, p, h, e);
}

/* ---- peers ---- */

/* What any of its sandboxes reaches: others than a service have one owner. */
static struct net_grant net_most(const struct keeper *k)
{
	const struct settings *s = k->settings;

	if (k->start->kind != KEEPER_SERVICE)
		return net_grant_of(s, s->owner);
	return (struct net_grant){ s->net, s->net_allow };
}

void keeper_say_hello(struct keeper *k, struct peer *p)
{
	const struct settings *s = k->settings;
	struct net_grant grant = net_most(k);
	struct api_hello msg = {
		.limits = s->limits,
		.not_enforced = (CGROUP_ALL & ~k->start->cgroup->controllers) | (s->disk_wanted ? LIMIT_DISK : 0),
		.net = grant.mode,
		.max_sandboxes = s->max_sandboxes,
		.timeout_default_ms = s->timeout_default_ms,
		.timeout_max_ms = s->timeout_max_ms,
		.idle_ms = s->idle_ms,
		.image_max_bytes = s->image_max_bytes,
		.output_max_bytes = s->output_max_bytes,
		.start_failure = k->failure,
	};

	for (size_t i = 0; k->start->projects && i < k->start->projects->count; i++) {
		const struct project *item = &k->start->projects->item[i];

		(void)str_copy(msg.project[i].path, sizeof(msg.project[i].path), item->target);
		msg.project[i].writable = item->writable;
		msg.project_count++;
	}
	msg.serves_links = k->start->kind == KEEPER_SERVICE;
	msg.as_user = k->start->projects && k->start->projects->as_user;
	(void)str_copy(msg.profile, sizeof(msg.profile), s->profile->name);
	(void)str_copy(msg.image, sizeof(msg.image), s->image);
	(void)str_copy(msg.net_allow, sizeof(msg.net_allow), grant.allow);
	if (k->start->kind == KEEPER_SERVICE) {
		msg.owner_net_count = s->owner_net_count;
		memcpy(msg.owner_net, s->owner_net, sizeof(msg.owner_net));
	}
	(void)str_copy(msg.owner, sizeof(msg.owner), s->owner);
	peer_send(p, API_HELLO, FIRST_CONTROL_ID, &msg, sizeof(msg));
}

/* One too many: it hears why instead of an end of file. */
static void turn_away(int fd)
{
	struct api_hello msg = {
		.h = { .version = API_VERSION, .op = API_HELLO, .size = sizeof(msg), .id = FIRST_CONTROL_ID },
	};

	(void)err_set(&msg.start_failure, ERR_BUSY, "%d command lines are connected to this server already",
		      PEER_MAX - 1);
	(void)err_remedy(&msg.start_failure, "wait for one of them to end");
	(void)fd_send_msg(fd, &msg, sizeof(msg), NULL, 0);
	close_fd(&fd);
}

static void on_connection(struct loop_source *s, uint32_t events)
{
	struct keeper *k = s->ctx;
	struct err e = { 0 };
	int fd = control_accept(acceptor_of(s));
	struct peer *p;

	(void)events;
	if (fd < 0)
		return;
	if (!peers_have_room(&k->peers)) {
		turn_away(fd);
		return;
	}
	p = peer_add(&k->peers, fd, PEER_CONTROL, &e);
	if (!p)
		log_warn("control connection refused: %s", e.message);
	else
		keeper_say_hello(k, p);
}

/* ---- tokens ---- */

void keeper_send_tokens(struct keeper *k)
{
	struct {
		struct api_tokens head;
		struct api_token rows[API_TOKENS_MAX];
	} msg = { .head.count = (uint32_t)k->tokens.count };

	memcpy(msg.head.session_key, k->session_key, sizeof(k->session_key));
	for (size_t i = 0; i < k->tokens.count; i++) {
		memcpy(msg.rows[i].owner, k->tokens.rows[i].owner, sizeof(msg.rows[i].owner));
		memcpy(msg.rows[i].hash, k->tokens.rows[i].hash, sizeof(msg.rows[i].hash));
	}
	peer_send(k->main_peer, API_TOKENS, FIRST_CONTROL_ID, &msg,
		  sizeof(msg.head) + k->tokens.count * sizeof(msg.rows[0]));
}

/* meet_owner() - one that has files here is given its ids now, so that its trash is found; so are the
 * sandboxes of one call that a keeper before us could not end. */
static void meet_owner(struct keeper *k, const char *owner)
{
	struct err ignored;
	const struct idrange *ids = owners_ids(&k->owners, owner, false, &ignored);

	if (ids && !k->settings->profile->layer_kept)
		(void)store_trash_throwaways(&k->store, ids, owner);
}

static int read_tokens(struct registry *reg, struct err *e)
{
	struct keeper *k = reg->owner;
	const struct token_table *fixed = k->start->fixed_tokens;
	struct token_table t;

	if (tokens_session_key(&k->store, k->session_key, e) < 0 || tokens_read(&k->store, &t, e) < 0)
		return -1;
	for (size_t i = 0; i < fixed->count && t.count < API_TOKENS_MAX; i++)
		t.rows[t.count++] = fixed->rows[i];
	k->tokens = t;
	for (size_t i = 0; i < t.count; i++)
		meet_owner(k, t.rows[i].owner);
	if (k->main_peer)
		keeper_send_tokens(k);
	return 0;
}

/* ---- the end ---- */

static void on_empty(struct registry *reg)
{
	struct keeper *k = reg->owner;

	loop_stop(k->loop, 0);
}

static void on_deadline(struct loop_timer *t)
{
	struct keeper *k = t->ctx;

	if (k->registry.all)
		log_error("ended with processes that could not be killed");
	loop_stop(k->loop, 0);
}

static void stop_listening(struct keeper *k)
{
	int fd = k->listen.source.fd;

	if (fd < 0)
		return;
	acceptor_remove(&k->listen);
	close_fd(&fd);
	control_unlink(k->store.run_fd);
}

/* Commands, then sandboxes; pid 1 of each is tethered to us besides. A service leaves them to the keeper
 * that comes next. */
static void end(struct keeper *k)
{
	struct err why = { 0 };

	if (k->ending)
		return;
	k->ending = true;
	notify("STOPPING=1");
	stop_listening(k);
	if (k->registry.survives) {
		registry_leave(&k->registry);
		loop_stop(k->loop, 0);
		return;
	}
	(void)err_set(&why, ERR_GONE, "the server is ending");
	registry_close(&k->registry, &why);
	if (registry_is_empty(&k->registry) ||
	    loop_timer_set(k->loop, &k->deadline, END_DEADLINE_MS, on_deadline, k) < 0)
		loop_stop(k->loop, 0);
}

static void on_peer_gone(struct peer *p)
{
	struct keeper *k = keeper_of(p);

	if (p != k->main_peer)
		return;
	k->main_peer = NULL;
	if (k->start->kind == KEEPER_SERVICE && !k->ending)
		keeper_replace_front(k);
	else
		end(k);
}

/* A client's connection closes all the same; whoever started us is told. */
static void on_only_front_reaped(struct reap_child *c, struct reap_status status)
{
	struct keeper *k = c->ctx;

	if (status.signal == 0)
		return;
	log_error("the front was ended by signal %d", status.signal);
	k->front_killed = true;
}

/* ---- doors ---- */

/* The front has tried what it was given. A first one that cannot serve is the end: the operator looks. */
static void on_serving(struct registry *reg, bool refused)
{
	struct keeper *k = reg->owner;
	struct doors *d = k->start->doors;

	if (!d)
		return;
	if (refused && !d->announced) {
		end(k);
		loop_stop(k->loop, err_exit_status(ERR_CONFIG));
	} else if (!d->announced) {
		d->announced = true;
		(void)dprintf(STDERR_FILENO, "listening on %s\n", d->url);
	}
	notify("READY=1");
}

/* SIGHUP: the TLS files and the tokens as they are now. Connections are not touched. */
static void reload(struct keeper *k)
{
	struct err e = { 0 };

	notify_reloading();
	if (k->registry.hooks.read_tokens && read_tokens(&k->registry, &e) < 0)
		log_error("tokens stay as they were: %s", e.message);
	if (k->main_peer)
		doors_renew(k->start->doors, k->main_peer);
	notify("READY=1");
}

/* ---- signals ---- */

static void on_signal(struct loop_source *s, uint32_t events)
{
	struct keeper *k = s->ctx;
	struct signalfd_siginfo si;

	(void)events;
	if (read(s->fd, &si, sizeof(si)) != sizeof(si))
		return;
	if (si.ssi_signo == SIGUSR2)
		keeper_renew(k);
	else if (si.ssi_signo == SIGHUP && k->start->doors)
		reload(k);
	else
		end(k);
}

/* ---- the start ---- */

/* These two stay blocked: a front that is gone is an error of send(), and a log that may not grow one of
 * write(), neither our end. */
static int watch_signals(struct keeper *k, struct err *e)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	if (k->start->kind == KEEPER_SERVICE)
		sigaddset(&set, SIGUSR2);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return err_sys(e, "signalfd");
	sigaddset(&set, SIGPIPE);
	sigaddset(&set, SIGXFSZ);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 ||
	    loop_add(k->loop, &k->signals, fd, EPOLLIN, on_signal, k, e) < 0) {
		close_fd(&fd);
		return err_sys(e, "watch signals");
	}
	return 0;
}

/* Ten descriptors per sandbox, three per command. */
static void raise_descriptor_limit(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur < rl.rlim_max) {
		rl.rlim_cur = rl.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &rl);
	}
}

static int prepare_rights(struct keeper *k, struct err *e)
{
	enum seccomp_role role = k->settings->profile->caps ? SECCOMP_SANDBOX : SECCOMP_SAFE_SHELL;

	if (caps_plan_init(&k->rights.caps, k->settings->profile->caps, e) < 0 ||
	    seccomp_compile(role, "native", &k->filter, e) < 0)
		return -1;
	k->rights.seccomp = k->user_rights.seccomp = &k->filter.prog;
	return caps_plan_init(&k->user_rights.caps, 0, e);
}

static int prepare_registry(struct keeper *k, struct err *e)
{
	static struct projects no_projects;

	k->registry = (struct registry){
		.loop = k->loop,
		.reaper = &k->reaper,
		.settings = k->settings,
		.store = &k->store,
		.owners = &k->owners,
		.tokens = k->start->fixed_tokens ? &k->tokens : NULL,
		.tree = k->start->cgroup,
		.rights = &k->rights,
		.user_rights = &k->user_rights,
		.projects = k->start->projects ? k->start->projects : &no_projects,
		.owner = k,
		.uplink = UPLINK_INIT,
		.net_watch = { .fd = -1 },
	};
	k->registry.null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (k->registry.null_fd < 0)
		return err_sys(e, "/dev/null");
	/* Without a cgroup nobody could find them again, so they are tethered to us. */
	k->registry.survives = k->start->kind == KEEPER_SERVICE && k->start->cgroup->root_fd >= 0;
	exec_init(&k->registry);
	k->registry.hooks.empty = on_empty;
	k->registry.hooks.serving = on_serving;
	if (k->start->fixed_tokens)
		k->registry.hooks.read_tokens = read_tokens;
	return 0;
}

static int open_control(struct keeper *k, struct err *e)
{
	int fd = control_listen(k->store.run_fd, e);

	if (fd < 0)
		return -1;
	if (acceptor_add(k->loop, &k->listen, fd, on_connection, k, e) < 0) {
		close_fd(&fd);
		return -1;
	}
	return 0;
}

/* Everything a sandbox needs; what fails here is told to whoever asks for one. */
static int prepare(struct keeper *k, struct err *e)
{
	if (prepare_registry(k, e) < 0 || store_open(&k->store, k->settings->home, e) < 0)
		return -1;
	if (k->start->kind == KEEPER_SERVICE) {
		k->home_lock = store_home_lock(&k->store, e);
		if (k->home_lock < 0)
			return -1;
	}
	if (prepare_rights(k, e) < 0 || open_control(k, e) < 0 ||
	    registry_net_start(&k->registry, net_most(k).mode, !k->start->ids->in_storage, e) < 0)
		return -1;
	owners_init(&k->owners, &k->store, k->settings->subid, k->start->ids);
	k->owners.in_use = registry_has_owner;
	k->owners.ctx = &k->registry;
	k->registry.handed_over = k->start->handover != NULL;
	if (k->registry.survives)
		adopt_all(&k->registry);
	meet_owner(k, k->settings->owner);
	registry_sweep(&k->registry); /* what a removal before us left over */
	return scan_start(&k->registry.scan, k->loop, &k->reaper, k->start->ids, k->registry.projects, e);
}

/* The keys of the session that started us stay behind: a command whose own keyring would exceed the
 * sandbox id's quota keeps this one (enter.c). */
static int leave_keyring(struct err *e)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0 || errno == ENOSYS)
		return 0;
	(void)err_sys(e, "make a session keyring");
	return err_remedy(e, "free some of this user's keys: keyctl show, and /proc/key-users for the quota");
}

static int start(struct keeper *k, struct err *e)
{
	enum peer_kind kind = k->start->kind == KEEPER_ONCE ? PEER_CONTROL : PEER_FRONT;

	/* Inside, a copy of us joins the sandbox: nothing there may look into it. */
	if (prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L) < 0)
		return err_sys(e, "become non-dumpable");
	if (leave_keyring(e) < 0)
		return -1;
	raise_descriptor_limit();
	k->loop = loop_new(e);
	if (!k->loop || reap_start(&k->reaper, k->loop, e) < 0 || watch_signals(k, e) < 0)
		return -1;
	peers_init(&k->peers, k->loop, k);
	k->peers.on_message = on_message;
	k->peers.on_gone = on_peer_gone;
	k->main_peer = peer_add(&k->peers, k->start->peer_fd, kind, e);
	if (!k->main_peer)
		return -1;
	keeper_remember_program(k);
	if (k->start->kind == KEEPER_SERVICE)
		keeper_watch_front(k, k->start->peer_pid);
	else if (k->start->peer_pid > 0 &&
		 reap_watch(&k->reaper, &k->front, k->start->peer_pid, on_only_front_reaped, k) < 0)
		log_warn("the front is not our child");
	if (k->start->start_failure)
		k->failure = *k->start->start_failure;
	else
		(void)prepare(k, &k->failure);
	if (k->start->doors && k->failure.code != ERR_NONE) { /* a service tells its manager, not a client */
		*e = k->failure;
		return -1;
	}
	if (k->start->handover)
		keeper_take_handover(k);
	else
		keeper_say_hello(k, k->main_peer);
	if (k->start->fixed_tokens && k->failure.code == ERR_NONE && read_tokens(&k->registry, e) < 0)
		return -1;
	if (k->start->doors && !k->start->handover) /* last: it must know who may come in before anybody does */
		doors_give(k->start->doors, k->main_peer);
	return 0;
}

static void release(struct keeper *k)
{
	int fd = k->signals.fd;

	scan_stop(&k->registry.scan);
	egress_done(&k->registry);
	registry_net_stop(&k->registry);
	seccomp_program_done(&k->filter);
	lost_done(&k->registry);
	close_fd(&k->registry.null_fd);
	owners_done(&k->owners);
	close_fd(&k->home_lock);
	store_done(&k->store);
	reap_stop(&k->reaper);
	if (fd >= 0) {
		loop_remove(&k->signals);
		close_fd(&fd);
	}
	loop_free(k->loop);
}

int keeper_run(const struct keeper_start *ks, struct err *e)
{
	struct keeper *k = &the_keeper;
	int r, status = -1;

	*k = (struct keeper){ .start = ks, .settings = ks->settings };
	k->listen.source.fd = k->signals.fd = k->reaper.source.fd = k->registry.null_fd = k->home_lock = -1;
	k->store = (struct store){ -1, -1, -1, -1, -1 };
	k->registry.net_watch.fd = -1;
	k->registry.uplink = (struct uplink)UPLINK_INIT;
	r = start(k, e);
	handover_done(ks->handover);
	if (r == 0)
		status = loop_run(k->loop, e);
	if (r == 0)
		reap_now(&k->reaper); /* the front closes its socket before it is seen to have ended */
	if (status == 0 && k->front_killed)
		status = 1;
	for (size_t i = 0; k->loop && i < PEER_MAX; i++)
		peer_remove(&k->peers, &k->peers.peer[i]);
	release(k);
	return status;
}
