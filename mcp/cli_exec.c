/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_exec.c - "exec": run one command in a sandbox with this process's own input and output
 *
 * Runs as the user (root of the storage namespace). Where a keeper holds the label it is asked through
 * its control socket, else a keeper of our own is forked for the length of the command. The keeper
 * hands over the raw ends of the command's pipes; this process copies bytes between them and its own
 * descriptors and reads none of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "mcp/cli.h"
#include "mcp/cli_client.h"
#include "mcp/cli_exec.h"
#include "mcp/cli_start.h"
#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"
#include "runtime/label.h"

enum { REQUEST_ID = 1 };

/* One direction of copying. poll() promises room for PIPE_BUF bytes and no more; our own standard
 * descriptors may be shared with other processes and are not made non-blocking. */
struct copy {
	int from, to; /* -1: this end is finished */
	char bytes[PIPE_BUF];
	size_t len, done;
	int error; /* errno of a write that failed; not when nobody reads any more */
};

struct session {
	struct client client;
	struct copy in, out, err;
	int signal_fd;
	bool finished; /* EXEC_DONE is here: what is in the pipes now is all there is */
	struct api_exec_done result;
};

static void copy_end(struct copy *c)
{
	close_fd(&c->from);
	close_fd(&c->to);
	c->len = c->done = 0;
}

static void copy_fill(struct copy *c)
{
	ssize_t n = read(c->from, c->bytes, sizeof(c->bytes));

	if (n > 0) {
		c->len = (size_t)n;
		c->done = 0;
	} else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
		copy_end(c);
	}
}

static void copy_flush(struct copy *c)
{
	ssize_t n = write(c->to, c->bytes + c->done, c->len - c->done);

	if (n > 0)
		c->done += (size_t)n;
	else if (errno != EINTR && errno != EAGAIN) {
		c->error = errno == EPIPE ? 0 : errno;
		copy_end(c); /* nobody reads: the command gets SIGPIPE as it would without us */
	}
	if (c->done == c->len)
		c->len = c->done = 0;
}

/* What poll() has to watch for a direction: room for what we hold, or something to hold. */
static struct pollfd copy_interest(const struct copy *c)
{
	if (c->len > 0)
		return (struct pollfd){ .fd = c->to, .events = POLLOUT };
	return (struct pollfd){ .fd = c->from, .events = POLLIN };
}

static void copy_step(struct copy *c, short revents)
{
	if (!revents || c->from < 0)
		return;
	if (c->len > 0)
		copy_flush(c);
	else
		copy_fill(c);
}

/* The reader of the command's input went away while we hold nothing for it. */
static bool reader_is_gone(const struct copy *c)
{
	struct pollfd p = { .fd = c->to, .events = 0 };

	return c->to >= 0 && poll(&p, 1, 0) == 1 && (p.revents & (POLLERR | POLLNVAL));
}

static int block_signals(struct err *e)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return err_sys(e, "set up signals");
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? err_sys(e, "set up signals") : fd;
}

static int forward_signal(struct session *s, struct err *e)
{
	struct signalfd_siginfo info;
	struct api_signal request = {
		.h = { .version = API_VERSION, .op = API_SIGNAL, .size = sizeof(request), .id = REQUEST_ID },
	};

	if (read(s->signal_fd, &info, sizeof(info)) != sizeof(info))
		return 0;
	request.signal = (int32_t)info.ssi_signo;
	return client_send(&s->client, &request, e);
}

static int take_done(struct session *s, const struct api_exec_done *done, struct err *e)
{
	if (done->h.size != sizeof(*done))
		return err_set(e, ERR_PROTOCOL, "the keeper sent a damaged answer");
	s->result = *done;
	s->finished = true;
	copy_end(&s->in);
	return 0;
}

static int take_message(struct session *s, struct err *e)
{
	union {
		struct api_header h;
		struct api_exec_done done;
		struct api_failed failed;
	} message;

	if (client_receive(&s->client, &message, sizeof(message), NULL, NULL, e) < 0)
		return -1;
	if (message.h.op == API_EXEC_DONE)
		return take_done(s, &message.done, e);
	if (message.h.op == API_FAILED && message.h.size == sizeof(message.failed)) {
		*e = message.failed.error;
		return -1;
	}
	return err_set(e, ERR_PROTOCOL, "the keeper sent an unexpected message");
}

