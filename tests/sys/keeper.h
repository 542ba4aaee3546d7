/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sys/keeper.h - a keeper for tests, an image it can run commands from, and a client
 *
 * The image is the host's own bash and a few tools with their libraries, copied into a state directory
 * made for the test; the same for root and for an ordinary user.
 */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "runtime/api.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/log.h"
#include "runtime/cgroup.h"
#include "runtime/keeper.h"
#include "runtime/store.h"
#include "runtime/userns.h"
#include "tests/unit/tap.h"

enum { KT_TEXT_MAX = 256 * 1024, KT_WAIT_MS = 30000 };

struct kt { /* what all keepers of a test share */
	char home[64];
	struct settings settings;
	struct cgroup_tree tree;
	struct idrange ids;
	bool limited; /* there is a cgroup */
	const struct token_table *fixed_tokens; /* NULL: keepers of one owner */
};

static const char *kt_owner = OWNER_DEFAULT; /* whom requests are made for */

struct keeper_proc {
	pid_t pid;
	int sock;
	struct api_hello hello;
};

struct reply {
	union {
		struct api_header h;
		struct api_exec_done done;
		struct api_failed failed;
		struct api_present_done present;
		struct api_done key;
		struct api_progress progress;
		struct api_started started;
		struct api_tokens tokens;
		struct {
			struct api_info_done done;
			struct api_info_row rows[API_INFO_MAX];
		} info;
		char bytes[API_MSG_MAX];
	};
	int fds[FD_PASS_MAX];
	size_t fd_count;
	char text[KT_TEXT_MAX]; /* log, NUL-terminated */
};

static const char kt_image_script[] =
	"set -e; mkdir -p $1/bin $1/etc $1/root $1/var $1/usr $1/lib; cd $1\n"
	"for t in bash echo cat sleep yes true false ls id ln mkfifo mkdir rm mv seq head tail dd touch wc "
	"setsid kill env chmod stat sort grep nohup readlink truncate; do\n"
	"  p=$(command -v $t || true); [ -n \"$p\" ] && [ -x \"$p\" ] || p=/bin/$t\n"
	"  [ -e bin/$t ] || cp -L $p bin/$t\n"
	"  ldd $p 2>/dev/null | grep -o '/[^ ]*' | while read -r l; do\n"
	"    mkdir -p .${l%/*}; [ -e .$l ] || cp -L $l .$l; done\n"
	"done\n"
	"cp bin/bash bin/sh; printf 'root:x:0:0:root:/root:/bin/bash\\n' > etc/passwd\n"
	": > etc/profile; chown -hR $2:$2 .\n";

