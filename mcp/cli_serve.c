/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_serve.c - "serve": what is refused before anything listens, then the keeper of a service
 *
 * Runs as the user who starts the service, then as root of the storage namespace. An address that others
 * can reach needs TLS and a token: without either, whoever is on the same network could run commands.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "mcp/cli.h"
#include "mcp/cli_start.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/log.h"
#include "runtime/base/str.h"
#include "runtime/doors.h"
#include "runtime/handover.h"
#include "runtime/keeper.h"
#include "runtime/store.h"
#include "runtime/tokens.h"

#define PLACEHOLDER_BASE "https://your.host:8443"

struct serve {
	struct start start;
	struct doors doors;
	struct token_table fixed;
	struct handover *handover; /* this process was the keeper before, under another program */
};

/* ---- what is refused ---- */

static bool is_loopback(const char *host)
{
	struct in6_addr v6;
	struct in_addr v4;

	if (strcmp(host, "localhost") == 0)
		return true;
	if (inet_pton(AF_INET, host, &v4) == 1)
		return ((const unsigned char *)&v4)[0] == 127;
	return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

static int check_tls(const struct config *c, struct err *e)
{
	bool chain = *config_text(c, CONFIG_TLS_CERT), key = *config_text(c, CONFIG_TLS_KEY);

	if (chain != key) {
		err_set(e, ERR_CONFIG, "%s is set without %s", chain ? "SANDBOX_TLS_CERT" : "SANDBOX_TLS_KEY",
			chain ? "SANDBOX_TLS_KEY" : "SANDBOX_TLS_CERT");
		return err_remedy(e, "set both, or neither");
	}
	if (chain || is_loopback(config_text(c, CONFIG_HOST)) || config_number(c, CONFIG_BEHIND_PROXY))
		return 0;
	err_set(e, ERR_CONFIG, "SANDBOX_HOST=%s: others can reach this address, and there is no TLS",
		config_text(c, CONFIG_HOST));
	return err_remedy(e, "set SANDBOX_TLS_CERT and SANDBOX_TLS_KEY (\"tls self-signed\" makes a pair), or "
			     "SANDBOX_BEHIND_PROXY=1 when a proxy has the TLS");
}

static int check_public_base(const struct config *c, struct err *e)
{
	if (strcmp(config_text(c, CONFIG_PUBLIC_BASE), PLACEHOLDER_BASE) != 0)
		return 0;
	err_set(e, ERR_CONFIG, "MCP_PUBLIC_BASE is still the placeholder " PLACEHOLDER_BASE);
	return err_remedy(e, "set it to the address clients use for this server, or leave it out");
}

static int check_no_token(const struct config *c, struct err *e)
{
	if (!config_number(c, CONFIG_NO_TOKEN) || is_loopback(config_text(c, CONFIG_HOST)))
		return 0;
	err_set(e, ERR_CONFIG, "SANDBOX_NO_TOKEN=1 with SANDBOX_HOST=%s: others can reach this address",
		config_text(c, CONFIG_HOST));
	return err_remedy(e, "leave SANDBOX_NO_TOKEN out, or listen on 127.0.0.1");
}

/* Behind a proxy everybody comes from the loopback address. */
static int check_proxy(const struct config *c, struct err *e)
{
	if (!config_number(c, CONFIG_NO_TOKEN) || !config_number(c, CONFIG_BEHIND_PROXY))
		return 0;
	err_set(e, ERR_CONFIG, "SANDBOX_NO_TOKEN=1 and SANDBOX_BEHIND_PROXY=1 together let everybody in");
	return err_remedy(e, "leave SANDBOX_NO_TOKEN out");
}

static int check_tokens(const struct serve *s, const struct config *c, struct err *e)
{
	struct token_table t = { 0 };
	struct store store;
	int r;

	if (s->fixed.count || config_number(c, CONFIG_NO_TOKEN))
		return 0;
	if (store_open(&store, s->start.settings.home, e) < 0)
		return -1;
	r = tokens_read(&store, &t, e);
	store_done(&store);
	if (r < 0 || t.count)
		return r;
	err_set(e, ERR_CONFIG, "there is no token: nobody could come in");
	return err_remedy(e, "mcp-sandbox token add NAME, or set MCP_TOKEN; on loopback SANDBOX_NO_TOKEN=1 "
			     "does without");
}

/* ---- what the keeper is given ---- */

static int fill_doors(struct doors *d, const struct config *c, struct err *e)
{
	struct api_http *h = &d->http;

	h->flags = (config_number(c, CONFIG_BEHIND_PROXY) ? API_HTTP_BEHIND_PROXY : 0) |
		   (config_number(c, CONFIG_NO_TOKEN) ? API_HTTP_NO_TOKEN : 0);
	h->link_ttl_ms = config_number(c, CONFIG_LINK_TTL);
	if (str_copy(h->path, sizeof(h->path), config_text(c, CONFIG_PATH)) < 0 ||
	    str_copy(h->public_base, sizeof(h->public_base), config_text(c, CONFIG_PUBLIC_BASE)) < 0 ||
	    str_copy(h->allowed_hosts, sizeof(h->allowed_hosts), config_text(c, CONFIG_ALLOWED_HOSTS)) < 0 ||
	    str_copy(h->sign_key, sizeof(h->sign_key), config_text(c, CONFIG_SIGN_KEY)) < 0 ||
	    str_copy(d->chain_path, sizeof(d->chain_path), config_text(c, CONFIG_TLS_CERT)) < 0 ||
	    str_copy(d->key_path, sizeof(d->key_path), config_text(c, CONFIG_TLS_KEY)) < 0)
		return err_set(e, ERR_CONFIG, "a setting of HTTP is too long");
	return 0;
}

static int open_doors(struct serve *s, const struct config *c, struct err *e)
{
	int fds[FD_PASS_MAX], count;

	if (s->handover) {
		doors_inherit(&s->doors, fds, handover_listening(s->handover, fds));
		return 0;
	}
	count = doors_open_tls(&s->doors, fds, e);
	if (count < 0)
		return -1;
	for (int i = 0; i < count; i++)
		close_fd(&fds[i]);
	if (doors_listen(&s->doors, config_text(c, CONFIG_HOST),
			 (uint16_t)config_number(c, CONFIG_PORT), e) < 0)
		return -1;
	(void)strncat(s->doors.url, config_text(c, CONFIG_PATH), sizeof(s->doors.url) - strlen(s->doors.url) - 1);
	return 0;
}

static int new_front(void *ctx, pid_t *ret_pid, struct err *e)
{
	const struct serve *s = ctx;

	return start_front(&s->start, FRONT_HTTP, ret_pid, e);
}

/* The front that is there already, or the first. */
static int front(struct serve *s, pid_t *ret_pid, struct err *e)
{
	int fd = s->handover ? handover_front(s->handover, ret_pid) : -1;

	return fd >= 0 ? fd : new_front(s, ret_pid, e);
}

static int run(struct serve *s, char *const *argv, struct err *e)
{
	struct keeper_start start = {
		.settings = &s->start.settings,
		.cgroup = &s->start.cgroup,
		.ids = &s->start.ids,
		.kind = KEEPER_SERVICE,
		.fixed_tokens = &s->fixed,
		.doors = &s->doors,
		.new_front = new_front,
		.ctx = s,
		.handover = s->handover,
		.argv = argv,
	};

	start.peer_fd = front(s, &start.peer_pid, e);
	if (start.peer_fd < 0)
		return -1;
	log_init("keeper", LOG_LEVEL_WARN);
	return keeper_run(&start, e);
}

/* Ports below 1024 are bound before the capability for it goes. */
static int prepare(struct cli_call *call, struct serve *s, struct err *e)
{
	const struct config *c = &call->config;

	if (check_tls(c, e) < 0 || check_no_token(c, e) < 0 || check_proxy(c, e) < 0 ||
	    check_public_base(c, e) < 0 || fill_doors(&s->doors, c, e) < 0 ||
	    tokens_put_default(&s->fixed, config_text(c, CONFIG_TOKEN), e) < 0)
		return -1;
	if (start_place(call, &s->start, e) < 0 || check_tokens(s, c, e) < 0 || open_doors(s, c, e) < 0)
		return -1;
	return start_cut(&s->start, e);
}

int cli_serve(struct cli_call *call, struct err *e)
{
	static struct serve s; /* the settings in it are long */
	int status = -1;

	if (start_settings(call, &s.start, e) < 0)
		return -1;
	s.handover = handover_open();
	if (prepare(call, &s, e) == 0)
		status = run(&s, call->argv, e);
	doors_done(&s.doors);
	start_done(&s.start);
	return status;
}
