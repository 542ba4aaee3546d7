/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/mounts.h - the sandbox's mount tree
 *
 * The keeper clones the trees it holds descriptors of (a descriptor of its own mount namespace is of
 * no use in the child's); the child composes the rest, one function per step of launch.c, in that
 * order. Every step returns 0, or -1 with errno and m->object naming what it was at.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/err.h"
#include "runtime/project.h"
#include "runtime/spec.h"

/* The order of the bits LAUNCH_REPLACED_* of launch.h. */
enum mounts_target {
	MOUNTS_TARGET_PROC,
	MOUNTS_TARGET_DEV,
	MOUNTS_TARGET_SYS,
	MOUNTS_TARGET_TMP,
	MOUNTS_TARGET_RUN,
	MOUNTS_TARGET_WORKSPACE,
	MOUNTS_TARGET_OUTPUT,
	MOUNTS_TARGET_MNT,
	MOUNTS_TARGET_COUNT,
};

/* Directories of the keeper, borrowed; -1 where there is none. */
struct mounts_sources {
	int lower_fd, layer_fd, workspace_fd, output_fd;
	int lower_ns_fd; /* -1, or the user namespace whose map translates the image's ids */
	const struct idrange *ids; /* of the sandbox, for the projects */
	struct projects *projects; /* NULL: none. One of them may stand for the workspace */
	const struct trust *trust; /* NULL: the image's certificates alone */
};

enum { MOUNTS_NUMBER_MAX = 24, MOUNTS_ASIDE_MAX = 48 };

struct mounts {
	/* made by the keeper */
	int lower_tree_fd, layer_tree_fd, workspace_tree_fd, output_tree_fd; /* detached mounts */
	int devices_fd; /* a detached mount of nodes of its own; the child may open the host's instead */
	int project_tree_fd[PROJECT_MAX]; /* below /mnt; -1: not there, or the workspace */
	char project_name[PROJECT_MAX][PROJECT_TARGET_MAX];
	bool has_mnt, workspace_is_project;
	const struct trust *trust;
	bool as_user; /* commands run as ID_USER_INSIDE: it needs a home, and to write to the workspace */
	bool tmp_noexec;
	char tmp_bytes[MOUNTS_NUMBER_MAX], tmp_inodes[MOUNTS_NUMBER_MAX];
	char shm_bytes[MOUNTS_NUMBER_MAX], shm_inodes[MOUNTS_NUMBER_MAX];
	char run_bytes[MOUNTS_NUMBER_MAX], run_inodes[MOUNTS_NUMBER_MAX];
	char workspace_bytes[MOUNTS_NUMBER_MAX], workspace_inodes[MOUNTS_NUMBER_MAX];
	char aside_suffix[MOUNTS_ASIDE_MAX]; /* of what is renamed aside */
	/* made by the child */
	int scratch_fd, root_fd, proc_fd, dev_fd, proc_sys_fd;
	int target_fd[MOUNTS_TARGET_COUNT];
	uint32_t replaced;  /* bit per target that was no directory and was renamed aside */
	const char *object; /* of the step at work; a literal */
};

/* mounts_prepare() - in the keeper: clone the trees (private, nosuid, nodev; image and output
 * read-only) and spell out the sizes. Return: 0, -1. */
int mounts_prepare(struct mounts *m, const struct mounts_sources *src,
		   const struct profile *profile, struct err *e);
/* mounts_done() - in the keeper, after the clone. */
void mounts_done(struct mounts *m);

/* Steps of the child. */
int mounts_make_private(struct mounts *m); /* nothing propagates from or to the host */
int mounts_scratch(struct mounts *m);      /* a place to compose in, over the host's /proc */
int mounts_trust(struct mounts *m);        /* the operator's certificates beside the image's */
int mounts_root(struct mounts *m);         /* overlay of image and layer */
int mounts_targets(struct mounts *m);      /* mount points, made safe */
int mounts_proc(struct mounts *m);
int mounts_dev(struct mounts *m);
int mounts_tmpfs(struct mounts *m); /* /tmp, /run, /dev/shm */
int mounts_workspace(struct mounts *m);
int mounts_projects(struct mounts *m); /* folders below /mnt */
int mounts_home(struct mounts *m);     /* of the user that commands run as */
int mounts_output(struct mounts *m);
int mounts_keep_proc_sys(struct mounts *m); /* m->proc_sys_fd: writable whatever is mounted later */
int mounts_masks(struct mounts *m);
int mounts_pivot(struct mounts *m); /* the host's tree is gone afterwards */
