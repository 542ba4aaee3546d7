/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/cgroup_acquire.c - find the cgroup subtree this process may build sandboxes in
 *
 * Runs in the keeper before the first sandbox, once outside the storage namespace and once in it:
 * every step finds its own result and changes nothing the second time. Trusted: procfs, cgroupfs, the
 * operator's setting. Afterwards sandboxes can be given the controllers in tree->controllers.
 *
 * A cgroup that passes controllers on to children may hold no process itself, so a process whose own
 * cgroup becomes the tree moves into a leaf named "keeper". Several keepers can meet there.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"
#include "runtime/base/sys.h"
#include "runtime/cgroup.h"
#include "runtime/cgroup_fs.h"
#include "runtime/cgroup_scope.h"
#include "runtime/cgroup_text.h"

enum { PROC_TEXT_MAX = 16 * 1024 * 1024, PRIVATE_TRIES = 8, DEAD_WAIT_MS = 100 };

#define KEEPER_LEAF "keeper"
#define PRIVATE_DIR "mcp-sandbox"
#define TREE_MARK "user.mcp.tree" /* on a directory that a keeper has settled in */
#define OR_BEST_EFFORT "or set SANDBOX_LIMITS=best-effort to run without limits"

/* What this process sees of cgroup v2. */
struct view {
	struct buf mountinfo;
	struct cgroup_mount mount;
	int mount_fd;
	char own[PATH_MAX]; /* beneath mount_fd; "" = its top */
	int own_fd;         /* -1: our cgroup is outside of what is mounted */
};

static void view_done(struct view *v)
{
	buf_done(&v->mountinfo);
	close_fd(&v->mount_fd);
	close_fd(&v->own_fd);
}

/* read_proc() - procfs files have no size: read to the end. */
static int read_proc(const char *path, struct buf *b)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char bytes[4096];
	ssize_t n;

	if (fd < 0)
		return -1;
	while ((n = read(fd, bytes, sizeof(bytes))) > 0) {
		if (buf_append(b, bytes, (size_t)n) < 0) {
			errno = ENOMEM;
			return -1;
		}
	}
	return (int)n;
}

static int open_cgroup2(const char *path)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;

	if (fd < 0 || fstatfs(fd, &fs) < 0)
		return -1;
	if (fs.f_type != CGROUP2_SUPER_MAGIC) {
		errno = ENODEV; /* something else was mounted over it, or it is cgroup v1 */
		return -1;
	}
	return take_fd(&fd);
}

/* use_mount() - the mount that shows our own cgroup is the one; failing that, any. */
static int use_mount(struct view *v, const struct cgroup_mount *m, const char *own)
{
	const char *rel = own ? cgroup_text_beneath(m->root, own) : NULL;
	_cleanup_fd_ int fd = -1, own_fd = -1;

	if (v->mount_fd >= 0 && !rel)
		return 0;
	fd = open_cgroup2(m->point);
	if (fd < 0)
		return 0;
	if (rel)
		own_fd = fd_open_beneath(fd, *rel ? rel : ".", O_RDONLY | O_DIRECTORY, 0);
	if (v->mount_fd >= 0 && own_fd < 0)
		return 0;
	close_fd(&v->mount_fd);
	v->mount = *m;
	v->mount_fd = take_fd(&fd);
	if (own_fd < 0)
		return 0;
	v->own_fd = take_fd(&own_fd);
	return str_copy(v->own, sizeof(v->own), rel) == 0;
}

