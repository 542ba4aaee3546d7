/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/config_table.c - the settings, one row each
 *
 * Adding a setting is adding a row here and its id in config.h: the parser, the help, the dump, the
 * README and the completeness test follow. Settings of parts that come later are checked already, so
 * that an env file does not start to fail when they do.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

#include "mcp/config_table.h"
#include "runtime/base/str.h"
#include "runtime/net_policy.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define SECOND UINT64_C(1000)
#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)

static const char *const profile_choices[] = { "chat", "code", "safe-shell", NULL };
static const char *const limits_choices[] = { "enforce", "best-effort", NULL };
static const char *const net_choices[] = { "none", "allowlist", "internet", NULL };
static const char *const log_choices[] = { "error", "warn", "info", "debug", NULL };

static uint64_t profile_memory(const struct profile *p)
{
	return p->limits.memory_bytes;
}

static uint64_t profile_cpus(const struct profile *p)
{
	return p->limits.cpu_milli;
}

static uint64_t profile_pids(const struct profile *p)
{
	return p->limits.pids;
}

static uint64_t profile_max(const struct profile *p)
{
	return p->max_sandboxes;
}

static uint64_t profile_net(const struct profile *p)
{
	return p->net;
}

static bool is_absolute_path(const char *text)
{
	return text[0] == '/' && strlen(text) < PATH_MAX && !strstr(text, "/../") &&
	       !(strlen(text) >= 3 && !strcmp(text + strlen(text) - 3, "/.."));
}

static bool is_image_name(const char *text)
{
	return str_is_name(text, NAME_MAX_LEN - 1);
}

/* Bytes that may stand in a URL or a header value without quoting. */
static bool is_visible_ascii(const char *text)
{
	for (; *text; text++) {
		if (*text <= ' ' || *text >= 0x7f)
			return false;
	}
	return true;
}

