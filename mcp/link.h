/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/link.h - download links: signed, for a time, good for one file of one workspace
 *
 *   <public base>/dl/<expiry>/<signature>/<key>/<path>           of the default owner
 *   <public base>/dl/<expiry>/<signature>/<owner>.<key>/<path>   of any other
 *
 * The signature covers owner, key, the path's bytes and the expiry (mcp/hmac.h). There is one spelling of
 * each link: what another reader of URLs might understand differently is no link.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mcp/http1.h"
#include "runtime/api.h"

struct buf;

#define LINK_PREFIX "/dl/"

/* Settings; borrowed texts. */
struct links {
	const char *base, *sign_key; /* "": not set, and there can be no link */
	uint64_t ttl_ms;
};

struct link_target {
	char owner[OWNER_ID_LEN + 1];
	char key[KEY_MAX];
	char path[API_PATH_MAX]; /* relative to /workspace */
};

/* link_missing() - the setting without which there are no links, NULL when all are there. */
const char *link_missing(const struct links *l);

/* link_write() - append the link. Needs: link_missing() is NULL, link_path_is_plain(t->path).
 * Return: 0, -1 (no memory). */
int link_write(struct buf *b, const struct links *l, const struct link_target *t, uint64_t now_s);

/* link_read() - the target of a request's path as it was sent, which starts with LINK_PREFIX. false for
 * everything that is not exactly a link that link_write() made and that is still good. */
bool link_read(const struct links *l, struct http_text path, uint64_t now_s, struct link_target *ret);

/* link_path_is_plain() - no component is empty, "." or "..". */
bool link_path_is_plain(const char *path);

/* link_write_escaped() - bytes as they stand in a URL's path: '/' and what is unreserved as it is. */
void link_write_escaped(struct buf *b, const char *text);
