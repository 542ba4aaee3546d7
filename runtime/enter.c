/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/enter.c - the keeper's side of starting a command: put a joiner on its way
 *
 * Runs in the keeper. What happens inside is in two other files: join/join.c is the program that
 * enters, enter_rights.h the last steps, which process 1 takes as well (enter_apply_rights()).
 *
 * The joiner is executed, not forked: a small static program in a sealed memory file. Between clone
 * and exec it is in the keeper's memory for a handful of system calls; it is not in the sandbox
 * then, and waits for nothing. No task inside a sandbox ever shares the keeper's memory: an
 * out-of-memory kill takes every process that shares the victim's, and a stopped one would stop the
 * keeper with it.
 */
#include "runtime/enter.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/raw.h"
#include "runtime/base/sys.h"
#include "runtime/enter_plan.h"
#include "runtime/enter_rights.h"

extern const unsigned char enter_join_image[], enter_join_image_end[];

enum {
	FATAL_EXIT = 125,
	SPAWN_STACK = 16 * 1024,
	NUMBERS_MAX = 80, /* four decimal numbers */
	SIGNALS = 64,
	KERNEL_SIGACTION_WORDS = 4,
};

int enter_apply_rights(const struct enter_rights *rights)
{
	int error = 0;
	int stage = rights_apply(&rights->caps, rights->seccomp, &error);

	if (stage != 0)
		errno = error;
	return stage;
}

int enter_offer_to_oom(void)
{
	long r = rights_offer_to_oom();

	if (r < 0)
		errno = (int)-r;
	return r < 0 ? -1 : 0;
}

/* Everything the joiner's first instructions need, complete before the clone. */
struct spawn {
	int from[SLOTS];
	int status_fd;
	char **argv;
	char *const *envp;
};

/* Which signals this process ignores: asked once, not 64 times for every command. */
static uint64_t ignored_signals(void)
{
	static uint64_t ignored = UINT64_C(1) << (SIGPIPE - 1);
	static bool known;
	uint64_t action[KERNEL_SIGACTION_WORDS] = {0};

	for (int sig = 1; !known && sig <= SIGNALS; sig++) {
		if (RAW(__NR_rt_sigaction, sig, NULL, action, sizeof(ignored)) == 0 &&
		    action[0] == (uint64_t)(uintptr_t)SIG_IGN)
			ignored |= UINT64_C(1) << (sig - 1);
	}
	known = true;
	return ignored;
}

/* One for the life of the keeper, so that all joiners share its pages. Return: borrowed, -1. */
static int join_program(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = fd_memfd_sealed("join", enter_join_image,
				     (size_t)(enter_join_image_end - enter_join_image), 0111, true);
	return fd;
}

/* The rights as a sealed file, kept for the next command: a keeper has one set of them, or two that
 * seldom alternate.
 * Return: borrowed, -1. */
static int plan_file(const struct enter_rights *rights)
{
	static struct enter_plan kept, plan;
	static int fd = -1;
	size_t filter = rights->seccomp->len * sizeof(plan.filter[0]);

	if (rights->seccomp->len == 0 || rights->seccomp->len > BPF_MAXINSNS) {
		errno = EINVAL;
		return -1;
	}
	plan.caps = rights->caps;
	plan.filter_len = rights->seccomp->len;
	memcpy(plan.filter, rights->seccomp->filter, filter);
	if (fd >= 0 && memcmp(&plan, &kept, offsetof(struct enter_plan, filter) + filter) == 0)
		return fd;
	close_fd(&fd);
	fd = fd_memfd_sealed("plan", &plan, offsetof(struct enter_plan, filter) + filter, 0400,
			     false);
	kept = plan;
	return fd;
}

static size_t count_arguments(char *const *argv)
{
	size_t count = 0;

	while (argv[count])
		count++;
	return count;
}

/* The joiner's arguments, see enter_plan.h. Return: allocated vector, NULL. */
static char **join_arguments(const struct enter_command *cmd, char *numbers)
{
	static char name[] = "join";
	size_t count = count_arguments(cmd->argv);
	char **argv = calloc(JOIN_ARG_COMMAND + count + 1, sizeof(*argv));

	if (!argv)
		return NULL;
	(void)snprintf(numbers, NUMBERS_MAX, "%" PRIu32 " %" PRIu32 " %" PRIu64 " %d", cmd->uid,
		       cmd->gid, ignored_signals(), cmd->leaf_fd >= 0);
	argv[0] = name;
	argv[JOIN_ARG_NUMBERS] = numbers;
	argv[JOIN_ARG_CWD] = (char *)(uintptr_t)cmd->cwd;
	memcpy(argv + JOIN_ARG_COMMAND, cmd->argv, count * sizeof(*argv));
	return argv;
}

