/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sys/test_keeper_files.c - what a command writes, and files handed out of a workspace */
#include "tests/sys/keeper.h"

#include <sys/sysmacros.h>
#include <sys/un.h>

static struct reply r;
static struct keeper_proc k;
static const struct exec_options plain;

#define KEY "files-0a1b2c"

static void test_cap(void)
{
	char tail[64 * 1024 + 1];
	uint64_t n;

	/* 8 bytes a line: 3 MiB against a cap of 1 MiB. */
	kt_exec(k.sock, KEY, "for i in 1 2 3; do seq -f %07.0f 0 131071; done; echo end", plain, &r);
	tap_int(r.h.op, API_EXEC_DONE, "output over the cap is answered");
	tap_int(r.done.exit_code, 0, "and does not fail the command");
	tap_ok(r.done.flags & API_OUTPUT_CAPPED, "flagged");
	tap_int(r.done.total_bytes, 3 * 131072 * 8 + 4, "every byte is counted");
	tap_int(r.done.log_bytes, 1 << 20, "the log ends at the cap");
	tap_ok(strncmp(r.text, "0000000\n0000001\n", 16) == 0, "and has the beginning");
	tap_int(r.fd_count, 2, "the tail comes in a second descriptor");
	tap_int(r.done.tail_bytes, 64 * 1024, "of 64 KiB");
	n = 64 * 1024 - r.done.tail_start;
	if (pread(r.fds[1], tail, n, (off_t)r.done.tail_start) != (ssize_t)n ||
	    pread(r.fds[1], tail + n, r.done.tail_start, 0) != (ssize_t)r.done.tail_start)
		tap_bail("read the tail");
	tail[64 * 1024] = '\0';
	tap_ok(strcmp(tail + 64 * 1024 - 12, "0131071\nend\n") == 0, "which ends with the end");
	tap_ok(write(r.fds[0], "x", 1) < 0 && write(r.fds[1], "x", 1) < 0, "both are read-only");
	reply_close(&r);
	kt_exec(k.sock, KEY, "head -c 1048576 /dev/zero", plain, &r);
	tap_int(r.done.log_bytes, 1 << 20, "exactly the cap fits");
	tap_ok(!(r.done.flags & API_OUTPUT_CAPPED), "and is not called capped");
	reply_close(&r);
	kt_exec(k.sock, KEY, "head -c 1048577 /dev/zero", plain, &r);
	tap_ok(r.done.flags & API_OUTPUT_CAPPED, "one byte more is");
	tap_int(r.done.tail_bytes, 1, "and that byte is in the tail");
	tap_int(r.done.tail_start, 0, "at its beginning");
	reply_close(&r);
}

static void test_logs_kept(void)
{
	uint64_t number;

	kt_exec(k.sock, KEY, "true", plain, &r);
	tap_int(r.done.log_number, 0, "a silent command leaves no log");
	kt_exec(k.sock, KEY, "echo first", plain, &r);
	number = r.done.log_number;
	tap_ok(number > 0, "log %" PRIu64, number);
	reply_close(&r);
	for (int i = 0; i < 20; i++) {
		kt_exec(k.sock, KEY, "echo more", plain, &r);
		reply_close(&r);
	}
	tap_int(r.done.log_number, number + 20, "logs are numbered in a row");
	kt_exec(k.sock, KEY, "ls /output | wc -l", plain, &r);
	tap_str(r.text, "16\n", "16 are kept, this one's among them");
	reply_close(&r);
	kt_exec(k.sock, KEY, "cat /output/$(ls /output | sort -n | tail -n 1)", plain, &r);
	tap_int(r.done.exit_code, 0, "they can be read inside");
	reply_close(&r);
	for (int i = 0; i < 6; i++) {
		kt_exec(k.sock, KEY, "head -c 1048576 /dev/zero", plain, &r);
		tap_int(r.done.log_bytes, 1 << 20, "a whole log");
		reply_close(&r);
	}
	kt_exec(k.sock, KEY, "cat /output/* | wc -c", plain, &r);
	tap_ok(strtoull(r.text, NULL, 10) <= 4 << 20, "all logs together stay under four caps (%llu)",
	       strtoull(r.text, NULL, 10));
	reply_close(&r);
}

