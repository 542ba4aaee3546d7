/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/cgroup_scope.c - move into a delegated cgroup by way of the service manager
 *
 * Runs in main() before anything else is set up, with the privileges the program was started with. A
 * login session sits in a scope that belongs to root, so an ordinary user cannot move out of it; the
 * user's own manager can be asked to. systemd-run registers its own process as the scope and then
 * executes us in place: same process, same descriptors, same terminal.
 *
 * The program run and its options are fixed here; of the environment only XDG_RUNTIME_DIR, which says
 * where the user's manager listens, has any effect, and it is a directory of that same user.
 */
#include "runtime/cgroup_scope.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"
#include "runtime/cgroup.h"

/* "<pid>:<descriptor of the argument file>"; exec keeps the pid, so a child of ours that inherits the
 * variable is not taken for the re-executed process. */
#define MARKER "_MCP_SANDBOX_SCOPE"
#define ARGS_VERB "@scope"

enum { ARGS_BYTES_MAX = 4 * 1024 * 1024, ARGS_COUNT_MAX = 65536 };

static const char *const systemd_run_paths[] = { "/usr/bin/systemd-run", "/bin/systemd-run",
						 "/run/current-system/sw/bin/systemd-run" };

static const char *systemd_run_path(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(systemd_run_paths); i++) {
		if (access(systemd_run_paths[i], X_OK) == 0)
			return systemd_run_paths[i];
	}
	return NULL;
}

/* marker_parse() - Return: the argument descriptor when the marker is ours, else -1. */
static int marker_parse(void)
{
	const char *text = getenv(MARKER), *colon = text ? strchr(text, ':') : NULL;
	uint64_t pid, fd;
	char number[24];

	if (!colon || (size_t)(colon - text) >= sizeof(number))
		return -1;
	memcpy(number, text, (size_t)(colon - text));
	number[colon - text] = '\0';
	if (str_parse_u64(number, 1, INT_MAX, &pid) < 0 || pid != (uint64_t)getpid() ||
	    str_parse_u64(colon + 1, 0, INT_MAX, &fd) < 0)
		return -1;
	return (int)fd;
}

bool cgroup_scope_tried(void)
{
	return marker_parse() >= 0;
}

/* runtime_dir() - where the user's manager listens; login sessions set the variable, cron and su do
 * not. */
static void runtime_dir(char *path, size_t size)
{
	const char *set = getenv("XDG_RUNTIME_DIR");

	if (!set || set[0] != '/' || str_copy(path, size, set) < 0)
		(void)snprintf(path, size, "/run/user/%u", getuid());
}

static bool exists_in(const char *dir, const char *name)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", dir, name);

	return n > 0 && (size_t)n < sizeof(path) && access(path, F_OK) == 0;
}

static int no_user_manager(struct err *e)
{
	(void)err_set(e, ERR_HOST,
		      "this session has no cgroup of its own, and no systemd user manager runs to "
		      "ask for one");
	return err_remedy(e, "run \"sudo loginctl enable-linger %u\" once, or set "
			     "SANDBOX_LIMITS=best-effort to run without limits", getuid());
}

static int user_manager(struct err *e)
{
	char dir[PATH_MAX];

	runtime_dir(dir, sizeof(dir));
	if (!exists_in(dir, "systemd/private") && !exists_in(dir, "bus"))
		return no_user_manager(e);
	if (access("/run/dbus/system_bus_socket", F_OK) < 0) {
		/* only the system's manager may move a process out of a login session */
		(void)err_set(e, ERR_HOST, "the system message bus does not run, so systemd cannot "
					   "move this process into a cgroup of its own");
		return err_remedy(e, "apt-get install dbus, or set SANDBOX_LIMITS=best-effort to run "
				     "without limits");
	}
	return 0;
}

