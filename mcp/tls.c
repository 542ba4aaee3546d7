/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/tls.c - TLS by mbedTLS on non-blocking sockets
 *
 * Runs in the front, without privilege; every byte is hostile and parsed by the library. TLS 1.2 at
 * least (Debian's 2.28 still speaks 1.0 when it may), forward secrecy and authenticated encryption
 * only, no renegotiation, no session cache. The only user of mbedTLS's ssl.h; 2.28 and 3.6 differ in a
 * few names. mbedtls_net_*() is not used: it works with select() and a number below 1024.
 */
#include "mcp/tls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/auxv.h>

#include <mbedtls/ssl.h>
#include <mbedtls/version.h>

#include "mcp/tls_cert.h"
#include "runtime/base/cleanup.h"

struct tls_identity {
	unsigned int references;
	struct tls_cert cert;
	mbedtls_ssl_config config;
};

struct tls {
	int fd;
	struct tls_identity *identity;
	mbedtls_ssl_context ssl;
	bool wants_write, failed;
	char *held; /* plaintext of a record that is not sent yet: the library wants to see it again */
	size_t held_len;
};

/* ---- the identity ---- */

#ifdef MBEDTLS_TLS1_3_CHACHA20_POLY1305_SHA256
#define CHACHA_13 MBEDTLS_TLS1_3_CHACHA20_POLY1305_SHA256,
#define AES_13 MBEDTLS_TLS1_3_AES_128_GCM_SHA256, MBEDTLS_TLS1_3_AES_256_GCM_SHA384,
#else
#define CHACHA_13
#define AES_13
#endif
#define CHACHA_12                                              \
	MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, \
		MBEDTLS_TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256
#define AES_12                                                                                        \
	MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, MBEDTLS_TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, \
		MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,                                       \
		MBEDTLS_TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384

static const int chacha_first[] = { CHACHA_13 AES_13 CHACHA_12, AES_12, 0 };
static const int aes_first[] = { AES_13 CHACHA_13 AES_12, CHACHA_12, 0 };
static const char *alpn[] = { "http/1.1", NULL };

/* Measured with 2.28 on a processor with AES instructions: ChaCha20 392 MB/s, AES-GCM 281. Only newer
 * versions use the instructions well, on ARM at all. */
static bool aes_is_fast(void)
{
#if MBEDTLS_VERSION_NUMBER < 0x03000000
	return false;
#elif defined(__x86_64__)
	return __builtin_cpu_supports("aes");
#elif defined(__aarch64__)
	return getauxval(AT_HWCAP) & (1UL << 3) /* HWCAP_AES */;
#else
	return false;
#endif
}

static int configure(struct tls_identity *id)
{
	mbedtls_ssl_config *c = &id->config;
	int r = mbedtls_ssl_config_defaults(c, MBEDTLS_SSL_IS_SERVER, MBEDTLS_SSL_TRANSPORT_STREAM,
					    MBEDTLS_SSL_PRESET_DEFAULT);

	if (r != 0)
		return r;
#if MBEDTLS_VERSION_NUMBER >= 0x03000000
	mbedtls_ssl_conf_min_tls_version(c, MBEDTLS_SSL_VERSION_TLS1_2);
#else
	mbedtls_ssl_conf_min_version(c, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3);
#endif
#if defined(MBEDTLS_SSL_RENEGOTIATION)
	mbedtls_ssl_conf_renegotiation(c, MBEDTLS_SSL_RENEGOTIATION_DISABLED);
#endif
	mbedtls_ssl_conf_ciphersuites(c, aes_is_fast() ? aes_first : chacha_first);
	mbedtls_ssl_conf_rng(c, tls_random, NULL);
	r = mbedtls_ssl_conf_alpn_protocols(c, alpn);
	return r ? r : mbedtls_ssl_conf_own_cert(c, id->cert.chain, id->cert.key);
}

struct tls_identity *tls_identity_new(const char *chain, size_t chain_len, const char *key,
				      size_t key_len, struct err *e)
{
	struct tls_identity *id = calloc(1, sizeof(*id));
	int r;

	if (!id) {
		err_set(e, ERR_NOMEM, "no memory for TLS");
		return NULL;
	}
	id->references = 1;
	mbedtls_ssl_config_init(&id->config);
	if (tls_cert_parse(&id->cert, chain, chain_len, key, key_len, e) < 0) {
		tls_identity_release(id);
		return NULL;
	}
	r = configure(id);
	if (r != 0) {
		err_set(e, ERR_SYSTEM, "TLS cannot be set up (mbedTLS -0x%04x)", (unsigned int)-r);
		tls_identity_release(id);
		return NULL;
	}
	return id;
}

void tls_identity_release(struct tls_identity *id)
{
	if (!id || --id->references)
		return;
	mbedtls_ssl_config_free(&id->config);
	tls_cert_done(&id->cert);
	free(id);
}

/* ---- the socket below ---- */

static int transport_failed(int would_block)
{
	return errno == EAGAIN || errno == EINTR ? would_block : MBEDTLS_ERR_SSL_INTERNAL_ERROR;
}

static int on_send(void *ctx, const unsigned char *data, size_t len)
{
	struct tls *t = ctx;
	ssize_t n = write(t->fd, data, len);

	return n >= 0 ? (int)n : transport_failed(MBEDTLS_ERR_SSL_WANT_WRITE);
}

static int on_receive(void *ctx, unsigned char *data, size_t size)
{
	struct tls *t = ctx;
	ssize_t n = read(t->fd, data, size);

	return n >= 0 ? (int)n : transport_failed(MBEDTLS_ERR_SSL_WANT_READ);
}

/* ---- connections ---- */

struct tls *tls_new(struct tls_identity *id, int fd)
{
	struct tls *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->fd = fd;
	t->identity = id;
	id->references++;
	mbedtls_ssl_init(&t->ssl);
	if (mbedtls_ssl_setup(&t->ssl, &id->config) != 0) {
		tls_free(t);
		return NULL;
	}
	mbedtls_ssl_set_bio(&t->ssl, t, on_send, on_receive, NULL);
	return t;
}

static void forget_held(struct tls *t)
{
	if (t->held)
		explicit_bzero(t->held, t->held_len);
	free(take_ptr(t->held));
	t->held_len = 0;
}

void tls_free(struct tls *t)
{
	if (!t)
		return;
	forget_held(t);
	mbedtls_ssl_free(&t->ssl);
	tls_identity_release(t->identity);
	free(t);
}

/* After an error of the library the context must not be used again (ssl.h). Return: -1 always. */
static int failed(struct tls *t, int r)
{
	t->wants_write = r == MBEDTLS_ERR_SSL_WANT_WRITE;
	if (t->wants_write || r == MBEDTLS_ERR_SSL_WANT_READ) {
		errno = EAGAIN;
		return -1;
	}
	t->failed = true;
	errno = EPROTO;
	return -1;
}

static int check_usable(const struct tls *t)
{
	errno = EPROTO;
	return t->failed ? -1 : 0;
}

int tls_handshake(struct tls *t)
{
	int r;

	if (check_usable(t) < 0)
		return -1;
	r = mbedtls_ssl_handshake(&t->ssl);
	if (r != 0)
		return failed(t, r);
	t->wants_write = false;
	return 0;
}

bool tls_wants_write(const struct tls *t)
{
	return t->wants_write || t->held;
}

ssize_t tls_read(struct tls *t, void *data, size_t size)
{
	int r;

	if (check_usable(t) < 0)
		return -1;
	r = mbedtls_ssl_read(&t->ssl, data, size);
	if (r == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY || r == MBEDTLS_ERR_SSL_CONN_EOF)
		return 0;
	return r >= 0 ? r : failed(t, r);
}

int tls_flush(struct tls *t)
{
	int r;

	if (check_usable(t) < 0)
		return -1;
	if (!t->held)
		return 0;
	r = mbedtls_ssl_write(&t->ssl, (const unsigned char *)t->held, t->held_len);
	if (r < 0)
		return failed(t, r);
	t->wants_write = false;
	forget_held(t);
	return 0;
}

/* The record is made but does not fit into the socket: it counts as taken, and is kept because the
 * library wants the same arguments until it is through. */
static ssize_t hold(struct tls *t, const void *data, size_t len)
{
	t->held = malloc(len);
	if (!t->held)
		return failed(t, MBEDTLS_ERR_SSL_ALLOC_FAILED);
	memcpy(t->held, data, len);
	t->held_len = len;
	return (ssize_t)len;
}

ssize_t tls_write(struct tls *t, const void *data, size_t len)
{
	int max = mbedtls_ssl_get_max_out_record_payload(&t->ssl), r;

	if (tls_flush(t) < 0)
		return -1;
	if (max <= 0)
		return failed(t, MBEDTLS_ERR_SSL_INTERNAL_ERROR);
	if (len > (size_t)max)
		len = (size_t)max;
	r = mbedtls_ssl_write(&t->ssl, data, len);
	if (r >= 0)
		return r;
	if (r == MBEDTLS_ERR_SSL_WANT_WRITE)
		return hold(t, data, len);
	return failed(t, r);
}

bool tls_has_input(const struct tls *t)
{
	return !t->failed && mbedtls_ssl_check_pending(&t->ssl);
}

void tls_say_goodbye(struct tls *t)
{
	if (!t->failed && !t->held)
		(void)mbedtls_ssl_close_notify(&t->ssl);
}