static int view_open(struct view *v, struct err *e)
{
	_cleanup_(buf_done) struct buf text;
	struct cgroup_mount mount;
	char own[PATH_MAX];
	const char *cursor;
	bool have_own;

	buf_init(&text, PROC_TEXT_MAX);
	if (read_proc("/proc/self/mountinfo", &v->mountinfo) < 0 ||
	    read_proc("/proc/self/cgroup", &text) < 0)
		return err_sys(e, "read /proc/self/mountinfo and /proc/self/cgroup");
	have_own = cgroup_text_own(text.data, own, sizeof(own)) == 1;
	cursor = v->mountinfo.data;
	while (cgroup_text_next_mount(&cursor, &mount) == 1) {
		if (use_mount(v, &mount, have_own ? own : NULL) == 1)
			break;
	}
	if (v->mount_fd >= 0)
		return 0;
	(void)err_set(e, ERR_HOST, "this host has no cgroup v2 mounted");
	return err_remedy(e, "boot with systemd.unified_cgroup_hierarchy=1 on the kernel command "
			     "line, " OR_BEST_EFFORT);
}

/* ---- what a directory is to us ---- */

static bool has_mark(int fd, const char *name)
{
	char value[2];

	return fgetxattr(fd, name, value, sizeof(value)) == 1 && value[0] == '1';
}

static bool same_file(int a, int b)
{
	struct stat sa, sb;

	return a >= 0 && b >= 0 && fstat(a, &sa) == 0 && fstat(b, &sb) == 0 &&
	       sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

static bool is_owned(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == geteuid();
}

/* is_host_root() - root of the host or of a container with cgroups of its own. Root of a user's own
 * namespace sees the top of cgroupfs belong to nobody. */
static bool is_host_root(const struct view *v)
{
	return geteuid() == 0 && is_owned(v->mount_fd);
}

/* is_inner_top() - the top of a cgroup namespace; the real top has no cgroup.type. */
static bool is_inner_top(const struct view *v, int fd)
{
	return same_file(fd, v->mount_fd) && faccessat(fd, "cgroup.type", F_OK, 0) == 0;
}

/* is_delegated() - systemd marks what it delegated (user.delegate since 251, trusted.delegate for
 * root before). A directory that is ours below one that is not is where somebody else handed over. */
static bool is_delegated(const struct view *v, int fd)
{
	_cleanup_fd_ int parent = -1;

	if (has_mark(fd, "user.delegate") || has_mark(fd, "trusted.delegate"))
		return true;
	if (is_inner_top(v, fd))
		return is_owned(fd);
	if (geteuid() == 0 || same_file(fd, v->mount_fd) || !is_owned(fd))
		return false;
	parent = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return parent >= 0 && !is_owned(parent);
}

/* is_alone() - no process but this one in its cgroup: a client that starts two servers from one
 * delegated cgroup must not lose its own process to our leaf, so each asks for a cgroup then. */
static bool is_alone(int fd)
{
	char text[64], want[32];

	(void)snprintf(want, sizeof(want), "%d\n", getpid());
	return fd_read_file_at(fd, "cgroup.procs", text, sizeof(text)) > 0 &&
	       strcmp(text, want) == 0;
}

/* ---- settling ---- */

/* probe_clone() - whether children can be cloned into the tree from where we are: the kernel wants
 * write access to every cgroup on the way, and a container's filter may know no clone3. */
static int probe_clone(int leaf_fd, const char *path, struct err *e)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD,
				   .cgroup = (uint64_t)leaf_fd };
	pid_t pid = sys_clone3(&args, sizeof(args));

	if (pid == 0)
		_exit(0);
	if (pid > 0) {
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		return 0;
	}
	if (errno != EACCES)
		return err_sys(e, "start a process in cgroup %s", path);
	(void)err_sys(e, "start a process in cgroup %s", path);
	return err_remedy(e, "unset SANDBOX_CGROUP, or start from a cgroup that shares a parent "
			     "which belongs to this user");
}

/* is_within() - we are in the tree's keeper leaf already. */
static bool is_within(const struct view *v, int leaf_fd)
{
	return same_file(v->own_fd, leaf_fd);
}

