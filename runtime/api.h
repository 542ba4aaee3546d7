/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/api.h - the only door to the keeper: requests and results as C structs
 *
 * SOCK_SEQPACKET. Every message starts with struct api_header; strings are NUL-terminated inside their
 * fixed field; the keeper re-validates each field and drops a peer that breaks a rule or does not read.
 * Descriptors flow from the keeper to its peers only: the keeper receives without a control buffer.
 * Peers: the front (inherited socket) and control clients (run/<pid>.sock, 0600, same uid or root).
 */
#pragma once

#include <limits.h>
#include <stdint.h>

#include "runtime/base/err.h"
#include "runtime/spec.h"

enum {
	API_VERSION = 2,
	API_MSG_MAX = 64 * 1024,          /* one message, payload included */
	API_STAGE_MAX = 32 * 1024,        /* bytes of a command staged per message */
	API_COMMAND_MAX = 1024 * 1024,    /* one command */
	API_CWD_MAX = 4096,
	API_PATH_MAX = 4096,
	API_REQUESTS_MAX = 64,            /* in flight per peer */
	API_INFO_MAX = 64,                /* sandboxes in one info reply */
	API_HTTP_TEXT_MAX = 4096 + 1,     /* one setting of HTTP */
	API_TOKENS_MAX = 64,
	API_TOKEN_HASH_LEN = 32,
	API_BLOCKED_MAX = 3,         /* destinations named in one result */
	API_BLOCKED_TEXT_MAX = 288,  /* "name:port (reason)" */
	API_ARG_INLINE_MAX = 128 * 1024 - 1, /* longest argument execve takes (MAX_ARG_STRLEN) */
};

enum api_op {
	/* requests */
	API_STAGE = 1, /* append command bytes for the EXEC with the same id */
	API_EXEC,      /* run a command, creating the sandbox when needed */
	API_CANCEL,    /* kill the command of request id and answer nothing more for it */
	API_INFO,      /* the owner's sandboxes */
	API_PRESENT,   /* open (HTTP) or copy (stdio) a file of a workspace */
	API_STOP,      /* end the sandbox of a key; files and layer stay */
	API_RESET,     /* stop, then throw the layer away */
	API_REMOVE,    /* stop, then throw layer and (flag) workspace away */
	API_SIGNAL,    /* control clients: TERM or INT for a running command */
	API_PEEK,      /* how much has the EXEC with the same id written? answered by API_PROGRESS */
	API_TOKENS_READ, /* control clients: the token file has changed; DONE when it is in force */
	API_SERVING,   /* the front of serve has taken what API_TLS and API_LISTEN brought; unanswered */
	/* from the keeper */
	API_HELLO = 64,
	API_STARTED,   /* control EXEC: running; carries stdin/stdout/stderr descriptors */
	API_EXEC_DONE, /* carries the log descriptor when there was output */
	API_INFO_DONE,
	API_PRESENT_DONE,
	API_DONE,      /* plain success of stop, reset, remove */
	API_FAILED,
	API_TOKENS,    /* to the front, without a request: who may come in from now on */
	API_PROGRESS,  /* not final: the EXEC of this id goes on; nothing when there is no such EXEC */
	/* to the front of serve, id 0: once after API_HELLO, in this order, then as often as marked */
	API_HTTP,      /* settings of HTTP */
	API_TLS,       /* carries certificate chain and private key; without descriptors: no TLS. Again on
			* SIGHUP */
	API_LISTEN,    /* carries the listening sockets; the front serves when it has them */
};

struct api_header {
	uint16_t version;
	uint16_t op;
	uint32_t size; /* of the whole message */
	uint64_t id;   /* chosen by the requester, unique among its requests in flight; never 0 */
};

struct api_project { /* a folder of the operator's in every sandbox */
	char path[PROJECT_TARGET_MAX]; /* inside */
	uint32_t writable;
};

/* First message to every peer. */
struct api_hello {
	struct api_header h;
	char profile[16];
	char image[NAME_MAX_LEN];
	struct limits limits;
	uint32_t not_enforced; /* CGROUP_* bits and LIMIT_DISK asked for but missing (best-effort) */
	uint32_t net;
	uint32_t max_sandboxes;
	uint32_t as_user; /* commands run as an ordinary user unless API_EXEC_ROOT asks otherwise */
	uint32_t serves_links; /* files are handed over as links, not as copies */
	uint32_t project_count;
	struct api_project project[PROJECT_MAX];
	uint64_t timeout_default_ms, timeout_max_ms, idle_ms;
	uint64_t image_max_bytes, output_max_bytes;
	char owner[OWNER_ID_LEN + 1];
	char net_allow[NET_TEXT_MAX]; /* what the allowlist lets through, as it was set */
	uint32_t owner_net_count;     /* owners for whom net and net_allow are others */
	struct owner_net owner_net[OWNER_NET_MAX];
	struct err start_failure; /* code ERR_NONE, or why no sandbox can be made: answer it to everything */
};

enum {
	API_HTTP_BEHIND_PROXY = 1, /* believe the last X-Forwarded-For hop of a loopback peer */
	API_HTTP_NO_TOKEN = 2,     /* requests need no token (loopback only) */
};

/* Texts are as configured and checked, "" when unset. */
struct api_http {
	struct api_header h;
	uint32_t flags;
	uint32_t port;         /* that was bound */
	uint64_t link_ttl_ms;
	char path[API_HTTP_TEXT_MAX];
	char public_base[API_HTTP_TEXT_MAX];
	char allowed_hosts[API_HTTP_TEXT_MAX];
	char sign_key[API_HTTP_TEXT_MAX]; /* a secret */
};

