/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/enter.c - everything between fork and exec for pid 1's last steps and for every command
 *
 * Three processes run this file.
 *   keeper   enter_fork_joiner(): blocks signals and forks. Nothing else; it never waits here.
 *   joiner   a copy of the keeper with the keeper's uid, outside the sandbox's pid namespace, so
 *            nothing inside can address it. Puts descriptors in fixed places, closes all others,
 *            becomes non-dumpable, joins the namespaces of pid 1 and clones the command. It sleeps
 *            until the command has executed or died, and it alone: the keeper has a deadline.
 *   command  a child of the keeper, in the sandbox's pid namespace, and in the joiner's memory until
 *            its exec. Visible to hostile processes from its first instruction: they can stop or
 *            kill it; they cannot read it, because it is non-dumpable and holds more capabilities
 *            than they do until the last steps.
 *
 * Trusted: the keeper's struct enter_command. Not trusted: everything found inside, that is the path
 * of the working directory and the program executed. No memory is allocated and no library
 * function is called but syscall(); a test compares the whole call list with a golden one.
 *
 * No task inside a sandbox ever shares the keeper's memory: an out-of-memory kill takes every
 * process that shares the victim's, and a stopped vfork child would stop the keeper with it.
 */
#include "runtime/enter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/keyctl.h>
#include <linux/limits.h>
#include <linux/prctl.h>
#include <linux/securebits.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/resource.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/sys.h"

enum {
	FATAL_EXIT = 125,	  /* the command was reported as failed; nobody shows this number */
	COMMAND_STACK = 16 * 1024, /* of the command until its exec: one PATH_MAX buffer and frames */
	FILE_MODE_MASK = 022,
	SIGNALS = 64,
	KERNEL_SIGACTION_WORDS = 4, /* handler, flags, restorer, mask; all zero is SIG_DFL */
	NOFILE_SOFT = 1024, /* select() breaks above it; programs that want more raise it themselves */
	NOFILE_HARD = 65536,
};

#define SIGNAL_BIT(sig) (UINT64_C(1) << ((sig) - 1))

/* Where the joiner puts descriptors before it joins. Only 0..3 pass the exec. */
enum { SLOT_STDIN, SLOT_STDOUT, SLOT_STDERR, SLOT_SCRIPT, SLOT_STATUS, SLOT_PIDFD, SLOT_LEAF, SLOTS };

/* Lives in the joiner; the command writes it too until its exec. */
struct joiner {
	const struct enter_command *cmd;
	uint64_t ignored;		/* signals to be reset */
	volatile pid_t pid;		/* written by the kernel before the command first runs */
	volatile uint32_t stage;	/* the command's current enum enter_stage */
	volatile bool pid_told, failed; /* the command has said so on the status pipe */
};

/* Hard limits of every sandbox process, whatever the keeper inherited. */
static const struct {
	uint32_t resource;
	uint64_t soft, hard;
} rlimit_table[] = {
	{ RLIMIT_CORE, 0, 0 },		     /* a piped core_pattern would run a host program */
	{ RLIMIT_NOFILE, NOFILE_SOFT, NOFILE_HARD },
	{ RLIMIT_STACK, 8 << 20, RLIM_INFINITY }, /* the address space looks alike on every host */
	{ RLIMIT_SIGPENDING, 4096, 4096 },   /* accounts that all sandboxes of a user share ... */
	{ RLIMIT_MSGQUEUE, 819200, 819200 }, /* ... so no host's larger setting is passed on */
	{ RLIMIT_MEMLOCK, 8 << 20, 8 << 20 },
	{ RLIMIT_RTPRIO, 0, 0 },
	{ RLIMIT_NICE, 0, 0 },
};