/* After the end: pass on what the command left in the pipe, counted once. A background child may hold
 * the pipe, and write to it, for ever. */
static void drain(struct copy *c)
{
	int left = 0;

	if (c->from < 0 || ioctl(c->from, FIONREAD, &left) < 0)
		return;
	while (c->from >= 0 && (left > 0 || c->len > 0)) {
		struct pollfd p = copy_interest(c);

		if (poll(&p, 1, -1) < 0 && errno != EINTR)
			return;
		copy_step(c, p.revents);
		if (p.fd == c->from)
			left -= (int)c->len;
	}
}

static int stream(struct session *s, struct err *e)
{
	while (!s->finished) {
		struct pollfd p[] = {
			{ .fd = s->client.sock, .events = POLLIN },
			{ .fd = s->signal_fd, .events = POLLIN },
			copy_interest(&s->in),
			copy_interest(&s->out),
			copy_interest(&s->err),
			{ .fd = s->in.len == 0 ? s->in.to : -1, .events = 0 },
		};

		if (poll(p, ARRAY_SIZE(p), -1) < 0) {
			if (errno == EINTR)
				continue;
			return err_sys(e, "wait for the command");
		}
		copy_step(&s->in, p[2].revents);
		copy_step(&s->out, p[3].revents);
		copy_step(&s->err, p[4].revents);
		if (p[5].revents && reader_is_gone(&s->in))
			copy_end(&s->in);
		if (p[1].revents && forward_signal(s, e) < 0)
			return -1;
		if (p[0].revents && take_message(s, e) < 0)
			return -1;
	}
	drain(&s->out);
	drain(&s->err);
	return 0;
}

/* The command's bytes: one argument is a shell command, several are an argument
 * vector, separated by NUL. */
static int gather_command(const struct cli_call *call, struct buf *bytes, struct err *e)
{
	buf_init(bytes, API_COMMAND_MAX);
	for (size_t i = 0; i < call->command_count; i++) {
		if ((i > 0 && buf_append(bytes, "", 1) < 0) || buf_append_str(bytes, call->command[i]) < 0)
			return err_set(e, ERR_LIMIT, "exec: the command is longer than %d bytes",
				       API_COMMAND_MAX);
	}
	return 0;
}

static int send_staged(const struct client *c, const struct buf *bytes, size_t upto, struct err *e)
{
	_cleanup_free_ struct api_stage *m = malloc(sizeof(*m) + API_STAGE_MAX);

	if (!m)
		return err_set(e, ERR_NOMEM, "exec: out of memory");
	for (size_t at = 0; at < upto; at += m->len) {
		size_t len = upto - at < API_STAGE_MAX ? upto - at : API_STAGE_MAX;

		m->h = (struct api_header){ API_VERSION, API_STAGE, (uint32_t)(sizeof(*m) + len),
					    REQUEST_ID };
		m->len = (uint32_t)len;
		memcpy(m->bytes, bytes->data + at, len);
		if (client_send(c, m, e) < 0)
			return -1;
	}
	return 0;
}

static int send_exec(const struct client *c, const struct exec_request *r, struct err *e)
{
	size_t staged = r->bytes.len > API_STAGE_MAX ? r->bytes.len - API_STAGE_MAX : 0;
	size_t rest = r->bytes.len - staged;
	_cleanup_free_ struct api_exec *m = calloc(1, sizeof(*m) + rest);

	if (!m)
		return err_set(e, ERR_NOMEM, "exec: out of memory");
	if (send_staged(c, &r->bytes, staged, e) < 0)
		return -1;
	m->h = (struct api_header){ API_VERSION, API_EXEC, (uint32_t)(sizeof(*m) + rest), REQUEST_ID };
	m->mode = r->mode;
	m->flags = API_EXEC_STREAM | r->flags;
	m->timeout_ms = r->timeout_ms;
	m->staged = (uint32_t)staged;
	m->len = (uint32_t)rest;
	if (str_copy(m->owner, sizeof(m->owner), r->owner) < 0 ||
	    str_copy(m->key, sizeof(m->key), r->key) < 0)
		return err_set(e, ERR_USAGE, "exec: the label's key is too long");
	memcpy(m->bytes, r->bytes.data + staged, rest);
	return client_send(c, m, e);
}

