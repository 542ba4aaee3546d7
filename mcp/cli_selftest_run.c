/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_selftest_run.c - checks of "selftest": commands, labels, output
 *
 * Runs as whoever called it. Each function is one row of the table in cli_selftest.c. Commands need nothing
 * but bash and coreutils: the smallest image has no more.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/cli_selftest.h"
#include "mcp/json.h"
#include "runtime/base/cleanup.h"

enum { COMMAND_MAX = 1024, LONG_SLEEP_FIRST = 70000, PROMPT_MS = 15000 };

/* A number of seconds nobody else sleeps for: what the process is found by. */
static unsigned int own_sleep(struct selftest *s)
{
	return LONG_SLEEP_FIRST + (unsigned int)(strtoul(s->run, NULL, 16) % 1000000) * 16 + s->number++ % 16;
}

/* How many processes have this argument. "[N]": the pattern is not in the command that looks. */
static int count_sleepers(struct selftest *s, const char *label, unsigned int seconds)
{
	char command[COMMAND_MAX];
	struct selftest_answer a;
	int count;

	(void)snprintf(command, sizeof(command),
		       "n=0; for f in /proc/[0-9]*/cmdline; do case \"$(tr '\\0' ' ' < $f 2>/dev/null)\" in "
		       "\"sleep %u \") n=$((n+1));; esac; done; echo $n", seconds);
	if (selftest_run(s, label, command, 0, &a) < 0)
		return -1;
	count = a.status == 0 ? (int)strtol(a.output, NULL, 10) : -1;
	selftest_answer_done(&a);
	return count;
}

/* One command: its status and its output, both exactly. */
static enum selftest_verdict expect(struct selftest *s, const char *label, const char *command, int status,
				    const char *output)
{
	enum selftest_verdict v = SELFTEST_OK;
	struct selftest_answer a;

	if (selftest_run(s, label, command, 0, &a) < 0)
		return SELFTEST_FAILED;
	if (a.is_error || a.status != status || (output && strcmp(a.output, output) != 0))
		v = selftest_fail(s, "%.80s: %s%.300s", command, a.is_error ? "an error: " : "", a.text);
	selftest_answer_done(&a);
	return v;
}

/* ---- labels ---- */

enum selftest_verdict selftest_new(struct selftest *s)
{
	struct selftest_answer first, second;
	char label[SELFTEST_LABEL_MAX], name[32];
	enum selftest_verdict v = SELFTEST_OK;

	(void)snprintf(name, sizeof(name), "new %u", s->number++);
	selftest_label(s, name, label);
	if (selftest_run(s, label, "true", 0, &first) < 0)
		return SELFTEST_FAILED;
	if (selftest_run(s, label, "true", 0, &second) < 0)
		v = SELFTEST_FAILED;
	else if (!first.is_new || second.is_new || first.status != 0 || second.status != 0)
		v = selftest_fail(s, "first: %.100s second: %.100s", first.text, second.text);
	if (second.root)
		selftest_answer_done(&second);
	selftest_answer_done(&first);
	return v;
}

enum selftest_verdict selftest_both_eras(struct selftest *s)
{
	char label[SELFTEST_LABEL_MAX];

	selftest_label(s, "a", label);
	if (expect(s, label, "echo one > era; cat era; exit 3", 3, "one\n") != SELFTEST_OK ||
	    selftest_connect_legacy(s, NULL) < 0)
		return SELFTEST_FAILED;
	return expect(s, label, "cat era; exit 4", 4, "one\n");
}

/* Return: 0 with the key a label leads to. */
static int key_of(struct selftest *s, const char *label, char ret[SELFTEST_KEY_MAX])
{
	struct selftest_answer a;

	if (selftest_run(s, label, "true", 0, &a) < 0)
		return -1;
	memcpy(ret, a.key, SELFTEST_KEY_MAX);
	selftest_answer_done(&a);
	return *ret ? 0 : (selftest_fail(s, "no [sandbox KEY]"), -1);
}

