/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_image.c - the "image" verbs: build, import, export, list, rm
 *
 * Runs as host root or, for an ordinary user, as root of the storage namespace. What is done with a tree
 * happens below runtime/image.h; here are the order of the steps, the manifest, and what a person sees:
 * progress on standard error, the name of the image alone on standard output.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "mcp/cli.h"
#include "mcp/cli_tree.h"
#include "mcp/cli_manifest.h"
#include "runtime/arch.h"
#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/str.h"
#include "runtime/image.h"
#include "runtime/image_arch.h"

/* The manifest inside an exported archive; left out again when it is imported. */
#define EXPORTED_MANIFEST ".mcp-sandbox-image.json"

enum { EXTRA_PACKAGES_MAX = 64, LIST_JSON_MAX = 1024 * 1024 };

const struct cli_option cli_image_build_options[] = {
	{ "name", "NAME", "what to call the image (default: the recipe's name)" },
	{ "suite", "SUITE", "Debian release (default: the host's own, else stable)" },
	{ "packages", "A,B", "further packages" },
	{ "arch", "ARCH", "amd64 or arm64 (default: this program's); another one is for export" },
	{ NULL },
};

const struct cli_option cli_image_import_options[] = {
	{ "name", "NAME", "what to call the image (default: from the file's name)" },
	{ NULL },
};

/* ---- what build and import share ---- */

static int check_name(const char *name, struct err *e)
{
	if (str_is_name(name, NAME_MAX_LEN - 1))
		return 0;
	(void)err_set(e, ERR_USAGE, "malformed image name");
	return err_remedy(e, "use lower-case letters, digits, '.', '_' and '-', at most %d",
			  NAME_MAX_LEN - 1);
}

