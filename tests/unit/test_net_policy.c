/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_net_policy.c - host names and the allowlist, row by row */
#include "runtime/net_policy.h"

#include <string.h>

#include "tests/unit/tap.h"

#define BYTES(s) s, sizeof(s) - 1
#define LABEL_63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct {
	const char *desc, *bytes;
	size_t len;
	const char *want; /* NULL: refused */
} hosts[] = {
	{ "a name", BYTES("example.com"), "example.com" },
	{ "upper case", BYTES("EXAMPLE.Com"), "example.com" },
	{ "the root's dot", BYTES("example.com."), "example.com" },
	{ "two dots at the end", BYTES("example.com.."), NULL },
	{ "a dot alone", BYTES("."), NULL },
	{ "nothing", BYTES(""), NULL },
	{ "a NUL between two names", BYTES("evil.example\0.example.com"), NULL },
	{ "a NUL at the end", BYTES("example.com\0"), NULL },
	{ "an empty label", BYTES("a..example.com"), NULL },
	{ "a dot in front", BYTES(".example.com"), NULL },
	{ "a space", BYTES("example .com"), NULL },
	{ "a line feed", BYTES("example.com\n"), NULL },
	{ "a slash", BYTES("example.com/x"), NULL },
	{ "an at sign", BYTES("a@example.com"), NULL },
	{ "a percent sign", BYTES("ex%61mple.com"), NULL },
	{ "a wildcard", BYTES("*.example.com"), NULL },
	{ "bytes above 127", BYTES("ex\xc3\xa4mple.com"), NULL },
	{ "a full-width letter", BYTES("\xef\xbd\x85xample.com"), NULL },
	{ "punycode", BYTES("xn--exmple-cua.com"), "xn--exmple-cua.com" },
	{ "an underscore", BYTES("_dmarc.example.com"), "_dmarc.example.com" },
	{ "a dash in front", BYTES("-a.example.com"), NULL },
	{ "a dash behind", BYTES("a-.example.com"), NULL },
	{ "63 bytes", BYTES(LABEL_63 ".com"), LABEL_63 ".com" },
	{ "64 bytes", BYTES("a" LABEL_63 ".com"), NULL },
	{ "255 bytes", BYTES(LABEL_63 "." LABEL_63 "." LABEL_63 "." LABEL_63), NULL },
	{ "one label", BYTES("localhost"), "localhost" },
	{ "an address", BYTES("203.0.113.7"), "203.0.113.7" },
	{ "an address with a dot behind", BYTES("203.0.113.7."), NULL },
	{ "a short address", BYTES("127.1"), NULL },
	{ "a number", BYTES("2130706433"), NULL },
	{ "a hexadecimal number", BYTES("0x7f000001"), NULL },
	{ "a hexadecimal last part", BYTES("127.0.0.0x1"), NULL },
	{ "an octal part", BYTES("0177.0.0.1"), NULL },
	{ "a name that starts with a digit", BYTES("1.example"), "1.example" },
	{ "IPv6", BYTES("2001:DB8::1"), "2001:db8::1" },
	{ "IPv6 in brackets", BYTES("[2001:db8::1]"), "2001:db8::1" },
	{ "IPv4 in brackets", BYTES("[127.0.0.1]"), NULL },
	{ "a zone", BYTES("fe80::1%eth0"), NULL },
	{ "half a bracket", BYTES("[::1"), NULL },
};

static void test_hosts(void)
{
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		struct tap_guard g = tap_guard_new(hosts[i].bytes, hosts[i].len);
		struct net_dest host = { .name = "untouched" };
		int r = net_dest_parse(g.data, hosts[i].len, &host);

		tap_int(r, hosts[i].want ? 0 : -1, "%s is %s", hosts[i].desc,
			hosts[i].want ? "a host" : "refused");
		tap_str(host.name, hosts[i].want ? hosts[i].want : "untouched", "%s: its form",
			hosts[i].desc);
		tap_guard_free(&g);
	}
}

