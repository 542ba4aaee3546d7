/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/proxy/internal.h - what the files of the egress proxy share
 *
 *   main.c     start, confinement, the keeper's messages
 *   box.c      a sandbox's listeners, accepting
 *   conn.c     one client: which protocol, what it wants, whether it may
 *   text.c     heads that are read, answers of our own
 *   exchange.c requests and responses of plain HTTP
 *   dial.c     from a host to a connected socket: look up, check, connect
 *   lookup.c   one name asked of the name servers
 *   flow.c     bytes from one socket to another
 *   relay_dns.c the resolver of sandboxes with an address of their own
 *   report.c   egress log, what the keeper is told, sentences
 *   route.c    is it this host, or next to it?
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "runtime/base/accept.h"
#include "runtime/base/buf.h"
#include "runtime/base/loop.h"
#include "runtime/net_policy.h"
#include "runtime/proxy/dns.h"
#include "runtime/proxy/http.h"
#include "runtime/proxy/wire.h"

enum {
	CONNS_MAX = 2048,           /* of all sandboxes of the owner */
	CONNS_PER_BOX_MAX = 1024,
	CONN_DESCRIPTORS = 6,       /* two sockets, two pipes */
	RESERVED_DESCRIPTORS = 64,  /* listeners and the rest; each sandbox has three more */
	DNS_PER_BOX_MAX = 64,       /* questions under way */
	HEAD_TIMEOUT_MS = 30 * 1000,     /* for a whole request head, and for a response to begin: below */
	KEEP_ALIVE_MS = 60 * 1000,       /* between two requests */
	IDLE_TIMEOUT_MS = 15 * 60 * 1000, /* a tunnel, or a response, without a byte */
	DNS_IDLE_MS = 10 * 1000,         /* questions over TCP */
	DNS_TRY_MS = 2 * 1000,           /* one name server, for a sandbox's question */
	DIAL_TIMEOUT_MS = 20 * 1000,     /* look-up and all attempts to connect */
	CONNECT_TIMEOUT_MS = 6 * 1000,   /* one attempt, when there is another address */
	LOOKUP_TRY_MS = 1500,            /* one name server */
	LOOKUP_ROUNDS = 2,
	LINGER_MS = 2 * 1000,       /* for a refused client to read the reason */
	LINGER_BYTES_MAX = 256 * 1024,
	FLOW_ROUNDS_MAX = 16,       /* of one event, then the others have their turn */
	FLOW_CHUNK = 64 * 1024,
};

struct proxy;
struct box;
struct conn;

/* ---- flow.c ---- */

struct flow { /* one direction of a connection */
	enum http_body body;
	uint64_t left;             /* HTTP_BODY_LENGTH */
	struct http_chunks chunks; /* HTTP_BODY_CHUNKED */
	int pipe[2];               /* -1 while nothing is in it */
	size_t in_pipe;
	uint64_t bytes;            /* delivered, over the flow's whole life */
	bool eof;                  /* nothing more comes */
	bool done;                 /* everything is delivered */
	bool want_read, want_write; /* what it waits for */
};

void flow_init(struct flow *f);
void flow_begin(struct flow *f, enum http_body body, uint64_t length);

/* flow_step() - move what can be moved. Return: 0, -1 when the connection is broken. */
int flow_step(struct flow *f, int src, int dst);
void flow_done(struct flow *f);

/* ---- lookup.c, dial.c ---- */

enum dial_result {
	DIAL_OK,
	DIAL_DENIED,     /* every address is one a sandbox may not reach */
	DIAL_NO_NAME,    /* no such name, or it has no address */
	DIAL_NO_SERVER,  /* no name server answered */
	DIAL_REFUSED,
	DIAL_UNREACHABLE,
	DIAL_TIMEOUT,
	DIAL_NO_MEMORY,
};

struct lookup;
typedef void lookup_fn(struct lookup *l, enum dial_result result);

struct lookup_query {
	struct loop_source source; /* fd -1: not asking */
	uint8_t query[DNS_QUERY_MAX];
	size_t query_len;
	bool answered;
	bool over_tcp;
	uint8_t *tcp; /* length and message, while they arrive */
	size_t tcp_len;
	struct lookup *lookup;
};

struct lookup {
	struct proxy *proxy;
	lookup_fn *fn;
	void *ctx;
	struct lookup_query queries[2]; /* A, AAAA */
	struct loop_timer timer;
	unsigned int tries;
	bool no_name, failed;
	struct dns_addresses v4, v6;
	char name[NET_NAME_MAX];
};

/* lookup_start() - fn is called once, never from inside this function. */
void lookup_start(struct lookup *l, struct proxy *p, const char *name, lookup_fn *fn, void *ctx);
void lookup_cancel(struct lookup *l);

struct dial;
/* fd is the caller's, -1 unless DIAL_OK; addr is the one connected to, or the one that was refused. */
typedef void dial_fn(void *ctx, enum dial_result result, enum net_range_kind kind, int fd,
		     const struct net_addr *addr);

/* dial_start() - connect to the first address that may be reached. fn is called once, from the loop.
 * Return: NULL without memory. */
struct dial *dial_start(struct proxy *p, const struct net_dest *host, uint16_t port, dial_fn *fn,
			void *ctx);
