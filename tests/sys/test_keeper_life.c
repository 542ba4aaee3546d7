/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sys/test_keeper_life.c - sandboxes: room, idle time, locks between keepers, stop, reset, remove */
#include "tests/sys/keeper.h"

#include <sys/statvfs.h>

#include "runtime/peer.h"

static struct reply r;
static const struct exec_options plain;

#define A "aaa-000001"
#define B "bbb-000002"
#define C "ccc-000003"

static const struct api_info_row *info_row(int sock, const char *key)
{
	kt_key_send(sock, API_INFO, 9000, "", false);
	kt_expect(sock, &r);
	if (r.h.op != API_INFO_DONE)
		tap_bail("no info");
	for (uint32_t i = 0; i < r.info.done.count; i++) {
		if (strcmp(r.info.rows[i].key, key) == 0)
			return &r.info.rows[i];
	}
	return NULL;
}

static void test_room(struct kt *t)
{
	struct keeper_proc k;

	keeper_start_proc(t, &t->settings, KEEPER_ONCE, &k);
	kt_exec(k.sock, A, "echo a > keep; sleep 5551 & true", plain, &r);
	kt_exec(k.sock, B, "true", plain, &r);
	tap_ok(info_row(k.sock, A) && info_row(k.sock, B), "two sandboxes");
	tap_int(info_row(k.sock, A)->state, API_IDLE, "idle ones are called so");
	kt_exec(k.sock, C, "true", plain, &r);
	tap_ok(r.done.flags & API_CREATED, "a third one starts");
	tap_ok(!info_row(k.sock, A) && info_row(k.sock, B), "the least recently used gave way");
	tap_int(kt_count_processes("sleep 5551"), 0, "its background work is dead");
	kt_exec(k.sock, A, "cat keep", plain, &r);
	tap_str(r.text, "a\n", "its files are not");
	tap_ok(r.done.flags & API_CREATED, "it was started again");
	reply_close(&r);

	kt_exec_send(k.sock, 1, A, "sleep 1.2", 9, plain);
	kt_exec_send(k.sock, 2, C, "sleep 1.2", 9, plain);
	kt_sleep_ms(300);
	kt_exec_send(k.sock, 3, B, "true", 4, plain);
	kt_expect(k.sock, &r);
	tap_int(r.h.op, API_FAILED, "all busy: refused");
	tap_str(r.failed.error.message, "all 2 sandboxes are in use; try again when one is free",
		"in the words of the product");
	tap_int(r.failed.error.code, ERR_BUSY, "as busy");
	kt_expect(k.sock, &r);
	kt_expect(k.sock, &r);
	kt_exec_send(k.sock, 4, B, "true", 4, plain);
	kt_exec_send(k.sock, 5, B, "echo second", 11, plain);
	kt_expect(k.sock, &r);
	kt_expect(k.sock, &r);
	tap_int(r.h.op, API_EXEC_DONE, "when one is free it starts, and what waits for it too");
	reply_close(&r);
	tap_int(keeper_end_proc(&k, NULL), 0, "the keeper ends");
}

static void test_min_free(struct kt *t)
{
	struct settings s = t->settings;
	struct keeper_proc k;

	s.min_free_bytes = UINT64_C(1) << 60;
	keeper_start_proc(t, &s, KEEPER_ONCE, &k);
	kt_exec_send(k.sock, 1, A, "true", 4, plain);
	kt_expect(k.sock, &r);
	tap_str(r.failed.error.message, "host disk almost full, refusing to start a sandbox",
		"min-free: refused in the words of the product");
	tap_int(keeper_end_proc(&k, NULL), 0, "the keeper ends");
}

static void test_idle(struct kt *t)
{
	struct settings s = t->settings;
	struct keeper_proc k;

	s.idle_ms = 700;
	keeper_start_proc(t, &s, KEEPER_ONCE, &k);
	kt_exec(k.sock, A, "true", plain, &r);
	kt_exec(k.sock, A, "sleep 1.2; echo long", plain, &r);
	tap_str(r.text, "long\n", "a running command is not idle");
	reply_close(&r);
	tap_ok(info_row(k.sock, A), "nor is it right afterwards");
	kt_sleep_ms(1300);
	tap_ok(!info_row(k.sock, A), "after its idle time it is stopped");
	kt_exec(k.sock, A, "true", plain, &r);
	tap_ok(r.done.flags & API_CREATED, "and comes back");
	tap_int(keeper_end_proc(&k, NULL), 0, "the keeper ends");
}