static int settle(const struct view *v, struct cgroup_tree *t, struct err *e)
{
	_cleanup_fd_ int leaf = cgroup_fs_make(t->root_fd, KEEPER_LEAF);

	if (leaf < 0)
		return err_sys(e, "make cgroup %s/" KEEPER_LEAF, t->path);
	if (same_file(v->own_fd, t->root_fd)) {
		if (fd_write_file_at(leaf, "cgroup.procs", "0") < 0)
			return err_sys(e, "move into cgroup %s/" KEEPER_LEAF, t->path);
	} else if (!is_within(v, leaf) && probe_clone(leaf, t->path, e) < 0) {
		return -1;
	}
	(void)fsetxattr(t->root_fd, TREE_MARK, "1", 1, 0);
	t->controllers = cgroup_fs_enable(t->root_fd, CGROUP_ALL);
	/* a sandbox that spins must not keep its keeper waiting; best effort, the default is fair */
	(void)fd_write_file_at(leaf, "cpu.weight", "1000");
	cgroup_fs_sweep(t->root_fd);
	return 0;
}

/* ---- where the tree can be, in order ---- */

static int from_setting(struct cgroup_tree *t, const char *setting, struct err *e)
{
	if (setting[0] != '/' || str_copy(t->path, sizeof(t->path), setting) < 0)
		return err_set(e, ERR_CONFIG, "SANDBOX_CGROUP is not an absolute path");
	t->root_fd = open_cgroup2(setting);
	if (t->root_fd < 0 && errno == ENOENT && mkdir(setting, 0755) == 0)
		t->root_fd = open_cgroup2(setting);
	if (t->root_fd >= 0)
		return 0;
	if (errno == ENODEV)
		return err_set(e, ERR_CONFIG, "SANDBOX_CGROUP: %s is not in cgroup v2", setting);
	(void)err_sys(e, "SANDBOX_CGROUP: %s", setting);
	return err_remedy(e, "make the directory and give it, its cgroup.procs and its "
			     "cgroup.subtree_control to this user");
}

static int set_path(struct cgroup_tree *t, const struct view *v, const char *rel)
{
	int n = snprintf(t->path, sizeof(t->path), "%s%s%s", v->mount.point, *rel ? "/" : "", rel);

	return n > 0 && (size_t)n < sizeof(t->path) ? 0 : -1;
}

/* from_keeper_leaf() - Return: 1 when we are in the leaf of a tree already, 0. */
static int from_keeper_leaf(const struct view *v, struct cgroup_tree *t)
{
	const char *slash = strrchr(v->own, '/'), *name = slash ? slash + 1 : v->own;
	_cleanup_fd_ int parent = -1;
	char rel[PATH_MAX];

	if (v->own_fd < 0 || strcmp(name, KEEPER_LEAF) != 0)
		return 0;
	parent = openat(v->own_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0 || !(has_mark(parent, TREE_MARK) || is_delegated(v, parent)))
		return 0;
	memcpy(rel, v->own, sizeof(rel));
	rel[slash ? slash - v->own : 0] = '\0';
	if (set_path(t, v, rel) < 0)
		return 0;
	t->root_fd = take_fd(&parent);
	return 1;
}

/* from_own() - Return: 1 when our own cgroup is delegated and ours alone, 0. */
static int from_own(const struct view *v, struct cgroup_tree *t)
{
	if (v->own_fd < 0 || !(is_delegated(v, v->own_fd) || cgroup_scope_tried()) ||
	    !is_alone(v->own_fd) || set_path(t, v, v->own) < 0)
		return 0;
	t->root_fd = cgroup_fs_open(v->own_fd, ".");
	return t->root_fd >= 0;
}

/* remove_dead() - the private directory of a keeper that is gone, with whatever still runs there. */
static void remove_dead(int base_fd, const char *name)
{
	_cleanup_fd_ int fd = cgroup_fs_open(base_fd, name);

	if (fd < 0 || cgroup_fs_lock(&fd) < 0)
		return;
	(void)fd_write_file_at(fd, "cgroup.kill", "1");
	if (cgroup_fs_wait_empty(fd, DEAD_WAIT_MS) < 0)
		return;
	cgroup_fs_sweep(fd);
	(void)unlinkat(fd, KEEPER_LEAF, AT_REMOVEDIR);
	(void)unlinkat(base_fd, name, AT_REMOVEDIR);
}

