/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/image_unpack.c - archives into trees and trees into archives
 *
 * Runs in: the command line's "image" and "workspace" verbs; every byte of an archive or a sandbox's tree
 * is handled in boxes:
 *
 *     archive -> [decompressor] -> [our filter] -> [tar -x] -> tree        tree -> [tar -c] -> archive
 *
 * A box sees one tree, read-only where it only reads. Trusts: the host's tar and decompressors. Whatever
 * one of them can be tricked into stays in that tree.
 */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"
#include "runtime/image.h"
#include "runtime/image_box.h"
#include "runtime/image_run.h"

#define TARGET "/target"

enum { ENTRIES_MAX = 4 * 1000 * 1000 };

static char *const tool_env[] = { (char[]){ "PATH=/usr/bin:/bin" }, (char[]){ "LC_ALL=C" },
				  (char[]){ "TZ=UTC" }, NULL };

/* ---- compression ---- */

struct format {
	const char *name;
	const char *magic;
	size_t magic_len;
	const char *argv[4]; /* decompress standard input to standard output */
};

static const struct format formats[] = {
	{ "gzip", "\x1f\x8b", 2, { "/usr/bin/gzip", "-dc", NULL } },
	{ "zstd", "\x28\xb5\x2f\xfd", 4, { "/usr/bin/zstd", "-dcq", "--memory=512MB", NULL } },
	{ "xz", "\xfd\x37zXZ\0", 6, { "/usr/bin/xz", "-dc", "--memlimit=1GiB", NULL } },
	{ "bzip2", "BZh", 3, { "/usr/bin/bzip2", "-dc", NULL } },
};

/* find_format() - by its first bytes. Return: NULL for a plain archive. */
static const struct format *find_format(int fd)
{
	off_t at = lseek(fd, 0, SEEK_CUR);
	char magic[8] = { 0 };
	ssize_t n = at < 0 ? -1 : pread(fd, magic, sizeof(magic), at);

	for (size_t i = 0; n > 0 && i < ARRAY_SIZE(formats); i++) {
		if ((size_t)n >= formats[i].magic_len &&
		    memcmp(magic, formats[i].magic, formats[i].magic_len) == 0)
			return &formats[i];
	}
	return NULL;
}

static int check_tool(const char *path, const char *package, struct err *e)
{
	if (access(path, X_OK) == 0)
		return 0;
	(void)err_set(e, ERR_HOST, "%s is not installed", path);
	return err_remedy(e, "install %s", package);
}

/* ---- unpacking ---- */

/* Shared with the filter's box: the only thing that comes back out of it. */
struct filter_ctx {
	struct tar_policy policy;
	struct tar_report *report; /* mapped shared */
};

static int run_filter(void *ctx)
{
	struct filter_ctx *c = ctx;

	(void)signal(SIGPIPE, SIG_IGN);
	tar_filter(STDIN_FILENO, STDOUT_FILENO, &c->policy, c->report);
	return c->report->verdict == TAR_OK ? 0 : 1;
}

struct unpack_pipes {
	int plain[2];    /* decompressor -> filter */
	int filtered[2]; /* filter -> tar */
};

static void unpack_pipes_done(struct unpack_pipes *p)
{
	for (int i = 0; i < 2; i++) {
		close_fd(&p->plain[i]);
		close_fd(&p->filtered[i]);
	}
}

static int add_decompressor(struct image_run *run, const struct idrange *ids,
			    const struct format *format, int archive_fd, struct unpack_pipes *p,
			    struct err *e)
{
	char *argv[ARRAY_SIZE(format->argv)];
	struct box box = { .role = BOX_SANDBOX,
			   .stdin_fd = archive_fd,
			   .stdout_fd = p->plain[1],
			   .stderr_fd = -1,
			   .argv = argv,
			   .envp = tool_env };

	if (check_tool(format->argv[0], format->name, e) < 0)
		return -1;
	memcpy(argv, format->argv, sizeof(argv));
	return image_run_add(run, ids, &box, e);
}

static int add_filter(struct image_run *run, const struct idrange *ids, struct filter_ctx *ctx,
		      int in_fd, int out_fd, struct err *e)
{
	struct box box = { .role = BOX_SANDBOX,
			   .stdin_fd = in_fd,
			   .stdout_fd = out_fd,
			   .stderr_fd = -1,
			   .fn = run_filter,
			   .ctx = ctx };

	return image_run_add(run, ids, &box, e);
}

