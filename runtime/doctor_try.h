/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/doctor_try.h - the single checks of doctor.c; each runs in a child and fills its row */
#pragma once

#include "runtime/doctor.h"

typedef void doctor_check_fn(const struct doctor_host *host, struct doctor_row *row);

/* Say how a check ended; found and remedy are formats. */
void doctor_say(struct doctor_row *row, enum doctor_status status, const char *found, ...)
	__attribute__((format(printf, 3, 4)));
void doctor_fix(struct doctor_row *row, const char *remedy, ...) __attribute__((format(printf, 2, 3)));
/* The row of an error object. */
void doctor_say_error(struct doctor_row *row, enum doctor_status status, const struct err *e);

/* doctor_try.c: what the kernel lets this user do */
doctor_check_fn doctor_try_syscalls, doctor_try_userns, doctor_try_ids, doctor_try_overlay,
	doctor_try_proc, doctor_try_memfd, doctor_try_seccomp, doctor_try_landlock;

/* doctor_net.c: the way out sandboxes would get, made and let go again */
doctor_check_fn doctor_try_network;

/* doctor_host.c: what the host is set up with */
doctor_check_fn doctor_look_cgroup, doctor_look_memory, doctor_look_pids, doctor_look_cpu,
	doctor_look_image, doctor_look_disk, doctor_look_inotify, doctor_look_tun, doctor_look_linger;
