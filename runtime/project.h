/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/project.h - folders of the operator that sandboxes see (--mount)
 *
 * Named on the command line, opened once when the program starts, and known by descriptor from then on:
 * whatever becomes of the path later, a sandbox gets the directory that was checked. No request carries
 * a path of the host.
 *
 * Whose are the files? A root keeper shows what the folder's owner owns as the sandbox root's, by an
 * idmapped mount: files made inside belong to that owner outside. An ordinary user's keeper may not do
 * that; where a folder is writable, the user is mapped as ID_USER_INSIDE into the sandbox and its
 * commands run as that user without any capability (as_user). Read-only folders need neither: what
 * "others" may read can be read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/err.h"
#include "runtime/spec.h"
#include "runtime/userns.h"

#define PROJECT_WORKSPACE "/workspace"
#define PROJECT_MNT "/mnt/"

struct project {
	int dir_fd;   /* O_PATH: every sandbox's mount is cloned from it */
	bool writable;
	bool maps_owner;   /* by an idmapped mount, to the ids that start at base */
	uint32_t uid, gid; /* the owner's */
	uint32_t base;
	int idmap_fd; /* user namespace of that mount; -1: none */
	int tree_fd;  /* a mount for our own workers, attached nowhere */
	char target[PROJECT_TARGET_MAX];
};

struct projects {
	struct project item[PROJECT_MAX];
	size_t count;
	bool as_user; /* commands run as ID_USER_INSIDE */
};

/* project_parse() - "ro|rw:HOSTDIR[:PATH]"; PATH is /workspace (the default) or /mnt/NAME. What follows
 * the last ":/" is PATH when there is one. Return: 0, -1 (ERR_USAGE). */
int project_parse(const char *text, struct project_spec *ret, struct err *e);

/* projects_open() - open and judge every folder of the settings. Refused, each with its reason: the root
 * directory, a home or what holds one, the server's own state, settings and (writable) program, and
 * whatever holds those; /dev, /proc, /run, /sys; a folder that holds a socket.
 * Return: 0, -1 with nothing open. */
int projects_open(struct projects *p, const struct settings *s, const struct idrange *ids,
		  struct err *e);
void projects_done(struct projects *p);

/* projects_workspace() - the folder that stands for /workspace, or NULL. */
struct project *projects_workspace(struct projects *p);

/* project_use() - have idmap_fd and tree_fd fit these ids. Something to do the first time only: the
 * sandboxes of one server with folders are all of one owner. Return: 0, -1. */
int project_use(struct project *p, const struct idrange *ids, struct err *e);

/* project_clone() - a detached private mount of it for a sandbox with these ids: nosuid, nodev, read-only
 * unless writable. Return: a descriptor, -1. */
int project_clone(struct project *p, const struct idrange *ids, struct err *e);
