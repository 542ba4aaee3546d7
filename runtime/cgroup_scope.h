/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/cgroup_scope.h - whether the service manager can give this process a delegated cgroup */
#pragma once

#include <stdbool.h>

#include "runtime/base/err.h"

/* cgroup_scope_tried() - this process is the result of cgroup_reexec_scope(): whatever cgroup it is
 * in, there is no better one to ask for. */
bool cgroup_scope_tried(void);

/* cgroup_scope_usable() - Return: true, or false with the reason and what to do about it. */
bool cgroup_scope_usable(bool host_root, struct err *e);
