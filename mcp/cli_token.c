/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_token.c - "token add", "token list", "token rm"
 *
 * Runs as the user who runs the server. The file is changed here, under a lock; servers that run on the
 * same state directory are told, so that the change holds for the next request.
 */
#include <stdio.h>
#include <string.h>

#include "mcp/cli.h"
#include "mcp/cli_client.h"
#include "mcp/cli_start.h"
#include "runtime/base/str.h"
#include "runtime/store.h"
#include "runtime/tokens.h"

enum { KEEPERS_MAX = 256 };

static int open_store(struct cli_call *call, struct store *ret, struct err *e)
{
	struct start s;

	if (start_settings(call, &s, e) < 0)
		return -1;
	return store_open(ret, s.settings.home, e);
}

/* A keeper that is just ending, or left its socket behind, serves nobody. */
static int tell_keeper(const struct store *store, pid_t pid, struct err *e)
{
	struct api_header request = { .version = API_VERSION, .op = API_TOKENS_READ,
				      .size = sizeof(request), .id = 1 };
	struct client c;
	int r = 0;

	if (client_connect(&c, store, pid, e) == 0) {
		r = client_request(&c, &request, e);
		if (r < 0 && e->code == ERR_GONE)
			r = 0;
	}
	client_close(&c);
	return r;
}

static int tell_keepers(const struct store *store, struct err *e)
{
	pid_t keepers[KEEPERS_MAX];
	ssize_t count = client_list_keepers(store, keepers, KEEPERS_MAX, e);
	int r = count < 0 ? -1 : 0;

	for (ssize_t i = 0; i < count; i++) {
		if (tell_keeper(store, keepers[i], e) < 0)
			r = err_wrap(e, "the file is changed, but the server with pid %d goes on as before",
				     (int)keepers[i]);
	}
	return r;
}

int cli_token_add(struct cli_call *call, struct err *e)
{
	char token[TOKEN_TEXT_MAX];
	struct store store;
	int r;

	if (open_store(call, &store, e) < 0)
		return -1;
	r = tokens_add(&store, call->args[0], token, e);
	/* Shown before anything else can fail: it is nowhere else. */
	if (r == 0 && (printf("%s\n", token) < 0 || fflush(stdout) != 0)) {
		err_sys(e, "write the token");
		(void)tokens_remove(&store, call->args[0], NULL);
		r = -1;
	}
	if (r == 0)
		r = tell_keepers(&store, e);
	store_done(&store);
	return r < 0 ? -1 : CLI_OK;
}

int cli_token_rm(struct cli_call *call, struct err *e)
{
	struct store store;
	int r;

	if (open_store(call, &store, e) < 0)
		return -1;
	r = tokens_remove(&store, call->args[0], e);
	if (r == 0)
		r = tell_keepers(&store, e);
	store_done(&store);
	return r < 0 ? -1 : CLI_OK;
}

int cli_token_list(struct cli_call *call, struct err *e)
{
	struct token_table t;
	struct store store;
	int r;

	if (open_store(call, &store, e) < 0)
		return -1;
	r = tokens_read(&store, &t, e);
	for (size_t i = 0; r == 0 && i < t.count; i++)
		printf("%-*s %s\n", OWNER_NAME_MAX, t.rows[i].name, t.rows[i].owner);
	store_done(&store);
	return r < 0 ? -1 : CLI_OK;
}
