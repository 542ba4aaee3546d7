/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_loop.c - sources, timers, and what handlers may do to them */
#include "runtime/base/loop.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "runtime/base/cleanup.h"
#include "tests/unit/tap.h"

static struct loop *loop;
static struct err error;

static int event_new(unsigned int value)
{
	int fd = eventfd(value, EFD_CLOEXEC | EFD_NONBLOCK);

	if (fd < 0)
		tap_bail("eventfd");
	return fd;
}

static void stop_7(struct loop_timer *t)
{
	(void)t;
	loop_stop(loop, 7);
}

/* ---- a handler removes every source of the round ---- */

enum { SOURCES = 8 };

struct crowd {
	struct loop_source source[SOURCES];
	int fd[SOURCES];
	int calls;
};

static void remove_all(struct loop_source *s, uint32_t events)
{
	struct crowd *c = s->ctx;

	(void)events;
	c->calls++;
	for (int i = 0; i < SOURCES; i++) {
		loop_remove(&c->source[i]);
		/* the owner's memory is gone in real life: make a late call visible */
		c->source[i].fn = NULL;
	}
}

static void test_remove_in_handler(void)
{
	struct crowd c = { 0 };
	struct loop_timer end = { 0 };

	for (int i = 0; i < SOURCES; i++) {
		c.fd[i] = event_new(1);
		if (loop_add(loop, &c.source[i], c.fd[i], EPOLLIN, remove_all, &c, &error) < 0)
			tap_bail("loop_add");
	}
	(void)loop_timer_set(loop, &end, 20, stop_7, NULL);
	tap_int(loop_run(loop, &error), 7, "the status given to loop_stop() comes back");
	tap_int(c.calls, 1, "events pending for removed sources are skipped");
	tap_int(c.source[3].fd, -1, "a removed source says so");
	loop_remove(&c.source[3]);
	tap_ok(true, "removing twice is harmless");
	for (int i = 0; i < SOURCES; i++)
		close_fd(&c.fd[i]);
}

/* ---- a source replaced by another one in the same memory during the round ---- */

struct pair {
	struct loop_source first, second;
	int quiet_fd;
	int wrong_calls;
};

static void never(struct loop_source *s, uint32_t events)
{
	struct pair *p = s->ctx;

	(void)events;
	p->wrong_calls++;
}

static void replace_other(struct loop_source *s, uint32_t events)
{
	struct pair *p = s->ctx;
	struct loop_source *other = s == &p->first ? &p->second : &p->first;

	(void)events;
	loop_remove(s);
	loop_remove(other);
	if (loop_add(loop, other, p->quiet_fd, EPOLLIN, never, p, &error) < 0)
		tap_bail("loop_add");
}

static void test_replace_in_handler(void)
{
	struct pair p = { .quiet_fd = event_new(0) };
	struct loop_timer end = { 0 };
	int a = event_new(1), b = event_new(1);

	if (loop_add(loop, &p.first, a, EPOLLIN, replace_other, &p, &error) < 0 ||
	    loop_add(loop, &p.second, b, EPOLLIN, replace_other, &p, &error) < 0)
		tap_bail("loop_add");
	(void)loop_timer_set(loop, &end, 20, stop_7, NULL);
	(void)loop_run(loop, &error);
	tap_int(p.wrong_calls, 0, "a re-used source does not get its predecessor's event");
	loop_remove(&p.first);
	loop_remove(&p.second);
	close_fd(&a);
	close_fd(&b);
	close_fd(&p.quiet_fd);
}

/* ---- timers ---- */

enum { TIMERS = 200 };

struct order {
	struct loop_timer timer[TIMERS];
	uint64_t last_deadline;
	int fired, disorder, early;
};

static struct order order;

static void note_order(struct loop_timer *t)
{
	size_t i = (size_t)(t - order.timer);

	order.fired++;
	if (t->deadline_ns != 0 || i % 3 == 0)
		order.disorder++; /* still armed in its handler, or was cancelled */
	if ((uintptr_t)t->ctx < order.last_deadline)
		order.disorder++;
	order.last_deadline = (uintptr_t)t->ctx;
}

