/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_store.c - the state directory: refusals, locks between processes, ownership
 *
 * Giving files to sandbox ids needs root; the rest runs as anybody.
 */
#include "runtime/store.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "runtime/arch.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "tests/unit/tap.h"

#define KEY   "amber-otter-cc3a29"
#define OTHER "red-fox-000000"
#define ODD   "odd-lock-000000"

static char tmp_path[] = "/tmp/mcpt-store-XXXXXX";
static char home[64];
static struct store store;
static const struct idrange ids = { .base = 0x60000000, .storage_ns_fd = -1, .lower_ns_fd = -1 };
static struct err error;

static bool exists(const char *format, ...)
{
	char path[256], full[400];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(path, sizeof(path), format, ap);
	va_end(ap);
	(void)snprintf(full, sizeof(full), "%s/%s", home, path);
	return access(full, F_OK) == 0;
}

static int count_in(int dir_fd, const char *path)
{
	char command[300], text[32] = "";
	FILE *f;

	(void)snprintf(command, sizeof(command), "ls -A /proc/%d/fd/%d/%s 2>/dev/null | wc -l",
		       (int)getpid(), dir_fd, path);
	f = popen(command, "r");
	if (!f || !fgets(text, sizeof(text), f))
		tap_bail("ls");
	(void)pclose(f);
	return atoi(text);
}

/* ---- the home ---- */

static void test_home(void)
{
	static const struct {
		const char *desc, *set_up, *path;
		enum err_code want;
	} rows[] = {
		{ "made with its parents", "true", "a/b/home", ERR_NONE },
		{ "used again", "true", "a/b/home", ERR_NONE },
		{ "readable by others is made private", "mkdir -m 755 open", "open", ERR_NONE },
		{ "a symbolic link", "ln -s a/b/home link", "link", ERR_CONFIG },
		{ "a dangling link", "ln -s nowhere dangling", "dangling", ERR_CONFIG },
		{ "a file", "touch file", "file", ERR_CONFIG },
		{ "below a file", "touch file", "file/home", ERR_SYSTEM },
		{ "writable by the group", "mkdir group; chmod 770 group", "group", ERR_CONFIG },
		{ "writable by others", "mkdir -m 777 all; chmod 1777 all", "all", ERR_CONFIG },
		{ "a link as a part of it", "mkdir part; ln -s /etc part/owners", "part", ERR_SYSTEM },
		{ "a new disk", "mkdir -p -m 755 disk/lost+found", "disk", ERR_NONE },
		{ "other things are in it", "mkdir -m 755 full; touch full/file", "full", ERR_CONFIG },
		{ "other things, hidden", "mkdir -m 755 hidden; touch hidden/.file", "hidden", ERR_CONFIG },
		{ "somebody else's", "mkdir -m 700 theirs; chown 12345 theirs", "theirs", ERR_CONFIG },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char command[256], path[128];
		struct store s;
		struct stat st;

		if (strstr(rows[i].set_up, "chown") && geteuid() != 0) {
			tap_skip(rows[i].desc, "needs root");
			continue;
		}
		(void)snprintf(command, sizeof(command), "cd %s && %s", tmp_path, rows[i].set_up);
		if (system(command) != 0)
			tap_bail("%s", command);
		(void)snprintf(path, sizeof(path), "%s/%s", tmp_path, rows[i].path);
		error = (struct err){ 0 };
		(void)store_open(&s, path, &error);
		tap_int(error.code, rows[i].want, "home: %s", rows[i].desc);
		if (rows[i].want == ERR_NONE)
			tap_ok(stat(path, &st) == 0 && (st.st_mode & 07777) == 0700,
			       "home: %s: 0700", rows[i].desc);
		if (rows[i].want == ERR_CONFIG)
			tap_ok(error.remedy[0], "home: %s: with a remedy", rows[i].desc);
		store_done(&s);
	}
	tap_int(store_open(&store, "relative", &error), -1, "home: a relative path is refused");
}

