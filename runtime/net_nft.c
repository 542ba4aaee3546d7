/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/net_nft.c - the host's own rules for the interfaces of sandboxes
 *
 * Runs in the keeper, as root with CAP_NET_ADMIN. Speaks nfnetlink to the kernel in messages written
 * here: no program is executed and no rule language is parsed.
 */
#include "runtime/net_nft.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/str.h"

enum {
	BATCH_BYTES_MAX = 64 * 1024,
	ANSWER_BYTES = 32 * 1024,
	ANSWERS_MAX = 4096,
	PRIORITY_SRCNAT = 100,
	/* of struct iphdr and struct ip6_hdr */
	IP4_DESTINATION = 16, IP6_DESTINATION = 24,
};

_Static_assert(NFT_TABLE_MAXNAMELEN > NET_NFT_NAME_MAX, "a table's name fits");

/* ---- writing attributes ---- */

struct batch {
	struct buf buf;
	const char *table;
	size_t message; /* where the one being written begins */
	uint32_t seq;
};

/* Attributes are aligned to four bytes, and so is their end. */
static void put(struct batch *b, uint16_t type, const void *data, size_t len)
{
	struct nlattr a = { .nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = type };
	static const char zero[NLA_ALIGNTO];

	(void)buf_append(&b->buf, &a, sizeof(a));
	(void)buf_append(&b->buf, data, len);
	(void)buf_append(&b->buf, zero, NLA_ALIGN(len) - len);
}

static void put_text(struct batch *b, uint16_t type, const char *text)
{
	put(b, type, text, strlen(text) + 1);
}

static void put_number(struct batch *b, uint16_t type, uint32_t value)
{
	uint32_t big = htonl(value);

	put(b, type, &big, sizeof(big));
}

static size_t begin_nest(struct batch *b, uint16_t type)
{
	size_t at = b->buf.len;

	put(b, type | NLA_F_NESTED, "", 0);
	return at;
}

static void end_nest(struct batch *b, size_t at)
{
	uint16_t len = (uint16_t)(b->buf.len - at);

	if (!b->buf.overflow)
		memcpy(b->buf.data + at + offsetof(struct nlattr, nla_len), &len, sizeof(len));
}

static void begin_message(struct batch *b, uint16_t type, uint16_t flags, uint8_t family, uint16_t id)
{
	struct nlmsghdr h = { .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags,
			      .nlmsg_seq = ++b->seq };
	struct nfgenmsg g = { .nfgen_family = family, .version = NFNETLINK_V0, .res_id = htons(id) };

	b->message = b->buf.len;
	(void)buf_append(&b->buf, &h, sizeof(h));
	(void)buf_append(&b->buf, &g, sizeof(g));
}

static void end_message(struct batch *b)
{
	uint32_t len = (uint32_t)(b->buf.len - b->message);

	if (!b->buf.overflow)
		memcpy(b->buf.data + b->message + offsetof(struct nlmsghdr, nlmsg_len), &len,
		       sizeof(len));
}

static void begin_object(struct batch *b, uint16_t type, uint16_t flags)
{
	begin_message(b, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), NLM_F_ACK | flags, NFPROTO_INET,
		      0);
}

/* ---- expressions ---- */

struct expression {
	size_t element, data;
};

static struct expression begin_expression(struct batch *b, const char *name)
{
	struct expression x = { .element = begin_nest(b, NFTA_LIST_ELEM) };

	put_text(b, NFTA_EXPR_NAME, name);
	x.data = begin_nest(b, NFTA_EXPR_DATA);
	return x;
}

static void end_expression(struct batch *b, struct expression x)
{
	end_nest(b, x.data);
	end_nest(b, x.element);
}

static void put_value(struct batch *b, uint16_t type, const void *data, size_t len)
{
	size_t nest = begin_nest(b, type);

	put(b, NFTA_DATA_VALUE, data, len);
	end_nest(b, nest);
}

static void compare(struct batch *b, uint32_t op, const void *data, size_t len)
{
	struct expression x = begin_expression(b, "cmp");

	put_number(b, NFTA_CMP_SREG, NFT_REG_1);
	put_number(b, NFTA_CMP_OP, op);
	put_value(b, NFTA_CMP_DATA, data, len);
	end_expression(b, x);
}

static void load_meta(struct batch *b, uint32_t key)
{
	struct expression x = begin_expression(b, "meta");

	put_number(b, NFTA_META_DREG, NFT_REG_1);
	put_number(b, NFTA_META_KEY, key);
	end_expression(b, x);
}

