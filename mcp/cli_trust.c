/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_trust.c - SANDBOX_EXTRA_CA: the operator's file of certificates
 *
 * Runs in what becomes the keeper, before it serves. The file is the operator's, as the env file is: nothing
 * hostile, but the wrong file is easily named. So its shape is checked and nothing else; what the certificates
 * say is for the programs inside to read.
 */
#include "mcp/cli_trust.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mcp/base64.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/digest.h"
#include "runtime/base/fd.h"

#define SETTING "SANDBOX_EXTRA_CA"
#define BEGIN   "-----BEGIN "
#define END     "-----END CERTIFICATE-----"
#define KIND    "CERTIFICATE-----"

enum { LINE_LEN = 64, CERTIFICATE_MAX = 64 * 1024, DER_SEQUENCE = 0x30 };

static int refuse(const char *what, struct err *e)
{
	(void)err_set(e, ERR_CONFIG, SETTING ": %s", what);
	return err_remedy(e, "name a file of certificates in PEM (-----BEGIN CERTIFICATE-----), without keys");
}

/* One value whose length is that of the bytes. */
static bool is_der(const uint8_t *der, size_t len)
{
	size_t value = 0, octets;

	if (len < 2 || der[0] != DER_SEQUENCE)
		return false;
	if (der[1] < 0x80)
		return len == 2U + der[1];
	octets = der[1] & 0x7fU;
	if (octets == 0 || octets > 3 || len < 2 + octets)
		return false;
	for (size_t i = 0; i < octets; i++)
		value = value << 8 | der[2 + i];
	return len == 2 + octets + value;
}

static void write_certificate(const char *base64, size_t len, struct buf *out)
{
	buf_append_str(out, BEGIN KIND "\n");
	for (size_t i = 0; i < len; i += LINE_LEN) {
		buf_append(out, base64 + i, len - i < LINE_LEN ? len - i : LINE_LEN);
		buf_append_str(out, "\n");
	}
	buf_append_str(out, END "\n");
}

/* Between the two lines: base64 and white space. */
static int take_certificate(const char *body, size_t len, struct trust *ret, struct buf *out, struct err *e)
{
	static char base64[CERTIFICATE_MAX];
	static uint8_t der[CERTIFICATE_MAX];
	size_t used = 0;
	long bytes;

	if (ret->count == TRUST_MAX)
		return refuse("too many certificates (64 at most)", e);
	if (len > sizeof(base64))
		return refuse("a certificate is too long", e);
	for (size_t i = 0; i < len; i++) {
		if (!memchr(" \t\r\n", body[i], 4))
			base64[used++] = body[i];
	}
	bytes = base64_decode(BASE64_STANDARD, base64, used, der);
	if (bytes < 0 || !is_der(der, (size_t)bytes))
		return refuse("a certificate in it is damaged", e);
	write_certificate(base64, used, out);
	ret->end[ret->count++] = out->len;
	return 0;
}

int trust_parse(const char *text, size_t len, struct trust *ret, struct buf *out, struct err *e)
{
	const char *at = text, *end = text + len;

	_Static_assert(TRUST_MAX == 64, "the sentence above says so");
	ret->count = 0;
	while ((at = memmem(at, (size_t)(end - at), BEGIN, strlen(BEGIN)))) {
		const char *body, *stop;

		at += strlen(BEGIN);
		if ((size_t)(end - at) < strlen(KIND) || memcmp(at, KIND, strlen(KIND)) != 0)
			return refuse("there is something else than certificates in it", e);
		body = at + strlen(KIND);
		stop = memmem(body, (size_t)(end - body), END, strlen(END));
		if (!stop)
			return refuse("a certificate in it has no end", e);
		if (take_certificate(body, (size_t)(stop - body), ret, out, e) < 0)
			return -1;
		at = stop + strlen(END);
	}
	if (out->overflow)
		return err_set(e, ERR_NOMEM, SETTING ": no memory");
	return ret->count ? 0 : refuse("there is no certificate in it", e);
}

/* Who can write to it decides whom every sandbox believes. */
static int open_file(const char *path, size_t *ret_len, struct err *e)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		(void)err_set(e, ERR_CONFIG, SETTING ": %s: %s", path, strerror(errno));
		return err_remedy(e, "name a file that the server's user can read");
	}
	if (!S_ISREG(st.st_mode) || st.st_size > TRUST_FILE_MAX)
		return refuse(S_ISREG(st.st_mode) ? "the file is larger than 256 KiB" : "not a regular file", e);
	if (st.st_mode & (S_IWGRP | S_IWOTH)) {
		(void)err_set(e, ERR_CONFIG, SETTING ": others may write to %s", path);
		return err_remedy(e, "chmod go-w %s", path);
	}
	*ret_len = (size_t)st.st_size;
	return take_fd(&fd);
}

static int seal(const struct buf *out, struct trust *ret, struct err *e)
{
	uint8_t digest[DIGEST_SHA256_LEN];

	if (digest_sha256(out->data, out->len, digest) < 0)
		return err_set(e, ERR_NOMEM, SETTING ": no memory");
	memcpy(&ret->id, digest, sizeof(ret->id));
	ret->id |= 1; /* 0 is none */
	ret->fd = fd_memfd_sealed("certificates", out->data, out->len, 0400, false);
	return ret->fd < 0 ? err_sys(e, SETTING ": a memory file") : 0;
}

int trust_open(const char *path, struct trust *ret, struct err *e)
{
	static char text[TRUST_FILE_MAX];
	size_t len = 0;
	_cleanup_fd_ int fd = open_file(path, &len, e);
	struct buf out;
	ssize_t n;
	int r;

	_Static_assert(TRUST_FILE_MAX == 256 * 1024, "a sentence says so");
	if (fd < 0)
		return -1;
	n = fd_read_full(fd, text, len);
	if (n < 0)
		return err_sys(e, SETTING ": %s", path);
	buf_init(&out, 2 * TRUST_FILE_MAX);
	r = trust_parse(text, (size_t)n, ret, &out, e);
	if (r == 0)
		r = seal(&out, ret, e);
	buf_done(&out);
	return r;
}

void trust_done(struct trust *t)
{
	close_fd(&t->fd);
}