static void test_two_keepers(struct kt *t)
{
	struct keeper_proc one, two;
	char want[64];
	uint64_t begin;

	keeper_start_proc(t, &t->settings, KEEPER_STDIO, &one);
	keeper_start_proc(t, &t->settings, KEEPER_STDIO, &two);
	kt_exec(one.sock, A, "sleep 6661 & true", plain, &r);
	kt_exec_send(two.sock, 1, A, "true", 4, plain);
	kt_expect(two.sock, &r);
	(void)snprintf(want, sizeof(want), "label in use by process %d", one.pid);
	tap_int(r.failed.error.code, ERR_BUSY, "a label of another keeper is busy");
	tap_str(r.failed.error.message, want, "and its process is named");
	kt_exec(two.sock, B, "true", plain, &r);
	tap_int(r.h.op, API_EXEC_DONE, "other labels are not");
	(void)kill(one.pid, SIGKILL);
	(void)waitpid(one.pid, NULL, 0);
	begin = kt_now_ms();
	while (kt_count_processes("sleep 6661") > 0 && kt_now_ms() - begin < 2000)
		kt_sleep_ms(10);
	tap_int(kt_count_processes("sleep 6661"), 0, "kill -9 of a keeper ends its sandboxes");
	kt_exec(two.sock, A, "cat keep", plain, &r);
	tap_str(r.text, "a\n", "and its labels are free");
	reply_close(&r);
	close_fd(&one.sock);
	tap_int(keeper_end_proc(&two, NULL), 0, "the other ends");
}

/* The one child of a keeper with a sandbox and no command. */
static pid_t init_pid(pid_t keeper)
{
	char path[64], text[256];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", keeper, keeper);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return -1;
	return (pid_t)strtol(text, NULL, 10);
}

static void test_init_dies(struct kt *t)
{
	struct keeper_proc k;
	pid_t init;

	keeper_start_proc(t, &t->settings, KEEPER_ONCE, &k);
	kt_exec(k.sock, A, "true", plain, &r);
	init = init_pid(k.pid);
	tap_ok(init > 0, "pid 1 is the keeper's child");
	kt_exec_send(k.sock, 1, A, "echo before; sleep 7", 20, plain);
	kt_sleep_ms(400);
	(void)kill(init, SIGKILL);
	kt_expect(k.sock, &r);
	tap_int(r.h.op, API_EXEC_DONE, "pid 1 dies: the command in flight is answered");
	tap_ok(r.done.flags & API_RECYCLED, "flagged");
	tap_int(r.done.exit_code, 137, "as killed");
	tap_str(r.text, "before\n", "with its output so far");
	reply_close(&r);
	kt_exec(k.sock, A, "echo back", plain, &r);
	tap_ok(r.done.flags & API_CREATED, "the next one starts the sandbox again");
	tap_str(r.text, "back\n", "and runs");
	reply_close(&r);
	tap_int(keeper_end_proc(&k, NULL), 0, "the keeper ends");
}

static void key_request(int sock, uint16_t op, const char *key, bool workspace)
{
	kt_key_send(sock, op, 7000, key, workspace);
	kt_expect(sock, &r);
}

static void test_stop_reset_remove(struct kt *t)
{
	struct keeper_proc k;
	int removed = 0;

	keeper_start_proc(t, &t->settings, KEEPER_ONCE, &k);
	kt_exec(k.sock, C, "echo w > w; echo l > /var/l", plain, &r);
	kt_exec_send(k.sock, 1, C, "sleep 9", 7, plain);
	kt_sleep_ms(300);
	kt_key_send(k.sock, API_STOP, 2, C, false);
	kt_expect(k.sock, &r);
	tap_int(r.h.id, 1, "stop: the running command is answered first");
	tap_ok(r.done.flags & API_RECYCLED, "as recycled");
	kt_expect(k.sock, &r);
	tap_int(r.h.op, API_DONE, "then the stop");
	tap_int(r.key.was_running, 1, "of a running sandbox");
	kt_exec(k.sock, C, "cat w /var/l", plain, &r);
	tap_str(r.text, "w\nl\n", "stop keeps workspace and layer");
	reply_close(&r);
	kt_key_send(k.sock, API_RESET, 3, C, false);
	kt_exec_send(k.sock, 4, C, "cat w /var/l 2>&1", 17, plain); /* waits for the reset */
	kt_expect(k.sock, &r);
	tap_int(r.h.op, API_DONE, "reset");
	kt_expect(k.sock, &r);
	tap_str(r.text, "w\ncat: /var/l: No such file or directory\n", "keeps the workspace only");
	reply_close(&r);
	key_request(k.sock, API_STOP, C, false);
	key_request(k.sock, API_STOP, C, false);
	tap_int(r.h.op, API_DONE, "stop of a stopped one");
	tap_int(r.key.was_running, 0, "says so");
	key_request(k.sock, API_REMOVE, C, true);
	tap_int(r.h.op, API_DONE, "remove with workspace");
	key_request(k.sock, API_REMOVE, C, true);
	tap_int(r.failed.error.code, ERR_NOT_FOUND, "is gone for good");
	kt_exec(k.sock, C, "true", plain, &r);
	reply_close(&r);
	for (uint64_t i = 0; i < 2 * API_REQUESTS_MAX; i++)
		kt_key_send(k.sock, API_REMOVE, 100 + i, C, true);
	for (uint64_t i = 0; i < 2 * API_REQUESTS_MAX; i++) {
		kt_expect(k.sock, &r);
		removed += r.h.op == API_DONE || (r.h.op == API_FAILED && r.failed.error.code == ERR_NOT_FOUND);
	}
	tap_int(removed, 2 * API_REQUESTS_MAX, "removals may be more than requests at once");
	kt_exec(k.sock, C, "ls", plain, &r);
	tap_str(r.text, "", "a new one under the same key is empty");
	reply_close(&r);
	tap_int(keeper_end_proc(&k, NULL), 0, "the keeper ends");
}

