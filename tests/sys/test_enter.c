/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sys/test_enter.c - a command started by enter_start_joiner() has exactly what it should
 * have */
#include <signal.h>
#include <sys/mman.h>

#include "tests/sys/cell.h"
#include "tests/sys/enter_probe.h"
#include "tests/unit/tap.h"

/* The rest of the first line that begins with key and a blank. Return: ret, NULL when there is
 * none. */
static char *line_of(const char *text, const char *key, char *ret, size_t size)
{
	size_t key_len = strlen(key);

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		if (*line == '\n')
			line++;
		if (strncmp(line, key, key_len) != 0 || line[key_len] != ' ')
			continue;
		size_t len = strcspn(line + key_len + 1, "\n");
		if (len >= size)
			return NULL;
		memcpy(ret, line + key_len + 1, len);
		ret[len] = '\0';
		return ret;
	}
	return NULL;
}

#define tap_line(text, key, want, ...)                                                             \
	({                                                                                         \
		char _line[8192];                                                                  \
		tap_str(line_of(text, key, _line, sizeof(_line)), want, __VA_ARGS__);              \
	})

static void test_protocol(const struct cell *cell)
{
	struct cell_run run;

	tap_ok(cell_sh(cell, "exit 42", &run) == 0, "a command starts");
	tap_int(run.pid_messages, 1, "one ENTER_PID");
	tap_int(run.failed_messages, 0, "no ENTER_FAILED");
	tap_ok(run.status_eof, "then end of file");
	tap_ok(WIFEXITED(run.wait_status) && WEXITSTATUS(run.wait_status) == 42,
	       "ENTER_PID names our own child, whose exit status we get");
	tap_ok(run.pid != run.joiner, "which is not the joiner");

	tap_ok(cell_sh(cell, "echo out; echo err >&2", &run) == 0, "a command writes");
	tap_str(run.output, "out\nerr\n", "standard output and error in order");
	tap_ok(cell_sh(cell, "kill -TERM $$", &run) == 0 && WIFSIGNALED(run.wait_status) &&
		       WTERMSIG(run.wait_status) == SIGTERM,
	       "a signal's death is seen as one");
}

/* A Cap*, id or filter line of the command is the same as pid 1's. */
static void test_identity(const struct cell *cell, const char *out)
{
	static const char *const keys[] = {
		"Uid:",	   "Gid:",    "Groups:",     "CapInh:",	 "CapPrm:",	     "CapEff:",
		"CapBnd:", "CapAmb:", "NoNewPrivs:", "Seccomp:", "Seccomp_filters:", "SigIgn:"};
	char self[64], init[64], self_line[256], init_line[256];

	(void)cell;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		(void)snprintf(self, sizeof(self), "self %s", keys[i]);
		(void)snprintf(init, sizeof(init), "init %s", keys[i]);
		const char *s = strstr(out, self), *n = strstr(out, init);
		if (!tap_ok(s && n, "%s is in both status files", keys[i]))
			continue;
		(void)snprintf(self_line, sizeof(self_line), "%.*s", (int)strcspn(s + 5, "\n"),
			       s + 5);
		(void)snprintf(init_line, sizeof(init_line), "%.*s", (int)strcspn(n + 5, "\n"),
			       n + 5);
		/* The cell's pid 1 ignores SIGCHLD, a command ignores nothing. */
		if (strcmp(keys[i], "SigIgn:") != 0)
			tap_str(self_line, init_line, "%s is pid 1's", keys[i]);
	}
	tap_ok(strstr(out, "self CapEff:\t00000000800000fb\n") != NULL, "effective capabilities");
	tap_ok(strstr(out, "self CapPrm:\t00000000800000fb\n") != NULL, "permitted capabilities");
	tap_ok(strstr(out, "self CapBnd:\t00000000800000fb\n") != NULL, "bounding set");
	tap_ok(strstr(out, "self CapInh:\t0000000000000000\n") != NULL, "nothing inheritable");
	tap_ok(strstr(out, "self CapAmb:\t0000000000000000\n") != NULL, "nothing ambient");
	tap_ok(strstr(out, "self NoNewPrivs:\t1\n") != NULL, "no_new_privs");
	tap_ok(strstr(out, "self Seccomp:\t2\n") != NULL, "a filter");
	tap_ok(strstr(out, "self Seccomp_filters:\t1\n") != NULL, "one filter");
	tap_ok(strstr(out, "self SigIgn:\t0000000000000000\n") != NULL, "no signal ignored");
	tap_ok(strstr(out, "self SigBlk:\t0000000000000000\n") != NULL, "no signal blocked");
	tap_ok(strstr(out, "self Uid:\t0\t0\t0\t0\n") != NULL, "user 0");
	tap_ok(strstr(out, "self Groups:\t \n") != NULL, "no supplementary group");
}

