/* SPDX-License-Identifier: Apache-2.0 */
/* tests/proto/fake_keeper.c - answers a front like the keeper would, without any sandbox
 *
 *   fake-keeper [--profile P] [--log FILE] [--fail-start] [--deaf-ms N] [--id N] [--token TOKEN OWNER]... FRONT
 *
 * Starts FRONT with standard input and output passed through and the other end of a SOCK_SEQPACKET
 * pair as descriptor 3. What a "command" does is said in the command itself, as words:
 *   out=TEXT (\n \r \t \e \s space, \xHH)  repeat=N  exit=N  flags=N  left=N  throttled=US
 *   missing=N (not enforced)  replaced=N  wait=MS  hang  die  fail=CODE:MESSAGE|REMEDY  cap=N
 *   file=NAME (output is this file's content)
 * A command that begins with "#" succeeds silently. Paths given to present name files of the current
 * directory. Every request is written to the log, one line each.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/api.h"
#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/digest.h"
#include "runtime/base/fd.h"

enum { PENDING_MAX = 128, RING = 1000 };

struct pending { /* a command that "runs" */
	uint64_t id, due_ms; /* due_ms 0: never */
	uint64_t total;
	struct buf answer, log, tail;
	int log_fd; /* instead of log, unless -1 */
	bool die;
};

static struct pending pending[PENDING_MAX];
static struct buf staged[PENDING_MAX];
static uint64_t staged_id[PENDING_MAX];
static int sock = -1;
static FILE *request_log;
static const char *profile = "code";
static bool fail_start;
static struct {
	struct api_tokens head;
	struct api_token rows[8];
} tokens;
static unsigned int logs;

__attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "fake-keeper: %s: %s\n", what, strerror(errno));
	exit(99);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static struct api_header header(enum api_op op, size_t size, uint64_t id)
{
	return (struct api_header){ API_VERSION, (uint16_t)op, (uint32_t)size, id };
}

/* The real keeper drops a front that does not read; waiting keeps the test's order simple. */
static void send_message(const void *data, size_t len, const int *fds, size_t count)
{
	while (fd_send_msg(sock, data, len, fds, count) < 0) {
		struct pollfd p = { sock, POLLOUT, 0 };

		if (errno != EAGAIN)
			exit(0);
		poll(&p, 1, 1000);
	}
}

static void send_hello(void)
{
	struct api_hello h = {
		.h = header(API_HELLO, sizeof(h), 0),
		.limits = { .memory_bytes = 1U << 30, .cpu_milli = 2000, .pids = 256 },
		.max_sandboxes = 8,
		.timeout_default_ms = 120000,
		.timeout_max_ms = 900000,
		.idle_ms = 300000,
		.image_max_bytes = 1536 * 1024,
		.output_max_bytes = 64 * 1024 * 1024,
		.owner = OWNER_DEFAULT,
	};

	snprintf(h.profile, sizeof(h.profile), "%s", profile);
	snprintf(h.image, sizeof(h.image), "default");
	if (fail_start) {
		h.start_failure.code = ERR_HOST;
		snprintf(h.start_failure.message, ERR_MESSAGE_MAX, "no cgroup is delegated to us");
		snprintf(h.start_failure.remedy, ERR_REMEDY_MAX, "set SANDBOX_LIMITS=best-effort");
	}
	send_message(&h, sizeof(h), NULL, 0);
}

/* What the keeper of a server that several owners use tells; a USR1 to us takes the last one away. */
static void send_tokens(void)
{
	tokens.head.h = header(API_TOKENS, sizeof(tokens.head) + tokens.head.count * sizeof(tokens.rows[0]), 1);
	memset(tokens.head.session_key, 7, sizeof(tokens.head.session_key));
	send_message(&tokens, tokens.head.h.size, NULL, 0);
}

