/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/adopt.c - which sandboxes of a dead keeper are kept, and how they join the registry
 *
 * Runs in a service's keeper while it starts. Trusted: the kernel's word on cgroups, processes and
 * namespaces. Not trusted: the record, which may be damaged, of another build, or forged by whoever owns
 * the directory.
 */
#include "runtime/adopt.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/log.h"
#include "runtime/egress.h"
#include "runtime/registry_net.h"
#include "runtime/base/proc.h"
#include "runtime/base/sys.h"

/* ---- is it what it says? ---- */

static bool has_ended(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, 0) != 0;
}

/* The order matters: a process that is alive by its descriptor after all was compared is the one the
 * comparisons were made with, whatever happened to its number before. */
static int find_init(int dir_fd, const struct cgroup_record *rec, struct err *e)
{
	_cleanup_fd_ int pidfd = sys_pidfd_open(rec->init_pid, 0);
	char boot[BOOT_ID_SIZE];

	if (proc_boot_id(boot) < 0 || memcmp(boot, rec->boot_id, sizeof(boot)) != 0)
		return err_set(e, ERR_GONE, "its record is from before the last boot");
	if (pidfd < 0)
		return err_set(e, ERR_GONE, "its pid 1 is gone");
	if (proc_start_time(rec->init_pid) != rec->init_start_time)
		return err_set(e, ERR_GONE, "process %d is not its pid 1 but a later one", rec->init_pid);
	if (cgroup_box_init_pid(dir_fd) != rec->init_pid)
		return err_set(e, ERR_DENIED, "process %d is not the one process of its cgroup's init leaf",
			       rec->init_pid);
	if (has_ended(pidfd))
		return err_set(e, ERR_GONE, "its pid 1 has ended");
	return take_fd(&pidfd);
}

/* Policy comes from the settings of today: what was made under another one is not kept. Limits are
 * not compared, they can be set anew. */
static int check_policy(const struct settings *s, const char *owner, const struct idrange *ids,
			const struct cgroup_record *rec, struct err *e)
{
	if (!s->profile->layer_kept)
		return err_set(e, ERR_GONE, "it was for one call");
	if (strcmp(rec->profile, s->profile->name) != 0)
		return err_set(e, ERR_CONFIG, "it was made with profile %s", rec->profile);
	if (strcmp(rec->image, s->image) != 0)
		return err_set(e, ERR_CONFIG, "it was made from image %s", rec->image);
	if (rec->net != (uint32_t)net_grant_of(s, owner).mode)
		return err_set(e, ERR_CONFIG, "it was made with another network setting");
	if (rec->trust != (s->trust ? s->trust->id : 0))
		return err_set(e, ERR_CONFIG, "it was made with other certificates (SANDBOX_EXTRA_CA)");
	if (rec->id_base != ids->base)
		return err_set(e, ERR_CONFIG, "it was made with ids from %u", rec->id_base);
	return 0;
}

int adopt_look(const struct settings *s, const char *owner, const struct idrange *ids, int dir_fd,
	       struct cgroup_record *ret, struct err *e)
{
	_cleanup_fd_ int pidfd = -1;

	if (cgroup_record_read(dir_fd, ret) != 1)
		return err_set(e, ERR_GONE, "it has no record, or a damaged one");
	if (check_policy(s, owner, ids, ret, e) < 0)
		return -1;
	pidfd = find_init(dir_fd, ret, e);
	if (pidfd < 0 || userns_check_sandbox(ids, ret->init_pid, e) < 0)
		return -1;
	if (has_ended(pidfd)) /* only now is it certain whose namespace that was */
		return err_set(e, ERR_GONE, "its pid 1 has ended");
	return take_fd(&pidfd);
}

/* ---- into the registry ---- */

static void on_init_ended(struct loop_source *s, uint32_t events)
{
	struct sandbox *sb = s->ctx;

	(void)events;
	loop_remove(s);
	sb->init.pid = 0;
	sandbox_init_ended(sb);
}

/* The box is open for what is killed later; background work counts as the leaf's use. */
static int fill(struct sandbox *sb, int *dir_fd, const struct cgroup_record *rec, uint32_t *ret_lost,
		struct err *e)
{
	struct registry *reg = sb->reg;

	if (output_logs_init(&sb->logs, sb->label.output_fd, reg->settings->output_max_bytes, e) < 0)
		return -1;
	sb->image_fd = store_image_open(reg->store, rec->image, e);
	if (sb->image_fd < 0 ||
	    cgroup_box_adopt(reg->tree, take_fd(dir_fd), sb->owner, sb->key, &reg->settings->limits,
			     reg->settings->limits_best_effort, reg->handed_over, &sb->box, ret_lost,
			     e) < 0)
		return -1;
	for (unsigned int i = 0; i < CGROUP_LEAVES; i++)
		sb->leaf[i].used = sb->box.leaf_fd[i] >= 0;
	return 0;
}

