/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sys/test_keeper_exec.c - commands: results, order, time, background work, cancelling */
#include "tests/sys/keeper.h"

static struct reply r;
static struct keeper_proc k;
static const struct exec_options plain;

#define KEY "exec-0a1b2c"

static void test_exit_codes(void)
{
	static const struct {
		const char *command, *text;
		int exit_code;
	} rows[] = {
		{ "true", "", 0 },
		{ "false", "", 1 },
		{ "exit 42", "", 42 },
		{ "no-such-program 2>/dev/null", "", 127 },
		{ "kill -9 $$", "", 137 },
		{ "kill -15 $$", "", 143 },
		{ "", "", 0 },
		{ "echo a; echo b >&2; echo c", "a\nb\nc\n", 0 },
		{ "printf 'no newline'", "no newline", 0 },
		{ "echo x > /dev/stdout; echo y > /dev/stderr; echo z > /proc/self/fd/2", "x\ny\nz\n", 0 },
		{ "cat", "", 0 },
		{ "id -u; umask; grep ^0: /proc/self/cgroup", "0\n0022\n0::/\n", 0 },
		{ "env | sort",
		  "DEBIAN_FRONTEND=noninteractive\nHOME=/root\nLANG=C.UTF-8\nNO_COLOR=1\n"
		  "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nPWD=/workspace\n"
		  "SANDBOX=" KEY "\nSHLVL=1\nTERM=dumb\nUSER=root\n_=/bin/env\n", 0 },
		{ "ls /proc/self/fd | wc -l", "4\n", 0 }, /* 0, 1, 2 and ls's own */
		{ "echo keep > file; cat file; ls /workspace", "keep\nfile\n", 0 },
		{ "touch /output/x 2>/dev/null || echo read-only", "read-only\n", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		kt_exec(k.sock, KEY, rows[i].command, plain, &r);
		tap_int(r.h.op, API_EXEC_DONE, "answered: %s", rows[i].command);
		tap_int(r.done.exit_code, rows[i].exit_code, "exit code");
		if (strcmp(rows[i].command, "env | sort") == 0 && strstr(r.text, "_=/usr/bin/env"))
			continue; /* where bash found env */
		tap_str(r.text, rows[i].text, "output");
		tap_int(r.done.flags & API_CREATED, i == 0 ? API_CREATED : 0, "created by the first only");
		reply_close(&r);
	}
}

static void test_cwd(void)
{
	static const struct {
		const char *cwd, *text;
		uint16_t op;
	} rows[] = {
		{ "/", "/\n", API_EXEC_DONE },
		{ "", "/workspace\n", API_EXEC_DONE },
		{ "sub", "/workspace/sub\n", API_EXEC_DONE },
		{ "link", "/workspace/sub\n", API_EXEC_DONE },
		{ "/nowhere", NULL, API_FAILED },
		{ "file", NULL, API_FAILED },
		{ "/proc/self/fd/3", NULL, API_FAILED },
		{ "/proc/1/cwd", NULL, API_FAILED },
		{ "/proc/self/cwd", NULL, API_FAILED },
	};

	kt_exec(k.sock, KEY, "mkdir sub; ln -s /workspace/sub link; touch file", plain, &r);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		kt_exec_send(k.sock, 2000 + i, KEY, "pwd -P", 6, (struct exec_options){ .cwd = rows[i].cwd });
		kt_expect(k.sock, &r);
		tap_int(r.h.op, rows[i].op, "cwd \"%s\"", rows[i].cwd);
		if (rows[i].text)
			tap_str(r.text, rows[i].text, "is where it runs");
		else
			tap_ok(strstr(r.failed.error.message, rows[i].cwd), "is named: %s",
			       r.failed.error.message);
		reply_close(&r);
	}
}

static void test_argv(void)
{
	struct exec_options argv = { .mode = API_EXEC_ARGV };

	kt_exec_send(k.sock, 1, KEY, "echo\0a b\0$HOME", 14, argv);
	kt_expect(k.sock, &r);
	tap_str(r.text, "a b $HOME\n", "arguments reach the program as they are");
	reply_close(&r);
	kt_exec_send(k.sock, 2, KEY, "/bin/echo\0\0x", 12, argv);
	kt_expect(k.sock, &r);
	tap_str(r.text, " x\n", "a path, and an empty argument");
	reply_close(&r);
	kt_exec_send(k.sock, 3, KEY, "no-such-program", 15, argv);
	kt_expect(k.sock, &r);
	tap_int(r.done.exit_code, 127, "unknown program");
	tap_ok(strstr(r.text, "no-such-program"), "is named: %s", r.text);
	reply_close(&r);
	kt_exec_send(k.sock, 4, KEY, "/bin/nothing", 12, argv);
	kt_expect(k.sock, &r);
	tap_int(r.done.exit_code, 127, "unknown path");
	tap_ok(strstr(r.text, "/bin/nothing"), "is named: %s", r.text);
	reply_close(&r);
	kt_exec_send(k.sock, 5, KEY, "/workspace", 10, argv);
	kt_expect(k.sock, &r);
	tap_int(r.done.exit_code, 126, "a directory cannot be executed");
	reply_close(&r);
}

