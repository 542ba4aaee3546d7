/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_userns.c - subordinate id files, the setting, and what refuses namespaces here */
#include "runtime/userns.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/base/cleanup.h"
#include "tests/unit/tap.h"

/* user: alice, uid 1000. first 0: none wanted. */
static const struct {
	const char *desc, *text;
	int want;
	uint32_t first, count;
} subid_rows[] = {
	{ "an empty file", "", 0, 0, 0 },
	{ "one line", "alice:100000:65536\n", 1, 100000, 65536 },
	{ "no newline at the end", "alice:100000:65536", 1, 100000, 65536 },
	{ "65535 ids are enough", "alice:100000:65535\n", 1, 100000, 65535 },
	{ "65534 are not", "alice:100000:65534\n", 0, 0, 0 },
	{ "the first that is large enough", "alice:100000:10\nalice:300000:65536\nalice:500000:65536\n",
	  1, 300000, 65536 },
	{ "by number", "1000:100000:65536\n", 1, 100000, 65536 },
	{ "other users", "bob:100000:65536\nalicea:1:70000\nalic:1:70000\n10000:1:70000\n", 0, 0, 0 },
	{ "after other users", "bob:100000:65536\nalice:200000:65536\n", 1, 200000, 65536 },
	{ "rubbish in others' lines", "bob:x:y\n:::\n\nbob\nalice:200000:65536\n", 1, 200000, 65536 },
	{ "a comment", "# alice:1:65536\n", 0, 0, 0 },
	{ "no numbers", "alice\n", -1, 0, 0 },
	{ "one number", "alice:100000\n", -1, 0, 0 },
	{ "an empty number", "alice::65536\n", -1, 0, 0 },
	{ "an empty count", "alice:100000:\n", -1, 0, 0 },
	{ "three numbers", "alice:100000:65536:7\n", -1, 0, 0 },
	{ "a sign", "alice:-1:65536\n", -1, 0, 0 },
	{ "another sign", "alice:+100000:65536\n", -1, 0, 0 },
	{ "a space", "alice: 100000:65536\n", -1, 0, 0 },
	{ "a space at the end", "alice:100000:65536 \n", -1, 0, 0 },
	{ "a carriage return", "alice:100000:65536\r\n", -1, 0, 0 },
	{ "hexadecimal", "alice:0x186a0:65536\n", -1, 0, 0 },
	{ "2^32", "alice:4294967296:65536\n", -1, 0, 0 },
	{ "2^64 + 100000", "alice:18446744073709651616:65536\n", -1, 0, 0 },
	{ "forty digits", "alice:1000000000000000000000000000000000000000:65536\n", -1, 0, 0 },
	{ "the range wraps", "alice:4294900000:100000\n", -1, 0, 0 },
	{ "the range ends below the last id", "alice:4294900000:65536\n", 1, 4294900000, 65536 },
	{ "the range ends with (uid_t)-1", "alice:4294901760:65536\n", -1, 0, 0 },
	{ "host root", "alice:0:65536\n", -1, 0, 0 },
	{ "the user itself", "alice:1:65536\n", -1, 0, 0 },
	{ "the user is the last id", "alice:900:101\n", -1, 0, 0 },
	{ "the user is just behind", "alice:900:100\n", 0, 0, 0 },
};

static void test_subid_rows(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(subid_rows); i++) {
		struct tap_guard text = tap_guard_str(subid_rows[i].text);
		struct subid_range range = { 0, 0 };
		struct err e = { .code = ERR_NONE };

		tap_int(userns_parse_subid(text.data, "alice", 1000, &range, &e), subid_rows[i].want,
			"subuid: %s", subid_rows[i].desc);
		tap_ok(range.first == subid_rows[i].first && range.count == subid_rows[i].count,
		       "subuid: %s: the range is %u:%u", subid_rows[i].desc, range.first, range.count);
		tap_int(e.code != ERR_NONE, subid_rows[i].want < 0, "subuid: %s: an error or none",
			subid_rows[i].desc);
		tap_guard_free(&text);
	}
}

static void test_subid_long_lines(void)
{
	static char text[8192];
	struct subid_range range;
	struct err e;

	memset(text, 'x', 4000);
	strcpy(text + 4000, "\nalice:100000:65536\n");
	tap_int(userns_parse_subid(text, "alice", 1000, &range, &e), 1,
		"subuid: somebody's overlong line is passed over");
	memset(text, '1', 4000);
	memcpy(text, "alice:", 6);
	tap_int(userns_parse_subid(text, "alice", 1000, &range, &e), -1,
		"subuid: an overlong line of ours is refused");
	tap_ok(strstr(e.message, "line 1") != NULL, "subuid: the error names the line");
	text[0] = '\0';
	for (int i = 0; i < 340; i++)
		strcat(text, "bob:1:2\n");
	strcat(text, "alice:100000:65536\n");
	tap_int(userns_parse_subid(text, "alice", 1000, &range, &e), 1, "subuid: line 341");
}