static void test_yes(void)
{
	uint64_t begin, worst = 0;
	int runs = 0;

	kt_exec(k.sock, "calm-0a1b2c", "true", plain, &r);
	for (uint64_t i = 0; i < 4; i++)
		kt_exec_send(k.sock, 500 + i, KEY, "yes", 3, (struct exec_options){ .timeout_ms = 1500 });
	kt_sleep_ms(200);
	while (runs < 8) {
		kt_exec_send(k.sock, 600, "calm-0a1b2c", "true", 4, plain);
		begin = kt_now_ms();
		kt_expect(k.sock, &r);
		if (r.h.id != 600)
			tap_bail("yes ended early");
		if (kt_now_ms() - begin > worst)
			worst = kt_now_ms() - begin;
		runs++;
	}
	tap_ok(worst < 1000, "four times yes: another sandbox answers meanwhile (worst %" PRIu64 " ms)",
	       worst);
	for (int i = 0; i < 4; i++) {
		kt_expect(k.sock, &r);
		reply_close(&r);
	}
	tap_int(r.done.exit_code, 124, "and yes times out");
	tap_ok(r.done.total_bytes > 1 << 20, "after %" PRIu64 " bytes", r.done.total_bytes);
}

/* ---- files handed out ---- */

/* From outside: nothing inside can make a device. */
static int workspace_of(const struct kt *t)
{
	char path[PATH_MAX + 64];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/owners/%s/%s/workspace", t->settings.home, OWNER_DEFAULT, KEY);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		tap_bail("%s", path);
	return fd;
}

static void make_socket(int dir_fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/socket", dir_fd);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		tap_bail("make a socket");
}

static void refuse_one(const char *path, const char *word)
{
	uint64_t begin = kt_now_ms();

	kt_present_send(k.sock, 810, KEY, path, false);
	kt_expect(k.sock, &r);
	tap_int(r.h.op, API_FAILED, "a %s is refused", word);
	tap_ok(strstr(r.failed.error.message, word), "says: %s", r.failed.error.message);
	tap_ok(kt_now_ms() - begin < 2000, "at once");
	reply_close(&r);
}

static void test_present_special(const struct kt *t)
{
	_cleanup_fd_ int dir_fd = workspace_of(t);

	make_socket(dir_fd);
	refuse_one("socket", "socket");
	if (mknodat(dir_fd, "device", S_IFCHR | 0666, makedev(1, 3)) == 0)
		refuse_one("device", "device");
	else
		tap_diag("no device can be made here: %s", strerror(errno));
}

static void test_present_refused(void)
{
	static const struct {
		const char *path, *word;
		int code;
	} rows[] = {
		{ "nothing", "no such file", ERR_NOT_FOUND },
		{ "link", "symbolic link", ERR_DENIED },
		{ "dirlink/plain", "symbolic link", ERR_DENIED },
		{ "dir", "directory", ERR_DENIED },
		{ "fifo", "FIFO", ERR_DENIED },
		{ "../../../etc/passwd", "out of the workspace", ERR_DENIED },
		{ "dir/../../lock", "out of the workspace", ERR_DENIED },
		{ "plain/x", "not a directory", ERR_NOT_FOUND },
		{ ".", "directory", ERR_DENIED },
		{ "..", "out of the workspace", ERR_DENIED },
		{ "a\nb", "a\\x0ab: no such file", ERR_NOT_FOUND },
	};

	kt_exec(k.sock, KEY, "echo plain > plain; ln -s plain link; mkdir dir; ln -s dir dirlink; "
		"echo x > dir/plain; mkfifo fifo; echo secret > private; chmod 0 private", plain, &r);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		kt_present_send(k.sock, 800, KEY, rows[i].path, i % 2);
		kt_expect(k.sock, &r);
		tap_int(r.h.op, API_FAILED, "row %zu is refused", i);
		tap_ok(strstr(r.failed.error.message, rows[i].word), "says: %s", r.failed.error.message);
		tap_int(r.failed.error.code, rows[i].code, "with its code");
		reply_close(&r);
	}
}