static int add_extractor(struct image_run *run, const struct idrange *ids,
			 const struct tree_unpack *u, int in_fd, struct err *e)
{
	static const char *const keep_owners[] = { "/usr/bin/tar", "-xf", "-", "-C", TARGET,
						   "--numeric-owner", "--same-owner",
						   "--preserve-permissions", "--delay-directory-restore",
						   "--xattrs", "--xattrs-include=security.capability",
						   "--no-acls", "--no-selinux", NULL };
	static const char *const as_caller[] = { "/usr/bin/tar", "-xf", "-", "-C", TARGET,
						 "--no-same-owner", "--no-same-permissions",
						 "--delay-directory-restore", "--keep-old-files",
						 "--no-xattrs", "--no-acls", "--no-selinux", NULL };
	char *argv[16];
	_cleanup_fd_ int tree = box_tree(u->tree_fd, "", e);
	struct box box = { .role = u->to_host ? BOX_CALLER : BOX_SANDBOX,
			   .mounts = { { tree, TARGET, true } },
			   .mount_count = 1,
			   .stdin_fd = in_fd,
			   .stdout_fd = -1,
			   .stderr_fd = -1,
			   .argv = argv,
			   .envp = tool_env };

	if (tree < 0 || check_tool("/usr/bin/tar", "tar", e) < 0)
		return -1;
	if (u->to_host)
		memcpy(argv, as_caller, sizeof(as_caller));
	else
		memcpy(argv, keep_owners, sizeof(keep_owners));
	return image_run_add(run, ids, &box, e);
}

/* judge() - the most telling of what went wrong: our verdict, then the tools in the order of the data. */
static int judge(const struct image_run *run, const struct tar_report *report, struct err *e)
{
	if (report->complete && report->verdict != TAR_OK && report->verdict != TAR_WRITE_ERROR)
		return err_set(e, report->verdict == TAR_TOO_BIG || report->verdict == TAR_TOO_MANY ?
					  ERR_LIMIT :
					  ERR_DENIED,
			       "%s", tar_verdict_text(report->verdict));
	for (size_t i = 0; i < run->count; i++) {
		if (run->status[i] != 0)
			return image_run_blame(run, e, "the archive cannot be unpacked");
	}
	if (!report->complete)
		return err_set(e, ERR_SYSTEM, "the archive's reader ended early");
	return 0;
}

static struct tar_policy policy_of(const struct tree_unpack *u)
{
	return (struct tar_policy){ .max_bytes = u->max_bytes,
				    .max_entries = ENTRIES_MAX,
				    .max_id = ID_SANDBOX_COUNT - 1,
				    .nobody = 65534,
				    .strip_setid = u->to_host,
				    .confine_links = u->to_host,
				    .skip = u->skip };
}

/* start_unpack() - filter and extractor, reading from in_fd. */
static int start_unpack(struct image_run *run, const struct idrange *ids,
			const struct tree_unpack *u, struct filter_ctx *ctx, int in_fd,
			struct unpack_pipes *p, struct err *e)
{
	if (add_filter(run, ids, ctx, in_fd, p->filtered[1], e) < 0)
		return -1;
	return add_extractor(run, ids, u, p->filtered[0], e);
}

/* run_unpack() - start the boxes, then hold no end of a pipe ourselves, or nobody would see it end. */
static int run_unpack(struct image_run *run, const struct idrange *ids,
		      const struct tree_pack *source, const struct tree_unpack *u,
		      struct filter_ctx *ctx, struct unpack_pipes *p, struct err *e);

static int add_packer(struct image_run *run, const struct idrange *ids, const struct tree_pack *p,
		      int out_fd, struct err *e)
{
	const char *args[24] = { "/usr/bin/tar", "-cf", "-", "--format=pax",
				 "--pax-option=delete=atime,delete=ctime", "--numeric-owner",
				 "--sort=name", "--xattrs", "--xattrs-include=security.capability" };
	size_t n = 9;
	char *argv[24];
	_cleanup_fd_ int tree = box_tree(p->tree_fd, "", e);
	_cleanup_fd_ int extra = p->extra ? box_scratch(ids, p->extra, p->extra_data, p->extra_len, e) :
					    -1;
	struct box box = { .role = p->from_host ? BOX_CALLER : BOX_SANDBOX,
			   .mounts = { { tree, TARGET, false }, { extra, "/extra", false } },
			   .mount_count = p->extra ? 2 : 1,
			   .stdin_fd = -1,
			   .stdout_fd = out_fd,
			   .stderr_fd = -1,
			   .argv = argv,
			   .envp = tool_env };

	if (tree < 0 || (p->extra && extra < 0) || check_tool("/usr/bin/tar", "tar", e) < 0)
		return -1;
	if (p->from_host) {
		args[n++] = "--owner=0";
		args[n++] = "--group=0";
	}
	if (p->extra) {
		args[n++] = "-C";
		args[n++] = "/extra";
		args[n++] = p->extra;
	}
	args[n++] = "-C";
	args[n++] = TARGET;
	args[n++] = ".";
	args[n] = NULL;
	memcpy(argv, args, sizeof(argv));
	return image_run_add(run, ids, &box, e);
}

