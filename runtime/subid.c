/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/subid.c - ranges of subordinate ids: /etc/subuid, /etc/subgid and SANDBOX_SUBID
 *
 * Runs in the server before it has any privilege, or as root. The files belong to the administrator,
 * but other programs edit them, so a line is used only when every part of it is beyond doubt: a wrong
 * range would give a sandbox the ids of real users (CVE-2018-7169, CVE-2016-6252). newuidmap checks
 * once more.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"
#include "runtime/userns.h"

enum {
	LINE_MAX_LEN = 512,
	FILE_MAX_LEN = 1024 * 1024,
	COUNT_MIN = ID_BLOCK - 1, /* id 0 of the storage namespace is the user */
};

/* check_range() - Return: 1 usable, 0 too small, -1 refused. */
static int check_range(uint64_t first, uint64_t count, uint32_t own_uid, const char **why)
{
	uint64_t end = first + count; /* exclusive */

	/* 2^32 - 1 is "no id" to every system call. */
	if (end > UINT32_MAX)
		*why = "the range goes beyond the largest id";
	else if (count > 0 && first == 0)
		*why = "the range contains root";
	else if (own_uid >= first && own_uid < end)
		*why = "the range contains the user itself";
	else
		return count >= COUNT_MIN ? 1 : 0;
	return -1;
}

/* parse_range() - "first:count". Return: 1 usable, 0 too small, -1 refused. */
static int parse_range(const char *text, uint32_t own_uid, struct subid_range *ret, const char **why)
{
	const char *colon = strchr(text, ':');
	char number[16];
	uint64_t first, count;
	int usable;

	if (colon == NULL || (size_t)(colon - text) >= sizeof(number)) {
		*why = "two numbers with a colon between them are expected";
		return -1;
	}
	memcpy(number, text, (size_t)(colon - text));
	number[colon - text] = '\0';
	if (str_parse_u64(number, 0, UINT32_MAX, &first) < 0 ||
	    str_parse_u64(colon + 1, 0, UINT32_MAX, &count) < 0) {
		*why = "a number is not a decimal number of 32 bits";
		return -1;
	}
	usable = check_range(first, count, own_uid, why);
	if (usable == 1)
		*ret = (struct subid_range){ (uint32_t)first, (uint32_t)count };
	return usable;
}

static bool is_users_line(const char *line, const char *user, uint32_t own_uid)
{
	size_t len = strcspn(line, ":");
	char number[16];

	if (len == strlen(user) && memcmp(line, user, len) == 0)
		return true;
	(void)snprintf(number, sizeof(number), "%u", own_uid);
	return own_uid != 0 && len == strlen(number) && memcmp(line, number, len) == 0;
}

static int parse_line(const char *line, uint32_t own_uid, struct subid_range *ret, unsigned int row,
		      struct err *e)
{
	const char *colon = strchr(line, ':');
	const char *why = "two colons are expected";
	int usable = colon == NULL ? -1 : parse_range(colon + 1, own_uid, ret, &why);

	if (usable < 0)
		return err_set(e, ERR_HOST, "line %u: %s", row, why);
	return usable;
}

int userns_parse_subid(const char *text, const char *user, uint32_t own_uid, struct subid_range *ret,
		       struct err *e)
{
	char line[LINE_MAX_LEN];
	unsigned int row = 0;

	for (const char *at = text; *at != '\0'; at += *at == '\n') {
		size_t len = strcspn(at, "\n");
		int usable;

		row++;
		/* A name longer than the buffer is nobody's; a line of ours that long is refused. */
		(void)snprintf(line, sizeof(line), "%.*s", (int)(len < sizeof(line) ? len : sizeof(line)),
			       at);
		at += len;
		if (!is_users_line(line, user, own_uid))
			continue;
		if (len >= sizeof(line))
			return err_set(e, ERR_HOST, "line %u: the line is too long", row);
		usable = parse_line(line, own_uid, ret, row, e);
		if (usable != 0)
			return usable;
	}
	return 0;
}

int userns_parse_subid_setting(const char *text, uint32_t own_uid, struct subid_range *ret,
			       struct err *e)
{
	const char *why = "fewer than 65535 ids";

	if (parse_range(text, own_uid, ret, &why) == 1)
		return 0;
	err_set(e, ERR_CONFIG, "SANDBOX_SUBID: %s", why);
	return err_remedy(e, "set it to FIRST:65536, FIRST being the first of 65536 ids nobody uses");
}

/* propose_line() - as usermod would do it. */
static int propose_line(const char *file, const char *user, struct err *e)
{
	return err_remedy(e,
			  "as root, add the line \"%s:100000:65536\" to %s (another number when "
			  "other lines use those ids)",
			  user, file);
}

int userns_find_subid(const char *file, const char *setting, const char *user, uint32_t own_uid,
		      struct subid_range *ret, struct err *e)
{
	_cleanup_free_ char *text = NULL;
	int found;

	if (setting[0] != '\0')
		return userns_parse_subid_setting(setting, own_uid, ret, e);
	text = malloc(FILE_MAX_LEN);
	if (text == NULL)
		return err_sys(e, "read %s", file);
	if (fd_read_file_at(AT_FDCWD, file, text, FILE_MAX_LEN) < 0) {
		err_sys(e, "read %s", file);
		return errno == ENOENT ? propose_line(file, user, e) : -1;
	}
	found = userns_parse_subid(text, user, own_uid, ret, e);
	if (found == 1)
		return 0;
	if (found < 0) {
		err_wrap(e, "%s", file);
		return err_remedy(e, "as root, correct that line: %s:FIRST:65536", user);
	}
	err_set(e, ERR_HOST, "%s gives user %s no range of 65535 subordinate ids", file, user);
	return propose_line(file, user, e);
}
