/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/registry_net.c - the uplinks of running sandboxes
 *
 * Runs in the keeper. Input are events of the kernel: the host's addresses, a sandbox's own device, a
 * child's end.
 */
#include "runtime/registry_net.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/log.h"
#include "runtime/net_tool.h"

enum {
	SETTLE_MS = 200,     /* addresses come in bursts: an interface, its routes, IPv6 a little later */
	TOOL_RETRY_MS = 1000,
	TOOL_STEADY_MS = 60 * 1000, /* one that served so long has not failed from the start */
	TOOL_FAILURES_MAX = 5,
};

/* ---- following the host ---- */

static void follow(struct loop_timer *t)
{
	struct registry *reg = t->ctx;
	struct err e = { 0 };

	if (uplink_follow(&reg->uplink, &e) < 0) {
		log_error("the host's new addresses are not denied to running sandboxes: %s", e.message);
		return;
	}
	for (struct sandbox *sb = reg->all; sb; sb = sb->next) {
		int fd = sb->launch.socket[NET_SOCKET_ROUTE];

		if (fd >= 0 && net_has_device(sb->launch.inside.uplink) && uplink_follow_inside(&reg->uplink, fd) < 0)
			log_error("%s: the host's new addresses are not denied to it: %s", sb->key,
				  strerror(errno));
	}
}

static void on_host(struct loop_source *s, uint32_t events)
{
	struct registry *reg = s->ctx;

	(void)events;
	if (net_host_changed(s->fd) && reg->net_settle.deadline_ns == 0 &&
	    loop_timer_set(reg->loop, &reg->net_settle, SETTLE_MS, follow, reg) < 0)
		log_error("no memory for a timer");
}

int registry_net_start(struct registry *reg, enum net_mode mode, bool root, struct err *e)
{
	int fd;

	reg->net_watch.fd = -1;
	if (uplink_open(&reg->uplink, mode, root, e) < 0)
		return -1;
	if (mode == NET_INTERNET)
		log_info("sandboxes go out by %s%s%s", net_uplink_name(reg->uplink.kind),
			 reg->uplink.why_not[0] ? ": " : "", reg->uplink.why_not);
	if (reg->uplink.kind == NET_UPLINK_PROXY) /* what knows of proxies works, the rest has no network */
		log_warn("sandboxes reach the internet through the egress proxy only: %s; for more: apt-get "
			 "install %s", reg->uplink.why_not, root ? "slirp4netns" : "passt");
	if (!net_has_device(reg->uplink.kind))
		return 0;
	fd = net_host_watch(e);
	if (fd < 0)
		return -1;
	if (loop_add(reg->loop, &reg->net_watch, fd, EPOLLIN, on_host, reg, e) == 0)
		return 0;
	close_fd(&fd);
	return -1;
}

void registry_net_stop(struct registry *reg)
{
	int fd = reg->net_watch.fd;

	if (fd >= 0) {
		loop_timer_cancel(reg->loop, &reg->net_settle);
		loop_remove(&reg->net_watch);
		close_fd(&fd);
	}
	uplink_close(&reg->uplink);
}

/* ---- a user-mode uplink ---- */

static int start_tool(struct sandbox *sb, struct err *e);

/* Whoever it is that cannot be served is not worth a process each second for ever. */
static bool may_retry(struct sandbox *sb)
{
	uint64_t now = loop_now_ns();
	bool steady = now - sb->tool_started_ns > TOOL_STEADY_MS * UINT64_C(1000000);

	sb->tool_failures = steady ? 1 : sb->tool_failures + 1;
	return sb->tool_failures <= TOOL_FAILURES_MAX;
}

static void on_tool_retry(struct loop_timer *t)
{
	struct sandbox *sb = t->ctx;
	struct err e = { 0 };

	if (sb->state == SANDBOX_READY && start_tool(sb, &e) < 0)
		log_error("%s: its network is gone: %s", sb->key, e.message);
}

/* While the sandbox is being created that is the end of it. Later it is started again, and the
 * sandbox keeps its device, addresses and routes meanwhile. */
