/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/json_scan.h - strict check of JSON text before any library sees it
 *
 * cJSON accepts what it should not: text after "\u0000" is cut off silently, raw control characters,
 * bad UTF-8, "01", unlimited width. What passes here is exactly RFC 8259 without NUL, in UTF-8, with
 * bounded depth, size of numbers and number of values. Duplicate keys are json.c's to find.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* json_scan() - Return: NULL when text is acceptable, else why not (a static sentence). */
const char *json_scan(const char *text, size_t len);

/* json_scan_is_json() - whether a text of which json_scan() said this is JSON all the same: valid, but with
 * an escape that stands for no text. Its members can be found: who sent it waits for an answer. */
bool json_scan_is_json(const char *why);

/* json_scan_member() - the text of a member's value, as written, in an object that json_scan() has
 * passed, or called JSON. Numbers keep their digits this way. Return: false when there is no such member. */
bool json_scan_member(const char *text, size_t len, const char *name, const char **ret_text,
		      size_t *ret_len);
