/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/bounds.h - every bound of the front in one place
 *
 * Whatever a client or a command sends, the front's memory stays below a figure that can be added
 * up from here.
 */
#pragma once

#define LIMIT_DOWNLOAD (UINT64_C(64) << 30) /* of a file behind a link; a sparse one costs a sandbox nothing */

enum {
	/* One message. A command of API_COMMAND_MAX bytes may be written with six bytes for each. */
	LIMIT_MESSAGE = 7 * 1024 * 1024,
	LIMIT_JSON_DEPTH = 64,
	LIMIT_JSON_NODES = 10000, /* a tree node costs 64 bytes, a "0," in the text two */
	LIMIT_JSON_NUMBER = 40, /* characters; cJSON cuts a number at 63 and goes on with its rest */
	LIMIT_ID = 1024,          /* bytes of a request id or progress token as written */

	LIMIT_CALLS = 32, /* tool calls at once; below API_REQUESTS_MAX */

	LIMIT_CALLS_OWNER = 16, /* of them of one owner, where several share a server */
	LIMIT_LISTENERS = 512, /* clients told what changes, at once */
	LIMIT_LISTENERS_OWNER = 64,
	HTTP_COMMENT_EVERY_MS = 10 * 1000, /* on an event stream, so that nobody on the way calls it idle */

	/* Above this much unread output the client is not listened to any more. */
	LIMIT_OUT_HIGH = 1024 * 1024,
	LIMIT_OUT_MAX = 256 * 1024 * 1024,

	LIMIT_OUTPUT_ALL = 20000, /* characters (code points) of output shown whole ... */
	LIMIT_OUTPUT_HEAD = 10000, /* ... or these first ones ... */
	LIMIT_OUTPUT_TAIL = 5000,  /* ... and these last ones */
	LIMIT_SLICE = 128 * 1024,  /* bytes of a log or file handled before other work gets its turn */

	LIMIT_LINE_HOLD = 16 * 1024, /* longest line a carriage return still replaces */
	LIMIT_SEQUENCE = 256,        /* longest control sequence */
	LIMIT_STRING = 1024 * 1024,  /* longest control string (OSC, DCS, APC, PM, SOS) */

	/* HTTP. A head is bounded by mcp/http1.h. */
	HTTP_CONNECTIONS_MAX = 1024,
	HTTP_BODY_MAX = 8 * 1024 * 1024,
	HTTP_BODIES_MAX = 64 * 1024 * 1024, /* bodies of all connections together */
	HTTP_SKIP_MAX = 64 * 1024,	    /* of a body nobody wants, read to keep its connection */
	HTTP_QUEUE_MAX = 64 * 1024 * 1024,  /* of an answer that the client has not taken yet */
	HTTP_READ_SIZE = 16 * 1024,
	HTTP_FILE_SLICE = 1024 * 1024, /* of a file sent before other connections get their turn */
	HTTP_HEAD_TIMEOUT_MS = 10 * 1000, /* from accept (TLS included) or first byte to the end of a head */
	HTTP_KEEP_ALIVE_MS = 75 * 1000,
	HTTP_BODY_TIMEOUT_MS = 30 * 1000, /* for each HTTP_BODY_STEP of a body */
	HTTP_BODY_STEP = 64 * 1024,
	HTTP_SEND_TIMEOUT_MS = 120 * 1000, /* without the client taking a byte of an answer */
	HTTP_LINGER_MS = 5 * 1000, /* and HTTP_LINGER_MAX bytes: until a client has seen why we close */
	HTTP_LINGER_MAX = 16 * 1024 * 1024,
	HTTP_LISTENERS_MAX = 4,

	LIMIT_DOWNLOADS = 16, /* files being opened for links at once; with LIMIT_CALLS below API_REQUESTS_MAX */

	ASK_TIMEOUT_MS = 600 * 1000, /* a person may be at lunch; what is not answered then is over */
	ASK_STATE_S = 3600,          /* for which a client may keep our signed state */

	LIMIT_CAPTION = 1024,
	PROGRESS_EVERY_MS = 5000,
	EOF_GRACE_MS = 500, /* running calls may still be answered this long after the end of input */
};
