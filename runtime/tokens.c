/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/tokens.c - who may come in over HTTP: the token file
 *
 * Runs in the keeper (reading) and in the command line (writing, under a lock). The file lies in the
 * state directory, which is ours alone; that is checked all the same, because whoever could write it
 * would have every sandbox of the owners in it.
 */
#include "runtime/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/digest.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"

#define FILE_NAME "tokens"
#define NEW_NAME "tokens.new"
#define LOCK_NAME "tokens.lock"
#define KEY_NAME "session.key"

enum {
	HEX_LEN = 2 * API_TOKEN_HASH_LEN,
	LINE_MAX_LEN = OWNER_NAME_MAX + 1 + HEX_LEN + 1,
	FILE_MAX_LEN = API_TOKENS_MAX * LINE_MAX_LEN,
};

/* ---- text ---- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int parse_hash(const char *text, uint8_t hash[API_TOKEN_HASH_LEN])
{
	for (size_t i = 0; i < API_TOKEN_HASH_LEN; i++) {
		int high = hex_digit(text[2 * i]), low = high < 0 ? -1 : hex_digit(text[2 * i + 1]);

		if (low < 0)
			return -1;
		hash[i] = (uint8_t)(high << 4 | low);
	}
	return 0;
}

static void print_hex(const uint8_t *bytes, size_t len, char *text)
{
	for (size_t i = 0; i < len; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

static struct token_row *find_name(struct token_table *t, const char *name)
{
	for (size_t i = 0; i < t->count; i++) {
		if (strcmp(t->rows[i].name, name) == 0)
			return &t->rows[i];
	}
	return NULL;
}

static bool has_owner(const struct token_table *t, const char *owner)
{
	for (size_t i = 0; i < t->count; i++) {
		if (strcmp(t->rows[i].owner, owner) == 0)
			return true;
	}
	return false;
}

bool tokens_have_owner(const struct token_table *t, const char *owner)
{
	return strcmp(owner, OWNER_DEFAULT) == 0 || has_owner(t, owner);
}

/* One line without its end. */
static int parse_line(const char *line, size_t len, struct token_table *t)
{
	struct token_row row = { 0 };
	const char *space = memchr(line, ' ', len);
	size_t name_len = space ? (size_t)(space - line) : 0;

	if (!space || name_len > OWNER_NAME_MAX || len - name_len - 1 != HEX_LEN ||
	    t->count == API_TOKENS_MAX)
		return -1;
	memcpy(row.name, line, name_len);
	if (!owner_name_is_valid(row.name) || owner_id_of(row.name, row.owner, NULL) < 0 ||
	    parse_hash(space + 1, row.hash) < 0 || has_owner(t, row.owner))
		return -1;
	t->rows[t->count++] = row;
	return 0;
}

int tokens_parse(const char *text, size_t len, struct token_table *ret, struct err *e)
{
	struct token_table t = { 0 };
	size_t at = 0;

	for (int line = 1; at < len; line++) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t line_len = end ? (size_t)(end - (text + at)) : 0;

		if (!end || parse_line(text + at, line_len, &t) < 0) {
			(void)err_set(e, ERR_CONFIG, "the token file's line %d is damaged", line);
			return err_remedy(e, "remove the line from " FILE_NAME " in SANDBOX_HOME, then "
					     "mcp-sandbox token add NAME");
		}
		at += line_len + 1;
	}
	*ret = t;
	return 0;
}

/* ---- the file ---- */

static int check_file(int fd, const char *name, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, "inspect %s", name);
	if (S_ISREG(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077) && st.st_nlink == 1 &&
	    st.st_size <= FILE_MAX_LEN)
		return 0;
	(void)err_set(e, ERR_CONFIG, "%s is not ours alone, or too long", name);
	return err_remedy(e, "chmod 0600 %s in SANDBOX_HOME and give it to the server's user", name);
}

int tokens_read(const struct store *s, struct token_table *ret, struct err *e)
{
	_cleanup_fd_ int fd = fd_open_beneath(s->home_fd, FILE_NAME, O_RDONLY | O_NONBLOCK, 0);
	char text[FILE_MAX_LEN];
	ssize_t len;

	if (fd < 0 && errno == ENOENT) {
		ret->count = 0;
		return 0;
	}
	if (fd < 0)
		return err_sys(e, "open the token file");
	if (check_file(fd, FILE_NAME, e) < 0)
		return -1;
	len = fd_read_full(fd, text, sizeof(text));
	if (len < 0)
		return err_sys(e, "read the token file");
	return tokens_parse(text, (size_t)len, ret, e);
}

