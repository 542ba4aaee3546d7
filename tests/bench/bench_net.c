/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench/bench_net.c - creation with the network of mode internet against creation with none
 *
 * bench_net [ROUNDS]: the two alternate. As root, in a network namespace of its own that stands for a host
 * with a default route. One JSON object on standard output; times in microseconds.
 */
#include <spawn.h>

#include "tests/bench/figures.h"
#include "tests/sys/box.h"

enum { ROUNDS_DEFAULT = 200, ROUNDS_MAX = 5000, ARGS_MAX = 16 };

extern char **environ;

static double none_us[ROUNDS_MAX], internet_us[ROUNDS_MAX];

static void ip(const char *line)
{
	char text[128], *argv[ARGS_MAX] = { (char[]){ "ip" } }, *save = NULL;
	int status = -1, n = 1;
	pid_t pid;

	(void)snprintf(text, sizeof(text), "%s", line);
	for (char *w = strtok_r(text, " ", &save); w && n < ARGS_MAX - 1; w = strtok_r(NULL, " ", &save))
		argv[n++] = w;
	if (posix_spawnp(&pid, "ip", NULL, NULL, argv, environ) != 0 ||
	    waitpid(pid, &status, 0) < 0 || status != 0)
		tap_bail("ip %s", line);
}

static void make_host(void)
{
	if (unshare(CLONE_NEWNET) < 0)
		tap_bail("make a network namespace");
	ip("link set lo up");
	ip("link add up0 type veth peer name up1");
	ip("addr add 192.168.77.2/24 dev up0");
	ip("link set up0 up");
	ip("link set up1 up");
	ip("route add default via 192.168.77.1");
	if (fd_write_file_at(AT_FDCWD, "/proc/sys/net/ipv4/ip_forward", "1") < 0)
		tap_bail("switch forwarding on");
}

static double create(struct box *b, struct uplink *u)
{
	double start = now_us(), ready;

	box_net(b, u);
	if (box_start(b) < 0)
		tap_bail("%s", b->e.message);
	ready = now_us();
	box_end(b);
	return ready - start;
}

int main(int argc, char **argv)
{
	size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : ROUNDS_DEFAULT;
	static struct uplink u;
	static struct box b;
	double none, internet;

	if (rounds == 0 || rounds > ROUNDS_MAX)
		rounds = ROUNDS_DEFAULT;
	if (geteuid() != 0)
		tap_bail("needs root");
	make_host();
	box_open(&b);
	if (uplink_open(&u, NET_INTERNET, true, &b.e) < 0 || u.kind != NET_UPLINK_VETH)
		tap_bail("no veth: %s %s", b.e.message, u.why_not);
	for (size_t i = 0; i < rounds; i++) {
		none_us[i] = create(&b, NULL);
		internet_us[i] = create(&b, &u);
	}
	none = quantile(none_us, rounds, 0.5);
	internet = quantile(internet_us, rounds, 0.5);
	printf("{\"rounds\": %zu, \"none_p50\": %.0f, \"none_p99\": %.0f, \"internet_p50\": %.0f, "
	       "\"internet_p99\": %.0f, \"internet_to_none\": %.3f}\n",
	       rounds, none, quantile(none_us, rounds, 0.99), internet,
	       quantile(internet_us, rounds, 0.99), internet / none);
	uplink_close(&u);
	box_close(&b);
	return 0;
}
