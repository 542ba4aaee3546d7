/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sys/test_layers.c - a layer and an image that hostile code wrote cannot lead creation astray
 *
 * Every mount point is replaced by everything that is not a directory, in the layer and in the image.
 * Links lead to a canary directory of the host. The sandbox must start, the thing must have been
 * renamed aside, and the canary must be as it was: no file more, no mount on it.
 */
#include <dirent.h>
#include <sys/xattr.h>

#include "tests/sys/box.h"

enum kind { KIND_LINK_ABSOLUTE, KIND_LINK_CHAIN, KIND_LINK_DANGLING, KIND_FILE, KIND_FIFO, KIND_COUNT };

static const char *const kind_names[KIND_COUNT] = { "a link to a host directory",
						    "a chain of links upwards", "a dangling link",
						    "a file", "a FIFO" };

static const struct {
	const char *name;
	uint32_t bit;
} targets[] = {
	{ "proc", LAUNCH_REPLACED_PROC },	    { "dev", LAUNCH_REPLACED_DEV },
	{ "sys", LAUNCH_REPLACED_SYS },	    { "tmp", LAUNCH_REPLACED_TMP },
	{ "run", LAUNCH_REPLACED_RUN },	    { "workspace", LAUNCH_REPLACED_WORKSPACE },
	{ "output", LAUNCH_REPLACED_OUTPUT },
};

static void canary_path(const struct box *b, char path[PATH_MAX])
{
	(void)snprintf(path, PATH_MAX, "%s/canary", b->home);
}

static void own(struct box *b, int dir_fd, const char *name)
{
	uid_t root = b->ids.base + ID_SANDBOX_ROOT;

	if (fchownat(dir_fd, name, root, root, AT_SYMLINK_NOFOLLOW) < 0)
		tap_bail("chown %s", name);
}

/* plant() - put something at dir/name. */
static void plant(struct box *b, const char *dir, const char *name, enum kind kind)
{
	char path[PATH_MAX], up[PATH_MAX + 32];
	int dir_fd = openat(b->home_fd, dir, O_PATH | O_DIRECTORY | O_CLOEXEC), r;

	canary_path(b, path);
	switch (kind) {
	case KIND_LINK_ABSOLUTE:
		r = symlinkat(path, dir_fd, name);
		break;
	case KIND_LINK_CHAIN:
		(void)snprintf(up, sizeof(up), "../../../../../../../..%s", path);
		r = symlinkat("etc/chain", dir_fd, name);
		(void)unlinkat(dir_fd, "etc/chain", 0);
		(void)mkdirat(dir_fd, "etc", 0755);
		own(b, dir_fd, "etc");
		r = r < 0 ? r : symlinkat(up, dir_fd, "etc/chain");
		own(b, dir_fd, "etc/chain");
		break;
	case KIND_LINK_DANGLING:
		r = symlinkat("/no/such/place", dir_fd, name);
		break;
	case KIND_FILE:
		r = mknodat(dir_fd, name, S_IFREG | 0644, 0);
		break;
	default:
		r = mknodat(dir_fd, name, S_IFIFO | 0644, 0);
		break;
	}
	if (r < 0)
		tap_bail("plant %s/%s", dir, name);
	own(b, dir_fd, name);
	(void)close(dir_fd);
}

/* canary_is_untouched() - empty, the same inode, and nothing mounted on it. */
static bool canary_is_untouched(const struct box *b, ino_t inode)
{
	static char mounts[256 * 1024];
	char path[PATH_MAX];
	int entries = 0;
	struct stat st;
	DIR *dir;

	canary_path(b, path);
	if (fd_read_file_at(AT_FDCWD, "/proc/self/mountinfo", mounts, sizeof(mounts)) < 0)
		return false;
	dir = opendir(path);
	while (dir != NULL && readdir(dir) != NULL)
		entries++;
	if (dir != NULL)
		(void)closedir(dir);
	return strstr(mounts, path) == NULL && stat(path, &st) == 0 && st.st_ino == inode &&
	       entries == 2;
}

/* aside_exists() - whether upper holds .replaced-NAME-*. */
static bool aside_exists(const struct box *b, const char *name)
{
	char path[PATH_MAX], start[64];
	const struct dirent *entry;
	bool found = false;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "%s/layer/upper", b->home);
	(void)snprintf(start, sizeof(start), ".replaced-%s-", name);
	dir = opendir(path);
	while (dir != NULL && (entry = readdir(dir)) != NULL)
		found = found || strncmp(entry->d_name, start, strlen(start)) == 0;
	if (dir != NULL)
		(void)closedir(dir);
	return found;
}

