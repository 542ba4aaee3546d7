/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/download.h - GET and HEAD of download links (mcp/link.h): no token, the link is the permission */
#pragma once

#include <stddef.h>

#include "mcp/http.h"
#include "mcp/keeper_client.h"
#include "mcp/link.h"

struct download;

struct downloads {
	struct keeper_client *keeper;
	const struct links *links;
	struct download *list; /* files that the keeper is opening */
	size_t count;
};

void downloads_init(struct downloads *d, struct keeper_client *keeper, const struct links *links);

/* downloads_own() - is this path one of ours, good or not? */
bool downloads_own(struct http_text path);

/* As in struct http_handler, for those paths. Everything that is no good link, and every file that cannot
 * be had, is answered with one and the same 404. */
void downloads_on_head(struct downloads *d, struct http_exchange *x, const struct http_request *r);
void downloads_on_request(struct downloads *d, struct http_exchange *x, const struct http_request *r);

/* downloads_done() - break off what is under way; before the HTTP server ends. */
void downloads_done(struct downloads *d);

/* download_disposition() - the value of Content-Disposition for a file of this name (RFC 6266). */
void download_disposition(struct buf *b, const char *name);