enum selftest_verdict selftest_same_label(struct selftest *s)
{
	char labels[4][SELFTEST_LABEL_MAX], keys[4][SELFTEST_KEY_MAX];

	(void)snprintf(labels[0], sizeof(labels[0]), "Amber Otter %s", s->run);
	(void)snprintf(labels[1], sizeof(labels[1]), " amber--otter_%s!", s->run);
	(void)snprintf(labels[2], sizeof(labels[2]), "%s \xe7\x90\xa5\xe7\x8f\x80", s->run);
	(void)snprintf(labels[3], sizeof(labels[3]), "%s \xe6\xb0\xb4\xe7\x8d\xad", s->run);
	for (size_t i = 0; i < ARRAY_SIZE(labels); i++) {
		if (key_of(s, labels[i], keys[i]) < 0)
			return SELFTEST_FAILED;
	}
	if (strcmp(keys[0], keys[1]) != 0 || strncmp(keys[0], "amber-otter-", 12) != 0)
		return selftest_fail(s, "%s and %s", keys[0], keys[1]);
	return strcmp(keys[2], keys[3]) ? SELFTEST_OK : selftest_fail(s, "two labels without ASCII letters are one: %s", keys[2]);
}

static const char look_around[] = "ls -A /workspace /tmp; hostname; "
				  "for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $f; echo; done 2>/dev/null; true";

enum selftest_verdict selftest_apart(struct selftest *s)
{
	char a_label[SELFTEST_LABEL_MAX], b_label[SELFTEST_LABEL_MAX], command[COMMAND_MAX], sleeper[32], a_key[SELFTEST_KEY_MAX];
	unsigned int seconds = own_sleep(s);
	struct selftest_answer b;
	enum selftest_verdict v = SELFTEST_OK;

	selftest_label(s, "a", a_label);
	selftest_label(s, "b", b_label);
	(void)snprintf(sleeper, sizeof(sleeper), "sleep %u", seconds);
	(void)snprintf(command, sizeof(command), "echo x > only-in-a; echo x > /tmp/only-in-a; %s >/dev/null 2>&1 & disown", sleeper);
	if (expect(s, a_label, command, 0, "") != SELFTEST_OK || key_of(s, a_label, a_key) < 0)
		return SELFTEST_FAILED;
	if (count_sleepers(s, a_label, seconds) != 1)
		return selftest_fail(s, "the first one does not see its own process");
	if (selftest_run(s, b_label, look_around, 0, &b) < 0)
		return SELFTEST_FAILED;
	if (b.status != 0 || strstr(b.output, "only-in-a") || strstr(b.output, sleeper) || strstr(b.output, a_key))
		v = selftest_fail(s, "the second one sees the first: %.400s", b.text);
	selftest_answer_done(&b);
	(void)snprintf(command, sizeof(command), "for f in /proc/[0-9]*/cmdline; do case \"$(tr '\\0' ' ' < $f 2>/dev/null)\" in "
		       "\"%s \") p=${f#/proc/}; kill ${p%%/*};; esac; done; rm -f only-in-a /tmp/only-in-a", sleeper);
	return expect(s, a_label, command, 0, "") == SELFTEST_OK ? v : SELFTEST_FAILED;
}

/* ---- commands ---- */

enum selftest_verdict selftest_order(struct selftest *s)
{
	char label[SELFTEST_LABEL_MAX];

	selftest_label(s, "a", label);
	return expect(s, label, "for i in 1 2 3 4; do echo out$i; echo err$i >&2; done", 0,
		      "out1\nerr1\nout2\nerr2\nout3\nerr3\nout4\nerr4\n");
}

enum selftest_verdict selftest_exits(struct selftest *s)
{
	static const struct {
		const char *command;
		int status;
	} rows[] = { { "true", 0 },		 { "false", 1 },	    { "exit 42", 42 },
		     { "no-such-command-at-all", 127 }, { "kill -9 $$", 137 }, { "kill -TERM $$", 143 } };
	char label[SELFTEST_LABEL_MAX];

