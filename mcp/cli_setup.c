/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_setup.c - "setup": what a client's configuration has to say, and with --write saying it there
 *
 * Runs as the user whose client it is. The file is that user's own, and often holds more than servers:
 * only our entry is put in or exchanged, every other byte stays, the file as it was is kept beside it,
 * and a file that is not strict JSON is left alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mcp/cli.h"
#include "mcp/cli_setup.h"
#include "mcp/json_write.h"
#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"

#define ENTRY_NAME "mcp-linux-sandbox"
#define TOKEN_PLACEHOLDER "<token>"

enum { FILE_MAX = 8 * 1024 * 1024, ENTRY_MAX = 8192 };

enum remote { REMOTE_BRIDGE, REMOTE_URL, REMOTE_TYPE_HTTP, REMOTE_HTTP_URL, REMOTE_TOML, REMOTE_WORDS };

static const struct client {
	const char *name, *file; /* below the home directory; NULL: not a file */
	const char *member;      /* the object that holds the servers */
	enum remote remote;
	bool local_type; /* a local server says "type": "stdio" */
} clients[] = {
	{ "claude-desktop", ".config/Claude/claude_desktop_config.json", "mcpServers", REMOTE_BRIDGE, false },
	{ "claude-code", ".claude.json", "mcpServers", REMOTE_TYPE_HTTP, true },
	{ "cursor", ".cursor/mcp.json", "mcpServers", REMOTE_URL, false },
	{ "codex", ".codex/config.toml", NULL, REMOTE_TOML, false },
	{ "vscode", ".config/Code/User/mcp.json", "servers", REMOTE_TYPE_HTTP, true },
	{ "gemini", ".gemini/settings.json", "mcpServers", REMOTE_HTTP_URL, false },
	{ "flowdown", NULL, NULL, REMOTE_WORDS, false },
};

const struct cli_option cli_setup_options[] = {
	{ "write", NULL, "put it into the client's configuration; the file as it was is kept beside it" },
	{ "url", "URL", "for a server somewhere else, with MCP_TOKEN as its token" },
	{ NULL },
};

struct setup {
	const struct client *client;
	const char *url, *token; /* url NULL: a program of this machine */
	char program[PATH_MAX];
};

/* ---- what it says ---- */

static void write_header(struct buf *b, const struct setup *s)
{
	(void)buf_append_str(b, "\"headers\": { \"Authorization\": \"Bearer ");
	json_write_escaped(b, s->token, strlen(s->token));
	(void)buf_append_str(b, "\" }");
}

/* For clients that only start programs: mcp-remote, from npm, speaks HTTP for them. */
static void write_bridge(struct buf *b, const struct setup *s)
{
	(void)buf_append_str(b, "{ \"command\": \"npx\", \"args\": [\"-y\", \"mcp-remote\", ");
	json_write_string(b, s->url);
	(void)buf_append_str(b, ", \"--header\", \"Authorization:${AUTH}\"], \"env\": { \"AUTH\": \"Bearer ");
	json_write_escaped(b, s->token, strlen(s->token));
	(void)buf_append_str(b, "\" } }");
}

static void write_remote(struct buf *b, const struct setup *s)
{
	if (s->client->remote == REMOTE_BRIDGE) {
		write_bridge(b, s);
		return;
	}
	(void)buf_append_str(b, s->client->remote == REMOTE_TYPE_HTTP ? "{ \"type\": \"http\", \"url\": " :
				s->client->remote == REMOTE_HTTP_URL  ? "{ \"httpUrl\": " : "{ \"url\": ");
	json_write_string(b, s->url);
	(void)buf_append_str(b, ", ");
	write_header(b, s);
	(void)buf_append_str(b, " }");
}

static void write_entry(struct buf *b, const struct setup *s)
{
	if (s->url) {
		write_remote(b, s);
		return;
	}
	(void)buf_append_str(b, s->client->local_type ? "{ \"type\": \"stdio\", \"command\": " : "{ \"command\": ");
	json_write_string(b, s->program);
	(void)buf_append_str(b, ", \"args\": [\"stdio\"] }");
}

