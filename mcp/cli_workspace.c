/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_workspace.c - "workspace import" and "workspace export": files in and out of a label
 *
 * Runs as host root or as root of the storage namespace, holding the label's lock, so no sandbox of it
 * runs meanwhile. Reading a workspace and writing to it happen in boxes (runtime/image_box.h): a
 * sandbox has written what is in there, and no program of the host meets it with more rights than that.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mcp/cli.h"
#include "mcp/cli_tree.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/str.h"
#include "runtime/label.h"
#include "runtime/owners.h"

struct place {
	struct cli_tree tree;
	struct store_label label;
};

/* The image verbs' range is the default owner's; a workspace carries the ids of its own. */
static int use_owner(struct cli_tree *tree, bool create, struct err *e)
{
	struct idrange ids;

	if (owners_range_init(&tree->store, tree->settings.subid, tree->settings.owner, create, &ids, e) < 0)
		return -1;
	userns_range_done(&tree->ids);
	tree->ids = ids;
	return 0;
}

static int open_place(struct cli_call *call, bool create, struct place *p, struct err *e)
{
	char key[KEY_MAX];
	pid_t holder;

	if (label_to_key(call->args[0], strlen(call->args[0]), key, e) < 0 ||
	    cli_tree_begin(call, &p->tree, e) < 0)
		return -1;
	if (use_owner(&p->tree, create, e) == 0 &&
	    store_label_open(&p->tree.store, &p->tree.ids, p->tree.settings.owner, key, create, &p->label,
			     &holder, e) == 0)
		return 0;
	cli_tree_done(&p->tree);
	return -1;
}

static void close_place(struct place *p)
{
	store_label_done(&p->label);
	cli_tree_done(&p->tree);
}

static bool is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* ---- import ---- */

static int import_from(struct place *p, const char *from, struct err *e)
{
	struct tree_unpack u = { .tree_fd = p->label.workspace_fd, .archive_fd = -1 };
	struct tree_pack source = { .from_host = true };
	struct tar_report report = { 0 };
	bool directory = is_directory(from);
	_cleanup_fd_ int fd = -1;
	int r;

	fd = directory ? open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC) :
			 cli_tree_open_archive(from, e);
	if (fd < 0)
		return directory ? err_sys(e, "open the directory") : -1;
	if (cli_tree_room(&p->tree, p->tree.settings.limits.disk_bytes, &u.max_bytes, e) < 0)
		return -1;
	if (directory)
		source.tree_fd = fd;
	else
		u.archive_fd = fd;
	r = directory ? tree_copy(&p->tree.ids, &source, &u, &report, e) :
			tree_unpack(&p->tree.ids, &u, &report, e);
	cli_tree_say_report(&report);
	return r;
}

int cli_workspace_import(struct cli_call *call, struct err *e)
{
	struct place p;
	int r;

	if (access(call->args[1], F_OK) < 0 && strcmp(call->args[1], "-") != 0)
		return err_set(e, ERR_NOT_FOUND, "no such file or directory");
	if (open_place(call, true, &p, e) < 0)
		return -1;
	r = import_from(&p, call->args[1], e);
	close_place(&p);
	return r < 0 ? -1 : CLI_OK;
}

/* ---- export ---- */

/* names_archive() - "x.tar" and "-" are archives; everything else is a directory. */
static bool names_archive(const char *path)
{
	size_t len = strlen(path);

	return strcmp(path, "-") == 0 || (len > 4 && strcmp(path + len - 4, ".tar") == 0);
}

static int export_to_archive(struct place *p, const char *file, struct err *e)
{
	struct tree_pack pack = { .tree_fd = p->label.workspace_fd };
	struct cli_archive_out out;
	int r = cli_archive_create(&out, file, e);

	if (r == 0) {
		pack.archive_fd = out.fd;
		r = tree_pack(&p->tree.ids, &pack, e);
	}
	return cli_archive_finish(&out, r, e);
}

/* export_to_directory() - a new one: what a sandbox wrote never replaces a file of the host. */
static int export_to_directory(struct place *p, const char *path, struct err *e)
{
	struct tree_pack pack = { .tree_fd = p->label.workspace_fd };
	struct tree_unpack u = { .to_host = true, .archive_fd = -1, .max_bytes = UINT64_MAX };
	struct tar_report report = { 0 };
	_cleanup_fd_ int fd = -1;
	int r;

	if (mkdir(path, 0777) < 0) {
		if (errno != EEXIST)
			return err_sys(e, "make the directory");
		(void)err_set(e, ERR_USAGE, "%s exists already", path);
		return err_remedy(e, "name a directory that does not exist, or a file ending in .tar");
	}
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "open the directory");
	u.tree_fd = fd;
	r = tree_copy(&p->tree.ids, &pack, &u, &report, e);
	cli_tree_say_report(&report);
	return r;
}

int cli_workspace_export(struct cli_call *call, struct err *e)
{
	const char *to = call->args[1];
	struct place p;
	int r;

	if (open_place(call, false, &p, e) < 0)
		return -1;
	if (p.label.workspace_fd < 0)
		r = err_set(e, ERR_NOT_FOUND, "the label has no workspace");
	else
		r = names_archive(to) ? export_to_archive(&p, to, e) :
					export_to_directory(&p, to, e);
	close_place(&p);
	return r < 0 ? -1 : CLI_OK;
}
