/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sys/test_launch.c - what a created sandbox looks like from inside, and what its process 1 is */
#include <dirent.h>
#include <grp.h>
#include <netinet/in.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>

#include "tests/sys/box.h"

#define IN(name) (void *)(uintptr_t)(name)

/* What must be mounted, by mount point: type and the flags that must be there. A row that ends in '*'
 * stands for the masks of /proc, which are as many as the kernel has entries for. */
static const struct mount_row {
	const char *point, *type, *flags;
} mount_rows[] = {
	{ "/", "overlay", "nosuid,nodev" },
	{ "/proc", "proc", "nosuid,nodev,noexec" },
	{ "/proc/sys", "proc", "ro,nosuid,nodev,noexec" },
	{ "/proc/*", "ramfs", "ro,nosuid,nodev,noexec" },
	{ "/sys", "ramfs", "ro,nosuid,nodev,noexec" },
	{ "/dev", "tmpfs", "nosuid,nodev,noexec" },
	{ "/dev/pts", "devpts", "nosuid,noexec" },
	{ "/dev/shm", "tmpfs", "nosuid,nodev" },
	{ "/dev/null", NULL, "ro,nosuid,noexec" },
	{ "/dev/zero", NULL, "ro,nosuid,noexec" },
	{ "/dev/full", NULL, "ro,nosuid,noexec" },
	{ "/dev/random", NULL, "ro,nosuid,noexec" },
	{ "/dev/urandom", NULL, "ro,nosuid,noexec" },
	{ "/dev/tty", NULL, "ro,nosuid,noexec" },
	{ "/tmp", "tmpfs", "nosuid,nodev" },
	{ "/run", "tmpfs", "nosuid,nodev" },
	{ "/workspace", NULL, "nosuid,nodev" },
	{ "/output", NULL, "ro,nosuid,nodev,noexec" },
};

static const struct mount_row *find_mount_row(const char *point)
{
	const struct mount_row *wild = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(mount_rows); i++) {
		size_t len = strlen(mount_rows[i].point);

		if (strcmp(mount_rows[i].point, point) == 0)
			return &mount_rows[i];
		if (mount_rows[i].point[len - 1] == '*' &&
		    strncmp(mount_rows[i].point, point, len - 1) == 0)
			wild = &mount_rows[i];
	}
	return wild;
}

/* has_flags() - whether every word of want is a word of got; both are comma lists. */
static bool has_flags(const char *got, const char *want)
{
	char list[128], padded[512], word[32], *save = NULL;

	(void)snprintf(list, sizeof(list), "%s", want);
	(void)snprintf(padded, sizeof(padded), ",%s,", got);
	for (char *w = strtok_r(list, ",", &save); w != NULL; w = strtok_r(NULL, ",", &save)) {
		(void)snprintf(word, sizeof(word), ",%s,", w);
		if (strstr(padded, word) == NULL)
			return false;
	}
	return true;
}

static unsigned int seen_rows;

static void check_mount_line(char *line)
{
	char source[256], point[256], type[64], flags[256];
	const struct mount_row *row;

	if (sscanf(line, "%255s %255s %63s %255s", source, point, type, flags) != 4) {
		tap_ok(false, "a line of /proc/mounts is readable: %s", line);
		return;
	}
	row = find_mount_row(point);
	if (!tap_ok(row != NULL, "%s is one of the mounts wanted", point))
		return;
	seen_rows |= 1U << (row - mount_rows);
	tap_ok(row->type == NULL || strcmp(row->type, type) == 0, "%s is a %s", point, type);
	tap_ok(has_flags(flags, row->flags), "%s is mounted %s", point, row->flags);
}

