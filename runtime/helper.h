/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/helper.h - turn a forked worker into a process that can do one thing only
 *
 * Workers walk trees that sandboxes wrote, or open files there. They must reach what any id of the
 * sandbox owns, and nothing else: not a file of the host's root, and for an ordinary user not one of
 * that user's own files.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/err.h"
#include "runtime/userns.h"

/* helper_enter() - give up everything but the named descriptors and capabilities.
 *
 * Needs: just forked from the keeper, single thread. keep holds descriptors; they are moved to 3, 4...
 * and the array is updated. Standard error stays, input and output become /dev/null.
 * Leaves: kernel uid and gid base + ID_HELPER, in a user namespace that maps the sandbox's ids and no
 * other, the capabilities of caps over those ids, no_new_privs, the helper's system call filter,
 * not dumpable, default signals, lower priority, and killed with its parent.
 * Must not: be called in the keeper itself.
 * Return: 0, -1; after a failure the process has some of its rights still and must _exit(). */
int helper_enter(const struct idrange *ids, int *keep, size_t keep_count, uint64_t caps,
		 struct err *e);

/* helper_enter_owner() - helper_enter() for a worker that reads a folder of the operator's: its file
 * accesses, and only they, are the sandbox root's, as an idmapped mount shows the folder's owner. The
 * capabilities alone do not reach a file whose group is some other one. */
int helper_enter_owner(const struct idrange *ids, int *keep, size_t keep_count, uint64_t caps,
		       struct err *e);

/* helper_enter_trash() - helper_enter() for a worker that removes what sandboxes left: keep[0] is the
 * directory it is to work in. In the storage namespace a sandbox may have run commands as the ordinary
 * user, so the worker gets the capabilities over that user's id as well; in exchange keep[0] becomes its
 * root directory, so that no name leads it to that user's own files. */
int helper_enter_trash(const struct idrange *ids, int *keep, size_t keep_count, uint64_t caps,
		       struct err *e);

/* helper_enter_as_user() - the same for a worker that makes files for the keeper's own user: it keeps
 * that uid, and no capability. Needs, Must not, Return: as above. */
int helper_enter_as_user(int *keep, size_t keep_count, struct err *e);
