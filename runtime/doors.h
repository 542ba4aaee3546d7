/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/doors.h - what the front of serve gets and cannot open itself: sockets, TLS files, settings
 *
 * Opened by the keeper, which reads none of it. The sockets outlive a front, so that one that is
 * replaced misses no connection.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/api.h"
#include "runtime/base/err.h"
#include "runtime/base/fd.h"
#include "runtime/peer.h"

struct doors {
	struct api_http http;
	char chain_path[PATH_MAX], key_path[PATH_MAX]; /* "": no TLS */
	int listen_fds[FD_PASS_MAX];
	size_t listen_count;
	char url[API_HTTP_TEXT_MAX]; /* of the endpoint */
	bool announced;
};

/* doors_listen() - a numeric address, or "localhost" for both loopback addresses. Port 0: any; what it
 * became is in http.port. Needs the capability for ports below 1024. */
int doors_listen(struct doors *d, const char *host, uint16_t port, struct err *e);

/* doors_inherit() - sockets that listen already. */
void doors_inherit(struct doors *d, const int *fds, size_t count);
void doors_done(struct doors *d);

/* doors_give() - everything, to a front that has just been greeted. */
void doors_give(const struct doors *d, struct peer *front);

/* doors_renew() - the TLS files again, as they are now. What cannot be opened is logged, and the front
 * keeps what it has. */
void doors_renew(const struct doors *d, struct peer *front);

/* doors_open_tls() - Return: number of descriptors (0: no TLS), -1. */
int doors_open_tls(const struct doors *d, int ret_fds[2], struct err *e);
