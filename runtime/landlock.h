/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/landlock.h - a second barrier for processes of ours that need no file
 *
 * Never for commands: between them it breaks kill, strace and rename.
 */
#pragma once

#include <stdbool.h>

#include "runtime/base/err.h"

/* landlock_confine() - no file can be opened or changed, no port bound, nobody outside signalled or
 * reached by an abstract socket, as far as the kernel knows these. connects: connecting stays possible.
 * Needs: no_new_privs. Return: 0 (also where the kernel has no Landlock: the system call filter is the
 * barrier that is always there), -1. */
int landlock_confine(bool connects, struct err *e);
