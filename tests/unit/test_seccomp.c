/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_seccomp.c - the exported filters of both architectures, run row by row
 *
 * "test_seccomp golden ARCH" prints the golden table of an architecture, for seccomp_golden.h.
 */
#include "runtime/seccomp.h"

#include "runtime/base/cleanup.h"
#include "runtime/seccomp_table.h"
#include "tests/unit/bpf_run.h"
#include "tests/unit/seccomp_golden.h"
#include "tests/unit/tap.h"

enum { ROLES = 4, CALLS = 601, X32_BIT = 0x40000000 };
enum { X86_64, AARCH64, ARCHS };

static const char *const role_name[ROLES] = { "sandbox", "safe-shell", "front", "helper" };
static const char *const arch_name[ARCHS] = { "x86_64", "aarch64" };
static const uint32_t audit_arch[ARCHS] = { AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64 };

static struct seccomp_program program[ARCHS][ROLES];

static uint32_t run(int arch, int role, uint32_t audit, int nr, const uint64_t *args)
{
	struct seccomp_data data = { .nr = nr, .arch = audit, .instruction_pointer = 0x1000 };

	if (args)
		memcpy(data.args, args, sizeof(data.args));
	return bpf_run(&program[arch][role].prog, &data);
}

/* One letter a verdict, as in the golden tables. */
static char letter(uint32_t verdict)
{
	static const struct {
		uint32_t verdict;
		char letter;
	} rows[] = { { SECCOMP_RET_ALLOW, 'A' },
		     { SECCOMP_RET_ERRNO | EPERM, 'P' },
		     { SECCOMP_RET_ERRNO | ENOSYS, '-' },
		     { SECCOMP_RET_ERRNO | EAFNOSUPPORT, 'F' } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].verdict == verdict)
			return rows[i].letter;
	}
	return '?';
}

static void verdicts(int arch, int nr, char *ret)
{
	for (int role = 0; role < ROLES; role++)
		ret[role] = letter(run(arch, role, audit_arch[arch], nr, NULL));
	ret[ROLES] = '\0';
}

static int print_golden(const char *name)
{
	int arch = strcmp(name, arch_name[AARCH64]) == 0 ? AARCH64 : X86_64;

	for (int nr = 0; nr < CALLS; nr++) {
		_cleanup_free_ char *call = seccomp_call_name(name, nr);
		char got[ROLES + 1];

		verdicts(arch, nr, got);
		if (call)
			printf("\t{ %d, \"%s\", \"%s\" },\n", nr, call, got);
	}
	return 0;
}

static const struct golden_row *golden_find(int arch, int nr)
{
	const struct golden_row *rows = arch == X86_64 ? golden_x86_64 : golden_aarch64;
	size_t count = arch == X86_64 ? ARRAY_SIZE(golden_x86_64) : ARRAY_SIZE(golden_aarch64);

	for (size_t i = 0; i < count; i++) {
		if (rows[i].nr == nr)
			return &rows[i];
	}
	return NULL;
}

/* Every number, with all arguments zero; a number without a row is unknown and gets ENOSYS. */
static void test_golden(int arch)
{
	unsigned int wrong = 0;

	for (int nr = 0; nr < CALLS; nr++) {
		const struct golden_row *row = golden_find(arch, nr);
		const char *want = row ? row->verdicts : "----";
		char got[ROLES + 1];

		verdicts(arch, nr, got);
		if (strcmp(got, want) == 0)
			continue;
		wrong++;
		tap_diag("%s %d %s: %s, want %s", arch_name[arch], nr, row ? row->name : "(unknown)", got,
			 want);
	}
	tap_int(wrong, 0, "%s: calls 0..%d as in the golden table", arch_name[arch], CALLS - 1);
}

