/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_manifest.h - images/<name>/manifest.json: what an image is, for people and scripts
 *
 * Written and read by the command line only; no sandbox and no keeper ever looks at it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/err.h"
#include "runtime/spec.h"

enum { MANIFEST_TEXT_MAX = 64, MANIFEST_FILE_MAX = 8 * 1024 * 1024 };

#define MANIFEST_FILE "manifest.json"

/* The commands that the recipe promises have run in a sandbox; or not yet, because the image is for another
 * architecture than the machine that made it: whoever imports it runs them. */
#define MANIFEST_CHECKED   "in a sandbox"
#define MANIFEST_UNCHECKED "at import"

struct image_manifest {
	char name[NAME_MAX_LEN];
	char recipe[MANIFEST_TEXT_MAX]; /* "" for an imported tree */
	char source[MANIFEST_TEXT_MAX]; /* "bootstrap", "import" */
	char system[MANIFEST_TEXT_MAX]; /* "Debian GNU/Linux 12 (bookworm)" */
	char suite[MANIFEST_TEXT_MAX];
	char arch[MANIFEST_TEXT_MAX];
	char checked[MANIFEST_TEXT_MAX]; /* where its commands were run: MANIFEST_CHECKED, _UNCHECKED */
	char created[MANIFEST_TEXT_MAX]; /* UTC, ISO 8601 */
	char tool[MANIFEST_TEXT_MAX];    /* "mcp-sandbox 0.1.0" */
	uint64_t bytes, entries;
	uint64_t package_count;
	const char *packages; /* writing only: "name version\n" lines */
};

struct buf;

/* manifest_write() - the JSON text. Failures show in out->overflow. */
void manifest_write(const struct image_manifest *m, bool with_packages, struct buf *out);

/* manifest_save() - into the directory of an image that is not published yet. */
int manifest_save(int dir_fd, const struct image_manifest *m, struct err *e);

/* manifest_parse() - a text of any origin, an exported archive's for example. The name in it is kept. */
int manifest_parse(const char *text, size_t len, struct image_manifest *ret, struct err *e);

/* manifest_load() - of images/<name>; a damaged one is an error, an unknown member is not. */
int manifest_load(int images_fd, const char *name, struct image_manifest *ret, struct err *e);
