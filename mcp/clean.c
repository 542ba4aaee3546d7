/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/clean.c - turn a terminal program's output into plain text, piece by piece
 *
 * Runs in the front, without privilege, on bytes that hostile commands wrote. A state machine over
 * code points; ASCII text takes a short cut that gives the same result.
 */
#include "mcp/clean.h"

#include <string.h>

#include "mcp/bounds.h"
#include "runtime/base/str.h"

enum clean_state {
	CLEAN_TEXT,
	CLEAN_ESCAPE,        /* after ESC */
	CLEAN_ESCAPE_MORE,   /* after ESC and an intermediate byte: one final byte follows */
	CLEAN_CONTROL,       /* in a control sequence (CSI) */
	CLEAN_STRING,        /* in a control string (OSC, DCS, APC, PM, SOS) */
	CLEAN_STRING_ESCAPE, /* ESC inside a control string: its end if a backslash follows */
};

static const char replacement[] = "\xef\xbf\xbd";

void clean_init(struct clean *c, clean_emit_fn *emit, void *ctx)
{
	*c = (struct clean){ .emit = emit, .ctx = ctx };
	buf_init(&c->line, LIMIT_LINE_HOLD);
}

void clean_done(struct clean *c)
{
	buf_done(&c->line);
}

static void drop_line(struct clean *c)
{
	buf_consume(&c->line, c->line.len);
}

static void give_line(struct clean *c)
{
	if (c->line.len)
		c->emit(c->ctx, c->line.data, c->line.len);
	drop_line(c);
}

static void end_line(struct clean *c)
{
	give_line(c);
	c->emit(c->ctx, "\n", 1);
	c->line_is_long = c->return_seen = false;
}

/* Text after a carriage return replaces the line. What was given out cannot be replaced: a line
 * break keeps it apart. */
static void begin_text(struct clean *c)
{
	if (!c->return_seen)
		return;
	c->return_seen = false;
	drop_line(c);
	if (c->line_is_long)
		end_line(c);
}

/* text is one code point. */
static void add_character(struct clean *c, const void *text, size_t len)
{
	begin_text(c);
	if (c->line.len + len > LIMIT_LINE_HOLD) {
		give_line(c);
		c->line_is_long = true;
	}
	if (buf_append(&c->line, text, len) < 0)
		c->emit(c->ctx, text, len); /* no memory for holding lines: go on without */
}

static void backspace(struct clean *c)
{
	size_t len = c->line.len;

	while (len && ((unsigned char)c->line.data[len - 1] & 0xc0) == 0x80)
		len--;
	if (!len)
		return;
	c->line.len = len - 1;
	c->line.data[len - 1] = 0;
}

static void begin_sequence(struct clean *c, enum clean_state state)
{
	c->state = state;
	c->sequence_len = 0;
	c->parameter = 0;
	c->first_parameter = true;
}

/* C0 controls and DEL, in text. */
static void text_control(struct clean *c, uint32_t cp)
{
	switch (cp) {
	case 0:
		add_character(c, replacement, sizeof(replacement) - 1);
		break;
	case '\b':
		backspace(c);
		break;
	case '\t':
		add_character(c, "\t", 1);
		break;
	case '\n':
	case '\v':
	case '\f':
		end_line(c);
		break;
	case '\r':
		c->return_seen = true;
		break;
	case 0x1b:
		begin_sequence(c, CLEAN_ESCAPE);
		break;
	default:
		break;
	}
}

/* U+0080 to U+009F: the 8-bit forms of ESC and a letter. */
static void text_c1(struct clean *c, uint32_t cp)
{
	switch (cp) {
	case 0x85: /* NEL */
		end_line(c);
		break;
	case 0x9b: /* CSI */
		begin_sequence(c, CLEAN_CONTROL);
		break;
	case 0x90: /* DCS */
	case 0x98: /* SOS */
	case 0x9d: /* OSC */
	case 0x9e: /* PM */
	case 0x9f: /* APC */
		begin_sequence(c, CLEAN_STRING);
		break;
	default:
		break;
	}
}

static void in_text(struct clean *c, uint32_t cp, const unsigned char *text, size_t len)
{
	if (cp < 0x20 || cp == 0x7f)
		text_control(c, cp);
	else if (cp >= 0x80 && cp < 0xa0)
		text_c1(c, cp);
	else
		add_character(c, text, len);
}

static void after_escape(struct clean *c, uint32_t cp, const unsigned char *text, size_t len)
{
	c->state = CLEAN_TEXT;
	if (cp >= 0x20 && cp < 0x30)
		c->state = CLEAN_ESCAPE_MORE;
	else if (cp == '[')
		begin_sequence(c, CLEAN_CONTROL);
	else if (cp < 0x7f && cp >= 0x30 && strchr("]PX^_", (int)cp))
		begin_sequence(c, CLEAN_STRING);
	else if (cp < 0x30 || cp >= 0x7f)
		in_text(c, cp, text, len);
}

static void after_intermediate(struct clean *c, uint32_t cp, const unsigned char *text, size_t len)
{
	if (cp >= 0x20 && cp < 0x30 && ++c->sequence_len < LIMIT_SEQUENCE)
		return;
	c->state = CLEAN_TEXT;
	if (cp < 0x20 || cp >= 0x7f)
		in_text(c, cp, text, len);
}

