/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sys/test_keeper_owners.c - several owners: what each has, and what none sees of another */
#include "tests/sys/keeper.h"

#include "runtime/base/str.h"
#include "runtime/tokens.h"

#define KEY "same-0a1b2c"

static struct reply r;
static struct kt t;
static struct keeper_proc k;
static const struct exec_options plain;
static char alice[OWNER_ID_LEN + 1], bob[OWNER_ID_LEN + 1];

static void run_as(const char *owner, const char *command)
{
	kt_owner = owner;
	kt_exec(k.sock, KEY, command, plain, &r);
}

static uid_t uid_of(const char *path)
{
	struct stat st;
	char full[PATH_MAX + 128];

	(void)snprintf(full, sizeof(full), "%s/%s", t.settings.home, path);
	return lstat(full, &st) == 0 ? st.st_uid : (uid_t)-1;
}

static uid_t owner_uid(const char *owner, const char *rest)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "owners/%s%s", owner, rest);
	return uid_of(path);
}

static void await_tokens(uint32_t count, const char *desc)
{
	kt_expect(k.sock, &r);
	tap_int(r.h.op, API_TOKENS, "%s: the front is told", desc);
	tap_int(r.tokens.count, count, "%s: how many there are", desc);
}

/* ask_control() - like the command line: a connection of its own. */
static void ask_control(uint16_t op, void *msg, uint32_t size)
{
	struct store store;
	struct err e = { 0 };
	int sock;

	if (store_open(&store, t.settings.home, &e) < 0)
		tap_bail("%s", e.message);
	sock = keeper_connect(store.run_fd, k.pid, &e);
	if (sock < 0)
		tap_bail("%s", e.message);
	kt_expect(sock, &r); /* HELLO */
	if (kt_send(sock, msg, op, size, 1) < 0)
		tap_bail("send");
	kt_expect(sock, &r);
	close_fd(&sock);
	store_done(&store);
}

static void change_tokens(int (*change)(const struct store *s), const char *desc)
{
	struct api_header h;
	struct store store;
	struct err e = { 0 };

	if (store_open(&store, t.settings.home, &e) < 0 || change(&store) < 0)
		tap_bail("%s", e.message);
	store_done(&store);
	ask_control(API_TOKENS_READ, &h, sizeof(h));
	tap_int(r.h.op, API_DONE, "%s: in force", desc);
}

static int add_alice(const struct store *s)
{
	char token[TOKEN_TEXT_MAX];

	return tokens_add(s, "alice", token, NULL);
}

static int add_bob(const struct store *s)
{
	char token[TOKEN_TEXT_MAX];

	return tokens_add(s, "bob", token, NULL);
}

static int remove_bob(const struct store *s)
{
	return tokens_remove(s, "bob", NULL);
}

static int damage(const struct store *s)
{
	int fd = openat(s->home_fd, "tokens", O_WRONLY | O_APPEND | O_CLOEXEC);
	int r_ = fd_write_full(fd, "x\n", 2);

	close_fd(&fd);
	return r_;
}

static void test_apart(void)
{
	run_as(OWNER_DEFAULT, "echo one > mine; id -u; ls -ln /bin/bash");
	tap_int(r.h.op, API_EXEC_DONE, "the default owner runs a command");
	tap_ok(strstr(r.text, " 0 0 "), "and sees the image as root's");
	reply_close(&r);
	run_as(alice, "id -u; ls; ls -ln /bin/bash; touch /etc/new && ls -ln /etc/new");
	tap_int(r.h.op, API_EXEC_DONE, "another owner runs one under the same key");
	tap_int(r.done.exit_code, 0, "which works");
	tap_ok(r.done.flags & API_CREATED, "in a sandbox of its own");
	tap_ok(!strstr(r.text, "mine"), "with no file of the first");
	tap_ok(strstr(r.text, " 0 0 ") && !strstr(r.text, "65534"), "and root owns what is there");
	reply_close(&r);
	kt_owner = alice;
	kt_key_send(k.sock, API_INFO, 77, KEY, false);
	kt_expect(k.sock, &r);
	tap_int(r.info.done.count, 1, "each is told of its own sandboxes only");
	kt_present_send(k.sock, 78, KEY, "mine", false);
	kt_expect(k.sock, &r);
	tap_int(r.h.op, API_FAILED, "and is handed files of its own workspace only");
	reply_close(&r);
}

