/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sys/test_adopt.c - a service's keeper dies or leaves; the next one takes its sandboxes over
 *
 * The keepers are this program again, each a process of its own that goes the whole way: cgroup, storage
 * namespace (ordinary user: the one of the sandboxes that are there), registry. The test is their front.
 */
#include "tests/sys/keeper.h"

#include <sys/xattr.h>

#include "runtime/base/proc.h"
#include "runtime/base/str.h"
#include "runtime/handover.h"

enum { FRONT_FD = 5, BACKDOOR_FD = 6 };

#define KEY "box-0a1b2c"
#define RECORD_NAME "user.mcp.sandbox"

static struct reply r;
static const struct exec_options plain;
static char home[64], tree[128];

struct service {
	pid_t pid;
	int sock, backdoor;
	struct api_hello hello;
};

/* ---- what the keepers' processes do ---- */

/* The other end goes to the test, as a client would find its new front. */
static int new_front(void *ctx, pid_t *ret_pid, struct err *e)
{
	int pair[2];

	(void)ctx;
	*ret_pid = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socketpair");
	if (fd_send_msg(BACKDOOR_FD, "f", 1, &pair[1], 1) < 0)
		return err_sys(e, "tell the test");
	(void)close(pair[1]);
	return pair[0];
}

static void enter(struct kt *t, char **argv, bool fresh)
{
	struct err e = { 0 };

	if (!fresh) {
		kt_enter(t, tree, argv);
		return;
	}
	log_init("test", LOG_LEVEL_WARN);
	if (cgroup_acquire(&t->tree, tree, true, &e) != 0 ||
	    userns_enter_storage(-1, "", argv, &e) < 0 || userns_range_init(&t->ids, "", 0, &e) < 0)
		tap_bail("%s; %s", e.message, e.remedy);
}

/* argv: MODE HOME TREE */
static int in_mode(char **argv)
{
	static struct kt t;
	struct keeper_start ks = { .settings = &t.settings, .cgroup = &t.tree, .ids = &t.ids,
				   .kind = KEEPER_SERVICE, .peer_fd = FRONT_FD, .new_front = new_front };
	struct err e = { 0 };
	int status;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)umask(022);
	(void)snprintf(tree, sizeof(tree), "%s", argv[3]);
	enter(&t, argv, strcmp(argv[1], "fresh") == 0);
	(void)snprintf(t.home, sizeof(t.home), "%s", argv[2]);
	if (strcmp(argv[1], "make") == 0) {
		kt_make(&t);
		return 0;
	}
	if (strcmp(argv[1], "clean") == 0)
		return kt_shell("rm -rf -- \"$1\"/*", t.home, "");
	kt_settings(&t);
	ks.handover = handover_open();
	if (ks.handover)
		ks.peer_fd = handover_front(ks.handover, &ks.peer_pid);
	ks.argv = argv;
	status = keeper_run(&ks, &e);
	if (status < 0)
		fprintf(stderr, "keeper: %s\n", e.message);
	return status < 0 ? 1 : status;
}

static pid_t run_mode(const char *mode, int front, int backdoor)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (front >= 0 && (dup2(front, FRONT_FD) < 0 || dup2(backdoor, BACKDOOR_FD) < 0))
			_exit(125);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)execl("/proc/self/exe", "adopt", mode, home, tree, (char *)NULL);
		_exit(126);
	}
	return pid;
}

static int await(pid_t pid)
{
	int status = 0;

	if (waitpid(pid, &status, 0) != pid)
		tap_bail("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- keepers, from the test's side ---- */

static void take_hello(struct service *s)
{
	kt_expect(s->sock, &r);
	if (r.h.op != API_HELLO)
		tap_bail("no hello");
	memcpy(&s->hello, r.bytes, sizeof(s->hello));
}

static void start_in(struct service *s, const char *mode)
{
	int pair[2], door[2];

	/* High numbers: the child's dup2() must not hit one of them. */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, door) < 0)
		tap_bail("socketpair");
	for (int i = 0; i < 2; i++) {
		int fds[2] = { fcntl(pair[i], F_DUPFD_CLOEXEC, 20), fcntl(door[i], F_DUPFD_CLOEXEC, 20) };

		(void)close(pair[i]);
		(void)close(door[i]);
		pair[i] = fds[0];
		door[i] = fds[1];
	}
	s->pid = run_mode(mode, pair[1], door[1]);
	(void)close(pair[1]);
	(void)close(door[1]);
	s->sock = pair[0];
	s->backdoor = door[0];
	take_hello(s);
}

