/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/store.c - the state directory: images, workspaces, layers, locks
 *
 * Runs in the keeper (host root, or root of the storage namespace) and in command-line verbs. Names
 * are checked here again although callers did. What lies below workspace/ and layer/ is written by
 * sandboxes and never looked into; directories above are ours alone and never mounted anywhere.
 *
 * Ownership, beyond 0700 on the home: owners/<id> belongs to the first id of the owner's block (the
 * record of which block that is); everything below, and trash/<id>, belongs to the sandbox's root, so
 * that a worker with rights over the sandbox's ids, and over nothing else, can remove it.
 */
#include "runtime/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/lock.h"
#include "runtime/base/str.h"
#include "runtime/label.h"

enum { DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NONBLOCK };

bool store_is_at(int dir_fd, const char *path, int fd)
{
	_cleanup_fd_ int again = fd_open_beneath(dir_fd, path, O_PATH, 0);
	struct stat ours, there;

	return again >= 0 && fstat(again, &there) == 0 && fstat(fd, &ours) == 0 &&
	       ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

/* ---- the home ---- */

/* make_parents() - every directory above path; the user's data directory may not exist yet. */
static int make_parents(const char *path, struct err *e)
{
	char prefix[PATH_MAX];

	if (str_copy(prefix, sizeof(prefix), path) < 0)
		return err_set(e, ERR_CONFIG, "SANDBOX_HOME is too long");
	for (char *p = prefix + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(prefix, 0700) < 0 && errno != EEXIST)
			return err_sys(e, "create %s", prefix);
		*p = '/';
	}
	return 0;
}

static int refuse_home(struct err *e, const char *home, const char *what)
{
	(void)err_set(e, ERR_CONFIG, "SANDBOX_HOME %s %s", home, what);
	return err_remedy(e, "chown it to the user that runs mcp-sandbox and chmod it 0700, or name "
			     "another directory");
}

/* holds_other_things() - whether a directory was something else before it was named as SANDBOX_HOME:
 * its mode is then not ours to change. /proc and / have become unusable for everybody else like that. */
