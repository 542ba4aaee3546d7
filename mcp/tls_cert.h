/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/tls_cert.h - certificates and keys: reading them, and making one for oneself */
#pragma once

#include <stddef.h>

#include "runtime/base/buf.h"
#include "runtime/base/err.h"

struct tls_cert {
	struct mbedtls_x509_crt *chain;
	struct mbedtls_pk_context *key;
};

/* tls_random() - bytes from the kernel, in the form mbedTLS asks for them. Return: 0. */
int tls_random(void *unused, unsigned char *bytes, size_t len);

/* tls_cert_parse() - PEM text of a chain, the server's own certificate first, and of its key. */
int tls_cert_parse(struct tls_cert *ret, const char *chain, size_t chain_len, const char *key,
		   size_t key_len, struct err *e);
void tls_cert_done(struct tls_cert *c);

enum { TLS_CERT_DAYS = 397, TLS_CERT_NAMES_MAX = 16 };

/* tls_cert_make() - a P-256 key and a certificate for these host names and numeric addresses, signed by
 * itself and good for nothing else (no certificate authority), as PEM text. */
int tls_cert_make(const char *const *names, size_t count, struct buf *chain, struct buf *key, struct err *e);