/* Other ways in: 32-bit calls, x32, calls that do not exist. None kills, none is allowed. */
static void test_entries(int arch)
{
	static const uint32_t foreign[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_X86_64,
					    AUDIT_ARCH_AARCH64, AUDIT_ARCH_RISCV64, 0, UINT32_MAX };
	static const int outside[] = { CALLS, 1000, 4095, 65535, X32_BIT - 1, INT32_MAX, INT32_MIN, -1 };
	uint32_t want = SECCOMP_RET_ERRNO | ENOSYS;
	unsigned int wrong = 0;

	for (int role = 0; role < ROLES; role++) {
		for (size_t i = 0; i < ARRAY_SIZE(foreign); i++) {
			if (foreign[i] == audit_arch[arch])
				continue;
			for (int nr = 0; nr < CALLS; nr++)
				wrong += run(arch, role, foreign[i], nr, NULL) != want;
		}
		for (int nr = 0; nr < CALLS; nr++)
			wrong += run(arch, role, audit_arch[arch], nr | X32_BIT, NULL) != want;
		for (size_t i = 0; i < ARRAY_SIZE(outside); i++)
			wrong += run(arch, role, audit_arch[arch], outside[i], NULL) != want;
	}
	tap_int(wrong, 0, "%s: ENOSYS for i386, arm, x32 and numbers that do not exist", arch_name[arch]);
}

/* A verdict of the right kind is all a program may end in, whatever the arguments. */
static void test_shape(int arch)
{
	for (int role = 0; role < ROLES; role++) {
		const struct sock_fprog *prog = &program[arch][role].prog;
		unsigned int odd = 0;

		for (unsigned int i = 0; i < prog->len; i++) {
			uint32_t action = prog->filter[i].k & SECCOMP_RET_ACTION_FULL;
			if (prog->filter[i].code == (BPF_RET | BPF_K))
				odd += action != SECCOMP_RET_ALLOW && action != SECCOMP_RET_ERRNO;
		}
		tap_int(odd, 0, "%s %s: no verdict but allow and an error (%u instructions)",
			arch_name[arch], role_name[role], prog->len);
	}
}

#define ERRNO(e) (SECCOMP_RET_ERRNO | (e))
#define ALLOWED SECCOMP_RET_ALLOW
#define HIGH (UINT64_C(1) << 32)

enum call { CLONE, CLONE3, SOCKET, SOCKETPAIR, IOCTL, PERSONALITY, MMAP, MPROTECT, PTRACE, CALL_COUNT };
static const int call_nr[ARCHS][CALL_COUNT] = {
	[X86_64] = { 56, 435, 41, 53, 16, 135, 9, 10, 101 },
	[AARCH64] = { 220, 435, 198, 199, 29, 92, 222, 226, 117 },
};
static const char *const call_name[CALL_COUNT] = { "clone",	  "clone3", "socket",	"socketpair", "ioctl",
						   "personality", "mmap",   "mprotect", "ptrace" };

struct arg_row {
	int role;
	enum call call;
	uint64_t args[6];
	uint32_t want;
	const char *desc;
};

