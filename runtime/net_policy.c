/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/net_policy.c - which names and ports a sandbox may reach: the allowlist
 *
 * Pure functions of their arguments. The settings come from the operator; hosts come from whatever runs
 * in a sandbox, through the egress proxy, and are hostile.
 */
#include "runtime/net_policy.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/str.h"

enum { LABEL_LEN_MAX = 63, PORT_HTTP = 80, PORT_HTTPS = 443, ITEM_MAX = NET_NAME_MAX + 16 };

#define PRESET_APT "apt"

/* ---- hosts ---- */

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_label(const char *label, size_t len)
{
	if (len == 0 || len > LABEL_LEN_MAX || label[0] == '-' || label[len - 1] == '-')
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!is_alnum(label[i]) && label[i] != '-' && label[i] != '_')
			return false;
	}
	return true;
}

/* A last label that is a number, decimal or hexadecimal, makes the whole an address to somebody. */
static bool is_numeric(const char *label, size_t len)
{
	bool hex = len >= 2 && label[0] == '0' && label[1] == 'x';

	for (size_t i = hex ? 2 : 0; i < len; i++) {
		bool digit = label[i] >= '0' && label[i] <= '9';

		if (!digit && !(hex && label[i] >= 'a' && label[i] <= 'f'))
			return false;
	}
	return true;
}

