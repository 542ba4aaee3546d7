/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/net_tool.c - the process of pasta or slirp4netns that serves one sandbox
 *
 * The keeper forks a guard, and the guard executes the program, from an argument vector and with an empty
 * environment. The program parses what the sandbox sends, with the keeper's kernel uid, and shuts itself
 * into an empty root and a system call filter first. pasta keeps the right to enter namespaces, which
 * in the storage namespace of an ordinary user is worth that user's sandboxes; root's would be worth
 * the host, so root has slirp4netns only, which keeps no more than low ports. Nothing of what either
 * says is read.
 */
#include "runtime/net_tool.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <linux/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/proc.h"
#include "runtime/base/sys.h"

enum { ARGS_MAX = 48, PATH_TEXT_MAX = 48, HOLD_FD = 3, HANDLES_FAILED = 126, EXEC_FAILED = 127 };

#define HANDLES "/tmp" /* there on every host; covered in the tool's mount namespace only */

struct tool {
	const char *path;
	char user[PATH_TEXT_MAX], net[PATH_TEXT_MAX];
	char address[INET_ADDRSTRLEN], gateway[INET_ADDRSTRLEN], cidr[INET_ADDRSTRLEN + 4];
	const char *argv[ARGS_MAX];
	size_t argc;
};

static void add(struct tool *t, const char *arg)
{
	if (t->argc + 1 < ARGS_MAX)
		t->argv[t->argc++] = arg;
}

static void add_all(struct tool *t, const char *const *args)
{
	for (; *args; args++)
		add(t, *args);
}

/* Nothing of the host's is reachable through it: not by a gateway that stands for the host, not by a
 * forwarded port, not by a copied address; it serves no addresses and no names. */
static void pasta_arguments(struct tool *t)
{
	static const char *const fixed[] = {
		"--foreground", "--quiet", "--no-map-gw", "--no-dhcp", "--no-dhcpv6",
		"--no-ndp", "--no-ra", "-t", "none", "-u", "none", "-T", "none", "-U", "none", "-D",
		"none", "-S", "none", "--ipv4-only", "-n", "24", "-I", NET_INSIDE_NAME, NULL,
	};

	add(t, "pasta");
	add_all(t, fixed);
	add(t, "-a");
	add(t, t->address);
	add(t, "-g");
	add(t, t->gateway);
	add(t, "--netns-only");
	add(t, "--netns");
	add(t, HANDLES "/net");
}

static void slirp_arguments(struct tool *t)
{
	static const char *const fixed[] = {
		"--disable-host-loopback", "--disable-dns", "--enable-sandbox", "--enable-seccomp",
		"--netns-type=path", NULL,
	};

	add(t, "slirp4netns");
	add_all(t, fixed);
	add(t, "--cidr");
	add(t, t->cidr);
	add(t, "--userns-path=" HANDLES "/user");
	add(t, HANDLES "/net");
	add(t, NET_INSIDE_NAME);
}

static void write_arguments(struct tool *t, enum net_uplink kind, const struct net_inside *inside,
			    pid_t init)
{
	struct net_addr network = inside->address[0];
	char text[INET_ADDRSTRLEN];

	(void)snprintf(t->user, sizeof(t->user), "/proc/%d/ns/user", init);
	(void)snprintf(t->net, sizeof(t->net), "/proc/%d/ns/net", init);
	(void)net_addr_format(&inside->address[0], t->address, sizeof(t->address));
	(void)net_addr_format(&inside->gateway[0], t->gateway, sizeof(t->gateway));
	network.bytes[3] = 0;
	(void)snprintf(t->cidr, sizeof(t->cidr), "%s/24",
		       net_addr_format(&network, text, sizeof(text)));
	if (kind == NET_UPLINK_PASTA)
		pasta_arguments(t);
	else
		slirp_arguments(t);
}

/* ---- the guard ---- */

static int bind_handle(const char *from, const char *to)
{
	_cleanup_fd_ int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 ? -1 : mount(from, to, NULL, MS_BIND, NULL);
}

/* The programs open namespaces by name, when they have dropped the right to look into a process that is
 * not dumpable; so the names are made before, in a mount namespace of theirs. */
static int make_handles(const struct tool *t)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("handles", HANDLES, "ramfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700") < 0)
		return -1;
	return bind_handle(t->user, HANDLES "/user") < 0 || bind_handle(t->net, HANDLES "/net") < 0 ?
		       -1 :
		       0;
}

static _Noreturn void run_tool(const struct tool *t)
{
	char *const envp[] = { NULL };
	int null = open("/dev/null", O_RDWR);

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* until it changes its namespace */
	for (int fd = 0; fd <= STDERR_FILENO && null >= 0; fd++)
		(void)dup2(null, fd);
	(void)close_range(STDERR_FILENO + 1, ~0U, 0);
	(void)execve(t->path, (char *const *)(uintptr_t)t->argv, envp);
	_exit(EXEC_FAILED);
}

static int wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Until the tool has ended, or nobody holds the other end of hold any more. */
static _Noreturn void guard(const struct tool *t, int hold)
{
	struct pollfd p[2] = { { .fd = HOLD_FD }, { .events = POLLIN } };
	pid_t pid;

	proc_reset_signals();
	if ((hold != HOLD_FD && dup2(hold, HOLD_FD) < 0) || close_range(HOLD_FD + 1, ~0U, 0) < 0)
		_exit(EXEC_FAILED);
	if (make_handles(t) < 0)
		_exit(HANDLES_FAILED);
	pid = fork();
	if (pid == 0)
		run_tool(t);
	p[1].fd = pid < 0 ? -1 : sys_pidfd_open(pid, 0);
	if (p[1].fd < 0)
		_exit(EXEC_FAILED);
	while (poll(p, 2, -1) < 0 && errno == EINTR)
		;
	if (!(p[1].revents & POLLIN))
		(void)sys_pidfd_send_signal(p[1].fd, SIGKILL);
	_exit(wait_for(pid));
}

/* ---- the keeper ---- */

pid_t net_tool_start(enum net_uplink kind, const char *path, const struct net_inside *inside,
		     pid_t init, int *ret_hold, struct err *e)
{
	static struct tool t;
	int hold[2];
	pid_t pid;

	t = (struct tool){ .path = path };
	write_arguments(&t, kind, inside, init);
	if (pipe2(hold, O_CLOEXEC) < 0)
		return err_sys(e, "start %s", path);
	pid = fork();
	if (pid == 0) {
		(void)close(hold[1]);
		guard(&t, hold[0]);
	}
	(void)close(hold[0]);
	if (pid < 0) {
		(void)close(hold[1]);
		return err_sys(e, "start %s", path);
	}
	*ret_hold = hold[1];
	return pid;
}

int net_tool_serves(int route_socket)
{
	_Alignas(8) unsigned char event[8192];
	int serves = 0;

	for (;;) {
		ssize_t got = recv(route_socket, event, sizeof(event), MSG_DONTWAIT);
		const struct nlmsghdr *h = (const struct nlmsghdr *)(const void *)event;
		size_t len = (size_t)got;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno == EAGAIN ? serves : -1;
		for (; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
			const struct ifinfomsg *link = NLMSG_DATA(h);

			if (h->nlmsg_type == RTM_NEWLINK && link->ifi_index == NET_INSIDE_INDEX)
				serves = (link->ifi_flags & IFF_LOWER_UP) != 0;
		}
	}
}