static inline int kt_shell(const char *script, const char *a, const char *b)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		(void)dup2(2, 1);
		execl("/bin/sh", "sh", "-c", script, "sh", a, b, (char *)NULL);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) < 0)
		tap_bail("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline void kt_settings(struct kt *t)
{
	const struct profile *p = &profile_table[PROFILE_CODE];

	t->settings = (struct settings){
		.profile = p, .limits = p->limits, .limits_best_effort = true, .net = NET_NONE,
		.max_sandboxes = 2, .idle_ms = 300 * 1000, .timeout_default_ms = 20 * 1000,
		.timeout_max_ms = 60 * 1000, .output_max_bytes = 1 << 20,
		.image_max_bytes = 1 << 20, .image = "default", .owner = OWNER_DEFAULT,
	};
	(void)snprintf(t->settings.home, sizeof(t->settings.home), "%s/state", t->home);
	(void)snprintf(t->settings.present_dir, sizeof(t->settings.present_dir), "%s/out", t->home);
}

/* Settle where we are; an ordinary user's program starts again here, as root of the storage namespace. */
static inline void kt_enter(struct kt *t, const char *cgroup, char **argv)
{
	struct err e = { 0 };

	(void)signal(SIGPIPE, SIG_IGN);
	(void)umask(022);
	log_init("test", LOG_LEVEL_WARN);
	memset(t, 0, sizeof(*t));
	if (cgroup_acquire(&t->tree, cgroup, true, &e) != 0)
		tap_diag("no cgroup: %s", e.message);
	if (userns_enter_storage(t->tree.root_fd, "", argv, &e) < 0 ||
	    userns_range_init(&t->ids, "", 0, &e) < 0)
		tap_bail("%s; %s", e.message, e.remedy);
	t->limited = t->tree.root_fd >= 0;
}

/* A state directory with an image, in t->home. */
static inline void kt_make(struct kt *t)
{
	char image[PATH_MAX + 32], uid[16];
	struct store store;
	struct err e = { 0 };

	kt_settings(t);
	if (store_open(&store, t->settings.home, &e) < 0)
		tap_bail("%s", e.message);
	store_done(&store);
	(void)snprintf(image, sizeof(image), "%s/images/default/rootfs", t->settings.home);
	(void)snprintf(uid, sizeof(uid), "%u", t->ids.base + ID_SANDBOX_ROOT);
	if (kt_shell("mkdir -p $1", image, "") != 0 || kt_shell(kt_image_script, image, uid) != 0)
		tap_bail("make the image");
}

static inline void kt_open(struct kt *t, char **argv)
{
	const char *cgroup = getenv("MCPT_CGROUP");

	kt_enter(t, cgroup ? cgroup : "", argv);
	strcpy(t->home, "/var/tmp/mcpt-keeper-XXXXXX");
	if (!mkdtemp(t->home))
		tap_bail("mkdtemp");
	kt_make(t);
}

static inline void kt_close(struct kt *t)
{
	(void)kt_shell("rm -rf -- \"$1\"", t->home, "");
	userns_range_done(&t->ids);
	cgroup_tree_done(&t->tree);
}

/* ---- messages ---- */

static inline uint64_t kt_now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static inline void kt_sleep_ms(unsigned int ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	(void)nanosleep(&ts, NULL);
}

static inline void reply_close(struct reply *r)
{
	for (size_t i = 0; i < r->fd_count; i++)
		close_fd(&r->fds[i]);
	r->fd_count = 0;
}

/* One message. Return: 1, 0 end of file, -1 nothing within wait_ms. */
static inline int kt_receive(int sock, struct reply *r, int wait_ms)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	ssize_t n;

	if (poll(&p, 1, wait_ms) != 1)
		return -1;
	r->fd_count = FD_PASS_MAX;
	n = fd_recv_msg(sock, r->bytes, sizeof(r->bytes), r->fds, &r->fd_count);
	if (n <= 0) {
		r->fd_count = 0;
		return 0;
	}
	r->text[0] = '\0';
	if (r->h.op == API_EXEC_DONE && r->done.log_bytes > 0 && r->fd_count > 0) {
		ssize_t len = pread(r->fds[0], r->text, sizeof(r->text) - 1, 0);

		r->text[len > 0 ? len : 0] = '\0';
		if ((uint64_t)len > r->done.log_bytes)
			r->text[r->done.log_bytes] = '\0';
	}
	return 1;
}

static inline void kt_expect(int sock, struct reply *r)
{
	if (kt_receive(sock, r, KT_WAIT_MS) != 1)
		tap_bail("no answer from the keeper");
}

static inline int kt_send(int sock, void *msg, uint16_t op, uint32_t size, uint64_t id)
{
	struct api_header *h = msg;

	struct pollfd p = { .fd = sock, .events = POLLOUT };

	*h = (struct api_header){ .version = API_VERSION, .op = op, .size = size, .id = id };
	while (fd_send_msg(sock, msg, size, NULL, 0) < 0) {
		if (errno != EAGAIN || poll(&p, 1, KT_WAIT_MS) != 1)
			return -1;
	}
	return 0;
}

struct exec_options {
	uint32_t mode, flags, staged;
	uint64_t timeout_ms;
	const char *cwd;
};

static inline void kt_exec_send(int sock, uint64_t id, const char *key, const void *bytes, size_t len,
				struct exec_options o)
{
	static union {
		struct api_exec msg;
		char room[API_MSG_MAX];
	} u;

	memset(&u.msg, 0, sizeof(u.msg));
	strcpy(u.msg.owner, kt_owner);
	(void)snprintf(u.msg.key, sizeof(u.msg.key), "%s", key);
	u.msg.mode = o.mode;
	u.msg.flags = o.flags;
	u.msg.staged = o.staged;
	u.msg.timeout_ms = o.timeout_ms;
	u.msg.len = (uint32_t)len;
	(void)snprintf(u.msg.cwd, sizeof(u.msg.cwd), "%s", o.cwd ? o.cwd : "");
	memcpy(u.msg.bytes, bytes, len);
	if (kt_send(sock, &u, API_EXEC, (uint32_t)(sizeof(u.msg) + len), id) < 0)
		tap_bail("send");
}

/* Send a command and await its answer. */
static inline void kt_exec(int sock, const char *key, const char *command, struct exec_options o,
			   struct reply *r)
{
	static uint64_t id = 1000;

