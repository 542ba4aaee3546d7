/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/image_apt.c - the host's Debian mirror, whatever form its configuration has
 *
 * Runs in: the command line's "image build". apt itself says what it would fetch (one-line files, deb822
 * files, includes and variables are its business), run in a box as nobody of importance. Only
 * archives that call themselves Debian and carry the host's own release are taken over: a vendor's
 * repository next to them has no business in an image, nor a password that stands in an address.
 */
#include "runtime/image_apt.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"
#include "runtime/image_box.h"

#define URI_ALPHABET                                                                               \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:/._~%+-" /* no '@' */

static bool is_uri(const char *uri)
{
	return (strncmp(uri, "http://", 7) == 0 || strncmp(uri, "https://", 8) == 0) &&
	       strspn(uri, URI_ALPHABET) == strlen(uri);
}

/* suite_matches() - "bookworm", "bookworm-updates", "bookworm-security" for the codename bookworm. */
static bool suite_matches(const char *suite, const char *codename)
{
	size_t len = strlen(codename);

	return len > 0 && strncmp(suite, codename, len) == 0 &&
	       (suite[len] == '\0' || strcmp(suite + len, "-updates") == 0 ||
		strcmp(suite + len, "-security") == 0);
}

/* split_uri() - "http://host/debian/dists/bookworm/InRelease" into archive and suite. */
static int split_uri(char *uri, const char **ret_suite)
{
	char *end = strstr(uri, "/InRelease");
	char *dists = NULL;

	for (char *p = strstr(uri, "/dists/"); p; p = strstr(p + 1, "/dists/"))
		dists = p;
	if (!dists || !end || end[sizeof("/InRelease") - 1] != '\0' || end <= dists + 7)
		return -1;
	*end = '\0';
	*dists = '\0';
	*ret_suite = dists + 7;
	return 0;
}

static void take_source(struct apt_host *host, const char *uri, const char *suite)
{
	struct apt_source *source = &host->source[host->source_count];

	if (host->source_count < APT_SOURCES_MAX &&
	    str_copy(source->uri, sizeof(source->uri), uri) == 0 &&
	    str_copy(source->suite, sizeof(source->suite), suite) == 0)
		host->source_count++;
}

static void parse_uri_line(struct apt_host *host, const char *line, size_t len,
			   apt_release_fn *read_release)
{
	char copy[512], uri[512], name[256], origin[64], codename[64];
	const char *suite;

	if (len >= sizeof(copy))
		return;
	memcpy(copy, line, len);
	copy[len] = '\0';
	if (sscanf(copy, "'%511[^']' %255s", uri, name) != 2)
		return;
	if (!is_uri(uri) || split_uri(uri, &suite) < 0)
		return;
	if (read_release(name, origin, codename) == 0) {
		if (strcmp(origin, "Debian") != 0 || !suite_matches(codename, host->codename))
			return;
		suite = codename; /* "stable" in the host's file is a moving target */
	}
	if (suite_matches(suite, host->codename))
		take_source(host, uri, suite);
}

void apt_parse_uris(struct apt_host *host, const char *text, apt_release_fn *read_release)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		parse_uri_line(host, text, len, read_release);
		text += len;
		text += *text == '\n';
	}
}

/* is_wanted_option() - how to reach the archive and how strict to be about its dates. Whole names: not
 * Proxy-Auto-Detect, which is a program to run. */
static bool is_wanted_option(const char *line)
{
	static const char *const names[] = { "Acquire::http::Proxy",   "Acquire::https::Proxy",
					     "Acquire::https::CAInfo", "Acquire::Check-Valid-Until",
					     "Acquire::Check-Date",    "Acquire::ForceIPv4",
					     "Acquire::ForceIPv6" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t len = strlen(names[i]);

		if (strncasecmp(line, names[i], len) == 0 &&
		    (line[len] == ' ' || strncmp(line + len, "::", 2) == 0))
			return true;
	}
	return false;
}

/* has_value() - 'Acquire::http::Proxy "";' is apt's way to say that there is none. */
static bool has_value(const char *line)
{
	const char *quote = strchr(line, '"');

	return quote && quote[1] != '"';
}

void apt_parse_options(struct apt_host *host, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");
		char *line = host->option[host->option_count];

		if (len > 0 && len < APT_LINE_MAX && host->option_count < APT_OPTIONS_MAX - 1) {
			memcpy(line, text, len);
			line[len] = '\0';
			if (is_wanted_option(line) && has_value(line))
				host->option_count++;
		}
		text += len;
		text += *text == '\n';
	}
}

