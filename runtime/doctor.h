/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/doctor.h - does this host give a sandbox what it needs? Every answer comes from trying it */
#pragma once

#include <stddef.h>

#include "runtime/base/err.h"
#include "runtime/cgroup.h"
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
	char remedy[DOCTOR_TEXT_MAX]; /* a command, or a line to add; may be "" when ok */
};

struct doctor_host {
	const struct settings *settings;
	const struct cgroup_tree *cgroup; /* what cgroup_acquire() could give */
	const struct err *cgroup_error;   /* why that is not everything; code ERR_NONE when it is */
};

/* doctor_run() - try every check; each in a process of its own, so that nothing stays changed.
 * ret has room for doctor_count() rows. */
void doctor_run(const struct doctor_host *host, struct doctor_row *ret);
size_t doctor_count(void);

/* doctor_worst() - the status that decides the exit code. */
enum doctor_status doctor_worst(const struct doctor_row *rows, size_t count);
const char *doctor_status_text(enum doctor_status status);
