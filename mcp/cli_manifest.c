/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_manifest.c - the manifest of an image as JSON
 *
 * Runs in: the command line's "image" verbs. The file is ours, in a directory of ours, but what stands in
 * it was said by programs of an image: it is parsed as strictly as anything else.
 */
#include "mcp/cli_manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mcp/json.h"
#include "mcp/json_write.h"
#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"

/* The text members, in the order they are written. */
static const struct {
	const char *key;
	size_t offset, size;
} texts[] = {
	{ "name", offsetof(struct image_manifest, name), NAME_MAX_LEN },
	{ "recipe", offsetof(struct image_manifest, recipe), MANIFEST_TEXT_MAX },
	{ "source", offsetof(struct image_manifest, source), MANIFEST_TEXT_MAX },
	{ "system", offsetof(struct image_manifest, system), MANIFEST_TEXT_MAX },
	{ "suite", offsetof(struct image_manifest, suite), MANIFEST_TEXT_MAX },
	{ "arch", offsetof(struct image_manifest, arch), MANIFEST_TEXT_MAX },
	{ "checked", offsetof(struct image_manifest, checked), MANIFEST_TEXT_MAX },
	{ "created", offsetof(struct image_manifest, created), MANIFEST_TEXT_MAX },
	{ "tool", offsetof(struct image_manifest, tool), MANIFEST_TEXT_MAX },
};

static const struct {
	const char *key;
	size_t offset;
} numbers[] = {
	{ "bytes", offsetof(struct image_manifest, bytes) },
	{ "entries", offsetof(struct image_manifest, entries) },
	{ "package_count", offsetof(struct image_manifest, package_count) },
};

static void write_packages(const char *lines, struct buf *out)
{
	const char *comma = "";

	(void)buf_append_str(out, ", \"packages\": {");
	while (lines && *lines) {
		size_t len = strcspn(lines, "\n"), name = strcspn(lines, " ");

		if (name < len) {
			(void)buf_printf(out, "%s\n  \"", comma);
			json_write_escaped(out, lines, name);
			(void)buf_append_str(out, "\": \"");
			json_write_escaped(out, lines + name + 1, len - name - 1);
			(void)buf_append_str(out, "\"");
			comma = ",";
		}
		lines += len;
		lines += *lines == '\n';
	}
	(void)buf_append_str(out, "}");
}

void manifest_write(const struct image_manifest *m, bool with_packages, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		(void)buf_printf(out, "%s\"%s\": ", i ? ", " : "{", texts[i].key);
		json_write_string(out, (const char *)m + texts[i].offset);
	}
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		uint64_t value;

		memcpy(&value, (const char *)m + numbers[i].offset, sizeof(value));
		(void)buf_printf(out, ", \"%s\": %" PRIu64, numbers[i].key, value);
	}
	if (with_packages)
		write_packages(m->packages, out);
	(void)buf_append_str(out, "}");
}

int manifest_save(int dir_fd, const struct image_manifest *m, struct err *e)
{
	_cleanup_fd_ int fd = -1;
	struct buf text;
	int r;

	buf_init(&text, MANIFEST_FILE_MAX);
	manifest_write(m, true, &text);
	(void)buf_append_str(&text, "\n");
	if (text.overflow) {
		r = err_set(e, ERR_LIMIT, "the manifest is too long");
	} else {
		fd = fd_open_beneath(dir_fd, MANIFEST_FILE, O_WRONLY | O_CREAT | O_EXCL, 0644);
		r = fd < 0 || fd_write_full(fd, text.data, text.len) < 0 ?
			    err_sys(e, "write the manifest") :
			    0;
	}
	buf_done(&text);
	return r;
}

static int read_text(int fd, struct buf *ret)
{
	char text[16384];
	ssize_t n;

	while ((n = fd_read_full(fd, text, sizeof(text))) > 0) {
		if (buf_append(ret, text, (size_t)n) < 0)
			return -1;
	}
	return n < 0 ? -1 : 0;
}

static void take_members(const struct json *root, struct image_manifest *m)
{
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		const char *text = json_text(json_member(root, texts[i].key));

		if (text)
			(void)str_copy((char *)m + texts[i].offset, texts[i].size, text);
	}
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		double number = json_number(json_member(root, numbers[i].key));
		uint64_t value = number >= 0 && number < 9007199254740992.0 ? (uint64_t)number : 0;

		memcpy((char *)m + numbers[i].offset, &value, sizeof(value));
	}
}

int manifest_parse(const char *text, size_t len, struct image_manifest *ret, struct err *e)
{
	const char *why = NULL;
	struct json *root = json_parse(text, len, &why);

	*ret = (struct image_manifest){ .packages = NULL };
	if (!root)
		return err_set(e, ERR_SYSTEM, "a damaged manifest: %s", why ? why : "it cannot be read");
	take_members(root, ret);
	json_free(root);
	return 0;
}

int manifest_load(int images_fd, const char *name, struct image_manifest *ret, struct err *e)
{
	char path[NAME_MAX_LEN + sizeof("/" MANIFEST_FILE)];
	_cleanup_fd_ int fd = -1;
	struct buf text;
	int r;

	*ret = (struct image_manifest){ .packages = NULL };
	(void)str_copy(ret->name, sizeof(ret->name), name);
	(void)snprintf(path, sizeof(path), "%s/" MANIFEST_FILE, name);
	fd = fd_open_beneath(images_fd, path, O_RDONLY, 0);
	if (fd < 0)
		return errno == ENOENT ? err_set(e, ERR_NOT_FOUND, "image \"%s\" has no manifest", name) :
					 err_sys(e, "open the manifest of image %s", name);
	buf_init(&text, MANIFEST_FILE_MAX);
	(void)read_text(fd, &text); /* half of it is damaged */
	r = manifest_parse(text.data ? text.data : "", text.len, ret, e);
	buf_done(&text);
	(void)str_copy(ret->name, sizeof(ret->name), name); /* the directory is the truth */
	return r < 0 ? err_wrap(e, "image \"%s\"", name) : 0;
}
