/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/cgroup.h - the delegated cgroup v2 subtree: limits, leaves, evidence
 *
 *   <delegated>/keeper                       keepers that had to leave <delegated> itself: a cgroup
 *                                            that gives limits to children may hold no process
 *   <delegated>/<owner-id>/<key>/            limits stand here and are read back
 *                               init/        pid 1 alone, pids.max 1
 *                               exec-0..15/  commands; made on first use, re-used, never one each
 *
 * A leaf per command would leave a dying memory cgroup behind for every tmpfs page it charged
 * (measured); re-used leaves are told apart by counter differences.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/err.h"
#include "runtime/base/proc.h"
#include "runtime/spec.h"

enum {
	CGROUP_LEAVES = 16,
	CGROUP_PIDS_RESERVE = 4, /* raised by this much while a command starts in a full sandbox */
};

struct cgroup_tree {
	int root_fd; /* the delegated directory; -1: no cgroup at all (best-effort) */
	char path[PATH_MAX];
	unsigned int controllers; /* CGROUP_* that sandboxes can be given */
	pid_t private_of; /* the process that made the directory for itself alone; 0: it was there */
};

/* cgroup_acquire() - find or make the subtree, in this order: the setting (an absolute path, made
 * when only its last part is missing); the tree whose "keeper" leaf we are in already; our own
 * cgroup when delegated and ours alone; root on a host without systemd: a directory of our own,
 * mcp-sandbox/<pid>, in the v2 root. A process whose cgroup becomes the tree moves into
 * <delegated>/keeper; any other stays where its service manager put it.
 * Keepers may share a tree (a setting): owners and keys are told apart by a lock on the key's
 * directory, so no keeper touches the sandbox of another that is alive.
 * Missing controllers, or no subtree at all, are an error with the exact remedy. With best_effort
 * they leave tree->controllers short (root_fd -1 when there is none), the result is 0 and *e keeps
 * the reason; e->code is ERR_NONE when nothing is missing.
 * Return: 0, -1, or 1: outside a delegated cgroup, and cgroup_reexec_scope() will help. */
int cgroup_acquire(struct cgroup_tree *tree, const char *setting, bool best_effort, struct err *e);

/* cgroup_tree_done() - close; remove a directory that was made for this process alone. */
void cgroup_tree_done(struct cgroup_tree *tree);

/* cgroup_reexec_scope() - re-execute this program once in a delegated scope of the service manager:
 * systemd-run [--user] --scope -p Delegate=yes. A marker in the environment that holds our pid (exec
 * keeps it) prevents loops. systemd-run expands "$" in arguments since some version, so they
 * travel in a memory file: main() gives its arguments to cgroup_scope_args() before anything else.
 * Returns only on failure, -1. */
int cgroup_reexec_scope(char **argv, struct err *e);

/* cgroup_scope_args() - put the arguments from before cgroup_reexec_scope() back; does nothing in a
 * process that was not re-executed. Return: 0, -1. */
int cgroup_scope_args(int *argc, char ***argv, struct err *e);

struct cgroup_box {
	int dir_fd; /* <owner-id>/<key>; -1 when there is no cgroup */
	int init_fd;
	int leaf_fd[CGROUP_LEAVES]; /* -1 until first used */
	uint32_t leaf_spent;        /* bit per leaf that was killed: made anew before its next use */
	unsigned int reserves;      /* cgroup_pids_reserve() in force */
	unsigned int enforced;      /* CGROUP_* set and read back */
	struct limits limits;
	char owner[OWNER_ID_LEN + 1];
	char key[KEY_MAX];
};

/* cgroup_box_create() - directories and limits of one sandbox, read back, and a lock on its directory
 * for as long as the box is open. A left-over cgroup of the same key is killed and removed first when
 * empty within a short wait (100 ms); not empty then, or another living keeper's: ERR_BUSY. */
int cgroup_box_create(const struct cgroup_tree *tree, const char *owner, const char *key,
		      const struct limits *limits, bool best_effort, struct cgroup_box *box,
		      struct err *e);

/* cgroup_box_kill() - cgroup.kill (5.14) of everything in the sandbox; works on a frozen one.
 * Return: 0, -1 (EBADF: there is no cgroup, pid 1 has to be killed instead). */
int cgroup_box_kill(const struct cgroup_box *box);

/* cgroup_box_remove() - rmdir the leaves, the key and an empty owner directory, close descriptors.
 * Return: 0, -1 with errno EBUSY while a process is left. */
int cgroup_box_remove(const struct cgroup_tree *tree, struct cgroup_box *box);
void cgroup_box_done(struct cgroup_box *box); /* closes only */

/* cgroup_leaf_open() - make leaf i if needed (memory.oom.group set). Return: its descriptor
 * (borrowed), -1 (ERR_BUSY while a killed leaf is not empty yet). */
