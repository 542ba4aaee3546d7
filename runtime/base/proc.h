/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/base/proc.h - what tells one process, and one boot, from another
 *
 * A pid is a number that is used again; together with the time its process began, and the boot that
 * time counts from, it is a name.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

enum { BOOT_ID_SIZE = 40 }; /* 36 characters and a NUL, rounded up to whole words */

/* proc_start_time() - clock ticks from boot to the start of a process. Return: ticks, 0 when there is
 * no such process. */
uint64_t proc_start_time(pid_t pid);

/* proc_boot_id() - the kernel's name of this boot, padded with zeroes. Return: 0, -1. */
int proc_boot_id(char id[BOOT_ID_SIZE]);

/* proc_reset_signals() - for a child that goes on as something else: every signal has its default action,
 * none is blocked. */
void proc_reset_signals(void);
