/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/join/join.c - enter a sandbox and start one command in it: from the keeper's exec to the
 * command's
 *
 * Two processes run this program.
 *   joiner   a child of the keeper with the keeper's uid, outside the sandbox's pid namespace, so
 *            nothing inside can address it. Becomes non-dumpable, joins the namespaces of process 1
 *            and clones the command. It sleeps until the command has executed or died, and it alone:
 *            the keeper has a deadline.
 *   command  a child of the keeper, in the sandbox's pid namespace, and in the joiner's memory until
 *            its exec. Visible to hostile processes from its first instruction: they can stop or kill
 *            it; they cannot read it, because it is non-dumpable and holds more capabilities than they
 *            do until the last steps.
 *
 * No C library and next to no memory: starting costs half of what a copy of the keeper would, a
 * command that is being started never holds a byte of the keeper's (its command line and environment
 * are the command's own), and /proc/PID/exe leads to a sealed memory file, so that a script with
 * "#!/proc/self/exe" gets hold of nothing that could be overwritten (CVE-2019-5736).
 *
 * Trusted: what the keeper passed, see enter_plan.h. Not trusted: everything found inside, that is the
 * path of the working directory and the program executed. A test compares every system call with a
 * checked-in list.
 */
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/keyctl.h>
#include <linux/limits.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/raw.h"
#include "runtime/enter_plan.h"
#include "runtime/enter_rights.h"

enum {
	FATAL_EXIT = 125, /* the command was reported as failed; nobody shows this number */
	COMMAND_STACK =
		16 * 1024, /* of the command until its exec: one PATH_MAX buffer and frames */
	FILE_MODE_MASK = 022,
	SIGNALS = 64,
	SIG_SETMASK = 2, /* the kernel's header clashes with the library's types */
	KERNEL_SIGACTION_WORDS =
		4, /* handler, flags, restorer, mask; all zero is the default action */
};

/* The command writes it too, until its exec. */
static struct joiner {
	uint32_t uid, gid;
	bool has_leaf;
	uint64_t ignored; /* signals that the keeper, or who started it, ignored */
	const char *cwd;
	char **argv, **envp;
	volatile int pid;		/* written by the kernel before the command first runs */
	volatile uint32_t stage;	/* the command's current enum enter_stage */
	volatile bool pid_told, failed; /* the command has said so on the status pipe */
} joiner;

static struct enter_plan plan;
static char command_stack[COMMAND_STACK] __attribute__((aligned(16)));

void *memset(void *to, int byte, size_t len);

/* Compilers call it for initialisers, with or without a library. */
void *memset(void *to, int byte, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((volatile char *)to)[i] = (char)byte;
	return to;
}

/* The pipe holds thousands of these and a write this small is never split. When nobody reads any
 * more there is nobody to tell. */
static void tell(uint32_t kind, uint32_t stage, int32_t error, int32_t value)
{
	struct enter_status status = {kind, stage, error, value};

	(void)RAW(__NR_write, SLOT_STATUS, &status, sizeof(status));
}

static void __attribute__((noreturn)) leave(int code)
{
	for (;;)
		(void)RAW(__NR_exit_group, code);
}

static void __attribute__((noreturn)) fail(uint32_t stage, long result)
{
	joiner.failed = true;
	tell(ENTER_FAILED, stage, (int32_t)-result, 0);
	leave(FATAL_EXIT);
}

/* The command */

static void step(uint32_t stage, long result)
{
	if (result < 0)
		fail(stage, result);
}

/* Its own namespace makes the leaf the root of what /proc/self/cgroup shows. Joining process 1's
 * would not do: with nsdelegate the kernel then refuses to clone into a leaf outside it. */
static long own_cgroup_namespace(void)
{
	long r = RAW(__NR_unshare, CLONE_NEWCGROUP);

	return joiner.has_leaf ? r : 0;
}

static long set_ids(void)
{
	uint32_t uid = joiner.uid, gid = joiner.gid;
	long r = RAW(__NR_setgroups, 0, NULL);

	if (r >= 0)
		r = RAW(__NR_setresgid, gid, gid, gid);
	return r < 0 ? r : RAW(__NR_setresuid, uid, uid, uid);
}

/* ENOSYS: a kernel without keys. EDQUOT: the 200 keys one id may own, shared by every sandbox of
 * that id; the keyring inherited instead is the keeper's own fresh one, and the filter refuses
 * every key call anyway. */
static long new_keyring(void)
{
	long r = RAW(__NR_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);

	return r == -ENOSYS || r == -EDQUOT ? 0 : r;
}

/* The path is the caller's and the directories are the sandbox's. No magic link may be followed
 * (/proc/self/fd/N, /proc/PID/cwd), and what is reached must be below our root: CVE-2024-21626. */
static long enter_directory(void)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_NO_MAGICLINKS};
	char reached[PATH_MAX];
	long fd = RAW(__NR_openat2, AT_FDCWD, joiner.cwd, &how, sizeof(how)), r;

	if (fd < 0)
		return fd;
	r = RAW(__NR_fchdir, fd);
	(void)RAW(__NR_close, fd);
	if (r < 0)
		return r;
	r = RAW(__NR_getcwd, reached, sizeof(reached));
	if (r < 0)
		return r;
	return reached[0] == '/' ? 0 : -EXDEV; /* "(unreachable)/..." */
}

