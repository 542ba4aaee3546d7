/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/json.c - parsed JSON, read only; the only user of cJSON
 *
 * Runs in the front, without privilege. The text is hostile; cJSON sees it only after json_scan()
 * has passed it, and the getters here are the case-sensitive ones.
 */
#include "mcp/json.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/json_scan.h"

static const cJSON *item(const struct json *v)
{
	return (const cJSON *)v;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static size_t child_count(const cJSON *v)
{
	size_t n = 0;

	for (const cJSON *c = v->child; c; c = c->next)
		n++;
	return n;
}

/* Return: 0, 1 when two members have one name, -1 without memory. */
static int object_has_duplicates(const cJSON *v)
{
	size_t count = child_count(v), n = 0;
	const char *few[16], **names = few;
	int found = 0;

	if (count > sizeof(few) / sizeof(few[0]))
		names = malloc(count * sizeof(*names));
	if (!names)
		return -1;
	for (const cJSON *c = v->child; c; c = c->next)
		names[n++] = c->string;
	qsort(names, n, sizeof(*names), compare_names);
	for (size_t i = 1; i < n && !found; i++)
		found = !strcmp(names[i - 1], names[i]);
	if (names != few)
		free(names);
	return found;
}

/* Depth is bounded by json_scan(). */
static int tree_has_duplicates(const cJSON *v)
{
	int found = cJSON_IsObject(v) && v->child && v->child->next ? object_has_duplicates(v) : 0;

	for (const cJSON *c = v->child; c && !found; c = c->next)
		if (c->child)
			found = tree_has_duplicates(c);
	return found;
}

struct json *json_parse(const char *text, size_t len, const char **ret_why)
{
	cJSON *root;
	int duplicates;

	*ret_why = json_scan(text, len);
	if (*ret_why)
		return NULL;
	root = cJSON_ParseWithLength(text, len);
	duplicates = root ? tree_has_duplicates(root) : -1;
	if (!duplicates)
		return (struct json *)root;
	*ret_why = duplicates > 0 ? "a key occurs twice in one object" : "no memory";
	cJSON_Delete(root);
	return NULL;
}

void json_free(struct json *root)
{
	cJSON_Delete((cJSON *)root);
}

void json_cleanup(struct json **root)
{
	json_free(*root);
	*root = NULL;
}

enum json_kind json_kind(const struct json *v)
{
	if (!v || cJSON_IsNull(item(v)))
		return JSON_NULL;
	if (cJSON_IsBool(item(v)))
		return JSON_BOOL;
	if (cJSON_IsNumber(item(v)))
		return JSON_NUMBER;
	if (cJSON_IsString(item(v)))
		return JSON_STRING;
	return cJSON_IsArray(item(v)) ? JSON_ARRAY : JSON_OBJECT;
}

const struct json *json_member(const struct json *v, const char *name)
{
	if (!v || !cJSON_IsObject(item(v)))
		return NULL;
	return (const struct json *)cJSON_GetObjectItemCaseSensitive(item(v), name);
}

const struct json *json_item(const struct json *v, size_t index)
{
	if (!v || !cJSON_IsArray(item(v)) || index > INT_MAX)
		return NULL;
	return (const struct json *)cJSON_GetArrayItem(item(v), (int)index);
}

const struct json *json_next(const struct json *v)
{
	return (const struct json *)item(v)->next;
}

const char *json_text(const struct json *v)
{
	return v ? cJSON_GetStringValue(item(v)) : NULL;
}

double json_number(const struct json *v)
{
	return v && cJSON_IsNumber(item(v)) ? item(v)->valuedouble : 0;
}

bool json_is_true(const struct json *v)
{
	return v && cJSON_IsTrue(item(v));
}