static const struct {
	const char *text;
	int default_port, want_port; /* -1: refused */
	const char *want;
} ports[] = {
	{ "example.com:443", -1, 443, "example.com" },
	{ "example.com", 80, 80, "example.com" },
	{ "example.com", -1, -1, NULL },
	{ "example.com:", 80, -1, NULL },
	{ "example.com:0", 80, -1, NULL },
	{ "example.com:65535", 80, 65535, "example.com" },
	{ "example.com:65536", 80, -1, NULL },
	{ "example.com:+80", 80, -1, NULL },
	{ "example.com:080", 80, 80, "example.com" },
	{ "example.com:80:80", 80, -1, NULL },
	{ "[::1]:80", -1, 80, "::1" },
	{ "[::1]", 80, 80, "::1" },
	{ "::1:80", -1, -1, NULL },
	{ ":80", -1, -1, NULL },
};

static void test_ports(void)
{
	for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
		size_t len = strlen(ports[i].text);
		struct tap_guard g = tap_guard_new(ports[i].text, len);
		struct net_dest host = { 0 };
		uint16_t port = 0;
		int r = net_dest_port_parse(g.data, len, ports[i].default_port, &host, &port);

		tap_int(r < 0 ? -1 : (int)port, ports[i].want_port, "\"%s\" with default %d",
			ports[i].text, ports[i].default_port);
		if (r == 0)
			tap_str(host.name, ports[i].want, "\"%s\": the host", ports[i].text);
		tap_guard_free(&g);
	}
}

#define LISTS "python=pypi.example,files.example:8443;own-2=*.own.example"

static const struct {
	const char *allow, *host;
	uint16_t port;
	bool want;
} matches[] = {
	/* an empty list is no list: nothing, not everything */
	{ "", "example.com", 443, false },
	{ "example.com", "example.com", 443, true },
	{ "example.com", "EXAMPLE.com.", 80, true },
	{ "example.com", "example.com", 22, false },
	{ "example.com", "a.example.com", 443, false },
	{ "example.com", "example.com.evil.test", 443, false },
	{ "example.com", "notexample.com", 443, false },
	{ "example.com", "com", 443, false },
	{ "Example.COM", "example.com", 443, true },
	{ "example.com:22", "example.com", 22, true },
	{ "example.com:22", "example.com", 443, false },
	{ "example.com,example.com:22", "example.com", 22, true },
	{ "*.example.com", "a.example.com", 443, true },
	{ "*.example.com", "example.com", 443, false },
	{ "*.example.com", "a.b.example.com", 443, false },
	{ "*.example.com", "aexample.com", 443, false },
	{ "*.example.com:8443", "a.example.com", 8443, true },
	{ "*.example.com:8443", "a.example.com", 443, false },
	{ "203.0.113.7", "203.0.113.7", 443, true },
	{ "203.0.113.7", "::ffff:203.0.113.7", 443, true },
	{ "203.0.113.7", "203.0.113.8", 443, false },
	{ "example.com", "203.0.113.7", 443, false },
	{ "[2001:db8::1]:22", "2001:db8:0::1", 22, true },
	{ "2001:db8::1", "2001:db8::1", 443, true },
	{ "apt", "deb.example", 80, true },
	{ "apt", "mirror.example", 8080, true },
	{ "apt", "mirror.example", 80, false },
	{ "apt", "pypi.example", 443, false },
	{ "python", "pypi.example", 443, true },
	{ "python", "files.example", 8443, true },
	{ "python", "deb.example", 443, false },
	{ "own-2,python", "a.own.example", 443, true },
	{ "example.com", "example.com", 0, false },
};

