/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/base/err.c - the error object
 *
 * Runs in every process. Allocates nothing and keeps errno, so that it works when memory is short
 * and between a failed call and its report. A null object is allowed: the caller wants no details.
 */
#include "runtime/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* join() - dst = head + ": " + tail; dst may be tail. What does not fit is cut at the end of the head,
 * then at the beginning of the tail: the cause is what the reader needs most, and it comes last. */
static void join(char dst[ERR_MESSAGE_MAX], const char *head, const char *tail)
{
	char whole[ERR_MESSAGE_MAX];
	size_t room = ERR_MESSAGE_MAX - 3; /* ": " and NUL */
	size_t tail_len = strlen(tail), head_len;

	if (tail_len > room) {
		tail += tail_len - room;
		tail_len = room;
	}
	head_len = strnlen(head, room - tail_len);
	memcpy(whole, head, head_len);
	memcpy(whole + head_len, ": ", 2);
	memcpy(whole + head_len + 2, tail, tail_len);
	whole[head_len + 2 + tail_len] = '\0';
	memcpy(dst, whole, head_len + 2 + tail_len + 1);
}

static void format_text(char *text, size_t size, const char *fmt, va_list ap)
{
	if (vsnprintf(text, size, fmt, ap) < 0)
		text[0] = '\0';
}

/* lead_in() - the message becomes what fmt says, ": " and tail, which may be the message itself. */
static void lead_in(struct err *e, const char *tail, const char *fmt, va_list ap)
{
	char head[ERR_MESSAGE_MAX];

	format_text(head, sizeof(head), fmt, ap);
	join(e->message, head, tail);
}

int err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	if (!e)
		return -1;
	e->code = code;
	e->sys_errno = 0;
	e->remedy[0] = '\0';
	va_start(ap, fmt);
	format_text(e->message, sizeof(e->message), fmt, ap);
	va_end(ap);
	errno = saved;
	return -1;
}

static enum err_code code_of_errno(int error)
{
	switch (error) {
	case ENOSPC:
	case EDQUOT:
		return ERR_NOSPACE;
	case ENOMEM:
		return ERR_NOMEM;
	default:
		return ERR_SYSTEM;
	}
}

int err_sys(struct err *e, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	if (!e)
		return -1;
	e->code = code_of_errno(saved);
	e->sys_errno = saved;
	e->remedy[0] = '\0';
	va_start(ap, fmt);
	lead_in(e, strerror(saved), fmt, ap);
	va_end(ap);
	errno = saved;
	return -1;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	if (!e)
		return -1;
	va_start(ap, fmt);
	lead_in(e, e->message, fmt, ap);
	va_end(ap);
	errno = saved;
	return -1;
}

int err_remedy(struct err *e, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	if (!e)
		return -1;
	va_start(ap, fmt);
	format_text(e->remedy, sizeof(e->remedy), fmt, ap);
	va_end(ap);
	errno = saved;
	return -1;
}

int err_exit_status(enum err_code code)
{
	switch (code) {
	case ERR_NONE:
		return 0;
	case ERR_USAGE:
		return 2;
	case ERR_CONFIG:
		return 78;
	default:
		return 1;
	}
}
