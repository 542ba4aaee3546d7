/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/proxy/text.c - heads that are read, and answers of our own
 *
 * Runs in the egress proxy; what is read here is hostile and only cut into heads.
 */
#include "runtime/proxy/internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int conn_read_head(int fd, char **in, size_t *len)
{
	static char peeked[HTTP_HEAD_MAX];
	size_t room = HTTP_HEAD_MAX - *len, take, end;
	ssize_t n;
	char *grown;

	if (room == 0)
		return -2;
	n = recv(fd, peeked, room, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (n == 0)
		return -1;
	grown = realloc(*in, *len + (size_t)n);
	if (!grown)
		return -1;
	*in = grown;
	memcpy(grown + *len, peeked, (size_t)n);
	end = http_head_end(grown, *len + (size_t)n, *len);
	take = end ? end - *len : (size_t)n;
	if (recv(fd, peeked, take, MSG_DONTWAIT) != (ssize_t)take)
		return -1;
	*len += take;
	return end ? (int)end : 0;
}

bool conn_flush(struct buf *pending, int fd, bool *ret_broken)
{
	ssize_t n;

	if (pending->len == 0)
		return true;
	n = send(fd, pending->data, pending->len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0) {
		*ret_broken = errno != EAGAIN && errno != EINTR;
		return false;
	}
	buf_consume(pending, (size_t)n);
	if (pending->len > 0)
		return false;
	buf_done(pending);
	buf_init(pending, CONN_TEXT_MAX);
	return true;
}

static const char *status_text(unsigned int status)
{
	switch (status) {
	case 400:
		return "Bad Request";
	case 403:
		return "Forbidden";
	case 431:
		return "Request Header Fields Too Large";
	case 501:
		return "Not Implemented";
	case 504:
		return "Gateway Timeout";
	case 505:
		return "HTTP Version Not Supported";
	default:
		return "Bad Gateway";
	}
}

void conn_answer(struct conn *c, unsigned int status, const char *fmt, ...)
{
	char text[NET_TEXT_MAX + 1024];
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(text, sizeof(text) - 1, fmt, args);
	va_end(args);
	if (len < 0 || (size_t)len >= sizeof(text) - 1)
		len = (int)strlen(text);
	text[len++] = '\n';
	(void)buf_printf(&c->to_client,
			 "HTTP/1.1 %u %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
			 "Content-Length: %d\r\nConnection: close\r\n\r\n",
			 status, status_text(status), len);
	if (!c->to_head)
		(void)buf_append(&c->to_client, text, (size_t)len);
	c->state = CONN_LAST_WORDS;
	conn_set_timer(c, HEAD_TIMEOUT_MS);
}
