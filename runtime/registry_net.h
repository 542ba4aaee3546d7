/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/registry_net.h - the uplinks of running sandboxes */
#pragma once

#include "runtime/registry.h"

/* registry_net_start() - choose the uplink and follow the host's addresses. Return: 0, -1. */
int registry_net_start(struct registry *reg, enum net_mode mode, bool root, struct err *e);
void registry_net_stop(struct registry *reg);

/* registry_net_attach() - the sandbox's process 1 runs: what more its network needs.
 * Return: 1 nothing, 0 sandbox_connected() or registry_stop() will be called, -1. */
int registry_net_attach(struct sandbox *sb, struct err *e);

/* registry_net_adopt() - the same for a sandbox taken over from a keeper that is gone: what is served from
 * outside is made again. Its interface, addresses and routes have stayed; kind is the enum net_uplink they
 * were made for. Return: 0, -1. */
int registry_net_adopt(struct sandbox *sb, uint32_t kind, struct err *e);

/* registry_net_detach() - let go of everything that serves it. Return: whether all of that is gone. */
bool registry_net_detach(struct sandbox *sb);
