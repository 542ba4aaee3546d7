/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/attack/attack_net.c - attempts of the attacking program: sockets and addresses
 *
 * Runs inside, as any command does (attack.c). Harmless where an attempt succeeds.
 */
#include "runtime/attack/attempt.h"

enum { CONNECT_SECONDS = 4 };

/* ---- the network ---- */

enum { UNIX = 1, INET = 2, INET6 = 10, PACKET = 17, STREAM = 1, SOL = 1, SO_ERR = 4, POLL_OUT = 4, IPV6_LEN = 16 };

static long connect_within(long family, const void *address, size_t len)
{
	long fd = RAW(__NR_socket, family, STREAM | O_NONBLOCK | O_CLOEXEC, 0), r;
	struct {
		int fd;
		short events, revents;
	} p = { (int)fd, POLL_OUT, 0 };
	long limit[2] = { CONNECT_SECONDS, 0 };
	int error = 0;
	unsigned int size = sizeof(error);

	if (fd < 0)
		return fd;
	r = RAW(__NR_connect, fd, address, len);
	if (r != -EINPROGRESS)
		return r;
	r = RAW(__NR_ppoll, &p, 1, limit, NULL, 0);
	if (r <= 0)
		return r ? r : -ETIMEDOUT;
	r = RAW(__NR_getsockopt, fd, SOL, SO_ERR, &error, &size);
	return r < 0 ? r : -error;
}

static long connect_4(const char *text, long port)
{
	unsigned char a[16] = { INET, 0, (unsigned char)(port >> 8), (unsigned char)port };

	for (size_t i = 4; i < 8; i++) {
		a[i] = (unsigned char)number(&text);
		text += *text == '.';
	}
	return connect_within(INET, a, sizeof(a));
}

static unsigned char nibble(char c)
{
	return (unsigned char)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static long connect_6(const char *digits, long port)
{
	unsigned char a[28] = { INET6, 0, (unsigned char)(port >> 8), (unsigned char)port };

	for (size_t i = 0; i < IPV6_LEN; i++)
		a[8 + i] = (unsigned char)(nibble(digits[2 * i]) << 4 | nibble(digits[2 * i + 1]));
	return connect_within(INET6, a, sizeof(a));
}

long connect_port(const struct host *h, const char *address)
{
	return connect_4(address, h->port);
}

long connect6_port(const struct host *h, const char *address)
{
	return connect_6(address, h->port);
}

long connect_host(const struct host *h, const char *arg)
{
	(void)arg;
	return *h->address == '-' ? RESULT_NO_DOOR : connect_4(h->address, h->port);
}

long connect_80(const struct host *h, const char *address)
{
	(void)h;
	return connect_4(address, 80);
}

long connect6_80(const struct host *h, const char *address)
{
	(void)h;
	return connect_6(address, 80);
}

long connect_abstract(const struct host *h, const char *arg)
{
	unsigned char a[110] = { UNIX };
	size_t len = length(h->socket);

	(void)arg;
	if (len > sizeof(a) - 3)
		return -ENAMETOOLONG;
	memcpy(a + 3, h->socket, len);
	return connect_within(UNIX, a, 3 + len);
}

long socket_kind(const struct host *h, const char *arg)
{
	long family = number(&arg), type = number(&arg), protocol = number(&arg);

	(void)h;
	return RAW(__NR_socket, family, type | O_CLOEXEC, protocol);
}

ATTEMPT(socket_high, RAW(__NR_socket, PACKET | 1UL << 32, 3, 0))
