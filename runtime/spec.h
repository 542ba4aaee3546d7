/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/spec.h - what a sandbox is: profiles, limits, and the settings they come from
 *
 * The profile table is policy: nothing a client sends can widen it. struct settings is filled once
 * by the option table (mcp/config.c) before the keeper starts and never changes afterwards.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEY_MAX = 32, OWNER_ID_LEN = 8, NAME_MAX_LEN = 64 };

enum { PROJECT_MAX = 4, PROJECT_TARGET_MAX = 64 };

#define OWNER_DEFAULT "00000000" /* MCP_TOKEN's owner, and stdio */

enum net_mode { NET_NONE, NET_ALLOWLIST, NET_INTERNET };

enum { /* bytes of the network settings */
	NET_TEXT_MAX = 4096,
	NET_APT_HOSTS_MAX = 1024,
	NET_SERVERS_TEXT_MAX = 256,
	NET_UPSTREAM_MAX = 264,
};

/* Capability set of every process in a sandbox: CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID
 * SETFCAP, what apt and dpkg need (measured), plus KILL for daemons under another inside id. */
#define SANDBOX_CAPS UINT64_C(0x800000fb)

/* Controllers: what a sandbox was given, asked for, or is missing. */
enum { CGROUP_MEMORY = 1, CGROUP_PIDS = 2, CGROUP_CPU = 4, CGROUP_ALL = 7 };
/* Beside them in what a client is told about limits that are missing; no cgroup has it. */
enum { LIMIT_DISK = 8 };

/* Mount points that something inside had replaced and that were renamed aside (bit per name). */
enum { LAUNCH_REPLACED_PROC = 1, LAUNCH_REPLACED_DEV = 2, LAUNCH_REPLACED_SYS = 4,
       LAUNCH_REPLACED_TMP = 8, LAUNCH_REPLACED_RUN = 16, LAUNCH_REPLACED_WORKSPACE = 32,
       LAUNCH_REPLACED_OUTPUT = 64, LAUNCH_REPLACED_MNT = 128, LAUNCH_REPLACED_HOME = 256 };

struct limits {
	uint64_t memory_bytes; /* memory.max; swap is 0 */
	uint32_t cpu_milli;    /* thousandths of a processor: cpu.max */
	uint32_t pids;         /* pids.max */
	uint64_t disk_bytes;
};

struct profile {
	const char *name;
	struct limits limits;
	uint32_t max_sandboxes;
	uint32_t timeout_default_s;
	enum net_mode net;
	bool layer_kept;        /* false: the root file system is read-only, nothing persists */
	uint64_t workspace_tmpfs_bytes; /* 0: a directory per label, kept */
	uint64_t tmp_bytes, shm_bytes, run_bytes;
	bool tmp_noexec;
	uint64_t caps;
	bool login_shell;       /* bash -lc, else bash -c */
};

enum profile_id { PROFILE_CHAT, PROFILE_CODE, PROFILE_SAFE_SHELL, PROFILE_COUNT };

extern const struct profile profile_table[PROFILE_COUNT];

/* profile_find() - Return: the row, or NULL. */
const struct profile *profile_find(const char *name);

/* A folder of the operator's, as --mount names it; no request ever does. */
struct project_spec {
	bool writable;
	char host[PATH_MAX];
	char target[PROJECT_TARGET_MAX]; /* /workspace, or /mnt/NAME */
};

enum { OWNER_NET_MAX = 32, OWNER_ALLOW_MAX = 512 };

/* An owner whose sandboxes reach less than the server's (net_owner.h). */
struct owner_net {
	char owner[OWNER_ID_LEN + 1];
	uint32_t net;       /* enum net_mode */
	uint32_t has_allow; /* a list of its own, else the server's */
	char allow[OWNER_ALLOW_MAX];
};

/* What one owner's sandboxes reach. */
struct net_grant {
	enum net_mode mode;
	const char *allow; /* of the mode allowlist */
};

enum { TRUST_MAX = 64 };

/* Further certificate authorities for sandboxes (SANDBOX_EXTRA_CA): checked certificates in PEM, one after
 * the other, in a sealed memory file. */
struct trust {
	int fd; /* -1: none */
	uint32_t count;
	size_t end[TRUST_MAX]; /* where each ends */
	uint64_t id;           /* of the content; 0: none */
};

struct settings {
	const struct profile *profile;
	struct limits limits;        /* the profile's, with the operator's overrides */
	bool limits_best_effort;     /* SANDBOX_LIMITS=best-effort */
	bool disk_wanted;            /* SANDBOX_DISK was given; nothing holds a running sandbox to it */
	enum net_mode net;
	uint32_t max_sandboxes;
	uint64_t idle_ms;            /* SANDBOX_IDLE */
	uint64_t timeout_default_ms;
	uint64_t timeout_max_ms;     /* SANDBOX_MAX_TIMEOUT */
	uint64_t min_free_bytes;     /* SANDBOX_MIN_FREE */
	uint64_t output_max_bytes;   /* SANDBOX_OUTPUT_MAX, per command */
	uint64_t image_max_bytes;    /* SANDBOX_IMAGE_MAX: largest picture sent inline */
	char image[NAME_MAX_LEN];    /* SANDBOX_IMAGE */
	char home[PATH_MAX];         /* SANDBOX_HOME */
	char cgroup[PATH_MAX];       /* SANDBOX_CGROUP, "" = find */
	char subid[64];              /* SANDBOX_SUBID "first:count", "" = find */
	char present_dir[PATH_MAX];  /* SANDBOX_PRESENT_DIR, "" = default */
	char owner[OWNER_ID_LEN + 1];
	char config_file[PATH_MAX];  /* the env file that was read, "" = none */
	struct project_spec projects[PROJECT_MAX];
	uint32_t project_count;
	char net_allow[NET_TEXT_MAX];           /* SANDBOX_NET_ALLOW */
	char net_lists[NET_TEXT_MAX];           /* SANDBOX_NET_LISTS */
	char net_apt_hosts[NET_APT_HOSTS_MAX];  /* what "apt" in it stands for */
	char net_dns[NET_SERVERS_TEXT_MAX];     /* SANDBOX_DNS, "" = the host's */
	char net_upstream[NET_UPSTREAM_MAX];    /* SANDBOX_UPSTREAM_PROXY as host:port, "" = none */
	struct owner_net owner_net[OWNER_NET_MAX]; /* SANDBOX_OWNER_NET */
	uint32_t owner_net_count;
	const struct trust *trust;              /* NULL: none, or not read yet */
	/* HTTP and GC settings are in the option table too; the verbs that use them read them
	 * through config_text(). */
};

/* net_grant_of() - the server's policy, or the owner's own. Return: valid as long as the settings. */
struct net_grant net_grant_of(const struct settings *s, const char *owner);

/* owner_net_find() - Return: the owner's row of count, NULL. */
const struct owner_net *owner_net_find(const struct owner_net *rows, uint32_t count, const char *owner);
