/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/tool_present.c - present_file: hand a file of the sandbox to the person
 *
 * Runs in the front, without privilege. The path comes from a model, the content from a hostile
 * sandbox; the keeper opens the file (beneath the workspace, no links, regular files only) and hands
 * over a read-only descriptor, or copies it for the person. Content is never decoded: a few magic
 * bytes decide whether it is a picture.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "mcp/args.h"
#include "mcp/call.h"
#include "mcp/json_write.h"
#include "mcp/bounds.h"
#include "mcp/tools.h"
#include "runtime/base/cleanup.h"
#include "runtime/label.h"

struct present {
	char key[KEY_MAX];
	char path[API_PATH_MAX]; /* relative to /workspace */
	char *caption;
	int fd;           /* a picture's */
	const char *type; /* and its type */
	char *data;
	size_t size, have;
};

static void present_drop(struct call *c)
{
	struct present *p = c->state;

	close_fd(&p->fd);
	free(p->caption);
	free(p->data);
	free(p);
}

static void refuse(struct call *c, const char *message, const char *remedy)
{
	call_refuse(c, TOOL_PRESENT_ERROR, message, remedy);
}

/* ---- arguments ---- */

static bool has_dotdot(const char *path)
{
	for (const char *p = path; p; p = strchr(p, '/')) {
		p += *p == '/';
		if (p[0] == '.' && p[1] == '.' && (p[2] == '/' || !p[2]))
			return true;
	}
	return false;
}

static int read_path(char ret[API_PATH_MAX], const struct json *args, struct err *e)
{
	static const char root[] = "/workspace/";
	const char *path;

	if (args_text(args, "path", NULL, API_PATH_MAX - 1, &path, e) < 0)
		return -1;
	if (!strncmp(path, root, sizeof(root) - 1))
		path += sizeof(root) - 1;
	if (*path == '/')
		return err_set(e, ERR_DENIED, "path must be a file below /workspace");
	if (has_dotdot(path))
		return err_set(e, ERR_DENIED, "path must stay below /workspace: no \"..\" in it");
	if (!*path || path[strlen(path) - 1] == '/')
		return err_set(e, ERR_DENIED, "path names a directory, not a file");
	(void)snprintf(ret, API_PATH_MAX, "%s", path);
	return 0;
}

static int read_arguments(struct present *p, const struct json *args, struct err *e)
{
	const char *label, *caption;

	if (args_text(args, "sandbox", NULL, LABEL_MAX_BYTES, &label, e) < 0)
		return err_remedy(e, "%s", LABEL_RULE);
	if (label_to_key(label, strlen(label), p->key, e) < 0 || read_path(p->path, args, e) < 0 ||
	    args_text(args, "caption", "", LIMIT_CAPTION, &caption, e) < 0)
		return -1;
	p->caption = strdup(caption);
	return p->caption ? 0 : err_set(e, ERR_NOMEM, "no memory");
}

/* ---- content ---- */

/* An information header of a known size, or it is text that begins with "BM". */
static bool is_bmp(const unsigned char *b, size_t len)
{
	static const unsigned char sizes[] = { 12, 40, 52, 56, 64, 108, 124 };

	return len >= 18 && !memcmp(b, "BM", 2) && !memcmp(b + 6, "\0\0\0\0", 4) &&
	       memchr(sizes, b[14], sizeof(sizes)) && !memcmp(b + 15, "\0\0\0", 3);
}

static const char *picture_type(const unsigned char *b, size_t len)
{
	if (len >= 8 && !memcmp(b, "\x89PNG\r\n\x1a\n", 8))
		return "image/png";
	if (len >= 3 && !memcmp(b, "\xff\xd8\xff", 3))
		return "image/jpeg";
	if (len >= 6 && (!memcmp(b, "GIF87a", 6) || !memcmp(b, "GIF89a", 6)))
		return "image/gif";
	if (len >= 12 && !memcmp(b, "RIFF", 4) && !memcmp(b + 8, "WEBP", 4))
		return "image/webp";
	return is_bmp(b, len) ? "image/bmp" : NULL;
}

static const char *file_type(const char *name)
{
	static const char *const types[][2] = {
		{ "csv", "text/csv" },         { "gif", "image/gif" },
		{ "gz", "application/gzip" },  { "html", "text/html" },
		{ "jpg", "image/jpeg" },       { "json", "application/json" },
		{ "md", "text/markdown" },     { "mp3", "audio/mpeg" },
		{ "mp4", "video/mp4" },        { "pdf", "application/pdf" },
		{ "png", "image/png" },        { "svg", "image/svg+xml" },
		{ "txt", "text/plain" },       { "wav", "audio/wav" },
		{ "webp", "image/webp" },      { "xml", "application/xml" },
		{ "zip", "application/zip" },
	};
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < ARRAY_SIZE(types); i++)
		if (!strcasecmp(dot + 1, types[i][0]))
			return types[i][1];
	return "application/octet-stream";
}

/* ---- replies ---- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "<caption or name>\n<path>  (<n> B)" */
static void write_caption(struct buf *b, const struct present *p, uint64_t size)
{
	const char *title = *p->caption ? p->caption : base_name(p->path);

	json_write_escaped(b, title, strlen(title));
	buf_append_str(b, "\\n/workspace/");
	json_write_escaped(b, p->path, strlen(p->path));
	buf_printf(b, "  (%" PRIu64 " B)", size);
}

