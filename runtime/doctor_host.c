/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/doctor_host.c - checks of what the host is set up with: cgroup, disk, image, kernel settings
 *
 * Runs in a child of doctor.c as the user who asks; reads only. The cgroup was acquired before, by the
 * process itself, because who is in a cgroup decides whether it may be used.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"
#include "runtime/doctor_try.h"
#include "runtime/net_uplink.h"

enum { INOTIFY_PER_SANDBOX = 32 };

/* What is missing ends a start, or only costs the limit, as SANDBOX_LIMITS says. */
static enum doctor_status limit_status(const struct doctor_host *host)
{
	return host->settings->limits_best_effort ? DOCTOR_DEGRADED : DOCTOR_MISSING;
}

void doctor_look_cgroup(const struct doctor_host *host, struct doctor_row *row)
{
	if (host->cgroup->root_fd >= 0) {
		doctor_say(row, DOCTOR_OK, "%s", host->cgroup->path);
		return;
	}
	doctor_say_error(row, limit_status(host), host->cgroup_error);
}

static void look_controller(const struct doctor_host *host, struct doctor_row *row, unsigned int bit,
			    const char *name)
{
	if (host->cgroup->controllers & bit) {
		doctor_say(row, DOCTOR_OK, "the %s controller is delegated", name);
		return;
	}
	doctor_say(row, limit_status(host), "no %s controller in %s", name,
		   host->cgroup->root_fd >= 0 ? host->cgroup->path : "any cgroup of this process");
	if (host->cgroup_error->remedy[0])
		doctor_fix(row, "%s", host->cgroup_error->remedy);
	else
		doctor_fix(row, "SANDBOX_LIMITS=best-effort starts sandboxes without this limit");
}

void doctor_look_memory(const struct doctor_host *host, struct doctor_row *row)
{
	look_controller(host, row, CGROUP_MEMORY, "memory");
}

void doctor_look_pids(const struct doctor_host *host, struct doctor_row *row)
{
	look_controller(host, row, CGROUP_PIDS, "pids");
}

void doctor_look_cpu(const struct doctor_host *host, struct doctor_row *row)
{
	look_controller(host, row, CGROUP_CPU, "cpu");
}

void doctor_look_image(const struct doctor_host *host, struct doctor_row *row)
{
	const struct settings *s = host->settings;
	char path[PATH_MAX + NAME_MAX_LEN + 32];
	struct stat st;

	snprintf(path, sizeof(path), "%s/images/%s/rootfs", s->home, s->image);
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		doctor_say(row, DOCTOR_OK, "%s", path);
		return;
	}
	doctor_say(row, DOCTOR_MISSING, "%s: %m", path);
	if (strcmp(s->image, "default"))
		doctor_fix(row, "mcp-sandbox image build --name %s", s->image);
	else
		doctor_fix(row, "mcp-sandbox image build");
}

/* The state directory may not be there yet: its file system is that of what it will be made in. */
static int statvfs_up(const char *home, struct statvfs *ret)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s", home);
	while (statvfs(path, ret) < 0) {
		char *slash = strrchr(path, '/');

		if (!slash || slash == path)
			return statvfs("/", ret);
		*slash = '\0';
	}
	return 0;
}

void doctor_look_disk(const struct doctor_host *host, struct doctor_row *row)
{
	const struct settings *s = host->settings;
	char have[32], want[32];
	struct statvfs vfs;
	uint64_t free_bytes;

	if (statvfs_up(s->home, &vfs) < 0) {
		doctor_say(row, DOCTOR_DEGRADED, "%s: %m", s->home);
		return;
	}
	free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	str_format_size(free_bytes, have, sizeof(have));
	str_format_size(s->min_free_bytes, want, sizeof(want));
	if (free_bytes >= s->min_free_bytes) {
		doctor_say(row, DOCTOR_OK, "%s free for %s", have, s->home);
		return;
	}
	doctor_say(row, DOCTOR_MISSING, "%s free for %s, less than %s (SANDBOX_MIN_FREE)", have, s->home,
		   want);
	doctor_fix(row, "free some space, move SANDBOX_HOME, or lower SANDBOX_MIN_FREE");
}

/* The sandboxes of one user draw on that user's own inotify instances. */
void doctor_look_inotify(const struct doctor_host *host, struct doctor_row *row)
{
	uint64_t have, want = (uint64_t)host->settings->max_sandboxes * INOTIFY_PER_SANDBOX;
	char text[32];

	if (fd_read_file_at(AT_FDCWD, "/proc/sys/fs/inotify/max_user_instances", text, sizeof(text)) < 0) {
		doctor_say(row, DOCTOR_OK, "this kernel has no inotify limit");
		return;
	}
	text[strcspn(text, "\n")] = '\0';
	if (str_parse_u64(text, 0, UINT64_MAX, &have) == 0 && have > want) {
		doctor_say(row, DOCTOR_OK, "%" PRIu64 " instances for each user", have);
		return;
	}
	doctor_say(row, DOCTOR_DEGRADED,
		   "%s inotify instances for each user; %u sandboxes may use up %" PRIu64, text,
		   host->settings->max_sandboxes, want);
	doctor_fix(row, "sysctl -w fs.inotify.max_user_instances=%" PRIu64, want + 128);
}

void doctor_look_tun(const struct doctor_host *host, struct doctor_row *row)
{
	struct err e = { 0 };

	if (net_check_tun(&e) == 0)
		doctor_say(row, DOCTOR_OK, "/dev/net/tun can be opened by every user");
	else
		doctor_say_error(row, host->settings->net == NET_INTERNET ? DOCTOR_DEGRADED : DOCTOR_OK, &e);
}

/* Without lingering, the user's service manager ends at logout, and the sandboxes with it. */
void doctor_look_linger(const struct doctor_host *host, struct doctor_row *row)
{
	const struct passwd *user = getpwuid(geteuid());
	char path[128];

	(void)host;
	if (geteuid() == 0) {
		doctor_say(row, DOCTOR_OK, "root needs none");
		return;
	}
	if (access("/run/systemd/system", F_OK) < 0 || !user) {
		doctor_say(row, DOCTOR_OK, "no systemd here");
		return;
	}
	snprintf(path, sizeof(path), "/var/lib/systemd/linger/%s", user->pw_name);
	if (access(path, F_OK) == 0) {
		doctor_say(row, DOCTOR_OK, "on: sandboxes outlive the login");
		return;
	}
	doctor_say(row, DOCTOR_OK, "off: sandboxes end at logout, as those of stdio do anyway");
	doctor_fix(row, "loginctl enable-linger %s", user->pw_name);
}
