/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/project.c - folders of the operator that sandboxes see (--mount)
 *
 * Runs before the keeper serves, with its privilege: host root, or root of the storage namespace, that is
 * the ordinary user. The paths are the operator's own words. What lies in the folders is not trusted and
 * not read here but for the names of the top level; what a sandbox could do to the host through a
 * folder is: so a folder is judged by which directories it is, holds and lies in, compared as device and
 * inode on the way up from open descriptors. Text comparisons would miss links and bind mounts.
 */
#include "runtime/project.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"
#include "runtime/base/sys.h"

enum { FIRST_ORDINARY_UID = 1000, NAME_IN_MNT_MAX = 40, UP_MAX = 4096, LOOK_FLAGS = O_PATH | O_CLOEXEC };

/* ---- the words of the command line ---- */

static bool is_target(const char *path)
{
	size_t prefix = strlen(PROJECT_MNT);

	return strcmp(path, PROJECT_WORKSPACE) == 0 ||
	       (strncmp(path, PROJECT_MNT, prefix) == 0 && str_is_name(path + prefix, NAME_IN_MNT_MAX));
}

static int refuse_text(struct err *e, const char *what)
{
	(void)err_set(e, ERR_USAGE, "--mount: %s", what);
	return err_remedy(e, "write ro:HOSTDIR or rw:HOSTDIR, with :/workspace or :/mnt/NAME behind it to say where");
}

static const char *last_target(const char *text)
{
	const char *found = NULL;

	for (const char *at = strstr(text, ":/"); at; at = strstr(at + 1, ":/"))
		found = at;
	return found;
}

int project_parse(const char *text, struct project_spec *ret, struct err *e)
{
	bool writable = strncmp(text, "rw:", 3) == 0;
	const char *host = text + 3, *colon;
	size_t len;

	if (!writable && strncmp(text, "ro:", 3) != 0)
		return refuse_text(e, "neither ro: nor rw: in front");
	colon = last_target(host);
	len = colon ? (size_t)(colon - host) : strlen(host);
	if (len == 0 || len >= sizeof(ret->host))
		return refuse_text(e, len == 0 ? "no folder is named" : "the path is too long");
	if (colon && !is_target(colon + 1))
		return refuse_text(e, "a sandbox has no such place for a folder");
	*ret = (struct project_spec){ .writable = writable };
	memcpy(ret->host, host, len);
	(void)str_copy(ret->target, sizeof(ret->target), colon ? colon + 1 : PROJECT_WORKSPACE);
	return 0;
}

/* ---- where a directory lies ---- */

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* lies_in() - whether dir_fd is the directory that outer describes, or below it.
 * Return: 1, 0, -1 (the way up cannot be followed). */
static int lies_in(int dir_fd, const struct stat *outer)
{
	_cleanup_fd_ int at = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	struct stat here, up;

	if (at < 0 || fstat(at, &here) < 0)
		return -1;
	for (int i = 0; i < UP_MAX; i++) {
		int next;

		if (is_same(&here, outer))
			return 1;
		next = openat(at, "..", LOOK_FLAGS | O_DIRECTORY);
		if (next < 0)
			return -1;
		close_fd(&at);
		at = next;
		if (fstat(at, &up) < 0)
			return -1;
		if (is_same(&up, &here)) /* the top */
			return 0;
		here = up;
	}
	errno = ELOOP;
	return -1;
}

/* A folder while it is judged. */
struct candidate {
	const struct project_spec *spec;
	int fd;
	struct stat st;
};

static int refuse(const struct candidate *c, const char *why, struct err *e)
{
	char shown[256];

	(void)err_set(e, ERR_CONFIG, "--mount: %s %s",
		      str_escape(shown, sizeof(shown), c->spec->host, strlen(c->spec->host)), why);
	return err_remedy(e, "name the folder of one project");
}

static int cannot_look(const struct candidate *c, struct err *e)
{
	char shown[256];

	(void)err_sys(e, "--mount: find out where %s lies",
		      str_escape(shown, sizeof(shown), c->spec->host, strlen(c->spec->host)));
	return err_remedy(e, "name a folder that this user can reach from /");
}

/* open_nearest() - the path, or the nearest directory above it that exists. *ret_exists tells which. */
static int open_nearest(const char *path, bool *ret_exists)
{
	char part[PATH_MAX];
	int fd;

	if (str_copy(part, sizeof(part), path) < 0)
		return -1;
	*ret_exists = true;
	while ((fd = open(part, LOOK_FLAGS | O_DIRECTORY)) < 0 && errno == ENOENT) {
		char *slash = strrchr(part, '/');

		*ret_exists = false;
		if (!slash || strcmp(part, "/") == 0)
			return -1;
		slash[slash == part] = '\0';
	}
	return fd;
}

/* refuse_around() - the folder must not hold that directory. within: nor lie in it. */
static int refuse_around(const struct candidate *c, const char *path, bool within, const char *why,
			 struct err *e)
{
	bool exists = false;
	_cleanup_fd_ int fd = open_nearest(path, &exists);
	struct stat st;
	int r;