static void reply_picture(struct call *c)
{
	struct present *p = c->state;
	struct buf *b = call_result_begin(c);

	buf_append_str(b, "{\"type\":\"image\",\"data\":\"");
	json_write_base64(b, p->data, p->have);
	buf_printf(b, "\",\"mimeType\":\"%s\"},", p->type);
	call_write_text_head(b);
	write_caption(b, p, p->have);
	call_write_text_tail(b);
	call_result_end(c, false, "");
}

static void write_file_url(struct buf *b, const char *path)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/-._~";

	buf_append_str(b, "file://");
	for (; *path; path++) {
		if (strchr(plain, *path))
			buf_append(b, path, 1);
		else
			buf_printf(b, "%%%02X", (unsigned char)*path);
	}
}

/* Link blocks came with 2025-06-18; clients of older versions refuse the whole result. */
static bool knows_links(const struct call *c)
{
	const char *version = c->era == ERA_MODERN ? NULL : c->peer->version;

	return !version || strcmp(version, "2025-06-18") >= 0;
}

static void reply_copy(struct call *c, const struct api_present_done *d)
{
	struct present *p = c->state;
	struct buf *b = call_result_begin(c);
	const char *name = base_name(p->path);

	call_write_text_head(b);
	write_caption(b, p, d->size);
	buf_append_str(b, "\\nsaved as ");
	json_write_escaped(b, d->path, strlen(d->path));
	buf_append_str(b, "\\n");
	write_file_url(b, d->path);
	call_write_text_tail(b);
	if (knows_links(c)) {
		buf_append_str(b, ",{\"type\":\"resource_link\",\"uri\":\"");
		write_file_url(b, d->path);
		buf_append_str(b, "\",\"name\":");
		json_write_string(b, name);
		buf_printf(b, ",\"mimeType\":\"%s\",\"size\":%" PRIu64 "}", file_type(name), d->size);
	}
	call_result_end(c, false, "");
}

/* ---- course of a call ---- */

static bool step_read(struct call *c)
{
	struct present *p = c->state;
	size_t want = p->size - p->have;
	ssize_t n;

	if (want > LIMIT_SLICE)
		want = LIMIT_SLICE;
	do {
		n = pread(p->fd, p->data + p->have, want, (off_t)p->have);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		refuse(c, "the file cannot be read", "");
		return true;
	}
	p->have += (size_t)n;
	if (n > 0 && p->have < p->size)
		return false;
	reply_picture(c);
	return true;
}

/* Return: true when the file is a picture small enough to be shown, and its reading has begun. */
static bool try_picture(struct call *c, const struct api_present_done *d, int *fds, size_t fd_count)
{
	struct present *p = c->state;
	unsigned char magic[32];
	ssize_t n;

	if (!fd_count || !d->size || d->size > c->server->keeper->hello.image_max_bytes)
		return false;
	n = pread(fds[0], magic, sizeof(magic), 0);
	p->type = n > 0 ? picture_type(magic, (size_t)n) : NULL;
	p->data = p->type ? malloc((size_t)d->size) : NULL;
	if (!p->data)
		return false;
	p->size = (size_t)d->size;
	p->fd = take_fd(&fds[0]);
	call_work(c, step_read);
	return true;
}

static void on_reply(struct keeper_request *r, const struct api_header *h, int *fds,
		     size_t fd_count)
{
	const struct api_present_done *d = (const struct api_present_done *)h;
	struct call *c = r->ctx;
	struct present *p = c->state;

	if (h->op == API_FAILED) {
		const struct err *e = &((const struct api_failed *)h)->error;

		refuse(c, e->message, e->remedy);
	} else if (h->op != API_PRESENT_DONE) {
		refuse(c, "unexpected answer from the sandbox service", "");
	} else if (*d->path) {
		reply_copy(c, d);
	} else if (!try_picture(c, d, fds, fd_count)) {
		keeper_client_present(c->server->keeper, r, p->key, p->path, true);
	}
}

static void start_present(struct call *c, const struct json *args)
{
	struct present *p = calloc(1, sizeof(*p));
	struct err e = { 0 };

	if (!p) {
		refuse(c, "no memory", "");
		return;
	}
	p->fd = -1;
	c->state = p;
	if (read_arguments(p, args, &e) < 0) {
		refuse(c, e.message, e.remedy);
		return;
	}
	c->request.fn = on_reply;
	keeper_client_present(c->server->keeper, &c->request, p->key, p->path, false);
}

static void describe_present(struct buf *b, const struct api_hello *h)
{
	(void)h;
	buf_append_str(b, "Give the person a file from the sandbox's /workspace. Use it for every file "
			  "they asked for: they cannot see the sandbox. A picture (png, jpeg, gif, webp, "
			  "bmp) is shown; any other file is saved on their computer and the reply says "
			  "where. Put several files into one zip first.");
}

const struct tool tool_present_file = {
	.name = "present_file",
	.title = "Present a file",
	.hints = TOOL_READ_ONLY,
	.describe = describe_present,
	.parameters = {
		{ "sandbox", "string", "The label used for run_command.", true },
		{ "path", "string", "File to present: relative to /workspace, or absolute below it.",
		  true },
		{ "caption", "string", "Title to show with the file. Default: its name.", false },
	},
	.start = start_present,
	.drop = present_drop,
};
