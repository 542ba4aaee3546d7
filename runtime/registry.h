/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/registry.h - the table of sandboxes and the life of each
 *
 *   queued -> creating -> ready -> stopping -> (gone)
 *
 * A sandbox has an entry, and its label's lock, from the moment it is wanted until its last process,
 * cgroup and mount are gone. Every step is driven by an event: the creation status pipe, a child
 * reaped, a timer. Nothing waits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/api.h"
#include "runtime/cgroup.h"
#include "runtime/enter.h"
#include "runtime/launch.h"
#include "runtime/lost.h"
#include "runtime/output.h"
#include "runtime/owners.h"
#include "runtime/peer.h"
#include "runtime/reap.h"
#include "runtime/net_uplink.h"
#include "runtime/scan.h"
#include "runtime/store.h"
#include "runtime/tokens.h"
#include "runtime/userns.h"

struct command;
struct egress;
struct egress_box;
struct registry;

enum sandbox_state { SANDBOX_QUEUED, SANDBOX_CREATING, SANDBOX_READY, SANDBOX_STOPPING };

struct key_op { /* STOP, RESET or REMOVE, carried out when the sandbox is gone, under its lock */
	struct request req;
	bool workspace;
	bool was_running;
	struct err error; /* of carrying it out */
	struct key_op *next;
};

struct leaf_use {
	uint32_t commands; /* running in it */
	bool used;         /* something may be left in it */
	uint64_t last_ns;
};

struct sandbox {
	struct registry *reg;
	struct sandbox *next_in_bucket, *next, **link;
	char owner[OWNER_ID_LEN + 1];
	char key[KEY_MAX];
	const struct idrange *ids; /* its owner's */
	enum sandbox_state state;
	struct store_label label;
	int image_fd; /* its lock keeps the image from being removed while the sandbox stands on it */
	struct cgroup_box box;
	struct launch launch;
	struct loop_source status; /* creation; fd -1 when not watched */
	struct loop_timer timer;   /* creation deadline, idle time, teardown steps */
	struct reap_child init;
	struct loop_source init_watch; /* an adopted pid 1 is no child of ours: its pidfd is watched */
	struct loop_source device;    /* is its network served yet? fd -1 when not watched */
	struct reap_child tool;       /* the guard of a user-mode uplink */
	int tool_hold;                /* that one lives while it is open */
	struct loop_timer tool_retry;
	uint64_t tool_started_ns;
	uint32_t tool_failures; /* in a row */
	uint64_t created_ns, idle_since_ns, stop_deadline_ns, generation;
	struct err why; /* why it is being stopped */
	bool overdue;   /* teardown has passed its deadline; said once */
	bool launched;  /* pid 1 was started */
	bool scan_told; /* a result has said what the scan of the folders found */
	uint32_t joiners; /* short-lived processes of ours inside its namespaces */
	struct command *commands; /* waiting, starting and running */
	struct key_op *ops;
	struct output_logs logs;
	struct egress_box *egress; /* its sockets at the egress proxy; NULL: none */
	struct output *drains; /* pipes of background work */
	uint32_t drain_count;
	struct leaf_use leaf[CGROUP_LEAVES];
};

struct registry_hooks {
	void (*ready)(struct sandbox *sb);    /* commands may start */
	void (*stopping)(struct sandbox *sb); /* why says the reason; waiting commands are refused now */
	void (*gone)(struct sandbox *sb);     /* every process is dead: what is left is answered now */
	/* the entry is freed: whoever had to wait for it (list) is placed again */
	void (*released)(struct registry *reg, struct command *waiting);
	void (*empty)(struct registry *reg); /* closing, and the last one is gone */
	int (*read_tokens)(struct registry *reg, struct err *e); /* the file has changed; NULL: not served */
	void (*serving)(struct registry *reg, bool refused); /* the front says so; NULL: not of interest */
};

enum { REGISTRY_BUCKETS = 64 };