/* The directory of other things keeps the mode it had, and gets nothing of ours. */
static void test_home_untouched(void)
{
	static const char *const others[] = { "full", "hidden" };

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		char path[128], inside[160];
		struct stat st;

		(void)snprintf(path, sizeof(path), "%s/%s", tmp_path, others[i]);
		(void)snprintf(inside, sizeof(inside), "%s/images", path);
		tap_ok(stat(path, &st) == 0 && (st.st_mode & 07777) == 0755, "home: %s: its mode stays", others[i]);
		tap_int(access(inside, F_OK), -1, "home: %s: nothing is made in it", others[i]);
	}
}

/* ---- locks ---- */

struct child {
	pid_t pid;
	int in, out; /* our ends */
};

/* A second process that opens the label when told and keeps it until told. */
static struct child child_start(bool create)
{
	int to[2], from[2];
	struct child c;

	if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
		tap_bail("pipe");
	c.pid = fork();
	if (c.pid == 0) {
		struct store_label l;
		char go;

		close_fd(&to[1]);
		while (read(to[0], &go, 1) == 1 && go == 'o') {
			pid_t holder = -7;
			int r = store_label_open(&store, &ids, OWNER_DEFAULT, KEY, create, &l,
						 &holder, &error);

			if (r < 0)
				r = error.code == ERR_BUSY ? (int)holder : -(int)error.code;
			(void)!write(from[1], &r, sizeof(r));
			if (r == 0 && read(to[0], &go, 1) == 1 && go == 'c')
				store_label_done(&l);
		}
		_exit(0);
	}
	close_fd(&to[0]);
	close_fd(&from[1]);
	c.in = to[1];
	c.out = from[0];
	return c;
}

static int child_open(const struct child *c)
{
	int r;

	if (write(c->in, "o", 1) != 1 || fd_read_full(c->out, &r, sizeof(r)) != sizeof(r))
		tap_bail("child");
	return r;
}

static void child_end(struct child *c, int signal_number)
{
	if (signal_number)
		(void)kill(c->pid, signal_number);
	close_fd(&c->in);
	close_fd(&c->out);
	(void)waitpid(c->pid, NULL, 0);
}

static void test_locks(void)
{
	struct child c = child_start(true);
	struct store_label l;
	pid_t holder = -7;

	tap_int(child_open(&c), 0, "lock: another process takes the label");
	tap_int(store_label_open(&store, &ids, OWNER_DEFAULT, KEY, true, &l, &holder, &error), -1,
		"lock: then we cannot");
	tap_int(error.code, ERR_BUSY, "lock: it is busy");
	tap_int(holder, c.pid, "lock: and we learn who holds it");
	tap_ok(strstr(error.message, "label in use by process "), "lock: so does the reader");
	tap_int(store_label_holder(&store, OWNER_DEFAULT, KEY), c.pid, "lock: holder says so too");
	tap_int(store_label_holder(&store, OWNER_DEFAULT, OTHER), -1, "lock: no such label");
	tap_int(store_label_holder(&store, OWNER_DEFAULT, "../../etc"), -1, "lock: no such key");
	child_end(&c, SIGKILL);
	tap_int(store_label_holder(&store, OWNER_DEFAULT, KEY), 0, "lock: a killed holder holds nothing");
	tap_int(store_label_open(&store, &ids, OWNER_DEFAULT, KEY, true, &l, &holder, &error), 0,
		"lock: so we can have it");
	c = child_start(false);
	tap_int(child_open(&c), getpid(), "lock: the other process is told our pid");
	store_label_done(&l);
	tap_int(child_open(&c), 0, "lock: after our release it gets it");
	child_end(&c, 0);
}

/* What is no file cannot be a lock, and opening it must not wait for anybody. */
static void test_lock_types(void)
{
	static const char *const makes[] = { "mkfifo lock", "mkdir lock", "ln -s /dev/zero lock" };

	char command[256];

	for (size_t i = 0; i < ARRAY_SIZE(makes); i++) {
		struct store_label l;

		(void)snprintf(command, sizeof(command),
			       "cd %s/owners/" OWNER_DEFAULT " && rm -rf " ODD " && mkdir " ODD " && cd " ODD " && %s",
			       home, makes[i]);
		if (system(command) != 0)
			tap_bail("%s", command);
		error = (struct err){ 0 };
		tap_int(store_label_open(&store, &ids, OWNER_DEFAULT, ODD, false, &l, NULL, &error), -1,
			"lock: refused: %s", makes[i]);
		tap_int(store_label_holder(&store, OWNER_DEFAULT, ODD), 0, "lock: held by nobody: %s", makes[i]);
	}
	(void)snprintf(command, sizeof(command), "rm -rf %s/owners/" OWNER_DEFAULT "/" ODD, home);
	if (system(command) != 0)
		tap_bail("%s", command);
}

