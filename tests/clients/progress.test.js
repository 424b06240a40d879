/*
 * progress.test.js - what servers report of the progress of calls that a program makes reaches the client of the program, if it asked: both
 * SDKs' clients, both eras, HTTP and standard input and output, tasks, tools that the model calls itself. A server in this process reports the
 * next step when the client has heard of the last one; another one floods, and says what is secret.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { ASKS, Stack, bin, makeState, root, until } from './stack.js';

const TIMEOUT_MS = 180_000;
const INFO = { name: 'test', version: '1' };
const VERSION = '2026-07-28';
const PAUSE_MS = 300; /* MCP_PROGRESS_PAUSE_US */
const REPORT_MAX = 512; /* BRIDGE_PROGRESS_MAX */
const SYNCHRONOUS = 60;
const CREDENTIAL = 'sk-live-0123456789abcdef', SECRET = 'correct horse battery';
const node = path.join(root, 'jail/runners/npm/node_modules/.bin/node');
const everything = path.join(root, 'tests/clients/node_modules/@modelcontextprotocol/server-everything/dist/index.js');

/* Messages of progress that the clients have heard since the test began. */
let heard = [];
const hears = (part) => until(`the client to hear ${part}`, () => heard.find(({ message }) => message?.includes(part)));

/* A server over HTTP whose tools report their progress on the call's stream: `report(progress, total, message)`. */
const tools = {
	/* What is reported is seen before the next is. */
	async steps({ of }, report) {
		for (let step = 1; step <= of; step++) {
			report(step, of, `this is step ${step}`);
			await hears(`step ${step}`);
		}
		report(of + 0.5, undefined, 'no total');
		await hears('no total');
	},
	async whisper({ text }, report) {
		report(1, undefined, `${text} ${CREDENTIAL} ${Buffer.from(CREDENTIAL).toString('base64')} the end`);
		await hears('the end');
	},
	/* A secret that the longest report ends in. */
	async cuts({ text }, report) {
		for (const seen of [1, 5, text.length - 1]) {
			heard = [];
			report(seen, undefined, `${'.'.repeat(REPORT_MAX - `worker.cuts: ${seen}: `.length - seen)}${text}${'-'.repeat(99)}`);
			await hears('…');
			assert.match(heard.find(({ message }) => message?.includes('…')).message, new RegExp(`^worker\\.cuts: ${seen}: \\.+\\*+-*…$`));
		}
	},
	async flood(_, report, response) {
		for (let n = 1; heard.length < 4; n++) {
			report(n, 5, `\u001b[31m${'x'.repeat(1000)}`);
			if (n % 500 === 0) await new Promise((resolve) => response.write(':\n', resolve));
		}
	},
	async asked(_, report, response, token) {
		return String(token !== undefined);
	},
};
const worker = {
	async answer({ id, method, params }, response) {
		const json = { 'Content-Type': 'application/json' };
		const message = (result) => JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...result } });
		if (method === 'server/discover') return response.writeHead(200, json).end(message({ supportedVersions: [VERSION], capabilities: { tools: {} }, serverInfo: { name: 'worker', version: '1' } }));
		if (method === 'tools/list') return response.writeHead(200, json).end(message({ tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: 'object' } })), ttlMs: 600_000 }));
		response.writeHead(200, { 'Content-Type': 'text/event-stream' });
		const token = params._meta.progressToken;
		const report = (progress, total, text) =>
			response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: token, progress, total, message: text } })}\n\n`);
		let text, isError = false;
		try {
			text = (await tools[params.name](params.arguments, report, response, token)) ?? 'done';
		} catch (error) {
			[text, isError] = [error.message, true];
		}
		response.end(`data: ${message({ content: [{ type: 'text', text }], isError })}\n\n`);
	},
	async start() {
		worker.server = http.createServer((request, response) => {
			let body = '';
			request.on('data', (data) => (body += data));
			request.on('end', () => (request.method === 'POST' ? worker.answer(JSON.parse(body), response) : response.writeHead(405).end()));
		}).listen(0, '127.0.0.1');
		await once(worker.server, 'listening');
		return `http://127.0.0.1:${worker.server.address().port}/mcp`;
	},
};

