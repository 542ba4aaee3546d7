/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/present.c - workers that open and copy a file of a workspace
 *
 * Runs in the keeper; open_main() and copy_main() run in forked workers. The opener holds the
 * workspace's descriptor and DAC_OVERRIDE/DAC_READ_SEARCH over sandbox ids, nothing else; it opens what
 * a sandbox wrote, which may be a link, a FIFO or a directory by the time it is opened, so the kernel
 * resolves the path (openat2) and the type is checked on the descriptor. The copier holds that
 * descriptor and the user's folder, no capability, and makes only new names.
 */
#include "runtime/present.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/log.h"
#include "runtime/base/str.h"
#include "runtime/helper.h"

static const uint64_t copy_max = UINT64_C(2) << 30;
static const uint64_t open_caps = UINT64_C(1) << CAP_DAC_OVERRIDE |
				  UINT64_C(1) << CAP_DAC_READ_SEARCH;

enum {
	WORKER_MS = 120 * 1000,
	NAME_TRIES = 1000,
	COPY_STEP = 1024 * 1024,
};

enum trouble { /* what the sentence says; anything else is an errno */
	TROUBLE_NONE = 0,
	TROUBLE_DIRECTORY = -1,
	TROUBLE_FIFO = -2,
	TROUBLE_SOCKET = -3,
	TROUBLE_DEVICE = -4,
	TROUBLE_CHANGED = -5,
	TROUBLE_TOO_LARGE = -6,
	TROUBLE_NAMES = -7,
	TROUBLE_UNKNOWN = -8,
};

struct reply { /* worker -> keeper, with the descriptor when the opener has succeeded */
	int32_t trouble;
	uint64_t size;
	char name[NAME_MAX + 1]; /* copier: the new file's */
};

struct job {
	struct request req;
	struct registry *reg;
	struct loop_source source; /* our end of the worker's socket */
	struct loop_timer timer;
	struct reap_child worker;
	const struct idrange *ids; /* the owner's: the worker may have these and no others */
	bool copy, copying, in_project;
	uint64_t size;
	char key[KEY_MAX];
	char path[API_PATH_MAX];
};

/* ---- the opener ---- */

static int type_trouble(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return TROUBLE_NONE;
	case S_IFDIR:
		return TROUBLE_DIRECTORY;
	case S_IFIFO:
		return TROUBLE_FIFO;
	case S_IFSOCK:
		return TROUBLE_SOCKET;
	case S_IFLNK:
		return ELOOP;
	default:
		return TROUBLE_DEVICE;
	}
}

/* Twice: the first descriptor can neither wait for a FIFO's writer nor start a device, the second must
 * be of the same file. */
static int open_regular(int workspace_fd, const char *path, struct reply *reply)
{
	int look = fd_open_beneath(workspace_fd, path, O_PATH, 0), fd;
	struct stat before, after;

	if (look < 0 || fstat(look, &before) < 0) {
		reply->trouble = errno;
		return -1;
	}
	reply->trouble = type_trouble(before.st_mode);
	if (reply->trouble != TROUBLE_NONE)
		return -1;
	fd = fd_open_beneath(workspace_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0 || fstat(fd, &after) < 0) {
		reply->trouble = errno;
		return -1;
	}
	if (!S_ISREG(after.st_mode) || before.st_dev != after.st_dev || before.st_ino != after.st_ino) {
		reply->trouble = TROUBLE_CHANGED;
		return -1;
	}
	reply->size = (uint64_t)after.st_size;
	return fd;
}

/* A folder of the operator's is looked at with a command's rights, not with more. */
static int enter_opener(const struct job *job, int *fds, size_t count, struct err *e)
{
	if (!job->in_project)
		return helper_enter(job->ids, fds, count, open_caps, e);
	if (job->reg->projects->as_user)
		return helper_enter_as_user(fds, count, e);
	return helper_enter_owner(job->ids, fds, count, open_caps, e);
}

static void __attribute__((noreturn)) open_main(const struct job *job, int workspace_fd, int sock)
{
	int fds[2] = { workspace_fd, sock }, fd;
	struct reply reply = { 0 };
	struct err e;

	if (enter_opener(job, fds, 2, &e) < 0) {
		log_error("open a file: %s", e.message);
		_exit(1);
	}
	fd = open_regular(fds[0], job->path, &reply);
	(void)fd_send_msg(fds[1], &reply, sizeof(reply), &fd, fd >= 0 ? 1 : 0);
	_exit(0);
}