	selftest_label(s, "a", label);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (expect(s, label, rows[i].command, rows[i].status, NULL) != SELFTEST_OK)
			return SELFTEST_FAILED;
	}
	return SELFTEST_OK;
}

/* What models do to arguments, and what is refused with the argument's name. */
enum selftest_verdict selftest_arguments(struct selftest *s)
{
	enum wanted { DONE, REFUSED, TRIED }; /* TRIED: the command had a second, and may have needed more */
	static const struct {
		const char *rest;
		enum wanted wanted;
		const char *says;
	} rows[] = {
		{ ",\"timeout_seconds\":\"15\",\"cwd\":null", DONE, " [exit 0]" },
		{ ",\"timeout_seconds\":15.0,\"cwd\":\"\"", DONE, " [exit 0]" },
		{ ",\"timeout_seconds\":99999999", DONE, "[timeout lowered to the ceiling" },
		{ ",\"timeout_seconds\":0", TRIED, "[timeout raised to 1 s]" },
		{ ",\"timeout_seconds\":\"soon\"", REFUSED, "timeout_seconds" },
		{ ",\"cwd\":\"/no/such/directory\"", REFUSED, "cwd" },
		{ ",\"cwd\":[]", REFUSED, "cwd" },
	};
	char args[COMMAND_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct selftest_answer a;
		bool good;

		(void)snprintf(args, sizeof(args), "{\"sandbox\":\"selftest %s a\",\"command\":\"true\"%s}", s->run, rows[i].rest);
		if (selftest_call(s, "run_command", args, &a) < 0)
			return SELFTEST_FAILED;
		good = strstr(a.text, rows[i].says) &&
		       (rows[i].wanted == TRIED || a.is_error == (rows[i].wanted == REFUSED)) &&
		       (rows[i].wanted == REFUSED) == (strncmp(a.text, "[sandbox error] ", 16) == 0);
		if (!good)
			selftest_fail(s, "%s: %.200s", rows[i].rest + 1, a.text);
		selftest_answer_done(&a);
		if (!good)
			return SELFTEST_FAILED;
	}
	return SELFTEST_OK;
}

enum selftest_verdict selftest_environment(struct selftest *s)
{
	char label[SELFTEST_LABEL_MAX], key[SELFTEST_KEY_MAX], want[COMMAND_MAX];

	selftest_label(s, "a", label);
	if (key_of(s, label, key) < 0)
		return SELFTEST_FAILED;
	(void)snprintf(want, sizeof(want), "/root root C.UTF-8 dumb 1 noninteractive %s %s /workspace 0022\n", key, key);
	return expect(s, label, "echo $HOME $USER $LANG $TERM $NO_COLOR $DEBIAN_FRONTEND $SANDBOX $(hostname) $(pwd) $(umask)",
		      0, want);
}

enum selftest_verdict selftest_timeout(struct selftest *s)
{
	char label[SELFTEST_LABEL_MAX], command[COMMAND_MAX];
	unsigned int n = own_sleep(s);
	enum selftest_verdict v = SELFTEST_OK;
	struct selftest_answer a;

	selftest_label(s, "a", label);
	(void)snprintf(command, sizeof(command),
		       "echo before; trap '' TERM INT HUP; (setsid sleep %u &); setsid bash -c 'trap \"\" TERM; sleep %u; true' & "
		       "sleep %u; echo after", n, n, n);
	if (selftest_run(s, label, command, 2, &a) < 0)
		return SELFTEST_FAILED;
	if (!a.is_error || a.status != 124 || !strstr(a.text, " [timeout 2 s]") || strcmp(a.output, "before\n") != 0)
		v = selftest_fail(s, "%.300s", a.text);
	else if (a.took_ms > PROMPT_MS)
		v = selftest_fail(s, "answered after %llu ms", (unsigned long long)a.took_ms);
	selftest_answer_done(&a);
	if (v == SELFTEST_OK && count_sleepers(s, label, n) != 0)
		v = selftest_fail(s, "processes of the command are still there");
	return v;
}

