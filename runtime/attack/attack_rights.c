/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/attack/attack_rights.c - attempts of the attacking program: rights, namespaces, keys, processes, calls
 *
 * Runs inside, as any command does (attack.c). Harmless where an attempt succeeds.
 */
#include <linux/capability.h>
#include <linux/prctl.h>
#include <linux/sched.h>

#include "runtime/attack/attempt.h"

#define CAPABILITIES_ALLOWED 0x800000fbULL

enum { STRAY_MAX = 1024 };

/* ---- rights ---- */

static long get_capabilities(struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return RAW(__NR_capget, &head, data);
}

long extra_capabilities(const struct host *h, const char *arg)
{
	struct __user_cap_data_struct d[2];
	long r = get_capabilities(d);
	uint64_t all = (uint64_t)(d[1].effective | d[1].permitted | d[1].inheritable) << 32 |
		       (d[0].effective | d[0].permitted | d[0].inheritable);

	(void)h;
	(void)arg;
	for (int c = 0; c < 64; c++) {
		if (RAW(__NR_prctl, PR_CAPBSET_READ, c) == 1)
			all |= 1ULL << c;
	}
	return r < 0 ? r : all & ~CAPABILITIES_ALLOWED ? 0 : RESULT_NOTHING;
}

long raise_capabilities(const struct host *h, const char *arg)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = { { ~0U, ~0U, 0 }, { 0x1ff, 0x1ff, 0 } };

	(void)h;
	(void)arg;
	return RAW(__NR_capset, &head, d);
}

static const unsigned long core_limit[2] = { 1 << 20, 1 << 20 };
static const int priority = 1;

ATTEMPT(without_nnp, RAW(__NR_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? RESULT_NOTHING : 0)
ATTEMPT(without_filter, RAW(__NR_prctl, PR_GET_SECCOMP) == 0 ? 0 : RESULT_NOTHING)
ATTEMPT(try_sethostname, RAW(__NR_sethostname, "x", -1)) /* the length is looked at after the right */
ATTEMPT(raise_core, RAW(__NR_prlimit64, 0, 4 /* RLIMIT_CORE */, core_limit, NULL))
ATTEMPT(try_real_time, RAW(__NR_sched_setscheduler, 0, 1 /* SCHED_FIFO */, &priority))

/* ---- namespaces ---- */

static const struct {
	const char *name;
	unsigned long flag;
} kinds[] = { { "user", CLONE_NEWUSER }, { "mnt", CLONE_NEWNS },   { "pid", CLONE_NEWPID },	 { "net", CLONE_NEWNET },
	      { "ipc", CLONE_NEWIPC },	 { "uts", CLONE_NEWUTS }, { "cgroup", CLONE_NEWCGROUP }, { "time", CLONE_NEWTIME } };

long unshare_kind(const struct host *h, const char *name)
{
	(void)h;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (begins(kinds[i].name, name))
			return RAW(__NR_unshare, kinds[i].flag);
	}
	return -EINVAL;
}

long clone_user(const struct host *h, const char *arg)
{
	long pid = RAW(__NR_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

	(void)h;
	(void)arg;
	if (pid == 0)
		RAW(__NR_exit_group, 0);
	return pid;
}

static void nothing_more(void *arg)
{
	(void)arg;
	RAW(__NR_exit_group, 0);
}

long clone3_user(const struct host *h, const char *arg)
{
	static char stack[4096] __attribute__((aligned(16)));
	struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD, .stack = (uintptr_t)stack,
				   .stack_size = sizeof(stack) };

	(void)h;
	(void)arg;
	return raw_clone3(&args, sizeof(args), nothing_more, NULL);
}

long join_init(const struct host *h, const char *arg)
{
	long r = -ENOENT;

	(void)h;
	(void)arg;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char path[64];
		long fd;

		put(put(path, "/proc/1/ns/"), kinds[i].name);
		fd = open_path(path, O_RDONLY);
		r = fd < 0 ? fd : RAW(__NR_setns, fd, 0);
		if (r >= 0)
			return 0;
	}
	return r;
}

/* ---- keys ---- */

enum { KEYRING_PROCESS = -2, KEYRING_SESSION = -3 };

ATTEMPT(try_add_key, RAW(__NR_add_key, "user", "attack", "x", 1, KEYRING_PROCESS))
ATTEMPT(try_request_key, RAW(__NR_request_key, "user", "attack", NULL, 0))
ATTEMPT(try_keyctl, RAW(__NR_keyctl, 0 /* KEYCTL_GET_KEYRING_ID */, KEYRING_SESSION, 0))

