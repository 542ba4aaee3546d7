/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/landlock.c - a second barrier for processes of ours that need no file
 *
 * Runs in the front and in egress proxies, before they read a hostile byte. Trusts its caller only.
 */
#include "runtime/landlock.h"

#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/log.h"

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
	LANDLOCK_NET_BIND = 1,
	LANDLOCK_NET_CONNECT = 2,
	LANDLOCK_SCOPE_ABSTRACT_SIGNAL = 3,
};

static struct landlock_attr attr_for(long abi, bool connects)
{
	struct landlock_attr a = { .handled_fs = LANDLOCK_FS_FIRST };

	if (abi >= LANDLOCK_ABI_REFER)
		a.handled_fs |= LANDLOCK_FS_REFER;
	if (abi >= LANDLOCK_ABI_TRUNCATE)
		a.handled_fs |= LANDLOCK_FS_TRUNCATE;
	if (abi >= LANDLOCK_ABI_NET)
		a.handled_net = LANDLOCK_NET_BIND | (connects ? 0 : LANDLOCK_NET_CONNECT);
	if (abi >= LANDLOCK_ABI_IOCTL_DEV)
		a.handled_fs |= LANDLOCK_FS_IOCTL_DEV;
	if (abi >= LANDLOCK_ABI_SCOPE)
		a.scoped = LANDLOCK_SCOPE_ABSTRACT_SIGNAL;
	return a;
}

/* Everything is handled and no rule allows anything. */
int landlock_confine(bool connects, struct err *e)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1U /* ..._VERSION */);
	struct landlock_attr attr;
	_cleanup_fd_ int ruleset = -1;

	if (abi < 1) {
		log_debug("this kernel has no Landlock; the system call filter stands alone");
		return 0;
	}
	attr = attr_for(abi, connects);
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (ruleset < 0)
		return err_sys(e, "create the Landlock rule set");
	if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		return err_sys(e, "enter the Landlock rule set");
	return 0;
}
