/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/exec.h - the life of one command
 *
 *   waiting -> starting -> running -> (terminating -> killing ->) settling -> answered
 *
 * waiting:     for its sandbox, or for a free leaf
 * starting:    a joiner is at work; the status pipe tells; ten seconds at most
 * running:     until it ends or its time is over
 * terminating: TERM went to its process group; two seconds
 * killing:     cgroup.kill of its leaf: setsid, double fork and ignored signals do not help
 * settling:    it has ended; a killed tree is given a moment to be gone
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/api.h"
#include "runtime/cgroup.h"
#include "runtime/output.h"
#include "runtime/peer.h"
#include "runtime/reap.h"
#include "runtime/registry.h"

enum {
	EXEC_START_MS = 10 * 1000,
	EXEC_TERM_MS = 2 * 1000,
	EXEC_KILL_MS = 5 * 1000,
	EXEC_SETTLE_MS = 1000, /* for a killed tree to be gone */
	EXEC_GRACE_MS = 20,    /* after an unexplained SIGKILL: did pid 1 end, too? */
	EXEC_POLL_MS = 2,
	EXEC_CLONE_TRIES = 3,
	EXEC_ARGS_MAX = 4096,
};

enum command_state {
	COMMAND_WAITING,
	COMMAND_STARTING,
	COMMAND_RUNNING,
	COMMAND_TERMINATING,
	COMMAND_KILLING,
	COMMAND_SETTLING,
};

struct command {
	struct request req;
	struct registry *reg;
	struct sandbox *sandbox; /* attached to it, in its list */
	struct command *next;
	enum command_state state;
	char owner[OWNER_ID_LEN + 1];
	char key[KEY_MAX];
	uint32_t mode, exec_flags;
	uint32_t flags; /* API_CREATED ... of the answer */
	char *cwd;
	char *text; /* NUL-terminated; NULL: in text_fd */
	size_t text_len;
	int text_fd;
	uint64_t timeout_ms, started_ns, ended_ns, settle_until_ns;
	int leaf; /* -1: none */
	unsigned int tries;
	bool reserved;  /* pids.max is raised for it */
	bool expected;  /* its pid report is still to come */
	bool exited;
	struct reap_status exit;
	struct loop_source status;
	struct loop_timer timer;
	struct joiner_watch *joiner; /* NULL: reaped, or given up */
	struct reap_child child;
	int inside_fds[3]; /* the command's ends of its pipes, until it has started */
	int client_fds[3]; /* API_EXEC_STREAM: the client's ends, until it has them */
	struct output *out;
	struct cgroup_evidence before;
	uint64_t egress_mark; /* what is blocked from here on concerns it */
};

/* exec_init() - install the hooks that tie commands to the sandboxes' lives. */
void exec_init(struct registry *reg);

/* exec_begin() - serve an API_EXEC whose fields were validated. Return: 0, -1 to drop the peer. */
int exec_begin(struct registry *reg, struct peer *p, const struct api_exec *msg, struct err *e);

/* exec_signal() - TERM or INT to the process group of a running command. */
void exec_signal(struct request *req, int signal);

/* exec_peek() - answer API_PROGRESS. */
void exec_peek(struct request *req);

/* Shared by exec.c (up to a leaf), exec_start.c (up to running) and exec_end.c (from then on). */

/* command_start() - fork a joiner. Return: 0 (it is STARTING), -1. */
int command_start(struct command *cmd, struct err *e);

/* command_give_up() - drop what of a start is still under way. With kill set, whatever the joiner has
 * made or may still make is killed; its leaf stays taken until the joiner is reaped. */
void command_give_up(struct command *cmd, bool kill);

/* command_change_leaf() - somebody else has killed its leaf: into another one. Return: 0, -1 (there is none). */
int command_change_leaf(struct command *cmd);

/* command_started() - it has executed. */
void command_started(struct command *cmd);

/* command_kill() - its whole tree, now. */
void command_kill(struct command *cmd);

/* command_end() - its process was reaped. */
void command_end(struct command *cmd);

/* command_answer() - tell the result, leave the pipe to the sandbox's background work, free. */
void command_answer(struct command *cmd);

/* command_refuse() - answer with an error and free; nothing of it runs, or it ends by itself. */
void command_refuse(struct command *cmd, const struct err *error);

/* command_abort() - the same for a start under way, which is killed. */
void command_abort(struct command *cmd, const struct err *error);

/* command_watch() - call command_end() when pid, a child of ours, ends. Return: 0, -1. */
int command_watch(struct command *cmd, pid_t pid);

/* command_resume() - one that came through a handover, complete but for these: its sandbox, the peer that
 * waits for it (NULL: none) and the time of its next step. Return: 0, -1 (the caller frees it). */
int command_resume(struct command *cmd, struct sandbox *sb, struct peer *p, uint64_t request_id,
		   uint64_t deadline_ns);

void command_timer(struct command *cmd, uint64_t delay_ms);
void command_on_timer(struct command *cmd);
void command_detach(struct command *cmd);
void command_free(struct command *cmd);

/* sandbox_drain() - read on what background work writes, until its end; NULL is nothing to read. */
void sandbox_drain(struct sandbox *sb, struct output *out);

/* sandbox_pump() - start what waits in a sandbox that is ready, in order. */
void sandbox_pump(struct sandbox *sb);
