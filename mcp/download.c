/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/download.c - GET and HEAD of download links
 *
 * Runs in the front. The request comes from anybody on the network, the file from a hostile sandbox. The
 * signature decides which file; the keeper's worker opens it (beneath the workspace, no links, regular
 * files only) and hands a descriptor over, and nothing but that descriptor is looked at and sent: no name
 * is resolved a second time. What the browser gets is told to be a file to store, never a page of
 * this server.
 */
#include "mcp/download.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "mcp/bounds.h"
#include "mcp/file_type.h"
#include "mcp/range.h"
#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"

enum { SETTLED_S = 2, TAG_MAX = 80, FIELDS_MAX = 10, DISPOSITION_MAX = 8 * 1024 };

struct download {
	struct downloads *all;
	struct download *next, **link;
	struct http_exchange *x;
	struct keeper_request request;
	struct link_target target;
};

/* ---- answers ---- */

/* On every answer, so that not even a refusal can be made to look like a page. */
static const struct http_field safety[] = {
	{ "Referrer-Policy", "no-referrer" },
	{ "X-Content-Type-Options", "nosniff" },
	{ "Content-Security-Policy", "sandbox; default-src 'none'" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
	{ "Cache-Control", "private, no-store" },
};

struct fields {
	struct http_field field[FIELDS_MAX];
	size_t count;
};

static void add_field(struct fields *f, const char *name, const char *value)
{
	f->field[f->count++] = (struct http_field){ name, value };
}

static struct fields safe_fields(void)
{
	struct fields f = { .count = ARRAY_SIZE(safety) };

	memcpy(f.field, safety, sizeof(safety));
	return f;
}

static void refuse(struct http_exchange *x, int status, struct fields *f, const char *why)
{
	http_refuse(x, &(struct http_answer){ .status = status, .fields = f->field, .field_count = f->count }, why);
}

static void not_found(struct http_exchange *x)
{
	struct fields f = safe_fields();

	refuse(x, 404, &f, "no such file, or the link is no longer good");
}

/* ---- names ---- */

/* Marks that make text run the other way can make "gpj.exe" of a name, or hide its end. */
static bool is_misleading(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x200e || c == 0x200f || c == 0x061c ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* One code point. Return: its bytes; 1 for a byte that begins none, with *ret set to a control
 * character. Names reached us as JSON, which is valid UTF-8; a link's may still come from elsewhere. */
static size_t next_point(const char *text, uint32_t *ret)
{
	const unsigned char *b = (const unsigned char *)text;
	size_t len = b[0] < 0x80 ? 1 : b[0] >= 0xf0 && b[0] < 0xf5 ? 4 : b[0] >= 0xe0 ? 3 : 2;

	if (len == 1) {
		*ret = b[0];
		return 1;
	}
	*ret = b[0] & (0x7fU >> len);
	for (size_t i = 1; i < len; i++) {
		if ((b[i] & 0xc0) != 0x80 || b[0] < 0xc2 || b[0] >= 0xf5) {
			*ret = 0;
			return 1;
		}
		*ret = *ret << 6 | (b[i] & 0x3f);
	}
	return len;
}

/* Every client reads filename; those that know filename* prefer it. */
void download_disposition(struct buf *b, const char *name)
{
	uint32_t point;
	size_t len;

	buf_append_str(b, "attachment; filename=\"");
	for (const char *at = name; *at; at += len) {
		len = next_point(at, &point);
		buf_printf(b, "%c", point < 0x20 || point > 0x7e || strchr("\"\\%;/", (int)point) ? '_' : (char)point);
	}
	buf_append_str(b, "\"; filename*=UTF-8''");
	for (const char *at = name; *at; at += len) {
		char one[8] = { 0 };

		len = next_point(at, &point);
		if (is_misleading(point) || point == '/')
			one[0] = '_';
		else
			memcpy(one, at, len);
		link_write_escaped(b, one);
	}
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ---- the file ---- */

/* Two versions of a file can have one time stamp when they are written in the same moment: a tag is
 * strong only when that moment is over. */
static void write_tag(char text[TAG_MAX], const struct stat *st)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)snprintf(text, TAG_MAX, "%s\"%" PRIx64 ".%" PRIx64 ".%lx-%" PRIx64 ".%lx\"",
		       now.tv_sec - st->st_ctim.tv_sec < SETTLED_S ? "W/" : "", (uint64_t)st->st_size,
		       (uint64_t)st->st_mtim.tv_sec, st->st_mtim.tv_nsec, (uint64_t)st->st_ctim.tv_sec,
		       st->st_ctim.tv_nsec);
}

/* If-Range: the part only when the rest, which the client has, is of this very version. */
static enum range_kind wanted(const struct http_request *r, const struct stat *st, const char *tag,
			      uint64_t *first, uint64_t *len)
{
	const struct http_text *condition = http1_field(r->head, "If-Range", NULL);
	const struct http_text *range = http1_field(r->head, "Range", NULL);

	if (r->head->method != HTTP_GET || (condition && (tag[0] == 'W' || !http_text_is(*condition, tag))))
		range = NULL;
	return range_read(range, (uint64_t)st->st_size, first, len);
}

static bool has_it_already(const struct http_request *r, const char *tag)
{
	const struct http_text *list = http1_field(r->head, "If-None-Match", NULL);

	return list && (http_text_is(*list, "*") || http_text_has_item(*list, tag));
}

static void send_part(struct http_exchange *x, struct fields *f, const struct link_target *t,
		      const struct stat *st, const char *tag, int *fd)
{
	uint64_t size = (uint64_t)st->st_size, first = 0, len = 0;
	enum range_kind kind = wanted(http_request_of(x), st, tag, &first, &len);
	struct http_answer a = { .status = kind == RANGE_PART ? 206 : 200, .type = file_type(t->path) };
	char span[80];

	if (kind == RANGE_NONE)
		(void)snprintf(span, sizeof(span), "bytes */%" PRIu64, size);
	else
		(void)snprintf(span, sizeof(span), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, first,
			       first + len - 1, size);
	if (kind != RANGE_ALL)
		add_field(f, "Content-Range", span);
	if (kind == RANGE_NONE) {
		refuse(x, 416, f, "the file has no such bytes");
		return;
	}
	a.fields = f->field;
	a.field_count = f->count;
	http_send_file(x, &a, take_fd(fd), first, len);
}

/* The library's fstat() is newfstatat(), which takes names and is none of the front's calls. */
static int look_at(int fd, struct stat *st)
{
	return (int)syscall(SYS_fstat, fd, st);
}

static void send_file(struct http_exchange *x, const struct link_target *t, int *fd)
{
	struct fields f = safe_fields();
	struct buf disposition;
	char tag[TAG_MAX];
	struct stat st;

	if (look_at(*fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size > LIMIT_DOWNLOAD) {
		not_found(x);
		return;
	}
	write_tag(tag, &st);
	buf_init(&disposition, DISPOSITION_MAX);
	download_disposition(&disposition, base_name(t->path));
	add_field(&f, "ETag", tag);
	add_field(&f, "Accept-Ranges", "bytes");
	if (has_it_already(http_request_of(x), tag)) {
		http_reply(x, &(struct http_answer){ .status = 304, .fields = f.field, .field_count = f.count },
			   NULL, 0);
	} else if (disposition.overflow) {
		not_found(x);
	} else {
		add_field(&f, "Content-Disposition", disposition.data);
		send_part(x, &f, t, &st, tag, fd);
	}
	buf_done(&disposition);
}

/* ---- course ---- */

static void download_free(struct download *d)
{
	*d->link = d->next;
	if (d->next)
		d->next->link = d->link;
	d->all->count--;
	free(d);
}

static void on_opened(struct keeper_request *r, const struct api_header *h, int *fds, size_t fd_count)
{
	struct download *d = r->ctx;

	if (h->op == API_PRESENT_DONE && fd_count == 1)
		send_file(d->x, &d->target, &fds[0]);
	else
		not_found(d->x);
	download_free(d);
}

static void on_gone(void *ctx)
{
	struct download *d = ctx;

	keeper_client_cancel(d->all->keeper, &d->request);
	download_free(d);
}

static struct download *download_new(struct downloads *all, struct http_exchange *x,
				     const struct link_target *t)
{
	struct download *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->all = all;
	d->x = x;
	d->target = *t;
	d->request.fn = on_opened;
	d->request.ctx = d;
	d->request.owner = d->target.owner;
	d->next = all->list;
	d->link = &all->list;
	if (d->next)
		d->next->link = &d->next;
	all->list = d;
	all->count++;
	return d;
}

void downloads_on_head(struct downloads *d, struct http_exchange *x, const struct http_request *r)
{
	struct fields f = safe_fields();

	(void)d;
	http_limit_body(x, 0);
	if (r->head->method == HTTP_GET || r->head->method == HTTP_HEAD)
		return;
	add_field(&f, "Allow", "GET, HEAD");
	refuse(x, 405, &f, "only GET and HEAD");
}

void downloads_on_request(struct downloads *all, struct http_exchange *x, const struct http_request *r)
{
	struct fields f = safe_fields();
	struct link_target t;
	struct download *d;

	if (r->head->query.data || !link_read(all->links, r->head->path, (uint64_t)time(NULL), &t)) {
		not_found(x);
		return;
	}
	/* Only who holds a good link comes here, so this tells nobody anything. */
	d = all->count < LIMIT_DOWNLOADS ? download_new(all, x, &t) : NULL;
	if (!d) {
		add_field(&f, "Retry-After", "1");
		refuse(x, 503, &f, "too many files are being opened");
		return;
	}
	http_watch(x, on_gone, NULL, d);
	keeper_client_present(all->keeper, &d->request, d->target.key, d->target.path, false);
}

bool downloads_own(struct http_text path)
{
	size_t prefix = strlen(LINK_PREFIX);

	return path.len >= prefix && memcmp(path.data, LINK_PREFIX, prefix) == 0;
}

void downloads_init(struct downloads *d, struct keeper_client *keeper, const struct links *links)
{
	*d = (struct downloads){ .keeper = keeper, .links = links };
}

void downloads_done(struct downloads *d)
{
	while (d->list) {
		http_abort(d->list->x);
		download_free(d->list);
	}
}