static void test_mounts(struct box *b)
{
	char *save = NULL;

	tap_int(box_inside(b, true, box_cat, IN("/proc/self/mounts")), 0, "read /proc/mounts");
	tap_ok(strstr(b->text, b->home) == NULL && strstr(b->text, "mcpt") == NULL,
	       "/proc/mounts shows no path of the host");
	tap_ok(strstr(b->text, "lowerdir=l,upperdir=y/upper,workdir=y/work") != NULL,
	       "the overlay's trees have relative names");
	tap_ok(strstr(b->text, "userxattr") != NULL, "the overlay keeps its marks in user.*");
	for (char *line = strtok_r(b->text, "\n", &save); line != NULL;
	     line = strtok_r(NULL, "\n", &save))
		check_mount_line(line);
	tap_int(seen_rows, (1U << ARRAY_SIZE(mount_rows)) - 1, "every mount wanted is there");
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* list_dir() - a box_fn: the sorted names in a directory, with a space after each. */
static int list_dir(void *arg)
{
	char *names[256];
	DIR *dir = opendir(arg);
	const struct dirent *entry;
	size_t count = 0;

	if (dir == NULL)
		return errno;
	while ((entry = readdir(dir)) != NULL && count < ARRAY_SIZE(names)) {
		if (entry->d_name[0] != '.')
			names[count++] = strdup(entry->d_name);
	}
	qsort(names, count, sizeof(names[0]), compare_names);
	for (size_t i = 0; i < count; i++) {
		if (dprintf(1, "%s ", names[i]) < 0)
			return errno;
	}
	return 0;
}

/* check_devices() - a box_fn: the number of the row that is wrong, 0 when all are right. */
static int check_devices(void *arg)
{
	static const struct {
		const char *path;
		unsigned int major, minor;
	} rows[] = {
		{ "/dev/null", 1, 3 },	 { "/dev/zero", 1, 5 },	   { "/dev/full", 1, 7 },
		{ "/dev/random", 1, 8 }, { "/dev/urandom", 1, 9 }, { "/dev/tty", 5, 0 },
	};
	struct stat st;

	(void)arg;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (stat(rows[i].path, &st) < 0 || !S_ISCHR(st.st_mode) ||
		    st.st_rdev != makedev(rows[i].major, rows[i].minor))
			return (int)i + 1;
	}
	return 0;
}

static int use_null(void *arg)
{
	int fd = open("/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0666);

	(void)arg;
	return fd >= 0 && write(fd, "x", 1) == 1 ? 0 : errno;
}

static int touch_null(void *arg)
{
	(void)arg;
	return utimensat(AT_FDCWD, "/dev/null", NULL, 0) == 0 ? 0 : errno;
}

static int use_terminal(void *arg)
{
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY), slave;
	char text[8] = "";
	int unlock = 0;

	(void)arg;
	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return errno;
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
	if (slave < 0 || write(slave, "hi", 2) != 2)
		return errno;
	return read(master, text, sizeof(text)) == 2 && memcmp(text, "hi", 2) == 0 ? 0 : EIO;
}

static int exhaust_terminals(void *arg)
{
	int count = 0;

	(void)arg;
	while (count < 200 && open("/dev/ptmx", O_RDWR | O_NOCTTY) >= 0)
		count++;
	return count;
}

static int make_node(void *arg)
{
	return mknod(arg, S_IFCHR | 0666, makedev(1, 3)) == 0 ? 0 : errno;
}

static void test_dev(struct box *b)
{
	tap_int(box_inside(b, true, list_dir, IN("/dev")), 0, "list /dev");
	tap_str(b->text, "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero ",
		"/dev holds exactly what it should");
	tap_int(box_inside(b, true, check_devices, NULL), 0, "every device is the one it is called");
	tap_int(box_inside(b, true, use_null, NULL), 0, "/dev/null takes a truncating write");
	tap_int(box_inside(b, true, touch_null, NULL), EROFS,
		"the times of the host's /dev/null cannot be changed");
	tap_int(box_inside(b, true, use_terminal, NULL), 0, "a terminal can be made");
	tap_int(box_inside(b, true, exhaust_terminals, NULL), 64, "64 terminals and no more");
	tap_int(box_inside(b, true, make_node, IN("/tmp/node")), EPERM, "no device can be made");
}

/* sum_masked() - a box_fn: 0 when every masked file is empty and every masked directory too. */
static int sum_masked(void *arg)
{
	static const char *const files[] = {
		"kcore", "kmsg", "kallsyms", "modules", "config.gz", "cmdline", "keys", "key-users",
		"interrupts", "timer_list", "sched_debug", "latency_stats", "sysrq-trigger",
		"diskstats", "partitions", "swaps", "mtrr",
	};
	static const char *const dirs[] = { "acpi", "asound", "bus", "driver", "fs", "irq", "scsi",
					    "pressure" };
	char path[64], byte;

	(void)arg;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		int fd;

		(void)snprintf(path, sizeof(path), "/proc/%s", files[i]);
		fd = open(path, O_RDONLY);
		if (fd < 0 ? errno != ENOENT && errno != EACCES : read(fd, &byte, 1) != 0) {
			dprintf(1, "%s", path);
			return 1;
		}
		close(fd);
		fd = open(path, O_WRONLY);
		if (fd >= 0) {
			dprintf(1, "%s is writable", path);
			return 2;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		DIR *dir;

		(void)snprintf(path, sizeof(path), "/proc/%s", dirs[i]);
		dir = opendir(path);
		for (int n = 0; dir != NULL && readdir(dir) != NULL; n++) {
			if (n == 2) {
				dprintf(1, "%s is not empty", path);
				return 3;
			}
		}
	}
	return 0;
}

