/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_selftest_limits.c - checks of "selftest": limits as they are felt inside, the network, making room
 *
 * Runs as whoever called it. Each function is one row of the table in cli_selftest.c. A limit that the server
 * says it does not enforce is a row that does not hold, and is not tried: the host would pay for it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mcp/cli_selftest.h"
#include "mcp/json.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/loop.h"

enum {
	COMMAND_MAX = 2048,
	PIDS_TRIED_MAX = 20000,
	PIDS_MORE = 60,
	CPU_SECONDS = 2,
	CPU_TOLERANCE_PERCENT = 30,
	MEMORY_SECONDS = 300, /* the smallest board fills its limit twice in this time */
	PIDS_SECONDS = 300,
	PIDS_OURS = 4, /* places of the limit that a listing of processes need not show */
	REFUSED_WITHIN_S = 20, /* a program has to start first, a dozen at once; silence lasts minutes */
	APT_SECONDS = 300,
	BUSY_SECONDS = 20,
	SETTLE_MS = 15000,
	POLL_US = 200000,
	NS_PER_MS = 1000000,
};

/* ---- limits ---- */

/* Return: whether a limit is worth trying; if not, *ret is the verdict. */
static bool is_enforced(struct selftest *s, const char *name, enum selftest_verdict *ret)
{
	if (!strstr(s->not_enforced, name))
		return true;
	*ret = selftest_fail(s, "the server says that %s is not enforced on its host", name);
	return false;
}

/* The sandbox must be usable after a limit was hit. */
static enum selftest_verdict still_works(struct selftest *s, const char *label, enum selftest_verdict v)
{
	struct selftest_answer a;

	if (v != SELFTEST_OK || selftest_run(s, label, "echo alive", 0, &a) < 0)
		return SELFTEST_FAILED;
	if (a.status != 0 || !strstr(a.output, "alive"))
		v = selftest_fail(s, "the next command: %.200s", a.text);
	selftest_answer_done(&a);
	return v;
}

enum selftest_verdict selftest_memory(struct selftest *s)
{
	char label[SELFTEST_LABEL_MAX], command[COMMAND_MAX];
	enum selftest_verdict v = SELFTEST_OK;
	struct selftest_answer a;

	if (!is_enforced(s, "memory", &v))
		return v;
	/* tail keeps everything that has no line end. Twice the limit: were there none, it would end. */
	(void)snprintf(command, sizeof(command), "head -c %llu /dev/zero | tail | wc -c",
		       (unsigned long long)s->memory_bytes * 2);
	if (selftest_run(s, selftest_label(s, "a", label), command, MEMORY_SECONDS, &a) < 0)
		return SELFTEST_FAILED;
	if (!a.is_error || a.status != 137 || !strstr(a.text, " [out of memory: limit "))
		v = selftest_fail(s, "%.200s", a.text);
	selftest_answer_done(&a);
	return still_works(s, label, v);
}

enum selftest_verdict selftest_pids(struct selftest *s)
{
	char label[SELFTEST_LABEL_MAX], command[COMMAND_MAX], note[64];
	enum selftest_verdict v = SELFTEST_OK;
	struct selftest_answer a;

	if (!is_enforced(s, "pids", &v))
		return v;
	if (s->pids > PIDS_TRIED_MAX)
		return selftest_unseen(s, "a limit of %llu is not tried; tests/sys/test_cgroup.c", (unsigned long long)s->pids);
	/* However slowly they come, none leaves before the limit is met; the shell that waits needs no process. */
	(void)snprintf(command, sizeof(command),
		       "mkfifo /tmp/selftest; seq %llu | xargs -P %llu -n 1 sleep %d 2>/dev/null & p=(); "
		       "while [ ${#p[@]} -lt %llu ]; do read -t 0.2 <>/tmp/selftest; p=(/proc/[0-9]*); done; "
		       "read -t 1 <>/tmp/selftest; kill -9 -1; rm /tmp/selftest",
		       (unsigned long long)s->pids + PIDS_MORE, (unsigned long long)s->pids + PIDS_MORE, PIDS_SECONDS,
		       (unsigned long long)(s->pids > PIDS_OURS ? s->pids - PIDS_OURS : 1));
	(void)snprintf(note, sizeof(note), " [process limit %llu]", (unsigned long long)s->pids);
	if (selftest_run(s, selftest_label(s, "a", label), command, PIDS_SECONDS, &a) < 0)
		return SELFTEST_FAILED;
	if (!strstr(a.text, note))
		v = selftest_fail(s, "%.200s", a.text);
	selftest_answer_done(&a);
	return still_works(s, label, v);
}

