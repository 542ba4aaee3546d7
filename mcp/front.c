/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/front.c - the unprivileged half: speaks MCP, holds nothing but its descriptors
 *
 * Starts with the keeper's id and gives it up before the first byte of input. Descriptors: the
 * client's standard input and output, standard error, and the socket to the keeper, which it trusts.
 */
#include "mcp/front.h"

#include <signal.h>
#include <unistd.h>

#include "mcp/front_confine.h"
#include "mcp/keeper_client.h"
#include "mcp/server.h"
#include "mcp/transport_stdio.h"
#include "runtime/base/log.h"

struct front {
	struct keeper_client keeper;
	struct server server;
	struct transport_stdio transport;
};

static void on_drained(void *ctx)
{
	struct front *f = ctx;

	transport_stdio_update(&f->transport);
}

/* Every call has been answered with the reason by now. */
static void on_gone(void *ctx, const struct err *e)
{
	struct front *f = ctx;

	log_error("%s", e->message);
	transport_stdio_end(&f->transport, 1);
}

static int serve(struct front *f, struct loop *loop, const struct registry *registry, struct err *e)
{
	int status = -1;

	f->keeper.on_drained = on_drained;
	f->keeper.on_gone = on_gone;
	f->keeper.ctx = f;
	if (server_init(&f->server, loop, &f->keeper, registry, e) == 0 &&
	    keeper_client_watch(&f->keeper, loop, e) == 0 &&
	    transport_stdio_start(&f->transport, &f->server, STDIN_FILENO, STDOUT_FILENO, e) == 0)
		status = loop_run(loop, e);
	keeper_client_done(&f->keeper);
	server_done(&f->server);
	transport_stdio_done(&f->transport);
	return status;
}

int front_stdio(uint32_t id, const struct registry *registry, struct err *e)
{
	static struct front front;
	struct loop *loop;
	int status;

	(void)signal(SIGPIPE, SIG_IGN);
	if (front_become(id, e) < 0 || keeper_client_init(&front.keeper, FRONT_API_FD, e) < 0 ||
	    front_confine(e) < 0)
		return -1;
	loop = loop_new(e);
	if (!loop)
		return -1;
	status = serve(&front, loop, registry, e);
	loop_free(loop);
	return status;
}