static void test_limits(const char *out)
{
	tap_line(out, "limit-core", "0 0", "no core dumps");
	tap_line(out, "limit-sigpending", "4096 4096", "pending signals");
	tap_line(out, "limit-msgqueue", "819200 819200", "message queues");
	tap_line(out, "limit-memlock", "8388608 8388608", "locked memory");
	tap_line(out, "limit-rtprio", "0 0", "no real-time priority");
	tap_line(out, "limit-nice", "0 0", "no negative nice value");
	char line[64];
	long long soft = -1, hard = -1;
	tap_ok(line_of(out, "limit-nofile", line, sizeof(line)) &&
		       sscanf(line, "%lld %lld", &soft, &hard) == 2 && soft <= 1024 &&
		       hard <= 65536,
	       "open files: %lld of at most %lld", soft, hard);
}

static void test_probe(const struct cell *cell)
{
	char *argv[] = {cell_text(cell->self), cell_text("probe"), cell_text("an argument"), NULL};
	struct enter_command cmd = cell_command(cell, argv);
	struct cell_run run;

	tap_ok(cell_run(cell, &cmd, &run) == 0 && run.failed_messages == 0, "the probe runs");
	tap_line(run.output, "fds", "0 1 2", "descriptors 0, 1, 2 and no other");
	tap_line(run.output, "argc", "3 an argument", "arguments arrive");
	tap_line(run.output, "cwd", "/", "working directory");
	tap_line(run.output, "umask", "022", "umask");
	tap_line(run.output, "session", "1", "its own session and process group");
	tap_line(run.output, "securebits", "0", "securebits");
	tap_line(run.output, "env",
		 "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		 "environment as given");
	test_limits(run.output);
	test_identity(cell, run.output);
	if (cell->cgroup[0])
		tap_ok(strstr(run.output, "cgroup 0::/\n") != NULL,
		       "the leaf is the root of its cgroup namespace");
	else
		tap_ok(true, "cgroup # SKIP no cgroup v2 directory to use");
}

static void test_script(const struct cell *cell)
{
	char *argv[] = {cell_text(cell->self), cell_text("probe"), NULL};
	struct enter_command cmd = cell_command(cell, argv);
	struct cell_run run;
	_cleanup_fd_ int script = fd_memfd_sealed("command", "hello", 5, 0444, false);

	cmd.script_fd = script;
	tap_ok(script >= 0 && cell_run(cell, &cmd, &run) == 0, "a command with a script");
	tap_line(run.output, "fds", "0 1 2 3", "descriptors 0, 1, 2 and the script's");
	tap_line(run.output, "script", "hello", "it can be read as /proc/self/fd/3");
}

/* The keeper may hold the pipes under any numbers, the slots' own included, in any order. */
static void test_descriptor_numbers(const struct cell *cell)
{
	char *argv[] = {cell_text(cell->self), cell_text("probe"), NULL};
	struct cell_run run;
	pid_t child;
	int wait_status;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		/* Everything from 0 on is free; every number below 40 gets used. */
		struct enter_command cmd = cell_command(cell, argv);
		int pidfd = fcntl(cell->init_pidfd, F_DUPFD_CLOEXEC, 100);
		int leaf = cell->leaf_fd < 0 ? -1 : fcntl(cell->leaf_fd, F_DUPFD_CLOEXEC, 100);
		int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		int memory = fd_memfd_sealed("command", "hello", 5, 0444, false);
		(void)fcntl(null_fd, F_DUPFD_CLOEXEC, 101);
		int script = fcntl(memory, F_DUPFD_CLOEXEC, 102);

		(void)syscall(SYS_close_range, 0, 99, 0);
		cmd.leaf_fd = leaf < 0 ? -1 : fcntl(leaf, F_DUPFD_CLOEXEC, 0); /* 0 */
		cmd.script_fd = fcntl(script, F_DUPFD_CLOEXEC, 0);	       /* 0 or 1 */
		cmd.init_pidfd = fcntl(pidfd, F_DUPFD_CLOEXEC, 0);	       /* 1 or 2 */
		for (int i = 0; i < 500; i++)
			(void)fcntl(pidfd, F_DUPFD, 200); /* not close-on-exec, on purpose */
		if (cell_run(cell, &cmd, &run) != 0)	  /* the pipes get 3 to 7 */
			_exit(1);
		char line[64];
		bool ok = run.failed_messages == 0 &&
			  line_of(run.output, "fds", line, sizeof(line)) &&
			  strcmp(line, "0 1 2 3") == 0 &&
			  line_of(run.output, "script", line, sizeof(line)) &&
			  strcmp(line, "hello") == 0;
		_exit(ok ? 0 : 2);
	}
	tap_ok(child > 0 && waitpid(child, &wait_status, 0) == child && wait_status == 0,
	       "descriptors that lie on each other's places, among 500 inheritable ones");
}

