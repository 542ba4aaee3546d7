/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sys/test_enter_hostile.c - processes inside attack commands that are just being started
 *
 * The attackers are this program again, executed inside. What they must not achieve: to hold up the
 * keeper, to lose it a process or a message, to read the memory, the environment or the descriptors
 * of the joiner's copy. That they try hard enough is shown by stopped commands and by a naive
 * joiner that they do rob.
 */
#include <dirent.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/uio.h>

#include "tests/sys/cell.h"
#include "tests/unit/tap.h"

enum {
	COMMANDS = 150,
	STUCK_MS = 150,
	PATIENCE_MS = 10000,
	KEEPER_BOUND_MS = 500,
	NAIVE_PAUSE_US = 30000
};

/* At this address in the keeper and in every copy of it. */
static char canary[64];

/* --- attackers, inside --- */

static _Noreturn void attack_signal(int sig)
{
	for (;;)
		(void)kill(-1, sig); /* everybody but pid 1 and the caller */
}

struct prey {
	uintptr_t address;
	char secret[64];
	unsigned long dev, ino; /* of the keeper's program */
};

static bool robs_memory(pid_t pid, const struct prey *prey)
{
	char got[sizeof(prey->secret)] = "";
	struct iovec here = {got, sizeof(got)};
	struct iovec there = {(void *)prey->address, sizeof(got)};
	char path[64];

	if (process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)sizeof(got) &&
	    strcmp(got, prey->secret) == 0)
		return true;
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 &&
	       pread(fd, got, sizeof(got), (off_t)prey->address) == (ssize_t)sizeof(got) &&
	       strcmp(got, prey->secret) == 0;
}

static bool robs_program(pid_t pid, const struct prey *prey)
{
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	return stat(path, &st) == 0 && st.st_dev == prey->dev && st.st_ino == prey->ino;
}

/* The keeper's environment, and its command line, which everybody may read of everybody. */
static bool robs_environment(pid_t pid)
{
	static const char *const files[] = {"environ", "cmdline"};
	char path[64], text[8192];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, files[i]);
		_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t got = fd < 0 ? -1 : fd_read_full(fd, text, sizeof(text) - 1);
		if (got > 0 && memmem(text, (size_t)got, "MCPT_CANARY", 11) != NULL)
			return true;
	}
	return false;
}

/* 4 is the status pipe's place, 5 pid 1's, 6 the leaf's; no program started here opens so many. */
static bool robs_descriptors(pid_t pid)
{
	char path[64], link[256];
	struct stat st;

	for (int fd = 4; fd < 8; fd++) {
		(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
		if (readlink(path, link, sizeof(link)) > 0 || stat(path, &st) == 0)
			return true;
	}
	return false;
}

/* Look at every process for ever; print a line for each success. */
static _Noreturn void attack_spy(char **argv)
{
	struct prey prey = {.address = strtoul(argv[2], NULL, 16),
			    .dev = strtoul(argv[4], NULL, 10),
			    .ino = strtoul(argv[5], NULL, 10)};

	(void)snprintf(prey.secret, sizeof(prey.secret), "%s", argv[3]);
	for (;;) {
		DIR *proc = opendir("/proc");
		struct dirent *d;
		while (proc && (d = readdir(proc)) != NULL) {
			pid_t pid = atoi(d->d_name);
			if (pid <= 1 || pid == getpid())
				continue;
			const char *what = robs_memory(pid, &prey)    ? "memory"
					   : robs_program(pid, &prey) ? "program"
					   : robs_environment(pid)    ? "environment"
					   : robs_descriptors(pid)    ? "descriptors"
								      : NULL;
			if (what && write(1, what, strlen(what)) > 0)
				(void)!write(1, "\n", 1);
		}
		if (proc)
			(void)closedir(proc);
	}
}

static int attack_keyring(void)
{
	long id = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user",
			  "mcpt-canary", 0);

	printf("%s\n", id >= 0 ? "found" : strerror(errno));
	return 0;
}

