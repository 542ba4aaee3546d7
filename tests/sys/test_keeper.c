/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sys/test_keeper.c - commands through the keeper's socket */
#include "tests/sys/keeper.h"

static struct reply r;

static void test_first(struct kt *t)
{
	struct keeper_proc k;
	uint64_t ms;

	keeper_start_proc(t, &t->settings, KEEPER_ONCE, &k);
	kt_exec(k.sock, "first-0a1b2c", "echo out; echo err >&2; echo $SANDBOX; pwd", (struct exec_options){ 0 }, &r);
	tap_int(r.h.op, API_EXEC_DONE, "a command is answered");
	tap_int(r.done.exit_code, 0, "exit 0");
	tap_ok(r.done.flags & API_CREATED, "the call started the sandbox");
	tap_str(r.text, "out\nerr\nfirst-0a1b2c\n/workspace\n", "output in order");
	reply_close(&r);
	tap_int(keeper_end_proc(&k, &ms), 0, "the keeper ends with 0");
	tap_ok(ms < 2000, "within 2 s (%" PRIu64 " ms)", ms);
}

int main(int argc, char **argv)
{
	struct kt t;

	(void)argc;
	kt_open(&t, argv);
	test_first(&t);
	kt_close(&t);
	return tap_done();
}
