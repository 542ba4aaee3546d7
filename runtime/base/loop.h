/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/base/loop.h - one epoll loop: descriptors and deadlines, nothing else
 *
 * Single thread. Handlers never block. Signals arrive by signalfd, children by pidfd, so that
 * everything is a descriptor. Sources and timers are embedded in their owner: the loop allocates
 * nothing per source.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/err.h"

struct loop;
struct loop_source;
struct loop_timer;

typedef void loop_source_fn(struct loop_source *source, uint32_t epoll_events);
typedef void loop_timer_fn(struct loop_timer *timer);

struct loop_source {
	int fd; /* -1 when not registered */
	uint32_t events;
	loop_source_fn *fn;
	void *ctx;
	struct loop *loop;
};

struct loop_timer {
	uint64_t deadline_ns; /* CLOCK_BOOTTIME; 0 when not armed */
	loop_timer_fn *fn;
	void *ctx;
	size_t heap_index;
};

struct loop *loop_new(struct err *e);
void loop_free(struct loop *l);

/* loop_add() - watch fd for events (EPOLLIN, EPOLLOUT, EPOLLET...). The fd stays the caller's. */
int loop_add(struct loop *l, struct loop_source *s, int fd, uint32_t events, loop_source_fn *fn,
	     void *ctx, struct err *e);
int loop_modify(struct loop_source *s, uint32_t events);

/* loop_remove() - stop watching; safe inside any handler, also for a source with an event still
 * pending in this round (it is skipped). */
void loop_remove(struct loop_source *s);

/* loop_timer_set() - arm or re-arm a one-shot timer delay_ms from now. Return: 0, -1 (no memory). */
int loop_timer_set(struct loop *l, struct loop_timer *t, uint64_t delay_ms, loop_timer_fn *fn,
		   void *ctx);
void loop_timer_cancel(struct loop *l, struct loop_timer *t);

/* loop_now_ns() - CLOCK_BOOTTIME: deadlines count time spent suspended. */
uint64_t loop_now_ns(void);

/* loop_run() - serve until loop_stop(). Return: the status given to loop_stop(), -1 on failure. */
int loop_run(struct loop *l, struct err *e);
void loop_stop(struct loop *l, int status);