/* A JSON string is a TOML basic string as well. */
static void write_toml(struct buf *b, const struct setup *s)
{
	(void)buf_append_str(b, "[mcp_servers." ENTRY_NAME "]\n");
	if (s->url) {
		(void)buf_append_str(b, "url = ");
		json_write_string(b, s->url);
		(void)buf_append_str(b, "\nhttp_headers = { \"Authorization\" = \"Bearer ");
		json_write_escaped(b, s->token, strlen(s->token));
		(void)buf_append_str(b, "\" }\n");
		return;
	}
	(void)buf_append_str(b, "command = ");
	json_write_string(b, s->program);
	(void)buf_append_str(b, "\nargs = [\"stdio\"]\n");
}

static int print(const struct setup *s, struct err *e)
{
	_cleanup_(buf_done) struct buf b;

	buf_init(&b, ENTRY_MAX);
	if (s->client->remote == REMOTE_WORDS) {
		(void)buf_printf(&b, "Name: " ENTRY_NAME "\nTransport: Streamable HTTP\nURL: %s\n"
				     "Header: Authorization: Bearer %s\n", s->url, s->token);
	} else if (s->client->remote == REMOTE_TOML) {
		(void)buf_printf(&b, "# ~/%s\n", s->client->file);
		write_toml(&b, s);
	} else {
		/* the comment goes to standard error: what is on standard output is JSON */
		(void)fprintf(stderr, "# ~/%s\n", s->client->file);
		(void)buf_printf(&b, "{\n  \"%s\": {\n    \"" ENTRY_NAME "\": ", s->client->member);
		write_entry(&b, s);
		(void)buf_append_str(&b, "\n  }\n}\n");
	}
	if (b.overflow || fwrite(b.data, 1, b.len, stdout) != b.len || fflush(stdout) != 0)
		return err_set(e, ERR_SYSTEM, "setup: cannot be written");
	return CLI_OK;
}

/* ---- the file ---- */

/* Configurations kept elsewhere ("dotfiles") are links: what one leads to is what is read and exchanged, so
 * that the link stays. Nothing there is no failure: it will be made. */
static int follow(char path[PATH_MAX], struct err *e)
{
	char target[PATH_MAX];
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_sys(e, "look at %s", path);
	if (!realpath(path, target)) {
		(void)err_sys(e, "%s is a link that leads to no file", path);
		return err_remedy(e, "make the file it names, or remove the link");
	}
	return str_copy(path, PATH_MAX, target);
}

/* Looked at before it is opened: a FIFO would wait, a device may do something. */
static int read_all(const char *path, struct buf *b, struct stat *st, struct err *e)
{
	_cleanup_fd_ int fd = -1;
	char chunk[16384];
	ssize_t n;

	if (lstat(path, st) < 0)
		return errno == ENOENT ? 0 : err_sys(e, "look at %s", path);
	if (!S_ISREG(st->st_mode))
		return err_set(e, ERR_DENIED, "%s is not a file", path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return err_sys(e, "open %s", path);
	if (fstat(fd, st) < 0 || !S_ISREG(st->st_mode))
		return err_set(e, ERR_DENIED, "%s is not a file", path);
	while ((n = fd_read_full(fd, chunk, sizeof(chunk))) > 0) {
		if (buf_append(b, chunk, (size_t)n) < 0)
			return err_set(e, ERR_LIMIT, "%s is too large", path);
	}
	return n < 0 ? err_sys(e, "read %s", path) : 1;
}

/* Nobody else's before it is whole; then as the file was (was NULL: the user's alone). */
static int write_new(const char *path, const struct buf *b, const struct stat *was, struct err *e)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return err_sys(e, "make %s", path);
	if (was && (fchown(fd, was->st_uid, was->st_gid) < 0 || fchmod(fd, was->st_mode & 0777) < 0)) {
		(void)err_sys(e, "give %s the owner and mode of the file it replaces", path);
		(void)unlink(path);
		return err_remedy(e, "run setup as the owner of that file");
	}
	if (fd_write_full(fd, b->data, b->len) < 0 || fsync(fd) < 0)
		return err_sys(e, "write %s", path);
	return 0;
}