static bool is_address(const char *text)
{
	unsigned char bytes[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

/* Every item of a comma-separated list passes; no item is empty. */
static bool all_items(const char *text, bool (*check)(const char *item))
{
	char item[256];

	for (;;) {
		size_t len = strcspn(text, ",");

		if (len == 0 || len >= sizeof(item))
			return false;
		memcpy(item, text, len);
		item[len] = '\0';
		if (!check(item))
			return false;
		if (text[len] == '\0')
			return true;
		text += len + 1;
	}
}

static bool is_listen_host(const char *text)
{
	return strcmp(text, "localhost") == 0 || is_address(text);
}

static bool is_address_list(const char *text)
{
	return all_items(text, is_address);
}

/* host, host:port or [v6]:port; names in ASCII (punycode). */
static bool is_host_port(const char *item)
{
	const char *colon = strrchr(item, ':');
	uint64_t port;
	size_t name_len = strlen(item);

	if (item[0] == '[') {
		const char *close = strchr(item, ']');

		if (!close || (close[1] != '\0' && close[1] != ':'))
			return false;
		name_len = (size_t)(close - item) + 1;
		colon = close[1] == ':' ? close + 1 : NULL;
	} else if (colon) {
		name_len = (size_t)(colon - item);
	}
	if (colon && str_parse_u64(colon + 1, 1, 65535, &port) < 0)
		return false;
	for (size_t i = 0; i < name_len; i++) {
		if (!isalnum((unsigned char)item[i]) && !strchr(".-_[]:", item[i]))
			return false;
	}
	return name_len > 0;
}

static bool is_host_list(const char *text)
{
	return all_items(text, is_host_port);
}

/* An item by its shape: never "*" alone, which would be SANDBOX_NET=internet. What it means is looked at
 * together with the lists (config.c). */
static bool is_domain_pattern(const char *item)
{
	return is_host_port(strncmp(item, "*.", 2) == 0 ? item + 2 : item);
}

static bool is_domain_list(const char *text)
{
	return all_items(text, is_domain_pattern);
}

static bool is_net_list(const char *text)
{
	return strlen(text) < NET_TEXT_MAX && is_visible_ascii(text);
}

static bool is_http_url(const char *text)
{
	size_t scheme = strncmp(text, "https://", 8) == 0 ? 8 :
			strncmp(text, "http://", 7) == 0  ? 7 :
							    0;
	size_t host = strcspn(text + scheme, "/");
	char item[256];

	if (!scheme || host == 0 || host >= sizeof(item) || !is_visible_ascii(text) ||
	    strpbrk(text, "?#@"))
		return false;
	memcpy(item, text + scheme, host);
	item[host] = '\0';
	return is_host_port(item);
}

/* Spoken to without TLS; it sees what it is asked to connect to, not what is said there. */
static bool is_upstream(const char *text)
{
	static const char scheme[] = "http://";
	struct net_dest host;
	uint16_t port;

	if (strncmp(text, scheme, strlen(scheme)) != 0 || strlen(text) >= NET_UPSTREAM_MAX)
		return false;
	text += strlen(scheme);
	return net_dest_port_parse(text, strlen(text), -1, &host, &port) == 0;
}

static bool is_url_path(const char *text)
{
	return text[0] == '/' && is_visible_ascii(text) && !strpbrk(text, "?#%\\\"");
}

static bool is_sign_key(const char *text)
{
	return strlen(text) >= 16 && is_visible_ascii(text);
}

static bool is_subid(const char *text)
{
	char first[16];
	size_t len = strcspn(text, ":");
	uint64_t number;

	if (text[len] != ':' || len >= sizeof(first))
		return false;
	memcpy(first, text, len);
	first[len] = '\0';
	/* Sixteen bits per owner (runtime/userns.h); rootless lends its own id as the first. */
	return str_parse_u64(first, 1, UINT32_MAX - 65536, &number) == 0 &&
	       str_parse_u64(text + len + 1, 65535, UINT32_MAX - number, &number) == 0;
}

const struct config_row config_table[CONFIG_COUNT] = {
	[CONFIG_PROFILE] = { "SANDBOX_PROFILE", "profile", CONFIG_TYPE_CHOICE,
			     .max = PROFILE_COUNT - 1,
			     .choices = profile_choices, .found = "`chat` for serve, else `code`",
			     .help = "tools, limits and network a sandbox starts from" },
	[CONFIG_MEMORY] = { "SANDBOX_MEMORY", "memory", CONFIG_TYPE_SIZE, .min = 16 * MIB,
			    .max = 16 * 1024 * GIB, .by_profile = profile_memory,
			    .help = "memory of a sandbox (memory.max; no swap)" },
	[CONFIG_CPUS] = { "SANDBOX_CPUS", "cpus", CONFIG_TYPE_CPUS, .min = 10, .max = 1024 * 1000,
			  .by_profile = profile_cpus,
			  .help = "processors a sandbox may use (cpu.max)" },
	[CONFIG_PIDS] = { "SANDBOX_PIDS", "pids", CONFIG_TYPE_NUMBER, .min = 8, .max = 4194304,
			  .by_profile = profile_pids,
			  .help = "processes and threads in a sandbox (pids.max)" },
	[CONFIG_DISK] = { "SANDBOX_DISK", "disk", CONFIG_TYPE_SIZE, "10G", 64 * MIB,
			  1024 * 1024 * GIB,
			  .help = "bound of a workspace import; no running sandbox can be held to it, so with a "
				  "value given here none starts but under `SANDBOX_LIMITS=best-effort`" },
	[CONFIG_LIMITS] = { "SANDBOX_LIMITS", "limits", CONFIG_TYPE_CHOICE, "enforce",
			    .choices = limits_choices, .max = 1,
			    .help = "best-effort starts without a limit the host cannot set, and every "
				    "result says so" },
	[CONFIG_IDLE] = { "SANDBOX_IDLE", "idle", CONFIG_TYPE_DURATION, "300", 1 * SECOND, 30 * DAY,
			  .help = "a sandbox without a command for so long is stopped; files stay" },
	[CONFIG_MAX] = { "SANDBOX_MAX", "max", CONFIG_TYPE_NUMBER, .min = 1, .max = 4096,
			 .by_profile = profile_max, 
			 .help = "sandboxes at once, of all users together; one more takes the place of an idle "
				 "one, the user's own if there is one, never of one that runs a command" },
	[CONFIG_MAX_TIMEOUT] = { "SANDBOX_MAX_TIMEOUT", "max-timeout", CONFIG_TYPE_DURATION, "900",
				 1 * SECOND, 7 * DAY, .help = "longest timeout a call may ask for" },
	[CONFIG_MIN_FREE] = { "SANDBOX_MIN_FREE", "min-free", CONFIG_TYPE_SIZE, "2G", 0,
			      1024 * 1024 * GIB,
			      .help = "with less free disk no sandbox is started" },
	[CONFIG_LINK_TTL] = { "SANDBOX_LINK_TTL", "link-ttl", CONFIG_TYPE_DURATION, "600",
			      10 * SECOND, 30 * DAY, .help = "how long a download link is valid" },
	[CONFIG_IMAGE_MAX] = { "SANDBOX_IMAGE_MAX", "image-max", CONFIG_TYPE_SIZE, "1536K", KIB,
			       32 * MIB, .help = "largest picture sent inside a result" },
	[CONFIG_HOST] = { "SANDBOX_HOST", "host", CONFIG_TYPE_TEXT, "127.0.0.1",
			  .check = is_listen_host, .shape = "a numeric IPv4 or IPv6 address, or localhost",
			  .help = "address HTTP listens on" },
	[CONFIG_PORT] = { "SANDBOX_PORT", "port", CONFIG_TYPE_NUMBER, "8000", 0, 65535,
			  .help = "port HTTP listens on" },
	[CONFIG_PATH] = { "MCP_PATH", "mcp-path", CONFIG_TYPE_TEXT, "/mcp", .check = is_url_path,
			  .shape = "a path that starts with /", .trim_slash = true, .help = "path of the MCP endpoint" },
	[CONFIG_TLS_CERT] = { "SANDBOX_TLS_CERT", "tls-cert", CONFIG_TYPE_TEXT, "",
			      .check = is_absolute_path, .shape = "an absolute path", .trim_slash = true,
			      .help = "certificate chain, PEM" },
	[CONFIG_TLS_KEY] = { "SANDBOX_TLS_KEY", "tls-key", CONFIG_TYPE_TEXT, "",
			     .check = is_absolute_path, .shape = "an absolute path", .trim_slash = true,
			     .help = "its private key, PEM" },
	[CONFIG_BEHIND_PROXY] = { "SANDBOX_BEHIND_PROXY", "behind-proxy", CONFIG_TYPE_FLAG, "0",
				  .max = 1, .help = "1: a proxy in front has the TLS" },
	[CONFIG_PUBLIC_BASE] = { "MCP_PUBLIC_BASE", "public-base", CONFIG_TYPE_TEXT, "",
				 .check = is_http_url, .shape = "an http:// or https:// address", .trim_slash = true,
				 .help = "what download links start with" },
	[CONFIG_SIGN_KEY] = { "MCP_SIGN_KEY", "sign-key", CONFIG_TYPE_TEXT, "", .check = is_sign_key,
			      .shape = "at least 16 visible ASCII characters", .secret = true,
			      .help = "key that signs download links" },
	[CONFIG_TOKEN] = { "MCP_TOKEN", "token", CONFIG_TYPE_TEXT, "", .check = is_visible_ascii,
			   .shape = "visible ASCII characters", .secret = true,
			   .help = "the default owner's bearer token" },
	[CONFIG_NO_TOKEN] = { "SANDBOX_NO_TOKEN", "no-token", CONFIG_TYPE_FLAG, "0", .max = 1,
			      .help = "1: who reaches the loopback address needs no token" },
	[CONFIG_ALLOWED_HOSTS] = { "MCP_ALLOWED_HOSTS", "allowed-hosts", CONFIG_TYPE_TEXT, "",
				   .check = is_host_list, .shape = "host[:port],...",
				   .help = "further names clients may call this server by" },
	[CONFIG_NET] = { "SANDBOX_NET", "net", CONFIG_TYPE_CHOICE, .choices = net_choices,
			 .by_profile = profile_net, .max = NET_INTERNET,
			 .help = "network of a sandbox" },
	[CONFIG_NET_ALLOW] = { "SANDBOX_NET_ALLOW", "net-allow", CONFIG_TYPE_TEXT, "",
			       .check = is_domain_list, .shape = "name[:port],*.name,apt,list,...",
			       .help = "what the allowlist lets through; empty: nothing" },
	[CONFIG_NET_LISTS] = { "SANDBOX_NET_LISTS", "net-lists", CONFIG_TYPE_TEXT, "",
			       .check = is_net_list, .shape = "list=name,name;list=name,...",
			       .help = "lists of names for SANDBOX_NET_ALLOW" },
	[CONFIG_OWNER_NET] = { "SANDBOX_OWNER_NET", "owner-net", CONFIG_TYPE_TEXT, "",
			       .check = is_net_list, .shape = "owner=none;owner=allowlist:name,...;...",
			       .help = "owners (of tokens) whose sandboxes reach less than SANDBOX_NET" },
	[CONFIG_DNS] = { "SANDBOX_DNS", "dns", CONFIG_TYPE_TEXT, "", .check = is_address_list,
			 .shape = "numeric addresses, comma-separated",
			 .found = "the host's", .help = "name servers" },
	[CONFIG_UPSTREAM_PROXY] = { "SANDBOX_UPSTREAM_PROXY", "upstream-proxy", CONFIG_TYPE_TEXT, "",
				    .check = is_upstream, .shape = "http://host:port", .trim_slash = true,
				    .help = "proxy that outgoing connections go through" },
	[CONFIG_EXTRA_CA] = { "SANDBOX_EXTRA_CA", "extra-ca", CONFIG_TYPE_TEXT, "",
			      .check = is_absolute_path, .shape = "an absolute path", .trim_slash = true,
			      .help = "further certificate authorities for sandboxes: a file of certificates, PEM" },
	[CONFIG_IMAGE] = { "SANDBOX_IMAGE", "image", CONFIG_TYPE_TEXT, "default",
			   .check = is_image_name, .shape = "a name of [a-z0-9._-]",
			   .help = "image sandboxes start from" },
	[CONFIG_HOME] = { "SANDBOX_HOME", "home", CONFIG_TYPE_TEXT, .check = is_absolute_path,
			  .shape = "an absolute path", .trim_slash = true,
			  .found = "`/var/lib/mcp-sandbox` or `$XDG_DATA_HOME/mcp-sandbox`",
			  .help = "state directory: images, workspaces, layers" },
	[CONFIG_CGROUP] = { "SANDBOX_CGROUP", "cgroup", CONFIG_TYPE_TEXT, "",
			    .check = is_absolute_path, .shape = "an absolute path", .trim_slash = true,
			    .found = "found", .help = "delegated cgroup v2 directory" },
	[CONFIG_SUBID] = { "SANDBOX_SUBID", "subid", CONFIG_TYPE_TEXT, "", .check = is_subid,
			   .shape = "FIRST:COUNT with a count of at least 65535",
			   .found = "`/etc/subuid`", .help = "id range of sandboxes" },
	[CONFIG_OUTPUT_MAX] = { "SANDBOX_OUTPUT_MAX", "output-max", CONFIG_TYPE_SIZE, "64M", 64 * KIB,
				16 * GIB, .help = "output of one command kept in /output" },
	[CONFIG_PRESENT_DIR] = { "SANDBOX_PRESENT_DIR", "present-dir", CONFIG_TYPE_TEXT, "",
				 .check = is_absolute_path, .shape = "an absolute path", .trim_slash = true,
				 .found = "below the download folder",
				 .help = "where stdio hands files over" },
	[CONFIG_MAX_AGE_DAYS] = { "MAX_AGE_DAYS", "max-age-days", CONFIG_TYPE_NUMBER, "7", 0, 36500,
				  .help = "gc: age of the newest file of a workspace to collect" },
	[CONFIG_DRY_RUN] = { "DRY_RUN", "dry-run", CONFIG_TYPE_FLAG, "1", .max = 1,
			     .help = "gc: 1 only reports" },
	[CONFIG_LOG] = { "SANDBOX_LOG", "log", CONFIG_TYPE_CHOICE, "warn", .choices = log_choices,
			 .max = 3, .help = "how much is written to standard error" },
};