/* ---- the copier ---- */

static int copy_bytes(int from, int to, uint64_t size)
{
	uint64_t done = 0;

	while (done < size) {
		size_t step = size - done < COPY_STEP ? (size_t)(size - done) : COPY_STEP;
		ssize_t n = sendfile(to, from, NULL, step);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		if (n == 0) /* it shrank while it was read: what there is, is copied */
			return TROUBLE_NONE;
		done += (uint64_t)n;
	}
	return TROUBLE_NONE;
}

/* "name", "name (1)", "name (2)", before the extension: what is there is never touched. */
static int new_file(int dir_fd, const char *base, char name[NAME_MAX + 1])
{
	const char *dot = strrchr(base, '.');
	int stem = dot && dot != base ? (int)(dot - base) : (int)strlen(base);

	for (int i = 0; i < NAME_TRIES; i++) {
		int len = i == 0 ? snprintf(name, NAME_MAX + 1, "%s", base) :
				   snprintf(name, NAME_MAX + 1, "%.*s (%d)%s", stem, base, i,
					    base + stem);
		int fd;

		if (len > NAME_MAX) {
			errno = ENAMETOOLONG;
			return -1;
		}
		fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	errno = EEXIST;
	return -1;
}

static void copy_file(int from, int dir_fd, const char *base, uint64_t size, struct reply *reply)
{
	int to;

	reply->size = size;
	if (size > copy_max) {
		reply->trouble = TROUBLE_TOO_LARGE;
		return;
	}
	to = new_file(dir_fd, base, reply->name);
	if (to < 0) {
		reply->trouble = errno == EEXIST ? TROUBLE_NAMES : errno;
		return;
	}
	reply->trouble = copy_bytes(from, to, size);
	if (reply->trouble != TROUBLE_NONE)
		(void)unlinkat(dir_fd, reply->name, 0);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void __attribute__((noreturn)) copy_main(const struct job *job, int file, int dir, int sock)
{
	int fds[3] = { file, dir, sock };
	struct reply reply = { 0 };
	struct err e;

	if (helper_enter_as_user(fds, 3, &e) < 0) {
		log_error("copy a file: %s", e.message);
		_exit(1);
	}
	copy_file(fds[0], fds[1], base_name(job->path), job->size, &reply);
	(void)fd_send_msg(fds[2], &reply, sizeof(reply), NULL, 0);
	_exit(0);
}

/* ---- the user's folder ---- */

static int default_folder(char *ret, size_t size, struct err *e)
{
	const char *home = getenv("HOME");

	if (!home || home[0] != '/' ||
	    snprintf(ret, size, "%s/Downloads/mcp-sandbox", home) >= (int)size) {
		(void)err_set(e, ERR_CONFIG, "no folder to copy files to");
		return err_remedy(e, "set SANDBOX_PRESENT_DIR");
	}
	return 0;
}

/* The operator's own path: links in it are the operator's business. */
static int make_folder(const char *path, struct err *e)
{
	char part[PATH_MAX];
	int fd;

	for (const char *p = strchr(path + 1, '/');; p = strchr(p + 1, '/')) {
		size_t len = p ? (size_t)(p - path) : strlen(path);

		memcpy(part, path, len);
		part[len] = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return err_sys(e, "make folder %s", part);
		if (!p)
			break;
	}
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, "open folder %s", path) : fd;
}

static int present_folder(const struct job *job, char *ret_path, size_t size, struct err *e)
{
	const char *setting = job->reg->settings->present_dir;
	char folder[PATH_MAX];

	if (setting[0] == '\0') {
		if (default_folder(folder, sizeof(folder), e) < 0)
			return -1;
	} else {
		(void)str_copy(folder, sizeof(folder), setting);
	}
	if (snprintf(ret_path, size, "%s/%s", folder, job->key) >= (int)size)
		return err_set(e, ERR_CONFIG, "SANDBOX_PRESENT_DIR is too long");
	return make_folder(ret_path, e);
}

/* ---- the keeper's side ---- */

static void on_reply(struct loop_source *s, uint32_t events);

static void job_free(struct job *job)
{
	struct registry *reg = job->reg;
	int fd = job->source.fd;

	loop_timer_cancel(reg->loop, &job->timer);
	if (fd >= 0) {
		loop_remove(&job->source);
		close_fd(&fd);
	}
	if (job->worker.pid > 0)
		(void)kill(job->worker.pid, SIGKILL);
	reap_forget(reg->reaper, &job->worker);
	free(job);
}

static struct job *job_of(struct request *req)
{
	return (struct job *)((char *)req - offsetof(struct job, req));
}

static void on_abandoned(struct request *req)
{
	job_free(job_of(req));
}

static void job_fail(struct job *job, const struct err *error)
{
	request_fail(&job->req, error);
	job_free(job);
}

static void explain(const struct job *job, int trouble, struct err *e)
{
	static const struct {
		int trouble;
		enum err_code code;
		const char *text;
	} table[] = {
		{ ENOENT, ERR_NOT_FOUND, "no such file in the workspace" },
		{ ELOOP, ERR_DENIED, "is a symbolic link, or leads through one" },
		{ EXDEV, ERR_DENIED, "leads out of the workspace" },
		{ ENOTDIR, ERR_NOT_FOUND, "leads through something that is not a directory" },
		{ ENXIO, ERR_DENIED, "is a socket, not a file" },
		{ TROUBLE_DIRECTORY, ERR_DENIED, "is a directory, not a file" },
		{ TROUBLE_FIFO, ERR_DENIED, "is a FIFO, not a file" },
		{ TROUBLE_SOCKET, ERR_DENIED, "is a socket, not a file" },
		{ TROUBLE_DEVICE, ERR_DENIED, "is a device, not a file" },
		{ TROUBLE_CHANGED, ERR_DENIED, "was replaced while it was being opened" },
		{ TROUBLE_TOO_LARGE, ERR_LIMIT, "is larger than 2 GiB" },
		{ TROUBLE_NAMES, ERR_LIMIT, "has been copied too often: every name is taken" },
		{ TROUBLE_UNKNOWN, ERR_SYSTEM, "the worker that opens files has failed" },
	};
	char path[256];

	(void)str_escape(path, sizeof(path), job->path, strlen(job->path));
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (table[i].trouble == trouble) {
			(void)err_set(e, table[i].code, "%s: %s", path, table[i].text);
			return;
		}
	}
	errno = trouble > 0 ? trouble : EIO;
	(void)err_sys(e, "%s", path);
}