/* make_private() - mcp-sandbox/<pid>, locked. Return: 1, 0 to try again, -1. */
static int make_private(const struct view *v, struct cgroup_tree *t, const char *name)
{
	_cleanup_fd_ int base = -1, fd = -1, leaf = -1;

	if (mkdirat(v->mount_fd, PRIVATE_DIR, 0755) < 0 && errno != EEXIST)
		return -1;
	base = cgroup_fs_open(v->mount_fd, PRIVATE_DIR);
	if (base < 0)
		return errno == ENOENT ? 0 : -1;
	(void)cgroup_fs_enable(base, CGROUP_ALL);
	cgroup_fs_each_pid(base, remove_dead);
	fd = cgroup_fs_make(base, name);
	/* another keeper may tidy up between any two steps; a leaf in a locked directory stays */
	leaf = fd < 0 || cgroup_fs_lock(&fd) < 0 ? -1 : cgroup_fs_make(fd, KEEPER_LEAF);
	if (leaf < 0)
		return errno == ENOENT || errno == EWOULDBLOCK || errno == ENODEV ? 0 : -1;
	t->root_fd = take_fd(&fd);
	return 1;
}

/* from_private() - root without systemd. A tree of its own for each keeper, so that servers with
 * different state directories cannot meet. */
static int from_private(const struct view *v, struct cgroup_tree *t, struct err *e)
{
	char name[16], rel[sizeof(PRIVATE_DIR) + sizeof(name)];
	int made = 0;

	(void)snprintf(name, sizeof(name), "%d", getpid());
	(void)snprintf(rel, sizeof(rel), PRIVATE_DIR "/%s", name);
	(void)cgroup_fs_enable(v->mount_fd, CGROUP_ALL);
	for (int i = 0; i < PRIVATE_TRIES && made == 0; i++)
		made = make_private(v, t, name);
	if (made != 1 || set_path(t, v, rel) < 0) {
		(void)err_sys(e, "make cgroup %s/%s", v->mount.point, rel);
		return err_remedy(e, "mount cgroup2 writable, " OR_BEST_EFFORT);
	}
	t->private_of = getpid();
	return 0;
}

/* ---- what is missing, and why ---- */

static void list_missing(unsigned int missing, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < CGROUP_CONTROLLER_COUNT; i++) {
		if (missing & cgroup_controllers[i].bit && used < size)
			used += (size_t)snprintf(text + used, size - used, "%s%s",
						 used ? ", " : "", cgroup_controllers[i].name);
	}
}

static const char *first_missing(unsigned int missing)
{
	for (size_t i = 0; i < CGROUP_CONTROLLER_COUNT; i++) {
		if (missing & cgroup_controllers[i].bit)
			return cgroup_controllers[i].name;
	}
	return "";
}

static int why_absent(const struct view *v, const char *name, const char *list, struct err *e)
{
	if (cgroup_text_v1_has(v->mountinfo.data, name)) {
		(void)err_set(e, ERR_HOST, "cannot limit %s: this host runs %s in cgroup v1", list, name);
		return err_remedy(e, "add systemd.unified_cgroup_hierarchy=1 to the kernel command "
				     "line and reboot, " OR_BEST_EFFORT);
	}
	(void)err_set(e, ERR_HOST, "cannot limit %s: the kernel was started without the %s "
				   "controller", list, name);
	if (strcmp(name, "memory") != 0)
		return err_remedy(e, "use a kernel with the %s controller, " OR_BEST_EFFORT, name);
	return err_remedy(e, "add cgroup_enable=memory to the line in /boot/firmware/cmdline.txt "
			     "(Raspberry Pi) or remove cgroup_disable=memory from the kernel command "
			     "line, reboot; " OR_BEST_EFFORT);
}