static void mask(struct batch *b, const void *bits, size_t len)
{
	static const uint8_t zero[16];
	struct expression x = begin_expression(b, "bitwise");

	put_number(b, NFTA_BITWISE_SREG, NFT_REG_1);
	put_number(b, NFTA_BITWISE_DREG, NFT_REG_1);
	put_number(b, NFTA_BITWISE_LEN, (uint32_t)len);
	put_value(b, NFTA_BITWISE_MASK, bits, len);
	put_value(b, NFTA_BITWISE_XOR, zero, len);
	end_expression(b, x);
}

/* An interface of ours: the name's beginning, compared without its end. */
static void match_interface(struct batch *b, uint32_t key, uint32_t op)
{
	load_meta(b, key);
	compare(b, op, NET_VETH_PREFIX, strlen(NET_VETH_PREFIX));
}

static void match_destination(struct batch *b, const struct net_prefix *p)
{
	bool six = p->addr.family == AF_INET6;
	uint8_t protocol = six ? NFPROTO_IPV6 : NFPROTO_IPV4, bits[16] = { 0 }, want[16];
	uint32_t len = six ? 16 : 4;
	struct expression x;

	load_meta(b, NFT_META_NFPROTO);
	compare(b, NFT_CMP_EQ, &protocol, 1);
	x = begin_expression(b, "payload");
	put_number(b, NFTA_PAYLOAD_DREG, NFT_REG_1);
	put_number(b, NFTA_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
	put_number(b, NFTA_PAYLOAD_OFFSET, six ? IP6_DESTINATION : IP4_DESTINATION);
	put_number(b, NFTA_PAYLOAD_LEN, len);
	end_expression(b, x);
	for (unsigned int i = 0; i < len; i++) {
		unsigned int rest = p->len > i * CHAR_BIT ? p->len - i * CHAR_BIT : 0;

		bits[i] = rest >= CHAR_BIT ? 0xff : (uint8_t)(0xff00U >> rest);
		want[i] = p->addr.bytes[i] & bits[i];
	}
	mask(b, bits, len);
	compare(b, NFT_CMP_EQ, want, len);
}

static void match_answer(struct batch *b)
{
	uint32_t bits = NF_CT_STATE_BIT(IP_CT_ESTABLISHED) | NF_CT_STATE_BIT(IP_CT_RELATED), zero = 0;
	struct expression x = begin_expression(b, "ct");

	put_number(b, NFTA_CT_DREG, NFT_REG_1);
	put_number(b, NFTA_CT_KEY, NFT_CT_STATE);
	end_expression(b, x);
	mask(b, &bits, sizeof(bits));
	compare(b, NFT_CMP_NEQ, &zero, sizeof(zero));
}

static void verdict(struct batch *b, uint32_t code)
{
	struct expression x = begin_expression(b, "immediate");
	size_t data, inner;

	put_number(b, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = begin_nest(b, NFTA_IMMEDIATE_DATA);
	inner = begin_nest(b, NFTA_DATA_VERDICT);
	put_number(b, NFTA_VERDICT_CODE, code);
	end_nest(b, inner);
	end_nest(b, data);
	end_expression(b, x);
}

/* Whoever connects hears at once. */
static void reject(struct batch *b)
{
	uint8_t code = NFT_REJECT_ICMPX_ADMIN_PROHIBITED;
	struct expression x = begin_expression(b, "reject");

	put_number(b, NFTA_REJECT_TYPE, NFT_REJECT_ICMPX_UNREACH);
	put(b, NFTA_REJECT_ICMP_CODE, &code, sizeof(code));
	end_expression(b, x);
}

static void masquerade(struct batch *b)
{
	end_expression(b, begin_expression(b, "masq"));
}

/* ---- table, chains, rules ---- */

static void add_table(struct batch *b)
{
	begin_object(b, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);
	put_text(b, NFTA_TABLE_NAME, b->table);
	put_number(b, NFTA_TABLE_FLAGS, NFT_TABLE_F_OWNER);
	end_message(b);
}

static void add_chain(struct batch *b, const char *name, const char *type, uint32_t hook,
		      uint32_t priority)
{
	size_t nest;

	begin_object(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_EXCL);
	put_text(b, NFTA_CHAIN_TABLE, b->table);
	put_text(b, NFTA_CHAIN_NAME, name);
	nest = begin_nest(b, NFTA_CHAIN_HOOK);
	put_number(b, NFTA_HOOK_HOOKNUM, hook);
	put_number(b, NFTA_HOOK_PRIORITY, priority);
	end_nest(b, nest);
	put_number(b, NFTA_CHAIN_POLICY, NF_ACCEPT);
	put_text(b, NFTA_CHAIN_TYPE, type);
	end_message(b);
}

static size_t begin_rule(struct batch *b, const char *chain)
{
	begin_object(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
	put_text(b, NFTA_RULE_TABLE, b->table);
	put_text(b, NFTA_RULE_CHAIN, chain);
	return begin_nest(b, NFTA_RULE_EXPRESSIONS);
}

static void end_rule(struct batch *b, size_t nest)
{
	end_nest(b, nest);
	end_message(b);
}

static void add_input(struct batch *b)
{
	size_t rule;

	add_chain(b, "input", "filter", NF_INET_LOCAL_IN, 0);
	rule = begin_rule(b, "input");
	match_interface(b, NFT_META_IIFNAME, NFT_CMP_EQ);
	reject(b);
	end_rule(b, rule);
}

static void add_denied(struct batch *b)
{
	struct net_prefix all[NET_PREFIXES_MAX];
	size_t count = net_ranges_all(all);

	for (size_t i = 0; i < count; i++) {
		size_t rule = begin_rule(b, "forward");

		match_interface(b, NFT_META_IIFNAME, NFT_CMP_EQ);
		match_destination(b, &all[i]);
		reject(b);
		end_rule(b, rule);
	}
}

static void add_forward(struct batch *b)
{
	size_t rule;

	add_chain(b, "forward", "filter", NF_INET_FORWARD, 0);
	rule = begin_rule(b, "forward");
	match_interface(b, NFT_META_IIFNAME, NFT_CMP_EQ);
	match_interface(b, NFT_META_OIFNAME, NFT_CMP_EQ);
	reject(b);
	end_rule(b, rule);
	rule = begin_rule(b, "forward");
	match_interface(b, NFT_META_OIFNAME, NFT_CMP_EQ);
	match_answer(b);
	verdict(b, NF_ACCEPT);
	end_rule(b, rule);
	rule = begin_rule(b, "forward");
	match_interface(b, NFT_META_OIFNAME, NFT_CMP_EQ);
	verdict(b, NF_DROP);
	end_rule(b, rule);
	add_denied(b);
}

static void add_masquerade(struct batch *b)
{
	size_t rule;

	add_chain(b, "postrouting", "nat", NF_INET_POST_ROUTING, PRIORITY_SRCNAT);
	rule = begin_rule(b, "postrouting");
	match_interface(b, NFT_META_IIFNAME, NFT_CMP_EQ);
	match_interface(b, NFT_META_OIFNAME, NFT_CMP_NEQ);
	masquerade(b);
	end_rule(b, rule);
}

static int write_rules(struct batch *b)
{
	begin_message(b, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
	end_message(b);
	add_table(b);
	add_input(b);
	add_forward(b);
	add_masquerade(b);
	begin_message(b, NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
	end_message(b);
	errno = ENOMEM;
	return b->buf.overflow ? -1 : 0;
}

/* ---- the socket ---- */

/* A batch is carried out inside sendmsg() as a whole or not at all; its answers are there afterwards. */
static int read_answers(int sock)
{
	union {
		struct nlmsghdr header;
		unsigned char bytes[4096];
	} a;
	int answered = 0, failed = 0;

	for (int i = 0; i < ANSWERS_MAX; i++) {
		ssize_t len = recv(sock, &a, sizeof(a), MSG_DONTWAIT);
		const struct nlmsgerr *error = NLMSG_DATA(&a.header);

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0 && errno != EAGAIN)
			return -1;
		if (len < 0)
			break;
		if ((size_t)len < NLMSG_LENGTH(sizeof(*error)) || a.header.nlmsg_type != NLMSG_ERROR)
			continue;
		answered++;
		if (failed == 0)
			failed = -error->error;
	}
	errno = failed != 0 ? failed : EPROTO;
	return failed == 0 && answered > 0 ? 0 : -1;
}

static int send_rules(int sock, const char *table)
{
	struct batch b = { .table = table };
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	int bytes = 4 * BATCH_BYTES_MAX; /* room for an answer to each */
	int r = -1;

	(void)setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	(void)setsockopt(sock, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	buf_init(&b.buf, BATCH_BYTES_MAX);
	if (write_rules(&b) == 0 &&
	    sendto(sock, b.buf.data, b.buf.len, 0, (const struct sockaddr *)&kernel,
		   sizeof(kernel)) == (ssize_t)b.buf.len)
		r = read_answers(sock);
	buf_done(&b.buf);
	return r;
}

int net_nft_open(const char *table, struct err *e)
{
	_cleanup_fd_ int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);

	if (sock < 0 || send_rules(sock, table) < 0) {
		err_sys(e, "make the table of packet rules \"%s\"", table);
		return err_remedy(e, "use a kernel with nf_tables, its inet family, masquerade and "
				     "reject (modprobe nft_masq nft_reject_inet)");
	}
	return take_fd(&sock);
}

/* ---- other people's rules ---- */

struct chain {
	const char *table;
	uint32_t hook, policy;
	bool is_base;
};

static uint32_t number_of(const struct nlattr *a)
{
	uint32_t big = 0;

	if (a->nla_len >= NLA_HDRLEN + sizeof(big))
		memcpy(&big, (const char *)a + NLA_HDRLEN, sizeof(big));
	return ntohl(big);
}

static void read_attributes(const struct nlattr *a, size_t len, struct chain *ret, bool hook)
{
	while (len >= sizeof(*a) && a->nla_len >= sizeof(*a) && a->nla_len <= len) {
		const char *data = (const char *)a + NLA_HDRLEN;
		size_t step = NLA_ALIGN(a->nla_len), data_len = a->nla_len - NLA_HDRLEN;
		int type = a->nla_type & NLA_TYPE_MASK;

		if (hook && type == NFTA_HOOK_HOOKNUM)
			ret->hook = number_of(a);
		else if (!hook && type == NFTA_CHAIN_TABLE && memchr(data, '\0', data_len))
			ret->table = data;
		else if (!hook && type == NFTA_CHAIN_POLICY)
			ret->policy = number_of(a);
		else if (!hook && type == NFTA_CHAIN_HOOK) {
			ret->is_base = true;
			read_attributes((const void *)data, data_len, ret, true);
		}
		if (step >= len)
			return;
		len -= step;
		a = (const struct nlattr *)(const void *)((const char *)a + step);
	}
}

/* Return: 1 a chain that stops us, 0 one that does not, -1 the end. */
static int look_at_chain(const struct nlmsghdr *h, char ret_who[NET_NFT_NAME_MAX])
{
	const struct nfgenmsg *g = NLMSG_DATA(h);
	size_t head = NLMSG_LENGTH(NLMSG_ALIGN(sizeof(*g)));
	struct chain c = { .table = "", .policy = NF_ACCEPT };

	if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
		return -1;
	if (h->nlmsg_type != (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWCHAIN) || h->nlmsg_len < head ||
	    (g->nfgen_family != NFPROTO_INET && g->nfgen_family != NFPROTO_IPV4))
		return 0;
	read_attributes((const void *)((const char *)h + head), h->nlmsg_len - head, &c, false);
	if (!c.is_base || c.hook != NF_INET_FORWARD ||
	    (c.policy != NF_DROP && strcmp(c.table, "firewalld") != 0))
		return 0;
	(void)snprintf(ret_who, NET_NFT_NAME_MAX, "%s", c.table);
	return 1;
}

static int look_at_chains(int sock, char ret_who[NET_NFT_NAME_MAX])
{
	static _Alignas(8) unsigned char answer[ANSWER_BYTES];

	for (int i = 0; i < ANSWERS_MAX; i++) {
		ssize_t got = recv(sock, answer, sizeof(answer), MSG_DONTWAIT);
		const struct nlmsghdr *h = (const struct nlmsghdr *)(const void *)answer;
		size_t len = (size_t)got;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		for (; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
			int r = look_at_chain(h, ret_who);

			if (r != 0)
				return r > 0;
		}
	}
	errno = E2BIG;
	return -1;
}

/* The older tables do not show their policy to nfnetlink; where the module has rules at all, somebody
 * has set it up to filter. */
static bool has_legacy_filter(void)
{
	char line[64];
	FILE *f = fopen("/proc/net/ip_tables_names", "re");
	bool found = false;

	while (f && fgets(line, sizeof(line), f))
		found = found || strcmp(line, "filter\n") == 0;
	if (f)
		(void)fclose(f);
	return found;
}

int net_nft_forward_refused(char ret_who[NET_NFT_NAME_MAX], struct err *e)
{
	_cleanup_fd_ int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	struct {
		struct nlmsghdr header;
		struct nfgenmsg body;
	} ask = {
		.header = { sizeof(ask), NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETCHAIN,
			    NLM_F_REQUEST | NLM_F_DUMP, 1, 0 },
		.body = { .nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0 },
	};
	int r = -1;

	if (has_legacy_filter()) {
		(void)str_copy(ret_who, NET_NFT_NAME_MAX, "filter (iptables-legacy)");
		return 1;
	}
	if (sock >= 0 && send(sock, &ask, sizeof(ask), 0) == (ssize_t)sizeof(ask))
		r = look_at_chains(sock, ret_who);
	return r < 0 ? err_sys(e, "look for other packet rules") : r;
}