int cgroup_leaf_open(struct cgroup_box *box, unsigned int i, struct err *e);
/* cgroup_leaf_kill() - kill what is in a leaf now. The next cgroup_leaf_open() makes the leaf anew:
 * since the kernel closed the race of fork with cgroup.kill (6.14 and its stable branches, seen on
 * 6.18), every process cloned by CLONE_INTO_CGROUP into a cgroup that was killed more often than the
 * cloner's own dies at birth. */
int cgroup_leaf_kill(struct cgroup_box *box, unsigned int i);
/* cgroup_leaf_spend() - somebody else has killed it: the same for the next cgroup_leaf_open(). */
void cgroup_leaf_spend(struct cgroup_box *box, unsigned int i);
/* Processes in a leaf now (0 = empty), -1 on error. */
int cgroup_leaf_count(const struct cgroup_box *box, unsigned int i);
int cgroup_box_count(const struct cgroup_box *box);
/* Bytes charged to the sandbox, 0 where it cannot be known. */
uint64_t cgroup_box_memory(const struct cgroup_box *box);

/* cgroup_pids_reserve() - raise pids.max by CGROUP_PIDS_RESERVE while a command starts (on), so that a
 * rescue command starts in a sandbox whose process limit is full, and put it back (off). Nests: each
 * command that is starting has its own. Return: 0, -1. */
int cgroup_pids_reserve(struct cgroup_box *box, bool on);

/* Kernel counters; a command's evidence is the difference of two readings. */
struct cgroup_evidence {
	uint64_t oom_kills;      /* leaf memory.events.local oom_kill */
	uint64_t pids_refused;   /* pids.events max of leaf and sandbox (kernels count in either) */
	uint64_t throttled_usec; /* sandbox cpu.stat */
};
int cgroup_evidence_read(const struct cgroup_box *box, unsigned int leaf,
			 struct cgroup_evidence *ret);

/* The record of a sandbox: a fixed-size struct in the xattr user.mcp.sandbox of its cgroup
 * directory, which vanishes with it. The kernel is the database. */
struct cgroup_record {
	uint32_t version;
	char profile[16];
	char image[NAME_MAX_LEN];
	struct limits limits;
	uint32_t best_effort, net, uplink, id_base; /* enum net_mode, net_uplink */
	int32_t keeper_pid, init_pid;
	uint64_t init_start_time; /* field 22 of /proc/PID/stat */
	uint64_t generation;
	uint64_t created_ns;        /* CLOCK_BOOTTIME */
	uint64_t trust;             /* which further certificates it was given; 0: none */
	char boot_id[BOOT_ID_SIZE]; /* the boot those two count from */
	uint32_t lost, unanswered;  /* commands; their label has not been told yet (lost.h) */
};
int cgroup_record_write(const struct cgroup_box *box, const struct cgroup_record *rec);
/* Return: 1 valid, 0 none or damaged. */
int cgroup_record_read(int dir_fd, struct cgroup_record *ret);

/* The mark of a leaf whose command has not been answered: what a keeper that takes over has to report
 * as lost. Written before the command is started, so that there is none without. */
struct cgroup_mark {
	uint32_t version;
	uint32_t reserved;
	uint64_t began_ns; /* CLOCK_BOOTTIME */
};
int cgroup_leaf_mark(const struct cgroup_box *box, unsigned int i);
void cgroup_leaf_unmark(const struct cgroup_box *box, unsigned int i);

/* Taking over (cgroup_adopt.c): what a keeper that is gone has left in a tree. */
typedef void cgroup_box_fn(const char *owner, const char *key, void *ctx);
void cgroup_each_box(const struct cgroup_tree *tree, cgroup_box_fn *fn, void *ctx);

/* cgroup_box_hold() - open and lock a box's directory. Return: descriptor, -1 with errno EWOULDBLOCK
 * when a living keeper has it. */
int cgroup_box_hold(const struct cgroup_tree *tree, const char *owner, const char *key);

/* cgroup_box_init_pid() - the one process of its init leaf. Return: pid, 0 when there is none, or more. */
pid_t cgroup_box_init_pid(int dir_fd);

/* cgroup_box_marks() - leaves whose command has not been answered. */
uint32_t cgroup_box_marks(int dir_fd);

/* cgroup_box_adopt() - make a box of a directory that cgroup_box_hold() gave (owned from here on, closed
 * on failure): limits are set and read back anew, empty leaves removed, commands without an answer
 * killed; *ret_lost counts them. With keep_marked set those go on: they are the caller's own, from
 * before it executed itself. Return: 0, -1. */
int cgroup_box_adopt(const struct cgroup_tree *tree, int dir_fd, const char *owner, const char *key,
		     const struct limits *limits, bool best_effort, bool keep_marked,
		     struct cgroup_box *box, uint32_t *ret_lost, struct err *e);

/* cgroup_box_clear() - kill and remove a directory that cgroup_box_hold() gave (closed here), within a
 * short wait (100 ms); what is left then is for cgroup_box_create(). Return: 0, -1. */
int cgroup_box_clear(const struct cgroup_tree *tree, int dir_fd, const char *owner, const char *key);
