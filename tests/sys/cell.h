/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sys/cell.h - the smallest thing a command can be started in, made without runtime/launch.c
 *
 * Test code: a pid 1 in seven new namespaces over the host's own root directory with a proc of its
 * own, ids mapped as a sandbox's, rights applied by enter_apply_rights(), optionally in a cgroup
 * directory of its own. So tests and measurements of runtime/enter.c do not depend on how a root
 * file system is put together. Runs as root, or as root of a user namespace with 65536 ids.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/sys.h"
#include "runtime/caps.h"
#include "runtime/enter.h"
#include "runtime/seccomp.h"
#include "runtime/spec.h"
#include "runtime/userns.h"

struct cell {
	pid_t init;
	int init_pidfd;
	char dir[64];	       /* of ours, readable inside */
	char self[80];	       /* a copy of this program there */
	char cgroup[PATH_MAX]; /* "" when there is none */
	int init_cgroup_fd, leaf_fd, other_leaf_fd;
	uint32_t root_id; /* what inside 0 is outside */
	struct seccomp_program program;
	struct enter_rights rights;
};

/* How to make one that differs from a sandbox on purpose. */
struct cell_options {
	bool no_cgroup;
	bool all_caps;	/* pid 1 and commands keep every capability */
	bool no_filter; /* a filter that allows everything */
	bool dumpable_init;
};

static inline uint64_t cell_now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static inline int cell_write(const char *path, const char *text)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

static inline int cell_read(const char *path, char *text, size_t size)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : fd_read_full(fd, text, size - 1);

	if (got < 0)
		return -1;
	text[got] = '\0';
	return 0;
}

/* The id that becomes inside 0: the first of ours above 15, in whichever namespace we are. */
static inline uint32_t cell_root_id(void)
{
	char map[256];
	unsigned int inside, outside, count;

	if (cell_read("/proc/self/uid_map", map, sizeof(map)) == 0 &&
	    sscanf(map, "%u %u %u", &inside, &outside, &count) == 3 && count == UINT32_MAX)
		return 0x60000000u + ID_SANDBOX_ROOT;
	return ID_SANDBOX_ROOT;
}

static inline int cell_make_leaf(const struct cell *cell, const char *name)
{
	char path[PATH_MAX + 16];

	(void)snprintf(path, sizeof(path), "%s/%s", cell->cgroup, name);
	return mkdir(path, 0755) == 0 ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

/* A cgroup v2 directory we may use: $MCPT_CGROUP, else one below the mount of the v2 hierarchy. */
static inline int cell_make_cgroup(struct cell *cell)
{
	static const char *const mounts[] = {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"};
	char path[PATH_MAX + 16];
	const char *parent = getenv("MCPT_CGROUP");

	for (size_t i = 0; !parent && i < ARRAY_SIZE(mounts); i++) {
		(void)snprintf(path, sizeof(path), "%s/cgroup.controllers", mounts[i]);
		if (access(path, R_OK) == 0)
			parent = mounts[i];
	}
	if (!parent)
		return -1;
	static unsigned int serial;
	(void)snprintf(cell->cgroup, sizeof(cell->cgroup), "%s/mcpt-cell-%d-%u", parent,
		       (int)getpid(), serial++);
	if (mkdir(cell->cgroup, 0755) != 0) {
		cell->cgroup[0] = '\0';
		return -1;
	}
	cell->init_cgroup_fd = cell_make_leaf(cell, "init");
	cell->leaf_fd = cell_make_leaf(cell, "exec-0");
	cell->other_leaf_fd = cell_make_leaf(cell, "exec-1");
	return cell->init_cgroup_fd >= 0 && cell->leaf_fd >= 0 && cell->other_leaf_fd >= 0 ? 0 : -1;
}

/* cell_cgroup_write() - write a control file of the cell's directory, or of its leaf. */
static inline int cell_cgroup_write(const struct cell *cell, const char *file, const char *text)
{
	char path[PATH_MAX + 64];

	(void)snprintf(path, sizeof(path), "%s/%s", cell->cgroup, file);
	return cell_write(path, text);
}

/* cell_kill_leaf() - kill what is in "exec-0" or "exec-1" and, once it is reaped, make the leaf
 * anew: a process cloned into a cgroup that was killed before dies at birth (see
 * cgroup_leaf_kill()). */
static inline void cell_kill_leaf(const struct cell *cell, const char *name)
{
	char file[64];

	(void)snprintf(file, sizeof(file), "%s/cgroup.kill", name);
	(void)cell_cgroup_write(cell, file, "1");
}

static inline int cell_renew_leaf(struct cell *cell, const char *name, int *leaf_fd)
{
	char path[PATH_MAX + 16];

	(void)snprintf(path, sizeof(path), "%s/%s", cell->cgroup, name);
	close_fd(leaf_fd);
	for (int tries = 0; rmdir(path) != 0 && errno == EBUSY && tries < 2000; tries++)
		(void)usleep(1000);
	*leaf_fd = cell_make_leaf(cell, name);
	return *leaf_fd < 0 ? -1 : 0;
}

static inline int cell_write_maps(pid_t child, uint32_t root_id)
{
	char path[64], map[128];

	(void)snprintf(map, sizeof(map), "0 %u %u\n65534 %u 1\n", root_id, ID_SANDBOX_COUNT,
		       root_id + ID_SANDBOX_COUNT);
	(void)snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)child);
	if (cell_write(path, map) != 0)
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/%d/gid_map", (int)child);
	return cell_write(path, map);
}

