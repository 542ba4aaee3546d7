/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/launch.h - create a sandbox: one readable list of steps
 *
 * The keeper clones pid 1 into new user, mount, pid, network, IPC, UTS and cgroup namespaces and its
 * own cgroup leaf; the child builds its root and becomes runtime/init. Nothing here waits: readiness
 * is the end of file of the status pipe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/err.h"
#include "runtime/enter.h"
#include "runtime/net.h"
#include "runtime/net_uplink.h"
#include "runtime/project.h"
#include "runtime/spec.h"
#include "runtime/userns.h"

enum launch_stage {
	LAUNCH_PREPARE = 1, /* keeper: clone the trees, build pid 1's file and the network plan */
	LAUNCH_CLONE,
	LAUNCH_SESSION, /* dumpable 0, setsid, host name */
	LAUNCH_MAPS,    /* keeper: id maps; the child waits for them */
	LAUNCH_UPLINK,  /* keeper: the pair of interfaces, where it has one */
	LAUNCH_IDS,     /* sandbox root, no groups; session keyring */
	LAUNCH_PRIVATE, /* / recursively private */
	LAUNCH_SCRATCH,
	LAUNCH_TRUST, /* further certificates */
	LAUNCH_OVERLAY,
	LAUNCH_TARGETS, /* mount points by single-component openat2 */
	LAUNCH_PROC,
	LAUNCH_DEV,
	LAUNCH_TMPFS,
	LAUNCH_WORKSPACE,
	LAUNCH_OUTPUT,
	LAUNCH_PROC_SYS, /* keep a descriptor of /proc/sys */
	LAUNCH_TAP, /* the device a user-mode uplink attaches to */
	LAUNCH_NET, /* addresses, denied ranges, default route */
	LAUNCH_SOCKETS, /* made inside, sent to the keeper: net.h */
	LAUNCH_MASKS,
	LAUNCH_PIVOT,
	LAUNCH_RESOLVER, /* /etc/resolv.conf, where there is a network */
	LAUNCH_COUNTS, /* namespace, inotify and fanotify counts */
	LAUNCH_CLOSE,
	LAUNCH_TETHER, /* die with the keeper, where asked for */
	LAUNCH_RIGHTS,
	LAUNCH_EXEC,
	LAUNCH_STAGE_COUNT,
};

struct launch_request {
	const char *key; /* also the host name */
	const struct profile *profile;
	const struct idrange *ids;
	struct uplink *uplink; /* NULL: none, whatever the mode */
	enum net_mode net;     /* at most the uplink's */
	int lower_fd;     /* the image's root directory */
	int layer_fd;     /* directory holding upper/ and work/; -1: read-only root */
	int workspace_fd; /* -1: tmpfs of the profile */
	int output_fd;    /* read-only /output; -1: none */
	struct projects *projects; /* folders of the operator; NULL: none */
	const struct trust *trust; /* further certificate authorities; NULL: none */
	int cgroup_fd;    /* the init leaf; -1: none */
	uint32_t pids;    /* for the per-user-namespace counts */
	bool die_with_keeper; /* PR_SET_PDEATHSIG: stdio and one-shot keepers */
	const struct enter_rights *rights;
};

struct launch {
	pid_t pid;
	int pidfd;
	int status_fd; /* poll for input; hand every wake-up to launch_progress() */
	struct uplink *uplink;
	unsigned int link; /* what was taken from it */
	struct net_inside inside; /* what it was given */
	int channel_fd; /* the child sends its sockets through it; -1: it has none */
	int socket[NET_SOCKET_COUNT]; /* when ready; -1: not there, or taken by its server */
	uint32_t replaced;
	bool announced; /* the child is past its last step but execve itself */
};

/* What a struct launch is before launch_start() has filled it in: launch_done() closes nothing. */
#define LAUNCH_INIT                                                                                \
	{                                                                                          \
		.pid = -1, .pidfd = -1, .status_fd = -1, .channel_fd = -1,                         \
		.socket = { -1, -1, -1, -1 },                                                      \
	}
_Static_assert(NET_SOCKET_COUNT == 4, "LAUNCH_INIT names every socket");

/* launch_start() - clone, write the maps, let the child go. Never waits for a child that goes on: on
 * failure the child is killed and reaped here, and nothing is left. */
int launch_start(const struct launch_request *req, struct launch *ret, struct err *e);

/* launch_progress() - read the status pipe. Return: 1 ready (pid 1 has executed), 0 not yet, -1 failed
 * (the error says which step and what to do; the caller kills by pidfd and reaps). */
int launch_progress(struct launch *l, struct err *e);
void launch_done(struct launch *l); /* closes descriptors only */

/* launch_stage_text() - the step's name for errors and fault-injection tests. */
const char *launch_stage_text(uint32_t stage);

/* launch_explain() - a failed step as a sentence with a remedy. object: what the step was at, or "".
 * Return: -1 always. */
int launch_explain(const struct enter_status *status, const char *object, struct err *e);

/* launch_fault() - fault injection: the errno a step is to fail with, 0 for none. Only the test
 * program that is built with LAUNCH_FAULT_TEST has one to call. */
#ifdef LAUNCH_FAULT_TEST
int launch_fault(uint32_t stage);
#else
static inline int launch_fault(uint32_t stage)
{
	(void)stage;
	return 0;
}
#endif
