/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/keeper_service.c - what only a service's keeper does: replace its front, replace its program
 *
 * Runs in the keeper. Neither ends a command: those belong to the keeper's process, which stays.
 */
#include "runtime/keeper_state.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/log.h"
#include "runtime/doors.h"
#include "runtime/exec.h"
#include "runtime/handover.h"

enum {
	FRONT_STEADY_MS = 10 * 1000, /* a front that lived so long is replaced at once */
	FRONT_RETRY_MS = 100,        /* another after this, then after twice as long, and so on */
	FRONT_RETRY_MAX_MS = 5 * 1000,
	RENEWAL_WAIT_MS = 15 * 1000, /* starts and ends under way are waited for so long */
	RENEWAL_POLL_MS = 5,
};

/* /proc/self/exe leads to the file that runs, not to the one that takes its place. */
void keeper_remember_program(struct keeper *k)
{
	ssize_t len = readlink("/proc/self/exe", k->program, sizeof(k->program) - 1);

	k->program[len > 0 ? len : 0] = '\0';
}

/* ---- another program ---- */

static void renew(struct keeper *k)
{
	struct handover_from from = { .reg = &k->registry, .peers = &k->peers, .main_peer = k->main_peer,
				      .front_pid = k->front.pid, .home_lock = k->home_lock,
				      .program = k->program, .argv = k->start->argv };
	const struct doors *d = k->start->doors;
	struct err e = { 0 };

	if (d) {
		from.listen_fds = d->listen_fds;
		from.listen_count = d->listen_count;
	}
	(void)handover_exec(&from, &e);
	log_error("this program stays: %s", e.message);
}

static void resume(struct keeper *k)
{
	k->registry.paused = false;
	for (struct sandbox *sb = k->registry.all; sb; sb = sb->next)
		sandbox_pump(sb);
	registry_start_queued(&k->registry);
}

static void on_renewal(struct loop_timer *t)
{
	struct keeper *k = t->ctx;

	if (k->ending)
		return;
	if (k->main_peer && handover_is_quiet(&k->registry, &k->peers)) {
		renew(k);
	} else if (loop_now_ns() < k->renewal_until_ns &&
		   loop_timer_set(k->loop, &k->renewal, RENEWAL_POLL_MS, on_renewal, k) == 0) {
		return;
	} else {
		log_error("this program stays: something does not come to its end");
	}
	resume(k);
}

/* SIGUSR2: the file this program was started from may be another one now. */
void keeper_renew(struct keeper *k)
{
	if (k->ending || !k->start->argv || !k->registry.survives || k->registry.paused)
		return;
	k->registry.paused = true;
	k->renewal_until_ns = loop_now_ns() + RENEWAL_WAIT_MS * UINT64_C(1000000);
	k->renewal.ctx = k;
	on_renewal(&k->renewal);
}

/* ---- another front ---- */

static void on_front_reaped(struct reap_child *c, struct reap_status status)
{
	(void)c;
	if (status.signal)
		log_warn("the front was ended by signal %d", status.signal);
}

void keeper_watch_front(struct keeper *k, pid_t pid)
{
	k->main_peer->replaced = true;
	k->front_since_ns = loop_now_ns();
	if (pid > 0 && reap_watch(&k->reaper, &k->front, pid, on_front_reaped, k) < 0)
		log_warn("the front is not our child");
}

static void on_front_retry(struct loop_timer *t)
{
	struct keeper *k = t->ctx;
	struct err e = { 0 };
	pid_t pid = 0;
	int fd = k->start->new_front(k->start->ctx, &pid, &e);

	k->front_since_ns = loop_now_ns();
	if (fd >= 0)
		k->main_peer = peer_add(&k->peers, fd, PEER_FRONT, &e);
	if (!k->main_peer) {
		log_error("no front: %s", e.message);
		keeper_replace_front(k);
		return;
	}
	keeper_watch_front(k, pid);
	keeper_say_hello(k, k->main_peer);
	if (k->start->fixed_tokens)
		keeper_send_tokens(k);
	if (k->start->doors)
		doors_give(k->start->doors, k->main_peer);
}

/* What it was doing goes on; who asked for it finds its sandboxes again. A front that dies as soon as it
 * is there must not take the whole processor. */
void keeper_replace_front(struct keeper *k)
{
	uint64_t lived_ms = (loop_now_ns() - k->front_since_ns) / 1000000;

	if (lived_ms >= FRONT_STEADY_MS)
		k->front_delay_ms = 0;
	if (k->front.pid > 0) { /* it may have been cut off for not reading */
		(void)kill(k->front.pid, SIGKILL);
		reap_forget(&k->reaper, &k->front);
	}
	log_warn("the front has ended after %" PRIu64 " s; starting another", lived_ms / 1000);
	if (loop_timer_set(k->loop, &k->front_retry, k->front_delay_ms, on_front_retry, k) < 0) {
		log_error("no memory for a timer");
		loop_stop(k->loop, -1);
	}
	k->front_delay_ms = k->front_delay_ms ? 2 * k->front_delay_ms : FRONT_RETRY_MS;
	if (k->front_delay_ms > FRONT_RETRY_MAX_MS)
		k->front_delay_ms = FRONT_RETRY_MAX_MS;
}

/* Whoever was connected still is, and has been told everything. */
void keeper_take_handover(struct keeper *k)
{
	handover_peers(k->start->handover, &k->peers, k->main_peer);
	handover_commands(k->start->handover, &k->registry);
	reap_now(&k->reaper); /* what has ended meanwhile */
}