enum selftest_verdict selftest_background(struct selftest *s)
{
	char label[SELFTEST_LABEL_MAX], command[COMMAND_MAX];
	unsigned int n = own_sleep(s);
	enum selftest_verdict v = SELFTEST_OK;
	struct selftest_answer a;

	selftest_label(s, "a", label);
	(void)snprintf(command, sizeof(command), "sleep %u & echo $! > child; echo done", n);
	if (selftest_run(s, label, command, 30, &a) < 0)
		return SELFTEST_FAILED;
	if (a.status != 0 || strcmp(a.output, "done\n") != 0 || a.took_ms > PROMPT_MS)
		v = selftest_fail(s, "%.200s, after %llu ms", a.text, (unsigned long long)a.took_ms);
	selftest_answer_done(&a);
	return expect(s, label, "kill $(cat child); rm child", 0, "") == SELFTEST_OK ? v : SELFTEST_FAILED;
}

/* ---- output ---- */

enum { WHOLE_BYTES = 168894, SHOWN_MAX_BYTES = 20000 }; /* of "seq 30000"; all ASCII */

enum selftest_verdict selftest_output(struct selftest *s)
{
	static const char mark[] = " characters omitted; whole output: /output/";
	char label[SELFTEST_LABEL_MAX], command[COMMAND_MAX], bytes[32];
	enum selftest_verdict v = SELFTEST_OK;
	unsigned long number = 0;
	struct selftest_answer a;
	const char *at;
	size_t len;

	selftest_label(s, "a", label);
	if (selftest_run(s, label, "seq 30000", 0, &a) < 0)
		return SELFTEST_FAILED;
	len = strlen(a.output);
	at = strstr(a.output, mark);
	(void)snprintf(bytes, sizeof(bytes), ".log (%d bytes)]\n", WHOLE_BYTES);
	if (a.status != 0 || !at || !strstr(at, bytes) || strncmp(a.output, "1\n2\n3\n", 6) != 0 || len < 12 ||
	    strcmp(a.output + len - 12, "29999\n30000\n") != 0)
		v = selftest_fail(s, "beginning, mark or end is missing: %.100s", a.text);
	else if (len > SHOWN_MAX_BYTES)
		v = selftest_fail(s, "%zu bytes are shown", len);
	else
		number = strtoul(at + sizeof(mark) - 1, NULL, 10);
	selftest_answer_done(&a);
	if (v != SELFTEST_OK)
		return v;
	(void)snprintf(command, sizeof(command), "seq 30000 | cmp - /output/%lu.log && ! touch /output/x 2>/dev/null", number);
	return expect(s, label, command, 0, "");
}

enum selftest_verdict selftest_utf8(struct selftest *s)
{
	char label[SELFTEST_LABEL_MAX];

	selftest_label(s, "a", label);
	return expect(s, label, "printf 'a\\377b\\303\\251\\n\\033[31mred\\033[0m\\n10%%\\r20%%\\r100%%\\n'", 0,
		      "a\xef\xbf\xbd" "b\xc3\xa9\nred\n100%\n");
}

/* ---- process 1, and what is outside ---- */

enum selftest_verdict selftest_reaps(struct selftest *s)
{
	char label[SELFTEST_LABEL_MAX];

	selftest_label(s, "a", label);
	return expect(s, label,
		      "for i in {1..100}; do (sleep 0.1 &); done; for i in {1..50}; do z=0; "
		      "for f in /proc/[0-9]*/stat; do read -r l 2>/dev/null < $f || continue; "
		      "case \"$l\" in *') Z '*) z=$((z+1));; *'(sleep)'*) z=$((z+1));; esac; done; "
		      "[ $z = 0 ] && break; sleep 0.1; done; echo $z", 0, "0\n");
}