static void stage(uint64_t id, const char *bytes, size_t len)
{
	static union {
		struct api_stage msg;
		char room[sizeof(struct api_stage) + API_STAGE_MAX];
	} u;

	u.msg.len = (uint32_t)len;
	memcpy(u.msg.bytes, bytes, len);
	if (kt_send(k.sock, &u, API_STAGE, (uint32_t)(sizeof(u.msg) + len), id) < 0)
		tap_bail("stage");
}

/* Comments of the wanted length, then a command that proves it was read to the end. */
static void test_long(size_t len, const char *desc)
{
	static char text[API_COMMAND_MAX + 1];
	static const char tail[] = "\necho \"$#\" last; [ -e /proc/self/fd/3 ] && echo leaked\n";
	size_t done = 0;

	memset(text, 'x', len);
	text[0] = '#';
	memcpy(text + len - (sizeof(tail) - 1), tail, sizeof(tail) - 1);
	while (len - done > API_STAGE_MAX) {
		stage(50, text + done, API_STAGE_MAX);
		done += API_STAGE_MAX;
	}
	kt_exec_send(k.sock, 50, KEY, text + done, len - done,
		     (struct exec_options){ .staged = (uint32_t)done });
	kt_expect(k.sock, &r);
	if (!tap_int(r.h.op, API_EXEC_DONE, "%s", desc))
		tap_diag("%s", r.failed.error.message);
	tap_str(r.text, "0 last\n", "runs to its end, with nothing left open");
	reply_close(&r);
}

/* Only the newest sixteen logs are kept, but never at the cost of an answer. */
static void test_outlived(void)
{
	static const char waits[] = "echo first; until [ -e go ]; do sleep 0.05; done; echo last",
			  lets_go[] = "touch go";
	enum { OTHERS = 20 };

	kt_exec_send(k.sock, 77, KEY, waits, sizeof(waits) - 1, plain);
	for (int i = 0; i < OTHERS; i++)
		kt_exec(k.sock, KEY, "echo x", plain, &r);
	kt_exec_send(k.sock, 78, KEY, lets_go, sizeof(lets_go) - 1, plain);
	for (int i = 0; i < 2; i++) {
		kt_expect(k.sock, &r);
		if (r.h.id == 77) {
			tap_str(r.text, "first\nlast\n", "a command outlived by twenty others keeps its output");
			tap_int(r.done.flags & API_OUTPUT_CAPPED, 0, "all of it is in its log");
			tap_ok(r.done.log_number > OTHERS, "which is the newest when the answer names it");
		}
		reply_close(&r);
	}
	kt_exec(k.sock, KEY, "rm go; ls /output | wc -l", plain, &r);
	tap_str(r.text, "16\n", "and no log is kept beyond the sixteen");
}

/* Each ends when eight of its sandbox have begun: one after the other, none would. No clock of this test's own
 * judges that, because on an emulated machine forty starts take longer than any sleep that they could share. */
static void test_parallel(void)
{
	enum { COUNT = 40, TOGETHER = 8 };
	unsigned int right = 0;
	char command[160];

	for (int i = 0; i < COUNT; i++) {
		int len = snprintf(command, sizeof(command),
				   "echo %d; >met.%d; set -- met.*; while [ $# -lt %d ]; do sleep 0.2; set -- met.*; "
				   "done; echo %d", i, i, TOGETHER, i);

		kt_exec_send(k.sock, 3000 + (uint64_t)i, i % 2 ? KEY : "other-0a1b2c", command,
			     (size_t)len, (struct exec_options){ .timeout_ms = KT_WAIT_MS - 5000 });
	}
	for (int i = 0; i < COUNT; i++) {
		int id;

		kt_expect(k.sock, &r);
		id = (int)r.h.id - 3000;
		(void)snprintf(command, sizeof(command), "%d\n%d\n", id, id);
		if (r.h.op == API_EXEC_DONE && r.done.exit_code == 0 && strcmp(r.text, command) == 0)
			right++;
		else
			tap_diag("command %d: op %u, exit %d, flags %#x, \"%s\" %s", id, r.h.op,
				 r.done.exit_code, r.done.flags, r.text,
				 r.h.op == API_FAILED ? r.failed.error.message : "");
		reply_close(&r);
	}
	tap_int(right, COUNT, "40 commands side by side in two sandboxes, each its own output");
	kt_exec(k.sock, KEY, "rm met.*", plain, &r);
	reply_close(&r);
}

