/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sys/test_trust.c - further certificates beside an image's own, whatever image and layer are
 *
 * The certificates are words here: creation copies bytes and reads none of them.
 */
#include "tests/sys/box.h"

#define BUNDLE "/etc/ssl/certs/ca-certificates.crt"
#define LOCAL  "/usr/local/share/ca-certificates/mcp-sandbox-0"
#define OURS   "first\nsecond\n"

static struct trust trust = { .count = 2, .end = { 6, 13 }, .id = 1 };

static void check_file(struct box *b, const char *path, const char *want, const char *what)
{
	tap_int(box_inside(b, true, box_cat, (void *)(uintptr_t)path), 0, "%s: %s is there", what, path);
	tap_str(b->text, want, "%s: and holds what it should", what);
}

static int append(void *arg)
{
	int fd = open(arg, O_WRONLY | O_APPEND);

	return fd < 0 || write(fd, "inside\n", 7) != 7 ? errno : 0;
}

/* As update-ca-certificates does it: a mount point would refuse. */
static int replace(void *arg)
{
	int fd = open("/etc/ssl/certs/new", O_WRONLY | O_CREAT | O_EXCL, 0644);

	return fd < 0 || write(fd, "new\n", 4) != 4 || rename("/etc/ssl/certs/new", arg) < 0 ? errno : 0;
}

static void start(struct box *b, const char *what)
{
	if (!tap_int(box_start(b), 0, "%s: a sandbox starts", what))
		tap_bail("%s | %s", b->e.message, b->e.remedy);
}

static void test_without_a_bundle(struct box *b)
{
	b->req.trust = NULL;
	start(b, "control");
	tap_int(box_inside(b, true, box_cat, (void *)(uintptr_t)BUNDLE), ENOENT, "control: the image has no bundle");
	box_end(b);
	b->req.trust = &trust;
	start(b, "no bundle");
	check_file(b, BUNDLE, OURS, "no bundle");
	check_file(b, "/usr/lib/ssl/cert.pem", OURS, "no bundle");
	check_file(b, LOCAL "1.crt", "first\n", "no bundle");
	check_file(b, LOCAL "2.crt", "second\n", "no bundle");
	box_end(b);
}

static void test_with_a_bundle(struct box *b)
{
	for (int layer = 0; layer < 2; layer++) {
		const char *what = layer ? "a layer" : "a read-only root";

		b->req.layer_fd = layer ? b->layer_fd : -1;
		start(b, what);
		check_file(b, BUNDLE, "image\n\n" OURS, what);
		check_file(b, "/etc/passwd", "root:x:0:0:root:/root:/bin/bash\n", what);
		tap_int(box_inside(b, true, append, (void *)(uintptr_t)BUNDLE), layer ? 0 : EROFS, "%s: writing to it",
			what);
		box_end(b);
	}
	start(b, "again");
	check_file(b, BUNDLE, "image\n\n" OURS "inside\n", "what a sandbox made of it is its own");
	tap_int(box_inside(b, true, replace, (void *)(uintptr_t)BUNDLE), 0, "a package puts another in its place");
	check_file(b, BUNDLE, "new\n", "and that is read");
	box_end(b);
}

static void check_refused(struct box *b, const char *what)
{
	tap_int(box_start(b), -1, "%s: creation fails", what);
	tap_ok(strstr(b->e.message, launch_stage_text(LAUNCH_TRUST)) && b->e.remedy[0], "%s: it says \"%s\"", what,
	       b->e.message);
	b->req.trust = NULL;
	start(b, "control");
	box_end(b);
	b->req.trust = &trust;
}

/* An image that comes from elsewhere: nothing of it is followed, nothing waits, nothing is hidden. */
static void test_strange_images(struct box *b)
{
	static const char bundle[] = "image" BUNDLE;

	if (unlinkat(b->home_fd, bundle, 0) < 0 || mknodat(b->home_fd, bundle, S_IFIFO | 0644, 0) < 0)
		tap_bail("mkfifo");
	check_refused(b, "its bundle is a FIFO");
	if (unlinkat(b->home_fd, bundle, 0) < 0 || symlinkat("/etc/shadow", b->home_fd, bundle) < 0)
		tap_bail("symlink");
	check_refused(b, "its bundle is a link");
	if (unlinkat(b->home_fd, bundle, 0) < 0 || unlinkat(b->home_fd, "image/etc/ssl/certs", AT_REMOVEDIR) < 0 ||
	    symlinkat("../pki", b->home_fd, "image/etc/ssl/certs") < 0)
		tap_bail("symlink");
	check_refused(b, "its directory is a link");
}

int main(int argc, char **argv)
{
	static struct box b;

	(void)argc;
	box_enter(argv);
	box_open(&b);
	trust.fd = fd_memfd_sealed("certificates", OURS, strlen(OURS), 0400, false);
	test_without_a_bundle(&b);
	(void)close(box_mkdir(&b, "image/etc/ssl", 0755));
	(void)close(box_mkdir(&b, "image/etc/ssl/certs", 0755));
	box_file(&b, "image" BUNDLE, "image\n");
	test_with_a_bundle(&b);
	test_strange_images(&b);
	(void)close(trust.fd);
	box_close(&b);
	return tap_done();
}
