/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/image_bootstrap.c - run the host's bootstrap tool over an empty tree
 *
 * Runs in: the command line's "image build"; the tool and the maintainer scripts it runs are in a box that
 * can write nothing but the tree. Everything on its command line is from a closed alphabet
 * (image_recipe.c) or from the host's apt.
 *
 * mmdebstrap is preferred: it takes several archives (security updates are in from the start), leaves out
 * manuals while unpacking, and is twice as fast. "unshare" is its mode for a root that may not make
 * device nodes: it binds those it finds. debootstrap believes the same of an LXC container.
 *
 * For another architecture the programs of the tree run through qemu's user emulation, which the kernel starts
 * (binfmt_misc); without it both tools fail in the middle, so it is tried first.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/str.h"
#include "runtime/image.h"
#include "runtime/image_apt.h"
#include "runtime/image_arch.h"
#include "runtime/image_box.h"
#include "runtime/image_run.h"

enum { ARGS_MAX = 96, STRINGS_MAX = 128 * 1024, ENV_MAX = 16 };

/* An argument vector and the strings made for it. */
struct args {
	char *argv[ARGS_MAX];
	size_t count;
	char *made[ARGS_MAX]; /* to be freed */
	size_t made_count;
	bool failed;
};

static void args_add(struct args *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void args_add(struct args *a, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (a->count >= ARGS_MAX - 1 || vasprintf(&text, fmt, ap) < 0) {
		a->failed = true;
	} else {
		a->made[a->made_count++] = text;
		a->argv[a->count++] = text;
	}
	va_end(ap);
}

static void args_done(struct args *a)
{
	for (size_t i = 0; i < a->made_count; i++)
		free(a->made[i]);
}

/* package_list() - the recipe's packages and the caller's, joined by commas. */
static int package_list(const struct image_build *b, const struct apt_host *host, struct buf *ret)
{
	for (size_t i = 0; i < b->recipe->package_count; i++)
		(void)buf_printf(ret, "%s%s", ret->len ? "," : "", b->recipe->package[i]);
	for (size_t i = 0; i < b->package_count; i++)
		(void)buf_printf(ret, ",%s", b->package[i]);
	/* apt inside the sandbox must be able to check who serves it */
	for (size_t i = 0; i < host->source_count; i++) {
		if (strncmp(host->source[i].uri, "https:", 6) == 0) {
			(void)buf_append_str(ret, ",ca-certificates");
			break;
		}
	}
	return ret->overflow ? -1 : 0;
}

static const char *find_keyring(void)
{
	static const char *const names[] = { "/usr/share/keyrings/debian-archive-keyring.gpg",
					     "/usr/share/keyrings/debian-archive-keyring.pgp" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (access(names[i], R_OK) == 0)
			return names[i];
	}
	return NULL;
}

static const char *suite_of(const struct image_build *b, const struct apt_host *host)
{
	if (b->suite)
		return b->suite;
	return host->codename[0] ? host->codename : "stable";
}

/* add_dpkg_options() - our dpkg configuration, already in force while the tree is made. */
static void add_dpkg_options(struct args *a)
{
	for (const struct recipe_text *f = recipe_files; f->name; f++) {
		const char *p = f->text;

		if (strncmp(f->name, "etc/dpkg/dpkg.cfg.d/", 20) != 0)
			continue;
		for (; *p; p += strcspn(p, "\n"), p += *p == '\n') {
			int len = (int)strcspn(p, "\n");

			if (len > 0 && *p != '#')
				args_add(a, "--dpkgopt=%.*s", len, p);
		}
	}
}

static void add_sources(struct args *a, const struct apt_host *host, const char *suite)
{
	const char *keyring = find_keyring();
	char line[APT_LINE_MAX];

	for (size_t i = 0; i < host->source_count; i++) {
		if (apt_source_line(host, i, suite, keyring, line) == 0)
			args_add(a, "%s", line);
	}
}

static void mmdebstrap_args(struct args *a, const struct image_build *b,
			    const struct apt_host *host, const char *packages)
{
	const char *suite = suite_of(b, host);

	args_add(a, "/usr/bin/mmdebstrap");
	args_add(a, "--mode=unshare");
	args_add(a, "--format=directory");
	args_add(a, "--variant=minbase");
	args_add(a, "--skip=chroot/mount/sys");
	args_add(a, "--include=%s", packages);
	if (b->arch)
		args_add(a, "--architectures=%s", b->arch);
	for (size_t i = 0; i < host->option_count; i++)
		args_add(a, "--aptopt=%s", host->option[i]);
	add_dpkg_options(a);
	args_add(a, "%s", suite);
	args_add(a, "/target");
	add_sources(a, host, suite);
}

static void debootstrap_args(struct args *a, const char *tool, const struct image_build *b,
			     const struct apt_host *host, const char *packages)
{
	const char *keyring = find_keyring();
	const char *suite = suite_of(b, host);

	args_add(a, "%s", tool);
	args_add(a, "--variant=minbase");
	args_add(a, "--include=%s", packages);
	if (b->arch)
		args_add(a, "--arch=%s", b->arch);
	if (keyring)
		args_add(a, "--keyring=%s", keyring);
	args_add(a, "%s", suite);
	args_add(a, "/target");
	/* one archive only; the one that carries the plain suite */
	for (size_t i = 0; i < host->source_count; i++) {
		if (strcmp(host->source[i].suite, host->codename) == 0) {
			args_add(a, "%s", host->source[i].uri);
			break;
		}
	}
}

static int choose_tool(struct args *a, const struct image_build *b, const struct apt_host *host,
		       const char *packages, struct err *e)
{
	static const char *const debootstrap[] = { "/usr/sbin/debootstrap", "/usr/bin/debootstrap" };

	if (access("/usr/bin/mmdebstrap", X_OK) == 0 && access("/usr/bin/apt-get", X_OK) == 0) {
		mmdebstrap_args(a, b, host, packages);
		return a->failed ? err_set(e, ERR_LIMIT, "too many packages") : 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(debootstrap); i++) {
		if (access(debootstrap[i], X_OK) != 0)
			continue;
		debootstrap_args(a, debootstrap[i], b, host, packages);
		return a->failed ? err_set(e, ERR_LIMIT, "too many packages") : 0;
	}
	(void)err_set(e, ERR_HOST, "neither mmdebstrap nor debootstrap is installed");
	return err_remedy(e, "install one of them (Debian: apt-get install mmdebstrap), or import an "
			     "image that was built elsewhere");
}

/* tool_env() - small and fixed, but for the proxy: the operator's own way to the outside. */
static void tool_env(char *env[ENV_MAX], char (*text)[APT_LINE_MAX])
{
	static const char *const fixed[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp",
					     "TMPDIR=/tmp", "LC_ALL=C.UTF-8",
					     "DEBIAN_FRONTEND=noninteractive", "container=lxc" };
	static const char *const proxies[] = { "http_proxy", "https_proxy", "no_proxy" };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++) {
		(void)str_copy(text[n], APT_LINE_MAX, fixed[i]);
		env[n] = text[n];
		n++;
	}
	for (size_t i = 0; i < ARRAY_SIZE(proxies); i++) {
		const char *value = getenv(proxies[i]);

		if (!value || snprintf(text[n], APT_LINE_MAX, "%s=%s", proxies[i], value) >=
				      APT_LINE_MAX)
			continue;
		env[n] = text[n];
		n++;
	}
	env[n] = NULL;
}