static void start(struct service *s)
{
	start_in(s, "keeper");
	if (s->hello.start_failure.code != ERR_NONE)
		tap_bail("keeper: %s", s->hello.start_failure.message);
}

static int end_with(struct service *s, int signal)
{
	int status;

	(void)kill(s->pid, signal);
	status = await(s->pid);
	close_fd(&s->sock);
	close_fd(&s->backdoor);
	return status;
}

/* ---- looking from outside ---- */

static int open_box(void)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/" OWNER_DEFAULT "/" KEY, tree);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static pid_t init_pid(void)
{
	_cleanup_fd_ int fd = open_box();

	return fd < 0 ? 0 : cgroup_box_init_pid(fd);
}

static unsigned int count_soon(const char *word, unsigned int want)
{
	for (int i = 0; i < 100 && kt_count_processes(word) != want; i++)
		kt_sleep_ms(10);
	return kt_count_processes(word);
}

/* A shell may still be on its way to the program it becomes, and has no command line in between. */
static bool appears(const char *word)
{
	for (int i = 0; i < 500; i++) {
		if (kt_count_processes(word) > 0)
			return true;
		kt_sleep_ms(10);
	}
	return false;
}

/* Commands of a dead keeper belong to the host's pid 1; theirs dies when that one has reaped them. */
static void wait_gone(void)
{
	for (int i = 0; i < 1000; i++) {
		_cleanup_fd_ int fd = open_box();

		if (fd < 0)
			return;
		kt_sleep_ms(10);
	}
	tap_diag("the cgroup is still there");
}

static void run(struct service *s, const char *command)
{
	reply_close(&r);
	kt_exec(s->sock, KEY, command, plain, &r);
	if (r.h.op != API_EXEC_DONE)
		tap_bail("no result");
}

/* A sandbox with background work and something in memory. */
static pid_t occupy(struct service *s)
{
	run(s, "echo kept >/tmp/mark; echo kept >/workspace/mark; sleep 7771 >/dev/null 2>&1 & true");
	return init_pid();
}

/* ---- the tests ---- */

static void test_killed(void)
{
	struct exec_options second = { .timeout_ms = 1000 };
	struct service s;
	pid_t init;

	start(&s);
	init = occupy(&s);
	tap_ok(r.done.flags & API_CREATED && init > 0, "a sandbox");
	kt_exec_send(s.sock, 1, KEY, "echo begun; sleep 7772", 22, plain);
	tap_ok(appears("sleep 7772"), "a command in flight");
	kt_sleep_ms(200); /* the keeper takes what it wrote */
	tap_int(end_with(&s, SIGKILL), 137, "kill -9 of the keeper");
	tap_ok(init_pid() == init && kill(init, 0) == 0, "the sandbox is still there");
	tap_int(kt_count_processes("sleep 7771"), 1, "with its background work");

	start(&s);
	run(&s, "cat /tmp/mark");
	tap_str(r.text, "kept\n", "the next keeper runs a command in it");
	tap_ok(!(r.done.flags & API_CREATED), "and did not make it");
	tap_int(r.done.lost, 1, "the command in flight is reported lost");
	tap_int(init_pid(), init, "pid 1 is the same");
	tap_int(count_soon("sleep 7772", 0), 0, "what was in flight is dead");
	tap_int(kt_count_processes("sleep 7771"), 1, "the background work is not");
	run(&s, "cat /output/*.log | grep -c begun");
	tap_str(r.text, "1\n", "what it wrote is in /output");
	tap_int(r.done.lost, 0, "and it is reported once");
	reply_close(&r);
	kt_exec(s.sock, KEY, "sleep 7773", second, &r);
	tap_ok(r.done.exit_code == 124 && count_soon("sleep 7773", 0) == 0, "timeouts hold");
	tap_int(r.done.flags & API_RECYCLED, 0, "and end only their command");
	(void)kill(init, SIGKILL);
	tap_int(count_soon("sleep 7771", 0), 0, "an adopted pid 1 is killed");
	wait_gone();
	run(&s, "cat /workspace/mark /tmp/mark 2>&1");
	tap_ok(r.done.flags & API_CREATED, "the keeper has noticed: another sandbox");
	tap_str(r.text, "kept\ncat: /tmp/mark: No such file or directory\n", "with the files only");
	tap_int(end_with(&s, SIGKILL), 137, "the keeper is killed");
}

