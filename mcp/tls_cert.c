/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/tls_cert.c - reading a certificate chain and its key; making one for oneself
 *
 * Reading runs in the front on files that the keeper has opened, which are trusted; parsed there all the
 * same, because the keeper parses nothing. Making runs in the command line. The only user of mbedTLS's certificate and key headers; 2.28 and
 * 3.6 differ in a few arguments.
 */
#include "mcp/tls_cert.h"

#include "mcp/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <mbedtls/ecp.h>
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

/* ---- one's own ---- */

enum { PEM_MAX = 8 * 1024, SAN_MAX = 4 * 1024, NAME_BYTES_MAX = 253, SERIAL_BYTES = 16 };
enum { DER_SEQUENCE = 0x30, DER_DNS_NAME = 0x82, DER_ADDRESS = 0x87, DER_LONG_2 = 0x82 };

static const unsigned char oid_alt_names[] = { 0x55, 0x1d, 0x11 };
static const unsigned char oid_key_purpose[] = { 0x55, 0x1d, 0x25 };
static const unsigned char server_auth[] = { DER_SEQUENCE, 10,   0x06, 8,    0x2b, 0x06,
					     0x01,	   0x05, 0x05, 0x07, 0x03, 0x01 };

/* RFC 5280, 4.2.1.6: dNSName or iPAddress, always with a length of two bytes. */
static int append_name(struct buf *b, const char *name, struct err *e)
{
	unsigned char address[16];
	size_t len = inet_pton(AF_INET, name, address) == 1  ? 4 :
		     inet_pton(AF_INET6, name, address) == 1 ? 16 :
							       0;
	size_t size = len ? len : strlen(name);
	unsigned char head[4] = { len ? DER_ADDRESS : DER_DNS_NAME, DER_LONG_2, (unsigned char)(size >> 8),
				  (unsigned char)size };

	if (!size || size > NAME_BYTES_MAX ||
	    (!len && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.*") != size)) {
		err_set(e, ERR_USAGE, "not a host name or numeric address: %.60s", name);
		return err_remedy(e, "give the names clients use, separated by commas");
	}
	buf_append(b, head, sizeof(head));
	return buf_append(b, len ? (const char *)address : name, size);
}

static int put_alt_names(mbedtls_x509write_cert *w, const char *const *names, size_t count, struct err *e)
{
	unsigned char head[4] = { DER_SEQUENCE, DER_LONG_2, 0, 0 };
	struct buf b;
	int r = 0;

	buf_init(&b, SAN_MAX);
	buf_append(&b, head, sizeof(head));
	for (size_t i = 0; i < count && r == 0; i++)
		r = append_name(&b, names[i], e);
	if (r == 0) {
		b.data[2] = (char)((b.len - sizeof(head)) >> 8);
		b.data[3] = (char)(b.len - sizeof(head));
		r = mbedtls_x509write_crt_set_extension(w, (const char *)oid_alt_names, sizeof(oid_alt_names), 0,
							(const unsigned char *)b.data, b.len);
		if (r)
			err_set(e, ERR_NOMEM, "no memory for a certificate");
	}
	buf_done(&b);
	return r ? -1 : 0;
}

static int put_validity(mbedtls_x509write_cert *w)
{
	time_t now = time(NULL), from = now - 3600, to = now + TLS_CERT_DAYS * (time_t)86400;
	char text[2][16];
	struct tm tm;

	(void)strftime(text[0], sizeof(text[0]), "%Y%m%d%H%M%S", gmtime_r(&from, &tm));
	(void)strftime(text[1], sizeof(text[1]), "%Y%m%d%H%M%S", gmtime_r(&to, &tm));
	return mbedtls_x509write_crt_set_validity(w, text[0], text[1]);
}

static int put_serial(mbedtls_x509write_cert *w)
{
	unsigned char bytes[SERIAL_BYTES];

	(void)tls_random(NULL, bytes, sizeof(bytes));
	bytes[0] = (bytes[0] & 0x3f) | 0x40; /* positive, and not shorter for a zero in front */
#if MBEDTLS_VERSION_NUMBER >= 0x03040000
	return mbedtls_x509write_crt_set_serial_raw(w, bytes, sizeof(bytes));
#else
	mbedtls_mpi serial;
	int r;

	mbedtls_mpi_init(&serial);
	r = mbedtls_mpi_read_binary(&serial, bytes, sizeof(bytes));
	if (r == 0)
		r = mbedtls_x509write_crt_set_serial(w, &serial);
	mbedtls_mpi_free(&serial);
	return r;
#endif
}

static int make_key(mbedtls_pk_context *key)
{
	int r = mbedtls_pk_setup(key, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY));

	return r ? r : mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(*key), tls_random, NULL);
}

static int write_pem(mbedtls_x509write_cert *w, mbedtls_pk_context *key, struct buf *ret_chain,
		     struct buf *ret_key)
{
	unsigned char text[PEM_MAX];
	int r = mbedtls_x509write_crt_pem(w, text, sizeof(text), tls_random, NULL);

	if (r == 0)
		buf_append_str(ret_chain, (const char *)text);
	if (r == 0)
		r = mbedtls_pk_write_key_pem(key, text, sizeof(text));
	if (r == 0)
		buf_append_str(ret_key, (const char *)text);
	explicit_bzero(text, sizeof(text));
	return r;
}

static int fill_cert(mbedtls_x509write_cert *w, mbedtls_pk_context *key)
{
	static const char subject[] = "CN=mcp-sandbox"; /* clients look at the alternative names only */
	int r = make_key(key);

	mbedtls_x509write_crt_set_version(w, MBEDTLS_X509_CRT_VERSION_3);
	mbedtls_x509write_crt_set_md_alg(w, MBEDTLS_MD_SHA256);
	mbedtls_x509write_crt_set_subject_key(w, key);
	mbedtls_x509write_crt_set_issuer_key(w, key);
	if (r == 0)
		r = mbedtls_x509write_crt_set_subject_name(w, subject);
	if (r == 0)
		r = mbedtls_x509write_crt_set_issuer_name(w, subject);
	if (r == 0)
		r = put_serial(w);
	if (r == 0)
		r = put_validity(w);
	if (r == 0)
		r = mbedtls_x509write_crt_set_basic_constraints(w, 0, -1);
	if (r == 0)
		r = mbedtls_x509write_crt_set_key_usage(w, MBEDTLS_X509_KU_DIGITAL_SIGNATURE);
	return r ? r : mbedtls_x509write_crt_set_extension(w, (const char *)oid_key_purpose,
							    sizeof(oid_key_purpose), 0, server_auth,
							    sizeof(server_auth));
}

int tls_cert_make(const char *const *names, size_t count, struct buf *chain, struct buf *key, struct err *e)
{
	mbedtls_x509write_cert w;
	mbedtls_pk_context pk;
	int r;

	if (tls_start(e) < 0)
		return -1;
	mbedtls_x509write_crt_init(&w);
	mbedtls_pk_init(&pk);
	r = fill_cert(&w, &pk);
	if (r)
		err_set(e, ERR_SYSTEM, "a certificate cannot be made (mbedTLS -0x%04x)", (unsigned int)-r);
	if (r == 0)
		r = put_alt_names(&w, names, count, e);
	if (r == 0 && (write_pem(&w, &pk, chain, key) || chain->overflow || key->overflow))
		r = err_set(e, ERR_SYSTEM, "a certificate cannot be written as text");
	mbedtls_x509write_crt_free(&w);
	mbedtls_pk_free(&pk);
	return r ? -1 : 0;
}