static void say_now(char text[MANIFEST_TEXT_MAX])
{
	time_t now = time(NULL);
	struct tm tm;

	text[0] = '\0';
	if (gmtime_r(&now, &tm))
		(void)strftime(text, MANIFEST_TEXT_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static uint64_t count_lines(const char *text)
{
	uint64_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static int write_manifest(const struct cli_tree *t, const struct image_stage *stage,
			  struct image_manifest *m, const struct image_facts *facts, struct err *e)
{
	struct tree_size size;

	if (tree_measure(&t->ids, stage->rootfs_fd, &size, e) < 0 ||
	    image_stage_arch(stage, m->arch, e) < 0)
		return -1;
	(void)str_copy(m->system, sizeof(m->system), facts->system);
	(void)str_copy(m->suite, sizeof(m->suite), facts->suite);
	(void)str_copy(m->tool, sizeof(m->tool), "mcp-sandbox " MCP_SANDBOX_VERSION);
	say_now(m->created);
	m->bytes = size.bytes;
	m->entries = size.entries;
	m->packages = facts->packages;
	m->package_count = count_lines(facts->packages);
	return manifest_save(stage->dir_fd, m, e);
}

/* inspect() - the proof that an image is good, or, for another architecture's, that it is left to others. */
static int inspect(const struct cli_tree *t, const struct image_stage *stage, const struct recipe *recipe,
		   struct image_manifest *m, struct image_facts *ret, struct err *e)
{
	if (arch_is_foreign(m->arch)) {
		cli_tree_say("for another architecture: its commands will be checked where it is imported");
		(void)str_copy(m->checked, sizeof(m->checked), MANIFEST_UNCHECKED);
		return image_facts_outside(&t->ids, stage->rootfs_fd, ret, e);
	}
	cli_tree_say("checking in a sandbox that its commands run");
	(void)str_copy(m->checked, sizeof(m->checked), MANIFEST_CHECKED);
	return image_check(&t->ids, stage->rootfs_fd, recipe, ret, e);
}

/* complete() - from a filled stage to an image with a name. */
static int complete(struct cli_tree *t, struct image_stage *stage, const struct recipe *recipe,
		    struct image_manifest *m, struct err *e)
{
	struct image_facts facts;
	char size[32];
	bool replaced;
	int r;

	if (inspect(t, stage, recipe, m, &facts, e) < 0)
		return -1;
	r = write_manifest(t, stage, m, &facts, e);
	image_facts_done(&facts);
	if (r < 0 || image_stage_publish(&t->store, &t->ids, stage, m->name, &replaced, e) < 0)
		return -1;
	if (replaced)
		cli_tree_say("replaced the image of that name; what was installed over it in a "
			     "sandbox may not fit: mcp-sandbox reset <label>");
	fprintf(stderr, "%s: %s, %s, %llu packages, %s\n", m->name, m->system[0] ? m->system : "system",
		m->arch, (unsigned long long)m->package_count,
		str_format_size(m->bytes, size, sizeof(size)));
	puts(m->name);
	return fflush(stdout) == 0 ? 0 : err_sys(e, "write standard output");
}

/* A way to fill a stage. */
typedef int fill_fn(struct cli_tree *t, struct image_stage *stage, void *ctx, struct err *e);

static int make_image(struct cli_call *call, const struct recipe *recipe, struct image_manifest *m,
		      fill_fn *fill, void *ctx, struct err *e)
{
	struct image_stage stage;
	struct cli_tree t;
	int r;

	if (check_name(m->name, e) < 0 || cli_tree_begin(call, &t, e) < 0)
		return -1;
	r = image_in_use(&t.store, m->name, e) < 0 ||
			    store_min_free(&t.store, t.settings.min_free_bytes, e) < 0 ||
			    image_stage_begin(&t.store, &t.ids, &stage, e) < 0 ?
		    -1 :
		    0;
	if (r == 0) {
		r = fill(&t, &stage, ctx, e);
		if (r == 0)
			r = complete(&t, &stage, recipe, m, e);
		if (r < 0)
			image_stage_abandon(&t.store, &t.ids, &stage);
	}
	cli_tree_done(&t);
	return r < 0 ? -1 : CLI_OK;
}

/* ---- build ---- */

static int fill_by_bootstrap(struct cli_tree *t, struct image_stage *stage, void *ctx,
			     struct err *e)
{
	return image_bootstrap(&t->ids, stage, ctx, e);
}

/* split_packages() - "a,b" in place. Return: their number, -1. */
static int split_packages(char *text, const char *ret[EXTRA_PACKAGES_MAX], struct err *e)
{
	char *save = NULL;
	int n = 0;

	for (char *p = strtok_r(text, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		if (!recipe_is_package(p))
			return err_set(e, ERR_USAGE, "--packages: that is not a package's name");
		if (n == EXTRA_PACKAGES_MAX)
			return err_set(e, ERR_USAGE, "--packages: more than %d", EXTRA_PACKAGES_MAX);
		ret[n++] = p;
	}
	return n;
}

static int check_build(const struct image_build *b, struct err *e)
{
	if (b->suite && !recipe_is_suite(b->suite))
		return err_set(e, ERR_USAGE, "--suite: that is not a release's name");
	if (b->arch && !arch_has_program(b->arch))
		return err_set(e, ERR_USAGE, "--arch: sandboxes have the architecture amd64 or arm64");
	return 0;
}

int cli_image_build(struct cli_call *call, struct err *e)
{
	const char *recipe_name = call->arg_count ? call->args[0] : "default";
	const char *name = cli_option(call, "name"), *packages = cli_option(call, "packages");
	const char *extra[EXTRA_PACKAGES_MAX];
	_cleanup_free_ char *text = strdup(packages ? packages : "");
	struct image_manifest m = { .source = "bootstrap" };
	struct image_build build = { .suite = cli_option(call, "suite"),
				     .arch = cli_option(call, "arch"),
				     .package = extra,
				     .say = cli_tree_say };
	struct recipe recipe;
	int count, r;

	if (!text)
		return err_set(e, ERR_NOMEM, "no memory");
	count = split_packages(text, extra, e);
	if (count < 0 || check_build(&build, e) < 0 || recipe_load(&recipe, recipe_name, e) < 0)
		return -1;
	build.recipe = &recipe;
	build.package_count = (size_t)count;
	(void)str_copy(m.recipe, sizeof(m.recipe), recipe_name);
	(void)str_copy(m.arch, sizeof(m.arch), build.arch ? build.arch : arch_own());
	r = str_copy(m.name, sizeof(m.name), name ? name : recipe_name) < 0 ?
		    err_set(e, ERR_USAGE, "malformed image name") :
		    make_image(call, &recipe, &m, fill_by_bootstrap, &build, e);
	recipe_done(&recipe);
	return r;
}

/* ---- import ---- */

/* What an archive turns out to be while it is imported. */
struct import {
	const char *file;
	struct image_manifest *m;
	struct recipe recipe; /* commands that have to run; none when they have run already */
};

static int check_arch(const struct cli_tree *t, const struct image_stage *stage, struct image_manifest *m,
		      struct err *e)
{
	char arch[ARCH_NAME_MAX];

	if (arch_of_tree(&t->ids, stage->rootfs_fd, arch, e) < 0)
		return -1;
	(void)str_copy(m->arch, sizeof(m->arch), arch[0] ? arch : arch_own());
	if (!arch_is_foreign(arch))
		return 0;
	(void)err_set(e, ERR_HOST, "the archive holds a system for %s, and sandboxes here are %s", arch,
		      arch_own());
	return err_remedy(e, "import it on a machine of its own kind, or one for %s here", arch_own());
}

/* take_promises() - what an archive of ours says about itself. It may be anybody's: a recipe's name counts
 * when we know it, and it can only make the check stricter. */
static void take_promises(struct import *im, const struct tar_report *report)
{
	struct image_manifest said;

	if (manifest_parse(report->skipped, report->skipped_len, &said, NULL) < 0 || !said.recipe[0])
		return;
	if (recipe_load(&im->recipe, said.recipe, NULL) < 0) {
		cli_tree_say("made by a recipe that this version does not have: only its bash is checked");
		return;
	}
	(void)str_copy(im->m->recipe, sizeof(im->m->recipe), said.recipe);
	if (strcmp(said.checked, MANIFEST_UNCHECKED) != 0)
		recipe_done(&im->recipe);
}

static int unpack_archive(struct cli_tree *t, const struct image_stage *stage, const char *file,
			  struct tar_report *ret, struct err *e)
{
	struct tree_unpack u = { .tree_fd = stage->rootfs_fd, .skip = EXPORTED_MANIFEST };
	int r;

	u.archive_fd = cli_tree_open_archive(file, e);
	if (u.archive_fd < 0)
		return -1;
	r = cli_tree_room(t, UINT64_MAX, &u.max_bytes, e);
	if (r == 0) {
		cli_tree_say("unpacking");
		r = tree_unpack(&t->ids, &u, ret, e);
		cli_tree_say_report(ret);
	}
	close_fd(&u.archive_fd);
	return r;
}

static int fill_from_archive(struct cli_tree *t, struct image_stage *stage, void *ctx,
			     struct err *e)
{
	struct tar_report report = { 0 };
	struct import *im = ctx;

	if (unpack_archive(t, stage, im->file, &report, e) < 0 || check_arch(t, stage, im->m, e) < 0)
		return -1;
	take_promises(im, &report);
	return image_finish(&t->ids, stage->rootfs_fd, NULL, e);
}

/* name_from_file() - "/tmp/Debian-12.tar.gz" -> "debian-12". */
static int name_from_file(const char *file, char ret[NAME_MAX_LEN], struct err *e)
{
	static const char *const endings[] = { ".gz", ".zst", ".xz", ".bz2", ".tgz", ".txz", ".tar" };
	const char *slash = strrchr(file, '/');
	char text[NAME_MAX_LEN];

	if (str_copy(text, sizeof(text), slash ? slash + 1 : file) < 0)
		text[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
		size_t len = strlen(text), cut = strlen(endings[i]);

		if (len > cut && strcasecmp(text + len - cut, endings[i]) == 0)
			text[len - cut] = '\0';
	}
	for (char *p = text; *p; p++)
		*p = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
	(void)str_copy(ret, NAME_MAX_LEN, text);
	if (str_is_name(ret, NAME_MAX_LEN - 1))
		return 0;
	(void)err_set(e, ERR_USAGE, "the file's name is no name for an image");
	return err_remedy(e, "add --name N");
}

int cli_image_import(struct cli_call *call, struct err *e)
{
	struct image_manifest m = { .source = "import" };
	struct import im = { .file = call->args[0], .m = &m };
	const char *name = cli_option(call, "name");
	int r;

	if (name ? str_copy(m.name, sizeof(m.name), name) < 0 :
		   name_from_file(call->args[0], m.name, e) < 0)
		return name ? err_set(e, ERR_USAGE, "malformed image name") : -1;
	r = make_image(call, &im.recipe, &m, fill_from_archive, &im, e);
	recipe_done(&im.recipe);
	return r;
}

/* ---- export ---- */

static int export_image(struct cli_tree *t, const char *name, int archive_fd, struct err *e)
{
	struct tree_pack p = { .extra = EXPORTED_MANIFEST, .archive_fd = archive_fd };
	_cleanup_fd_ int rootfs = store_image_open_any(&t->store, name, e);
	struct image_manifest m;
	struct buf text;
	int r;

	if (rootfs < 0 || manifest_load(t->store.images_fd, name, &m, e) < 0)
		return -1;
	buf_init(&text, MANIFEST_FILE_MAX);
	manifest_write(&m, false, &text);
	p.tree_fd = rootfs;
	p.extra_data = text.data;
	p.extra_len = text.len;
	r = text.overflow ? err_set(e, ERR_LIMIT, "the manifest is too long") :
			    tree_pack(&t->ids, &p, e);
	buf_done(&text);
	return r;
}

int cli_image_export(struct cli_call *call, struct err *e)
{
	const char *file = call->arg_count > 1 ? call->args[1] : "-";
	struct cli_archive_out out;
	struct cli_tree t;
	int r;

	if (check_name(call->args[0], e) < 0 || cli_tree_begin(call, &t, e) < 0)
		return -1;
	r = cli_archive_create(&out, file, e);
	if (r == 0)
		r = export_image(&t, call->args[0], out.fd, e);
	r = cli_archive_finish(&out, r, e);
	cli_tree_done(&t);
	return r < 0 ? -1 : CLI_OK;
}

/* ---- list, rm ---- */

static void print_row(const struct image_manifest *m)
{
	char size[32];

	printf("%-20s %-34s %-7s %10s  %-20s %s\n", m->name, m->system, m->arch,
	       str_format_size(m->bytes, size, sizeof(size)), m->created,
	       m->recipe[0] ? m->recipe : m->source);
}

static int list(struct cli_tree *t, bool json, struct err *e)
{
	char name[NAME_MAX_LEN] = "";
	struct image_manifest m;
	struct buf text;
	int r, n = 0;

	buf_init(&text, LIST_JSON_MAX);
	while ((r = image_next(&t->store, name, name, e)) == 1) {
		struct err damaged;

		if (manifest_load(t->store.images_fd, name, &m, &damaged) < 0)
			cli_print_error(&damaged);
		if (json)
			(void)buf_append_str(&text, n ? ",\n " : "[");
		if (json)
			manifest_write(&m, false, &text);
		else if (n == 0)
			printf("%-20s %-34s %-7s %10s  %-20s %s\n", "NAME", "SYSTEM", "ARCH", "SIZE",
			       "CREATED", "FROM");
		if (!json)
			print_row(&m);
		n++;
	}
	if (json && r == 0)
		printf("%s%s]\n", n ? "" : "[", text.data ? text.data : "");
	buf_done(&text);
	return r;
}

int cli_image_list(struct cli_call *call, struct err *e)
{
	struct cli_tree t;
	int r;

	if (cli_tree_begin(call, &t, e) < 0)
		return -1;
	r = list(&t, cli_option(call, "json") != NULL, e);
	cli_tree_done(&t);
	return r < 0 ? -1 : CLI_OK;
}

int cli_image_rm(struct cli_call *call, struct err *e)
{
	struct cli_tree t;
	int r;

	if (check_name(call->args[0], e) < 0 || cli_tree_begin(call, &t, e) < 0)
		return -1;
	r = image_remove(&t.store, &t.ids, call->args[0], e);
	cli_tree_done(&t);
	return r < 0 ? -1 : CLI_OK;
}
