/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/launch.c - create a sandbox: one readable list of steps
 *
 * Two processes. The keeper (host root with a cut bounding set, or root of the storage namespace)
 * prepares everything that needs a library or memory, clones, writes the id maps and returns to its
 * loop. The child is the only task in seven new namespaces and its own cgroup leaf; until its last
 * step it has every capability over those namespaces and none over the host. It follows child_steps[]
 * from top to bottom, with plain system calls on what was prepared, and becomes runtime/init.
 *
 * Trusted: the keeper's request. Hostile: what image and layer hold (see mounts.c). No code of theirs
 * runs before the last step, and after it there is only process 1.
 *
 * A step that fails says {stage, errno, object} on the status pipe and the child exits; the namespaces,
 * and with them every mount made so far, end with it. Past its last step but execve the child says so
 * ("announced"); the pipe closes on execve, so end of file after that means ready.
 */
#include "runtime/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/sys.h"
#include "runtime/mounts.h"
#include "runtime/net.h"

extern const unsigned char launch_init_image[], launch_init_image_end[];

_Static_assert(1U << MOUNTS_TARGET_PROC == LAUNCH_REPLACED_PROC &&
		       1U << MOUNTS_TARGET_MNT == LAUNCH_REPLACED_MNT,
	       "mounts.h and launch.h name the same bits");

enum { OBJECT_MAX = 32 };

/* What the child says; far below PIPE_BUF, so each message arrives whole. */
struct launch_message {
	struct enter_status status;
	char object[OBJECT_MAX];
};

/* Everything the child needs, complete before the clone. */
struct launch_child {
	const struct launch_request *req;
	int go_fd, keeper_go_fd;         /* a pipe; one byte: the maps are written */
	int status_fd, keeper_status_fd; /* a pipe, close-on-exec */
	int channel_fd;                  /* sockets made inside go out here; -1: none */
	int init_fd;                     /* process 1's program */
	char cgroup_namespaces[16];
	struct net_inside inside;
	unsigned int link; /* of the uplink */
	struct net_plan net;
	struct mounts mounts;
};

/* The child */

static int start_session(struct launch_child *c)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)umask(0); /* modes below are meant as written */
	if (enter_offer_to_oom() < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setsid() < 0 ||
	    sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return -1;
	/* A new UTS namespace starts with the host's names. */
	if (setdomainname("(none)", strlen("(none)")) < 0)
		return -1;
	return sethostname(c->req->key, strlen(c->req->key));
}

static int wait_for_maps(struct launch_child *c)
{
	char go;
	ssize_t n = fd_read_full(c->go_fd, &go, 1);

	if (n == 0)
		errno = EPIPE; /* the keeper is gone, or could not write the maps and has said why */
	return n == 1 ? 0 : -1;
}

/* The session keyring is joined after the ids change, so that it is charged to the sandbox's root and
 * not to the host user, whose logins need the same quota. When that quota (200 keys, for all
 * sandboxes of a user) is used up we keep the keeper's, which is new, empty and, as keyctl() is
 * refused inside, out of reach. */
