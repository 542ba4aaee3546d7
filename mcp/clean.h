/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/clean.h - turn a terminal program's output into plain text, piece by piece
 *
 * - escape sequences (CSI, OSC, DCS, charset...; 7-bit, and 8-bit as UTF-8) are removed;
 * - a carriage return replaces the line before it by what follows (progress bars), CR LF is LF;
 *   "erase line" and "column 1" do the same; a backspace takes back one character;
 * - invalid UTF-8 and NUL become U+FFFD, form feed and vertical tab a line break, all other control
 *   characters but tab disappear.
 * The result depends on the bytes only, not on how they are split over calls. Memory is bounded: the
 * beginning of a line longer than LIMIT_LINE_HOLD is given out and cannot be replaced any more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/buf.h"

/* Gets cleaned text: valid UTF-8, whole code points. */
typedef void clean_emit_fn(void *ctx, const char *text, size_t len);

struct clean {
	clean_emit_fn *emit;
	void *ctx;
	struct buf line;          /* end of the current line, not given out yet */
	unsigned int state;       /* enum clean_state */
	unsigned char pending[4]; /* an unfinished code point */
	unsigned int pending_len;
	size_t sequence_len;      /* bytes of the escape sequence so far */
	uint32_t parameter;       /* first parameter of the control sequence */
	bool first_parameter;
	bool return_seen;         /* carriage return: the next character replaces the line */
	bool line_is_long;        /* some of the current line was given out */
};

void clean_init(struct clean *c, clean_emit_fn *emit, void *ctx);
void clean_done(struct clean *c);

void clean_feed(struct clean *c, const void *bytes, size_t len);

/* clean_finish() - end of the output: an unfinished code point is invalid, the last line is given
 * out. The cleaner can then be fed again, as new. */
void clean_finish(struct clean *c);
