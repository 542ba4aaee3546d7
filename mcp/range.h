/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/range.h - which bytes of a file a request wants (RFC 9110, 14) */
#pragma once

#include <stdint.h>

#include "mcp/http1.h"

enum range_kind {
	RANGE_ALL,  /* no range, or none we know: the whole file */
	RANGE_PART,
	RANGE_NONE, /* well-formed, and outside of the file: 416 */
};

/* range_read() - of a file of this size. Several ranges in one request count as none: RFC 9110 allows
 * it, and clients that really want several ask again. text: the field's value, NULL when it is missing. */
enum range_kind range_read(const struct http_text *text, uint64_t size, uint64_t *ret_first, uint64_t *ret_len);
