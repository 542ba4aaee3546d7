/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/net.h - the inside of a sandbox's own network namespace
 *
 * The keeper turns a policy into netlink messages with libnl-route; the child sends those bytes from
 * inside its new namespace with plain system calls. So no library runs between clone and exec, and
 * what is sent can be unit-tested as bytes.
 */
#pragma once

#include <stddef.h>

#include "runtime/base/err.h"
#include "runtime/spec.h"

enum { NET_PLAN_BYTES_MAX = 4096, NET_PLAN_MESSAGES_MAX = 64 };

struct net_plan {
	size_t len;
	size_t message_len[NET_PLAN_MESSAGES_MAX];
	unsigned int count; /* message i carries sequence number i + 1 and asks for an answer */
	_Alignas(8) unsigned char bytes[NET_PLAN_BYTES_MAX];
};

/* net_plan_init() - the messages for a mode. NET_NONE: the loopback interface comes up, there is
 * nothing else. Return: 0, -1. */
int net_plan_init(struct net_plan *plan, enum net_mode mode, struct err *e);

/* net_apply() - in the child: send the plan, then set the namespace's own sysctls through a descriptor
 * of a writable /proc/sys (unprivileged ping, unprivileged low ports).
 * Needs: CAP_NET_ADMIN over the namespace. Must not allocate. Return: 0, -1 with errno. */
int net_apply(const struct net_plan *plan, int proc_sys_fd);
