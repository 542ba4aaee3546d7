/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/complete.h - values for an argument that is being typed */
#pragma once

struct completion;

/* complete_add() - one more value; beyond what a result may hold they are only counted. */
void complete_add(struct completion *to, const char *value);
