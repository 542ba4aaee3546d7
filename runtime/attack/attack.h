/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/attack/attack.h - what "attack" tries inside a sandbox, and which refusals count: one row each
 *
 * Read twice: by the program that runs inside (attack.c: what to do) and by the command line that judges what
 * it reports (mcp/cli_attack.c: what it means). A row holds when its result is one of the words given here
 * and nothing else: an attempt that was refused for a reason of its own (a bad argument) proves nothing.
 */
#pragma once

/* Results beside 0 and the kernel's errors, as exit statuses of the attempt's process. */
enum { ATTACK_NOTHING = 200, ATTACK_NO_DOOR = 201, ATTACK_SIGNAL = 1000 };

/* What the program is told about the host, in this order; "-": nothing to try. */
enum {
	ATTACK_ARG_PID = 1,  /* a process of the host */
	ATTACK_ARG_SOCKET,   /* name of an abstract Unix socket that listens there */
	ATTACK_ARG_PORT,     /* of a TCP server on the host's loopback addresses */
	ATTACK_ARG_PATH,     /* a file of the host, absolute */
	ATTACK_ARG_SHM,      /* id of a System V shared memory segment */
	ATTACK_ARG_ADDRESS,  /* an IPv4 address of the host */
	ATTACK_ARGS,
};

#define ATTACK_SECRET "ATTACK_CANARY" /* a variable in the environment of whoever started the keeper */

/* The words: names of errors, "nothing" (it opens and shows nothing), "no-door" (this host has no such entry),
 * names of signals. */
#define NO_WRITE "EACCES EPERM EROFS ENOENT"
#define NO_READ "nothing EACCES EPERM ENOENT ENXIO ENOTDIR"
#define NO_CALL "EPERM ENOSYS"
#define NO_SPACE "EPERM ENOSYS ENOSPC"
#define NO_FAMILY "EPERM EAFNOSUPPORT"
#define NO_ROUTE "ENETUNREACH EHOSTUNREACH ECONNREFUSED EADDRNOTAVAIL EACCES EPERM EAFNOSUPPORT"
#define NO_PROCESS "ESRCH ENOENT"


