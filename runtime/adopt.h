/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/adopt.h - a service's keeper takes over the sandboxes of the one before it
 *
 * The kernel is the database: what runs is the cgroup tree, what it is stands in the record on each
 * directory. A record is no proof (its owner could write another), so each statement is compared with
 * the process it names; what does not fit is killed and its cgroup removed. Files and layers stay in
 * any case.
 */
#pragma once

#include "runtime/base/err.h"
#include "runtime/cgroup.h"
#include "runtime/registry.h"

/* adopt_all() - look at every box in the tree, once, before anything is served. Waits at most a tenth of
 * a second for each that has to be killed. */
void adopt_all(struct registry *reg);

/* adopt_look() - check that the record of a held box describes the process in its init leaf, and that
 * the sandbox is one this keeper would make. Return: pidfd of pid 1, -1 (e says what does not fit). */
int adopt_look(const struct settings *s, const char *owner, const struct idrange *ids, int dir_fd,
	       struct cgroup_record *ret, struct err *e);
