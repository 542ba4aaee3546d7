/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/store.h - the state directory: images, workspaces, layers, locks
 *
 *   images/<name>/{rootfs,manifest.json}     read-only lower trees
 *   owners/<owner-id>/<key>/lock             flock held by whoever runs or changes this label
 *   owners/<owner-id>/<key>/workspace        /workspace
 *   owners/<owner-id>/<key>/layer/{upper,work}
 *   owners/<owner-id>/<key>/output           whole output of commands
 *   run/<pid>.sock                           control socket of a keeper
 *   keeper.lock                              flock held by the service's keeper
 *   trash/                                   renamed here under the lock, removed by a worker
 *
 * Everything is opened beneath one directory descriptor with no symbolic link followed; names come
 * from str_is_key()/str_is_owner_id() only. Two overlays on one layer lose files (the kernel does not
 * refuse the second mount), so nobody mounts without the lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/err.h"
#include "runtime/spec.h"
#include "runtime/userns.h"

struct store {
	int home_fd, images_fd, owners_fd, run_fd, trash_fd;
};

/* store_open() - create or open the state directory (0700). Refused when it is a symbolic link,
 * owned by somebody else, or writable by others. */
int store_open(struct store *s, const char *home, struct err *e);
void store_done(struct store *s);

/* store_owner_make() - owners/<owner>, given to the block's first id: the record of which block it has. */
int store_owner_make(const struct store *s, const struct idrange *ids, const char *owner, struct err *e);
/* store_home_lock() - the service's lock on the state directory, for as long as the descriptor is open.
 * Return: descriptor, -1 (ERR_BUSY names the process that has it). */
int store_home_lock(const struct store *s, struct err *e);

struct store_label {
	int dir_fd, lock_fd, workspace_fd, layer_fd, output_fd;
	char owner[OWNER_ID_LEN + 1];
	char key[KEY_MAX];
};

/* store_label_open() - open a label's directory and take its lock without waiting. With create, makes
 * what is missing, owned by the sandbox's root. A held lock gives ERR_BUSY "label in use by process N"
 * and *ret_holder = N. No such label without create: ERR_NOT_FOUND. */
int store_label_open(const struct store *s, const struct idrange *ids, const char *owner,
		     const char *key, bool create, struct store_label *ret, pid_t *ret_holder,
		     struct err *e);
void store_label_done(struct store_label *l); /* releases the lock */

/* store_label_holder() - pid that holds the label, 0 when free, -1 when there is no such label. */
pid_t store_label_holder(const struct store *s, const char *owner, const char *key);

/* store_label_reset() - move the layer (and with workspace set, everything) into trash/. Needs: the
 * lock, no sandbox mounted on it. */
int store_label_reset(const struct store *s, struct store_label *l, bool workspace,
		      struct err *e);

/* store_trash_throwaways() - move what sandboxes of one call (KEY_THROWAWAY) of an owner left when
 * their keeper could not end them into trash/; those in use stay. Reads the owner's directory once.
 * Return: how many were moved. */
unsigned int store_trash_throwaways(const struct store *s, const struct idrange *ids, const char *owner);

/* store_trash_tree() - move a tree that belongs to sandbox ids (an image's root) into trash/. */
int store_trash_tree(const struct store *s, const struct idrange *ids, int dir_fd, const char *name,
		     struct err *e);

/* store_is_at() - whether path beneath dir_fd still leads to what fd is; for the parts of the store. */
bool store_is_at(int dir_fd, const char *path, int fd);

/* The file in images/<name> that says what an image's programs are for, without a newline. */
#define STORE_IMAGE_ARCH "arch"

/* store_image_open() - the root directory of an image; ERR_NOT_FOUND names "image build". The
 * descriptor holds a shared flock: whoever wants to remove or change an image takes the exclusive one
 * on its rootfs/ first. ERR_HOST for an image of another architecture ... */
int store_image_open(const struct store *s, const char *name, struct err *e);

/* store_image_open_any() - ... which may be looked at and exported. */
int store_image_open_any(const struct store *s, const char *name, struct err *e);

/* store_min_free() - ERR_NOSPACE when less than min_free_bytes are available. */
int store_min_free(const struct store *s, uint64_t min_free_bytes, struct err *e);

/* store_sweep_start() - fork a worker that removes everything in trash/: fd-based walk, no link
 * followed, no mount crossed, bounded depth without recursion; confined by helper_enter() to
 * DAC_OVERRIDE and FOWNER over the sandbox's ids. It dies with the caller and goes on the next time:
 * who wants the trash empty waits for it (exit 0: all gone, 1: the log says what is left).
 * Return: the worker's pid (to be reaped), 0 when trash is empty, -1. */
pid_t store_sweep_start(const struct store *s, const struct idrange *ids, struct err *e);
