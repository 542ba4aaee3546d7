/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/seccomp_table.c - the system call policy
 *
 * Pure data, read by runtime/seccomp.c in the keeper before any sandbox exists. To review it, read
 * the refused rows at the end first: they say what the allowed ones above must not contain.
 *
 * SANDBOX must run compilers, interpreters, package managers, databases, strace and gdb. SAFE_SHELL
 * is the same without looking into other processes. FRONT holds descriptors and moves bytes; PROXY
 * also makes connections. HELPER works on the tree below one directory descriptor.
 */
#include "runtime/seccomp_table.h"

#include <errno.h>

#include "runtime/base/cleanup.h"

#define INSIDE (ROLE_SANDBOX | ROLE_SAFE_SHELL)
#define OURS (ROLE_FRONT | ROLE_HELPER | ROLE_PROXY)
#define LOOPS (ROLE_FRONT | ROLE_PROXY)
#define ALL (INSIDE | OURS)

const struct seccomp_row seccomp_rows[] = {
	/* Bytes, memory, time, the end: nobody can do without. */
	{ VERDICT_ALLOW, ALL, "read write readv writev pread64 pwrite64 lseek close fstat",
	  "bytes and properties of descriptors already held" },
	{ VERDICT_ALLOW, ALL, "brk mmap munmap mprotect mremap madvise", "memory; never shared by name" },
	{ VERDICT_ALLOW, ALL, "exit exit_group rt_sigreturn restart_syscall", "ending and returning" },
	{ VERDICT_ALLOW, ALL, "rt_sigaction rt_sigprocmask sigaltstack", "own signal handling" },
	{ VERDICT_ALLOW, ALL, "clock_gettime clock_getres clock_nanosleep gettimeofday nanosleep time",
	  "reading the clock, where the vDSO does not" },
	{ VERDICT_ALLOW, ALL, "getpid gettid getuid geteuid getgid getegid getrandom futex",
	  "own identity, randomness, waiting; also what malloc and stdio may use" },
	{ VERDICT_ALLOW, ALL, "fcntl", "flags and duplicates of descriptors held" },

	/* The front and the proxy: an event loop over descriptors the keeper gave them. */
	{ VERDICT_ALLOW, INSIDE | LOOPS,
	  "epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 poll ppoll",
	  "waiting for descriptors" },
	{ VERDICT_ALLOW, INSIDE | LOOPS,
	  "timerfd_create timerfd_settime timerfd_gettime signalfd signalfd4",
	  "timers and signals as descriptors" },
	{ VERDICT_ALLOW, ALL, "sendmsg", "to the keeper; a helper hands a file back" },
	{ VERDICT_ALLOW, INSIDE | LOOPS, "recvmsg", "from the keeper, with the files it passes" },
	{ VERDICT_ALLOW, ROLE_FRONT, "accept4 shutdown",
	  "HTTP: connections to a listening socket, which only the keeper can give it" },

	/* The proxy: connections of sandboxes, and its own. */
	{ VERDICT_ALLOW, ROLE_PROXY,
	  "socket connect accept4 shutdown getsockopt setsockopt sendto recvfrom splice pipe2",
	  "TCP and UDP only, see the checks; no bind, no listen: its listeners come from the keeper" },

	/* Tree workers: everything is named below a descriptor, nothing is executed or connected. */
	{ VERDICT_ALLOW, INSIDE | ROLE_HELPER, "openat openat2 getdents64 newfstatat statx fstatfs",
	  "walking and looking; openat2 refuses links and escapes" },
	{ VERDICT_ALLOW, INSIDE | ROLE_HELPER, "unlinkat renameat renameat2 fchmod fchmodat",
	  "removing, and making removable" },
	{ VERDICT_ALLOW, INSIDE | ROLE_HELPER | ROLE_FRONT, "sendfile", "handing a copy out; the front: a file over HTTP" },
	{ VERDICT_ALLOW, INSIDE | ROLE_HELPER, "fsync", "a copy that is kept" },

	/* Inside: files. */
	{ VERDICT_ALLOW, INSIDE,
	  "linkat symlinkat mkdirat mknodat fchown fchownat readlinkat faccessat2 utimensat ftruncate "
	  "fallocate fdatasync copy_file_range",
	  "files below a descriptor" },
	{ VERDICT_ALLOW, INSIDE, "open creat stat lstat access faccessat readlink getdents",
	  "files by path, the older forms" },
	{ VERDICT_ALLOW, INSIDE,
	  "rename mkdir rmdir link unlink symlink chmod chown lchown mknod utime utimes futimesat",
	  "changing files; a device node needs a capability nobody has inside" },
	{ VERDICT_ALLOW, INSIDE,
	  "getxattr lgetxattr fgetxattr setxattr lsetxattr fsetxattr listxattr llistxattr flistxattr "
	  "removexattr lremovexattr fremovexattr",
	  "extended attributes: tar, cp -a, file capabilities of packages" },
	{ VERDICT_ALLOW, INSIDE, "truncate statfs umask getcwd chdir fchdir flock", "files, continued" },
	{ VERDICT_ALLOW, INSIDE,
	  "dup dup2 dup3 pipe pipe2 close_range select pselect6 preadv pwritev preadv2 pwritev2",
	  "descriptors" },
	{ VERDICT_ALLOW, INSIDE, "eventfd eventfd2", "waking an event loop" },
	{ VERDICT_ALLOW, INSIDE, "readahead fadvise64 sync sync_file_range syncfs splice tee vmsplice",
	  "moving data and writing it out" },
	{ VERDICT_ALLOW, INSIDE, "inotify_init inotify_init1 inotify_add_watch inotify_rm_watch",
	  "file watchers of build tools; counted per sandbox" },
	{ VERDICT_ALLOW, INSIDE,
	  "io_setup io_destroy io_getevents io_pgetevents io_submit io_cancel",
	  "asynchronous file access of databases, bounded by fs.aio-max-nr" },
	{ VERDICT_ALLOW, INSIDE, "ioctl", "terminals, sockets, files; see the checks" },

	/* Inside: memory. */
	{ VERDICT_ALLOW, INSIDE, "msync mincore mlock mlock2 munlock mlockall munlockall membarrier",
	  "memory, bounded by the memory lock limit" },
	{ VERDICT_ALLOW, INSIDE, "memfd_create pkey_mprotect pkey_alloc pkey_free",
	  "memory files and protection keys of language runtimes" },
	{ VERDICT_ALLOW, INSIDE,
	  "shmget shmat shmctl shmdt semget semop semtimedop semctl msgget msgsnd msgrcv msgctl",
	  "System V IPC, of the sandbox's own namespace" },
	{ VERDICT_ALLOW, INSIDE,
	  "mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr",
	  "POSIX message queues, the same" },

	/* Inside: processes. */
	{ VERDICT_ALLOW, INSIDE, "fork vfork clone execve execveat wait4 waitid",
	  "processes; clone without namespaces, see the checks" },
	{ VERDICT_ALLOW, INSIDE,
	  "kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_open pidfd_send_signal "
	  "process_mrelease",
	  "signals, which reach no further than the pid namespace" },
	{ VERDICT_ALLOW, INSIDE, "rt_sigpending rt_sigtimedwait rt_sigsuspend pause", "signal handling" },
	{ VERDICT_ALLOW, INSIDE,
	  "getppid getpgrp getpgid setpgid getsid setsid getgroups getresuid getresgid getcpu",
	  "process relations" },
	{ VERDICT_ALLOW, INSIDE,
	  "setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups capget capset",
	  "apt drops to _apt, daemons to their users; only mapped ids exist" },
	{ VERDICT_ALLOW, INSIDE,
	  "getrlimit setrlimit prlimit64 getrusage times getpriority setpriority ioprio_get ioprio_set",
	  "limits can only be lowered, priority likewise" },
	{ VERDICT_ALLOW, INSIDE,
	  "sched_yield sched_getaffinity sched_setaffinity sched_getparam sched_setparam "
	  "sched_getscheduler sched_setscheduler sched_getattr sched_setattr sched_get_priority_max "
	  "sched_get_priority_min sched_rr_get_interval",
	  "scheduling; real-time classes are refused by limit" },
	{ VERDICT_ALLOW, INSIDE, "set_tid_address set_robust_list get_robust_list rseq futex_waitv",
	  "threads" },
	{ VERDICT_ALLOW, INSIDE, "prctl arch_prctl personality uname sysinfo",
	  "process attributes and system information; personality see the checks" },
	{ VERDICT_ALLOW, INSIDE, "seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self",
	  "programs that sandbox themselves further; both can only take away" },

	/* Inside: time. */
	{ VERDICT_ALLOW, INSIDE,
	  "alarm getitimer setitimer timer_create timer_settime timer_gettime timer_getoverrun "
	  "timer_delete",
	  "timers, bounded by the pending signal limit" },

	/* Inside: network. */
	{ VERDICT_ALLOW, INSIDE, "socket socketpair", "families and protocols see the checks" },
	{ VERDICT_ALLOW, INSIDE,
	  "connect bind listen accept accept4 shutdown getsockname getpeername getsockopt setsockopt "
	  "sendto recvfrom sendmmsg recvmmsg",
	  "sockets, in the sandbox's own network namespace; never refused for lack of network, or local "
	  "sockets break" },

	/* Looking into other processes of the same sandbox. pid 1 and a command that is being
	 * started are not dumpable, and nobody has CAP_SYS_PTRACE. */
	{ VERDICT_ALLOW, ROLE_SANDBOX, "ptrace process_vm_readv process_vm_writev",
	  "strace and gdb; only processes of the same sandbox are visible" },
	{ VERDICT_EPERM, ROLE_SAFE_SHELL, "ptrace process_vm_readv process_vm_writev",
	  "nothing to debug in one-shot commands" },

	/* Refused, for everybody inside. */
	{ VERDICT_EPERM, INSIDE, "mount umount2 pivot_root chroot",
	  "the mount tree is the sandbox; CVE-2022-0492, CVE-2021-3493" },
	{ VERDICT_EPERM, INSIDE, "fsopen fsconfig fsmount fspick open_tree move_mount mount_setattr",
	  "the same by the newer interface; CVE-2021-41133, CVE-2022-0185" },
	{ VERDICT_EPERM, INSIDE, "unshare setns",
	  "a new user namespace gives the capabilities most kernel exploits start with" },
	{ VERDICT_ENOSYS, INSIDE, "clone3",
	  "its flags are in memory, out of a filter's sight; C libraries fall back to clone on ENOSYS only" },
	{ VERDICT_ENOSYS, INSIDE, "io_uring_setup io_uring_enter io_uring_register",
	  "does what other calls do without passing this filter; CVE-2022-29582, CVE-2023-2598" },
	{ VERDICT_EPERM, INSIDE, "bpf perf_event_open userfaultfd",
	  "kernel attack surface; CVE-2021-3490, CVE-2022-23222; userfaultfd also widens races" },
	{ VERDICT_EPERM, INSIDE, "open_by_handle_at name_to_handle_at",
	  "files by handle ignore the mount tree: the shocker attack" },
	{ VERDICT_EPERM, INSIDE, "pidfd_getfd kcmp process_madvise",
	  "taking descriptors from, comparing and advising other processes; CVE-2026-46333" },
	{ VERDICT_ENOSYS, INSIDE, "add_key request_key keyctl",
	  "keyrings are not namespaced; CVE-2016-0728. Programs take it for a kernel without keys" },
	{ VERDICT_EPERM, INSIDE,
	  "init_module finit_module delete_module kexec_load kexec_file_load reboot",
	  "the host's kernel" },
	{ VERDICT_EPERM, INSIDE, "iopl ioperm", "the host's hardware" },
	{ VERDICT_ENOSYS, INSIDE, "modify_ldt",
	  "16-bit segments for emulators; CVE-2015-5157. Optional in the kernel, so ENOSYS is known" },
	{ VERDICT_EPERM, INSIDE, "swapon swapoff acct quotactl quotactl_fd syslog vhangup",
	  "the host's administration" },
	{ VERDICT_EPERM, INSIDE, "sethostname setdomainname", "the host name is the sandbox's key" },
	{ VERDICT_EPERM, INSIDE, "settimeofday clock_settime adjtimex clock_adjtime", "the host's clock" },
	{ VERDICT_EPERM, INSIDE, "fanotify_init fanotify_mark", "watches whole file systems" },
	{ VERDICT_EPERM, INSIDE, "lookup_dcookie memfd_secret",
	  "profiler cookies; memory the host cannot inspect or hibernate" },
	{ VERDICT_ENOSYS, INSIDE,
	  "mbind set_mempolicy get_mempolicy set_mempolicy_home_node migrate_pages move_pages",
	  "placement on NUMA nodes; programs take it for a kernel without NUMA and do not complain" },
	{ VERDICT_ENOSYS, INSIDE,
	  "uselib ustat sysfs _sysctl nfsservctl remap_file_pages create_module get_kernel_syms "
	  "query_module",
	  "relics" },
};
const size_t seccomp_row_count = ARRAY_SIZE(seccomp_rows);