enum selftest_verdict selftest_cpu(struct selftest *s)
{
	char label[SELFTEST_LABEL_MAX], command[COMMAND_MAX];
	enum selftest_verdict v = SELFTEST_OK;
	double wall, user, sys, allowed = (double)s->cpu_milli / 1000;
	unsigned int processors = 0;
	struct selftest_answer a;

	if (!is_enforced(s, "cpu", &v))
		return v;
	(void)snprintf(command, sizeof(command), "nproc; TIMEFORMAT='%%R %%U %%S'; time (for i in $(seq $(nproc)); do "
		       "timeout %d bash -c 'while :; do :; done' & done; wait)", CPU_SECONDS);
	if (selftest_run(s, selftest_label(s, "a", label), command, 60, &a) < 0)
		return SELFTEST_FAILED;
	if (sscanf(a.output, "%u %lf %lf %lf", &processors, &wall, &user, &sys) != 4 || wall <= 0)
		v = selftest_fail(s, "%.200s", a.text);
	else if (processors <= allowed)
		v = selftest_unseen(s, "%u processors, %.1f allowed; tests/sys/test_cgroup.c", processors, allowed);
	else if ((user + sys) / wall > allowed * (100 + CPU_TOLERANCE_PERCENT) / 100)
		v = selftest_fail(s, "%.1f processors used, %.1f allowed", (user + sys) / wall, allowed);
	selftest_answer_done(&a);
	return v;
}

/* ---- the network ---- */

/* Private, carrier, link-local and metadata addresses, each of them more than one way to spell the inside of
 * somebody's network. The last one is this server, where it is known by such an address. */
static const char try_lan[] =
	"t() { timeout %d bash -c \"exec 3<>/dev/tcp/$1/$2\" 2>/dev/null; r=$?; "
	"[ $r = 0 ] && echo \"REACHED $1:$2\"; [ $r = 124 ] && echo \"SILENT $1:$2\"; }; "
	"for a in 10.0.0.1 172.16.0.1 192.168.0.1 192.168.1.1 100.64.0.1 169.254.169.254 169.254.1.2 10.0.2.2 10.0.2.3 "
	"::ffff:169.254.169.254 fd00:ec2::254 fe80::1 64:ff9b::a00:1; do t $a 80 & done; wait; t 192.168.0.1 53; %s echo end";

static bool is_inside_address(const char *host)
{
	return strncmp(host, "127.", 4) == 0 || strncmp(host, "10.", 3) == 0 || strncmp(host, "192.168.", 8) == 0 ||
	       strncmp(host, "169.254.", 8) == 0 || strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0;
}

enum selftest_verdict selftest_lan(struct selftest *s)
{
	char label[SELFTEST_LABEL_MAX], command[COMMAND_MAX], own[HTTP_URL_HOST_MAX + 32] = "";
	enum selftest_verdict v = SELFTEST_OK;
	struct selftest_answer a;

	if (is_inside_address(s->url.host))
		(void)snprintf(own, sizeof(own), "t %s %s;", s->url.host, s->url.port);
	(void)snprintf(command, sizeof(command), try_lan, REFUSED_WITHIN_S, own);
	if (selftest_run(s, selftest_label(s, "a", label), command, 60, &a) < 0)
		return SELFTEST_FAILED;
	if (a.status != 0 || strcmp(a.output, "end\n") != 0)
		v = selftest_fail(s, "%.400s", a.text);
	selftest_answer_done(&a);
	return v;
}

enum selftest_verdict selftest_apt(struct selftest *s)
{
	char label[SELFTEST_LABEL_MAX];
	enum selftest_verdict v = SELFTEST_OK;
	struct selftest_answer a;

	if (strncmp(s->net, "none", 4) == 0)
		return selftest_unseen(s, "this server's sandboxes have no network; tests/e2e/allowlist.py");
	if (selftest_run(s, selftest_label(s, "b", label),
			 "(apt-get update && apt-get install -y --no-install-recommends hello) >/tmp/apt.log 2>&1 && hello && "
			 "apt-get purge -y hello >/dev/null 2>&1 || { tail -3 /tmp/apt.log; false; }", APT_SECONDS, &a) < 0)
		return SELFTEST_FAILED;
	if (a.status != 0 || !strstr(a.output, "Hello, world!"))
		v = selftest_fail(s, "%.400s", a.text);
	selftest_answer_done(&a);
	return v;
}

