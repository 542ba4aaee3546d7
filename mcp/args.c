/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/args.c - tolerant reading of tool arguments
 *
 * Runs in the front, without privilege, on values a model made up.
 */
#include "mcp/args.h"

#include <string.h>

#include "mcp/json.h"
#include "runtime/base/str.h"

/* Return: NULL when the argument counts as not given. */
static const struct json *given(const struct json *args, const char *name)
{
	const struct json *v = json_member(args, name);
	const char *text = json_text(v);

	return json_kind(v) == JSON_NULL || (text && !*text) ? NULL : v;
}

int args_text(const struct json *args, const char *name, const char *fallback, size_t max,
	      const char **ret, struct err *e)
{
	const struct json *v = given(args, name);
	const char *text = json_text(v);

	if (!v && !fallback)
		return err_set(e, ERR_USAGE, "%s is required", name);
	if (v && !text)
		return err_set(e, ERR_USAGE, "%s must be a string", name);
	if (text && strlen(text) > max)
		return err_set(e, ERR_USAGE, "%s is longer than %zu bytes", name, max);
	*ret = text ? text : fallback;
	return 0;
}

/* Every double from 2^53 on is a whole number, infinity (1e999) is treated as one. */
static int is_whole(double number)
{
	return number >= 9007199254740992.0 || number <= -9007199254740992.0 ||
	       (double)(int64_t)number == number;
}

static int64_t clamp(double number)
{
	if (number >= 9.2e18)
		return INT64_MAX;
	if (number <= -9.2e18)
		return -INT64_MAX;
	return (int64_t)number;
}

/* "15", "-3", "15.0": digits with an optional sign and a fraction of zeros. */
static int text_to_whole(const char *text, int64_t *ret)
{
	const char *digits = text + (*text == '-'), *dot = strchr(digits, '.');
	size_t len = dot ? (size_t)(dot - digits) : strlen(digits);
	char whole[32];
	uint64_t value;

	if (dot && (!dot[1] || dot[1 + strspn(dot + 1, "0")]))
		return -1;
	if (!len || strspn(digits, "0123456789") != len)
		return -1;
	if (len >= sizeof(whole)) {
		*ret = *text == '-' ? -INT64_MAX : INT64_MAX;
		return 0;
	}
	memcpy(whole, digits, len);
	whole[len] = 0;
	if (str_parse_u64(whole, 0, INT64_MAX, &value) < 0)
		value = INT64_MAX;
	*ret = *text == '-' ? -(int64_t)value : (int64_t)value;
	return 0;
}

int args_whole(const struct json *args, const char *name, int64_t fallback, int64_t *ret,
	       struct err *e)
{
	const struct json *v = given(args, name);
	double number = json_number(v);

	*ret = fallback;
	if (!v)
		return 0;
	if (json_kind(v) == JSON_STRING && text_to_whole(json_text(v), ret) == 0)
		return 0;
	if (json_kind(v) != JSON_NUMBER || !is_whole(number))
		return err_set(e, ERR_USAGE, "%s must be a whole number", name);
	*ret = clamp(number);
	return 0;
}
