/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/present.h - hand a file of a workspace out
 *
 * The keeper opens no file a sandbox wrote. A worker without privilege opens it beneath the workspace
 * and passes the descriptor; another, as the user, copies its bytes into the user's folder.
 */
#pragma once

#include "runtime/api.h"
#include "runtime/peer.h"
#include "runtime/registry.h"

/* present_begin() - serve an API_PRESENT whose fields were validated. Return: 0, -1 to drop the peer. */
int present_begin(struct registry *reg, struct peer *p, const struct api_present *msg, struct err *e);
