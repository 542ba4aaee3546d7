/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/tls_client.h - TLS from the client's side: whom to trust, and one connection */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "runtime/base/err.h"

struct tls_trust;  /* certificate authorities, and the settings of connections */
struct tls_client; /* one connection */

/* Where a connection's bytes go: like read(2) and write(2), but waiting, up to a deadline (ETIMEDOUT). */
struct tls_wire {
	ssize_t (*read)(void *ctx, void *data, size_t size);
	ssize_t (*write)(void *ctx, const void *data, size_t len);
	void *ctx;
};

/* tls_trust_new() - the certificates of a PEM file; NULL: those the system trusts. */
struct tls_trust *tls_trust_new(const char *ca_path, struct err *e);
void tls_trust_free(struct tls_trust *t);

/* tls_client_new() - shake hands with a server that has a certificate for this host name or address,
 * from somebody trusted. wire is copied. Return: NULL when it has not. */
struct tls_client *tls_client_new(struct tls_trust *t, const char *host, const struct tls_wire *wire,
				  struct err *e);
void tls_client_free(struct tls_client *c);

/* Return: bytes (reading: 0 at the end), -1 with errno. */
ssize_t tls_client_read(struct tls_client *c, void *data, size_t size);
ssize_t tls_client_write(struct tls_client *c, const void *data, size_t len);