/* ---- making room ---- */

static const char *place(const struct selftest *s, unsigned int i, char label[SELFTEST_LABEL_MAX])
{
	char name[32];

	(void)snprintf(name, sizeof(name), "place %u", i);
	return selftest_label(s, name, label);
}

/* Other sandboxes of the same user are known from the beginning; other users may come at any time.
 * Return: how many sandboxes those have, -1. */
static int count_others(struct selftest *s)
{
	static const char words[] = "\nother users have ";
	struct selftest_answer a;
	const char *at;
	int count;

	if (selftest_call(s, "sandbox_info", "{}", &a) < 0)
		return -1;
	at = strstr(a.text, words);
	count = at ? (int)strtol(at + strlen(words), NULL, 10) : 0;
	selftest_answer_done(&a);
	return count;
}

/* Other sandboxes would lose their processes to a test that fills every place. */
static bool may_fill(struct selftest *s, enum selftest_verdict *ret)
{
	int others = count_others(s);

	if (others < 0) {
		*ret = SELFTEST_FAILED;
		return false;
	}
	if (others > 0) {
		*ret = selftest_unseen(s, "other users have sandboxes (%d), which might be ended for it; "
				       "tests/sys/test_keeper_life.c", others);
		return false;
	}
	if (s->running == 0 && s->max >= 1 && s->max <= SELFTEST_PLACES_MAX)
		return true;
	*ret = selftest_unseen(s, s->running ? "%u sandboxes were running when this began, and would be ended for it; "
					       "tests/sys/test_keeper_life.c" : "%u places are not filled; "
					       "tests/sys/test_keeper_life.c", s->running ? s->running : s->max);
	return false;
}

/* Run a command in every place, one after the other: the first is then the least recently used. */
static int fill(struct selftest *s, const char *command)
{
	char label[SELFTEST_LABEL_MAX];

	for (unsigned int i = 0; i < s->max; i++) {
		struct selftest_answer a;
		int status;

		if (selftest_run(s, place(s, i, label), command, 0, &a) < 0)
			return -1;
		status = a.status;
		if (status != 0)
			selftest_fail(s, "%.200s", a.text);
		selftest_answer_done(&a);
		if (status != 0)
			return -1;
	}
	return 0;
}

/* Is a sandbox of this state in the list? Keys begin with the label's first 24 characters, which all places
 * share, so they are told apart by what they are called when a command runs there. */
static int count_state(struct selftest *s, const char *state)
{
	struct selftest_answer a;
	char mark[32];
	int count = 0;

	if (selftest_call(s, "sandbox_info", "{}", &a) < 0)
		return -1;
	(void)snprintf(mark, sizeof(mark), ": %s, started ", state);
	for (const char *at = a.text; (at = strstr(at, mark)); at += strlen(mark))
		count++;
	selftest_answer_done(&a);
	return count;
}

static int await_running(struct selftest *s, int count)
{
	uint64_t end = loop_now_ns() + (uint64_t)SETTLE_MS * NS_PER_MS;
	int now;

	while ((now = count_state(s, "running")) < count) {
		if (now < 0 || loop_now_ns() > end) {
			selftest_fail(s, "%d commands are running, not %d", now, count);
			return -1;
		}
		(void)usleep(POLL_US);
	}
	return 0;
}

/* Hear a command that was sent before; a NULL query has failed already. */
static enum selftest_verdict hear_end(struct selftest *s, struct http_query *q, const char *want)
{
	enum selftest_verdict v = SELFTEST_OK;
	struct selftest_answer a;

	if (!q || selftest_hear(s, q, &a) < 0)
		return SELFTEST_FAILED;
	if (a.status != 0 || strcmp(a.output, want) != 0)
		v = selftest_fail(s, "the busy one: %.200s", a.text);
	selftest_answer_done(&a);
	return v;
}

/* The newcomer gets its place, and it is the idle one's: the busy one goes on to its end. */
static enum selftest_verdict newcomer(struct selftest *s)
{
	char label[SELFTEST_LABEL_MAX];
	enum selftest_verdict v = SELFTEST_OK;
	struct selftest_answer a;

	if (selftest_run(s, place(s, s->max, label), "echo came", 0, &a) < 0)
		return SELFTEST_FAILED;
	if (a.status != 0 || !a.is_new || strcmp(a.output, "came\n") != 0)
		v = selftest_fail(s, "the newcomer: %.200s", a.text);
	selftest_answer_done(&a);
	return v;
}

