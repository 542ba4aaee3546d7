/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/base/cleanup.h - scope-bound ownership of descriptors and memory
 *
 * A descriptor variable starts as -1; close() is never retried (Linux releases the number even
 * when it reports EINTR).
 */
#pragma once

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_fd_p(int *fd)
{
	if (*fd >= 0) {
		int saved = errno;
		(void)close(*fd);
		*fd = -1;
		errno = saved;
	}
}

static inline void cleanup_free_p(void *p)
{
	free(*(void **)p);
}

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _cleanup_fd_ _cleanup_(cleanup_fd_p)
#define _cleanup_free_ _cleanup_(cleanup_free_p)

/* take_fd() - hand a descriptor over to its next owner. */
static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

/* close_fd() - close and forget; keeps errno; a negative number is nothing to close. */
static inline void close_fd(int *fd)
{
	cleanup_fd_p(fd);
}

#define take_ptr(p)                      \
	({                               \
		__typeof__(p) _t = (p);  \
		(p) = NULL;              \
		_t;                      \
	})

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