static int become_sandbox_root(struct launch_child *c)
{
	(void)c;
	if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, 0, 0, 0) < 0 ||
	    syscall(SYS_setresuid, 0, 0, 0) < 0)
		return -1;
	/* The change of ids has set the flag to fs.suid_dumpable. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -1;
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS &&
	    errno != EDQUOT)
		return -1;
	return 0;
}

static int make_private(struct launch_child *c)
{
	return mounts_make_private(&c->mounts);
}

static int mount_scratch(struct launch_child *c)
{
	return mounts_scratch(&c->mounts);
}

static int add_trust(struct launch_child *c)
{
	return mounts_trust(&c->mounts);
}

static int mount_root(struct launch_child *c)
{
	return mounts_root(&c->mounts);
}

static int make_targets(struct launch_child *c)
{
	return mounts_targets(&c->mounts) < 0 || mounts_home(&c->mounts) < 0 ? -1 : 0;
}

static int mount_proc(struct launch_child *c)
{
	return mounts_proc(&c->mounts);
}

static int mount_dev(struct launch_child *c)
{
	return mounts_dev(&c->mounts);
}

static int mount_tmpfs(struct launch_child *c)
{
	return mounts_tmpfs(&c->mounts);
}

static int mount_workspace(struct launch_child *c)
{
	return mounts_workspace(&c->mounts) < 0 || mounts_projects(&c->mounts) < 0 ? -1 : 0;
}

static int mount_output(struct launch_child *c)
{
	return mounts_output(&c->mounts);
}

static int keep_proc_sys(struct launch_child *c)
{
	return mounts_keep_proc_sys(&c->mounts);
}

static int make_tap(struct launch_child *c)
{
	return net_has_tap(c->inside.uplink) ? net_make_tap() : 0;
}

static int set_up_network(struct launch_child *c)
{
	return net_apply(&c->net, &c->inside, c->mounts.proc_sys_fd);
}

static int send_sockets(struct launch_child *c)
{
	if (!net_has_sockets(c->inside.mode))
		return 0;
	return net_send_sockets(c->channel_fd, net_uses_proxy(c->inside.mode, c->inside.uplink));
}

static int mask_proc(struct launch_child *c)
{
	return mounts_masks(&c->mounts);
}

static int pivot(struct launch_child *c)
{
	return mounts_pivot(&c->mounts);
}

static int write_resolver(struct launch_child *c)
{
	if (c->inside.mode != NET_NONE && c->req->layer_fd >= 0)
		net_write_resolver();
	return 0;
}

/* Kernel objects that are counted per user, and the user is one for all sandboxes of a keeper. Nothing
 * inside makes a namespace; the one exception is the cgroup namespace each command starts with. NULL:
 * the text prepared for it. */
static const struct count {
	const char *name, *text;
} counts[] = {
	{ "user/max_user_namespaces", "0" },	{ "user/max_mnt_namespaces", "0" },
	{ "user/max_pid_namespaces", "0" },	{ "user/max_net_namespaces", "0" },
	{ "user/max_ipc_namespaces", "0" },	{ "user/max_uts_namespaces", "0" },
	{ "user/max_time_namespaces", "0" },	{ "user/max_cgroup_namespaces", NULL },
	{ "user/max_inotify_instances", "32" }, { "user/max_inotify_watches", "65536" },
	{ "user/max_fanotify_groups", "0" },	{ "user/max_fanotify_marks", "0" },
};

/* Needs: every mount made (a detached mount counts as a namespace); proc_sys_fd, as /proc/sys itself is
 * read-only by now. */
static int limit_counts(struct launch_child *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		const char *text = counts[i].text;

		c->mounts.object = counts[i].name;
		if (text == NULL)
			text = c->cgroup_namespaces;
		/* A kernel without the kind has no count for it. */
		if (fd_write_file_at(c->mounts.proc_sys_fd, counts[i].name, text) < 0 &&
		    errno != ENOENT)
			return -1;
	}
	return 0;
}

static int close_between(int first, int last)
{
	return first > last ? 0 : close_range((unsigned int)first, (unsigned int)last, 0);
}

/* Everything but the status pipe and the program, both close-on-exec: process 1 has no descriptor. The
 * channel goes here too, so what runs later has no way to send the keeper anything. */
static int close_descriptors(struct launch_child *c)
{
	int low = c->status_fd < c->init_fd ? c->status_fd : c->init_fd;
	int high = c->status_fd < c->init_fd ? c->init_fd : c->status_fd;

	if (close_between(0, low - 1) < 0 || close_between(low + 1, high - 1) < 0)
		return -1;
	return close_range((unsigned int)high + 1, ~0U, 0);
}

/* A change of ids clears it, dropping capabilities does not; so after the one, before the other. A
 * keeper that died before is noticed by the write of the announcement. */