static void test_setting(void)
{
	static const struct {
		const char *text;
		int want;
	} rows[] = { { "100000:65536", 0 }, { "", -1 },	       { "100000", -1 },  { "100000:10", -1 },
		     { "0:65536", -1 },	    { "1:65536", -1 }, { "a:b", -1 },	  { ":", -1 },
		     { "1:2:3", -1 },	    { "-5:65536", -1 } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct subid_range range;
		struct err e;

		tap_int(userns_parse_subid_setting(rows[i].text, 1000, &range, &e), rows[i].want,
			"SANDBOX_SUBID=%s", rows[i].text);
		if (rows[i].want < 0)
			tap_ok(e.code == ERR_CONFIG && e.remedy[0] != '\0', "  it says how to write it");
	}
}

static void test_remedy_names_the_line(void)
{
	char path[] = "/tmp/mcpt-subuid-XXXXXX";
	int fd = mkstemp(path);
	struct subid_range range;
	struct err e;

	tap_int(userns_find_subid(path, "", "alice", 1000, &range, &e), -1, "no line for alice");
	tap_ok(strstr(e.remedy, "\"alice:100000:65536\"") != NULL && strstr(e.remedy, path) != NULL,
	       "the remedy is the exact line and file: %s", e.remedy);
	(void)unlink(path);
	tap_int(userns_find_subid(path, "", "alice", 1000, &range, &e), -1, "no file");
	tap_ok(strstr(e.remedy, "alice:100000:65536") != NULL, "the same remedy");
	(void)close(fd);
}

/* put() - a made-up sysctl. */
static void put(int dir_fd, const char *name, const char *text)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		tap_bail("write %s", name);
	(void)close(fd);
}

static void check_refusal(int sys_fd, int error, const char *word)
{
	struct err e = { .code = ERR_SYSTEM };

	(void)userns_explain_refusal_at(sys_fd, error, &e);
	tap_ok(strstr(e.remedy, word) != NULL, "the remedy speaks of %s: %s", word, e.remedy);
	tap_int(e.code, ERR_HOST, "  and it is the host's fault");
}

static void test_refusals(void)
{
	char path[] = "/tmp/mcpt-sysctl-XXXXXX";
	int fd;

	if (mkdtemp(path) == NULL)
		tap_bail("mkdtemp");
	fd = open(path, O_RDONLY | O_DIRECTORY);
	(void)mkdirat(fd, "kernel", 0755);
	(void)mkdirat(fd, "user", 0755);
	check_refusal(fd, EPERM, "chroot");
	check_refusal(fd, ENOSPC, "user.max_net_namespaces");
	put(fd, "kernel/apparmor_restrict_unprivileged_userns", "0\n");
	put(fd, "kernel/unprivileged_userns_clone", "1\n");
	put(fd, "user/max_user_namespaces", "63000\n");
	check_refusal(fd, EPERM, "chroot");
	put(fd, "kernel/apparmor_restrict_unprivileged_userns", "1\n");
	check_refusal(fd, EACCES, "kernel.apparmor_restrict_unprivileged_userns=0");
	check_refusal(fd, EACCES, "/etc/apparmor.d/mcp-sandbox");
	put(fd, "user/max_user_namespaces", "0\n");
	check_refusal(fd, ENOSPC, "sysctl -w user.max_user_namespaces=");
	put(fd, "kernel/unprivileged_userns_clone", "0\n");
	check_refusal(fd, EPERM, "sysctl -w kernel.unprivileged_userns_clone=1");
	(void)unlinkat(fd, "kernel/apparmor_restrict_unprivileged_userns", 0);
	(void)unlinkat(fd, "kernel/unprivileged_userns_clone", 0);
	(void)unlinkat(fd, "user/max_user_namespaces", 0);
	(void)unlinkat(fd, "kernel", AT_REMOVEDIR);
	(void)unlinkat(fd, "user", AT_REMOVEDIR);
	(void)close(fd);
	(void)rmdir(path);
}

int main(void)
{
	test_subid_rows();
	test_subid_long_lines();
	test_setting();
	test_remedy_names_the_line();
	test_refusals();
	return tap_done();
}