static int attack(char **argv)
{
	if (strcmp(argv[1], "stop") == 0)
		attack_signal(SIGSTOP);
	if (strcmp(argv[1], "kill") == 0)
		attack_signal(SIGKILL);
	if (strcmp(argv[1], "spy") == 0)
		attack_spy(argv);
	if (strcmp(argv[1], "keyring") == 0)
		return attack_keyring();
	return 2;
}

/* --- the keeper's side --- */

/* An attacker in the other leaf; its output goes to out_fd. */
static pid_t start_attacker(const struct cell *cell, char *const *argv, int out_fd)
{
	struct enter_command cmd = cell_command(cell, argv);
	struct cell_started s;
	struct cell_run *run = calloc(1, sizeof(*run));

	cmd.leaf_fd = cell->other_leaf_fd;
	cmd.stdout_fd = out_fd;
	cmd.stderr_fd = 2;
	if (!run || cell_start(cell, &cmd, run, &s) != 0)
		tap_bail("start an attacker");
	cell_status(run, s.status_fd, 10000);
	(void)close(s.status_fd);
	(void)close(s.output_fd);
	(void)waitpid(run->joiner, NULL, 0);
	pid_t pid = run->failed_messages == 0 && run->status_eof ? run->pid : -1;
	free(run);
	return pid;
}

static pid_t start_signaller(const struct cell *cell, const char *what)
{
	char *argv[] = {cell_text(cell->self), cell_text(what), NULL};

	return start_attacker(cell, argv, 1);
}

static void end_attacker(struct cell *cell, pid_t pid)
{
	cell_kill_leaf(cell, "exec-1");
	if (pid > 0)
		(void)waitpid(pid, NULL, __WALL);
	if (cell_renew_leaf(cell, "exec-1", &cell->other_leaf_fd) != 0)
		tap_bail("make the attacker's leaf anew");
}

struct tally {
	unsigned int stuck, ran, cancelled, killed, lost;
	uint64_t slowest_us;
};

/* One /bin/true under attack; at the deadline its leaf is killed, and then all must be known. */
static void one_command(struct cell *cell, struct cell_run *run, struct tally *t, int patience_ms)
{
	char *argv[] = {cell_text("/bin/true"), NULL};
	struct enter_command cmd = cell_command(cell, argv);
	struct cell_started s;
	unsigned int was_stuck = t->stuck;

	if (cell_start(cell, &cmd, run, &s) != 0)
		tap_bail("start a command");
	if (run->return_us > t->slowest_us)
		t->slowest_us = run->return_us;
	cell_status(run, s.status_fd, patience_ms);
	if (!run->status_eof) {
		t->stuck++;
		cell_kill_leaf(cell, "exec-0");
		cell_status(run, s.status_fd, 5000);
	}
	(void)close(s.status_fd);
	(void)close(s.output_fd);
	if (!run->status_eof || run->pid <= 0 || run->pid_messages != 1 ||
	    (run->pid_repeats && !run->failed_messages) || run->pid_repeats > 1)
		t->lost++;
	if (run->pid > 0)
		(void)kill(run->pid, SIGKILL); /* executed, and perhaps stopped now */
	(void)waitpid(run->joiner, NULL, 0);
	if (run->pid > 0 && waitpid(run->pid, &run->wait_status, __WALL) != run->pid)
		t->lost++;
	if (t->stuck > was_stuck && cell_renew_leaf(cell, "exec-0", &cell->leaf_fd) != 0)
		tap_bail("make the leaf anew");
	if (run->failed_messages && run->failed.error == ECANCELED)
		t->cancelled++;
	else if (run->failed_messages)
		t->lost++;
	else if (WIFSIGNALED(run->wait_status))
		t->killed++;
	else
		t->ran++;
}

static void report(const struct tally *t, const char *name)
{
	tap_diag("%s: %u stuck until their leaf was killed; %u cancelled, %u killed, %u ran; "
		 "slowest return %llu us",
		 name, t->stuck, t->cancelled, t->killed, t->ran,
		 (unsigned long long)t->slowest_us);
	tap_int(t->lost, 0, "%s: no process and no message lost", name);
	tap_ok(t->slowest_us < KEEPER_BOUND_MS * 1000, "%s: the keeper is never held up", name);
}

