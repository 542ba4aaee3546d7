/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sys/test_storage.c - what an ordinary user reads when the storage namespace cannot be made
 *
 * Each case runs in a child, because half of an attempt cannot be undone.
 */
#include <sys/prctl.h>

#include "tests/sys/box.h"

enum attempt { ATTEMPT_RANGE, ATTEMPT_NO_NEW_PRIVS, ATTEMPT_SETTING, ATTEMPT_MARKER };

static const struct {
	enum attempt attempt;
	const char *desc, *setting;
	enum err_code code;
	const char *message, *remedy; /* words that must be there */
} rows[] = {
	{ ATTEMPT_RANGE, "ids that are not this user's", "4000000000:65536", ERR_HOST, "newuidmap refused",
	  "/etc/subuid" },
	{ ATTEMPT_NO_NEW_PRIVS, "no_new_privs is set", "", ERR_HOST, "newuidmap", "NoNewPrivileges" },
	{ ATTEMPT_SETTING, "a range with root in it", "0:65536", ERR_CONFIG, "root", "FIRST:65536" },
	{ ATTEMPT_MARKER, "executed again without being root", "", ERR_HOST, "not as root", "" },
};

struct answer {
	int result, children;
	bool marker_left;
	struct err e;
};

static _Noreturn void try_in_child(size_t row, int out, char **argv)
{
	struct answer a = { .result = 0 };

	if (rows[row].attempt == ATTEMPT_NO_NEW_PRIVS)
		(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (rows[row].attempt == ATTEMPT_MARKER)
		(void)setenv(USERNS_STORAGE_MARKER, "1", 1);
	a.result = userns_enter_storage(-1, rows[row].setting, argv, &a.e);
	a.marker_left = getenv(USERNS_STORAGE_MARKER) != NULL;
	(void)fd_write_full(out, &a, sizeof(a));
	_exit(0);
}

static void check_row(size_t row, char **argv)
{
	struct answer a = { .result = 0 };
	int out[2];
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) < 0)
		tap_bail("pipe");
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		try_in_child(row, out[1], argv);
	(void)close(out[1]);
	tap_int(fd_read_full(out[0], &a, sizeof(a)), sizeof(a), "%s: an answer", rows[row].desc);
	(void)close(out[0]);
	(void)waitpid(pid, NULL, 0);
	tap_int(a.result, -1, "  it is refused");
	tap_int(a.e.code, rows[row].code, "  with the right code");
	tap_ok(strstr(a.e.message, rows[row].message) != NULL, "  \"%s\"", a.e.message);
	tap_ok(strstr(a.e.remedy, rows[row].remedy) != NULL, "  \"%s\"", a.e.remedy);
	tap_ok(!a.marker_left, "  nothing is left in the environment");
}

int main(int argc, char **argv)
{
	(void)argc;
	if (getuid() == 0)
		return tap_skip_all("root makes no storage namespace");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_row(i, argv);
	return tap_done();
}
