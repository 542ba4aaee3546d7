/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/owners.c - whose sandboxes there are, and which ids their files carry
 *
 * Runs in the keeper and in the command line (host root, or root of the storage namespace). Reads names
 * and owners of directories that only we can make. Two processes that meet a new owner at once are kept
 * apart by a lock on owners/, held for the length of one listing.
 */
#include "runtime/owners.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/digest.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"

enum { LOCK_TRIES = 50, LOCK_WAIT_US = 1000, BLOCKS_MAX = 1024 };

/* ---- names ---- */

bool owner_name_is_valid(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789");

	return len > 0 && len <= OWNER_NAME_MAX && name[len] == '\0' && !str_is_owner_id(name);
}

int owner_parse(const char *text, char ret[OWNER_ID_LEN + 1], struct err *e)
{
	if (str_is_owner_id(text))
		return str_copy(ret, OWNER_ID_LEN + 1, text);
	return owner_id_of(text, ret, e);
}

int owner_id_of(const char *name, char ret[OWNER_ID_LEN + 1], struct err *e)
{
	uint8_t digest[DIGEST_SHA256_LEN];

	if (!owner_name_is_valid(name)) {
		(void)err_set(e, ERR_USAGE, "%.20s: not an owner's name", name);
		return err_remedy(e, "1 to %d of a-z and 0-9, and not eight hexadecimal digits",
				  OWNER_NAME_MAX);
	}
	if (strcmp(name, "default") == 0)
		return str_copy(ret, OWNER_ID_LEN + 1, OWNER_DEFAULT);
	if (digest_sha256(name, strlen(name), digest) < 0)
		return err_set(e, ERR_NOMEM, "no memory for a digest");
	(void)snprintf(ret, OWNER_ID_LEN + 1, "%02x%02x%02x%02x", digest[0], digest[1], digest[2],
		       digest[3]);
	if (strcmp(ret, OWNER_DEFAULT) == 0)
		return err_set(e, ERR_USAGE, "%s: this name cannot be used, choose another", name);
	return 0;
}

/* ---- blocks ---- */

/* Return: 0 with *ret_uid, 1 there is none yet, -1. */
static int recorded_owner(const struct store *s, const char *owner, uid_t *ret_uid, struct err *e)
{
	_cleanup_fd_ int fd = fd_open_beneath(s->owners_fd, owner, O_RDONLY | O_DIRECTORY, 0);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return 1;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "inspect owner %s", owner);
	*ret_uid = st.st_uid;
	return 0;
}

static bool used[BLOCKS_MAX]; /* of one listing */

static void mark_used(int owners_fd, const char *subid, const char *name)
{
	struct stat st;
	struct err ignored;
	uint32_t index;

	if (!str_is_owner_id(name) || fstatat(owners_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (userns_block_index(subid, st.st_uid, &index, &ignored) == 0 && index < BLOCKS_MAX)
		used[index] = true;
}

static int find_free_block(int owners_fd, const char *subid, uint32_t *ret, struct err *e)
{
	int fd = openat(owners_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *d;

	if (!dir) {
		close_fd(&fd);
		return err_sys(e, "list the owners");
	}
	memset(used, 0, sizeof(used));
	used[0] = true; /* the default owner's, and the images' */
	while ((d = readdir(dir)))
		mark_used(owners_fd, subid, d->d_name);
	(void)closedir(dir);
	for (*ret = 0; *ret < BLOCKS_MAX && used[*ret]; ++*ret)
		;
	return *ret < BLOCKS_MAX ? 0 : err_set(e, ERR_LIMIT, "more than %d owners", BLOCKS_MAX);
}

static int lock_owners(int fd, struct err *e)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK)
			return err_sys(e, "lock the owners");
		(void)usleep(LOCK_WAIT_US);
	}
	return err_set(e, ERR_BUSY, "owners are being changed by another process");
}

/* claim() - make owners/<owner> with a free block's first id, under the lock; whoever came first
 * decides. */
static int claim(const struct store *s, const char *subid, const char *owner, struct idrange *ret,
		 struct err *e)
{
	_cleanup_fd_ int lock_fd = openat(s->owners_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint32_t index;
	uid_t uid;
	int r;

	if (lock_fd < 0)
		return err_sys(e, "open the owners");
	if (lock_owners(lock_fd, e) < 0)
		return -1;
	r = recorded_owner(s, owner, &uid, e);
	if (r < 0)
		return -1;
	r = r == 0 ? userns_block_index(subid, uid, &index, e) :
		     find_free_block(s->owners_fd, subid, &index, e);
	if (r < 0 || userns_range_init(ret, subid, index, e) < 0)
		return -1;
	if (store_owner_make(s, ret, owner, e) == 0)
		return 0;
	userns_range_done(ret);
	return -1;
}

int owners_range_init(const struct store *store, const char *subid, const char *owner, bool create,
		      struct idrange *ret, struct err *e)
{
	uint32_t index = 0;
	uid_t uid;
	int r;

	if (!str_is_owner_id(owner))
		return err_set(e, ERR_DENIED, "malformed owner");
	/* Whose block is certain: its record is checked where it is used. */
	if (strcmp(owner, OWNER_DEFAULT) == 0)
		return userns_range_init(ret, subid, 0, e);
	r = recorded_owner(store, owner, &uid, e);
	if (r < 0)
		return -1;
	if (r == 1)
		return create ? claim(store, subid, owner, ret, e) :
				err_set(e, ERR_NOT_FOUND, "no such label");
	if (userns_block_index(subid, uid, &index, e) < 0)
		return err_wrap(e, "files of owner %s", owner);
	return userns_range_init(ret, subid, index, e);
}

/* ---- the keeper's table ---- */

void owners_init(struct owners *o, const struct store *store, const char *subid, const struct idrange *first)
{
	*o = (struct owners){ .store = store, .subid = subid, .first = first };
}

static struct owner_range *range_find(struct owners *o, const char *id)
{
	for (size_t i = 0; i < OWNERS_MAX; i++) {
		if (strcmp(o->range[i].id, id) == 0)
			return &o->range[i];
	}
	return NULL;
}

static void range_clear(struct owner_range *r)
{
	userns_range_done(&r->ids);
	r->id[0] = '\0';
}

/* A free place. What is given away is found again on disk when its owner comes back. */
static struct owner_range *range_make(struct owners *o)
{
	struct owner_range *unused = range_find(o, "");

	if (unused || !o->in_use)
		return unused;
	for (size_t i = 0; i < OWNERS_MAX; i++) {
		if (o->in_use(o->range[i].id, o->ctx))
			continue;
		range_clear(&o->range[i]);
		return &o->range[i];
	}
	return NULL;
}

const struct idrange *owners_ids(struct owners *o, const char *owner, bool create, struct err *e)
{
	struct owner_range *r;

	if (strcmp(owner, OWNER_DEFAULT) == 0 || o->first->in_storage)
		return o->first;
	r = range_find(o, owner);
	if (r)
		return &r->ids;
	r = range_make(o);
	if (!r) {
		(void)err_set(e, ERR_LIMIT, "more than %d owners at once", OWNERS_MAX);
		return NULL;
	}
	if (owners_range_init(o->store, o->subid, owner, create, &r->ids, e) < 0)
		return NULL;
	(void)str_copy(r->id, sizeof(r->id), owner);
	return &r->ids;
}

void owners_done(struct owners *o)
{
	for (size_t i = 0; i < OWNERS_MAX; i++) {
		if (o->range[i].id[0])
			range_clear(&o->range[i]);
	}
}
