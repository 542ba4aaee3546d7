/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_selftest.c - "selftest": does a running server do what it promises, seen from where its clients are?
 *
 * Runs as whoever calls it, on any machine, and executes nothing: it is a client of MCP over HTTP. Every promise
 * is a row of the table below. A row that cannot be seen from outside says so, and where it is tested
 * instead; it is never counted as held. Labels are this run's own, and their workspaces are emptied at the
 * end; what is left are empty labels, which "gc" collects.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mcp/cli.h"
#include "mcp/cli_selftest.h"
#include "mcp/json_write.h"
#include "mcp/tls_cert.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"

enum { TOKEN_MAX = 4096, REPORT_MAX = 1024 * 1024 };

const struct cli_option cli_selftest_options[] = {
	{ "url", "URL", "the server's endpoint, as clients know it" },
	{ "token-file", "FILE", "its token (default: MCP_TOKEN)" },
	{ "ca", "FILE", "PEM file of who may have signed its certificate (default: the system's list)" },
	{ "row", "ID", "only this row; can be repeated", .repeats = true },
	{ "json", NULL, "machine-readable" },
	{ NULL },
};

enum needs { ANY_PROFILE, LABELS }; /* LABELS: run_command, so not the profile safe-shell */

static const struct row {
	const char *id, *title;
	enum needs needs;
	enum selftest_verdict (*check)(struct selftest *s); /* NULL: cannot be seen from outside */
	const char *elsewhere; /* where such a row is tested */
} rows[] = {
	{ "health", "/healthz answers", ANY_PROFILE, selftest_health },
	{ "initialize", "initialize: name, version, session, label rule", ANY_PROFILE, selftest_initialize },
	{ "discover", "server/discover: version, label rule", ANY_PROFILE, selftest_discover },
	{ "tools", "the tools are listed, in both eras", ANY_PROFILE, selftest_tools },
	{ "names", "unknown tools and methods have their codes", ANY_PROFILE, selftest_names },
	{ "token", "no token, a wrong one, and another scheme: 401", ANY_PROFILE, selftest_token },
	{ "get-405", "GET on the endpoint: 405", ANY_PROFILE, selftest_get_405 },
	{ "no-oauth", ".well-known and /register: 404", ANY_PROFILE, selftest_no_oauth },
	{ "new", "a new label is [new], its second call is not", LABELS, selftest_new },
	{ "both-eras", "both eras reach the same sandbox", LABELS, selftest_both_eras },
	{ "same-label", "Amber Otter = amber-otter; labels without ASCII are told apart", LABELS, selftest_same_label },
	{ "apart", "two labels do not see each other", LABELS, selftest_apart },
	{ "order", "output and error in the order written", LABELS, selftest_order },
	{ "exits", "exit codes 0, 1, 42, 127 and signals", LABELS, selftest_exits },
	{ "arguments", "arguments: tolerant, bounded, refused by name", LABELS, selftest_arguments },
	{ "environment", "environment, host name, directory, umask", LABELS, selftest_environment },
	{ "timeout", "a timeout kills the whole tree: 124", LABELS, selftest_timeout },
	{ "background", "a background child delays no answer", LABELS, selftest_background },
	{ "output", "long output is cut, the whole is in /output", LABELS, selftest_output },
	{ "utf8", "invalid UTF-8, colours and progress bars become clean text", LABELS, selftest_utf8 },
	{ "reaps", "process 1 reaps: no zombies", LABELS, selftest_reaps },
	{ "host", "nothing of the host can be read, no secret of the server", LABELS, selftest_host_hidden },
	{ "image", "a picture is shown as one, by its bytes", LABELS, selftest_image },
	{ "link", "another file becomes a link: byte-exact, without a token", LABELS, selftest_link },
	{ "link-parts", "HEAD and ranges of a link", LABELS, selftest_link_parts },
	{ "link-404", "altered and unknown links: one and the same 404", LABELS, selftest_link_404 },
	{ "link-swapped", "a link whose file became something else: 404", LABELS, selftest_link_swapped },
	{ "link-expired", "an expired link: 404", LABELS, selftest_link_expired },
	{ "refused", "links, traversal, FIFO, directory, device are not presented", LABELS, selftest_present_refused },
	{ "redacted", "sandbox_info shows headers, and no secret ones", LABELS, selftest_redacted },
	{ "memory", "the memory limit holds, and is said", LABELS, selftest_memory },
	{ "pids", "the process limit holds, and is said", LABELS, selftest_pids },
	{ "cpu", "the processor limit holds", LABELS, selftest_cpu },
	{ "lan", "LAN, metadata and the server's own addresses are refused at once", LABELS, selftest_lan },
	{ "apt", "apt install works", LABELS, selftest_apt },
	{ "lru", "a newcomer gets the idle one's place, never the busy one's", LABELS, selftest_lru },
	{ "recycle", "files survive a recycle, processes do not", LABELS, selftest_recycle },
	{ "all-busy", "all busy: it is said, and nothing is ended", LABELS, selftest_all_busy },
	{ "safe-shell", "run_sandboxed_command: output, exit, timeout, nothing persists", ANY_PROFILE, selftest_safe_shell },
	{ "idle", "a sandbox without a command for SANDBOX_IDLE is recycled", LABELS, NULL, "tests/sys/test_keeper_life.c" },
	{ "min-free", "below SANDBOX_MIN_FREE no sandbox starts", LABELS, NULL, "tests/sys/test_keeper_life.c" },
	{ "cgroup", "the limits stand in memory.max, cpu.max, pids.max", LABELS, NULL, "tests/vm/checks/limits.py" },
	{ "gc", "gc: a dry run deletes nothing, --apply exactly what is over age", LABELS, NULL, "tests/e2e/collect.py" },
};

