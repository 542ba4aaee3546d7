/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/spec.c - the profile table
 *
 * Policy as data: a profile is what a sandbox may be at most. The operator's settings replace single
 * limits before the keeper starts; no request can. Help and README are generated from this table.
 */
#include "runtime/spec.h"

#include <stddef.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

const struct profile profile_table[PROFILE_COUNT] = {
	[PROFILE_CHAT] = {
		.name = "chat",
		.limits = { .memory_bytes = 1 * GIB, .cpu_milli = 2000, .pids = 256,
			    .disk_bytes = 10 * GIB },
		.max_sandboxes = 2,
		.timeout_default_s = 120,
		.net = NET_INTERNET,
		.layer_kept = true,
		.tmp_bytes = 256 * MIB, .shm_bytes = 64 * MIB, .run_bytes = 32 * MIB,
		.caps = SANDBOX_CAPS,
		.login_shell = true,
	},
	[PROFILE_CODE] = {
		.name = "code",
		.limits = { .memory_bytes = 1 * GIB, .cpu_milli = 2000, .pids = 256,
			    .disk_bytes = 10 * GIB },
		.max_sandboxes = 8,
		.timeout_default_s = 120,
		.net = NET_NONE,
		.layer_kept = true,
		.tmp_bytes = 256 * MIB, .shm_bytes = 64 * MIB, .run_bytes = 32 * MIB,
		.caps = SANDBOX_CAPS,
		.login_shell = true,
	},
	[PROFILE_SAFE_SHELL] = {
		.name = "safe-shell",
		.limits = { .memory_bytes = 512 * MIB, .cpu_milli = 500, .pids = 64,
			    .disk_bytes = 10 * GIB },
		.max_sandboxes = 8,
		.timeout_default_s = 15,
		.net = NET_NONE,
		.layer_kept = false,
		.workspace_tmpfs_bytes = 64 * MIB,
		.tmp_bytes = 64 * MIB, .shm_bytes = 16 * MIB, .run_bytes = 8 * MIB,
		.tmp_noexec = true,
		.caps = 0,
		.login_shell = false,
	},
};

const struct profile *profile_find(const char *name)
{
	for (size_t i = 0; i < PROFILE_COUNT; i++) {
		if (strcmp(profile_table[i].name, name) == 0)
			return &profile_table[i];
	}
	return NULL;
}

const struct owner_net *owner_net_find(const struct owner_net *rows, uint32_t count, const char *owner)
{
	for (uint32_t i = 0; i < count && i < OWNER_NET_MAX; i++) {
		if (strcmp(rows[i].owner, owner) == 0)
			return &rows[i];
	}
	return NULL;
}

struct net_grant net_grant_of(const struct settings *s, const char *owner)
{
	const struct owner_net *row = owner_net_find(s->owner_net, s->owner_net_count, owner);

	if (!row)
		return (struct net_grant){ s->net, s->net_allow };
	return (struct net_grant){ (enum net_mode)row->net, row->has_allow ? row->allow : s->net_allow };
}