static void fail_with(struct job *job, int trouble)
{
	struct err e = { 0 };

	explain(job, trouble, &e);
	job_fail(job, &e);
}

static void on_timer(struct loop_timer *t)
{
	struct err e = { 0 };

	(void)err_set(&e, ERR_TIMEOUT, "handing the file over took longer than %d s",
		      WORKER_MS / 1000);
	job_fail(t->ctx, &e);
}

static void on_worker_reaped(struct reap_child *c, struct reap_status status)
{
	/* What it had to say is in the socket, or there is an end of file. */
	(void)c;
	(void)status;
}

/* The worker's pid is ours to watch from here; its socket tells the rest. */
static int watch_worker(struct job *job, pid_t pid, int sock, struct err *e)
{
	struct registry *reg = job->reg;

	if (pid < 0) {
		close_fd(&sock);
		return err_sys(e, "fork");
	}
	if (reap_watch(reg->reaper, &job->worker, pid, on_worker_reaped, job) < 0 ||
	    loop_add(reg->loop, &job->source, sock, EPOLLIN, on_reply, job, e) < 0) {
		close_fd(&sock);
		return err_set(e, ERR_SYSTEM, "a worker cannot be watched");
	}
	if (loop_timer_set(reg->loop, &job->timer, WORKER_MS, on_timer, job) < 0)
		return err_set(e, ERR_NOMEM, "no memory for a timer");
	return 0;
}

static int worker_socket(int ret[2], struct err *e)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) < 0)
		return err_sys(e, "make a socket pair");
	return 0;
}