struct api_serving {
	struct api_header h;
	uint32_t refused; /* 1: it does not, the files are no good (it has logged why) */
};

struct api_stage {
	struct api_header h;
	uint32_t len;
	char bytes[]; /* len bytes */
};

struct api_token {
	char owner[OWNER_ID_LEN + 1];
	uint8_t hash[API_TOKEN_HASH_LEN]; /* SHA-256 of the token */
};

struct api_tokens {
	struct api_header h;
	uint32_t count, reserved;
	uint8_t session_key[API_TOKEN_HASH_LEN]; /* a secret: signs session ids */
	struct api_token rows[]; /* count <= API_TOKENS_MAX */
};

enum api_exec_mode {
	API_EXEC_SHELL,  /* bash -lc (or -c by profile) of the command bytes */
	API_EXEC_ARGV,   /* command bytes are NUL-separated arguments */
};

enum {
	API_EXEC_STREAM = 1, /* control clients: three raw pipes instead of a log */
	API_EXEC_ROOT = 2,   /* as the sandbox's root, also where commands run as a user */
};

struct api_exec {
	struct api_header h;
	char owner[OWNER_ID_LEN + 1];
	char key[KEY_MAX];
	uint32_t mode, flags;
	uint64_t timeout_ms;   /* 0 = default; clamped to the ceiling by the keeper */
	uint32_t staged;       /* bytes sent before with API_STAGE; the command is those, then bytes[] */
	uint32_t len;
	char cwd[API_CWD_MAX]; /* "" = /workspace */
	char bytes[];
};

struct api_cancel {
	struct api_header h; /* id of the request to cancel */
};

struct api_peek {
	struct api_header h; /* id of the running command */
};

struct api_progress {
	struct api_header h;
	uint64_t total_bytes; /* written by the command so far */
};

struct api_signal {
	struct api_header h; /* id of the running command */
	int32_t signal;      /* SIGINT or SIGTERM only */
};

struct api_key_request { /* STOP, RESET, REMOVE, INFO (key ignored) */
	struct api_header h;
	char owner[OWNER_ID_LEN + 1];
	char key[KEY_MAX];
	uint32_t workspace; /* REMOVE: also the workspace */
};

struct api_present {
	struct api_header h;
	char owner[OWNER_ID_LEN + 1];
	char key[KEY_MAX];
	uint32_t copy; /* 1: copy into the present directory (stdio) */
	char path[API_PATH_MAX]; /* relative to /workspace */
};

struct api_started {
	struct api_header h;
	uint32_t created;
};

enum {
	API_CREATED = 1,          /* this call started the sandbox */
	API_TIMED_OUT = 2,
	API_OUT_OF_MEMORY = 4,    /* kernel counter, not a guess from 137 */
	API_PIDS_REFUSED = 8,
	API_OUTPUT_CAPPED = 16,   /* log_bytes < total_bytes */
	API_TIMEOUT_CLAMPED = 32, /* the caller asked for more than the ceiling */
	API_RECYCLED = 64,        /* the timeout or pid 1's end took the whole sandbox */
	API_LEAF_SHARED = 128,    /* every leaf held background work: a timeout kills theirs too */
	API_PROJECT_PARTIAL = 256, /* the scan of the folders reached a bound: there may be more */
};

struct api_exec_done {
	struct api_header h;
	int32_t exit_code;  /* 0..255; 128+n for signal n; 124 on timeout */
	uint32_t flags;
	uint32_t replaced;  /* LAUNCH_REPLACED_* of a create in this call */
	uint32_t left_running; /* processes still in the command's leaf */
	uint32_t not_enforced; /* CGROUP_* */
	uint32_t pids_limit;
	uint32_t project_unreadable, project_sockets; /* in the folders; in one result of each sandbox */
	uint64_t timeout_ms;
	uint64_t memory_limit_bytes;
	uint64_t throttled_usec, duration_usec;
	uint64_t total_bytes; /* written by the command while we watched */
	uint64_t log_bytes;   /* in the attached descriptor from offset 0 */
	uint64_t tail_bytes;  /* when capped: in the second attached descriptor, the last bytes, a ring */
	uint64_t tail_start;  /* offset of the oldest byte in that ring */
	uint64_t log_number;  /* /output/<n>.log; 0 = no output */
	uint32_t blocked_count; /* destinations refused to the sandbox meanwhile; the first ones: */
	char blocked[API_BLOCKED_MAX][API_BLOCKED_TEXT_MAX]; /* printable ASCII */
	uint32_t lost;        /* earlier commands of this label that ended with a server */
	uint32_t unanswered;  /* earlier ones that ran to their end, but whose client was cut off */
};

struct api_info_row {
	char key[KEY_MAX];
	uint32_t state; /* enum api_state */
	uint32_t processes, commands;
	uint32_t reserved;
	uint64_t age_ms, idle_for_ms, memory_bytes;
};

enum api_state { API_CREATING, API_RUNNING, API_IDLE, API_STOPPING };

struct api_info_done {
	struct api_header h;
	uint32_t count, max_sandboxes;
	uint32_t others, reserved; /* others: how many of max_sandboxes other owners have */
	struct api_info_row rows[]; /* count <= API_INFO_MAX */
};

struct api_present_done { /* carries the file's descriptor, read-only, unless copied */
	struct api_header h;
	uint64_t size;
	char path[PATH_MAX]; /* where the copy is; "" when not copied */
};

struct api_done {
	struct api_header h;
	uint32_t was_running;
};

struct api_failed {
	struct api_header h;
	struct err error;
};