static const struct arg_row arg_rows[] = {
	{ 0, CLONE, { 0x11 }, ALLOWED, "fork" },
	{ 0, CLONE, { 0x3d0f00 }, ALLOWED, "a thread" },
	{ 0, CLONE, { 0x4111 }, ALLOWED, "vfork" },
	{ 0, CLONE, { 0x80 }, ALLOWED, "0x80 is an exit signal here, not NEWTIME" },
	{ 0, CLONE, { 0x00020011 }, ERRNO(EPERM), "NEWNS" },
	{ 0, CLONE, { 0x02000011 }, ERRNO(EPERM), "NEWCGROUP" },
	{ 0, CLONE, { 0x04000011 }, ERRNO(EPERM), "NEWUTS" },
	{ 0, CLONE, { 0x08000011 }, ERRNO(EPERM), "NEWIPC" },
	{ 0, CLONE, { 0x10000011 }, ERRNO(EPERM), "NEWUSER" },
	{ 0, CLONE, { 0x20000011 }, ERRNO(EPERM), "NEWPID" },
	{ 0, CLONE, { 0x40000011 }, ERRNO(EPERM), "NEWNET" },
	{ 0, CLONE, { HIGH | 0x10000011 }, ERRNO(EPERM), "NEWUSER and a high bit" },
	{ 0, CLONE, { 0x10020011 }, ERRNO(EPERM), "NEWUSER|NEWNS" },
	{ 0, CLONE, { HIGH | 0x11 }, ALLOWED, "fork and a high bit, which the kernel ignores" },
	{ 0, CLONE3, { 0 }, ERRNO(ENOSYS), "the C library falls back to clone" },
	{ 1, CLONE, { 0x10000011 }, ERRNO(EPERM), "NEWUSER in safe-shell" },

	{ 0, SOCKET, { 1, 1, 0 }, ALLOWED, "UNIX" },
	{ 0, SOCKET, { 1, 5, 0 }, ALLOWED, "UNIX SEQPACKET" },
	{ 0, SOCKET, { 2, 1, 0 }, ALLOWED, "INET STREAM" },
	{ 0, SOCKET, { 2, 1 | 0x80800, 6 }, ALLOWED, "INET STREAM with flags, TCP" },
	{ 0, SOCKET, { 2, 2, 17 }, ALLOWED, "INET DGRAM UDP" },
	{ 0, SOCKET, { 2, 2, 1 }, ALLOWED, "ping" },
	{ 0, SOCKET, { 10, 2, 58 }, ALLOWED, "ping for IPv6" },
	{ 0, SOCKET, { 2, 3, 255 }, ALLOWED, "RAW is left to the missing capability" },
	{ 0, SOCKET, { HIGH | 2, HIGH | 1, HIGH }, ALLOWED, "high bits of an int do not count" },
	{ 0, SOCKET, { 2, 5, 0 }, ERRNO(ESOCKTNOSUPPORT), "SCTP by type" },
	{ 0, SOCKET, { 2, 6, 0 }, ERRNO(ESOCKTNOSUPPORT), "DCCP by type" },
	{ 0, SOCKET, { 10, 6 | 0x800, 0 }, ERRNO(ESOCKTNOSUPPORT), "DCCP by type and flag" },
	{ 0, SOCKET, { 2, 1, 132 }, ERRNO(EPROTONOSUPPORT), "SCTP by protocol" },
	{ 0, SOCKET, { 2, 1, 262 }, ERRNO(EPROTONOSUPPORT), "MPTCP" },
	{ 0, SOCKET, { 2, 1, 256 }, ERRNO(EPROTONOSUPPORT), "SMC" },
	{ 0, SOCKET, { 2, 2, 115 }, ERRNO(EPROTONOSUPPORT), "L2TP" },
	{ 0, SOCKET, { 10, 2, HIGH | 136 }, ERRNO(EPROTONOSUPPORT), "UDPLITE with a high bit" },
	{ 0, SOCKET, { 16, 3, 0 }, ALLOWED, "NETLINK ROUTE" },
	{ 0, SOCKET, { 16, 3, HIGH }, ALLOWED, "NETLINK ROUTE with a high bit" },
	{ 0, SOCKET, { 16, 3, 6 }, ERRNO(EPROTONOSUPPORT), "NETLINK XFRM" },
	{ 0, SOCKET, { 16, 3, 9 }, ERRNO(EPROTONOSUPPORT), "NETLINK AUDIT" },
	{ 0, SOCKET, { 16, 3, 12 }, ERRNO(EPROTONOSUPPORT), "NETLINK NETFILTER" },
	{ 0, SOCKET, { 16, 3, 16 }, ERRNO(EPROTONOSUPPORT), "NETLINK GENERIC" },
	{ 0, SOCKET, { 16, 3, 21 }, ERRNO(EPROTONOSUPPORT), "NETLINK CRYPTO" },
	{ 0, SOCKET, { HIGH | 16, 3, 12 }, ERRNO(EPROTONOSUPPORT), "NETFILTER, family with a high bit" },
	{ 0, SOCKET, { 0, 1, 0 }, ERRNO(EAFNOSUPPORT), "UNSPEC" },
	{ 0, SOCKET, { 38, 5, 0 }, ERRNO(EAFNOSUPPORT), "ALG" },
	{ 0, SOCKET, { 40, 1, 0 }, ERRNO(EAFNOSUPPORT), "VSOCK" },
	{ 0, SOCKET, { HIGH | 40, 1, 0 }, ERRNO(EAFNOSUPPORT), "VSOCK with a high bit" },
	{ 0, SOCKET, { 17, 3, 0 }, ERRNO(EAFNOSUPPORT), "PACKET" },
	{ 0, SOCKET, { 0xffffffff, 1, 0 }, ERRNO(EAFNOSUPPORT), "family -1" },
	{ 1, SOCKET, { 40, 1, 0 }, ERRNO(EAFNOSUPPORT), "VSOCK in safe-shell" },
	{ 2, SOCKET, { 2, 1, 0 }, ERRNO(ENOSYS), "the front makes no socket" },
	{ 0, SOCKETPAIR, { 1, 1, 0 }, ALLOWED, "UNIX" },
	{ 0, SOCKETPAIR, { 30, 1, 0 }, ERRNO(EAFNOSUPPORT), "TIPC" },
	{ 0, SOCKETPAIR, { HIGH | 30, 1, 0 }, ERRNO(EAFNOSUPPORT), "TIPC with a high bit" },

	{ 0, IOCTL, { 0, 0x5401 }, ALLOWED, "TCGETS" },
	{ 0, IOCTL, { 0, 0x5413 }, ALLOWED, "TIOCGWINSZ" },
	{ 0, IOCTL, { 0, 0x540e }, ALLOWED, "TIOCSCTTY for script and tmux" },
	{ 0, IOCTL, { 0, 0x5412 }, ERRNO(EPERM), "TIOCSTI" },
	{ 0, IOCTL, { 0, HIGH | 0x5412 }, ERRNO(EPERM), "TIOCSTI with a high bit" },
	{ 0, IOCTL, { 0, 0xffffffff00005412 }, ERRNO(EPERM), "TIOCSTI with all high bits" },
	{ 0, IOCTL, { 0, 0x541c }, ERRNO(EPERM), "TIOCLINUX" },
	{ 0, IOCTL, { 0, HIGH | 0x541c }, ERRNO(EPERM), "TIOCLINUX with a high bit" },
	{ 1, IOCTL, { 0, 0x5412 }, ERRNO(EPERM), "TIOCSTI in safe-shell" },
	{ 2, IOCTL, { 0, 0x5401 }, ERRNO(ENOSYS), "the front needs none" },

	{ 0, PERSONALITY, { 0 }, ALLOWED, "Linux" },
	{ 0, PERSONALITY, { 8 }, ALLOWED, "linux32" },
	{ 0, PERSONALITY, { 0x20000 }, ALLOWED, "uname 2.6" },
	{ 0, PERSONALITY, { 0x20008 }, ALLOWED, "both" },
	{ 0, PERSONALITY, { 0x40000 }, ALLOWED, "gdb: no address randomisation" },
	{ 0, PERSONALITY, { 0xffffffff }, ALLOWED, "query" },
	{ 0, PERSONALITY, { UINT64_MAX }, ALLOWED, "query, sign extended" },
	{ 0, PERSONALITY, { 0x400000 }, ERRNO(EPERM), "READ_IMPLIES_EXEC" },
	{ 0, PERSONALITY, { 0x100000 }, ERRNO(EPERM), "MMAP_PAGE_ZERO" },
	{ 0, PERSONALITY, { HIGH | 0x400000 }, ERRNO(EPERM), "READ_IMPLIES_EXEC with a high bit" },

	{ 0, MMAP, { 0, 4096, 7 }, ALLOWED, "compilers write code" },
	{ 2, MMAP, { 0, 4096, 3 }, ALLOWED, "memory for the front" },
	{ 2, MMAP, { 0, 4096, 7 }, ERRNO(EACCES), "no code for the front" },
	{ 2, MMAP, { 0, 4096, HIGH | 5 }, ERRNO(EACCES), "no code, with a high bit" },
	{ 2, MPROTECT, { 0, 4096, 5 }, ERRNO(EACCES), "no memory becomes code" },
	{ 3, MMAP, { 0, 4096, 4 }, ERRNO(EACCES), "no code for a helper" },
	{ 3, MPROTECT, { 0, 4096, 1 }, ALLOWED, "less access for a helper" },

	{ 0, PTRACE, { 0 }, ALLOWED, "strace, gdb" },
	{ 1, PTRACE, { 0 }, ERRNO(EPERM), "not in safe-shell" },
};

