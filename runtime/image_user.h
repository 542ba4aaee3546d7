/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/image_user.h - the name of id 1000 in an image; part of image_finish.c's box */
#pragma once

/* image_name_user() - lines for "user" in etc/passwd, etc/group and etc/shadow of the tree, where neither the name
 * nor the id is taken. A file that is missing, or anything but a plain file, is left as it is.
 * Return: 0, -1 with errno and *ret_name = the file. */
int image_name_user(int root_fd, const char **ret_name);
