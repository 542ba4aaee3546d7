/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_caps.c - capability plans, and cuts of a process's own sets (in a child each) */
#include "runtime/caps.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "runtime/spec.h"
#include "tests/unit/tap.h"

/* Bit numbers of capabilities(7), not libcap's names: what the kernel is told. */
enum { CHOWN = 0, DAC_OVERRIDE = 1, FOWNER = 3, FSETID = 4, KILL = 5, SETGID = 6, SETUID = 7, SETPCAP = 8,
       NET_BIND_SERVICE = 10, NET_ADMIN = 12, NET_RAW = 13, SYS_MODULE = 16, SYS_RAWIO = 17, SYS_PTRACE = 19, SYS_ADMIN = 21,
       SYS_BOOT = 22, SYS_RESOURCE = 24, SYS_TIME = 25, MKNOD = 27, SETFCAP = 31 };

#define BIT(n) (UINT64_C(1) << (n))

static void test_policy(void)
{
	tap_ok(SANDBOX_CAPS == (BIT(CHOWN) | BIT(DAC_OVERRIDE) | BIT(FOWNER) | BIT(FSETID) | BIT(KILL) |
				BIT(SETGID) | BIT(SETUID) | BIT(SETFCAP)),
	       "the sandbox's set is the documented eight");
}

static void test_plan(void)
{
	struct caps_plan plan;
	struct err e = { .code = ERR_NONE };

	tap_int(caps_plan_init(&plan, SANDBOX_CAPS, &e), 0, "a plan");
	tap_int(plan.header.version, 0x20080522, "version 3 of the call");
	tap_int(plan.header.pid, 0, "for the process itself");
	tap_int(plan.data[0].permitted, 0x800000fb, "permitted");
	tap_int(plan.data[0].effective, 0x800000fb, "effective");
	tap_int(plan.data[0].inheritable, 0, "inheritable");
	tap_int(plan.data[1].permitted | plan.data[1].effective | plan.data[1].inheritable, 0,
		"nothing above 31");
	tap_ok(plan.keep == SANDBOX_CAPS, "kept in the bounding set");
	tap_ok(prctl(PR_CAPBSET_READ, plan.last_cap) >= 0 &&
		       prctl(PR_CAPBSET_READ, plan.last_cap + 1) < 0,
	       "%d is the last the kernel knows", plan.last_cap);
	tap_int(caps_plan_init(&plan, 0, &e), 0, "a plan for no capability at all");
	tap_int(plan.data[0].permitted, 0, "is empty");
	tap_int(caps_plan_init(&plan, BIT(63), &e), -1, "an unknown capability is refused");
	tap_int(e.code, ERR_CONFIG, "as a configuration error");
}

struct sets {
	uint64_t inheritable, permitted, effective, bounding, ambient;
	int no_new_privs;
};

static uint64_t status_set(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, 16) : UINT64_MAX;
}

static int read_sets(struct sets *ret)
{
	char text[8192];
	FILE *f = fopen("/proc/self/status", "re");
	size_t got = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	if (f)
		(void)fclose(f);
	text[got] = '\0';
	*ret = (struct sets){ status_set(text, "CapInh:"), status_set(text, "CapPrm:"),
			      status_set(text, "CapEff:"), status_set(text, "CapBnd:"),
			      status_set(text, "CapAmb:"), (int)status_set(text, "NoNewPrivs:") };
	return got > 0 ? 0 : -1;
}

/* Run fn in a child and bring back the sets it ends with. Return: fn's result. */
static int in_child(int (*fn)(struct err *), struct sets *ret)
{
	int pipe_fd[2], status = -1;

	fflush(stdout);
	if (pipe(pipe_fd) != 0)
		tap_bail("pipe");
	pid_t child = fork();
	if (child == 0) {
		struct err e = { .code = ERR_NONE };
		struct sets sets;
		int rc = fn(&e);
		if (rc != 0)
			fprintf(stderr, "# %s\n", e.message);
		if (read_sets(&sets) != 0 || write(pipe_fd[1], &sets, sizeof(sets)) != sizeof(sets))
			_exit(100);
		_exit(rc == 0 ? 0 : 1);
	}
	(void)close(pipe_fd[1]);
	ssize_t got = read(pipe_fd[0], ret, sizeof(*ret));
	(void)close(pipe_fd[0]);
	(void)waitpid(child, &status, 0);
	return got == sizeof(*ret) && status == 0 ? 0 : -1;
}

static int drop_as_root(struct err *e)
{
	return caps_drop_all(e);
}

/* As the front does it: the id first. */
static int drop_as_other(struct err *e)
{
	if (syscall(SYS_setresuid, 1, 1, 1) != 0)
		return -1;
	return caps_drop_all(e);
}

static int drop_with_ambient(struct err *e)
{
	struct caps_plan plan;

	if (caps_plan_init(&plan, BIT(CHOWN), e) != 0)
		return -1;
	plan.data[0].inheritable = (uint32_t)BIT(CHOWN);
	if (syscall(SYS_capset, &plan.header, plan.data) != 0 ||
	    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CHOWN, 0, 0) != 0)
		return -1;
	return caps_drop_all(e);
}

static void check_empty(const struct sets *s, const char *who)
{
	tap_ok((s->inheritable | s->permitted | s->effective | s->ambient) == 0, "%s: no capability left",
	       who);
	tap_int(s->no_new_privs, 1, "%s: and none to gain", who);
}

static void test_cuts(void)
{
	struct sets before, s;

	if (read_sets(&before) != 0)
		tap_bail("read /proc/self/status");
	tap_int(in_child(caps_drop_all, &s), 0, "drop all");
	check_empty(&s, "whoever we are");
	if (geteuid() != 0 || !(before.permitted & BIT(SETPCAP))) {
		tap_ok(true, "cuts of a root process # SKIP not root");
		return;
	}
	tap_int(in_child(drop_as_root, &s), 0, "drop all, as root");
	tap_ok(s.bounding == 0, "the bounding set is empty too");
	tap_int(in_child(drop_as_other, &s), 0, "drop all, after the id change");
	check_empty(&s, "another id");
	tap_int(in_child(drop_with_ambient, &s), 0, "drop all, with an ambient capability");
	check_empty(&s, "ambient");

	tap_int(in_child(caps_cut_keeper, &s), 0, "the keeper's cut");
	uint64_t wanted = BIT(CHOWN) | BIT(DAC_OVERRIDE) | BIT(FOWNER) | BIT(FSETID) | BIT(KILL) |
			  BIT(SETGID) | BIT(SETUID) | BIT(SETPCAP) | BIT(NET_BIND_SERVICE) |
			  BIT(NET_ADMIN) | BIT(SYS_PTRACE) |
			  BIT(SYS_ADMIN) | BIT(SYS_RESOURCE);
	tap_ok(s.permitted == (wanted & before.permitted), "it keeps what it needs and had: 0x%llx",
	       (unsigned long long)s.permitted);
	tap_ok(s.effective == s.permitted && s.inheritable == 0 && s.ambient == 0, "effective, not more");
	tap_ok(s.bounding == (wanted & before.bounding), "programs it runs get no more either");
	tap_ok(!(s.bounding & (BIT(SYS_MODULE) | BIT(SYS_RAWIO) | BIT(SYS_BOOT) | BIT(SYS_TIME) |
			       BIT(MKNOD) | BIT(NET_RAW))),
	       "no modules, hardware, reboot, clock, device nodes, raw sockets");
}

int main(void)
{
	test_policy();
	test_plan();
	test_cuts();
	return tap_done();
}
