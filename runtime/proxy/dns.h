/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/proxy/dns.h - the few parts of DNS messages a proxy needs */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/net_policy.h"

enum {
	DNS_PORT = 53,
	DNS_QUERY_MAX = 320,
	DNS_UDP_MAX = 1232,    /* what we offer to take: fits every path's packet size */
	DNS_MESSAGE_MAX = 65535,
	DNS_HEADER_LEN = 12,
	DNS_ADDRESSES_MAX = 8,
	DNS_SERVERS_MAX = 3,
	DNS_TYPE_A = 1,
	DNS_TYPE_AAAA = 28,
};

enum dns_result {
	DNS_OK,        /* possibly with no address */
	DNS_NO_NAME,   /* the name does not exist */
	DNS_FAILED,    /* the server says it cannot */
	DNS_TRUNCATED, /* ask again over TCP */
	DNS_NOT_OURS,  /* not an answer to this query: wait for another one */
};

struct dns_addresses {
	size_t count;
	struct net_addr addr[DNS_ADDRESSES_MAX];
};

/* dns_build_query() - for a name that net_dest_parse() has passed. Return: length. */
size_t dns_build_query(uint8_t query[DNS_QUERY_MAX], uint16_t id, const char *name, uint16_t type);

/* dns_parse_answer() - append the addresses of the type asked for. The answer must repeat the query's
 * id and question. */
enum dns_result dns_parse_answer(const uint8_t *msg, size_t len, const uint8_t *query, size_t query_len,
				 struct dns_addresses *ret);

/* dns_query_name() - a client's message: is it one plain question? Its name as a host, for the log; a
 * name outside the host grammar gives "". Return: 0, -1 when it is to be dropped. */
int dns_query_name(const uint8_t *msg, size_t len, struct net_dest *ret);

/* dns_parse_resolv_conf() - numeric servers of a resolv.conf, at most DNS_SERVERS_MAX. Return: count. */
size_t dns_parse_resolv_conf(const char *text, struct net_addr ret[DNS_SERVERS_MAX]);

/* dns_parse_list() - the same of "address,address". */
size_t dns_parse_list(const char *text, struct net_addr ret[DNS_SERVERS_MAX]);
