/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_cgroup.c - texts of procfs and cgroupfs; every input ends at an unreadable page */
#include "runtime/cgroup_text.h"
#include "tests/unit/tap.h"

static const char mountinfo_hybrid[] =
	"21 26 0:20 / /proc rw,relatime - proc proc rw\n"
	"33 30 0:30 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
	"32 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
	"39 30 0:36 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n"
	"40 30 0:37 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

static const struct {
	const char *desc, *text, *root, *point;
} mount_rows[] = {
	{ "hybrid host", mountinfo_hybrid, "/", "/sys/fs/cgroup/unified" },
	{ "systemd host, optional fields",
	  "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 master:1 - cgroup2 cgroup2 rw,nsdelegate\n", "/",
	  "/sys/fs/cgroup" },
	{ "container without a cgroup namespace",
	  "30 24 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "/docker/abc",
	  "/sys/fs/cgroup" },
	{ "escaped blanks", "1 2 0:3 /a\\040b /m\\011\\134\\012n rw - cgroup2 none rw\n", "/a b",
	  "/m\t\\\nn" },
	{ "an escape cut short is bytes", "1 2 0:3 / /m\\04 rw - cgroup2 none rw\n", "/", "/m\\04" },
	{ "no newline at the end", "1 2 0:3 / /m rw - cgroup2 none rw", "/", "/m" },
	{ "the type is not searched elsewhere", "1 2 0:3 / /cgroup2 rw - tmpfs cgroup2 rw\n", NULL, NULL },
	{ "no separator", "1 2 0:3 / /m rw shared:1 cgroup2 none rw\n", NULL, NULL },
	{ "too few fields", "1 2 0:3 / - cgroup2\n", NULL, NULL },
	{ "escaped NUL", "1 2 0:3 / /m\\000n rw - cgroup2 none rw\n", NULL, NULL },
	{ "a relative mount point", "1 2 0:3 / m rw - cgroup2 none rw\n", NULL, NULL },
	{ "a bad line does not hide the next",
	  "garbage\n\n1 2 0:3 / - cgroup2\n1 2 0:3 / /ok rw - cgroup2 n rw\n", "/", "/ok" },
	{ "empty", "", NULL, NULL },
};

static void test_mounts(void)
{
	for (size_t i = 0; i < sizeof(mount_rows) / sizeof(mount_rows[0]); i++) {
		struct tap_guard g = tap_guard_str(mount_rows[i].text);
		const char *cursor = g.data;
		struct cgroup_mount m;
		int found = cgroup_text_next_mount(&cursor, &m);

		tap_int(found, mount_rows[i].point ? 1 : 0, "mount: %s", mount_rows[i].desc);
		if (found == 1 && mount_rows[i].point) {
			tap_str(m.root, mount_rows[i].root, "mount: %s: root", mount_rows[i].desc);
			tap_str(m.point, mount_rows[i].point, "mount: %s: point", mount_rows[i].desc);
			tap_int(cgroup_text_next_mount(&cursor, &m), 0, "mount: %s: only one",
				mount_rows[i].desc);
		}
		tap_guard_free(&g);
	}
}

static void test_long_mount(void)
{
	size_t size = 3 * PATH_MAX, len;
	char *text = malloc(size);
	const char *cursor = text;
	struct cgroup_mount m;

	if (!text)
		tap_bail("malloc");
	len = (size_t)snprintf(text, size, "1 2 0:3 / /");
	memset(text + len, 'x', PATH_MAX);
	(void)snprintf(text + len + PATH_MAX, size - len - PATH_MAX,
		       " rw - cgroup2 n rw\n1 2 0:3 / /short rw - cgroup2 n rw\n");
	tap_int(cgroup_text_next_mount(&cursor, &m), 1, "mount: a path that does not fit is passed over");
	tap_str(m.point, "/short", "mount: and the next one is found");
	free(text);
}

static void test_v1(void)
{
	tap_ok(cgroup_text_v1_has(mountinfo_hybrid, "memory"), "v1: memory");
	tap_ok(cgroup_text_v1_has(mountinfo_hybrid, "cpu"), "v1: one of two in a hierarchy");
	tap_ok(cgroup_text_v1_has(mountinfo_hybrid, "cpuacct"), "v1: the other");
	tap_ok(!cgroup_text_v1_has(mountinfo_hybrid, "pids"), "v1: not mounted");
	tap_ok(!cgroup_text_v1_has(mountinfo_hybrid, "mem"), "v1: a prefix is another word");
	tap_ok(!cgroup_text_v1_has("1 2 0:3 / /m rw - cgroup2 n rw,memory\n", "memory"),
	       "v1: options of cgroup2 do not count");
}

static const struct {
	const char *desc, *text, *path;
	int want;
} own_rows[] = {
	{ "v2 only", "0::/user.slice/user-1000.slice/session-1.scope\n",
	  "/user.slice/user-1000.slice/session-1.scope", 1 },
	{ "hybrid", "9:name=systemd:/x\n4:memory:/a/b\n0::/\n", "/", 1 },
	{ "above the namespace", "0::/../other\n", "/../other", 1 },
	{ "blanks and colons belong to the name", "0::/a b:c\n", "/a b:c", 1 },
	{ "no newline", "0::/k", "/k", 1 },
	{ "v1 only", "1:cpu:/\n10::/x\n", NULL, 0 },
	{ "not at the start of a line", "1:name=0::/x\n", NULL, 0 },
	{ "relative", "0::x\n", NULL, 0 },
	{ "empty", "", NULL, 0 },
	{ "too long", "0::/12345678901234567890123456789012345678901234567890123456789012345\n", NULL,
	  -1 },
};

