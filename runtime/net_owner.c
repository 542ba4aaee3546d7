/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/net_owner.c - owners whose sandboxes reach less than the server's: SANDBOX_OWNER_NET
 *
 * Pure functions of the operator's settings.
 */
#include "runtime/net_owner.h"

#include <string.h>

#include "runtime/base/str.h"
#include "runtime/net_policy.h"
#include "runtime/owners.h"

static const char *const mode_names[] = { [NET_NONE] = "none", [NET_ALLOWLIST] = "allowlist",
					  [NET_INTERNET] = "internet" };

static int refuse(const char *item, size_t len, const char *why, struct err *e)
{
	char shown[64];

	(void)err_set(e, ERR_CONFIG, "SANDBOX_OWNER_NET: \"%s\": %s", str_escape(shown, sizeof(shown), item, len), why);
	return err_remedy(e, "write OWNER=none or OWNER=allowlist:NAME,... with ; between owners, and nothing that "
			     "SANDBOX_NET and SANDBOX_NET_ALLOW do not give");
}

static int parse_mode(const char *word, size_t len)
{
	for (int mode = NET_NONE; mode <= NET_INTERNET; mode++) {
		if (strlen(mode_names[mode]) == len && memcmp(mode_names[mode], word, len) == 0)
			return mode;
	}
	return -1;
}

/* The word apt stands for the image's hosts, which are not known yet: both have it, or the owner has not. */
static int check_list(const struct settings *s, const struct owner_net *o, const char *item, size_t len, struct err *e)
{
	static struct net_policy own, server;

	if (net_policy_parse(&own, NET_ALLOWLIST, o->allow, s->net_lists, "", e) < 0)
		return -1;
	if (s->net == NET_INTERNET)
		return 0;
	if (net_policy_parse(&server, NET_ALLOWLIST, s->net_allow, s->net_lists, "", e) < 0)
		return -1;
	if (net_policy_uses(o->allow, "apt") && !net_policy_uses(s->net_allow, "apt"))
		return refuse(item, len, "more than SANDBOX_NET_ALLOW has: apt", e);
	for (size_t i = 0; i < own.count; i++) {
		if (!net_policy_covers(&server, &own.rules[i]))
			return refuse(item, len, "more than SANDBOX_NET_ALLOW has", e);
	}
	return 0;
}

static int parse_owner(const struct settings *s, const char *name, size_t len, struct owner_net *ret)
{
	char text[OWNER_ID_LEN + OWNER_NAME_MAX];
	struct err ignored = { 0 };

	if (len >= sizeof(text))
		return -1;
	memcpy(text, name, len);
	text[len] = '\0';
	if (owner_parse(text, ret->owner, &ignored) < 0)
		return -1;
	for (uint32_t i = 0; i < s->owner_net_count; i++) {
		if (strcmp(s->owner_net[i].owner, ret->owner) == 0)
			return -1;
	}
	return 0;
}

static int add_item(struct settings *s, const char *item, size_t len, struct err *e)
{
	const char *equals = memchr(item, '=', len), *end = item + len, *colon;
	struct owner_net row = { 0 };
	int mode;

	if (s->owner_net_count == OWNER_NET_MAX)
		return refuse(item, len, "too many owners", e);
	if (!equals || parse_owner(s, item, (size_t)(equals - item), &row) < 0)
		return refuse(item, len, "no owner's name, or one that is there already", e);
	equals++;
	colon = memchr(equals, ':', (size_t)(end - equals));
	mode = parse_mode(equals, (size_t)((colon ? colon : end) - equals));
	if (mode < 0 || (colon && mode != NET_ALLOWLIST))
		return refuse(item, len, "neither none, allowlist, allowlist:NAME,... nor internet", e);
	if (mode > (int)s->net)
		return refuse(item, len, "more than SANDBOX_NET gives", e);
	row.net = (uint32_t)mode;
	row.has_allow = colon != NULL;
	if (colon && (size_t)(end - colon) > sizeof(row.allow))
		return refuse(item, len, "the list is too long", e);
	if (colon)
		memcpy(row.allow, colon + 1, (size_t)(end - colon - 1));
	if (check_list(s, &row, item, len, e) < 0)
		return -1;
	s->owner_net[s->owner_net_count++] = row;
	return 0;
}

int net_owners_parse(struct settings *s, const char *text, struct err *e)
{
	s->owner_net_count = 0;
	while (*text) {
		size_t len = strcspn(text, ";");

		if (add_item(s, text, len, e) < 0)
			return -1;
		text += len;
		text += *text == ';';
	}
	return 0;
}
