/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/tls.h - TLS on a connected, non-blocking socket */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "runtime/base/err.h"

struct tls_identity; /* certificate chain, key and the settings of connections; counted references */
struct tls;          /* one connection */

/* tls_start() - what the library needs before anything else; while files may still be opened. */
int tls_start(struct err *e);

/* tls_identity_new() - from PEM text. Return: the caller's reference; NULL when a part does not parse,
 * or the key is not the certificate's. */
struct tls_identity *tls_identity_new(const char *chain, size_t chain_len, const char *key,
				      size_t key_len, struct err *e);
void tls_identity_release(struct tls_identity *id);

/* tls_new() - the server's side of a connection on fd (borrowed). Connections keep the identity they
 * were made with. Return: NULL without memory. */
struct tls *tls_new(struct tls_identity *id, int fd);
void tls_free(struct tls *t);

/* tls_handshake() - as far as it goes. Return: 0 done; -1 with EAGAIN, or EPROTO for good. */
int tls_handshake(struct tls *t);

/* tls_wants_write() - did the last EAGAIN wait for room instead of input? */
bool tls_wants_write(const struct tls *t);

/* tls_read(), tls_write() - like read(2) and write(2). What tls_write() took may not be on its way
 * yet: tls_flush() until it returns 0 (-1 with EAGAIN: not yet). */
ssize_t tls_read(struct tls *t, void *data, size_t size);
ssize_t tls_write(struct tls *t, const void *data, size_t len);
int tls_flush(struct tls *t);

/* tls_has_input() - decrypted bytes are waiting that the socket will not announce. */
bool tls_has_input(const struct tls *t);

/* tls_say_goodbye() - tell the other side that nothing more comes, if there is room. */
void tls_say_goodbye(struct tls *t);
