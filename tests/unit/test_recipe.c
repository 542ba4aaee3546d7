/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_recipe.c - recipes: what is understood, what is refused, and the compiled-in ones */
#include "runtime/image_recipe.h"
#include "tests/unit/tap.h"

static void test_parse(void)
{
	static const char text[] = "# a comment\n"
				   "\n"
				   "summary  two words\n"
				   "package a1 b+c\n"
				   "\tpackage g++\n"
				   "command tool   --version\t-x\n"
				   "command ls\n"
				   "link /usr/local/bin/fd /usr/bin/fdfind\n"
				   "  # an indented comment";
	struct recipe r;
	struct err e;

	tap_int(recipe_parse(&r, text, &e), 0, "a whole recipe is understood");
	tap_str(r.summary, "two words", "summary");
	tap_int(r.package_count, 3, "packages of several lines are one list");
	tap_str(r.package[1], "b+c", "second package");
	tap_str(r.package[2], "g++", "a name that ends in plus signs");
	tap_int(r.command_count, 2, "commands");
	tap_str(r.command[0], "tool --version -x", "blanks of a command become single ones");
	tap_str(r.command[1], "ls", "a command without arguments");
	tap_int(r.link_count, 1, "links");
	tap_str(r.link[0].path, "/usr/local/bin/fd", "a link's path");
	tap_str(r.link[0].target, "/usr/bin/fdfind", "a link's target");
	recipe_done(&r);
	tap_int(recipe_parse(&r, "", &e), 0, "an empty recipe is one");
	tap_int(r.package_count, 0, "and has no packages");
	recipe_done(&r);
}

static void test_refused(void)
{
	static const struct {
		const char *desc, *text, *line;
	} rows[] = {
		{ "unknown directive", "summary x\npackages a1\n", "line 2" },
		{ "directive without words", "package\n", "line 1" },
		{ "command without words", "command  \n", "line 1" },
		{ "summary without text", "summary\n", "line 1" },
		{ "an option as a package", "package --allow-insecure\n", "line 1" },
		{ "a removal as a package", "package curl-\n", "line 1" },
		{ "a path as a package", "package ./x.deb\n", "line 1" },
		{ "a pattern as a package", "package ~nx\n", "line 1" },
		{ "upper case in a package", "package Curl\n", "line 1" },
		{ "a one-letter package", "package a\n", "line 1" },
		{ "a shell's separator in a command", "command ls;id\n", "line 1" },
		{ "a substitution in a command", "command $(id)\n", "line 1" },
		{ "a quote in a command", "command 'x'\n", "line 1" },
		{ "a backquote in a command", "command `id`\n", "line 1" },
		{ "a redirection in a command", "command ls >x\n", "line 1" },
		{ "a glob in a command", "command ls *\n", "line 1" },
		{ "a home in a command", "command ls ~\n", "line 1" },
		{ "a relative link", "link usr/x /y\n", "line 1" },
		{ "a link that climbs", "link /a/../x /y\n", "line 1" },
		{ "a link with one end", "link /a\n", "line 1" },
		{ "a link with three ends", "link /a /b /c\n", "line 1" },
		{ "a carriage return", "package curl\r\n", "line 1" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct recipe r;
		struct err e;

		tap_ok(recipe_parse(&r, rows[i].text, &e) < 0 && e.code == ERR_CONFIG &&
			       strstr(e.message, rows[i].line),
		       "refused: %s", rows[i].desc);
		tap_ok(r.text == NULL, "nothing is kept of it");
	}
}

static void test_names(void)
{
	static const struct {
		const char *name;
		bool package, suite;
	} rows[] = {
		{ "curl", true, true },	   { "libc6-dev", true, true }, { "g++", true, false },
		{ "python3.11", true, false }, { "", false, false },	   { "-x", false, false },
		{ "+x", false, false },	   { "a=1", false, false },	   { "a/b", false, false },
		{ "a b", false, false },	   { "a:arm64", false, false }, { "x-", false, true },
		{ "trixie", true, true },  { "2x", true, false },
	};
	char longest[128];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		tap_int(recipe_is_package(rows[i].name), rows[i].package, "package \"%s\"",
			rows[i].name);
		tap_int(recipe_is_suite(rows[i].name), rows[i].suite, "suite \"%s\"", rows[i].name);
	}
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	tap_ok(!recipe_is_package(longest) && !recipe_is_suite(longest), "too long for any of them");
}

static bool has_package(const struct recipe *r, const char *name)
{
	for (size_t i = 0; i < r->package_count; i++) {
		if (strcmp(r->package[i], name) == 0)
			return true;
	}
	return false;
}

static bool has_command(const struct recipe *r, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < r->command_count; i++) {
		if (strncmp(r->command[i], name, len) == 0 && strchr(" ", r->command[i][len]))
			return true;
	}
	return false;
}

/* What the product promises of its default image. */
static void test_default(void)
{
	static const char *const packages[] = { "bash", "coreutils", "curl", "ca-certificates",
						"git", "jq", "ripgrep", "fd-find", "less", "procps",
						"file", "python3", "python3-pip", "python3-venv",
						"build-essential", "pkg-config", "nodejs", "npm",
						"sqlite3", "unzip", "zip", "wget" };
	static const char *const commands[] = { "bash", "curl", "git", "jq", "rg", "fd", "less", "ps",
						"file", "python3", "pip", "gcc", "make",
						"pkg-config", "node", "npm", "sqlite3", "unzip", "zip",
						"wget" };
	struct recipe r;
	struct err e;

	if (!tap_ok(recipe_load(&r, "default", &e) == 0, "the default recipe is compiled in"))
		return;
	for (size_t i = 0; i < sizeof(packages) / sizeof(packages[0]); i++)
		tap_ok(has_package(&r, packages[i]), "default has %s", packages[i]);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		tap_ok(has_command(&r, commands[i]), "default promises %s", commands[i]);
	tap_ok(!has_package(&r, "ffmpeg"), "default has no ffmpeg");
	recipe_done(&r);
}

static void test_compiled_in(void)
{
	struct recipe r;
	struct err e;
	bool profile = false;

	tap_ok(recipe_load(&r, "minimal", &e) == 0 && r.command_count > 0, "minimal is compiled in");
	recipe_done(&r);
	tap_ok(recipe_load(&r, "no-such", &e) < 0 && e.code == ERR_USAGE && e.remedy[0],
	       "an unknown recipe is refused with a remedy");
	tap_ok(recipe_load(&r, "../minimal", &e) < 0, "a path is no recipe");
	for (const struct recipe_text *f = recipe_files; f->name; f++) {
		tap_ok(f->name[0] != '/' && !strstr(f->name, "..") && f->text[0],
		       "file %s is below the root and not empty", f->name);
		profile |= strcmp(f->name, "etc/profile") == 0;
	}
	tap_ok(profile, "the profile is among the files");
}

int main(void)
{
	test_parse();
	test_refused();
	test_names();
	test_default();
	test_compiled_in();
	return tap_done();
}
