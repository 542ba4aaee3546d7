/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/handover_rows.h - the memory file of a handover; handover.c writes it, handover_take.c reads it
 *
 *   head, int32_t descriptors[head.fd_count], padding to eight bytes, peers, commands, drains, notes
 *
 * The head and the descriptors never change their layout, so that a program which does not know the rest
 * can at least close them.
 */
#pragma once

#include <stdint.h>

#include "runtime/exec.h"
#include "runtime/lost.h"
#include "runtime/output.h"

enum {
	HANDOVER_MAGIC = 0x4d435048,
	HANDOVER_VERSION = 1,
	HANDOVER_MAX = 64 * 1024 * 1024, /* bytes of the whole file */
};

struct handover_head {
	uint32_t magic, fd_count;
	uint32_t version, layout; /* layout: sizes of the rows, so that no build takes another's */
	uint32_t lock_count;      /* of the descriptors, the first ones */
	uint32_t peers, commands, drains, notes, listen_count;
	int32_t listen_fds[FD_PASS_MAX];
};

struct handover_peer {
	int32_t fd;
	uint32_t kind, is_main;
	int32_t pid; /* of the main peer's process; 0: not our child */
};

struct handover_command {
	char owner[OWNER_ID_LEN + 1];
	char key[KEY_MAX];
	int32_t peer; /* row; -1: nobody waits */
	uint32_t orphaned;
	uint64_t request_id;
	uint32_t mode, exec_flags, flags, state, replaced;
	uint64_t timeout_ms, started_ns, ended_ns, settle_until_ns, deadline_ns;
	int32_t leaf, pid;
	uint32_t exited;
	struct reap_status exit;
	struct cgroup_evidence before;
	uint32_t has_out;
	struct output_state out;
	/* what a command that has not been started needs */
	int32_t text_fd;
	uint32_t text_in_file; /* it stays there: longer than one argument */
	uint64_t text_len;
	char cwd[API_CWD_MAX + sizeof("/workspace/")];
};

struct handover_drain {
	char owner[OWNER_ID_LEN + 1];
	char key[KEY_MAX];
	struct output_state out;
};

static inline size_t handover_pad(size_t len)
{
	return -len % sizeof(uint64_t);
}

static inline uint32_t handover_layout(void)
{
	return (uint32_t)(sizeof(struct handover_peer) * 31 + sizeof(struct handover_command) * 17 +
			  sizeof(struct handover_drain) * 7 + sizeof(struct lost_note)) ^
	       (uint32_t)API_VERSION << 28;
}