static void test_left(void)
{
	struct service s;
	pid_t init;

	start(&s);
	init = occupy(&s);
	kt_exec_send(s.sock, 1, KEY, "sleep 7774", 10, plain);
	tap_ok(appears("sleep 7774"), "a command in flight");
	tap_int(end_with(&s, SIGTERM), 0, "SIGTERM: the keeper leaves");
	tap_ok(init_pid() == init, "and its sandbox stays");
	tap_int(kt_count_processes("sleep 7771"), 1, "with its background work");
	tap_int(count_soon("sleep 7774", 0), 0, "what it cannot watch any more is dead");
	start(&s);
	tap_int(end_with(&s, SIGKILL), 137, "one that is killed before it could tell");
	start(&s);
	run(&s, "cat /tmp/mark");
	tap_ok(strcmp(r.text, "kept\n") == 0 && init_pid() == init, "taken over twice");
	tap_int(r.done.lost, 1, "the loss is told by whoever is asked first");
	tap_int(end_with(&s, SIGKILL), 137, "the keeper is killed");
}

/* The new front's socket, after the old one was closed. */
static void change_front(struct service *s)
{
	char byte;
	size_t count = 1;
	int fd = -1;

	close_fd(&s->sock);
	if (fd_recv_msg(s->backdoor, &byte, 1, &fd, &count) != 1 || count != 1)
		tap_bail("no new front");
	s->sock = fd;
	take_hello(s);
}

static void test_front(void)
{
	struct service s;
	pid_t init;

	start(&s);
	init = occupy(&s);
	kt_exec_send(s.sock, 1, KEY, "sleep 0.7; echo whole >/workspace/whole", 39, plain);
	kt_exec_send(s.sock, 2, KEY, "sleep 7775", 10, plain);
	tap_ok(appears("sleep 7775"), "two commands run");
	change_front(&s);
	tap_int(s.hello.start_failure.code, ERR_NONE, "the front dies, another is started");
	run(&s, "cat /tmp/mark");
	tap_ok(strcmp(r.text, "kept\n") == 0 && init_pid() == init, "in the same sandbox");
	kt_sleep_ms(1000);
	run(&s, "cat /workspace/whole");
	tap_str(r.text, "whole\n", "a command of the first front has run to its end");
	tap_int(r.done.unanswered, 1, "which is told");
	tap_int(kt_count_processes("sleep 7775"), 1, "the other one goes on");
	change_front(&s);
	change_front(&s);
	tap_int(s.hello.start_failure.code, ERR_NONE, "fronts that die at once are replaced, too");
	tap_int(end_with(&s, SIGKILL), 137, "the keeper is killed");
	start(&s);
	run(&s, "true");
	tap_int(r.done.lost, 1, "what had no front any more is not lost silently either");
	tap_int(end_with(&s, SIGKILL), 137, "the keeper is killed");
}

/* ---- the keeper executes itself ---- */