static int set_rlimits(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(rlimit_table); i++) {
		uint32_t resource = rlimit_table[i].resource;
		struct {
			uint64_t soft, hard;
		} now, next = { rlimit_table[i].soft, rlimit_table[i].hard };

		if (syscall(SYS_prlimit64, 0, resource, NULL, &now) != 0)
			return -1;
		/* Never above what we were given: raising needs a privilege on the host. */
		if (next.hard > now.hard)
			next.hard = now.hard;
		if (next.soft > next.hard)
			next.soft = next.hard;
		if (syscall(SYS_prlimit64, 0, resource, &next, NULL) != 0)
			return -1;
	}
	return 0;
}

/* Securebits and the bounding set need CAP_SETPCAP, so they come before the sets themselves. */
static int set_caps(const struct caps_plan *plan)
{
	struct __user_cap_header_struct header = plan->header; /* the kernel writes to it */

	if (syscall(SYS_prctl, PR_SET_SECUREBITS, SECUREBITS_DEFAULT, 0, 0, 0) != 0)
		return -1;
	for (int cap = 0; cap <= plan->last_cap; cap++) {
		if (plan->keep & (UINT64_C(1) << cap))
			continue;
		if (syscall(SYS_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0) != 0)
			return -1;
	}
	if (syscall(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
		return -1;
	return (int)syscall(SYS_capset, &header, plan->data);
}

/* A change of credentials sets the flag to fs.suid_dumpable, which may be 1, so this follows every
 * one of them, and believes only what it reads back. */
static int set_not_dumpable(void)
{
	if (syscall(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		return -1;
	if (syscall(SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0, 0) != 0) {
		errno = EPERM;
		return -1;
	}
	return 0;
}

int enter_apply_rights(const struct enter_rights *rights)
{
	if (set_rlimits() != 0)
		return ENTER_RLIMITS;
	if (set_caps(&rights->caps) != 0)
		return ENTER_CAPS;
	if (set_not_dumpable() != 0)
		return ENTER_DUMPABLE;
	if (syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return ENTER_NO_NEW_PRIVS;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, rights->seccomp) != 0)
		return ENTER_SECCOMP;
	return 0;
}

/* The pipe holds thousands of these and a write this small is never split. When nobody reads any
 * more there is nobody to tell. */
static void tell(int fd, uint32_t kind, uint32_t stage, int32_t error, int32_t value)
{
	struct enter_status status = { kind, stage, error, value };

	(void)syscall(SYS_write, fd, &status, sizeof(status));
}

static void __attribute__((noreturn)) leave(int code)
{
	for (;;)
		(void)syscall(SYS_exit_group, code);
}

static void __attribute__((noreturn)) joiner_fail(int status_fd, uint32_t stage)
{
	tell(status_fd, ENTER_FAILED, stage, errno, 0);
	leave(FATAL_EXIT);
}

static void __attribute__((noreturn)) command_fail(struct joiner *j, uint32_t stage)
{
	j->failed = true;
	tell(SLOT_STATUS, ENTER_FAILED, stage, errno, 0);
	leave(FATAL_EXIT);
}

/* Its own namespace makes the leaf the root of what /proc/self/cgroup shows. Joining pid 1's would
 * not do: with nsdelegate the kernel then refuses to clone into a leaf outside it. */
static int own_cgroup_namespace(const struct enter_command *cmd)
{
	if (syscall(SYS_unshare, CLONE_NEWCGROUP) == 0 || cmd->leaf_fd < 0)
		return 0;
	return -1;
}

static int set_ids(const struct enter_command *cmd)
{
	uint32_t uid = cmd->uid, gid = cmd->gid;

	if (syscall(SYS_setgroups, 0, NULL) != 0 || syscall(SYS_setresgid, gid, gid, gid) != 0)
		return -1;
	return (int)syscall(SYS_setresuid, uid, uid, uid);
}

/* ENOSYS: a kernel without keys. EDQUOT: the 200 keys one id may own, shared by every sandbox of
 * that id; the keyring inherited instead is the keeper's own fresh one, and the filter refuses every
 * key call anyway. */
static int new_keyring(void)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0) >= 0 ||
	    errno == ENOSYS || errno == EDQUOT)
		return 0;
	return -1;
}

