/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/front_confine.c - give up everything but the descriptors already held
 *
 * Runs in the front right after exec, still with the id of the keeper. Trusts its caller only.
 * Afterwards the process can read, write, wait and end; the seccomp filter is the barrier that is
 * always there, Landlock the second one where the kernel has it.
 */
#include "mcp/front_confine.h"

#include <errno.h>
#include <grp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/close_range.h>
#include <linux/seccomp.h>

#include "mcp/front.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/log.h"
#include "runtime/caps.h"
#include "runtime/seccomp.h"

static int become_ids(uint32_t id, struct err *e)
{
	if (id == FRONT_KEEP_ID)
		return 0;
	if (setgroups(0, NULL) < 0)
		return err_sys(e, "drop supplementary groups");
	if (setresgid(id, id, id) < 0)
		return err_sys(e, "become group %u", id);
	if (setresuid(id, id, id) < 0)
		return err_sys(e, "become user %u", id);
	return 0;
}

int front_become(uint32_t id, struct err *e)
{
	static const struct rlimit none = { 0, 0 };

	if (close_range(FRONT_API_FD + 1, ~0U, 0) < 0)
		return err_sys(e, "close inherited descriptors");
	if (become_ids(id, e) < 0 || caps_drop_all(e) < 0)
		return -1;
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
		return err_sys(e, "forbid core dumps");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(e, "no_new_privs");
	return 0;
}

/* The kernel's own header may be older than the kernel: names and layout as of ABI 6. The kernel
 * accepts a longer structure than it knows as long as the rest is zero. */
struct landlock_attr {
	uint64_t handled_fs, handled_net, scoped;
};

enum {
	LANDLOCK_ABI_REFER = 2,
	LANDLOCK_ABI_TRUNCATE = 3,
	LANDLOCK_ABI_NET = 4,
	LANDLOCK_ABI_IOCTL_DEV = 5,
	LANDLOCK_ABI_SCOPE = 6,
	LANDLOCK_FS_FIRST = 0x1fff, /* the 13 rights of ABI 1 */
	LANDLOCK_FS_REFER = 1 << 13,
	LANDLOCK_FS_TRUNCATE = 1 << 14,
	LANDLOCK_FS_IOCTL_DEV = 1 << 15,
	LANDLOCK_NET_BIND_CONNECT = 3,
	LANDLOCK_SCOPE_ABSTRACT_SIGNAL = 3,
};

static struct landlock_attr landlock_attr_for(long abi)
{
	struct landlock_attr a = { .handled_fs = LANDLOCK_FS_FIRST };

	if (abi >= LANDLOCK_ABI_REFER)
		a.handled_fs |= LANDLOCK_FS_REFER;
	if (abi >= LANDLOCK_ABI_TRUNCATE)
		a.handled_fs |= LANDLOCK_FS_TRUNCATE;
	if (abi >= LANDLOCK_ABI_NET)
		a.handled_net = LANDLOCK_NET_BIND_CONNECT;
	if (abi >= LANDLOCK_ABI_IOCTL_DEV)
		a.handled_fs |= LANDLOCK_FS_IOCTL_DEV;
	if (abi >= LANDLOCK_ABI_SCOPE)
		a.scoped = LANDLOCK_SCOPE_ABSTRACT_SIGNAL;
	return a;
}

/* Everything is handled and no rule allows anything. */
static int confine_landlock(struct err *e)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1U /* ..._VERSION */);
	struct landlock_attr attr;
	_cleanup_fd_ int ruleset = -1;

	if (abi < 1) {
		log_debug("this kernel has no Landlock; the system call filter stands alone");
		return 0;
	}
	attr = landlock_attr_for(abi);
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (ruleset < 0)
		return err_sys(e, "create the Landlock rule set");
	if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		return err_sys(e, "enter the Landlock rule set");
	return 0;
}

static int confine_seccomp(struct err *e)
{
	struct seccomp_program program = { 0 };
	long r;

	if (seccomp_compile(SECCOMP_FRONT, "native", &program, e) < 0)
		return -1;
	r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program.prog);
	if (r < 0)
		(void)err_sys(e, "load the front's system call filter");
	seccomp_program_done(&program);
	return r < 0 ? -1 : 0;
}

int front_confine(struct err *e)
{
	return confine_landlock(e) < 0 ? -1 : confine_seccomp(e);
}