static void make_parents(const char *path)
{
	char dir[PATH_MAX];

	(void)snprintf(dir, sizeof(dir), "%s", path);
	for (char *p = strchr(dir + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		(void)mkdir(dir, 0700);
		*p = '/';
	}
}

/* In the directory of the file itself, so that it is exchanged at once or not at all. */
static int replace(const char *path, const struct buf *old, const struct stat *was, const struct buf *now,
		   struct err *e)
{
	char fresh[PATH_MAX + 8], backup[PATH_MAX + 8];

	(void)snprintf(fresh, sizeof(fresh), "%s.new", path);
	(void)snprintf(backup, sizeof(backup), "%s.bak", path);
	make_parents(path);
	(void)unlink(fresh);
	if (write_new(fresh, now, was, e) < 0)
		return -1;
	if (was) {
		(void)unlink(backup);
		if (write_new(backup, old, was, e) < 0)
			return -1;
	}
	if (rename(fresh, path) < 0)
		return err_sys(e, "replace %s", path);
	(void)fprintf(stderr, "wrote %s%s\n", path, was ? " (as it was: the same name with .bak)" : "");
	return 0;
}

static int merge(const struct setup *s, const struct buf *old, struct buf *now, struct err *e)
{
	_cleanup_(buf_done) struct buf entry;

	buf_init(&entry, ENTRY_MAX);
	if (s->client->remote == REMOTE_TOML) {
		write_toml(&entry, s);
		return setup_merge_toml(old->len ? old->data : "", ENTRY_NAME, entry.data, now, e);
	}
	write_entry(&entry, s);
	return setup_merge_json(old->len ? old->data : "{}\n", s->client->member, ENTRY_NAME, entry.data, now,
				e);
}

static int write_file(const struct setup *s, struct err *e)
{
	_cleanup_(buf_done) struct buf old;
	_cleanup_(buf_done) struct buf now;
	const char *home = getenv("HOME");
	char path[PATH_MAX];
	struct stat was;
	int had, n;

	buf_init(&old, FILE_MAX);
	buf_init(&now, FILE_MAX + ENTRY_MAX);
	if (!s->client->file)
		return err_set(e, ERR_USAGE, "%s has no file to write to: enter what is printed without --write",
			       s->client->name);
	n = home && home[0] == '/' ? snprintf(path, sizeof(path), "%s/%s", home, s->client->file) : -1;
	if (n < 0 || (size_t)n >= sizeof(path))
		return err_set(e, ERR_USAGE, "HOME is not set to an absolute path");
	if (follow(path, e) < 0)
		return -1;
	had = read_all(path, &old, &was, e);
	if (had < 0 || merge(s, &old, &now, e) < 0)
		return had < 0 ? -1 : err_wrap(e, "%s", path);
	return replace(path, &old, had > 0 ? &was : NULL, &now, e) < 0 ? -1 : CLI_OK;
}

/* ---- the verb ---- */

static const struct client *find_client(const char *name, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(clients); i++) {
		if (strcmp(clients[i].name, name) == 0)
			return &clients[i];
	}
	(void)err_set(e, ERR_USAGE, "setup: no client of this name is known");
	(void)err_remedy(e, "claude-desktop, claude-code, cursor, codex, vscode, gemini or flowdown");
	return NULL;
}

int cli_setup(struct cli_call *call, struct err *e)
{
	struct setup s = { .url = cli_option(call, "url"), .token = config_text(&call->config, CONFIG_TOKEN) };
	bool write = cli_option(call, "write") != NULL;
	ssize_t len = readlink("/proc/self/exe", s.program, sizeof(s.program) - 1);

	s.client = find_client(call->args[0], e);
	if (!s.client)
		return -1;
	if (len <= 0)
		return err_sys(e, "find this program");
	if (!s.url && s.client->remote == REMOTE_WORDS) {
		(void)err_set(e, ERR_USAGE, "setup: %s starts no programs", s.client->name);
		return err_remedy(e, "give --url: the address of a server (mcp-sandbox serve)");
	}
	if (s.url && strncmp(s.url, "https://", 8) != 0 && strncmp(s.url, "http://", 7) != 0)
		return err_set(e, ERR_USAGE, "setup: --url is not an address that begins with http:// or https://");
	if (*s.token == '\0')
		s.token = TOKEN_PLACEHOLDER;
	if (s.url && write && strcmp(s.token, TOKEN_PLACEHOLDER) == 0) {
		(void)err_set(e, ERR_USAGE, "setup: no token to write");
		return err_remedy(e, "set MCP_TOKEN to one that \"token add\" printed");
	}
	return write ? write_file(&s, e) : print(&s, e);
}
