/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/seccomp.c - turn the policy table into classic BPF programs
 *
 * Runs once in the keeper (and in the front and helpers for their own filter), before anything
 * untrusted. The only file that uses libseccomp. A program has two parts:
 *
 *   1. the list of calls, by libseccomp as a binary tree: a linear list costs four times as much to
 *      load, since the kernel walks the program once for every call number. It begins by refusing
 *      every architecture but the wanted one, x32 included.
 *   2. one block of argument checks for each call that has any, assembled here. In part 1 such a
 *      call ends in the otherwise unused verdict TRACE with the block's number, and that
 *      instruction is then replaced by a jump to the block, which refuses or allows.
 *
 * Why not libseccomp for part 2: it has no "one of these, else this error" and no "all but these"
 * on the low 32 bits. Written with single-bit masks they double the program, and checks in front of
 * the list instead of behind it cost every call number of that walk a few steps more (measured: a
 * sixth of the loading time, which is paid for every command).
 */
#include "runtime/seccomp.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/seccomp_table.h"

enum { CALL_NAME_MAX = 40, BINARY_TREE = 2, BLOCKS_MAX = 8, BLOCK_INSNS_MAX = 128 };

struct arch {
	const char *name;
	uint32_t token;
};

static const struct arch arch_table[] = {
	{"x86_64", SCMP_ARCH_X86_64},
	{"aarch64", SCMP_ARCH_AARCH64},
};

/* Part 2 under construction; a fixed size, since the table is. */
struct blocks {
	struct sock_filter insn[BLOCK_INSNS_MAX];
	size_t count;
	size_t start[BLOCKS_MAX]; /* of each block, in insn */
	size_t block_count;
};

static const struct arch *arch_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(arch_table); i++) {
		if (strcmp(name, arch_table[i].name) == 0)
			return &arch_table[i];
		if (strcmp(name, "native") == 0 && arch_table[i].token == seccomp_arch_native())
			return &arch_table[i];
	}
	return NULL;
}

/* The call's number for this architecture's rules. Return: 1, 0 when the architecture lacks the
 * call, -1 when nobody knows the name. */
static int resolve(const struct arch *arch, const char *name, int *ret_nr)
{
	int nr = seccomp_syscall_resolve_name_arch(arch->token, name);

	if (nr == __NR_SCMP_ERROR)
		return -1;
	if (nr < 0)
		return 0;
	*ret_nr = nr;
	return 1;
}

static bool emit(struct blocks *b, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
	if (b->count == BLOCK_INSNS_MAX)
		return false;
	b->insn[b->count++] = (struct sock_filter){code, jt, jf, k};
	return true;
}

/* Load an argument's low half; both architectures are little-endian. */
static bool emit_load(struct blocks *b, unsigned int arg)
{
	return emit(b, BPF_LD | BPF_W | BPF_ABS, 0, 0,
		    (uint32_t)(offsetof(struct seccomp_data, args) + 8 * arg));
}

static bool emit_return(struct blocks *b, uint32_t verdict)
{
	return emit(b, BPF_RET | BPF_K, 0, 0, verdict);
}

/* When A equals one of the values, skip so many instructions after this; else go on. */
static bool emit_skip_if_any(struct blocks *b, const struct seccomp_values *values,
			     unsigned int skip)
{
	for (unsigned int i = 0; i < values->count; i++) {
		unsigned int left = values->count - i - 1u;

		if (!emit(b, BPF_JMP | BPF_JEQ | BPF_K, (uint8_t)(left + skip), 0,
			  values->value[i]))
			return false;
	}
	return true;
}

/* The check itself: goes on behind its last instruction, or returns the error. */
static bool emit_condition(struct blocks *b, const struct seccomp_check *c)
{
	uint32_t refuse = SECCOMP_RET_ERRNO | c->error;
	bool ok = emit_load(b, c->arg);

	if (c->kind == CHECK_NO_BITS)
		return ok && emit(b, BPF_JMP | BPF_JSET | BPF_K, 0, 1, c->mask) &&
		       emit_return(b, refuse);
	ok = ok && emit(b, BPF_ALU | BPF_AND | BPF_K, 0, 0, c->mask) &&
	     emit_skip_if_any(b, &c->values, 1);
	if (c->kind == CHECK_NONE_OF) /* no match jumps over the refusal, a match over this jump */
		ok = ok && emit(b, BPF_JMP | BPF_JA, 0, 0, 1);
	return ok && emit_return(b, refuse);
}

