/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/init/init.c - process 1 of every sandbox: reap, and do nothing else
 *
 * Runs inside, as the sandbox's root, with the capabilities, the filter and the limits of every other
 * process there. It trusts nothing: it reads no file, no argument, no environment, holds no descriptor
 * and never forks (pids.max of its cgroup is 1). Everything a sandbox does is joined from outside.
 *
 * No C library: starting one costs more than the rest of creation (its CPUID probes alone, in a
 * virtual machine), and what is not there cannot be attacked. The keeper hands the program over as a
 * sealed memory file of mode 0111 owned by an id that does not exist inside, which is why nothing
 * inside can read, trace or replace process 1.
 */
#include <linux/prctl.h>
#include <linux/signal.h>

#include "runtime/base/raw.h"

/* The kernel's own layout; with SIG_IGN no restorer is ever used. */
struct kernel_sigaction {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	unsigned long mask;
};

void _start(void);

void _start(void)
{
	struct kernel_sigaction ignore = { .handler = SIG_IGN };

	/* Ignored SIGCHLD: the kernel reaps every orphan at once. Other signals keep their default
	 * action, which for process 1 means that nothing inside can deliver them. */
	RAW(__NR_rt_sigaction, SIGCHLD, &ignore, 0, sizeof(ignore.mask));
	/* execve() set the flag to fs.suid_dumpable, which may be 1. */
	RAW(__NR_prctl, PR_SET_DUMPABLE, 0);
	RAW(__NR_prctl, PR_SET_NAME, "init");
	for (;;)
		RAW(__NR_ppoll, 0); /* aarch64 has no pause() */
}