static int tether(struct launch_child *c)
{
	return c->req->die_with_keeper ? prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) : 0;
}

static int say(const struct launch_child *c, uint32_t kind, uint32_t stage, int error)
{
	struct launch_message msg = {
		.status = { kind, stage, error, (int32_t)c->mounts.replaced },
	};

	(void)stpncpy(msg.object, c->mounts.object, sizeof(msg.object) - 1);
	return fd_write_full(c->status_fd, &msg, sizeof(msg));
}

static int drop_rights(struct launch_child *c)
{
	return enter_apply_rights(c->req->rights); /* its own stage number on failure */
}

static int become_init(struct launch_child *c)
{
	static char name[] = "init";
	char *const argv[] = { name, NULL };
	char *const envp[] = { NULL };

	(void)umask(022);
	if (say(c, ENTER_NOTE, LAUNCH_EXEC, 0) < 0)
		return -1;
	(void)syscall(SYS_execveat, c->init_fd, "", argv, envp, AT_EMPTY_PATH);
	return -1;
}

static const struct step {
	uint32_t stage;
	int (*run)(struct launch_child *c); /* 0; -1 with errno; or a stage of enter.c with errno */
} child_steps[] = {
	{ LAUNCH_SESSION, start_session },
	{ LAUNCH_MAPS, wait_for_maps },
	{ LAUNCH_IDS, become_sandbox_root }, /* before the first mount: the mounter is who copies up */
	{ LAUNCH_PRIVATE, make_private },
	{ LAUNCH_SCRATCH, mount_scratch },
	{ LAUNCH_TRUST, add_trust },
	{ LAUNCH_OVERLAY, mount_root },
	{ LAUNCH_TARGETS, make_targets },
	{ LAUNCH_PROC, mount_proc },
	{ LAUNCH_DEV, mount_dev },
	{ LAUNCH_TMPFS, mount_tmpfs },
	{ LAUNCH_WORKSPACE, mount_workspace },
	{ LAUNCH_OUTPUT, mount_output },
	{ LAUNCH_PROC_SYS, keep_proc_sys },
	{ LAUNCH_TAP, make_tap },
	{ LAUNCH_NET, set_up_network },
	{ LAUNCH_SOCKETS, send_sockets },
	{ LAUNCH_MASKS, mask_proc },
	{ LAUNCH_PIVOT, pivot },
	{ LAUNCH_RESOLVER, write_resolver },
	{ LAUNCH_COUNTS, limit_counts }, /* no new mount from here on */
	{ LAUNCH_CLOSE, close_descriptors },
	{ LAUNCH_TETHER, tether },
	{ LAUNCH_RIGHTS, drop_rights }, /* limits, capabilities, no_new_privs, filter */
	{ LAUNCH_EXEC, become_init },
};

static _Noreturn void run_child(struct launch_child *c)
{
	/* Or this process would never see the keeper's ends of its own pipes close. */
	(void)close(c->keeper_go_fd);
	(void)close(c->keeper_status_fd);
	for (size_t i = 0; i < ARRAY_SIZE(child_steps); i++) {
		uint32_t stage = child_steps[i].stage;
		int failed;

		c->mounts.object = "";
		errno = launch_fault(stage);
		failed = errno != 0 ? -1 : child_steps[i].run(c);
		if (failed != 0) {
			(void)say(c, ENTER_FAILED, failed > 0 ? (uint32_t)failed : stage, errno);
			break;
		}
	}
	_exit(127);
}

/* The keeper */

static int keeper_step_failed(uint32_t stage, struct err *e)
{
	struct enter_status status = { ENTER_FAILED, stage, errno, 0 };

	return launch_explain(&status, "", e);
}

/* init_program() - process 1 as a sealed file that can be executed and nothing else; one for the life
 * of the keeper, so that all sandboxes share its pages. Return: a borrowed descriptor, -1. */
static int init_program(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = fd_memfd_sealed("init", launch_init_image,
				     (size_t)(launch_init_image_end - launch_init_image), 0111,
				     true);
	return fd;
}

