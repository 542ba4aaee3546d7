/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/image_arch.c - look what a tree is for, and try whether a foreign architecture runs here
 *
 * Runs in: the command line's "image" verbs; what opens a file of the image, and the program that is
 * tried, are in boxes. Trusts: nothing in the image.
 */
#include "runtime/image_arch.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"
#include "runtime/base/sys.h"
#include "runtime/image_box.h"

/* exit(0) of each architecture that has a mcp-sandbox; little-endian, like their ELF headers. */
static const struct {
	const char *name;
	uint16_t machine;
	unsigned char code[12];
	const char *emulator; /* what qemu calls it */
} programs[] = {
	{ "amd64", EM_X86_64, { 0x31, 0xff, 0xb8, 0x3c, 0, 0, 0, 0x0f, 0x05 }, "x86_64" },
	{ "arm64", EM_AARCH64,
	  { 0x00, 0x00, 0x80, 0xd2, 0xa8, 0x0b, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 }, "aarch64" },
};

/* ---- what a tree is for ---- */

/* look() - in the box; the answer is in shared memory. A FIFO or device is not waited for. */
static int look(void *ctx)
{
	unsigned char head[ELF_HEAD_LEN];
	_cleanup_fd_ int root = open("/target", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_fd_ int fd = root < 0 ? -1 :
					 sys_openat2(root, "bin/bash",
						     O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0,
						     RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
	ssize_t n = fd < 0 ? 0 : fd_read_full(fd, head, sizeof(head));

	return str_copy(ctx, ARCH_NAME_MAX, arch_of_elf(head, n < 0 ? 0 : (size_t)n)) < 0;
}

int arch_of_tree(const struct idrange *ids, int rootfs_fd, char ret[ARCH_NAME_MAX], struct err *e)
{
	_cleanup_fd_ int tree = box_tree(rootfs_fd, "", e);
	struct box box = { .role = BOX_SANDBOX,
			   .mounts = { { tree, "/target", false } },
			   .mount_count = 1,
			   .stdin_fd = -1,
			   .stdout_fd = -1,
			   .stderr_fd = -1,
			   .fn = look };
	int r;

	if (tree < 0)
		return -1;
	box.ctx = mmap(NULL, ARCH_NAME_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (box.ctx == MAP_FAILED)
		return err_sys(e, "share memory with a helper process");
	r = box_run(ids, &box, e);
	if (r > 0)
		r = err_set(e, ERR_SYSTEM, "the architecture of the image cannot be found out");
	memcpy(ret, box.ctx, ARCH_NAME_MAX);
	ret[ARCH_NAME_MAX - 1] = '\0';
	(void)munmap(box.ctx, ARCH_NAME_MAX);
	return r;
}

/* ---- what runs here ---- */

/* write_program() - the smallest program there is, as one loadable segment. */
static int write_program(int fd, size_t which)
{
	enum { AT = 0x400000, ALIGN = 0x10000 };
	struct {
		Elf64_Ehdr head;
		Elf64_Phdr segment;
		unsigned char code[sizeof(programs[0].code)];
	} elf = {
		.head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT },
			  .e_type = ET_EXEC,
			  .e_machine = programs[which].machine,
			  .e_version = EV_CURRENT,
			  .e_entry = AT + sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
			  .e_phoff = sizeof(Elf64_Ehdr),
			  .e_ehsize = sizeof(Elf64_Ehdr),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 1 },
		.segment = { .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = AT, .p_paddr = AT,
			     .p_filesz = sizeof(elf), .p_memsz = sizeof(elf), .p_align = ALIGN },
	};

	memcpy(elf.code, programs[which].code, sizeof(elf.code));
	return fd_write_full(fd, &elf, sizeof(elf));
}

/* execute() - in the box. An emulator opens its program by name, so the file stays open across exec. */
static int execute(void *ctx)
{
	char name[] = "try", *argv[] = { name, NULL }, *envp[] = { NULL };
	int fd = memfd_create(name, 0);

	if (fd < 0 || write_program(fd, *(const size_t *)ctx) < 0)
		return 1;
	(void)fexecve(fd, argv, envp);
	return 1;
}

int arch_try(const struct idrange *ids, const char *name, struct err *e)
{
	size_t which = 0;
	struct box box = { .role = BOX_BOOTSTRAP,
			   .stdin_fd = -1,
			   .stdout_fd = -1,
			   .stderr_fd = -1,
			   .fn = execute,
			   .ctx = &which };
	int r;

	while (which < ARRAY_SIZE(programs) && strcmp(programs[which].name, name) != 0)
		which++;
	if (which == ARRAY_SIZE(programs))
		return err_set(e, ERR_USAGE, "there is no mcp-sandbox for %s", name);
	r = box_run(ids, &box, e);
	if (r <= 0)
		return r;
	(void)err_set(e, ERR_HOST, "this host cannot execute programs for %s, which making such an image "
				   "takes", name);
	return err_remedy(e, "install qemu-user-static and binfmt-support, mount binfmt_misc on "
			     "/proc/sys/fs/binfmt_misc, \"update-binfmts --enable qemu-%s\"; or build "
			     "the image on the other machine",
			  programs[which].emulator);
}
