/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/seccomp.h - the system call filters, as classic BPF programs
 *
 * Its .c is the only user of libseccomp. Filters are compiled once at start (binary tree: a load
 * costs a quarter of the linear form's) and exported; loading them needs no library.
 */
#pragma once

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/err.h"

enum seccomp_role {
	SECCOMP_SANDBOX,    /* everything inside a sandbox */
	SECCOMP_SAFE_SHELL, /* the same without ptrace and process_vm_* */
	SECCOMP_FRONT,      /* no open, socket, connect, fork, exec, signal */
	SECCOMP_HELPER,     /* tree workers and file-out: openat2, getdents64, unlinkat, fstat... */
	SECCOMP_PROXY,      /* like the front, and TCP and UDP sockets; no file, fork, exec, signal */
};

struct seccomp_program {
	struct sock_fprog prog; /* prog.filter is owned */
};

/* seccomp_compile() - the filter of a role for an architecture (a SCMP_ARCH_*-independent name:
 * "native", "x86_64", "aarch64"). */
int seccomp_compile(enum seccomp_role role, const char *arch, struct seccomp_program *ret,
		    struct err *e);
void seccomp_program_done(struct seccomp_program *p);

/* seccomp_call_name() - the name of a system call number, for reports. Return: allocated, NULL. */
char *seccomp_call_name(const char *arch, int nr);