static int start_opener(struct job *job, int workspace_fd, struct err *e)
{
	int pair[2];
	pid_t pid;

	if (worker_socket(pair, e) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		open_main(job, workspace_fd, pair[1]);
	close_fd(&pair[1]);
	return watch_worker(job, pid, pair[0], e);
}

static int start_copier(struct job *job, int file_fd, struct err *e)
{
	_cleanup_fd_ int dir_fd = -1;
	char path[PATH_MAX];
	int pair[2];
	pid_t pid;

	dir_fd = present_folder(job, path, sizeof(path), e);
	if (dir_fd < 0 || worker_socket(pair, e) < 0)
		return -1;
	job->copying = true;
	pid = fork();
	if (pid == 0)
		copy_main(job, file_fd, dir_fd, pair[1]);
	close_fd(&pair[1]);
	return watch_worker(job, pid, pair[0], e);
}

static void stop_watching(struct job *job)
{
	int fd = job->source.fd;

	loop_remove(&job->source);
	close_fd(&fd);
	reap_forget(job->reg->reaper, &job->worker);
	job->worker.pid = 0;
}

static void answer_opened(struct job *job, int fd)
{
	struct api_present_done msg = { .size = job->size };

	request_answer(&job->req, API_PRESENT_DONE, &msg, sizeof(msg), &fd, 1);
	job_free(job);
}

static void answer_copied(struct job *job, const char *name)
{
	struct api_present_done msg = { .size = job->size };
	struct err e = { 0 };
	char folder[PATH_MAX];
	_cleanup_fd_ int dir_fd = present_folder(job, folder, sizeof(folder), &e);

	if (dir_fd < 0 ||
	    snprintf(msg.path, sizeof(msg.path), "%s/%s", folder, name) >= (int)sizeof(msg.path)) {
		job_fail(job, &e);
		return;
	}
	request_answer(&job->req, API_PRESENT_DONE, &msg, sizeof(msg), NULL, 0);
	job_free(job);
}

static void on_opened(struct job *job, int fd)
{
	struct err e = { 0 };

	if (!job->copy)
		answer_opened(job, fd);
	else if (start_copier(job, fd, &e) < 0)
		job_fail(job, &e);
}

static void on_reply(struct loop_source *s, uint32_t events)
{
	struct job *job = s->ctx;
	struct reply reply = { 0 };
	size_t count = 1;
	_cleanup_fd_ int fd = -1;
	ssize_t n = fd_recv_msg(s->fd, &reply, sizeof(reply), &fd, &count);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	stop_watching(job);
	reply.name[sizeof(reply.name) - 1] = '\0';
	if (n != sizeof(reply) || (reply.trouble == TROUBLE_NONE && !job->copying && fd < 0)) {
		fail_with(job, TROUBLE_UNKNOWN);
	} else if (reply.trouble != TROUBLE_NONE) {
		fail_with(job, reply.trouble);
	} else {
		job->size = reply.size;
		if (job->copying)
			answer_copied(job, reply.name);
		else
			on_opened(job, fd);
	}
}

/* The workspace of a label that runs here, or of one that does not run at all. */
static int open_file(struct job *job, const char *owner, struct err *e)
{
	struct registry *reg = job->reg;
	struct project *project = projects_workspace(reg->projects);
	struct sandbox *sb = registry_find(reg, owner, job->key);
	struct store_label label;
	pid_t holder = 0;
	int rc;

	job->in_project = project != NULL;
	if (!project && reg->settings->profile->workspace_tmpfs_bytes)
		return err_set(e, ERR_DENIED, "this profile keeps no files");
	job->ids = sb ? sb->ids : owners_ids(reg->owners, owner, project != NULL, e);
	if (project)
		return !job->ids || project_use(project, job->ids, e) < 0 ?
			       -1 :
			       start_opener(job, project->tree_fd, e);
	if (sb)
		return start_opener(job, sb->label.workspace_fd, e);
	if (!job->ids ||
	    store_label_open(reg->store, job->ids, owner, job->key, false, &label, &holder, e) < 0)
		return -1;
	rc = start_opener(job, label.workspace_fd, e);
	store_label_done(&label);
	return rc;
}

int present_begin(struct registry *reg, struct peer *p, const struct api_present *msg, struct err *e)
{
	struct job *job = calloc(1, sizeof(*job));
	struct err why = { 0 };

	if (!job)
		return err_set(e, ERR_NOMEM, "no memory for a request");
	job->reg = reg;
	job->source.fd = -1;
	job->copy = msg->copy == 1;
	memcpy(job->key, msg->key, sizeof(job->key));
	memcpy(job->path, msg->path, sizeof(job->path));
	if (request_begin(p, &job->req, &msg->h, on_abandoned, e) < 0) {
		free(job);
		return -1;
	}
	if (open_file(job, msg->owner, &why) < 0)
		job_fail(job, &why);
	return 0;
}
