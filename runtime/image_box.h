/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/image_box.h - a process in namespaces of ours for what is not a sandbox: bootstrap tools, tar
 *
 * Maintainer scripts and foreign archives are never handled with the rights of the host's root. A box
 * is one process (and its children) in its own user, mount, pid, IPC and UTS namespaces over a root
 * made of a read-only selection of the host's directories; only the trees that were handed in can be
 * written. It ends with its caller, however that ends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "runtime/base/err.h"
#include "runtime/userns.h"

enum box_role {
	/* tar, decompressors, our own walks: the ids, capabilities and filter of a sandbox, no network */
	BOX_SANDBOX,
	/* reading or writing a directory of the caller's: its ids, its access to files, nothing else of
	 * its rights, a sandbox's filter, no network */
	BOX_CALLER,
	/* the bootstrap tool: the ids of a sandbox, may mount and chroot, the host's network */
	BOX_BOOTSTRAP,
};

enum { BOX_MOUNTS_MAX = 3 };

struct box_mount {
	int tree_fd;    /* from box_tree() or box_scratch(); borrowed */
	const char *at; /* single component: "/target" */
	bool writable;
};

struct box {
	enum box_role role;
	struct box_mount mounts[BOX_MOUNTS_MAX];
	size_t mount_count;
	int stdin_fd, stdout_fd, stderr_fd; /* borrowed; -1: /dev/null */
	/* a program of the host by absolute path ... */
	char *const *argv;
	char *const *envp;
	/* ... or, with argv NULL, a function that returns the exit status. Memory that it shares with
	 * the caller must be mapped shared. */
	int (*fn)(void *ctx);
	void *ctx;
};

struct box_proc {
	pid_t pid;
	int pidfd;
};

/* box_tree() - a detached copy of the mount at path below dir_fd ("" = dir_fd itself), to be attached
 * in boxes. Return: descriptor, -1. */
int box_tree(int dir_fd, const char *path, struct err *e);

/* box_scratch() - a detached tmpfs holding one small file of the sandboxes' root, to be attached in one
 * box; gone with its descriptor. Return: descriptor, -1. */
int box_scratch(const struct idrange *ids, const char *name, const void *data, size_t len,
		struct err *e);

/* box_start() - Return: 0 and a running box, -1 (nothing is left). */
int box_start(const struct idrange *ids, const struct box *box, struct box_proc *ret,
	      struct err *e);

/* box_wait() - Return: exit status (128+n for signal n), -1. */
int box_wait(struct box_proc *p);

/* box_kill() - end the box and everything in it; needs a box_wait() afterwards. */
void box_kill(const struct box_proc *p);

/* box_run() - start and wait. Return: exit status, -1. */
int box_run(const struct idrange *ids, const struct box *box, struct err *e);