/* M 2: kill -STOP -1 for ever. */
static void test_stop(struct cell *cell)
{
	struct cell_run *run = calloc(1, sizeof(*run));
	struct tally t = {0};
	pid_t attacker = start_signaller(cell, "stop");

	tap_ok(attacker > 0, "stop everything: the attacker runs");
	for (int i = 0; run && i < COMMANDS / 3; i++)
		one_command(cell, run, &t, STUCK_MS);
	end_attacker(cell, attacker);
	report(&t, "stop everything");
	tap_ok(t.stuck > 0, "stop everything: commands were stopped before their exec");
	tap_ok(cell_sh(cell, "exit 3", run) == 0 && WEXITSTATUS(run->wait_status) == 3,
	       "stop everything: commands work again afterwards");
	free(run);
}

static void test_kill(struct cell *cell)
{
	struct cell_run *run = calloc(1, sizeof(*run));
	struct tally t = {0};
	pid_t attacker = start_signaller(cell, "kill");

	tap_ok(attacker > 0, "kill everything: the attacker runs");
	for (int i = 0; run && i < COMMANDS; i++)
		one_command(cell, run, &t, PATIENCE_MS);
	end_attacker(cell, attacker);
	report(&t, "kill everything");
	tap_int(t.stuck, 0, "kill everything: every start ended by itself");
	tap_ok(t.cancelled > 0, "kill everything: being killed before the exec is told apart");
	tap_ok(cell_sh(cell, "exit 3", run) == 0 && WEXITSTATUS(run->wait_status) == 3,
	       "kill everything: pid 1 is alive and commands work again");
	free(run);
}

static void wait_frozen(const struct cell *cell)
{
	char path[PATH_MAX + 32], text[256] = "";

	(void)snprintf(path, sizeof(path), "%s/cgroup.events", cell->cgroup);
	for (int i = 0; i < 2000 && !strstr(text, "frozen 1"); i++) {
		(void)usleep(1000);
		(void)cell_read(path, text, sizeof(text));
	}
	tap_ok(strstr(text, "frozen 1") != NULL, "frozen: the cgroup is");
}

static void test_frozen(struct cell *cell)
{
	char *argv[] = {cell_text("/bin/true"), NULL};
	struct enter_command cmd = cell_command(cell, argv);
	struct cell_run *run = calloc(1, sizeof(*run));
	struct cell_started s;

	(void)cell_cgroup_write(cell, "cgroup.freeze", "1");
	wait_frozen(cell);
	tap_ok(run && cell_start(cell, &cmd, run, &s) == 0 &&
		       run->return_us < KEEPER_BOUND_MS * 1000,
	       "frozen: a start returns at once");
	cell_status(run, s.status_fd, STUCK_MS);
	tap_ok(!run->status_eof && run->pid_messages == 0, "frozen: and says nothing");
	cell_kill_leaf(cell, "exec-0");
	cell_finish(run, &s);
	if (cell_renew_leaf(cell, "exec-0", &cell->leaf_fd) != 0)
		tap_bail("make the leaf anew");
	tap_ok(run->status_eof && run->pid > 0,
	       "frozen: killing the leaf ends it, its pid is known");
	tap_ok(run->failed.stage == ENTER_CLONE && run->failed.error == ECANCELED,
	       "frozen: it never ran an instruction");
	tap_ok(WIFSIGNALED(run->wait_status), "frozen: its death is ours to reap");

	cmd = cell_command(cell, argv);
	tap_ok(cell_start(cell, &cmd, run, &s) == 0, "thawed: a second start, still frozen");
	cell_status(run, s.status_fd, STUCK_MS);
	(void)cell_cgroup_write(cell, "cgroup.freeze", "0");
	cell_finish(run, &s);
	tap_ok(run->failed_messages == 0 && WIFEXITED(run->wait_status) && run->wait_status == 0,
	       "thawed: it goes on and runs");
	free(run);
}

