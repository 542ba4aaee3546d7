/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/result.h - what a reply says about a command, in words
 *
 * The first line of run_command's reply is always ours, so that nothing a command prints can pass
 * for it:
 *   [sandbox KEY][ [new]] [exit N][ [timeout N s]][ [out of memory: limit 1 GiB]]
 *   [ [process limit 256]][ [cpu throttled 41 s]][ [still running: N processes]]
 *   [ [limits not enforced: memory, pids, cpu]][ further notes]
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/api.h"

struct buf;

/* result_first_line() - without the line break. */
void result_first_line(struct buf *b, const char *key, const struct api_exec_done *d);

/* result_blocked() - where something was blocked meanwhile, one line that says what and what is allowed:
 *   [blocked: db.lan:5432 (LAN)] allowed: apt,*.example.com
 * It follows the first line. Nothing else gives nothing. */
void result_blocked(struct buf *b, const struct api_exec_done *d, const struct api_hello *h);

/* result_net_allowed() - what the network policy lets through; safe in JSON. */
void result_net_allowed(struct buf *b, const struct api_hello *h);

/* result_omitted() - the line in the middle of a cut output, on lines of its own. With kept false
 * nothing of the output stays anywhere. */
void result_omitted(struct buf *b, const struct api_exec_done *d, uint64_t omitted, bool kept);

/* result_is_error() - of run_command: a command that fails is not a tool that fails. */
bool result_is_error(const struct api_exec_done *d);

/* result_controllers() - "memory, pids, cpu" for CGROUP_* bits. */
void result_controllers(struct buf *b, uint32_t bits);

/* result_duration() - "41 s", "3 min", "2 h 5 min". */
void result_duration(struct buf *b, uint64_t ms);
