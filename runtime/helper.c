/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/helper.c - turn a forked worker into a process that can do one thing only
 *
 * Runs in a child of the keeper, which has the keeper's privilege on entry. The user namespace is made
 * by the worker itself after it took the helper's id; a second child, which kept the privilege, writes
 * its maps and is gone before the worker looks at a single name. Nothing hostile is read here.
 */
#include "runtime/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/log.h"
#include "runtime/base/proc.h"
#include "runtime/caps.h"
#include "runtime/seccomp.h"

enum { FIRST_KEPT = 3, NICE = 10 };

/* ---- descriptors and signals ---- */

static int null_stdio(struct err *e)
{
	_cleanup_fd_ int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "open /dev/null");
	if (dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0)
		return err_sys(e, "redirect to /dev/null");
	if (fd <= STDERR_FILENO)
		(void)take_fd(&fd); /* it fills a hole there */
	return 0;
}

/* keep_only() - first above the target range, then down: a target may be another one's source. */
static int keep_only(int *keep, size_t count, struct err *e)
{
	int first_free = FIRST_KEPT + (int)count;

	for (size_t i = 0; i < count; i++) {
		keep[i] = fcntl(keep[i], F_DUPFD_CLOEXEC, first_free);
		if (keep[i] < 0)
			return err_sys(e, "keep a descriptor");
	}
	for (size_t i = 0; i < count; i++) {
		if (dup3(keep[i], FIRST_KEPT + (int)i, O_CLOEXEC) < 0)
			return err_sys(e, "keep a descriptor");
		keep[i] = FIRST_KEPT + (int)i;
	}
	if (syscall(SYS_close_range, first_free, ~0U, 0) < 0)
		return err_sys(e, "close the other descriptors");
	return 0;
}

/* ---- ids ---- */

typedef int write_maps_fn(const struct idrange *ids, pid_t child, struct err *e);

/* mapper() - the privileged child: when the worker has its namespace, write the maps. */
static int mapper(const struct idrange *ids, write_maps_fn *write_maps, int go_fd)
{
	struct err e;
	char go;

	if (fd_read_full(go_fd, &go, 1) != 1)
		return 1;
	if (write_maps(ids, getppid(), &e) < 0) {
		log_error("helper: %s", e.message);
		return 1;
	}
	return 0;
}

/* become() - the helper's ids, keeping the capabilities: root's ability to make a user namespace must
 * not depend on whether the host lets ordinary users make them. */
static int become(uint32_t id, struct err *e)
{
	struct caps_plan plan;
	struct __user_cap_data_struct data[2];

	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(0, NULL) < 0 ||
	    setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)
		return err_sys(e, "become id %u", id);
	if (caps_plan_init(&plan, 0, e) < 0)
		return -1;
	if (syscall(SYS_capget, &plan.header, data) < 0)
		return err_sys(e, "read capabilities");
	data[0].effective = data[0].permitted;
	data[1].effective = data[1].permitted;
	if (syscall(SYS_capset, &plan.header, data) < 0)
		return err_sys(e, "raise capabilities");
	return 0;
}

static int enter_namespace(const struct idrange *ids, write_maps_fn *write_maps, struct err *e)
{
	int go[2], status = -1;
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) < 0)
		return err_sys(e, "create a pipe");
	pid = fork();
	if (pid == 0) {
		close_fd(&go[1]);
		_exit(mapper(ids, write_maps, go[0]));
	}
	close_fd(&go[0]);
	if (pid > 0 && become(ids->base + ID_HELPER, e) == 0) {
		if (unshare(CLONE_NEWUSER) == 0)
			(void)!write(go[1], "", 1);
		else
			(void)err_sys(e, "create the helper's user namespace");
	}
	close_fd(&go[1]);
	if (pid < 0)
		return err_sys(e, "fork");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status != 0)
		return e->code != ERR_NONE ? -1 : err_set(e, ERR_SYSTEM, "the helper's id maps failed");
	return 0;
}

/* ---- rights ---- */

static int drop_rights(uint64_t caps, const struct sock_fprog *filter, pid_t parent, struct err *e)
{
	struct caps_plan plan;

	if (caps_plan_init(&plan, caps, e) < 0)
		return -1;
	for (int i = 0; i <= plan.last_cap; i++)
		if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0)
			return err_sys(e, "drop capability %d", i);
	if (syscall(SYS_capset, &plan.header, plan.data) < 0)
		return err_sys(e, "set capabilities");
	/* after the last change of credentials, which undoes both */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return err_sys(e, "set process attributes");
	if (getppid() != parent) /* it ended before it could take us along */
		return err_set(e, ERR_GONE, "the keeper is gone");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(e, "set no_new_privs");
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter, 0, 0) < 0)
		return err_sys(e, "load the helper's system call filter");
	return 0;
}

/* prepare() - what every worker gives up before it gives up its rights. */
static int prepare(int *keep, size_t keep_count, struct seccomp_program *filter, struct err *e)
{
	e->code = ERR_NONE;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(e, "set not dumpable");
	proc_reset_signals();
	if (null_stdio(e) < 0 || keep_only(keep, keep_count, e) < 0)
		return -1;
	(void)setpriority(PRIO_PROCESS, 0, NICE);
	return seccomp_compile(SECCOMP_HELPER, "native", filter, e);
}

int helper_enter(const struct idrange *ids, int *keep, size_t keep_count, uint64_t caps,
		 struct err *e)
{
	_cleanup_(seccomp_program_done) struct seccomp_program filter = { 0 };
	pid_t parent = getppid();

	if (prepare(keep, keep_count, &filter, e) < 0)
		return -1;
	if (enter_namespace(ids, userns_write_maps, e) < 0 || drop_rights(caps, &filter.prog, parent, e) < 0)
		return -1;
	return 0;
}

/* own_files() - file accesses as the namespace's root. These calls return the id before; asking again
 * shows what came of it. */
static int own_files(struct err *e)
{
	(void)setfsgid(0);
	(void)setfsuid(0);
	if (setfsgid((gid_t)-1) != 0 || setfsuid((uid_t)-1) != 0)
		return err_set(e, ERR_SYSTEM, "a worker cannot take the sandbox root's file rights");
	return 0;
}

int helper_enter_owner(const struct idrange *ids, int *keep, size_t keep_count, uint64_t caps,
		       struct err *e)
{
	_cleanup_(seccomp_program_done) struct seccomp_program filter = { 0 };
	pid_t parent = getppid();

	if (prepare(keep, keep_count, &filter, e) < 0 || enter_namespace(ids, userns_write_maps, e) < 0 ||
	    own_files(e) < 0)
		return -1;
	return drop_rights(caps, &filter.prog, parent, e);
}

int helper_enter_trash(const struct idrange *ids, int *keep, size_t keep_count, uint64_t caps,
		       struct err *e)
{
	_cleanup_(seccomp_program_done) struct seccomp_program filter = { 0 };
	pid_t parent = getppid();

	if (prepare(keep, keep_count, &filter, e) < 0 ||
	    enter_namespace(ids, userns_write_remover_maps, e) < 0)
		return -1;
	if (ids->in_storage && (fchdir(keep[0]) < 0 || chroot(".") < 0))
		return err_sys(e, "shut the worker up in the trash");
	return drop_rights(caps, &filter.prog, parent, e);
}

int helper_enter_as_user(int *keep, size_t keep_count, struct err *e)
{
	_cleanup_(seccomp_program_done) struct seccomp_program filter = { 0 };
	pid_t parent = getppid();

	if (prepare(keep, keep_count, &filter, e) < 0)
		return -1;
	return drop_rights(0, &filter.prog, parent, e);
}