/* What the keeper's starter ignored or blocked does not reach a command. */
static void test_signals(const struct cell *cell)
{
	static const int ignored[] = {SIGPIPE, SIGHUP, SIGINT, SIGQUIT, SIGCHLD, SIGUSR1};
	char *argv[] = {cell_text(cell->self), cell_text("probe"), NULL};
	struct enter_command cmd = cell_command(cell, argv);
	struct cell_run run;
	sigset_t all, before, after;

	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++) {
		if (ignored[i] != SIGCHLD) /* it would lose us the wait status */
			(void)signal(ignored[i], SIG_IGN);
	}
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	tap_ok(cell_run(cell, &cmd, &run) == 0,
	       "a command of a keeper that ignores and blocks signals");
	(void)sigprocmask(SIG_SETMASK, &before, &after);
	tap_ok(sigismember(&after, SIGTERM) == 1, "the keeper's own mask is as it was");
	tap_ok(strstr(run.output, "self SigIgn:\t0000000000000000\n") != NULL, "it ignores none");
	tap_ok(strstr(run.output, "self SigBlk:\t0000000000000000\n") != NULL, "it blocks none");
	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		(void)signal(ignored[i], SIG_DFL);
}

static void test_other_user(const struct cell *cell)
{
	char *argv[] = {cell_text(cell->self), cell_text("probe"), NULL};
	struct enter_command cmd = cell_command(cell, argv);
	struct cell_run run;

	cmd.uid = 1000;
	cmd.gid = 1001;
	tap_ok(cell_run(cell, &cmd, &run) == 0 && run.failed_messages == 0,
	       "a command as user 1000");
	tap_ok(strstr(run.output, "self Uid:\t1000\t1000\t1000\t1000\n") != NULL, "its user");
	tap_ok(strstr(run.output, "self Gid:\t1001\t1001\t1001\t1001\n") != NULL, "its group");
	tap_ok(strstr(run.output, "self CapEff:\t0000000000000000\n") != NULL, "no capability");
	tap_ok(strstr(run.output, "self CapPrm:\t0000000000000000\n") != NULL, "none to take back");

	cmd.uid = 60001; /* not mapped */
	tap_ok(cell_run(cell, &cmd, &run) == 0, "a command as a user who does not exist inside");
	tap_int(run.failed.stage, ENTER_IDS, "stops at the ids");
	tap_int(run.failed.error, EINVAL, "with EINVAL");
}

