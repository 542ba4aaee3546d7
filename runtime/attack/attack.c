/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/attack/attack.c - the program that "attack" runs inside a sandbox: try each row, report what came of it
 *
 * Runs inside, as any command does, and trusts nothing. Each attempt is a process of its own, so that none
 * changes the next one's world, and ends after ATTEMPT_SECONDS. Attempts are harmless where they succeed: files are
 * opened and not written, wrong arguments follow right ones, nothing is sent. One line each: id and result
 * (attack.h). No C library, so that it runs in every image; like ../join, raw system calls only.
 */
#include "runtime/attack/attempt.h"

enum { ATTEMPT_SECONDS = 8 };

unsigned long attack_zeros[64];

/* ---- without a C library ---- */

void *memset(void *to, int byte, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((volatile char *)to)[i] = (char)byte;
	return to;
}

void *memcpy(void *to, const void *from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((volatile char *)to)[i] = ((const char *)from)[i];
	return to;
}

size_t length(const char *text)
{
	size_t n = 0;

	while (text[n])
		n++;
	return n;
}

bool begins(const char *text, const char *with)
{
	while (*with && *text == *with) {
		text++;
		with++;
	}
	return !*with;
}

long number(const char **text)
{
	long n = 0;

	while (**text == ' ')
		(*text)++;
	while (**text >= '0' && **text <= '9')
		n = n * 10 + *(*text)++ - '0';
	return n;
}

char *put(char *at, const char *text)
{
	while (*text)
		*at++ = *text++;
	*at = '\0';
	return at;
}

char *put_number(char *at, long n)
{
	char digits[24];
	size_t count = 0;

	do {
		digits[count++] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	while (count)
		*at++ = digits[--count];
	*at = '\0';
	return at;
}

long open_path(const char *path, int flags)
{
	return RAW(__NR_openat, AT_FDCWD, path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
}

/* A block of a small file. */
long read_text(const char *path, char text[BLOCK_SIZE])
{
	long fd = open_path(path, O_RDONLY);
	long n = fd < 0 ? fd : RAW(__NR_read, fd, text, BLOCK_SIZE - 1);

	text[n > 0 ? n : 0] = '\0';
	return n;
}

/* ---- one after the other ---- */

#define ROW(id, fn, arg, what, held) { id, fn, arg },

static const struct {
	const char *id;
	long (*fn)(const struct host *h, const char *arg);
	const char *arg;
} rows[] = { ATTACK_ROWS(ROW) };

static long code_of(long r)
{
	if (r == RESULT_NOTHING)
		return ATTACK_NOTHING;
	if (r == RESULT_NO_DOOR)
		return ATTACK_NO_DOOR;
	return r >= 0 ? 0 : -r < ATTACK_NOTHING ? -r : EINVAL;
}

static void attempt(size_t i, const struct host *h)
{
	long limit[4] = { 0, 0, ATTEMPT_SECONDS, 0 };

	RAW(__NR_setitimer, 0 /* ITIMER_REAL */, limit, NULL);
	RAW(__NR_exit_group, code_of(rows[i].fn(h, rows[i].arg)));
}

static void report(const char *id, long result)
{
	char line[128], *end = put(put_number(put(put(line, id), " "), result), "\n");
	const char *at = line;

	while (at < end) {
		long n = RAW(__NR_write, 1, at, end - at);

		if (n <= 0)
			RAW(__NR_exit_group, 1);
		at += n;
	}
}

static void run(size_t i, const struct host *h)
{
	long pid = RAW(__NR_clone, SIGCHLD, 0, 0, 0, 0);
	int status = 0;

	if (pid == 0)
		attempt(i, h);
	while (pid > 0 && RAW(__NR_wait4, pid, &status, 0, NULL) == -EINTR)
		;
	if (pid < 0)
		RAW(__NR_exit_group, 1); /* what was not tried has not held */
	report(rows[i].id, status & 0x7f ? ATTACK_SIGNAL + (status & 0x7f) : status >> 8 & 0xff);
}

static long argument(const char *text)
{
	return number(&text);
}

void attack_main(const long *stack);

__attribute__((used)) void attack_main(const long *stack)
{
	const char *const *argv = (const char *const *)(const void *)(stack + 1);
	struct host h;

	if (*stack != ATTACK_ARGS)
		RAW(__NR_exit_group, 2);
	h.pid = argument(argv[ATTACK_ARG_PID]);
	h.socket = argv[ATTACK_ARG_SOCKET];
	h.port = argument(argv[ATTACK_ARG_PORT]);
	h.path = argv[ATTACK_ARG_PATH];
	h.shm = argument(argv[ATTACK_ARG_SHM]);
	h.address = argv[ATTACK_ARG_ADDRESS];
	h.environment = argv + ATTACK_ARGS + 1;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		run(i, &h);
	RAW(__NR_exit_group, 0);
}

RAW_START(attack_main);