int apt_source_line(const struct apt_host *host, size_t i, const char *suite, const char *keyring,
		    char ret[APT_LINE_MAX])
{
	const char *tail = host->source[i].suite + strlen(host->codename);
	bool rolling = strcmp(suite, "sid") == 0 || strcmp(suite, "unstable") == 0;
	int n;

	if (rolling && tail[0])
		return 1;
	n = snprintf(ret, APT_LINE_MAX, "deb %s%s%s%s %s%s main", keyring ? "[signed-by=" : "",
		     keyring ? keyring : "", keyring ? "] " : "", host->source[i].uri, suite, tail);
	return n < 0 || n >= APT_LINE_MAX ? -1 : 0;
}

/* ---- asking the host ---- */

/* line_value() - the rest of the first line that starts with key. */
static int line_value(const char *text, const char *key, char *ret, size_t size)
{
	size_t key_len = strlen(key);

	for (const char *p = text; *p;) {
		size_t len = strcspn(p, "\n");

		if (len > key_len && strncmp(p, key, key_len) == 0 && len - key_len < size) {
			memcpy(ret, p + key_len, len - key_len);
			ret[len - key_len] = '\0';
			return 0;
		}
		p += len;
		p += *p == '\n';
	}
	return -1;
}

/* read_head() - the beginning of a file of the host. */
static int read_head(const char *path, char *text, size_t size)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : fd_read_full(fd, text, size - 1);

	if (n < 0)
		return -1;
	text[n] = '\0';
	return 0;
}

/* host_release() - what the host's apt has downloaded last time says about an archive. */
static int host_release(const char *name, char origin[64], char codename[64])
{
	char path[512], text[4096];

	if (strchr(name, '/'))
		return -1;
	(void)snprintf(path, sizeof(path), "/var/lib/apt/lists/%s", name);
	if (read_head(path, text, sizeof(text)) < 0 ||
	    line_value(text, "Origin: ", origin, 64) < 0 ||
	    line_value(text, "Codename: ", codename, 64) < 0)
		return -1;
	return 0;
}

static void read_codename(char ret[32])
{
	char text[4096], id[32];

	ret[0] = '\0';
	if (read_head("/etc/os-release", text, sizeof(text)) < 0 ||
	    line_value(text, "ID=", id, sizeof(id)) < 0 || strcmp(id, "debian") != 0)
		return;
	if (line_value(text, "VERSION_CODENAME=", ret, 32) < 0 || !recipe_is_suite(ret))
		ret[0] = '\0';
}

/* ask() - the standard output of one of the host's apt programs. */
static int ask(const struct idrange *ids, char *const argv[], struct buf *ret, struct err *e)
{
	char *env[] = { (char[]){ "PATH=/usr/sbin:/usr/bin:/sbin:/bin" }, (char[]){ "LC_ALL=C" }, NULL };
	struct box box = { .role = BOX_BOOTSTRAP, .stdin_fd = -1, .stderr_fd = -1, .argv = argv,
			   .envp = env };
	struct box_proc proc;
	int pipe_fd[2];
	char text[4096];
	ssize_t n;

	if (pipe2(pipe_fd, O_CLOEXEC) < 0)
		return err_sys(e, "make a pipe");
	box.stdout_fd = pipe_fd[1];
	if (box_start(ids, &box, &proc, e) < 0) {
		(void)close(pipe_fd[0]);
		(void)close(pipe_fd[1]);
		return -1;
	}
	(void)close(pipe_fd[1]);
	while ((n = read(pipe_fd[0], text, sizeof(text))) > 0 && buf_append(ret, text, (size_t)n) == 0)
		;
	(void)close(pipe_fd[0]);
	return box_wait(&proc) == 0 && !ret->overflow ? 0 : err_set(e, ERR_HOST, "%s failed", argv[0]);
}

int apt_host_read(const struct idrange *ids, struct apt_host *ret, struct err *e)
{
	char *uris[] = { (char[]){ "/usr/bin/apt-get" }, (char[]){ "update" },
			 (char[]){ "--print-uris" }, NULL };
	char *options[] = { (char[]){ "/usr/bin/apt-config" }, (char[]){ "dump" }, NULL };
	struct buf text;
	int r;

	*ret = (struct apt_host){ 0 };
	read_codename(ret->codename);
	if (access(uris[0], X_OK) < 0)
		return 0;
	buf_init(&text, APT_OUTPUT_MAX);
	r = ask(ids, options, &text, e);
	if (r == 0 && text.data)
		apt_parse_options(ret, text.data);
	text.len = 0;
	if (r == 0 && ret->codename[0])
		r = ask(ids, uris, &text, e);
	if (r == 0 && ret->codename[0] && text.data && text.len > 0)
		apt_parse_uris(ret, text.data, host_release);
	buf_done(&text);
	return r;
}
