/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/cgroup.h - the delegated cgroup v2 subtree: limits, leaves, evidence
 *
 *   <delegated>/keeper                       this process (moved here so that limits may be set)
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
#include "runtime/spec.h"

enum {
	CGROUP_LEAVES = 16,
	CGROUP_PIDS_RESERVE = 4, /* raised by this much while a command starts in a full sandbox */
};

struct cgroup_tree {
	int root_fd; /* the delegated directory; -1: no cgroup at all (best-effort) */
	char path[PATH_MAX];
	unsigned int controllers; /* CGROUP_* that sandboxes can be given */
};

/* cgroup_acquire() - find or make the subtree, in the order of ARCHITECTURE.md: the setting, our
 * own cgroup when delegated and ours alone, (root without systemd) a directory of ours in the v2
 * root. Moves this process into <delegated>/keeper and enables the controllers there are.
 * Missing controllers, or no subtree at all, are an error with the exact remedy, or with best_effort
 * leave tree->controllers short (root_fd -1 when there is none).
 * Return: 0, -1, or 1: an ordinary user outside a delegated cgroup, cgroup_reexec_scope() may help. */
int cgroup_acquire(struct cgroup_tree *tree, const char *setting, bool best_effort, struct err *e);
void cgroup_tree_done(struct cgroup_tree *tree);

/* cgroup_reexec_scope() - re-execute argv once through systemd-run --user --scope -p Delegate=yes
 * (argument vector, marker in the environment against loops). Returns only on failure, -1. */
int cgroup_reexec_scope(char **argv, struct err *e);

struct cgroup_box {
	int dir_fd; /* <owner-id>/<key>; -1 when there is no cgroup */
	int init_fd;
	int leaf_fd[CGROUP_LEAVES]; /* -1 until first used */
	unsigned int enforced;      /* CGROUP_* set and read back */
	struct limits limits;
	char owner[OWNER_ID_LEN + 1];
	char key[KEY_MAX];
};

/* cgroup_box_create() - directories and limits of one sandbox, read back. A left-over cgroup of the
 * same key is killed and removed first when empty within a short wait, else ERR_BUSY. */
int cgroup_box_create(const struct cgroup_tree *tree, const char *owner, const char *key,
		      const struct limits *limits, bool best_effort, struct cgroup_box *box,
		      struct err *e);

/* cgroup_box_kill() - cgroup.kill (5.14) of everything in the sandbox; works on a frozen one. */
int cgroup_box_kill(const struct cgroup_box *box);

/* cgroup_box_remove() - rmdir the leaves, the key and an empty owner directory, close descriptors.
 * Return: 0, -1 with errno EBUSY while a process is left. */
int cgroup_box_remove(const struct cgroup_tree *tree, struct cgroup_box *box);
void cgroup_box_done(struct cgroup_box *box); /* closes only */

/* cgroup_leaf_open() - make leaf i if needed (memory.oom.group set). Return: its descriptor
 * (borrowed), -1. */
int cgroup_leaf_open(struct cgroup_box *box, unsigned int i, struct err *e);
int cgroup_leaf_kill(const struct cgroup_box *box, unsigned int i);
/* Processes in a leaf now (0 = empty), -1 on error. */
int cgroup_leaf_count(const struct cgroup_box *box, unsigned int i);
int cgroup_box_count(const struct cgroup_box *box);
/* Bytes charged to the sandbox, 0 where it cannot be known. */
uint64_t cgroup_box_memory(const struct cgroup_box *box);

/* cgroup_pids_reserve() - raise pids.max by CGROUP_PIDS_RESERVE (on) or put it back (off), so that
 * a rescue command starts in a sandbox whose process limit is full. */
int cgroup_pids_reserve(const struct cgroup_box *box, bool on);

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
	uint32_t best_effort, net, id_base;
	int32_t keeper_pid, init_pid;
	uint64_t init_start_time; /* field 22 of /proc/PID/stat */
	uint64_t generation;
};
int cgroup_record_write(const struct cgroup_box *box, const struct cgroup_record *rec);
/* Return: 1 valid, 0 none or damaged. */
int cgroup_record_read(int dir_fd, struct cgroup_record *ret);
