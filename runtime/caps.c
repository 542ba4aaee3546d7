/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/caps.c - capability sets
 *
 * Runs in the keeper (plans, its own cut) and at the start of the front and the helpers (drop all).
 * The only file that uses libcap, because libcap allocates and so must not run between a fork and
 * an exec: what a sandbox process gets is prepared here as plain kernel structures, and
 * runtime/enter.c puts it into force. Input is policy from our own tables, nothing else.
 */
#include "runtime/caps.h"

#include <stdbool.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>

#include "runtime/base/cleanup.h"

enum { CAP_DATA_WORDS = 2 };

int caps_plan_init(struct caps_plan *plan, uint64_t keep, struct err *e)
{
	int last = (int)cap_max_bits() - 1;

	if (last < CAP_SETFCAP || last >= 64)
		return err_set(e, ERR_HOST, "this kernel reports %d capabilities", last + 1);
	uint64_t known = UINT64_MAX >> (63 - last);
	if (keep & ~known)
		return err_set(e, ERR_CONFIG,
			       "capability set 0x%llx names capabilities this kernel does not have",
			       (unsigned long long)keep);

	memset(plan, 0, sizeof(*plan));
	plan->header.version = _LINUX_CAPABILITY_VERSION_3;
	plan->keep = keep;
	plan->last_cap = last;
	for (int i = 0; i < CAP_DATA_WORDS; i++) {
		plan->data[i].permitted = (uint32_t)(keep >> (32 * i));
		plan->data[i].effective = plan->data[i].permitted;
	}
	return 0;
}

static void cap_free_p(cap_t *caps)
{
	if (*caps)
		(void)cap_free(*caps);
}

/* What a root keeper still does after its start, and with which privilege. Everything else, raw
 * input and output, modules, raw sockets, device nodes, tracing of the kernel, the clock, is given
 * up for good. A new user namespace starts with full sets of its own, so the sandbox's builder is
 * not affected. */
static const cap_value_t keeper_caps[] = {
	CAP_CHOWN,	  /* label directories and pipes are given to the sandbox's root */
	CAP_DAC_OVERRIDE, /* ... and opened again afterwards */
	CAP_FOWNER,	  /* modes and xattrs of those */
	CAP_FSETID,	  /* ... without losing a set-group-id bit that was there */
	CAP_KILL,	  /* pidfd_send_signal() to pid 1, which has another uid */
	CAP_SETGID,	  /* gid_map with more than one line; helpers change id */
	CAP_SETUID,	  /* uid_map, the same */
	CAP_SETPCAP,	  /* helpers cut their bounding set */
	CAP_NET_BIND_SERVICE, /* slirp4netns, when it drops the others, asks for this one */
	CAP_NET_ADMIN,	  /* the outer end of a sandbox's link */
	CAP_SYS_PTRACE,	  /* setns() to pid 1 by pidfd: pid 1 is not dumpable */
	CAP_SYS_ADMIN,	  /* clone3 with namespaces, mounts, setns */
	CAP_SYS_RESOURCE, /* limits above the inherited hard ones, oom_score_adj below 0 */
};

static int apply_sets(const cap_value_t *keep, int count, struct err *e)
{
	_cleanup_(cap_free_p) cap_t current = cap_get_proc();
	_cleanup_(cap_free_p) cap_t wanted = cap_init();
	cap_value_t held[ARRAY_SIZE(keeper_caps)];
	int held_count = 0;

	if (!current || !wanted)
		return err_sys(e, "read the process's capabilities");
	for (int i = 0; i < count; i++) {
		cap_flag_value_t has = CAP_CLEAR;
		/* A container's root may lack some; one cannot keep what one does not have. */
		if (cap_get_flag(current, keep[i], CAP_PERMITTED, &has) == 0 && has == CAP_SET)
			held[held_count++] = keep[i];
	}
	if (held_count > 0 &&
	    (cap_set_flag(wanted, CAP_PERMITTED, held_count, held, CAP_SET) != 0 ||
	     cap_set_flag(wanted, CAP_EFFECTIVE, held_count, held, CAP_SET) != 0))
		return err_sys(e, "prepare the capability sets");
	if (cap_set_proc(wanted) != 0)
		return err_sys(e, "set the process's capabilities");
	return 0;
}

static bool is_listed(const cap_value_t *keep, int count, cap_value_t cap)
{
	for (int i = 0; i < count; i++) {
		if (keep[i] == cap)
			return true;
	}
	return false;
}

/* Needs CAP_SETPCAP while a capability is still in the bounding set. */
static int cut_bounding(const cap_value_t *keep, int count, struct err *e)
{
	for (cap_value_t cap = 0; cap < (cap_value_t)cap_max_bits(); cap++) {
		if (is_listed(keep, count, cap) || cap_get_bound(cap) != 1)
			continue;
		if (cap_drop_bound(cap) != 0)
			return err_sys(e, "drop capability %d from the bounding set", cap);
	}
	return 0;
}

int caps_cut_keeper(struct err *e)
{
	int count = (int)ARRAY_SIZE(keeper_caps);

	/* Ambient first: a capability leaves that set by itself only when it leaves permitted. */
	if (cap_reset_ambient() != 0)
		return err_sys(e, "clear the ambient capabilities");
	if (cut_bounding(keeper_caps, count, e) != 0)
		return -1;
	return apply_sets(keeper_caps, count, e);
}

static bool has_setpcap(void)
{
	_cleanup_(cap_free_p) cap_t current = cap_get_proc();
	cap_flag_value_t has = CAP_CLEAR;

	return current && cap_get_flag(current, CAP_SETPCAP, CAP_EFFECTIVE, &has) == 0 &&
	       has == CAP_SET;
}

int caps_drop_all(struct err *e)
{
	if (cap_reset_ambient() != 0)
		return err_sys(e, "clear the ambient capabilities");
	/* An id change from root to another id has already taken the effective set; then the
	 * bounding set cannot be cut any more, and no_new_privs below keeps it from mattering. */
	if (has_setpcap() && cut_bounding(NULL, 0, e) != 0)
		return -1;
	if (apply_sets(NULL, 0, e) != 0)
		return -1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return err_sys(e, "set no_new_privs");
	return 0;
}