static int writable_count;

static int try_write(const char *path, const struct stat *st, int type, struct FTW *at)
{
	int fd;

	(void)st;
	if (at->level == 1 && path[6] >= '0' && path[6] <= '9')
		return FTW_SKIP_SUBTREE; /* a process's own files */
	if (type != FTW_F)
		return FTW_CONTINUE;
	fd = open(path, O_WRONLY | O_NONBLOCK);
	if (fd < 0)
		return FTW_CONTINUE;
	close(fd);
	dprintf(1, "%s ", path);
	writable_count++;
	return FTW_CONTINUE;
}

/* count_writable() - a box_fn: how many files below a directory can be opened for writing. */
static int count_writable(void *arg)
{
	if (nftw(arg, try_write, 16, FTW_PHYS | FTW_ACTIONRETVAL) < 0)
		return 254;
	return writable_count > 250 ? 250 : writable_count;
}

static int make_dir(void *arg)
{
	return mkdir(arg, 0755) == 0 ? 0 : errno;
}

static int unmount(void *arg)
{
	return umount2(arg, MNT_DETACH) == 0 ? 0 : errno;
}

static void test_proc(struct box *b)
{
	if (!tap_int(box_inside(b, true, sum_masked, NULL), 0, "what is masked is empty"))
		tap_diag("%s", b->text);
	if (!tap_int(box_inside(b, true, count_writable, IN("/proc")), 0,
		     "no file of /proc outside processes can be opened for writing"))
		tap_diag("%s", b->text);
	/* The same walk with every capability over the sandbox: only the mounts are in the way. */
	if (!tap_int(box_inside(b, false, count_writable, IN("/proc/sys")), 0,
		     "/proc/sys is read-only whatever the capabilities"))
		tap_diag("%s", b->text);
	tap_int(box_inside(b, true, list_dir, IN("/sys")), 0, "list /sys");
	tap_str(b->text, "", "/sys is empty");
	tap_int(box_inside(b, true, make_dir, IN("/sys/x")), EROFS, "/sys is read-only");
	tap_int(box_inside(b, true, unmount, IN("/proc/cmdline")), EPERM, "no mask can be taken off");
	tap_int(box_inside(b, true, list_dir, IN("/")), 0, "list /");
	tap_str(b->text, "dev etc output proc root run sys tmp usr var workspace ",
		"the root holds the image and the mount points, nothing of the scratch mount");
}

static int unshare_one(void *arg)
{
	return unshare(*(int *)arg) == 0 ? 0 : errno;
}

static int count_inotify(void *arg)
{
	int count = 0;

	(void)arg;
	while (count < 200 && inotify_init1(0) >= 0)
		count++;
	return count;
}

static void test_counts(struct box *b)
{
	static const struct {
		const char *name;
		int flag;
	} rows[] = {
		{ "user", CLONE_NEWUSER }, { "mount", CLONE_NEWNS }, { "pid", CLONE_NEWPID },
		{ "network", CLONE_NEWNET }, { "ipc", CLONE_NEWIPC }, { "uts", CLONE_NEWUTS },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int flag = rows[i].flag;

		/* Without the filter, with every capability: the count alone refuses. */
		tap_int(box_inside(b, false, unshare_one, &flag), ENOSPC, "no further %s namespace",
			rows[i].name);
		tap_int(box_inside(b, true, unshare_one, &flag), EPERM, "nor with the filter: %s",
			rows[i].name);
	}
	tap_int(box_inside(b, true, count_inotify, NULL), 32, "32 inotify instances and no more");
}

static int print_names(void *arg)
{
	struct utsname names;

	(void)arg;
	if (uname(&names) < 0)
		return errno;
	dprintf(1, "%s %s", names.nodename, names.domainname);
	return 0;
}

/* connect_to() - a box_fn: the errno of a TCP connection to a dotted address. */
static int connect_to(void *arg)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	to.sin_addr.s_addr = *(uint32_t *)arg;
	return connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 ? 0 : errno;
}

static int bind_low_port(void *arg)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(80) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	(void)arg;
	return bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 ? 0 : errno;
}

static int ping_socket(void *arg)
{
	(void)arg;
	return socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP) >= 0 ? 0 : errno;
}