/* A program whose one tool is a task of 2025-11-25: it reports its progress when the task has begun, and ends when the file is there. */
const TASK = `
import { existsSync } from 'node:fs';
import readline from 'node:readline';
const say = (message) => console.log(JSON.stringify({ jsonrpc: '2.0', ...message }));
const task = (status) => ({ taskId: 't', status, createdAt: '2026-01-01T00:00:00Z', lastUpdatedAt: '2026-01-01T00:00:00Z', ttl: 60000, pollInterval: 50 });
let token;
const results = {
	initialize: () => ({ protocolVersion: '2025-11-25', capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } }, serverInfo: { name: 'long', version: '1' } }),
	'tools/list': () => ({ tools: [{ name: 'work', inputSchema: { type: 'object' }, execution: { taskSupport: 'required' } }] }),
	'tools/call': ({ _meta }) => ((token = _meta.progressToken), { task: task('working') }),
	'tasks/get': () => task(existsSync(process.argv[2]) ? 'completed' : 'working'),
	'tasks/result': () => ({ content: [{ type: 'text', text: 'worked' }] }),
};
readline.createInterface({ input: process.stdin }).on('line', (line) => {
	const { id, method, params } = JSON.parse(line);
	if (method === 'tasks/get') for (const progressToken of [token + 1000, 0, 'x', token]) say({ method: 'notifications/progress', params: { progressToken, progress: token === progressToken ? 7 : 8 } });
	if (id !== undefined) say({ id, ...(results[method] ? { result: results[method](params) } : { error: { code: -32601, message: 'Method not found' } }) });
});
`;

let stack, env, enough;
before(async () => {
	const state = makeState(), file = path.join(state, 'upstream.json');
	const entry = { tools: { allow: ['*'] } }, script = path.join(state, 'task.mjs');
	writeFileSync(script, TASK, { mode: 0o644 });
	enough = path.join(state, 'enough');
	writeFileSync(file, JSON.stringify({
		mcpServers: {
			worker: { url: await worker.start(), private: true, headers: { Authorization: `Bearer ${CREDENTIAL}` }, ...entry },
			everything: { command: node, args: [everything], jail: false, ...entry },
			long: { command: node, args: [script, enough], jail: false, ...entry },
		},
	}), { mode: 0o644 });
	stack = await Stack.start({ state, env: { SALLYPORT_UPSTREAM_FILE: file, SALLYPORT_TOOLS_UPSTREAM: 'both', SALLYPORT_LIMITS_SYNCHRONOUS_SECONDS: String(SYNCHRONOUS) } });
	env = stack.stdioEnv({ SALLYPORT_UPSTREAM_FILE: file });
});
after(async () => {
	stack?.complaints();
	await stack?.stop();
	worker.server?.closeAllConnections();
	worker.server?.close();
});

const onprogress = (progress) => void heard.push(progress);
const web = (Transport) => () => new Transport(new URL(stack.url), { requestInit: { headers: stack.headers } });
const stdio = (Transport) => () => new Transport({ command: path.join(bin, 'sallyport'), args: ['stdio'], env, stderr: 'ignore' });
const v1 = (transport) => async () => {
	const client = new ClientV1(INFO);
	await client.connect(transport());
	return { client, call: (name, args, options) => client.callTool({ name, arguments: args, _meta: ASKS }, undefined, options) };
};
const v2 = (mode, transport) => async () => {
	const client = new ClientV2(INFO, { versionNegotiation: { mode } });
	await client.connect(transport());
	return { client, call: (name, args, options) => client.callTool({ name, arguments: args, _meta: ASKS }, options) };
};
const clients = [
	['SDK v1, legacy, HTTP', v1(web(TransportV1))],
	['SDK v2, modern, HTTP', v2({ pin: VERSION }, web(TransportV2))],
	['SDK v2, legacy, HTTP', v2('legacy', web(TransportV2))],
	['SDK v1, legacy, stdio', v1(stdio(StdioV1))],
	['SDK v2, modern, stdio', v2({ pin: VERSION }, stdio(StdioV2))],
];