static void add_token(const char *token, const char *owner)
{
	struct api_token *row = &tokens.rows[tokens.head.count++];

	snprintf(row->owner, sizeof(row->owner), "%s", owner);
	if (digest_sha256(token, strlen(token), row->hash) < 0)
		die("digest");
}

static volatile sig_atomic_t token_to_remove;

static void on_usr1(int signal)
{
	(void)signal;
	token_to_remove = 1;
}

static void send_failed(uint64_t id, int code, const char *message, const char *remedy)
{
	struct api_failed f = { .h = header(API_FAILED, sizeof(f), id) };

	f.error.code = (enum err_code)code;
	snprintf(f.error.message, sizeof(f.error.message), "%s", message);
	snprintf(f.error.remedy, sizeof(f.error.remedy), "%s", remedy);
	send_message(&f, sizeof(f), NULL, 0);
}

static int memory_file(const struct buf *b)
{
	char path[64];
	int fd = memfd_create("log", MFD_CLOEXEC), read_only;

	if (fd < 0 || fd_write_full(fd, b->data, b->len) < 0)
		die("memfd");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	read_only = open(path, O_RDONLY | O_CLOEXEC);
	close(fd);
	if (read_only < 0)
		die(path);
	return read_only;
}

/* ---- the command language ---- */

static void unescape(struct buf *b, const char *text)
{
	for (; *text; text++) {
		char c = *text;
		unsigned int value;

		if (c == '\\' && text[1]) {
			c = *++text;
			if (c == 'x' && sscanf(text + 1, "%2x", &value) == 1) {
				c = (char)value;
				text += 2;
			} else {
				const char *from = "nrtes", *to = "\n\r\t\x1b ", *at = strchr(from, c);

				c = at ? to[at - from] : c;
			}
		}
		buf_append(b, &c, 1);
	}
}

struct command {
	struct api_exec_done done;
	struct buf out;
	uint64_t repeat, cap, wait_ms;
	bool hang, die;
	char *fail;
	const char *file;
};

static uint64_t number(const char *text)
{
	return strtoull(text, NULL, 0);
}

static void run_word(struct command *c, const char *word)
{
	const char *value = strchr(word, '=');

	value = value ? value + 1 : "";
#define IS(name) (!strncmp(word, name "=", sizeof(name)))
	if (IS("out"))
		unescape(&c->out, value);
	else if (IS("file"))
		c->file = value;
	else if (IS("repeat"))
		c->repeat = number(value);
	else if (IS("exit"))
		c->done.exit_code = (int32_t)number(value);
	else if (IS("flags"))
		c->done.flags = (uint32_t)number(value);
	else if (IS("left"))
		c->done.left_running = (uint32_t)number(value);
	else if (IS("throttled"))
		c->done.throttled_usec = number(value);
	else if (IS("missing"))
		c->done.not_enforced = (uint32_t)number(value);
	else if (IS("replaced"))
		c->done.replaced = (uint32_t)number(value);
	else if (IS("wait"))
		c->wait_ms = number(value);
	else if (IS("cap"))
		c->cap = number(value);
	else if (IS("fail"))
		c->fail = strdup(value);
	else if (!strcmp(word, "hang"))
		c->hang = true;
	else if (!strcmp(word, "die"))
		c->die = true;
#undef IS
}

static struct pending *pending_new(uint64_t id)
{
	for (size_t i = 0; i < PENDING_MAX; i++) {
		if (pending[i].id)
			continue;
		pending[i] = (struct pending){ .id = id, .log_fd = -1 };
		buf_init(&pending[i].answer, API_MSG_MAX);
		buf_init(&pending[i].log, 1U << 30);
		buf_init(&pending[i].tail, RING);
		return &pending[i];
	}
	errno = 0;
	die("too many commands");
}

static void pending_free(struct pending *p)
{
	if (p->log_fd >= 0)
		close(p->log_fd);
	buf_done(&p->answer);
	buf_done(&p->log);
	buf_done(&p->tail);
	p->id = 0;
}