static int prepare(struct launch_child *c, const struct launch_request *req, struct err *e)
{
	const struct mounts_sources sources = { req->lower_fd, req->layer_fd, req->workspace_fd,
						req->output_fd, req->ids->lower_ns_fd, req->ids, req->projects,
						req->trust };

	c->req = req;
	errno = launch_fault(LAUNCH_PREPARE);
	if (errno != 0)
		return keeper_step_failed(LAUNCH_PREPARE, e);
	c->init_fd = init_program();
	if (c->init_fd < 0)
		return keeper_step_failed(LAUNCH_PREPARE, e);
	(void)snprintf(c->cgroup_namespaces, sizeof(c->cgroup_namespaces), "%u", req->pids + 32);
	if ((req->uplink && uplink_prepare(req->uplink, req->net, &c->inside, &c->link, e) < 0) ||
	    net_plan_init(&c->net, &c->inside, e) < 0)
		return -1;
	return mounts_prepare(&c->mounts, &sources, req->profile, e);
}

/* clone_child() - Return: the pid with *ret_pidfd set, -1; does not return in the child. */
static pid_t clone_child(struct launch_child *c, int *ret_pidfd)
{
	struct clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
			 CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_PIDFD | CLONE_CLEAR_SIGHAND,
		.pidfd = (uintptr_t)ret_pidfd,
		.exit_signal = SIGCHLD,
	};
	pid_t pid;

	errno = launch_fault(LAUNCH_CLONE);
	if (errno != 0)
		return -1;
	if (c->req->cgroup_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)c->req->cgroup_fd;
	}
	pid = sys_clone3(&args, sizeof(args));
	if (pid == 0)
		run_child(c);
	return pid;
}

/* is_readable() - now, without waiting. A pidfd is when its process has exited. */
static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

static void kill_and_reap(int pidfd)
{
	siginfo_t info;

	(void)sys_pidfd_send_signal(pidfd, SIGKILL);
	while (waitid((idtype_t)P_PIDFD, (id_t)pidfd, &info, WEXITED) < 0 && errno == EINTR)
		;
}

static int write_maps(const struct launch_request *req, pid_t pid, struct err *e)
{
	if (req->projects && req->projects->as_user)
		return userns_write_user_maps(req->ids, pid, e);
	return userns_write_maps(req->ids, pid, e);
}

static int connect_uplink(const struct launch_child *c, pid_t pid, struct err *e)
{
	errno = launch_fault(LAUNCH_UPLINK);
	if (errno != 0)
		return keeper_step_failed(LAUNCH_UPLINK, e);
	if (c->req->uplink && uplink_connect(c->req->uplink, &c->inside, c->link, pid) < 0)
		return keeper_step_failed(LAUNCH_UPLINK, e);
	return 0;
}

/* let_go() - the maps and the uplink, then the byte the child waits for. */
static int let_go(const struct launch_child *c, pid_t pid, int go_fd, struct err *e)
{
	const struct launch_request *req = c->req;

	errno = launch_fault(LAUNCH_MAPS);
	if (errno != 0)
		return keeper_step_failed(LAUNCH_MAPS, e);
	if (write_maps(req, pid, e) < 0)
		return err_wrap(e, "create the sandbox");
	if (connect_uplink(c, pid, e) < 0)
		return -1;
	/* We hold the other end as well, so a child that is dead already costs no SIGPIPE; the status
	 * pipe will tell. */
	if (fd_write_full(go_fd, "", 1) < 0)
		return keeper_step_failed(LAUNCH_MAPS, e);
	return 0;
}

static int make_pipe(int *ret_read, int *ret_write)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	*ret_read = ends[0];
	*ret_write = ends[1];
	return 0;
}