/* Bring every descriptor to its slot and close all others. On return s->status_fd says where the
 * status pipe is by now. */
static long arrange_descriptors(struct spawn *s)
{
	/* First out of the way of the slots, so that no dup3 below closes one still needed. */
	for (int i = 0; i < SLOTS; i++) {
		if (s->from[i] < 0 || s->from[i] >= SLOTS)
			continue;
		long fd = RAW(__NR_fcntl, s->from[i], F_DUPFD_CLOEXEC, SLOTS);
		if (fd < 0)
			return fd;
		s->from[i] = (int)fd;
	}
	s->status_fd = s->from[SLOT_STATUS];
	for (int i = 0; i < SLOTS; i++) {
		if (s->from[i] < 0 && (i == SLOT_SCRIPT || i == SLOT_LEAF)) {
			(void)RAW(__NR_close, i);
			continue;
		}
		/* The joiner keeps all but its own program; the command gets 0..3. */
		long fd = RAW(__NR_dup3, s->from[i], i, i == SLOT_PROGRAM ? O_CLOEXEC : 0);
		if (fd < 0)
			return fd;
	}
	s->status_fd = SLOT_STATUS;
	return RAW(__NR_close_range, SLOTS, ~0U, 0);
}

/* In the keeper's memory, on a stack of its own, with descriptors of its own. */
static void spawn_main(void *arg)
{
	struct spawn *s = arg;
	struct enter_status status = {.kind = ENTER_FAILED, .stage = ENTER_STDIO};
	long r = arrange_descriptors(s);

	if (r >= 0) {
		r = RAW(__NR_execveat, SLOT_PROGRAM, "", s->argv, s->envp, AT_EMPTY_PATH);
		/* The arguments are the command's, so it is the one that is too long. */
		status.stage = r == -E2BIG ? ENTER_EXEC : ENTER_JOIN;
	}
	status.error = (int32_t)-r;
	(void)RAW(__NR_write, s->status_fd, &status, sizeof(status));
	for (;;)
		(void)RAW(__NR_exit_group, FATAL_EXIT);
}

/* With every signal blocked, so that no handler of the keeper's runs in the child. */
static long clone_joiner(struct spawn *s)
{
	static char stack[SPAWN_STACK] __attribute__((aligned(16)));
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_VFORK,
		.exit_signal = SIGCHLD,
		.stack = (uint64_t)(uintptr_t)stack,
		.stack_size = sizeof(stack),
	};
	uint64_t all = ~UINT64_C(0), before = 0;
	long r = RAW(__NR_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof(all));

	if (r < 0)
		return r;
	r = raw_clone3(&args, sizeof(args), spawn_main, s);
	(void)RAW(__NR_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
	return r;
}

pid_t enter_start_joiner(const struct enter_command *cmd)
{
	char numbers[NUMBERS_MAX];
	int program_fd = join_program(), plan_fd = plan_file(cmd->rights);
	_cleanup_free_ char **argv = join_arguments(cmd, numbers);
	struct spawn s = {
		.from = {[SLOT_STDIN] = cmd->stdin_fd,
			 [SLOT_STDOUT] = cmd->stdout_fd,
			 [SLOT_STDERR] = cmd->stderr_fd,
			 [SLOT_SCRIPT] = cmd->script_fd,
			 [SLOT_STATUS] = cmd->status_fd,
			 [SLOT_PIDFD] = cmd->init_pidfd,
			 [SLOT_PLAN] = plan_fd,
			 [SLOT_LEAF] = cmd->leaf_fd,
			 [SLOT_PROGRAM] = program_fd},
		.argv = argv,
		.envp = cmd->envp,
	};
	long pid;

	if (program_fd < 0 || plan_fd < 0 || !argv)
		return -1;
	pid = clone_joiner(&s);
	if (pid < 0) {
		errno = (int)-pid;
		return -1;
	}
	return (pid_t)pid;
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
