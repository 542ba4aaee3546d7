/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/image_sources.h - which hosts an image's own apt sources name: the list "apt" of the allowlist */
#pragma once

#include "runtime/base/err.h"
#include "runtime/spec.h"
#include "runtime/store.h"
#include "runtime/userns.h"

/* image_apt_hosts() - comma-separated, as SANDBOX_NET_ALLOW has them; "" when there are none. The files
 * are read by a confined worker, beneath the image's root, no link followed. Waits for the worker.
 * Return: 0, -1. */
int image_apt_hosts(const struct store *s, const struct idrange *ids, const char *image,
		    char ret[NET_APT_HOSTS_MAX], struct err *e);

/* image_apt_scan() - the hosts in one file's text are added to ret, each once; both forms of apt's
 * sources. What is no host is left out. */
void image_apt_scan(const char *text, char ret[NET_APT_HOSTS_MAX]);
