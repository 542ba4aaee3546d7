/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/net_policy.h - which names and ports a sandbox may reach: the allowlist
 *
 * SANDBOX_NET_ALLOW is a comma-separated list of
 *   example.com        that name, ports 80 and 443
 *   example.com:8443   that name, that port
 *   *.example.com      every name with exactly one label in front of it, not example.com itself
 *   203.0.113.7:22     a numeric address ([v6]:port); it still has to be outside the denied ranges
 *   apt                the hosts of the image's own apt sources
 *   word               a list of SANDBOX_NET_LISTS ("word=item,item;other=item")
 * An empty list allows nothing. What is allowed by name still has to resolve to an address outside
 * runtime/net_ranges.h.
 *
 * A host is brought into one form first, and exactly these bytes are matched, resolved and logged.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/err.h"
#include "runtime/net_ranges.h"
#include "runtime/spec.h"

enum {
	NET_NAME_MAX = 254, /* 253 and the NUL */
	NET_RULES_MAX = 256,
	NET_PORT_WEB = 0,   /* a rule without a port: 80 and 443 */
};

struct net_dest {
	bool is_address;
	struct net_addr addr; /* when is_address */
	char name[NET_NAME_MAX]; /* lower case, no dot at the end; of an address its usual form */
};

struct net_rule {
	struct net_dest host; /* of a wildcard what stands behind "*." */
	uint16_t port;
	bool wildcard;
};

struct net_policy {
	enum net_mode mode; /* NET_INTERNET: every name, NET_ALLOWLIST: the rules, NET_NONE: nothing */
	size_t count;
	struct net_rule rules[NET_RULES_MAX];
};

/* net_dest_parse() - the grammar comes before everything else: letters, digits, "-" and "_" in labels
 * of 1 to 63, at most 253 in all; or a numeric address, IPv6 with or without brackets. Refused: NUL and
 * every other byte, empty labels, and what inet_aton() would take for an address ("127.1", "0x7f.1").
 * Return: 0, -1. */
int net_dest_parse(const char *bytes, size_t len, struct net_dest *ret);

/* net_dest_port_parse() - "host:port" or "[v6]:port"; without a port default_port counts, and when that
 * is negative it is an error. Return: 0, -1. */
int net_dest_port_parse(const char *bytes, size_t len, int default_port, struct net_dest *ret,
			uint16_t *ret_port);

/* net_policy_parse() - allow and lists as in the settings; apt_hosts is what "apt" stands for
 * ("" = not known: it then allows nothing). Return: 0, -1 (ERR_CONFIG names the item). */
int net_policy_parse(struct net_policy *ret, enum net_mode mode, const char *allow, const char *lists,
		     const char *apt_hosts, struct err *e);

/* net_policy_uses() - is this word one of the comma-separated items? */
bool net_policy_uses(const char *allow, const char *word);

/* net_policy_allows() - by name and port alone; the address is checked when it is known. */
bool net_policy_allows(const struct net_policy *p, const struct net_dest *host, uint16_t port);

/* net_policy_covers() - does the list let through everything that this rule would? */
bool net_policy_covers(const struct net_policy *p, const struct net_rule *rule);

/* net_policy_format_rule() - one rule as it would be written. Return: text. */
const char *net_policy_format_rule(const struct net_rule *rule, char *text, size_t size);
