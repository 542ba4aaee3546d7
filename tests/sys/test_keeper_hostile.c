/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sys/test_keeper_hostile.c - broken peers, sandboxes that fight back, and what is left after many */
#include "tests/sys/keeper.h"

#include "runtime/base/str.h"

static struct reply r;

enum { KILL_ROUNDS = 60 };
static const struct exec_options plain;

#define CALM "calm-0a1b2c"
#define EVIL "evil-0a1b2c"

/* ---- messages ---- */

static union {
	struct api_header h;
	struct api_exec exec;
	struct api_stage stage;
	struct api_key_request key;
	struct api_present present;
	struct api_signal signal;
	struct api_cancel cancel;
	unsigned char bytes[API_MSG_MAX];
} msg;

static void fill_exec(void)
{
	memset(&msg, 0, sizeof(struct api_exec));
	msg.h = (struct api_header){ API_VERSION, API_EXEC, sizeof(struct api_exec) + 4, 1 };
	memcpy(msg.exec.owner, OWNER_DEFAULT, sizeof(OWNER_DEFAULT));
	memcpy(msg.exec.key, CALM, sizeof(CALM));
	msg.exec.len = 4;
	memcpy(msg.exec.bytes, "true", 4);
}

static void exec_bad_version(void) { fill_exec(); msg.h.version++; }
static void exec_bad_op(void) { fill_exec(); msg.h.op = 77; }
static void exec_reply_op(void) { fill_exec(); msg.h.op = API_HELLO; }
static void exec_id_zero(void) { fill_exec(); msg.h.id = 0; }
static void exec_size_small(void) { fill_exec(); msg.h.size = 3; }
static void exec_len_long(void) { fill_exec(); msg.exec.len = 5; }
static void exec_len_huge(void) { fill_exec(); msg.exec.len = UINT32_MAX - 64; }
static void exec_mode(void) { fill_exec(); msg.exec.mode = 2; }
static void exec_flags(void) { fill_exec(); msg.exec.flags = 1U << 31; }
static void exec_stream(void) { fill_exec(); msg.exec.flags = API_EXEC_STREAM; }
static void exec_staged(void) { fill_exec(); msg.exec.staged = 10; }
static void exec_staged_huge(void) { fill_exec(); msg.exec.staged = UINT32_MAX; }
static void exec_owner(void) { fill_exec(); memset(msg.exec.owner, 'a', sizeof(msg.exec.owner)); }
static void exec_other_owner(void) { fill_exec(); msg.exec.owner[0] = '1'; }
static void exec_key_open(void) { fill_exec(); memset(msg.exec.key, 'a', sizeof(msg.exec.key)); }
static void exec_key_path(void) { fill_exec(); memcpy(msg.exec.key, "../../etc", 10); }
static void exec_cwd_open(void) { fill_exec(); memset(msg.exec.cwd, '/', sizeof(msg.exec.cwd)); }
static void exec_nul(void) { fill_exec(); msg.exec.bytes[2] = '\0'; }
static void exec_no_argv(void)
{
	fill_exec();
	msg.exec.mode = API_EXEC_ARGV;
	msg.exec.len = 0;
	msg.h.size = sizeof(struct api_exec);
}
static void stage_empty(void)
{
	msg.stage = (struct api_stage){ .h = { API_VERSION, API_STAGE, sizeof(struct api_stage), 1 } };
}
static void stage_lies(void)
{
	msg.stage = (struct api_stage){ .h = { API_VERSION, API_STAGE, sizeof(struct api_stage) + 8, 1 },
					.len = 9 };
}
static void fill_present(const char *path)
{
	memset(&msg.present, 0, sizeof(msg.present));
	msg.h = (struct api_header){ API_VERSION, API_PRESENT, sizeof(msg.present), 1 };
	memcpy(msg.present.owner, OWNER_DEFAULT, sizeof(OWNER_DEFAULT));
	memcpy(msg.present.key, CALM, sizeof(CALM));
	(void)snprintf(msg.present.path, sizeof(msg.present.path), "%s", path);
}
static void present_absolute(void) { fill_present("/etc/passwd"); }
static void present_empty(void) { fill_present(""); }
static void present_copy(void) { fill_present("x"); msg.present.copy = 2; }
static void present_open(void) { fill_present("x"); memset(msg.present.path, 'x', API_PATH_MAX); }
static void present_short(void) { fill_present("x"); msg.h.size--; }
static void front_stop(void)
{
	memset(&msg.key, 0, sizeof(msg.key));
	msg.h = (struct api_header){ API_VERSION, API_STOP, sizeof(msg.key), 1 };
	memcpy(msg.key.owner, OWNER_DEFAULT, sizeof(OWNER_DEFAULT));
	memcpy(msg.key.key, CALM, sizeof(CALM));
}
static void front_signal(void)
{
	msg.signal = (struct api_signal){ .h = { API_VERSION, API_SIGNAL, sizeof(msg.signal), 1 },
					  .signal = SIGTERM };
}
static void control_kill(void) { front_signal(); msg.signal.signal = SIGKILL; }

