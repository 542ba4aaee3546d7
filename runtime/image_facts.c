/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/image_facts.c - what an image says about itself
 *
 * Runs in: the command line's "image" verbs. The text is that of programs in the image, or of the host's
 * dpkg over the image's database, in a box without any right: bounded, and taken only where it has the
 * expected form.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/str.h"
#include "runtime/image.h"
#include "runtime/image_box.h"

/* The same lines as those of image_check.c. */
#define OUTSIDE_SCRIPT                                                                             \
	"[ ! -r /target/usr/lib/os-release ] || . /target/usr/lib/os-release\n"                    \
	"echo \"${PRETTY_NAME:-}\"; echo \"${VERSION_CODENAME:-}\"\n"                              \
	"dpkg-query --admindir=/target/var/lib/dpkg -W -f='${Package} ${Version}\\n' 2>/dev/null\n" \
	"exit 0\n"

/* take_line() - cut one line off *text into a fact; printable ASCII only. */
static void take_line(char **text, char ret[IMAGE_FACT_MAX])
{
	size_t len = strcspn(*text, "\n"), kept = 0;

	for (size_t i = 0; i < len && kept < IMAGE_FACT_MAX - 1; i++) {
		if ((*text)[i] >= 0x20 && (*text)[i] < 0x7f)
			ret[kept++] = (*text)[i];
	}
	ret[kept] = '\0';
	*text += len;
	*text += **text == '\n';
}

static bool is_package_line(const char *line, size_t len)
{
	const char *blank = memchr(line, ' ', len);

	if (!blank || blank == line || blank + 1 == line + len)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (line[i] < 0x20 || line[i] >= 0x7f || line[i] == '"' || line[i] == '\\')
			return false;
	}
	return true;
}

int image_facts_parse(char *text, struct image_facts *ret, struct err *e)
{
	struct buf packages;

	*ret = (struct image_facts){ 0 };
	buf_init(&packages, IMAGE_FACTS_TEXT_MAX);
	if (text) {
		take_line(&text, ret->system);
		take_line(&text, ret->suite);
		for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
			size_t len = strcspn(text, "\n");

			if (is_package_line(text, len))
				(void)buf_printf(&packages, "%.*s\n", (int)len, text);
		}
	}
	ret->packages = packages.len > 0 ? packages.data : strdup("");
	return ret->packages ? 0 : err_set(e, ERR_NOMEM, "no memory for the package list");
}

void image_facts_done(struct image_facts *f)
{
	free(f->packages);
	f->packages = NULL;
}

static int read_all(int fd, struct buf *ret, struct err *e)
{
	char text[8192];
	ssize_t n;

	while ((n = read(fd, text, sizeof(text))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "read what the image says about itself");
		if (buf_append(ret, text, (size_t)n) < 0)
			return err_set(e, ERR_LIMIT, "the image says too much about itself");
	}
	return 0;
}

/* run_script() - Return: what it printed in *ret, -1. */
static int run_script(const struct idrange *ids, int tree_fd, struct buf *ret, struct err *e)
{
	char *argv[] = { (char[]){ "/bin/sh" }, (char[]){ "-c" }, (char[]){ OUTSIDE_SCRIPT }, NULL };
	char *envp[] = { (char[]){ "PATH=/usr/bin:/bin" }, (char[]){ "LC_ALL=C" }, NULL };
	_cleanup_fd_ int out_read = -1, out_write = -1;
	struct box box = { .role = BOX_SANDBOX,
			   .mounts = { { tree_fd, "/target", false } },
			   .mount_count = 1,
			   .stdin_fd = -1,
			   .stderr_fd = -1,
			   .argv = argv,
			   .envp = envp };
	struct box_proc proc;
	int out[2], r;

	if (pipe2(out, O_CLOEXEC) < 0)
		return err_sys(e, "make a pipe");
	out_read = out[0];
	box.stdout_fd = out_write = out[1];
	if (box_start(ids, &box, &proc, e) < 0)
		return -1;
	close_fd(&out_write);
	r = read_all(out_read, ret, e);
	if (r < 0)
		box_kill(&proc);
	(void)box_wait(&proc);
	return r;
}

int image_facts_outside(const struct idrange *ids, int rootfs_fd, struct image_facts *ret,
			struct err *e)
{
	_cleanup_fd_ int tree = box_tree(rootfs_fd, "", e);
	struct buf text;
	int r;

	if (tree < 0)
		return -1;
	buf_init(&text, IMAGE_FACTS_TEXT_MAX);
	r = run_script(ids, tree, &text, e);
	if (r == 0)
		r = image_facts_parse(text.data, ret, e);
	buf_done(&text);
	return r;
}
