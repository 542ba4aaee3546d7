/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/tap.h - the Test Anything Protocol for C tests, and two helpers hostile input needs
 *
 * A test is a table of rows {desc, input, want} and a loop of tap_*() calls; main() ends with
 * "return tap_done();". Each check prints one line at once, so a crash shows where it happened.
 * A whole file is skipped with "return tap_skip_all(reason)": with SANDBOX_MUST_WORK=1 in the
 * environment that is a failure instead. (Meson reads the skip from the protocol and takes every
 * exit status other than 0 for an error, so 77 is not used here.)
 */
#pragma once

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned int tap_count, tap_failed;

__attribute__((format(printf, 2, 3))) static inline bool tap_result(bool ok, const char *fmt, ...)
{
	va_list ap;

	tap_count++;
	if (!ok)
		tap_failed++;
	printf("%sok %u - ", ok ? "" : "not ", tap_count);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	if (ok)
		return true;
	fprintf(stderr, "not ok %u - ", tap_count);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return false;
}

/* tap_diag() - a comment line for whoever reads the failure; also on standard error, which is what is
 * shown of a failed test when a machine reads the protocol. */
__attribute__((format(printf, 1, 2))) static inline void tap_diag(const char *fmt, ...)
{
	va_list ap;

	fputs("# ", stdout);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	fputs("# ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

#define tap_ok(cond, ...)                                                                \
	({                                                                               \
		int _saved = errno;                                                      \
		bool _ok = tap_result((cond) ? true : false, __VA_ARGS__);               \
		if (!_ok)                                                                \
			tap_diag("%s:%d: %s (errno %s)", __FILE__, __LINE__, #cond,      \
				 strerror(_saved));                                      \
		_ok;                                                                     \
	})

#define tap_int(got, want, ...)                                                          \
	({                                                                               \
		long long _got = (long long)(got), _want = (long long)(want);            \
		bool _ok = tap_result(_got == _want, __VA_ARGS__);                       \
		if (!_ok)                                                                \
			tap_diag("%s:%d: %s = %lld, want %lld", __FILE__, __LINE__,      \
				 #got, _got, _want);                                     \
		_ok;                                                                     \
	})

#define tap_str(got, want, ...)                                                          \
	({                                                                               \
		const char *_got = (got), *_want = (want);                               \
		bool _ok = tap_result(_got && strcmp(_got, _want) == 0, __VA_ARGS__);    \
		if (!_ok)                                                                \
			tap_diag("%s:%d: %s = \"%s\", want \"%s\"", __FILE__, __LINE__,  \
				 #got, _got ? _got : "(null)", _want);                   \
		_ok;                                                                     \
	})

static inline bool tap_must_work(void)
{
	const char *value = getenv("SANDBOX_MUST_WORK");

	return value && strcmp(value, "1") == 0;
}

/* tap_skip_elsewhere() - one check that no set-up of this machine makes possible and that runs elsewhere:
 * a skip in CI as well. The reason says where it does run. */
static inline void tap_skip_elsewhere(const char *desc, const char *reason)
{
	printf("ok %u - %s # SKIP not here: %s\n", ++tap_count, desc, reason);
	fflush(stdout);
}

/* tap_skip() - one check that cannot run here. */
static inline void tap_skip(const char *desc, const char *reason)
{
	if (tap_must_work()) {
		(void)tap_result(false, "%s (cannot be skipped: %s)", desc, reason);
		return;
	}
	printf("ok %u - %s # SKIP %s\n", ++tap_count, desc, reason);
	fflush(stdout);
}

static inline int tap_skip_all(const char *reason)
{
	if (tap_must_work()) {
		printf("1..1\nnot ok 1 - cannot be skipped: %s\n", reason);
		return 1;
	}
	printf("1..0 # SKIP %s\n", reason);
	return 0;
}

/* tap_bail() - set-up of the test itself failed. */
__attribute__((noreturn, format(printf, 1, 2))) static inline void tap_bail(const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	fputs("Bail out! ", stdout);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf(" (errno %s)\n", strerror(saved));
	fflush(stdout);
	exit(99);
}

static inline int tap_done(void)
{
	printf("1..%u\n", tap_count);
	return tap_failed > 0 ? 1 : 0;
}

/* Bytes that end at an unreadable page (and begin after one): one byte too many faults. */
struct tap_guard {
	char *data;
	size_t len;
	void *map;
	size_t map_len;
};

static inline struct tap_guard tap_guard_new(const void *bytes, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (len + page - 1) / page * page;
	struct tap_guard g = { .len = len, .map_len = body + 2 * page };

	g.map = mmap(NULL, g.map_len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (g.map == MAP_FAILED)
		tap_bail("mmap");
	if (body > 0 && mprotect((char *)g.map + page, body, PROT_READ | PROT_WRITE) < 0)
		tap_bail("mprotect");
	g.data = (char *)g.map + page + body - len;
	if (len > 0)
		memcpy(g.data, bytes, len);
	return g;
}

static inline void tap_guard_free(struct tap_guard *g)
{
	(void)munmap(g->map, g->map_len);
	g->map = NULL;
}

/* The same for a string: its NUL is the last readable byte. */
static inline struct tap_guard tap_guard_str(const char *text)
{
	return tap_guard_new(text, strlen(text) + 1);
}
