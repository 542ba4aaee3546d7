/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/control.h - run/<pid>.sock: the door for command lines of the same user */
#pragma once

#include <sys/types.h>

#include "runtime/base/accept.h"
#include "runtime/base/err.h"
#include "runtime/keeper.h" /* keeper_connect() */

/* control_listen() - bind run/<our pid>.sock, 0600; removes sockets of keepers that are dead.
 * Return: listening socket (non-blocking), -1. */
int control_listen(int run_fd, struct err *e);

/* control_unlink() - at the end. */
void control_unlink(int run_fd);

/* control_accept() - one connection, if its process belongs to the same user or to root.
 * Return: socket, -1 (nothing to accept, or refused and logged). */
int control_accept(struct acceptor *listener);