static void test_names_and_network(struct box *b)
{
	uint32_t loopback = htonl(INADDR_LOOPBACK), elsewhere = htonl(0x01010101);

	tap_int(box_inside(b, true, print_names, NULL), 0, "uname");
	tap_str(b->text, "box-0a1b2c (none)", "host name is the key, domain name is nobody's");
	tap_int(box_inside(b, true, box_cat, IN("/proc/net/dev")), 0, "list the interfaces");
	tap_ok(strstr(b->text, "lo:") != NULL && strchr(strchr(b->text, ':') + 1, ':') == NULL,
	       "loopback is the only interface");
	tap_int(box_inside(b, true, connect_to, &loopback), ECONNREFUSED, "loopback is up");
	tap_int(box_inside(b, true, connect_to, &elsewhere), ENETUNREACH, "there is no way out");
	tap_int(box_inside(b, true, bind_low_port, NULL), 0, "port 80 needs no capability");
	tap_int(box_inside(b, true, ping_socket, NULL), 0, "ping needs no capability");
}

static int trace_init(void *arg)
{
	(void)arg;
	return ptrace(PTRACE_SEIZE, 1, 0, 0) == 0 ? 0 : errno;
}

static int open_file(void *arg)
{
	return open(arg, O_RDONLY) >= 0 ? 0 : errno;
}

static int kill_init(void *arg)
{
	(void)arg;
	(void)kill(1, SIGKILL);
	(void)kill(1, SIGTERM);
	return 0;
}

/* make_orphans() - a box_fn: grandchildren that outlive their parent by a moment. */
static int make_orphans(void *arg)
{
	(void)arg;
	for (int i = 0; i < 50; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			if (fork() == 0)
				usleep(20000);
			_exit(0);
		}
		(void)waitpid(pid, NULL, 0);
	}
	usleep(200000);
	return 0;
}

/* count_processes() - a box_fn: numeric entries of /proc. */
static int count_processes(void *arg)
{
	DIR *dir = opendir("/proc");
	const struct dirent *entry;
	int count = 0;

	(void)arg;
	while (dir != NULL && (entry = readdir(dir)) != NULL)
		count += entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
	return count;
}

/* status_field() - a line of pid 1's /proc/PID/status, as the host sees it. */
static const char *status_field(struct box *b, const char *name)
{
	static char text[8192];
	char path[64], *at, *end;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)b->l.pid);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return "";
	at = strstr(text, name);
	if (at == NULL)
		return "";
	at += strlen(name);
	end = strchr(at, '\n');
	if (end != NULL)
		*end = '\0';
	return at + strspn(at, "\t ");
}

/* The program itself, as the host sees it: execute only, and nobody can change it. */
static void test_init_program(struct box *b)
{
	const int want = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	struct stat st;
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)b->l.pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (!tap_ok(fd >= 0 && fstat(fd, &st) == 0, "the keeper can look at its program"))
		return;
	tap_int(st.st_mode & 07777, 0111, "which may be executed and nothing else");
	tap_ok(st.st_uid != b->ids.base + ID_SANDBOX_ROOT, "does not belong to the sandbox");
	tap_int(fcntl(fd, F_GET_SEALS) & want, want, "and is sealed against every change");
	(void)close(fd);
}

static void test_init(struct box *b)
{
	char path[64];
	struct stat st;
	DIR *dir;
	int count = 0;

	/* Files of a process that is not dumpable belong to the keeper's root, whatever the host's
	 * fs.suid_dumpable is. */
	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)b->l.pid);
	tap_ok(stat(path, &st) == 0 && st.st_uid == 0, "process 1 is not dumpable");
	tap_str(status_field(b, "Name:"), "init", "process 1 is called init");
	tap_str(status_field(b, "CapEff:"), "00000000800000fb", "its effective capabilities");
	tap_str(status_field(b, "CapBnd:"), "00000000800000fb", "its bounding set");
	tap_str(status_field(b, "CapInh:"), "0000000000000000", "nothing inheritable");
	tap_str(status_field(b, "NoNewPrivs:"), "1", "no_new_privs");
	tap_str(status_field(b, "Seccomp:"), "2", "a filter");
	tap_str(status_field(b, "Groups:"), "", "no supplementary group");
	tap_ok(strtol(status_field(b, "VmRSS:"), NULL, 10) <= 16, "it uses %s of memory",
	       status_field(b, "VmRSS:"));
	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)b->l.pid);
	dir = opendir(path);
	while (dir != NULL && readdir(dir) != NULL)
		count++;
	tap_ok(dir != NULL && count == 2, "it has no descriptor");
	if (dir != NULL)
		(void)closedir(dir);
	tap_int(box_inside(b, true, trace_init, NULL), EPERM, "it cannot be traced");
	tap_int(box_inside(b, true, open_file, IN("/proc/1/exe")), EACCES, "its program is out of reach");
	tap_int(box_inside(b, true, open_file, IN("/proc/1/mem")), EACCES, "its memory is out of reach");
	tap_int(box_inside(b, true, open_file, IN("/proc/1/root/etc")), EACCES, "its root is out of reach");
	tap_int(box_inside(b, true, kill_init, NULL), 0, "send it SIGKILL and SIGTERM");
	tap_int(box_inside(b, true, make_orphans, NULL), 0, "leave 50 orphans");
	tap_int(box_inside(b, true, count_processes, NULL), 2, "it has reaped them and is still there");
}

