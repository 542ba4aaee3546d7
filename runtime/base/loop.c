/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/base/loop.c - one epoll loop with one timerfd
 *
 * Runs in the keeper and in the front, single thread. Timers live in a binary heap ordered by
 * deadline; the timerfd is set to the earliest one just before waiting. Cancelling a timer leaves
 * the timerfd alone: at worst the loop wakes up once for nothing, and a command that ends before its
 * timeout costs no system call.
 */
#include "runtime/base/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"

enum { EVENTS_PER_ROUND = 64, FIRST_TIMERS = 16 };

struct loop {
	int epoll_fd;
	struct loop_source timer_source;
	uint64_t armed_ns; /* what the timerfd is set to; 0 = not set, or expired */
	struct loop_timer **heap;
	size_t heap_len, heap_cap;
	struct epoll_event events[EVENTS_PER_ROUND];
	int next, count; /* events[next..count) of this round are still to be served */
	bool stopping;
	int status;
};

/* ---- timers ---- */

uint64_t loop_now_ns(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_BOOTTIME, &ts) < 0)
		abort(); /* cannot fail: the clock exists since 2.6.39 */
	return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

static void heap_put(struct loop *l, size_t i, struct loop_timer *t)
{
	l->heap[i] = t;
	t->heap_index = i;
}

static void heap_up(struct loop *l, struct loop_timer *t)
{
	size_t i = t->heap_index;

	while (i > 0 && t->deadline_ns < l->heap[(i - 1) / 2]->deadline_ns) {
		heap_put(l, i, l->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	heap_put(l, i, t);
}

static void heap_down(struct loop *l, struct loop_timer *t)
{
	size_t i = t->heap_index;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < l->heap_len &&
		    l->heap[child + 1]->deadline_ns < l->heap[child]->deadline_ns)
			child++;
		if (child >= l->heap_len || t->deadline_ns <= l->heap[child]->deadline_ns)
			break;
		heap_put(l, i, l->heap[child]);
		i = child;
	}
	heap_put(l, i, t);
}

static int heap_grow(struct loop *l)
{
	size_t cap = l->heap_cap > 0 ? l->heap_cap * 2 : FIRST_TIMERS;
	struct loop_timer **heap;

	if (l->heap_len < l->heap_cap)
		return 0;
	heap = reallocarray(l->heap, cap, sizeof(struct loop_timer *));
	if (!heap)
		return -1;
	l->heap = heap;
	l->heap_cap = cap;
	return 0;
}

static uint64_t deadline_after(uint64_t delay_ms)
{
	uint64_t now = loop_now_ns();
	uint64_t room = (uint64_t)INT64_MAX - now;

	return delay_ms > room / 1000000U ? (uint64_t)INT64_MAX : now + delay_ms * 1000000U;
}

int loop_timer_set(struct loop *l, struct loop_timer *t, uint64_t delay_ms, loop_timer_fn *fn,
		   void *ctx)
{
	bool armed = t->deadline_ns != 0;

	if (!armed && heap_grow(l) < 0)
		return -1;
	t->fn = fn;
	t->ctx = ctx;
	t->deadline_ns = deadline_after(delay_ms);
	if (!armed)
		heap_put(l, l->heap_len++, t);
	heap_up(l, t);
	heap_down(l, t);
	return 0;
}

void loop_timer_cancel(struct loop *l, struct loop_timer *t)
{
	struct loop_timer *last;

	if (t->deadline_ns == 0)
		return;
	last = l->heap[--l->heap_len];
	if (last != t) {
		heap_put(l, t->heap_index, last);
		heap_up(l, last);
		heap_down(l, last);
	}
	t->deadline_ns = 0;
}

static int timerfd_arm(struct loop *l)
{
	uint64_t ns = l->heap_len > 0 ? l->heap[0]->deadline_ns : 0;
	struct itimerspec its = { .it_value = { .tv_sec = (time_t)(ns / 1000000000U),
						.tv_nsec = (long)(ns % 1000000000U) } };

	if (ns == 0 || (l->armed_ns != 0 && l->armed_ns <= ns))
		return 0;
	if (timerfd_settime(l->timer_source.fd, TFD_TIMER_ABSTIME, &its, NULL) < 0)
		return -1;
	l->armed_ns = ns;
	return 0;
}

