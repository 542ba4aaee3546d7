/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_peer.c - more answers than a socket holds reach a peer that reads; one that does not is dropped */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/peer.h"
#include "tests/unit/tap.h"

enum { STALL_MS = 600, STEP_MS = 100, SLOW_READS = 10 };

static struct answer { /* as long as the longest message */
	struct api_header h;
	unsigned char bytes[API_MSG_MAX - sizeof(struct api_header)];
} answer;

static struct loop *loop;
static struct peers peers;
static struct peer *peer;
static int sock = -1;
static bool gone, timed_out;
static struct request requests[API_REQUESTS_MAX];

static int on_message(struct peer *p, const struct api_header *h, struct err *e)
{
	return request_begin(p, &requests[h->id - 1], h, NULL, e);
}

static void on_gone(struct peer *p)
{
	(void)p;
	gone = true;
	loop_stop(loop, 0);
}

static void on_time(struct loop_timer *t)
{
	(void)t;
	timed_out = true;
	loop_stop(loop, 0);
}

/* Serve for some time, or until the peer is gone. */
static void serve(unsigned int ms)
{
	struct loop_timer t = { 0 };
	struct err e;

	timed_out = false;
	if (loop_timer_set(loop, &t, ms, on_time, NULL) < 0 || loop_run(loop, &e) < 0)
		tap_bail("loop");
	loop_timer_cancel(loop, &t);
}