static void test_control_socket(struct kt *t)
{
	struct keeper_proc k;
	struct api_key_request stop = { .owner = OWNER_DEFAULT, .key = A };
	struct store store;
	struct err e = { 0 };
	struct stat st;
	char name[32];
	int sock;

	keeper_start_proc(t, &t->settings, KEEPER_STDIO, &k);
	kt_exec(k.sock, A, "true", plain, &r);
	if (store_open(&store, t->settings.home, &e) < 0)
		tap_bail("%s", e.message);
	(void)snprintf(name, sizeof(name), "%d.sock", k.pid);
	tap_int(fstatat(store.run_fd, name, &st, 0), 0, "a keeper has a control socket");
	tap_int(st.st_mode & 0777, 0600, "for its user only");
	sock = keeper_connect(store.run_fd, k.pid, &e);
	tap_ok(sock >= 0, "which can be connected to");
	kt_expect(sock, &r);
	tap_int(r.h.op, API_HELLO, "says hello");
	kt_exec_send(sock, 1, A, "echo from control", 17, plain);
	kt_expect(sock, &r);
	tap_str(r.text, "from control\n", "runs commands in the keeper's sandbox");
	reply_close(&r);
	(void)kt_send(k.sock, &stop, API_STOP, sizeof(stop), 5);
	tap_int(kt_receive(k.sock, &r, 5000), 0, "a front that asks for a stop is dropped");
	tap_int(kt_receive(sock, &r, 5000), 0, "and with it everything ends");
	close_fd(&sock);
	tap_int(keeper_end_proc(&k, NULL), 0, "the keeper ends");
	tap_ok(fstatat(store.run_fd, name, &st, 0) < 0, "its socket is gone");
	store_done(&store);
}

static void test_many_clients(struct kt *t)
{
	const struct api_hello *hello = (const void *)r.bytes;
	int socks[PEER_MAX], served = 0;
	struct keeper_proc k;
	struct store store;
	struct err e = { 0 };

	keeper_start_proc(t, &t->settings, KEEPER_STDIO, &k);
	if (store_open(&store, t->settings.home, &e) < 0)
		tap_bail("%s", e.message);
	for (int i = 0; i < PEER_MAX; i++) {
		socks[i] = keeper_connect(store.run_fd, k.pid, &e);
		kt_expect(socks[i], &r);
		served += hello->start_failure.code == ERR_NONE;
	}
	tap_int(served, PEER_MAX - 1, "so many command lines at once beside the front");
	tap_int(r.h.op, API_HELLO, "one more is greeted");
	tap_int(hello->start_failure.code, ERR_BUSY, "and told why it is not served: %s", hello->start_failure.message);
	tap_int(kt_receive(socks[PEER_MAX - 1], &r, 5000), 0, "before it is let go");
	close_fd(&socks[0]);
	kt_sleep_ms(300);
	close_fd(&socks[PEER_MAX - 1]);
	socks[0] = keeper_connect(store.run_fd, k.pid, &e);
	kt_expect(socks[0], &r);
	tap_int(hello->start_failure.code, ERR_NONE, "the next one has the place of one that left");
	for (int i = 0; i < PEER_MAX; i++)
		close_fd(&socks[i]);
	tap_int(keeper_end_proc(&k, NULL), 0, "the keeper ends");
	store_done(&store);
}

static void test_client_leaves(struct kt *t)
{
	struct keeper_proc k;
	struct store store;
	struct err e = { 0 };
	int sock;

	keeper_start_proc(t, &t->settings, KEEPER_STDIO, &k);
	if (store_open(&store, t->settings.home, &e) < 0)
		tap_bail("%s", e.message);
	sock = keeper_connect(store.run_fd, k.pid, &e);
	kt_expect(sock, &r);
	kt_exec_send(sock, 1, A, "sleep 3331", 10, plain);
	kt_sleep_ms(400);
	close_fd(&sock);
	kt_sleep_ms(300);
	tap_int(kt_count_processes("sleep 3331"), 0, "a control client that leaves takes its command along");
	kt_exec(k.sock, A, "echo on", plain, &r);
	tap_str(r.text, "on\n", "and nothing else");
	reply_close(&r);
	(void)kill(k.pid, SIGTERM);
	tap_int(kt_receive(k.sock, &r, 5000), 0, "SIGTERM ends a keeper");
	tap_int(keeper_end_proc(&k, NULL), 0, "with 0");
	store_done(&store);
}

int main(int argc, char **argv)
{
	struct kt t;

	(void)argc;
	kt_open(&t, argv);
	test_room(&t);
	test_min_free(&t);
	test_idle(&t);
	test_two_keepers(&t);
	test_init_dies(&t);
	test_stop_reset_remove(&t);
	test_control_socket(&t);
	test_many_clients(&t);
	test_client_leaves(&t);
	kt_close(&t);
	return tap_done();
}