static void test_broken(struct kt *t)
{
	static const struct {
		const char *desc;
		void (*fill)(void);
		enum keeper_kind kind;
	} rows[] = {
		{ "version", exec_bad_version, KEEPER_STDIO },
		{ "unknown operation", exec_bad_op, KEEPER_STDIO },
		{ "a keeper's operation", exec_reply_op, KEEPER_STDIO },
		{ "id 0", exec_id_zero, KEEPER_STDIO },
		{ "size that is not the size", exec_size_small, KEEPER_STDIO },
		{ "length beyond the message", exec_len_long, KEEPER_STDIO },
		{ "length that overflows", exec_len_huge, KEEPER_STDIO },
		{ "unknown mode", exec_mode, KEEPER_STDIO },
		{ "unknown flag", exec_flags, KEEPER_STDIO },
		{ "a front that wants raw pipes", exec_stream, KEEPER_STDIO },
		{ "staged bytes never sent", exec_staged, KEEPER_STDIO },
		{ "more staged than there may be", exec_staged_huge, KEEPER_STDIO },
		{ "owner without end", exec_owner, KEEPER_STDIO },
		{ "somebody else's owner", exec_other_owner, KEEPER_STDIO },
		{ "key without end", exec_key_open, KEEPER_STDIO },
		{ "key that is a path", exec_key_path, KEEPER_STDIO },
		{ "cwd without end", exec_cwd_open, KEEPER_STDIO },
		{ "NUL in a command", exec_nul, KEEPER_STDIO },
		{ "no argument at all", exec_no_argv, KEEPER_ONCE },
		{ "empty stage", stage_empty, KEEPER_STDIO },
		{ "stage that lies", stage_lies, KEEPER_STDIO },
		{ "absolute path", present_absolute, KEEPER_STDIO },
		{ "empty path", present_empty, KEEPER_STDIO },
		{ "path without end", present_open, KEEPER_STDIO },
		{ "present flag", present_copy, KEEPER_STDIO },
		{ "present, one byte short", present_short, KEEPER_STDIO },
		{ "stop from a front", front_stop, KEEPER_STDIO },
		{ "signal from a front", front_signal, KEEPER_STDIO },
		{ "SIGKILL from a control client", control_kill, KEEPER_ONCE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct keeper_proc k;

		keeper_start_proc(t, &t->settings, rows[i].kind, &k);
		rows[i].fill();
		(void)fd_send_msg(k.sock, &msg, rows[i].fill == exec_size_small ?
				  sizeof(struct api_exec) + 4 : rows[i].fill == present_short ?
				  sizeof(struct api_present) : msg.h.size, NULL, 0);
		tap_int(kt_receive(k.sock, &r, 5000), 0, "dropped: %s", rows[i].desc);
		tap_int(keeper_end_proc(&k, NULL), 0, "and the keeper ends in order");
	}
}

static void test_ids(struct kt *t)
{
	struct keeper_proc k;
	unsigned int got = 0;

	keeper_start_proc(t, &t->settings, KEEPER_STDIO, &k);
	kt_exec_send(k.sock, 1, CALM, "sleep 5", 7, plain);
	kt_exec_send(k.sock, 1, CALM, "true", 4, plain);
	tap_int(kt_receive(k.sock, &r, 5000), 0, "an id used twice is the end of the peer");
	tap_int(keeper_end_proc(&k, NULL), 0, "and of its keeper");
	keeper_start_proc(t, &t->settings, KEEPER_STDIO, &k);
	for (uint64_t i = 1; i <= API_REQUESTS_MAX; i++)
		kt_exec_send(k.sock, i, CALM, "sleep 0.1", 9, plain);
	for (uint64_t i = 1; i <= API_REQUESTS_MAX; i++) {
		kt_expect(k.sock, &r);
		got += r.h.op == API_EXEC_DONE;
		reply_close(&r);
	}
	tap_int(got, API_REQUESTS_MAX, "as many requests as may be in flight are served");
	for (uint64_t i = 1; i <= API_REQUESTS_MAX + 1; i++)
		kt_exec_send(k.sock, i, CALM, "sleep 9", 7, plain);
	tap_int(kt_receive(k.sock, &r, 5000), 0, "one more is the end of the peer");
	tap_int(keeper_end_proc(&k, NULL), 0, "and of its keeper");
}

/* Until the short-lived processes of ours are gone: everything asked for has been answered. */
static void await_children(pid_t pid, unsigned int count)
{
	for (int i = 0, same = 0; i < 600 && same < 10; i++) {
		kt_sleep_ms(50);
		same = kt_count_children(pid) <= count ? same + 1 : 0;
	}
}

/* Answers with room for a path are the long ones: a socket of the usual size holds some 25 of them. */
static void test_unread(struct kt *t)
{
	struct keeper_proc k;
	unsigned int got = 0;

	keeper_start_proc(t, &t->settings, KEEPER_STDIO, &k);
	kt_exec(k.sock, CALM, "echo x > file", plain, &r);
	reply_close(&r);
	await_children(k.pid, 1);
	for (uint64_t i = 1; i <= API_REQUESTS_MAX; i++)
		kt_present_send(k.sock, i, CALM, "file", false);
	await_children(k.pid, 1);
	for (uint64_t i = 1; i <= API_REQUESTS_MAX && kt_receive(k.sock, &r, 5000) == 1; i++) {
		got += r.h.op == API_PRESENT_DONE;
		reply_close(&r);
	}
	tap_int(got, API_REQUESTS_MAX, "a front that is late to read gets every answer");
	tap_int(keeper_end_proc(&k, NULL), 0, "and the keeper ends in order");
}

static uint64_t seed = 88172645463325252ULL;

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* A valid message with some bytes changed, or noise under a valid header. */
static size_t fuzz_message(void)
{
	void (*const fills[])(void) = { fill_exec, present_copy, stage_lies, front_stop, front_signal };
	size_t size;

	fills[next_random() % ARRAY_SIZE(fills)]();
	size = msg.h.size;
	if (next_random() % 4 == 0) {
		size = sizeof(msg.h) + next_random() % 9000;
		for (size_t i = sizeof(msg.h); i < size; i++)
			msg.bytes[i] = (unsigned char)next_random();
		msg.h.op = (uint16_t)(next_random() % 12);
		msg.h.size = (uint32_t)size;
	}
	for (uint64_t n = next_random() % 4; n > 0; n--)
		msg.bytes[next_random() % size] = (unsigned char)next_random();
	return size;
}

/* What a connection is worth after a message: a question is answered behind it, or it is closed. No time is
 * waited for, so that a busy machine sees the same. */
static bool survives(int sock, uint64_t id)
{
	memset(&msg.key, 0, sizeof(msg.key));
	memcpy(msg.key.owner, OWNER_DEFAULT, sizeof(OWNER_DEFAULT));
	if (kt_send(sock, &msg.h, API_INFO, sizeof(msg.key), id) < 0)
		return false;
	for (;;) {
		int rc = kt_receive(sock, &r, KT_WAIT_MS);

		reply_close(&r);
		if (rc < 0)
			tap_bail("neither answered nor dropped");
		if (rc == 0 || (r.h.op == API_INFO_DONE && r.h.id == id))
			return rc > 0;
	}
}

static void test_fuzz(struct kt *t)
{
	enum { MESSAGES = 3000, QUESTIONS = 1000000 };
	struct keeper_proc k;
	struct store store;
	struct err e = { 0 };
	unsigned int dropped = 0, kept = 0;
	int sock = -1;

	keeper_start_proc(t, &t->settings, KEEPER_STDIO, &k);
	if (store_open(&store, t->settings.home, &e) < 0)
		tap_bail("%s", e.message);
	for (int i = 0; i < MESSAGES; i++) {
		size_t size = fuzz_message();

		if (sock < 0)
			sock = keeper_connect(store.run_fd, k.pid, &e);
		if (sock < 0)
			tap_bail("the keeper is gone after %d messages: %s", i, e.message);
		if (fd_send_msg(sock, &msg, size, NULL, 0) < 0)
			tap_bail("send: %s", strerror(errno));
		if (survives(sock, QUESTIONS + (uint64_t)i)) {
			kept++;
			continue;
		}
		dropped++;
		close_fd(&sock);
	}
	close_fd(&sock);
	tap_ok(dropped > 100 && kept > 100, "%d broken messages: %u ended their connection, %u could be answered",
	       MESSAGES, dropped, kept);
	kt_exec(k.sock, CALM, "echo alive", plain, &r);
	tap_str(r.text, "alive\n", "the keeper serves its front");
	reply_close(&r);
	tap_int(keeper_end_proc(&k, NULL), 0, "and ends in order");
	store_done(&store);
}

static bool holds_file(pid_t pid, const char *name)
{
	char path[64], link[PATH_MAX];
	bool found = false;

	for (int fd = 0; fd < 256 && !found; fd++) {
		ssize_t len;

		(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
		len = readlink(path, link, sizeof(link) - 1);
		link[len > 0 ? len : 0] = '\0';
		found = strstr(link, name) != NULL;
	}
	return found;
}

/* Descriptors a peer sends are dropped by the kernel; one that does not read is dropped by us. */
static void test_rude(struct kt *t)
{
	struct keeper_proc k;
	int smuggled;

	keeper_start_proc(t, &t->settings, KEEPER_ONCE, &k);
	smuggled = memfd_create("mcpt-smuggled", MFD_CLOEXEC);
	kt_exec(k.sock, CALM, "true", plain, &r);
	tap_ok(holds_file(getpid(), "mcpt-smuggled"), "(a descriptor can be seen)");
	for (int i = 0; i < 50; i++) {
		fill_exec();
		msg.h.id = 100 + (uint64_t)i;
		(void)fd_send_msg(k.sock, &msg, msg.h.size, &smuggled, 1);
		kt_expect(k.sock, &r);
		reply_close(&r);
	}
	tap_ok(!holds_file(k.pid, "mcpt-smuggled"), "no descriptor of a peer arrives");
	close_fd(&smuggled);
	for (uint64_t i = 1; kt_send(k.sock, &msg.h, API_INFO, sizeof(msg.key), i) == 0 && i < 100000; i++) {
		memset(&msg.key, 0, sizeof(msg.key));
		memcpy(msg.key.owner, OWNER_DEFAULT, sizeof(OWNER_DEFAULT));
	}
	tap_int(keeper_end_proc(&k, NULL), 0, "a peer that does not read is dropped");
}

/* ---- sandboxes that fight back ---- */

static void start_attack(int sock, uint64_t id, const char *command)
{
	kt_exec_send(sock, id, EVIL, command, strlen(command), (struct exec_options){ .timeout_ms = 2500 });
	kt_sleep_ms(300);
}

static unsigned int attackers_answered;

/* The attackers (ids 1 and 2) are answered in between. */
static void expect_id(int sock, uint64_t id)
{
	do {
		kt_expect(sock, &r);
		if (r.h.id != id)
			reply_close(&r);
		attackers_answered += r.h.id <= 2;
	} while (r.h.id != id);
}

static uint64_t worst_calm_ms(int sock, unsigned int runs)
{
	uint64_t worst = 0;

	for (unsigned int i = 0; i < runs; i++) {
		uint64_t begin = kt_now_ms();

		kt_exec_send(sock, 500, CALM, "true", 4, plain);
		expect_id(sock, 500);
		if (r.h.op != API_EXEC_DONE)
			tap_ok(false, "the calm sandbox: %s", r.failed.error.message);
		reply_close(&r);
		if (kt_now_ms() - begin > worst)
			worst = kt_now_ms() - begin;
	}
	return worst;
}

static void test_attacks(struct kt *t)
{
	static const char *const attacks[] = {
		"while :; do kill -STOP -1; done 2>/dev/null",
		"trap '' TERM; while :; do kill -KILL -1; done 2>/dev/null",
		"for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; wait",
		"f() { f | f & }; f 2>/dev/null; sleep 5",
		"while :; do : > /output/x; ls / >/dev/null; done 2>/dev/null",
	};
	struct keeper_proc k;
	uint64_t worst, base;

	keeper_start_proc(t, &t->settings, KEEPER_ONCE, &k);
	kt_exec(k.sock, CALM, "true", plain, &r);
	base = worst_calm_ms(k.sock, 10);
	for (size_t i = 0; i < ARRAY_SIZE(attacks); i++) {
		if (!t->limited && i == 3)
			continue; /* a fork bomb without a process limit is the host's problem */
		if (i == 3 && !(t->tree.controllers & CGROUP_PIDS)) {
			tap_skip_elsewhere("fork bomb", "no pids controller here; tests/vm has one");
			continue;
		}
		attackers_answered = 0;
		start_attack(k.sock, 1, attacks[i]);
		/* Its answer says whether the attack reached it; that it comes is what counts. */
		kt_exec_send(k.sock, 2, EVIL, "true", 4, (struct exec_options){ .timeout_ms = 1000 });
		worst = worst_calm_ms(k.sock, 5);
		tap_ok(worst < 500 + 4 * base, "attack %zu: another sandbox answers (worst %" PRIu64
		       " ms, alone %" PRIu64 ")", i, worst, base);
		while (attackers_answered < 2)
			(void)worst_calm_ms(k.sock, 1);
		kt_exec_send(k.sock, 502, EVIL, "echo alive", 10, plain);
		expect_id(k.sock, 502);
		tap_str(r.text, "alive\n", "attack %zu: its sandbox can be used again", i);
		reply_close(&r);
	}
	tap_int(keeper_end_proc(&k, NULL), 0, "the keeper ends");
}

/* A command cloned into a frozen cgroup never executes (M 2); neither does the one who waits for it. */
static void test_frozen(struct kt *t)
{
	struct keeper_proc k;
	char path[128];
	uint64_t begin;

	if (!t->limited) {
		tap_skip("a frozen sandbox", "no cgroup");
		return;
	}
	keeper_start_proc(t, &t->settings, KEEPER_ONCE, &k);
	kt_exec(k.sock, EVIL, "true", plain, &r);
	(void)snprintf(path, sizeof(path), "%s/%s/cgroup.freeze", OWNER_DEFAULT, EVIL);
	if (fd_write_file_at(t->tree.root_fd, path, "1") < 0)
		tap_bail("freeze");
	begin = kt_now_ms();
	kt_exec_send(k.sock, 1, EVIL, "echo never", 10, plain);
	tap_ok(worst_calm_ms(k.sock, 5) < 1000, "a frozen sandbox: another one answers");
	expect_id(k.sock, 1);
	tap_int(r.h.op, API_FAILED, "its command is given up");
	tap_str(r.failed.error.message, "the command could not be started within 10 s", "in these words");
	tap_ok(kt_now_ms() - begin >= 9900 && kt_now_ms() - begin < 14000, "after the deadline");
	(void)fd_write_file_at(t->tree.root_fd, path, "0");
	kt_exec(k.sock, EVIL, "echo thawed", plain, &r);
	tap_str(r.text, "thawed\n", "and when it is thawed it can be used again");
	reply_close(&r);
	tap_int(fd_write_file_at(t->tree.root_fd, path, "1"), 0, "frozen once more");
	tap_int(keeper_end_proc(&k, &begin), 0, "the end does not need it thawed");
	tap_ok(begin < 2000, "nor much time (%" PRIu64 " ms)", begin);
}

static bool is_strange(const struct reply *got)
{
	return got->h.op == API_FAILED ? strstr(got->failed.error.message, "killed before") == NULL :
					 got->done.exit_code != 0 && got->done.exit_code != 128 + SIGKILL;
}

/* A leaf that somebody else has killed, the host's administrator say: kernels since 6.14 let everything
 * die at birth that is cloned into it from then on. */
static void test_killed_leaf(struct kt *t)
{
	struct keeper_proc k;
	char path[128];
	unsigned int strange = 0;

	if (!t->limited) {
		tap_skip("a killed leaf", "no cgroup");
		return;
	}
	keeper_start_proc(t, &t->settings, KEEPER_ONCE, &k);
	kt_exec(k.sock, EVIL, "true", plain, &r);
	(void)snprintf(path, sizeof(path), "%s/%s/exec-0/cgroup.kill", OWNER_DEFAULT, EVIL);
	tap_int(fd_write_file_at(t->tree.root_fd, path, "1"), 0, "a command's cgroup is killed while it is empty");
	kt_exec(k.sock, EVIL, "echo born", plain, &r);
	tap_str(r.text, "born\n", "the next command is not killed with it");
	reply_close(&r);
	for (uint64_t i = 1; i <= KILL_ROUNDS; i++) {
		kt_exec_send(k.sock, i, EVIL, "echo born", 9, plain);
		(void)poll(NULL, 0, (int)(i % 4)); /* before, at and after its birth */
		(void)fd_write_file_at(t->tree.root_fd, path, "1");
		expect_id(k.sock, i);
		if (is_strange(&r))
			tap_diag("round %" PRIu64 ": op %u: %s", i, r.h.op,
				 r.h.op == API_FAILED ? r.failed.error.message : r.text);
		strange += is_strange(&r);
		reply_close(&r);
	}
	tap_int(strange, 0, "hit before, at and after its birth a command runs, or is said to have been killed");
	kt_exec(k.sock, EVIL, "echo alive; ls /proc | grep -c '^[0-9]'", plain, &r);
	tap_str(r.text, "alive\n4\n", "and whatever was hit, the next one runs, alone");
	reply_close(&r);
	tap_int(keeper_end_proc(&k, NULL), 0, "the keeper ends");
}

/* ---- what is left ---- */

static unsigned int count_mounts(void)
{
	char text[256 * 1024];
	unsigned int n = 0;
	ssize_t len = fd_read_file_at(AT_FDCWD, "/proc/self/mountinfo", text, sizeof(text));

	for (ssize_t i = 0; i < len; i++)
		n += text[i] == '\n';
	return n;
}

static unsigned int count_cgroups(const struct kt *t)
{
	char text[4096];
	const char *at;

	if (!t->limited || fd_read_file_at(t->tree.root_fd, "cgroup.stat", text, sizeof(text)) < 0)
		return 0;
	at = strstr(text, "nr_descendants ");
	return at ? (unsigned int)strtoul(at + 15, NULL, 10) : 0;
}

static void cycles(int sock, unsigned int from, unsigned int to)
{
	char key[32];

	for (unsigned int i = from; i < to; i++) {
		(void)snprintf(key, sizeof(key), "c-%06x", i);
		kt_exec(sock, key, i % 3 ? "echo x" : "sleep 100 & echo x", plain, &r);
		if (r.h.op != API_EXEC_DONE || strcmp(r.text, "x\n") != 0)
			tap_ok(false, "cycle %u", i);
		reply_close(&r);
		kt_key_send(sock, API_REMOVE, 8000, key, true);
		kt_expect(sock, &r);
		if (r.h.op != API_DONE)
			tap_ok(false, "cycle %u: remove: %s", i, r.failed.error.message);
	}
}

/* The worker that empties the trash takes its time. */
static unsigned int children_left(pid_t pid)
{
	for (int i = 0; i < 600 && kt_count_children(pid) > 0; i++)
		kt_sleep_ms(50);
	return kt_count_children(pid);
}

/* Between two workers there is a moment without a child in which the next one's are open already: the
 * count that stays the same for a while. */
static unsigned int descriptors_settled(pid_t pid)
{
	unsigned int last = kt_count_fds(pid), now, same = 0;

	for (int i = 0; i < 200 && same < 20; i++, last = now) {
		kt_sleep_ms(50);
		now = kt_count_fds(pid);
		same = now == last && kt_count_children(pid) == 0 ? same + 1 : 0;
	}
	return last;
}

static void test_leaks(struct kt *t)
{
	unsigned int fds, mounts, cgroups;
	struct keeper_proc k;
	uint64_t anon;

	keeper_start_proc(t, &t->settings, KEEPER_ONCE, &k);
	cycles(k.sock, 0, 20);
	tap_int(children_left(k.pid), 0, "a keeper without sandboxes has no children");
	fds = descriptors_settled(k.pid);
	mounts = count_mounts();
	cgroups = count_cgroups(t);
	anon = kt_status_kib(k.pid, "RssAnon:");
	cycles(k.sock, 20, 220);
	tap_int(children_left(k.pid), 0, "200 sandboxes later: children");
	tap_int(descriptors_settled(k.pid), fds, "descriptors");
	tap_int(count_mounts(), mounts, "mounts");
	tap_int(count_cgroups(t), cgroups, "cgroups");
	tap_int(kt_count_processes("sleep 100 "), 0, "processes");
#ifdef __SANITIZE_ADDRESS__
	anon = UINT64_MAX - 64; /* freed memory is kept apart */
#endif
	tap_ok(kt_status_kib(k.pid, "RssAnon:") <= anon + 64, "memory (%" PRIu64 " KiB, then %" PRIu64 ")",
	       anon, kt_status_kib(k.pid, "RssAnon:"));
	tap_diag("keeper: VmRSS %" PRIu64 " KiB, RssAnon %" PRIu64 " KiB", kt_status_kib(k.pid, "VmRSS:"),
		 kt_status_kib(k.pid, "RssAnon:"));
	tap_int(keeper_end_proc(&k, NULL), 0, "the keeper ends");
}

int main(int argc, char **argv)
{
	struct kt t;

	(void)argc;
	kt_open(&t, argv);
	log_init("test", LOG_LEVEL_ERROR);
	test_broken(&t);
	test_ids(&t);
	test_unread(&t);
	test_fuzz(&t);
	test_rude(&t);
	test_attacks(&t);
	test_frozen(&t);
	test_killed_leaf(&t);
	test_leaks(&t);
	kt_close(&t);
	return tap_done();
}
