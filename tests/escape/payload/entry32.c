/* SPDX-License-Identifier: Apache-2.0 */
/* tests/escape/payload/entry32.c - getpid() through every door a 64-bit process has; prints "<door> ok", the error or the signal */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
static long int80(void)
{
	long ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
	return ret;
}

static long x32(void)
{
	long ret;

	__asm__ volatile("syscall" : "=a"(ret) : "a"(0x40000000L | 39) : "rcx", "r11", "memory");
	return ret;
}

/* the 32-bit socketcall(): a filter on socket() of 64 bits does not see the family */
static long socketcall(void)
{
	static unsigned int args[3] __attribute__((section(".data"))) = { 38 /* AF_ALG */, 5, 0 };
	long ret;

	if ((unsigned long)args > 0xffffffffUL)
		return -EFAULT;
	__asm__ volatile("int $0x80"
			 : "=a"(ret)
			 : "a"(102L), "b"(1L), "c"(args)
			 : "memory", "r8", "r9", "r10", "r11");
	return ret;
}
#endif

static void door(const char *name, long (*fn)(void))
{
	int status;

	fflush(stdout);
	if (fork() == 0) {
		long ret = fn();

		printf("%s %s\n", name, ret >= 0 ? "ok" : strerrorname_np((int)-ret));
		fflush(stdout);
		_exit(0);
	}
	wait(&status);
	if (WIFSIGNALED(status))
		printf("%s SIG%s\n", name, sigabbrev_np(WTERMSIG(status)));
}

int main(void)
{
#if defined(__x86_64__)
	door("int80", int80);
	door("x32", x32);
	door("socketcall", socketcall);
#else
	(void)door;
	puts("none: this architecture has one door");
#endif
	return 0;
}
