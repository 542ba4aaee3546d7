/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/base/raw.h - system calls without a C library
 *
 * For code that runs between fork and exec, and for programs of ours that have no library at all.
 * No errno: the result is the kernel's, -4095..-1 for an error.
 */
#pragma once

#include <asm/unistd.h>

#if defined(__x86_64__)
static inline long raw_call5(long nr, long a, long b, long c, long d, long e)
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
static inline long raw_call5(long nr, long a, long b, long c, long d, long e)
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
#error "raw_call5: write the system call instruction for this architecture"
#endif

/* RAW(number, up to five arguments), whatever their types. */
#define RAW_PICK(nr, a, b, c, d, e, ...)                                                           \
	raw_call5((nr), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e))
#define RAW(...) RAW_PICK(__VA_ARGS__, 0, 0, 0, 0, 0, 0)

/* raw_clone3() - clone3() whose child starts in fn(arg) on the stack of args: it must not return
 * into frames that a parent in the same memory still uses. fn must not return. */
static inline long raw_clone3(const void *args, unsigned long size, void (*fn)(void *), void *arg)
{
#if defined(__x86_64__)
	register void *r8 __asm__("r8") = (void *)fn;
	register void *r9 __asm__("r9") = arg;
	long ret;

	__asm__ volatile("syscall\n\t"
			 "testq %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xorl %%ebp, %%ebp\n\t"
			 "movq %%r9, %%rdi\n\t"
			 "callq *%%r8\n\t"
			 "ud2\n"
			 "1:"
			 : "=a"(ret)
			 : "0"((long)__NR_clone3), "D"(args), "S"(size), "r"(r8), "r"(r9)
			 : "rcx", "r11", "cc", "memory");
	return ret;
#else
	register long x8 __asm__("x8") = __NR_clone3;
	register long x0 __asm__("x0") = (long)args;
	register unsigned long x1 __asm__("x1") = size;
	register void *x2 __asm__("x2") = (void *)fn;
	register void *x3 __asm__("x3") = arg;

	__asm__ volatile("svc #0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, xzr\n\t"
			 "mov x30, xzr\n\t"
			 "mov x0, x3\n\t"
			 "blr x2\n\t"
			 "brk #1\n"
			 "1:"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3)
			 : "cc", "memory");
	return x0;
#endif
}

/* RAW_START(fn) - the entry point of a program without a C library: fn(long *stack), which must not return,
 * gets the stack as the kernel made it: argc, argv, NULL, envp, NULL. */
#if defined(__x86_64__)
#define RAW_START(fn)                                                                              \
	__asm__(".globl _start\n"                                                                  \
		"_start:\n\t"                                                                      \
		"xorl %ebp, %ebp\n\t"                                                              \
		"movq %rsp, %rdi\n\t"                                                              \
		"andq $-16, %rsp\n\t"                                                              \
		"callq " #fn "\n\t"                                                                \
		"ud2\n")
#else
#define RAW_START(fn)                                                                              \
	__asm__(".globl _start\n"                                                                  \
		"_start:\n\t"                                                                      \
		"mov x29, xzr\n\t"                                                                 \
		"mov x30, xzr\n\t"                                                                 \
		"mov x0, sp\n\t"                                                                   \
		"bl " #fn "\n\t"                                                                   \
		"brk #1\n")
#endif