static void begin(void)
{
	struct err e;
	int pair[2];

	loop = loop_new(&e);
	if (!loop || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		tap_bail("socket pair");
	peers_init(&peers, loop, NULL);
	peers.on_message = on_message;
	peers.on_gone = on_gone;
	gone = false;
	sock = pair[0];
	peer = peer_add(&peers, pair[1], PEER_FRONT, &e);
	if (!peer || fd_set_nonblock(sock, true) < 0)
		tap_bail("%s", e.message);
}

static void end(void)
{
	for (size_t i = 0; i < PEER_MAX; i++)
		peer_remove(&peers, &peers.peer[i]);
	loop_free(loop);
	close_fd(&sock);
}

static void ask_all(void)
{
	for (uint64_t id = 1; id <= API_REQUESTS_MAX; id++) {
		struct api_header h = { API_VERSION, API_EXEC, sizeof(h), id };

		if (fd_send_msg(sock, &h, sizeof(h), NULL, 0) < 0)
			tap_bail("ask");
	}
	serve(STEP_MS);
	tap_int(peer->in_flight, API_REQUESTS_MAX, "as many requests in flight as there may be");
}

static void answer_all(size_t size, size_t fd_count)
{
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int fds[FD_PASS_MAX] = { null_fd, null_fd, null_fd, null_fd };

	for (uint64_t i = 0; i < API_REQUESTS_MAX; i++) {
		memset(answer.bytes, (int)i, sizeof(answer.bytes));
		request_answer(&requests[i], API_EXEC_DONE, &answer, size, fds, fd_count);
	}
	close_fd(&null_fd); /* the copies do not need it */
}

/* Return: true when the next message is the answer to id, whole, with its descriptors. */
static bool read_one(uint64_t id, size_t size, size_t fd_count)
{
	int fds[FD_PASS_MAX];
	size_t got = FD_PASS_MAX;
	ssize_t n = fd_recv_msg(sock, &answer, sizeof(answer), fds, &got);
	bool good = n == (ssize_t)size && answer.h.id == id && got == fd_count && answer.bytes[0] == id - 1 &&
		    answer.bytes[size - sizeof(answer.h) - 1] == id - 1;

	for (size_t i = 0; n > 0 && i < got; i++) {
		good = good && fcntl(fds[i], F_GETFD) >= 0;
		close_fd(&fds[i]);
	}
	return good;
}

static unsigned int count_fds(void)
{
	unsigned int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* ---- who reads gets everything ---- */

static void test_all_at_once(const char *desc, size_t size, size_t fd_count)
{
	unsigned int before = count_fds(), good = 0;

	begin();
	peers.stall_ms = STALL_MS;
	ask_all();
	answer_all(size, fd_count);
	tap_ok(peer->unsent && !peer->failed, "%s: more than the socket holds", desc);
	serve(STEP_MS);
	tap_ok(!gone, "%s: who is about to read is not dropped", desc);
	for (uint64_t id = 1; id <= API_REQUESTS_MAX; id++) {
		good += read_one(id, size, fd_count);
		serve(1);
	}
	tap_int(good, API_REQUESTS_MAX, "%s: all arrive whole and in order", desc);
	tap_ok(!peer->unsent && peer->unsent_bytes == 0 && peer->unsent_fds == 0, "%s: nothing waits any more", desc);
	serve(STALL_MS);
	tap_ok(!gone, "%s: and nothing is held against it later", desc);
	ask_all();
	request_answer(&requests[0], API_EXEC_DONE, &answer, size, NULL, 0);
	tap_ok(!peer->unsent, "%s: the next answer goes straight out", desc);
	end();
	tap_int(count_fds(), before, "%s: no descriptor is left", desc);
}

/* One that takes longer for all of it than it may take for one. */
static void test_slow(void)
{
	unsigned int good = 0;

	begin();
	peers.stall_ms = STALL_MS;
	ask_all();
	answer_all(sizeof(answer), 0);
	for (uint64_t id = 1; id <= SLOW_READS; id++) {
		serve(STEP_MS);
		good += read_one(id, sizeof(answer), 0);
	}
	tap_ok(good == SLOW_READS && !gone, "a slow reader is not one that does not read");
	end();
}

/* ---- who is gone has still asked for something ---- */

static unsigned int served;

static int on_question(struct peer *p, const struct api_header *h, struct err *e)
{
	struct request req = { 0 };

	served++;
	if (request_begin(p, &req, h, NULL, e) < 0)
		return -1;
	request_answer(&req, API_DONE, &answer, sizeof(struct api_done), NULL, 0);
	return 0;
}

/* A front's last requests are removals. It does not wait for the answers. */
static void test_last_words(bool unread)
{
	const char *desc = unread ? "gone with an answer unread" : "gone";

	begin();
	peers.on_message = on_question;
	served = 0;
	for (uint64_t id = 1; id <= API_REQUESTS_MAX; id++) {
		struct api_header h = { API_VERSION, API_REMOVE, sizeof(h), id };

		if (fd_send_msg(sock, &h, sizeof(h), NULL, 0) < 0)
			tap_bail("ask");
	}
	if (unread)
		peer_send(peer, API_HELLO, 1, &answer, sizeof(answer.h));
	close_fd(&sock);
	serve(20 * STALL_MS);
	tap_int(served, API_REQUESTS_MAX, "%s: what it had asked for is done", desc);
	tap_ok(gone && !timed_out, "%s: and its end is seen", desc);
	end();
}

/* ---- who does not is dropped ---- */

static void test_never_reads(void)
{
	unsigned int before = count_fds();

	begin();
	peers.stall_ms = STALL_MS;
	ask_all();
	answer_all(sizeof(answer), FD_PASS_MAX);
	tap_ok(!peer->failed, "not before its time");
	serve(20 * STALL_MS);
	tap_ok(gone && !timed_out, "who never reads is dropped in time");
	end();
	tap_int(count_fds(), before, "with all that waited for it");
}

static void test_bounds(const char *desc, size_t size, size_t fd_count)
{
	int fds[FD_PASS_MAX] = { 0, 0, 0, 0 };
	size_t bytes = 0, held = 0, sent = 0;

	begin();
	for (; !peer->failed && sent <= PEER_UNSENT_MAX / sizeof(answer.h); sent++) {
		peer_send_fds(peer, API_TOKENS, 1, &answer, size, fds, fd_count);
		bytes = peer->unsent_bytes > bytes ? peer->unsent_bytes : bytes;
		held = peer->unsent_fds > held ? peer->unsent_fds : held;
	}
	tap_ok(peer->failed, "%s: dropped after %zu messages", desc, sent);
	tap_ok(bytes > 0 && bytes <= PEER_UNSENT_MAX && held <= PEER_UNSENT_FDS_MAX,
	       "%s: held %zu bytes, %zu descriptors", desc, bytes, held);
	serve(STEP_MS);
	tap_ok(gone, "%s: and gone", desc);
	end();
}

int main(void)
{
	test_all_at_once("long answers", sizeof(answer), 0);
	test_all_at_once("long answers with descriptors", sizeof(answer), FD_PASS_MAX);
	test_all_at_once("answers as they are", sizeof(struct api_present_done), 1);
	test_slow();
	test_last_words(false);
	test_last_words(true);
	test_never_reads();
	test_bounds("long messages", sizeof(answer), 0);
	test_bounds("short messages", sizeof(answer.h), 0);
	test_bounds("descriptors", sizeof(answer.h), FD_PASS_MAX);
	return tap_done();
}
