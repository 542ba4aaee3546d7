/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_sweep.c - what the trash worker removes, and what it must never touch
 *
 * Trees are made as a sandbox could make them: owned by sandbox ids, deep, with links to a canary
 * outside, names with line ends and bytes that are no text. Needs root (files of other ids).
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/helper.h"
#include "runtime/store.h"
#include "tests/unit/tap.h"

#define KEY "amber-otter-cc3a29"

static char tmp_path[] = "/tmp/mcpt-sweep-XXXXXX";
static char home[64], canary[64];
static struct store store;
static struct idrange ids = { .base = 0x60000000, .storage_ns_fd = -1, .lower_ns_fd = -1 };
static struct err error;

enum { ROOT_ID = ID_SANDBOX_ROOT, OTHER_ID = ID_SANDBOX_ROOT + 1000 };

/* open_label() - its workspace is where the trees are planted. */
static struct store_label open_label(void)
{
	struct store_label l;

	if (store_label_open(&store, &ids, OWNER_DEFAULT, KEY, true, &l, NULL, &error) < 0)
		tap_bail("%s", error.message);
	return l;
}

static void throw_away(struct store_label *l)
{
	if (store_label_reset(&store, l, true, &error) < 0)
		tap_bail("%s", error.message);
	store_label_done(l);
}