static bool is_name(const char *name)
{
	for (;;) {
		size_t len = strcspn(name, ".");

		if (!is_label(name, len))
			return false;
		if (name[len] == '\0')
			return !is_numeric(name, len);
		name += len + 1;
	}
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static int parse_address(const char *bytes, size_t len, struct net_dest *ret)
{
	char text[INET6_ADDRSTRLEN];

	if (len >= 2 && bytes[0] == '[' && bytes[len - 1] == ']') {
		bytes++;
		len -= 2;
		if (!memchr(bytes, ':', len))
			return -1;
	}
	if (len >= sizeof(text) || memchr(bytes, '\0', len))
		return -1;
	memcpy(text, bytes, len);
	text[len] = '\0';
	if (net_addr_parse(text, &ret->addr) < 0)
		return -1;
	ret->is_address = true;
	(void)net_addr_format(&ret->addr, ret->name, sizeof(ret->name));
	return 0;
}

int net_dest_parse(const char *bytes, size_t len, struct net_dest *ret)
{
	struct net_dest host = { 0 };

	if (parse_address(bytes, len, &host) == 0) {
		*ret = host;
		return 0;
	}
	if (len > 1 && bytes[len - 1] == '.')
		len--; /* the root: the same name */
	if (len == 0 || len >= sizeof(host.name) || memchr(bytes, '\0', len))
		return -1;
	for (size_t i = 0; i < len; i++)
		host.name[i] = lower(bytes[i]);
	if (!is_name(host.name))
		return -1;
	*ret = host;
	return 0;
}

static int parse_port(const char *bytes, size_t len, uint16_t *ret)
{
	char text[sizeof("65535")];
	uint64_t port;

	if (len >= sizeof(text) || memchr(bytes, '\0', len))
		return -1;
	memcpy(text, bytes, len);
	text[len] = '\0';
	if (str_parse_u64(text, 1, UINT16_MAX, &port) < 0)
		return -1;
	*ret = (uint16_t)port;
	return 0;
}

int net_dest_port_parse(const char *bytes, size_t len, int default_port, struct net_dest *ret,
			uint16_t *ret_port)
{
	const char *colon = memrchr(bytes, ':', len);
	const char *bracket = memrchr(bytes, ']', len);

	if (colon && bracket && bracket > colon)
		colon = NULL; /* the colons of an address in brackets */
	if (!colon) {
		if (default_port < 0)
			return -1;
		*ret_port = (uint16_t)default_port;
		return net_dest_parse(bytes, len, ret);
	}
	if (parse_port(colon + 1, len - (size_t)(colon + 1 - bytes), ret_port) < 0)
		return -1;
	len = (size_t)(colon - bytes);
	/* Without brackets, "::1:80" could be cut anywhere. */
	return memchr(bytes, ':', len) && bytes[0] != '[' ? -1 : net_dest_parse(bytes, len, ret);
}

/* ---- rules ---- */

static int refuse(const char *item, size_t len, const char *why, struct err *e)
{
	char shown[64];

	(void)err_set(e, ERR_CONFIG, "SANDBOX_NET_ALLOW: \"%s\": %s", str_escape(shown, sizeof(shown), item, len),
		      why);
	return err_remedy(e, "write names such as example.com, *.example.com, example.com:8443, apt, or the "
			     "name of a list in SANDBOX_NET_LISTS");
}

static int add_rule(struct net_policy *p, const char *item, size_t len, struct err *e)
{
	struct net_rule rule = { .wildcard = len > 2 && item[0] == '*' && item[1] == '.' };
	const char *host = rule.wildcard ? item + 2 : item;
	size_t host_len = rule.wildcard ? len - 2 : len;
	bool bare_v6 = memchr(host, ':', host_len) != memrchr(host, ':', host_len) && host[0] != '[';

	if (p->count == NET_RULES_MAX)
		return refuse(item, len, "too many items", e);
	if (bare_v6 ? net_dest_parse(host, host_len, &rule.host) < 0 :
		      net_dest_port_parse(host, host_len, NET_PORT_WEB, &rule.host, &rule.port) < 0)
		return refuse(item, len, "neither a name nor an address, with or without a port", e);
	if (rule.wildcard && rule.host.is_address)
		return refuse(item, len, "an address has no names below it", e);
	if (!rule.host.is_address && !strchr(rule.host.name, '.'))
		return refuse(item, len, rule.wildcard ? "a whole top-level domain" :
							 "a name of the local network, or a list that does not exist",
			      e);
	p->rules[p->count++] = rule;
	return 0;
}

/* Every item between the separators; fn may be add_rule itself or what expands words. */
struct expansion {
	struct net_policy *policy;
	const char *lists, *apt_hosts;
};

static int add_all(const struct expansion *x, const char *text, size_t len, struct err *e)
{
	while (len > 0) {
		const char *comma = memchr(text, ',', len);
		size_t item = comma ? (size_t)(comma - text) : len;

		if (add_rule(x->policy, text, item, e) < 0)
			return -1;
		text += item + (comma != NULL);
		len -= item + (comma != NULL);
	}
	return 0;
}

/* The members of "word=" in "word=a,b;other=c". Return: NULL when there is no such list. */
static const char *find_list(const char *lists, const char *word, size_t word_len, size_t *ret_len)
{
	while (*lists) {
		size_t len = strcspn(lists, ";");

		if (len > word_len && lists[word_len] == '=' && memcmp(lists, word, word_len) == 0) {
			*ret_len = len - word_len - 1;
			return lists + word_len + 1;
		}
		lists += len;
		lists += *lists == ';';
	}
	return NULL;
}

static int add_item(const struct expansion *x, const char *item, size_t len, struct err *e)
{
	const char *members;
	size_t members_len;

	if (memchr(item, '.', len) || memchr(item, ':', len))
		return add_rule(x->policy, item, len, e);
	if (len == strlen(PRESET_APT) && memcmp(item, PRESET_APT, len) == 0)
		return add_all(x, x->apt_hosts, strlen(x->apt_hosts), e);
	members = find_list(x->lists, item, len, &members_len);
	if (!members)
		return refuse(item, len, "there is no list of this name", e);
	return add_all(x, members, members_len, e);
}

static int check_lists(const char *lists, struct err *e)
{
	while (*lists) {
		size_t len = strcspn(lists, ";"), name = strcspn(lists, "=;");
		char word[NAME_MAX_LEN];

		if (name >= len || name >= sizeof(word))
			return refuse(lists, len, "a list is written name=item,item", e);
		memcpy(word, lists, name);
		word[name] = '\0';
		if (!str_is_name(word, NAME_MAX_LEN - 1) || strchr(word, '.'))
			return refuse(lists, name, "a list's name is of [a-z0-9_-]", e);
		if (!strcmp(word, PRESET_APT))
			return refuse(lists, name, "this list is made from the image", e);
		lists += len;
		lists += *lists == ';';
	}
	return 0;
}

int net_policy_parse(struct net_policy *ret, enum net_mode mode, const char *allow, const char *lists,
		     const char *apt_hosts, struct err *e)
{
	struct expansion x = { .policy = ret, .lists = lists, .apt_hosts = apt_hosts };

	memset(ret, 0, sizeof(*ret));
	ret->mode = mode;
	if (check_lists(lists, e) < 0)
		return -1;
	while (*allow) {
		size_t len = strcspn(allow, ",");

		if (len == 0 || len > ITEM_MAX)
			return refuse(allow, len, len ? "too long" : "an empty item", e);
		if (add_item(&x, allow, len, e) < 0)
			return -1;
		allow += len;
		if (allow[0] == ',' && allow[1] == '\0')
			return refuse(allow, 1, "an empty item", e);
		allow += *allow == ',';
	}
	return 0;
}

bool net_policy_uses(const char *allow, const char *word)
{
	size_t want = strlen(word);

	while (*allow) {
		size_t len = strcspn(allow, ",");

		if (len == want && memcmp(allow, word, len) == 0)
			return true;
		allow += len;
		allow += *allow == ',';
	}
	return false;
}

/* ---- matching ---- */

static bool same_address(const struct net_addr *a, const struct net_addr *b)
{
	struct net_addr x = net_addr_unwrap(a), y = net_addr_unwrap(b);

	return x.family == y.family && memcmp(x.bytes, y.bytes, sizeof(x.bytes)) == 0;
}

static bool matches_host(const struct net_rule *rule, const struct net_dest *host)
{
	const char *name = host->name;

	if (rule->host.is_address || host->is_address)
		return rule->host.is_address && host->is_address &&
		       same_address(&rule->host.addr, &host->addr);
	if (rule->wildcard) {
		name = strchr(name, '.');
		if (!name)
			return false;
		name++;
	}
	return strcmp(name, rule->host.name) == 0;
}

static bool matches_port(const struct net_rule *rule, uint16_t port)
{
	if (rule->port == NET_PORT_WEB)
		return port == PORT_HTTP || port == PORT_HTTPS;
	return port == rule->port;
}

bool net_policy_allows(const struct net_policy *p, const struct net_dest *host, uint16_t port)
{
	if (port == 0)
		return false;
	switch (p->mode) {
	case NET_INTERNET:
		return true;
	case NET_ALLOWLIST:
		for (size_t i = 0; i < p->count; i++) {
			if (matches_host(&p->rules[i], host) && matches_port(&p->rules[i], port))
				return true;
		}
		return false;
	case NET_NONE:
		break;
	}
	return false;
}

static bool covers_host(const struct net_rule *wide, const struct net_rule *rule)
{
	if (rule->wildcard)
		return wide->wildcard && strcmp(wide->host.name, rule->host.name) == 0;
	return matches_host(wide, &rule->host);
}

static bool covers_port(const struct net_policy *p, const struct net_rule *rule, uint16_t port)
{
	for (size_t i = 0; i < p->count; i++) {
		if (covers_host(&p->rules[i], rule) && matches_port(&p->rules[i], port))
			return true;
	}
	return false;
}

bool net_policy_covers(const struct net_policy *p, const struct net_rule *rule)
{
	if (rule->port != NET_PORT_WEB)
		return covers_port(p, rule, rule->port);
	return covers_port(p, rule, PORT_HTTP) && covers_port(p, rule, PORT_HTTPS);
}

const char *net_policy_format_rule(const struct net_rule *rule, char *text, size_t size)
{
	bool v6 = rule->host.is_address && rule->host.addr.family == AF_INET6;
	int len = snprintf(text, size, "%s%s%s%s", rule->wildcard ? "*." : "", v6 ? "[" : "",
			   rule->host.name, v6 ? "]" : "");

	if (rule->port != NET_PORT_WEB && len > 0 && (size_t)len < size)
		(void)snprintf(text + len, size - (size_t)len, ":%u", rule->port);
	return text;
}
