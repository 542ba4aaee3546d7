/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/image.h - images: made in a stage, checked in a sandbox, published by one rename
 *
 *   images/<name>/rootfs          owned by sandbox ids, never opened by the host's root
 *   images/<name>/manifest.json   written and read by the command line only
 *   images/<name>/arch            "arm64": what its programs are for; without it, what we are for
 *   images/.new-<nonce>/          a stage: locked while its maker lives, swept by the next one
 *
 * Everything that touches a file of an image runs in a box (image_box.h) or in a sandbox.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/err.h"
#include "runtime/image_recipe.h"
#include "runtime/store.h"
#include "runtime/tar_filter.h"
#include "runtime/userns.h"

/* ---- stages (image_stage.c) ---- */

struct image_stage {
	int dir_fd;    /* flock held */
	int rootfs_fd;
	char dir_name[32];
};

/* image_stage_begin() - sweep what dead makers left, then make a stage of our own. */
int image_stage_begin(const struct store *s, const struct idrange *ids, struct image_stage *ret,
		      struct err *e);

/* image_stage_arch() - record what the programs in it are for; store_image_open() checks that. */
int image_stage_arch(const struct image_stage *stage, const char *arch, struct err *e);

/* image_stage_publish() - put everything on disk, then rename to images/<name>. An image of that name is
 * replaced, unless a sandbox uses it (ERR_BUSY). The stage is gone either way on success. */
int image_stage_publish(const struct store *s, const struct idrange *ids,
			struct image_stage *stage, const char *name, bool *ret_replaced,
			struct err *e);

/* image_stage_abandon() - remove it with its contents; errors are left to the next sweep. */
void image_stage_abandon(const struct store *s, const struct idrange *ids,
			 struct image_stage *stage);

/* image_in_use() - ERR_BUSY while a sandbox has it as its root; 0 also when there is none. */
int image_in_use(const struct store *s, const char *name, struct err *e);

/* image_remove() - ERR_NOT_FOUND, ERR_BUSY. */
int image_remove(const struct store *s, const struct idrange *ids, const char *name, struct err *e);

/* image_next() - names of images in alphabetical order: the first one after the given name ("" to
 * start). Return: 1, 0 at the end, -1. */
int image_next(const struct store *s, const char *after, char ret_name[NAME_MAX_LEN],
	       struct err *e);

/* ---- filling a stage ---- */

/* What a maker says while it works: one line of progress. */
typedef void image_say_fn(const char *text);

struct image_build {
	const struct recipe *recipe;
	const char *suite;   /* NULL: the host's own Debian suite, else "stable" */
	const char *arch;    /* NULL: ours */
	const char *const *package; /* further ones */
	size_t package_count;
	image_say_fn *say;
};

/* image_bootstrap() - run mmdebstrap, or debootstrap, in a box; then put our files in (image_finish.c). */
int image_bootstrap(const struct idrange *ids, const struct image_stage *stage,
		    const struct image_build *build, struct err *e);

/* image_finish() - files of rootfs/, links, mount points, a name for id 1000, nothing of the host left. With recipe
 * NULL (an imported tree) only mount points and the name. */
int image_finish(const struct idrange *ids, int rootfs_fd, const struct recipe *recipe,
		 struct err *e);

/* ---- tar in and out of a tree (image_unpack.c) ---- */

struct tree_unpack {
	int archive_fd;          /* tar, or tar in gzip, zstd, xz or bzip2; from its current offset */
	int tree_fd;             /* the directory to fill */
	bool to_host;            /* a directory of the caller's: its id, no set-id bits, no outward links */
	uint64_t max_bytes;
	const char *skip;        /* a top-level name to leave out; its start is in the report */
};

/* tree_unpack() - decompressor, filter and the host's tar, each in a box of its own. What was left out or
 * changed is in the report, also on failure. */
int tree_unpack(const struct idrange *ids, const struct tree_unpack *u, struct tar_report *ret,
		struct err *e);

struct tree_pack {
	int tree_fd;
	bool from_host;  /* a directory of the caller's: owners become the sandbox's root */
	const char *extra; /* NULL, or the name of a file that comes first in the archive ... */
	const void *extra_data; /* ... and its content */
	size_t extra_len;
	int archive_fd;
};

/* tree_pack() - the tree as a pax archive, ids as they are inside. */
int tree_pack(const struct idrange *ids, const struct tree_pack *p, struct err *e);

/* tree_copy() - pack one tree and unpack it into another, without a file in between. */
int tree_copy(const struct idrange *ids, const struct tree_pack *p, const struct tree_unpack *u,
	      struct tar_report *ret, struct err *e);

struct tree_size {
	uint64_t bytes; /* blocks on disk */
	uint64_t entries;
};
int tree_measure(const struct idrange *ids, int tree_fd, struct tree_size *ret, struct err *e);

/* ---- the proof (image_check.c) ---- */

enum { IMAGE_FACT_MAX = 64, IMAGE_FACTS_TEXT_MAX = 4 * 1024 * 1024 };

/* What the image says about itself (image_facts.c); "" where it does not say. */
struct image_facts {
	char system[IMAGE_FACT_MAX]; /* PRETTY_NAME */
	char suite[IMAGE_FACT_MAX];
	char *packages; /* "name version\n" lines; owned */
};
void image_facts_done(struct image_facts *f);

/* image_facts_parse() - two lines, then the packages; the text is cut up. NULL: nothing was said. */
int image_facts_parse(char *text, struct image_facts *ret, struct err *e);

/* image_facts_outside() - of an image whose programs do not run here: nothing of it is executed. */
int image_facts_outside(const struct idrange *ids, int rootfs_fd, struct image_facts *ret,
			struct err *e);

/* image_check() - start a sandbox on the tree with a read-only root and run every command the recipe
 * promises (none: only bash). ERR_HOST names the commands that failed. */
int image_check(const struct idrange *ids, int rootfs_fd, const struct recipe *recipe,
		struct image_facts *ret, struct err *e);

/* ---- interruption (image_run.c) ---- */

/* image_signals_begin() - from here on INT, TERM and HUP end the running boxes and make the functions
 * above fail with "interrupted", so that the caller cleans up. */
int image_signals_begin(struct err *e);
