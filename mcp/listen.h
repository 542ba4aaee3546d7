/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/listen.h - tell clients what has changed: lists, resources
 *
 * A client that listens is a call that lasts (subscriptions/listen); before 2026-07-28 it is a stream the
 * transport has for it: all of standard output, or a GET.
 */
#pragma once

#include "mcp/lists.h"
#include "mcp/server.h"

/* listen_changed() - the tools, prompts or resources that are offered: lists are made again. */
void listen_changed(struct server *s, enum list what);

/* listen_updated() - what a resource says. */
void listen_updated(struct server *s, const char *uri);

/* listen_legacy() - from now on send what a peer of the older era wants to know to this sink, until
 * server_cancel_peer(). */
void listen_legacy(struct server *s, struct peer *peer, struct sink *sink);

/* listen_end() - tell those who listen that this is the end. */
void listen_end(struct server *s);
