/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/bpf_run.h - run a system call filter without a kernel, for any architecture
 *
 * The subset of classic BPF that seccomp filters use. Whatever else a program contains, and every
 * load outside struct seccomp_data, ends the run with BPF_RUN_INVALID, which no verdict equals.
 */
#pragma once

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <string.h>

enum { BPF_RUN_INVALID = 0x7000ffff };

struct bpf_run {
	const struct sock_fprog *prog;
	const struct seccomp_data *data;
	uint32_t a;
	unsigned int pc, steps;
};

static inline int bpf_run_load(struct bpf_run *r, uint32_t offset)
{
	if (offset % 4 != 0 || offset > sizeof(*r->data) - 4)
		return -1;
	memcpy(&r->a, (const char *)r->data + offset, 4);
	return 0;
}

/* Return: 0 when the jump's condition is known. */
static inline int bpf_run_jump(struct bpf_run *r, const struct sock_filter *f)
{
	int taken;

	switch (f->code) {
	case BPF_JMP | BPF_JA:
		r->pc += f->k;
		return 0;
	case BPF_JMP | BPF_JEQ | BPF_K:
		taken = r->a == f->k;
		break;
	case BPF_JMP | BPF_JGT | BPF_K:
		taken = r->a > f->k;
		break;
	case BPF_JMP | BPF_JGE | BPF_K:
		taken = r->a >= f->k;
		break;
	case BPF_JMP | BPF_JSET | BPF_K:
		taken = (r->a & f->k) != 0;
		break;
	default:
		return -1;
	}
	r->pc += taken ? f->jt : f->jf;
	return 0;
}

/* bpf_run() - Return: the verdict, SECCOMP_RET_*. */
static inline uint32_t bpf_run(const struct sock_fprog *prog, const struct seccomp_data *data)
{
	struct bpf_run r = {.prog = prog, .data = data};

	while (r.pc < prog->len && r.steps++ < BPF_MAXINSNS) {
		const struct sock_filter *f = &prog->filter[r.pc++];

		if (f->code == (BPF_RET | BPF_K))
			return f->k;
		if (f->code == (BPF_ALU | BPF_AND | BPF_K))
			r.a &= f->k;
		else if (f->code == (BPF_LD | BPF_W | BPF_ABS)) {
			if (bpf_run_load(&r, f->k) != 0)
				break;
		} else if (bpf_run_jump(&r, f) != 0) {
			break;
		}
	}
	return BPF_RUN_INVALID;
}
