/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_selftest.h - what the parts of "selftest" share: one server, and what is known about it */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcp/http_client.h"
#include "runtime/base/buf.h"
#include "runtime/base/err.h"

struct json;

enum {
	SELFTEST_WHY_MAX = 8 * 1024,
	SELFTEST_ARGS_MAX = 1024 * 1024,
	SELFTEST_LABEL_MAX = 64,
	SELFTEST_KEY_MAX = 48,
	SELFTEST_RUN_LEN = 8,      /* hexadecimal digits that are this run's own */
	SELFTEST_CALL_MS = 60000,  /* for a call that has no reason to take long */
	SELFTEST_PLACES_MAX = 32,  /* of a server; more are not filled */
	SELFTEST_LABELS_MAX = 64,
};

enum selftest_verdict {
	SELFTEST_OK,
	SELFTEST_FAILED,
	SELFTEST_UNSEEN, /* cannot be seen from outside, or not on this server; never counted as held */
};

enum selftest_era { SELFTEST_MODERN, SELFTEST_LEGACY };

struct selftest {
	struct http_url url;
	struct http_client *client;
	const char *token; /* "": none */
	char run[SELFTEST_RUN_LEN + 1];
	unsigned int number; /* for the next thing that needs one of its own */
	enum selftest_era era;
	char session[512]; /* of the legacy era; "": none yet */
	struct buf why;    /* of the present row */
	char labels[SELFTEST_LABELS_MAX][SELFTEST_LABEL_MAX]; /* that were used */
	unsigned int label_count;

	/* What sandbox_info says. */
	bool safe_shell;
	char net[96], not_enforced[64];
	unsigned int max, running; /* sandboxes; running: when we came */
	uint64_t memory_bytes, pids, cpu_milli;
};

/* ---- cli_selftest_mcp.c ---- */

/* A tool's answer. */
struct selftest_answer {
	struct json *root;
	bool is_error;
	const struct json *content;
	const char *text;   /* of the first text block; never NULL */
	const char *output; /* what follows text's first line */
	char key[SELFTEST_KEY_MAX];
	bool is_new;
	int status;        /* of "[exit N]"; -1: none */
	uint64_t took_ms;
};

/* selftest_rpc() - one method; params is JSON text without _meta, at least "{}". *ret_root is the whole
 * message, to be freed. Return: HTTP status, -1 with why. */
int selftest_rpc(struct selftest *s, const char *method, const char *name, const char *params,
		 struct json **ret_root);

/* selftest_start(), selftest_hear() - a tool call that others can run beside. Return: NULL, -1 with why. */
struct http_query *selftest_start(struct selftest *s, const char *tool, const char *args);
int selftest_hear(struct selftest *s, struct http_query *q, struct selftest_answer *ret);
int selftest_call(struct selftest *s, const char *tool, const char *args, struct selftest_answer *ret);
void selftest_answer_done(struct selftest_answer *a);

/* selftest_run() - run_command in a label of this run. seconds 0: the server's default. */
int selftest_run(struct selftest *s, const char *label, const char *command, unsigned int seconds,
		 struct selftest_answer *ret);
struct http_query *selftest_run_start(struct selftest *s, const char *label, const char *command,
				      unsigned int seconds);
int selftest_present(struct selftest *s, const char *label, const char *path, struct selftest_answer *ret);

/* selftest_get() - GET or HEAD of a target without a token; fields may be NULL. Return: 0, -1 with why. */
int selftest_get(struct selftest *s, const char *method, const char *target, const char *fields,
		 struct http_reply *ret);

/* selftest_post() - POST on the endpoint with these fields, as they are. */
int selftest_post(struct selftest *s, const char *target, const char *fields, const char *body,
		  struct http_reply *ret);

/* selftest_connect_legacy() - initialize; *ret_root may be NULL. Return: 0, -1 with why. */
int selftest_connect_legacy(struct selftest *s, struct json **ret_root);

/* selftest_learn() - fill in what sandbox_info says (or, for safe-shell, the list of tools). */
int selftest_learn(struct selftest *s);

/* selftest_fail(), selftest_unseen() - the verdict, with its reason; what is there already stays. */
enum selftest_verdict selftest_fail(struct selftest *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
enum selftest_verdict selftest_unseen(struct selftest *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* selftest_label() - a label of this run: "selftest <run> <name>". */
const char *selftest_label(const struct selftest *s, const char *name, char ret[SELFTEST_LABEL_MAX]);

/* ---- the checks: cli_selftest_http.c ---- */
enum selftest_verdict selftest_initialize(struct selftest *s);
enum selftest_verdict selftest_discover(struct selftest *s);
enum selftest_verdict selftest_tools(struct selftest *s);
enum selftest_verdict selftest_health(struct selftest *s);
enum selftest_verdict selftest_token(struct selftest *s);
enum selftest_verdict selftest_get_405(struct selftest *s);
enum selftest_verdict selftest_no_oauth(struct selftest *s);
enum selftest_verdict selftest_names(struct selftest *s);
enum selftest_verdict selftest_redacted(struct selftest *s);
enum selftest_verdict selftest_image(struct selftest *s);
enum selftest_verdict selftest_link(struct selftest *s);
enum selftest_verdict selftest_link_parts(struct selftest *s);
enum selftest_verdict selftest_link_404(struct selftest *s);
enum selftest_verdict selftest_link_expired(struct selftest *s);
enum selftest_verdict selftest_link_swapped(struct selftest *s);
enum selftest_verdict selftest_present_refused(struct selftest *s);

/* ---- cli_selftest_run.c ---- */
enum selftest_verdict selftest_new(struct selftest *s);
enum selftest_verdict selftest_both_eras(struct selftest *s);
enum selftest_verdict selftest_same_label(struct selftest *s);
enum selftest_verdict selftest_apart(struct selftest *s);
enum selftest_verdict selftest_order(struct selftest *s);
enum selftest_verdict selftest_exits(struct selftest *s);
enum selftest_verdict selftest_arguments(struct selftest *s);
enum selftest_verdict selftest_environment(struct selftest *s);
enum selftest_verdict selftest_timeout(struct selftest *s);
enum selftest_verdict selftest_background(struct selftest *s);
enum selftest_verdict selftest_output(struct selftest *s);
enum selftest_verdict selftest_utf8(struct selftest *s);
enum selftest_verdict selftest_reaps(struct selftest *s);
enum selftest_verdict selftest_host_hidden(struct selftest *s);
enum selftest_verdict selftest_safe_shell(struct selftest *s);

/* ---- cli_selftest_limits.c ---- */
enum selftest_verdict selftest_memory(struct selftest *s);
enum selftest_verdict selftest_pids(struct selftest *s);
enum selftest_verdict selftest_cpu(struct selftest *s);
enum selftest_verdict selftest_lan(struct selftest *s);
enum selftest_verdict selftest_apt(struct selftest *s);
enum selftest_verdict selftest_lru(struct selftest *s);
enum selftest_verdict selftest_recycle(struct selftest *s);
enum selftest_verdict selftest_all_busy(struct selftest *s);

/* selftest_clean() - empty the workspaces this run used. */
void selftest_clean(struct selftest *s);