/* The path is the caller's and the directories are the sandbox's. No magic link may be followed
 * (/proc/self/fd/N, /proc/PID/cwd), and what is reached must be below our root: CVE-2024-21626. */
static int enter_directory(const char *path)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_NO_MAGICLINKS };
	char reached[PATH_MAX];
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	if (fd < 0 || syscall(SYS_fchdir, fd) != 0 || syscall(SYS_close, fd) != 0)
		return -1;
	if (syscall(SYS_getcwd, reached, sizeof(reached)) < 0)
		return -1;
	if (reached[0] != '/') { /* "(unreachable)/..." */
		errno = EXDEV;
		return -1;
	}
	return 0;
}

/* Handlers are gone since the clone; what the keeper or its starter (nohup) ignored is not. */
static int reset_signals(uint64_t ignored)
{
	static const uint64_t by_default[KERNEL_SIGACTION_WORDS];
	static const uint64_t nothing;

	for (int sig = 1; sig <= SIGNALS; sig++) {
		if (!(ignored & SIGNAL_BIT(sig)))
			continue;
		if (syscall(SYS_rt_sigaction, sig, by_default, NULL, sizeof(nothing)) != 0)
			return -1;
	}
	return (int)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &nothing, NULL, sizeof(nothing));
}

/* Which signals this process ignores: asked once in the keeper, not 64 times in every command. */
static uint64_t ignored_signals(void)
{
	static uint64_t ignored = SIGNAL_BIT(SIGPIPE);
	static bool known;
	uint64_t action[KERNEL_SIGACTION_WORDS];

	for (int sig = 1; !known && sig <= SIGNALS; sig++) {
		if (syscall(SYS_rt_sigaction, sig, NULL, action, sizeof(ignored)) == 0 &&
		    action[0] == (uint64_t)(uintptr_t)SIG_IGN)
			ignored |= SIGNAL_BIT(sig);
	}
	known = true;
	return ignored;
}

/* The command's steps as pid of the sandbox, in their order. */
static uint32_t command_prepare(struct joiner *j)
{
	const struct enter_command *cmd = j->cmd;

	j->stage = ENTER_CGROUP_NS;
	if (own_cgroup_namespace(cmd) != 0)
		return ENTER_CGROUP_NS;
	j->stage = ENTER_IDS;
	if (set_ids(cmd) != 0)
		return ENTER_IDS;
	j->stage = ENTER_DUMPABLE;
	if (set_not_dumpable() != 0)
		return ENTER_DUMPABLE;
	j->stage = ENTER_KEYRING;
	if (new_keyring() != 0)
		return ENTER_KEYRING;
	j->stage = ENTER_SESSION;
	if (syscall(SYS_setsid) < 0)
		return ENTER_SESSION;
	/* Before the working directory: a path must find no directory of the host to start from. */
	j->stage = ENTER_CLOSE;
	if (syscall(SYS_close_range, SLOT_STATUS + 1, ~0U, 0) != 0)
		return ENTER_CLOSE;
	j->stage = ENTER_CWD;
	if (enter_directory(cmd->cwd) != 0)
		return ENTER_CWD;
	j->stage = ENTER_RLIMITS;
	return reset_signals(j->ignored) != 0 ? ENTER_SESSION : (uint32_t)enter_apply_rights(cmd->rights);
}

static void command_main(void *arg)
{
	struct joiner *j = arg;
	uint32_t failed;

	tell(SLOT_STATUS, ENTER_PID, 0, 0, j->pid);
	j->pid_told = true;
	failed = command_prepare(j);
	if (failed)
		command_fail(j, failed);
	j->stage = ENTER_EXEC;
	(void)syscall(SYS_execve, j->cmd->argv[0], j->cmd->argv, j->cmd->envp);
	command_fail(j, ENTER_EXEC);
}