static void enlist(struct sandbox *sb, int pidfd, const struct cgroup_record *rec)
{
	sb->launch.pidfd = pidfd;
	sb->launched = true;
	sb->init.pid = rec->init_pid;
	sb->created_ns = rec->created_ns;
	sb->generation = rec->generation;
	if (sb->reg->generation < rec->generation)
		sb->reg->generation = rec->generation;
	sb->state = SANDBOX_READY;
	sb->reg->live++;
	registry_settle(sb);
}

static void give_back(struct sandbox *sb)
{
	store_label_done(&sb->label);
	close_fd(&sb->image_fd);
	cgroup_box_done(&sb->box);
	sandbox_free(sb);
}

struct adoption {
	struct registry *reg;
	const char *owner, *key;
	const struct idrange *ids;
	int dir_fd; /* held; -1 once a box owns it */
	struct cgroup_record rec;
	struct lost lost;
};

static struct sandbox *new_sandbox(struct adoption *a, struct err *e)
{
	struct store_label label;
	struct sandbox *sb;

	if (a->reg->live >= a->reg->settings->max_sandboxes && !a->reg->handed_over) {
		(void)err_set(e, ERR_LIMIT, "there are %u sandboxes already", a->reg->live);
		return NULL;
	}
	if (store_label_open(a->reg->store, a->ids, a->owner, a->key, false, &label, NULL, e) < 0)
		return NULL;
	sb = sandbox_new(a->reg, a->ids, &label);
	if (!sb) {
		store_label_done(&label);
		(void)err_set(e, ERR_NOMEM, "no memory");
	}
	return sb;
}

static int take_over(struct adoption *a, struct err *e)
{
	_cleanup_fd_ int pidfd = -1;
	struct sandbox *sb;
	uint32_t lost = 0;

	a->ids = owners_ids(a->reg->owners, a->owner, false, e);
	if (!a->ids)
		return -1;
	pidfd = adopt_look(a->reg->settings, a->owner, a->ids, a->dir_fd, &a->rec, e);
	sb = pidfd < 0 ? NULL : new_sandbox(a, e);
	if (!sb)
		return -1;
	if (fill(sb, &a->dir_fd, &a->rec, &lost, e) < 0 ||
	    loop_add(a->reg->loop, &sb->init_watch, pidfd, EPOLLIN, on_init_ended, sb, e) < 0) {
		give_back(sb);
		return -1;
	}
	sb->launch.pid = a->rec.init_pid;
	sb->launch.pidfd = pidfd;
	if (registry_net_adopt(sb, a->rec.uplink, e) < 0 || egress_attach(sb, e) < 0) {
		loop_remove(&sb->init_watch);
		egress_detach(sb);
		(void)registry_net_detach(sb);
		net_close_sockets(sb->launch.socket);
		sb->launch.pidfd = -1;
		give_back(sb);
		return -1;
	}
	enlist(sb, take_fd(&pidfd), &a->rec);
	a->lost.commands = lost + a->rec.lost;
	a->lost.unanswered = a->rec.unanswered;
	lost_add(a->reg, a->owner, a->key, a->lost);
	sandbox_write_record(sb);
	log_info("%s: taken over, %u commands lost", a->key, a->lost.commands);
	return 0;
}

static void refuse(struct adoption *a, const struct err *why)
{
	log_warn("%s: left by another keeper and not taken over: %s", a->key, why->message);
	/* What its keepers could not tell goes with its record: the label still hears of it. */
	a->lost.commands += a->rec.lost;
	a->lost.unanswered = a->rec.unanswered;
	lost_add(a->reg, a->owner, a->key, a->lost);
	if (a->dir_fd < 0) /* given to a box that failed half way */
		a->dir_fd = cgroup_box_hold(a->reg->tree, a->owner, a->key);
	if (a->dir_fd < 0 || cgroup_box_clear(a->reg->tree, take_fd(&a->dir_fd), a->owner, a->key) < 0)
		log_warn("%s: its cgroup is still there: %s", a->key, strerror(errno));
}

static void adopt_one(const char *owner, const char *key, void *ctx)
{
	struct adoption a = { .reg = ctx, .owner = owner, .key = key };
	struct err why = { 0 };

	a.dir_fd = cgroup_box_hold(a.reg->tree, owner, key);
	if (a.dir_fd < 0)
		return; /* a living keeper's, or gone */
	a.lost.commands = cgroup_box_marks(a.dir_fd);
	if (take_over(&a, &why) < 0)
		refuse(&a, &why);
	close_fd(&a.dir_fd);
}

void adopt_all(struct registry *reg)
{
	cgroup_each_box(reg->tree, adopt_one, reg);
}