/* More than there are leaves, every other one fails before it has executed. */
static void test_failing_starts(void)
{
	enum { COUNT = 60 };
	unsigned int failed = 0, done = 0;

	for (int i = 0; i < COUNT; i++)
		kt_exec_send(k.sock, 4000 + (uint64_t)i, KEY, "sleep 0.1", 9,
			     (struct exec_options){ .cwd = i % 2 ? "/nowhere" : "" });
	for (int i = 0; i < COUNT; i++) {
		kt_expect(k.sock, &r);
		failed += r.h.op == API_FAILED;
		done += r.h.op == API_EXEC_DONE;
		reply_close(&r);
	}
	tap_int(failed, COUNT / 2, "failed starts are answered");
	tap_int(done, COUNT / 2, "and hold nobody up");
}

static void test_timeout(bool limited)
{
	static const char tree[] =
		"trap '' TERM; echo started\n"
		"setsid sleep 7771 & (setsid sleep 7772 & ) & ( trap '' TERM; sleep 7773; sleep 7774 ) &\n"
		"nohup sleep 7775 >/dev/null 2>&1 & (sleep 7776 &) ; sleep 7777; sleep 7778";
	uint64_t begin = kt_now_ms(), took;

	kt_exec(k.sock, KEY, tree, (struct exec_options){ .timeout_ms = 400 }, &r);
	took = kt_now_ms() - begin;
	tap_int(r.done.exit_code, 124, "a timeout is 124");
	tap_ok(r.done.flags & API_TIMED_OUT, "and flagged");
	tap_str(r.text, "started\n", "output so far is kept");
	tap_int(kt_count_processes("sleep 777"), 0, "setsid, double fork, ignored TERM: all dead");
	tap_ok(took >= 400 && took < 4000, "within the grace time (%" PRIu64 " ms)", took);
	tap_int(r.done.flags & API_RECYCLED, limited ? 0 : API_RECYCLED, "recycled only without a cgroup");
	reply_close(&r);
	begin = kt_now_ms();
	kt_exec(k.sock, KEY, "exec sleep 7779", (struct exec_options){ .timeout_ms = 300 }, &r);
	took = kt_now_ms() - begin;
	tap_ok(took < 1500, "a command that obeys TERM ends at once (%" PRIu64 " ms)", took);
	tap_int(r.done.exit_code, 124, "and is 124 all the same");
	reply_close(&r);
	kt_exec(k.sock, KEY, "true", (struct exec_options){ .timeout_ms = UINT64_C(1) << 60 }, &r);
	tap_ok(r.done.flags & API_TIMEOUT_CLAMPED, "a timeout above the ceiling is cut");
	tap_int(r.done.timeout_ms, 60000, "to the ceiling");
	reply_close(&r);
}

static void test_background(bool limited)
{
	uint64_t begin = kt_now_ms();

	kt_exec(k.sock, KEY, "rm -f alive; (for i in 1 2 3 4 5 6; do echo x; sleep 0.5; done; touch alive) & "
		"echo answer", plain, &r);
	tap_ok(kt_now_ms() - begin < 2500, "a background child does not delay the answer");
	tap_ok(strncmp(r.text, "answer\n", 7) == 0 || strstr(r.text, "answer\n"), "which has the output");
	if (limited)
		tap_ok(r.done.left_running > 0, "and says that something runs on");
	reply_close(&r);
	kt_exec(k.sock, KEY, "for i in $(seq 100); do [ -e alive ] && break; sleep 0.1; done; ls alive", plain,
		&r);
	tap_str(r.text, "alive\n", "the child was not killed by writing on");
	reply_close(&r);
	for (int i = 0; i < 20; i++) {
		kt_exec(k.sock, KEY, "sleep 8881 & disown", plain, &r);
		if (i == 19 && limited)
			tap_ok(r.done.flags & API_LEAF_SHARED, "more background work than leaves: said");
		reply_close(&r);
	}
	/* One that is being executed has no command line for a moment. */
	for (int i = 0; i < 100 && kt_count_processes("sleep 8881") != 20; i++)
		kt_sleep_ms(20);
	tap_int(kt_count_processes("sleep 8881"), 20, "background work of 20 commands lives");
	kt_exec(k.sock, KEY, "kill $(ls /proc | grep '^[0-9]' | while read p; do "
		"grep -qa 8881 /proc/$p/cmdline 2>/dev/null && echo $p; done | grep -v $$) 2>/dev/null; true",
		plain, &r);
	reply_close(&r);
}

