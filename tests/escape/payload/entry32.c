/* SPDX-License-Identifier: Apache-2.0 */
/* tests/escape/payload/entry32.c - getpid() through every door a 64-bit process has; prints "<door> ok", the error or the signal */
#include <errno.h>
#include <signal.h>
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
#elif defined(__aarch64__)
#include <elf.h>
#include <stdlib.h>
#include <sys/mman.h>

/* a 32-bit program, the only way to the 32-bit calls: exit(0) */
static long a32(void)
{
	static const struct {
		Elf32_Ehdr head;
		Elf32_Phdr segment;
		unsigned int code[3];
	} elf = {
		{ { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB, EV_CURRENT }, ET_EXEC, EM_ARM,
		  EV_CURRENT, 0x10000 + sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr), sizeof(Elf32_Ehdr), 0,
		  EF_ARM_EABI_VER5, sizeof(Elf32_Ehdr), sizeof(Elf32_Phdr), 1, 0, 0, 0 },
		{ PT_LOAD, 0, 0x10000, 0x10000, sizeof(elf), sizeof(elf), PF_R | PF_X, 0x10000 },
		{ 0xe3a00000 /* mov r0, #0 */, 0xe3a07001 /* mov r7, #1 */, 0xef000000 /* svc 0 */ },
	};
	char name[] = "a32", *argv[] = { name, NULL }, *envp[] = { NULL };
	int fd = memfd_create(name, 0), status;
	pid_t pid = fork();

	if (pid == 0) {
		if (write(fd, &elf, sizeof(elf)) == (ssize_t)sizeof(elf))
			fexecve(fd, argv, envp);
		_exit(errno);
	}
	waitpid(pid, &status, 0);
	if (WIFSIGNALED(status))
		raise(WTERMSIG(status));
	return -WEXITSTATUS(status);
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
#elif defined(__aarch64__)
	door("a32", a32);
#else
#error "which doors are there?"
#endif
	return 0;
}
