/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/tls_cert.c - reading a certificate chain and its key
 *
 * Runs in the front on files that the keeper has opened, which are trusted; parsed here all the same,
 * because the keeper parses nothing. The only user of mbedTLS's certificate and key headers; 2.28 and
 * 3.6 differ in a few arguments.
 */
#include "mcp/tls_cert.h"

#include "mcp/tls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <mbedtls/pk.h>
#include <mbedtls/version.h>
#include <mbedtls/x509_crt.h>
#if MBEDTLS_VERSION_NUMBER >= 0x03000000
#include <psa/crypto.h>
#endif

#include "runtime/base/cleanup.h"

int tls_random(void *unused, unsigned char *bytes, size_t len)
{
	(void)unused;
	while (len) {
		ssize_t n = getrandom(bytes, len, 0);

		if (n < 0 && errno != EINTR)
			abort(); /* never carry on with predictable keys */
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

/* TLS 1.3 in 3.6 computes with keys kept by the PSA part. */
int tls_start(struct err *e)
{
#if MBEDTLS_VERSION_NUMBER >= 0x03000000
	if (psa_crypto_init() != PSA_SUCCESS)
		return err_set(e, ERR_SYSTEM, "mbedTLS: psa_crypto_init() fails");
#endif
	(void)e;
	return 0;
}

/* The PEM parser wants the terminating NUL counted. */
static unsigned char *with_nul(const char *text, size_t len)
{
	unsigned char *copy = malloc(len + 1);

	if (!copy)
		return NULL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

static void free_secret(unsigned char *text, size_t len)
{
	if (text)
		explicit_bzero(text, len);
	free(text);
}

static int parse_chain(struct mbedtls_x509_crt *chain, const char *text, size_t len, struct err *e)
{
	_cleanup_free_ unsigned char *copy = with_nul(text, len);
	int r = copy ? mbedtls_x509_crt_parse(chain, copy, len + 1) : MBEDTLS_ERR_X509_ALLOC_FAILED;

	if (r == 0)
		return 0;
	if (r > 0)
		err_set(e, ERR_CONFIG, "TLS certificate chain: %d of its certificates do not parse", r);
	else
		err_set(e, ERR_CONFIG, "TLS certificate chain: not PEM (mbedTLS -0x%04x)", (unsigned int)-r);
	return err_remedy(e, "SANDBOX_TLS_CERT: the server's own certificate first, then the intermediates");
}

static int parse_key(struct mbedtls_pk_context *key, const char *text, size_t len, struct err *e)
{
	unsigned char *copy = with_nul(text, len);
	int r = MBEDTLS_ERR_PK_ALLOC_FAILED;

	if (copy)
#if MBEDTLS_VERSION_NUMBER >= 0x03000000
		r = mbedtls_pk_parse_key(key, copy, len + 1, NULL, 0, tls_random, NULL);
#else
		r = mbedtls_pk_parse_key(key, copy, len + 1, NULL, 0);
#endif
	free_secret(copy, len);
	if (r == 0)
		return 0;
	err_set(e, ERR_CONFIG, "TLS key: not a PEM key without a password (mbedTLS -0x%04x)",
		(unsigned int)-r);
	return err_remedy(e, "SANDBOX_TLS_KEY: openssl pkey -in KEY -out PLAIN takes a password off");
}

static int check_pair(const struct tls_cert *c, struct err *e)
{
#if MBEDTLS_VERSION_NUMBER >= 0x03000000
	int r = mbedtls_pk_check_pair(&c->chain->pk, c->key, tls_random, NULL);
#else
	int r = mbedtls_pk_check_pair(&c->chain->pk, c->key);
#endif
	if (r == 0)
		return 0;
	err_set(e, ERR_CONFIG, "TLS: the key is not the one of the first certificate");
	return err_remedy(e, "give SANDBOX_TLS_CERT and SANDBOX_TLS_KEY of the same renewal");
}

int tls_cert_parse(struct tls_cert *ret, const char *chain, size_t chain_len, const char *key,
		   size_t key_len, struct err *e)
{
	struct tls_cert c = { malloc(sizeof(*c.chain)), malloc(sizeof(*c.key)) };

	if (!c.chain || !c.key) {
		free(c.chain);
		free(c.key);
		return err_set(e, ERR_NOMEM, "no memory for a certificate");
	}
	mbedtls_x509_crt_init(c.chain);
	mbedtls_pk_init(c.key);
	if (tls_start(e) < 0 || parse_chain(c.chain, chain, chain_len, e) < 0 ||
	    parse_key(c.key, key, key_len, e) < 0 || check_pair(&c, e) < 0) {
		tls_cert_done(&c);
		return -1;
	}
	*ret = c;
	return 0;
}

void tls_cert_done(struct tls_cert *c)
{
	if (!c->chain)
		return;
	mbedtls_x509_crt_free(c->chain);
	mbedtls_pk_free(c->key);
	free(take_ptr(c->chain));
	free(take_ptr(c->key));
}
