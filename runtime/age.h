/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/age.h - when was a workspace last written to? */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/err.h"
#include "runtime/userns.h"

/* age_newest() - the newest modification time in a workspace, its own directory included, looked for by
 * a confined worker that is waited for (not for the keeper). Needs: the label's lock.
 * Return: 1 with *ret_time (seconds), 0 when it cannot be told for every name, -1. */
int age_newest(const struct idrange *ids, int workspace_fd, int64_t *ret_time, struct err *e);