void dial_cancel(struct dial *d);

/* dial_check() - may a sandbox talk to this address? */
enum net_range_kind dial_check(struct proxy *p, const struct net_addr *addr);

/* ---- route.c ---- */

/* route_open() - a question channel to the kernel. Return: descriptor, -1. */
int route_open(struct err *e);

/* route_kind() - NET_RANGE_HOST for an address of this host, LAN for one of a directly attached
 * network, PUBLIC otherwise; RESERVED when it cannot be told. */
enum net_range_kind route_kind(int fd, const struct net_addr *addr);

/* ---- box.c ---- */

struct listener {
	struct acceptor on; /* its source's fd -1: none */
	struct box *box;
	enum proxy_listener kind;
};

struct dns_query;

struct box { /* a sandbox */
	struct proxy *proxy;
	struct box *next;
	uint64_t id;
	char key[KEY_MAX];
	struct listener listeners[PROXY_LISTENERS_MAX];
	struct conn *conns;
	unsigned int conn_count;
	struct dns_query *queries;
	unsigned int query_count;
};

int box_listen(struct proxy *p, const struct proxy_listen *msg, int fd, struct err *e);
void box_forget(struct proxy *p, uint64_t id);
void boxes_done(struct proxy *p);

/* ---- relay_dns.c ---- */

void relay_dns_datagram(struct listener *l);
void relay_dns_stop(struct box *b);

/* ---- conn.c ---- */

enum conn_state {
	CONN_SNIFF,     /* which protocol? */
	CONN_SOCKS,     /* greeted, the request is to come */
	CONN_REQUEST,   /* HTTP: a request's head */
	CONN_DIALING,
	CONN_UPSTREAM,  /* waiting for the upstream proxy's answer to our CONNECT */
	CONN_TUNNEL,
	CONN_EXCHANGE,  /* HTTP: a request on its way, its response coming */
	CONN_LAST_WORDS, /* flush, then linger */
	CONN_LINGER,    /* until the client has gone, a while at most */
};

struct conn {
	struct box *box;
	struct conn *next, **link;
	enum conn_state state;
	bool socks, dns;
	bool tunnel;          /* CONNECT or SOCKS */
	bool keep_alive;      /* the client goes on after this exchange */
	bool server_keeps;
	bool to_head;         /* the request is a HEAD */
	bool reused;          /* the server's connection has served before */
	bool response_begun, response_done;
	bool server_shut, client_shut; /* told that nothing more comes */
	struct loop_source client, server;
	int client_fd, server_fd;
	struct loop_timer timer;
	uint64_t active_ns;
	char *in, *response_in; /* head so far: of the request, of the response */
	size_t in_len, response_len;
	struct buf to_client, to_server;
	struct flow up, down;
	struct dial *dial;
	struct net_dest host;
	uint16_t port;
	struct net_addr addr;
	uint64_t sent_text, received_text; /* heads, for the log */
	uint64_t lingered;
};

void conn_accept(struct listener *l, int fd);
void conn_close(struct conn *c);

/* Shared by conn.c, text.c and exchange.c. */

enum { CONN_TEXT_MAX = HTTP_HEAD_MAX + 4096 };

/* conn_read_head() - peek, so that what follows the head stays in the socket. Return: length of the
 * complete head in *in, 0: not yet, -1: end or error, -2: too long. */
int conn_read_head(int fd, char **in, size_t *len);

/* conn_flush() - pending text. Return: true when nothing is left; *ret_broken when it cannot go. */
bool conn_flush(struct buf *pending, int fd, bool *ret_broken);

/* conn_answer() - a response of our own, then the end. */
void conn_answer(struct conn *c, unsigned int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* conn_step() - go on as far as it goes, then wait for what is missing. */
void conn_step(struct conn *c);

/* conn_reach() - check the destination and dial it, or refuse. */
void conn_reach(struct conn *c);
void conn_drop_server(struct conn *c);
void conn_set_timer(struct conn *c, uint64_t ms);

void exchange_read_request(struct conn *c);
void exchange_connected(struct conn *c);

/* exchange_step() - Return: 0, -1 when the connection is to be closed. */
int exchange_step(struct conn *c);

/* ---- report.c ---- */

struct egress_entry {
	const char *key, *name;
	const struct net_addr *addr; /* NULL: none */
	uint16_t port;
	uint64_t sent, received;
	const char *verdict, *reason; /* reason NULL: none */
};

void report_egress(struct proxy *p, const struct egress_entry *entry);
void report_blocked(struct conn *c, uint32_t reason);
const char *report_reason(uint32_t reason);

/* ---- main.c ---- */

struct proxy {
	struct loop *loop;
	struct loop_source keeper;
	bool configured;
	struct net_policy policy;
	char owner[OWNER_ID_LEN + 1];
	char allow[NET_TEXT_MAX]; /* as the operator wrote it */
	struct net_addr servers[DNS_SERVERS_MAX];
	size_t server_count;
	bool servers_fixed;
	bool has_upstream;
	struct net_dest upstream;
	uint16_t upstream_port;
	int log_fd, route_fd;
	uint64_t log_max_bytes;
	bool log_full; /* the keeper was asked for a new one */
	struct box *boxes;
	unsigned int conn_count, conns_max;
};
