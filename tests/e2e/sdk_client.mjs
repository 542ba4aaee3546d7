// SPDX-License-Identifier: Apache-2.0
// The official TypeScript SDK against a server: node sdk_client.mjs PACKAGES v1|legacy|auto|modern COMMAND...
// or a URL and a token instead of the command.
// Prints one JSON object with what it saw.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";

const [packages, era, command, ...args] = process.argv.slice(2);
const require = createRequire(pathToFileURL(packages + "/x.js"));
const load = async (name) => import(pathToFileURL(require.resolve(name)));

async function makeClient() {
	const info = { name: "mcp-sandbox-tests", version: "1" };
	const server = { command, args, env: process.env, stderr: "inherit" };
	const isUrl = command.startsWith("http");
	const http = [new URL(isUrl ? command : "http://x"),
		{ requestInit: { headers: { Authorization: "Bearer " + args[0] } } }];
	if (era === "v1") {
		const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
		const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");
		const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");
		return [new Client(info), isUrl ? new StreamableHTTPClientTransport(...http) : new StdioClientTransport(server)];
	}
	const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");
	const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");
	const mode = era === "modern" ? { pin: "2026-07-28" } : era;
	return [new Client(info, { versionNegotiation: { mode } }),
		isUrl ? new StreamableHTTPClientTransport(...http) : new StdioClientTransport(server)];
}

const [client, transport] = await makeClient();
await client.connect(transport);
const run = (text, options) => {
	const params = { name: "run_command", arguments: { sandbox: "sdk " + era, command: text } };
	return era === "v1" ? client.callTool(params, undefined, options) : client.callTool(params, options);
};
const seen = { instructions: client.getInstructions() };
seen.tools = (await client.listTools()).tools.map((t) => t.name);
seen.first = (await run("echo hello; exit 3")).content[0].text;
seen.parallel = (await Promise.all([1, 2, 3].map((n) => run(`sleep 0.3; echo ${n}`)))).map((r) => r.content[0].text);
const abort = new AbortController();
setTimeout(() => abort.abort(), 500);
seen.aborted = await run("sleep 7801", { signal: abort.signal }).then(() => "answered", (e) => String(e.name));
seen.progress = [];
await run("sleep 6", { onprogress: (p) => seen.progress.push(p.message) });
await run("printf 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==' | base64 -d > dot.png");
const image = await client.callTool({ name: "present_file", arguments: { sandbox: "sdk " + era, path: "dot.png" } });
seen.image = image.content.filter((c) => c.type === "image").map((c) => c.mimeType);
// A file that is no picture: a link, over HTTP to the server and without a token, else to where it was saved.
const sum = (await run("head -c 200000 /dev/urandom > blob.bin; sha256sum < blob.bin")).content[0].text.split("\n")[1].slice(0, 64);
const file = await client.callTool({ name: "present_file", arguments: { sandbox: "sdk " + era, path: "blob.bin" } });
const link = file.content.find((c) => c.type === "resource_link");
const bytes = link.uri.startsWith("file:") ? await readFile(fileURLToPath(link.uri)) :
	Buffer.from(await (await fetch(link.uri)).arrayBuffer());
seen.link = [link.uri.split(":")[0], link.name, link.size, createHash("sha256").update(bytes).digest("hex") === sum];
seen.refused = await client.callTool({ name: "run_command", arguments: {} }).then((r) => r.isError, (e) => String(e));
seen.unknown = await client.callTool({ name: "nope", arguments: {} }).then(() => "answered", (e) => e.code);
await client.close();
console.log(JSON.stringify(seen));
process.exit(0);