static int why_not_given(const struct view *v, const struct cgroup_tree *t, const char *list,
			 struct err *e)
{
	(void)err_set(e, ERR_HOST, "cannot limit %s: not delegated to %s", list, t->path);
	if (is_host_root(v))
		return err_remedy(e, "put Delegate=yes into the [Service] section of the unit, "
				     OR_BEST_EFFORT);
	return err_remedy(e, "put \"[Service]\" and \"Delegate=cpu cpuset io memory pids\" into "
			     "/etc/systemd/system/user@.service.d/delegate.conf, run \"systemctl "
			     "daemon-reload\", log in again; " OR_BEST_EFFORT);
}

static int explain(const struct view *v, const struct cgroup_tree *t, struct err *e)
{
	unsigned int missing = CGROUP_ALL & ~t->controllers;
	const char *name = first_missing(missing);
	char list[64];

	list_missing(missing, list, sizeof(list));
	if (cgroup_fs_has_controller(t->root_fd, name)) {
		(void)err_set(e, ERR_HOST, "cannot limit %s: other processes are in %s itself", list,
			      t->path);
		return err_remedy(e, "start mcp-sandbox as the only process of its cgroup or set "
				     "SANDBOX_CGROUP to an empty one, " OR_BEST_EFFORT);
	}
	if (cgroup_fs_has_controller(v->mount_fd, name))
		return why_not_given(v, t, list, e);
	return why_absent(v, name, list, e);
}

/* ---- the whole ---- */

/* locate() - Return: 0 with a tree, 1 re-execution will help, -1. */
static int locate(const struct view *v, struct cgroup_tree *t, const char *setting, struct err *e)
{
	bool host_root = is_host_root(v);

	if (setting[0] != '\0')
		return from_setting(t, setting, e);
	if (from_keeper_leaf(v, t) || from_own(v, t))
		return 0;
	if (cgroup_scope_usable(host_root, e))
		return 1;
	if (host_root && access("/run/systemd/system", F_OK) < 0)
		return from_private(v, t, e);
	return -1;
}

static int acquire(struct cgroup_tree *t, const char *setting, struct err *e)
{
	_cleanup_(view_done) struct view v = { .mount_fd = -1, .own_fd = -1 };
	int found;

	buf_init(&v.mountinfo, PROC_TEXT_MAX);
	if (view_open(&v, e) < 0)
		return -1;
	found = locate(&v, t, setting, e);
	if (found != 0)
		return found;
	if (settle(&v, t, e) < 0) {
		cgroup_tree_done(t);
		return -1;
	}
	return t->controllers == CGROUP_ALL ? 0 : explain(&v, t, e);
}

int cgroup_acquire(struct cgroup_tree *tree, const char *setting, bool best_effort, struct err *e)
{
	struct cgroup_tree found = { .root_fd = -1 };
	struct err why = { 0 };
	int result = acquire(&found, setting, &why);

	/* a setting that is wrong stays wrong: best effort is about what the host cannot do */
	if (result < 0 && (!best_effort || why.code == ERR_CONFIG)) {
		cgroup_tree_done(&found);
		*e = why;
		return -1;
	}
	*e = result < 0 ? why : (struct err){ 0 };
	*tree = found;
	return result > 0 ? 1 : 0;
}

void cgroup_tree_done(struct cgroup_tree *tree)
{
	if (tree->root_fd >= 0 && tree->private_of == getpid()) {
		_cleanup_fd_ int base = openat(tree->root_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		char name[16];

		(void)snprintf(name, sizeof(name), "%d", getpid());
		(void)unlinkat(tree->root_fd, KEEPER_LEAF, AT_REMOVEDIR);
		(void)unlinkat(base, name, AT_REMOVEDIR);
		(void)unlinkat(base, "../" PRIVATE_DIR, AT_REMOVEDIR); /* the last one out */
	}
	close_fd(&tree->root_fd);
	tree->private_of = 0;
	tree->controllers = 0;
	tree->path[0] = '\0';
}
