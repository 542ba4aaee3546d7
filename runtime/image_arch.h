/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/image_arch.h - what an image's programs are for, and whether they would run here */
#pragma once

#include "runtime/arch.h"
#include "runtime/base/err.h"
#include "runtime/userns.h"

/* arch_of_tree() - by the bash in it, looked at in a box; "" where there is none or it is no ELF file. */
int arch_of_tree(const struct idrange *ids, int rootfs_fd, char ret[ARCH_NAME_MAX], struct err *e);

/* arch_try() - execute a program of that architecture in a box like that of the bootstrap tool: the
 * kernel has to hand it to an emulator. ERR_HOST with the packages that bring one. */
int arch_try(const struct idrange *ids, const char *name, struct err *e);
