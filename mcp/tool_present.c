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
#include <time.h>
#include <unistd.h>

#include "mcp/args.h"
#include "mcp/call.h"
#include "mcp/file_type.h"
#include "mcp/content.h"
#include "mcp/json_write.h"
#include "mcp/link.h"
#include "mcp/bounds.h"
#include "mcp/tools.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/str.h"
#include "runtime/label.h"

enum { MS_PER_MIN = 60 * 1000, LINK_URL_MAX = 16 * 1024 };

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

/* Without empty components and ".": a link is spelt in one way only, and proxies merge slashes. */
static void clean_path(char ret[API_PATH_MAX], const char *path)
{
	char *end = ret;

	while (*path) {
		size_t len = strcspn(path, "/");

		if (len > 0 && !(len == 1 && *path == '.')) {
			if (end != ret)
				*end++ = '/';
			memcpy(end, path, len);
			end += len;
		}
		path += len + (path[len] == '/');
	}
	*end = '\0';
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
	clean_path(ret, path);
	return *ret ? 0 : err_set(e, ERR_DENIED, "path names a directory, not a file");
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

	content_media(c, "image", p->type, p->data, p->have);
	buf_append_str(b, ",");
	call_write_text_head(b);
	write_caption(b, p, p->have);
	call_write_text_tail(b);
	call_result_end(c, false, "");
}

static void write_file_url(struct buf *b, const char *path)
{
	buf_append_str(b, "file://");
	link_write_escaped(b, path);
}

/* Link blocks came with 2025-06-18; clients of older versions refuse the whole result. */
static bool knows_links(const struct call *c)
{
	const char *version = c->era == ERA_MODERN ? NULL : c->peer->version;

	return !version || strcmp(version, "2025-06-18") >= 0;
}

static void write_link_block(struct buf *b, const char *url, const char *name, uint64_t size)
{
	buf_append_str(b, ",{\"type\":\"resource_link\",\"uri\":");
	json_write_string(b, url);
	buf_append_str(b, ",\"name\":");
	json_write_string(b, name);
	buf_printf(b, ",\"mimeType\":\"%s\",\"size\":%" PRIu64 "}", file_type(name), size);
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
		struct buf url;

		buf_init(&url, LINK_URL_MAX);
		write_file_url(&url, d->path);
		if (!url.overflow)
			write_link_block(b, url.data, name, d->size);
		buf_done(&url);
	}
	call_result_end(c, false, "");
}

static void write_link_reply(struct call *c, const char *url, uint64_t size)
{
	struct present *p = c->state;
	struct buf *b = call_result_begin(c);

	call_write_text_head(b);
	write_caption(b, p, size);
	buf_printf(b, "\\nopen in browser (valid %" PRIu64 " min): ",
		   (c->server->links->ttl_ms + MS_PER_MIN - 1) / MS_PER_MIN);
	json_write_escaped(b, url, strlen(url));
	call_write_text_tail(b);
	if (knows_links(c))
		write_link_block(b, url, base_name(p->path), size);
	call_result_end(c, false, "");
}

static void reply_link(struct call *c, const struct api_present_done *d)
{
	struct present *p = c->state;
	struct link_target t;
	struct buf url;

	if (d->size > LIMIT_DOWNLOAD) {
		refuse(c, "the file is larger than 64 GiB", "split or compress it");
		return;
	}
	memset(&t, 0, sizeof(t));
	(void)str_copy(t.owner, sizeof(t.owner),
		       c->request.owner ? c->request.owner : c->server->keeper->hello.owner);
	(void)str_copy(t.key, sizeof(t.key), p->key);
	(void)str_copy(t.path, sizeof(t.path), p->path);
	buf_init(&url, LINK_URL_MAX);
	if (link_write(&url, c->server->links, &t, (uint64_t)time(NULL)) < 0)
		refuse(c, "no memory for a link", "");
	else
		write_link_reply(c, url.data, d->size);
	buf_done(&url);
}

/* What the person who runs the server has to set; the model can only pass it on. */
static void refuse_without_links(struct call *c)
{
	const char *missing = link_missing(c->server->links);
	char why[128], remedy[160];

	(void)snprintf(why, sizeof(why), "this server cannot make download links: %s is not set", missing);
	(void)snprintf(remedy, sizeof(remedy), "ask the person who runs the server to set %s%s", missing,
		       strcmp(missing, "MCP_SIGN_KEY") == 0 ? " (any 16 or more random characters)" : "");
	refuse(c, why, remedy);
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
	p->type = n > 0 ? file_picture_type(magic, (size_t)n) : NULL;
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
	} else if (try_picture(c, d, fds, fd_count)) {
		return;
	} else if (c->server->links && link_missing(c->server->links)) {
		refuse_without_links(c);
	} else if (c->server->links) {
		reply_link(c, d);
	} else {
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
	buf_append_str(b, "Give the person a file from the sandbox's /workspace. Use it for every file "
			  "they asked for: they cannot see the sandbox. A picture (png, jpeg, gif, webp, "
			  "bmp) is shown; any other file ");
	buf_append_str(b, h->serves_links ? "becomes a download link: give the person that link. " :
					    "is saved on their computer and the reply says where. ");
	buf_append_str(b, "Put several files into one zip first.");
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