enum { FAMILY_UNIX = 1, FAMILY_INET = 2, FAMILY_INET6 = 10, FAMILY_NETLINK = 16 };
enum { EVERY_BIT = 0xffffffff, SOCKET_TYPE_MASK = 0xf };

/* clone's namespace flags: NEWNS NEWCGROUP NEWUTS NEWIPC NEWUSER NEWPID NEWNET. NEWTIME has no bit
 * there: its place is the exit signal's. */
enum { CLONE_NAMESPACES = 0x7e020000 };

const struct seccomp_check seccomp_checks[] = {
	{ "clone", INSIDE, CHECK_NO_BITS, 0, EPERM, CLONE_NAMESPACES, {}, 0, {},
	  "no namespace inside a sandbox" },

	{ "socket", INSIDE, CHECK_ONE_OF, 0, EAFNOSUPPORT, EVERY_BIT,
	  { 4, { FAMILY_UNIX, FAMILY_INET, FAMILY_INET6, FAMILY_NETLINK } }, 0, {},
	  "ALG (CVE-2026-31431), VSOCK (reaches the hypervisor), PACKET, KEY, RXRPC, TIPC, RDS, CAN, "
	  "BLUETOOTH and the rest are kernel attack surface, and some ignore the network namespace" },
	{ "socket", INSIDE, CHECK_ONE_OF, 2, EPROTONOSUPPORT, EVERY_BIT, { 1, { 0 } }, 0,
	  { 1, { FAMILY_NETLINK } },
	  "ROUTE only (ip, getifaddrs); not XFRM, NETFILTER, AUDIT, CRYPTO, GENERIC" },
	{ "socket", INSIDE, CHECK_ONE_OF, 1, ESOCKTNOSUPPORT, SOCKET_TYPE_MASK, { 3, { 1, 2, 3 } }, 0,
	  { 2, { FAMILY_INET, FAMILY_INET6 } },
	  "STREAM, DGRAM, RAW (refused by capability); SEQPACKET is SCTP, 6 is DCCP (CVE-2017-6074)" },
	{ "socket", INSIDE, CHECK_ONE_OF, 2, EPROTONOSUPPORT, EVERY_BIT, { 6, { 0, 1, 6, 17, 58, 255 } },
	  0, { 2, { FAMILY_INET, FAMILY_INET6 } },
	  "IP, ICMP, TCP, UDP, ICMPv6, RAW; the others load modules: SCTP, DCCP, L2TP, MPTCP, SMC" },
	{ "socket", ROLE_PROXY, CHECK_ONE_OF, 0, EAFNOSUPPORT, EVERY_BIT,
	  { 2, { FAMILY_INET, FAMILY_INET6 } }, 0, {}, "no UNIX: sockets of the host's services" },
	{ "socket", ROLE_PROXY, CHECK_ONE_OF, 1, ESOCKTNOSUPPORT, SOCKET_TYPE_MASK, { 2, { 1, 2 } }, 0, {},
	  "STREAM and DGRAM" },
	{ "socketpair", INSIDE, CHECK_ONE_OF, 0, EAFNOSUPPORT, EVERY_BIT, { 1, { FAMILY_UNIX } }, 0, {},
	  "the kernel makes both sockets before it says that a family has no pairs; TIPC has" },

	{ "ioctl", INSIDE, CHECK_NONE_OF, 1, EPERM, EVERY_BIT, { 2, { 0x5412, 0x541c } }, 0, {},
	  "TIOCSTI and TIOCLINUX type into the terminal of whoever started us; CVE-2017-5226, "
	  "CVE-2023-28100" },

	{ "personality", INSIDE, CHECK_ONE_OF, 0, EPERM, EVERY_BIT,
	  { 7, { 0, 8, 0x20000, 0x20008, 0x40000, 0x40008, 0xffffffff } }, 0, {},
	  "Linux, 32 bit, UNAME26, gdb's fixed addresses, query; others switch protections off" },

	{ "mmap", OURS, CHECK_NO_BITS, 2, EACCES, 0x4, {}, 0, {}, "PROT_EXEC: no new code" },
	{ "mprotect", OURS, CHECK_NO_BITS, 2, EACCES, 0x4, {}, 0, {}, "the same" },
};
const size_t seccomp_check_count = ARRAY_SIZE(seccomp_checks);
