/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/userns.c - the storage namespace S, this process's id range, and the maps of sandboxes
 *
 * userns_enter_storage() runs first thing in main(), as the ordinary user, with nothing but the
 * program's arguments; when it is done the program has been executed again as root of S, so that the
 * memory of the keeper belongs to S and nothing of it is left from outside. The only programs started
 * are newuidmap and newgidmap: absolute paths, an argument vector, an empty environment.
 *
 * The rest runs in the keeper. /proc is the host's and is checked to be a proc file system before a
 * map is written through it.
 */
#include "runtime/userns.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"
#include "runtime/base/sys.h"

#define SERVICE_USER "mcp-sandbox"

enum {
	DEFAULT_BLOCK_BASE = 0x60000000, /* inside 524288..1879048191, systemd's for containers */
	MAP_TEXT_MAX = 4096,
	TOOL_TEXT_MAX = 256,
};

static bool in_storage; /* set once by userns_enter_storage() */

/* Which maps does this process have? */

struct extent {
	unsigned long inside, outside, count;
};

/* covers() - whether one line of a map of this process holds all of [first, first + count). */
static bool covers(const char *map_path, uint64_t first, uint64_t count)
{
	char text[MAP_TEXT_MAX];
	struct extent x;
	int used;

	if (fd_read_file_at(AT_FDCWD, map_path, text, sizeof(text)) < 0)
		return false;
	for (const char *at = text;
	     sscanf(at, "%lu %lu %lu%n", &x.inside, &x.outside, &x.count, &used) == 3; at += used) {
		if (first >= x.inside && first + count <= (uint64_t)x.inside + x.count)
			return true;
	}
	return false;
}

/* has_storage_map() - 0 is one ordinary user and 1.. a range, as userns_enter_storage() makes it. The
 * marker in the environment alone proves nothing: real root with it set would treat the host's system
 * users as its block. */
static bool has_storage_map(uid_t *ret_user)
{
	char text[MAP_TEXT_MAX];
	struct extent a, b;

	if (fd_read_file_at(AT_FDCWD, "/proc/self/uid_map", text, sizeof(text)) < 0)
		return false;
	if (sscanf(text, "%lu %lu %lu %lu %lu %lu", &a.inside, &a.outside, &a.count, &b.inside,
		   &b.outside, &b.count) != 6)
		return false;
	*ret_user = (uid_t)a.outside;
	return a.inside == 0 && a.count == 1 && a.outside != 0 && b.inside == 1 &&
	       b.count >= ID_BLOCK - 1;
}

/* What refuses namespaces here? */

static bool sysctl_is(int proc_sys_fd, const char *name, const char *value)
{
	char text[32];
	ssize_t len = fd_read_file_at(proc_sys_fd, name, text, sizeof(text));

	if (len > 0 && text[len - 1] == '\n')
		text[len - 1] = '\0';
	return len > 0 && strcmp(text, value) == 0;
}

int userns_explain_refusal_at(int proc_sys_fd, int error, struct err *e)
{
	if (e != NULL)
		e->code = ERR_HOST;
	if (sysctl_is(proc_sys_fd, "kernel/unprivileged_userns_clone", "0"))
		return err_remedy(e, "as root: sysctl -w kernel.unprivileged_userns_clone=1 (keep it in "
				     "/etc/sysctl.d)");
	if (sysctl_is(proc_sys_fd, "user/max_user_namespaces", "0"))
		return err_remedy(e, "as root: sysctl -w user.max_user_namespaces=15000 (keep it in "
				     "/etc/sysctl.d)");
	if (sysctl_is(proc_sys_fd, "kernel/apparmor_restrict_unprivileged_userns", "1"))
		return err_remedy(e, "install the AppArmor profile /etc/apparmor.d/mcp-sandbox, or as "
				     "root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0");
	if (error == ENOSPC || error == EUSERS)
		return err_remedy(e, "a limit on namespaces is reached: raise the sysctls "
				     "user.max_user_namespaces, user.max_net_namespaces and the like");
	return err_remedy(e, "namespaces are refused here: in a chroot nothing helps; a container must "
			     "be started with --security-opt seccomp=unconfined and "
			     "apparmor=unconfined");
}

