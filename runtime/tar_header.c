/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/tar_header.c - numbers and the checksum of a tar header
 *
 * Runs in: a box (tar_filter.c). Pure. Trusts: nothing in the fields it is given.
 */
#include "runtime/tar_header.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "a tar header is one block");

static int parse_binary(const unsigned char *p, size_t size, uint64_t *ret)
{
	uint64_t value = 0;

	if (p[0] != 0x80) /* negative, or far beyond 64 bits */
		return -1;
	for (size_t i = 1; i < size; i++) {
		if (value >> 56)
			return -1;
		value = value << 8 | p[i];
	}
	*ret = value;
	return 0;
}

int tar_parse_number(const char *field, size_t size, uint64_t *ret)
{
	uint64_t value = 0;
	size_t i = 0;

	if ((unsigned char)field[0] & 0x80)
		return parse_binary((const unsigned char *)field, size, ret);
	while (i < size && field[i] == ' ')
		i++;
	for (; i < size && field[i] >= '0' && field[i] <= '7'; i++) {
		if (value >> 61)
			return -1;
		value = value << 3 | (uint64_t)(field[i] - '0');
	}
	if (i < size && field[i] != ' ' && field[i] != '\0')
		return -1;
	*ret = value;
	return 0;
}

int tar_parse_decimal(const char *text, size_t len, uint64_t *ret)
{
	uint64_t value = 0;

	if (len == 0)
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9' ||
		    __builtin_mul_overflow(value, UINT64_C(10), &value) ||
		    __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
			return -1;
	}
	*ret = value;
	return 0;
}

void tar_write_number(char *field, size_t size, uint64_t value)
{
	char text[32];
	size_t digits = size - 1;

	if (digits * 3 >= 64 || value >> (digits * 3) == 0) {
		(void)snprintf(text, sizeof(text), "%0*llo", (int)digits,
			       (unsigned long long)value);
		memcpy(field, text, size);
		return;
	}
	for (size_t i = size - 1; i > 0; i--) {
		field[i] = (char)(value & 0xff);
		value >>= 8;
	}
	field[0] = (char)0x80;
}

unsigned int tar_checksum(const struct tar_header *h)
{
	const unsigned char *p = (const unsigned char *)h;
	size_t own = offsetof(struct tar_header, checksum);
	unsigned int sum = 0;

	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += i >= own && i < own + sizeof(h->checksum) ? ' ' : p[i];
	return sum;
}

void tar_write_checksum(struct tar_header *h)
{
	char text[8];

	(void)snprintf(text, sizeof(text), "%06o", tar_checksum(h) & 0777777U);
	memcpy(h->checksum, text, 7);
	h->checksum[7] = ' ';
}
