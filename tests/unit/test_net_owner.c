/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_net_owner.c - an owner's network is never more than the server's */
#include "runtime/net_owner.h"

#include <string.h>

#include "runtime/base/str.h"
#include "runtime/owners.h"
#include "tests/unit/tap.h"

static const struct {
	const char *desc;
	enum net_mode net;
	const char *allow, *text;
	enum net_mode want; /* of alice */
	const char *list;   /* NULL: refused */
} rows[] = {
	{ "nothing said", NET_INTERNET, "", "", NET_INTERNET, "" },
	{ "none", NET_INTERNET, "", "alice=none", NET_NONE, "" },
	{ "somebody else's", NET_INTERNET, "", "bob=none;carol=none", NET_INTERNET, "" },
	{ "the same", NET_INTERNET, "", "alice=internet", NET_INTERNET, "" },
	{ "a list in the internet", NET_INTERNET, "", "bob=none;alice=allowlist:a.example,b.example:22", NET_ALLOWLIST,
	  "a.example,b.example:22" },
	{ "the server's list in the internet", NET_INTERNET, "a.example", "alice=allowlist", NET_ALLOWLIST,
	  "a.example" },
	{ "an empty list", NET_INTERNET, "a.example", "alice=allowlist:", NET_ALLOWLIST, "" },
	{ "none of a list", NET_ALLOWLIST, "a.example", "alice=none;", NET_NONE, "a.example" },
	{ "a part of a list", NET_ALLOWLIST, "a.example,b.example", "alice=allowlist:b.example", NET_ALLOWLIST,
	  "b.example" },
	{ "a part of a wildcard", NET_ALLOWLIST, "*.a.example", "alice=allowlist:b.a.example:443", NET_ALLOWLIST,
	  "b.a.example:443" },
	{ "both ports in two items", NET_ALLOWLIST, "b.example:80,b.example:443", "alice=allowlist:b.example",
	  NET_ALLOWLIST, "b.example" },
	{ "a list's word", NET_ALLOWLIST, "b.example,c.example", "alice=allowlist:tools", NET_ALLOWLIST, "tools" },
	{ "apt of apt", NET_ALLOWLIST, "apt,a.example", "alice=allowlist:apt", NET_ALLOWLIST, "apt" },
	{ "more than none", NET_NONE, "", "alice=allowlist:a.example", NET_NONE, NULL },
	{ "more than a list", NET_ALLOWLIST, "a.example", "alice=internet", NET_NONE, NULL },
	{ "another name", NET_ALLOWLIST, "a.example", "alice=allowlist:b.example", NET_NONE, NULL },
	{ "another port", NET_ALLOWLIST, "a.example", "alice=allowlist:a.example:22", NET_NONE, NULL },
	{ "one port of two", NET_ALLOWLIST, "a.example:443", "alice=allowlist:a.example", NET_NONE, NULL },
	{ "a wildcard of a name", NET_ALLOWLIST, "a.b.example", "alice=allowlist:*.b.example", NET_NONE, NULL },
	{ "a name below a wildcard's", NET_ALLOWLIST, "*.b.example", "alice=allowlist:b.example", NET_NONE, NULL },
	{ "a word that stands for more", NET_ALLOWLIST, "b.example", "alice=allowlist:tools", NET_NONE, NULL },
	{ "apt of no apt", NET_ALLOWLIST, "a.example", "alice=allowlist:apt", NET_NONE, NULL },
	{ "an empty server's list", NET_ALLOWLIST, "", "alice=allowlist:a.example", NET_NONE, NULL },
	{ "twice", NET_INTERNET, "", "alice=none;alice=internet", NET_NONE, NULL },
	{ "no mode", NET_INTERNET, "", "alice", NET_NONE, NULL },
	{ "an empty mode", NET_INTERNET, "", "alice=", NET_NONE, NULL },
	{ "an unknown mode", NET_INTERNET, "", "alice=lan", NET_NONE, NULL },
	{ "a list of none", NET_INTERNET, "", "alice=none:a.example", NET_NONE, NULL },
	{ "no owner", NET_INTERNET, "", "=none", NET_NONE, NULL },
	{ "no owner's name", NET_INTERNET, "", "A.B=none", NET_NONE, NULL },
	{ "a list that does not exist", NET_INTERNET, "", "alice=allowlist:nowhere", NET_NONE, NULL },
	{ "a bad item", NET_INTERNET, "", "alice=allowlist:a..example", NET_NONE, NULL },
};

static struct settings s;

static void check(size_t i)
{
	char id[OWNER_ID_LEN + 1];
	struct net_grant grant;
	struct err e = { 0 };
	int r;

	memset(&s, 0, sizeof(s));
	s.net = rows[i].net;
	(void)str_copy(s.net_allow, sizeof(s.net_allow), rows[i].allow);
	(void)str_copy(s.net_lists, sizeof(s.net_lists), "tools=b.example,c.example");
	r = net_owners_parse(&s, rows[i].text, &e);
	if (!rows[i].list) {
		tap_ok(r < 0 && e.code == ERR_CONFIG && e.remedy[0], "%s: refused, %s", rows[i].desc, e.message);
		return;
	}
	(void)owner_id_of("alice", id, &e);
	grant = net_grant_of(&s, id);
	tap_ok(r == 0 && grant.mode == rows[i].want, "%s: mode %d %s", rows[i].desc, grant.mode, e.message);
	tap_str(grant.allow, rows[i].list, "%s: the list", rows[i].desc);
}

static void test_bounds(void)
{
	char text[NET_TEXT_MAX] = "", *end = text;
	struct err e = { 0 };

	memset(&s, 0, sizeof(s));
	s.net = NET_INTERNET;
	for (int i = 0; i < OWNER_NET_MAX; i++)
		end += snprintf(end, 32, "owner%d=none;", i);
	tap_int(net_owners_parse(&s, text, &e), 0, "as many owners as there may be");
	(void)snprintf(end, 32, "another=none");
	tap_int(net_owners_parse(&s, text, &e), -1, "one more is refused");
	end = text + snprintf(text, sizeof(text), "alice=allowlist:a.example");
	for (int i = 0; i < 60; i++)
		end += snprintf(end, 32, ",a%02d.example", i);
	tap_int(net_owners_parse(&s, text, &e), -1, "a list longer than the room is refused");
}

int main(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check(i);
	test_bounds();
	return tap_done();
}
