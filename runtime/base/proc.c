/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/base/proc.c - process start times and the boot's name, from procfs
 *
 * Runs in the keeper, and in its children. What is read here was written by the kernel, except a process's own name.
 */
#include "runtime/base/proc.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/base/str.h"

enum { BOOT_ID_LEN = 36 };

/* Field 22 of /proc/PID/stat; the name before it may hold anything, but no ')' follows it. */
uint64_t proc_start_time(pid_t pid)
{
	enum { FIELDS_AFTER_NAME = 20 };
	char path[32], text[1024], *field;
	uint64_t ticks = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	field = strrchr(text, ')');
	for (int i = 0; field && i < FIELDS_AFTER_NAME; i++)
		field = strchr(field + 1, ' ');
	if (!field)
		return 0;
	field[1 + strcspn(field + 1, " \n")] = '\0';
	return str_parse_u64(field + 1, 0, UINT64_MAX, &ticks) < 0 ? 0 : ticks;
}

int proc_boot_id(char id[BOOT_ID_SIZE])
{
	char text[64];
	ssize_t len = fd_read_file_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", text, sizeof(text));

	memset(id, 0, BOOT_ID_SIZE);
	if (len < BOOT_ID_LEN)
		return -1;
	memcpy(id, text, BOOT_ID_LEN);
	return 0;
}

void proc_reset_signals(void)
{
	sigset_t none;

	for (int i = 1; i < _NSIG; i++)
		(void)signal(i, SIG_DFL); /* SIGKILL and SIGSTOP refuse */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}
