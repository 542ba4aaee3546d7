/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/proxy/proxy.h - the egress proxy of one owner: "mcp-sandbox @proxy ID"
 *
 * Started by the keeper with a socket as descriptor PROXY_KEEPER_FD. Listening sockets were made inside
 * sandboxes and arrive over it; connections go out from the host's network namespace.
 */
#pragma once

#include <stdint.h>

#include "runtime/base/err.h"

/* proxy_run() - become id (user and group), give up everything but the network, serve until the keeper
 * is gone. PROXY_KEEP_ID keeps the caller's ids (tests). Return: 0, -1 when it could not start. */
#define PROXY_KEEP_ID UINT32_MAX
int proxy_run(uint32_t id, struct err *e);
