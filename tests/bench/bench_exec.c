/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench/bench_exec.c - what starting a command in a sandbox costs, against posix_spawn
 *
 * Both ways alternate in one run, so that a busy machine slows both. Reported are medians, the
 * fastest and processor time, each with the ratio, for a program without a C library and for
 * /bin/true; see exit0.c for why both. Needs what the tests in tests/sys need. Usage: bench_exec
 * EXIT0 [ROUNDS]
 */
#include <spawn.h>
#include <sys/resource.h>

#include "tests/bench/figures.h"
#include "tests/sys/cell.h"

enum { WAYS = 2, PROGRAMS = 2, ROUNDS_DEFAULT = 1000, ROUNDS_MAX = 100000, WARM_UP = 20 };

/* Processor time of this process and its reaped children: what a busy machine distorts least. */
static double cpu_us(void)
{
	struct rusage self, children;

	(void)getrusage(RUSAGE_SELF, &self);
	(void)getrusage(RUSAGE_CHILDREN, &children);
	return (double)(self.ru_utime.tv_sec + self.ru_stime.tv_sec + children.ru_utime.tv_sec +
			children.ru_stime.tv_sec) *
		       1e6 +
	       (double)(self.ru_utime.tv_usec + self.ru_stime.tv_usec + children.ru_utime.tv_usec +
			children.ru_stime.tv_usec);
}

static int run_spawn(const struct cell *cell, char *const *argv)
{
	int status;
	pid_t pid;

	(void)cell;
	if (posix_spawn(&pid, argv[0], NULL, NULL, argv, cell_env) != 0 ||
	    waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

/* All that the keeper does: the status pipe, the joiner, both reaped. */
static int run_enter(const struct cell *cell, char *const *argv)
{
	struct enter_command cmd = cell_command(cell, argv);
	struct enter_status message;
	int status = -1, pipe_fd[2];
	pid_t pid = -1;

	if (pipe2(pipe_fd, O_CLOEXEC) != 0)
		return -1;
	cmd.status_fd = pipe_fd[1];
	cmd.stdin_fd = 0;
	cmd.stdout_fd = 1;
	cmd.stderr_fd = 2;
	pid_t joiner = enter_start_joiner(&cmd);
	(void)close(pipe_fd[1]);
	while (read(pipe_fd[0], &message, sizeof(message)) == sizeof(message)) {
		if (message.kind == ENTER_PID)
			pid = message.value;
	}
	(void)close(pipe_fd[0]);
	if (joiner <= 0 || waitpid(joiner, NULL, 0) != joiner || pid <= 0 ||
	    waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

static int (*const ways[WAYS])(const struct cell *, char *const *) = {run_spawn, run_enter};

static int copy_program(const struct cell *cell, const char *from, char *to, size_t size)
{
	_cleanup_fd_ int in = open(from, O_RDONLY | O_CLOEXEC), out = -1;
	struct stat st;

	(void)snprintf(to, size, "%s/exit0", cell->dir);
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (in < 0 || out < 0 || fstat(in, &st) != 0)
		return -1;
	return sendfile(out, in, NULL, (size_t)st.st_size) == st.st_size ? 0 : -1;
}

static int measure(const struct cell *cell, char *const argv[PROGRAMS][2], int rounds,
		   double *sample[PROGRAMS][WAYS], double cpu[PROGRAMS][WAYS])
{
	for (int i = -WARM_UP; i < rounds; i++) {
		for (int program = 0; program < PROGRAMS; program++) {
			for (int way = 0; way < WAYS; way++) {
				double start_cpu = cpu_us(), start = now_us();
				if (ways[way](cell, argv[program]) != 0)
					return -1;
				if (i < 0)
					continue;
				sample[program][way][i] = now_us() - start;
				cpu[program][way] += (cpu_us() - start_cpu) / rounds;
			}
		}
	}
	return 0;
}

static void report(const char *name, int rounds, double *sample[WAYS], const double cpu[WAYS])
{
	size_t count = (size_t)rounds;
	double spawn = quantile(sample[0], count, 0.5), enter = quantile(sample[1], count, 0.5);
	printf("%-10s posix_spawn %7.1f us   sandbox %7.1f us   ratio %.2f   p99 %.1f, %.1f us\n",
	       name, spawn, enter, enter / spawn, quantile(sample[0], count, 0.99),
	       quantile(sample[1], count, 0.99));
	printf("%-10s   fastest  %7.1f              %7.1f         %.2f\n", "", sample[0][0],
	       sample[1][0], sample[1][0] / sample[0][0]);
	printf("%-10s   processor%7.1f              %7.1f         %.2f\n", "", cpu[0], cpu[1],
	       cpu[1] / cpu[0]);
}

int main(int argc, char **argv)
{
	char exit0[128], true_path[] = "/bin/true";
	char *programs[PROGRAMS][2] = {{exit0, NULL}, {true_path, NULL}};
	static const char *const names[PROGRAMS] = {"exit0", "/bin/true"};
	double *sample[PROGRAMS][WAYS], cpu[PROGRAMS][WAYS] = {{0}};
	int rounds = argc > 2 ? atoi(argv[2]) : ROUNDS_DEFAULT;
	struct cell cell;
	struct err e;

	if (argc < 2 || rounds < 1 || rounds > ROUNDS_MAX)
		return 2;
	if (userns_enter_storage(-1, "", argv, &e) < 0 || cell_open(&cell, NULL) != 0 ||
	    copy_program(&cell, argv[1], exit0, sizeof(exit0)) != 0) {
		fprintf(stderr, "bench_exec: cannot make namespaces and a cgroup here\n");
		return 1;
	}
	for (int i = 0; i < PROGRAMS * WAYS; i++)
		sample[i / WAYS][i % WAYS] = calloc((size_t)rounds, sizeof(double));
	int rc = measure(&cell, programs, rounds, sample, cpu);
	for (int program = 0; rc == 0 && program < PROGRAMS; program++)
		report(names[program], rounds, sample[program], cpu[program]);
	(void)unlink(exit0);
	cell_close(&cell);
	return rc == 0 ? 0 : 1;
}
