/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sys/test_keeper_rights.c - a command has the rights of process 1 and is where process 1 is
 *
 * In sandboxes that the keeper makes: the lines of both status files seen from inside, the
 * namespaces seen from outside. A runtime that sets rights in two places sooner or later sets them
 * differently (CVE-2022-29162, CVE-2019-16884).
 */
#include "tests/sys/keeper.h"

static struct reply r;
static const struct exec_options plain;

#define KEY "rights-0a1b2c"

enum { STATUS_MAX = 8192, LINK_MAX = 64 };

/* The line of a status file that begins with key. Return: ret. */
static const char *line(const char *text, const char *key, char ret[256])
{
	const char *at = strstr(text, key);

	(void)snprintf(ret, 256, "%.*s", at ? (int)strcspn(at, "\n") : 6, at ? at : "(none)");
	return ret;
}

static void test_identity(const struct keeper_proc *k, const char *caps, const char *who)
{
	static const char *const keys[] = {
		"\nUid:",	 "\nGid:",     "\nGroups:",	    "\nCapInh:",
		"\nCapPrm:",	 "\nCapEff:",  "\nCapBnd:",	    "\nCapAmb:",
		"\nNoNewPrivs:", "\nSeccomp:", "\nSeccomp_filters:"};
	char command_line[256], init_line[256], want[64];

	kt_exec(k->sock, KEY, "cat /proc/self/status; echo; echo ==; cat /proc/1/status", plain,
		&r);
	char *init = r.h.op == API_EXEC_DONE ? strstr(r.text, "==") : NULL;
	if (!tap_ok(init != NULL, "%s: both status files", who))
		return;
	*init = '\0';
	init++;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		tap_str(line(r.text, keys[i], command_line), line(init, keys[i], init_line),
			"%s: %s is process 1's", who, keys[i] + 1);
	static const char *const full[] = {"CapPrm", "CapEff", "CapBnd"};
	for (size_t i = 0; i < ARRAY_SIZE(full); i++) {
		(void)snprintf(want, sizeof(want), "\n%s:\t%s\n", full[i], caps);
		tap_ok(strstr(r.text, want) != NULL, "%s: %s is %s", who, full[i], caps);
	}
	tap_ok(strstr(r.text, "\nCapInh:\t0000000000000000\n") &&
		       strstr(r.text, "\nCapAmb:\t0000000000000000\n"),
	       "%s: nothing inheritable, nothing ambient", who);
	tap_ok(strstr(r.text, "\nNoNewPrivs:\t1\n") && strstr(r.text, "\nSeccomp:\t2\n") &&
		       strstr(r.text, "\nSeccomp_filters:\t1\n"),
	       "%s: no_new_privs and one filter", who);
	reply_close(&r);
}

/* G 6: whatever is running, every thread of it. */
static void test_every_task(const struct keeper_proc *k)
{
	kt_exec(k->sock, KEY,
		"(sleep 5 & setsid sleep 5 & nohup sleep 5 >/dev/null & ) 2>/dev/null\n"
		"cat /proc/[0-9]*/task/*/status | grep -E '^(Seccomp|Seccomp_filters|NoNewPrivs):' "
		"| sort | "
		"while read -r k v; do echo $k$v; done | sort -u",
		plain, &r);
	tap_str(r.text, "NoNewPrivs:1\nSeccomp:2\nSeccomp_filters:1\n",
		"every task of the sandbox is restricted");
	reply_close(&r);
}

static void read_namespace(pid_t pid, const char *name, char ret[LINK_MAX])
{
	char path[64];
	ssize_t len;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, name);
	len = readlink(path, ret, LINK_MAX - 1);
	ret[len > 0 ? len : 0] = '\0';
}

/* Children of the keeper whose name is comm. Return: the last one, 0. */
static pid_t find_child(pid_t keeper, const char *comm)
{
	char path[64], text[4096], name[64];
	pid_t found = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)keeper, (int)keeper);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	for (char *rest = text, *word; (word = strsep(&rest, " ")) != NULL;) {
		(void)snprintf(path, sizeof(path), "/proc/%s/comm", word);
		if (*word && fd_read_file_at(AT_FDCWD, path, name, sizeof(name)) > 0 &&
		    strncmp(name, comm, strlen(comm)) == 0 && name[strlen(comm)] == '\n')
			found = atoi(word);
	}
	return found;
}

static void test_namespaces(const struct keeper_proc *k)
{
	static const char *const names[] = {"user", "mnt", "pid", "net", "ipc", "uts"};
	char init_ns[LINK_MAX], command_ns[LINK_MAX], host_ns[LINK_MAX];
	pid_t init, command = 0;

	kt_exec_send(k->sock, 7, KEY, "exec sleep 77", strlen("exec sleep 77"), plain);
	for (int i = 0; i < 200 && command == 0; i++) {
		kt_sleep_ms(20);
		command = find_child(k->pid, "sleep");
	}
	init = find_child(k->pid, "init");
	if (!tap_ok(init > 0 && command > 0,
		    "a command and process 1 are both the keeper's children"))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		read_namespace(init, names[i], init_ns);
		read_namespace(command, names[i], command_ns);
		read_namespace(getpid(), names[i], host_ns);
		tap_str(command_ns, init_ns, "%s namespace is process 1's", names[i]);
		tap_ok(*init_ns && strcmp(init_ns, host_ns) != 0, "%s namespace is not the host's",
		       names[i]);
	}
	read_namespace(command, "cgroup", command_ns);
	read_namespace(getpid(), "cgroup", host_ns);
	tap_ok(*command_ns && strcmp(command_ns, host_ns) != 0,
	       "cgroup namespace is not the host's");
	(void)kill(command, SIGKILL);
	kt_expect(k->sock, &r);
	tap_int(r.done.exit_code, 137, "the host can kill it");
	reply_close(&r);
}

/* Ids the keeper's user does not own, and no way back to any group of the host. */
static void test_outside_ids(const struct kt *t, const struct keeper_proc *k)
{
	char path[64], text[STATUS_MAX], want[128];
	uint32_t root = t->ids.base + ID_SANDBOX_ROOT;
	pid_t init = find_child(k->pid, "init");

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)init);
	if (!tap_ok(init > 0 && fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0,
		    "process 1 from outside"))
		return;
	(void)snprintf(want, sizeof(want), "\nUid:\t%u\t%u\t%u\t%u\nGid:\t%u\t%u\t%u\t%u\n", root,
		       root, root, root, root, root, root, root);
	tap_ok(strstr(text, want) != NULL, "is user and group %u, all four of each", root);
	tap_ok(strstr(text, "\nGroups:\t \n") != NULL, "has no supplementary group");
}

static void test_profile(struct kt *t, enum profile_id profile, const char *caps)
{
	struct keeper_proc k;

	t->settings.profile = &profile_table[profile];
	t->settings.limits = profile_table[profile].limits;
	keeper_start_proc(t, &t->settings, KEEPER_STDIO, &k);
	test_identity(&k, caps, profile_table[profile].name);
	if (profile == PROFILE_CODE) {
		test_every_task(&k);
		test_namespaces(&k);
		test_outside_ids(t, &k);
	}
	tap_int(keeper_end_proc(&k, NULL), 0, "the keeper ends");
}

int main(int argc, char **argv)
{
	struct kt t;

	(void)argc;
	kt_open(&t, argv);
	test_profile(&t, PROFILE_CODE, "00000000800000fb");
	test_profile(&t, PROFILE_SAFE_SHELL, "0000000000000000");
	kt_close(&t);
	return tap_done();
}
