/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_trust.c - which files are certificates */
#include "mcp/cli_trust.h"

#include <string.h>
#include <sys/stat.h>

#include "runtime/base/fd.h"
#include "tests/unit/tap.h"

#define BEGIN "-----BEGIN CERTIFICATE-----\n"
#define END   "-----END CERTIFICATE-----\n"
/* 30 03 02 01 05, and the same with another number: a DER sequence is all that is asked for */
#define ONE BEGIN "MAMCAQU=\n" END
#define TWO BEGIN "MAMCAQY=\n" END

static const struct {
	const char *desc, *text, *want, *says; /* want NULL: refused */
} rows[] = {
	{ "one", ONE, ONE, NULL },
	{ "two", ONE TWO, ONE TWO, NULL },
	{ "words around and between", "# CN=a\n" ONE "\nCN=b\n" TWO "the end", ONE TWO, NULL },
	{ "carriage returns, broken lines", "-----BEGIN CERTIFICATE-----\r\nMAMC\r\n AQU=\r\n-----END CERTIFICATE-----\r\n",
	  ONE, NULL },
	{ "no line break at the end", BEGIN "MAMCAQU=\n-----END CERTIFICATE-----", ONE, NULL },
	{ "nothing", "", NULL, "no certificate" },
	{ "words", "hello\n", NULL, "no certificate" },
	{ "a key beside it", ONE "-----BEGIN PRIVATE KEY-----\nMAMCAQU=\n-----END PRIVATE KEY-----\n", NULL,
	  "something else" },
	{ "a key before it", "-----BEGIN RSA PRIVATE KEY-----\nMAMCAQU=\n-----END RSA PRIVATE KEY-----\n" ONE, NULL,
	  "something else" },
	{ "OpenSSL's own kind", "-----BEGIN TRUSTED CERTIFICATE-----\nMAMCAQU=\n-----END TRUSTED CERTIFICATE-----\n",
	  NULL, "something else" },
	{ "the begin of a begin", "-----BEGIN CERT", NULL, "something else" },
	{ "no end", BEGIN "MAMCAQU=\n", NULL, "no end" },
	{ "no content", BEGIN END, NULL, "damaged" },
	{ "not base64", BEGIN "MAMC*QU=\n" END, NULL, "damaged" },
	{ "one inside another", BEGIN ONE END, NULL, "damaged" },
	{ "too short for its length", BEGIN "MAQCAQU=\n" END, NULL, "damaged" },
	{ "too long for its length", BEGIN "MAICAQU=\n" END, NULL, "damaged" },
	{ "no sequence", BEGIN "AgMCAQU=\n" END, NULL, "damaged" },
	{ "a length of four octets", BEGIN "MIQAAAABAA==\n" END, NULL, "damaged" },
	{ "a length without its octets", BEGIN "MIM=\n" END, NULL, "damaged" },
	{ "an open length", BEGIN "MIAAAA==\n" END, NULL, "damaged" },
};

static void check(size_t i)
{
	struct trust t = { .fd = -1 };
	struct err e = { 0 };
	struct buf out;
	int r;

	buf_init(&out, 4096);
	r = trust_parse(rows[i].text, strlen(rows[i].text), &t, &out, &e);
	if (rows[i].want) {
		tap_ok(r == 0 && out.len == strlen(rows[i].want) && memcmp(out.data, rows[i].want, out.len) == 0 &&
			       t.end[t.count - 1] == out.len,
		       "%s: %u", rows[i].desc, t.count);
	} else {
		tap_ok(r < 0 && e.code == ERR_CONFIG && strstr(e.message, rows[i].says) && e.remedy[0],
		       "%s: refused, %s", rows[i].desc, e.message);
	}
	buf_done(&out);
}

static void test_bound(void)
{
	struct trust t = { .fd = -1 };
	struct err e = { 0 };
	struct buf text, out;

	buf_init(&text, 64 * 1024);
	for (int i = 0; i < TRUST_MAX; i++)
		buf_append_str(&text, ONE);
	buf_init(&out, 64 * 1024);
	tap_int(trust_parse(text.data, text.len, &t, &out, &e), 0, "as many as there may be");
	buf_append_str(&text, TWO);
	buf_done(&out);
	buf_init(&out, 64 * 1024);
	tap_int(trust_parse(text.data, text.len, &t, &out, &e), -1, "one more is refused");
	tap_int(t.count, TRUST_MAX, "and nothing is written behind the table");
	buf_done(&out);
	buf_done(&text);
}

static void test_file(void)
{
	char path[] = "/tmp/mcpt-trust-XXXXXX", text[sizeof(ONE)] = "";
	struct trust t = { .fd = -1 };
	struct err e = { 0 };
	int fd = mkstemp(path);

	tap_ok(fd >= 0 && fd_write_full(fd, "words\n" ONE, strlen("words\n" ONE)) == 0, "a file is written");
	tap_int(trust_open(path, &t, &e), 0, "and read (%s)", e.message);
	tap_ok(t.id != 0 && fd_read_full(t.fd, text, sizeof(text)) == (ssize_t)strlen(ONE) && strcmp(text, ONE) == 0,
	       "its certificates alone are kept");
	tap_int(write(t.fd, "x", 1), -1, "where nobody can change them");
	trust_done(&t);
	tap_int(t.fd, -1, "and closed");
	(void)fchmod(fd, 0666);
	tap_ok(trust_open(path, &t, &e) < 0 && strstr(e.message, "others may write"), "not one that others may write");
	(void)fchmod(fd, 0600);
	tap_ok(ftruncate(fd, TRUST_FILE_MAX + 1) == 0 && trust_open(path, &t, &e) < 0 && strstr(e.message, "larger"),
	       "not one that is too large");
	(void)close(fd);
	(void)unlink(path);
	tap_ok(trust_open(path, &t, &e) < 0 && e.code == ERR_CONFIG, "not one that is not there");
	tap_ok(trust_open("/dev/zero", &t, &e) < 0 && strstr(e.message, "regular"), "not a device");
}

int main(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check(i);
	test_bound();
	test_file();
	return tap_done();
}
