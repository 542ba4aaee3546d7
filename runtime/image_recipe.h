/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/image_recipe.h - what an image is made of and which commands it promises
 *
 * One directive per line, "#" starts a comment, words are separated by blanks:
 *   summary TEXT...           for people
 *   package NAME...           installed with their hard dependencies
 *   command NAME [ARG...]     must end with status 0 inside a sandbox over the finished image
 *   link PATH TARGET          a symbolic link PATH -> TARGET
 * The recipes of rootfs/ are compiled in.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/err.h"

enum {
	RECIPE_PACKAGES_MAX = 256,
	RECIPE_COMMANDS_MAX = 128,
	RECIPE_LINKS_MAX = 16,
	RECIPE_TEXT_MAX = 64 * 1024,
};

struct recipe_text {
	const char *name; /* NULL ends a table */
	const char *text;
};

/* Generated from rootfs/ by rootfs/embed.py. Files are named without a leading slash. */
extern const struct recipe_text recipe_texts[];
extern const struct recipe_text recipe_files[];

struct recipe_link {
	const char *path, *target;
};

struct recipe {
	char *text; /* owned; everything below points into it */
	const char *summary;
	const char *package[RECIPE_PACKAGES_MAX];
	size_t package_count;
	const char *command[RECIPE_COMMANDS_MAX]; /* words joined by single blanks */
	size_t command_count;
	struct recipe_link link[RECIPE_LINKS_MAX];
	size_t link_count;
};

/* recipe_parse() - a broken line is ERR_CONFIG with its number. */
int recipe_parse(struct recipe *r, const char *text, struct err *e);

/* recipe_load() - one of the compiled-in recipes by name. */
int recipe_load(struct recipe *r, const char *name, struct err *e);
void recipe_done(struct recipe *r);

/* recipe_is_package() - a Debian package's name, and nothing apt would take for an option, a pattern,
 * a path or an order to remove. */
bool recipe_is_package(const char *name);

/* recipe_is_suite() - "trixie", "stable". */
bool recipe_is_suite(const char *name);
