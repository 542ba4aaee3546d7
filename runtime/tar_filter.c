/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/tar_filter.c - the only reader of foreign tar headers
 *
 * Runs in: a box with the ids, capabilities and filter of a sandbox and no file but its two pipes.
 * Trusts: nothing in the stream. Numbers are range-checked where they are read, every copy is
 * bounded, and what it does not understand is left out or refused, never passed on.
 *
 * One entry is up to four kinds of blocks in a row: pax records ('x', 'g'), GNU long names ('L', 'K'),
 * the header itself, its data. They are collected in struct entry, judged once, written or dropped.
 */
#include "runtime/tar_filter.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/tar_header.h"

enum {
	BLOCK = TAR_BLOCK,
	COPY_SIZE = 64 * 1024,
	EXTRA_MAX = 1024 * 1024, /* pax records or a long name of one entry */
};

enum { SPARSE_MORE_HEADER = 482, SPARSE_MORE_EXTENSION = 504 };

struct entry {
	struct tar_header h;
	struct buf pax;       /* the records that are kept */
	struct buf name, link; /* effective: pax before GNU before the header */
	bool has_pax_name, has_pax_link, has_pax_size, has_pax_uid, has_pax_gid;
	bool has_gnu_name, has_gnu_link;
	bool escapes; /* any name given for it, whichever tar would believe, has a ".." */
	uint64_t size, uid, gid;
};

struct filter {
	int in_fd, out_fd;
	const struct tar_policy *policy;
	struct tar_report *report;
	char copy[COPY_SIZE];
};

/* ---- stream ---- */

static int stop(struct filter *f, enum tar_verdict verdict)
{
	if (f->report->verdict == TAR_OK)
		f->report->verdict = verdict;
	return -1;
}

static int read_exact(struct filter *f, void *data, size_t len)
{
	ssize_t n = fd_read_full(f->in_fd, data, len);

	if (n < 0)
		return stop(f, TAR_READ_ERROR);
	f->report->bytes += (uint64_t)n;
	if (f->report->bytes > f->policy->max_bytes)
		return stop(f, TAR_TOO_BIG);
	return (size_t)n == len ? 0 : stop(f, TAR_TRUNCATED);
}

static int write_exact(struct filter *f, const void *data, size_t len)
{
	return fd_write_full(f->out_fd, data, len) < 0 ? stop(f, TAR_WRITE_ERROR) : 0;
}

static uint64_t padded(uint64_t size)
{
	return (size + BLOCK - 1) / BLOCK * BLOCK;
}

/* move_data() - size bytes and their padding; written unless dropped. */
static int move_data(struct filter *f, uint64_t size, bool drop)
{
	uint64_t left = padded(size);

	while (left > 0) {
		size_t n = left < sizeof(f->copy) ? (size_t)left : sizeof(f->copy);

		if (read_exact(f, f->copy, n) < 0 || (!drop && write_exact(f, f->copy, n) < 0))
			return -1;
		left -= n;
	}
	return 0;
}

/* read_extra() - the data of a pax or long-name block, which must be small. */
static int read_extra(struct filter *f, uint64_t size, struct buf *ret)
{
	uint64_t left = padded(size);

	if (size > EXTRA_MAX)
		return stop(f, TAR_MALFORMED);
	while (left > 0) {
		size_t n = left < sizeof(f->copy) ? (size_t)left : sizeof(f->copy);

		if (read_exact(f, f->copy, n) < 0)
			return -1;
		if (buf_append(ret, f->copy, n) < 0)
			return stop(f, TAR_MALFORMED);
		left -= n;
	}
	ret->len = (size_t)size;
	return 0;
}

/* ---- pax records ---- */

static bool key_is(const char *key, size_t len, const char *want)
{
	return strlen(want) == len && memcmp(key, want, len) == 0;
}

static bool key_starts(const char *key, size_t len, const char *want)
{
	return strlen(want) <= len && memcmp(key, want, strlen(want)) == 0;
}

