/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/protocol.h - the constants of MCP that more than one file needs */
#pragma once

#define PROTOCOL_MODERN "2026-07-28"
#define PROTOCOL_LEGACY_NEWEST "2025-11-25"

/* protocol_legacy() - one of the versions that begin with initialize, as static text; NULL: none we speak. */
const char *protocol_legacy(const char *version);

#define META_PREFIX "io.modelcontextprotocol/"

/* What we say we are. */
#define SERVER_INFO "{\"name\":\"mcp-linux-sandbox\",\"version\":\"" MCP_SANDBOX_VERSION "\"}"
#define SERVER_INFO_TITLED                                             \
	"{\"name\":\"mcp-linux-sandbox\",\"title\":\"Linux sandbox\"," \
	"\"version\":\"" MCP_SANDBOX_VERSION "\"}"
#define META_SERVER_INFO "\"" META_PREFIX "serverInfo\":" SERVER_INFO_TITLED
