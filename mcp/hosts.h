/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/hosts.h - names this server answers to: no web page may reach it by another (DNS rebinding) */
#pragma once

#include <stdbool.h>

#include "mcp/http1.h"

struct hosts { /* borrowed texts, checked by the settings table; "" when unset */
	const char *public_base; /* http[s]://host[:port][/path] */
	const char *allowed;     /* host[:port],... */
};

/* hosts_allow() - may a request name this Host? Loopback's own names always, with any port; what is
 * listed without a port, with any port. */
bool hosts_allow(const struct hosts *h, struct http_text host);

/* hosts_allow_origin() - may a page of this Origin call? "null" and everything that is no http[s] origin
 * of an allowed host may not. */
bool hosts_allow_origin(const struct hosts *h, struct http_text origin);
