// SPDX-License-Identifier: Apache-2.0
// tests/bench/node_exec.mjs ARGV-AS-JSON - the usual way to build such a server: Node, and a container tool per command
//
// Answers tools/call over HTTP by running ARGV with the command appended, and nothing else of MCP: what a real
// server adds would only make it slower. Prints its port; ends with its standard input.
import { createServer } from "node:http";
import { execFile } from "node:child_process";

const [program, ...args] = JSON.parse(process.argv[2]);

const server = createServer((request, response) => {
	let body = "";
	request.on("data", (data) => { body += data; });
	request.on("end", () => {
		const { id, params } = JSON.parse(body);
		execFile(program, [...args, params.arguments.command], (error, stdout, stderr) => {
			const text = error ? `${error.message}\n${stderr}` : stdout;
			const result = { content: [{ type: "text", text }], isError: error !== null };
			const answer = JSON.stringify({ jsonrpc: "2.0", id, result });
			response.writeHead(200, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(answer) });
			response.end(answer);
		});
	});
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("end", () => process.exit(0)).resume();
