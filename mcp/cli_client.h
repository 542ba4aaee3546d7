/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_client.h - the command line as a client of the keeper that holds a label */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/api.h"
#include "runtime/base/err.h"
#include "runtime/store.h"

struct client {
	int sock;         /* -1: not connected */
	pid_t keeper_pid; /* our one-shot keeper, to be waited for; 0: somebody else's */
	struct api_hello hello;
};

/* client_adopt() - take over a socket to a keeper and hear its HELLO. Return: 0, -1. */
int client_adopt(struct client *c, int sock, pid_t keeper_pid, struct err *e);

/* client_connect() - to the keeper with this pid. */
int client_connect(struct client *c, const struct store *store, pid_t pid, struct err *e);

/* client_close() - hang up; a one-shot keeper ends its sandbox and is waited for. */
void client_close(struct client *c);

/* client_send() - blocks until the keeper takes it. Return: 0, -1. */
int client_send(const struct client *c, const void *message, struct err *e);

/* client_receive() - the next message, into size bytes at message; fds as in fd_recv_msg(). A message
 * of another version, shorter than its header says, or the end of the connection is an error.
 * Return: 0, -1. */
int client_receive(const struct client *c, void *message, size_t size, int *ret_fds,
		   size_t *ret_fd_count, struct err *e);

/* client_request() - send and await DONE; FAILED is the keeper's error. */
int client_request(const struct client *c, const void *message, struct err *e);

/* client_key_request() - STOP, RESET, REMOVE: send and await the answer. */
int client_key_request(const struct client *c, uint16_t op, const char *owner, const char *key,
		       bool workspace, struct err *e);

/* client_list_keepers() - pids of the control sockets in run/. Return: count (at most max), -1. */
ssize_t client_list_keepers(const struct store *store, pid_t *ret, size_t max, struct err *e);
