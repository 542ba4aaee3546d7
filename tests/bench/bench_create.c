/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench/bench_create.c - creation and teardown against "bwrap --unshare-all" running true
 *
 * bench_create [ROUNDS [RUNNING]]: the two alternate, so that whatever else the machine does hits both;
 * RUNNING sandboxes exist meanwhile. One JSON object on standard output; times in microseconds.
 */
#include <spawn.h>

#include "tests/bench/figures.h"
#include "tests/sys/box.h"

enum { ROUNDS_DEFAULT = 300, ROUNDS_MAX = 5000, RUNNING_MAX = 2000 };

extern char **environ;

static double create_us[ROUNDS_MAX], teardown_us[ROUNDS_MAX], bwrap_us[ROUNDS_MAX];

static void run_bwrap(double *ret_us)
{
	char *const argv[] = { (char[]){ "bwrap" }, (char[]){ "--unshare-all" },
			       (char[]){ "--ro-bind" }, (char[]){ "/" }, (char[]){ "/" },
			       (char[]){ "/bin/true" }, NULL };
	double start = now_us();
	int status = -1;
	pid_t pid;

	if (posix_spawnp(&pid, "bwrap", NULL, NULL, argv, environ) != 0 ||
	    waitpid(pid, &status, 0) < 0 || status != 0)
		tap_bail("bwrap does not run (package bubblewrap)");
	*ret_us = now_us() - start;
}

static void run_ours(struct box *b, double *ret_create, double *ret_teardown)
{
	double start = now_us(), ready;

	if (box_start(b) < 0)
		tap_bail("%s", b->e.message);
	ready = now_us();
	box_end(b);
	*ret_create = ready - start;
	*ret_teardown = now_us() - ready;
}

/* start_running() - read-only ones, as two sandboxes must not share a layer. */
static void start_running(struct box *b, size_t count, struct launch *running)
{
	struct launch_request kept = b->req;

	b->req.layer_fd = -1;
	for (size_t i = 0; i < count; i++) {
		if (box_start(b) < 0)
			tap_bail("sandbox %zu: %s", i, b->e.message);
		running[i] = b->l;
	}
	b->req = kept;
}

static void end_running(struct box *b, size_t count, const struct launch *running)
{
	for (size_t i = 0; i < count; i++) {
		b->l = running[i];
		box_end(b);
	}
}

static void print_result(size_t rounds, size_t running, const char *mode)
{
	double create = quantile(create_us, rounds, 0.5), bwrap = quantile(bwrap_us, rounds, 0.5);
	double teardown = quantile(teardown_us, rounds, 0.5);

	printf("{\"rounds\": %zu, \"running\": %zu, \"mode\": \"%s\",\n"
	       " \"create_p50\": %.0f, \"create_p99\": %.0f, \"teardown_p50\": %.0f, "
	       "\"teardown_p99\": %.0f,\n"
	       " \"bwrap_true_p50\": %.0f, \"bwrap_true_p99\": %.0f,\n"
	       " \"create_to_bwrap\": %.3f, \"teardown_to_create\": %.3f}\n",
	       rounds, running, mode, create, quantile(create_us, rounds, 0.99), teardown,
	       quantile(teardown_us, rounds, 0.99), bwrap, quantile(bwrap_us, rounds, 0.99),
	       create / bwrap, teardown / create);
}

static size_t number_argument(int argc, char **argv, int at, size_t fallback, size_t max)
{
	size_t n = at < argc ? strtoul(argv[at], NULL, 10) : fallback;

	return n > max ? max : n;
}

int main(int argc, char **argv)
{
	static struct launch running[RUNNING_MAX];
	size_t rounds, count;
	static struct box b;

	rounds = number_argument(argc, argv, 1, ROUNDS_DEFAULT, ROUNDS_MAX);
	count = number_argument(argc, argv, 2, 0, RUNNING_MAX);
	box_enter(argv);
	box_open(&b);
	start_running(&b, count, running);
	for (size_t i = 0; i < rounds; i++) {
		run_ours(&b, &create_us[i], &teardown_us[i]);
		run_bwrap(&bwrap_us[i]);
	}
	end_running(&b, count, running);
	print_result(rounds, count, b.ids.in_storage ? "user" : "root");
	box_close(&b);
	return 0;
}