/* What the kernel says of the start of a process's stack tells one execution from another. */
static uint64_t start_of_stack(pid_t pid)
{
	enum { FIELDS_AFTER_NAME = 26 };
	char path[32], text[1024], *field;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	field = strrchr(text, ')');
	for (int i = 0; field && i < FIELDS_AFTER_NAME; i++)
		field = strchr(field + 1, ' ');
	return field ? strtoull(field + 1, NULL, 10) : 0;
}

static void check_answers(struct service *s, uint64_t begin)
{
	reply_close(&r);
	kt_expect(s->sock, &r);
	tap_ok(r.h.id == 1 && r.h.op == API_EXEC_DONE, "a command from before is answered");
	tap_int(r.done.exit_code, 7, "with its exit status");
	tap_str(r.text, "early\nend\n", "and all of its output");
	reply_close(&r);
	kt_expect(s->sock, &r);
	tap_ok(r.h.id == 2 && r.done.exit_code == 124 && (r.done.flags & API_TIMED_OUT),
	       "another one ends with its timeout");
	tap_ok(kt_now_ms() - begin < 6000, "counted from its start");
	tap_int(count_soon("sleep 7778", 0), 0, "with all its processes");
}

static void test_renewed(void)
{
	struct exec_options timed = { .timeout_ms = 3000 };
	struct service s;
	uint64_t begin, stack;
	unsigned int older;
	pid_t init;

	start(&s);
	init = occupy(&s);
	run(&s, "(sleep 1; echo late; echo survived >/workspace/late) & echo started");
	kt_exec_send(s.sock, 1, KEY, "echo early; sleep 2; echo end; exit 7", 37, plain);
	begin = kt_now_ms();
	kt_exec_send(s.sock, 2, KEY, "sleep 7778", 10, timed);
	tap_ok(appears("sleep 7778"), "commands in flight");
	older = kt_count_processes("sleep 7771"); /* all of them have got there by now */
	stack = start_of_stack(s.pid);
	(void)kill(s.pid, SIGUSR2);
	for (int i = 0; i < 100 && stack == start_of_stack(s.pid); i++)
		kt_sleep_ms(10);
	/* where that is hidden from us (an ordinary user's keeper), it is always 0 */
	tap_ok(stack == 0 || stack != start_of_stack(s.pid), "the keeper has executed itself");
	run(&s, "cat /tmp/mark");
	tap_ok(strcmp(r.text, "kept\n") == 0 && init_pid() == init && !(r.done.flags & API_CREATED),
	       "the same sandbox, the same front");
	tap_int(r.done.lost, 0, "nothing is lost");
	check_answers(&s, begin);
	run(&s, "cat /workspace/late");
	tap_str(r.text, "survived\n", "background work still had a reader");
	tap_int(kt_count_processes("sleep 7771"), older, "the older one goes on");
	tap_int(end_with(&s, SIGKILL), 137, "the keeper is killed");
}

static void test_two_services(void)
{
	struct service one, two;
	char want[80];

	start(&one);
	start_in(&two, "keeper");
	(void)snprintf(want, sizeof(want), "SANDBOX_HOME is served by process %d already", one.pid);
	tap_int(two.hello.start_failure.code, ERR_BUSY, "a second service on one SANDBOX_HOME is refused");
	tap_str(two.hello.start_failure.message, want, "in words");
	tap_int(end_with(&two, SIGTERM), 0, "it ends");
	run(&one, "cat /tmp/mark");
	tap_str(r.text, "kept\n", "the first one is not disturbed");
	tap_int(end_with(&one, SIGKILL), 137, "the keeper is killed");
}

/* ---- records that must not be believed ---- */

static pid_t bystander;

static void forge_nothing(struct cgroup_record *rec) { (void)rec; }
static void forge_time(struct cgroup_record *rec) { rec->init_start_time++; }
static void forge_boot(struct cgroup_record *rec) { rec->boot_id[0] ^= 1; }
static void forge_base(struct cgroup_record *rec) { rec->id_base += ID_BLOCK; }
static void forge_profile(struct cgroup_record *rec) { (void)str_copy(rec->profile, sizeof(rec->profile), "chat"); }
static void forge_image(struct cgroup_record *rec) { (void)str_copy(rec->image, sizeof(rec->image), "other"); }
static void forge_net(struct cgroup_record *rec) { rec->net = NET_INTERNET; }
static void forge_trust(struct cgroup_record *rec) { rec->trust = 1; }
static void forge_dead(struct cgroup_record *rec) { rec->init_pid = 4194303; }

