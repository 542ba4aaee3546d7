/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/proxy/report.c - the egress log, what the keeper is told, words for reasons
 *
 * Runs in the egress proxy. The log is a descriptor the keeper opened for appending; one line is one
 * write(), so that several proxies may share a file. Names in it have passed the host grammar.
 */
#include "runtime/proxy/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/base/str.h"

enum { LINE_MAX_LEN = 1024 };

const char *report_reason(uint32_t reason)
{
	if (reason == PROXY_UNLISTED)
		return "not on the allowlist";
	if (reason == PROXY_BAD_NAME)
		return "not a valid name";
	return net_range_name((enum net_range_kind)reason);
}

/* The keeper hears of it first: when the sandbox reads the answer, its command may be over. */
void report_blocked(struct conn *c, uint32_t reason)
{
	struct proxy_blocked msg = {
		.h = { PROXY_BLOCKED, sizeof(msg) },
		.box = c->box->id,
		.reason = reason,
	};

	if (reason == PROXY_BAD_NAME)
		(void)snprintf(msg.what, sizeof(msg.what), "a damaged host name");
	else
		(void)snprintf(msg.what, sizeof(msg.what), "%s:%u", c->host.name, c->port);
	(void)fd_send_msg(c->box->proxy->keeper.fd, &msg, sizeof(msg), NULL, 0);
}

static void format_time(char *text, size_t size)
{
	struct timespec now;
	struct tm tm;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)gmtime_r(&now.tv_sec, &tm);
	(void)strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static void check_size(struct proxy *p)
{
	struct proxy_descriptor msg = { .h = { PROXY_LOG_FULL, sizeof(msg) } };
	off_t size = lseek(p->log_fd, 0, SEEK_END);

	if (p->log_full || size < 0 || (uint64_t)size < p->log_max_bytes)
		return;
	p->log_full = fd_send_msg(p->keeper.fd, &msg, sizeof(msg), NULL, 0) == 0;
}

void report_egress(struct proxy *p, const struct egress_entry *entry)
{
	char line[LINE_MAX_LEN], when[32], addr[INET6_ADDRSTRLEN] = "";
	int len;

	if (p->log_fd < 0)
		return;
	format_time(when, sizeof(when));
	if (entry->addr && entry->addr->family)
		(void)net_addr_format(entry->addr, addr, sizeof(addr));
	len = snprintf(line, sizeof(line),
		       "{\"time\":\"%s\",\"owner\":\"%s\",\"key\":\"%s\",\"name\":\"%s\",\"address\":\"%s\","
		       "\"port\":%u,\"sent\":%" PRIu64 ",\"received\":%" PRIu64 ",\"verdict\":\"%s\"%s%s%s}\n",
		       when, p->owner, entry->key, entry->name, addr, entry->port, entry->sent,
		       entry->received, entry->verdict, entry->reason ? ",\"reason\":\"" : "",
		       entry->reason ? entry->reason : "", entry->reason ? "\"" : "");
	if (len <= 0 || (size_t)len >= sizeof(line))
		return;
	(void)!write(p->log_fd, line, (size_t)len); /* a full disk must not stop the sandbox's network */
	check_size(p);
}
