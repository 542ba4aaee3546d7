/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/protocol.c - the versions of MCP that begin with initialize */
#include "mcp/protocol.h"

#include <stddef.h>
#include <string.h>

const char *protocol_legacy(const char *version)
{
	static const char *const versions[] = { PROTOCOL_LEGACY_NEWEST, "2025-06-18", "2025-03-26",
						"2024-11-05" };

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		if (!strcmp(version, versions[i]))
			return versions[i];
	return NULL;
}