static bool holds_other_things(int fd)
{
	static const char *const known[] = { "images", "owners", "trash" };
	int list_fd;
	DIR *dir;
	bool found = false;

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (faccessat(fd, known[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			return false;
	list_fd = openat(fd, ".", DIR_FLAGS | O_CLOEXEC);
	dir = list_fd >= 0 ? fdopendir(list_fd) : NULL;
	if (!dir) {
		close_fd(&list_fd);
		return true;
	}
	for (struct dirent *d = readdir(dir); d && !found; d = readdir(dir))
		found = strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0 &&
			strcmp(d->d_name, "lost+found") != 0;
	(void)closedir(dir);
	return found;
}

static int check_home(int fd, const char *home, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, "inspect %s", home);
	if (st.st_uid != geteuid())
		return refuse_home(e, home, "belongs to another user");
	if (st.st_mode & 022)
		return refuse_home(e, home, "is writable by others");
	if (holds_other_things(fd)) {
		(void)err_set(e, ERR_CONFIG, "SANDBOX_HOME %s holds files that are not mcp-sandbox's", home);
		return err_remedy(e, "name a directory that is empty or does not exist");
	}
	if ((st.st_mode & 077) && fchmod(fd, 0700) < 0)
		return err_sys(e, "make %s private", home);
	return 0;
}

static int open_home(const char *home, struct err *e)
{
	_cleanup_fd_ int fd = -1;

	if (home[0] != '/')
		return err_set(e, ERR_CONFIG, "SANDBOX_HOME %s is not an absolute path", home);
	if (make_parents(home, e) < 0)
		return -1;
	if (mkdir(home, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "create %s", home);
	fd = open(home, DIR_FLAGS | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
		return refuse_home(e, home, "is not a directory (a symbolic link is refused)");
	if (fd < 0)
		return err_sys(e, "open %s", home);
	if (check_home(fd, home, e) < 0)
		return -1;
	return take_fd(&fd);
}

/* open_subdir() - name below dir_fd, made (0700) when missing. */
static int open_subdir(int dir_fd, const char *name, struct err *e)
{
	int fd;

	if (mkdirat(dir_fd, name, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "create %s", name);
	fd = fd_open_beneath(dir_fd, name, DIR_FLAGS, 0);
	return fd < 0 ? err_sys(e, "open %s", name) : fd;
}

int store_open(struct store *s, const char *home, struct err *e)
{
	*s = (struct store){ .home_fd = -1, .images_fd = -1, .owners_fd = -1, .run_fd = -1,
			     .trash_fd = -1 };
	s->home_fd = open_home(home, e);
	if (s->home_fd < 0)
		return -1;
	if ((s->images_fd = open_subdir(s->home_fd, "images", e)) < 0 ||
	    (s->owners_fd = open_subdir(s->home_fd, "owners", e)) < 0 ||
	    (s->run_fd = open_subdir(s->home_fd, "run", e)) < 0 ||
	    (s->trash_fd = open_subdir(s->home_fd, "trash", e)) < 0) {
		store_done(s);
		return err_wrap(e, "state directory %s", home);
	}
	return 0;
}

void store_done(struct store *s)
{
	close_fd(&s->home_fd);
	close_fd(&s->images_fd);
	close_fd(&s->owners_fd);
	close_fd(&s->run_fd);
	close_fd(&s->trash_fd);
}

/* ---- directories of a label ---- */

/* open_owned() - name below dir_fd, made when missing, given to id. A directory that still belongs to
 * us was left by a crash between the two steps; one that belongs to any other id was given away
 * from inside, which its owner may do. Return: descriptor, -1. */
static int open_owned(int dir_fd, const char *name, mode_t mode, uint32_t id, struct err *e)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;

	if (mkdirat(dir_fd, name, mode) < 0 && errno != EEXIST)
		return err_sys(e, "create %s", name);
	fd = fd_open_beneath(dir_fd, name, DIR_FLAGS, 0);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "open %s", name);
	if (st.st_uid == geteuid() && st.st_uid != id &&
	    (fchown(fd, id, id) < 0 || fchmod(fd, mode) < 0))
		return err_sys(e, "hand %s to id %u", name, id);
	return take_fd(&fd);
}

static uint32_t sandbox_root(const struct idrange *ids)
{
	return ids->base + ID_SANDBOX_ROOT;
}

/* open_owner() - owners/<owner>. Its owner on disk is the record of the block of ids its sandboxes'
 * files carry: with another block nothing in there could be used, so say so. */
static int open_owner(const struct store *s, const struct idrange *ids, const char *owner,
		      bool create, struct err *e)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;

	if (create)
		fd = open_owned(s->owners_fd, owner, 0700, ids->base, e);
	else
		fd = fd_open_beneath(s->owners_fd, owner, DIR_FLAGS, 0);
	if (fd < 0 && !create && errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "no such label");
	if (fd < 0)
		return create ? -1 : err_sys(e, "open owner %s", owner);
	if (fstat(fd, &st) < 0)
		return err_sys(e, "inspect owner %s", owner);
	if (st.st_uid == ids->base)
		return take_fd(&fd);
	(void)err_set(e, ERR_CONFIG, "files of owner %s were made with ids from %u, now they start at %u",
		      owner, (unsigned int)st.st_uid, ids->base);
	return err_remedy(e, "set SANDBOX_SUBID=%u:%d, or use another SANDBOX_HOME",
			  (unsigned int)st.st_uid, ID_BLOCK);
}

int store_owner_make(const struct store *s, const struct idrange *ids, const char *owner, struct err *e)
{
	int fd = str_is_owner_id(owner) ? open_owner(s, ids, owner, true, e) :
					  err_set(e, ERR_DENIED, "malformed owner");

	if (fd < 0)
		return -1;
	close_fd(&fd);
	return 0;
}

static int check_names(const char *owner, const char *key, struct err *e)
{
	if (!str_is_owner_id(owner) || !str_is_key(key))
		return err_set(e, ERR_DENIED, "malformed owner or key");
	return 0;
}

/* ---- locks ---- */

/* The holder writes its pid after taking the lock and erases it before letting go; it means something
 * only while the lock is held. A pid that is not alive was left by a holder that crashed: the new one
 * has not written yet. */
static pid_t read_holder(int lock_fd)
{
	char text[16];
	uint64_t pid;
	ssize_t len = pread(lock_fd, text, sizeof(text) - 1, 0);

	if (len <= 0)
		return 0;
	text[len] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (str_parse_u64(text, 1, INT_MAX, &pid) < 0)
		return 0;
	return kill((pid_t)pid, 0) == 0 || errno == EPERM ? (pid_t)pid : 0;
}

static int write_holder(int lock_fd)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d\n", (int)getpid());

	if (ftruncate(lock_fd, 0) < 0 || pwrite(lock_fd, text, (size_t)len, 0) != len)
		return -1;
	return 0;
}

int store_home_lock(const struct store *s, struct err *e)
{
	_cleanup_fd_ int fd = fd_open_beneath(s->home_fd, "keeper.lock", O_RDWR | O_CREAT, 0600);

	if (fd < 0)
		return err_sys(e, "open keeper.lock in SANDBOX_HOME");
	if (lock_take(&fd) < 0) {
		if (errno != EWOULDBLOCK)
			return err_sys(e, "lock SANDBOX_HOME");
		(void)err_set(e, ERR_BUSY, "SANDBOX_HOME is served by process %d already",
			      (int)read_holder(fd));
		return err_remedy(e, "stop that server, or give this one another SANDBOX_HOME");
	}
	if (write_holder(fd) < 0)
		return err_sys(e, "write keeper.lock in SANDBOX_HOME");
	return take_fd(&fd);
}

/* lock_is_current() - while we waited for nothing but the scheduler, the label may have been moved to
 * trash/: a lock on a file that is no longer owners/<owner>/<key>/lock protects nothing. */
static bool lock_is_current(int owner_fd, const char *key, int lock_fd)
{
	char path[KEY_MAX + sizeof("/lock")];

	(void)snprintf(path, sizeof(path), "%s/lock", key);
	return store_is_at(owner_fd, path, lock_fd);
}

/* try_flock() - Return: 0, -1, or 1: held by somebody who did not say who; that is a look at the lock
 * by store_label_holder(), or a holder between its two steps. Both are gone in a moment. */
static int try_flock(struct store_label *l, pid_t *ret_holder, struct err *e)
{
	pid_t holder;

	if (lock_take(&l->lock_fd) == 0)
		return 0;
	if (errno != EWOULDBLOCK)
		return err_sys(e, "lock %s", l->key);
	holder = read_holder(l->lock_fd);
	if (ret_holder)
		*ret_holder = holder;
	if (holder == 0)
		return 1;
	return err_set(e, ERR_BUSY, "label in use by process %d", (int)holder);
}

/* try_lock() - open the directory and take the lock. Return: 0, -1, or 1: lost a race, try again. */
static int try_lock(int owner_fd, const struct idrange *ids, bool create, struct store_label *l,
		    pid_t *ret_holder, struct err *e)
{
	struct stat st;
	int r;

	if (create)
		l->dir_fd = open_owned(owner_fd, l->key, 0700, sandbox_root(ids), e);
	else
		l->dir_fd = fd_open_beneath(owner_fd, l->key, DIR_FLAGS, 0);
	if (l->dir_fd < 0 && errno == ENOENT)
		return create ? 1 : err_set(e, ERR_NOT_FOUND, "no such label");
	if (l->dir_fd < 0)
		return create ? -1 : err_sys(e, "open label %s", l->key);
	l->lock_fd = fd_open_beneath(l->dir_fd, "lock", O_RDWR | O_CREAT | O_NONBLOCK, 0600);
	if (l->lock_fd < 0)
		return errno == ENOENT ? 1 : err_sys(e, "open the lock of %s", l->key);
	if (fstat(l->lock_fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close_fd(&l->lock_fd); /* only somebody with our rights can have put it there */
		(void)err_set(e, ERR_HOST, "the lock of %s is not a file", l->key);
		return err_remedy(e, "remove owners/%s/%s/lock in SANDBOX_HOME", l->owner, l->key);
	}
	r = try_flock(l, ret_holder, e);
	if (r != 0) {
		close_fd(&l->lock_fd); /* not ours: its text stays as it is */
		return r;
	}
	if (!lock_is_current(owner_fd, l->key, l->lock_fd))
		return 1;
	if (write_holder(l->lock_fd) < 0)
		return err_sys(e, "write the lock of %s", l->key);
	return 0;
}

static int take_lock(int owner_fd, const struct idrange *ids, bool create, struct store_label *l,
		     pid_t *ret_holder, struct err *e)
{
	enum { TRIES = 20 };

	for (int i = 0; i < TRIES; i++) {
		int r = try_lock(owner_fd, ids, create, l, ret_holder, e);

		if (r <= 0)
			return r;
		close_fd(&l->lock_fd);
		close_fd(&l->dir_fd);
		(void)usleep(1000); /* 20 ms at most, and only when two processes meet */
	}
	return err_set(e, ERR_BUSY, "label in use by another process");
}

/* ---- labels ---- */

static int make_contents(const struct idrange *ids, struct store_label *l, struct err *e)
{
	_cleanup_fd_ int upper_fd = -1, work_fd = -1;
	uint32_t id = sandbox_root(ids);

	if ((l->workspace_fd = open_owned(l->dir_fd, "workspace", 0755, id, e)) < 0 ||
	    (l->layer_fd = open_owned(l->dir_fd, "layer", 0700, id, e)) < 0 ||
	    (upper_fd = open_owned(l->layer_fd, "upper", 0755, id, e)) < 0 ||
	    (work_fd = open_owned(l->layer_fd, "work", 0700, id, e)) < 0 ||
	    (l->output_fd = open_owned(l->dir_fd, "output", 0755, id, e)) < 0)
		return err_wrap(e, "label %s", l->key);
	return 0;
}

/* open_contents() - what there is; a label that was reset has no layer. */
static int open_contents(struct store_label *l, struct err *e)
{
	const struct {
		const char *name;
		int *fd;
	} parts[] = { { "workspace", &l->workspace_fd }, { "layer", &l->layer_fd },
		      { "output", &l->output_fd } };

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		*parts[i].fd = fd_open_beneath(l->dir_fd, parts[i].name, DIR_FLAGS, 0);
		if (*parts[i].fd < 0 && errno != ENOENT)
			return err_sys(e, "open %s of label %s", parts[i].name, l->key);
	}
	return 0;
}

int store_label_open(const struct store *s, const struct idrange *ids, const char *owner,
		     const char *key, bool create, struct store_label *ret, pid_t *ret_holder,
		     struct err *e)
{
	struct store_label l = { .dir_fd = -1, .lock_fd = -1, .workspace_fd = -1, .layer_fd = -1,
				 .output_fd = -1 };
	_cleanup_fd_ int owner_fd = -1;

	if (ret_holder)
		*ret_holder = 0;
	if (check_names(owner, key, e) < 0)
		return -1;
	(void)str_copy(l.owner, sizeof(l.owner), owner);
	(void)str_copy(l.key, sizeof(l.key), key);
	owner_fd = open_owner(s, ids, owner, create, e);
	if (owner_fd < 0)
		return -1;
	if (take_lock(owner_fd, ids, create, &l, ret_holder, e) < 0 ||
	    (create ? make_contents(ids, &l, e) : open_contents(&l, e)) < 0) {
		store_label_done(&l);
		return -1;
	}
	*ret = l;
	return 0;
}

void store_label_done(struct store_label *l)
{
	close_fd(&l->output_fd);
	close_fd(&l->layer_fd);
	close_fd(&l->workspace_fd);
	if (l->lock_fd >= 0)
		(void)!ftruncate(l->lock_fd, 0); /* we may live on: nobody shall take us for the holder */
	close_fd(&l->lock_fd); /* the lock last: until then nobody may touch the rest */
	close_fd(&l->dir_fd);
}

pid_t store_label_holder(const struct store *s, const char *owner, const char *key)
{
	char path[OWNER_ID_LEN + 1 + KEY_MAX + sizeof("/lock")];
	_cleanup_fd_ int dir_fd = -1, lock_fd = -1;
	pid_t holder;

	if (check_names(owner, key, NULL) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "%s/%s", owner, key);
	dir_fd = fd_open_beneath(s->owners_fd, path, DIR_FLAGS, 0);
	if (dir_fd < 0)
		return -1;
	lock_fd = fd_open_beneath(dir_fd, "lock", O_RDONLY | O_NONBLOCK, 0);
	holder = lock_fd >= 0 ? read_holder(lock_fd) : 0;
	/* There is no way to look at a flock but to take it. That is done only when it seems to be held, and
	 * whoever meets us there tries again. */
	if (holder == 0 || flock(lock_fd, LOCK_SH | LOCK_NB) == 0)
		return 0;
	return errno == EWOULDBLOCK ? read_holder(lock_fd) : 0;
}

/* ---- removal ---- */

static int open_trash(const struct store *s, const struct store_label *l, struct err *e)
{
	struct stat st;

	/* the label's directory tells which block of ids this is */
	if (fstat(l->dir_fd, &st) < 0)
		return err_sys(e, "inspect label %s", l->key);
	return open_owned(s->trash_fd, l->owner, 0700, st.st_uid, e);
}

/* move_to_trash() - under a name nobody has: removal goes on after a crash, and the same label may be
 * thrown away again before it is done. */
static int move_to_trash(int from_fd, const char *name, int trash_fd, const char *as, struct err *e)
{
	char target[KEY_MAX + 20];
	uint64_t nonce;

	if (getrandom(&nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce))
		return err_sys(e, "get a random number");
	(void)snprintf(target, sizeof(target), "%s.%016llx", as, (unsigned long long)nonce);
	if (renameat(from_fd, name, trash_fd, target) < 0 && errno != ENOENT)
		return err_sys(e, "move %s of %s to the trash", name, as);
	return 0;
}

int store_trash_tree(const struct store *s, const struct idrange *ids, int dir_fd, const char *name,
		     struct err *e)
{
	_cleanup_fd_ int trash_fd = open_owned(s->trash_fd, OWNER_DEFAULT, 0700, sandbox_root(ids), e);

	return trash_fd < 0 ? -1 : move_to_trash(dir_fd, name, trash_fd, "image", e);
}

int store_label_reset(const struct store *s, struct store_label *l, bool workspace, struct err *e)
{
	_cleanup_fd_ int trash_fd = open_trash(s, l, e);
	_cleanup_fd_ int owner_fd = -1;

	if (trash_fd < 0)
		return -1;
	close_fd(&l->layer_fd);
	if (!workspace)
		return move_to_trash(l->dir_fd, "layer", trash_fd, l->key, e);
	owner_fd = fd_open_beneath(s->owners_fd, l->owner, DIR_FLAGS, 0);
	if (owner_fd < 0)
		return err_sys(e, "open owner %s", l->owner);
	close_fd(&l->workspace_fd);
	close_fd(&l->output_fd);
	return move_to_trash(owner_fd, l->key, trash_fd, l->key, e);
}

static bool trash_throwaway(const struct store *s, const struct idrange *ids, const char *owner,
			    const char *key)
{
	struct store_label l;
	struct err e = { 0 };
	bool moved;

	if (store_label_open(s, ids, owner, key, false, &l, NULL, &e) < 0)
		return false;
	moved = store_label_reset(s, &l, true, &e) == 0;
	store_label_done(&l);
	return moved;
}

unsigned int store_trash_throwaways(const struct store *s, const struct idrange *ids, const char *owner)
{
	int fd = str_is_owner_id(owner) ? fd_open_beneath(s->owners_fd, owner, DIR_FLAGS, 0) : -1;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	unsigned int moved = 0;

	if (!dir) {
		close_fd(&fd);
		return 0;
	}
	for (struct dirent *d = readdir(dir); d; d = readdir(dir))
		if (strncmp(d->d_name, KEY_THROWAWAY, strlen(KEY_THROWAWAY)) == 0)
			moved += trash_throwaway(s, ids, owner, d->d_name);
	(void)closedir(dir);
	return moved;
}
