/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_tar_filter.c - what the archive filter passes on, leaves out, changes and refuses
 *
 * Archives are put together here block by block, so that each row can break exactly one thing; whole
 * archives of real programs are in tests/e2e/test_image.py.
 */
#include <sys/stat.h>

#include "runtime/base/buf.h"
#include "runtime/tar_filter.h"
#include "runtime/tar_header.h"
#include "tests/unit/tap.h"

enum { ARCHIVE_MAX = 8 * 1024 * 1024 };

static const struct tar_policy image_policy = { .max_bytes = 4 * 1024 * 1024, .max_entries = 100,
						.max_id = 59999, .nobody = 65534,
						.skip = ".skipped.json" };
static const struct tar_policy host_policy = { .max_bytes = 4 * 1024 * 1024, .max_entries = 100,
					       .max_id = 59999, .nobody = 65534,
					       .strip_setid = true, .confine_links = true };

/* ---- making archives ---- */

static struct tar_header header(char type, const char *name, const char *link, uint64_t size)
{
	struct tar_header h = { .type = type, .magic = "ustar", .version = { '0', '0' } };

	memcpy(h.name, name, strnlen(name, sizeof(h.name)));
	memcpy(h.link, link, strnlen(link, sizeof(h.link)));
	memcpy(h.uname, "who", 3);
	tar_write_number(h.mode, sizeof(h.mode), 0755);
	tar_write_number(h.uid, sizeof(h.uid), 0);
	tar_write_number(h.gid, sizeof(h.gid), 0);
	tar_write_number(h.size, sizeof(h.size), size);
	tar_write_number(h.mtime, sizeof(h.mtime), 1000);
	tar_write_checksum(&h);
	return h;
}

static void put_header(struct buf *a, struct tar_header h)
{
	tar_write_checksum(&h);
	buf_append(a, &h, sizeof(h));
}

static void put_data(struct buf *a, const void *data, size_t len)
{
	static const char zero[TAR_BLOCK];

	buf_append(a, data, len);
	buf_append(a, zero, (TAR_BLOCK - len % TAR_BLOCK) % TAR_BLOCK);
}

static void put_file(struct buf *a, const char *name, const char *text)
{
	put_header(a, header('0', name, "", strlen(text)));
	put_data(a, text, strlen(text));
}

static void put_extra(struct buf *a, char type, const void *data, size_t len)
{
	put_header(a, header(type, "extra", "", len));
	put_data(a, data, len);
}

/* put_record() - "<length> <key>=<value>\n": the length counts itself. */
static void put_record(struct buf *a, const char *key, const char *value, size_t len)
{
	size_t body = strlen(key) + len + 3, total = body + 1;
	char digits[24];

	while (total != body + (size_t)snprintf(digits, sizeof(digits), "%zu", total))
		total = body + strlen(digits);
	buf_printf(a, "%zu %s=", total, key);
	buf_append(a, value, len);
	buf_append_str(a, "\n");
}

static void put_pax(struct buf *a, const char *key, const char *value)
{
	struct buf records;

	buf_init(&records, ARCHIVE_MAX);
	put_record(&records, key, value, strlen(value));
	put_extra(a, 'x', records.data, records.len);
	buf_done(&records);
}

static void put_end(struct buf *a)
{
	static const char zero[2 * TAR_BLOCK];

	buf_append(a, zero, sizeof(zero));
}

/* ---- running the filter ---- */

static int memory_file(const struct buf *content)
{
	int fd = memfd_create("tar", MFD_CLOEXEC);

	if (fd < 0 || (content && pwrite(fd, content->data, content->len, 0) != (ssize_t)content->len))
		tap_bail("memfd");
	return fd;
}

static struct tar_report run(const struct buf *in, const struct tar_policy *policy, struct buf *out)
{
	int in_fd = memory_file(in), out_fd = memory_file(NULL);
	struct tar_report report;
	char text[65536];
	ssize_t n;

	tar_filter(in_fd, out_fd, policy, &report);
	out->len = 0;
	if (lseek(out_fd, 0, SEEK_SET) < 0)
		tap_bail("lseek");
	while ((n = read(out_fd, text, sizeof(text))) > 0)
		buf_append(out, text, (size_t)n);
	close(in_fd);
	close(out_fd);
	return report;
}

