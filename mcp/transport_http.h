/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/transport_http.h - MCP over Streamable HTTP, both eras on one endpoint */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcp/auth.h"
#include "mcp/hosts.h"
#include "mcp/http.h"
#include "mcp/server.h"
#include "mcp/session.h"

struct transport_http {
	struct server *server;
	const char *path; /* of the endpoint; the same with a slash behind it is the endpoint too */
	struct auth auth;
	struct hosts hosts;
	struct sessions sessions;
	struct http_post *posts; /* being answered */
};

/* transport_http_init() - nobody may come in, and no path is the endpoint's. */
void transport_http_init(struct transport_http *t, struct server *server);

/* transport_http_configure() - path and the texts of hosts are borrowed. */
void transport_http_configure(struct transport_http *t, const char *path, const struct hosts *hosts,
			      bool no_token, bool behind_proxy);
void transport_http_done(struct transport_http *t);

/* transport_http_set_tokens() - who may come in from now on; also the key of sessions. */
void transport_http_set_tokens(struct transport_http *t, const struct api_tokens *tokens);

/* transport_http_owns() - is this path the endpoint's? */
bool transport_http_owns(const struct transport_http *t, struct http_text path);

/* As in struct http_handler, for requests to the endpoint. */
void transport_http_on_head(struct transport_http *t, struct http_exchange *x, const struct http_request *r);
void transport_http_on_request(struct transport_http *t, struct http_exchange *x,
			       const struct http_request *r);

/* transport_http_write_error() - the body of a refusal on the endpoint: JSON-RPC with id null. */
const char *transport_http_write_error(int status, const char *why, struct buf *body);
