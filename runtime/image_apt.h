/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/image_apt.h - where the host gets its Debian packages from, as lines for a new image */
#pragma once

#include <stddef.h>

#include "runtime/base/err.h"
#include "runtime/image_recipe.h"
#include "runtime/userns.h"

enum { APT_SOURCES_MAX = 8, APT_OPTIONS_MAX = 16, APT_LINE_MAX = 512, APT_OUTPUT_MAX = 1024 * 1024 };

struct apt_source {
	char uri[256];
	char suite[64]; /* as in dists/<suite>/ */
};

struct apt_host {
	char codename[32]; /* of the host's own Debian; "" when it is no Debian */
	struct apt_source source[APT_SOURCES_MAX];
	size_t source_count; /* 0: no Debian archive is configured, let the tool choose */
	char option[APT_OPTIONS_MAX][APT_LINE_MAX]; /* proxies and the like, for the build only */
	size_t option_count;
};

/* apt_host_read() - ask the host's apt, in a box. A host without apt gives an empty answer. */
int apt_host_read(const struct idrange *ids, struct apt_host *ret, struct err *e);

/* apt_parse_uris() - take the Debian archives out of "apt-get update --print-uris". read_release tells
 * Origin and Codename of a downloaded release file by its name; it returns 0, or -1 when there
 * is none. Pure but for that. */
typedef int apt_release_fn(const char *name, char origin[64], char codename[64]);
void apt_parse_uris(struct apt_host *host, const char *text, apt_release_fn *read_release);

/* apt_parse_options() - take over what downloading needs from "apt-config dump". Pure. */
void apt_parse_options(struct apt_host *host, const char *text);

/* apt_source_line() - "deb [signed-by=...] URI SUITE main" with the host's codename replaced by suite.
 * Return: 0, 1 that source has no counterpart in suite (sid has no security archive), -1 too long. */
int apt_source_line(const struct apt_host *host, size_t i, const char *suite, const char *keyring,
		    char ret[APT_LINE_MAX]);