static void test_own(void)
{
	char path[64];

	for (size_t i = 0; i < sizeof(own_rows) / sizeof(own_rows[0]); i++) {
		struct tap_guard g = tap_guard_str(own_rows[i].text);

		tap_int(cgroup_text_own(g.data, path, sizeof(path)), own_rows[i].want, "own: %s",
			own_rows[i].desc);
		if (own_rows[i].path)
			tap_str(path, own_rows[i].path, "own: %s: path", own_rows[i].desc);
		tap_guard_free(&g);
	}
}

static const struct {
	const char *root, *path, *want;
} beneath_rows[] = {
	{ "/", "/", "" },
	{ "/", "/a/b", "a/b" },
	{ "/docker/abc", "/docker/abc", "" },
	{ "/docker/abc", "/docker/abc/x", "x" },
	{ "/docker/abc/", "/docker/abc/x", "x" },
	{ "/docker/abc", "/docker/abcd", NULL },
	{ "/docker/abc", "/docker", NULL },
	{ "/", "/../x", NULL },
	{ "/", "/..", NULL },
	{ "/", "/..x", "..x" },
};

static void test_beneath(void)
{
	for (size_t i = 0; i < sizeof(beneath_rows) / sizeof(beneath_rows[0]); i++) {
		const char *got = cgroup_text_beneath(beneath_rows[i].root, beneath_rows[i].path);
		const char *want = beneath_rows[i].want;

		tap_ok(want ? got && strcmp(got, want) == 0 : !got, "beneath: %s in %s",
		       beneath_rows[i].path, beneath_rows[i].root);
	}
}

static void test_words(void)
{
	struct tap_guard g = tap_guard_str("cpuset cpu io memory");

	tap_ok(cgroup_text_has_word(g.data, "memory"), "words: the last, without a newline");
	tap_ok(cgroup_text_has_word(g.data, "cpu"), "words: not fooled by a longer one before");
	tap_ok(!cgroup_text_has_word(g.data, "cpus"), "words: absent");
	tap_ok(!cgroup_text_has_word(g.data, ""), "words: the empty one is in no list");
	tap_ok(!cgroup_text_has_word("", "cpu"), "words: empty list");
	tap_ok(!cgroup_text_has_word("\n", "cpu"), "words: empty line");
	tap_guard_free(&g);
}

static const struct {
	const char *desc, *text, *name;
	int want;
	uint64_t value;
} counter_rows[] = {
	{ "cgroup.events", "populated 1\nfrozen 0\n", "populated", 1, 1 },
	{ "second line", "populated 1\nfrozen 0\n", "frozen", 1, 0 },
	{ "memory.events: a name that ends another",
	  "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 1\n", "oom_kill", 1, 2 },
	{ "memory.events: a name that begins another", "oom_kill 2\noom 3\n", "oom", 1, 3 },
	{ "cpu.stat", "usage_usec 5\nnr_throttled 4\nthrottled_usec 18446744073709551615\n",
	  "throttled_usec", 1, UINT64_MAX },
	{ "pids.events", "max 7\n", "max", 1, 7 },
	{ "no newline", "max 7", "max", 1, 7 },
	{ "absent", "max 7\n", "min", 0, 0 },
	{ "empty", "", "max", 0, 0 },
	{ "no value", "max\n", "max", -1, 0 },
	{ "no value at the end", "max ", "max", -1, 0 },
	{ "a word", "max max\n", "max", -1, 0 },
	{ "negative", "max -1\n", "max", -1, 0 },
	{ "overflow", "max 18446744073709551616\n", "max", -1, 0 },
	{ "very long", "max 000000000000000000000000000000000001\n", "max", -1, 0 },
	{ "two values", "max 1 2\n", "max", -1, 0 },
};

static void test_counters(void)
{
	for (size_t i = 0; i < sizeof(counter_rows) / sizeof(counter_rows[0]); i++) {
		struct tap_guard g = tap_guard_str(counter_rows[i].text);
		uint64_t value = 0;

		tap_int(cgroup_text_counter(g.data, counter_rows[i].name, &value),
			counter_rows[i].want, "counter: %s", counter_rows[i].desc);
		tap_ok(value == counter_rows[i].value, "counter: %s: value", counter_rows[i].desc);
		tap_guard_free(&g);
	}
}

static void test_lines(void)
{
	struct tap_guard g = tap_guard_new("1\n22\n333\n44", 11);

	tap_int(cgroup_text_lines(g.data, g.len), 3, "lines: complete ones only");
	tap_int(cgroup_text_lines(g.data, 0), 0, "lines: none");
	tap_guard_free(&g);
}

int main(void)
{
	test_mounts();
	test_long_mount();
	test_v1();
	test_own();
	test_beneath();
	test_words();
	test_counters();
	test_lines();
	return tap_done();
}