struct registry {
	struct loop *loop;
	struct reaper *reaper;
	const struct settings *settings;
	struct store *store;
	struct owners *owners;
	const struct token_table *tokens; /* whom a front may act for; NULL: for settings->owner alone */
	const struct cgroup_tree *tree;
	const struct enter_rights *rights;
	const struct enter_rights *user_rights; /* of commands that run as ID_USER_INSIDE */
	struct projects *projects;		/* the operator's folders; never NULL */
	struct scan scan;			/* of those folders */
	struct uplink uplink;
	struct loop_source net_watch; /* the host's addresses; fd -1: not followed */
	struct loop_timer net_settle;
	struct egress *egress; /* the owners' proxies (egress.h); NULL: none yet */
	int null_fd; /* /dev/null, read-only: the commands' standard input */
	struct registry_hooks hooks;
	void *owner;
	struct sandbox *bucket[REGISTRY_BUCKETS];
	struct sandbox *all; /* newest first */
	uint32_t queued, live, stopping; /* live: creating or ready */
	uint64_t generation;
	bool closing; /* nothing new */
	bool handed_over; /* commands of the keeper before us, which was this process, go on */
	bool paused;   /* nothing is begun: a handover is near (handover.h) */
	bool survives; /* sandboxes outlive this keeper: the next one adopts them (adopt.h) */
	struct lost_notes lost;
	struct reap_child sweeper; /* one at a time: two would take each other's names away */
	size_t sweep_next; /* which owner's turn it is: 0 the default's, then owners->range[] */
	bool sweep_again;
};

struct sandbox *registry_find(struct registry *reg, const char *owner, const char *key);

/* registry_has_owner() - has this owner a sandbox, in whatever state? ctx is the registry. */
bool registry_has_owner(const char *owner, void *ctx);

/* registry_get() - the sandbox of a label, in whatever state; wanted sets it going when there is none,
 * making room among the idle ones. *ret_created tells that this call did.
 * Return: the sandbox, NULL (label in use, all busy, disk almost full, ...). */
struct sandbox *registry_get(struct registry *reg, const char *owner, const char *key,
			     bool *ret_created, struct err *e);

/* registry_stop() - kill everything in it and tear it down. why is what commands in flight are told. */
void registry_stop(struct sandbox *sb, const struct err *why);

/* registry_step() - a process of ours has left the sandbox: go on with a teardown under way. */
void registry_step(struct sandbox *sb);

/* registry_busy() - a command was attached: the idle time is over. */
void registry_busy(struct sandbox *sb);

/* registry_settle() - a command has ended: the idle time starts when it was the last. */
void registry_settle(struct sandbox *sb);

/* registry_key_op() - stop, then reset or remove, then answer. Return: 0 (answered now or later),
 * -1 (the caller answers). */
int registry_key_op(struct registry *reg, struct key_op *op, const char *owner, const char *key,
		    struct err *e);

/* registry_sweep() - have the trash emptied by a worker. */
void registry_sweep(struct registry *reg);

/* registry_close() - stop every sandbox; registry_is_empty() when all are gone, and the trash worker. */
void registry_close(struct registry *reg, const struct err *why);

/* registry_leave() - this keeper ends, its sandboxes do not. Commands without an answer are killed now:
 * there is nobody to read what they write or to end them in time. Their marks stay for the next keeper. */
void registry_leave(struct registry *reg);
bool registry_is_empty(const struct registry *reg);

enum api_state sandbox_api_state(const struct sandbox *sb);

/* sandbox_connected() - its network leads somewhere: commands may start. */
void sandbox_connected(struct sandbox *sb);

/* Shared by registry.c, registry_end.c and adopt.c. */
void sandbox_set_state(struct sandbox *sb, enum sandbox_state state);
void sandbox_set_timer(struct sandbox *sb, uint64_t delay_ms);
void sandbox_does_not_stop(const struct sandbox *sb, struct err *e);
struct sandbox *sandbox_new(struct registry *reg, const struct idrange *ids,
			    struct store_label *label);
void sandbox_free(struct sandbox *sb);
void sandbox_init_ended(struct sandbox *sb);   /* pid 1 is dead and reaped */
void sandbox_write_record(struct sandbox *sb); /* on its cgroup, for the keeper after us */
void registry_start_queued(struct registry *reg);
