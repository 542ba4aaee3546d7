/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/enter_rights.h - the last steps before hostile code, the one place where rights are set
 *
 * Compiled into the keeper (process 1's last steps in launch.c's child) and into the joiner (every
 * command), so that neither can have rights the other has not. Runs inside, with every capability
 * over the sandbox's namespaces on entry and a sandbox process's rights on return. Raw system calls
 * on prepared bytes: no memory is allocated, nothing is looked up. The includer brings fcntl.h, the
 * kernel's or the library's: they exclude each other.
 */
#pragma once

#include <asm/resource.h>
#include <linux/errno.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/raw.h"
#include "runtime/caps.h"
#include "runtime/enter.h"

enum {
	NOFILE_SOFT =
		1024, /* select() breaks above it; programs that want more raise it themselves */
	NOFILE_HARD = 65536,
	STACK_SOFT = 8 << 20,
	SHARED_ACCOUNT = 4096,
	MSGQUEUE_BYTES = 819200,
	MEMLOCK_BYTES = 8 << 20,
};

/* Hard limits of every sandbox process, whatever the keeper inherited. */
static const struct rights_limit {
	uint32_t resource;
	uint64_t soft, hard;
} rights_limits[] = {
	{RLIMIT_CORE, 0, 0}, /* a piped core_pattern would run a program of the host */
	{RLIMIT_NOFILE, NOFILE_SOFT, NOFILE_HARD},
	{RLIMIT_STACK, STACK_SOFT, RLIM_INFINITY}, /* an address space looks alike on every host */
	/* Accounts that all sandboxes of a user share: no larger setting of a host is passed on. */
	{RLIMIT_SIGPENDING, SHARED_ACCOUNT, SHARED_ACCOUNT},
	{RLIMIT_MSGQUEUE, MSGQUEUE_BYTES, MSGQUEUE_BYTES},
	{RLIMIT_MEMLOCK, MEMLOCK_BYTES, MEMLOCK_BYTES},
	{RLIMIT_RTPRIO, 0, 0},
	{RLIMIT_NICE, 0, 0},
};

static inline long rights_set_limit(const struct rights_limit *limit)
{
	struct {
		uint64_t soft, hard;
	} now = {0, 0}, next = {limit->soft, limit->hard};
	long r = RAW(__NR_prlimit64, 0, limit->resource, NULL, &now);

	if (r < 0)
		return r;
	/* Never above what we were given: raising needs a privilege on the host. */
	if (next.hard > now.hard)
		next.hard = now.hard;
	if (next.soft > next.hard)
		next.soft = next.hard;
	return RAW(__NR_prlimit64, 0, limit->resource, &next, NULL);
}

/* When the host runs out of memory, processes of sandboxes go first, whatever else is running and
 * however small they are. Needs the host's /proc. Raising needs no privilege; where this process has
 * CAP_SYS_RESOURCE over the host, what it starts cannot lower the value again. */
static inline long rights_offer_to_oom(void)
{
	static const char path[] = "/proc/self/oom_score_adj", score[] = "1000";
	long fd = RAW(__NR_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC), r;

	if (fd < 0)
		return fd;
	r = RAW(__NR_write, fd, score, sizeof(score) - 1);
	(void)RAW(__NR_close, fd);
	return r < 0 ? r : 0;
}

static inline long rights_set_limits(void)
{
	for (size_t i = 0; i < sizeof(rights_limits) / sizeof(rights_limits[0]); i++) {
		long r = rights_set_limit(&rights_limits[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Securebits and the bounding set need CAP_SETPCAP, so they come before the sets themselves. */
static inline long rights_set_caps(const struct caps_plan *plan)
{
	struct __user_cap_header_struct header = plan->header; /* the kernel writes to it */
	long r = RAW(__NR_prctl, PR_SET_SECUREBITS, SECUREBITS_DEFAULT);

	for (int cap = 0; r >= 0 && cap <= plan->last_cap; cap++) {
		if (!(plan->keep & (UINT64_C(1) << cap)))
			r = RAW(__NR_prctl, PR_CAPBSET_DROP, cap);
	}
	if (r < 0)
		return r;
	r = RAW(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL);
	return r < 0 ? r : RAW(__NR_capset, &header, plan->data);
}

/* A change of credentials sets the flag to fs.suid_dumpable, which may be 1, so this follows every
 * one of them, and believes only what it reads back. */
static inline long rights_set_not_dumpable(void)
{
	long r = RAW(__NR_prctl, PR_SET_DUMPABLE, 0);

	if (r < 0)
		return r;
	return RAW(__NR_prctl, PR_GET_DUMPABLE) == 0 ? 0 : -EPERM;
}

/* rights_apply() - rlimits, bounding set and capabilities, not dumpable, no_new_privs, filter.
 * Return: 0, or the failed stage with *ret_error set. */
static inline int rights_apply(const struct caps_plan *caps, const struct sock_fprog *filter,
			       int *ret_error)
{
	int stage = ENTER_RLIMITS;
	long r = rights_set_limits();

	if (r >= 0) {
		stage = ENTER_CAPS;
		r = rights_set_caps(caps);
	}
	if (r >= 0) {
		stage = ENTER_DUMPABLE;
		r = rights_set_not_dumpable();
	}
	if (r >= 0) {
		stage = ENTER_NO_NEW_PRIVS;
		r = RAW(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1);
	}
	if (r >= 0) {
		stage = ENTER_SECCOMP;
		r = RAW(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, filter);
	}
	if (r >= 0)
		return 0;
	*ret_error = (int)-r;
	return stage;
}