/* sweep() - Return: the worker's exit status, -2 when there was nothing to do. */
static int sweep(void)
{
	pid_t pid = store_sweep_start(&store, &ids, &error);
	int status;

	if (pid < 0)
		tap_bail("%s", error.message);
	if (pid == 0)
		return -2;
	if (waitpid(pid, &status, 0) != pid)
		tap_bail("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

static void give(int dir_fd, const char *name, uint32_t id, mode_t mode)
{
	if (fchownat(dir_fd, name, ids.base + id, ids.base + id, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (mode != 0 && fchmodat(dir_fd, name, mode, 0) < 0))
		tap_bail("give %s", name);
}

static void plant_file(int dir_fd, const char *name, uint32_t id)
{
	_cleanup_fd_ int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		tap_bail("plant %s", name);
	give(dir_fd, name, id, 0);
}

static void plant_dir(int dir_fd, const char *name, uint32_t id, mode_t mode)
{
	if (mkdirat(dir_fd, name, 0700) < 0)
		tap_bail("plant %s", name);
	give(dir_fd, name, id, mode);
}

static int canary_files(void)
{
	char path[128];
	int count = 0;

	for (int i = 0; i < 10; i++) {
		(void)snprintf(path, sizeof(path), "%s/sub/%d", canary, i);
		count += access(path, F_OK) == 0;
	}
	return count;
}

static void make_canary(void)
{
	char command[400];

	(void)snprintf(command, sizeof(command),
		       "mkdir -p %s/sub && cd %s/sub && touch 0 1 2 3 4 5 6 7 8 9 && chown -R %u:%u %s",
		       canary, canary, ids.base + ROOT_ID, ids.base + ROOT_ID, canary);
	if (system(command) != 0)
		tap_bail("canary");
}

/* ---- what is in a tree ---- */

static void test_kinds(void)
{
	struct store_label l = open_label();
	int fd = l.workspace_fd;
	char longest[256];

	memset(longest, 'n', 255);
	longest[255] = '\0';
	plant_file(fd, "plain", ROOT_ID);
	plant_file(fd, "line\nend", ROOT_ID);
	plant_file(fd, "\xff\xfe not text", ROOT_ID);
	plant_file(fd, "-rf", ROOT_ID);
	plant_file(fd, "...", ROOT_ID);
	plant_file(fd, longest, ROOT_ID);
	plant_file(fd, "of another id", OTHER_ID);
	plant_file(fd, "of the host's root", 0 - ids.base);
	plant_dir(fd, "closed", OTHER_ID, 0);
	plant_file(fd, "closed/file", OTHER_ID);
	plant_dir(fd, "sticky", OTHER_ID, 01777);
	plant_file(fd, "sticky/file", ROOT_ID);
	plant_dir(fd, "read-only", ROOT_ID, 0500);
	plant_file(fd, "read-only/file", ROOT_ID);
	if (mkfifoat(fd, "fifo", 0600) < 0 || mknodat(fd, "socket", S_IFSOCK | 0600, 0) < 0 ||
	    mknodat(fd, "device", S_IFCHR | 0600, 0) < 0 ||
	    symlinkat(canary, fd, "link") < 0 || symlinkat("../../../../..", fd, "up") < 0 ||
	    symlinkat("link/sub", fd, "through") < 0 || symlinkat("self", fd, "self") < 0)
		tap_bail("plant");
	throw_away(&l);
	tap_int(sweep(), 0, "kinds: everything a sandbox can make is removed");
	tap_int(sweep(), -2, "kinds: nothing is left");
	tap_int(canary_files(), 10, "kinds: what links point to is untouched");
}

static void test_deep(void)
{
	enum { LEVELS = 10000 };
	struct store_label l = open_label();
	int fd = dup(l.workspace_fd);

	for (int i = 0; i < LEVELS; i++) {
		int next;

		plant_dir(fd, "d", ROOT_ID, 0);
		if (i % 1000 == 0) {
			plant_file(fd, "f", OTHER_ID);
			if (symlinkat(canary, fd, "link") < 0)
				tap_bail("symlink");
		}
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close_fd(&fd);
		fd = next;
	}
	close_fd(&fd);
	throw_away(&l);
	tap_int(sweep(), 0, "deep: 10000 levels are removed");
	tap_int(sweep(), -2, "deep: nothing is left");
	tap_int(canary_files(), 10, "deep: the canary lives");
}

static void test_wide(void)
{
	enum { FILES = 6000, DIRS = 1000 };
	struct store_label l = open_label();
	char name[16];

	for (int i = 0; i < FILES + DIRS; i++) {
		(void)snprintf(name, sizeof(name), "%d", i);
		if (i < FILES)
			plant_file(l.workspace_fd, name, ROOT_ID);
		else
			plant_dir(l.workspace_fd, name, ROOT_ID, 0);
	}
	for (int i = FILES; i < FILES + DIRS; i += 3) {
		(void)snprintf(name, sizeof(name), "%d/f", i);
		plant_file(l.workspace_fd, name, ROOT_ID);
	}
	throw_away(&l);
	tap_int(sweep(), 0, "wide: 6000 files and 1000 directories are removed");
	tap_int(sweep(), -2, "wide: nothing is left");
}

/* ---- what cannot be removed ---- */

static int set_immutable(int fd, bool on)
{
	int flags;

	if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
		return -1;
	flags = on ? flags | FS_IMMUTABLE_FL : flags & ~FS_IMMUTABLE_FL;
	return ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

/* left() - names that end in this below the trash. */
static int left(const char *name)
{
	char command[256], text[32] = "";
	FILE *f;

	(void)snprintf(command, sizeof(command), "find %s/trash -xdev -name '%s' | wc -l", home, name);
	f = popen(command, "r");
	if (!f || !fgets(text, sizeof(text), f))
		tap_bail("find");
	(void)pclose(f);
	return atoi(text);
}

static void test_immutable(void)
{
	struct store_label l = open_label();
	_cleanup_fd_ int file = -1, dir = -1;

	plant_dir(l.workspace_fd, "dir", ROOT_ID, 0);
	plant_file(l.workspace_fd, "dir/inside", ROOT_ID);
	plant_file(l.workspace_fd, "stuck", ROOT_ID);
	plant_file(l.workspace_fd, "free", ROOT_ID);
	file = openat(l.workspace_fd, "stuck", O_RDONLY | O_CLOEXEC);
	dir = openat(l.workspace_fd, "dir", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (set_immutable(file, true) < 0 || set_immutable(dir, true) < 0) {
		tap_skip("immutable files", "this file system has no immutable flag");
		throw_away(&l);
		(void)sweep();
		return;
	}
	throw_away(&l);
	tap_int(sweep(), 1, "immutable: is reported, and the walk ends");
	tap_int(left("free"), 0, "immutable: what is beside it is removed");
	tap_int(left("stuck") + left("inside"), 2, "immutable: it is not");
	tap_int(sweep(), 1, "immutable: also the next time");
	(void)set_immutable(file, false);
	(void)set_immutable(dir, false);
	tap_int(sweep(), 0, "immutable: the walk goes on when the cause is gone");
	tap_int(sweep(), -2, "immutable: nothing is left");
}

static void test_mount(void)
{
	struct store_label l = open_label();
	char path[128];

	plant_dir(l.workspace_fd, "mnt", ROOT_ID, 0);
	plant_file(l.workspace_fd, "beside", ROOT_ID);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/mnt", l.workspace_fd);
	if (mount(canary, path, NULL, MS_BIND, NULL) < 0)
		tap_bail("mount");
	throw_away(&l);
	tap_int(sweep(), 1, "mount: of the host's administrator is left");
	tap_int(canary_files(), 10, "mount: and what is in it");
	tap_int(left("beside"), 0, "mount: what is beside it is removed");
	(void)snprintf(path, sizeof(path), "umount -l $(awk '$5 ~ \"%s/trash\" {print $5}' "
		       "/proc/self/mountinfo)", home);
	if (system(path) != 0)
		tap_bail("umount");
	tap_int(sweep(), 0, "mount: the rest goes when it is gone");
}

static void test_resume(void)
{
	struct store_label l = open_label();
	int status;
	pid_t pid;

	for (int i = 0; i < 2000; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "%d", i);
		plant_file(l.workspace_fd, name, ROOT_ID);
	}
	throw_away(&l);
	pid = store_sweep_start(&store, &ids, &error);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, &status, 0);
	tap_int(sweep(), 0, "resume: a killed walk is finished by the next");
	tap_int(sweep(), -2, "resume: nothing is left");
}

static void test_foreign(void)
{
	struct idrange other = ids;

	plant_dir(store.trash_fd, "0badcafe", ROOT_ID, 0);
	plant_dir(store.trash_fd, "0badcafe/x", ROOT_ID, 0);
	plant_dir(store.trash_fd, "not-an-owner", ROOT_ID, 0);
	plant_dir(store.trash_fd, "not-an-owner/x", ROOT_ID, 0);
	other.base += ID_BLOCK;
	tap_int(store_sweep_start(&store, &other, &error), 0, "foreign: another block is not touched");
	tap_int(sweep(), 0, "foreign: ours is");
	tap_int(faccessat(store.trash_fd, "0badcafe/x", F_OK, 0), -1, "foreign: indeed");
	tap_int(faccessat(store.trash_fd, "not-an-owner/x", F_OK, 0), 0,
		"foreign: what is no owner's is left");
}

/* ---- the helper itself ---- */

/* A worker that tries what a taken-over one would. Return: bits of what worked. */
static int try_everything(int *keep)
{
	static const char *const files[] = { "/etc/shadow", "/root/.", "/proc/1/environ" };
	struct err e;
	int worked = 0, fd = keep[0];

	if (helper_enter(&ids, keep, 1, UINT64_C(2), &e) < 0)
		return 128;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		worked |= (openat(AT_FDCWD, files[i], O_RDONLY) >= 0) << 0;
	worked |= (openat(keep[0], "../../owners", O_RDONLY | O_DIRECTORY) >= 0) << 1;
	worked |= (openat(AT_FDCWD, canary, O_RDONLY | O_DIRECTORY) < 0) << 2; /* mapped: may */
	worked |= (fork() >= 0) << 3;
	worked |= (socket(1, 1, 0) >= 0) << 4;
	worked |= (fd > 3 && fcntl(fd, F_GETFD) >= 0) << 5;
	worked |= (setns(keep[0], 0) == 0 || unshare(CLONE_NEWNS) == 0) << 6;
	return worked;
}

static void test_helper(void)
{
	int fd = fd_open_beneath(store.trash_fd, OWNER_DEFAULT, O_RDONLY | O_DIRECTORY, 0), status;
	int high = fcntl(fd, F_DUPFD_CLOEXEC, 100);
	pid_t pid = fork();

	if (pid == 0)
		_exit(try_everything(&high));
	(void)waitpid(pid, &status, 0);
	tap_int(status, 0, "helper: no file of root, no parent, no fork, no socket, no namespace");
	close_fd(&fd);
	close_fd(&high);
}

int main(void)
{
	char command[64];

	if (geteuid() != 0)
		return tap_skip_all("making files of other ids needs root");
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		tap_bail("private mounts");
	if (!mkdtemp(tmp_path) || chmod(tmp_path, 0755) < 0)
		tap_bail("mkdtemp");
	(void)snprintf(home, sizeof(home), "%s/home", tmp_path);
	(void)snprintf(canary, sizeof(canary), "%s/canary", tmp_path);
	if (store_open(&store, home, &error) < 0)
		tap_bail("%s", error.message);
	make_canary();
	tap_int(sweep(), -2, "an empty trash needs no worker");
	test_kinds();
	test_deep();
	test_wide();
	test_immutable();
	test_mount();
	test_resume();
	test_foreign();
	test_helper();
	tap_int(canary_files(), 10, "the canary lives");
	store_done(&store);
	(void)snprintf(command, sizeof(command), "rm -rf %s", tmp_path);
	(void)!system(command);
	return tap_done();
}