static void test_ids(void)
{
	uid_t first = t.ids.base, a = owner_uid(alice, "");

	if (t.ids.in_storage) {
		tap_int(a, 0, "an ordinary user has one range for all");
		return;
	}
	tap_int(owner_uid(OWNER_DEFAULT, ""), first, "the default owner has the first block");
	tap_ok(a != first && (a - first) % ID_BLOCK == 0, "the other a block of its own: %u", a);
	tap_int(owner_uid(alice, "/" KEY "/workspace"), a + ID_SANDBOX_ROOT, "its workspace is of that block");
	tap_int(owner_uid(alice, "/" KEY "/layer/upper/etc/new"), a + ID_SANDBOX_ROOT,
		"and so is what it wrote over the image");
	run_as(alice, "while read -r a b c; do echo $a $b; done < /proc/self/uid_map");
	tap_ok(strstr(r.text, "0 16"), "the map");
	reply_close(&r);
}

/* ---- the places are shared ---- */

static void run_in(const char *owner, const char *key, const char *command)
{
	kt_owner = owner;
	kt_exec(k.sock, key, command, plain, &r);
	reply_close(&r);
}

static bool is_new(const char *owner, const char *key)
{
	run_in(owner, key, "true");
	return r.h.op == API_EXEC_DONE && r.done.flags & API_CREATED;
}

static unsigned int count_own(const char *owner, uint32_t *ret_others)
{
	kt_owner = owner;
	kt_key_send(k.sock, API_INFO, 79, KEY, false);
	kt_expect(k.sock, &r);
	*ret_others = r.info.done.others;
	return r.info.done.count;
}

/* Four places. What one owner opens costs it its own idle ones first, then somebody's, and never one in
 * which a command runs. */
static void test_shared(void)
{
	uint32_t others;

	run_in(alice, KEY, "true"); /* used before all that follow: the oldest */
	run_in(OWNER_DEFAULT, KEY, "true");
	run_in(OWNER_DEFAULT, "one-0a1b2c", "true");
	run_in(OWNER_DEFAULT, "two-0a1b2c", "true");
	tap_ok(count_own(alice, &others) == 1 && others == 3, "four places: one of one owner, three of another's");
	tap_ok(is_new(OWNER_DEFAULT, "three-0a1b2c"), "who wants a fourth gets it");
	tap_ok(!is_new(alice, KEY), "not in the place of somebody else's, older though it is");
	tap_ok(is_new(OWNER_DEFAULT, KEY), "but of the oldest of its own");

	for (uint64_t id = 81; id <= 83; id++) {
		static const char *const keys[] = { "two-0a1b2c", "three-0a1b2c", KEY };

		kt_exec_send(k.sock, id, keys[id - 81], "sleep 3", 7, plain);
	}
	kt_exec_send(k.sock, 84, "five-0a1b2c", "true", 4, plain);
	kt_expect(k.sock, &r);
	tap_ok(r.h.id == 84 && r.h.op == API_EXEC_DONE, "when all its own are busy, an idle one of somebody else's goes");
	reply_close(&r);
	kt_owner = alice;
	kt_exec_send(k.sock, 85, KEY, "sleep 3", 7, plain);
	kt_exec_send(k.sock, 86, "other-0a1b2c", "true", 4, plain);
	kt_expect(k.sock, &r);
	tap_ok(r.h.id == 86 && r.h.op == API_FAILED && r.failed.error.code == ERR_BUSY,
	       "when all are busy the next one is refused, whosever they are");
	for (int i = 0; i < 4; i++) {
		kt_expect(k.sock, &r);
		tap_ok(r.h.op == API_EXEC_DONE && r.done.exit_code == 0, "what was busy runs to its end (%d)", (int)r.h.id);
		reply_close(&r);
	}
}

/* An owner that is gone from the file: answered, not dropped; its files stay. */
static void test_removed(void)
{
	change_tokens(add_bob, "a second token");
	await_tokens(3, "a second token");
	run_as(bob, "echo b > b");
	tap_int(r.h.op, API_EXEC_DONE, "and its owner may come in at once");
	if (!t.ids.in_storage)
		tap_ok(owner_uid(bob, "") != owner_uid(alice, "") && owner_uid(bob, "") != t.ids.base,
		       "with a third block");
	change_tokens(remove_bob, "a token removed");
	await_tokens(2, "a token removed");
	run_as(bob, "cat b");
	tap_int(r.h.op, API_FAILED, "its owner is refused");
	tap_int(r.failed.error.code, ERR_DENIED, "with a reason: %s", r.failed.error.message);
	run_as(alice, "echo still");
	tap_str(r.text, "still\n", "and the front is not dropped for having asked");
	reply_close(&r);
	tap_ok(owner_uid(bob, "/" KEY "/workspace/b") != (uid_t)-1, "files stay");
}

