/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/front_confine.h - give up everything but the descriptors already held */
#pragma once

#include <stdint.h>

#include "runtime/base/err.h"

/* front_become() - user and group id, no supplementary groups, no capability, not dumpable,
 * no_new_privs; FRONT_KEEP_ID keeps the ids. Descriptors above the API socket are closed. */
int front_become(uint32_t id, struct err *e);

/* front_confine() - Landlock where the kernel has it (nothing may be opened, bound, connected or
 * signalled), then the seccomp filter. Must be the last step before hostile bytes are read. */
int front_confine(struct err *e);