	kt_exec_send(sock, ++id, key, command, strlen(command), o);
	kt_expect(sock, r);
	if (r->h.id != id)
		tap_diag("answer %" PRIu64 " instead of %" PRIu64, r->h.id, id);
	if (r->h.op == API_FAILED)
		tap_diag("%s | %s", r->failed.error.message, r->failed.error.remedy);
}

static inline void kt_key_send(int sock, uint16_t op, uint64_t id, const char *key, bool workspace)
{
	struct api_key_request msg = { .workspace = workspace };

	strcpy(msg.owner, kt_owner);
	(void)snprintf(msg.key, sizeof(msg.key), "%s", key);
	if (kt_send(sock, &msg, op, sizeof(msg), id) < 0)
		tap_bail("send");
}

static inline void kt_present_send(int sock, uint64_t id, const char *key, const char *path, bool copy)
{
	struct api_present msg = { .copy = copy };

	strcpy(msg.owner, kt_owner);
	(void)snprintf(msg.key, sizeof(msg.key), "%s", key);
	(void)snprintf(msg.path, sizeof(msg.path), "%s", path);
	if (kt_send(sock, &msg, API_PRESENT, sizeof(msg), id) < 0)
		tap_bail("send");
}

/* ---- keepers ---- */

static inline void keeper_start_proc(const struct kt *t, const struct settings *s,
				     enum keeper_kind kind, struct keeper_proc *ret)
{
	struct err e = { 0 };
	struct reply *r;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		tap_bail("socketpair");
	fflush(stdout);
	ret->pid = fork();
	if (ret->pid == 0) {
		struct keeper_start ks = { .settings = s, .cgroup = &t->tree, .ids = &t->ids,
					   .kind = kind, .peer_fd = pair[1],
					   .fixed_tokens = t->fixed_tokens };
		int status;

		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		(void)close(pair[0]);
		status = keeper_run(&ks, &e);
		if (status < 0)
			fprintf(stderr, "keeper: %s\n", e.message);
		_exit(status < 0 ? 1 : status);
	}
	(void)close(pair[1]);
	ret->sock = pair[0];
	r = calloc(1, sizeof(*r));
	kt_expect(ret->sock, r);
	memcpy(&ret->hello, r->bytes, sizeof(ret->hello));
	if (r->h.op != API_HELLO || ret->hello.start_failure.code != ERR_NONE)
		tap_bail("keeper: %s; %s", ret->hello.start_failure.message,
			 ret->hello.start_failure.remedy);
	free(r);
}

/* Return: its exit status; *ret_ms how long it took to end after its peer was gone. */
static inline int keeper_end_proc(struct keeper_proc *k, uint64_t *ret_ms)
{
	uint64_t begin = kt_now_ms();
	int status;

	close_fd(&k->sock);
	if (waitpid(k->pid, &status, 0) < 0)
		tap_bail("waitpid");
	if (ret_ms)
		*ret_ms = kt_now_ms() - begin;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- counting ---- */

static inline unsigned int kt_count_fds(pid_t pid)
{
	char path[64];
	unsigned int n = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && readdir(dir))
		n++;
	if (dir)
		(void)closedir(dir);
	return n;
}

/* Processes whose command line has this word (a sandbox's are visible from outside). */
static inline unsigned int kt_count_processes(const char *word)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	unsigned int n = 0;

	while (dir && (d = readdir(dir))) {
		char path[300], text[4096];
		ssize_t len;
		int fd;

		if (d->d_name[0] < '0' || d->d_name[0] > '9')
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%s/cmdline", d->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
		close_fd(&fd);
		for (ssize_t i = 0; i < len; i++)
			text[i] = text[i] == '\0' ? ' ' : text[i];
		text[len > 0 ? len : 0] = '\0';
		n += strstr(text, word) != NULL;
	}
	if (dir)
		(void)closedir(dir);
	return n;
}

/* Children of a process, zombies too. */
static inline unsigned int kt_count_children(pid_t pid)
{
	char path[64], text[8192];
	unsigned int n = 0;
	ssize_t len;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	len = fd_read_file_at(AT_FDCWD, path, text, sizeof(text));
	for (ssize_t i = 0; i < len; i++)
		n += text[i] == ' ';
	return n;
}

static inline uint64_t kt_status_kib(pid_t pid, const char *field)
{
	char path[64], text[8192];
	const char *at;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	at = strstr(text, field);
	return at ? strtoull(at + strlen(field) + 1, NULL, 10) : 0;
}
