/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/tls_client.c - TLS by mbedTLS towards a server that has to prove who it is
 *
 * Runs in the command line's process, as whoever called it; every byte of the server is hostile and parsed by
 * the library. A certificate that is not trusted, not for this host, or out of date ends the handshake:
 * there is no way to go on without. mbedTLS 2.28 compares host names only, so addresses are compared here.
 */
#include "mcp/tls_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mbedtls/ssl.h>
#include <mbedtls/version.h>

#include "mcp/tls.h"
#include "mcp/tls_cert.h"
#include "runtime/base/cleanup.h"

enum { ADDRESS_MAX = 16, WHY_MAX = 256, SAN_KIND_MASK = 0x1f, SAN_ADDRESS = 7 };

/* Debian and its relatives, Fedora and its relatives, SUSE, Alpine. */
static const char *const system_stores[] = {
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/ca-bundle.pem",
	"/etc/ssl/cert.pem",
};

struct tls_trust {
	mbedtls_x509_crt authorities;
	mbedtls_ssl_config config;
};

struct tls_client {
	struct tls_wire wire;
	mbedtls_ssl_context ssl;
	unsigned char address[ADDRESS_MAX];
	size_t address_len; /* 0: the host is a name */
};

/* ---- whom to trust ---- */

static const char *system_store(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(system_stores); i++) {
		if (access(system_stores[i], R_OK) == 0)
			return system_stores[i];
	}
	return NULL;
}

/* The system's file may hold a certificate this library does not know; one that was named must be good. */
static int load_authorities(struct tls_trust *t, const char *given, struct err *e)
{
	const char *path = given ? given : system_store();
	int r;

	if (!path) {
		err_set(e, ERR_HOST, "this system has no list of certificate authorities");
		return err_remedy(e, "install ca-certificates, or name a file with --ca");
	}
	r = mbedtls_x509_crt_parse_file(&t->authorities, path);
	if (r == 0 || (r > 0 && !given && t->authorities.raw.len > 0))
		return 0;
	err_set(e, ERR_NOT_FOUND, "%s: no PEM certificates can be read there (mbedTLS %s0x%04x)", path, r < 0 ? "-" : "",
		(unsigned int)(r < 0 ? -r : r));
	return err_remedy(e, "give --ca the certificate of the server, or of the authority that signed it");
}

static int configure(struct tls_trust *t)
{
	mbedtls_ssl_config *c = &t->config;
	int r = mbedtls_ssl_config_defaults(c, MBEDTLS_SSL_IS_CLIENT, MBEDTLS_SSL_TRANSPORT_STREAM,
					    MBEDTLS_SSL_PRESET_DEFAULT);

	if (r != 0)
		return r;
#if MBEDTLS_VERSION_NUMBER >= 0x03000000
	mbedtls_ssl_conf_min_tls_version(c, MBEDTLS_SSL_VERSION_TLS1_2);
#else
	mbedtls_ssl_conf_min_version(c, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3);
#endif
	mbedtls_ssl_conf_rng(c, tls_random, NULL);
	mbedtls_ssl_conf_authmode(c, MBEDTLS_SSL_VERIFY_REQUIRED);
	mbedtls_ssl_conf_ca_chain(c, &t->authorities, NULL);
	return 0;
}

struct tls_trust *tls_trust_new(const char *ca_path, struct err *e)
{
	struct tls_trust *t = calloc(1, sizeof(*t));
	int r;

	if (!t) {
		err_set(e, ERR_NOMEM, "no memory for TLS");
		return NULL;
	}
	mbedtls_x509_crt_init(&t->authorities);
	mbedtls_ssl_config_init(&t->config);
	r = tls_start(e) < 0 || load_authorities(t, ca_path, e) < 0 ? -1 : 0;
	if (r == 0 && configure(t) != 0)
		r = err_set(e, ERR_SYSTEM, "TLS cannot be set up");
	if (r < 0) {
		tls_trust_free(t);
		return NULL;
	}
	return t;
}

void tls_trust_free(struct tls_trust *t)
{
	if (!t)
		return;
	mbedtls_ssl_config_free(&t->config);
	mbedtls_x509_crt_free(&t->authorities);
	free(t);
}

/* ---- the wire below ---- */

static int on_send(void *ctx, const unsigned char *data, size_t len)
{
	const struct tls_client *c = ctx;
	ssize_t n = c->wire.write(c->wire.ctx, data, len);

	return n >= 0 ? (int)n : errno == ETIMEDOUT ? MBEDTLS_ERR_SSL_TIMEOUT : MBEDTLS_ERR_SSL_CONN_EOF;
}

static int on_receive(void *ctx, unsigned char *data, size_t size)
{
	const struct tls_client *c = ctx;
	ssize_t n = c->wire.read(c->wire.ctx, data, size);

	return n >= 0 ? (int)n : errno == ETIMEDOUT ? MBEDTLS_ERR_SSL_TIMEOUT : MBEDTLS_ERR_SSL_CONN_EOF;
}

