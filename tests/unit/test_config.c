/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_config.c - the settings table, its parsers, ranks and renderings */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mcp/config.h"
#include "mcp/config_table.h"
#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "tests/unit/tap.h"

static void test_table(void)
{
	for (int id = 0; id < CONFIG_COUNT; id++) {
		const struct config_row *row = &config_table[id];

		if (!tap_ok(row->env && row->option && row->help, "row %d is complete", id))
			continue;
		tap_int(config_find_env(row->env), id, "%s is found by its own name", row->env);
		tap_int(config_find_option(row->option), id, "--%s is found by its own name", row->option);
		tap_ok(row->initial || row->by_profile || row->found, "%s has a default", row->env);
		tap_ok(!row->by_profile || !row->initial, "%s has one default", row->env);
		tap_ok((row->type == CONFIG_TYPE_CHOICE) == (row->choices != NULL),
		       "%s has choices exactly when it is one", row->env);
		tap_ok((row->type == CONFIG_TYPE_TEXT) == (row->check && row->shape),
		       "%s is checked when it is text", row->env);
		if (row->choices) {
			size_t n = 0;

			while (row->choices[n])
				n++;
			tap_int(row->max + 1, n, "%s accepts each of its choices", row->env);
		}
	}
	for (int i = 0; i < PROFILE_COUNT; i++)
		tap_str(config_table[CONFIG_PROFILE].choices[i], profile_table[i].name,
			"profile %d has the name of its row", i);
}

/* Names that users and scripts rely on. */
static void test_names(void)
{
	static const char *const names[] = {
		"SANDBOX_PROFILE", "SANDBOX_MEMORY", "SANDBOX_CPUS", "SANDBOX_PIDS", "SANDBOX_DISK",
		"SANDBOX_LIMITS", "SANDBOX_IDLE", "SANDBOX_MAX", "SANDBOX_MAX_TIMEOUT", "SANDBOX_MIN_FREE",
		"SANDBOX_LINK_TTL", "SANDBOX_IMAGE_MAX", "SANDBOX_HOST", "SANDBOX_PORT", "MCP_PATH",
		"SANDBOX_TLS_CERT", "SANDBOX_TLS_KEY", "SANDBOX_BEHIND_PROXY", "MCP_PUBLIC_BASE",
		"MCP_SIGN_KEY", "MCP_TOKEN", "SANDBOX_NO_TOKEN", "MCP_ALLOWED_HOSTS", "SANDBOX_NET", "SANDBOX_NET_ALLOW",
		"SANDBOX_NET_LISTS", "SANDBOX_OWNER_NET",
		"SANDBOX_DNS", "SANDBOX_UPSTREAM_PROXY", "SANDBOX_EXTRA_CA", "SANDBOX_IMAGE", "SANDBOX_HOME",
		"SANDBOX_CGROUP", "SANDBOX_SUBID", "SANDBOX_OUTPUT_MAX", "SANDBOX_PRESENT_DIR",
		"MAX_AGE_DAYS", "DRY_RUN", "SANDBOX_LOG",
	};

	tap_int(ARRAY_SIZE(names), CONFIG_COUNT, "every setting is in this list");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		tap_ok(config_find_env(names[i]) >= 0, "%s is a setting", names[i]);
}