/* fresh_layer() - an empty layer, and the canary. Return: the canary's inode. */
static ino_t fresh_layer(struct box *b, const char *lower_name)
{
	char path[PATH_MAX];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/layer", b->home);
	if (nftw(path, box_remove_entry, 16, FTW_DEPTH | FTW_PHYS) < 0)
		tap_bail("remove the layer");
	close_fd(&b->layer_fd);
	b->layer_fd = b->req.layer_fd = box_mkdir(b, "layer", 0700);
	(void)close(box_mkdir(b, "layer/upper", 0755));
	(void)close(box_mkdir(b, "layer/work", 0755));
	canary_path(b, path);
	(void)rmdir(path);
	if (mkdir(path, 0777) < 0 || stat(path, &st) < 0)
		tap_bail("make the canary");
	b->req.lower_fd = openat(b->home_fd, lower_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return st.st_ino;
}

static int proc_is_proc(void *arg)
{
	struct stat st;

	(void)arg;
	return access("/proc/self/status", R_OK) == 0 && access("/dev/null", W_OK) == 0 &&
			       stat("/tmp", &st) == 0 && (st.st_mode & 07777) == 01777 ?
		       0 :
		       1;
}

/* check_start() - start over what was planted. want: the bits that must be reported. */
static void check_start(struct box *b, ino_t canary, uint32_t want, const char *what)
{
	if (!tap_int(box_start(b), 0, "%s: a sandbox starts", what)) {
		tap_diag("%s | %s", b->e.message, b->e.remedy);
		return;
	}
	tap_int(b->l.replaced, want, "%s: what was replaced is reported", what);
	tap_int(box_inside(b, true, proc_is_proc, NULL), 0, "%s: the right things are mounted", what);
	box_end(b);
	tap_ok(canary_is_untouched(b, canary), "%s: the host's directory is untouched", what);
}

static void test_every_target(struct box *b, enum kind kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		ino_t canary = fresh_layer(b, "image");
		char what[128];

		(void)snprintf(what, sizeof(what), "/%s is %s", targets[i].name, kind_names[kind]);
		plant(b, "layer/upper", targets[i].name, kind);
		check_start(b, canary, targets[i].bit, what);
		tap_ok(aside_exists(b, targets[i].name), "%s: it was kept under another name", what);
		/* Once repaired, it stays repaired. */
		check_start(b, canary, 0, what);
		close_fd(&b->req.lower_fd);
	}
}

static void test_all_at_once(struct box *b)
{
	ino_t canary = fresh_layer(b, "image");

	for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
		plant(b, "layer/upper", targets[i].name, (enum kind)(i % KIND_COUNT));
	check_start(b, canary, 0x7f, "every mount point replaced");
	close_fd(&b->req.lower_fd);
}

/* A hostile image: its mount points are links, its /etc/passwd is a FIFO, it has no /bin at all. */
static void make_hostile_image(struct box *b)
{
	(void)close(box_mkdir(b, "bad", 0755));
	(void)close(box_mkdir(b, "bad/etc", 0755));
	if (mknodat(b->home_fd, "bad/etc/passwd", S_IFIFO | 0644, 0) < 0)
		tap_bail("mkfifo");
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
		plant(b, "bad", targets[i].name, KIND_LINK_ABSOLUTE);
}

static void test_hostile_image(struct box *b)
{
	ino_t canary = fresh_layer(b, "bad");

	check_start(b, canary, 0x7f, "an image of links");
	b->req.layer_fd = -1;
	check_start(b, canary, 0, "an image of links without a layer");
	b->req.layer_fd = b->layer_fd;
	close_fd(&b->req.lower_fd);
}

static int list_has(void *arg)
{
	return access(arg, F_OK) == 0 ? 0 : errno;
}

/* Marks that only the overlay may write: whoever owns the layer's files could have forged them before
 * this mount, and the mount must not let them lead anywhere. */
static void test_forged_marks(struct box *b)
{
	ino_t canary = fresh_layer(b, "image");
	char path[PATH_MAX], target[PATH_MAX];

	(void)close(box_mkdir(b, "layer/upper/var", 0755));
	(void)snprintf(path, sizeof(path), "%s/layer/upper/var", b->home);
	canary_path(b, target);
	if (setxattr(path, "user.overlay.redirect", target, strlen(target), 0) < 0) {
		tap_skip("forged marks", "no user extended attributes on /var/tmp");
	} else {
		(void)snprintf(path, sizeof(path), "%s/canary/secret", b->home);
		(void)close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
		if (tap_int(box_start(b), 0, "a forged redirect: a sandbox starts")) {
			tap_ok(box_inside(b, true, list_has, (void *)(uintptr_t) "/var/secret") != 0,
			       "a forged redirect leads nowhere");
			box_end(b);
		}
		if (unlink(path) < 0)
			tap_bail("unlink %s", path);
	}
	tap_ok(canary_is_untouched(b, canary), "a forged redirect: the host is untouched");
	close_fd(&b->req.lower_fd);
}

static int list_proc_entries(void *arg)
{
	(void)arg;
	return access("/etc/inner", F_OK) == 0 ? 0 : errno;
}

/* Directories with content are what a layer normally has; they are mounted over and kept. */
static void test_plain_directories(struct box *b)
{
	ino_t canary = fresh_layer(b, "image");
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		char path[64];

		(void)snprintf(path, sizeof(path), "layer/upper/%s", targets[i].name);
		(void)close(box_mkdir(b, path, 0700));
		(void)snprintf(path, sizeof(path), "layer/upper/%s/kept", targets[i].name);
		box_file(b, path, "x");
	}
	(void)close(box_mkdir(b, "layer/upper/etc", 0755));
	box_file(b, "layer/upper/etc/inner", "x");
	check_start(b, canary, 0, "directories with content");
	tap_int(box_start(b), 0, "and once more");
	tap_int(box_inside(b, true, list_proc_entries, NULL), 0, "the layer's files are there");
	box_end(b);
	tap_ok(fstatat(b->home_fd, "layer/upper/proc/kept", &st, 0) == 0, "nothing in them was lost");
	close_fd(&b->req.lower_fd);
}

int main(int argc, char **argv)
{
	static struct box b;

	(void)argc;
	box_enter(argv);
	box_open(&b);
	for (int kind = 0; kind < KIND_COUNT; kind++)
		test_every_target(&b, (enum kind)kind);
	test_all_at_once(&b);
	make_hostile_image(&b);
	test_hostile_image(&b);
	test_forged_marks(&b);
	test_plain_directories(&b);
	box_close(&b);
	return tap_done();
}
