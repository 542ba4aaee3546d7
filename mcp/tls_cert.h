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