int userns_explain_refusal(int error, struct err *e)
{
	_cleanup_fd_ int fd = open("/proc/sys", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return userns_explain_refusal_at(fd, error, e);
}

/* Making S: newuidmap and newgidmap map this process from outside, so they are forked before it
 * leaves, and wait. */

struct map_tool {
	const char *name;
	pid_t pid;
	int go_fd;   /* a byte: the process is in its namespace */
	int text_fd; /* what the tool says */
};

/* run_map_tool() - in the forked child. */
static _Noreturn void run_map_tool(const char *name, char *const argv[], int go_fd, int text_fd)
{
	static const char *const directories[] = { "/usr/bin", "/bin", "/usr/local/bin" };
	char *const no_environment[] = { NULL };
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	char path[64], go;

	if (fd_read_full(go_fd, &go, 1) != 1 || null_fd < 0 || dup2(null_fd, 0) < 0 ||
	    dup2(text_fd, 1) < 0 || dup2(text_fd, 2) < 0 || close_range(3, ~0U, 0) < 0)
		_exit(126);
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", directories[i], name);
		(void)execve(path, argv, no_environment);
	}
	_exit(127);
}

/* start_map_tool() - fork one that maps {0 -> own, 1.. -> range} onto this process. */
static int start_map_tool(struct map_tool *tool, const char *name, uint32_t own,
			  const struct subid_range *range, struct err *e)
{
	char tool_name[16], pid[16], own_text[16], first[16], count[16];
	char zero[] = "0", one[] = "1";
	char *const argv[] = { tool_name, pid, zero, own_text, one, one, first, count, NULL };
	int go[2] = { -1, -1 }, text[2] = { -1, -1 };

	(void)snprintf(tool_name, sizeof(tool_name), "%s", name);
	(void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
	(void)snprintf(own_text, sizeof(own_text), "%u", own);
	(void)snprintf(first, sizeof(first), "%u", range->first);
	(void)snprintf(count, sizeof(count), "%d", ID_BLOCK - 1);
	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(text, O_CLOEXEC) < 0)
		return err_sys(e, "make a pipe for %s", name); /* the caller ends the program */
	tool->name = name;
	tool->pid = fork();
	if (tool->pid < 0)
		return err_sys(e, "fork for %s", name);
	if (tool->pid == 0) {
		(void)close(go[1]);
		run_map_tool(name, argv, go[0], text[1]);
	}
	(void)close(go[0]);
	(void)close(text[1]);
	tool->go_fd = go[1];
	tool->text_fd = text[0];
	return 0;
}

static int explain_map_tool(const struct map_tool *tool, int status, const char *text, struct err *e)
{
	char shown[TOOL_TEXT_MAX];

	if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
		err_set(e, ERR_HOST, "%s is not installed", tool->name);
		return err_remedy(e, "install it: apt-get install uidmap");
	}
	str_escape(shown, sizeof(shown), text, strcspn(text, "\n"));
	err_set(e, ERR_HOST, "%s refused the range of subordinate ids: %s", tool->name, shown);
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return err_remedy(e, "no_new_privs is set: remove NoNewPrivileges= and everything "
				     "that implies it from the service, it disarms %s",
				  tool->name);
	return err_remedy(e, "compare /etc/subuid and /etc/subgid with the range; reinstall the package "
			     "uidmap when %s has lost its setuid bit or capability",
			  tool->name);
}

static int finish_map_tool(struct map_tool *tool, struct err *e)
{
	char text[TOOL_TEXT_MAX];
	ssize_t len;
	int status;

	if (fd_write_full(tool->go_fd, "", 1) < 0)
		return err_sys(e, "start %s", tool->name);
	len = fd_read_full(tool->text_fd, text, sizeof(text) - 1);
	text[len > 0 ? len : 0] = '\0';
	close_fd(&tool->go_fd);
	close_fd(&tool->text_fd);
	while (waitpid(tool->pid, &status, 0) < 0) {
		if (errno != EINTR)
			return err_sys(e, "wait for %s", tool->name);
	}
	return status == 0 ? 0 : explain_map_tool(tool, status, text, e);
}

