/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/caps.h - capability sets; its .c is the only user of libcap
 *
 * Prepared in the keeper, applied by runtime/enter.c with raw system calls: libcap allocates.
 */
#pragma once

#include <linux/capability.h>
#include <stdint.h>

#include "runtime/base/err.h"

struct caps_plan {
	struct __user_cap_header_struct header;
	struct __user_cap_data_struct data[2]; /* permitted = effective = the set, inheritable 0 */
	uint64_t keep;                         /* bounding set: everything else is dropped */
	int last_cap;                          /* highest capability this kernel knows */
};

/* caps_plan_init() - permitted, effective and bounding set = keep; inheritable and ambient empty. */
int caps_plan_init(struct caps_plan *plan, uint64_t keep, struct err *e);

/* caps_cut_keeper() - root mode: cut the keeper's own bounding and permitted sets to what it needs. */
int caps_cut_keeper(struct err *e);

/* caps_drop_all() - for the front and helpers after their id change. */
int caps_drop_all(struct err *e);
