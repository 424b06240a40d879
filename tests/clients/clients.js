/*
 * clients.js - real MCP clients from npm, each behind the same few verbs, so that clients.test.js can send all of them on the same way.
 *
 * `clients` lists them; `connect(stack)` opens one: { list(), call(name, arguments, { onprogress, signal, timeout }), close() }. list gives the
 * tools' descriptions, call a tool's result; it rejects when it was cancelled. What differs between them is data, and is tested as it is:
 *
 *   progress  does it show what a run prints before it ends?
 *   cancel    what becomes of a run whose call is given up, as its row's verdict says: CX, or OK when it goes on to its end
 *   how       how the call is given up, in words for the test's name
 *
 * The Inspector and mcporter are programs that make one call and end; giving up is ending them. In the modern era the server sees its
 * connection close, which is the protocol's cancel; in the legacy era that means nothing, and neither program says more on its way out
 * (nor does mcporter when its --timeout is over).
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createMCPClient } from '@ai-sdk/mcp';
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const packages = path.join(import.meta.dirname, 'node_modules');
const INFO = { name: 'sallyport-test', version: '1' };

/* A program that makes one call: its standard output as JSON. A signal ends it with SIGTERM. */
function program(args, { signal, env } = {}) {
	return new Promise((resolve, reject) => {
		const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
		let stdout = '', stderr = '';
		child.stdout.on('data', (data) => (stdout += data));
		child.stderr.on('data', (data) => (stderr += data));
		signal?.addEventListener('abort', () => child.kill('SIGTERM'));
		child.once('close', (code, killed) => {
			try {
				assert.equal(code, 0, `ended with ${code ?? killed}\n${stdout}${stderr}`);
				resolve(JSON.parse(stdout));
			} catch (error) {
				reject(error);
			}
		});
	});
}

/* The verbs of both SDKs' clients are the same but for one argument. */
function sdk(client, call, close = () => client.close()) {
	return { list: async () => (await client.listTools()).tools, call: (name, args, options) => call({ name, arguments: args }, options), close };
}

async function sdkV1(transport) {
	const client = new ClientV1(INFO);
	await client.connect(transport);
	return { client, verbs: (close) => sdk(client, (params, options) => client.callTool(params, undefined, options), close) };
}

async function v1(stack) {
	const transport = new TransportV1(new URL(stack.url), { requestInit: { headers: stack.headers } });
	const { client, verbs } = await sdkV1(transport);
	assert.equal(transport.protocolVersion, '2025-11-25');
	assert.ok(transport.sessionId);
	await client.ping();
	return verbs(async () => {
		await transport.terminateSession();
		await client.close();
	});
}

const v2 = (mode, era) => async (stack) => {
	const client = new ClientV2(INFO, { versionNegotiation: { mode } });
	await client.connect(new TransportV2(new URL(stack.url), { requestInit: { headers: stack.headers } }));
	assert.equal(client.getProtocolEra(), era);
	return sdk(client, (params, options) => client.callTool(params, options));
};

/* A bridge from stdio to HTTP for desktop clients that cannot do HTTP; SDK v1 drives it as they do. */
async function mcpRemote(stack) {
	const { verbs } = await sdkV1(new StdioClientTransport({
		command: process.execPath,
		args: [
			path.join(packages, 'mcp-remote/dist/proxy.js'), stack.url, '--allow-http', '--transport', 'http-only', '--header', `Authorization: Bearer ${stack.token}`,
		],
		env: { PATH: process.env.PATH, HOME: stack.home(), MCP_REMOTE_CONFIG_DIR: stack.home() },
		stderr: 'ignore',
	}));
	return verbs();
}

async function aiSdk(stack) {
	const client = await createMCPClient({ transport: { type: 'http', url: stack.url, headers: stack.headers } });
	const tools = await client.tools(); /* ready to be handed to a model: what it chooses is executed */
	const call = (name, args, { signal } = {}) => tools[name].execute(args, { toolCallId: '1', messages: [], abortSignal: signal });
	return { list: async () => (await client.listTools()).tools, call, close: () => client.close() };
}

const inspector = (era) => async (stack) => {
	const inspect = async (args, options) => {
		const { result } = await program([
			path.join(packages, '.bin/mcp-inspector'), '--cli', stack.url, '--transport', 'http', '--header', `Authorization: Bearer ${stack.token}`,
			'--protocol-era', era, '--format', 'json', '--stored-auth-only', ...args,
		], { ...options, env: { ...process.env, HOME: stack.home() } });
		return result;
	};
	return {
		list: async () => (await inspect(['--method', 'tools/list'])).tools,
		call: (name, args, options) => inspect(['--method', 'tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args)], options),
		close() {},
	};
};

/* It prints either the text or the structured result of a call, and keeps images as files: they are given back as blocks. */
async function mcporter(stack) {
	const home = stack.home(), config = path.join(home, 'mcporter.json');
	writeFileSync(config, JSON.stringify({ mcpServers: { sallyport: { url: stack.url, headers: stack.headers } } }));
	const port = (args, options) => program([path.join(packages, 'mcporter/dist/cli.js'), '--config', config, ...args], { ...options, env: { ...process.env, HOME: home } });
	const call = async (name, args, options) => {
		const folder = mkdtempSync(path.join(home, 'images-'));
		const structured = await port(['call', `sallyport.${name}`, '--args', JSON.stringify(args), '--output', 'json', '--save-images', folder], options);
		const content = readdirSync(folder).map((file) => ({ type: 'image', mimeType: `image/${path.extname(file).slice(1)}`, data: readFileSync(path.join(folder, file), 'base64') }));
		return { structuredContent: structured, content };
	};
	return { list: async () => (await port(['list', 'sallyport', '--json', '--schema'])).tools, call, close() {} };
}

export const clients = [
	{ name: 'SDK v1', connect: v1, progress: true, cancel: 'CX', how: 'notifications/cancelled' },
	{ name: 'SDK v2, legacy', connect: v2('legacy', 'legacy'), progress: true, cancel: 'CX', how: 'notifications/cancelled' },
	{ name: 'SDK v2, auto', connect: v2('auto', 'modern'), progress: true, cancel: 'CX', how: 'leaves' },
	{ name: 'SDK v2, pinned', connect: v2({ pin: '2026-07-28' }, 'modern'), progress: true, cancel: 'CX', how: 'leaves' },
	{ name: '@ai-sdk/mcp', connect: aiSdk, progress: false, cancel: 'CX', how: 'leaves' },
	{ name: 'mcp-remote', connect: mcpRemote, progress: true, cancel: 'CX', how: 'notifications/cancelled' },
	{ name: 'mcporter', connect: mcporter, progress: false, cancel: 'OK', how: 'ended' },
	{ name: 'Inspector CLI, legacy', connect: inspector('legacy'), progress: false, cancel: 'OK', how: 'ended' },
	{ name: 'Inspector CLI, modern', connect: inspector('modern'), progress: false, cancel: 'CX', how: 'ended' },
];