static int find_ranges(const char *setting, struct subid_range *uids, struct subid_range *gids,
		       struct err *e)
{
	char name[64];
	const struct passwd *pw = getpwuid(getuid());

	/* A user without a name can still have a line by number. */
	if (pw == NULL || str_copy(name, sizeof(name), pw->pw_name) < 0)
		(void)snprintf(name, sizeof(name), "%u", getuid());
	if (userns_find_subid("/etc/subuid", setting, name, getuid(), uids, e) < 0)
		return -1;
	return userns_find_subid("/etc/subgid", setting, name, getuid(), gids, e);
}

static int make_storage(const char *subid_setting, struct err *e)
{
	struct subid_range uids, gids;
	struct map_tool uid_tool, gid_tool;

	if (find_ranges(subid_setting, &uids, &gids, e) < 0 ||
	    start_map_tool(&uid_tool, "newuidmap", getuid(), &uids, e) < 0 ||
	    start_map_tool(&gid_tool, "newgidmap", getgid(), &gids, e) < 0)
		return -1;
	if (unshare(CLONE_NEWUSER) < 0) {
		err_sys(e, "make a user namespace");
		return userns_explain_refusal(errno, e);
	}
	if (finish_map_tool(&uid_tool, e) < 0)
		return -1;
	return finish_map_tool(&gid_tool, e);
}

/* Re-entering S: a sandbox that outlived its keeper can only be joined from the namespace that owns
 * it; a new S would be its sibling. */

/* open_parent_ns() - the user namespace above a process's, when this user owns it. */
static int open_parent_ns(long pid)
{
	_cleanup_fd_ int ns_fd = -1, parent_fd = -1;
	char path[64];
	uid_t owner;

	(void)snprintf(path, sizeof(path), "/proc/%ld/ns/user", pid);
	ns_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (ns_fd < 0)
		return -1;
	parent_fd = ioctl(ns_fd, NS_GET_PARENT);
	if (parent_fd < 0 || ioctl(parent_fd, NS_GET_OWNER_UID, &owner) < 0 || owner != getuid())
		return -1;
	return take_fd(&parent_fd);
}

/* join_storage_of() - Return: 0 this process is in the S of the sandbox at <owner>/<key>, -1. */
static int join_storage_of(int owner_fd, const char *key)
{
	char path[NAME_MAX + 32], text[MAP_TEXT_MAX];
	_cleanup_fd_ int ns_fd = -1;
	uid_t me = getuid(), user;
	long pid;

	(void)snprintf(path, sizeof(path), "%s/init/cgroup.procs", key);
	if (fd_read_file_at(owner_fd, path, text, sizeof(text)) <= 0)
		return -1;
	pid = strtol(text, NULL, 10);
	ns_fd = pid > 0 ? open_parent_ns(pid) : -1;
	if (ns_fd < 0 || setns(ns_fd, CLONE_NEWUSER) < 0)
		return -1;
	return has_storage_map(&user) && user == me ? 0 : -1;
}

/* for_each_dir() - call fn with every entry that is_name accepts until it returns 0. */
static int for_each_dir(int dir_fd, bool (*is_name)(const char *), int (*fn)(int, const char *))
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int r = -1;

	if (dir == NULL) {
		close_fd(&fd);
		return -1;
	}
	while (r != 0 && (entry = readdir(dir)) != NULL) {
		if (is_name(entry->d_name))
			r = fn(dirfd(dir), entry->d_name);
	}
	(void)closedir(dir);
	return r;
}

static int join_storage_of_owner(int root_fd, const char *owner)
{
	_cleanup_fd_ int fd = openat(root_fd, owner, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -1 : for_each_dir(fd, str_is_key, join_storage_of);
}

/* Inside S */

static int become_storage_root(struct err *e)
{
	if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0) {
		/* Where AppArmor restricts user namespaces they can be made, but give no capability. */
		err_sys(e, "become root of the storage namespace");
		return userns_explain_refusal(errno, e);
	}
	if (unshare(CLONE_NEWNS) < 0) {
		err_sys(e, "make a mount namespace in the storage namespace");
		return userns_explain_refusal(errno, e);
	}
	return 0;
}

