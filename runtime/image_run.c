/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/image_run.c - boxes that belong together: their diagnostics, their end, the user's Ctrl-C
 *
 * Runs in: the command line's "image" and "workspace" verbs. What boxes write to their standard error
 * is hostile text (names inside an archive): escaped before it is shown, bounded in memory.
 */
#include "runtime/image_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/loop.h"
#include "runtime/base/str.h"

enum { SILENCE_MS = 10000 };

static int signal_fd = -1;
static bool interrupted;

int image_signals_begin(struct err *e)
{
	sigset_t set;

	if (signal_fd >= 0)
		return 0;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_sys(e, "block signals");
	signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return signal_fd < 0 ? err_sys(e, "receive signals") : 0;
}

int image_signal_fd(void)
{
	return signal_fd;
}

int image_interrupted(struct err *e)
{
	struct signalfd_siginfo info;

	if (signal_fd >= 0 && read(signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		interrupted = true;
	return interrupted ? err_set(e, ERR_GONE, "interrupted") : 0;
}

int image_run_init(struct image_run *run, struct err *e)
{
	int pipe_fd[2];

	*run = (struct image_run){ .log_read = -1, .log_write = -1, .mark = "" };
	if (pipe2(pipe_fd, O_CLOEXEC) < 0)
		return err_sys(e, "make a pipe");
	run->log_read = pipe_fd[0];
	run->log_write = pipe_fd[1];
	return 0;
}

static void end_all(struct image_run *run)
{
	for (size_t i = 0; i < run->count; i++)
		box_kill(&run->proc[i]);
}

static void reap_all(struct image_run *run)
{
	for (size_t i = 0; i < run->count; i++) {
		if (run->proc[i].pidfd >= 0)
			run->status[i] = box_wait(&run->proc[i]);
	}
}

int image_run_add(struct image_run *run, const struct idrange *ids, const struct box *box,
		  struct err *e)
{
	struct box logged = *box;

	if (logged.stderr_fd < 0)
		logged.stderr_fd = run->log_write;
	if (run->count == RUN_BOXES_MAX)
		return err_set(e, ERR_LIMIT, "too many helper processes");
	if (box_start(ids, &logged, &run->proc[run->count], e) == 0) {
		run->count++;
		return 0;
	}
	end_all(run);
	reap_all(run);
	return -1;
}

static void end_line(struct image_run *run)
{
	char text[RUN_LINE_MAX];

	if (run->line_len == 0)
		return;
	str_escape(text, sizeof(text), run->line, run->line_len);
	run->line_len = 0;
	if (!run->has_mark)
		(void)str_copy(run->blame, sizeof(run->blame), text);
	run->has_mark |= strstr(text, run->mark) != NULL && run->mark[0];
	if (run->say)
		run->say(text);
}

/* read_log() - Return: 1 something came, 0 end of file. */
static int read_log(struct image_run *run)
{
	char text[4096];
	ssize_t n = read(run->log_read, text, sizeof(text));

	if (n < 0 && errno == EINTR)
		return 1;
	for (ssize_t i = 0; i < n; i++) {
		if (text[i] == '\n' || text[i] == '\r')
			end_line(run);
		else if (run->line_len < sizeof(run->line))
			run->line[run->line_len++] = text[i];
	}
	if (n <= 0)
		end_line(run);
	return n > 0;
}

static void say_waiting(struct image_run *run, uint64_t since_ns)
{
	char text[RUN_LINE_MAX];

	if (!run->say || !run->waiting)
		return;
	snprintf(text, sizeof(text), "%s (%llu s)", run->waiting,
		 (unsigned long long)((loop_now_ns() - since_ns) / UINT64_C(1000000000)));
	run->say(text);
}

/* Every box holds the write end of the log, so its end of file is the end of them all. */
int image_run_wait(struct image_run *run, struct err *e)
{
	uint64_t start_ns = loop_now_ns();
	int r = 0;

	close_fd(&run->log_write);
	for (;;) {
		struct pollfd fds[2] = { { .fd = run->log_read, .events = POLLIN },
					 { .fd = signal_fd, .events = POLLIN } };
		int ready = poll(fds, 2, SILENCE_MS);

		if (ready == 0)
			say_waiting(run, start_ns);
		if (ready > 0 && fds[1].revents && (r = image_interrupted(e)) < 0)
			break;
		if (ready > 0 && fds[0].revents && !read_log(run))
			break;
		if (ready < 0 && errno != EINTR) {
			r = err_sys(e, "wait for helper processes");
			break;
		}
	}
	if (r < 0)
		end_all(run);
	reap_all(run);
	return r;
}

int image_run_blame(const struct image_run *run, struct err *e, const char *what)
{
	return run->blame[0] ? err_set(e, ERR_HOST, "%s: %s", what, run->blame) :
			       err_set(e, ERR_HOST, "%s", what);
}

void image_run_done(struct image_run *run)
{
	close_fd(&run->log_read);
	close_fd(&run->log_write);
}