/* clone3() whose child starts in fn(arg) on its own stack: it must not return into frames that the
 * parent, in the same memory, still uses. Return: pid, or -errno. fn must not return. */
static long clone3_on_stack(struct clone_args *args, void (*fn)(void *), void *arg)
{
#if defined(__x86_64__)
	register void *r8 __asm__("r8") = (void *)fn;
	register void *r9 __asm__("r9") = arg;
	long ret;

	__asm__ volatile("syscall\n\t"
			 "testq %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xorl %%ebp, %%ebp\n\t"
			 "movq %%r9, %%rdi\n\t"
			 "callq *%%r8\n\t"
			 "ud2\n"
			 "1:"
			 : "=a"(ret)
			 : "0"((long)SYS_clone3), "D"(args), "S"(sizeof(*args)), "r"(r8), "r"(r9)
			 : "rcx", "r11", "cc", "memory");
	return ret;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = SYS_clone3;
	register long x0 __asm__("x0") = (long)args;
	register long x1 __asm__("x1") = sizeof(*args);
	register void *x2 __asm__("x2") = (void *)fn;
	register void *x3 __asm__("x3") = arg;

	__asm__ volatile("svc #0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, xzr\n\t"
			 "mov x30, xzr\n\t"
			 "mov x0, x3\n\t"
			 "blr x2\n\t"
			 "brk #1\n"
			 "1:"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3)
			 : "cc", "memory");
	return x0;
#else
#error "clone3_on_stack: write the eight instructions for this architecture"
#endif
}

/* Bring every descriptor to its slot and close all others. On return *status_fd is SLOT_STATUS. */
static int arrange_descriptors(const struct enter_command *cmd, int *status_fd)
{
	int from[SLOTS] = { [SLOT_STDIN] = cmd->stdin_fd,   [SLOT_STDOUT] = cmd->stdout_fd,
			    [SLOT_STDERR] = cmd->stderr_fd, [SLOT_SCRIPT] = cmd->script_fd,
			    [SLOT_STATUS] = cmd->status_fd, [SLOT_PIDFD] = cmd->init_pidfd,
			    [SLOT_LEAF] = cmd->leaf_fd };

	/* First out of the way of the slots, so that no dup3 below closes one still needed. */
	for (int i = 0; i < SLOTS; i++) {
		if (from[i] < 0 || from[i] >= SLOTS)
			continue;
		from[i] = (int)syscall(SYS_fcntl, from[i], F_DUPFD_CLOEXEC, SLOTS);
		if (from[i] < 0)
			return -1;
	}
	*status_fd = from[SLOT_STATUS];
	for (int i = 0; i < SLOTS; i++) {
		if (from[i] < 0 && (i == SLOT_SCRIPT || i == SLOT_LEAF))
			(void)syscall(SYS_close, i);
		else if (syscall(SYS_dup3, from[i], i, i > SLOT_SCRIPT ? O_CLOEXEC : 0) < 0)
			return -1;
	}
	*status_fd = SLOT_STATUS;
	return (int)syscall(SYS_close_range, SLOTS, ~0U, 0);
}

/* The cgroup namespace is left out on purpose, see own_cgroup_namespace(). */
static int join_namespaces(void)
{
	int flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
		    CLONE_NEWUTS;

	if (set_not_dumpable() != 0 || syscall(SYS_setns, SLOT_PIDFD, flags) != 0)
		return -1;
	return set_not_dumpable();
}

/* With the keeper's uid still: the kernel checks it against the owner of the leaf's cgroup.procs.
 * CLONE_PARENT makes the command the keeper's child. Its signal handlers are cleared at birth, or
 * one could be made to run inside, in our memory, by anybody who may signal the command. */