static inline void __attribute__((noreturn))
cell_init_main(const struct cell *cell, const struct cell_options *opt, int go_fd, int ready_fd)
{
	char byte;

	if (read(go_fd, &byte, 1) != 1 || syscall(SYS_setgroups, 0, NULL) != 0 ||
	    syscall(SYS_setresgid, 0, 0, 0) != 0 || syscall(SYS_setresuid, 0, 0, 0) != 0)
		_exit(10);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0)
		_exit(11);
	if (chdir("/") != 0 || setsid() < 0)
		_exit(12);
	(void)signal(SIGCHLD, SIG_IGN);
	if (enter_apply_rights(&cell->rights) != 0)
		_exit(13);
	if (opt->dumpable_init)
		(void)syscall(SYS_prctl, 4 /* PR_SET_DUMPABLE */, 1, 0, 0, 0);
	if (write(ready_fd, "r", 1) != 1)
		_exit(14);
	(void)syscall(SYS_close_range, 0, ~0U, 0);
	for (;;)
		(void)pause();
}

static inline int cell_prepare_rights(struct cell *cell, const struct cell_options *opt)
{
	static struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, 0x7fff0000};
	struct err e = {.code = ERR_NONE};

	if (opt->no_filter) {
		cell->program.prog.filter = malloc(sizeof(allow));
		if (!cell->program.prog.filter)
			return -1;
		memcpy(cell->program.prog.filter, &allow, sizeof(allow));
		cell->program.prog.len = 1;
	} else if (seccomp_compile(SECCOMP_SANDBOX, "native", &cell->program, &e) != 0) {
		return -1;
	}
	cell->rights.seccomp = &cell->program.prog;
	if (caps_plan_init(&cell->rights.caps, SANDBOX_CAPS, &e) != 0)
		return -1;
	if (opt->all_caps)
		return caps_plan_init(&cell->rights.caps,
				      UINT64_MAX >> (63 - cell->rights.caps.last_cap), &e);
	return 0;
}