static void forge_pid(struct cgroup_record *rec)
{
	rec->init_pid = bystander;
	rec->init_start_time = proc_start_time(bystander);
}

static const struct forgery {
	const char *desc;
	void (*forge)(struct cgroup_record *rec);
	bool kept;
} forgeries[] = {
	{ "the same again", forge_nothing, true },
	{ "another start time: the number was used again", forge_time, false },
	{ "another boot", forge_boot, false },
	{ "another id range", forge_base, false },
	{ "another profile", forge_profile, false },
	{ "another image", forge_image, false },
	{ "another network", forge_net, false },
	{ "other certificates", forge_trust, false },
	{ "a process that is not there", forge_dead, false },
	{ "a process that is elsewhere", forge_pid, false },
};

static void forge(const struct forgery *f)
{
	struct cgroup_box box = { .dir_fd = open_box() };
	struct cgroup_record rec;

	if (box.dir_fd < 0 || cgroup_record_read(box.dir_fd, &rec) != 1)
		tap_bail("no record");
	f->forge(&rec);
	if (cgroup_record_write(&box, &rec) < 0)
		tap_bail("write the record");
	close_fd(&box.dir_fd);
}

static void check_refused(struct service *s, pid_t init, const char *desc)
{
	tap_ok(init_pid() != init, "%s: its sandbox is gone", desc);
	tap_int(count_soon("sleep 7771", 0), 0, "%s: so is its background work", desc);
	run(s, "cat /workspace/mark");
	tap_ok(r.done.flags & API_CREATED, "%s: another one is made", desc);
	tap_str(r.text, "kept\n", "%s: files stay", desc);
}

static void test_forged(const struct forgery *f)
{
	struct service s;
	pid_t init;

	start(&s);
	init = occupy(&s);
	(void)end_with(&s, SIGKILL);
	forge(f);
	start(&s);
	if (!f->kept) {
		check_refused(&s, init, f->desc);
	} else {
		run(&s, "cat /tmp/mark");
		tap_ok(strcmp(r.text, "kept\n") == 0 && init_pid() == init, "%s: is believed", f->desc);
	}
	(void)end_with(&s, SIGKILL);
}

static void damage(bool remove)
{
	_cleanup_fd_ int fd = open_box();
	unsigned char bytes[512];
	ssize_t len = fgetxattr(fd, RECORD_NAME, bytes, sizeof(bytes));

	if (len <= 0)
		tap_bail("no record");
	bytes[len / 2] ^= 1;
	if ((remove ? fremovexattr(fd, RECORD_NAME) : fsetxattr(fd, RECORD_NAME, bytes, (size_t)len, 0)) < 0)
		tap_bail("change the record");
}

/* Its commands in flight are lost as well, and there is no sandbox to ask. */
static void test_damaged(bool remove)
{
	const char *desc = remove ? "no record" : "a damaged record";
	struct service s;
	pid_t init;

	start(&s);
	init = occupy(&s);
	kt_exec_send(s.sock, 1, KEY, "sleep 7776", 10, plain);
	tap_ok(appears("sleep 7776"), "%s: a command in flight", desc);
	(void)end_with(&s, SIGKILL);
	damage(remove);
	start(&s);
	check_refused(&s, init, desc);
	tap_int(r.done.lost, 1, "%s: what was in flight is reported", desc);
	(void)end_with(&s, SIGKILL);
}

static void forge_untold(struct cgroup_record *rec)
{
	forge_image(rec);
	rec->unanswered = 2;
}

