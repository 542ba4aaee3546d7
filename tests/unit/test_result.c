/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_result.c - the first line, note by note; the omission line; when it is an error */
#include "mcp/result.h"
#include "runtime/base/buf.h"
#include "tests/unit/tap.h"

#define GIB (UINT64_C(1) << 30)

static const struct row {
	const char *want;
	bool error;
	struct api_exec_done d;
} rows[] = {
	{ "[sandbox k] [exit 0]", false, { .exit_code = 0 } },
	{ "[sandbox k] [new] [exit 0]", false, { .flags = API_CREATED } },
	{ "[sandbox k] [exit 1]", false, { .exit_code = 1 } },
	{ "[sandbox k] [exit 137]", false, { .exit_code = 137 } },
	{ "[sandbox k] [exit 124] [timeout 2 s]", true,
	  { .exit_code = 124, .flags = API_TIMED_OUT, .timeout_ms = 2000 } },
	{ "[sandbox k] [exit 137] [out of memory: limit 1 GiB]", true,
	  { .exit_code = 137, .flags = API_OUT_OF_MEMORY, .memory_limit_bytes = GIB } },
	{ "[sandbox k] [exit 254] [process limit 256]", false,
	  { .exit_code = 254, .flags = API_PIDS_REFUSED, .pids_limit = 256 } },
	{ "[sandbox k] [exit 0] [cpu throttled 41 s]", false, { .throttled_usec = 41900000 } },
	{ "[sandbox k] [exit 0]", false, { .throttled_usec = 999999 } },
	{ "[sandbox k] [exit 0] [still running: 3 processes]", false, { .left_running = 3 } },
	{ "[sandbox k] [exit 0] [limits not enforced: memory, pids, cpu]", false,
	  { .not_enforced = CGROUP_ALL } },
	{ "[sandbox k] [exit 0] [limits not enforced: cpu]", false, { .not_enforced = CGROUP_CPU } },
	{ "[sandbox k] [exit 0] [timeout lowered to the ceiling of 900 s]", false,
	  { .flags = API_TIMEOUT_CLAMPED, .timeout_ms = 900000 } },
	{ "[sandbox k] [exit 0]", false, { .flags = API_LEAF_SHARED } },
	{ "[sandbox k] [exit 124] [timeout 9 s] [background commands were killed too]", true,
	  { .exit_code = 124, .flags = API_TIMED_OUT | API_LEAF_SHARED, .timeout_ms = 9000 } },
	{ "[sandbox k] [exit 0] [not a directory, renamed aside: /dev, /workspace]", false,
	  { .replaced = LAUNCH_REPLACED_DEV | LAUNCH_REPLACED_WORKSPACE } },
	{ "[sandbox k] [exit 0] [lost in a server restart: 1 command; its output so far is in /output]",
	  false, { .lost = 1 } },
	{ "[sandbox k] [new] [exit 0] [lost in a server restart: 2 commands; its output so far is in "
	  "/output] [ended without an answer: 1 command; the output is in /output]",
	  false, { .flags = API_CREATED, .lost = 2, .unanswered = 1 } },
	{ "[sandbox k] [new] [exit 124] [timeout 1 s] [out of memory: limit 512 MiB] [process limit 64] "
	  "[cpu throttled 1 s] [still running: 2 processes] [limits not enforced: pids] "
	  "[timeout lowered to the ceiling of 1 s] [sandbox ended: its processes are gone, files stay] "
	  "[not a directory, renamed aside: /proc]",
	  true,
	  { .exit_code = 124, .flags = 0x7f, .timeout_ms = 1000, .memory_limit_bytes = GIB / 2,
	    .pids_limit = 64, .throttled_usec = 1000000, .left_running = 2, .not_enforced = CGROUP_PIDS,
	    .replaced = LAUNCH_REPLACED_PROC } },
};

static void first_lines(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf b;

		buf_init(&b, 1000);
		result_first_line(&b, "k", &rows[i].d);
		tap_str(b.data, rows[i].want, "first line, row %zu", i);
		tap_int(result_is_error(&rows[i].d), rows[i].error, "is it an error");
		buf_done(&b);
	}
}

static void omissions(void)
{
	static const struct api_exec_done whole = { .log_number = 7, .log_bytes = 123456, .total_bytes = 123456 };
	static const struct api_exec_done capped = { .log_number = 8, .log_bytes = 100, .total_bytes = 900,
						     .flags = API_OUTPUT_CAPPED };
	static const struct {
		const struct api_exec_done *d;
		bool kept;
		const char *want;
	} list[] = {
		{ &whole, true, "[... 42 characters omitted; whole output: /output/7.log (123456 bytes)]" },
		{ &capped, true,
		  "[... 42 characters omitted; first 100 of 900 bytes of output: /output/8.log]" },
		{ &whole, false, "[... 42 characters omitted]" },
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		struct buf b;

		buf_init(&b, 1000);
		result_omitted(&b, list[i].d, 42, list[i].kept);
		tap_str(b.data, list[i].want, "omission row %zu", i);
		buf_done(&b);
	}
}

static void durations(void)
{
	static const struct {
		uint64_t ms;
		const char *want;
	} list[] = { { 0, "0 s" },	      { 1999, "1 s" },	    { 119999, "119 s" },
		     { 120000, "2 min" },     { 7199999, "119 min" }, { 7200000, "2 h 0 min" },
		     { 172800000, "2 d 0 h" } };

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		struct buf b;

		buf_init(&b, 100);
		result_duration(&b, list[i].ms);
		tap_str(b.data, list[i].want, "duration row %zu", i);
		buf_done(&b);
	}
}

int main(void)
{
	first_lines();
	omissions();
	durations();
	return tap_done();
}
