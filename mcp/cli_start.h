/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_start.h - from parsed settings to a process that may make sandboxes */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "mcp/cli.h"
#include "runtime/cgroup.h"
#include "runtime/project.h"
#include "runtime/userns.h"

struct start {
	struct settings settings;
	struct cgroup_tree cgroup;
	struct idrange ids;
	struct projects projects; /* --mount */
	struct trust trust;       /* SANDBOX_EXTRA_CA */
	bool have_ids;
};

/* start_settings() - settings of a call, checked against what this version can do; names the process
 * in the log. */
int start_settings(struct cli_call *call, struct start *s, struct err *e);

/* start_host() - cgroup, ids, folders of --mount, capabilities, in that order. An ordinary user's process is re-executed on
 * the way (in a delegated scope, then as root of the storage namespace) and comes here again.
 * Return: 0, -1. */
int start_host(struct cli_call *call, struct start *s, struct err *e);
void start_done(struct start *s);

/* start_ids() - its second step alone, for verbs that touch files of sandboxes but make none. */
int start_ids(struct cli_call *call, struct start *s, struct err *e);

/* start_policy() - what the word "apt" in the allowlist stands for: read from the image. Included in
 * start_place(). Needs: ids. */
int start_policy(struct start *s, struct err *e);

/* start_place(), start_cut() - its two halves: what needs capabilities that a keeper does not keep comes
 * between them. */
int start_place(struct cli_call *call, struct start *s, struct err *e);
int start_cut(struct start *s, struct err *e);

enum front_kind { FRONT_STDIO, FRONT_HTTP };

/* start_front() - run the front over a new socket. Return: our end, -1. *ret_pid is our child. */
int start_front(const struct start *s, enum front_kind kind, pid_t *ret_pid, struct err *e);

/* start_keeper_once() - fork a keeper that serves the returned socket, then ends. */
int start_keeper_once(const struct start *s, pid_t *ret_pid, struct err *e);
