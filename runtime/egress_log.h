/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/egress_log.h - egress/<owner>.log in the state directory: one JSON line per connection
 *
 * Written by proxies through a descriptor, several at once when one owner has several keepers; read by
 * "net log". When it is full it becomes egress/<owner>.log.1 and a new one is begun.
 */
#pragma once

#include <stdint.h>

#include "runtime/base/err.h"
#include "runtime/store.h"

enum { EGRESS_LOG_MAX_BYTES = 8 * 1024 * 1024 };

/* egress_log_open() - for appending, after a full one was put aside. Return: descriptor, -1. */
int egress_log_open(const struct store *s, const char *owner, struct err *e);

/* egress_log_read() - the current one (generation 0) or the one before (1), for reading.
 * Return: descriptor, -1 with ERR_NOT_FOUND when there is none. */
int egress_log_read(const struct store *s, const char *owner, unsigned int generation, struct err *e);
