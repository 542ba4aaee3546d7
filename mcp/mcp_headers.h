/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/mcp_headers.h - the headers of MCP over HTTP, against the message they came with
 *
 * Proxies and filters look at headers, the server at the message: where the two differ, one of them
 * has been deceived, so such a request is refused.
 */
#pragma once

#include "mcp/http1.h"
#include "mcp/jsonrpc.h"
#include "mcp/registry.h"

struct buf;

/* headers_check_version() - MCP-Protocol-Version of a message with a modern envelope. */
enum rpc_failure headers_check_version(const struct http1_head *head, const struct rpc_message *m,
				       const char **ret_why);

/* headers_check_names() - Mcp-Method, Mcp-Name. */
enum rpc_failure headers_check_names(const struct http1_head *head, const struct rpc_message *m,
				     const char **ret_why);

/* headers_check_parameters() - Mcp-Param-<name> of each argument that the tool marks so: there with the
 * argument's value, and missing without one. */
enum rpc_failure headers_check_parameters(const struct http1_head *head, const struct rpc_message *m,
					  const struct tool *tool, const char **ret_why);

/* headers_check_legacy() - MCP-Protocol-Version of any other message: may be missing. */
enum rpc_failure headers_check_legacy(const struct http1_head *head, const char **ret_why);

/* headers_value_is() - does a header's value, as text or as "=?base64?TEXT?=", say exactly this? */
bool headers_value_is(struct http_text value, const char *text);

/* headers_has_type() - is this media type among the value's items? Parameters do not count. */
bool headers_has_type(struct http_text value, const char *type);

/* headers_write() - name and value of each, one line each; values of what may be a secret left out. */
void headers_write(const struct http1_head *head, struct buf *b);