/* A process that does nothing but look must never make a keeper believe that a label is busy. */
static void test_lookers(void)
{
	int busy = 0, wrong = 0;
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			(void)store_label_holder(&store, OWNER_DEFAULT, KEY);
	for (int i = 0; i < 500; i++) {
		struct store_label l;
		pid_t holder;

		if (store_label_open(&store, &ids, OWNER_DEFAULT, KEY, true, &l, &holder, &error) < 0) {
			busy++;
			continue;
		}
		holder = store_label_holder(&store, OWNER_DEFAULT, KEY);
		wrong += holder != getpid();
		store_label_done(&l);
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	tap_int(busy, 0, "lookers: 500 opens against a process that only looks all succeed");
	tap_int(wrong, 0, "lookers: and the holder is us each time");
}

/* Two processes create, lock and remove the same label as fast as they can: a label one of them holds
 * must be whole. */
static int churn(int wanted)
{
	time_t end = time(NULL) + 30;
	int broken = 0;

	while (wanted > 0 && time(NULL) < end) {
		struct store_label l;
		struct stat st;

		if (store_label_open(&store, &ids, OWNER_DEFAULT, OTHER, true, &l, NULL, &error) < 0) {
			broken += error.code != ERR_BUSY;
			continue;
		}
		wanted--;
		broken += fstatat(store.owners_fd, OWNER_DEFAULT "/" OTHER "/workspace", &st, 0) < 0;
		broken += store_label_reset(&store, &l, true, &error) < 0;
		store_label_done(&l);
	}
	return broken + wanted;
}

static void test_removal_race(void)
{
	enum { ROUNDS = 50 };
	int status, broken;
	pid_t pid = fork();

	if (pid == 0)
		_exit(churn(ROUNDS) > 0);
	broken = churn(ROUNDS);
	(void)waitpid(pid, &status, 0);
	tap_int(broken, 0, "race: in 50 rounds a held label is never one that was removed");
	tap_int(status, 0, "race: nor in the other process's");
}

/* ---- contents ---- */

static bool owned(const char *path, uint32_t uid, mode_t mode)
{
	struct stat st;

	return fstatat(store.owners_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == uid &&
	       st.st_gid == uid && (st.st_mode & 07777) == mode;
}

static void test_contents(void)
{
	const uint32_t root = ids.base + ID_SANDBOX_ROOT;
	struct store_label l;

	if (store_label_open(&store, &ids, OWNER_DEFAULT, KEY, true, &l, NULL, &error) < 0)
		tap_bail("%s", error.message);
	tap_ok(owned(OWNER_DEFAULT, ids.base, 0700), "contents: the owner records its block of ids");
	tap_ok(owned(OWNER_DEFAULT "/" KEY, root, 0700), "contents: the label's directory");
	tap_ok(owned(OWNER_DEFAULT "/" KEY "/lock", 0, 0600), "contents: its lock is ours");
	tap_ok(owned(OWNER_DEFAULT "/" KEY "/workspace", root, 0755), "contents: workspace");
	tap_ok(owned(OWNER_DEFAULT "/" KEY "/layer", root, 0700), "contents: layer");
	tap_ok(owned(OWNER_DEFAULT "/" KEY "/layer/upper", root, 0755), "contents: upper");
	tap_ok(owned(OWNER_DEFAULT "/" KEY "/layer/work", root, 0700), "contents: work");
	tap_ok(owned(OWNER_DEFAULT "/" KEY "/output", root, 0755), "contents: output");
	tap_ok(fcntl(l.workspace_fd, F_GETFD) & FD_CLOEXEC, "contents: close-on-exec");
	/* as after a crash between making a directory and handing it over */
	if (fchown(l.workspace_fd, 0, 0) < 0 || fchmod(l.workspace_fd, 0700) < 0)
		tap_bail("fchown");
	/* and as after a chown from inside */
	if (fchown(l.output_fd, root + 1000, root + 1000) < 0)
		tap_bail("fchown");
	store_label_done(&l);
	tap_int(l.lock_fd, -1, "contents: done closes");
	if (store_label_open(&store, &ids, OWNER_DEFAULT, KEY, true, &l, NULL, &error) < 0)
		tap_bail("%s", error.message);
	tap_ok(owned(OWNER_DEFAULT "/" KEY "/workspace", root, 0755), "contents: repaired after a crash");
	tap_ok(owned(OWNER_DEFAULT "/" KEY "/output", root + 1000, 0755),
	       "contents: what was given away inside stays");
	store_label_done(&l);
}

static void test_hostile_label(void)
{
	const struct idrange moved = { .base = 0x61000000, .storage_ns_fd = -1, .lower_ns_fd = -1 };
	struct store_label l;
	static const char *const bad[] = { "..", "", "a", "a/b-000000", "../x-000000", "A-000000" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		(void)store_label_open(&store, &ids, OWNER_DEFAULT, bad[i], true, &l, NULL, &error);
		tap_int(error.code, ERR_DENIED, "names: key \"%s\" is refused", bad[i]);
	}
	(void)store_label_open(&store, &ids, "../../..", KEY, true, &l, NULL, &error);
	tap_int(error.code, ERR_DENIED, "names: an owner that is a path is refused");
	(void)store_label_open(&store, &ids, OWNER_DEFAULT, "none-000000", false, &l, NULL, &error);
	tap_int(error.code, ERR_NOT_FOUND, "names: an unknown label is not made by looking");
	tap_ok(!exists("owners/00000000/none-000000"), "names: indeed");
	(void)store_label_open(&store, &ids, "0badcafe", KEY, false, &l, NULL, &error);
	tap_int(error.code, ERR_NOT_FOUND, "names: nor is an unknown owner");
	tap_ok(!exists("owners/0badcafe"), "names: indeed");
	(void)store_label_open(&store, &moved, OWNER_DEFAULT, KEY, true, &l, NULL, &error);
	tap_int(error.code, ERR_CONFIG, "names: another block of ids is refused");
	tap_ok(strstr(error.remedy, "SANDBOX_SUBID=1610612736:65536"), "names: with the way back");
	if (symlinkat("/etc", store.owners_fd, OWNER_DEFAULT "/link-000000") < 0)
		tap_bail("symlink");
	tap_int(store_label_open(&store, &ids, OWNER_DEFAULT, "link-000000", true, &l, NULL, &error),
		-1, "names: a link in the place of a label is not followed");
	tap_int(access("/etc/lock", F_OK), -1, "names: nothing was made behind it");
}

static void test_reset(void)
{
	struct store_label l;

	if (store_label_open(&store, &ids, OWNER_DEFAULT, KEY, true, &l, NULL, &error) < 0)
		tap_bail("%s", error.message);
	tap_int(store_label_reset(&store, &l, false, &error), 0, "reset: the layer");
	tap_int(l.layer_fd, -1, "reset: is no longer open");
	tap_ok(!exists("owners/00000000/%s/layer", KEY), "reset: is gone");
	tap_ok(exists("owners/00000000/%s/workspace", KEY), "reset: the workspace is not");
	tap_int(store_label_reset(&store, &l, false, &error), 0, "reset: twice is as good as once");
	store_label_done(&l);
	if (store_label_open(&store, &ids, OWNER_DEFAULT, KEY, false, &l, NULL, &error) < 0)
		tap_bail("%s", error.message);
	tap_int(l.layer_fd, -1, "reset: a label without a layer opens");
	tap_int(store_label_reset(&store, &l, true, &error), 0, "remove: everything");
	store_label_done(&l);
	tap_ok(!exists("owners/00000000/%s", KEY), "remove: the label is gone");
	tap_int(store_label_holder(&store, OWNER_DEFAULT, KEY), -1, "remove: nobody holds it");
}

static void test_trash_owner(void)
{
	struct stat st;

	tap_int(fstatat(store.trash_fd, OWNER_DEFAULT, &st, 0), 0, "trash: a directory per owner");
	tap_int(st.st_uid, ids.base + ID_SANDBOX_ROOT, "trash: of the sandbox's root");
	tap_ok(count_in(store.trash_fd, OWNER_DEFAULT) > 2, "trash: holds what was thrown away");
}

/* ---- images and room ---- */

static void put_arch(const char *text)
{
	_cleanup_fd_ int fd = fd_open_beneath(store.images_fd, "default/" STORE_IMAGE_ARCH,
					      O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || fd_write_full(fd, text, strlen(text)) < 0)
		tap_bail("write the architecture");
}

static void test_image_arch(void)
{
	const char *other = strcmp(arch_own(), "amd64") == 0 ? "arm64" : "amd64";
	_cleanup_fd_ int fd = -1, any = -1, bad = -1;

	put_arch(arch_own());
	fd = store_image_open(&store, "default", &error);
	tap_ok(fd >= 0, "image: of our architecture");
	put_arch(other);
	tap_int(store_image_open(&store, "default", &error), -1, "image: of another one is refused");
	tap_ok(error.code == ERR_HOST && strstr(error.message, other) && strstr(error.message, arch_own()) &&
		       error.remedy[0],
	       "image: by a sentence that names both");
	any = store_image_open_any(&store, "default", &error);
	tap_ok(any >= 0, "image: and can be exported");
	put_arch("longer than any architecture");
	bad = store_image_open(&store, "default", &error);
	tap_ok(bad < 0, "image: what is no architecture is none of ours");
	(void)unlinkat(store.images_fd, "default/" STORE_IMAGE_ARCH, 0);
}

static void test_image(void)
{
	_cleanup_fd_ int fd = -1, again = -1, other = -1;

	(void)store_image_open(&store, "default", &error);
	tap_int(error.code, ERR_NOT_FOUND, "image: a missing one");
	tap_ok(strstr(error.remedy, "image build"), "image: and how to get it");
	(void)store_image_open(&store, "../owners", &error);
	tap_int(error.code, ERR_CONFIG, "image: a path is no name");
	if (mkdirat(store.images_fd, "default", 0755) < 0 ||
	    mkdirat(store.images_fd, "default/rootfs", 0755) < 0)
		tap_bail("mkdir");
	fd = store_image_open(&store, "default", &error);
	again = store_image_open(&store, "default", &error);
	tap_ok(fd >= 0 && again >= 0, "image: can be open twice");
	other = fd_open_beneath(store.images_fd, "default/rootfs", O_RDONLY | O_DIRECTORY, 0);
	tap_int(flock(other, LOCK_EX | LOCK_NB), -1, "image: cannot be changed meanwhile");
	close_fd(&fd);
	close_fd(&again);
	tap_int(flock(other, LOCK_EX | LOCK_NB), 0, "image: can be afterwards");
	(void)store_image_open(&store, "default", &error);
	tap_int(error.code, ERR_BUSY, "image: and cannot be used while it is");
	close_fd(&other);
	test_image_arch();
}

static void test_min_free(void)
{
	tap_int(store_min_free(&store, 0, &error), 0, "room: nothing asked for");
	tap_int(store_min_free(&store, UINT64_MAX, &error), -1, "room: everything asked for");
	tap_int(error.code, ERR_NOSPACE, "room: its code");
	tap_str(error.message, "host disk almost full, refusing to start a sandbox", "room: its text");
	tap_ok(strstr(error.remedy, "SANDBOX_MIN_FREE asks for 16 EiB"), "room: and the numbers");
}

int main(void)
{
	char command[64];

	if (!mkdtemp(tmp_path))
		tap_bail("mkdtemp");
	test_home();
	test_home_untouched();
	(void)snprintf(home, sizeof(home), "%s/home", tmp_path);
	if (store_open(&store, home, &error) < 0)
		tap_bail("%s", error.message);
	test_image();
	test_min_free();
	if (geteuid() == 0) {
		test_locks();
		test_lock_types();
		test_lookers();
		test_contents();
		test_hostile_label();
		test_reset();
		test_removal_race();
		test_trash_owner();
	} else {
		tap_skip("labels", "giving files to sandbox ids needs root");
	}
	store_done(&store);
	(void)snprintf(command, sizeof(command), "rm -rf %s", tmp_path);
	(void)!system(command);
	return tap_done();
}
