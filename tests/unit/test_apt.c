/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_apt.c - the host's apt configuration as sources of an image */
#include "runtime/image_apt.h"
#include "tests/unit/tap.h"

static int no_release(const char *name, char origin[64], char codename[64])
{
	(void)name;
	(void)origin;
	(void)codename;
	return -1;
}

/* Release files by name, as the host would have them. */
static int some_release(const char *name, char origin[64], char codename[64])
{
	static const struct {
		const char *name, *origin, *codename;
	} rows[] = { { "d_stable", "Debian", "bookworm" },
		     { "d_trixie", "Debian", "trixie" },
		     { "vendor", "Raspberry Pi Foundation", "bookworm" } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].name, name) != 0)
			continue;
		snprintf(origin, 64, "%s", rows[i].origin);
		snprintf(codename, 64, "%s", rows[i].codename);
		return 0;
	}
	return -1;
}

static void test_uris(void)
{
	static const struct {
		const char *desc, *text, *uri, *suite; /* uri NULL: nothing is taken */
	} rows[] = {
		{ "plain", "'http://m/debian/dists/bookworm/InRelease' n 0\n", "http://m/debian",
		  "bookworm" },
		{ "no line end", "'http://m/debian/dists/bookworm/InRelease' n 0", "http://m/debian",
		  "bookworm" },
		{ "updates", "'http://m/debian/dists/bookworm-updates/InRelease' n 0\n",
		  "http://m/debian", "bookworm-updates" },
		{ "security over https",
		  "'https://m/debian-security/dists/bookworm-security/InRelease' n 0\n",
		  "https://m/debian-security", "bookworm-security" },
		{ "dists twice", "'http://m/dists/x/dists/bookworm/InRelease' n 0\n",
		  "http://m/dists/x", "bookworm" },
		{ "moving name with a release file", "'http://m/debian/dists/stable/InRelease' d_stable 0\n",
		  "http://m/debian", "bookworm" },
		{ "moving name without", "'http://m/debian/dists/stable/InRelease' n 0\n", NULL, NULL },
		{ "another release", "'http://m/debian/dists/trixie/InRelease' d_trixie 0\n", NULL, NULL },
		{ "a vendor with our codename", "'http://v/debian/dists/bookworm/InRelease' vendor 0\n",
		  NULL, NULL },
		{ "backports", "'http://m/debian/dists/bookworm-backports/InRelease' n 0\n", NULL, NULL },
		{ "longer codename", "'http://m/debian/dists/bookwormish/InRelease' n 0\n", NULL, NULL },
		{ "indexes", "'http://m/debian/dists/bookworm/main/Packages.xz' n 0\n", NULL, NULL },
		{ "flat archive", "'http://m/InRelease' n 0\n", NULL, NULL },
		{ "compact disc", "'cdrom:[x]/dists/bookworm/InRelease' n 0\n", NULL, NULL },
		{ "file", "'file:/srv/dists/bookworm/InRelease' n 0\n", NULL, NULL },
		{ "password", "'http://u:p@m/debian/dists/bookworm/InRelease' n 0\n", NULL, NULL },
		{ "option in the address", "'http://m/ [trusted=yes]/dists/bookworm/InRelease' n 0\n",
		  NULL, NULL },
		{ "nothing between", "'http://m/debian/dists//InRelease' n 0\n", NULL, NULL },
		{ "no quote", "http://m/debian/dists/bookworm/InRelease n 0\n", NULL, NULL },
		{ "empty", "", NULL, NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct apt_host host = { .codename = "bookworm" };

		apt_parse_uris(&host, rows[i].text, some_release);
		if (!tap_int(host.source_count, rows[i].uri ? 1 : 0, "%s", rows[i].desc) ||
		    !rows[i].uri)
			continue;
		tap_str(host.source[0].uri, rows[i].uri, "%s: address", rows[i].desc);
		tap_str(host.source[0].suite, rows[i].suite, "%s: suite", rows[i].desc);
	}
}

static void test_many(void)
{
	char text[8192] = "", line[8192];
	struct apt_host host = { .codename = "bookworm" };
	size_t len = 0;

	for (int i = 0; i < 40; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"'http://m%d/debian/dists/bookworm/InRelease' n 0\n", i);
	apt_parse_uris(&host, text, no_release);
	tap_int(host.source_count, APT_SOURCES_MAX, "more sources than there is room for");
	memset(line, 'a', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	host.source_count = 0;
	apt_parse_uris(&host, line, no_release);
	tap_int(host.source_count, 0, "a line without an end");
}

static void test_options(void)
{
	static const char text[] = "APT \"\";\n"
				   "Acquire::http::Proxy \"http://p:3128\";\n"
				   "Acquire::https::Proxy \"\";\n"
				   "Acquire::Check-Valid-Until \"false\";\n"
				   "Acquire::AllowInsecureRepositories \"1\";\n"
				   "Acquire::http::Proxy-Auto-Detect \"/bin/x\";\n"
				   "APT::Update::Pre-Invoke:: \"touch /x\";\n"
				   "DPkg::Post-Invoke:: \"touch /x\";\n";
	struct apt_host host = { .codename = "bookworm" };

	apt_parse_options(&host, text);
	tap_int(host.option_count, 2, "only what downloading needs, and only where it is set");
	tap_str(host.option[0], "Acquire::http::Proxy \"http://p:3128\";", "the proxy");
	tap_str(host.option[1], "Acquire::Check-Valid-Until \"false\";", "the dates");
}

static void test_lines(void)
{
	struct apt_host host = { .codename = "bookworm",
				 .source = { { "http://m/debian", "bookworm" },
					     { "http://s/debian-security", "bookworm-security" } },
				 .source_count = 2 };
	char line[APT_LINE_MAX];

	tap_int(apt_source_line(&host, 0, "bookworm", NULL, line), 0, "a line of the host's release");
	tap_str(line, "deb http://m/debian bookworm main", "is as the host has it");
	tap_int(apt_source_line(&host, 1, "trixie", "/k.gpg", line), 0, "a line of another release");
	tap_str(line, "deb [signed-by=/k.gpg] http://s/debian-security trixie-security main",
		"keeps the mirror and the kind of archive");
	tap_int(apt_source_line(&host, 0, "sid", NULL, line), 0, "sid has the plain archive");
	tap_int(apt_source_line(&host, 1, "sid", NULL, line), 1, "and no security archive");
}

int main(void)
{
	test_uris();
	test_many();
	test_options();
	test_lines();
	return tap_done();
}
