/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_tree.c - state directory, archives and progress of the "image" and "workspace" verbs
 *
 * Runs as host root or as root of the storage namespace. Opens archives by the path the user gave, and
 * looks at nothing in them.
 */
#include "mcp/cli_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/str.h"

int cli_tree_begin(struct cli_call *call, struct cli_tree *ret, struct err *e)
{
	*ret = (struct cli_tree){ .ids = { .storage_ns_fd = -1, .lower_ns_fd = -1 } };
	if (cli_enter_state(call, &ret->settings, e) < 0 ||
	    userns_range_init(&ret->ids, ret->settings.subid, 0, e) < 0)
		return -1;
	if (store_open(&ret->store, ret->settings.home, e) < 0) {
		userns_range_done(&ret->ids);
		return -1;
	}
	if (image_signals_begin(e) < 0) {
		cli_tree_done(ret);
		return -1;
	}
	return 0;
}

void cli_tree_done(struct cli_tree *t)
{
	store_done(&t->store);
	userns_range_done(&t->ids);
}

void cli_tree_say(const char *text)
{
	fprintf(stderr, "%s\n", text);
}

void cli_tree_say_report(const struct tar_report *report)
{
	const struct {
		uint64_t count;
		const char *text;
	} rows[] = {
		{ report->devices, "device nodes left out" },
		{ report->escaping, "names that lead out of the tree left out" },
		{ report->unknown, "entries of an unknown kind left out" },
		{ report->ids, "owners above 59999 changed to nobody" },
		{ report->overlay_xattrs, "overlay attributes removed" },
		{ report->other_xattrs, "other extended attributes removed" },
		{ report->setids, "set-id bits removed" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].count > 0)
			fprintf(stderr, "%" PRIu64 " %s\n", rows[i].count, rows[i].text);
	}
}

int cli_tree_room(const struct cli_tree *t, uint64_t cap, uint64_t *ret, struct err *e)
{
	struct statvfs vfs;
	uint64_t room;

	if (store_min_free(&t->store, t->settings.min_free_bytes, e) < 0)
		return -1;
	if (fstatvfs(t->store.home_fd, &vfs) < 0)
		return err_sys(e, "ask for the free space of SANDBOX_HOME");
	room = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	room -= room > t->settings.min_free_bytes ? t->settings.min_free_bytes : room;
	*ret = room < cap ? room : cap;
	return 0;
}

int cli_tree_open_archive(const char *file, struct err *e)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;

	if (strcmp(file, "-") == 0) {
		fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
		return fd < 0 ? err_sys(e, "standard input") : take_fd(&fd);
	}
	fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "no such file");
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "open the archive");
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_USAGE, "the archive is not a regular file");
	return take_fd(&fd);
}

int cli_archive_create(struct cli_archive_out *out, const char *file, struct err *e)
{
	*out = (struct cli_archive_out){ .fd = -1, .file = file };
	if (strcmp(file, "-") == 0) {
		if (isatty(STDOUT_FILENO))
			return err_set(e, ERR_USAGE, "an archive is not written to a terminal");
		out->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		return out->fd < 0 ? err_sys(e, "standard output") : 0;
	}
	if (access(file, F_OK) == 0)
		return err_set(e, ERR_USAGE, "the file exists already");
	if (snprintf(out->temporary, sizeof(out->temporary), "%s.part", file) >=
	    (int)sizeof(out->temporary)) {
		out->temporary[0] = '\0';
		return err_set(e, ERR_USAGE, "the file's name is too long");
	}
	out->fd = open(out->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (out->fd < 0)
		out->temporary[0] = '\0';
	return out->fd < 0 ? err_sys(e, "create %s.part", file) : 0;
}

int cli_archive_finish(struct cli_archive_out *out, int result, struct err *e)
{
	close_fd(&out->fd);
	if (!out->temporary[0])
		return result;
	/* never over a file that has appeared in the meantime */
	if (result == 0 && renameat2(AT_FDCWD, out->temporary, AT_FDCWD, out->file,
				     RENAME_NOREPLACE) < 0)
		result = err_sys(e, "name the archive %s", out->file);
	if (result < 0)
		(void)unlink(out->temporary);
	return result;
}
