/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/enter_plan.h - what the keeper (enter.c) and the joiner (join/join.c) agree on
 *
 * The joiner is a program of its own, without a C library. It is executed with the descriptors
 * below in their places, the command's environment, and the arguments "join"  "<uid> <gid> <ignored
 * signals> <1 with a leaf>"  <working directory>  <the command's...>
 */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/caps.h"

/* Only 0..3 pass the command's exec. */
enum enter_slot {
	SLOT_STDIN,
	SLOT_STDOUT,
	SLOT_STDERR,
	SLOT_SCRIPT,
	SLOT_STATUS,
	SLOT_PIDFD,   /* process 1 */
	SLOT_PLAN,    /* a sealed memory file: struct enter_plan */
	SLOT_LEAF,    /* the cgroup; may be missing */
	SLOT_PROGRAM, /* the joiner's; gone when it runs */
	SLOTS,
};

enum { JOIN_ARG_NUMBERS = 1, JOIN_ARG_CWD, JOIN_ARG_COMMAND, JOIN_NUMBERS = 4 };

/* The rights of every process of a sandbox. */
struct enter_plan {
	struct caps_plan caps;
	uint32_t filter_len, reserved;
	struct sock_filter filter[BPF_MAXINSNS]; /* filter_len of them are in the file */
};
