/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/json.h - parsed JSON, read only; its .c is the only user of cJSON */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct json; /* a value inside a tree; borrowed from its root */

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* json_parse() - strict (mcp/json_scan.h), duplicate keys refused. The caller frees the root.
 * Return: the root, or NULL and *ret_why = a static sentence. */
struct json *json_parse(const char *text, size_t len, const char **ret_why);
void json_free(struct json *root);
void json_cleanup(struct json **root);

/* json_kind() - a missing value (NULL) is JSON_NULL. */
enum json_kind json_kind(const struct json *v);

/* json_member() - exact name, case included. Return: NULL when v is no object or has no such member. */
const struct json *json_member(const struct json *v, const char *name);

/* json_item() - an array's element. Return: NULL when v is no array or is shorter. */
const struct json *json_item(const struct json *v, size_t index);

/* json_next() - the element behind one that json_item() gave. Return: NULL behind the last. */
const struct json *json_next(const struct json *v);

/* json_text() - a string's bytes, NULL for every other kind. They hold no NUL and are UTF-8. */
const char *json_text(const struct json *v);

/* json_number() - 0 for every other kind; infinity for what no double can hold. */
double json_number(const struct json *v);
bool json_is_true(const struct json *v);