/* X(id, function of attack.c, its argument, what is tried, what counts as held) */
#define ATTACK_ROWS(X) \
	/* what /proc and /sys let one write */ \
	X("write-core-pattern", write_to, "/proc/sys/kernel/core_pattern", "have cores handed to a program", NO_WRITE) \
	X("write-modprobe", write_to, "/proc/sys/kernel/modprobe", "name the program that loads modules", NO_WRITE) \
	X("write-sysrq", write_to, "/proc/sysrq-trigger", "press a system request key", NO_WRITE) \
	X("write-ip-forward", write_to, "/proc/sys/net/ipv4/ip_forward", "forward packets", NO_WRITE) \
	X("write-max-namespaces", write_to, "/proc/sys/user/max_user_namespaces", "raise the count of namespaces", NO_WRITE) \
	X("write-hostname", write_to, "/proc/sys/kernel/hostname", "change the host's name", NO_WRITE) \
	X("write-overcommit", write_to, "/proc/sys/vm/overcommit_memory", "change how memory is promised", NO_WRITE) \
	X("write-affinity", write_to, "/proc/irq/default_smp_affinity", "direct interrupts", NO_WRITE) \
	X("write-uevent", write_to, "/sys/kernel/uevent_helper", "name the program for device events", NO_WRITE) \
	X("write-release-agent", write_to, "/sys/fs/cgroup/release_agent", "name the program for empty cgroups", NO_WRITE) \
	/* what they let one read */ \
	X("read-kcore", read_from, "/proc/kcore", "read the kernel's memory", NO_READ) \
	X("read-kallsyms", read_from, "/proc/kallsyms", "read addresses of the kernel", NO_READ) \
	X("read-kmsg", read_from, "/proc/kmsg", "read the kernel's log", NO_READ) \
	X("read-keys", read_from, "/proc/keys", "list keys", NO_READ) \
	X("read-timers", read_from, "/proc/timer_list", "list timers of all processes", NO_READ) \
	X("read-interrupts", read_from, "/proc/interrupts", "watch interrupts", NO_READ) \
	X("read-iomem", read_from, "/proc/iomem", "read the memory map", NO_READ) \
	X("read-slabs", read_from, "/proc/slabinfo", "watch the kernel's memory", NO_READ) \
	X("read-modules", read_from, "/proc/modules", "list modules", NO_READ) \
	X("read-firmware", read_from, "/sys/firmware", "read firmware tables", NO_READ) \
	X("read-debug", read_from, "/sys/kernel/debug", "look into debugfs", NO_READ) \
	X("read-security", read_from, "/sys/kernel/security", "look into securityfs", NO_READ) \
	X("read-cgroups", read_from, "/sys/fs/cgroup", "see cgroup files", NO_READ) \
	X("read-syslog", read_syslog, "", "ask for the kernel's log", NO_CALL) \
	/* mounts */ \
	X("mount-proc", mount_type, "proc", "mount a fresh /proc", NO_CALL) \
	X("mount-sysfs", mount_type, "sysfs", "mount a fresh /sys", NO_CALL) \
	X("mount-cgroup", mount_type, "cgroup2", "mount the cgroup tree", NO_CALL) \
	X("mount-tmpfs", mount_type, "tmpfs", "mount anything", NO_CALL) \
	X("mount-overlay", mount_type, "overlay", "mount an overlay", NO_CALL) \
	X("mount-bind", mount_bind, "", "bind a directory", NO_CALL) \
	X("mount-remount", mount_remount, "", "make /proc/sys writable", NO_CALL) \
	X("umount-proc", umount_mask, "", "take what lies over /proc away", NO_CALL) \
	X("fsopen", try_fsopen, "", "open a file system", NO_CALL) \
	X("open-tree", try_open_tree, "", "clone a mount", NO_CALL) \
	X("move-mount", try_move_mount, "", "move a mount", NO_CALL) \
	X("mount-setattr", try_mount_setattr, "", "change flags of a mount", NO_CALL) \
	X("pivot-root", try_pivot_root, "", "exchange the root", NO_CALL) \
	X("chroot", try_chroot, "", "change the root", NO_CALL) \
	X("nosuid-root", without_nosuid, "/", "run a set-user-id program from /", "nothing") \
	X("nosuid-workspace", without_nosuid, "/workspace", "the same from /workspace", "nothing") \
	X("nosuid-tmp", without_nosuid, "/tmp", "the same from /tmp", "nothing") \
	X("nodev-root", without_nodev, "/", "use a device node in /", "nothing") \
	X("nodev-workspace", without_nodev, "/workspace", "the same in /workspace", "nothing") \
	/* devices */ \
	X("mknod-disk", make_block, "", "make a node of a disk", NO_CALL) \
	X("mknod-mem", make_char, "", "make a node of the memory", NO_CALL) \
	X("open-mem", read_from, "/dev/mem", "open the memory", NO_READ) \
	X("open-kmsg", read_from, "/dev/kmsg", "open the kernel's log", NO_READ) \
	X("open-sda", read_from, "/dev/sda", "open a disk", NO_READ) \
	X("open-vda", read_from, "/dev/vda", "open a virtual disk", NO_READ) \
	X("open-fuse", open_both, "/dev/fuse", "open FUSE", NO_READ) \
	X("open-tun", open_both, "/dev/net/tun", "open a tunnel", NO_READ) \
	X("open-kvm", open_both, "/dev/kvm", "open KVM", NO_READ) \
	X("tiocsti", push_input, "", "type into somebody's terminal", NO_CALL) \
	X("tiocsti-high", push_input_high, "", "the same with bits the kernel ignores", NO_CALL) \
	/* rights */ \
	X("no-new-privs", without_nnp, "", "gain rights by executing a program", "nothing") \
	X("capabilities", extra_capabilities, "", "use a capability beyond the ten", "nothing") \
	X("capset", raise_capabilities, "", "take all capabilities", NO_CALL) \
	X("no-filter", without_filter, "", "run without a filter", "nothing") \
	X("host-root", host_ids, "/proc/self/uid_map", "be the host's root, or who started this", "nothing") \
	X("host-group", host_ids, "/proc/self/gid_map", "be its group", "nothing") \
	X("sethostname", try_sethostname, "", "rename the host", NO_CALL) \
	X("core-limit", raise_core, "", "have cores written", NO_CALL) \
	X("real-time", try_real_time, "", "be scheduled before all others", NO_CALL) \
	/* namespaces */ \
	X("unshare-user", unshare_kind, "user", "a new user namespace", NO_SPACE) \
	X("unshare-mnt", unshare_kind, "mnt", "a new mount namespace", NO_SPACE) \
	X("unshare-pid", unshare_kind, "pid", "a new process namespace", NO_SPACE) \
	X("unshare-net", unshare_kind, "net", "a new network namespace", NO_SPACE) \
	X("unshare-ipc", unshare_kind, "ipc", "a new IPC namespace", NO_SPACE) \
	X("unshare-uts", unshare_kind, "uts", "a new UTS namespace", NO_SPACE) \
	X("unshare-cgroup", unshare_kind, "cgroup", "a new cgroup namespace", NO_SPACE) \
	X("unshare-time", unshare_kind, "time", "a new time namespace", NO_SPACE) \
	X("clone-user", clone_user, "", "a child in a new user namespace", NO_SPACE) \
	X("clone3-user", clone3_user, "", "the same by clone3", NO_SPACE) \
	X("setns-init", join_init, "", "join namespaces of process 1", "EPERM ENOSYS EACCES ENOENT") \
	/* keys */ \
	X("add-key", try_add_key, "", "add a key", NO_CALL) \
	X("request-key", try_request_key, "", "ask for a key", NO_CALL) \
	X("keyctl", try_keyctl, "", "use the session's keyring", NO_CALL) \
	/* processes */ \
	X("signal-host", signal_host, "", "signal a process of the host", NO_PROCESS) \
	X("pidfd-host", pidfd_host, "", "hold a process of the host", NO_PROCESS) \
	X("see-host", see_host, "", "look at a process of the host", NO_PROCESS) \
	X("ptrace-init", trace_init, "", "trace process 1", NO_CALL) \
	X("init-memory", open_both, "/proc/1/mem", "open the memory of process 1", "EACCES EPERM ENOENT") \
	X("init-program", read_from, "/proc/1/exe", "open the program of process 1", "EACCES EPERM ENOENT") \
	X("init-root", read_from, "/proc/1/root/", "go through the root of process 1", "EACCES EPERM ENOENT") \
	X("init-descriptors", take_init_fd, "", "take a descriptor of process 1", NO_CALL) \
	X("descriptors", stray_descriptors, "", "use a descriptor that was left open", "nothing") \
	X("secret", find_secret, "", "find a secret in an environment", "nothing") \
	/* control groups */ \
	X("cgroup-move", write_to, "/sys/fs/cgroup/cgroup.procs", "leave the cgroup", NO_WRITE) \
	X("cgroup-up", write_to, "/sys/fs/cgroup/../cgroup/cgroup.procs", "the same by another path", NO_WRITE) \
	X("cgroup-path", see_cgroup_path, "", "see where in the host's tree the cgroup lies", "nothing") \
	/* entry points and calls */ \
	X("entry-x32", enter_x32, "", "a call of the x32 kind", "ENOSYS SIGSYS no-door") \
	X("entry-ia32", enter_ia32, "", "a call of the 32-bit kind", "ENOSYS SIGSYS SIGSEGV no-door") \
	X("bpf", try_bpf, "", "load a program into the kernel", NO_CALL) \
	X("perf", try_perf, "", "watch events of the processor", NO_CALL) \
	X("io-uring", try_io_uring, "", "make calls past the filter", NO_CALL) \
	X("userfaultfd", try_userfaultfd, "", "stop the kernel at a page", NO_CALL) \
	X("init-module", try_init_module, "", "load a module", NO_CALL) \
	X("delete-module", try_delete_module, "", "remove a module", NO_CALL) \
	X("kexec", try_kexec, "", "load another kernel", NO_CALL) \
	X("reboot", try_reboot, "", "reboot", NO_CALL) \
	X("swapon", try_swapon, "", "swap to a file", NO_CALL) \
	X("acct", try_acct, "", "switch accounting on", NO_CALL) \
	X("settime", try_settime, "", "set the clock", NO_CALL) \
	X("handles", open_handle, "", "open a file by its handle", NO_CALL) \
	X("io-ports", try_iopl, "", "use I/O ports", "EPERM ENOSYS no-door") \
	/* files of the host */ \
	X("host-file", read_host, "", "open a file of the host", "ENOENT ENOTDIR") \
	X("host-file-up", read_host_up, "", "the same by ..", "ENOENT ENOTDIR") \
	X("host-file-root", read_host_root, "", "the same through /proc/self/root", "ENOENT ENOTDIR") \
	X("shared-memory", see_shm, "", "see shared memory of the host", "EINVAL EIDRM ENOSYS EPERM") \
	/* the network */ \
	X("abstract-socket", connect_abstract, "", "an abstract Unix socket of the host", "ECONNREFUSED EPERM") \
	X("host-loopback", connect_port, "127.0.0.1", "a server on the host's loopback address", NO_ROUTE) \
	X("host-loopback-6", connect6_port, "00000000000000000000000000000001", "the same by IPv6", NO_ROUTE) \
	X("host-address", connect_host, "", "the same by the host's own address", NO_ROUTE " no-door") \
	X("metadata", connect_80, "169.254.169.254", "a cloud's metadata service", NO_ROUTE) \
	X("metadata-6", connect6_80, "fd000ec2000000000000000000000254", "the same by IPv6", NO_ROUTE) \
	X("metadata-mapped", connect6_80, "00000000000000000000ffffa9fea9fe", "the same by its mapped spelling", NO_ROUTE) \
	X("lan-10", connect_80, "10.0.0.1", "a private network (10/8)", NO_ROUTE) \
	X("lan-172", connect_80, "172.16.0.1", "a private network (172.16/12)", NO_ROUTE) \
	X("lan-192", connect_80, "192.168.1.1", "a private network (192.168/16)", NO_ROUTE) \
	X("carrier", connect_80, "100.64.0.1", "the provider's network", NO_ROUTE) \
	X("gateway-slirp", connect_80, "10.0.2.2", "the host behind a user-mode network", NO_ROUTE) \
	X("socket-packet", socket_kind, "17 3 0", "raw packets", NO_FAMILY) \
	X("socket-raw", socket_kind, "2 3 1", "raw IP", NO_FAMILY) \
	X("socket-vsock", socket_kind, "40 1 0", "the hypervisor", NO_FAMILY) \
	X("socket-alg", socket_kind, "38 5 0", "the kernel's cryptography", NO_FAMILY) \
	X("socket-key", socket_kind, "15 3 2", "IPsec keys", NO_FAMILY) \
	X("socket-netfilter", socket_kind, "16 3 12", "packet rules", "EPERM EPROTONOSUPPORT") \
	X("socket-xfrm", socket_kind, "16 3 6", "IPsec policy", "EPERM EPROTONOSUPPORT") \
	X("socket-high", socket_high, "", "raw packets, with bits the kernel ignores", NO_FAMILY)
