/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/overlay.h - the root file system: one image for all, one layer per label */
#pragma once

#include <stdbool.h>

/* Names below the scratch mount. They are what /proc/mounts shows inside, so they are relative and
 * say nothing about the host. */
#define OVERLAY_LOWER    "l" /* the image, attached by the caller */
#define OVERLAY_LAYER    "y" /* upper/ and work/, attached by the caller (writable only) */
#define OVERLAY_SKELETON "s" /* made by the caller: the mount points (read-only only) */
#define OVERLAY_TRUST    "c" /* made by the caller: further certificates (mounts_trust.c), where there are any */
#define OVERLAY_ROOT     "r" /* an empty directory: the overlay appears here */

/* overlay_mount() - compose OVERLAY_ROOT below scratch_fd; trust: with OVERLAY_TRUST.
 * Needs: the ids of the sandbox's root (whoever mounts is who copies up), the trees attached.
 * Leaves: the working directory on the scratch mount. Return: 0, -1 with errno. */
int overlay_mount(int scratch_fd, bool writable, bool trust);