const program = (code, more) => ({ conversationId: 'progress', language: 'python', servers: ['worker', 'everything'], code, ...more });
const details = (result) => result.structuredContent;
const rises = () => heard.forEach(({ progress }, n) => assert.ok(n === 0 || progress > heard[n - 1].progress, JSON.stringify(heard)));
const messages = (server) => heard.map(({ message }) => message).filter((message) => message?.startsWith(server));

for (const [name, connect] of clients)
	test(`${name}: each step is heard, the program's output in between, one counter`, { timeout: TIMEOUT_MS }, async () => {
		const { client, call } = await connect();
		heard = [];
		const code = "import time\nfor n in range(2):\n    print('output', flush=True)\n    print(tools.worker.steps(of=2), flush=True)\n";
		const result = details(await call('run_code', program(code), { onprogress }));
		assert.equal(result.stdout, 'output\ndone\noutput\ndone\n', JSON.stringify(result));
		const steps = ['worker.steps: 1 of 2: this is step 1', 'worker.steps: 2 of 2: this is step 2', 'worker.steps: 2.5: no total'];
		assert.deepEqual([...new Set(messages('worker'))], steps);
		assert.match(heard.map(({ message }) => message).filter((message) => !message?.startsWith('worker')).join(''), /^output\n/);
		rises();
		await client.close();
	});