/* Delays in a scrambled order; ctx holds the delay, so that handlers can check the order. */
static void test_timer_order(void)
{
	struct loop_timer end = { 0 };
	uint64_t before = loop_now_ns();

	for (size_t i = 0; i < TIMERS; i++)
		(void)loop_timer_set(loop, &order.timer[i], 5000, note_order, NULL);
	for (size_t i = 0; i < TIMERS; i++) {
		uintptr_t delay = (i * 37) % 50;

		(void)loop_timer_set(loop, &order.timer[i], delay, note_order, (void *)delay);
	}
	for (size_t i = 0; i < TIMERS; i += 3)
		loop_timer_cancel(loop, &order.timer[i]);
	loop_timer_cancel(loop, &order.timer[0]);
	(void)loop_timer_set(loop, &end, 60, stop_7, NULL);
	(void)loop_run(loop, &error);
	tap_int(order.fired, TIMERS - (TIMERS + 2) / 3, "every timer that was not cancelled fires once");
	tap_int(order.disorder, 0, "by deadline, disarmed before its handler, never when cancelled");
	tap_ok(loop_now_ns() - before >= UINT64_C(60000000), "and not early");
}

static int ticks;

static void tick(struct loop_timer *t)
{
	if (++ticks < 1000)
		(void)loop_timer_set(loop, t, 0, tick, NULL);
}

static void stop_3(struct loop_source *s, uint32_t events)
{
	(void)events;
	loop_remove(s);
	loop_stop(loop, 3);
}

static void test_no_starvation(void)
{
	struct loop_timer t = { 0 };
	struct loop_source s = { 0 };
	int fd = event_new(1);

	(void)loop_timer_set(loop, &t, 0, tick, NULL);
	usleep(2000);
	if (loop_add(loop, &s, fd, EPOLLIN, stop_3, NULL, &error) < 0)
		tap_bail("loop_add");
	tap_int(loop_run(loop, &error), 3, "a descriptor is served");
	tap_ok(ticks < 1000, "although a timer re-arms itself with no delay (%d rounds)", ticks);
	loop_timer_cancel(loop, &t);
	close_fd(&fd);
}

static void cancel_ctx(struct loop_timer *t)
{
	loop_timer_cancel(loop, t->ctx);
}

static void test_cancel_in_handler(void)
{
	struct loop_timer victim = { 0 }, killer = { 0 }, end = { 0 };

	(void)loop_timer_set(loop, &killer, 1, cancel_ctx, &victim);
	(void)loop_timer_set(loop, &victim, 1, stop_7, NULL);
	(void)loop_timer_set(loop, &end, 15, stop_7, NULL);
	usleep(3000);
	(void)loop_run(loop, &error);
	tap_int(end.deadline_ns, 0, "a timer due in the same round can be cancelled by another");
	(void)loop_timer_set(loop, &end, UINT64_MAX, stop_7, NULL);
	tap_ok(end.deadline_ns > loop_now_ns(), "an endless delay does not wrap around");
	loop_timer_cancel(loop, &end);
}

static void test_errors(void)
{
	struct loop_source s = { 0 };
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd = event_new(0);

	tap_int(loop_add(loop, &s, file, EPOLLIN, stop_3, NULL, &error), -1, "a file is refused");
	tap_int(error.sys_errno, EPERM, "with the kernel's reason");
	tap_int(loop_modify(&s, EPOLLIN), -1, "a source that is not registered cannot be modified");
	if (loop_add(loop, &s, fd, EPOLLIN, stop_3, NULL, &error) < 0)
		tap_bail("loop_add");
	tap_int(loop_modify(&s, EPOLLOUT), 0, "events change");
	tap_int(loop_run(loop, &error), 3, "and the new ones are reported");
	close_fd(&file);
	close_fd(&fd);
}

int main(void)
{
	loop = loop_new(&error);
	if (!loop)
		tap_bail("loop_new: %s", error.message);
	test_remove_in_handler();
	test_replace_in_handler();
	test_timer_order();
	test_no_starvation();
	test_cancel_in_handler();
	test_errors();
	loop_free(loop);
	return tap_done();
}
