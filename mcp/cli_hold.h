/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_hold.h - "@hold": what mcp-sandbox-pods.service runs */
#pragma once

/* cli_hold() - make the unit's own cgroup the tree that sandboxes live in, then leave a process behind that
 * pauses there. Return: exit status of the process that was started, once the tree can be used. */
int cli_hold(void);