static void test_damaged(void)
{
	struct api_header h;
	struct store store;
	struct err e = { 0 };

	if (store_open(&store, t.settings.home, &e) < 0 || damage(&store) < 0)
		tap_bail("damage");
	ask_control(API_TOKENS_READ, &h, sizeof(h));
	tap_int(r.h.op, API_FAILED, "a damaged file is refused: %s", r.failed.error.message);
	run_as(alice, "echo still");
	tap_str(r.text, "still\n", "and what was in force stays");
	reply_close(&r);
	(void)unlinkat(store.home_fd, "tokens", 0);
	store_done(&store);
}

/* The command line serves everybody, whoever has a token; trash of every owner is emptied. */
static void test_control(void)
{
	struct api_key_request msg = { .workspace = 1 };
	char path[PATH_MAX + 32];
	struct stat st;

	(void)str_copy(msg.owner, sizeof(msg.owner), bob);
	(void)str_copy(msg.key, sizeof(msg.key), KEY);
	ask_control(API_REMOVE, &msg, sizeof(msg));
	tap_int(r.h.op, API_DONE, "the command line removes what a former owner had");
	tap_ok(owner_uid(bob, "/" KEY) == (uid_t)-1, "from its place");
	(void)snprintf(path, sizeof(path), "%s/trash/%s", t.settings.home, bob);
	for (int i = 0; i < 200 && (stat(path, &st) < 0 || st.st_nlink > 2); i++)
		kt_sleep_ms(20);
	tap_int(st.st_nlink, 2, "and a worker with that owner's ids empties the trash");
}

static bool all_in_use(const char *owner, void *ctx)
{
	(void)owner;
	(void)ctx;
	return true;
}

static bool one_in_use(const char *owner, void *ctx)
{
	return strcmp(owner, ctx) == 0;
}

/* A service lives longer than most of its owners: places are for those who have sandboxes. */
static void test_many(void)
{
	static struct owners o;
	const struct idrange *kept = NULL;
	char first[] = "00000100", owner[16];
	struct store store;
	struct err e = { 0 };
	int served = 0;
	uint32_t base;

	if (t.ids.in_storage)
		return;
	if (store_open(&store, t.settings.home, &e) < 0)
		tap_bail("%s", e.message);
	owners_init(&o, &store, t.settings.subid, &t.ids);
	kept = owners_ids(&o, first, true, &e);
	base = kept ? kept->base : 0;
	o.in_use = one_in_use;
	o.ctx = first;
	for (int i = 1; i < 2 * OWNERS_MAX; i++) {
		(void)snprintf(owner, sizeof(owner), "%08x", 0x100 + i);
		served += owners_ids(&o, owner, true, &e) != NULL;
	}
	tap_int(served, 2 * OWNERS_MAX - 1, "as many owners as come, one after the other: %s", e.message);
	tap_ok(owners_ids(&o, first, false, &e) == kept && kept->base == base, "who has a sandbox keeps its place");
	o.in_use = all_in_use;
	tap_ok(!owners_ids(&o, "00000bad", true, &e) && e.code == ERR_LIMIT, "%d at once and no more: %s", OWNERS_MAX,
	       e.message);
	owners_done(&o);
	store_done(&store);
}

int main(int argc, char **argv)
{
	static struct token_table fixed;
	struct err e = { 0 };

	(void)argc;
	kt_open(&t, argv);
	if (tokens_put_default(&fixed, "secret", &e) < 0 || owner_id_of("alice", alice, &e) < 0 ||
	    owner_id_of("bob", bob, &e) < 0)
		tap_bail("%s", e.message);
	t.fixed_tokens = &fixed;
	t.settings.max_sandboxes = 4;
	keeper_start_proc(&t, &t.settings, KEEPER_STDIO, &k);
	await_tokens(1, "MCP_TOKEN alone");
	tap_str(r.tokens.rows[0].owner, OWNER_DEFAULT, "is the default owner's");
	run_as(alice, "true");
	tap_int(r.h.op, API_FAILED, "nobody else may come in yet");
	change_tokens(add_alice, "a token");
	await_tokens(2, "a token");
	test_apart();
	test_ids();
	test_shared();
	test_removed();
	test_damaged();
	test_control();
	tap_int(keeper_end_proc(&k, NULL), 0, "the end");
	test_many();
	kt_close(&t);
	return tap_done();
}