static int run_unpack(struct image_run *run, const struct idrange *ids,
		      const struct tree_pack *source, const struct tree_unpack *u,
		      struct filter_ctx *ctx, struct unpack_pipes *p, struct err *e)
{
	const struct format *format = source ? NULL : find_format(u->archive_fd);
	int in_fd = source || format ? p->plain[0] : u->archive_fd;

	if (source && add_packer(run, ids, source, p->plain[1], e) < 0)
		return -1;
	if (format && add_decompressor(run, ids, format, u->archive_fd, p, e) < 0)
		return -1;
	if (start_unpack(run, ids, u, ctx, in_fd, p, e) < 0)
		return -1;
	unpack_pipes_done(p);
	return image_run_wait(run, e);
}

static int unpack(const struct idrange *ids, const struct tree_pack *source,
		  const struct tree_unpack *u, struct tar_report *ret, struct err *e)
{
	struct unpack_pipes pipes = { { -1, -1 }, { -1, -1 } };
	struct filter_ctx ctx = { .policy = policy_of(u) };
	struct image_run run;
	int r = -1;

	ctx.report = mmap(NULL, sizeof(*ret), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);
	if (ctx.report == MAP_FAILED)
		return err_sys(e, "share memory with the archive's reader");
	if (image_run_init(&run, e) < 0)
		goto out;
	run.mark = ": Cannot ";
	if (pipe2(pipes.plain, O_CLOEXEC) < 0 || pipe2(pipes.filtered, O_CLOEXEC) < 0)
		(void)err_sys(e, "make a pipe");
	else
		r = run_unpack(&run, ids, source, u, &ctx, &pipes, e);
	*ret = *ctx.report;
	if (r == 0)
		r = judge(&run, ret, e);
	image_run_done(&run);
out:
	unpack_pipes_done(&pipes);
	(void)munmap(ctx.report, sizeof(*ret));
	return r;
}

int tree_unpack(const struct idrange *ids, const struct tree_unpack *u, struct tar_report *ret,
		struct err *e)
{
	return unpack(ids, NULL, u, ret, e);
}

int tree_copy(const struct idrange *ids, const struct tree_pack *p, const struct tree_unpack *u,
	      struct tar_report *ret, struct err *e)
{
	return unpack(ids, p, u, ret, e);
}

int tree_pack(const struct idrange *ids, const struct tree_pack *p, struct err *e)
{
	struct image_run run;
	int r;

	if (image_run_init(&run, e) < 0)
		return -1;
	run.mark = ": Cannot ";
	r = add_packer(&run, ids, p, p->archive_fd, e);
	if (r == 0)
		r = image_run_wait(&run, e);
	if (r == 0 && run.status[0] != 0)
		r = image_run_blame(&run, e, "the archive cannot be written");
	image_run_done(&run);
	return r;
}

/* ---- measuring ---- */

static int measure(void *ctx)
{
	char *paths[] = { (char[]){ TARGET }, NULL };
	FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	struct tree_size *size = ctx;
	FTSENT *entry;

	if (!walk)
		return 1;
	while ((entry = fts_read(walk))) {
		if (entry->fts_info == FTS_DP)
			continue;
		if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR ||
		    entry->fts_info == FTS_NS)
			return 1;
		size->entries++;
		if (entry->fts_statp->st_nlink < 2 || S_ISDIR(entry->fts_statp->st_mode))
			size->bytes += (uint64_t)entry->fts_statp->st_blocks * 512;
		else /* each link bears its share */
			size->bytes += (uint64_t)entry->fts_statp->st_blocks * 512 /
				       entry->fts_statp->st_nlink;
	}
	return errno == 0 ? 0 : 1;
}

int tree_measure(const struct idrange *ids, int tree_fd, struct tree_size *ret, struct err *e)
{
	struct tree_size *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	_cleanup_fd_ int tree = box_tree(tree_fd, "", e);
	struct box box = { .role = BOX_SANDBOX,
			   .mounts = { { tree, TARGET, false } },
			   .mount_count = 1,
			   .stdin_fd = -1,
			   .stdout_fd = -1,
			   .stderr_fd = -1,
			   .fn = measure,
			   .ctx = shared };
	int r = -1;

	if (shared == MAP_FAILED)
		return err_sys(e, "share memory with a helper process");
	if (tree >= 0)
		r = box_run(ids, &box, e);
	*ret = *shared;
	(void)munmap(shared, sizeof(*shared));
	return r > 0 ? err_set(e, ERR_SYSTEM, "the tree cannot be measured") : r;
}
