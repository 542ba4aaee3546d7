/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_net.c - "net log" and "net policy": what sandboxes reached, and what they may reach
 *
 * Runs as the user (root of the storage namespace). The log's lines are the egress proxy's; names in them
 * have passed its grammar, but the file is shown with control bytes made visible all the same.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mcp/cli.h"
#include "mcp/cli_start.h"
#include "mcp/json_write.h"
#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/str.h"
#include "runtime/egress_log.h"
#include "runtime/net_policy.h"
#include "runtime/owners.h"
#include "runtime/store.h"

enum { FOLLOW_POLL_MS = 250, POLICY_TEXT_MAX = 256 * 1024 };

/* ---- net log ---- */

/* A line that is being written may be there in part: what is behind the last line break waits. */
static int copy_lines(int fd, off_t *at)
{
	static char text[64 * 1024];
	ssize_t n;

	while ((n = pread(fd, text, sizeof(text), *at)) > 0) {
		char *end = memrchr(text, '\n', (size_t)n);
		size_t len = end ? (size_t)(end + 1 - text) : 0;

		if (len == 0)
			return 0;
		*at += (off_t)len;
		for (size_t i = 0; i < len; i++) {
			if ((unsigned char)text[i] < ' ' && text[i] != '\n')
				text[i] = '?';
		}
		if (fwrite(text, 1, len, stdout) != len)
			return -1;
	}
	return n < 0 ? -1 : 0;
}

static int show_file(const struct store *s, const char *owner, unsigned int generation, struct err *e)
{
	_cleanup_fd_ int fd = egress_log_read(s, owner, generation, e);
	off_t at = 0;

	if (fd < 0)
		return e->code == ERR_NOT_FOUND ? 0 : -1;
	return copy_lines(fd, &at) < 0 ? err_sys(e, "net log") : 0;
}

static bool is_same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

/* Until interrupted, or until nobody reads. A file that was put aside is read to its end first. */
static int follow(const struct store *s, const char *owner, struct err *e)
{
	struct pollfd out = { .fd = STDOUT_FILENO };
	_cleanup_fd_ int fd = -1;
	off_t at = 0;

	for (;;) {
		struct err ignored = { 0 };
		_cleanup_fd_ int newest = egress_log_read(s, owner, 0, &ignored);

		if (fd >= 0 && copy_lines(fd, &at) < 0)
			return err_sys(e, "net log");
		if (newest >= 0 && (fd < 0 || !is_same_file(fd, newest))) {
			close_fd(&fd);
			fd = take_fd(&newest);
			at = 0;
			continue;
		}
		if (fflush(stdout) != 0)
			return 0;
		if (poll(&out, 1, FOLLOW_POLL_MS) > 0 && (out.revents & (POLLERR | POLLHUP)))
			return 0;
	}
}

static int open_store(struct cli_call *call, struct store *s, struct settings *ret, struct err *e)
{
	const char *owner = cli_option(call, "owner");

	if (cli_enter_state(call, ret, e) < 0)
		return -1;
	if (owner && owner_parse(owner, ret->owner, e) < 0)
		return -1;
	return store_open(s, ret->home, e);
}

int cli_net_log(struct cli_call *call, struct err *e)
{
	struct settings settings;
	struct store s;
	int r;

	if (open_store(call, &s, &settings, e) < 0)
		return -1;
	r = show_file(&s, settings.owner, 1, e);
	if (r == 0 && cli_option(call, "follow"))
		r = follow(&s, settings.owner, e);
	else if (r == 0)
		r = show_file(&s, settings.owner, 0, e);
	store_done(&s);
	return r < 0 ? -1 : CLI_OK;
}

/* ---- net policy ---- */

static const char *const mode_names[] = { "none", "allowlist", "internet" };

/* The owners of whom the table does not speak. */
static void write_owners(struct buf *out, const struct settings *s)
{
	for (uint32_t i = 0; i < s->owner_net_count; i++) {
		const struct owner_net *row = &s->owner_net[i];

		if (strcmp(row->owner, s->owner) == 0)
			continue;
		buf_printf(out, "owner %s: %s%s%s\n", row->owner, mode_names[row->net], row->has_allow ? ": " : "",
			   row->has_allow && row->allow[0] ? row->allow : row->has_allow ? "nothing" : "");
	}
}

static void write_text(struct buf *out, const struct settings *s, const struct net_policy *p)
{
	char rule[NET_NAME_MAX + 16];

	buf_printf(out, "mode: %s\n", mode_names[s->net]);
	if (s->net == NET_ALLOWLIST) {
		buf_printf(out, "allowed: %s\n", p->count ? "" : "nothing");
		for (size_t i = 0; i < p->count; i++)
			buf_printf(out, "  %s%s\n",
				   net_policy_format_rule(&p->rules[i], rule, sizeof(rule)),
				   p->rules[i].port == NET_PORT_WEB ? " (ports 80 and 443)" : "");
		if (net_policy_uses(s->net_allow, "apt") && !s->net_apt_hosts[0])
			buf_append_str(out, "  apt: the image has no apt sources that could be read\n");
	}
	if (s->net != NET_NONE)
		buf_append_str(out, "never: local networks, link-local and metadata addresses, multicast, this "
				    "host and its neighbours\n");
	if (s->net_upstream[0])
		buf_printf(out, "upstream proxy: %s\n", s->net_upstream);
	if (s->net != NET_NONE)
		buf_printf(out, "name servers: %s\n", s->net_dns[0] ? s->net_dns : "this host's");
	write_owners(out, s);
}

static void write_json(struct buf *out, const struct settings *s, const struct net_policy *p)
{
	char rule[NET_NAME_MAX + 16];

	buf_printf(out, "{\"mode\":\"%s\",\"allowed\":[", mode_names[s->net]);
	for (size_t i = 0; s->net == NET_ALLOWLIST && i < p->count; i++) {
		buf_append_str(out, i ? "," : "");
		json_write_string(out, net_policy_format_rule(&p->rules[i], rule, sizeof(rule)));
	}
	buf_append_str(out, "],\"upstream_proxy\":");
	json_write_string(out, s->net_upstream);
	buf_append_str(out, ",\"name_servers\":");
	json_write_string(out, s->net_dns);
	buf_append_str(out, "}\n");
}

/* From here on the settings speak of one owner. */
static int narrow(struct settings *s, struct err *e)
{
	struct net_grant grant = net_grant_of(s, s->owner);

	s->net = grant.mode;
	if (grant.allow != s->net_allow && str_copy(s->net_allow, sizeof(s->net_allow), grant.allow) < 0)
		return err_set(e, ERR_CONFIG, "the list is too long");
	return 0;
}

int cli_net_policy(struct cli_call *call, struct err *e)
{
	static struct net_policy policy;
	static struct start s;
	struct buf out;
	int status = CLI_OK;

	if (start_settings(call, &s, e) < 0 || start_ids(call, &s, e) < 0 || start_policy(&s, e) < 0 ||
	    narrow(&s.settings, e) < 0)
		return -1;
	if (net_policy_parse(&policy, s.settings.net, s.settings.net_allow, s.settings.net_lists,
			     s.settings.net_apt_hosts, e) < 0)
		return -1;
	buf_init(&out, POLICY_TEXT_MAX);
	if (cli_option(call, "json"))
		write_json(&out, &s.settings, &policy);
	else
		write_text(&out, &s.settings, &policy);
	if (out.overflow || fwrite(out.data, 1, out.len, stdout) != out.len)
		status = err_sys(e, "net policy: standard output");
	buf_done(&out);
	start_done(&s);
	return status;
}
