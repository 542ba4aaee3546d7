/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/base/str.h - strict parsing of numbers, sizes and durations; escaping; UTF-8 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* str_parse_u64() - decimal digits only: no sign, no space, no prefix, no overflow. Return: 0, -1. */
int str_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret);

/* str_parse_size() - bytes: a whole number with an optional K, M or G (powers of 1024; k, m, g are
 * the same), or a fraction with a suffix ("1.5M"), rounded down. Return: 0, -1. */
int str_parse_size(const char *text, uint64_t *ret_bytes);

/* str_parse_duration_ms() - whole seconds, or a number with s, m, h or d. Return: 0, -1. */
int str_parse_duration_ms(const char *text, uint64_t *ret_ms);

/* str_parse_cpus() - "2", "0.5": processors in thousandths. Return: 0, -1. */
int str_parse_cpus(const char *text, uint32_t *ret_milli);

/* str_format_size() - "1 GiB", "512 MiB", "1.5 MiB", "17 B". Return: text. */
const char *str_format_size(uint64_t bytes, char *text, size_t size);

/* str_copy() - copy with truncation refused. Return: 0, -1 when src does not fit. */
int str_copy(char *dst, size_t size, const char *src);

/* str_escape() - printable form of untrusted bytes for a log or a terminal: control bytes (C0,
 * DEL, C1) and invalid UTF-8 become \xNN, a backslash \\; cut with "..." when it does not fit.
 * Return: dst. */
const char *str_escape(char *dst, size_t size, const void *bytes, size_t len);

/* str_utf8_next() - length of the valid UTF-8 sequence at bytes (1..4), 0 when it is invalid
 * (overlong, surrogate, above U+10FFFF), -1 when len cuts a sequence that is valid so far. */
int str_utf8_next(const unsigned char *bytes, size_t len, uint32_t *ret_cp);

bool str_utf8_is_valid(const void *bytes, size_t len);

/* str_is_key() - a sandbox key: [a-z0-9-]{1,24}-[0-9a-f]{6}, starting with [a-z0-9]. */
bool str_is_key(const char *text);

/* str_is_owner_id() - eight lower-case hexadecimal digits. */
bool str_is_owner_id(const char *text);

/* str_is_name() - an image's or owner's name: [a-z0-9][a-z0-9._-]{0,max-1}, never "." or "..". */
bool str_is_name(const char *text, size_t max);