/* keep_xattr() - the only attribute that means something in an image is file capabilities. */
static bool keep_xattr(struct filter *f, const char *name, size_t len)
{
	if (key_is(name, len, "security.capability"))
		return true;
	if (key_starts(name, len, "user.overlay.") || key_starts(name, len, "trusted."))
		f->report->overlay_xattrs++;
	else
		f->report->other_xattrs++;
	return false;
}

/* climbs() - whether a component is "..". Absolute names do not: tar strips their slashes. */
static bool climbs(const struct buf *name)
{
	const char *p = name->data ? name->data : "";

	while (*p) {
		size_t len = strcspn(p, "/");

		if (len == 2 && p[0] == '.' && p[1] == '.')
			return true;
		p += len;
		p += strspn(p, "/");
	}
	return false;
}

static int set_name(struct filter *f, struct entry *en, struct buf *dst, const char *value,
		    size_t len)
{
	if (memchr(value, '\0', len))
		return stop(f, TAR_MALFORMED);
	dst->len = 0;
	if (buf_append(dst, value, len) < 0)
		return stop(f, TAR_MALFORMED);
	if (dst == &en->name && climbs(dst))
		en->escapes = true;
	return 0;
}

/* judge_record() - take in one record. Return: 1 keep it, 0 drop it, -1. */
static int judge_record(struct filter *f, struct entry *en, const char *key, size_t key_len,
			const char *value, size_t len)
{
	const struct {
		const char *key;
		bool *has;
		uint64_t *number;
	} numbers[] = { { "size", &en->has_pax_size, &en->size },
			{ "uid", &en->has_pax_uid, &en->uid },
			{ "gid", &en->has_pax_gid, &en->gid } };

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (!key_is(key, key_len, numbers[i].key))
			continue;
		*numbers[i].has = true;
		if (tar_parse_decimal(value, len, numbers[i].number) < 0)
			return stop(f, TAR_MALFORMED);
		return 0; /* they go into the header that we write */
	}
	if (key_is(key, key_len, "path") || key_is(key, key_len, "GNU.sparse.name")) {
		en->has_pax_name = true;
		return set_name(f, en, &en->name, value, len) < 0 ? -1 : 1;
	}
	if (key_is(key, key_len, "linkpath")) {
		en->has_pax_link = true;
		return set_name(f, en, &en->link, value, len) < 0 ? -1 : 1;
	}
	if (key_starts(key, key_len, "SCHILY.xattr."))
		return keep_xattr(f, key + 13, key_len - 13);
	if (key_starts(key, key_len, "LIBARCHIVE.xattr.")) /* the same ones, encoded, a second time */
		return 0;
	return key_is(key, key_len, "mtime") || key_starts(key, key_len, "GNU.sparse.");
}

/* parse_pax() - "<length> <key>=<value>\n" records; the kept ones are collected unchanged. */
static int parse_pax(struct filter *f, struct entry *en, const struct buf *text)
{
	const char *p = text->data, *end = text->data + text->len;

	while (p < end) {
		const char *space = memchr(p, ' ', (size_t)(end - p));
		const char *equals;
		uint64_t len;
		int keep;

		if (!space || tar_parse_decimal(p, (size_t)(space - p), &len) < 0 ||
		    len > (uint64_t)(end - p) || len < (uint64_t)(space - p) + 4 ||
		    p[len - 1] != '\n')
			return stop(f, TAR_MALFORMED);
		equals = memchr(space + 1, '=', len - (size_t)(space + 1 - p) - 1);
		if (!equals)
			return stop(f, TAR_MALFORMED);
		keep = judge_record(f, en, space + 1, (size_t)(equals - space - 1), equals + 1,
				    len - (size_t)(equals + 1 - p) - 1);
		if (keep < 0)
			return -1;
		if (keep && buf_append(&en->pax, p, len) < 0)
			return stop(f, TAR_MALFORMED);
		p += len;
	}
	return 0;
}

/* ---- one entry ---- */

static void entry_init(struct entry *en)
{
	*en = (struct entry){ 0 };
	buf_init(&en->pax, EXTRA_MAX * 4);
	buf_init(&en->name, EXTRA_MAX + BLOCK);
	buf_init(&en->link, EXTRA_MAX + BLOCK);
}