for (const [name, connect] of clients.slice(0, 2)) {
	test(`${name}: a server from npm`, { timeout: TIMEOUT_MS }, async () => {
		const { client, call } = await connect();
		heard = [];
		const result = details(await call('run_code', program("tools.everything.trigger_long_running_operation(duration=3, steps=3)"), { onprogress }));
		assert.equal(result.stdout, '', JSON.stringify(result));
		assert.match(messages('everything')[0], /^everything\.trigger-long-running-operation: [123] of 3$/);
		rises();
		await client.close();
	});

	test(`${name}: a tool that the model calls itself`, { timeout: TIMEOUT_MS }, async () => {
		const { client, call } = await connect();
		heard = [];
		assert.equal((await call('worker__steps', { of: 1 }, { onprogress })).content[0].text, 'done');
		assert.deepEqual(messages('worker'), ['worker.steps: 1 of 1: this is step 1', 'worker.steps: 1.5: no total']);
		rises();
		await client.close();
	});

	test(`${name}: servers are asked for progress where the client asks`, { timeout: TIMEOUT_MS }, async () => {
		const { client, call } = await connect();
		const code = 'print(tools.worker.asked())';
		assert.equal(details(await call('run_code', program(code))).stdout, 'false\n');
		assert.equal(details(await call('run_code', program(code), { onprogress })).stdout, 'true\n');
		await client.close();
	});

	test(`${name}: no secret is in it, whole or cut`, { timeout: TIMEOUT_MS }, async () => {
		const { client, call } = await connect();
		heard = [];
		const ask = (tool) => call('run_code', program(`import os\nprint(tools.worker.${tool}(text=os.environ['S']))`, { secrets: { S: SECRET } }), { onprogress });
		assert.equal(details(await ask('whisper')).stdout, 'done\n');
		assert.deepEqual(messages('worker'), ['worker.whisper: 1: *** *** *** the end']);
		assert.equal(details(await ask('cuts')).stdout, 'done\n');
		await client.close();
	});

	test(`${name}: a server that floods is heard at our pace, cut, without control characters`, { timeout: TIMEOUT_MS }, async () => {
		const { client, call } = await connect();
		heard = [];
		const began = Date.now();
		assert.equal(details(await call('run_code', program('print(tools.worker.flood())'), { onprogress })).stdout, 'done\n');
		const most = 2 + (Date.now() - began) / PAUSE_MS;
		assert.ok(heard.length <= most, `${heard.length} messages, at most ${most}`);
		for (const message of messages('worker')) {
			assert.match(message, /^worker\.flood: \d+ of 5: \\x1b\[31mx+…$/);
			assert.ok(Buffer.byteLength(message) <= REPORT_MAX + 10, message);
		}
		rises();
		await client.close();
	});
}

test('the call is a task of its server', { timeout: TIMEOUT_MS }, async () => {
	const { client, call } = await clients[1][1]();
	heard = [];
	const done = call('run_code', program('print(tools.long.work())', { servers: ['long'] }), { onprogress });
	await hears('long.work');
	writeFileSync(enough, '');
	assert.equal(details(await done).stdout, 'worked\n');
	for (const message of messages('long')) assert.equal(message, 'long.work: 7');
	await client.close();
});

test('a task of 2025-11-25 reports its progress', { timeout: TIMEOUT_MS }, async () => {
	const client = new ClientV1(INFO);
	await client.connect(web(TransportV1)());
	heard = [];
	let result, taskId, status;
	const stream = client.experimental.tasks.callToolStream({ name: 'run_code', arguments: program("print('output', flush=True)\nprint(tools.worker.steps(of=2))") }, CallToolResultSchema, {
		task: {},
		async onprogress(progress) {
			if (progress.message.includes('step 1')) status = await client.experimental.tasks.getTask(taskId);
			heard.push(progress);
		},
	});
	for await (const message of stream) {
		taskId = message.task?.taskId;
		result = message.result;
	}
	assert.deepEqual([status.status, status.statusMessage], ['working', 'worker.steps: 1 of 2: this is step 1']);
	assert.equal(details(result).stdout, 'output\ndone\n');
	assert.deepEqual(messages('worker'), ['worker.steps: 1 of 2: this is step 1', 'worker.steps: 2 of 2: this is step 2', 'worker.steps: 2.5: no total']);
	rises();
	await client.close();
});

/* The modern era without an SDK: tasks have no messages of progress there. */
async function request(method, name, params) {
	const meta = { 'io.modelcontextprotocol/protocolVersion': VERSION, 'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } } };
	const response = await fetch(stack.url, {
		method: 'POST',
		headers: {
			...stack.headers, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream',
			'MCP-Protocol-Version': VERSION, 'Mcp-Method': method, 'Mcp-Name': name,
		},
		body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: { ...meta, ...params._meta } } }),
	});
	return response.json();
}
for (const [name, _meta, expected] of [['with', { progressToken: 'p' }, 'worker.steps: 1 of 1: this is step 1'], ['without', {}, undefined]])
	test(`a task of 2026-07-28 ${name} a progressToken: its status`, { timeout: TIMEOUT_MS }, async () => {
		heard = [];
		const { result: task } = await request('tools/call', 'run_code', { name: 'run_code', arguments: program('print(tools.worker.steps(of=1), tools.worker.asked())', { timeout_seconds: SYNCHRONOUS + 1 }), _meta });
		assert.equal(task.resultType, 'task', JSON.stringify(task));
		const look = async () => (await request('tasks/get', task.taskId, { taskId: task.taskId })).result;
		if (expected) {
			const said = await until('the status', async () => [await look()].find(({ statusMessage }) => statusMessage));
			assert.equal(said.status, 'working');
			assert.equal(said.statusMessage, expected);
		}
		heard.push({ message: 'step 1' }); /* what a client of a task does not say */
		if (expected) assert.equal((await until('the next one', async () => [await look()].find(({ statusMessage }) => statusMessage !== expected))).statusMessage, 'worker.steps: 1.5: no total');
		heard.push({ message: 'no total' });
		const ended = await until('the end', async () => [await look()].find(({ status }) => status === 'completed'));
		assert.equal(details(ended.result).stdout, `done ${expected !== undefined}\n`);
		assert.notEqual(ended.statusMessage, 'worker.steps: 1.5: no total');
	});