/* ---- the server's certificate ---- */

static bool is_for_address(const struct tls_client *c, const mbedtls_x509_crt *crt)
{
	for (const mbedtls_x509_sequence *s = &crt->subject_alt_names; s; s = s->next) {
		if ((s->buf.tag & SAN_KIND_MASK) == SAN_ADDRESS && s->buf.len == c->address_len &&
		    memcmp(s->buf.p, c->address, c->address_len) == 0)
			return true;
	}
	return false;
}

static int on_verify(void *ctx, mbedtls_x509_crt *crt, int depth, uint32_t *flags)
{
	const struct tls_client *c = ctx;

	if (depth == 0 && c->address_len != 0) {
		*flags &= ~(uint32_t)MBEDTLS_X509_BADCERT_CN_MISMATCH;
		if (!is_for_address(c, crt))
			*flags |= MBEDTLS_X509_BADCERT_CN_MISMATCH;
	}
	return 0;
}

static int set_host(struct tls_client *c, const char *host)
{
	if (inet_pton(AF_INET, host, c->address) == 1)
		c->address_len = sizeof(struct in_addr);
	else if (inet_pton(AF_INET6, host, c->address) == 1)
		c->address_len = sizeof(struct in6_addr);
	mbedtls_ssl_set_verify(&c->ssl, on_verify, c);
	/* Addresses are never sent as a server name (RFC 6066); on_verify() compares them. */
	return mbedtls_ssl_set_hostname(&c->ssl, c->address_len ? NULL : host);
}

/* One line of what the library has against the certificate. */
static void explain(const struct tls_client *c, int r, const char *host, struct err *e)
{
	uint32_t flags = mbedtls_ssl_get_verify_result(&c->ssl);
	char why[WHY_MAX] = "";

	if (r == MBEDTLS_ERR_SSL_TIMEOUT) {
		err_set(e, ERR_TIMEOUT, "TLS with %s: no answer in time", host);
		return;
	}
	if (flags == 0 || flags == UINT32_MAX) {
		err_set(e, ERR_PROTOCOL, "TLS with %s: no handshake (mbedTLS -0x%04x)", host, (unsigned int)-r);
		return;
	}
	(void)mbedtls_x509_crt_verify_info(why, sizeof(why), "", flags);
	for (char *end; (end = strchr(why, '\n'));)
		*end = end[1] ? ';' : '\0';
	err_set(e, ERR_DENIED, "TLS with %s: its certificate is refused: %s", host, why);
	err_remedy(e, "use the name the certificate is for; --ca FILE trusts a certificate the system does not know");
}

struct tls_client *tls_client_new(struct tls_trust *t, const char *host, const struct tls_wire *wire,
				  struct err *e)
{
	struct tls_client *c = calloc(1, sizeof(*c));
	int r;

	if (!c) {
		err_set(e, ERR_NOMEM, "no memory for TLS");
		return NULL;
	}
	c->wire = *wire;
	mbedtls_ssl_init(&c->ssl);
	r = mbedtls_ssl_setup(&c->ssl, &t->config);
	if (r == 0)
		r = set_host(c, host);
	if (r == 0) {
		mbedtls_ssl_set_bio(&c->ssl, c, on_send, on_receive, NULL);
		r = mbedtls_ssl_handshake(&c->ssl);
	}
	if (r == 0)
		return c;
	explain(c, r, host, e);
	tls_client_free(c);
	return NULL;
}

void tls_client_free(struct tls_client *c)
{
	if (!c)
		return;
	mbedtls_ssl_free(&c->ssl);
	free(c);
}

/* ---- bytes ---- */

static ssize_t failed(int r)
{
	errno = r == MBEDTLS_ERR_SSL_TIMEOUT ? ETIMEDOUT : EPROTO;
	return -1;
}

/* Messages of the handshake that come later (tickets of TLS 1.3) are no data. */
static bool is_no_data(int r)
{
#ifdef MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET
	if (r == MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET)
		return true;
#endif
	return r == MBEDTLS_ERR_SSL_WANT_READ;
}

ssize_t tls_client_read(struct tls_client *c, void *data, size_t size)
{
	int r;

	do {
		r = mbedtls_ssl_read(&c->ssl, data, size);
	} while (is_no_data(r));
	/* An end without goodbye is an end cut off: HTTP's own framing tells whether something is missing,
	 * and where it has none, the reader must not take a part for the whole. */
	return r >= 0 ? r : r == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY ? 0 : failed(r);
}

ssize_t tls_client_write(struct tls_client *c, const void *data, size_t len)
{
	int r;

	do {
		r = mbedtls_ssl_write(&c->ssl, data, len);
	} while (r == MBEDTLS_ERR_SSL_WANT_WRITE);
	return r >= 0 ? r : failed(r);
}
