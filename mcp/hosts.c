/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/hosts.c - names this server answers to
 *
 * Runs in the front, on hostile headers. Pure.
 */
#include "mcp/hosts.h"

#include <string.h>
#include <strings.h>

static struct http_text text_of(const char *s, size_t len)
{
	return (struct http_text){ s, len };
}

/* without_port() - "[v6]:1" -> "[v6]", "host:1" -> "host". */
static struct http_text without_port(struct http_text t)
{
	const char *colon, *bracket;

	if (!t.data || t.len == 0)
		return t;
	colon = memrchr(t.data, ':', t.len);
	bracket = memrchr(t.data, ']', t.len);
	if (colon && (!bracket || bracket < colon))
		t.len = (size_t)(colon - t.data);
	return t;
}

static bool same(struct http_text a, struct http_text b)
{
	return a.len == b.len && a.len > 0 && strncasecmp(a.data, b.data, a.len) == 0;
}

/* An item without a port stands for every port. */
static bool matches(struct http_text item, struct http_text host)
{
	struct http_text bare = without_port(item);

	return same(item, host) || (bare.len == item.len && same(item, without_port(host)));
}

static bool is_loopback_name(struct http_text host)
{
	struct http_text name = without_port(host);

	return http_text_is_word(name, "localhost") || http_text_is(name, "127.0.0.1") ||
	       http_text_is(name, "[::1]");
}

static bool is_public_base(const char *base, struct http_text host)
{
	const char *start = strstr(base, "://");

	if (!start)
		return false;
	start += 3;
	return matches(text_of(start, strcspn(start, "/")), host);
}

static bool is_port(struct http_text host)
{
	struct http_text name = without_port(host);
	size_t digits = 0;

	if (name.len == host.len)
		return true;
	for (size_t i = name.len + 1; i < host.len; i++, digits++) {
		if (host.data[i] < '0' || host.data[i] > '9')
			return false;
	}
	return digits > 0 && digits <= 5;
}

bool hosts_allow(const struct hosts *h, struct http_text host)
{
	const char *item = h->allowed;

	if (host.len == 0 || !is_port(host))
		return false;
	if (is_loopback_name(host) || is_public_base(h->public_base, host))
		return true;
	while (*item) {
		size_t len = strcspn(item, ",");

		if (matches(text_of(item, len), host))
			return true;
		item += len + (item[len] == ',');
	}
	return false;
}

bool hosts_allow_origin(const struct hosts *h, struct http_text origin)
{
	static const char *const schemes[] = { "http://", "https://" };

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		size_t len = strlen(schemes[i]);

		if (origin.len > len && strncasecmp(origin.data, schemes[i], len) == 0)
			return hosts_allow(h, text_of(origin.data + len, origin.len - len));
	}
	return false;
}
