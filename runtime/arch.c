/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/arch.c - names of architectures, and the machine in an ELF header
 *
 * Runs wherever it is called. Its input is twenty bytes, compared as numbers.
 */
#include "runtime/arch.h"

#include <elf.h>
#include <string.h>

#include "runtime/base/cleanup.h"

#if defined(__x86_64__)
#define OWN "amd64"
#elif defined(__aarch64__)
#define OWN "arm64"
#else
#error "sandboxes are made on x86_64 and aarch64"
#endif

#define OTHER "unknown"

/* Others are told apart so that a refusal can name them. */
static const struct {
	unsigned char class, order;
	uint16_t machine;
	const char *name;
} machines[] = {
	{ ELFCLASS64, ELFDATA2LSB, EM_X86_64, "amd64" },
	{ ELFCLASS64, ELFDATA2LSB, EM_AARCH64, "arm64" },
	{ ELFCLASS32, ELFDATA2LSB, EM_X86_64, "x32" },
	{ ELFCLASS32, ELFDATA2LSB, EM_386, "i386" },
	{ ELFCLASS32, ELFDATA2LSB, EM_ARM, "armhf" },
	{ ELFCLASS64, ELFDATA2LSB, EM_RISCV, "riscv64" },
	{ ELFCLASS64, ELFDATA2LSB, EM_PPC64, "ppc64el" },
	{ ELFCLASS64, ELFDATA2MSB, EM_S390, "s390x" },
};

const char *arch_own(void)
{
	return OWN;
}

bool arch_is_foreign(const char *name)
{
	return name && name[0] && strcmp(name, OWN) != 0;
}

bool arch_has_program(const char *name)
{
	return strcmp(name, "amd64") == 0 || strcmp(name, "arm64") == 0;
}

const char *arch_of_elf(const unsigned char *head, size_t len)
{
	uint16_t machine;

	if (len < ELF_HEAD_LEN || memcmp(head, ELFMAG, SELFMAG) != 0)
		return "";
	machine = head[EI_DATA] == ELFDATA2MSB ? (uint16_t)(head[18] << 8 | head[19]) :
						 (uint16_t)(head[19] << 8 | head[18]);
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		if (machines[i].class == head[EI_CLASS] && machines[i].order == head[EI_DATA] &&
		    machines[i].machine == machine)
			return machines[i].name;
	}
	return OTHER;
}