static int execute_again(char **argv, struct err *e)
{
	if (setenv(USERNS_STORAGE_MARKER, "1", 1) < 0)
		return err_sys(e, "set the environment");
	(void)execv("/proc/self/exe", argv);
	return err_sys(e, "execute this program again in the storage namespace");
}

int userns_enter_storage(int cgroup_root_fd, const char *subid_setting, char **argv, struct err *e)
{
	bool marked = getenv(USERNS_STORAGE_MARKER) != NULL;
	uid_t user;

	(void)unsetenv(USERNS_STORAGE_MARKER);
	if (geteuid() == 0) {
		in_storage = marked && has_storage_map(&user);
		return 0;
	}
	if (marked)
		return err_set(e, ERR_HOST, "executed again in the storage namespace, but not as root");
	if (cgroup_root_fd < 0 ||
	    for_each_dir(cgroup_root_fd, str_is_owner_id, join_storage_of_owner) < 0) {
		if (make_storage(subid_setting, e) < 0)
			return -1;
	}
	if (become_storage_root(e) < 0)
		return -1;
	return execute_again(argv, e);
}

/* The keeper's range, and maps */

static int block_base(const char *setting, uint32_t index, uint32_t *ret, struct err *e)
{
	struct subid_range range = { DEFAULT_BLOCK_BASE, ID_BLOCK * 1024 };
	struct err no_line;
	uint64_t base;

	if (setting[0] != '\0') {
		if (userns_parse_subid_setting(setting, 0, &range, e) < 0)
			return -1;
	} else {
		/* No line, or none that can be used, is the normal case. */
		(void)userns_find_subid("/etc/subuid", "", SERVICE_USER, 0, &range, &no_line);
	}
	base = range.first + (uint64_t)index * ID_BLOCK;
	if (base + ID_BLOCK > (uint64_t)range.first + range.count) {
		err_set(e, ERR_LIMIT, "the id range holds %u owners, this is number %u",
			range.count / ID_BLOCK, index + 1);
		return err_remedy(e, "give more ids: SANDBOX_SUBID=%u:%llu", range.first,
				  ((unsigned long long)index + 1) * ID_BLOCK);
	}
	*ret = (uint32_t)base;
	return 0;
}

/* write_map() - through the child's directory in a /proc that is one: a tmpfs mounted over it could
 * lead the write anywhere (CVE-2025-52881). */
static int write_map(pid_t pid, const char *uid_text, const char *gid_text, struct err *e)
{
	_cleanup_fd_ int fd = -1;
	struct statfs fs;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstatfs(fd, &fs) < 0)
		return err_sys(e, "open %s to write the id maps", path);
	if (fs.f_type != PROC_SUPER_MAGIC)
		return err_set(e, ERR_DENIED, "/proc is not a proc file system");
	if (fd_write_file_at(fd, "uid_map", uid_text) < 0)
		return err_sys(e, "write the user id map");
	if (fd_write_file_at(fd, "gid_map", gid_text) < 0)
		return err_sys(e, "write the group id map");
	return 0;
}

int userns_write_maps(const struct idrange *r, pid_t child, struct err *e)
{
	char text[96];

	(void)snprintf(text, sizeof(text), "0 %u %d\n65534 %u 1\n", r->base + ID_SANDBOX_ROOT,
		       ID_SANDBOX_COUNT, r->base + ID_SANDBOX_NOBODY);
	return write_map(child, text, text, e);
}

int userns_write_user_maps(const struct idrange *r, pid_t child, struct err *e)
{
	char text[128];

	if (!r->in_storage)
		return err_set(e, ERR_SYSTEM, "only an ordinary user's own id is mapped into a sandbox");
	(void)snprintf(text, sizeof(text), "0 %u %u\n%u 0 1\n%u %u %u\n65534 %u 1\n",
		       r->base + ID_SANDBOX_ROOT, ID_USER_INSIDE, ID_USER_INSIDE, ID_USER_INSIDE + 1,
		       r->base + ID_SANDBOX_ROOT + ID_USER_INSIDE + 1,
		       ID_SANDBOX_COUNT - ID_USER_INSIDE - 1, r->base + ID_SANDBOX_NOBODY);
	return write_map(child, text, text, e);
}