/* With "when" values, the condition is looked at only after one of them matched. */
static bool emit_check(struct blocks *b, const struct seccomp_check *c)
{
	size_t jump;

	if (c->when.count == 0)
		return emit_condition(b, c);
	if (!emit_load(b, c->when_arg) || !emit_skip_if_any(b, &c->when, 1) ||
	    !emit(b, BPF_JMP | BPF_JA, 0, 0, 0))
		return false;
	jump = b->count;
	if (!emit_condition(b, c))
		return false;
	b->insn[jump - 1].k = (uint32_t)(b->count - jump);
	return true;
}

/* Assemble the checks of a call for a role. Return: the block's number, -1 when there are none, -2
 * when they do not fit. */
static int add_block(struct blocks *b, unsigned int role, const char *name)
{
	size_t start = b->count;

	for (size_t i = 0; i < seccomp_check_count; i++) {
		const struct seccomp_check *c = &seccomp_checks[i];

		if ((c->roles & role) && strcmp(c->name, name) == 0 && !emit_check(b, c))
			return -2;
	}
	if (b->count == start)
		return -1;
	if (b->block_count == BLOCKS_MAX || !emit_return(b, SECCOMP_RET_ALLOW))
		return -2;
	b->start[b->block_count] = start;
	return (int)b->block_count++;
}

/* An empty filter that refuses with ENOSYS whatever it does not know, on this architecture and on
 * every other. Refusals never kill: a kill writes a line to the host's kernel log. */
static int filter_init(const struct arch *arch, scmp_filter_ctx *ret, struct err *e)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));

	if (!ctx)
		return err_set(e, ERR_NOMEM, "prepare a system call filter: out of memory");
	*ret = ctx;
	if (seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)) != 0 ||
	    seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, BINARY_TREE) != 0)
		return err_set(e, ERR_HOST, "this libseccomp is older than 2.5");
	if (arch->token == seccomp_arch_native())
		return 0;
	if (seccomp_arch_remove(ctx, SCMP_ARCH_NATIVE) != 0 ||
	    seccomp_arch_add(ctx, arch->token) != 0)
		return err_set(e, ERR_HOST, "libseccomp cannot build filters for %s", arch->name);
	return 0;
}

/* One filter under construction. */
struct build {
	const struct arch *arch;
	unsigned int role; /* ROLE_* bit */
	scmp_filter_ctx ctx;
	struct blocks blocks;
};

static int add_call(struct build *b, uint32_t action, const char *name, struct err *e)
{
	int nr;
	int known = resolve(b->arch, name, &nr);

	if (known < 0)
		return err_set(e, ERR_HOST, "libseccomp does not know the system call %s", name);
	if (known == 0 || action == SCMP_ACT_ERRNO(ENOSYS)) /* the default cannot be a rule */
		return 0;
	if (action == SCMP_ACT_ALLOW) {
		int block = add_block(&b->blocks, b->role, name);
		if (block < -1)
			return err_set(e, ERR_LIMIT, "the checks of %s do not fit", name);
		if (block >= 0)
			action = SCMP_ACT_TRACE((uint32_t)block);
	}
	/* Rules are given in the native architecture's numbers, also for another one. */
	int rc =
		seccomp_rule_add_array(b->ctx, action, seccomp_syscall_resolve_name(name), 0, NULL);
	if (rc != 0) {
		errno = -rc;
		return err_sys(e, "add %s to a system call filter", name);
	}
	return 0;
}

/* The next word of a row's names. Return: the rest, NULL at the end. */
static const char *next_name(const char *names, char *ret_name)
{
	names += strspn(names, " ");
	size_t len = strcspn(names, " ");

	if (len == 0 || len >= CALL_NAME_MAX)
		return NULL;
	memcpy(ret_name, names, len);
	ret_name[len] = '\0';
	return names + len;
}

