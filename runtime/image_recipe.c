/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/image_recipe.c - recipes of images; pure
 *
 * Runs in: the command line's "image build". Words of a recipe end up in argument vectors and in the
 * check script that runs inside a sandbox, so their alphabet is closed here: no quote, no blank, no
 * character that means something to a shell.
 */
#include "runtime/image_recipe.h"

#include <stdlib.h>
#include <string.h>

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGIT "0123456789"

enum { WORD_MAX = 128, NAME_WORD_MAX = 64 };

static bool consists_of(const char *text, const char *alphabet, size_t min, size_t max)
{
	size_t len = strlen(text);

	return len >= min && len <= max && strspn(text, alphabet) == len;
}

bool recipe_is_package(const char *name)
{
	return consists_of(name, LOWER DIGIT "+-.", 2, NAME_WORD_MAX) &&
	       strchr(LOWER DIGIT, name[0]) && name[strlen(name) - 1] != '-';
}

bool recipe_is_suite(const char *name)
{
	return consists_of(name, LOWER DIGIT "-", 2, 32) && strchr(LOWER, name[0]);
}

static bool is_word(const char *word)
{
	return consists_of(word, LOWER UPPER DIGIT "+-._/=:,", 1, WORD_MAX);
}

static bool is_path(const char *path)
{
	return path[0] == '/' && is_word(path) && !strstr(path, "//") && !strstr(path, "..");
}

/* next_word() - cut the first word off *line. Return: NULL at its end. */
static char *next_word(char **line)
{
	char *word = *line + strspn(*line, " \t");
	size_t len = strcspn(word, " \t");

	if (len == 0)
		return NULL;
	*line = word + len;
	if (**line)
		*(*line)++ = '\0';
	return word;
}

static int take_summary(struct recipe *r, char *rest)
{
	r->summary = rest + strspn(rest, " \t");
	return r->summary[0] ? 0 : -1;
}

static int take_packages(struct recipe *r, char *rest)
{
	size_t before = r->package_count;
	char *word;

	while ((word = next_word(&rest))) {
		if (r->package_count == RECIPE_PACKAGES_MAX || !recipe_is_package(word))
			return -1;
		r->package[r->package_count++] = word;
	}
	return r->package_count > before ? 0 : -1;
}

/* take_command() - checks each word, then puts the blanks back: the script is text. */
static int take_command(struct recipe *r, char *rest)
{
	char *line = rest + strspn(rest, " \t"), *end = line;
	char *word;

	if (r->command_count == RECIPE_COMMANDS_MAX)
		return -1;
	while ((word = next_word(&rest))) {
		size_t len = strlen(word);

		if (!is_word(word))
			return -1;
		if (end != line)
			*end++ = ' ';
		memmove(end, word, len);
		end += len;
	}
	if (end == line)
		return -1;
	*end = '\0';
	r->command[r->command_count++] = line;
	return 0;
}

static int take_link(struct recipe *r, char *rest)
{
	const char *path = next_word(&rest);
	const char *target = next_word(&rest);

	if (!path || !target || next_word(&rest) || !is_path(path) || !is_path(target) ||
	    r->link_count == RECIPE_LINKS_MAX)
		return -1;
	r->link[r->link_count++] = (struct recipe_link){ path, target };
	return 0;
}

static int take_line(struct recipe *r, char *line)
{
	static const struct {
		const char *name;
		int (*take)(struct recipe *r, char *rest);
	} directives[] = { { "summary", take_summary },
			   { "package", take_packages },
			   { "command", take_command },
			   { "link", take_link } };
	char *word;

	if (line[strspn(line, " \t")] == '#')
		return 0;
	word = next_word(&line);
	if (!word)
		return 0;
	for (size_t i = 0; i < sizeof(directives) / sizeof(directives[0]); i++) {
		if (strcmp(word, directives[i].name) == 0)
			return directives[i].take(r, line);
	}
	return -1;
}

int recipe_parse(struct recipe *r, const char *text, struct err *e)
{
	unsigned int number = 1;
	char *line, *next;

	*r = (struct recipe){ .summary = "" };
	if (strlen(text) > RECIPE_TEXT_MAX)
		return err_set(e, ERR_CONFIG, "the recipe is too long");
	r->text = strdup(text);
	if (!r->text)
		return err_set(e, ERR_NOMEM, "no memory for the recipe");
	for (line = r->text; line; line = next, number++) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (take_line(r, line) < 0) {
			recipe_done(r);
			return err_set(e, ERR_CONFIG, "line %u of the recipe is not understood",
				       number);
		}
	}
	return 0;
}

int recipe_load(struct recipe *r, const char *name, struct err *e)
{
	for (const struct recipe_text *t = recipe_texts; t->name; t++) {
		if (strcmp(t->name, name) == 0)
			return recipe_parse(r, t->text, e) < 0 ? err_wrap(e, "recipe %s", name) : 0;
	}
	(void)err_set(e, ERR_USAGE, "there is no recipe of that name");
	return err_remedy(e, "use minimal or default, and --packages for more");
}

void recipe_done(struct recipe *r)
{
	free(r->text);
	*r = (struct recipe){ .summary = "" };
}