/* M 19: > /dev/stderr opens the pipe anew, with the rights of whoever does it. */
static void test_open_by_name(const struct cell *cell)
{
	static const char script[] =
		"for f in /dev/stdout /dev/stderr /proc/self/fd/2; do echo $1 $f > $f; done";
	static const uint32_t users[] = {0, 65534, 1000};
	char *argv[] = {cell_text("/bin/sh"), cell_text("-c"), cell_text(script),
			cell_text("sh"),      cell_text("x"),  NULL};
	struct enter_command cmd = cell_command(cell, argv);
	struct cell_run run;

	for (size_t i = 0; i < ARRAY_SIZE(users); i++) {
		cmd = cell_command(cell, argv);
		cmd.uid = cmd.gid = users[i];
		tap_ok(cell_run(cell, &cmd, &run) == 0, "a command that opens its output, user %u",
		       users[i]);
		tap_str(run.output, "x /dev/stdout\nx /dev/stderr\nx /proc/self/fd/2\n",
			"all three names work for user %u", users[i]);
	}
}

enum { MAX_ARGUMENT = 128 * 1024 }; /* MAX_ARG_STRLEN, with its NUL one too long */

struct failure_row {
	const char *desc, *cwd, *program;
	uint32_t stage;
	int32_t error;
};

static void test_failures(const struct cell *cell)
{
	static const struct failure_row rows[] = {
		{"no such program", "/", "/no/such", ENTER_EXEC, ENOENT},
		{"a program that is a directory", "/", "/usr", ENTER_EXEC, EACCES},
		{"a program that is not one", "/", "/etc/passwd", ENTER_EXEC, EACCES},
		{"no such directory", "/no/such", "/bin/true", ENTER_CWD, ENOENT},
		{"a file as directory", "/etc/passwd", "/bin/true", ENTER_CWD, ENOTDIR},
		{"an empty directory name", "", "/bin/true", ENTER_CWD, ENOENT},
		{"pid 1's directory", "/proc/1/cwd", "/bin/true", ENTER_CWD, EACCES},
		{"pid 1's root and up", "/proc/1/root/../..", "/bin/true", ENTER_CWD, EACCES},
		{"own root by magic link", "/proc/self/root/../..", "/bin/true", ENTER_CWD, ELOOP},
	};
	struct cell_run run;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *argv[] = {cell_text(rows[i].program), NULL};
		struct enter_command cmd = cell_command(cell, argv);
		cmd.cwd = rows[i].cwd;
		tap_ok(cell_run(cell, &cmd, &run) == 0 && run.status_eof, "%s", rows[i].desc);
		tap_int(run.failed_messages, 1, "one ENTER_FAILED");
		tap_int(run.failed.stage, rows[i].stage, "at the step: %s",
			enter_stage_text(rows[i].stage));
		tap_int(run.failed.error, rows[i].error, "with %s", strerror(rows[i].error));
		tap_ok(run.pid > 0 && run.pid_messages == 1 && WIFEXITED(run.wait_status),
		       "its process is known and gone");
		tap_str(run.output, "", "nothing written");
	}
}

/* CVE-2019-5736: the interpreter of this script is whatever program we are when it is executed.
 * That is the joiner, which is nobody's file, and does nothing for who is inside already. */