/* The build directory may be below one that nobody inside may enter. */
static inline int cell_copy_self(struct cell *cell)
{
	_cleanup_fd_ int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = -1;
	struct stat st;
	off_t at = 0;

	strcpy(cell->dir, "/var/tmp/mcpt-cell-XXXXXX");
	if (from < 0 || fstat(from, &st) != 0 || !mkdtemp(cell->dir) || chmod(cell->dir, 0755) != 0)
		return -1;
	(void)snprintf(cell->self, sizeof(cell->self), "%s/self", cell->dir);
	to = open(cell->self, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (to < 0 || fchmod(to, 0755) != 0)
		return -1;
	while (at < st.st_size) {
		if (sendfile(to, from, &at, (size_t)(st.st_size - at)) <= 0)
			return -1;
	}
	return 0;
}

/* cell_open() - Return: 0; -1 with errno: no permission, no namespaces. */
static inline int cell_open(struct cell *cell, const struct cell_options *options)
{
	static const struct cell_options none;
	const struct cell_options *opt = options ? options : &none;
	_cleanup_fd_ int go_read = -1, go_write = -1, ready_read = -1, ready_write = -1;
	int go[2], ready[2];
	char byte;

	memset(cell, 0, sizeof(*cell));
	cell->init_cgroup_fd = cell->leaf_fd = cell->other_leaf_fd = cell->init_pidfd = -1;
	cell->root_id = cell_root_id();
	if (cell_copy_self(cell) != 0 || cell_prepare_rights(cell, opt) != 0 ||
	    (!opt->no_cgroup && cell_make_cgroup(cell) != 0))
		return -1;
	if (pipe2(go, O_CLOEXEC) != 0)
		return -1;
	go_read = go[0];
	go_write = go[1];
	if (pipe2(ready, O_CLOEXEC) != 0)
		return -1;
	ready_read = ready[0];
	ready_write = ready[1];

	struct clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
			 CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_PIDFD |
			 (cell->init_cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0),
		.pidfd = (uint64_t)(uintptr_t)&cell->init_pidfd,
		.exit_signal = SIGCHLD,
		.cgroup = cell->init_cgroup_fd >= 0 ? (uint64_t)cell->init_cgroup_fd : 0,
	};
	cell->init = sys_clone3(&args, sizeof(args));
	if (cell->init == 0)
		cell_init_main(cell, opt, go_read, ready_write);
	if (cell->init < 0 || cell_write_maps(cell->init, cell->root_id) != 0)
		return -1;
	close_fd(&ready_write);
	if (write(go_write, "g", 1) != 1 || read(ready_read, &byte, 1) != 1) {
		errno = ECHILD;
		return -1;
	}
	return 0;
}

static inline void cell_close(struct cell *cell)
{
	char path[PATH_MAX + 16];

	if (cell->init_pidfd >= 0)
		(void)sys_pidfd_send_signal(cell->init_pidfd, SIGKILL);
	if (cell->init > 0)
		(void)waitpid(cell->init, NULL, 0);
	close_fd(&cell->init_pidfd);
	close_fd(&cell->init_cgroup_fd);
	close_fd(&cell->leaf_fd);
	close_fd(&cell->other_leaf_fd);
	seccomp_program_done(&cell->program);
	(void)unlink(cell->self);
	(void)rmdir(cell->dir);
	for (int i = 0; cell->cgroup[0] && i < 4; i++) {
		static const char *const below[] = {"/exec-0", "/exec-1", "/init", ""};
		(void)snprintf(path, sizeof(path), "%s%s", cell->cgroup, below[i]);
		/* A killed process leaves its cgroup a moment after it was reaped. */
		for (int tries = 0; rmdir(path) != 0 && errno == EBUSY && tries < 500; tries++)
			(void)usleep(1000);
	}
}

/* What came of one command. */
struct cell_run {
	pid_t joiner, pid;
	unsigned int pid_messages, pid_repeats, failed_messages;
	struct enter_status failed;
	bool status_eof;    /* within the deadline */
	uint64_t return_us; /* how long enter_start_joiner() itself took */
	int wait_status;
	char output[65536];
	size_t output_len;
};

static inline void cell_take_status(struct cell_run *run, const struct enter_status *s)
{
	if (s->kind == ENTER_PID && s->value == run->pid) {
		run->pid_repeats++;
	} else if (s->kind == ENTER_PID) {
		run->pid = s->value;
		run->pid_messages++;
	} else if (s->kind == ENTER_FAILED) {
		run->failed = *s;
		run->failed_messages++;
	}
}

/* cell_status() - read the status pipe until its end or the deadline. */
static inline void cell_status(struct cell_run *run, int status_fd, int deadline_ms)
{
	uint64_t end = cell_now_ms() + (uint64_t)deadline_ms;
	struct enter_status s;

	for (;;) {
		uint64_t now = cell_now_ms();
		struct pollfd p = {.fd = status_fd, .events = POLLIN};
		if (now >= end || poll(&p, 1, (int)(end - now)) != 1)
			return;
		ssize_t got = read(status_fd, &s, sizeof(s));
		if (got == 0) {
			run->status_eof = true;
			return;
		}
		if (got == sizeof(s))
			cell_take_status(run, &s);
	}
}

