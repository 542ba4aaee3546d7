/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_attack.c - "attack": try to get out of a fresh sandbox on this host, and say what held
 *
 * Runs as the user (root of the storage namespace), as "exec" does and by the same way: the sandbox is one like
 * all others. The attacking program (runtime/attack) goes in through the command's input, tries
 * one row after the other and prints what came of each; here stands what each result means. What the host
 * holds up as bait (a listening socket, a file, shared memory, a variable) is made first and removed afterwards.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "mcp/cli.h"
#include "mcp/cli_exec.h"
#include "mcp/json_write.h"
#include "mcp/tls_cert.h"
#include "runtime/api.h"
#include "runtime/attack/attack.h"
#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"
#include "runtime/label.h"

extern const unsigned char attack_image[], attack_image_end[];

enum { RESULTS_MAX = 64 * 1024, REPORT_MAX = 256 * 1024, ATTACK_TIMEOUT_MS = 300 * 1000, RESULT_SIZE = 32, BAIT_BYTES = 4096 };
enum { NOT_TRIED = -1 };

#define ROW(id, fn, arg, what, held) { id, what, held },

static const struct {
	const char *id, *what, *held;
} rows[] = { ATTACK_ROWS(ROW) };

/* ---- what it means ---- */

/* The word for a result, as attack.h has them. */
static const char *result_text(int result, char text[RESULT_SIZE])
{
	const char *name = result > ATTACK_SIGNAL ? sigabbrev_np(result - ATTACK_SIGNAL) : strerrorname_np(result);

	if (result == NOT_TRIED)
		return "not tried";
	if (result == 0)
		return "it worked";
	if (result == ATTACK_NOTHING)
		return "nothing";
	if (result == ATTACK_NO_DOOR)
		return "no-door";
	(void)snprintf(text, RESULT_SIZE, "%s%s", result > ATTACK_SIGNAL ? "SIG" : "", name ? name : "unknown");
	return text;
}

static bool has_word(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = words; (at = strstr(at, word)); at += len) {
		if ((at == words || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
			return true;
	}
	return false;
}

/* From "id result" lines; everything else is no result. */
static void read_results(const char *text, int results[ARRAY_SIZE(rows)])
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t len = strlen(rows[i].id);

		results[i] = NOT_TRIED;
		for (const char *line = text; *line; line = strchrnul(line, '\n') + (*strchrnul(line, '\n') == '\n')) {
			if (strncmp(line, rows[i].id, len) == 0 && line[len] == ' ' && line[len + 1] >= '0' && line[len + 1] <= '9')
				results[i] = (int)strtol(line + len + 1, NULL, 10);
		}
	}
}

static void write_row(struct buf *out, bool json, size_t i, int result, bool held)
{
	char text[RESULT_SIZE];
	const char *word = result_text(result, text);

	if (!json) {
		buf_printf(out, "%-8s %-20s %-56s %s\n", held ? "held" : "NOT HELD", rows[i].id, rows[i].what, word);
		return;
	}
	buf_printf(out, "%s\n  {\"id\":\"%s\",\"tried\":", i ? "," : "", rows[i].id);
	json_write_string(out, rows[i].what);
	buf_printf(out, ",\"result\":\"%s\",\"held\":%s}", word, held ? "true" : "false");
}

/* Return: exit status, -1. */
static int judge(const char *text, bool json, struct err *e)
{
	int results[ARRAY_SIZE(rows)];
	char word[RESULT_SIZE];
	size_t bad = 0;
	struct buf out;
	int r = 0;

	buf_init(&out, REPORT_MAX);
	read_results(text, results);
	if (json)
		buf_append_str(&out, "{\"rows\":[");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		bool held = has_word(rows[i].held, result_text(results[i], word));

		bad += !held;
		write_row(&out, json, i, results[i], held);
	}
	if (json)
		buf_printf(&out, "\n],\"held\":%zu,\"not_held\":%zu}\n", ARRAY_SIZE(rows) - bad, bad);
	else
		buf_printf(&out, "\n%zu of %zu held.\n", ARRAY_SIZE(rows) - bad, ARRAY_SIZE(rows));
	if (out.overflow || fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout) != 0)
		r = err_sys(e, "attack: standard output");
	buf_done(&out);
	return r < 0 ? -1 : bad ? CLI_FAILURE : CLI_OK;
}