static void control_parameter(struct clean *c, uint32_t cp)
{
	if (cp < '0' || cp > '9')
		c->first_parameter = false;
	else if (c->first_parameter && c->parameter < 1000)
		c->parameter = c->parameter * 10 + (cp - '0');
}

/* Two control sequences are how some programs write a carriage return. */
static void control_final(struct clean *c, uint32_t cp)
{
	c->state = CLEAN_TEXT;
	if (cp == 'K' && c->parameter == 2)
		c->return_seen = true;
	else if (cp == 'G' && c->parameter <= 1)
		c->return_seen = true;
}

static void in_control(struct clean *c, uint32_t cp, const unsigned char *text, size_t len)
{
	if (cp >= 0x40 && cp < 0x7f) {
		control_final(c, cp);
	} else if (cp >= 0x20 && cp < 0x40 && ++c->sequence_len < LIMIT_SEQUENCE) {
		control_parameter(c, cp);
	} else {
		c->state = CLEAN_TEXT;
		in_text(c, cp, text, len);
	}
}

/* A control string ends with ST, BEL or CAN; a line break also ends it, so that a stray introducer in
 * binary output hides at most its own line. */
static void in_string(struct clean *c, uint32_t cp, const unsigned char *text, size_t len)
{
	if (cp == 0x1b) {
		c->state = CLEAN_STRING_ESCAPE;
	} else if (cp == 0x9c || cp == 0x07 || cp == 0x18 || cp == 0x1a) {
		c->state = CLEAN_TEXT;
	} else if (cp == '\n' || ++c->sequence_len >= LIMIT_STRING) {
		c->state = CLEAN_TEXT;
		in_text(c, cp, text, len);
	}
}

static void on_code_point(struct clean *c, uint32_t cp, const unsigned char *text, size_t len)
{
	switch ((enum clean_state)c->state) {
	case CLEAN_TEXT:
		in_text(c, cp, text, len);
		break;
	case CLEAN_ESCAPE:
		after_escape(c, cp, text, len);
		break;
	case CLEAN_ESCAPE_MORE:
		after_intermediate(c, cp, text, len);
		break;
	case CLEAN_CONTROL:
		in_control(c, cp, text, len);
		break;
	case CLEAN_STRING:
		in_string(c, cp, text, len);
		break;
	case CLEAN_STRING_ESCAPE:
		c->state = CLEAN_TEXT;
		if (cp != '\\')
			after_escape(c, cp, text, len);
		break;
	}
}

static void on_invalid(struct clean *c)
{
	on_code_point(c, 0xfffd, (const unsigned char *)replacement, sizeof(replacement) - 1);
}

/* One replacement per maximal valid prefix (Unicode 15, section 3.9); the byte that broke a sequence
 * begins a new one. */
static void feed_byte(struct clean *c, unsigned char byte)
{
	uint32_t cp;
	int n;

	c->pending[c->pending_len++] = byte;
	n = str_utf8_next(c->pending, c->pending_len, &cp);
	if (n < 0)
		return;
	if (n > 0) {
		c->pending_len = 0;
		on_code_point(c, cp, c->pending, (size_t)n);
		return;
	}
	n = (int)c->pending_len;
	c->pending_len = 0;
	on_invalid(c);
	if (n > 1)
		feed_byte(c, byte);
}

static size_t plain_run(const unsigned char *p, size_t len)
{
	size_t n = 0;

	while (n < len && ((p[n] >= 0x20 && p[n] < 0x7f) || p[n] == '\n'))
		n++;
	return n;
}

/* ASCII text and line breaks, in state CLEAN_TEXT: whole lines go out at once. */
static void feed_plain(struct clean *c, const unsigned char *p, size_t len)
{
	const unsigned char *last = memrchr(p, '\n', len);
	size_t room;

	if (*p != '\n')
		begin_text(c);
	if (last) {
		give_line(c);
		c->emit(c->ctx, (const char *)p, (size_t)(last + 1 - p));
		c->line_is_long = c->return_seen = false;
		len -= (size_t)(last + 1 - p);
		p = last + 1;
	}
	while (len) {
		room = LIMIT_LINE_HOLD - c->line.len;
		if (!room) {
			add_character(c, p++, 1);
			len--;
			continue;
		}
		if (room > len)
			room = len;
		if (buf_append(&c->line, p, room) < 0)
			c->emit(c->ctx, (const char *)p, room);
		p += room;
		len -= room;
	}
}

void clean_feed(struct clean *c, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;

	while (len) {
		size_t run = 0;

		if (c->state == CLEAN_TEXT && !c->pending_len)
			run = plain_run(p, len);
		if (run) {
			feed_plain(c, p, run);
		} else {
			feed_byte(c, *p);
			run = 1;
		}
		p += run;
		len -= run;
	}
}

void clean_finish(struct clean *c)
{
	if (c->pending_len) {
		c->pending_len = 0;
		on_invalid(c);
	}
	give_line(c);
	c->state = CLEAN_TEXT;
	c->return_seen = c->line_is_long = false;
}