/* The pipes of a started command. */
static int await_start(struct session *s, struct err *e)
{
	union {
		struct api_header h;
		struct api_started started;
		struct api_failed failed;
	} answer;
	int fds[FD_PASS_MAX];
	size_t count = ARRAY_SIZE(fds);

	if (client_receive(&s->client, &answer, sizeof(answer), fds, &count, e) < 0)
		return -1;
	if (answer.h.op == API_STARTED && count == 3) {
		s->in.to = fds[0];
		s->out.from = fds[1];
		s->err.from = fds[2];
		return fd_set_nonblock(s->in.to, true) < 0 ? err_sys(e, "standard input") : 0;
	}
	for (size_t i = 0; i < count; i++)
		close_fd(&fds[i]);
	if (answer.h.op == API_FAILED && answer.h.size == sizeof(answer.failed)) {
		*e = answer.failed.error;
		return -1;
	}
	return err_set(e, ERR_PROTOCOL, "the keeper did not start the command");
}

/* Copies, so that every end can be closed alike; a closed one is skipped. */
static void open_ends(struct session *s, const int fds[3])
{
	s->in.from = fcntl(fds[0], F_DUPFD_CLOEXEC, 3);
	s->out.to = fcntl(fds[1], F_DUPFD_CLOEXEC, 3);
	s->err.to = fcntl(fds[2], F_DUPFD_CLOEXEC, 3);
	if (s->in.from < 0)
		copy_end(&s->in);
	if (s->out.to < 0)
		copy_end(&s->out);
	if (s->err.to < 0)
		copy_end(&s->err);
}

static const char *not_enforced_text(uint32_t bits)
{
	static const char *const names[] = {
		"", "memory", "pids", "memory, pids", "cpu", "memory, cpu", "pids, cpu", "memory, pids, cpu",
	};

	return names[bits & CGROUP_ALL];
}

/* What the exit status alone does not say, on standard error. */
static void print_notes(const struct api_exec_done *done)
{
	char size[32];

	if (done->flags & API_TIMED_OUT)
		fprintf(stderr, "mcp-sandbox: timeout: %llu ms\n", (unsigned long long)done->timeout_ms);
	if (done->flags & API_OUT_OF_MEMORY)
		fprintf(stderr, "mcp-sandbox: out of memory: limit %s\n",
			str_format_size(done->memory_limit_bytes, size, sizeof(size)));
	if (done->flags & API_PIDS_REFUSED)
		fprintf(stderr, "mcp-sandbox: process limit: %u\n", done->pids_limit);
	if (done->project_unreadable || done->project_sockets)
		fprintf(stderr, "mcp-sandbox: in the mounted folders: %s%u files or directories that cannot be "
			"read, %u sockets of this host\n",
			done->flags & API_PROJECT_PARTIAL ? "at least " : "", done->project_unreadable,
			done->project_sockets);
	for (uint32_t i = 0; i < done->blocked_count && i < API_BLOCKED_MAX; i++)
		fprintf(stderr, "mcp-sandbox: blocked: %.*s\n", API_BLOCKED_TEXT_MAX - 1, done->blocked[i]);
	if (done->not_enforced)
		fprintf(stderr, "mcp-sandbox: limits not enforced: %s%s%s\n", not_enforced_text(done->not_enforced),
			(done->not_enforced & CGROUP_ALL) && (done->not_enforced & LIMIT_DISK) ? ", " : "",
			done->not_enforced & LIMIT_DISK ? "disk" : "");
}

