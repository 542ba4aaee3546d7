/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/net_owner.h - owners whose sandboxes reach less than the server's: SANDBOX_OWNER_NET
 *
 *   alice=none;bob=allowlist:example.com,apt;carol=allowlist
 *
 * An owner is a token's name or an id. Items are those of SANDBOX_NET_ALLOW; without them the server's own
 * list counts. What an owner gets is never more than what the server gives: another mode, a name or a port
 * that the server's policy does not have is an error at the start.
 */
#pragma once

#include "runtime/base/err.h"
#include "runtime/spec.h"

/* net_owners_parse() - into s->owner_net. Needs: the server's own policy in s. Return: 0, -1 (ERR_CONFIG). */
int net_owners_parse(struct settings *s, const char *text, struct err *e);