static void test_matches(void)
{
	static struct net_policy p;

	for (size_t i = 0; i < sizeof(matches) / sizeof(matches[0]); i++) {
		struct net_dest host = { 0 };
		struct err e = { 0 };

		tap_int(net_policy_parse(&p, NET_ALLOWLIST, matches[i].allow, LISTS,
					 "deb.example,mirror.example:8080", &e),
			0, "\"%s\" is a list", matches[i].allow);
		(void)net_dest_parse(matches[i].host, strlen(matches[i].host), &host);
		tap_int(net_policy_allows(&p, &host, matches[i].port), matches[i].want,
			"\"%s\" %s %s:%u", matches[i].allow, matches[i].want ? "allows" : "refuses",
			matches[i].host, matches[i].port);
	}
}

static const struct {
	const char *allow, *lists;
} wrong[] = {
	{ "example.com,,example.org", "" },
	{ ",example.com", "" },
	{ "example.com,", "" },
	{ ",", "" },
	{ "*", "" },
	{ "*.", "" },
	{ "*.com", "" },
	{ "**.example.com", "" },
	{ "a.*.example.com", "" },
	{ "*.203.0.113.7", "" },
	{ "localhost", "" },
	{ "localhost:80", "" },
	{ "unknown", LISTS },
	{ "http://example.com", "" },
	{ "example.com:99999", "" },
	{ "127.1", "" },
	{ "0x7f.0.0.1", "" },
	{ "apt", "apt=evil.example" },
	{ "example.com", "=a.example" },
	{ "example.com", "word" },
	{ "example.com", "a.b=a.example" },
	{ "word", "word=other" },
	{ "word", "word=a.example,,b.example" },
};

static void test_wrong(void)
{
	static struct net_policy p;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct err e = { 0 };

		tap_int(net_policy_parse(&p, NET_ALLOWLIST, wrong[i].allow, wrong[i].lists, "", &e), -1,
			"\"%s\" with lists \"%s\" is refused", wrong[i].allow, wrong[i].lists);
		tap_int(e.code, ERR_CONFIG, "as a setting");
	}
}

static void test_modes(void)
{
	static struct net_policy p;
	struct net_dest host = { 0 };
	struct err e = { 0 };
	char text[NET_NAME_MAX + 16];

	(void)net_dest_parse("example.com", 11, &host);
	(void)net_policy_parse(&p, NET_INTERNET, "", "", "", &e);
	tap_ok(net_policy_allows(&p, &host, 22), "internet: every name and port");
	(void)net_policy_parse(&p, NET_NONE, "example.com", "", "", &e);
	tap_ok(!net_policy_allows(&p, &host, 443), "none: not even what is listed");
	(void)net_policy_parse(&p, NET_ALLOWLIST, "apt", "", "", &e);
	tap_int(p.count, 0, "apt of an image with no known sources allows nothing");
	tap_ok(net_policy_uses("a.example,apt", "apt"), "apt is used");
	tap_ok(!net_policy_uses("apt.example,aptitude", "apt"), "apt is not used");
	(void)net_policy_parse(&p, NET_ALLOWLIST, "*.a.example:22,[2001:db8::1]:22", "", "", &e);
	tap_str(net_policy_format_rule(&p.rules[0], text, sizeof(text)), "*.a.example:22", "a rule");
	tap_str(net_policy_format_rule(&p.rules[1], text, sizeof(text)), "[2001:db8::1]:22",
		"an address");
}

static void test_too_many(void)
{
	static struct net_policy p;
	static char text[(NET_RULES_MAX + 1) * sizeof("a.example,")];
	struct err e = { 0 };

	for (size_t i = 0; i < NET_RULES_MAX; i++)
		memcpy(text + i * 10, "a.example,", 10);
	text[NET_RULES_MAX * 10 - 1] = '\0';
	tap_int(net_policy_parse(&p, NET_ALLOWLIST, text, "", "", &e), 0, "as many rules as fit");
	memcpy(text + NET_RULES_MAX * 10 - 1, ",b.example", 11);
	tap_int(net_policy_parse(&p, NET_ALLOWLIST, text, "", "", &e), -1, "one more");
}

int main(void)
{
	test_hosts();
	test_ports();
	test_matches();
	test_wrong();
	test_modes();
	test_too_many();
	return tap_done();
}
