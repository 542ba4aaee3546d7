/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/doctor_net.c - the way out that sandboxes would get on this host
 *
 * Runs as the user who asks, in a child. The uplink is chosen as a keeper chooses it; what that makes
 * (as root: a table of packet rules) goes with the child.
 */
#include <unistd.h>

#include "runtime/doctor_try.h"
#include "runtime/net_uplink.h"

static void say(const struct uplink *u, enum doctor_status status, struct doctor_row *row)
{
	const char *name = net_uplink_name(u->kind);

	if (u->why_not[0] == '\0') {
		doctor_say(row, DOCTOR_OK, "SANDBOX_NET=internet goes out by %s", name);
		return;
	}
	doctor_say(row, status, "SANDBOX_NET=internet goes out by %s: %s", name, u->why_not);
	doctor_fix(row, "%s", u->remedy);
}

void doctor_try_network(const struct doctor_host *host, struct doctor_row *row)
{
	bool wanted = host->settings->net == NET_INTERNET;
	struct err e = { 0 };
	static struct uplink u;

	if (uplink_open(&u, NET_INTERNET, geteuid() == 0, &e) < 0) {
		doctor_say_error(row, wanted ? DOCTOR_DEGRADED : DOCTOR_OK, &e);
		return;
	}
	say(&u, wanted ? DOCTOR_DEGRADED : DOCTOR_OK, row);
	uplink_close(&u);
}