/* cell_output() - read output until its end or the deadline. */
static inline void cell_output(struct cell_run *run, int fd, int deadline_ms)
{
	uint64_t end = cell_now_ms() + (uint64_t)deadline_ms;

	for (;;) {
		uint64_t now = cell_now_ms();
		struct pollfd p = {.fd = fd, .events = POLLIN};
		if (now >= end || poll(&p, 1, (int)(end - now)) != 1)
			break;
		ssize_t got = read(fd, run->output + run->output_len,
				   sizeof(run->output) - 1 - run->output_len);
		if (got <= 0)
			break;
		run->output_len += (size_t)got;
	}
	run->output[run->output_len] = '\0';
}

static char cell_env_path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
static char cell_env_home[] = "HOME=/root";
static char *const cell_env[] = {cell_env_path, cell_env_home, NULL};

/* execve() takes char *const[] and changes nothing. */
static inline char *cell_text(const char *text)
{
	return (char *)(uintptr_t)text;
}

/* A command with this cell's usual parts; the caller adds descriptors. */
static inline struct enter_command cell_command(const struct cell *cell, char *const *argv)
{
	return (struct enter_command){
		.init_pidfd = cell->init_pidfd,
		.leaf_fd = cell->leaf_fd,
		.status_fd = -1,
		.stdin_fd = -1,
		.stdout_fd = -1,
		.stderr_fd = -1,
		.script_fd = -1,
		.cwd = "/",
		.argv = argv,
		.envp = cell_env,
		.rights = &cell->rights,
	};
}

/* A command whose pipes exist and that has been started. */
struct cell_started {
	int status_fd, output_fd;
};

/* cell_start() - make the pipes, as the keeper does, and start; fills in the descriptors the caller
 * left at -1. */
static inline int cell_start(const struct cell *cell, struct enter_command *cmd,
			     struct cell_run *run, struct cell_started *ret)
{
	_cleanup_fd_ int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int status[2], output[2];
	struct timespec before, after;

	memset(run, 0, sizeof(*run));
	if (null_fd < 0 || pipe2(status, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0)
		return -1;
	/* So that > /dev/stderr works inside, for every user there. */
	if (fchown(output[1], cell->root_id, cell->root_id) != 0 || fchmod(output[1], 0622) != 0)
		return -1;
	cmd->status_fd = status[1];
	if (cmd->stdin_fd < 0)
		cmd->stdin_fd = null_fd;
	if (cmd->stdout_fd < 0)
		cmd->stdout_fd = output[1];
	if (cmd->stderr_fd < 0)
		cmd->stderr_fd = output[1];
	(void)clock_gettime(CLOCK_MONOTONIC, &before);
	run->joiner = enter_start_joiner(cmd);
	(void)clock_gettime(CLOCK_MONOTONIC, &after);
	run->return_us = (uint64_t)((after.tv_sec - before.tv_sec) * 1000000 +
				    (after.tv_nsec - before.tv_nsec) / 1000);
	(void)close(status[1]);
	(void)close(output[1]);
	ret->status_fd = status[0];
	ret->output_fd = output[0];
	return run->joiner > 0 ? 0 : -1;
}

/* cell_finish() - wait for all of it; the command must end by itself. */
static inline void cell_finish(struct cell_run *run, struct cell_started *s)
{
	cell_status(run, s->status_fd, 10000);
	cell_output(run, s->output_fd, 20000);
	(void)close(s->status_fd);
	(void)close(s->output_fd);
	(void)waitpid(run->joiner, NULL, 0);
	run->wait_status = -1;
	if (run->pid > 0)
		(void)waitpid(run->pid, &run->wait_status, __WALL);
}

static inline int cell_run(const struct cell *cell, struct enter_command *cmd, struct cell_run *run)
{
	struct cell_started s;

	if (cell_start(cell, cmd, run, &s) != 0)
		return -1;
	cell_finish(run, &s);
	return 0;
}

/* cell_sh() - run a shell command with the usual parts. */
static inline int cell_sh(const struct cell *cell, const char *script, struct cell_run *run)
{
	char *argv[] = {cell_text("/bin/sh"), cell_text("-c"), cell_text(script), NULL};
	struct enter_command cmd = cell_command(cell, argv);

	return cell_run(cell, &cmd, run);
}