static void test_args(int arch)
{
	for (size_t i = 0; i < ARRAY_SIZE(arg_rows); i++) {
		const struct arg_row *row = &arg_rows[i];
		uint32_t got = run(arch, row->role, audit_arch[arch], call_nr[arch][row->call], row->args);

		if (!tap_ok(got == row->want, "%s %s: %s", arch_name[arch], call_name[row->call], row->desc))
			tap_diag("verdict 0x%x, want 0x%x", got, row->want);
	}
}

/* All 2^16 small families and, for each bit above, one more. */
static void test_families(int arch)
{
	unsigned int allowed = 0;
	int nr = call_nr[arch][SOCKET];

	for (uint64_t family = 0; family < 65536; family++) {
		uint64_t args[6] = { family, 1, 0 };
		allowed += run(arch, 0, audit_arch[arch], nr, args) == SECCOMP_RET_ALLOW;
	}
	for (int bit = 16; bit < 32; bit++) {
		uint64_t args[6] = { (UINT64_C(1) << bit) | 1, 1, 0 };
		allowed += run(arch, 0, audit_arch[arch], nr, args) == SECCOMP_RET_ALLOW;
	}
	tap_int(allowed, 4, "%s: exactly four socket families", arch_name[arch]);
}

/* No call is listed twice for a role: the later row would silently decide. */
static void test_table(void)
{
	unsigned int twice = 0, bad = 0;

	for (size_t i = 0; i < seccomp_row_count; i++) {
		bad += !seccomp_rows[i].why || !*seccomp_rows[i].why || !seccomp_rows[i].roles;
		_cleanup_free_ char *names = strdup(seccomp_rows[i].names);
		for (char *rest = names, *name; (name = strsep(&rest, " ")) != NULL;) {
			for (size_t k = 0; k < i; k++) {
				const char *at = seccomp_rows[k].names;
				size_t len = strlen(name);
				while ((at = strstr(at, name)) != NULL) {
					bool whole = (at == seccomp_rows[k].names || at[-1] == ' ') &&
						     (at[len] == ' ' || at[len] == '\0');
					at += len;
					if (whole && (seccomp_rows[k].roles & seccomp_rows[i].roles)) {
						twice++;
						tap_diag("%s is listed twice", name);
					}
				}
			}
		}
	}
	tap_int(twice, 0, "no call has two rows for one role");
	tap_int(bad, 0, "every row has roles and a reason");
}