/* Beyond the cap the log holds the beginning and a ring the last bytes, rotated like a real one. */
static void split_output(struct command *c, struct pending *p)
{
	size_t tail, turn;

	for (uint64_t i = 0; i < (c->repeat ? c->repeat : 1); i++)
		buf_append(&p->log, c->out.data, c->out.len);
	c->done.total_bytes = c->done.log_bytes = p->log.len;
	if (!c->cap || c->cap >= p->log.len)
		return;
	tail = p->log.len - c->cap < RING ? p->log.len - c->cap : RING;
	turn = tail == RING ? 300 : 0;
	buf_append(&p->tail, p->log.data + p->log.len - turn, turn);
	buf_append(&p->tail, p->log.data + p->log.len - tail, tail - turn);
	p->log.len = (size_t)c->cap;
	c->done.flags |= API_OUTPUT_CAPPED;
	c->done.log_bytes = c->cap;
	c->done.tail_bytes = tail;
	c->done.tail_start = turn;
}

static void use_file(struct command *c, struct pending *p)
{
	struct stat st;

	p->log_fd = open(c->file, O_RDONLY | O_CLOEXEC);
	if (p->log_fd < 0 || fstat(p->log_fd, &st) < 0)
		die(c->file);
	c->done.total_bytes = c->done.log_bytes = (uint64_t)st.st_size;
}

static void run_command(uint64_t id, char *text, uint64_t timeout_ms)
{
	struct command c = { .done = { .pids_limit = 256, .memory_limit_bytes = 1U << 30 } };
	struct pending *p = pending_new(id);

	buf_init(&c.out, 1U << 30);
	for (char *word = *text == '#' ? NULL : strtok(text, " \n"); word; word = strtok(NULL, " \n"))
		run_word(&c, word);
	if (c.file)
		use_file(&c, p);
	else
		split_output(&c, p);
	c.done.h = header(API_EXEC_DONE, sizeof(c.done), id);
	c.done.timeout_ms = timeout_ms ? timeout_ms : 120000;
	if (c.done.timeout_ms > 900000) {
		c.done.timeout_ms = 900000;
		c.done.flags |= API_TIMEOUT_CLAMPED;
	}
	c.done.duration_usec = 5000;
	c.done.log_number = c.done.log_bytes ? ++logs : 0;
	p->total = c.done.total_bytes;
	p->die = c.die;
	if (c.fail) {
		char *message = strchr(c.fail, ':'), *remedy = strchr(c.fail, '|');
		struct api_failed f = { .h = header(API_FAILED, sizeof(f), id) };

		if (remedy)
			*remedy++ = 0;
		f.error.code = (enum err_code)number(c.fail);
		for (char *s = message; *s; s++)
			*s = *s == '_' ? ' ' : *s;
		snprintf(f.error.message, sizeof(f.error.message), "%s", message + 1);
		snprintf(f.error.remedy, sizeof(f.error.remedy), "%s", remedy ? remedy : "");
		buf_append(&p->answer, &f, sizeof(f));
		free(c.fail);
	} else {
		buf_append(&p->answer, &c.done, sizeof(c.done));
	}
	p->due_ms = c.hang ? 0 : now_ms() + c.wait_ms + 1;
	buf_done(&c.out);
}

static void finish_command(struct pending *p)
{
	int fds[2];
	size_t count = 0;

	if (p->die)
		exit(0);
	if (((struct api_header *)(void *)p->answer.data)->op == API_EXEC_DONE && p->total) {
		fds[count++] = p->log_fd >= 0 ? take_fd(&p->log_fd) : memory_file(&p->log);
		if (p->tail.len)
			fds[count++] = memory_file(&p->tail);
	}
	send_message(p->answer.data, p->answer.len, fds, count);
	while (count > 0)
		close(fds[--count]);
	pending_free(p);
}

/* ---- requests ---- */

