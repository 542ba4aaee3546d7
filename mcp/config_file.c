/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/config_file.c - the env file: where it is, whether it may be trusted, what it says
 *
 * Syntax is systemd's EnvironmentFile, so that one file serves the unit and the command line. Where
 * systemd silently drops a line (no "=", an unfinished quote) this parser refuses the file: a limit
 * that was meant and not read is worse than a server that does not start.
 *
 * The file is trusted only when its owner is root or this user and nobody else may write it. It is
 * never looked for in the working directory: a cloned repository must not configure its own sandbox.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mcp/config_table.h"
#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"

struct reader {
	const char *at, *end;
	const char *name;
	unsigned int line;
	struct buf key, value;
};

static int reader_fail(const struct reader *r, const char *what, struct err *e)
{
	return err_set(e, ERR_CONFIG, "%s:%u: %s", r->name, r->line, what);
}

/* Next byte, counting lines; -1 at the end. */
static int reader_next(struct reader *r)
{
	if (r->at == r->end)
		return -1;
	if (*r->at == '\n')
		r->line++;
	return (unsigned char)*r->at++;
}

static void trim_end(struct buf *b, size_t keep)
{
	while (b->len > keep && isspace((unsigned char)b->data[b->len - 1]))
		b->data[--b->len] = '\0';
}

static void append_byte(struct buf *b, int c)
{
	char byte = (char)c;

	(void)buf_append(b, &byte, 1);
}

/* systemd before 254 lets a backslash carry a comment on, later versions do not: refuse it. */
static int skip_comment(struct reader *r, struct err *e)
{
	const char *eol = memchr(r->at, '\n', (size_t)(r->end - r->at));

	if (!eol)
		eol = r->end;
	if (eol > r->at && eol[-1] == '\\')
		return reader_fail(r, "a comment must not end in a backslash", e);
	r->at = eol;
	return 0;
}

static int read_key(struct reader *r, struct err *e)
{
	const char *equals = r->at;

	while (equals < r->end && *equals != '=' && *equals != '\n')
		equals++;
	if (equals == r->end || *equals != '=')
		return reader_fail(r, "a line without \"=\"", e);
	r->key.len = 0;
	(void)buf_append(&r->key, r->at, (size_t)(equals - r->at));
	trim_end(&r->key, 0);
	for (size_t i = 0; i < r->key.len; i++) {
		if (!isalnum((unsigned char)r->key.data[i]) && r->key.data[i] != '_')
			return reader_fail(r, "a name may only hold letters, digits and _", e);
	}
	if (r->key.len == 0 || isdigit((unsigned char)r->key.data[0]))
		return reader_fail(r, "a name must start with a letter or _", e);
	r->at = equals + 1;
	return 0;
}

static int read_single_quoted(struct reader *r, struct err *e)
{
	int c;

	while ((c = reader_next(r)) != '\'') {
		if (c < 0)
			return reader_fail(r, "a ' is not closed", e);
		append_byte(&r->value, c);
	}
	return 0;
}

static int read_double_quoted(struct reader *r, struct err *e)
{
	int c;

	while ((c = reader_next(r)) != '"') {
		if (c == '\\') {
			c = reader_next(r);
			if (c == '\n')
				continue;
			if (c >= 0 && !strchr("\"\\`$", c))
				append_byte(&r->value, '\\');
		}
		if (c < 0)
			return reader_fail(r, "a \" is not closed", e);
		append_byte(&r->value, c);
	}
	return 0;
}

/* An unquoted stretch up to the end of the line; quotes in its middle are ordinary bytes. */
static void read_bare(struct reader *r, int first)
{
	size_t keep = r->value.len; /* escaped white space is not trimmed */

	for (int c = first; c >= 0 && c != '\n'; c = reader_next(r)) {
		if (c == '\\') {
			c = reader_next(r);
			if (c < 0)
				break;
			if (c == '\n')
				continue;
			append_byte(&r->value, c);
			keep = r->value.len;
		} else {
			append_byte(&r->value, c);
		}
	}
	trim_end(&r->value, keep);
}

static int read_value(struct reader *r, struct err *e)
{
	r->value.len = 0;
	(void)buf_append(&r->value, "", 0);
	for (;;) {
		int c = reader_next(r);
		int failed = 0;

		if (c < 0 || c == '\n')
			return 0;
		if (isspace(c))
			continue;
		if (c == '\'') {
			failed = read_single_quoted(r, e);
		} else if (c == '"') {
			failed = read_double_quoted(r, e);
		} else {
			read_bare(r, c);
			return 0;
		}
		if (failed < 0)
			return -1;
	}
}

static int take_assignment(struct config *c, struct reader *r, unsigned int line, struct err *e)
{
	const char *value = r->value.len ? r->value.data : "";
	int id;

	if (r->key.overflow || r->value.overflow)
		return reader_fail(r, "a line is too long", e);
	id = config_find_env(r->key.data);
	if (id < 0) {
		if (config_unknown_name(r->key.data, e) < 0)
			return err_wrap(e, "%s:%u", r->name, line);
		return 0;
	}
	if (config_set(c, (enum config_id)id, value, CONFIG_FROM_FILE, e) < 0)
		return err_wrap(e, "%s:%u", r->name, line);
	return 0;
}

