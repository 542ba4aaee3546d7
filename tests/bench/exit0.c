/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench/exit0.c - the smallest program: no library, no start-up, exits at once
 *
 * A C library's start-up costs more than starting a process does, more so in a virtual machine, and
 * hides what is measured.
 */
void _start(void);

void _start(void)
{
#if defined(__x86_64__)
	__asm__ volatile("syscall" ::"a"(60L), "D"(0L));
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = 93;
	register long x0 __asm__("x0") = 0;
	__asm__ volatile("svc #0" ::"r"(x8), "r"(x0));
#endif
	__builtin_unreachable();
}
