/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/image_user.c - give id 1000 a name, for folders of --mount that are worked in as that id
 *
 * Runs in: the box of image_finish.c, with nothing but the tree within reach. Trusts: nothing in the tree. Files
 * are opened beneath it with no link followed, read up to a bound, and replaced, never written through.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/image_user.h"

enum { ACCOUNTS_MAX = 1024 * 1024, MODE_MASK = 0777 };

static const struct account_file {
	const char *name, *fresh; /* below /etc */
	const char *line;
	const char *id; /* what the third field must not be yet; NULL: no id in this file */
} files[] = {
	{ "passwd", ".passwd.fresh", "user:x:1000:1000::/home/user:/bin/bash\n", "1000" },
	{ "group", ".group.fresh", "user:x:1000:\n", "1000" },
	{ "shadow", ".shadow.fresh", "user:*::0:99999:7:::\n", NULL }, /* no password opens it */
};

/* One field of a line, fields being separated by colons. */
static bool field_is(const char *line, size_t len, unsigned int number, const char *want)
{
	const char *at = line, *end = line + len;

	while (number-- > 0) {
		at = memchr(at, ':', (size_t)(end - at));
		if (!at)
			return false;
		at++;
	}
	len = strlen(want);
	return (size_t)(end - at) > len && memcmp(at, want, len) == 0 && at[len] == ':';
}

static bool is_taken(const struct buf *text, const struct account_file *f)
{
	const char *at = text->data, *end = text->data + text->len;

	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((stop ? stop : end) - at);

		if (field_is(at, len, 0, "user") || (f->id && field_is(at, len, 2, f->id)))
			return true;
		at = stop ? stop + 1 : end;
	}
	return false;
}

/* Return: 1 with the file's text, 0 when it is to be left alone, -1. */
static int read_accounts(int etc, const struct account_file *f, struct buf *text, struct stat *st)
{
	_cleanup_fd_ int fd = fd_open_beneath(etc, f->name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	char chunk[4096];
	ssize_t n;

	if (fd < 0)
		return errno == ENOENT || errno == ELOOP || errno == ENXIO || errno == EXDEV ? 0 : -1;
	if (fstat(fd, st) < 0)
		return -1;
	if (!S_ISREG(st->st_mode) || st->st_size > ACCOUNTS_MAX)
		return 0;
	while ((n = fd_read_full(fd, chunk, sizeof(chunk))) > 0) {
		if (buf_append(text, chunk, (size_t)n) < 0)
			return 0;
	}
	return n < 0 ? -1 : 1;
}

static int replace(int etc, const struct account_file *f, const struct buf *text, const struct stat *st)
{
	_cleanup_fd_ int fd = -1;

	if (unlinkat(etc, f->fresh, 0) < 0 && errno != ENOENT)
		return -1;
	fd = fd_open_beneath(etc, f->fresh, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || fd_write_full(fd, text->data, text->len) < 0 || fchown(fd, st->st_uid, st->st_gid) < 0 ||
	    fchmod(fd, st->st_mode & MODE_MASK) < 0)
		return -1;
	return renameat(etc, f->fresh, etc, f->name);
}

static int name_in(int etc, const struct account_file *f)
{
	struct buf text;
	struct stat st;
	int r;

	buf_init(&text, ACCOUNTS_MAX + 256);
	r = read_accounts(etc, f, &text, &st);
	if (r > 0 && is_taken(&text, f))
		r = 0;
	if (r > 0) {
		if (text.len && text.data[text.len - 1] != '\n')
			buf_append_str(&text, "\n");
		buf_append_str(&text, f->line);
		r = text.overflow ? 0 : replace(etc, f, &text, &st);
	}
	buf_done(&text);
	return r;
}

int image_name_user(int root_fd, const char **ret_name)
{
	_cleanup_fd_ int etc = fd_open_beneath(root_fd, "etc", O_RDONLY | O_DIRECTORY, 0);

	*ret_name = "etc";
	if (etc < 0)
		return errno == ENOENT || errno == ELOOP || errno == ENOTDIR ? 0 : -1;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		*ret_name = files[i].name;
		if (name_in(etc, &files[i]) < 0)
			return -1;
	}
	return 0;
}
