/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/transport_http.c - MCP over Streamable HTTP, both eras on one endpoint
 *
 * Runs in the front, without privilege; every byte is hostile. A POST is a message; what answers it is
 * either one JSON text or, for a call that takes time, a stream of events whose head is sent at once
 * (clients give up on a silent connection after a minute) and kept alive with comments.
 * A client that closes the connection cancels its call in the modern era; before that it
 * may be a network that was lost, and the call runs on.
 */
#include "mcp/transport_http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/bounds.h"
#include "mcp/jsonrpc.h"
#include "mcp/listen.h"
#include "mcp/mcp_headers.h"
#include "runtime/base/log.h"

#define JSON_TYPE "application/json"
#define EVENT_TYPE "text/event-stream"
#define EVENT_HEAD "event: message\ndata: "
#define EVENT_TAIL "\n\n"
#define KEEPALIVE ": keepalive\n\n"

/* A POST being answered. */
struct http_post {
	struct sink sink; /* first member */
	struct peer peer;
	struct transport_http *t;
	struct http_exchange *x; /* NULL: answered, or the client is gone */
	struct http_post *next, **link;
	struct loop_timer alive;
	struct buf out;
	bool handling;  /* inside server_receive() */
	bool over;      /* nothing follows */
	bool streaming; /* the head of an event stream is out */
	bool writing;   /* between begin and end of a message */
	bool takes_json, takes_events;
	bool session_ended; /* the one it names */
	bool listens;       /* a GET: what the server has to say without being asked */
	char owner[OWNER_ID_LEN + 1];
	char scope[SESSION_SCOPE_MAX + 2 * AUTH_ADDRESS_LEN];
};

static struct http_post *from_sink(struct sink *s)
{
	return (struct http_post *)s;
}

static struct http_post *from_peer(const struct peer *p)
{
	return (struct http_post *)((uintptr_t)p - offsetof(struct http_post, peer));
}

static void post_free(struct http_post *p)
{
	loop_timer_cancel(p->t->server->loop, &p->alive);
	*p->link = p->next;
	if (p->next)
		p->next->link = p->link;
	buf_done(&p->out);
	free(p);
}

/* ---- answers ---- */

static void reply_empty(struct http_exchange *x, int status)
{
	http_reply(x, &(struct http_answer){ .status = status }, "", 0);
}

static void on_alive(struct loop_timer *timer)
{
	struct http_post *p = timer->ctx;

	if (!p->x || !p->streaming)
		return;
	http_stream(p->x, KEEPALIVE, sizeof(KEEPALIVE) - 1);
	(void)loop_timer_set(p->t->server->loop, &p->alive, HTTP_COMMENT_EVERY_MS, on_alive, p);
}

/* The answer to initialize carries the session's id. Return: how many fields that is. */
static size_t add_session(struct http_post *p, struct http_field *fields, char id[SESSION_ID_MAX])
{
	if (!p->peer.initialized || session_make(&p->t->sessions, p->owner, p->peer.caps, id) < 0)
		return 0;
	*fields = (struct http_field){ "Mcp-Session-Id", id };
	return 1;
}

static void stream_begin(struct http_post *p)
{
	struct http_field fields[] = {
		{ "Cache-Control", "no-cache, no-transform" },
		{ "X-Accel-Buffering", "no" }, /* nginx would wait for more */
		{ NULL, NULL },
	};
	char id[SESSION_ID_MAX];
	size_t count = 2 + add_session(p, &fields[2], id);

	http_stream_begin(p->x, &(struct http_answer){ .status = 200, .type = EVENT_TYPE,
						       .fields = fields, .field_count = count });
	p->streaming = true;
	(void)loop_timer_set(p->t->server->loop, &p->alive, HTTP_COMMENT_EVERY_MS, on_alive, p);
}

static void reply_json(struct http_post *p, int status)
{
	struct http_field fields[] = { { "Cache-Control", "no-store" }, { NULL, NULL } };
	char id[SESSION_ID_MAX];
	size_t count = 1 + (status == 200 ? add_session(p, &fields[1], id) : 0);

	http_reply(p->x, &(struct http_answer){ .status = status, .type = JSON_TYPE, .fields = fields,
						.field_count = count }, p->out.data, p->out.len);
	p->x = NULL;
}

/* One event: the message has no line break in it. */
static void send_event(struct http_post *p)
{
	buf_append_str(&p->out, EVENT_TAIL);
	http_stream(p->x, p->out.data, p->out.len);
}

