/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/registry.h - what a program offers over MCP: tables that it registers with the server
 *
 * Lists, capabilities and schemas are made from them. What is in no table does not exist: its methods
 * are unknown and its capability is not declared.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/api.h"

struct buf;
struct call;
struct json;

struct tool_parameter {
	const char *name, *type, *description;
	bool required;
	bool with_user; /* only where commands run as an ordinary user */
	const char *header; /* x-mcp-header: over HTTP the value also stands in Mcp-Param-<header> */
};

enum { TOOL_READ_ONLY = 1, TOOL_DESTRUCTIVE = 2, TOOL_IDEMPOTENT = 4, TOOL_NEEDS_NET = 8 };

/* What a client can be asked for. */
enum { CAP_ELICITATION = 1, CAP_SAMPLING = 2, CAP_ROOTS = 4, CAP_COUNT = 3 };

enum { TOOL_PARAMETERS_MAX = 5 };

/* What answers a call; also of a prompt or a resource. */
struct tool {
	const char *name, *title;
	bool safe_shell; /* offered by the safe-shell profile, else by all others */
	unsigned int hints; /* TOOL_*: annotations */
	uint32_t result_chars; /* anthropic/maxResultSizeChars */
	const char *description; /* or, when it depends on settings: */
	void (*describe)(struct buf *b, const struct api_hello *h);
	struct tool_parameter parameters[TOOL_PARAMETERS_MAX + 1];
	const char *schema; /* JSON text instead of parameters */
	unsigned int needs; /* CAP_*: refused to clients that have not declared them */
	bool asks;  /* may ask the client (mcp/ask.h): start() runs again with the answers */
	bool keeps; /* c->root holds the message for the life of the call */
	bool lasts; /* does not end by itself: counted apart from calls that do */
	/* start() - begin the call; it ends by call_result_end(), call_refuse() or call_fail(), now or
	 * later. args is an object, or NULL; it is gone when start() returns. */
	void (*start)(struct call *c, const struct json *args);
	/* drop() - free c->state; also on cancellation. NULL: the call has none. */
	void (*drop)(struct call *c);
};

struct completion;

/* complete_fn - offer values for an argument of which `typed` is there already (complete_add()). */
typedef void complete_fn(struct completion *to, const char *argument, const char *typed);

struct prompt {
	struct tool as; /* its content blocks become messages of the person's */
	complete_fn *complete; /* NULL: nothing to offer */
};

struct resource {
	struct tool as;
	const char *uri; /* with one {variable} it is a template */
	const char *mime;
	complete_fn *complete;
};

struct registry {
	/* In the order in which they are listed, ended by NULL; without any: NULL. */
	const struct tool *const *tools;
	const struct prompt *const *prompts;
	const struct resource *const *resources;
	bool (*is_offered)(const struct tool *t, const struct api_hello *h); /* NULL: everything always */
	const char *instructions; /* plain text for the model, or, when it depends on settings: */
	void (*write_instructions)(struct buf *b, const struct api_hello *h);
	bool logs;    /* tools may use call_log() */
	bool changes; /* lists and resources may change while it runs (mcp/listen.h) */
};

enum offer { OFFER_TOOLS = 1, OFFER_PROMPTS = 2, OFFER_RESOURCES = 4, OFFER_COMPLETIONS = 8,
	     OFFER_LOGS = 16, OFFER_CHANGES = 32 };

/* registry_offers() - OFFER_* bits. */
unsigned int registry_offers(const struct registry *g);

bool registry_is_offered(const struct registry *g, const struct tool *t, const struct api_hello *h);

/* By name, or for a resource by the URI that was asked for. Return: NULL when it is not offered. */
const struct tool *registry_tool(const struct registry *g, const struct api_hello *h, const char *name);
const struct prompt *registry_prompt(const struct registry *g, const struct api_hello *h, const char *name);
const struct resource *registry_resource(const struct registry *g, const struct api_hello *h, const char *uri);

bool resource_is_template(const struct resource *r);

/* resource_variable() - what stands in the place of the template's variable. *ret_len bytes of uri, at
 * least one and no slash. Return: NULL when uri does not fit. */
const char *resource_variable(const struct resource *r, const char *uri, size_t *ret_len);