struct report {
	struct buf out;
	bool json;
	unsigned int shown, counts[SELFTEST_UNSEEN + 1];
};

/* ---- running ---- */

static enum selftest_verdict check(struct selftest *s, const struct row *row)
{
	if (!row->check)
		return selftest_unseen(s, "not seen from outside; tested by %s", row->elsewhere);
	if (row->needs == LABELS && s->safe_shell)
		return selftest_unseen(s, "this server's profile is safe-shell");
	s->era = SELFTEST_MODERN;
	return row->check(s);
}

static bool is_wanted(const struct cli_call *call, const struct row *row)
{
	for (size_t i = 0; i < call->repeated_count; i++) {
		if (strcmp(call->repeated[i], row->id) == 0)
			return true;
	}
	return call->repeated_count == 0;
}

static int check_wanted(const struct cli_call *call, struct err *e)
{
	for (size_t i = 0; i < call->repeated_count; i++) {
		size_t n = 0;

		while (n < ARRAY_SIZE(rows) && strcmp(call->repeated[i], rows[n].id) != 0)
			n++;
		if (n == ARRAY_SIZE(rows))
			return err_set(e, ERR_USAGE, "selftest: --row: there is no row of this name");
	}
	return 0;
}

/* ---- reporting ---- */

static const char *const verdict_texts[] = { [SELFTEST_OK] = "ok", [SELFTEST_FAILED] = "failed",
					     [SELFTEST_UNSEEN] = "not seen" };

static void report_row(struct report *r, const struct row *row, enum selftest_verdict v, const char *why)
{
	static const char *const words[] = { [SELFTEST_OK] = "ok", [SELFTEST_FAILED] = "not ok",
					     [SELFTEST_UNSEEN] = "not seen" };

	r->counts[v]++;
	r->shown++;
	if (!r->json) {
		buf_printf(&r->out, "%s %u - %s: %s\n", words[v], r->shown, row->id, row->title);
		if (v != SELFTEST_OK)
			buf_printf(&r->out, "#   %s\n", why);
		return;
	}
	buf_printf(&r->out, "%s\n  {\"id\":\"%s\",\"title\":", r->shown > 1 ? "," : "", row->id);
	json_write_string(&r->out, row->title);
	buf_printf(&r->out, ",\"verdict\":\"%s\",\"why\":", verdict_texts[v]);
	json_write_string(&r->out, v == SELFTEST_OK ? "" : why);
	buf_append_str(&r->out, "}");
}