int userns_write_remover_maps(const struct idrange *r, pid_t child, struct err *e)
{
	char text[128];

	if (!r->in_storage)
		return userns_write_maps(r, child, e);
	(void)snprintf(text, sizeof(text), "0 %u %d\n%d 0 1\n65534 %u 1\n", r->base + ID_SANDBOX_ROOT,
		       ID_SANDBOX_COUNT, ID_SANDBOX_COUNT, r->base + ID_SANDBOX_NOBODY);
	return write_map(child, text, text, e);
}

/* make_ns() - a user namespace with these maps, kept alive by its descriptor alone. */
static int make_ns(const char *uid_text, const char *gid_text, struct err *e)
{
	struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	char path[32];
	pid_t pid = sys_clone3(&args, sizeof(args));
	int fd = -1;

	if (pid == 0) {
		for (;;)
			(void)pause();
	}
	if (pid < 0) {
		err_sys(e, "make a user namespace");
		return userns_explain_refusal(errno, e);
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	if (write_map(pid, uid_text, gid_text, e) == 0) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			err_sys(e, "open a user namespace");
	}
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return fd;
}

/* make_mapping_ns() - in it the ids from inside are the block at base. */
static int make_mapping_ns(uint32_t inside, uint32_t base, struct err *e)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "%u %u %d\n", inside, base, ID_BLOCK);
	return make_ns(text, text, e);
}

int userns_block_index(const char *subid_setting, uint32_t base, uint32_t *ret, struct err *e)
{
	uint32_t first;

	*ret = 0;
	if (in_storage && base == 0)
		return 0;
	if (in_storage || block_base(subid_setting, 0, &first, e) < 0)
		return -1;
	if (base < first || (base - first) % ID_BLOCK != 0)
		return err_set(e, ERR_CONFIG, "%u is no block of the id range, which starts at %u", base, first);
	*ret = (base - first) / ID_BLOCK;
	return 0;
}

static int open_namespaces(struct idrange *r, uint32_t first, struct err *e)
{
	r->storage_ns_fd = make_mapping_ns(0, r->base, e);
	if (r->storage_ns_fd < 0)
		return -1;
	if (r->base == first)
		return 0;
	r->lower_ns_fd = make_mapping_ns(first, r->base, e);
	if (r->lower_ns_fd >= 0)
		return 0;
	close_fd(&r->storage_ns_fd);
	return -1;
}

int userns_idmap(const struct idrange *r, uint32_t uid, uint32_t gid, struct err *e)
{
	char uid_text[48], gid_text[48];

	(void)snprintf(uid_text, sizeof(uid_text), "%u %u 1\n", uid, r->base + ID_SANDBOX_ROOT);
	(void)snprintf(gid_text, sizeof(gid_text), "%u %u 1\n", gid, r->base + ID_SANDBOX_ROOT);
	return make_ns(uid_text, gid_text, e);
}

int userns_range_init(struct idrange *r, const char *subid_setting, uint32_t block_index,
		      struct err *e)
{
	uint32_t base, first;

	*r = (struct idrange){ .base = 0, .in_storage = in_storage, .storage_ns_fd = -1, .lower_ns_fd = -1 };
	if (in_storage)
		return 0;
	if (block_base(subid_setting, 0, &first, e) < 0 ||
	    block_base(subid_setting, block_index, &base, e) < 0)
		return -1;
	if (!covers("/proc/self/uid_map", base, ID_BLOCK) ||
	    !covers("/proc/self/gid_map", base, ID_BLOCK)) {
		err_set(e, ERR_HOST, "ids %u to %u do not exist in this user namespace", base,
			base + ID_BLOCK - 1);
		return err_remedy(e, "name 65536 ids that do and that nobody uses: "
				     "SANDBOX_SUBID=FIRST:65536");
	}
	r->base = base;
	return open_namespaces(r, first, e);
}

void userns_range_done(struct idrange *r)
{
	close_fd(&r->storage_ns_fd);
	close_fd(&r->lower_ns_fd);
}