static int parse_lines(struct config *c, struct reader *r, struct err *e)
{
	while (r->at < r->end) {
		unsigned int line = r->line;
		int first = (unsigned char)*r->at;

		if (isspace(first)) {
			(void)reader_next(r);
			continue;
		}
		if (first == '#' || first == ';') {
			if (skip_comment(r, e) < 0)
				return -1;
			continue;
		}
		if (read_key(r, e) < 0 || read_value(r, e) < 0 || take_assignment(c, r, line, e) < 0)
			return -1;
	}
	return 0;
}

int config_parse_text(struct config *c, const char *text, size_t len, const char *name,
		      struct err *e)
{
	struct reader r = { .at = text, .end = text + len, .name = name, .line = 1 };
	int result;

	if (!str_utf8_is_valid(text, len) || memchr(text, '\0', len)) {
		err_set(e, ERR_CONFIG, "%s: not UTF-8 text", name);
		return -1;
	}
	buf_init(&r.key, 256);
	buf_init(&r.value, CONFIG_VALUE_MAX + 1);
	result = parse_lines(c, &r, e);
	buf_done(&r.key);
	buf_done(&r.value);
	return result;
}

int config_user_path(const char *xdg, const char *below_home, const char *root_path, const char *leaf,
		     char *path, size_t size)
{
	const char *base = getenv(xdg), *home = getenv("HOME");
	int len;

	if (geteuid() == 0)
		len = snprintf(path, size, "%s", root_path);
	else if (base && base[0] == '/') /* a relative one is to be ignored (XDG base directories) */
		len = snprintf(path, size, "%s/%s", base, leaf);
	else if (home && home[0] == '/')
		len = snprintf(path, size, "%s/%s/%s", home, below_home, leaf);
	else
		return -1;
	return len < 0 || (size_t)len >= size ? -1 : 0;
}

/* Who may have written the file, on the descriptor that will be read. */
static int check_owner(int fd, const char *path, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_CONFIG, "%s: not a regular file", path);
	if (st.st_uid != 0 && st.st_uid != geteuid()) {
		err_set(e, ERR_CONFIG, "%s: belongs to user %u", path, (unsigned int)st.st_uid);
		return err_remedy(e, "chown it to root or to the user that runs mcp-sandbox");
	}
	if (st.st_mode & (S_IWGRP | S_IWOTH)) {
		err_set(e, ERR_CONFIG, "%s: others may write it (mode %04o)", path,
			(unsigned int)st.st_mode & 07777);
		return err_remedy(e, "chmod go-w %s", path);
	}
	return 0;
}

/* A token that every user of the host can read is none. */
static int check_secrets(const struct config *c, int fd, const char *path, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, "%s", path);
	for (int id = 0; id < CONFIG_COUNT; id++) {
		const struct config_value *value = &c->value[id];

		if (config_table[id].secret && value->text && value->text[0] &&
		    value->source == CONFIG_FROM_FILE && (st.st_mode & S_IROTH)) {
			err_set(e, ERR_CONFIG, "%s: holds %s and every user may read it", path,
				config_table[id].env);
			return err_remedy(e, "chmod o-r %s", path);
		}
	}
	return 0;
}

static int read_config_file(struct config *c, const char *path, bool must_exist, struct err *e)
{
	/* O_NONBLOCK: a FIFO in its place must not hold the start up. */
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	_cleanup_free_ char *text = NULL;
	ssize_t len;

	if (fd < 0) {
		if (!must_exist && (errno == ENOENT || errno == ENOTDIR))
			return 0;
		err_sys(e, "%s", path);
		e->code = ERR_CONFIG;
		return err_remedy(e, "check the path and its permissions%s",
				  must_exist ? ", or leave --config out" : "");
	}
	if (check_owner(fd, path, e) < 0)
		return -1;
	text = malloc(CONFIG_FILE_MAX + 1);
	if (!text)
		return err_set(e, ERR_NOMEM, "%s: out of memory", path);
	len = fd_read_full(fd, text, CONFIG_FILE_MAX + 1);
	if (len < 0)
		return err_sys(e, "%s", path);
	if (len > CONFIG_FILE_MAX)
		return err_set(e, ERR_CONFIG, "%s: larger than %d bytes", path, CONFIG_FILE_MAX);
	if (config_parse_text(c, text, (size_t)len, path, e) < 0 || check_secrets(c, fd, path, e) < 0)
		return -1;
	return str_copy(c->file, sizeof(c->file), path);
}

int config_load_file(struct config *c, const char *explicit_path, struct err *e)
{
	const char *staged = getenv(CONFIG_STAGE_ENV);
	char path[PATH_MAX];

	/* Re-executed: the settings are in the environment, the file may not be readable any more. */
	if (staged)
		return str_copy(c->file, sizeof(c->file), staged);
	if (explicit_path)
		return read_config_file(c, explicit_path, true, e);
	if (config_user_path("XDG_CONFIG_HOME", ".config", "/etc/mcp-sandbox/mcp-sandbox.env",
			     "mcp-sandbox/mcp-sandbox.env", path, sizeof(path)) < 0)
		return 0;
	return read_config_file(c, path, false, e);
}
