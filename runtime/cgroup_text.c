/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/cgroup_text.c - the texts the kernel gives about cgroups, parsed without touching a file
 *
 * Runs in the keeper. The texts come from procfs and cgroupfs, but mount points and cgroup names in
 * them are chosen by whoever may mount or create cgroups, so every length is checked.
 */
#include "runtime/cgroup_text.h"

#include <string.h>

#include "runtime/base/str.h"

struct span {
	const char *start;
	size_t len;
};

static bool span_is(struct span s, const char *text)
{
	return s.len == strlen(text) && memcmp(s.start, text, s.len) == 0;
}

/* next_span() - the next run of bytes up to a separator or the end of line. Return: false at the end
 * of the line; *cursor stays on the newline or NUL. */
static bool next_span(const char **cursor, const char *separators, struct span *ret)
{
	const char *p = *cursor + strspn(*cursor, separators);

	ret->start = p;
	while (*p != '\0' && *p != '\n' && !strchr(separators, *p))
		p++;
	ret->len = (size_t)(p - ret->start);
	*cursor = p;
	return ret->len > 0;
}

static const char *next_line(const char *p)
{
	p += strcspn(p, "\n");
	return *p == '\n' ? p + 1 : p;
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* unescape() - mountinfo writes space, tab, newline and backslash as three octal digits. */
static int unescape(struct span s, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < s.len; i++) {
		char c = s.start[i];

		if (c == '\\' && i + 3 < s.len && is_octal(s.start[i + 1]) &&
		    is_octal(s.start[i + 2]) && is_octal(s.start[i + 3])) {
			c = (char)((s.start[i + 1] - '0') * 64 + (s.start[i + 2] - '0') * 8 +
				   (s.start[i + 3] - '0'));
			i += 3;
		}
		if (n + 1 >= size || c == '\0')
			return -1;
		out[n++] = c;
	}
	out[n] = '\0';
	return 0;
}

/* The fields of one mountinfo line that matter here (proc(5)); optional fields end with "-". */
struct mount_line {
	struct span root, point, type, options;
};

static bool parse_mount_line(const char *line, struct mount_line *ret)
{
	struct span s;

	for (int field = 0; field < 6; field++) {
		if (!next_span(&line, " ", &s))
			return false;
		if (field == 3)
			ret->root = s;
		if (field == 4)
			ret->point = s;
	}
	do {
		if (!next_span(&line, " ", &s))
			return false;
	} while (!span_is(s, "-"));
	/* type, source, super options; a source may be empty, so the options are the rest's last word */
	if (!next_span(&line, " ", &ret->type))
		return false;
	ret->options = (struct span){ .start = line, .len = 0 };
	while (next_span(&line, " ", &s))
		ret->options = s;
	return true;
}

int cgroup_text_next_mount(const char **cursor, struct cgroup_mount *ret)
{
	while (**cursor != '\0') {
		const char *line = *cursor;
		struct mount_line m;

		*cursor = next_line(line);
		if (!parse_mount_line(line, &m) || !span_is(m.type, "cgroup2"))
			continue;
		if (unescape(m.root, ret->root, sizeof(ret->root)) == 0 &&
		    unescape(m.point, ret->point, sizeof(ret->point)) == 0 &&
		    ret->root[0] == '/' && ret->point[0] == '/')
			return 1;
	}
	return 0;
}

bool cgroup_text_v1_has(const char *mountinfo, const char *controller)
{
	for (const char *line = mountinfo; *line != '\0'; line = next_line(line)) {
		struct mount_line m;
		const char *cursor;
		struct span s;

		if (!parse_mount_line(line, &m) || !span_is(m.type, "cgroup"))
			continue;
		cursor = m.options.start;
		while (cursor < m.options.start + m.options.len && next_span(&cursor, ",", &s)) {
			if (span_is(s, controller))
				return true;
		}
	}
	return false;
}

int cgroup_text_own(const char *text, char *ret_path, size_t size)
{
	for (const char *line = text; *line != '\0'; line = next_line(line)) {
		size_t len;

		if (strncmp(line, "0::/", 4) != 0)
			continue;
		len = strcspn(line, "\n") - 3;
		if (len >= size)
			return -1;
		memcpy(ret_path, line + 3, len);
		ret_path[len] = '\0';
		return 1;
	}
	return 0;
}

const char *cgroup_text_beneath(const char *root, const char *path)
{
	size_t len = strlen(root);

	while (len > 0 && root[len - 1] == '/')
		len--;
	if (strncmp(root, path, len) != 0 || (path[len] != '\0' && path[len] != '/'))
		return NULL;
	path += len;
	/* "/.." is how the kernel shows a cgroup above this process's cgroup namespace */
	if (strcmp(path, "/..") == 0 || strncmp(path, "/../", 4) == 0)
		return NULL;
	return *path == '/' ? path + 1 : path;
}

bool cgroup_text_has_word(const char *text, const char *word)
{
	struct span s;

	for (; *text != '\0'; text = next_line(text)) {
		while (next_span(&text, " \t", &s)) {
			if (span_is(s, word))
				return true;
		}
	}
	return false;
}

int cgroup_text_counter(const char *text, const char *name, uint64_t *ret)
{
	for (const char *line = text; *line != '\0'; line = next_line(line)) {
		const char *cursor = line;
		struct span key, value, more;
		char number[24];

		if (!next_span(&cursor, " ", &key) || !span_is(key, name))
			continue;
		if (!next_span(&cursor, " ", &value) || next_span(&cursor, " ", &more) ||
		    value.len >= sizeof(number))
			return -1;
		memcpy(number, value.start, value.len);
		number[value.len] = '\0';
		return str_parse_u64(number, 0, UINT64_MAX, ret) < 0 ? -1 : 1;
	}
	return 0;
}

size_t cgroup_text_lines(const char *bytes, size_t len)
{
	size_t lines = 0;

	for (size_t i = 0; i < len; i++)
		lines += bytes[i] == '\n';
	return lines;
}