	if (fd < 0 && (errno == EACCES || errno == ENOENT || errno == ENOTDIR))
		return 0; /* somebody else's: whoever opened the folder cannot reach it through it either */
	if (fd < 0 || fstat(fd, &st) < 0)
		return cannot_look(c, e);
	r = lies_in(fd, &c->st);
	if (r < 0 && errno == EACCES) /* a directory we may not enter: no sandbox of ours will either */
		r = 0;
	if (r == 0 && within && exists)
		r = lies_in(c->fd, &st);
	if (r < 0)
		return cannot_look(c, e);
	return r > 0 ? refuse(c, why, e) : 0;
}

/* ---- what no sandbox may have ---- */

static int refuse_root(const struct candidate *c, struct err *e)
{
	struct stat root;

	if (stat("/", &root) < 0)
		return cannot_look(c, e);
	return is_same(&root, &c->st) ? refuse(c, "is the whole file system", e) : 0;
}

static int refuse_system(const struct candidate *c, struct err *e)
{
	static const char *const places[] = { "/dev", "/proc", "/run", "/sys" };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (refuse_around(c, places[i], true, "belongs to the running system, not to a project", e) < 0)
			return -1;
	}
	return 0;
}

static int refuse_home(const struct candidate *c, const char *home, struct err *e)
{
	if (!home || home[0] != '/' || home[1] == '\0')
		return 0;
	return refuse_around(c, home, false, "is a home, or holds one: keys, passwords and mail", e);
}

/* Of people and of root: the homes of system users are places like /bin and /var/www. */
static int refuse_homes(const struct candidate *c, struct err *e)
{
	FILE *file = fopen("/etc/passwd", "re");
	const struct passwd *entry;
	int r = refuse_home(c, getenv("HOME"), e);

	while (r == 0 && file && (entry = fgetpwent(file)) != NULL) {
		if (entry->pw_uid == 0 || entry->pw_uid >= FIRST_ORDINARY_UID)
			r = refuse_home(c, entry->pw_dir, e);
	}
	if (file)
		(void)fclose(file);
	return r;
}

/* An env file of --config, wherever it is: the next start believes what it says. */
static int refuse_env_file(const struct candidate *c, const char *file, struct err *e)
{
	char path[PATH_MAX], *slash;

	if (!file[0])
		return 0;
	if (!realpath(file, path))
		return cannot_look(c, e);
	slash = strrchr(path, '/');
	slash[slash == path] = '\0';
	return refuse_around(c, path, false, "holds the env file of this server, its settings and tokens", e);
}

static int refuse_settings(const struct candidate *c, const char *env_file, struct err *e)
{
	static const char why[] = "holds this server's settings and tokens, or lies among them";
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char path[PATH_MAX];
	int len = -1;

	if (config && config[0] == '/')
		len = snprintf(path, sizeof(path), "%s/mcp-sandbox", config);
	else if (home && home[0] == '/')
		len = snprintf(path, sizeof(path), "%s/.config/mcp-sandbox", home);
	if (len >= 0 && len < (int)sizeof(path) && refuse_around(c, path, true, why, e) < 0)
		return -1;
	if (refuse_around(c, "/etc/mcp-sandbox", true, why, e) < 0)
		return -1;
	return refuse_env_file(c, env_file, e);
}

/* Written to, it would be what the next start executes on the host. */
static int refuse_program(const struct candidate *c, struct err *e)
{
	char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	if (len < 0)
		return cannot_look(c, e);
	path[len] = '\0';
	slash = strrchr(path, '/');
	if (!slash || !c->spec->writable)
		return 0;
	slash[slash == path] = '\0';
	return refuse_around(c, path, false, "holds this program, which a sandbox could then replace", e);
}

/* Whoever listens there is outside of every namespace of the sandbox. What is deeper, or made later, is
 * counted and told in the first result. */
static bool is_socket(int dir_fd, const struct dirent *d)
{
	struct stat st;

	if (d->d_type != DT_UNKNOWN) /* some file systems leave it at that */
		return d->d_type == DT_SOCK;
	return fstatat(dir_fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode);
}

