/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/attack/attempt.h - what the parts of the attacking program share */
#pragma once

#include <asm/signal.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/attack/attack.h"
#include "runtime/base/raw.h"

enum {
	BLOCK_SIZE = 4096,
	RESULT_NOTHING = -4090, /* beyond every errno in use */
	RESULT_NO_DOOR = -4091,
};

/* What the program was told about the host. */
struct host {
	long pid, port, shm;
	const char *socket, *path, *address;
	const char *const *environment;
};

/* An attempt: 0 and more when it worked, else a negative errno or a result above. */
#define DECLARE(id, fn, arg, what, held) long fn(const struct host *h, const char *text);
ATTACK_ROWS(DECLARE)
#undef DECLARE

/* One that is a single call. */
#define ATTEMPT(name, call)                                  \
	long name(const struct host *h, const char *arg) \
	{                                                    \
		(void)h;                                     \
		(void)arg;                                   \
		return call;                                 \
	}

extern unsigned long attack_zeros[64]; /* what a call is given to read or to fill */

/* ---- without a C library (attack.c) ---- */

void *memset(void *to, int byte, size_t len);
void *memcpy(void *to, const void *from, size_t len);
size_t length(const char *text);
bool begins(const char *text, const char *with);

/* number() - decimal digits, after spaces; *text moves on behind them. */
long number(const char **text);

/* put(), put_number() - append at. Return: the new end. */
char *put(char *at, const char *text);
char *put_number(char *at, long n);

/* open_path() - never waits, never becomes a controlling terminal. Return: descriptor, negative errno. */
long open_path(const char *path, int flags);

/* read_text() - the beginning of a small file, NUL-terminated. Return: bytes, negative errno. */
long read_text(const char *path, char text[BLOCK_SIZE]);