static int create_file(void *arg)
{
	int fd = open(arg, O_WRONLY | O_CREAT | O_EXCL, 0644);

	return fd >= 0 ? 0 : errno;
}

static void test_writes(struct box *b)
{
	struct stat st;

	tap_int(box_inside(b, true, create_file, IN("/etc/new")), 0, "the root is writable");
	tap_ok(fstatat(b->home_fd, "layer/upper/etc/new", &st, 0) == 0 &&
		       st.st_uid == b->ids.base + ID_SANDBOX_ROOT,
	       "what is written lands in the layer, owned by the sandbox's root");
	tap_ok(fstatat(b->home_fd, "image/etc/new", &st, 0) < 0, "and not in the image");
	tap_int(box_inside(b, true, create_file, IN("/workspace/new")), 0, "/workspace is writable");
	tap_ok(fstatat(b->home_fd, "workspace/new", &st, 0) == 0, "and is the label's directory");
	tap_int(box_inside(b, true, create_file, IN("/output/new")), EROFS, "/output is read-only");
	tap_int(box_inside(b, true, create_file, IN("/tmp/new")), 0, "/tmp is writable");
	tap_int(box_inside(b, true, create_file, IN("/run/lock/new")), 0, "/run/lock is writable");
	tap_int(box_inside(b, true, create_file, IN("/dev/shm/new")), 0, "/dev/shm is writable");
}

/* A profile without a layer: nothing of the root can be written, nothing persists. */
static void test_readonly(struct box *b)
{
	struct launch_request kept = b->req;

	b->req.layer_fd = b->req.workspace_fd = b->req.output_fd = -1;
	b->profile.workspace_tmpfs_bytes = 64 << 20;
	b->profile.tmp_noexec = true;
	if (tap_int(box_start(b), 0, "a sandbox without a layer becomes ready")) {
		tap_int(box_inside(b, true, create_file, IN("/etc/new2")), EROFS,
			"its root is read-only");
		tap_int(box_inside(b, true, create_file, IN("/workspace/new")), 0,
			"its workspace is writable");
		tap_int(box_inside(b, true, box_cat, IN("/proc/self/mounts")), 0, "read its mounts");
		tap_ok(strstr(b->text, "tmpfs /tmp tmpfs rw,nosuid,nodev,noexec") != NULL,
		       "nothing can be executed from its /tmp");
		tap_ok(strstr(b->text, "lowerdir=s:l") != NULL, "the skeleton lies over the image");
		tap_int(box_inside(b, true, list_dir, IN("/output")), 0, "without output, /output ...");
		tap_str(b->text, "", "... is an empty directory");
		box_end(b);
	} else {
		tap_diag("%s | %s", b->e.message, b->e.remedy);
	}
	b->req = kept;
	b->profile.tmp_noexec = false;
	b->profile.workspace_tmpfs_bytes = 0;
}

/* What a sandbox must not inherit, so that there is something to inherit. */
static void become_a_named_host(void)
{
	const gid_t group = 4;

	if (unshare(CLONE_NEWUTS) < 0 || sethostname("host", 4) < 0 ||
	    setdomainname("example.org", 11) < 0 || setgroups(1, &group) < 0)
		tap_bail("name the host");
}

int main(int argc, char **argv)
{
	static struct box b;

	(void)argc;
	box_enter(argv);
	become_a_named_host();
	box_open(&b);
	if (tap_int(box_start(&b), 0, "a sandbox becomes ready")) {
		tap_int(b.l.replaced, 0, "nothing had to be renamed aside");
		test_mounts(&b);
		test_dev(&b);
		test_proc(&b);
		test_counts(&b);
		test_names_and_network(&b);
		test_init(&b);
		test_init_program(&b);
		test_writes(&b);
		box_end(&b);
	} else {
		tap_diag("%s | %s", b.e.message, b.e.remedy);
	}
	test_readonly(&b);
	box_close(&b);
	return tap_done();
}
