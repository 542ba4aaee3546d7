/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/enter.h - start commands in a sandbox; the last steps before untrusted code
 *
 * Three files: enter.c (the keeper's side), join/join.c (the program that enters and becomes the
 * command), enter_rights.h (the rights every process of a sandbox ends up with, compiled into the
 * joiner and, for process 1, into the keeper: a command can never have more rights than process 1,
 * CVE-2022-29162 class). The last two are raw system calls on bytes prepared by the keeper.
 */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/caps.h"

/* What the child says on the status pipe; end of file without a message is success (close-on-exec). */
struct enter_status {
	uint32_t kind;  /* enum enter_kind */
	uint32_t stage; /* enum launch_stage or enum enter_stage */
	int32_t error;  /* errno */
	int32_t value;  /* pid of the command, or a stage's argument */
};

enum enter_kind { ENTER_FAILED = 1, ENTER_PID = 2, ENTER_NOTE = 3 };

enum enter_stage {
	ENTER_JOIN = 100,  /* setns by pidfd */
	ENTER_CLONE,       /* clone3 into the leaf */
	ENTER_CGROUP_NS,
	ENTER_IDS,
	ENTER_DUMPABLE,
	ENTER_KEYRING,
	ENTER_SESSION,
	ENTER_STDIO,
	ENTER_CWD,
	ENTER_CLOSE,
	ENTER_RLIMITS,
	ENTER_CAPS,
	ENTER_NO_NEW_PRIVS,
	ENTER_SECCOMP,
	ENTER_EXEC,
};

/* The rights every process in a sandbox starts with; prepared once per sandbox. */
struct enter_rights {
	struct caps_plan caps;
	const struct sock_fprog *seccomp;
};

/* enter_apply_rights() - rlimits, bounding set and capabilities, securebits 0, not dumpable (again:
 * a credential change resets it to fs.suid_dumpable), no_new_privs, seccomp; in that order.
 * Needs: ids already changed, only wanted descriptors open. Must be followed by execve at once.
 * Return: 0, or the failed stage with errno set. */
int enter_apply_rights(const struct enter_rights *rights);

/* enter_offer_to_oom() - have the calling process and what it starts killed first when the host has no
 * memory left. Needs the host's /proc. Return: 0, -1. */
int enter_offer_to_oom(void);

/* One command, prepared by the keeper. Nothing is kept beyond the call that starts it. */
struct enter_command {
	int init_pidfd;
	int leaf_fd;         /* -1: no cgroup */
	int status_fd;       /* write end, close-on-exec */
	int stdin_fd, stdout_fd, stderr_fd;
	int script_fd;       /* -1, or a memory file handed in as descriptor 3 */
	uint32_t uid, gid;   /* inside */
	const char *cwd;     /* resolved inside; must stay inside */
	char *const *argv;   /* [0] is a path */
	char *const *envp;
	const struct enter_rights *rights;
};

/* enter_start_joiner() - start a command: the keeper executes a joiner (a small program outside the
 * sandbox's pid namespace, so nothing inside can signal it), which joins the namespaces and clones
 * the command as the keeper's own child straight into its leaf, then dies.
 * Only the joiner ever waits for the command's exec; the keeper learns of it from the status pipe:
 *
 *   ENTER_PID {value}            the command's pid, the keeper's own child, before it runs anything
 *                                hostile. Once, or twice with the same pid when it was killed right
 *                                after the first. The child is to be reaped also when ENTER_FAILED
 *                                follows; waitid() needs __WALL until it has executed.
 *   ENTER_FAILED {stage, error}  at most once. ECANCELED: it was killed in that stage, from inside or
 *                                with its cgroup. ENTER_JOIN with ESRCH or EPERM: pid 1 is gone.
 *   end of file                  without ENTER_FAILED: the program is running, or was killed while
 *                                being loaded. With neither message: the joiner itself was killed.
 *
 * Nothing bounds the time until the end of file: the command may be stopped or frozen from its first
 * instruction. At its deadline the caller kills the leaf (without cgroups: pid 1), which ends both.
 * Needs: signals of the keeper by signalfd or with default action; none but SIGPIPE becomes ignored
 * after the first call. The session keyring of the keeper is a fresh one: a command keeps it where
 * its own key quota is used up.
 * Return: the joiner's pid (to be reaped), -1. */
pid_t enter_start_joiner(const struct enter_command *cmd);

/* enter_stage_text() - what a stage was about to do, for the sentence in an error. */
const char *enter_stage_text(uint32_t stage);