static int run_session(struct session *s, const struct exec_request *r, struct err *e)
{
	if (send_exec(&s->client, r, e) < 0 || await_start(s, e) < 0)
		return -1;
	/* From here on signals are the command's. Until then they end us, and the keeper takes that as the
	 * end of the request: a start may wait for long, for instance for another command's end. */
	s->signal_fd = block_signals(e);
	if (s->signal_fd < 0)
		return -1;
	open_ends(s, r->fds);
	if (stream(s, e) < 0)
		return -1;
	print_notes(&s->result);
	if (s->out.error != 0 || s->err.error != 0) { /* a full disk must not look like success */
		errno = s->out.error != 0 ? s->out.error : s->err.error;
		return err_sys(e, "write what the command printed");
	}
	return s->result.flags & API_TIMED_OUT ? CLI_TIMEOUT : s->result.exit_code;
}

/* The keeper of the label, or one of our own. */
static int open_client(const struct start *start, const struct exec_request *r, struct client *c,
		       struct err *e)
{
	struct store store;
	pid_t holder, pid = 0;
	int sock;

	if (store_open(&store, start->settings.home, e) < 0)
		return -1;
	holder = store_label_holder(&store, r->owner, r->key);
	if (holder > 0 && start->projects.count > 0) {
		store_done(&store);
		err_set(e, ERR_BUSY, "--mount: the label is in use by process %d, whose folders were fixed when it "
			"started", (int)holder);
		return err_remedy(e, "leave --mount out, or use another label");
	}
	if (holder > 0) {
		int result = client_connect(c, &store, holder, e);

		store_done(&store);
		return result;
	}
	store_done(&store);
	sock = start_keeper_once(start, &pid, e);
	return sock < 0 ? -1 : client_adopt(c, sock, pid, e);
}

int exec_run(const struct start *start, const struct exec_request *r, struct err *e)
{
	struct session s = {
		.client.sock = -1,
		.in = { .from = -1, .to = -1 },
		.out = { .from = -1, .to = -1 },
		.err = { .from = -1, .to = -1 },
		.signal_fd = -1,
	};
	int status = -1;

	if (open_client(start, r, &s.client, e) == 0)
		status = run_session(&s, r, e);
	if (status >= 0 && r->throw_away && client_key_request(&s.client, API_REMOVE, r->owner, r->key, true, e) < 0)
		status = -1;
	copy_end(&s.in);
	copy_end(&s.out);
	copy_end(&s.err);
	close_fd(&s.signal_fd);
	client_close(&s.client);
	return status;
}

static int parse_timeout(const struct cli_call *call, uint64_t *ret_ms, struct err *e)
{
	const char *text = cli_option(call, "timeout");

	if (!text)
		return 0;
	if (str_parse_duration_ms(text, ret_ms) == 0 && *ret_ms > 0)
		return 0;
	err_set(e, ERR_USAGE, "--timeout: not a duration");
	return err_remedy(e, "give seconds, or a number with s, m or h");
}

static int parse_user(const struct cli_call *call, uint32_t *ret_flags, struct err *e)
{
	const char *user = cli_option(call, "user");

	if (!user || strcmp(user, "user") == 0)
		return 0;
	if (strcmp(user, "root") != 0)
		return err_set(e, ERR_USAGE, "--user: neither root nor user");
	*ret_flags |= API_EXEC_ROOT;
	return 0;
}

/* From here on every failure is told apart from the command's own by status 125. */
static int exec_status(int status, const struct err *e)
{
	if (status >= 0)
		return status;
	if (e->code == ERR_USAGE || e->code == ERR_CONFIG)
		return -1;
	cli_print_error(e);
	return CLI_OUR_ERROR;
}

int cli_exec(struct cli_call *call, struct err *e)
{
	const char *label = call->args[0];
	char key[KEY_MAX];
	struct start start;
	struct exec_request r = { .key = key, .fds = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO } };
	int status = -1;

	if (parse_timeout(call, &r.timeout_ms, e) < 0 || parse_user(call, &r.flags, e) < 0 ||
	    start_settings(call, &start, e) < 0)
		return -1;
	r.owner = start.settings.owner;
	r.mode = call->command_count == 1 ? API_EXEC_SHELL : API_EXEC_ARGV;
	if (gather_command(call, &r.bytes, e) == 0 && label_to_key(label, strlen(label), key, e) == 0 &&
	    start_host(call, &start, e) == 0)
		status = exec_run(&start, &r, e);
	buf_done(&r.bytes);
	start_done(&start);
	return exec_status(status, e);
}