/* What the spy has printed. */
static unsigned int drain(int fd, const char *name)
{
	char text[4096];
	ssize_t got = read(fd, text, sizeof(text) - 1);

	if (got <= 0)
		return 0;
	text[got] = '\0';
	tap_diag("%s: robbed of %s", name, strtok(text, "\n"));
	return (unsigned int)got;
}

static pid_t start_spy(const struct cell *cell, int out_fd)
{
	char address[32], dev[32], ino[32];
	struct stat st;

	if (stat("/proc/self/exe", &st) != 0)
		tap_bail("stat own program");
	(void)snprintf(address, sizeof(address), "%lx", (unsigned long)(uintptr_t)canary);
	(void)snprintf(dev, sizeof(dev), "%lu", (unsigned long)st.st_dev);
	(void)snprintf(ino, sizeof(ino), "%lu", (unsigned long)st.st_ino);
	char *argv[] = {cell_text(cell->self), cell_text("spy"), address, canary, dev, ino, NULL};
	return start_attacker(cell, argv, out_fd);
}

/* CVE-2016-9962 and its family: with a second attacker that keeps stopping the victims midway. */
static void spy_on_commands(struct cell *cell, const char *name)
{
	struct cell_run *run = calloc(1, sizeof(*run));
	struct tally t = {0};
	int out[2];

	if (!run || pipe2(out, O_CLOEXEC | O_NONBLOCK) != 0)
		tap_bail("pipe");
	pid_t spy = start_spy(cell, out[1]);
	tap_ok(spy > 0, "%s: the spy runs", name);
	for (int i = 0; i < COMMANDS; i++) {
		/* Every third one is held in the middle by a signal from outside, at another step.
		 */
		if (i % 3 == 0) {
			char *argv[] = {cell_text("/bin/true"), NULL};
			struct enter_command cmd = cell_command(cell, argv);
			struct cell_started s;
			if (cell_start(cell, &cmd, run, &s) != 0)
				tap_bail("start a command");
			(void)usleep((useconds_t)(i * 20));
			(void)cell_cgroup_write(cell, "exec-0/cgroup.freeze", "1");
			(void)usleep(5000);
			(void)cell_cgroup_write(cell, "exec-0/cgroup.freeze", "0");
			cell_finish(run, &s);
		} else {
			one_command(cell, run, &t, PATIENCE_MS);
		}
	}
	tap_int(drain(out[0], name), 0, "%s: memory, program, environment, descriptors are safe",
		name);
	end_attacker(cell, spy);
	(void)close(out[0]);
	(void)close(out[1]);
	free(run);
}

/* What a joiner must not be: dumpable, and slow between becoming visible and its exec. */
static void naive_command(const struct cell *cell)
{
	pid_t joiner = fork();

	if (joiner == 0) {
		int flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
			    CLONE_NEWIPC | CLONE_NEWUTS;
		if (setns(cell->init_pidfd, flags) != 0)
			_exit(1);
		pid_t child = fork();
		if (child == 0) {
			if (syscall(SYS_setresuid, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0)
				_exit(1);
			(void)usleep(NAIVE_PAUSE_US);
			_exit(0);
		}
		(void)waitpid(child, NULL, 0);
		_exit(0);
	}
	(void)waitpid(joiner, NULL, 0);
}

static void test_spy_control(struct cell *cell)
{
	unsigned int robbed = 0;
	int out[2];

	if (pipe2(out, O_CLOEXEC | O_NONBLOCK) != 0)
		tap_bail("pipe");
	pid_t spy = start_spy(cell, out[1]);
	for (int i = 0; i < 50 && robbed == 0; i++) {
		naive_command(cell);
		robbed += drain(out[0], "control");
	}
	tap_ok(robbed > 0, "control: the same spy robs a naive joiner");
	end_attacker(cell, spy);
	(void)close(out[0]);
	(void)close(out[1]);
}

static void test_spy(void)
{
	static const struct spy_row {
		const char *name;
		struct cell_options opt;
	} rows[] = {{"spy", {0}},
		    {"spy with every capability", {.all_caps = true, .no_filter = true}}};
	struct cell cell;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!tap_ok(cell_open(&cell, &rows[i].opt) == 0, "%s: a sandbox", rows[i].name))
			return;
		spy_on_commands(&cell, rows[i].name);
		if (rows[i].opt.all_caps)
			test_spy_control(&cell);
		cell_close(&cell);
	}
}

