/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/cgroup_record.c - the record of a sandbox, kept by the kernel with its cgroup directory
 *
 * Runs in the keeper. Whoever owns the directory could write a record, so it is no proof of
 * anything: a reader compares it with the process it names. The checksum finds damage and a layout
 * of another build, the checks of each field find nonsense.
 */
#include "runtime/cgroup.h"

#include <errno.h>
#include <string.h>
#include <sys/xattr.h>
#include <time.h>

#include "runtime/base/str.h"
#include "runtime/cgroup_fs.h"

enum { RECORD_VERSION = 4, MARK_VERSION = 1 };

#define RECORD_NAME "user.mcp.sandbox"
#define MARK_NAME "user.mcp.exec"

/* What is stored: no padding may carry old stack bytes, so it is zeroed and filled field by field. */
struct stored {
	struct cgroup_record record;
	uint64_t checksum;
};

/* FNV-1a, 64 bit: each step is a bijection of the state, so any one changed byte changes it. */
static uint64_t checksum(const struct cgroup_record *rec)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	const unsigned char *bytes = (const unsigned char *)rec;

	for (size_t i = 0; i < sizeof(*rec); i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static bool is_flag(uint32_t value)
{
	return value <= 1;
}

static bool is_valid(const struct cgroup_record *r)
{
	return r->version == RECORD_VERSION &&
	       memchr(r->profile, '\0', sizeof(r->profile)) &&
	       str_is_name(r->profile, sizeof(r->profile) - 1) &&
	       memchr(r->image, '\0', sizeof(r->image)) &&
	       str_is_name(r->image, sizeof(r->image) - 1) && r->limits.memory_bytes > 0 &&
	       r->limits.cpu_milli > 0 && r->limits.pids > 0 && is_flag(r->best_effort) &&
	       r->net <= NET_INTERNET && r->keeper_pid > 0 && r->init_pid > 0 &&
	       r->init_start_time > 0 && r->boot_id[0] != '\0' &&
	       r->boot_id[BOOT_ID_SIZE - 1] == '\0';
}

static void copy_fields(struct cgroup_record *to, const struct cgroup_record *from)
{
	memset(to, 0, sizeof(*to));
	to->version = RECORD_VERSION;
	memcpy(to->profile, from->profile, sizeof(to->profile));
	memcpy(to->image, from->image, sizeof(to->image));
	to->limits.memory_bytes = from->limits.memory_bytes;
	to->limits.cpu_milli = from->limits.cpu_milli;
	to->limits.pids = from->limits.pids;
	to->limits.disk_bytes = from->limits.disk_bytes;
	to->best_effort = from->best_effort;
	to->net = from->net;
	to->uplink = from->uplink;
	to->id_base = from->id_base;
	to->keeper_pid = from->keeper_pid;
	to->init_pid = from->init_pid;
	to->init_start_time = from->init_start_time;
	to->generation = from->generation;
	to->created_ns = from->created_ns;
	to->trust = from->trust;
	memcpy(to->boot_id, from->boot_id, sizeof(to->boot_id));
	to->lost = from->lost;
	to->unanswered = from->unanswered;
}

int cgroup_record_write(const struct cgroup_box *box, const struct cgroup_record *rec)
{
	struct stored s;

	if (box->dir_fd < 0)
		return 0;
	memset(&s, 0, sizeof(s));
	copy_fields(&s.record, rec);
	if (!is_valid(&s.record)) {
		errno = EINVAL;
		return -1;
	}
	s.checksum = checksum(&s.record);
	return fsetxattr(box->dir_fd, RECORD_NAME, &s, sizeof(s), 0);
}

int cgroup_record_read(int dir_fd, struct cgroup_record *ret)
{
	struct stored s;

	if (fgetxattr(dir_fd, RECORD_NAME, &s, sizeof(s)) != (ssize_t)sizeof(s) ||
	    s.checksum != checksum(&s.record) || !is_valid(&s.record))
		return 0;
	*ret = s.record;
	return 1;
}

/* ---- commands without an answer ---- */

int cgroup_leaf_mark(const struct cgroup_box *box, unsigned int i)
{
	struct timespec now;
	struct cgroup_mark mark = { .version = MARK_VERSION };

	if (i >= CGROUP_LEAVES || box->leaf_fd[i] < 0 || clock_gettime(CLOCK_BOOTTIME, &now) < 0)
		return -1;
	mark.began_ns = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
	return fsetxattr(box->leaf_fd[i], MARK_NAME, &mark, sizeof(mark), 0);
}

void cgroup_leaf_unmark(const struct cgroup_box *box, unsigned int i)
{
	if (i < CGROUP_LEAVES && box->leaf_fd[i] >= 0)
		(void)fremovexattr(box->leaf_fd[i], MARK_NAME);
}

bool cgroup_record_marked(int leaf_fd)
{
	/* Whatever stands there, even a damaged one: a report too many is better than a silent loss. */
	return fgetxattr(leaf_fd, MARK_NAME, NULL, 0) >= 0;
}