static void test_refusals(void)
{
	struct seccomp_program p = { 0 };
	struct err e = { .code = ERR_NONE };

	tap_ok(seccomp_compile(SECCOMP_SANDBOX, "riscv64", &p, &e) != 0 && e.code == ERR_HOST,
	       "an architecture without a filter is an error, not an open door");
	tap_ok(p.prog.filter == NULL, "and leaves the result alone");
}

int main(int argc, char **argv)
{
	struct err e = { .code = ERR_NONE };

	for (int arch = 0; arch < ARCHS; arch++) {
		for (int role = 0; role < ROLES; role++) {
			if (seccomp_compile((enum seccomp_role)role, arch_name[arch],
					    &program[arch][role], &e) != 0)
				tap_bail("%s %s: %s", arch_name[arch], role_name[role], e.message);
		}
	}
	if (argc == 3 && strcmp(argv[1], "golden") == 0)
		return print_golden(argv[2]);
	test_table();
	test_refusals();
	for (int arch = 0; arch < ARCHS; arch++) {
		test_golden(arch);
		test_entries(arch);
		test_shape(arch);
		test_args(arch);
		test_families(arch);
	}
	for (int arch = 0; arch < ARCHS; arch++) {
		for (int role = 0; role < ROLES; role++)
			seccomp_program_done(&program[arch][role]);
	}
	return tap_done();
}
