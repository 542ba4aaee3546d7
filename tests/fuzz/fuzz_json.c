/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/fuzz_json.c - what the scanner accepts the library parses; what we write the scanner accepts */
#include <string.h>

#include "mcp/json.h"
#include "mcp/json_scan.h"
#include "mcp/json_write.h"
#include "runtime/base/buf.h"
#include "tests/fuzz/fuzz.h"

static void check_member(const char *text, size_t len, const struct json *root, const char *name)
{
	const char *raw;
	size_t raw_len;
	bool found = json_scan_member(text, len, name, &raw, &raw_len);

	FUZZ_MUST(found == (json_member(root, name) != NULL));
	FUZZ_MUST(!found || !json_scan(raw, raw_len));
}

static void check_written(const char *bytes, size_t len)
{
	struct buf b;

	buf_init(&b, 6 * len + 8);
	buf_append(&b, "\"", 1);
	json_write_escaped(&b, bytes, len);
	buf_append(&b, "\"", 1);
	FUZZ_MUST(!b.overflow);
	/* NUL is the one character we write and do not accept. */
	FUZZ_MUST(!json_scan(b.data, b.len) || memchr(bytes, 0, len));
	FUZZ_MUST(!memchr(b.data, '\n', b.len));
	buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *why, *scan_why = json_scan(text, size);
	struct json *root = json_parse(text, size, &why);

	FUZZ_MUST(!scan_why == (root || !strcmp(why, "a key occurs twice in one object")));
	if (root) {
		check_member(text, size, root, "id");
		check_member(text, size, root, "params");
		check_member(text, size, root, "");
	}
	json_free(root);
	check_written(text, size);
	return 0;
}
