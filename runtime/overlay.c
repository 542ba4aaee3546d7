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

#define WRITABLE(lower)                                                                            \
	"lowerdir=" lower ",upperdir=" OVERLAY_LAYER "/upper,workdir=" OVERLAY_LAYER "/work," FIXED_OPTIONS
/* The skeleton lies on top, so the mount points exist and are directories whatever the image has in
 * their place. */
#define READONLY(lower) "lowerdir=" OVERLAY_SKELETON ":" lower "," FIXED_OPTIONS

#define WITH_TRUST OVERLAY_TRUST ":" OVERLAY_LOWER

int overlay_mount(int scratch_fd, bool writable, bool trust)
{
	static const char *const options[2][2] = { { READONLY(OVERLAY_LOWER), READONLY(WITH_TRUST) },
						   { WRITABLE(OVERLAY_LOWER), WRITABLE(WITH_TRUST) } };
	unsigned long flags = MS_NOSUID | MS_NODEV | (writable ? 0 : MS_RDONLY);

	/* Layers are looked up relative to the working directory. */
	if (fchdir(scratch_fd) < 0)
		return -1;
	return mount("overlay", OVERLAY_ROOT, "overlay", flags, options[writable][trust]);
}