static bool ends_as_json(const struct http_post *p, int status, bool final)
{
	return !p->streaming && final && (status != 200 || p->takes_json);
}

/* ---- the sink ---- */

static struct buf *sink_begin(struct sink *s)
{
	struct http_post *p = from_sink(s);

	/* Whether this becomes an event or a JSON text is not known before its end. */
	buf_done(&p->out);
	buf_init(&p->out, LIMIT_OUT_MAX);
	buf_append_str(&p->out, EVENT_HEAD);
	p->writing = true;
	return &p->out;
}

static void deliver(struct http_post *p, int status, bool final)
{
	if (p->out.overflow) {
		log_error("no memory for a reply");
		http_abort(p->x);
		p->x = NULL;
	} else if (ends_as_json(p, status, final)) {
		buf_consume(&p->out, sizeof(EVENT_HEAD) - 1);
		reply_json(p, status);
	} else if (p->streaming || p->takes_events) {
		if (!p->streaming)
			stream_begin(p);
		send_event(p);
	} /* else: progress, and a client that takes one JSON text only */
}

/* Nothing more comes: a stream has its end, and what has not been answered gets an answer without a
 * message (a notification, or a call that was cancelled). */
static void finish(struct http_post *p, int status)
{
	if (p->x && p->streaming)
		http_stream_end(p->x);
	else if (p->x)
		reply_empty(p->x, status == 200 ? 204 : status);
	p->x = NULL;
	p->over = true;
	if (!p->handling)
		post_free(p);
}

static void sink_end(struct sink *s, int status, bool final)
{
	struct http_post *p = from_sink(s);

	if (p->writing && p->x)
		deliver(p, status, final);
	p->writing = false;
	buf_done(&p->out);
	if (final)
		finish(p, status);
}

static bool sink_is_ready(struct sink *s)
{
	struct http_post *p = from_sink(s);

	return !p->x || !p->streaming || http_is_ready(p->x);
}

static bool sink_is_stream(struct sink *s)
{
	const struct http_post *p = from_sink(s);

	return p->x && p->takes_events;
}

/* ---- what stands beside a message ---- */

static enum rpc_failure check_beside(const struct peer *peer, const struct rpc_message *m,
				     enum server_check what, const char **ret_why)
{
	const struct http_post *p = from_peer(peer);
	const struct http1_head *head = http_request_of(p->x)->head;

	switch (what) {
	case CHECK_VERSION:
		return headers_check_version(head, m, ret_why);
	case CHECK_NAMES:
		return headers_check_names(head, m, ret_why);
	case CHECK_LEGACY:
		break;
	}
	if (p->session_ended && strcmp(m->method, "initialize") != 0) {
		*ret_why = "Session not found";
		return RPC_SESSION;
	}
	return headers_check_legacy(head, ret_why);
}

static enum rpc_failure check_parameters(const struct peer *peer, const struct rpc_message *m,
					 const struct tool *tool, const char **ret_why)
{
	return headers_check_parameters(http_request_of(from_peer(peer)->x)->head, m, tool, ret_why);
}

static void write_headers(const struct peer *peer, struct buf *b)
{
	const struct http_post *p = from_peer(peer);

	if (p->x)
		headers_write(http_request_of(p->x)->head, b);
}

static const struct peer_ops peer_ops = { check_beside, check_parameters, write_headers };

/* ---- the life of a post ---- */

static void on_gone(void *ctx)
{
	struct http_post *p = ctx;

	p->x = NULL;
	loop_timer_cancel(p->t->server->loop, &p->alive);
	if (p->peer.modern || p->listens)
		server_cancel_peer(p->t->server, &p->peer); /* ends it */
}

static void on_ready(void *ctx)
{
	struct http_post *p = ctx;

	server_resume(p->t->server);
}

static bool accepts(const struct http1_head *head, const char *type)
{
	bool any = false;

	for (size_t i = 0; i < head->field_count; i++) {
		struct http_text v = head->fields[i].value;

		if (!http_text_is_word(head->fields[i].name, "accept"))
			continue;
		any = true;
		if (headers_has_type(v, type))
			return true;
	}
	return !any && !strcmp(type, JSON_TYPE);
}

/* Never 406: whoever takes neither by name ("*" and the like) gets JSON, which everybody can read. */
static void note_accept(struct http_post *p, const struct http1_head *head)
{
	p->takes_events = accepts(head, EVENT_TYPE);
	p->takes_json = !p->takes_events || accepts(head, JSON_TYPE);
}