/* make_channel() - Return: 0 with *ret_ours and *ret_child set, to -1 where nothing will be sent; -1. */
static int make_channel(enum net_mode mode, int *ret_ours, int *ret_child)
{
	int ends[2];

	*ret_ours = *ret_child = -1;
	if (!net_has_sockets(mode))
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return -1;
	*ret_ours = ends[0];
	*ret_child = ends[1];
	return 0;
}

static int start_prepared(struct launch_child *c, struct launch *ret, struct err *e)
{
	_cleanup_fd_ int go_read = -1, go_write = -1, status_read = -1, status_write = -1;
	_cleanup_fd_ int channel = -1, child_channel = -1;
	int pidfd = -1;
	pid_t pid;

	if (make_pipe(&go_read, &go_write) < 0 || make_pipe(&status_read, &status_write) < 0 ||
	    fd_set_nonblock(status_read, true) < 0 ||
	    make_channel(c->inside.mode, &channel, &child_channel) < 0)
		return keeper_step_failed(LAUNCH_PREPARE, e);
	c->go_fd = go_read;
	c->keeper_go_fd = go_write;
	c->status_fd = status_write;
	c->keeper_status_fd = status_read;
	c->channel_fd = child_channel;
	pid = clone_child(c, &pidfd);
	if (pid < 0)
		return keeper_step_failed(LAUNCH_CLONE, e);
	/* No maps can be written for a child that has failed and gone meanwhile; then its own words
	 * count, and launch_progress() reads them. */
	if (let_go(c, pid, go_write, e) < 0 && !is_readable(status_read)) {
		kill_and_reap(pidfd);
		(void)close(pidfd);
		return -1;
	}
	*ret = (struct launch){ .pid = pid, .pidfd = pidfd, .status_fd = take_fd(&status_read),
				.channel_fd = take_fd(&channel), .uplink = c->req->uplink,
				.link = c->link, .inside = c->inside };
	memset(ret->socket, -1, sizeof(ret->socket));
	return 0;
}

int launch_start(const struct launch_request *req, struct launch *ret, struct err *e)
{
	struct launch_child c = { 0 };
	int r = prepare(&c, req, e);

	if (r == 0) {
		r = start_prepared(&c, ret, e);
		mounts_done(&c.mounts);
	}
	if (r < 0 && c.link > 0)
		uplink_release(req->uplink, c.link);
	return r;
}

static int died_early(struct err *e)
{
	err_set(e, ERR_GONE, "create the sandbox: its first process was killed before it was ready");
	return err_remedy(e, "look for the kernel's out-of-memory messages (dmesg); if there are any, "
			     "raise SANDBOX_MEMORY or free memory on the host");
}

/* The status pipe has closed: was it execve? Then the sockets are here as well, sent long before. */
static int become_ready(struct launch *l, struct err *e)
{
	if (!l->announced || is_readable(l->pidfd))
		return died_early(e);
	if (l->channel_fd >= 0 && net_recv_sockets(l->channel_fd, l->socket, e) < 0)
		return -1;
	close_fd(&l->channel_fd);
	return 1;
}

int launch_progress(struct launch *l, struct err *e)
{
	struct launch_message msg;
	ssize_t n;

	for (;;) {
		n = read(l->status_fd, &msg, sizeof(msg));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : err_sys(e, "read a sandbox's status");
		if (n == 0) /* end of file: executed, or killed */
			return become_ready(l, e);
		if (n != (ssize_t)sizeof(msg))
			return err_set(e, ERR_PROTOCOL, "a sandbox's status is %zd bytes long", n);
		msg.object[sizeof(msg.object) - 1] = '\0';
		if (msg.status.kind == ENTER_FAILED)
			return launch_explain(&msg.status, msg.object, e);
		l->announced = true;
		l->replaced = (uint32_t)msg.status.value;
	}
}

void launch_done(struct launch *l)
{
	close_fd(&l->pidfd);
	close_fd(&l->status_fd);
	close_fd(&l->channel_fd);
	net_close_sockets(l->socket);
	if (l->link > 0)
		uplink_release(l->uplink, l->link);
	l->link = 0;
}