/* ---- processes ---- */

enum { TRACE_SEIZE = 0x4206 };

long see_host(const struct host *h, const char *arg)
{
	char path[64];

	(void)arg;
	put(put_number(put(path, "/proc/"), h->pid), "/status");
	return read_from(h, path);
}

long take_init_fd(const struct host *h, const char *arg)
{
	long pidfd = RAW(__NR_pidfd_open, 1, 0);

	(void)h;
	(void)arg;
	return pidfd < 0 ? pidfd : RAW(__NR_pidfd_getfd, pidfd, 0, 0);
}

long stray_descriptors(const struct host *h, const char *arg)
{
	(void)h;
	(void)arg;
	for (long fd = 3; fd < STRAY_MAX; fd++) {
		if (RAW(__NR_fcntl, fd, F_GETFD) >= 0)
			return 0;
	}
	return RESULT_NOTHING;
}

long find_secret(const struct host *h, const char *arg)
{
	char text[BLOCK_SIZE];
	long n = read_text("/proc/1/environ", text);

	(void)arg;
	for (const char *const *e = h->environment; *e; e++) {
		if (begins(*e, ATTACK_SECRET))
			return 0;
	}
	for (long i = 0; i < n; i++) {
		if (begins(text + i, ATTACK_SECRET))
			return 0;
	}
	return RESULT_NOTHING;
}

long signal_host(const struct host *h, const char *arg)
{
	(void)arg;
	return RAW(__NR_kill, h->pid, 0);
}

long pidfd_host(const struct host *h, const char *arg)
{
	(void)arg;
	return RAW(__NR_pidfd_open, h->pid, 0);
}

ATTEMPT(trace_init, RAW(__NR_ptrace, TRACE_SEIZE, 1, 0, 0))

/* ---- entry points and calls ---- */

#if defined(__x86_64__)
long enter_x32(const struct host *h, const char *arg)
{
	long ret;

	(void)h;
	(void)arg;
	__asm__ volatile("syscall" : "=a"(ret) : "a"(0x40000000L | __NR_getpid) : "rcx", "r11", "memory");
	return ret;
}

long enter_ia32(const struct host *h, const char *arg)
{
	long ret;

	(void)h;
	(void)arg;
	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
	return (int)ret;
}

ATTEMPT(try_iopl, RAW(__NR_iopl, 3))
#else
ATTEMPT(enter_x32, RESULT_NO_DOOR)
ATTEMPT(enter_ia32, RESULT_NO_DOOR)
ATTEMPT(try_iopl, RESULT_NO_DOOR)
#endif

static struct {
	unsigned int bytes;
	int type;
	char handle[8];
} no_handle = { 8, 1, "" };

ATTEMPT(try_bpf, RAW(__NR_bpf, 0 /* BPF_MAP_CREATE */, attack_zeros, 64))
ATTEMPT(try_perf, RAW(__NR_perf_event_open, attack_zeros, 0, -1, -1, 0))
ATTEMPT(try_io_uring, RAW(__NR_io_uring_setup, 1, attack_zeros))
ATTEMPT(try_userfaultfd, RAW(__NR_userfaultfd, 0))
ATTEMPT(try_init_module, RAW(__NR_init_module, attack_zeros, 0, ""))
ATTEMPT(try_delete_module, RAW(__NR_delete_module, "no_such_module", O_NONBLOCK))
ATTEMPT(try_kexec, RAW(__NR_kexec_load, 0, 1000 /* more segments than there can be */, attack_zeros, 0))
ATTEMPT(try_reboot, RAW(__NR_reboot, 0, 0, 0, NULL)) /* without the magic numbers */
ATTEMPT(try_swapon, RAW(__NR_swapon, "/no/such/file", 0))
ATTEMPT(try_acct, RAW(__NR_acct, "/no/such/file"))
ATTEMPT(try_settime, RAW(__NR_settimeofday, NULL, NULL))
ATTEMPT(open_handle, RAW(__NR_open_by_handle_at, AT_FDCWD, &no_handle, O_RDONLY))

long see_shm(const struct host *h, const char *arg)
{
	(void)arg;
	return RAW(__NR_shmctl, h->shm, 2 /* IPC_STAT */, attack_zeros);
}
