/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/doors.c - listening sockets and TLS files for the front of serve
 *
 * Runs in the keeper: the sockets are made while it may still bind ports below 1024, the files are opened
 * at every start of a front and at SIGHUP. Nothing is read or accepted here. All input is the operator's.
 */
#include "runtime/doors.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/log.h"

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static bool address_parse(const char *host, uint16_t port, union address *ret)
{
	*ret = (union address){ .any.sa_family = AF_UNSPEC };
	if (inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1) {
		ret->v4.sin_family = AF_INET;
		ret->v4.sin_port = htons(port);
	} else if (inet_pton(AF_INET6, host, &ret->v6.sin6_addr) == 1) {
		ret->v6.sin6_family = AF_INET6;
		ret->v6.sin6_port = htons(port);
	}
	return ret->any.sa_family != AF_UNSPEC;
}

static socklen_t address_len(const union address *a)
{
	return a->any.sa_family == AF_INET ? sizeof(a->v4) : sizeof(a->v6);
}

static int explain_bind(const char *host, uint16_t port, struct err *e)
{
	int saved = errno;

	err_sys(e, "listen on %s port %u", host, port);
	if (saved == EADDRINUSE)
		return err_remedy(e, "another process listens there: end it, or choose another SANDBOX_PORT");
	if (saved == EACCES)
		return err_remedy(e, "ports below 1024 need root: choose another SANDBOX_PORT, or put a proxy in front");
	if (saved == EADDRNOTAVAIL)
		return err_remedy(e, "this machine has no such address: set SANDBOX_HOST to one of \"ip address\"");
	return -1;
}

/* Accepted sockets inherit NODELAY: an event must not wait for the next one. "::" is every address of
 * both families. */
static int set_options(int fd, int family)
{
	int on = 1, off = 0;

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
		return -1;
	return family == AF_INET6 ? setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) : 0;
}

static int add_socket(struct doors *d, const char *host, uint16_t port, struct err *e)
{
	union address a;
	socklen_t len = sizeof(a);
	_cleanup_fd_ int fd = -1;

	if (!address_parse(host, port, &a))
		return err_set(e, ERR_CONFIG, "SANDBOX_HOST: %s is no numeric address", host);
	fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || set_options(fd, a.any.sa_family) < 0 || bind(fd, &a.any, address_len(&a)) < 0 ||
	    listen(fd, SOMAXCONN) < 0)
		return explain_bind(host, port, e);
	if (getsockname(fd, &a.any, &len) < 0)
		return err_sys(e, "listening socket");
	d->http.port = ntohs(a.any.sa_family == AF_INET ? a.v4.sin_port : a.v6.sin6_port);
	d->listen_fds[d->listen_count++] = take_fd(&fd);
	return 0;
}

/* Without IPv6 the name still has its IPv4 address. */
static int listen_localhost(struct doors *d, uint16_t port, struct err *e)
{
	struct err ignored;

	if (add_socket(d, "127.0.0.1", port, e) < 0)
		return -1;
	if (add_socket(d, "::1", (uint16_t)d->http.port, &ignored) < 0)
		log_info("localhost is IPv4 only: %s", ignored.message);
	return 0;
}

int doors_listen(struct doors *d, const char *host, uint16_t port, struct err *e)
{
	const char *scheme = d->chain_path[0] ? "https" : "http";
	int r = strcmp(host, "localhost") == 0 ? listen_localhost(d, port, e) : add_socket(d, host, port, e);

	if (r < 0)
		return -1;
	(void)snprintf(d->url, sizeof(d->url), strchr(host, ':') ? "%s://[%s]:%u" : "%s://%s:%u", scheme, host,
		       d->http.port);
	return 0;
}

void doors_inherit(struct doors *d, const int *fds, size_t count)
{
	struct sockaddr_storage at;
	socklen_t size = sizeof(at);

	for (size_t i = 0; i < count && i < ARRAY_SIZE(d->listen_fds); i++)
		d->listen_fds[d->listen_count++] = fds[i];
	/* Both families have the port in the same place. */
	if (count > 0 && getsockname(fds[0], (struct sockaddr *)&at, &size) == 0)
		d->http.port = ntohs(((struct sockaddr_in *)&at)->sin_port);
	d->announced = true;
}

void doors_done(struct doors *d)
{
	for (size_t i = 0; i < d->listen_count; i++)
		close_fd(&d->listen_fds[i]);
	d->listen_count = 0;
	explicit_bzero(&d->http, sizeof(d->http));
}

/* A link is followed: certbot's "live" files are links. O_NONBLOCK: a FIFO would stop us. */
static int open_file(const char *path, const char *setting, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0) {
		err_sys(e, "%s: %s", setting, path);
		e->code = ERR_CONFIG;
		return err_remedy(e, "name a file that user %u can read", (unsigned int)geteuid());
	}
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close_fd(&fd);
	err_set(e, ERR_CONFIG, "%s: %s is no regular file", setting, path);
	return err_remedy(e, "name the PEM file itself");
}

int doors_open_tls(const struct doors *d, int ret_fds[2], struct err *e)
{
	_cleanup_fd_ int chain = -1, key = -1;

	if (!d->chain_path[0])
		return 0;
	chain = open_file(d->chain_path, "SANDBOX_TLS_CERT", e);
	key = chain < 0 ? -1 : open_file(d->key_path, "SANDBOX_TLS_KEY", e);
	if (key < 0)
		return -1;
	ret_fds[0] = take_fd(&chain);
	ret_fds[1] = take_fd(&key);
	return 2;
}

static void give_tls(const struct doors *d, struct peer *front, bool renewed)
{
	struct api_header msg;
	struct err e;
	int fds[2], count = doors_open_tls(d, fds, &e);

	if (count < 0)
		log_error("%s", e.message);
	/* Without a certificate a front that has none yet must not serve in plain text. */
	if (count < 0 && !renewed)
		peer_fail(front, "its TLS files cannot be opened");
	if (count < 0)
		return;
	peer_send_fds(front, API_TLS, 0, &msg, sizeof(msg), fds, (size_t)count);
	for (int i = 0; i < count; i++)
		close_fd(&fds[i]);
}

void doors_give(const struct doors *d, struct peer *front)
{
	struct api_header msg;
	struct api_http http = d->http;

	peer_send(front, API_HTTP, 0, &http, sizeof(http));
	explicit_bzero(&http, sizeof(http));
	give_tls(d, front, false);
	peer_send_fds(front, API_LISTEN, 0, &msg, sizeof(msg), d->listen_fds, d->listen_count);
}

void doors_renew(const struct doors *d, struct peer *front)
{
	if (d->chain_path[0])
		give_tls(d, front, true);
}