/* Nothing of this may show anything; the last line says that the shell came so far. */
static const char host_paths[] =
	"[ \"$(stat -c %d:%i /)\" = \"$(stat -c %d:%i /../../..)\" ] || echo root; "
	"[ \"$(stat -c %d:%i /proc/self/root/../..)\" = \"$(stat -c %d:%i /)\" ] || echo proc-root; "
	"[ \"$(stat -Lc %d:%i /proc/1/root 2>/dev/null || stat -c %d:%i /)\" = \"$(stat -c %d:%i /)\" ] || echo init-root; "
	"for f in /proc/kcore /proc/kallsyms /proc/kmsg /proc/keys /dev/mem /dev/kmsg /dev/[shv]d[a-z]* /dev/nvme* "
	"/dev/mmcblk* /sys/firmware/* /sys/kernel/debug/* /proc/sysrq-trigger; do "
	"[ -d $f ] && [ -n \"$(ls -A $f)\" ] && echo $f; "
	"[ -n \"$(timeout 2 head -c 1 $f 2>/dev/null | tr '\\0' x)\" ] && echo $f; done; "
	"while read -r in out len; do [ $in = 0 ] && [ $out = 0 ] && echo uid_map; done < /proc/self/uid_map; "
	"for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe; do (: > $f) 2>/dev/null && echo $f; done; echo end";

/* Whoever runs this knows one secret of the host's for sure: the token. */
static enum selftest_verdict look_for_token(struct selftest *s, const char *label)
{
	static const char command[] = "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'; true";
	enum selftest_verdict v = SELFTEST_OK;
	struct selftest_answer a;

	if (selftest_run(s, label, command, 0, &a) < 0)
		return SELFTEST_FAILED;
	if (!strstr(a.output, "SANDBOX="))
		v = selftest_fail(s, "no environment was shown");
	else if (*s->token && strstr(a.output, s->token))
		v = selftest_fail(s, "the server's token is in an environment inside");
	else if (strstr(a.output, "MCP_"))
		v = selftest_fail(s, "a setting of the server is in an environment inside");
	selftest_answer_done(&a);
	return v;
}

enum selftest_verdict selftest_host_hidden(struct selftest *s)
{
	char label[SELFTEST_LABEL_MAX];
	enum selftest_verdict v;

	selftest_label(s, "a", label);
	v = expect(s, label, host_paths, 0, "end\n");
	return v == SELFTEST_OK ? look_for_token(s, label) : v;
}

/* ---- the other profile ---- */

enum selftest_verdict selftest_safe_shell(struct selftest *s)
{
	static const struct {
		const char *args;
		bool is_error;
		const char *text;
	} rows[] = {
		{ "{\"command\":\"echo hello; echo kept > /workspace/f\"}", false, "hello" },
		{ "{\"command\":\"cat /workspace/f 2>/dev/null\"}", true, "Process exited with code 1" },
		{ "{\"command\":\"true\"}", false, "Process exited with code 0" },
		{ "{\"command\":\"sleep 100\",\"timeout_seconds\":1}", true, "Execution timed out after 1 seconds." },
		{ "{\"command\":\"touch /etc/x 2>/dev/null || echo read-only\"}", false, "read-only" },
	};

	if (!s->safe_shell)
		return selftest_unseen(s, "this server's profile is another one");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct selftest_answer a;
		bool good;

		if (selftest_call(s, "run_sandboxed_command", rows[i].args, &a) < 0)
			return SELFTEST_FAILED;
		good = a.is_error == rows[i].is_error && strncmp(a.text, rows[i].text, strlen(rows[i].text)) == 0;
		if (!good)
			selftest_fail(s, "%s: %.200s", rows[i].args, a.text);
		selftest_answer_done(&a);
		if (!good)
			return SELFTEST_FAILED;
	}
	return SELFTEST_OK;
}
