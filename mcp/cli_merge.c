/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_merge.c - put one entry into a configuration file's text without touching the rest
 *
 * Runs as the user. The text is only cut and joined: what a parser would round, sort or drop stays.
 */
#include <stdio.h>
#include <string.h>

#include "mcp/cli_setup.h"
#include "mcp/json_scan.h"
#include "runtime/base/str.h"

static bool is_object(const char *text)
{
	return text[strspn(text, " \t\r\n")] == '{';
}

static int join(struct buf *ret, const char *text, size_t head, const char *middle, const char *tail, struct err *e)
{
	if (buf_append(ret, text, head) < 0 || buf_append_str(ret, middle) < 0 || buf_append_str(ret, tail) < 0)
		return err_set(e, ERR_LIMIT, "the file would become too large");
	return 0;
}

/* insert_first() - as the first member of the object at, which is a part of text. */
static int insert_first(const char *text, const char *at, const char *member, struct buf *ret, struct err *e)
{
	const char *inside = strchr(at, '{') + 1;
	bool empty = inside[strspn(inside, " \t\r\n")] == '}';
	struct buf middle;
	int r;

	buf_init(&middle, 64 * 1024);
	(void)buf_printf(&middle, "\n  %s%s", member, empty ? "\n" : ",");
	r = middle.overflow ? err_set(e, ERR_NOMEM, "no memory") :
			      join(ret, text, (size_t)(inside - text), middle.data, inside, e);
	buf_done(&middle);
	return r;
}

int setup_merge_json(const char *text, const char *member, const char *name, const char *entry, struct buf *ret,
		     struct err *e)
{
	const char *why = json_scan(text, strlen(text)), *servers, *ours;
	size_t servers_len, ours_len;
	char line[16384];

	if (why || !is_object(text)) {
		(void)err_set(e, ERR_CONFIG, "not strict JSON: %s", why ? why : "not an object");
		return err_remedy(e, "put the entry in by hand: it is printed without --write");
	}
	if (!json_scan_member(text, strlen(text), member, &servers, &servers_len)) {
		(void)snprintf(line, sizeof(line), "\"%s\": { \"%s\": %s }", member, name, entry);
		return insert_first(text, text, line, ret, e);
	}
	if (!is_object(servers))
		return err_set(e, ERR_CONFIG, "\"%s\" is not an object", member);
	if (json_scan_member(servers, servers_len, name, &ours, &ours_len))
		return join(ret, text, (size_t)(ours - text), entry, ours + ours_len, e);
	(void)snprintf(line, sizeof(line), "\"%s\": %s", name, entry);
	return insert_first(text, servers, line, ret, e);
}

int setup_merge_toml(const char *text, const char *name, const char *table, struct buf *ret, struct err *e)
{
	char head[128], quoted[128];
	size_t len = strlen(text);

	(void)snprintf(head, sizeof(head), "[mcp_servers.%s]", name);
	(void)snprintf(quoted, sizeof(quoted), "[mcp_servers.\"%s\"]", name);
	if (!str_utf8_is_valid(text, len) || strstr(text, "\"\"\"") || strstr(text, "'''") ||
	    strstr(text, head) || strstr(text, quoted)) {
		(void)err_set(e, ERR_CONFIG, "it has %s already, or text in which that cannot be told", head);
		return err_remedy(e, "put the table in by hand: it is printed without --write");
	}
	return join(ret, text, len, len && text[len - 1] != '\n' ? "\n\n" : "\n", table, e);
}