static const struct http_text *session_field(const struct http_request *r)
{
	return http1_field(r->head, "mcp-session-id", NULL);
}

/* Ids belong to a session; without one, to whoever has this token and comes from this address, which may
 * be several. */
static void note_scope(struct http_post *p, const struct http_request *r)
{
	const struct http_text *id = session_field(r);
	enum session_state state = SESSION_NONE;
	uint8_t address[AUTH_ADDRESS_LEN];

	if (id)
		state = session_look(&p->t->sessions, *id, p->owner, p->scope, &p->peer.caps);
	p->session_ended = state == SESSION_ENDED;
	p->peer.ids_shared = state != SESSION_VALID;
	if (state == SESSION_VALID)
		return;
	auth_address(&p->t->auth, r, address);
	p->scope[0] = '@';
	for (size_t i = 0; i < sizeof(address); i++)
		(void)snprintf(p->scope + 1 + 2 * i, 3, "%02x", address[i]);
}

static struct http_post *post_new(struct transport_http *t, struct http_exchange *x, const char *owner)
{
	struct http_post *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->sink = (struct sink){ sink_begin, sink_end, sink_is_ready, sink_is_stream };
	p->t = t;
	p->x = x;
	memcpy(p->owner, owner, sizeof(p->owner));
	p->peer = (struct peer){ .owner = p->owner, .scope = p->scope, .calls_max = LIMIT_CALLS_OWNER,
				 .ops = &peer_ops };
	p->next = t->posts;
	p->link = &t->posts;
	if (p->next)
		p->next->link = &p->next;
	t->posts = p;
	return p;
}

/* ---- refusals that a head decides ---- */

static void refuse(struct http_exchange *x, int status, const struct http_field *fields, size_t count,
		   const char *why)
{
	http_refuse(x, &(struct http_answer){ .status = status, .fields = fields, .field_count = count },
		    why);
}

static bool check_host(struct transport_http *t, struct http_exchange *x, const struct http_request *r)
{
	size_t count = 0;
	const struct http_text *origin = http1_field(r->head, "origin", &count);

	if (!hosts_allow(&t->hosts, r->head->host)) {
		refuse(x, 403, NULL, 0, "Host is not a name of this server: set MCP_PUBLIC_BASE or "
					"MCP_ALLOWED_HOSTS");
		return false;
	}
	if (origin && (count != 1 || !hosts_allow_origin(&t->hosts, *origin))) {
		refuse(x, 403, NULL, 0, "pages of this Origin may not call this server");
		return false;
	}
	return true;
}

/* Before the token: a 401 to GET makes clients begin with OAuth. A server that never has anything to say
 * without being asked has no stream for it either. */
static bool check_method(struct transport_http *t, struct http_exchange *x, const struct http_request *r)
{
	static const struct http_field allow[] = { { "Allow", "POST" } };
	enum http_method method = r->head->method;

	if (method == HTTP_POST || (method == HTTP_DELETE && session_field(r)) ||
	    (method == HTTP_GET && session_field(r) && (t->server->offers & OFFER_CHANGES)))
		return true;
	refuse(x, 405, allow, 1, "send messages with POST");
	return false;
}

static bool check_token(struct transport_http *t, struct http_exchange *x, const struct http_request *r,
			char owner[OWNER_ID_LEN + 1])
{
	static const struct http_field challenge[] = { { "WWW-Authenticate", "Bearer realm=\"mcp\"" } };
	struct http_field later = { "Retry-After", NULL };
	char seconds[16];
	uint32_t wait_s = 0;

	switch (auth_check(&t->auth, r, loop_now_ns() / 1000000000U, owner, &wait_s)) {
	case AUTH_OK:
		return true;
	case AUTH_MISSING:
		refuse(x, 401, challenge, 1, "a token is needed: send \"Authorization: Bearer TOKEN\"");
		return false;
	case AUTH_WRONG:
		refuse(x, 401, challenge, 1, "this token is not known here: see \"mcp-sandbox token list\"");
		return false;
	case AUTH_LIMITED:
		break;
	}
	(void)snprintf(seconds, sizeof(seconds), "%u", wait_s);
	later.value = seconds;
	refuse(x, 429, &later, 1, "too many wrong tokens from this address");
	return false;
}

