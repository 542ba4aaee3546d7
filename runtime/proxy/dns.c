/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/proxy/dns.c - the few parts of DNS messages a proxy needs
 *
 * Pure functions over hostile bytes (answers of name servers, queries of a sandbox). Nothing is
 * decompressed: names in answers are only stepped over, because what counts is what was asked.
 */
#include "runtime/proxy/dns.h"

#include <string.h>

enum {
	FLAG_ANSWER = 0x80,    /* byte 2 */
	FLAG_TRUNCATED = 0x02, /* byte 2 */
	FLAG_RECURSE = 0x01,   /* byte 2 */
	OPCODE_MASK = 0x78,    /* byte 2 */
	RCODE_MASK = 0x0f,     /* byte 3 */
	RCODE_NO_NAME = 3,
	CLASS_IN = 1,
	TYPE_OPT = 41,
	POINTER = 0xc0,
	RECORD_LEN = 10, /* type, class, time to live, length */
	QUESTION_LEN = 4, /* type, class */
	RECORDS_MAX = 256,
	LABEL_LEN_MAX = 63,
};

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void put16(uint8_t *p, uint16_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

size_t dns_build_query(uint8_t query[DNS_QUERY_MAX], uint16_t id, const char *name, uint16_t type)
{
	uint8_t *p = query + DNS_HEADER_LEN;

	memset(query, 0, DNS_HEADER_LEN);
	put16(query, id);
	query[2] = FLAG_RECURSE;
	query[5] = 1;  /* one question */
	query[11] = 1; /* one additional record */
	for (;;) {
		size_t len = strcspn(name, ".");

		*p++ = (uint8_t)len;
		memcpy(p, name, len);
		p += len;
		if (name[len] == '\0')
			break;
		name += len + 1;
	}
	*p++ = 0;
	put16(p, type);
	put16(p + 2, CLASS_IN);
	p += QUESTION_LEN;
	memset(p, 0, 1 + RECORD_LEN); /* the root's name, then EDNS without options */
	put16(p + 1, TYPE_OPT);
	put16(p + 3, DNS_UDP_MAX);
	return (size_t)(p + 1 + RECORD_LEN - query);
}

/* Return: the offset behind a name, 0 when it is damaged. */
static size_t skip_name(const uint8_t *msg, size_t len, size_t at)
{
	while (at < len) {
		uint8_t label = msg[at];

		if ((label & POINTER) == POINTER)
			return at + 2 <= len ? at + 2 : 0;
		if (label > LABEL_LEN_MAX)
			return 0;
		at += 1u + label;
		if (label == 0)
			return at <= len ? at : 0;
	}
	return 0;
}

static uint8_t lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c;
}

/* Return: the offset behind the question, 0 when it is not the query's. */
static size_t same_question(const uint8_t *msg, size_t len, const uint8_t *query, size_t query_len)
{
	size_t end = skip_name(query, query_len, DNS_HEADER_LEN) + QUESTION_LEN;

	if (len < end || get16(msg) != get16(query) || !(msg[2] & FLAG_ANSWER) || get16(msg + 4) != 1)
		return 0;
	for (size_t i = DNS_HEADER_LEN; i < end; i++) {
		if (lower(msg[i]) != lower(query[i]))
			return 0;
	}
	return end;
}

static void add_address(struct dns_addresses *ret, uint16_t type, const uint8_t *data, size_t len)
{
	struct net_addr addr = { .family = type == DNS_TYPE_A ? AF_INET : AF_INET6 };

	if (len != (type == DNS_TYPE_A ? 4u : 16u) || ret->count == DNS_ADDRESSES_MAX)
		return;
	memcpy(addr.bytes, data, len);
	ret->addr[ret->count++] = addr;
}

static enum dns_result read_records(const uint8_t *msg, size_t len, size_t at, uint16_t type,
				    struct dns_addresses *ret)
{
	unsigned int records = get16(msg + 6);

	for (unsigned int i = 0; i < records && i < RECORDS_MAX; i++) {
		size_t data_len;

		at = skip_name(msg, len, at);
		if (at == 0 || at + RECORD_LEN > len)
			return DNS_FAILED;
		data_len = get16(msg + at + 8);
		if (at + RECORD_LEN + data_len > len)
			return DNS_FAILED;
		if (get16(msg + at) == type && get16(msg + at + 2) == CLASS_IN)
			add_address(ret, type, msg + at + RECORD_LEN, data_len);
		at += RECORD_LEN + data_len;
	}
	return DNS_OK;
}

enum dns_result dns_parse_answer(const uint8_t *msg, size_t len, const uint8_t *query, size_t query_len,
				 struct dns_addresses *ret)
{
	size_t at = len >= DNS_HEADER_LEN ? same_question(msg, len, query, query_len) : 0;

	if (at == 0)
		return DNS_NOT_OURS;
	if (msg[2] & FLAG_TRUNCATED)
		return DNS_TRUNCATED;
	if ((msg[3] & RCODE_MASK) == RCODE_NO_NAME)
		return DNS_NO_NAME;
	if ((msg[3] & RCODE_MASK) != 0)
		return DNS_FAILED;
	return read_records(msg, len, at, get16(msg + at - QUESTION_LEN), ret);
}

int dns_query_name(const uint8_t *msg, size_t len, struct net_dest *ret)
{
	char name[NET_NAME_MAX + 1];
	size_t at = DNS_HEADER_LEN, used = 0;

	memset(ret, 0, sizeof(*ret));
	if (len < DNS_HEADER_LEN || (msg[2] & (FLAG_ANSWER | OPCODE_MASK)) || get16(msg + 4) != 1 ||
	    get16(msg + 6) != 0 || get16(msg + 8) != 0)
		return -1;
	while (at < len && msg[at] != 0) {
		size_t label = msg[at];

		if (label > LABEL_LEN_MAX || at + 1 + label > len || used + label + 1 > sizeof(name))
			return -1;
		memcpy(name + used, msg + at + 1, label);
		used += label;
		name[used++] = '.';
		at += 1 + label;
	}
	if (at + 1 + QUESTION_LEN > len)
		return -1;
	if (used == 0 || net_dest_parse(name, used, ret) < 0 || ret->is_address)
		memset(ret, 0, sizeof(*ret));
	return 0;
}

static size_t add_server(const char *text, size_t len, struct net_addr *ret)
{
	char word[64];

	if (len == 0 || len >= sizeof(word))
		return 0;
	memcpy(word, text, len);
	word[len] = '\0';
	return net_addr_parse(word, ret) == 0;
}

size_t dns_parse_resolv_conf(const char *text, struct net_addr ret[DNS_SERVERS_MAX])
{
	static const char keyword[] = "nameserver";
	size_t count = 0;

	while (*text && count < DNS_SERVERS_MAX) {
		size_t line = strcspn(text, "\n"), at = strlen(keyword);

		if (line > at && strncmp(text, keyword, at) == 0 && strchr(" \t", text[at])) {
			at += strspn(text + at, " \t");
			count += add_server(text + at, strcspn(text + at, " \t\r\n#;"), &ret[count]);
		}
		text += line;
		text += *text == '\n';
	}
	return count;
}

size_t dns_parse_list(const char *text, struct net_addr ret[DNS_SERVERS_MAX])
{
	size_t count = 0;

	while (*text && count < DNS_SERVERS_MAX) {
		size_t len = strcspn(text, ",");

		count += add_server(text, len, &ret[count]);
		text += len;
		text += *text == ',';
	}
	return count;
}