static int add_row(struct build *b, const struct seccomp_row *row, struct err *e)
{
	static const uint32_t action[] = {
		[VERDICT_ALLOW] = SCMP_ACT_ALLOW,
		[VERDICT_EPERM] = SCMP_ACT_ERRNO(EPERM),
		[VERDICT_ENOSYS] = SCMP_ACT_ERRNO(ENOSYS),
	};
	char name[CALL_NAME_MAX];
	const char *names = row->names;

	while ((names = next_name(names, name)) != NULL) {
		if (add_call(b, action[row->verdict], name, e) != 0)
			return -1;
	}
	return 0;
}

/* Replace each TRACE verdict of the list by a jump to its block behind the list. Return: how many.
 */
static size_t link_blocks(struct sock_filter *code, size_t list, const struct blocks *b)
{
	size_t linked = 0;

	for (size_t i = 0; i < list; i++) {
		uint32_t block = code[i].k & SECCOMP_RET_DATA;

		if (code[i].code != (BPF_RET | BPF_K) ||
		    (code[i].k & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_TRACE ||
		    block >= b->block_count)
			continue;
		code[i] = (struct sock_filter){BPF_JMP | BPF_JA, 0, 0,
					       (uint32_t)(list + b->start[block] - (i + 1))};
		linked++;
	}
	return linked;
}

/* Read the list libseccomp wrote to fd and put the blocks behind it. */
static int join_parts(const struct blocks *b, int fd, struct seccomp_program *ret, struct err *e)
{
	_cleanup_free_ struct sock_filter *code = NULL;
	off_t size = lseek(fd, 0, SEEK_END);
	size_t list = (size_t)size / sizeof(*code);

	if (size <= 0 || (size_t)size % sizeof(*code) != 0 || list + b->count > BPF_MAXINSNS)
		return err_set(e, ERR_LIMIT, "a system call filter has the wrong size");
	code = calloc(list + b->count, sizeof(*code));
	if (!code)
		return err_set(e, ERR_NOMEM, "build a system call filter: out of memory");
	if (lseek(fd, 0, SEEK_SET) != 0 || fd_read_full(fd, code, (size_t)size) != (ssize_t)size)
		return err_sys(e, "read back a system call filter");
	memcpy(code + list, b->insn, b->count * sizeof(*code));
	if (link_blocks(code, list, b) != b->block_count)
		return err_set(e, ERR_HOST, "this libseccomp writes filters in an unknown form");
	ret->prog.filter = take_ptr(code);
	ret->prog.len = (unsigned short)(list + b->count);
	return 0;
}

static int export_program(const struct build *b, struct seccomp_program *ret, struct err *e)
{
	/* A memory file: libseccomp 2.5 has no export to memory. */
	_cleanup_fd_ int fd = memfd_create("seccomp", MFD_CLOEXEC);
	int rc;

	if (fd < 0)
		return err_sys(e, "make a memory file");
	rc = seccomp_export_bpf(b->ctx, fd);
	if (rc != 0) {
		errno = -rc;
		return err_sys(e, "export a system call filter");
	}
	return join_parts(&b->blocks, fd, ret, e);
}

static void build_done(struct build *b)
{
	if (b->ctx)
		seccomp_release(b->ctx);
}

int seccomp_compile(enum seccomp_role role, const char *arch_name, struct seccomp_program *ret,
		    struct err *e)
{
	_cleanup_(build_done) struct build b = {.arch = arch_find(arch_name), .role = 1u << role};

	if (!b.arch)
		return err_set(e, ERR_HOST, "no system call filter for the architecture %s",
			       arch_name);
	if (filter_init(b.arch, &b.ctx, e) != 0)
		return -1;
	for (size_t i = 0; i < seccomp_row_count; i++) {
		if ((seccomp_rows[i].roles & b.role) && add_row(&b, &seccomp_rows[i], e) != 0)
			return -1;
	}
	return export_program(&b, ret, e);
}

void seccomp_program_done(struct seccomp_program *p)
{
	free(p->prog.filter);
	p->prog.filter = NULL;
	p->prog.len = 0;
}

char *seccomp_call_name(const char *arch_name, int nr)
{
	const struct arch *arch = arch_find(arch_name);

	return arch ? seccomp_syscall_resolve_num_arch(arch->token, nr) : NULL;
}
