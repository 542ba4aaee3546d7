/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fault/test_launch_fault.c - every step of creation fails once: the right sentence, nothing left
 *
 * This program has a launch.c of its own, built with the hook; the one in the library has none.
 */
#include <dirent.h>
#include <sys/mount.h>

#include "tests/sys/box.h"

static uint32_t fault_stage;
static int fault_error;

int launch_fault(uint32_t stage)
{
	return stage == fault_stage ? fault_error : 0;
}

enum { TEXT_MAX = 256 * 1024 };

static char mounts_before[TEXT_MAX], mounts_after[TEXT_MAX];

static void read_mounts(char text[TEXT_MAX])
{
	if (fd_read_file_at(AT_FDCWD, "/proc/self/mountinfo", text, TEXT_MAX) < 0)
		tap_bail("read mountinfo");
}

static int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int count = 0;

	while (dir != NULL && readdir(dir) != NULL)
		count++;
	if (dir != NULL)
		(void)closedir(dir);
	return count;
}

static void check_nothing_left(const struct box *b, int fds)
{
	tap_int(count_entries("/proc/self/fd"), fds, "  no descriptor is left");
	tap_ok(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "  no process is left");
	read_mounts(mounts_after);
	tap_ok(strcmp(mounts_before, mounts_after) == 0, "  no mount is left");
	tap_int(count_entries(b->home), 6, "  no directory is left");
}

static void test_stage(struct box *b, uint32_t stage, int fds)
{
	fault_stage = stage;
	fault_error = EXDEV; /* no step's remedy is about this one: the bare sentence */
	if (!tap_int(box_start(b), -1, "step %u (%s) fails", stage, launch_stage_text(stage))) {
		box_end(b);
		return;
	}
	tap_ok(strstr(b->e.message, launch_stage_text(stage)) != NULL, "  \"%s\" names the step",
	       b->e.message);
	tap_ok(strstr(b->e.message, strerror(EXDEV)) != NULL, "  and the cause");
	tap_int(b->e.sys_errno, EXDEV, "  also as a number");
	check_nothing_left(b, fds);
}

/* Causes people meet, and a word their remedy must hold. */
static const struct {
	uint32_t stage;
	int error;
	const char *word;
} remedies[] = {
	{ LAUNCH_PREPARE, EMFILE, "LimitNOFILE" },
	{ LAUNCH_PREPARE, EACCES, "vm.memfd_noexec" },
	{ LAUNCH_CLONE, EAGAIN, "TasksMax" },
	{ LAUNCH_CLONE, EACCES, "SANDBOX_CGROUP" },
	{ LAUNCH_CLONE, ENOSPC, "user.max_user_namespaces" },
	{ LAUNCH_CLONE, EPERM, "chroot" },
	{ LAUNCH_CLONE, ENOMEM, "free memory" },
	{ LAUNCH_IDS, EINVAL, "/etc/subuid" },
	{ LAUNCH_SCRATCH, EACCES, "apparmor" },
	{ LAUNCH_UPLINK, EPERM, "CAP_NET_ADMIN" },
	{ LAUNCH_UPLINK, EACCES, "slirp4netns" },
	{ LAUNCH_UPLINK, EROFS, "slirp4netns" },
	{ LAUNCH_UPLINK, EOPNOTSUPP, "modprobe veth" },
	{ LAUNCH_TAP, ENOENT, "modprobe tun" },
	{ LAUNCH_TAP, ENODEV, "modprobe tun" },
	{ LAUNCH_TAP, EACCES, "chmod 0666 /dev/net/tun" },
	{ LAUNCH_TAP, EPERM, "chmod 0666 /dev/net/tun" },
	{ LAUNCH_OVERLAY, ENODEV, "modprobe overlay" },
	{ LAUNCH_OVERLAY, EINVAL, "ext4" },
	{ LAUNCH_OVERLAY, EACCES, "image build" },
	{ LAUNCH_PROC, EPERM, "systempaths=unconfined" },
	{ LAUNCH_DEV, ENOENT, "/dev" },
	{ LAUNCH_PIVOT, EINVAL, "chroot" },
	{ LAUNCH_EXEC, EACCES, "vm.memfd_noexec" },
};

static void test_remedies(struct box *b, int fds)
{
	for (size_t i = 0; i < ARRAY_SIZE(remedies); i++) {
		fault_stage = remedies[i].stage;
		fault_error = remedies[i].error;
		if (!tap_int(box_start(b), -1, "%s: %s", launch_stage_text(fault_stage),
			     strerror(fault_error))) {
			box_end(b);
			continue;
		}
		if (!tap_ok(strstr(b->e.remedy, remedies[i].word) != NULL,
			    "  the remedy speaks of %s", remedies[i].word))
			tap_diag("%s", b->e.remedy);
		tap_ok(b->e.code == ERR_HOST || b->e.code == ERR_NOMEM, "  it is the host's fault");
		check_nothing_left(b, fds);
	}
	fault_stage = LAUNCH_TARGETS;
	fault_error = ENOSPC;
	if (tap_int(box_start(b), -1, "the disk is full"))
		tap_int(b->e.code, ERR_NOSPACE, "  and the code says so");
}

int main(int argc, char **argv)
{
	static struct uplink uplink;
	static struct box b;
	int fds;

	(void)argc;
	box_enter(argv);
	/* Others may be mounting on this host right now. */
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		tap_bail("make a mount namespace");
	box_open(&b);
	if (!tap_int(box_start(&b), 0, "without a fault a sandbox becomes ready"))
		tap_bail("%s", b.e.message);
	box_end(&b);
	read_mounts(mounts_before);
	fds = count_entries("/proc/self/fd");
	for (uint32_t stage = 1; stage < LAUNCH_STAGE_COUNT; stage++)
		test_stage(&b, stage, fds);
	/* The same with sockets made inside and on their way out. */
	if (uplink_open(&uplink, NET_ALLOWLIST, !b.ids.in_storage, &b.e) < 0)
		tap_bail("%s", b.e.message);
	box_net(&b, &uplink);
	fault_stage = 0;
	if (tap_int(box_start(&b), 0, "with an allowlist and no fault it becomes ready")) {
		tap_ok(b.l.socket[NET_SOCKET_PROXY] >= 0, "  and has its sockets");
		box_end(&b);
	}
	for (uint32_t stage = 1; stage < LAUNCH_STAGE_COUNT; stage++)
		test_stage(&b, stage, fds);
	box_net(&b, NULL);
	test_remedies(&b, fds);
	fault_stage = 0;
	if (tap_int(box_start(&b), 0, "after all of it one more becomes ready"))
		box_end(&b);
	box_close(&b);
	return tap_done();
}