static struct buf *stage_of(uint64_t id, bool create)
{
	for (size_t i = 0; i < PENDING_MAX; i++)
		if (staged_id[i] == id)
			return &staged[i];
	for (size_t i = 0; create && i < PENDING_MAX; i++) {
		if (staged_id[i])
			continue;
		staged_id[i] = id;
		buf_init(&staged[i], API_COMMAND_MAX);
		return &staged[i];
	}
	return NULL;
}

static void stage_free(struct buf *b)
{
	if (!b)
		return;
	staged_id[b - staged] = 0;
	buf_done(b);
}

static uint32_t checksum(const char *text, size_t len)
{
	uint32_t sum = 1;

	for (size_t i = 0; i < len; i++)
		sum = sum * 31 + (unsigned char)text[i];
	return sum;
}

static void on_exec(const struct api_exec *m)
{
	struct buf *b = stage_of(m->h.id, true);

	if (b->len != m->staged || buf_append(b, m->bytes, m->len) < 0) {
		errno = 0;
		die("staged bytes do not add up");
	}
	fprintf(request_log, "EXEC owner=%s key=%s cwd=%s timeout=%" PRIu64 " len=%zu sum=%08x\n", m->owner,
		m->key, m->cwd, m->timeout_ms, b->len, checksum(b->data, b->len));
	run_command(m->h.id, b->data, m->timeout_ms);
	stage_free(b);
}

static void on_cancel(uint64_t id)
{
	fprintf(request_log, "CANCEL\n");
	stage_free(stage_of(id, false));
	for (size_t i = 0; i < PENDING_MAX; i++)
		if (pending[i].id == id)
			pending_free(&pending[i]);
}

static void on_peek(uint64_t id)
{
	struct api_progress p = { .h = header(API_PROGRESS, sizeof(p), id) };

	fprintf(request_log, "PEEK\n");
	for (size_t i = 0; i < PENDING_MAX; i++) {
		if (pending[i].id != id)
			continue;
		p.total_bytes = pending[i].total;
		send_message(&p, sizeof(p), NULL, 0);
	}
}

static void on_info(uint64_t id, const char *owner)
{
	struct {
		struct api_info_done d;
		struct api_info_row rows[2];
	} m = { .d = { .count = 2, .max_sandboxes = 8 } };

	m.d.h = header(API_INFO_DONE, sizeof(m), id);
	m.rows[0] = (struct api_info_row){ .key = "amber-otter-1a2b3c", .state = API_RUNNING,
					   .processes = 4, .commands = 1, .age_ms = 65000,
					   .memory_bytes = 12 << 20 };
	m.rows[1] = (struct api_info_row){ .key = "blue-fox-4d5e6f", .state = API_IDLE, .processes = 1,
					   .age_ms = 8000000, .idle_for_ms = 90000,
					   .memory_bytes = 524288 };
	fprintf(request_log, "INFO owner=%s\n", owner);
	send_message(&m, sizeof(m), NULL, 0);
}

static void on_present(const struct api_present *m)
{
	struct api_present_done d = { .h = header(API_PRESENT_DONE, sizeof(d), m->h.id) };
	struct stat st;
	int fd = open(m->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	fprintf(request_log, "PRESENT key=%s path=%s copy=%u\n", m->key, m->path, m->copy);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		send_failed(m->h.id, ERR_NOT_FOUND, "no such file in /workspace", "");
	} else {
		d.size = (uint64_t)st.st_size;
		if (m->copy)
			snprintf(d.path, sizeof(d.path), "/home/me/Downloads/my files/%.200s", m->path);
		send_message(&d, sizeof(d), &fd, m->copy ? 0 : 1);
	}
	if (fd >= 0)
		close(fd);
}

