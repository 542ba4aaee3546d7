/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_sources.c - hosts in apt's sources, both forms */
#include "runtime/image_sources.h"

#include <string.h>

#include "tests/unit/tap.h"

static const struct {
	const char *desc, *text, *want;
} rows[] = {
	{ "nothing", "", "" },
	{ "one line", "deb http://deb.example/debian stable main\n", "deb.example" },
	{ "options", "deb [arch=amd64 signed-by=/k] https://deb.example/d stable main", "deb.example" },
	{ "a comment", "# deb http://old.example/debian stable main\ndeb http://deb.example/ s m\n",
	  "deb.example" },
	{ "a comment behind", "deb http://deb.example/ s m # http://no.example/\n", "deb.example" },
	{ "deb822", "Types: deb\nURIs: http://a.example/debian https://b.example:8443/x\nSuites: s\n",
	  "a.example,b.example:8443" },
	{ "twice", "deb http://a.example/ s m\ndeb-src http://a.example/ s m\n", "a.example" },
	{ "no line end, carriage return", "URIs: http://a.example\r", "a.example" },
	{ "other methods", "deb file:/srv s m\ndeb cdrom:[x]/ s m\ndeb ftp://f.example/ s m\n", "" },
	{ "no hosts", "deb http:/// s m\ndeb http://localhost/ s m\ndeb http://u@h.example/ s m\n"
		      "deb http://*.example/ s m\ndeb http://a,b.example/ s m\n", "" },
	{ "an address", "deb http://203.0.113.9/debian s m\n", "203.0.113.9" },
};

static void test_bound(void)
{
	char hosts[NET_APT_HOSTS_MAX] = "", line[64];

	for (int i = 0; i < 1000; i++) {
		(void)snprintf(line, sizeof(line), "deb http://host-%d.example/ s m\n", i);
		image_apt_scan(line, hosts);
	}
	tap_ok(strlen(hosts) < NET_APT_HOSTS_MAX && strlen(hosts) > NET_APT_HOSTS_MAX - 32,
	       "many hosts fill the room and no more");
}

int main(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char hosts[NET_APT_HOSTS_MAX] = "";

		image_apt_scan(rows[i].text, hosts);
		tap_str(hosts, rows[i].want, "%s", rows[i].desc);
	}
	test_bound();
	return tap_done();
}
