/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/image_box_child.h - between the two halves of image_box.h: who clones, and who is cloned */
#pragma once

#include <limits.h>
#include <stdint.h>

#include "runtime/caps.h"
#include "runtime/image_box.h"
#include "runtime/seccomp.h"

enum box_stage {
	BOX_STAGE_NONE,
	BOX_STAGE_IDS,
	BOX_STAGE_SESSION,
	BOX_STAGE_PRIVATE,
	BOX_STAGE_ROOT,
	BOX_STAGE_HOST,
	BOX_STAGE_TREES,
	BOX_STAGE_PROC,
	BOX_STAGE_DEV,
	BOX_STAGE_PIVOT,
	BOX_STAGE_STDIO,
	BOX_STAGE_RIGHTS,
	BOX_STAGE_EXEC,
};

struct box_status {
	uint32_t stage;
	int32_t error;
};

/* Everything the child needs, prepared before the clone. */
struct box_child {
	const struct box *box;
	int go_fd;     /* closed by the parent when the maps are written */
	int parent_fd; /* read end of a pipe whose write end only the parent holds */
	int status_fd;
	struct caps_plan caps;
	struct seccomp_program filter;
	char resolver[PATH_MAX]; /* where /etc/resolv.conf really is; "" when it is below /etc */
};

/* box_child_main() - the cloned process: builds the box's root, gives up rights, runs the payload. */
__attribute__((noreturn)) void box_child_main(struct box_child *c);