static void test_present(void)
{
	char text[64] = "";

	kt_present_send(k.sock, 801, KEY, "dir/plain", false);
	kt_expect(k.sock, &r);
	tap_int(r.h.op, API_PRESENT_DONE, "a file is handed out");
	tap_int(r.fd_count, 1, "as a descriptor");
	tap_int(r.present.size, 2, "with its size");
	tap_int(fd_read_full(r.fds[0], text, sizeof(text) - 1), 2, "which can be read");
	tap_ok(write(r.fds[0], "x", 1) < 0, "and not written");
	reply_close(&r);
	kt_present_send(k.sock, 802, KEY, "private", false);
	kt_expect(k.sock, &r);
	tap_int(r.h.op, API_PRESENT_DONE, "modes inside do not matter to its owner");
	reply_close(&r);
}

static void copy_once(const struct kt *t, const char *want_name)
{
	char want[PATH_MAX + 64], text[16] = "";
	struct stat st;
	int fd;

	kt_present_send(k.sock, 803, KEY, "dir/plain", true);
	kt_expect(k.sock, &r);
	if (!tap_int(r.h.op, API_PRESENT_DONE, "a file is copied"))
		tap_diag("%s", r.failed.error.message);
	(void)snprintf(want, sizeof(want), "%s/%s/%s", t->settings.present_dir, KEY, want_name);
	tap_str(r.present.path, want, "under a new name");
	fd = open(want, O_RDONLY | O_CLOEXEC);
	tap_ok(fd >= 0 && fd_read_full(fd, text, sizeof(text) - 1) == 2 && strcmp(text, "x\n") == 0,
	       "with its content");
	tap_ok(fstat(fd, &st) == 0 && st.st_uid == geteuid(), "owned by the user");
	close_fd(&fd);
	reply_close(&r);
}

static void test_copy(const struct kt *t)
{
	copy_once(t, "plain");
	copy_once(t, "plain (1)");
	copy_once(t, "plain (2)");
	kt_exec(k.sock, KEY, "truncate -s 3G huge.tar; mv dir/plain 'a.tar'; cp /bin/true b.tar 2>/dev/null; true",
		plain, &r);
	kt_present_send(k.sock, 804, KEY, "huge.tar", true);
	kt_expect(k.sock, &r);
	tap_ok(strstr(r.failed.error.message, "larger than"), "a copy has a limit: %s",
	       r.failed.error.message);
	kt_key_send(k.sock, API_STOP, 805, KEY, false);
	kt_expect(k.sock, &r);
	kt_present_send(k.sock, 806, KEY, "a.tar", false);
	kt_expect(k.sock, &r);
	tap_int(r.h.op, API_PRESENT_DONE, "the workspace of a stopped sandbox is served, too");
	reply_close(&r);
	kt_present_send(k.sock, 807, "never-0a1b2c", "x", false);
	kt_expect(k.sock, &r);
	tap_int(r.failed.error.code, ERR_NOT_FOUND, "an unknown label is not");
}

static void test_full_disk(const struct kt *t)
{
	struct settings s = t->settings;
	struct keeper_proc full;

	/* A limit on file size is what a full disk looks like to the one who writes. */
	struct rlimit rl = { .rlim_cur = 100000, .rlim_max = RLIM_INFINITY }, before;

	(void)getrlimit(RLIMIT_FSIZE, &before);
	rl.rlim_max = before.rlim_max;
	(void)setrlimit(RLIMIT_FSIZE, &rl);
	keeper_start_proc(t, &s, KEEPER_ONCE, &full);
	(void)setrlimit(RLIMIT_FSIZE, &before);
	kt_exec(full.sock, "full-0a1b2c", "seq 1 40000; echo end", plain, &r);
	tap_int(r.done.exit_code, 0, "log cannot grow: the command does not notice");
	tap_ok(r.done.flags & API_OUTPUT_CAPPED, "the answer says so");
	tap_ok(r.done.log_bytes > 0 && r.done.log_bytes <= 100000, "the log has what fitted");
	tap_int(r.fd_count, 2, "and the tail is kept");
	reply_close(&r);
	tap_int(keeper_end_proc(&full, NULL), 0, "the keeper ends");
}

int main(int argc, char **argv)
{
	struct kt t;

	(void)argc;
	kt_open(&t, argv);
	keeper_start_proc(&t, &t.settings, KEEPER_ONCE, &k);
	test_cap();
	test_logs_kept();
	test_yes();
	test_present_refused();
	test_present_special(&t);
	test_present();
	test_copy(&t);
	test_full_disk(&t);
	tap_int(keeper_end_proc(&k, NULL), 0, "the keeper ends");
	kt_close(&t);
	return tap_done();
}
