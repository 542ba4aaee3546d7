/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/cgroup_text.h - the texts the kernel gives about cgroups, parsed without touching a file */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A cgroup v2 mount: which cgroup it shows as its top (as this process sees it), and where. */
struct cgroup_mount {
	char root[PATH_MAX];
	char point[PATH_MAX];
};

/* cgroup_text_next_mount() - the next cgroup2 line of a mountinfo text; *cursor moves on. Lines that
 * are malformed or too long are passed over. Return: 1 found, 0 at the end. */
int cgroup_text_next_mount(const char **cursor, struct cgroup_mount *ret);

/* cgroup_text_v1_has() - whether a mountinfo text shows a cgroup v1 hierarchy with this controller
 * (a controller is in v1 or in v2, never in both). */
bool cgroup_text_v1_has(const char *mountinfo, const char *controller);

/* cgroup_text_own() - the v2 path ("0::...") of /proc/self/cgroup. Return: 1, 0 none, -1 too long. */
int cgroup_text_own(const char *text, char *ret_path, size_t size);

/* cgroup_text_beneath() - path relative to root, both absolute: "" when they are the same.
 * Return: into path, or NULL when it is not beneath. */
const char *cgroup_text_beneath(const char *root, const char *path);

/* cgroup_text_has_word() - a word of a list separated by white space (cgroup.controllers). */
bool cgroup_text_has_word(const char *text, const char *word);

/* cgroup_text_counter() - a line "name value" (cgroup.events, memory.events, pids.events, cpu.stat).
 * Return: 1, 0 no such name, -1 not a number (*ret untouched then and for 0). */
int cgroup_text_counter(const char *text, const char *name, uint64_t *ret);

/* cgroup_text_lines() - newline characters in len bytes: processes in a part of cgroup.procs. */
size_t cgroup_text_lines(const char *bytes, size_t len);
