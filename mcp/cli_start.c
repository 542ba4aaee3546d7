/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_start.c - the start-up order of everything that makes or touches sandboxes
 *
 * Runs as the user who started the program, then (ordinary user) as root of the storage namespace. The
 * cgroup comes first: the user's service manager, which lends it, does not know the storage
 * namespace's root. Both steps may re-execute this program; the settings travel in the environment,
 * because the env file's owner cannot be told from inside.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mcp/cli_start.h"
#include "mcp/cli_trust.h"
#include "mcp/front.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/log.h"
#include "runtime/base/str.h"
#include "runtime/caps.h"
#include "runtime/image_sources.h"
#include "runtime/keeper.h"
#include "runtime/net_policy.h"
#include "runtime/store.h"
#include "runtime/owners.h"

static enum log_level log_level_of(const struct config *c)
{
	static const enum log_level levels[] = { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO,
						 LOG_LEVEL_DEBUG };

	return levels[config_number(c, CONFIG_LOG)];
}

static int set_owner(struct settings *s, const char *owner, struct err *e)
{
	if (!owner)
		return 0;
	if (owner_parse(owner, s->owner, e) == 0)
		return 0;
	(void)err_set(e, ERR_USAGE, "--owner: not an owner");
	return err_remedy(e, "give the name of a token, an owner id, or leave it out for the default owner");
}

int start_settings(struct cli_call *call, struct start *s, struct err *e)
{
	*s = (struct start){ .cgroup.root_fd = -1, .trust.fd = -1, .ids = { .storage_ns_fd = -1, .lower_ns_fd = -1 } };
	if (config_settings(&call->config, &s->settings, e) < 0 ||
	    set_owner(&s->settings, cli_option(call, "owner"), e) < 0 ||
	    config_export(&call->config, e) < 0)
		return -1;
	log_init(call->verb->name, log_level_of(&call->config));
	return 0;
}

static int read_mounts(const struct cli_call *call, struct settings *s, struct err *e)
{
	if (call->repeated_count > PROJECT_MAX)
		return err_set(e, ERR_USAGE, "--mount: at most %d folders", PROJECT_MAX);
	if (call->repeated_count > 0 && s->profile == &profile_table[PROFILE_CHAT]) {
		err_set(e, ERR_CONFIG, "--mount: the profile chat shows no folder of this host");
		return err_remedy(e, "add --profile code");
	}
	for (size_t i = 0; i < call->repeated_count; i++) {
		if (project_parse(call->repeated[i], &s->projects[s->project_count], e) < 0)
			return -1;
		s->project_count++;
	}
	return 0;
}

static int start_cgroup(struct cli_call *call, struct start *s, struct err *e)
{
	bool best_effort = s->settings.limits_best_effort;
	int r = cgroup_acquire(&s->cgroup, s->settings.cgroup, best_effort, e);

	if (r <= 0)
		return r;
	return cgroup_reexec_scope(call->argv, e);
}

int start_ids(struct cli_call *call, struct start *s, struct err *e)
{
	if (userns_enter_storage(s->cgroup.root_fd, s->settings.subid, call->argv, e) < 0 ||
	    userns_range_init(&s->ids, s->settings.subid, 0, e) < 0)
		return -1;
	s->have_ids = true;
	return 0;
}

static bool uses_apt(const struct settings *s)
{
	if (s->net == NET_ALLOWLIST && net_policy_uses(s->net_allow, "apt"))
		return true;
	for (uint32_t i = 0; i < s->owner_net_count; i++) {
		struct net_grant grant = net_grant_of(s, s->owner_net[i].owner);

		if (grant.mode == NET_ALLOWLIST && net_policy_uses(grant.allow, "apt"))
			return true;
	}
	return false;
}

int start_policy(struct start *s, struct err *e)
{
	struct settings *set = &s->settings;
	struct store store;
	int r;

	if (!uses_apt(set))
		return 0;
	if (store_open(&store, set->home, e) < 0)
		return -1;
	r = image_apt_hosts(&store, &s->ids, set->image, set->net_apt_hosts, e);
	store_done(&store);
	return r;
}

static int start_trust(const struct cli_call *call, struct start *s, struct err *e)
{
	const char *path = config_text(&call->config, CONFIG_EXTRA_CA);

	if (path[0] == '\0')
		return 0;
	if (trust_open(path, &s->trust, e) < 0)
		return -1;
	s->settings.trust = &s->trust;
	return 0;
}

/* Whoever gives the number means it to hold. The default says nothing of the kind, and a host must not
 * be refused for it: its disk is kept from running full by SANDBOX_MIN_FREE. */
static int refuse_disk_limit(const struct settings *s, struct err *e)
{
	if (!s->disk_wanted || s->limits_best_effort)
		return 0;
	err_set(e, ERR_CONFIG, "cannot limit disk space: this version can hold no running sandbox to SANDBOX_DISK");
	return err_remedy(e, "give SANDBOX_DISK to \"workspace import\" only and leave the rest to SANDBOX_MIN_FREE, or "
			     "set SANDBOX_LIMITS=best-effort to run without this limit");
}