static void on_tool_ended(struct reap_child *c, struct reap_status status)
{
	struct sandbox *sb = c->ctx;
	const char *name = net_uplink_name(sb->reg->uplink.kind);
	struct err why = { 0 };

	close_fd(&sb->tool_hold);
	if (sb->state == SANDBOX_READY) {
		log_warn("%s: %s ended with status %d", sb->key, name, status.exit_code);
		if (!may_retry(sb))
			log_error("%s: has no network until it is stopped and used again", sb->key);
		else
			(void)loop_timer_set(sb->reg->loop, &sb->tool_retry, TOOL_RETRY_MS, on_tool_retry,
					     sb);
		return;
	}
	if (sb->state == SANDBOX_CREATING) {
		(void)err_set(&why, ERR_HOST, "start sandbox %s: %s ended with status %d", sb->key, name,
			      status.exit_code);
		(void)err_remedy(&why, "run mcp-sandbox doctor; SANDBOX_NET=allowlist needs no %s",
				 name);
		registry_stop(sb, &why);
	}
	registry_step(sb);
}

static int start_tool(struct sandbox *sb, struct err *e)
{
	struct registry *reg = sb->reg;
	pid_t pid = net_tool_start(reg->uplink.kind, reg->uplink.tool, &sb->launch.inside,
				   sb->launch.pid, &sb->tool_hold, e);

	if (pid < 0)
		return -1;
	sb->tool_started_ns = loop_now_ns();
	if (reap_watch(reg->reaper, &sb->tool, pid, on_tool_ended, sb) < 0)
		return err_set(e, ERR_SYSTEM, "%s is not our child", reg->uplink.tool);
	return 0;
}

static void on_device(struct loop_source *s, uint32_t events)
{
	struct sandbox *sb = s->ctx;
	struct err e = { 0 };
	int r = net_tool_serves(s->fd);

	(void)events;
	if (r == 0)
		return;
	loop_remove(&sb->device);
	if (r > 0) {
		sandbox_connected(sb);
		return;
	}
	(void)err_sys(&e, "start sandbox %s: watch its network device", sb->key);
	registry_stop(sb, &e);
}

int registry_net_attach(struct sandbox *sb, struct err *e)
{
	if (!net_has_tap(sb->launch.inside.uplink))
		return 1;
	if (loop_add(sb->reg->loop, &sb->device, sb->launch.socket[NET_SOCKET_ROUTE], EPOLLIN, on_device,
		     sb, e) < 0)
		return -1;
	return start_tool(sb, e) < 0 ? -1 : 0;
}

/* Its device is of the kind that its first keeper chose. */
int registry_net_adopt(struct sandbox *sb, uint32_t kind, struct err *e)
{
	struct uplink *u = &sb->reg->uplink;
	enum net_mode mode = net_grant_of(sb->reg->settings, sb->owner).mode;
	enum net_uplink way = uplink_kind(u, mode);
	unsigned int link = 0;

	if (kind != (uint32_t)way)
		return err_set(e, ERR_CONFIG, "the way out of sandboxes is another one now: %s",
			       net_uplink_name(way));
	sb->launch.inside = (struct net_inside){ .mode = mode, .uplink = way };
	if (!net_has_sockets(mode))
		return 0;
	if (net_rejoin_sockets(sb->launch.pidfd, net_uses_proxy(mode, way), &u->patient, sb->launch.socket,
			       e) < 0)
		return -1;
	/* A pair of interfaces has its number as long as it is there: net_veth_prepare() looks. */
	if (!net_has_tap(way))
		return 0;
	return uplink_prepare(u, mode, &sb->launch.inside, &link, e) < 0 ? -1 : start_tool(sb, e);
}

bool registry_net_detach(struct sandbox *sb)
{
	if (sb->device.fd >= 0)
		loop_remove(&sb->device);
	loop_timer_cancel(sb->reg->loop, &sb->tool_retry);
	close_fd(&sb->tool_hold);
	return sb->tool.pid == 0;
}