/* M 13: where fs.suid_dumpable is 1, the change of ids makes a process dumpable until it says
 * otherwise. In that moment what protects it is that it still has more capabilities than anybody
 * inside; so here the spy has a sandbox's. */
static void test_spy_suid_dumpable(void)
{
	static const char path[] = "/proc/sys/fs/suid_dumpable";
	char before[16];
	struct cell cell;

	if (cell_read(path, before, sizeof(before)) != 0 || cell_write(path, "1") != 0) {
		tap_ok(true, "spy, fs.suid_dumpable=1 # SKIP may not set it");
		return;
	}
	if (tap_ok(cell_open(&cell, NULL) == 0, "spy, fs.suid_dumpable=1: a sandbox")) {
		spy_on_commands(&cell, "spy, fs.suid_dumpable=1");
		cell_close(&cell);
	}
	(void)cell_write(path, before);
}

/* F 6: the session keyring of whoever started us is out of reach, even without the filter. */
static void keyring_child(void)
{
	const struct cell_options opt = {.no_filter = true};
	struct cell_run *run = calloc(1, sizeof(*run));
	struct cell cell;

	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 ||
	    syscall(SYS_add_key, "user", "mcpt-canary", "x", 1, KEY_SPEC_SESSION_KEYRING) < 0)
		_exit(77);
	long key = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user",
			   "mcpt-canary", 0);
	/* Everybody may see it who gets at the keyring: the keyring is the protection. */
	(void)syscall(SYS_keyctl, KEYCTL_SETPERM, key, 0x3f3f3f3f);
	(void)syscall(SYS_keyctl, KEYCTL_SETPERM, KEY_SPEC_SESSION_KEYRING, 0x3f3f3f3f);
	if (!run || cell_open(&cell, &opt) != 0)
		_exit(3);
	char *argv[] = {cell_text(cell.self), cell_text("keyring"), NULL};
	struct enter_command cmd = cell_command(&cell, argv);
	int rc = cell_run(&cell, &cmd, run);
	bool found = strncmp(run->output, "found", 5) == 0;
	cell_close(&cell);
	_exit(rc != 0 || run->output_len == 0 ? 4 : found ? 5 : 0);
}

static void test_keyring(void)
{
	int status = -1;

	fflush(stdout);
	pid_t child = fork();
	if (child == 0)
		keyring_child();
	(void)waitpid(child, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		tap_ok(true, "keyring # SKIP no keys in this kernel");
	else
		tap_int(status, 0, "a key of the keeper's session cannot be found inside");
}

int main(int argc, char **argv)
{
	struct cell cell;
	struct err e;

	if (argc > 1)
		return attack(argv);
	if (!getenv("MCPT_CANARY")) { /* in the environment that the kernel shows, by a new exec */
		(void)setenv("MCPT_CANARY", "1", 1);
		(void)execl("/proc/self/exe", "keeper --with MCPT_CANARY", (char *)NULL);
	}
	if (userns_enter_storage(-1, "", argv, &e) < 0)
		tap_bail("%s; %s", e.message, e.remedy);
	(void)snprintf(canary, sizeof(canary), "canary-%d-%llu", (int)getpid(),
		       (unsigned long long)cell_now_ms());
	if (cell_open(&cell, NULL) != 0 || cell.leaf_fd < 0) {
		cell_close(&cell);
		return tap_skip_all("cannot make namespaces and a cgroup here");
	}
	test_stop(&cell);
	test_kill(&cell);
	test_frozen(&cell);
	cell_close(&cell);
	test_spy();
	test_spy_suid_dumpable();
	test_keyring();
	return tap_done();
}