int start_place(struct cli_call *call, struct start *s, struct err *e)
{
	if (refuse_disk_limit(&s->settings, e) < 0 || read_mounts(call, &s->settings, e) < 0)
		return -1;
	if (start_cgroup(call, s, e) < 0 || start_ids(call, s, e) < 0)
		return -1;
	if (projects_open(&s->projects, &s->settings, &s->ids, e) < 0)
		return -1;
	return start_trust(call, s, e) < 0 ? -1 : start_policy(s, e);
}

int start_cut(struct start *s, struct err *e)
{
	return s->ids.in_storage ? 0 : caps_cut_keeper(e);
}

int start_host(struct cli_call *call, struct start *s, struct err *e)
{
	return start_place(call, s, e) < 0 ? -1 : start_cut(s, e);
}

void start_done(struct start *s)
{
	cgroup_tree_done(&s->cgroup);
	projects_done(&s->projects);
	trust_done(&s->trust);
	if (s->have_ids)
		userns_range_done(&s->ids);
	s->have_ids = false;
}

int cli_enter_state(struct cli_call *call, struct settings *ret, struct err *e)
{
	struct start s;

	if (start_settings(call, &s, e) < 0)
		return -1;
	*ret = s.settings;
	return userns_enter_storage(-1, s.settings.subid, call->argv, e);
}

static int make_socket_pair(int ret[2], struct err *e)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) < 0)
		return err_sys(e, "socket between keeper and front");
	return 0;
}

/* Child: only 0, 1, 2 and the socket survive, in an environment that holds no secret. */
static void __attribute__((noreturn)) exec_front(int sock, uint32_t id, enum front_kind kind)
{
	static const char *const kept[] = { "SANDBOX_LOG", "JOURNAL_STREAM" };
	char number[16], settings[ARRAY_SIZE(kept)][64];
	char transport[8];
	char *argv[] = { (char[]){ "mcp-sandbox" }, (char[]){ "@front" }, number, transport, NULL };
	char *env[ARRAY_SIZE(kept) + 1] = { NULL };
	size_t count = 0;
	sigset_t none;

	sigemptyset(&none); /* a keeper that runs already has its signals blocked */
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	snprintf(number, sizeof(number), "%u", id);
	snprintf(transport, sizeof(transport), "%s", kind == FRONT_HTTP ? "http" : "stdio");
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		const char *value = getenv(kept[i]);

		if (!value)
			continue;
		snprintf(settings[i], sizeof(settings[i]), "%s=%s", kept[i], value);
		env[count++] = settings[i];
	}
	/* dup3() refuses equal numbers, and then the close-on-exec flag must go. */
	if ((sock == FRONT_API_FD ? fd_set_cloexec(sock, false) : dup2(sock, FRONT_API_FD)) < 0)
		_exit(CLI_FAILURE);
	if (close_range(FRONT_API_FD + 1, UINT32_MAX, 0) < 0)
		_exit(CLI_FAILURE);
	execve("/proc/self/exe", argv, env);
	_exit(CLI_FAILURE);
}

/* The client's pipes belong to the front alone, or the client would never see them close. */
static int release_stdio(struct err *e)
{
	_cleanup_fd_ int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null_fd < 0)
		return err_sys(e, "/dev/null");
	if (dup2(null_fd, STDIN_FILENO) < 0 || dup2(null_fd, STDOUT_FILENO) < 0)
		return err_sys(e, "standard input and output");
	return 0;
}

int start_front(const struct start *s, enum front_kind kind, pid_t *ret_pid, struct err *e)
{
	uint32_t id = s->have_ids ? s->ids.base + ID_FRONT : FRONT_KEEP_ID;
	int pair[2];
	pid_t pid;

	if (make_socket_pair(pair, e) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		exec_front(pair[1], id, kind);
	close_fd(&pair[1]);
	if (pid < 0) {
		err_sys(e, "start the front");
		close_fd(&pair[0]);
		return -1;
	}
	if (release_stdio(e) < 0) {
		close_fd(&pair[0]);
		return -1;
	}
	*ret_pid = pid;
	return pair[0];
}

static void __attribute__((noreturn)) run_keeper_once(const struct start *s, int sock)
{
	struct projects projects = s->projects;
	struct keeper_start start = {
		.settings = &s->settings,
		.cgroup = &s->cgroup,
		.ids = &s->ids,
		.projects = &projects,
		.kind = KEEPER_ONCE,
		.peer_fd = sock,
	};
	struct err e = { 0 };
	int status;

	/* Ctrl-C at the terminal is for the client, which passes it on to the command. */
	(void)setsid();
	log_init("keeper", LOG_LEVEL_WARN);
	if (release_stdio(&e) < 0)
		_exit(CLI_FAILURE);
	status = keeper_run(&start, &e);
	_exit(status < 0 ? CLI_FAILURE : status);
}

int start_keeper_once(const struct start *s, pid_t *ret_pid, struct err *e)
{
	int pair[2];
	pid_t pid;

	if (make_socket_pair(pair, e) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		close_fd(&pair[0]);
		run_keeper_once(s, pair[1]);
	}
	close_fd(&pair[1]);
	if (pid < 0) {
		err_sys(e, "start a keeper");
		close_fd(&pair[0]);
		return -1;
	}
	*ret_pid = pid;
	return pair[0];
}