/* Run what is due now. The time is read once: a handler that re-arms itself with no delay waits for
 * the next round, so that it cannot starve the descriptors. */
static void timers_run(struct loop_source *source, uint32_t events)
{
	struct loop *l = source->ctx;
	uint64_t now = loop_now_ns(), count;

	(void)events;
	if (read(source->fd, &count, sizeof(count)) == (ssize_t)sizeof(count))
		l->armed_ns = 0;
	while (!l->stopping && l->heap_len > 0 && l->heap[0]->deadline_ns <= now) {
		struct loop_timer *t = l->heap[0];

		loop_timer_cancel(l, t);
		t->fn(t);
	}
}

/* ---- descriptors ---- */

int loop_add(struct loop *l, struct loop_source *s, int fd, uint32_t events, loop_source_fn *fn,
	     void *ctx, struct err *e)
{
	struct epoll_event event = { .events = events, .data.ptr = s };

	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return err_sys(e, "watch descriptor %d", fd);
	*s = (struct loop_source){ .fd = fd, .events = events, .fn = fn, .ctx = ctx, .loop = l };
	return 0;
}

int loop_modify(struct loop_source *s, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = s };

	if (!s->loop) {
		errno = ENOENT;
		return -1;
	}
	if (s->events == events)
		return 0;
	if (epoll_ctl(s->loop->epoll_fd, EPOLL_CTL_MOD, s->fd, &event) < 0)
		return -1;
	s->events = events;
	return 0;
}

void loop_remove(struct loop_source *s)
{
	struct loop *l = s->loop;
	int saved = errno;

	if (!l)
		return;
	(void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
	for (int i = l->next; i < l->count; i++)
		if (l->events[i].data.ptr == s)
			l->events[i].data.ptr = NULL;
	s->fd = -1;
	s->loop = NULL;
	errno = saved;
}

/* ---- the loop ---- */

struct loop *loop_new(struct err *e)
{
	struct loop *l = calloc(1, sizeof(*l));
	_cleanup_fd_ int timer_fd = -1;

	if (!l) {
		(void)err_set(e, ERR_NOMEM, "no memory for the event loop");
		return NULL;
	}
	l->timer_source.fd = -1;
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll_fd < 0) {
		(void)err_sys(e, "create an epoll descriptor");
		loop_free(l);
		return NULL;
	}
	timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (timer_fd < 0) {
		(void)err_sys(e, "create a timer descriptor");
		loop_free(l);
		return NULL;
	}
	if (loop_add(l, &l->timer_source, timer_fd, EPOLLIN, timers_run, l, e) < 0) {
		loop_free(l);
		return NULL;
	}
	(void)take_fd(&timer_fd);
	return l;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	close_fd(&l->timer_source.fd);
	close_fd(&l->epoll_fd);
	free(l->heap);
	free(l);
}

static void dispatch(struct loop *l)
{
	while (l->next < l->count && !l->stopping) {
		struct epoll_event *event = &l->events[l->next++];
		struct loop_source *s = event->data.ptr;

		if (s)
			s->fn(s, event->events);
	}
	l->next = l->count = 0;
}

int loop_run(struct loop *l, struct err *e)
{
	while (!l->stopping) {
		int count;

		if (timerfd_arm(l) < 0)
			return err_sys(e, "arm the timer");
		count = epoll_wait(l->epoll_fd, l->events, EVENTS_PER_ROUND, -1);
		if (count < 0 && errno != EINTR)
			return err_sys(e, "wait for events");
		l->next = 0;
		l->count = count > 0 ? count : 0;
		dispatch(l);
	}
	l->stopping = false;
	return l->status;
}

void loop_stop(struct loop *l, int status)
{
	l->stopping = true;
	l->status = status;
}