static void on_request(const struct api_header *h)
{
	switch (h->op) {
	case API_STAGE: {
		const struct api_stage *m = (const void *)h;

		if (buf_append(stage_of(h->id, true), m->bytes, m->len) < 0)
			die("stage");
		break;
	}
	case API_EXEC:
		on_exec((const void *)h);
		break;
	case API_CANCEL:
		on_cancel(h->id);
		break;
	case API_PEEK:
		on_peek(h->id);
		break;
	case API_INFO:
		on_info(h->id, ((const struct api_key_request *)(const void *)h)->owner);
		break;
	case API_PRESENT:
		on_present((const void *)h);
		break;
	case API_REMOVE: {
		const struct api_key_request *m = (const void *)h;
		struct api_done d = { .h = header(API_DONE, sizeof(d), h->id) };

		fprintf(request_log, "REMOVE key=%s workspace=%u\n", m->key, m->workspace);
		send_message(&d, sizeof(d), NULL, 0);
		break;
	}
	default:
		errno = 0;
		die("unexpected request");
	}
	fflush(request_log);
}

/* ---- the loop ---- */

static int next_timeout(void)
{
	uint64_t now = now_ms(), due = now + 1000;

	for (size_t i = 0; i < PENDING_MAX; i++)
		if (pending[i].id && pending[i].due_ms && pending[i].due_ms < due)
			due = pending[i].due_ms;
	return due > now ? (int)(due - now) : 0;
}

static void serve(void)
{
	static _Alignas(16) char message[API_MSG_MAX];

	for (;;) {
		struct pollfd p = { sock, POLLIN, 0 };

		for (size_t i = 0; i < PENDING_MAX; i++)
			if (pending[i].id && pending[i].due_ms && pending[i].due_ms <= now_ms())
				finish_command(&pending[i]);
		if (token_to_remove && tokens.head.count) {
			token_to_remove = 0;
			tokens.head.count--;
			send_tokens();
		}
		if (poll(&p, 1, next_timeout()) <= 0)
			continue;
		ssize_t n = fd_recv_msg(sock, message, sizeof(message), NULL, NULL);

		if (n <= 0)
			return;
		if ((size_t)n < sizeof(struct api_header) ||
		    ((struct api_header *)(void *)message)->size != (size_t)n) {
			errno = 0;
			die("malformed request");
		}
		message[n < API_MSG_MAX ? n : API_MSG_MAX - 1] = 0;
		on_request((const void *)message);
	}
}

static pid_t start_front(const char *front, const char *id)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		die("socketpair");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		if (pair[1] == 3 ? fcntl(3, F_SETFD, 0) < 0 : dup2(pair[1], 3) < 0)
			_exit(98);
		execl(front, front, "@front", id, (char *)NULL);
		_exit(98);
	}
	close(pair[1]);
	sock = pair[0];
	return pid;
}

int main(int argc, char **argv)
{
	const char *log_name = "/dev/null", *id = "4294967295";
	useconds_t deaf_ms = 0;
	int i, status, null;
	pid_t pid;

	for (i = 1; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "--fail-start"))
			fail_start = true;
		else if (!strcmp(argv[i], "--profile"))
			profile = argv[++i];
		else if (!strcmp(argv[i], "--log"))
			log_name = argv[++i];
		else if (!strcmp(argv[i], "--id"))
			id = argv[++i];
		else if (!strcmp(argv[i], "--token")) {
			add_token(argv[i + 1], argv[i + 2]);
			i += 2;
		} else if (!strcmp(argv[i], "--deaf-ms"))
			deaf_ms = (useconds_t)number(argv[++i]);
	}
	request_log = fopen(log_name, "ae");
	if (!request_log)
		die(log_name);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGUSR1, on_usr1);
	pid = start_front(argv[i], id);
	null = open("/dev/null", O_RDWR);
	dup2(null, 0);
	dup2(null, 1);
	send_hello();
	if (tokens.head.count)
		send_tokens();
	usleep(deaf_ms * 1000);
	serve();
	if (waitpid(pid, &status, 0) != pid)
		die("wait for the front");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
