/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/auth.c - who may come in over HTTP: bearer tokens, and a limit on guessing
 *
 * Runs in the front, on hostile headers.
 */
#include "mcp/auth.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "runtime/base/digest.h"

void auth_init(struct auth *a, bool no_token, bool behind_proxy)
{
	*a = (struct auth){ .no_token = no_token, .behind_proxy = behind_proxy };
	(void)!getrandom(&a->seed, sizeof(a->seed), 0);
}

void auth_set_tokens(struct auth *a, const struct api_tokens *tokens)
{
	a->count = tokens->count < API_TOKENS_MAX ? tokens->count : API_TOKENS_MAX;
	memcpy(a->tokens, tokens->rows, a->count * sizeof(a->tokens[0]));
	for (uint32_t i = 0; i < a->count; i++)
		a->tokens[i].owner[OWNER_ID_LEN] = '\0';
}

/* ---- addresses ---- */

static struct http_text trim(struct http_text t)
{
	while (t.len && (*t.data == ' ' || *t.data == '\t')) {
		t.data++;
		t.len--;
	}
	while (t.len && (t.data[t.len - 1] == ' ' || t.data[t.len - 1] == '\t'))
		t.len--;
	return t;
}

/* last_hop() - what the proxy itself has seen: the last item of the last field. The ones before it are the
 * client's to invent. */
static struct http_text last_hop(const struct http1_head *head)
{
	struct http_text hop = { "", 0 };

	for (size_t i = 0; i < head->field_count; i++) {
		struct http_text v = head->fields[i].value;
		const char *comma;

		if (!http_text_is_word(head->fields[i].name, "x-forwarded-for"))
			continue;
		comma = v.len ? memrchr(v.data, ',', v.len) : NULL;
		if (comma) {
			v.len -= (size_t)(comma + 1 - v.data);
			v.data = comma + 1;
		}
		hop = trim(v);
	}
	return hop;
}

static bool parse_address(struct http_text t, uint8_t ret[AUTH_ADDRESS_LEN])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	char text[INET6_ADDRSTRLEN];

	if (t.len == 0 || t.len >= sizeof(text))
		return false;
	memcpy(text, t.data, t.len);
	text[t.len] = '\0';
	memcpy(ret, mapped, sizeof(mapped));
	if (inet_pton(AF_INET, text, ret + 12) == 1)
		return true;
	if (inet_pton(AF_INET6, text, ret) != 1)
		return false;
	if (memcmp(ret, mapped, sizeof(mapped)) != 0)
		memset(ret + 8, 0, 8); /* whoever has one of these has them all */
	return true;
}

void auth_address(const struct auth *a, const struct http_request *r, uint8_t ret[AUTH_ADDRESS_LEN])
{
	struct http_text own = { r->client->address, strlen(r->client->address) };

	if (a->behind_proxy && r->client->is_loopback && parse_address(last_hop(r->head), ret))
		return;
	if (!parse_address(own, ret))
		memset(ret, 0, AUTH_ADDRESS_LEN);
}

/* ---- failures ---- */

static struct auth_failures *set_of(struct auth *a, const uint8_t address[AUTH_ADDRESS_LEN])
{
	uint64_t h = a->seed;

	for (int i = 0; i < AUTH_ADDRESS_LEN; i++)
		h = (h ^ address[i]) * UINT64_C(0x100000001b3);
	return a->failures[(h ^ h >> 32) % AUTH_SETS];
}

static struct auth_failures *find_failures(struct auth *a, const uint8_t address[AUTH_ADDRESS_LEN],
					   uint64_t now_s)
{
	struct auth_failures *set = set_of(a, address), *oldest = set;

	for (int i = 0; i < AUTH_WAYS; i++) {
		if (set[i].since_s && !memcmp(set[i].address, address, AUTH_ADDRESS_LEN)) {
			oldest = &set[i];
			break;
		}
		if (set[i].since_s < oldest->since_s)
			oldest = &set[i];
	}
	if (memcmp(oldest->address, address, AUTH_ADDRESS_LEN) != 0 ||
	    now_s - oldest->since_s >= AUTH_WINDOW_S) {
		*oldest = (struct auth_failures){ .since_s = now_s };
		memcpy(oldest->address, address, AUTH_ADDRESS_LEN);
	}
	return oldest;
}

static enum auth_verdict count_failure(struct auth *a, const struct http_request *r, uint64_t now_s,
				       uint32_t *ret_wait_s)
{
	uint8_t address[AUTH_ADDRESS_LEN];
	struct auth_failures *f;

	auth_address(a, r, address);
	f = find_failures(a, address, now_s);
	if (f->count < AUTH_FAILURES_MAX) {
		f->count++;
		return AUTH_WRONG;
	}
	*ret_wait_s = (uint32_t)(f->since_s + AUTH_WINDOW_S - now_s);
	return AUTH_LIMITED;
}

/* ---- tokens ---- */

/* Return: the token of "Bearer TOKEN"; length 0 for anything else. */
static struct http_text bearer_of(struct http_text v)
{
	static const char scheme[] = "bearer ";
	struct http_text token = { "", 0 };

	if (v.len <= sizeof(scheme) - 1 || strncasecmp(v.data, scheme, sizeof(scheme) - 1) != 0)
		return token;
	token.data = v.data + sizeof(scheme) - 1;
	token.len = v.len - (sizeof(scheme) - 1);
	token = trim(token);
	return token;
}

/* Looks at every token, so that time does not tell which was the right one. */
static const struct api_token *find_token(const struct auth *a, struct http_text token)
{
	uint8_t hash[API_TOKEN_HASH_LEN];
	const struct api_token *found = NULL;

	if (token.len == 0 || token.len > AUTH_TOKEN_MAX || digest_sha256(token.data, token.len, hash) < 0)
		return NULL;
	for (uint32_t i = 0; i < a->count; i++) {
		if (digest_equal(hash, a->tokens[i].hash, sizeof(hash)))
			found = &a->tokens[i];
	}
	return found;
}

enum auth_verdict auth_check(struct auth *a, const struct http_request *r, uint64_t now_s,
			     char ret_owner[OWNER_ID_LEN + 1], uint32_t *ret_wait_s)
{
	size_t fields = 0;
	const struct http_text *v = http1_field(r->head, "authorization", &fields);
	const struct api_token *t;

	if (a->no_token) {
		memcpy(ret_owner, OWNER_DEFAULT, OWNER_ID_LEN + 1);
		return AUTH_OK;
	}
	if (!v)
		return AUTH_MISSING;
	t = fields == 1 ? find_token(a, bearer_of(*v)) : NULL;
	if (!t)
		return count_failure(a, r, now_s, ret_wait_s);
	memcpy(ret_owner, t->owner, OWNER_ID_LEN + 1);
	return AUTH_OK;
}