/* ---- what the host holds up as bait ---- */

struct bait {
	char socket[40], path[40], address[INET_ADDRSTRLEN];
	int unix_fd, tcp_fd, file_fd, shm;
	uint16_t port;
};

static int listen_unix(struct bait *b, struct err *e)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(b->socket));

	memcpy(a.sun_path + 1, b->socket, strlen(b->socket));
	b->unix_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (b->unix_fd < 0 || bind(b->unix_fd, (struct sockaddr *)&a, len) < 0 || listen(b->unix_fd, 1) < 0)
		return err_sys(e, "attack: listen on an abstract socket");
	return 0;
}

/* On every address of this host, IPv4 and IPv6, at a port that the kernel picks. Whoever connects is told nothing. */
static int listen_tcp(struct bait *b, struct err *e)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct sockaddr_in four = { .sin_family = AF_INET };
	socklen_t len = sizeof(six);

	b->tcp_fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (b->tcp_fd >= 0) {
		if (bind(b->tcp_fd, (struct sockaddr *)&six, sizeof(six)) < 0 || listen(b->tcp_fd, 1) < 0 ||
		    getsockname(b->tcp_fd, (struct sockaddr *)&six, &len) < 0)
			return err_sys(e, "attack: listen on a port");
		b->port = ntohs(six.sin6_port);
		return 0;
	}
	len = sizeof(four);
	b->tcp_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (b->tcp_fd < 0 || bind(b->tcp_fd, (struct sockaddr *)&four, sizeof(four)) < 0 || listen(b->tcp_fd, 1) < 0 ||
	    getsockname(b->tcp_fd, (struct sockaddr *)&four, &len) < 0)
		return err_sys(e, "attack: listen on a port");
	b->port = ntohs(four.sin_port);
	return 0;
}

static void find_address(struct bait *b)
{
	struct ifaddrs *list;

	(void)str_copy(b->address, sizeof(b->address), "-");
	if (getifaddrs(&list) < 0)
		return;
	for (struct ifaddrs *a = list; a; a = a->ifa_next) {
		if (a->ifa_addr && a->ifa_addr->sa_family == AF_INET && !(a->ifa_flags & IFF_LOOPBACK) &&
		    inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)a->ifa_addr)->sin_addr, b->address, sizeof(b->address)))
			break;
	}
	freeifaddrs(list);
}

static int put_file(struct bait *b, struct err *e)
{
	static const char text[] = "of the host\n";

	(void)str_copy(b->path, sizeof(b->path), "/tmp/mcp-sandbox-attack-XXXXXX");
	b->file_fd = mkostemp(b->path, O_CLOEXEC);
	if (b->file_fd < 0) {
		b->path[0] = '\0';
		return err_sys(e, "attack: make a file in /tmp");
	}
	if (fchmod(b->file_fd, 0644) < 0 || fd_write_full(b->file_fd, text, sizeof(text) - 1) < 0)
		return err_sys(e, "attack: write %s", b->path);
	return 0;
}

static int bait_put(struct bait *b, const char *run, struct err *e)
{
	(void)snprintf(b->socket, sizeof(b->socket), "mcp-sandbox-attack-%s", run);
	find_address(b);
	if (listen_unix(b, e) < 0 || listen_tcp(b, e) < 0 || put_file(b, e) < 0)
		return -1;
	b->shm = shmget(IPC_PRIVATE, BAIT_BYTES, IPC_CREAT | 0666);
	if (b->shm < 0 || setenv(ATTACK_SECRET, run, 1) < 0)
		return err_sys(e, "attack: make shared memory");
	return 0;
}

static void bait_take(struct bait *b)
{
	close_fd(&b->unix_fd);
	close_fd(&b->tcp_fd);
	close_fd(&b->file_fd);
	if (b->path[0])
		(void)unlink(b->path);
	if (b->shm >= 0)
		(void)shmctl(b->shm, IPC_RMID, NULL);
	(void)unsetenv(ATTACK_SECRET);
}

