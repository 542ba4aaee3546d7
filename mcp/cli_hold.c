/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_hold.c - the process that keeps a unit, and so its cgroup, alive
 *
 * Runs as the unit's user and does nothing. A cgroup that gives limits to its children holds no process of
 * its own, and systemd before 254 cannot start one in a child, so this one moves before it says (by its
 * parent's end: Type=forking) that it is there.
 */
#include "mcp/cli_hold.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "mcp/cli.h"
#include "runtime/base/cleanup.h"
#include "runtime/cgroup.h"

static void __attribute__((noreturn)) hold(void)
{
	(void)setsid();
	(void)!chdir("/");
	for (;;)
		(void)pause(); /* SIGTERM has its default effect */
}

int cli_hold(void)
{
	struct cgroup_tree tree = { .root_fd = -1 };
	const char *setting = getenv("SANDBOX_CGROUP"); /* the unit's own, where the unit knows its name */
	struct err e = { 0 };
	int r = cgroup_acquire(&tree, setting ? setting : "", true, &e);
	pid_t pid;

	/* What is missing is the keeper's to judge; having no tree at all is not. */
	if (r != 0 || tree.root_fd < 0) {
		if (r > 0 || e.code == ERR_NONE)
			(void)err_set(&e, ERR_HOST, "this unit's cgroup is not delegated: Delegate=yes is missing");
		cli_print_error(&e);
		return CLI_FAILURE;
	}
	close_fd(&tree.root_fd); /* not cgroup_tree_done(): the tree is meant to stay */
	pid = fork();
	if (pid == 0)
		hold();
	if (pid > 0)
		return CLI_OK;
	(void)err_sys(&e, "fork");
	cli_print_error(&e);
	return CLI_FAILURE;
}