/* A reader sees the old file or the new one. */
static int write_file(const struct store *s, const struct token_table *t, struct err *e)
{
	_cleanup_fd_ int fd = -1;
	char text[FILE_MAX_LEN + 1];
	size_t len = 0;

	for (size_t i = 0; i < t->count; i++) {
		char hash[HEX_LEN + 1];

		print_hex(t->rows[i].hash, API_TOKEN_HASH_LEN, hash);
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s %s\n", t->rows[i].name, hash);
	}
	(void)unlinkat(s->home_fd, NEW_NAME, 0);
	fd = fd_open_beneath(s->home_fd, NEW_NAME, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		return err_sys(e, "create the token file");
	if (fd_write_full(fd, text, len) < 0 || fsync(fd) < 0 ||
	    renameat(s->home_fd, NEW_NAME, s->home_fd, FILE_NAME) < 0)
		return err_sys(e, "write the token file");
	return fsync(s->home_fd) < 0 ? err_sys(e, "write the token file") : 0;
}

/* Command line only: may wait for another one. Return: the lock's descriptor, -1. */
static int lock_file(const struct store *s, struct err *e)
{
	_cleanup_fd_ int fd = fd_open_beneath(s->home_fd, LOCK_NAME, O_RDWR | O_CREAT, 0600);

	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return err_sys(e, "lock the token file");
	return take_fd(&fd);
}

static int make_token(char ret_token[TOKEN_TEXT_MAX], uint8_t hash[API_TOKEN_HASH_LEN], struct err *e)
{
	uint8_t bytes[TOKEN_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return err_sys(e, "get random bytes");
	print_hex(bytes, sizeof(bytes), ret_token);
	if (digest_sha256(ret_token, strlen(ret_token), hash) < 0)
		return err_set(e, ERR_NOMEM, "no memory for a digest");
	return 0;
}

int tokens_add(const struct store *s, const char *name, char ret_token[TOKEN_TEXT_MAX], struct err *e)
{
	_cleanup_fd_ int lock_fd = -1;
	struct token_table t;
	struct token_row row = { 0 };

	if (owner_id_of(name, row.owner, e) < 0)
		return -1;
	(void)str_copy(row.name, sizeof(row.name), name);
	lock_fd = lock_file(s, e);
	if (lock_fd < 0 || tokens_read(s, &t, e) < 0)
		return -1;
	if (find_name(&t, name)) {
		(void)err_set(e, ERR_USAGE, "%s has a token", name);
		return err_remedy(e, "mcp-sandbox token rm %s, then add it again: its sandboxes stay", name);
	}
	if (has_owner(&t, row.owner))
		return err_set(e, ERR_USAGE, "%s: this name cannot be used, choose another", name);
	/* one place is MCP_TOKEN's */
	if (t.count >= API_TOKENS_MAX - 1)
		return err_set(e, ERR_LIMIT, "there are %d tokens already", API_TOKENS_MAX - 1);
	if (make_token(ret_token, row.hash, e) < 0)
		return -1;
	t.rows[t.count++] = row;
	return write_file(s, &t, e);
}

int tokens_remove(const struct store *s, const char *name, struct err *e)
{
	_cleanup_fd_ int lock_fd = lock_file(s, e);
	struct token_table t;
	struct token_row *row;

	if (lock_fd < 0 || tokens_read(s, &t, e) < 0)
		return -1;
	row = find_name(&t, name);
	if (!row)
		return err_set(e, ERR_NOT_FOUND, "no token named %.20s", name);
	*row = t.rows[--t.count];
	return write_file(s, &t, e);
}

int tokens_put_default(struct token_table *t, const char *token, struct err *e)
{
	struct token_row row = { .name = "default", .owner = OWNER_DEFAULT };

	if (token[0] == '\0')
		return 0;
	if (t->count == API_TOKENS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d tokens", API_TOKENS_MAX);
	if (digest_sha256(token, strlen(token), row.hash) < 0)
		return err_set(e, ERR_NOMEM, "no memory for a digest");
	t->rows[t->count++] = row;
	return 0;
}

/* ---- the session key ---- */

/* Two servers that start at once end up with the same key: a name is linked once. */
static int make_key(const struct store *s, struct err *e)
{
	_cleanup_fd_ int fd = openat(s->home_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	uint8_t key[API_TOKEN_HASH_LEN];
	char path[32];

	if (fd < 0)
		return err_sys(e, "make the session key");
	if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key) || fd_write_full(fd, key, sizeof(key)) < 0)
		return err_sys(e, "write the session key");
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, path, s->home_fd, KEY_NAME, AT_SYMLINK_FOLLOW) < 0 && errno != EEXIST)
		return err_sys(e, "name the session key");
	return 0;
}

int tokens_session_key(const struct store *s, uint8_t ret[API_TOKEN_HASH_LEN], struct err *e)
{
	_cleanup_fd_ int fd = fd_open_beneath(s->home_fd, KEY_NAME, O_RDONLY | O_NONBLOCK, 0);

	if (fd < 0 && errno == ENOENT) {
		if (make_key(s, e) < 0)
			return -1;
		fd = fd_open_beneath(s->home_fd, KEY_NAME, O_RDONLY | O_NONBLOCK, 0);
	}
	if (fd < 0)
		return err_sys(e, "open the session key");
	if (check_file(fd, KEY_NAME, e) < 0)
		return -1;
	if (fd_read_full(fd, ret, API_TOKEN_HASH_LEN) == API_TOKEN_HASH_LEN)
		return 0;
	(void)err_set(e, ERR_CONFIG, KEY_NAME " is damaged");
	return err_remedy(e, "remove " KEY_NAME " in SANDBOX_HOME: clients then begin new sessions");
}