static void report_end(struct report *r)
{
	if (r->json)
		buf_printf(&r->out, "\n],\"held\":%u,\"failed\":%u,\"not_seen\":%u}\n", r->counts[SELFTEST_OK],
			   r->counts[SELFTEST_FAILED], r->counts[SELFTEST_UNSEEN]);
	else
		buf_printf(&r->out, "1..%u\n# %u rows hold, %u do not, %u cannot be seen here\n", r->shown,
			   r->counts[SELFTEST_OK], r->counts[SELFTEST_FAILED], r->counts[SELFTEST_UNSEEN]);
}

/* At once: a run takes a minute, and whoever waits sees how far it is. */
static int flush(struct report *r, struct err *e)
{
	bool good = !r->out.overflow && fwrite(r->out.data, 1, r->out.len, stdout) == r->out.len && fflush(stdout) == 0;

	buf_consume(&r->out, r->out.len);
	return good ? 0 : err_sys(e, "selftest: standard output");
}

static int run_rows(const struct cli_call *call, struct selftest *s, struct report *r, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		enum selftest_verdict v;

		if (!is_wanted(call, &rows[i]))
			continue;
		buf_consume(&s->why, s->why.len);
		v = check(s, &rows[i]);
		report_row(r, &rows[i], v, s->why.data);
		if (flush(r, e) < 0)
			return -1;
	}
	s->era = SELFTEST_MODERN;
	selftest_clean(s);
	report_end(r);
	return flush(r, e);
}

/* ---- starting ---- */

/* The first line; the file as "token add NAME > FILE" makes it. */
static int read_token(const char *path, char ret[TOKEN_MAX], struct err *e)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return err_sys(e, "--token-file %s", path);
	len = fd_read_full(fd, ret, TOKEN_MAX - 1);
	if (len < 0)
		return err_sys(e, "--token-file %s", path);
	ret[len] = '\0';
	ret[strcspn(ret, "\r\n")] = '\0';
	for (const char *p = ret; *p; p++) {
		if (*p <= ' ' || *p > '~')
			return err_set(e, ERR_USAGE, "--token-file %s: not a token", path);
	}
	return *ret ? 0 : err_set(e, ERR_USAGE, "--token-file %s: empty", path);
}

static int connect_to(struct selftest *s, struct cli_call *call, char token[TOKEN_MAX], struct err *e)
{
	const char *url = cli_option(call, "url"), *path = cli_option(call, "token-file");
	uint32_t random;

	if (!url) {
		err_set(e, ERR_USAGE, "selftest: --url is missing");
		return err_remedy(e, "mcp-sandbox selftest --url https://HOST:PORT/mcp, with the token in MCP_TOKEN");
	}
	if (http_url_parse(url, &s->url, e) < 0 || (path && read_token(path, token, e) < 0))
		return -1;
	if (strcmp(s->url.path, "/") == 0)
		(void)str_copy(s->url.path, sizeof(s->url.path), config_text(&call->config, CONFIG_PATH));
	s->token = path ? token : config_text(&call->config, CONFIG_TOKEN);
	(void)tls_random(NULL, (unsigned char *)&random, sizeof(random));
	(void)snprintf(s->run, sizeof(s->run), "%08x", random);
	s->client = http_client_new(&s->url, cli_option(call, "ca"), e);
	if (!s->client)
		return -1;
	return selftest_learn(s) < 0 ? err_set(e, ERR_PROTOCOL, "selftest: no server that can be tested: %.400s", s->why.data) : 0;
}

int cli_selftest(struct cli_call *call, struct err *e)
{
	struct selftest s = { .token = "" };
	struct report r = { .json = cli_option(call, "json") != NULL };
	char token[TOKEN_MAX] = "";
	int status = -1;

	buf_init(&s.why, SELFTEST_WHY_MAX);
	buf_init(&r.out, REPORT_MAX);
	if (check_wanted(call, e) == 0 && connect_to(&s, call, token, e) == 0) {
		if (r.json)
			buf_append_str(&r.out, "{\"rows\":[");
		status = run_rows(call, &s, &r, e);
	}
	if (status == 0)
		status = r.counts[SELFTEST_FAILED] ? CLI_FAILURE : CLI_OK;
	explicit_bzero(token, sizeof(token));
	http_client_free(s.client);
	buf_done(&s.why);
	buf_done(&r.out);
	return status;
}
