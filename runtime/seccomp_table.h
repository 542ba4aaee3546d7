/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/seccomp_table.h - which system calls whom, with the reason: the policy, and nothing else
 *
 * One table for x86_64 and aarch64. A call that is not in it gets ENOSYS, as from an older kernel.
 * A name that one of the two architectures does not have is skipped there; a name that neither
 * library nor kernel knows is an error when the filter is built.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { /* one bit per enum seccomp_role */
	ROLE_SANDBOX = 1,
	ROLE_SAFE_SHELL = 2,
	ROLE_FRONT = 4,
	ROLE_HELPER = 8,
	ROLE_PROXY = 16,
};

enum seccomp_verdict {
	VERDICT_ALLOW,
	VERDICT_EPERM,  /* known and refused: tools say "Operation not permitted" */
	VERDICT_ENOSYS, /* the default, written down where somebody may look for the call */
};

struct seccomp_row {
	uint8_t verdict;
	uint8_t roles;
	const char *names; /* separated by blanks */
	const char *why;
};

/* A condition on one argument of a call that a row allows. Only the low 32 bits count: the kernel
 * takes an int there, and a comparison of all 64 is bypassed by setting a high one
 * (CVE-2019-7303). */
enum seccomp_check_kind {
	CHECK_ONE_OF,  /* refused unless (arg & mask) is one of the values */
	CHECK_NONE_OF, /* refused when it is */
	CHECK_NO_BITS, /* refused when any bit of mask is set */
};

enum { CHECK_VALUES_MAX = 8 };

struct seccomp_values {
	uint8_t count;
	uint32_t value[CHECK_VALUES_MAX];
};

struct seccomp_check {
	const char *name;
	uint8_t roles;
	uint8_t kind;
	uint8_t arg; /* 0..5 */
	uint16_t error;
	uint32_t mask;
	struct seccomp_values values;
	uint8_t when_arg; /* only when (args[when_arg]) is one of these; count 0: always */
	struct seccomp_values when;
	const char *why;
};

extern const struct seccomp_row seccomp_rows[];
extern const size_t seccomp_row_count;

extern const struct seccomp_check seccomp_checks[];
extern const size_t seccomp_check_count;
