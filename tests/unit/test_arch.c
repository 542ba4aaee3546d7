/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_arch.c - architectures by the head of a program */
#include "runtime/arch.h"

#include <fcntl.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "tests/unit/tap.h"

static void test_heads(void)
{
	static const struct {
		unsigned char class, order, low, high;
		const char *want;
	} rows[] = {
		{ 2, 1, 62, 0, "amd64" },    { 2, 1, 183, 0, "arm64" },	  { 1, 1, 62, 0, "x32" },
		{ 1, 1, 3, 0, "i386" },	     { 1, 1, 40, 0, "armhf" },	  { 2, 1, 243, 0, "riscv64" },
		{ 2, 1, 21, 0, "ppc64el" },  { 2, 2, 0, 22, "s390x" },	  { 2, 1, 22, 0, "unknown" },
		{ 2, 2, 0, 183, "unknown" }, { 1, 1, 183, 0, "unknown" }, { 0, 0, 62, 0, "unknown" },
		{ 2, 1, 62, 1, "unknown" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned char head[ELF_HEAD_LEN] = { 0x7f, 'E', 'L', 'F', rows[i].class, rows[i].order };

		head[18] = rows[i].low;
		head[19] = rows[i].high;
		tap_str(arch_of_elf(head, sizeof(head)), rows[i].want, "class %u, order %u, machine %u %u",
			rows[i].class, rows[i].order, rows[i].low, rows[i].high);
		tap_str(arch_of_elf(head, sizeof(head) - 1), "", "cut short: nothing");
		head[1] = 'e';
		tap_str(arch_of_elf(head, sizeof(head)), "", "no ELF file: nothing");
	}
	tap_str(arch_of_elf((const unsigned char *)"", 0), "", "an empty file: nothing");
}

static void test_own(void)
{
	_cleanup_fd_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	unsigned char head[ELF_HEAD_LEN];

	tap_ok(fd_read_full(fd, head, sizeof(head)) == (ssize_t)sizeof(head), "this program is read");
	tap_str(arch_of_elf(head, sizeof(head)), arch_own(), "what we are is what we say");
	tap_ok(!arch_is_foreign(arch_own()) && !arch_is_foreign("") && !arch_is_foreign(NULL),
	       "we, and what is not said, are not foreign");
	tap_ok(arch_is_foreign("amd64") + arch_is_foreign("arm64") == 1 && arch_is_foreign("unknown") &&
		       arch_is_foreign("arm"),
	       "everything else is");
	tap_ok(arch_has_program("amd64") && arch_has_program("arm64"), "we exist for two");
	tap_ok(!arch_has_program("armhf") && !arch_has_program("") && !arch_has_program("a b") &&
		       !arch_has_program("--x"),
	       "and for no other word");
}

int main(void)
{
	test_heads();
	test_own();
	return tap_done();
}
