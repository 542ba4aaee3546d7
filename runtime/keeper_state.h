/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/keeper_state.h - the keeper itself, shared by keeper.c and keeper_service.c */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/accept.h"
#include "runtime/keeper.h"
#include "runtime/owners.h"
#include "runtime/peer.h"
#include "runtime/reap.h"
#include "runtime/registry.h"
#include "runtime/seccomp.h"
#include "runtime/store.h"
#include "runtime/tokens.h"

struct keeper {
	const struct keeper_start *start;
	const struct settings *settings;
	struct loop *loop;
	struct reaper reaper;
	struct store store;
	struct owners owners;
	struct token_table tokens;
	uint8_t session_key[API_TOKEN_HASH_LEN];
	struct seccomp_program filter;
	struct enter_rights rights, user_rights;
	struct registry registry;
	struct peers peers;
	struct peer *main_peer; /* its end is our end */
	struct acceptor listen;
	struct loop_source signals;
	struct loop_timer deadline;
	struct err failure; /* code ERR_NONE, or why there can be no sandbox */
	bool ending;
	int home_lock;                /* KEEPER_SERVICE */
	char program[PATH_MAX];       /* KEEPER_SERVICE: where it was executed from */
	struct loop_timer renewal;    /* KEEPER_SERVICE: until it is quiet enough to be executed again */
	uint64_t renewal_until_ns;
	struct loop_timer front_retry; /* KEEPER_SERVICE */
	struct reap_child front;       /* when it is our child */
	bool front_killed;             /* KEEPER_STDIO: it did not end by itself */
	uint64_t front_since_ns, front_delay_ms;
};

void keeper_say_hello(struct keeper *k, struct peer *p);
void keeper_send_tokens(struct keeper *k); /* to the front */

/* keeper_watch_front() - the front's process, 0 when it is not our child. */
void keeper_watch_front(struct keeper *k, pid_t pid);

/* keeper_replace_front() - it is gone: start another. What it was doing goes on. */
void keeper_replace_front(struct keeper *k);

/* keeper_remember_program() - while its name still leads to the file that runs. */
void keeper_remember_program(struct keeper *k);

/* keeper_renew() - execute the file that has this name now, as soon as it is quiet enough. */
void keeper_renew(struct keeper *k);

/* keeper_take_handover() - what this process was doing before it did that. */
void keeper_take_handover(struct keeper *k);