static void entry_done(struct entry *en)
{
	buf_done(&en->pax);
	buf_done(&en->name);
	buf_done(&en->link);
}

static bool block_is_zero(const struct tar_header *h)
{
	static const struct tar_header zero;

	return memcmp(h, &zero, sizeof(zero)) == 0;
}

/* read_header() - Return: 1 an entry, 0 the end mark, -1. */
static int read_header(struct filter *f, struct tar_header *h)
{
	uint64_t sum;

	if (read_exact(f, h, sizeof(*h)) < 0)
		return -1;
	if (block_is_zero(h))
		return 0;
	if (tar_parse_number(h->checksum, sizeof(h->checksum), &sum) < 0 || sum != tar_checksum(h))
		return stop(f, TAR_MALFORMED);
	return 1;
}

/* take_extra() - a block that describes the entry that follows. */
static int take_extra(struct filter *f, struct entry *en)
{
	struct buf data;
	uint64_t size;
	int r;

	if (tar_parse_number(en->h.size, sizeof(en->h.size), &size) < 0)
		return stop(f, TAR_MALFORMED);
	if (en->h.type == 'g') /* global records: comments in practice; nothing here may be global */
		return move_data(f, size, true);
	buf_init(&data, EXTRA_MAX + BLOCK);
	r = read_extra(f, size, &data);
	if (r == 0 && en->h.type == 'x') {
		r = parse_pax(f, en, &data);
	} else if (r == 0 && en->h.type == 'L' && !en->has_pax_name) {
		en->has_gnu_name = true;
		r = set_name(f, en, &en->name, data.data ? data.data : "",
			     data.data ? strnlen(data.data, data.len) : 0);
	} else if (r == 0 && en->h.type == 'K' && !en->has_pax_link) {
		en->has_gnu_link = true;
		r = set_name(f, en, &en->link, data.data ? data.data : "",
			     data.data ? strnlen(data.data, data.len) : 0);
	}
	buf_done(&data);
	return r;
}

/* take_header() - the fields of the header itself, where nothing before it has said more. */
static int take_header(struct filter *f, struct entry *en)
{
	const struct tar_header *h = &en->h;
	uint64_t size, uid, gid;

	if (tar_parse_number(h->size, sizeof(h->size), &size) < 0 ||
	    tar_parse_number(h->uid, sizeof(h->uid), &uid) < 0 ||
	    tar_parse_number(h->gid, sizeof(h->gid), &gid) < 0)
		return stop(f, TAR_MALFORMED);
	if (!en->has_pax_size)
		en->size = size;
	if (!en->has_pax_uid)
		en->uid = uid;
	if (!en->has_pax_gid)
		en->gid = gid;
	if (!en->has_pax_link && !en->has_gnu_link &&
	    set_name(f, en, &en->link, h->link, strnlen(h->link, sizeof(h->link))) < 0)
		return -1;
	if (en->has_pax_name || en->has_gnu_name)
		return 0;
	if (memcmp(h->magic, "ustar\0", 6) == 0 && h->prefix[0]) {
		if (set_name(f, en, &en->name, h->prefix, strnlen(h->prefix, sizeof(h->prefix))) < 0 ||
		    buf_append_str(&en->name, "/") < 0)
			return stop(f, TAR_MALFORMED);
	}
	if (buf_append(&en->name, h->name, strnlen(h->name, sizeof(h->name))) < 0)
		return stop(f, TAR_MALFORMED);
	en->escapes |= climbs(&en->name);
	return 0;
}

static bool is_skipped(const struct filter *f, const struct entry *en)
{
	const char *name = en->name.data ? en->name.data : "";

	while (name[0] == '.' && name[1] == '/')
		name += 2;
	return f->policy->skip && strcmp(name, f->policy->skip) == 0;
}

