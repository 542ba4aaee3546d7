/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/base/lock.h - exclusive flocks, also those this process held before it executed itself
 *
 * A lock belongs to an open file description. A keeper that executes itself keeps the descriptors that
 * hold its locks, and whoever wants one of them again is given that descriptor: in between, no other
 * process could take it.
 */
#pragma once

#include <stddef.h>

enum { LOCK_INHERITED_MAX = 1024 };

/* lock_take() - hold *fd exclusively without waiting. *fd may be exchanged for an inherited descriptor
 * of the same file, which has the lock already. Return: 0, -1 (EWOULDBLOCK). */
int lock_take(int *fd);

/* lock_inherit() - own these descriptors until lock_take() asks for them. Return: 0, -1 too many. */
int lock_inherit(const int *fds, size_t count);

/* lock_inherited_done() - let go of what nobody has asked for. */
void lock_inherited_done(void);
