/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/scan.h - what in the operator's folders a sandbox cannot read, or had better not reach
 *
 * Counted once, when the keeper starts, by a worker with a sandbox command's rights over the folders; a
 * figure for people, in the first result of each sandbox. It decides nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/err.h"
#include "runtime/base/loop.h"
#include "runtime/project.h"
#include "runtime/reap.h"
#include "runtime/userns.h"

struct scan_found {
	uint32_t unreadable; /* files and directories */
	uint32_t sockets;    /* programs of the host listen there */
	uint32_t partial;    /* a bound was reached */
};

struct scan {
	struct reaper *reaper;
	struct loop_source source; /* the worker's pipe; fd -1 when there is none */
	struct reap_child worker;
	struct scan_found found;
	bool done; /* found holds the figures */
};

/* scan_start() - without folders nothing happens. Return: 0, -1. */
int scan_start(struct scan *s, struct loop *loop, struct reaper *reaper, const struct idrange *ids,
	       struct projects *projects, struct err *e);

/* scan_stop() - the keeper ends. */
void scan_stop(struct scan *s);
