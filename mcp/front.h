/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/front.h - the unprivileged half: speaks MCP, holds nothing but its descriptors
 *
 * Started by the keeper as "mcp-sandbox @front ID stdio|http" with the API socket as descriptor 3, standard
 * input and output being the client's.
 */
#pragma once

#include <stdint.h>

#include "runtime/base/err.h"

struct registry;

enum { FRONT_API_FD = 3 };

/* No id range could be had (the start failed; the front only tells why): keep the caller's id. */
#define FRONT_KEEP_ID UINT32_MAX

/* front_stdio() - become id (user and group, no supplementary groups), confine this process, then
 * serve what is registered on standard input until it ends. Return: exit status, -1. */
int front_stdio(uint32_t id, const struct registry *registry, struct err *e);

/* front_http() - the same for serve: what it listens on comes over the API socket. */
int front_http(uint32_t id, const struct registry *registry, struct err *e);