/* The joiner's own exec has removed handlers, and keeps what is ignored. */
static long reset_signals(void)
{
	static const uint64_t by_default[KERNEL_SIGACTION_WORDS];
	static const uint64_t nothing;

	for (int sig = 1; sig <= SIGNALS; sig++) {
		if (!(joiner.ignored & (UINT64_C(1) << (sig - 1))))
			continue;
		long r = RAW(__NR_rt_sigaction, sig, by_default, NULL, sizeof(nothing));
		if (r < 0)
			return r;
	}
	return RAW(__NR_rt_sigprocmask, SIG_SETMASK, &nothing, NULL, sizeof(nothing));
}

static void restrict_rights(void)
{
	struct sock_fprog filter = {(unsigned short)plan.filter_len, plan.filter};
	int error = 0;
	int stage = rights_apply(&plan.caps, &filter, &error);

	if (stage != 0)
		fail((uint32_t)stage, -error);
}

#define STEP(name, call)                                                                           \
	do {                                                                                       \
		joiner.stage = (name);                                                             \
		step((name), (call));                                                              \
	} while (0)

static void command_main(void *arg)
{
	(void)arg;
	tell(ENTER_PID, 0, 0, joiner.pid);
	joiner.pid_told = true;
	STEP(ENTER_CGROUP_NS, own_cgroup_namespace());
	STEP(ENTER_IDS, set_ids());
	STEP(ENTER_DUMPABLE, rights_set_not_dumpable());
	STEP(ENTER_KEYRING, new_keyring());
	STEP(ENTER_SESSION, RAW(__NR_setsid));
	/* Before the working directory: a path must find no directory of the host to start from. */
	STEP(ENTER_CLOSE, RAW(__NR_close_range, SLOT_STATUS + 1, ~0U, 0));
	STEP(ENTER_CWD, enter_directory());
	STEP(ENTER_SESSION, reset_signals());
	joiner.stage = ENTER_RLIMITS;
	restrict_rights();
	STEP(ENTER_EXEC, RAW(__NR_execve, joiner.argv[0], joiner.argv, joiner.envp));
	leave(FATAL_EXIT);
}

/* The joiner */

/* The cgroup namespace is left out on purpose, see own_cgroup_namespace(). */
static long join_namespaces(void)
{
	int flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
		    CLONE_NEWUTS;
	long r = rights_set_not_dumpable();

	if (r >= 0)
		r = RAW(__NR_setns, SLOT_PIDFD, flags);
	return r < 0 ? r : rights_set_not_dumpable();
}

/* With the keeper's uid still: the kernel checks it against the owner of the leaf's cgroup.procs.
 * CLONE_PARENT makes the command the keeper's child. */
static long clone_command(void)
{
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_VFORK | CLONE_PARENT | CLONE_PARENT_SETTID |
			 (joiner.has_leaf ? CLONE_INTO_CGROUP : 0),
		.parent_tid = (uint64_t)(uintptr_t)&joiner.pid,
		.stack = (uint64_t)(uintptr_t)command_stack,
		.stack_size = sizeof(command_stack),
		.cgroup = joiner.has_leaf ? SLOT_LEAF : 0,
	};

	return raw_clone3(&args, sizeof(args), command_main, NULL);
}

static long read_plan(void)
{
	long got = RAW(__NR_pread64, SLOT_PLAN, &plan, sizeof(plan), 0);
	long head = (long)offsetof(struct enter_plan, filter);

	if (got < 0)
		return got;
	if (got < head || plan.filter_len == 0 ||
	    got != head + (long)(plan.filter_len * sizeof(plan.filter[0])))
		return -EINVAL;
	return 0;
}

static const char *read_number(const char *text, uint64_t *ret)
{
	uint64_t value = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (uint64_t)(*text - '0');
	*ret = value;
	return *text == ' ' ? text + 1 : text;
}

static void read_arguments(long argc, char **argv)
{
	uint64_t number[JOIN_NUMBERS];
	const char *text;

	if (argc <= JOIN_ARG_COMMAND)
		leave(FATAL_EXIT);
	text = argv[JOIN_ARG_NUMBERS];
	for (int i = 0; i < JOIN_NUMBERS; i++)
		text = read_number(text, &number[i]);
	joiner.uid = (uint32_t)number[0];
	joiner.gid = (uint32_t)number[1];
	joiner.ignored = number[2];
	joiner.has_leaf = number[3] != 0;
	joiner.cwd = argv[JOIN_ARG_CWD];
	joiner.argv = argv + JOIN_ARG_COMMAND;
	joiner.envp = argv + argc + 1;
}

void join_main(long *stack);

void __attribute__((noreturn, used)) join_main(long *stack)
{
	long pid;

	read_arguments(stack[0], (char **)(stack + 1));
	step(ENTER_STDIO, RAW(__NR_fcntl, SLOT_STATUS, F_SETFD, FD_CLOEXEC));
	step(ENTER_JOIN, read_plan());
	(void)RAW(__NR_umask, FILE_MODE_MASK);
	step(ENTER_RLIMITS, rights_offer_to_oom()); /* the last time the host's /proc is there */
	step(ENTER_JOIN, join_namespaces());
	joiner.stage = ENTER_CLONE;
	pid = clone_command();
	step(ENTER_CLONE, pid);

	/* It has executed, or it has died: killed from inside, or with its cgroup before it ever
	 * ran, as in a frozen one. */
	if (!joiner.pid_told)
		tell(ENTER_PID, 0, 0, (int32_t)pid);
	if (!joiner.failed && joiner.stage != ENTER_EXEC)
		tell(ENTER_FAILED, joiner.stage, ECANCELED, 0);
	leave(0);
}

RAW_START(join_main);
