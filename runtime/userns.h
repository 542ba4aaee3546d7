/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/userns.h - id ranges, the storage namespace S, and the maps of sandboxes
 *
 * Two modes, one code path. An ordinary user's keeper makes a storage namespace S once (newuidmap:
 * 0 -> the user, 1.. -> the subordinate range) and re-executes itself inside as S's root, so that
 * its memory belongs to S. A root keeper stays in the initial namespace and works with a 65536-id
 * block; "base" is 0 inside S and the block's first id otherwise. Everything else is equal.
 *
 * Ids, relative to base:  1..15 ours (front 1, proxy 2, helpers 3), 16.. the sandbox's root and on.
 * Sandbox map: inside 0 -> base+16 for 60000 ids, inside 65534 -> base+60016. Neither the server's
 * own id nor host root is ever mapped inside.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/err.h"

enum {
	ID_FRONT = 1,
	ID_PROXY = 2,
	ID_HELPER = 3,
	ID_SANDBOX_ROOT = 16,
	ID_SANDBOX_COUNT = 60000,
	ID_SANDBOX_NOBODY = 60016, /* inside 65534 */
	ID_BLOCK = 65536,
	ID_USER_INSIDE = 1000,    /* the ordinary user, where a sandbox may write that user's folder */
};

/* In the environment between the two executions; no setting, so not named like one. */
#define USERNS_STORAGE_MARKER "_MCP_SANDBOX_STORAGE"

struct idrange {
	uint32_t base;      /* as seen by this process */
	bool in_storage;    /* this process is root of S (ordinary user) */
	int storage_ns_fd;  /* root mode: a user namespace mapping the block, for helpers; else -1 */
	int lower_ns_fd;    /* root mode, any block but the first: a user namespace that shows the ids of the
			     * first block, which image trees carry, as this one's; else -1 */
};

/* userns_enter_storage() - the ordinary user's way in; called by main() before anything else.
 *
 * As root: nothing to do, returns 0. Already re-executed inside S: returns 0. Otherwise looks for
 * a live sandbox of this user below cgroup_root_fd (-1: none) and re-enters its S, else makes one
 * with newuidmap/newgidmap over the range of subid_setting ("" = /etc/subuid), unshares the mount
 * namespace and re-executes argv; does not return on success.
 * Return: 0, -1 (remedy names the package, the file and the exact line to add). */
int userns_enter_storage(int cgroup_root_fd, const char *subid_setting, char **argv,
			 struct err *e);

/* userns_range_init() - this process's id range. In root mode the block comes from subid_setting,
 * else from mcp-sandbox's line in /etc/subuid, else it is a fixed block in the range systemd reserves
 * for containers; block_index selects one block per owner. (Not root's line: it belongs to other
 * container programs, and installing one of those must not make our stored trees unreadable.) */
int userns_range_init(struct idrange *r, const char *subid_setting, uint32_t block_index,
		      struct err *e);

/* userns_block_index() - which block starts at base; inside S there is one, 0. Return: 0, -1 (it is not
 * the start of a block of this range). */
int userns_block_index(const char *subid_setting, uint32_t base, uint32_t *ret, struct err *e);
void userns_range_done(struct idrange *r);

/* userns_explain_refusal() - after an error by which hosts refuse namespaces: find the setting that
 * did it and add it as the remedy. Return: -1 always. */
int userns_explain_refusal(int error, struct err *e);

/* userns_explain_refusal_at() - the same with /proc/sys as a descriptor, for tests. */
int userns_explain_refusal_at(int proc_sys_fd, int error, struct err *e);

/* userns_write_maps() - uid_map and gid_map of a child just cloned with CLONE_NEWUSER. */
int userns_write_maps(const struct idrange *r, pid_t child, struct err *e);

/* userns_check_sandbox() - whether the user namespace of a process is a child of ours with a sandbox's
 * maps over this range. Return: 0, -1. */
int userns_check_sandbox(const struct idrange *r, pid_t pid, struct err *e);

/* userns_write_user_maps() - the same for a sandbox with a folder its ordinary user may write: that
 * user, who is no other id's owner then, is ID_USER_INSIDE there. Needs: the storage namespace. */
int userns_write_user_maps(const struct idrange *r, pid_t child, struct err *e);

/* userns_write_remover_maps() - a sandbox's ids and, in the storage namespace, the user's own, which
 * may have written to a layer. For a worker that is shut up in the trash. */
int userns_write_remover_maps(const struct idrange *r, pid_t child, struct err *e);

/* userns_idmap() - a user namespace for an idmapped mount that shows what uid and gid own as the
 * sandbox root's, and nothing else as anybody's. Return: a descriptor, -1. */
int userns_idmap(const struct idrange *r, uint32_t uid, uint32_t gid, struct err *e);

struct subid_range {
	uint32_t first, count;
};

/* userns_parse_subid() - the first usable line (count >= ID_BLOCK - 1) for a user, by name or by
 * own_uid's number, in the text of /etc/subuid. A line of that user with a missing field, a number
 * that is overlong, signed or overflows, or a range that contains 0 or own_uid, is an error; lines of
 * others are not looked at. Return: 1 found, 0 none, -1. */
int userns_parse_subid(const char *text, const char *user, uint32_t own_uid,
		       struct subid_range *ret, struct err *e);

/* userns_parse_subid_setting() - "first:count" under the same rules. Return: 0, -1. */
int userns_parse_subid_setting(const char *text, uint32_t own_uid, struct subid_range *ret,
			       struct err *e);

/* userns_find_subid() - the setting when there is one, else the user's line in file (/etc/subuid or
 * /etc/subgid); the remedy names the exact line to add. Return: 0, -1. */
int userns_find_subid(const char *file, const char *setting, const char *user, uint32_t own_uid,
		      struct subid_range *ret, struct err *e);
