/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/base/fd.h - descriptors: whole reads and writes, safe opens, passing between processes
 *
 * Every descriptor made here is close-on-exec.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* fd_read_full() - read until len bytes or end of file; retries EINTR. Return: bytes read, -1. */
ssize_t fd_read_full(int fd, void *data, size_t len);

/* fd_write_full() - write all of data; retries EINTR and short writes. Return: 0, -1. */
int fd_write_full(int fd, const void *data, size_t len);

/* fd_read_file_at() - read a small file (sysfs, cgroupfs, procfs) beneath dir_fd into text, always
 * NUL-terminated; a file that does not fit fails with EFBIG. Return: length, -1. */
ssize_t fd_read_file_at(int dir_fd, const char *name, char *text, size_t size);

/* fd_write_file_at() - write text to an existing file beneath dir_fd in one write(2). Return: 0, -1. */
int fd_write_file_at(int dir_fd, const char *name, const char *text);

/* fd_open_beneath() - open path below dir_fd so that no component may be a symbolic link, a magic
 * link, another mount or an escape (openat2: BENEATH, NO_SYMLINKS, NO_MAGICLINKS, NO_XDEV).
 * O_PATH|O_NOFOLLOW gives the link itself, as always. mode counts only when something is made.
 * Return: descriptor, -1 with errno (ELOOP for a link, EXDEV for an escape). */
int fd_open_beneath(int dir_fd, const char *path, int flags, mode_t mode);

/* fd_memfd_sealed() - a memory file with this content and mode, sealed against every change
 * (SEAL, SHRINK, GROW, WRITE). executable asks for MFD_EXEC where the kernel knows it (6.3).
 * Return: descriptor at offset 0, -1. */
int fd_memfd_sealed(const char *name, const void *data, size_t len, mode_t mode, bool executable);

/* fd_set_nonblock() - Return: 0, -1. */
int fd_set_nonblock(int fd, bool on);

/* fd_set_cloexec() - Return: 0, -1. */
int fd_set_cloexec(int fd, bool on);

enum { FD_PASS_MAX = 4 };

/* fd_send_msg() - send one SOCK_SEQPACKET message with up to FD_PASS_MAX descriptors, never
 * blocking, never raising SIGPIPE. Return: 0, -1 (EAGAIN when the peer does not read). */
int fd_send_msg(int sock, const void *data, size_t len, const int *fds, size_t fd_count);

/* fd_recv_msg() - receive one message. With ret_fds NULL no control buffer is offered, so the
 * kernel drops every descriptor the peer attached. A truncated message fails with EMSGSIZE.
 * *ret_fd_count is the room on entry and the number received on return; the caller owns them.
 * Return: length (0 = end of file), -1. */
ssize_t fd_recv_msg(int sock, void *data, size_t size, int *ret_fds, size_t *ret_fd_count);
