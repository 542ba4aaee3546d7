/* SPDX-License-Identifier: Apache-2.0 */
/* tests/escape/payload/syscalls.c - calls that must not reach the kernel; prints "<name> <error>" or "<name> ok"
 *
 * Arguments are chosen so that a kernel that does see the call refuses it without doing anything: what
 * comes back then is neither EPERM nor ENOSYS.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BAD 1UL /* an address that faults */
#define NEG (~0UL)
#define ROW(name, ...) { #name, SYS_##name, { __VA_ARGS__ } }

static const struct {
	const char *name;
	long nr;
	unsigned long arg[6];
} rows[] = {
	ROW(userfaultfd, NEG), ROW(bpf, NEG, BAD, 8), ROW(perf_event_open, BAD, 0, NEG, NEG, 0),
	ROW(io_uring_setup, 1, BAD), ROW(io_uring_enter, NEG), ROW(io_uring_register, NEG),
	ROW(kexec_load, 0, 1, BAD, NEG), ROW(init_module, BAD, 1, BAD),
	ROW(finit_module, NEG, BAD, NEG), ROW(delete_module, BAD, 0),
	ROW(quotactl, NEG, BAD, 0, BAD), ROW(swapon, BAD, 0), ROW(swapoff, BAD), ROW(acct, BAD),
	ROW(mount, BAD, BAD, BAD, 0, BAD), ROW(umount2, BAD, NEG), ROW(pivot_root, BAD, BAD),
	ROW(chroot, BAD), ROW(setns, NEG, 0), ROW(fsopen, BAD, NEG), ROW(fsconfig, NEG, NEG),
	ROW(fsmount, NEG, NEG), ROW(fspick, NEG, BAD, NEG), ROW(move_mount, NEG, BAD, NEG, BAD, NEG),
	ROW(open_tree, NEG, BAD, NEG), ROW(mount_setattr, NEG, BAD, NEG, BAD, 0),
	ROW(name_to_handle_at, NEG, BAD, BAD, BAD, NEG), ROW(open_by_handle_at, NEG, BAD, 0),
	ROW(fanotify_init, NEG, NEG), ROW(fanotify_mark, NEG, NEG, NEG, NEG, BAD),
	ROW(syslog, 99, BAD, 0), ROW(kcmp, NEG, NEG, 0, 0, 0), ROW(pidfd_getfd, NEG, 0, 0),
	ROW(process_madvise, NEG, BAD, 1, 0, 0), ROW(memfd_secret, NEG),
	ROW(clock_settime, NEG, BAD), ROW(settimeofday, BAD, BAD), ROW(adjtimex, BAD),
	ROW(clock_adjtime, NEG, BAD), ROW(sethostname, BAD, NEG), ROW(setdomainname, BAD, NEG),
	ROW(reboot, 0, 0, 0, 0), ROW(keyctl, 9999), ROW(add_key, BAD, BAD, BAD, 1, 0),
	ROW(request_key, BAD, BAD, BAD, 0), ROW(move_pages, NEG, 1, BAD, BAD, BAD, NEG),
	ROW(migrate_pages, NEG, NEG, BAD, BAD), ROW(mbind, BAD, 1, NEG, BAD, 1, NEG),
	ROW(nfsservctl, 99, BAD, BAD), ROW(lookup_dcookie, 0, BAD, 1),
	ROW(seccomp, NEG, NEG, BAD), /* allowed: programs stack filters of their own */
#ifdef SYS_iopl
	ROW(iopl, 99), ROW(ioperm, NEG, 1, 1),
#endif
};

int main(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const unsigned long *a = rows[i].arg;
		long r;

		errno = 0;
		r = syscall(rows[i].nr, a[0], a[1], a[2], a[3], a[4], a[5]);
		printf("%s %s\n", rows[i].name, r >= 0 ? "ok" : strerrorname_np(errno));
	}
	/* numbers no kernel has given out when the table was written */
	for (long nr = 480; nr < 1100; nr++)
		if (syscall(nr, NEG, NEG, NEG, NEG, NEG, NEG) >= 0 || errno != ENOSYS)
			printf("unknown-%ld %s\n", nr, strerrorname_np(errno));
	return 0;
}