/* keep_skipped() - read the data of what is left out by name into the report. */
static int keep_skipped(struct filter *f, const struct entry *en)
{
	if (read_exact(f, f->report->skipped, (size_t)padded(en->size)) < 0)
		return -1;
	f->report->skipped_len = (uint32_t)en->size;
	return 0;
}

static bool link_leaves(const struct entry *en)
{
	return en->link.len == 0 || en->link.data[0] == '/' || climbs(&en->link);
}

/* is_unwanted() - whether to leave the entry out, and count why. */
static bool is_unwanted(struct filter *f, const struct entry *en)
{
	if (is_skipped(f, en))
		return true;
	if (en->name.len == 0 || en->escapes || (en->h.type == '1' && climbs(&en->link)) ||
	    (en->h.type == '2' && f->policy->confine_links && link_leaves(en))) {
		f->report->escaping++;
		return true;
	}
	switch (en->h.type) {
	case '3':
	case '4':
		f->report->devices++;
		return true;
	case '\0':
	case '0':
	case '1':
	case '2':
	case '5':
	case '6':
	case '7':
	case 'S':
		return false;
	default: /* volume labels, directory dumps, continued files, what is yet to be invented */
		f->report->unknown++;
		return true;
	}
}

static uint64_t allowed_id(struct filter *f, uint64_t id)
{
	if (id <= f->policy->max_id || id == f->policy->nobody)
		return id;
	f->report->ids++;
	return f->policy->nobody;
}

static int rewrite_header(struct filter *f, struct entry *en)
{
	uint64_t mode;

	tar_write_number(en->h.uid, sizeof(en->h.uid), allowed_id(f, en->uid));
	tar_write_number(en->h.gid, sizeof(en->h.gid), allowed_id(f, en->gid));
	if (tar_parse_number(en->h.mode, sizeof(en->h.mode), &mode) < 0)
		return stop(f, TAR_MALFORMED);
	if (f->policy->strip_setid && (mode & (S_ISUID | S_ISGID)) && en->h.type != '5')
		f->report->setids++;
	if (f->policy->strip_setid)
		mode &= ~(uint64_t)(S_ISUID | S_ISGID);
	tar_write_number(en->h.mode, sizeof(en->h.mode), mode & 07777);
	tar_write_number(en->h.size, sizeof(en->h.size), en->size);
	memset(en->h.uname, 0, sizeof(en->h.uname));
	memset(en->h.gname, 0, sizeof(en->h.gname));
	tar_write_checksum(&en->h);
	return 0;
}

/* write_extra() - a block of our own making in front of the header. */
static int write_extra(struct filter *f, char type, const char *data, size_t len)
{
	static const char zero[BLOCK];
	struct tar_header h = { .name = "extra", .type = type };

	tar_write_number(h.mode, sizeof(h.mode), 0644);
	tar_write_number(h.uid, sizeof(h.uid), 0);
	tar_write_number(h.gid, sizeof(h.gid), 0);
	tar_write_number(h.size, sizeof(h.size), len);
	tar_write_number(h.mtime, sizeof(h.mtime), 0);
	memcpy(h.magic, type == 'x' ? "ustar\0" : "ustar ", 6);
	memcpy(h.version, type == 'x' ? "00" : " \0", 2);
	tar_write_checksum(&h);
	if (write_exact(f, &h, sizeof(h)) < 0 || write_exact(f, data, len) < 0)
		return -1;
	return write_exact(f, zero, (size_t)(padded(len) - len));
}

static int write_head(struct filter *f, struct entry *en)
{
	if (rewrite_header(f, en) < 0)
		return -1;
	if (en->pax.len > 0 && write_extra(f, 'x', en->pax.data, en->pax.len) < 0)
		return -1;
	if (en->has_gnu_name && !en->has_pax_name &&
	    write_extra(f, 'L', en->name.data, en->name.len + 1) < 0)
		return -1;
	if (en->has_gnu_link && !en->has_pax_link &&
	    write_extra(f, 'K', en->link.data, en->link.len + 1) < 0)
		return -1;
	return write_exact(f, &en->h, sizeof(en->h));
}