/* ---- inside ---- */

/* In through the input, because that is the way a client's file would come; under a name of its own. */
static int write_command(struct buf *b, const struct bait *bait, struct err *e)
{
	buf_init(b, API_COMMAND_MAX);
	buf_printf(b, "cat >/workspace/attack && chmod 755 /workspace/attack && cd / && exec /workspace/attack %d %s %u %s %d %s "
		   "</dev/null", (int)getpid(), bait->socket, bait->port, bait->path, bait->shm, bait->address);
	return b->overflow ? err_set(e, ERR_NOMEM, "attack: out of memory") : 0;
}

static int read_all(int fd, struct buf *ret, struct err *e)
{
	char chunk[4096];
	ssize_t n;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(e, "attack: read the results");
	while ((n = fd_read_full(fd, chunk, sizeof(chunk))) > 0) {
		if (buf_append(ret, chunk, (size_t)n) < 0)
			return err_set(e, ERR_LIMIT, "attack: too many results");
	}
	return n < 0 ? err_sys(e, "attack: read the results") : 0;
}

/* Return: 0 with what the program printed, -1. */
static int run_inside(const struct start *start, const struct bait *bait, const char *key, struct buf *ret, struct err *e)
{
	_cleanup_fd_ int in = fd_memfd_sealed("attack", attack_image, (size_t)(attack_image_end - attack_image), 0600, false);
	_cleanup_fd_ int out = memfd_create("results", MFD_CLOEXEC);
	struct exec_request r = { .owner = start->settings.owner, .key = key, .timeout_ms = ATTACK_TIMEOUT_MS,
				  .mode = API_EXEC_SHELL, .fds = { in, out, STDERR_FILENO }, .throw_away = true };
	int status;

	if (in < 0 || out < 0)
		return err_sys(e, "attack: a memory file");
	status = write_command(&r.bytes, bait, e) < 0 ? -1 : exec_run(start, &r, e);
	buf_done(&r.bytes);
	if (status < 0 || read_all(out, ret, e) < 0)
		return -1;
	if (status != 0)
		return err_set(e, ERR_SYSTEM, "attack: the program inside ended with status %d", status);
	return 0;
}

int cli_attack(struct cli_call *call, struct err *e)
{
	struct bait bait = { .unix_fd = -1, .tcp_fd = -1, .file_fd = -1, .shm = -1 };
	char run[16], label[32], key[KEY_MAX];
	struct start start;
	struct buf results;
	uint32_t random;
	int status = -1;

	if (start_settings(call, &start, e) < 0)
		return -1;
	buf_init(&results, RESULTS_MAX);
	(void)tls_random(NULL, (unsigned char *)&random, sizeof(random));
	(void)snprintf(run, sizeof(run), "%08x", random);
	(void)snprintf(label, sizeof(label), "attack %s", run);
	if (label_to_key(label, strlen(label), key, e) == 0 && start_host(call, &start, e) == 0 &&
	    bait_put(&bait, run, e) == 0 && run_inside(&start, &bait, key, &results, e) == 0)
		status = judge(results.data, cli_option(call, "json") != NULL, e);
	bait_take(&bait);
	buf_done(&results);
	start_done(&start);
	return status;
}

/* ---- for whoever wants to see the same program succeed ---- */

int cli_attack_program(struct cli_call *call, struct err *e)
{
	(void)call;
	return fd_write_full(STDOUT_FILENO, attack_image, (size_t)(attack_image_end - attack_image)) < 0 ?
		       err_sys(e, "standard output") : CLI_OK;
}

int cli_attack_judge(struct cli_call *call, struct err *e)
{
	char chunk[4096];
	struct buf text;
	ssize_t n;
	int r = 0;

	buf_init(&text, RESULTS_MAX);
	while ((n = fd_read_full(STDIN_FILENO, chunk, sizeof(chunk))) > 0 && buf_append(&text, chunk, (size_t)n) == 0)
		continue;
	if (n != 0)
		r = err_set(e, ERR_USAGE, "the results cannot be read");
	else
		r = judge(text.data, cli_option(call, "json") != NULL, e);
	buf_done(&text);
	return r;
}
