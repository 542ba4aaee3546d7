/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/base/err.h - the error object every fallible function fills in
 *
 * The deepest layer that knows the cause says it: a stable code, one sentence and, where the
 * reader can do something about it, one remedy. Nothing below main() prints an error it returns.
 */
#pragma once

#include <stddef.h>

enum err_code {
	ERR_NONE,
	ERR_USAGE,     /* wrong arguments; exit 2 */
	ERR_CONFIG,    /* a setting is refused; exit 78 */
	ERR_HOST,      /* the host lacks something a sandbox needs */
	ERR_NOT_FOUND, /* unknown label, image, file */
	ERR_BUSY,      /* held by another process, or all sandboxes are in use */
	ERR_LIMIT,     /* one of our own bounds was hit */
	ERR_DENIED,    /* refused for safety */
	ERR_TIMEOUT,
	ERR_GONE,      /* the sandbox ended while it was being used */
	ERR_NOSPACE,   /* disk full, or below the configured reserve */
	ERR_NOMEM,
	ERR_PROTOCOL,  /* a peer broke the protocol */
	ERR_SYSTEM,    /* a system call failed unexpectedly: sys_errno says how */
};

enum { ERR_MESSAGE_MAX = 512, ERR_REMEDY_MAX = 256 };

struct err {
	enum err_code code;
	int sys_errno; /* 0 when no system call was involved */
	char message[ERR_MESSAGE_MAX];
	char remedy[ERR_REMEDY_MAX]; /* "" when there is none */
};

/* err_set() - record a failure that is not a system call's. Return: -1 always. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* err_sys() - record a failed system call as "<fmt>: <strerror>"; errno is captured first.
 * ENOSPC and EDQUOT give ERR_NOSPACE, ENOMEM gives ERR_NOMEM, everything else ERR_SYSTEM.
 * Return: -1 always. */
int err_sys(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* err_wrap() - put "<fmt>: " in front of the message already recorded. Return: -1 always. */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* err_remedy() - say what the reader can do; one line. Return: -1 always. */
int err_remedy(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* err_exit_status() - the process exit status for a code: 1, 2 (usage) or 78 (configuration). */
int err_exit_status(enum err_code code);
