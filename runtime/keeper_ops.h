/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/keeper_ops.h - the table of operations */
#pragma once

#include "runtime/peer.h"
#include "runtime/registry.h"

/* operation_serve() - check and serve one message. failure: code ERR_NONE, or why there can be no
 * sandbox, which is then the answer. Return: 0, -1 to drop the peer (the error names the rule). */
int operation_serve(struct registry *reg, const struct err *failure, struct peer *p,
		    const struct api_header *h, struct err *e);