static int refuse_sockets(const struct candidate *c, struct err *e)
{
	int fd = openat(c->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *d;

	if (!dir) {
		close_fd(&fd);
		return cannot_look(c, e);
	}
	while (r == 0 && (d = readdir(dir)) != NULL) {
		if (is_socket(dirfd(dir), d))
			r = refuse(c, "holds a socket of a program on this host", e);
	}
	(void)closedir(dir);
	return r;
}

static int judge(const struct candidate *c, const struct settings *s, struct err *e)
{
	if (refuse_root(c, e) < 0 || refuse_system(c, e) < 0 || refuse_homes(c, e) < 0)
		return -1;
	if (refuse_around(c, s->home, true, "holds the sandboxes' own files (SANDBOX_HOME), or lies in them",
			  e) < 0)
		return -1;
	if (refuse_settings(c, s->config_file, e) < 0 || refuse_program(c, e) < 0)
		return -1;
	return refuse_sockets(c, e);
}

/* ---- mounts ---- */

static int clone_mount(const struct project *p, struct err *e)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			    (p->writable ? 0 : MOUNT_ATTR_RDONLY) |
			    (p->idmap_fd >= 0 ? MOUNT_ATTR_IDMAP : 0),
		.propagation = MS_PRIVATE,
		.userns_fd = (uint64_t)(p->idmap_fd >= 0 ? p->idmap_fd : 0),
	};
	_cleanup_fd_ int fd = open_tree(p->dir_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

	/* Not recursive. In the storage namespace the kernel does not let us leave out what is mounted
	 * below, because that would show what is underneath. */
	if (fd < 0 && errno == EINVAL) {
		(void)err_set(e, ERR_CONFIG, "--mount: other file systems are mounted below the folder");
		return err_remedy(e, "name a folder that has none in it");
	}
	if (fd < 0)
		return err_sys(e, "clone the mount of a project folder");
	if (mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return err_sys(e, "restrict the mount of a project folder");
	return take_fd(&fd);
}

int project_use(struct project *p, const struct idrange *ids, struct err *e)
{
	if (p->tree_fd >= 0 && (!p->maps_owner || p->base == ids->base))
		return 0;
	close_fd(&p->tree_fd);
	close_fd(&p->idmap_fd);
	if (p->maps_owner) {
		p->base = ids->base;
		p->idmap_fd = userns_idmap(ids, p->uid, p->gid, e);
		if (p->idmap_fd < 0)
			return -1;
	}
	p->tree_fd = clone_mount(p, e);
	return p->tree_fd < 0 ? -1 : 0;
}

int project_clone(struct project *p, const struct idrange *ids, struct err *e)
{
	return project_use(p, ids, e) < 0 ? -1 : clone_mount(p, e);
}

/* The mapping is needed to write and worth having to read: without it only what others may read is
 * readable. */
static int make_mounts(struct project *p, const struct candidate *c, const struct idrange *ids,
		       struct err *e)
{
	p->maps_owner = !ids->in_storage;
	if (project_use(p, ids, e) == 0)
		return 0;
	if (!p->maps_owner || e->sys_errno != EINVAL)
		return -1;
	if (p->writable) {
		(void)refuse(c, "lies on a file system that cannot map owners", e);
		return err_remedy(e, "mount it ro:, or keep it on ext4, xfs, btrfs or tmpfs");
	}
	p->maps_owner = false;
	return project_use(p, ids, e);
}

static int open_one(struct project *p, const struct project_spec *spec, const struct settings *s,
		    const struct idrange *ids, struct err *e)
{
	struct candidate c = { .spec = spec };
	char shown[256];

	/* The operator's own path: links in it are the operator's business, and followed this once. */
	p->dir_fd = c.fd = open(spec->host, LOOK_FLAGS | O_DIRECTORY);
	if (c.fd < 0 || fstat(c.fd, &c.st) < 0) {
		(void)err_sys(e, "--mount: %s", str_escape(shown, sizeof(shown), spec->host, strlen(spec->host)));
		e->code = ERR_CONFIG;
		return err_remedy(e, "name a folder that exists and that this user may enter");
	}
	if (judge(&c, s, e) < 0)
		return -1;
	p->writable = spec->writable;
	(void)str_copy(p->target, sizeof(p->target), spec->target);
	p->uid = c.st.st_uid;
	p->gid = c.st.st_gid;
	return make_mounts(p, &c, ids, e);
}

static bool is_taken(const struct settings *s, size_t i)
{
	for (size_t j = 0; j < i; j++) {
		if (strcmp(s->projects[i].target, s->projects[j].target) == 0)
			return true;
	}
	return false;
}

int projects_open(struct projects *p, const struct settings *s, const struct idrange *ids, struct err *e)
{
	*p = (struct projects){ .count = 0 };
	for (size_t i = 0; i < s->project_count; i++) {
		struct project *item = &p->item[p->count++];

		item->dir_fd = item->idmap_fd = item->tree_fd = -1;
		if (is_taken(s, i)) {
			projects_done(p);
			return err_set(e, ERR_CONFIG, "--mount: two folders for %s", s->projects[i].target);
		}
		if (open_one(item, &s->projects[i], s, ids, e) < 0) {
			projects_done(p);
			return -1;
		}
		p->as_user |= ids->in_storage && item->writable;
	}
	return 0;
}

void projects_done(struct projects *p)
{
	while (p->count > 0) {
		struct project *item = &p->item[--p->count];

		close_fd(&item->tree_fd);
		close_fd(&item->idmap_fd);
		close_fd(&item->dir_fd);
	}
}

struct project *projects_workspace(struct projects *p)
{
	for (size_t i = 0; p && i < p->count; i++) {
		if (strcmp(p->item[i].target, PROJECT_WORKSPACE) == 0)
			return &p->item[i];
	}
	return NULL;
}