static void test_values(void)
{
	static const struct {
		enum config_id id;
		const char *text;
		const char *want; /* canonical; NULL: refused */
	} rows[] = {
		{ CONFIG_MEMORY, "1G", "1G" },
		{ CONFIG_MEMORY, "1073741824", "1G" },
		{ CONFIG_MEMORY, "1.5G", "1536M" },
		{ CONFIG_MEMORY, "1k", NULL },
		{ CONFIG_MEMORY, "-1", NULL },
		{ CONFIG_MEMORY, "1T", NULL },
		{ CONFIG_MEMORY, "99999999999999999999", NULL },
		{ CONFIG_MEMORY, "1 G", NULL },
		{ CONFIG_MEMORY, "16383M", "16383M" },
		{ CONFIG_MEMORY, "16777217", "16777217" },
		{ CONFIG_CPUS, "2", "2" },
		{ CONFIG_CPUS, "0.5", "0.5" },
		{ CONFIG_CPUS, "0.25", "0.25" },
		{ CONFIG_CPUS, "1.125", "1.125" },
		{ CONFIG_CPUS, "1.05", "1.05" },
		{ CONFIG_CPUS, "0", NULL },
		{ CONFIG_CPUS, "0.001", NULL },
		{ CONFIG_CPUS, "nan", NULL },
		{ CONFIG_IDLE, "300", "300" },
		{ CONFIG_IDLE, "5m", "300" },
		{ CONFIG_IDLE, "1.5s", "1.5s" },
		{ CONFIG_IDLE, "0", NULL },
		{ CONFIG_IDLE, "31d", NULL },
		{ CONFIG_MIN_FREE, "0", "0" },
		{ CONFIG_PIDS, "256", "256" },
		{ CONFIG_PIDS, "0x100", NULL },
		{ CONFIG_PIDS, "7", NULL },
		{ CONFIG_MAX, "0", NULL },
		{ CONFIG_LIMITS, "best-effort", "best-effort" },
		{ CONFIG_LIMITS, "Best-Effort", NULL },
		{ CONFIG_PROFILE, "safe-shell", "safe-shell" },
		{ CONFIG_PROFILE, "root", NULL },
		{ CONFIG_NET, "internet", "internet" },
		{ CONFIG_NET, "host", NULL },
		{ CONFIG_BEHIND_PROXY, "yes", "1" },
		{ CONFIG_BEHIND_PROXY, "2", NULL },
		{ CONFIG_DRY_RUN, "0", "0" },
		{ CONFIG_PORT, "65535", "65535" },
		{ CONFIG_PORT, "65536", NULL },
		{ CONFIG_HOST, "::1", "::1" },
		{ CONFIG_HOST, "0.0.0.0", "0.0.0.0" },
		{ CONFIG_HOST, "localhost", "localhost" },
		{ CONFIG_HOST, "localhost.example", NULL },
		{ CONFIG_HOST, "127.0.0.1 ", NULL },
		{ CONFIG_PATH, "/mcp/", "/mcp" },
		{ CONFIG_PATH, "/", "/" },
		{ CONFIG_PATH, "mcp", NULL },
		{ CONFIG_PATH, "/a b", NULL },
		{ CONFIG_PUBLIC_BASE, "https://box.example:8443/", "https://box.example:8443" },
		{ CONFIG_PUBLIC_BASE, "ftp://box.example", NULL },
		{ CONFIG_PUBLIC_BASE, "https://", NULL },
		{ CONFIG_PUBLIC_BASE, "https://user@box", NULL },
		{ CONFIG_PUBLIC_BASE, "https://box:99999", NULL },
		{ CONFIG_SIGN_KEY, "0123456789abcde", NULL },
		{ CONFIG_SIGN_KEY, "0123456789abcdef/", "0123456789abcdef/" },
		{ CONFIG_TOKEN, "a b", NULL },
		{ CONFIG_ALLOWED_HOSTS, "a.example,b:80,[::1]:8443", "a.example,b:80,[::1]:8443" },
		{ CONFIG_ALLOWED_HOSTS, "a.example,,b", NULL },
		{ CONFIG_ALLOWED_HOSTS, "a.example,", NULL },
		{ CONFIG_NET_ALLOW, "*.example.org,pypi.org", "*.example.org,pypi.org" },
		{ CONFIG_NET_ALLOW, "*", NULL },
		{ CONFIG_DNS, "9.9.9.9,2620:fe::fe", "9.9.9.9,2620:fe::fe" },
		{ CONFIG_DNS, "dns.example", NULL },
		{ CONFIG_HOME, "/srv/box/", "/srv/box" },
		{ CONFIG_HOME, "state", NULL },
		{ CONFIG_HOME, "/srv/../etc", NULL },
		{ CONFIG_HOME, "/srv/..", NULL },
		{ CONFIG_IMAGE, "my-image_1.2", "my-image_1.2" },
		{ CONFIG_IMAGE, "../x", NULL },
		{ CONFIG_SUBID, "100000:65536", "100000:65536" },
		{ CONFIG_SUBID, "0:65536", NULL },
		{ CONFIG_SUBID, "100000:1000", NULL },
		{ CONFIG_SUBID, "4294967295:65536", NULL },
		{ CONFIG_SUBID, "100000", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *name = config_table[rows[i].id].env;
		struct err e = { 0 };
		struct config c;
		int r;

		config_init(&c);
		r = config_set(&c, rows[i].id, rows[i].text, CONFIG_FROM_ENVIRONMENT, &e);
		if (rows[i].want) {
			tap_str(config_text(&c, rows[i].id), rows[i].want, "%s=%s", name, rows[i].text);
		} else {
			tap_ok(r < 0 && e.code == ERR_CONFIG && strstr(e.message, name) && e.remedy[0],
			       "%s=%s is refused with its name and a remedy", name, rows[i].text);
		}
		config_done(&c);
	}
}

static void test_ranks(void)
{
	struct err e = { 0 };
	struct config c;

	config_init(&c);
	config_set(&c, CONFIG_MAX, "3", CONFIG_FROM_COMMAND_LINE, &e);
	config_set(&c, CONFIG_MAX, "4", CONFIG_FROM_FILE, &e);
	tap_int(config_number(&c, CONFIG_MAX), 3, "the command line wins over the file");
	config_set(&c, CONFIG_PIDS, "99", CONFIG_FROM_FILE, &e);
	config_set(&c, CONFIG_PIDS, "", CONFIG_FROM_ENVIRONMENT, &e);
	tap_int(config_finish(&c, "code", &e), 0, "settings are complete: %s", e.message);
	tap_int(config_number(&c, CONFIG_PIDS), 256, "an empty value brings the default back");
	tap_int(config_number(&c, CONFIG_MEMORY), 1 << 30, "memory comes from the profile");
	tap_int(config_set(&c, CONFIG_MAX, "x", CONFIG_FROM_FILE, &e), -1,
		"a bad value is an error even where a better source has spoken");
	config_done(&c);
}

static void test_profiles(void)
{
	struct settings s;
	struct err e = { 0 };
	struct config c;

	config_init(&c);
	config_set(&c, CONFIG_PROFILE, "safe-shell", CONFIG_FROM_FILE, &e);
	config_set(&c, CONFIG_MAX_TIMEOUT, "10", CONFIG_FROM_FILE, &e);
	config_set(&c, CONFIG_LIMITS, "best-effort", CONFIG_FROM_FILE, &e);
	tap_int(config_finish(&c, "code", &e), 0, "safe-shell is complete");
	tap_int(config_settings(&c, &s, &e), 0, "and becomes the runtime's settings");
	tap_int(s.limits.cpu_milli, 500, "half a processor");
	tap_int(s.limits.pids, 64, "64 processes");
	tap_int(s.net, NET_NONE, "no network");
	tap_ok(s.limits_best_effort, "best effort");
	tap_int(s.timeout_default_ms, 10000, "the default timeout is below the ceiling");
	config_set(&c, CONFIG_NET, "internet", CONFIG_FROM_ENVIRONMENT, &e);
	tap_int(config_finish(&c, "code", &e), -1, "safe-shell cannot be given a network");
	config_done(&c);

	config_init(&c);
	config_set(&c, CONFIG_TLS_CERT, "/etc/cert.pem", CONFIG_FROM_FILE, &e);
	tap_int(config_finish(&c, "code", &e), -1, "a certificate without its key is refused");
	config_done(&c);
}

static void test_environment(void)
{
	static const struct {
		const char *entry;
		const char *nearest; /* NULL: accepted */
	} rows[] = {
		{ "SANDBOX_MAX=3", NULL },
		{ "SANDBOX_MEMROY=1G", "SANDBOX_MEMORY" },
		{ "SANDBOX_MAXTIMEOUT=3", "SANDBOX_MAX_TIMEOUT" },
		{ "MCP_TOKN=x", "MCP_TOKEN" },
		{ "MCP_SANDBOX_MEMORY=1G", "SANDBOX_MEMORY" },
		{ "SANDBOX_=x", "SANDBOX_" },
		{ "MCP_TIMEOUT=60000", NULL }, /* Claude Code's */
		{ "SANDBOX=my-key-000000", NULL },
		{ "PATH=/bin", NULL },
		{ "no equals sign", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *env[] = { strdup(rows[i].entry), NULL };
		struct err e = { 0 };
		struct config c;
		int r;

		config_init(&c);
		r = config_load_environment(&c, env, &e);
		if (rows[i].nearest)
			tap_ok(r < 0 && e.code == ERR_CONFIG && strstr(e.remedy, rows[i].nearest),
			       "%s is refused, naming %s: %s", rows[i].entry, rows[i].nearest, e.remedy);
		else
			tap_int(r, 0, "%s is accepted", rows[i].entry);
		config_done(&c);
		free(env[0]);
	}
}

static void test_file_syntax(void)
{
	static const struct {
		const char *text;
		const char *want; /* MCP_ALLOWED_HOSTS/SANDBOX_HOME as read; NULL: refused */
	} rows[] = {
		{ "", "" },
		{ "# comment\n; another\n\n", "" },
		{ "SANDBOX_HOME=/a", "/a" },
		{ "SANDBOX_HOME=/a\n", "/a" },
		{ "  SANDBOX_HOME = /a  \n", "/a" },
		{ "SANDBOX_HOME=\"/a b\"\n", "/a b" },
		{ "SANDBOX_HOME='/a\\b'\n", "/a\\b" },
		{ "SANDBOX_HOME=\"/a\\\"\\$\\`\\\\x\\y\"\n", "/a\"$`\\x\\y" },
		{ "SANDBOX_HOME=\"/a\"'/b'/c\n", "/a/b/c" },
		{ "SANDBOX_HOME=/a\\\n/b\n", "/a/b" },
		{ "SANDBOX_HOME=/a\\ \n", "/a " },
		{ "SANDBOX_HOME=/a\"b\"\n", "/a\"b\"" },
		{ "SANDBOX_HOME=/a # no comment\n", "/a # no comment" },
		{ "SANDBOX_HOME=/a\nSANDBOX_HOME=/b\n", "/b" },
		{ "SANDBOX_HOME=/a\nSANDBOX_HOME=\n", "" },
		{ "SANDBOX_HOME=\"/a\n/b\"\n", NULL },
		{ "SANDBOX_HOME=\"/a\\\n/b\"\n", "/a/b" },
		{ "OTHER=x\nSANDBOX_HOME=/a\n", "/a" },
		{ "SANDBOX_HOME=/a\r\n", "/a" },
		{ "# comment \\\nSANDBOX_HOME=/a\n", NULL },
		{ "SANDBOX_HOME\n", NULL },
		{ "export SANDBOX_HOME=/a\n", NULL },
		{ "=x\n", NULL },
		{ "1X=x\n", NULL },
		{ "SANDBOX_HOME=\"/a\n", NULL },
		{ "SANDBOX_HOME='/a\n", NULL },
		{ "SANDBOX_HOME=\"/a\\", NULL },
		{ "SANDBOX_HOEM=/a\n", NULL },
		{ "SANDBOX_HOME=a\n", NULL },
		{ "SANDBOX_HOME=/\xff\n", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct tap_guard g = tap_guard_new(rows[i].text, strlen(rows[i].text));
		struct err e = { 0 };
		struct config c;
		int r;

		config_init(&c);
		r = config_parse_text(&c, g.data, g.len, "test.env", &e);
		if (rows[i].want)
			tap_str(r == 0 ? config_text(&c, CONFIG_HOME) : e.message, rows[i].want,
				"file row %zu is read", i);
		else
			tap_ok(r < 0 && e.code == ERR_CONFIG && strstr(e.message, "test.env"),
			       "file row %zu is refused: %s", i, e.message);
		config_done(&c);
		tap_guard_free(&g);
	}
}

static char *dump(const struct config *c)
{
	struct buf out;

	buf_init(&out, 1 << 16);
	if (config_dump(c, &out) < 0)
		tap_bail("dump");
	return out.data;
}

static void test_fixed_point(void)
{
	_cleanup_free_ char *first = NULL, *second = NULL;
	struct err e = { 0 };
	struct config c;

	config_init(&c);
	config_set(&c, CONFIG_HOME, "/a \"$`\\'\xc3\xa9", CONFIG_FROM_FILE, &e);
	config_set(&c, CONFIG_IDLE, "1.5s", CONFIG_FROM_FILE, &e);
	config_set(&c, CONFIG_CPUS, "0.125", CONFIG_FROM_FILE, &e);
	config_set(&c, CONFIG_PROFILE, "safe-shell", CONFIG_FROM_FILE, &e);
	config_set(&c, CONFIG_TOKEN, "sesame", CONFIG_FROM_FILE, &e);
	tap_int(config_finish(&c, "code", &e), 0, "complete: %s", e.message);
	first = dump(&c);
	config_done(&c);

	config_init(&c);
	tap_int(config_parse_text(&c, first, strlen(first), "dump", &e), 0, "a dump can be read: %s",
		e.message);
	config_set(&c, CONFIG_TOKEN, "sesame", CONFIG_FROM_FILE, &e);
	tap_int(config_finish(&c, "code", &e), 0, "and is complete");
	second = dump(&c);
	tap_str(second, first, "dump, parse, dump is a fixed point");
	tap_ok(!strstr(first, "sesame"), "a secret is not shown");
	config_done(&c);
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fchmod(fd, mode) < 0)
		tap_bail("write %s", path);
}

static int load(const char *path, struct err *e)
{
	struct config c;
	int r;

	config_init(&c);
	r = config_load_file(&c, path, e);
	config_done(&c);
	return r;
}

static void test_file_trust(void)
{
	char dir[] = "/tmp/test-config-XXXXXX", path[64], other[64];
	struct err e = { 0 };

	if (!mkdtemp(dir))
		tap_bail("mkdtemp");
	snprintf(path, sizeof(path), "%s/f", dir);
	snprintf(other, sizeof(other), "%s/fifo", dir);
	write_file(path, "SANDBOX_MAX=3\n", 0644);
	tap_int(load(path, &e), 0, "a file only its owner may write is read");
	chmod(path, 0664);
	tap_ok(load(path, &e) < 0 && e.code == ERR_CONFIG, "one that the group may write is refused");
	chmod(path, 0646);
	tap_ok(load(path, &e) < 0 && e.code == ERR_CONFIG, "one that everybody may write is refused");
	write_file(path, "MCP_TOKEN=sesame\n", 0644);
	tap_ok(load(path, &e) < 0 && strstr(e.message, "MCP_TOKEN"), "one with a readable secret, too");
	chmod(path, 0640);
	tap_int(load(path, &e), 0, "a secret may be readable by the group");
	if (geteuid() == 0 && chown(path, 12345, 0) == 0)
		tap_ok(load(path, &e) < 0 && strstr(e.message, "12345"), "somebody else's is refused");
	if (mkfifo(other, 0600) == 0)
		tap_ok(load(other, &e) < 0, "a FIFO is refused and holds nothing up");
	unlink(path);
	tap_ok(load(path, &e) < 0 && e.code == ERR_CONFIG, "a named file that is missing is an error");
	unlink(other);
	rmdir(dir);
}

static void test_markdown(void)
{
	struct buf out;

	buf_init(&out, 1 << 16);
	tap_int(config_markdown(&out), 0, "the README table is made");
	for (int id = 0; id < CONFIG_COUNT; id++)
		tap_ok(strstr(out.data, config_table[id].env), "%s is in it", config_table[id].env);
	buf_done(&out);
}

int main(void)
{
	unsetenv(CONFIG_STAGE_ENV);
	setenv("HOME", "/nonexistent", 1);
	test_table();
	test_names();
	test_values();
	test_ranks();
	test_profiles();
	test_environment();
	test_file_syntax();
	test_fixed_point();
	test_file_trust();
	test_markdown();
	return tap_done();
}