static bool check_type(struct http_exchange *x, const struct http_request *r)
{
	size_t count = 0;
	const struct http_text *type = http1_field(r->head, "content-type", &count);

	if (type && count == 1 && headers_has_type(*type, JSON_TYPE))
		return true;
	refuse(x, 415, NULL, 0, "Content-Type must be " JSON_TYPE);
	return false;
}

static void end_session(struct transport_http *t, struct http_exchange *x, const struct http_request *r,
			const char *owner)
{
	static const struct http_field allow[] = { { "Allow", "POST" } };
	char scope[SESSION_SCOPE_MAX];
	unsigned int caps;

	switch (session_look(&t->sessions, *session_field(r), owner, scope, &caps)) {
	case SESSION_VALID:
		session_end(&t->sessions, *session_field(r));
		reply_empty(x, 204);
		return;
	case SESSION_ENDED:
		refuse(x, 404, NULL, 0, "Session not found");
		return;
	case SESSION_NONE:
		break;
	}
	refuse(x, 405, allow, 1, "this session is not one of this server");
}

/* ---- doors ---- */

void transport_http_on_head(struct transport_http *t, struct http_exchange *x, const struct http_request *r)
{
	char owner[OWNER_ID_LEN + 1];

	if (!check_host(t, x, r) || !check_method(t, x, r) || !check_token(t, x, r, owner))
		return;
	if (r->head->method == HTTP_DELETE)
		end_session(t, x, r, owner);
	else if (r->head->method == HTTP_GET || check_type(x, r))
		http_limit_body(x, LIMIT_MESSAGE);
}

/* The call goes on: whoever can be shown its life is shown it from now on. */
static void settle(struct http_post *p)
{
	p->handling = false;
	if (p->over)
		post_free(p);
	else if (p->x && p->takes_events && !p->streaming)
		stream_begin(p);
}

/* Until the client goes. An id that is none of ours names nobody who could be told anything. */
static void hear(struct http_post *p)
{
	p->listens = true;
	if (p->takes_events && !p->peer.ids_shared)
		listen_legacy(p->t->server, &p->peer, &p->sink);
	else
		sink_end(&p->sink, 404, true);
}

void transport_http_on_request(struct transport_http *t, struct http_exchange *x,
			       const struct http_request *r)
{
	char owner[OWNER_ID_LEN + 1];
	struct http_post *p;

	/* Again: the token may have been removed while the body came in. */
	if (!check_token(t, x, r, owner))
		return;
	p = post_new(t, x, owner);
	if (!p) {
		refuse(x, 503, NULL, 0, "no memory");
		return;
	}
	note_accept(p, r->head);
	http_watch(x, on_gone, on_ready, p);
	p->handling = true;
	note_scope(p, r);
	if (r->head->method == HTTP_GET)
		hear(p);
	else
		server_receive(t->server, &p->peer, &p->sink, r->body ? r->body : "", r->body_len);
	settle(p);
}

const char *transport_http_write_error(int status, const char *why, struct buf *body)
{
	enum rpc_failure f = status == 404 ? RPC_SESSION : status >= 500 ? RPC_INTERNAL : RPC_REQUEST;

	rpc_write_error(body, NULL, 0, f, why, NULL);
	return JSON_TYPE;
}

bool transport_http_owns(const struct transport_http *t, struct http_text path)
{
	size_t len = strlen(t->path);

	if (len == 0)
		return false;
	if (path.len == len + 1 && path.data[len] == '/')
		path.len--;
	return path.len == len && memcmp(path.data, t->path, len) == 0;
}

void transport_http_set_tokens(struct transport_http *t, const struct api_tokens *tokens)
{
	auth_set_tokens(&t->auth, tokens);
	memcpy(t->sessions.key, tokens->session_key, sizeof(t->sessions.key));
	server_set_key(t->server, tokens->session_key);
}

void transport_http_init(struct transport_http *t, struct server *server)
{
	memset(t, 0, sizeof(*t));
	t->server = server;
	t->path = "";
	auth_init(&t->auth, false, false);
}

void transport_http_configure(struct transport_http *t, const char *path, const struct hosts *hosts,
			      bool no_token, bool behind_proxy)
{
	t->path = path;
	t->hosts = *hosts;
	t->auth.no_token = no_token;
	t->auth.behind_proxy = behind_proxy;
}

void transport_http_done(struct transport_http *t)
{
	while (t->posts) {
		t->posts->x = NULL; /* the server of HTTP closes what it has */
		post_free(t->posts);
	}
}