/* Nor does it matter how many keepers ago they were. */
static void test_untold(void)
{
	static const struct forgery f = { "refused by the third keeper", forge_untold, false };
	struct service s;
	pid_t init;

	start(&s);
	init = occupy(&s);
	kt_exec_send(s.sock, 1, KEY, "sleep 7779", 10, plain);
	tap_ok(appears("sleep 7779"), "a command in flight");
	(void)end_with(&s, SIGKILL);
	start(&s);
	tap_int(init_pid(), init, "taken over by a keeper that is killed before it could tell");
	(void)end_with(&s, SIGKILL);
	forge(&f);
	start(&s);
	check_refused(&s, init, f.desc);
	tap_int(r.done.lost, 1, "%s: the first one's loss is told", f.desc);
	tap_int(r.done.unanswered, 2, "%s: so is what had no taker", f.desc);
	run(&s, "true");
	tap_ok(r.done.lost == 0 && r.done.unanswered == 0, "%s: once", f.desc);
	(void)end_with(&s, SIGKILL);
}

/* A keeper that was not shown where the sandboxes are has a storage namespace beside theirs. */
static void test_foreign_storage(void)
{
	struct service s;
	pid_t init;

	if (getuid() == 0)
		return;
	start(&s);
	init = occupy(&s);
	(void)end_with(&s, SIGKILL);
	start_in(&s, "fresh");
	check_refused(&s, init, "a sandbox of another storage namespace");
	(void)end_with(&s, SIGKILL);
}

/* ---- the whole ---- */

static void find_tree(void)
{
	static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	const char *given = getenv("MCPT_CGROUP");
	char path[64];

	if (given)
		(void)snprintf(tree, sizeof(tree), "%s", given);
	for (size_t i = 0; tree[0] == '\0' && i < ARRAY_SIZE(roots); i++) {
		(void)snprintf(path, sizeof(path), "%s/cgroup.controllers", roots[i]);
		if (access(path, F_OK) == 0 && access(roots[i], W_OK) == 0)
			(void)snprintf(tree, sizeof(tree), "%s/mcpt-adopt-%d", roots[i], getpid());
	}
}

static void orchestrate(void)
{
	tap_int(await(run_mode("make", -1, -1)), 0, "a state directory with an image");
	test_killed();
	test_left();
	test_front();
	test_renewed();
	test_two_services();
	for (size_t i = 0; i < ARRAY_SIZE(forgeries); i++)
		test_forged(&forgeries[i]);
	test_damaged(false);
	test_damaged(true);
	test_untold();
	test_foreign_storage();
}

/* "clean" sweeps the tree on its way; the host's pid 1 may need a moment to reap what was in it. */
static void stop_all(void)
{
	char path[192];

	(void)snprintf(path, sizeof(path), "%s/" OWNER_DEFAULT "/cgroup.kill", tree);
	(void)kt_shell("[ ! -e \"$1\" ] || echo 1 >\"$1\"", path, "");
	(void)snprintf(path, sizeof(path), "%s/" OWNER_DEFAULT, tree);
	for (int i = 0; i < 100 && access(path, F_OK) == 0; i++) {
		(void)await(run_mode("clean", -1, -1));
		kt_sleep_ms(50);
	}
}

int main(int argc, char **argv)
{
	if (argc == 4)
		return in_mode(argv);
	find_tree();
	if (tree[0] == '\0')
		return tap_skip_all("no cgroup v2 that may be written to");
	(void)str_copy(home, sizeof(home), "/var/tmp/mcpt-adopt-XXXXXX");
	bystander = fork();
	if (bystander == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)pause();
		_exit(0);
	}
	if (bystander < 0 || !mkdtemp(home))
		tap_bail("prepare");
	(void)signal(SIGPIPE, SIG_IGN);
	orchestrate();
	stop_all();
	(void)kill(bystander, SIGKILL);
	(void)rmdir(home);
	if (!getenv("MCPT_CGROUP") &&
	    kt_shell("rmdir -- \"$1\"/keeper \"$1\" 2>/dev/null || rmdir -- \"$1\"", tree, "") != 0)
		tap_diag("cannot remove %s", tree);
	return tap_done();
}
