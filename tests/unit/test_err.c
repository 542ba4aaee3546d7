/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_err.c - codes, causes, and what happens when a text is too long */
#include "runtime/base/err.h"

#include "tests/unit/tap.h"

static void test_sys(void)
{
	static const struct {
		int error;
		enum err_code want;
	} rows[] = {
		{ ENOSPC, ERR_NOSPACE }, { EDQUOT, ERR_NOSPACE }, { ENOMEM, ERR_NOMEM },
		{ EACCES, ERR_SYSTEM },  { ENOENT, ERR_SYSTEM },
	};
	struct err e;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		errno = rows[i].error;
		tap_int(err_sys(&e, "open %s", "x"), -1, "errno %d: returns -1", rows[i].error);
		tap_int(e.code, rows[i].want, "errno %d: code", rows[i].error);
		tap_int(e.sys_errno, rows[i].error, "errno %d: kept in the object", rows[i].error);
		tap_int(errno, rows[i].error, "errno %d: kept in errno", rows[i].error);
	}
	errno = ENOENT;
	(void)err_sys(&e, "open %s", "x");
	tap_str(e.message, "open x: No such file or directory", "context, then the cause");
	(void)err_wrap(&e, "start %s", "a-123456");
	tap_str(e.message, "start a-123456: open x: No such file or directory", "wrapped");
	tap_int(e.code, ERR_SYSTEM, "wrapping keeps the code");
}

static void test_set(void)
{
	struct err e = { .sys_errno = 5, .remedy = "old" };

	tap_int(err_set(&e, ERR_BUSY, "in use by %d", 7), -1, "err_set returns -1");
	tap_str(e.message, "in use by 7", "its text");
	tap_int(e.sys_errno, 0, "no system call");
	tap_str(e.remedy, "", "an old remedy is gone");
	tap_int(err_remedy(&e, "stop %d", 7), -1, "err_remedy returns -1");
	tap_str(e.remedy, "stop 7", "its text");
	(void)err_wrap(&e, "x");
	tap_str(e.remedy, "stop 7", "wrapping keeps the remedy");
	tap_int(err_set(NULL, ERR_BUSY, "x") + err_sys(NULL, "x") + err_wrap(NULL, "x") +
			err_remedy(NULL, "x"),
		-4, "a caller without an object only learns of the failure");
}

static void test_long(void)
{
	char text[2 * ERR_MESSAGE_MAX];
	struct err e;

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	errno = ENOENT;
	(void)err_sys(&e, "%s", text);
	tap_int(strlen(e.message), ERR_MESSAGE_MAX - 1, "an overlong text fills the room");
	tap_str(e.message + strlen(e.message) - 27, ": No such file or directory",
		"and is cut in front of the cause");
	(void)err_wrap(&e, "%s", text);
	tap_str(e.message + strlen(e.message) - 27, ": No such file or directory", "also wrapped");
	(void)err_set(&e, ERR_LIMIT, "%s", text);
	tap_int(strlen(e.message), ERR_MESSAGE_MAX - 1, "err_set is bounded");
	(void)err_wrap(&e, "%s", text);
	tap_int(strlen(e.message), ERR_MESSAGE_MAX - 1, "a full message wrapped is bounded");
	(void)err_remedy(&e, "%s", text);
	tap_int(strlen(e.remedy), ERR_REMEDY_MAX - 1, "a remedy is bounded");
}

int main(void)
{
	test_sys();
	test_set();
	test_long();
	tap_int(err_exit_status(ERR_NONE), 0, "exit 0");
	tap_int(err_exit_status(ERR_USAGE), 2, "exit 2");
	tap_int(err_exit_status(ERR_CONFIG), 78, "exit 78");
	tap_int(err_exit_status(ERR_SYSTEM), 1, "exit 1");
	return tap_done();
}