/* move_sparse_map() - the extension blocks of an old GNU sparse header. */
static int move_sparse_map(struct filter *f, const struct entry *en, bool drop)
{
	char block[BLOCK];
	bool more = ((const char *)&en->h)[SPARSE_MORE_HEADER] != 0;

	while (more) {
		if (read_exact(f, block, sizeof(block)) < 0 ||
		    (!drop && write_exact(f, block, sizeof(block)) < 0))
			return -1;
		more = block[SPARSE_MORE_EXTENSION] != 0;
	}
	return 0;
}

/* has_data() - links, directories and FIFOs have none, whatever their size field says. Programs differ
 * there, which would let an entry hide in what one takes for data: so the field is written anew. */
static bool has_data(const struct entry *en)
{
	return en->h.type == '\0' || !strchr("123456", en->h.type);
}

static int move_entry(struct filter *f, struct entry *en)
{
	bool drop;

	if (take_header(f, en) < 0)
		return -1;
	if (!has_data(en))
		en->size = 0;
	if (en->size > INT64_MAX) /* no file is so large, and its padding would not fit a number */
		return stop(f, TAR_MALFORMED);
	drop = is_unwanted(f, en);
	if (!drop && f->report->entries++ >= f->policy->max_entries)
		return stop(f, TAR_TOO_MANY);
	if (!drop && write_head(f, en) < 0)
		return -1;
	if (en->h.type == 'S' && move_sparse_map(f, en, drop) < 0)
		return -1;
	if (drop && f->report->skipped_len == 0 && en->size > 0 && en->size <= TAR_SKIPPED_MAX &&
	    en->h.type == '0' && is_skipped(f, en))
		return keep_skipped(f, en);
	return move_data(f, en->size, drop);
}

/* next_entry() - Return: 1 one was dealt with, 0 the end mark, -1. */
static int next_entry(struct filter *f)
{
	struct entry en;
	int r;

	entry_init(&en);
	while ((r = read_header(f, &en.h)) == 1 && en.h.type && strchr("xgLK", en.h.type)) {
		if (take_extra(f, &en) < 0) {
			r = -1;
			break;
		}
	}
	if (r == 1 && move_entry(f, &en) < 0)
		r = -1;
	entry_done(&en);
	return r;
}

/* drain() - read to the end, so that whoever feeds us ends by itself and its exit status counts. */
static void drain(struct filter *f)
{
	for (;;) {
		ssize_t n = fd_read_full(f->in_fd, f->copy, sizeof(f->copy));

		if (n < 0)
			(void)stop(f, TAR_READ_ERROR);
		if (n <= 0)
			return;
		f->report->bytes += (uint64_t)n;
		if (f->report->bytes > f->policy->max_bytes) {
			(void)stop(f, TAR_TOO_BIG);
			return;
		}
	}
}

void tar_filter(int in_fd, int out_fd, const struct tar_policy *policy, struct tar_report *ret)
{
	static const char end[2 * BLOCK];
	struct filter f = { .in_fd = in_fd, .out_fd = out_fd, .policy = policy, .report = ret };
	int r;

	*ret = (struct tar_report){ 0 };
	do {
		r = next_entry(&f);
	} while (r == 1);
	if (r == 0 && write_exact(&f, end, sizeof(end)) == 0)
		drain(&f);
	ret->complete = 1;
}

const char *tar_verdict_text(uint32_t verdict)
{
	static const char *const text[TAR_VERDICT_COUNT] = {
		[TAR_OK] = "the archive is complete",
		[TAR_TRUNCATED] = "the archive is cut short",
		[TAR_MALFORMED] = "this is not a tar archive, or a damaged one",
		[TAR_TOO_BIG] = "the archive holds more bytes than may be unpacked",
		[TAR_TOO_MANY] = "the archive holds more files than may be unpacked",
		[TAR_READ_ERROR] = "the archive cannot be read",
		[TAR_WRITE_ERROR] = "unpacking stopped early",
	};

	return verdict < TAR_VERDICT_COUNT ? text[verdict] : "the archive was judged in an unknown way";
}