static long clone_command(struct joiner *j, char *stack)
{
	bool into_cgroup = j->cmd->leaf_fd >= 0;
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_VFORK | CLONE_PARENT | CLONE_PARENT_SETTID |
			 CLONE_CLEAR_SIGHAND | (into_cgroup ? CLONE_INTO_CGROUP : 0),
		.parent_tid = (uint64_t)(uintptr_t)&j->pid,
		.stack = (uint64_t)(uintptr_t)stack,
		.stack_size = COMMAND_STACK,
		.cgroup = into_cgroup ? SLOT_LEAF : 0,
	};

	return clone3_on_stack(&args, command_main, j);
}

static void __attribute__((noreturn)) joiner_main(const struct enter_command *cmd, uint64_t ignored)
{
	static char stack[COMMAND_STACK] __attribute__((aligned(16)));
	static struct joiner j;
	int status_fd = cmd->status_fd;
	long pid;

	j.cmd = cmd;
	j.ignored = ignored;
	j.stage = ENTER_CLONE;
	if (arrange_descriptors(cmd, &status_fd) != 0)
		joiner_fail(status_fd, ENTER_STDIO);
	(void)syscall(SYS_umask, FILE_MODE_MASK);
	if (join_namespaces() != 0)
		joiner_fail(SLOT_STATUS, ENTER_JOIN);
	pid = clone_command(&j, stack);
	if (pid < 0) {
		errno = (int)-pid;
		joiner_fail(SLOT_STATUS, ENTER_CLONE);
	}

	/* It has executed, or it has died: killed from inside, or with its cgroup before it ever
	 * ran, as in a frozen one. */
	if (!j.pid_told)
		tell(SLOT_STATUS, ENTER_PID, 0, 0, (int32_t)pid);
	if (!j.failed && j.stage != ENTER_EXEC)
		tell(SLOT_STATUS, ENTER_FAILED, j.stage, ECANCELED, 0);
	leave(0);
}

pid_t enter_fork_joiner(const struct enter_command *cmd)
{
	uint64_t all = ~UINT64_C(0), before, ignored = ignored_signals();
	pid_t pid;

	/* No handler of the keeper's may run in the copy. A plain clone instead of fork(): no atfork
	 * handler of any library runs either. */
	if (syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof(all)) != 0)
		return -1;
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		joiner_main(cmd, ignored);
	int saved = errno;
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
	errno = saved;
	return pid;
}

static const char *const stage_text[] = {
	[ENTER_JOIN - ENTER_JOIN] = "join the sandbox's namespaces",
	[ENTER_CLONE - ENTER_JOIN] = "start a process in the sandbox",
	[ENTER_CGROUP_NS - ENTER_JOIN] = "make a cgroup namespace",
	[ENTER_IDS - ENTER_JOIN] = "change to the sandbox's user",
	[ENTER_DUMPABLE - ENTER_JOIN] = "protect the process's memory",
	[ENTER_KEYRING - ENTER_JOIN] = "make a session keyring",
	[ENTER_SESSION - ENTER_JOIN] = "make a session",
	[ENTER_STDIO - ENTER_JOIN] = "set up standard input and output",
	[ENTER_CWD - ENTER_JOIN] = "enter the working directory",
	[ENTER_CLOSE - ENTER_JOIN] = "close inherited descriptors",
	[ENTER_RLIMITS - ENTER_JOIN] = "set resource limits",
	[ENTER_CAPS - ENTER_JOIN] = "give up capabilities",
	[ENTER_NO_NEW_PRIVS - ENTER_JOIN] = "give up gaining privileges",
	[ENTER_SECCOMP - ENTER_JOIN] = "load the system call filter",
	[ENTER_EXEC - ENTER_JOIN] = "execute the program",
};

const char *enter_stage_text(uint32_t stage)
{
	if (stage < ENTER_JOIN || stage - ENTER_JOIN >= ARRAY_SIZE(stage_text))
		return "do an unknown step";
	return stage_text[stage - ENTER_JOIN];
}
