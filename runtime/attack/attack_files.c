/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/attack/attack_files.c - attempts of the attacking program: files of the kernel and of the host, mounts, devices
 *
 * Runs inside, as any command does (attack.c). Harmless where an attempt succeeds.
 */
#include <asm/statfs.h>

#include "runtime/attack/attempt.h"

enum { PATH_SIZE = 1024 };

/* ---- files of the kernel and of the host ---- */

long write_to(const struct host *h, const char *path)
{
	(void)h;
	return open_path(path, O_WRONLY);
}

long open_both(const struct host *h, const char *path)
{
	(void)h;
	return open_path(path, O_RDWR);
}

/* Entries beside "." and "..". */
static long count_entries(long fd)
{
	char block[BLOCK_SIZE];
	long len = RAW(__NR_getdents64, fd, block, sizeof(block));
	long at = 0, count = 0;

	while (at < len) {
		const char *name = block + at + 19;
		unsigned short size = (unsigned short)((unsigned char)block[at + 16] | (unsigned char)block[at + 17] << 8);

		if (!(name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]))))
			count++;
		at += size;
	}
	return len < 0 ? len : count ? 0 : RESULT_NOTHING;
}

long read_from(const struct host *h, const char *path)
{
	long fd = open_path(path, O_RDONLY), n;
	char byte[16];

	(void)h;
	if (fd < 0)
		return fd;
	n = RAW(__NR_read, fd, byte, sizeof(byte));
	if (n == -EISDIR)
		return count_entries(fd);
	return n < 0 ? n : n ? 0 : RESULT_NOTHING;
}

static long read_below(const char *prefix, const char *path)
{
	char text[PATH_SIZE];

	if (length(prefix) + length(path) >= sizeof(text))
		return -ENAMETOOLONG;
	put(put(text, prefix), path);
	return read_from(NULL, text);
}

long read_host(const struct host *h, const char *arg)
{
	return read_below(arg, h->path);
}

long read_host_up(const struct host *h, const char *arg)
{
	(void)arg;
	return read_below("../../../../../../../../../../../../../../../..", h->path);
}

long read_host_root(const struct host *h, const char *arg)
{
	(void)arg;
	return read_below("/proc/self/root/../../../..", h->path);
}

long read_syslog(const struct host *h, const char *arg)
{
	char text[16];

	(void)h;
	(void)arg;
	return RAW(__NR_syslog, 3 /* SYSLOG_ACTION_READ_ALL */, text, sizeof(text));
}

/* Does a line of this map reach the number 0 outside? */
long host_ids(const struct host *h, const char *path)
{
	char text[BLOCK_SIZE];
	const char *at = text;
	long n = read_text(path, text);

	(void)h;
	if (n <= 0)
		return n ? n : 0;
	while (*at) {
		(void)number(&at);
		if (number(&at) == 0)
			return 0;
		(void)number(&at);
		while (*at == '\n')
			at++;
	}
	return RESULT_NOTHING;
}

/* "N:controllers:/path": with a cgroup namespace the path is "/". */
long see_cgroup_path(const struct host *h, const char *arg)
{
	char text[BLOCK_SIZE];
	long n = read_text("/proc/self/cgroup", text);

	(void)h;
	(void)arg;
	for (long i = 0; i + 1 < n; i++) {
		if (text[i] == ':' && text[i + 1] == '/' && i + 2 < n && text[i + 2] != '\n')
			return 0;
	}
	return n < 0 ? n : RESULT_NOTHING;
}

/* ---- mounts ---- */

long mount_type(const struct host *h, const char *type)
{
	(void)h;
	return RAW(__NR_mount, type, "/mnt", type, 0, begins(type, "overlay") ? "lowerdir=/usr:/etc" : NULL);
}

enum { BIND = 0x1000, REMOUNT = 0x20, EXPIRE = 4, CLONE_TREE = 1 };


ATTEMPT(mount_bind, RAW(__NR_mount, "/etc", "/mnt", NULL, BIND, NULL))
ATTEMPT(mount_remount, RAW(__NR_mount, NULL, "/proc/sys", NULL, BIND | REMOUNT, NULL))
ATTEMPT(umount_mask, RAW(__NR_umount2, "/proc", EXPIRE)) /* only marks it where it is allowed */
ATTEMPT(try_fsopen, RAW(__NR_fsopen, "tmpfs", 0))
ATTEMPT(try_open_tree, RAW(__NR_open_tree, AT_FDCWD, "/", CLONE_TREE))
ATTEMPT(try_move_mount, RAW(__NR_move_mount, AT_FDCWD, "/no/such", AT_FDCWD, "/mnt", 0))
ATTEMPT(try_mount_setattr, RAW(__NR_mount_setattr, AT_FDCWD, "/", 0, attack_zeros, 32))
ATTEMPT(try_pivot_root, RAW(__NR_pivot_root, "/", "/"))
ATTEMPT(try_chroot, RAW(__NR_chroot, "/"))

enum { FLAG_NOSUID = 2, FLAG_NODEV = 4 };

static long without_flag(const char *path, long flag)
{
	struct statfs st;
	long r = RAW(__NR_statfs, path, &st);

	return r < 0 ? r : st.f_flags & flag ? RESULT_NOTHING : 0;
}

long without_nosuid(const struct host *h, const char *path)
{
	(void)h;
	return without_flag(path, FLAG_NOSUID);
}

long without_nodev(const struct host *h, const char *path)
{
	(void)h;
	return without_flag(path, FLAG_NODEV);
}

/* ---- devices ---- */

enum { CHAR_NODE = 0020600, BLOCK_NODE = 0060600, MEM = 1 << 8 | 1, DISK = 8 << 8 };

static long make_node(int mode, int device)
{
	long r = RAW(__NR_mknodat, AT_FDCWD, "/tmp/attack-node", mode, device);

	if (r == 0)
		RAW(__NR_unlinkat, AT_FDCWD, "/tmp/attack-node", 0);
	return r;
}

ATTEMPT(make_char, make_node(CHAR_NODE, MEM))
ATTEMPT(make_block, make_node(BLOCK_NODE, DISK))

enum { UNLOCK_TERMINAL = 0x40045431, OPEN_PEER = 0x5441, TAKE_TERMINAL = 0x540e, PUSH_INPUT = 0x5412 };

/* Into a terminal of our own, which is the one case where a kernel that still allows it would. */
static long push(unsigned long request)
{
	long master = open_path("/dev/ptmx", O_RDWR), peer;
	char c = 'x';
	int off = 0;

	if (master < 0)
		return master;
	RAW(__NR_ioctl, master, UNLOCK_TERMINAL, &off);
	peer = RAW(__NR_ioctl, master, OPEN_PEER, O_RDWR | O_NOCTTY);
	if (peer < 0)
		return peer;
	RAW(__NR_setsid);
	RAW(__NR_ioctl, peer, TAKE_TERMINAL, 0);
	return RAW(__NR_ioctl, peer, request, &c);
}

ATTEMPT(push_input, push(PUSH_INPUT))
ATTEMPT(push_input_high, push(PUSH_INPUT | 1UL << 32))
