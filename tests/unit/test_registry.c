/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_registry.c - what is found in the tables of a program, and what its clients have asked for */
#include <stdio.h>
#include <string.h>

#include "mcp/registry.h"
#include "mcp/wishes.h"
#include "tests/unit/tap.h"

/* ---- templates ---- */

static void test_templates(void)
{
	static const struct {
		const char *desc, *uri, *asked, *variable;
	} rows[] = {
		{ "in the middle", "a://{id}/data", "a://123/data", "123" },
		{ "at the end", "a://x/{id}", "a://x/y", "y" },
		{ "at the beginning", "{id}://x", "b://x", "b" },
		{ "nothing in it", "a://{id}/data", "a:///data", NULL },
		{ "nothing at the end", "a://x/{id}", "a://x/", NULL },
		{ "a slash in it", "a://{id}/data", "a://1/2/data", NULL },
		{ "head and tail may not share bytes", "aXb{id}bXa", "aXbXa", NULL },
		{ "another head", "a://{id}/data", "b://1/data", NULL },
		{ "another tail", "a://{id}/data", "a://1/date", NULL },
		{ "no template", "a://x", "a://x", NULL },
		{ "a brace that is not closed", "a://{id", "a://{id", NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct resource r = { .uri = rows[i].uri };
		char got[32] = "";
		size_t len = 0;
		const char *at = resource_variable(&r, rows[i].asked, &len);

		(void)snprintf(got, sizeof(got), "%.*s", (int)len, at ? at : "");
		tap_ok(rows[i].variable ? at && !strcmp(got, rows[i].variable) : !at, "template: %s", rows[i].desc);
	}
}

/* ---- what is offered ---- */

static void no_words(struct completion *to, const char *argument, const char *typed)
{
	(void)to;
	(void)argument;
	(void)typed;
}

static const struct tool tool = { .name = "t" };
static const struct prompt silent = { .as = { .name = "p" } }, speaking = { .as = { .name = "q" }, .complete = no_words };
static const struct resource fixed = { .as = { .name = "r" }, .uri = "a://x" },
			     shaped = { .as = { .name = "s" }, .uri = "a://{id}" };
static const struct tool *const tools[] = { &tool, NULL };
static const struct prompt *const prompts[] = { &silent, NULL }, *const completed[] = { &silent, &speaking, NULL };
static const struct resource *const resources[] = { &fixed, &shaped, NULL };

static bool not_the_tool(const struct tool *t, const struct api_hello *h)
{
	(void)h;
	return t != &tool;
}

static void test_offers(void)
{
	static const struct {
		const char *desc;
		struct registry g;
		unsigned int offers;
	} rows[] = {
		{ "nothing", { 0 }, 0 },
		{ "tools", { .tools = tools }, OFFER_TOOLS },
		{ "prompts", { .prompts = prompts }, OFFER_PROMPTS },
		{ "one prompt has completions", { .prompts = completed }, OFFER_PROMPTS | OFFER_COMPLETIONS },
		{ "resources", { .resources = resources }, OFFER_RESOURCES },
		{ "log messages and news", { .logs = true, .changes = true }, OFFER_LOGS | OFFER_CHANGES },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		tap_int(registry_offers(&rows[i].g), rows[i].offers, "offers: %s", rows[i].desc);
}

static void test_finding(void)
{
	const struct registry all = { .tools = tools, .prompts = completed, .resources = resources };
	const struct registry less = { .tools = tools, .is_offered = not_the_tool };
	const struct registry none = { 0 };
	const struct api_hello h = { 0 };

	tap_ok(registry_tool(&all, &h, "t") == &tool && !registry_tool(&all, &h, "T"), "a tool, by its exact name");
	tap_ok(!registry_tool(&less, &h, "t"), "not when it is not offered");
	tap_ok(registry_prompt(&all, &h, "q") == &speaking, "a prompt");
	tap_ok(registry_resource(&all, &h, "a://x") == &fixed, "a resource before the template that fits, too");
	tap_ok(registry_resource(&all, &h, "a://y") == &shaped, "a template");
	tap_ok(!registry_tool(&none, &h, "t") && !registry_prompt(&none, &h, "q") && !registry_resource(&none, &h, "a://x"),
	       "nothing in empty tables");
}

/* ---- wishes ---- */

static void test_wishes(void)
{
	const struct wisher a = { "00000000", "s1" }, other_owner = { "2bd806c9", "s1" }, other_session = { "00000000", "s2" },
			    stream = { NULL, NULL };
	char uri[WISH_URI_MAX + 8], scope[WISH_SCOPE_MAX + 8];
	struct wishes w = { 0 };
	struct wisher deep = { "00000000", scope };

	tap_ok(!wishes_find(&w, &a, ""), "nothing was asked for");
	wishes_drop(&w, &a, "");
	tap_int(wishes_set(&w, &a, "", 3), 0, "a severity");
	tap_ok(wishes_find(&w, &a, "") && wishes_find(&w, &a, "")->severity == 3, "is there");
	tap_ok(!wishes_find(&w, &other_owner, "") && !wishes_find(&w, &other_session, "") && !wishes_find(&w, &stream, ""),
	       "and nobody else's");
	tap_int(wishes_set(&w, &a, "", 5), 0, "another severity");
	tap_int(wishes_find(&w, &a, "")->severity, 5, "takes its place");
	tap_ok(wishes_set(&w, &stream, "a://x", 0) == 0 && wishes_find(&w, &stream, "a://x"), "a resource, of a stream");
	wishes_drop(&w, &stream, "a://x");
	tap_ok(!wishes_find(&w, &stream, "a://x"), "and not any more");
	memset(uri, 'u', sizeof(uri));
	uri[WISH_URI_MAX] = '\0';
	tap_int(wishes_set(&w, &a, uri, 0), -1, "a URI that is too long");
	uri[WISH_URI_MAX - 1] = '\0';
	tap_int(wishes_set(&w, &a, uri, 0), 0, "one that just fits");
	memset(scope, 's', sizeof(scope));
	scope[WISH_SCOPE_MAX + 1] = '\0';
	tap_int(wishes_set(&w, &deep, "", 0), -1, "a scope that is too long");
	for (int i = 0; i < WISHES_MAX; i++) {
		(void)snprintf(uri, sizeof(uri), "a://%d", i);
		(void)wishes_set(&w, &a, uri, 0);
	}
	tap_ok(!wishes_find(&w, &a, ""), "the oldest is forgotten");
	tap_ok(wishes_find(&w, &a, "a://0") && wishes_find(&w, &a, uri), "the newest are not");
	wishes_done(&w);
}

int main(void)
{
	test_templates();
	test_offers();
	test_finding();
	test_wishes();
	return tap_done();
}