static int run_tool(const struct idrange *ids, const struct image_stage *stage,
		    const struct image_build *b, char *const argv[], struct err *e)
{
	char *env[ENV_MAX], text[ENV_MAX][APT_LINE_MAX];
	_cleanup_fd_ int tree = box_tree(stage->rootfs_fd, "", e);
	struct box box = { .role = BOX_BOOTSTRAP,
			   .mounts = { { tree, "/target", true } },
			   .mount_count = 1,
			   .stdin_fd = -1,
			   .stderr_fd = -1,
			   .argv = argv,
			   .envp = env };
	struct image_run run;
	int r;

	if (tree < 0 || image_run_init(&run, e) < 0)
		return -1;
	tool_env(env, text);
	run.say = b->say;
	run.waiting = "still at it";
	run.mark = "E: "; /* apt, mmdebstrap and debootstrap agree on that */
	box.stdout_fd = run.log_write; /* debootstrap reports there */
	r = image_run_add(&run, ids, &box, e);
	if (r == 0)
		r = image_run_wait(&run, e);
	if (r == 0 && run.status[0] != 0) {
		r = image_run_blame(&run, e, "the bootstrap tool failed");
		(void)err_remedy(e, "the lines above tell more; packages come from where the host's own "
				    "apt gets them");
	}
	image_run_done(&run);
	return r;
}

int image_bootstrap(const struct idrange *ids, const struct image_stage *stage,
		    const struct image_build *build, struct err *e)
{
	struct apt_host *host = calloc(1, sizeof(*host));
	struct args args = { .count = 0 };
	struct buf packages;
	int r = -1;

	if (!host)
		return err_set(e, ERR_NOMEM, "no memory for the host's apt configuration");
	if (arch_is_foreign(build->arch) && arch_try(ids, build->arch, e) < 0) {
		free(host);
		return -1;
	}
	buf_init(&packages, STRINGS_MAX);
	if (apt_host_read(ids, host, e) == 0) {
		if (package_list(build, host, &packages) < 0)
			(void)err_set(e, ERR_LIMIT, "too many packages");
		else if (choose_tool(&args, build, host, packages.data, e) == 0)
			r = run_tool(ids, stage, build, args.argv, e);
	}
	args_done(&args);
	buf_done(&packages);
	free(host);
	return r < 0 ? -1 : image_finish(ids, stage->rootfs_fd, build->recipe, e);
}
