/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sys/test_cgroup.c - the delegated subtree on a real cgroup2 mount
 *
 * Needs root and a writable cgroup2 mount. Works with and without controllers: without, limits are
 * refused or flagged, and that is what is checked. Everything happens in one directory of our own,
 * mcpt-cgroup-<pid>, which must be empty again at the end.
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "runtime/base/fd.h"
#include "runtime/base/sys.h"
#include "runtime/cgroup.h"
#include "runtime/cgroup_text.h"
#include "tests/unit/tap.h"

#define OTHER_OWNER "0badcafe"
#define KEY "amber-otter-1a2b3c"
#define RECORD_NAME "user.mcp.sandbox"

enum { TEST_UID = 61234 };

static char mount_point[PATH_MAX], base[PATH_MAX + 64];
static const struct limits limits = { .memory_bytes = 64 << 20, .cpu_milli = 500, .pids = 32,
				      .disk_bytes = 1 << 30 };

static bool find_mount(void)
{
	static char text[1 << 20];
	struct cgroup_mount m;
	const char *cursor = text;

	if (fd_read_file_at(AT_FDCWD, "/proc/self/mountinfo", text, sizeof(text)) < 0 ||
	    cgroup_text_next_mount(&cursor, &m) != 1)
		return false;
	memcpy(mount_point, m.point, sizeof(mount_point));
	(void)snprintf(base, sizeof(base), "%s/mcpt-cgroup-%d", mount_point, getpid());
	return true;
}

static bool exists(const char *dir, const char *name)
{
	char path[2 * PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return access(path, F_OK) == 0;
}

static void read_in(int dir_fd, const char *file, char *text, size_t size)
{
	if (fd_read_file_at(dir_fd, file, text, size) < 0)
		(void)snprintf(text, size, "(%s)", strerror(errno));
	text[strcspn(text, "\n")] = '\0';
}

/* linger() - do nothing until killed; not for ever, should the test die first. */
static void linger(void)
{
	(void)alarm(60);
	for (;;)
		(void)pause();
}

/* start_in() - a process in a cgroup from its first instruction. Like pid 1 of a sandbox it keeps no
 * descriptor: a copy of its keeper's would hold the lock. */
static pid_t start_in(int leaf_fd)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD,
				   .cgroup = (uint64_t)leaf_fd };
	pid_t pid = sys_clone3(&args, sizeof(args));

	if (pid == 0) {
		(void)close_range(3, ~0U, 0);
		linger();
	}
	return pid;
}

