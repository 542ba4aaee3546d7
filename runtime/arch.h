/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/arch.h - which processor programs are for
 *
 * Names are Debian's. What counts is this program's own architecture, not the kernel's: a sandbox's
 * system call filter is made for it, and a 64-bit kernel may carry either.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ARCH_NAME_MAX = 16, ELF_HEAD_LEN = 20 };

/* arch_own() - "amd64" or "arm64". */
const char *arch_own(void);

/* arch_is_foreign() - whether it is another one than ours; NULL and "" are ours. */
bool arch_is_foreign(const char *name);

/* arch_has_program() - whether there is a mcp-sandbox for it. */
bool arch_has_program(const char *name);

/* arch_of_elf() - by the first ELF_HEAD_LEN bytes of a program. Return: a name, "unknown", or "" for what
 * is no ELF file. */
const char *arch_of_elf(const unsigned char *head, size_t len);
