/* SPDX-License-Identifier: Apache-2.0 */
/* tests/conformance/fixtures.h - the tools, prompts and resources the conformance suite looks for */
#pragma once

#include "mcp/registry.h"

extern const struct registry fixtures;