static void test_self_interpreter(const struct cell *cell)
{
	char script[96];
	struct cell_run run;

	(void)snprintf(script, sizeof(script), "%s/script", cell->dir);
	_cleanup_fd_ int fd = open(script, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (!tap_ok(fd >= 0 && write(fd, "#!/proc/self/exe\n", 17) == 17,
		    "a script that asks for us"))
		return;
	close_fd(&fd);

	char *direct[] = {script,	   cell_text("0 0 0 0"),
			  cell_text("/"),  cell_text("/bin/echo"),
			  cell_text("no"), NULL};
	struct enter_command cmd = cell_command(cell, direct);
	tap_ok(cell_run(cell, &cmd, &run) == 0 && run.failed_messages == 0,
	       "is executed by the joiner's program");
	tap_ok(WIFEXITED(run.wait_status) && WEXITSTATUS(run.wait_status) == 125, "which refuses");
	tap_str(run.output, "", "and runs nothing");
	(void)unlink(script);
}

/* CVE-2024-21626: no number names a directory of the host, or anything at all. */
static void test_descriptor_paths(const struct cell *cell)
{
	char *argv[] = {cell_text("/bin/true"), NULL};
	unsigned int refused = 0;
	char cwd[64];
	struct cell_run run;
	_cleanup_fd_ int host = open("/", O_RDONLY | O_DIRECTORY); /* inheritable, on purpose */

	for (int fd = 0; fd < 64; fd++) {
		struct enter_command cmd = cell_command(cell, argv);
		(void)snprintf(cwd, sizeof(cwd), "/proc/self/fd/%d", fd);
		cmd.cwd = cwd;
		if (cell_run(cell, &cmd, &run) == 0 && run.failed_messages == 1 &&
		    run.failed.stage == ENTER_CWD)
			refused++;
	}
	tap_int(refused, 64, "/proc/self/fd/0..63 refused as working directory");
}

static void test_bad_parts(const struct cell *cell)
{
	char *argv[] = {cell_text("/bin/true"), NULL};
	struct sock_filter nonsense = {0xffff, 0, 0, 0};
	struct sock_fprog bad_program = {1, &nonsense};
	struct enter_rights bad_rights = cell->rights;
	struct enter_command cmd = cell_command(cell, argv);
	struct cell_run run;
	_cleanup_fd_ int directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	cmd.init_pidfd = directory;
	tap_ok(cell_run(cell, &cmd, &run) == 0, "no pidfd");
	tap_int(run.failed.stage, ENTER_JOIN, "fails when joining");
	tap_int(run.pid_messages, 0, "and there is no process");

	cmd = cell_command(cell, argv);
	cmd.leaf_fd = directory;
	tap_ok(cell_run(cell, &cmd, &run) == 0, "a leaf that is no cgroup");
	tap_int(run.failed.stage, ENTER_CLONE, "fails when cloning");
	tap_int(run.failed.error, EBADF, "with EBADF");

	bad_rights.seccomp = &bad_program;
	cmd = cell_command(cell, argv);
	cmd.rights = &bad_rights;
	tap_ok(cell_run(cell, &cmd, &run) == 0, "a filter the kernel refuses");
	tap_int(run.failed.stage, ENTER_SECCOMP, "fails when loading it, never runs without");
	tap_int(run.failed.error, EINVAL, "with EINVAL");

	bad_rights = cell->rights;
	bad_rights.caps.header.version = 0;
	cmd = cell_command(cell, argv);
	cmd.rights = &bad_rights;
	tap_ok(cell_run(cell, &cmd, &run) == 0, "capability sets the kernel refuses");
	tap_int(run.failed.stage, ENTER_CAPS, "fails at the capabilities");

	char *big = malloc(MAX_ARGUMENT + 1);
	char *big_argv[] = {cell_text("/bin/true"), big, NULL};
	if (big) {
		memset(big, 'x', MAX_ARGUMENT);
		big[MAX_ARGUMENT] = '\0';
	}
	cmd = cell_command(cell, big_argv);
	tap_ok(cell_run(cell, &cmd, &run) == 0, "an argument of 128 KiB");
	tap_int(run.failed.stage, ENTER_EXEC, "is the program's failure, wherever it is noticed");
	tap_int(run.failed.error, E2BIG, "with E2BIG");
	free(big);

	cmd = cell_command(cell, argv);
	cmd.script_fd = 4000;
	tap_ok(cell_run(cell, &cmd, &run) == 0, "a script descriptor that is not open");
	tap_int(run.failed.stage, ENTER_STDIO, "fails at the descriptors");
}

static void test_no_cgroup(void)
{
	struct cell_options opt = {.no_cgroup = true};
	struct cell cell;
	struct cell_run run;

	if (!tap_ok(cell_open(&cell, &opt) == 0, "a sandbox without any cgroup"))
		return;
	tap_ok(cell_sh(&cell, "exit 7", &run) == 0 && WEXITSTATUS(run.wait_status) == 7,
	       "runs commands too");
	cell_close(&cell);
}

/* E 4: a pidfd cannot name somebody else later. */
static void test_dead(void)
{
	struct cell cell;
	struct cell_run run;
	char *argv[] = {cell_text("/bin/true"), NULL};

	if (!tap_ok(cell_open(&cell, NULL) == 0, "a sandbox"))
		return;
	(void)sys_pidfd_send_signal(cell.init_pidfd, SIGKILL);
	struct pollfd dead = {.fd = cell.init_pidfd, .events = POLLIN};
	(void)poll(&dead, 1, 5000);
	struct enter_command cmd = cell_command(&cell, argv);
	tap_ok(cell_run(&cell, &cmd, &run) == 0, "whose pid 1 is dead");
	tap_int(run.failed.stage, ENTER_JOIN, "cannot be joined");
	/* EPERM where the kernel takes a process without memory for one that is not dumpable. */
	tap_ok(run.failed.error == ESRCH || run.failed.error == EPERM, "says so");
	(void)waitpid(cell.init, NULL, 0);
	cell.init = 0;
	tap_ok(cell_run(&cell, &cmd, &run) == 0 && run.failed.stage == ENTER_JOIN,
	       "the same after it was reaped");
	cell_close(&cell);
}

/* One command with every part, for tests/sys/trace-enter. */
static int run_for_trace(void)
{
	char *argv[] = {cell_text("/bin/true"), NULL};
	_cleanup_fd_ int script = fd_memfd_sealed("command", "hello", 5, 0444, false);
	_cleanup_fd_ int high = fcntl(script, F_DUPFD_CLOEXEC, 20);
	struct cell_run *run = calloc(1, sizeof(*run));
	struct cell cell;
	int rc = 1;

	/* Numbers above the slots, so that none has to be moved out of the way first. */
	for (int fd = high; fd >= 0 && fd < 30; fd = fcntl(high, F_DUPFD_CLOEXEC, 3))
		;
	if (run && high >= 0 && cell_open(&cell, NULL) == 0) {
		struct enter_command cmd = cell_command(&cell, argv);
		cmd.script_fd = high;
		rc = cell_run(&cell, &cmd, run) == 0 && run->wait_status == 0 ? 0 : 1;
		cell_close(&cell);
	}
	free(run);
	return rc;
}

int main(int argc, char **argv, char **envp)
{
	struct cell cell;
	struct err e;

	if (argc > 1 && strcmp(argv[1], "probe") == 0)
		return probe_main(argc, argv, envp);
	if (argc > 1 && strcmp(argv[1], "trace") == 0)
		return run_for_trace();
	if (userns_enter_storage(-1, "", argv, &e) < 0)
		tap_bail("%s; %s", e.message, e.remedy);
	if (cell_open(&cell, NULL) != 0) {
		cell_close(&cell);
		return tap_skip_all("cannot make namespaces and a cgroup here");
	}
	test_descriptor_numbers(
		&cell);	     /* first: in a child that knows none of enter.c's files yet */
	test_signals(&cell); /* next: what is ignored is asked once */
	test_protocol(&cell);
	test_probe(&cell);
	test_script(&cell);
	test_other_user(&cell);
	test_open_by_name(&cell);
	test_failures(&cell);
	test_descriptor_paths(&cell);
	test_self_interpreter(&cell);
	test_bad_parts(&cell);
	cell_close(&cell);
	test_no_cgroup();
	test_dead();
	return tap_done();
}
