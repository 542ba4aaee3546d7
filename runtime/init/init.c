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
#include <asm/unistd.h>
#include <linux/prctl.h>
#include <linux/signal.h>

#if defined(__x86_64__)
static inline long call5(long nr, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return ret;
}
#elif defined(__aarch64__)
static inline long call5(long nr, long a, long b, long c, long d, long e)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
			 : "memory");
	return x0;
}
#else
#error "process 1 is written for x86_64 and aarch64"
#endif

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
	call5(__NR_rt_sigaction, SIGCHLD, (long)&ignore, 0, sizeof(ignore.mask), 0);
	/* execve() set the flag to fs.suid_dumpable, which may be 1. */
	call5(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
	call5(__NR_prctl, PR_SET_NAME, (long)"init", 0, 0, 0);
	for (;;)
		call5(__NR_ppoll, 0, 0, 0, 0, 0); /* aarch64 has no pause() */
}