/* entry() - the n-th header of an archive that the filter wrote; extras count. NULL beyond the end. */
static const struct tar_header *entry(const struct buf *a, size_t n)
{
	size_t at = 0;

	while (at + TAR_BLOCK <= a->len) {
		const struct tar_header *h = (const struct tar_header *)(const void *)(a->data + at);
		uint64_t size;

		if (h->name[0] == '\0')
			return NULL;
		if (n-- == 0)
			return h;
		if (tar_parse_number(h->size, sizeof(h->size), &size) < 0)
			return NULL;
		at += TAR_BLOCK + (size_t)((size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK);
	}
	return NULL;
}

static uint64_t number(const char *field, size_t size)
{
	uint64_t value = UINT64_MAX;

	(void)tar_parse_number(field, size, &value);
	return value;
}

/* ---- tests ---- */

static void test_plain(struct buf *a, struct buf *out)
{
	struct tar_report r;

	a->len = 0;
	put_header(a, header('5', "d/", "", 0));
	put_file(a, "d/f", "hello");
	put_header(a, header('2', "l", "d/f", 0));
	put_header(a, header('1', "h", "d/f", 0));
	put_header(a, header('6', "p", "", 0));
	put_end(a);
	r = run(a, &image_policy, out);
	tap_int(r.verdict, TAR_OK, "a plain archive passes");
	tap_int(r.complete, 1, "and the filter says that it is done");
	tap_int(r.entries, 5, "every entry counts");
	tap_int(r.bytes, a->len, "and every byte");
	tap_int(out->len, a->len, "what comes out is as long");
	tap_str(entry(out, 1)->name, "d/f", "names are kept");
	tap_ok(memcmp((const char *)entry(out, 1) + TAR_BLOCK, "hello", 6) == 0, "data is kept");
	tap_str(entry(out, 1)->uname, "", "names of owners are not");
	tap_int(r.devices + r.escaping + r.unknown + r.ids + r.overlay_xattrs, 0, "nothing to report");
	put_file(a, "behind", "x");
	r = run(a, &image_policy, out);
	tap_ok(r.verdict == TAR_OK && r.entries == 5, "what stands behind the end is read, not used");
}

static void test_left_out(struct buf *a, struct buf *out)
{
	static const struct {
		const char *desc;
		char type;
		const char *name, *link;
		size_t counter; /* 0: kept */
		bool host;
	} rows[] = {
#define AT(field) offsetof(struct tar_report, field)
		{ "character device", '3', "dev/null", "", AT(devices), false },
		{ "block device", '4', "dev/sda", "", AT(devices), false },
		{ "parent", '0', "..", "", AT(escaping), false },
		{ "climbing name", '0', "../x", "", AT(escaping), false },
		{ "climbing in the middle", '0', "a/../../x", "", AT(escaping), false },
		{ "climbing at the end", '5', "a/..", "", AT(escaping), false },
		{ "climbing behind slashes", '0', "/..//x", "", AT(escaping), false },
		{ "climbing hard link", '1', "x", "../../etc/shadow", AT(escaping), false },
		{ "name of dots", '0', "...", "", 0, false },
		{ "name with dots in it", '0', "a..b/..c", "", 0, false },
		{ "absolute name", '0', "/etc/x", "", 0, false },
		{ "climbing symbolic link in an image", '2', "x", "../../y", 0, false },
		{ "absolute symbolic link in an image", '2', "x", "/etc", 0, false },
		{ "climbing symbolic link to the host", '2', "x", "../y", AT(escaping), true },
		{ "absolute symbolic link to the host", '2', "x", "/etc", AT(escaping), true },
		{ "inner symbolic link to the host", '2', "x", "a/b", 0, true },
		{ "empty symbolic link to the host", '2', "x", "", AT(escaping), true },
		{ "volume label", 'V', "x", "", AT(unknown), false },
		{ "directory dump", 'D', "x", "", AT(unknown), false },
		{ "continued file", 'M', "x", "", AT(unknown), false },
		{ "unknown type", 'Z', "x", "", AT(unknown), false },
		{ "no name", '0', "", "x", AT(escaping), false },
#undef AT
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tar_report r;
		uint64_t counter = 0;

		a->len = 0;
		put_header(a, header(rows[i].type, rows[i].name, rows[i].link, 0));
		put_file(a, "after", "x");
		put_end(a);
		r = run(a, rows[i].host ? &host_policy : &image_policy, out);
		tap_int(r.verdict, TAR_OK, "%s: the rest passes", rows[i].desc);
		tap_int(r.entries, rows[i].counter ? 1 : 2, "%s: %s", rows[i].desc,
			rows[i].counter ? "left out" : "kept");
		if (rows[i].counter)
			memcpy(&counter, (const char *)&r + rows[i].counter, sizeof(counter));
		tap_int(counter, rows[i].counter != 0, "%s: counted", rows[i].desc);
		tap_str(entry(out, rows[i].counter ? 0 : 1)->name, "after", "%s: in step", rows[i].desc);
	}
}

static void test_skip(struct buf *a, struct buf *out)
{
	struct tar_report r;

	a->len = 0;
	put_file(a, "./.skipped.json", "{}");
	put_file(a, ".skipped.json", "{}");
	put_file(a, "d/.skipped.json", "{}");
	put_end(a);
	r = run(a, &image_policy, out);
	tap_ok(r.entries == 1 && r.escaping == 0, "the name to skip is left out at the top only, silently");
	tap_str(entry(out, 0)->name, "d/.skipped.json", "and kept below");
	tap_ok(r.skipped_len == 2 && memcmp(r.skipped, "{}", 3) == 0, "the content of the first is reported");
}

static void test_ids(struct buf *a, struct buf *out)
{
	static const struct {
		uint64_t id, want;
		int counted;
	} rows[] = { { 0, 0, 0 },	  { 59999, 59999, 0 },	{ 60000, 65534, 2 }, { 65533, 65534, 2 },
		     { 65534, 65534, 0 }, { 65535, 65534, 2 },	{ 2097151, 65534, 2 },
		     { 2097152, 65534, 2 }, { UINT32_MAX, 65534, 2 }, { UINT64_C(1) << 40, 65534, 2 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tar_header h = header('0', "x", "", 0);
		struct tar_report r;
		char text[24];

		a->len = 0;
		tar_write_number(h.uid, sizeof(h.uid), rows[i].id);
		tar_write_number(h.gid, sizeof(h.gid), rows[i].id);
		put_header(a, h);
		put_end(a);
		r = run(a, &image_policy, out);
		tap_ok(r.verdict == TAR_OK && number(entry(out, 0)->uid, 8) == rows[i].want &&
			       number(entry(out, 0)->gid, 8) == rows[i].want,
		       "id %llu in a header", (unsigned long long)rows[i].id);
		tap_int(r.ids, rows[i].counted, "counted");
		a->len = 0;
		snprintf(text, sizeof(text), "%llu", (unsigned long long)rows[i].id);
		put_pax(a, "uid", text);
		put_file(a, "x", "");
		put_end(a);
		r = run(a, &image_policy, out);
		tap_ok(r.verdict == TAR_OK && entry(out, 0)->type == '0' &&
			       number(entry(out, 0)->uid, 8) == rows[i].want,
		       "id %llu in a pax record ends up in the header", (unsigned long long)rows[i].id);
	}
}

static void test_setid(struct buf *a, struct buf *out)
{
	struct tar_header h = header('0', "x", "", 0);
	struct tar_report r;

	a->len = 0;
	tar_write_number(h.mode, sizeof(h.mode), 0107755);
	put_header(a, h);
	put_end(a);
	r = run(a, &image_policy, out);
	tap_int(number(entry(out, 0)->mode, 8), 07755, "an image keeps set-id bits");
	r = run(a, &host_policy, out);
	tap_int(number(entry(out, 0)->mode, 8), 01755, "a directory of the host does not get them");
	tap_int(r.setids, 1, "which is counted");
}

static void test_long_names(struct buf *a, struct buf *out)
{
	char name[301], text[400];
	struct tar_header h = header('0', "base", "", 0);
	struct tar_report r;

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	a->len = 0;
	put_extra(a, 'L', name, sizeof(name));
	put_extra(a, 'K', "target", 7);
	put_header(a, header('2', "short", "short", 0));
	put_end(a);
	r = run(a, &image_policy, out);
	tap_ok(r.verdict == TAR_OK && r.entries == 1, "GNU long names");
	tap_ok(entry(out, 0)->type == 'L' && entry(out, 1)->type == 'K' && entry(out, 2)->type == '2',
	       "are passed on in front of their entry");
	tap_ok(memcmp((const char *)entry(out, 0) + TAR_BLOCK, name, sizeof(name)) == 0, "unchanged");
	a->len = 0;
	snprintf(text, sizeof(text), "%s/../x", name);
	put_extra(a, 'L', text, strlen(text) + 1);
	put_file(a, "short", "");
	put_end(a);
	r = run(a, &image_policy, out);
	tap_ok(r.entries == 0 && r.escaping == 1 && !entry(out, 0), "a GNU long name that climbs");
	a->len = 0;
	memcpy(h.prefix, "../up", 5);
	put_header(a, h);
	put_end(a);
	r = run(a, &image_policy, out);
	tap_int(r.escaping, 1, "a prefix that climbs");
}

static void test_pax_names(struct buf *a, struct buf *out)
{
	static const struct {
		const char *desc, *key, *value;
		int escaping;
	} rows[] = {
		{ "a long path", "path", "p/q", 0 },
		{ "a path that climbs", "path", "../q", 1 },
		{ "a sparse file's name that climbs", "GNU.sparse.name", "../q", 1 },
		{ "a link path that climbs, of a file", "linkpath", "../q", 0 },
	};
	struct buf records;
	struct tar_report r;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		a->len = 0;
		put_pax(a, rows[i].key, rows[i].value);
		put_file(a, "f", "");
		put_end(a);
		r = run(a, &image_policy, out);
		tap_ok(r.verdict == TAR_OK && r.escaping == (uint64_t)rows[i].escaping, "pax: %s",
		       rows[i].desc);
	}
	/* whichever of two names a tar believes */
	buf_init(&records, ARCHIVE_MAX);
	put_record(&records, "path", "../q", 4);
	put_record(&records, "GNU.sparse.name", "good", 4);
	a->len = 0;
	put_extra(a, 'x', records.data, records.len);
	put_file(a, "f", "");
	put_end(a);
	r = run(a, &image_policy, out);
	tap_int(r.escaping, 1, "pax: one of two names climbs");
	records.len = 0;
	put_record(&records, "path", "a\0b", 3);
	a->len = 0;
	put_extra(a, 'x', records.data, records.len);
	put_file(a, "f", "");
	put_end(a);
	r = run(a, &image_policy, out);
	tap_int(r.verdict, TAR_MALFORMED, "pax: a name with a NUL");
	buf_done(&records);
}

static void test_xattrs(struct buf *a, struct buf *out)
{
	struct buf records;
	struct tar_report r;

	buf_init(&records, ARCHIVE_MAX);
	put_record(&records, "SCHILY.xattr.user.overlay.opaque", "y", 1);
	put_record(&records, "SCHILY.xattr.trusted.overlay.redirect", "/etc", 4);
	put_record(&records, "SCHILY.xattr.user.mime", "x", 1);
	put_record(&records, "SCHILY.xattr.security.capability", "\1\0\0\2\0", 5);
	put_record(&records, "LIBARCHIVE.xattr.user.overlay.opaque", "eQ==", 4);
	put_record(&records, "SCHILY.acl.access", "u::rwx", 6);
	put_record(&records, "comment", "no", 2);
	put_record(&records, "mtime", "1.5", 3);
	a->len = 0;
	put_extra(a, 'x', records.data, records.len);
	put_file(a, "f", "");
	put_end(a);
	r = run(a, &image_policy, out);
	tap_int(r.overlay_xattrs, 2, "overlay attributes are counted");
	tap_int(r.other_xattrs, 1, "others too");
	tap_ok(entry(out, 0)->type == 'x' &&
		       memmem(out->data, out->len, "security.capability=\1\0\0\2\0\n", 26) &&
		       memmem(out->data, out->len, "mtime=1.5", 9),
	       "file capabilities and times are kept");
	tap_ok(!memmem(out->data, out->len, "overlay", 7) && !memmem(out->data, out->len, "acl", 3) &&
		       !memmem(out->data, out->len, "user.mime", 9),
	       "nothing else is");
	records.len = 0;
	put_record(&records, "SCHILY.xattr.user.overlay.opaque", "y", 1);
	a->len = 0;
	put_extra(a, 'g', records.data, records.len);
	put_file(a, "f", "");
	put_end(a);
	r = run(a, &image_policy, out);
	tap_ok(r.verdict == TAR_OK && entry(out, 0)->type == '0', "global records are left out");
	buf_done(&records);
}

/* Programs differ on whether a link or a directory with a size has data: an entry could hide there. */
static void test_hidden(struct buf *a, struct buf *out)
{
	static const char types[] = "1256";

	for (size_t i = 0; types[i]; i++) {
		struct tar_report r;

		a->len = 0;
		put_header(a, header(types[i], "x", "y", TAR_BLOCK));
		put_header(a, header('3', "device", "", 0));
		put_end(a);
		r = run(a, &image_policy, out);
		tap_ok(r.devices == 1 && r.entries == 1, "type %c with a size has no data", types[i]);
		tap_int(number(entry(out, 0)->size, 12), 0, "and says so when it is passed on");
	}
}

static void test_sparse(struct buf *a, struct buf *out)
{
	struct tar_header h = header('S', "s", "", 3);
	char map[TAR_BLOCK] = { 0 };
	struct tar_report r;

	a->len = 0;
	((char *)&h)[482] = 1; /* one more block of the map follows */
	put_header(a, h);
	buf_append(a, map, sizeof(map));
	put_data(a, "abc", 3);
	put_file(a, "after", "x");
	put_end(a);
	r = run(a, &image_policy, out);
	tap_ok(r.verdict == TAR_OK && r.entries == 2 && out->len == a->len,
	       "an old GNU sparse file passes with its map");
}

static void test_refused(struct buf *a, struct buf *out)
{
	struct tar_header h = header('0', "x", "", 10);
	struct tar_report r;

	a->len = 0;
	r = run(a, &image_policy, out);
	tap_int(r.verdict, TAR_TRUNCATED, "an empty file");
	put_file(a, "x", "hello");
	r = run(a, &image_policy, out);
	tap_int(r.verdict, TAR_TRUNCATED, "no end mark");
	put_end(a);
	a->len = TAR_BLOCK + 100;
	r = run(a, &image_policy, out);
	tap_int(r.verdict, TAR_TRUNCATED, "cut inside the data");
	a->len = 100;
	r = run(a, &image_policy, out);
	tap_int(r.verdict, TAR_TRUNCATED, "cut inside the header");
	a->len = 0;
	for (int i = 0; i < 100; i++)
		buf_append_str(a, "this is no archive ");
	r = run(a, &image_policy, out);
	tap_int(r.verdict, TAR_MALFORMED, "text");
	a->len = 0;
	put_file(a, "x", "hello");
	put_end(a);
	a->data[0] ^= 1;
	r = run(a, &image_policy, out);
	tap_int(r.verdict, TAR_MALFORMED, "a wrong checksum");
	a->len = 0;
	memset(h.size, 0xff, sizeof(h.size));
	put_header(a, h);
	r = run(a, &image_policy, out);
	tap_int(r.verdict, TAR_MALFORMED, "a negative size");
	memset(h.size, 0, sizeof(h.size));
	memcpy(h.size, "9999", 4);
	a->len = 0;
	put_header(a, h);
	r = run(a, &image_policy, out);
	tap_int(r.verdict, TAR_MALFORMED, "a size that is not octal");
}

static void test_bad_pax(struct buf *a, struct buf *out)
{
	static const struct {
		const char *desc, *text;
	} rows[] = {
		{ "no length", "path=x\n" },
		{ "too short a length", "3 path=x\n" },
		{ "too long a length", "99 path=x\n" },
		{ "length overflows", "99999999999999999999999 path=x\n" },
		{ "no equals sign", "9 path-x\n" },
		{ "no line end", "10 path=xyz" },
		{ "a size that is no number", "9 size=x\n" },
		{ "a negative owner", "9 uid=-1\n" },
		{ "a size that overflows", "30 size=18446744073709551616\n\n" },
		{ "a size whose padding overflows", "29 size=18446744073709551615\n" },
		{ "length alone", "2\n" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tar_report r;

		a->len = 0;
		put_extra(a, 'x', rows[i].text, strlen(rows[i].text));
		put_file(a, "f", "");
		put_end(a);
		r = run(a, &image_policy, out);
		tap_int(r.verdict, TAR_MALFORMED, "pax: %s", rows[i].desc);
	}
}

static void test_limits(struct buf *a, struct buf *out)
{
	struct tar_policy policy = image_policy;
	struct tar_report r;

	a->len = 0;
	for (int i = 0; i < 10; i++)
		put_file(a, "x", "hello");
	put_end(a);
	policy.max_entries = 10;
	r = run(a, &policy, out);
	tap_int(r.verdict, TAR_OK, "as many entries as may be");
	policy.max_entries = 9;
	r = run(a, &policy, out);
	tap_int(r.verdict, TAR_TOO_MANY, "one more");
	policy = image_policy;
	policy.max_bytes = a->len;
	r = run(a, &policy, out);
	tap_int(r.verdict, TAR_OK, "as many bytes as may be");
	policy.max_bytes = a->len - 1;
	r = run(a, &policy, out);
	tap_int(r.verdict, TAR_TOO_BIG, "one more");
	a->len = 0;
	put_header(a, header('0', "huge", "", UINT64_C(1) << 40));
	r = run(a, &image_policy, out);
	tap_int(r.verdict, TAR_TRUNCATED, "a file that is announced and not there");
	a->len = 0;
	put_extra(a, 'x', "", 0);
	put_header(a, header('x', "extra", "", 2 * 1024 * 1024));
	r = run(a, &image_policy, out);
	tap_int(r.verdict, TAR_MALFORMED, "pax records of 2 MiB");
}

/* Every single-bit change of a small archive: a verdict, never a crash, never more than there is. */
static void test_bits(struct buf *a, struct buf *out)
{
	size_t verdicts[TAR_VERDICT_COUNT] = { 0 };
	bool in_bounds = true;

	a->len = 0;
	put_pax(a, "SCHILY.xattr.security.capability", "value");
	put_file(a, "name", "hello");
	put_extra(a, 'L', "long", 5);
	put_header(a, header('2', "l", "x", 0));
	put_end(a);
	for (size_t bit = 0; bit < a->len * 8; bit += 3) {
		struct tar_report r;

		a->data[bit / 8] ^= (char)(1 << bit % 8);
		r = run(a, &image_policy, out);
		a->data[bit / 8] ^= (char)(1 << bit % 8);
		in_bounds &= r.complete && r.verdict < TAR_VERDICT_COUNT && r.bytes <= a->len;
		if (r.verdict < TAR_VERDICT_COUNT)
			verdicts[r.verdict]++;
	}
	tap_ok(in_bounds, "every changed bit gives a verdict");
	tap_ok(verdicts[TAR_MALFORMED] > 0 && verdicts[TAR_OK] > 0,
	       "%zu damaged, %zu unharmed (in data and padding)", verdicts[TAR_MALFORMED],
	       verdicts[TAR_OK]);
}

static void test_numbers(void)
{
	static const struct {
		const char *field;
		int ok;
		uint64_t value;
	} rows[] = {
		{ "0000644\0", 1, 0644 },
		{ "   644 \0", 1, 0644 },
		{ "644\0\0\0\0\0", 1, 0644 },
		{ "\0\0\0\0\0\0\0\0", 1, 0 },
		{ "        ", 1, 0 },
		{ "77777777", 1, 077777777 },
		{ "644x\0\0\0\0", 0, 0 },
		{ "-644\0\0\0\0", 0, 0 },
		{ "\x80\0\0\0\0\0\1\0", 1, 256 },
		{ "\x81\0\0\0\0\0\1\0", 0, 0 },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff", 0, 0 },
	};
	char field[12];
	uint64_t value;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tap_guard g = tap_guard_new(rows[i].field, 8);
		int r = tar_parse_number(g.data, 8, &value);

		tap_ok(rows[i].ok ? r == 0 && value == rows[i].value : r < 0, "number field, row %zu", i);
		tap_guard_free(&g);
	}
	for (int shift = 0; shift < 64; shift++) {
		tar_write_number(field, sizeof(field), UINT64_C(1) << shift);
		if (tar_parse_number(field, sizeof(field), &value) < 0 || value != UINT64_C(1) << shift)
			tap_ok(false, "2^%d survives being written and read", shift);
	}
	tap_ok(true, "powers of two survive being written and read");
}

int main(void)
{
	struct buf a, out;

	buf_init(&a, ARCHIVE_MAX);
	buf_init(&out, ARCHIVE_MAX);
	test_plain(&a, &out);
	test_left_out(&a, &out);
	test_skip(&a, &out);
	test_ids(&a, &out);
	test_setid(&a, &out);
	test_long_names(&a, &out);
	test_pax_names(&a, &out);
	test_xattrs(&a, &out);
	test_hidden(&a, &out);
	test_sparse(&a, &out);
	test_refused(&a, &out);
	test_bad_pax(&a, &out);
	test_limits(&a, &out);
	test_bits(&a, &out);
	test_numbers();
	buf_done(&a);
	buf_done(&out);
	return tap_done();
}