static int wait_status(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static bool was_killed(pid_t pid)
{
	int status = wait_status(pid);

	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* tree_open() - the test's own directory as a setting. */
static struct cgroup_tree tree_open(void)
{
	struct cgroup_tree tree;
	struct err e;

	if (cgroup_acquire(&tree, base, true, &e) != 0 || tree.root_fd < 0)
		tap_bail("cgroup_acquire %s: %s", base, e.message);
	return tree;
}

static struct cgroup_box box_open(const struct cgroup_tree *tree, const char *owner)
{
	struct cgroup_box box;
	struct err e;

	if (cgroup_box_create(tree, owner, KEY, &limits, true, &box, &e) < 0)
		tap_bail("cgroup_box_create: %s", e.message);
	return box;
}

/* ---- acquisition ---- */

static void test_setting(void)
{
	struct cgroup_tree tree = { .root_fd = -1 };
	struct err e;
	int strict;

	tap_int(cgroup_acquire(&tree, base, true, &e), 0, "setting: best effort takes it");
	tap_ok(tree.root_fd >= 0 && strcmp(tree.path, base) == 0, "setting: at that path");
	tap_ok(exists(base, "keeper"), "setting: made with a keeper leaf");
	tap_ok((tree.controllers == CGROUP_ALL) == (e.code == ERR_NONE),
	       "setting: a reason exactly when something is missing");
	strict = cgroup_acquire(&(struct cgroup_tree){ 0 }, base, false, &e);
	tap_int(strict, tree.controllers == CGROUP_ALL ? 0 : -1,
		"setting: enforce refuses exactly then");
	if (strict < 0) {
		tap_diag("%s / %s", e.message, e.remedy);
		tap_ok(strncmp(e.message, "cannot limit memory", 19) == 0, "refusal: says what");
		tap_ok(strstr(e.remedy, "SANDBOX_LIMITS=best-effort"), "refusal: says what to do");
		tap_ok(strlen(e.remedy) < sizeof(e.remedy) - 1, "refusal: is not cut");
	}
	cgroup_tree_done(&tree);
	tap_int(tree.root_fd, -1, "setting: done closes");
}

static void test_bad_settings(void)
{
	static const char *const rows[] = { "relative/path", "/tmp", "/proc/self/exe" };
	struct cgroup_tree tree;
	char deep[PATH_MAX + 128];
	struct err e;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		tap_int(cgroup_acquire(&tree, rows[i], i == 1, &e), -1, "bad setting: %s", rows[i]);
	tap_int(cgroup_acquire(&tree, "/tmp", true, &e), -1, "bad setting: best effort is no excuse");
	tap_int(e.code, ERR_CONFIG, "bad setting: a matter of configuration");
	(void)snprintf(deep, sizeof(deep), "%s/not-there/child", base);
	tap_int(cgroup_acquire(&tree, deep, false, &e), -1, "bad setting: missing parent");
	tap_ok(strstr(e.message, "No such file"), "bad setting: says so: %s", e.message);
}

/* in_child() - run a step in a process of its own and report its exit status. */
static int in_child(int (*fn)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(fn());
	status = wait_status(pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int private_step(void)
{
	struct cgroup_tree tree;
	char want[PATH_MAX + 64], path[PATH_MAX];
	struct err e;

	(void)snprintf(want, sizeof(want), "%s/mcp-sandbox/%d", mount_point, getpid());
	if (cgroup_acquire(&tree, "", true, &e) != 0 || strcmp(tree.path, want) != 0)
		return 1;
	memcpy(path, tree.path, sizeof(path));
	cgroup_tree_done(&tree);
	return access(path, F_OK) == 0 ? 2 : 0;
}

/* A keeper that is killed: its tree, its sandbox and what runs in it are somebody else's to clear. */
static void private_victim(int report_fd)
{
	struct cgroup_tree tree;
	struct cgroup_box box;
	struct err e;
	pid_t pid = -1;

	if (cgroup_acquire(&tree, "", true, &e) == 0 &&
	    cgroup_box_create(&tree, OWNER_DEFAULT, KEY, &limits, true, &box, &e) == 0)
		pid = start_in(cgroup_leaf_open(&box, 0, &e));
	(void)fd_write_full(report_fd, &pid, sizeof(pid));
	linger();
}

static void test_private_dead(void)
{
	int pipe_fd[2];
	char name[32], dir[PATH_MAX + 32];
	pid_t keeper, inner = -1;

	if (pipe2(pipe_fd, O_CLOEXEC) < 0)
		tap_bail("pipe2");
	keeper = fork();
	if (keeper == 0)
		private_victim(pipe_fd[1]);
	(void)fd_read_full(pipe_fd[0], &inner, sizeof(inner));
	tap_ok(inner > 0, "private: a sandbox runs");
	(void)snprintf(dir, sizeof(dir), "%s/mcp-sandbox", mount_point);
	(void)snprintf(name, sizeof(name), "%d", keeper);
	tap_int(in_child(private_step), 0, "private: another keeper beside it");
	tap_ok(exists(dir, name) && kill(inner, 0) == 0, "private: leaves the living one alone");
	(void)kill(keeper, SIGKILL);
	(void)wait_status(keeper);
	tap_int(in_child(private_step), 0, "private: another keeper after it died");
	tap_ok(!exists(dir, name), "private: clears the dead one's tree");
	tap_ok(was_killed(inner), "private: and what ran there");
	(void)close(pipe_fd[0]);
	(void)close(pipe_fd[1]);
}

static void test_private(void)
{
	if (access("/run/systemd/system", F_OK) == 0) {
		tap_skip_elsewhere("private tree", "systemd runs here and its scopes are used; natively tested where it does not");
		return;
	}
	tap_int(in_child(private_step), 0, "private: mcp-sandbox/<pid>, gone when done");
	test_private_dead();
	tap_ok(!exists(mount_point, "mcp-sandbox"), "private: the last one removes the parent");
}

/* ---- an ordinary user ---- */

static void give(const char *dir, uid_t uid)
{
	static const char *const files[] = { "", "/cgroup.procs", "/cgroup.threads",
					     "/cgroup.subtree_control" };
	char path[2 * PATH_MAX];

	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		tap_bail("mkdir %s", dir);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s%s", dir, files[i]);
		if (chown(path, uid, uid) < 0)
			tap_bail("chown %s", path);
	}
}

static void user_dir(char *path, size_t size)
{
	(void)snprintf(path, size, "%s/user", base);
}

static bool become_user_in(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool ok = fd >= 0 && (!dir[0] || fd_write_file_at(fd, "cgroup.procs", "0") == 0);

	(void)close(fd);
	return ok && setresgid(TEST_UID, TEST_UID, TEST_UID) == 0 &&
	       setresuid(TEST_UID, TEST_UID, TEST_UID) == 0;
}

static int user_alone(void)
{
	struct cgroup_tree tree, again;
	struct cgroup_box box;
	char dir[PATH_MAX + 128];
	struct err e;

	user_dir(dir, sizeof(dir));
	if (!become_user_in(dir))
		return 1;
	if (cgroup_acquire(&tree, "", true, &e) != 0 || strcmp(tree.path, dir) != 0)
		return 2;
	/* what the re-executed process sees: we are in the leaf now */
	if (cgroup_acquire(&again, "", true, &e) != 0 || strcmp(again.path, dir) != 0)
		return 3;
	if (cgroup_box_create(&again, OWNER_DEFAULT, KEY, &limits, true, &box, &e) < 0)
		return 4;
	if (start_in(cgroup_leaf_open(&box, 3, &e)) <= 0)
		return 5;
	if (cgroup_leaf_count(&box, 3) != 1 || cgroup_box_kill(&box) < 0)
		return 6;
	(void)wait(NULL);
	return cgroup_box_remove(&again, &box) < 0 ? 7 : 0;
}

static int user_not_alone(void)
{
	struct cgroup_tree tree;
	char dir[PATH_MAX + 128];
	int result;
	struct err e;
	pid_t other;

	user_dir(dir, sizeof(dir));
	if (!become_user_in(dir))
		return 1;
	other = fork();
	if (other == 0)
		linger();
	result = cgroup_acquire(&tree, "", false, &e);
	(void)kill(other, SIGKILL);
	(void)waitpid(other, NULL, 0);
	if (result == 0)
		return 2;
	/* no service manager to ask: the reason and a remedy */
	return result < 0 && !strstr(e.remedy, "SANDBOX_LIMITS=best-effort") ? 3 : 0;
}

/* A setting that names a cgroup of ours, from a place whose common parent is root's. */
static int user_outside(void)
{
	struct cgroup_tree tree;
	char dir[PATH_MAX + 128];
	struct err e;

	user_dir(dir, sizeof(dir));
	if (!become_user_in(mount_point))
		return 1;
	if (cgroup_acquire(&tree, dir, false, &e) != -1)
		return 2;
	return e.sys_errno == EACCES && e.remedy[0] != '\0' ? 0 : 3;
}

static int user_best_effort(void)
{
	struct cgroup_tree tree = { .root_fd = 99 };
	int result;
	struct err e;

	if (!become_user_in(mount_point))
		return 1;
	result = cgroup_acquire(&tree, "", true, &e);
	if (result == 1)
		return 0; /* a service manager is there to be asked */
	return result == 0 && tree.root_fd == -1 && tree.controllers == 0 && e.message[0] ? 0 : 2;
}

static void test_user(void)
{
	char dir[PATH_MAX + 128], leaf[PATH_MAX + 128 + sizeof("/keeper")];

	user_dir(dir, sizeof(dir));
	give(dir, TEST_UID);
	tap_int(in_child(user_alone), 0, "user: delegated and alone: moves into keeper, builds, removes");
	tap_ok(exists(dir, "keeper") && !exists(dir, OWNER_DEFAULT), "user: nothing but the leaf is left");
	(void)snprintf(leaf, sizeof(leaf), "%s/keeper", dir);
	tap_int(rmdir(leaf), 0, "user: leaf is empty");
	user_dir(dir, sizeof(dir));
	if (rmdir(dir) < 0)
		tap_bail("rmdir %s", dir);
	give(dir, TEST_UID);
	tap_int(in_child(user_not_alone), 0, "user: beside another process: not taken");
	tap_int(in_child(user_outside), 0, "user: a setting that cannot be reached is refused");
	tap_int(in_child(user_best_effort), 0, "user: nothing delegated, best effort: no cgroup");
	(void)rmdir(leaf);
	tap_int(rmdir(dir), 0, "user: nothing left");
}

/* ---- a sandbox's cgroup ---- */

static void check_limit(int dir_fd, bool have, const char *file, const char *want)
{
	char text[64];

	if (!have)
		return;
	read_in(dir_fd, file, text, sizeof(text));
	tap_str(text, want, "limits: %s", file);
}

static void test_limits(const struct cgroup_tree *tree)
{
	struct cgroup_box box = box_open(tree, OWNER_DEFAULT);
	unsigned int have = box.enforced;
	char dir[PATH_MAX + 128];
	struct stat st;
	struct err e;

	tap_int(have, tree->controllers, "limits: enforced = what there is");
	check_limit(box.dir_fd, have & CGROUP_MEMORY, "memory.max", "67108864");
	check_limit(box.dir_fd, have & CGROUP_MEMORY, "memory.high", "max");
	check_limit(box.dir_fd, have & CGROUP_CPU, "cpu.max", "50000 100000");
	check_limit(box.dir_fd, have & CGROUP_PIDS, "pids.max", "32");
	check_limit(box.init_fd, have & CGROUP_PIDS, "pids.max", "1");
	check_limit(cgroup_leaf_open(&box, 0, &e), have & CGROUP_MEMORY, "memory.oom.group", "1");
	check_limit(box.init_fd, have & CGROUP_MEMORY, "memory.oom.group", "0");
	tap_ok(fstat(box.dir_fd, &st) == 0 && (st.st_mode & 07777) == 0700,
	       "box: nobody else can lock its directory");
	tap_int(cgroup_box_remove(tree, &box), 0, "box: removed");
	(void)snprintf(dir, sizeof(dir), "%s/%s", base, OWNER_DEFAULT);
	tap_ok(access(dir, F_OK) < 0, "box: with the owner it was the last of");
}

static void test_odd_limits(const struct cgroup_tree *tree)
{
	static const struct {
		const char *desc;
		struct limits limits;
		const char *cpu, *memory;
	} rows[] = {
		{ "a thousandth of a processor", { .memory_bytes = 64 << 20, .cpu_milli = 1, .pids = 9 },
		  "1000 1000000", "67108864" },
		{ "a hundredth", { .memory_bytes = 64 << 20, .cpu_milli = 10, .pids = 9 },
		  "1000 100000", "67108864" },
		{ "many processors, bytes that are no page",
		  { .memory_bytes = (64 << 20) + 17, .cpu_milli = 128000, .pids = 9 },
		  "12800000 100000", "67108864" },
	};
	struct cgroup_box box;
	struct err e;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int made = cgroup_box_create(tree, OWNER_DEFAULT, KEY, &rows[i].limits, true, &box, &e);

		tap_int(made, 0, "limits: %s", rows[i].desc);
		if (made < 0)
			continue;
		check_limit(box.dir_fd, box.enforced & CGROUP_CPU, "cpu.max", rows[i].cpu);
		check_limit(box.dir_fd, box.enforced & CGROUP_MEMORY, "memory.max", rows[i].memory);
		tap_int(box.enforced, tree->controllers, "limits: %s: all in force", rows[i].desc);
		(void)cgroup_box_remove(tree, &box);
	}
}

static void test_refusals(const struct cgroup_tree *tree)
{
	struct cgroup_tree none = { .root_fd = -1 }, short_tree = *tree;
	struct limits zero = limits;
	struct cgroup_box box;
	struct err e;

	zero.memory_bytes = 0;
	tap_int(cgroup_box_create(tree, OWNER_DEFAULT, KEY, &zero, true, &box, &e), -1,
		"refused: zero memory");
	tap_int(cgroup_box_create(tree, "..", KEY, &limits, true, &box, &e), -1, "refused: owner ..");
	tap_int(cgroup_box_create(tree, OWNER_DEFAULT, "../x", &limits, true, &box, &e), -1,
		"refused: key ../x");
	tap_int(cgroup_box_create(&none, OWNER_DEFAULT, KEY, &limits, false, &box, &e), -1,
		"refused: no cgroup, enforce");
	tap_int(cgroup_box_create(&none, OWNER_DEFAULT, KEY, &limits, true, &box, &e), 0,
		"no cgroup, best effort: a box without directories");
	tap_ok(box.dir_fd == -1 && box.enforced == 0, "no cgroup: nothing enforced");
	tap_ok(cgroup_box_kill(&box) < 0 && errno == EBADF, "no cgroup: kill says so");
	tap_int(cgroup_box_remove(&none, &box), 0, "no cgroup: nothing to remove");
	short_tree.controllers &= ~(unsigned int)CGROUP_PIDS;
	tap_int(cgroup_box_create(&short_tree, OWNER_DEFAULT, KEY, &limits, false, &box, &e), -1,
		"refused: a controller is missing");
	tap_ok(strstr(e.message, "cannot limit") && strstr(e.remedy, "best-effort"),
	       "refused: %s", e.message);
	tap_ok(!exists(base, OWNER_DEFAULT), "refused: nothing is left of it");
}

static void test_life(const struct cgroup_tree *tree)
{
	struct cgroup_box box = box_open(tree, OWNER_DEFAULT);
	struct err e;
	int leaf = cgroup_leaf_open(&box, 5, &e);
	pid_t a, b, first;

	tap_ok(leaf >= 0, "leaf: made on first use");
	tap_int(cgroup_leaf_open(&box, 5, &e), leaf, "leaf: and used again");
	tap_int(cgroup_leaf_open(&box, CGROUP_LEAVES, &e), -1, "leaf: no more than there are");
	first = start_in(box.init_fd);
	a = start_in(leaf);
	b = start_in(cgroup_leaf_open(&box, 0, &e));
	tap_ok(first > 0 && a > 0 && b > 0, "processes start in leaves");
	tap_int(cgroup_leaf_count(&box, 5), 1, "leaf: one process");
	tap_int(cgroup_leaf_count(&box, 7), 0, "leaf: never used: none");
	tap_int(cgroup_box_count(&box), 3, "box: three processes");
	tap_ok(cgroup_box_remove(tree, &box) < 0 && errno == EBUSY, "box: not removed while in use");
	tap_ok(box.dir_fd >= 0, "box: still open then");
	tap_int(cgroup_leaf_kill(&box, 5), 0, "leaf: killed");
	tap_ok(was_killed(a), "leaf: its process is dead");
	tap_ok(kill(b, 0) == 0 && kill(first, 0) == 0, "leaf: and no other");
	a = start_in(cgroup_leaf_open(&box, 5, &e));
	(void)usleep(20000);
	tap_ok(a > 0 && waitpid(a, NULL, WNOHANG) == 0, "leaf: the next command in it lives");
	tap_int(cgroup_box_kill(&box), 0, "box: killed");
	tap_ok(was_killed(a) && was_killed(b) && was_killed(first), "box: everything is dead");
	tap_int(cgroup_box_count(&box), 0, "box: empty");
	tap_int(cgroup_box_remove(tree, &box), 0, "box: removed");
}

/* A frozen sandbox is killed without being thawed. */
static void test_frozen(const struct cgroup_tree *tree)
{
	struct cgroup_box box = box_open(tree, OWNER_DEFAULT);
	struct err e;
	pid_t pid = start_in(cgroup_leaf_open(&box, 0, &e));

	tap_int(fd_write_file_at(box.dir_fd, "cgroup.freeze", "1"), 0, "frozen");
	tap_int(cgroup_box_kill(&box), 0, "frozen: kill");
	tap_ok(was_killed(pid), "frozen: dead");
	tap_int(cgroup_box_remove(tree, &box), 0, "frozen: removed");
}

static void test_left_over(const struct cgroup_tree *tree)
{
	struct cgroup_box old = box_open(tree, OWNER_DEFAULT), box;
	struct err e;
	pid_t pid = start_in(cgroup_leaf_open(&old, 2, &e));

	tap_int(cgroup_box_create(tree, OWNER_DEFAULT, KEY, &limits, true, &box, &e), -1,
		"left over: not while its keeper holds it");
	tap_int(e.code, ERR_BUSY, "left over: busy then");
	tap_ok(kill(pid, 0) == 0, "left over: and untouched");
	cgroup_box_done(&old); /* what the death of a keeper does */
	tap_int(cgroup_box_create(tree, OWNER_DEFAULT, KEY, &limits, true, &box, &e), 0,
		"left over: replaced after that");
	tap_ok(was_killed(pid), "left over: its process is dead");
	tap_int(cgroup_box_count(&box), 0, "left over: the new one is empty");
	tap_int(cgroup_box_remove(tree, &box), 0, "left over: removed");
}

/* An empty left-over of a dead keeper goes when the next keeper comes. */
static void test_sweep(const struct cgroup_tree *tree)
{
	struct cgroup_box held = box_open(tree, OWNER_DEFAULT), dead = box_open(tree, OTHER_OWNER);
	struct cgroup_tree again;

	cgroup_box_done(&dead);
	again = tree_open();
	tap_ok(!exists(base, OTHER_OWNER), "sweep: an empty left-over is gone");
	tap_ok(exists(base, OWNER_DEFAULT "/" KEY), "sweep: a held one is not");
	cgroup_tree_done(&again);
	tap_int(cgroup_box_remove(tree, &held), 0, "sweep: removed");
}

static void test_owners(const struct cgroup_tree *tree)
{
	struct cgroup_box a = box_open(tree, OWNER_DEFAULT), b = box_open(tree, OTHER_OWNER);

	tap_int(cgroup_box_remove(tree, &a), 0, "owners: the same key twice, one removed");
	tap_ok(!exists(base, OWNER_DEFAULT) && exists(base, OTHER_OWNER "/" KEY),
	       "owners: the other stays");
	tap_int(cgroup_box_remove(tree, &b), 0, "owners: both removed");
}

static int contender(unsigned int n)
{
	struct cgroup_tree tree;
	struct cgroup_box box;
	char key[32];
	struct err e;

	if (cgroup_acquire(&tree, base, true, &e) != 0)
		return 1;
	(void)snprintf(key, sizeof(key), "k%u-00000%u", n, n);
	for (int i = 0; i < 100; i++) {
		if (cgroup_box_create(&tree, OWNER_DEFAULT, key, &limits, true, &box, &e) < 0) {
			tap_diag("contender %u, round %d: %s", n, i, e.message);
			return 2;
		}
		if (cgroup_box_remove(&tree, &box) < 0)
			return 3;
	}
	return 0;
}

/* Keepers side by side in one tree: each removes the owner's directory under the others' feet. */
static void test_contention(void)
{
	enum { KEEPERS = 4 };
	pid_t pids[KEEPERS];
	int bad = 0;

	for (unsigned int i = 0; i < KEEPERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(contender(i));
	}
	for (unsigned int i = 0; i < KEEPERS; i++)
		bad += wait_status(pids[i]) != 0;
	tap_int(bad, 0, "four keepers, one owner, a hundred sandboxes each");
	tap_ok(!exists(base, OWNER_DEFAULT), "and nothing left");
}

static void test_reserve(const struct cgroup_tree *tree)
{
	struct cgroup_box box = box_open(tree, OWNER_DEFAULT);
	bool have = box.enforced & CGROUP_PIDS;

	tap_int(cgroup_pids_reserve(&box, true), 0, "reserve: on");
	check_limit(box.dir_fd, have, "pids.max", "36");
	tap_int(cgroup_pids_reserve(&box, true), 0, "reserve: a second command starts");
	check_limit(box.dir_fd, have, "pids.max", "36");
	tap_int(cgroup_pids_reserve(&box, false), 0, "reserve: the first has started");
	check_limit(box.dir_fd, have, "pids.max", "36");
	tap_int(cgroup_pids_reserve(&box, false), 0, "reserve: both have");
	check_limit(box.dir_fd, have, "pids.max", "32");
	tap_int(cgroup_pids_reserve(&box, false), have ? -1 : 0, "reserve: off once too often");
	(void)cgroup_box_remove(tree, &box);
}

/* ---- the record ---- */

static const struct cgroup_record good = {
	.profile = "chat", .image = "default",
	.limits = { .memory_bytes = 1 << 30, .cpu_milli = 2000, .pids = 256, .disk_bytes = 1 << 30 },
	.best_effort = 1, .net = NET_NONE, .uplink = 1, .id_base = 0x60000000, .keeper_pid = 10, .init_pid = 11,
	.init_start_time = 12345, .generation = 7, .created_ns = 99, .trust = 5,
	.boot_id = "0b0b0b0b-0000-4000-8000-000000000001", .lost = 2, .unanswered = 1,
};

static void test_record_fields(const struct cgroup_box *box)
{
	struct {
		const char *desc;
		struct cgroup_record r;
	} rows[] = {
		{ "no profile", good },	  { "profile without an end", good }, { "image with a slash", good },
		{ "image without an end", good }, { "no memory", good },      { "no processors", good },
		{ "no processes", good }, { "best effort 2", good },	      { "network 9", good },
		{ "no keeper", good },	  { "negative pid 1", good },	      { "no start time", good },
		{ "no boot", good },	  { "boot without an end", good },
	};
	size_t n = 0;

	rows[n++].r.profile[0] = '\0';
	memset(rows[n].r.profile, 'a', sizeof(rows[n].r.profile));
	n++;
	memcpy(rows[n++].r.image, "a/b", 4);
	memset(rows[n].r.image, 'a', sizeof(rows[n].r.image));
	n++;
	rows[n++].r.limits.memory_bytes = 0;
	rows[n++].r.limits.cpu_milli = 0;
	rows[n++].r.limits.pids = 0;
	rows[n++].r.best_effort = 2;
	rows[n++].r.net = 9;
	rows[n++].r.keeper_pid = 0;
	rows[n++].r.init_pid = -1;
	rows[n++].r.init_start_time = 0;
	rows[n++].r.boot_id[0] = '\0';
	memset(rows[n].r.boot_id, 'a', sizeof(rows[n].r.boot_id));
	n++;
	for (size_t i = 0; i < n; i++)
		tap_int(cgroup_record_write(box, &rows[i].r), -1, "record: refused: %s", rows[i].desc);
}

static void test_record_damage(const struct cgroup_box *box)
{
	unsigned char bytes[512];
	struct cgroup_record r;
	ssize_t len = fgetxattr(box->dir_fd, RECORD_NAME, bytes, sizeof(bytes));
	unsigned int accepted = 0;

	tap_ok(len > (ssize_t)sizeof(r), "record: stored with a checksum");
	for (ssize_t i = 0; i < len; i++) {
		bytes[i] ^= 0x41;
		if (fsetxattr(box->dir_fd, RECORD_NAME, bytes, (size_t)len, 0) < 0)
			tap_bail("fsetxattr");
		accepted += cgroup_record_read(box->dir_fd, &r) != 0;
		bytes[i] ^= 0x41;
	}
	tap_int(accepted, 0, "record: no single changed byte of %zd is accepted", len);
	(void)fsetxattr(box->dir_fd, RECORD_NAME, bytes, (size_t)len - 1, 0);
	tap_int(cgroup_record_read(box->dir_fd, &r), 0, "record: cut short");
	bytes[len] = 0;
	(void)fsetxattr(box->dir_fd, RECORD_NAME, bytes, (size_t)len + 1, 0);
	tap_int(cgroup_record_read(box->dir_fd, &r), 0, "record: too long");
	(void)fsetxattr(box->dir_fd, RECORD_NAME, bytes, (size_t)len, 0);
	tap_int(cgroup_record_read(box->dir_fd, &r), 1, "record: undamaged again");
}

static void test_record(const struct cgroup_tree *tree)
{
	struct cgroup_box box = box_open(tree, OWNER_DEFAULT), none = { .dir_fd = -1 };
	struct cgroup_record r = { 0 };

	tap_int(cgroup_record_read(box.dir_fd, &r), 0, "record: none yet");
	tap_int(cgroup_record_write(&box, &good), 0, "record: written");
	tap_int(cgroup_record_read(box.dir_fd, &r), 1, "record: read");
	tap_ok(r.version == 4 && strcmp(r.profile, "chat") == 0 && strcmp(r.image, "default") == 0 &&
		       r.limits.memory_bytes == 1 << 30 && r.limits.cpu_milli == 2000 &&
		       r.limits.pids == 256 && r.limits.disk_bytes == 1 << 30 && r.best_effort == 1 &&
		       r.net == NET_NONE && r.uplink == 1 && r.id_base == 0x60000000 &&
		       r.keeper_pid == 10 && r.init_pid == 11 && r.init_start_time == 12345 && r.generation == 7 &&
		       r.created_ns == 99 && r.trust == 5 && strcmp(r.boot_id, good.boot_id) == 0 && r.lost == 2 &&
		       r.unanswered == 1,
	       "record: every field comes back");
	test_record_fields(&box);
	test_record_damage(&box);
	tap_int(cgroup_record_write(&none, &good), 0, "record: nowhere to keep it without a cgroup");
	(void)cgroup_box_remove(tree, &box);
	box = box_open(tree, OWNER_DEFAULT);
	tap_int(cgroup_record_read(box.dir_fd, &r), 0, "record: gone with its cgroup");
	(void)cgroup_box_remove(tree, &box);
}

/* ---- arguments across systemd-run ---- */

static void set_marker(pid_t pid, int fd)
{
	char marker[64];

	(void)snprintf(marker, sizeof(marker), "%d:%d", pid, fd);
	(void)setenv("_MCP_SANDBOX_SCOPE", marker, 1);
}

static int args_fd(const char *bytes, size_t len)
{
	int fd = memfd_create("arguments", MFD_CLOEXEC);

	if (fd < 0 || fd_write_full(fd, bytes, len) < 0)
		tap_bail("memfd");
	return fd;
}

static int args_case(const char *bytes, size_t len, pid_t pid, int *argc, char ***argv)
{
	static char name[] = "mcp-sandbox", verb[] = "@scope";
	static char *plain[] = { name, verb, NULL };
	struct err e;

	*argc = 2;
	*argv = plain;
	set_marker(pid, args_fd(bytes, len));
	return cgroup_scope_args(argc, argv, &e);
}

static void test_scope_args(void)
{
	static const char bytes[] = "mcp-sandbox\0exec\0a\0--\0echo $HOME \"x\"\n\0";
	char *normal[] = { (char[]){ "mcp-sandbox" }, (char[]){ "exec" }, NULL }, **argv = normal;
	struct err e;
	int argc = 2;

	tap_int(cgroup_scope_args(&argc, &argv, &e), 0, "arguments: an ordinary start");
	tap_ok(argc == 2 && argv == normal, "arguments: are left alone then");
	tap_int(args_case(bytes, sizeof(bytes), getpid(), &argc, &argv), 0, "arguments: read back");
	tap_ok(argc == 6 && strcmp(argv[4], "echo $HOME \"x\"\n") == 0 && argv[5][0] == '\0' && !argv[6],
	       "arguments: byte for byte");
	tap_int(args_case(bytes, sizeof(bytes), getpid() + 1, &argc, &argv), -1,
		"arguments: a marker that was inherited is not ours");
	tap_int(args_case("a\0b", 3, getpid(), &argc, &argv), -1, "arguments: cut short");
	tap_int(args_case("", 0, getpid(), &argc, &argv), -1, "arguments: none");
	(void)unsetenv("_MCP_SANDBOX_SCOPE");
}

int main(void)
{
	char leaf[2 * PATH_MAX];
	struct cgroup_tree tree;

	if (geteuid() != 0)
		return tap_skip_all("needs root");
	if (!find_mount() || access(mount_point, W_OK) < 0)
		return tap_skip_all("no writable cgroup2 mount");
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) /* a keeper is one, and the test kills keepers */
		tap_bail("PR_SET_CHILD_SUBREAPER");
	test_setting();
	test_bad_settings();
	test_private();
	test_user();
	tree = tree_open();
	test_limits(&tree);
	test_odd_limits(&tree);
	test_refusals(&tree);
	test_life(&tree);
	test_frozen(&tree);
	test_left_over(&tree);
	test_sweep(&tree);
	test_owners(&tree);
	test_contention();
	test_reserve(&tree);
	test_record(&tree);
	test_scope_args();
	cgroup_tree_done(&tree);
	(void)snprintf(leaf, sizeof(leaf), "%s/keeper", base);
	tap_int(rmdir(leaf), 0, "the keeper leaf is empty");
	tap_int(rmdir(base), 0, "nothing is left in the tree");
	return tap_done();
}