static void test_cancel(void)
{
	struct api_cancel msg;
	struct api_peek peek;

	kt_exec_send(k.sock, 70, KEY, "echo before; setsid sleep 9991 & sleep 9992", 43, plain);
	for (int i = 0; i == 0 || (r.h.op == API_PROGRESS && r.progress.total_bytes == 0 && i < 100); i++) {
		kt_sleep_ms(100);
		(void)kt_send(k.sock, &peek, API_PEEK, sizeof(peek), 70);
		kt_expect(k.sock, &r);
	}
	for (int i = 0; i < 100 && kt_count_processes("sleep 999") < 2; i++)
		kt_sleep_ms(20);
	tap_int(r.h.op, API_PROGRESS, "a running command can be asked about");
	tap_int(r.progress.total_bytes, 7, "it has written 7 bytes");
	tap_ok(kt_count_processes("sleep 999") >= 2, "control: its tree lives");
	(void)kt_send(k.sock, &msg, API_CANCEL, sizeof(msg), 70);
	tap_int(kt_receive(k.sock, &r, 500), -1, "nothing is sent for a cancelled command");
	tap_int(kt_count_processes("sleep 999"), 0, "its tree is dead");
	kt_exec_send(k.sock, 70, KEY, "echo again", 10, plain);
	kt_expect(k.sock, &r);
	tap_str(r.text, "again\n", "its id may be used again");
	reply_close(&r);
	for (uint64_t i = 0; i < 30; i++) { /* while it starts */
		kt_exec_send(k.sock, 100 + i, KEY, "sleep 9993", 10, plain);
		(void)kt_send(k.sock, &msg, API_CANCEL, sizeof(msg), 100 + i);
	}
	kt_exec(k.sock, KEY, "echo alive", plain, &r);
	tap_str(r.text, "alive\n", "30 commands cancelled at their start");
	reply_close(&r);
	kt_sleep_ms(300);
	tap_int(kt_count_processes("sleep 9993"), 0, "leave nothing");
	(void)kt_send(k.sock, &msg, API_CANCEL, sizeof(msg), 4711);
	(void)kt_send(k.sock, &peek, API_PEEK, sizeof(peek), 4711);
	tap_int(kt_receive(k.sock, &r, 100), -1, "unknown ids are ignored");
}

static void test_stream(void)
{
	struct api_signal sig = { .signal = SIGINT };
	char text[64] = "";
	int fds[3];

	kt_exec_send(k.sock, 90, KEY, "read x; echo got $x; echo err >&2; exit 3", 41,
		     (struct exec_options){ .flags = API_EXEC_STREAM });
	kt_expect(k.sock, &r);
	tap_int(r.h.op, API_STARTED, "a streamed command says that it has started");
	tap_int(r.fd_count, 3, "with three descriptors");
	memcpy(fds, r.fds, sizeof(fds));
	tap_int(fd_write_full(fds[0], "hello\n", 6), 0, "its input is written");
	kt_expect(k.sock, &r);
	tap_int(r.done.exit_code, 3, "its exit code is told");
	tap_int(fd_read_full(fds[1], text, sizeof(text) - 1), 10, "its output is read");
	tap_str(text, "got hello\n", "as written");
	memset(text, 0, sizeof(text));
	tap_int(fd_read_full(fds[2], text, sizeof(text) - 1), 4, "and its errors apart");
	for (int i = 0; i < 3; i++)
		close_fd(&fds[i]);
	kt_exec_send(k.sock, 91, KEY, "trap 'exit 9' INT; echo up; while :; do sleep 0.05; done", 56,
		     (struct exec_options){ .flags = API_EXEC_STREAM });
	kt_expect(k.sock, &r);
	memcpy(fds, r.fds, sizeof(fds));
	(void)fd_read_full(fds[1], text, 3);
	(void)kt_send(k.sock, &sig, API_SIGNAL, sizeof(sig), 91);
	kt_expect(k.sock, &r);
	tap_int(r.done.exit_code, 9, "a signal reaches its process group");
	for (int i = 0; i < 3; i++)
		close_fd(&fds[i]);
}

int main(int argc, char **argv)
{
	struct kt t;

	(void)argc;
	kt_open(&t, argv);
	keeper_start_proc(&t, &t.settings, KEEPER_ONCE, &k);
	test_exit_codes();
	test_cwd();
	test_argv();
	test_long(API_STAGE_MAX - 100, "a command of one message");
	test_long(API_ARG_INLINE_MAX, "a command as long as one argument may be");
	test_long(API_ARG_INLINE_MAX + 1, "one byte longer");
	test_long(API_COMMAND_MAX, "a command of 1 MiB");
	test_outlived();
	test_parallel();
	test_failing_starts();
	test_timeout(t.limited);
	test_background(t.limited);
	test_cancel();
	test_stream();
	tap_int(keeper_end_proc(&k, NULL), 0, "the keeper ends");
	kt_close(&t);
	return tap_done();
}
