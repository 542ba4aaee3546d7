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
#include "runtime/caps.h"
#include "runtime/landlock.h"
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
	return landlock_confine(false, e) < 0 ? -1 : confine_seccomp(e);
}
