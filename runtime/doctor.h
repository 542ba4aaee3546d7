/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/doctor.h - does this host give a sandbox what it needs? Every answer comes from trying it */
#pragma once

#include <stddef.h>

#include "runtime/spec.h"

enum doctor_status {
	DOCTOR_OK,
	DOCTOR_DEGRADED, /* sandboxes start, something is missing */
	DOCTOR_MISSING,  /* no sandbox can start */
};

enum { DOCTOR_TEXT_MAX = 320 };

struct doctor_row {
	const char *id;
	enum doctor_status status;
	char found[DOCTOR_TEXT_MAX];
	char remedy[DOCTOR_TEXT_MAX]; /* a command, or a line to add; "" when ok */
};

/* doctor_run() - try every check; each in a process of its own where it changes anything, so that
 * nothing is left behind. Return: number of rows in *ret (static table order), at most max. */
size_t doctor_run(const struct settings *settings, struct doctor_row *ret, size_t max);
size_t doctor_count(void);

/* doctor_worst() - the status that decides the exit code. */
enum doctor_status doctor_worst(const struct doctor_row *rows, size_t count);
const char *doctor_status_text(enum doctor_status status);