enum selftest_verdict selftest_lru(struct selftest *s)
{
	char label[SELFTEST_LABEL_MAX];
	enum selftest_verdict v = SELFTEST_OK, busy;
	struct selftest_answer a;
	struct http_query *q;

	if (!may_fill(s, &v))
		return v;
	if (s->max < 2)
		return selftest_unseen(s, "this server has one place: there is no idle one beside a busy one; "
				       "tests/sys/test_keeper_life.c");
	if (fill(s, "echo kept > file; sleep 70007 >/dev/null 2>&1 & disown") < 0)
		return SELFTEST_FAILED;
	q = selftest_run_start(s, place(s, 0, label), "sleep 4; echo busy", 0); /* the oldest, but busy */
	v = q && await_running(s, 1) == 0 ? newcomer(s) : SELFTEST_FAILED;
	busy = hear_end(s, q, "busy\n");
	if (v != SELFTEST_OK || busy != SELFTEST_OK)
		return SELFTEST_FAILED;
	if (selftest_run(s, place(s, 0, label), "true", 0, &a) < 0)
		return SELFTEST_FAILED;
	if (a.is_new)
		v = selftest_fail(s, "the busy one was ended");
	selftest_answer_done(&a);
	return v;
}

/* Needs no row before it: fills, lets a newcomer in, and looks at the one that had to go. */
enum selftest_verdict selftest_recycle(struct selftest *s)
{
	static const char look[] = "cat file; n=0; for f in /proc/[0-9]*/cmdline; do case \"$(tr '\\0' ' ' < $f 2>/dev/null)\" "
				   "in 'sleep 70007 ') n=$((n+1));; esac; done; echo $n";
	char label[SELFTEST_LABEL_MAX];
	enum selftest_verdict v = SELFTEST_OK;
	struct selftest_answer a;

	if (!may_fill(s, &v))
		return v;
	if (fill(s, "echo kept > file; sleep 70007 >/dev/null 2>&1 & disown") < 0 || newcomer(s) != SELFTEST_OK ||
	    selftest_run(s, place(s, 0, label), look, 0, &a) < 0)
		return SELFTEST_FAILED;
	if (!a.is_new || a.status != 0 || strcmp(a.output, "kept\n0\n") != 0)
		v = selftest_fail(s, "the one that was recycled: %.200s", a.text);
	selftest_answer_done(&a);
	return v;
}

static enum selftest_verdict refused_newcomer(struct selftest *s)
{
	char label[SELFTEST_LABEL_MAX], want[128];
	enum selftest_verdict v = SELFTEST_OK;
	struct selftest_answer a;

	(void)snprintf(want, sizeof(want), "[sandbox error] all %u sandboxes are in use; try again when one is free", s->max);
	if (selftest_run(s, place(s, s->max, label), "true", 0, &a) < 0)
		return SELFTEST_FAILED;
	if (!a.is_error || strncmp(a.text, want, strlen(want)) != 0)
		v = selftest_fail(s, "%.200s", a.text);
	selftest_answer_done(&a);
	return v;
}

enum selftest_verdict selftest_all_busy(struct selftest *s)
{
	struct http_query *q[SELFTEST_PLACES_MAX];
	char label[SELFTEST_LABEL_MAX];
	enum selftest_verdict v = SELFTEST_OK;

	if (!may_fill(s, &v))
		return v;
	/* One after the other first: places that are still being made are not idle. */
	if (fill(s, "rm -f go") < 0)
		return SELFTEST_FAILED;
	for (unsigned int i = 0; i < s->max; i++)
		q[i] = selftest_run_start(s, place(s, i, label), "sleep 5; echo busy", BUSY_SECONDS);
	v = await_running(s, (int)s->max) == 0 ? refused_newcomer(s) : SELFTEST_FAILED;
	for (unsigned int i = 0; i < s->max; i++) {
		if (hear_end(s, q[i], "busy\n") != SELFTEST_OK)
			v = SELFTEST_FAILED;
	}
	return v;
}

/* ---- afterwards ---- */

void selftest_clean(struct selftest *s)
{
	unsigned int count = s->label_count;

	for (unsigned int i = 0; i < count; i++) {
		struct selftest_answer a;

		if (selftest_run(s, s->labels[i], "find /workspace -mindepth 1 -delete; kill -9 -1", 0, &a) == 0)
			selftest_answer_done(&a);
	}
}