static int manager(bool host_root, struct err *e)
{
	if (cgroup_scope_tried()) {
		(void)err_set(e, ERR_HOST, "systemd-run gave a cgroup that is not delegated");
		return err_remedy(e, "set SANDBOX_CGROUP to a delegated cgroup, or "
				     "SANDBOX_LIMITS=best-effort to run without limits");
	}
	if (!systemd_run_path()) {
		(void)err_set(e, ERR_HOST, "this process has no cgroup of its own, and there is no "
					   "systemd-run to ask for one");
		return err_remedy(e, "set SANDBOX_CGROUP to a cgroup that belongs to this user, or "
				     "SANDBOX_LIMITS=best-effort to run without limits");
	}
	if (!host_root)
		return user_manager(e);
	if (access("/run/systemd/private", F_OK) < 0)
		return err_set(e, ERR_HOST, "systemd is not the service manager here");
	return 0;
}

bool cgroup_scope_usable(bool host_root, struct err *e)
{
	return manager(host_root, e) == 0;
}

/* ---- arguments across systemd-run ---- */

/* args_file() - a memory file with the arguments, each with its NUL, that exec does not close. */
static int args_file(char **argv, struct err *e)
{
	_cleanup_fd_ int fd = memfd_create("arguments", MFD_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "make a memory file");
	for (; *argv; argv++) {
		if (fd_write_full(fd, *argv, strlen(*argv) + 1) < 0)
			return err_sys(e, "write the arguments");
	}
	if (fd_set_cloexec(fd, false) < 0)
		return err_sys(e, "keep the arguments open");
	return take_fd(&fd);
}

int cgroup_reexec_scope(char **argv, struct err *e)
{
	_cleanup_fd_ int args_fd = args_file(argv, e);
	char self[PATH_MAX], marker[48], dir[PATH_MAX];
	const char *program = systemd_run_path();
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	bool user = geteuid() != 0;
	const char *words[] = { "systemd-run", user ? "--user" : "--system", "--scope", "--quiet",
				"--collect", "--description=mcp-sandbox", "--property=Delegate=yes",
				"--", self, ARGS_VERB, NULL };
	char *vector[ARRAY_SIZE(words)];

	if (args_fd < 0)
		return -1;
	if (!program || len <= 0)
		return err_set(e, ERR_HOST, "cannot find systemd-run or this program's own file");
	self[len] = '\0';
	(void)snprintf(marker, sizeof(marker), "%d:%d", getpid(), args_fd);
	runtime_dir(dir, sizeof(dir));
	if (setenv(MARKER, marker, 1) < 0 || (user && setenv("XDG_RUNTIME_DIR", dir, 1) < 0))
		return err_sys(e, "set the environment of systemd-run");
	memcpy(vector, words, sizeof(words)); /* execv takes no const; it does not write */
	(void)execv(program, vector);
	return err_sys(e, "run %s", program);
}

/* args_split() - one vector over one block of NUL-terminated arguments. Return: the count, -1. */
static int args_split(char *bytes, size_t len, char ***ret)
{
	char **vector;
	size_t count = 0, used = 0;

	for (size_t i = 0; i < len; i++)
		count += bytes[i] == '\0';
	if (count == 0 || count > ARGS_COUNT_MAX || bytes[len - 1] != '\0')
		return -1;
	vector = calloc(count + 1, sizeof(*vector));
	if (!vector)
		return -1;
	for (size_t i = 0; i < count; i++) {
		vector[i] = bytes + used;
		used += strlen(vector[i]) + 1;
	}
	*ret = vector;
	return (int)count;
}

int cgroup_scope_args(int *argc, char ***argv, struct err *e)
{
	_cleanup_fd_ int fd = -1;
	_cleanup_free_ char *bytes = NULL;
	struct stat st;
	int count;

	if (*argc != 2 || strcmp((*argv)[1], ARGS_VERB) != 0)
		return 0;
	fd = marker_parse();
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > ARGS_BYTES_MAX)
		return err_set(e, ERR_USAGE, "%s is not a command", ARGS_VERB);
	bytes = malloc((size_t)st.st_size);
	if (!bytes || lseek(fd, 0, SEEK_SET) < 0 ||
	    fd_read_full(fd, bytes, (size_t)st.st_size) != st.st_size)
		return err_sys(e, "read the arguments back");
	count = args_split(bytes, (size_t)st.st_size, argv);
	if (count < 0)
		return err_set(e, ERR_USAGE, "the arguments did not survive systemd-run");
	*argc = count;
	(void)take_ptr(bytes); /* lives as long as the process, like any argv */
	return 0;
}
