/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/overlay.c - the root file system: one image for all, one layer per label
 *
 * Runs in the child as the sandbox's root. The layer was written by hostile code: the options below
 * are what makes it harmless, and they must be the same for the whole life of a layer.
 *
 *   userxattr       marks live in user.overlay.*; the mount escapes what the inside writes there.
 *                   Without it "rm -rf" of an image directory fails with EIO, and a mark planted then
 *                   would be believed by a later mount that has it.
 *   index=off       no file handles, so a layer may be renamed into the trash and never refuses to mount
 *   xino=off        inode numbers as the file systems have them
 *   redirect_dir=nofollow, metacopy=off
 *                   a planted mark can never make the mount read another path's data
 *
 * The mount itself is nosuid and nodev: flags of the trees below do not count on an overlay.
 */
#include "runtime/overlay.h"

#include <sys/mount.h>
#include <unistd.h>

#define FIXED_OPTIONS "userxattr,index=off,xino=off,redirect_dir=nofollow,metacopy=off"

static const char writable_options[] = "lowerdir=" OVERLAY_LOWER ",upperdir=" OVERLAY_LAYER
				       "/upper,workdir=" OVERLAY_LAYER "/work," FIXED_OPTIONS;

/* Read-only: the skeleton lies on top, so the mount points exist and are directories whatever the
 * image has in their place. */
static const char readonly_options[] =
	"lowerdir=" OVERLAY_SKELETON ":" OVERLAY_LOWER "," FIXED_OPTIONS;

int overlay_mount(int scratch_fd, bool writable)
{
	unsigned long flags = MS_NOSUID | MS_NODEV | (writable ? 0 : MS_RDONLY);

	/* Layers are looked up relative to the working directory. */
	if (fchdir(scratch_fd) < 0)
		return -1;
	return mount("overlay", OVERLAY_ROOT, "overlay", flags,
		     writable ? writable_options : readonly_options);
}
