/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/tar_header.h - the 512 bytes in front of every entry of a tar archive, and their numbers */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { TAR_BLOCK = 512 };

/* As POSIX lays it out (ustar, pax); GNU's differ behind gname only. */
struct tar_header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8];
	char type;
	char link[100], magic[6], version[2], uname[32], gname[32], major[8], minor[8];
	char prefix[155], pad[12];
};

/* tar_parse_number() - octal text, or (GNU) big-endian binary behind a set top bit. Return: 0, -1. */
int tar_parse_number(const char *field, size_t size, uint64_t *ret);

/* tar_parse_decimal() - digits only, as pax records have them. Return: 0, -1. */
int tar_parse_decimal(const char *text, size_t len, uint64_t *ret);

/* tar_write_number() - octal with a NUL behind it where it fits, else GNU's binary. */
void tar_write_number(char *field, size_t size, uint64_t value);

/* tar_checksum() - the sum of all bytes, its own field taken as spaces. */
unsigned int tar_checksum(const struct tar_header *h);
void tar_write_checksum(struct tar_header *h);
