/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/net_nft.h - the host's own rules for the interfaces of sandboxes
 *
 * One nf_tables table of ours, owned by a netlink socket: the kernel removes it when that socket closes,
 * also when its process is killed, and lets nobody else change it. It does not touch, and does not depend
 * on, anybody else's rules.
 */
#pragma once

#include <stdbool.h>

#include "runtime/base/err.h"
#include "runtime/net_ranges.h"

#define NET_VETH_PREFIX "mcps" /* every host end of ours begins with it, whichever keeper's it is */

enum { NET_NFT_NAME_MAX = 32 };

/* net_nft_open() - make the table. What it says:
 *
 *   input        nothing from a sandbox is for the host, whichever of its addresses is meant
 *   forward      from a sandbox: not to another sandbox and not to a denied range; everything else.
 *                To a sandbox: answers only
 *   postrouting  what comes from a sandbox leaves with the host's address, whoever numbered it: one that was
 *                taken over may have its number from a keeper before us
 *
 * Needs: CAP_NET_ADMIN. Return: a descriptor to keep open, -1. */
int net_nft_open(const char *table, struct err *e);

/* net_nft_forward_refused() - whether somebody else's rules stop what is forwarded unless it is named
 * there, which ours cannot undo: a dropping policy, as of Docker or ufw, or firewalld.
 * Return: 1 with *ret_who set to the table's name, 0, -1. */
int net_nft_forward_refused(char ret_who[NET_NFT_NAME_MAX], struct err *e);
