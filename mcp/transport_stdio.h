/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/transport_stdio.h - one JSON message per line on standard input and output */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "mcp/server.h"
#include "runtime/base/buf.h"
#include "runtime/base/loop.h"

struct transport_stdio {
	struct sink sink;
	struct peer peer;
	struct server *server;
	struct loop *loop;
	int in_fd, out_fd;
	int out_flags; /* as found; -1: not changed */
	struct loop_source in_source, out_source;
	struct loop_timer in_timer; /* input that epoll cannot watch: files, /dev/null */
	struct loop_timer grace;
	char *line;   /* input: from start to end are bytes not handled yet */
	size_t line_cap, start, end;
	size_t scanned; /* no line break before this offset */
	struct buf out;
	bool in_watchable;
	bool skipping;  /* the rest of a line that was too long */
	bool listening; /* input is being watched */
	bool ended;     /* no more input */
	bool handling;  /* lines are being handled: replies are written together afterwards */
	bool writing;   /* between begin and end of a message */
	bool stopped;
	int status;
};

int transport_stdio_start(struct transport_stdio *t, struct server *server, int in_fd, int out_fd,
			  struct err *e);

/* transport_stdio_update() - the keeper takes requests again. */
void transport_stdio_update(struct transport_stdio *t);

/* transport_stdio_end() - write what is queued, for a moment at most, then stop the loop. */
void transport_stdio_end(struct transport_stdio *t, int status);
void transport_stdio_done(struct transport_stdio *t);
