/*
 * bridge.test.js - programs call the tools of real MCP servers: server-everything, server-filesystem and server-memory from npm, through a
 * whole Sallyport; what the client sees, what the record holds, and a replay without any server.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { Stack, gauged, makeState, root, until } from './stack.js';

const TIMEOUT_MS = 180_000;
const node = path.join(root, 'jail/runners/npm/node_modules/.bin/node');
const server = (name) => path.join(root, `tests/clients/node_modules/@modelcontextprotocol/server-${name}/dist/index.js`);
const open = { jail: false, tools: { allow: ['*'] } };

/* A server whose answers come from a file, and that writes down each call. */
const PRICES = `
import { appendFileSync, readFileSync } from 'node:fs';
import readline from 'node:readline';
const folder = process.argv[2];
const price = { name: 'price', inputSchema: { type: 'object', properties: { item: { type: 'string' } } } };
const results = {
	initialize: () => ({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'prices', version: '1' } }),
	'tools/list': () => ({ tools: [price, { ...price, name: 'buy' }] }),
	'tools/call': async ({ name, arguments: { item } }) => {
		appendFileSync(folder + '/calls', name + ' ' + item + '\\n');
		const { wait, answers } = JSON.parse(readFileSync(folder + '/prices', 'utf8'));
		await new Promise((resolve) => setTimeout(resolve, wait));
		return { content: [{ type: 'text', text: String(answers[item]) }], isError: answers[item] === undefined };
	},
};
readline.createInterface({ input: process.stdin }).on('line', async (line) => {
	const { id, method, params } = JSON.parse(line);
	if (method === 'notifications/cancelled') appendFileSync(folder + '/calls', 'cancelled\\n');
	if (id === undefined) return;
	const answer = results[method] ? { result: await results[method](params) } : { error: { code: -32601, message: 'no ' + method } };
	console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
});
`;
const prices = {
	says: (answers, wait = 0) => writeFileSync(path.join(prices.folder, 'prices'), JSON.stringify({ answers, wait })),
	calls: () => readFileSync(path.join(prices.folder, 'calls'), 'utf8').trim().split('\n'),
};

/* Says which process it is, and takes its time; notes each start. */
const COUNTED = `
import { appendFileSync } from 'node:fs';
import readline from 'node:readline';
appendFileSync(process.argv[2] + '/counted', process.pid + '\\n');
const results = {
	initialize: () => ({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'counted', version: '1' } }),
	'tools/list': () => ({ tools: [{ name: 'pid', inputSchema: { type: 'object' } }] }),
	'tools/call': () => ({ content: [{ type: 'text', text: 'pid ' + process.pid }] }),
};
readline.createInterface({ input: process.stdin }).on('line', (line) => {
	const { id, method } = JSON.parse(line);
	const answer = results[method] ? { result: results[method]() } : { error: { code: -32601, message: 'no ' + method } };
	if (id !== undefined) setTimeout(() => console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answer })), method === 'tools/call' ? 1000 : 0);
});
`;
const noted = (name) => (existsSync(path.join(prices.folder, name)) ? readFileSync(path.join(prices.folder, name), 'utf8').trim().split('\n') : []);

/* A server over HTTP that speaks the modern era only. What it heard is in `heard`; `begun` answers when the tool that it names was called. */
const modern = {
	heard: [],
	waiting: [],
	hear(what) {
		modern.heard.push(what);
		modern.waiting = modern.waiting.filter(({ for: wanted, answer }) => !modern.heard.includes(wanted) || answer());
	},
	answer(request, response, headers) {
		const { id, method, params } = request;
		const say = (result) => response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...result } }));
		const refuse = (status) => response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } }));
		const text = (value) => ({ content: [{ type: 'text', text: value }] });
		const tool = (name, properties = {}) => ({ name, inputSchema: { type: 'object', properties } });
		if (method === 'server/discover') return say({ supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, serverInfo: { name: 'modern', version: '1' } });
		if (method === 'tools/list') return say({ tools: [tool('hang'), tool('finished'), tool('endless'), tool('begun', { what: { type: 'string' } })], ttlMs: 600_000 });
		if (method.startsWith('tasks/')) {
			if (headers['mcp-name'] !== params.taskId) return refuse(400);
			modern.hear(`${method} ${params.taskId}`);
			const polls = modern.heard.filter((what) => what === `tasks/get ${params.taskId}`).length;
			if (method === 'tasks/cancel') return say({});
			return say({ taskId: params.taskId, pollIntervalMs: 50, ...(params.taskId === 'finished' && polls === 2 ? { status: 'completed', result: text('the end of a task') } : { status: 'working' }) });
		}
		if (method !== 'tools/call') return refuse(404);
		modern.hear(params.name);
		if (params.name === 'hang') {
			response.on('close', () => modern.hear('closed'));
			response.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders();
		} else if (params.name === 'begun') {
			modern.waiting.push({ for: params.arguments.what, answer: () => void say(text('it has begun')) });
			modern.hear('begun');
		} else {
			say({ resultType: 'task', taskId: params.name, status: 'working', pollIntervalMs: 50 });
		}
	},
	async start() {
		modern.server = http.createServer((request, response) => {
			let body = '';
			request.on('data', (data) => (body += data));
			request.on('end', () => (request.method === 'POST' ? modern.answer(JSON.parse(body), response, request.headers) : response.writeHead(405).end()));
		}).listen(0, '127.0.0.1');
		await once(modern.server, 'listening');
		return `http://127.0.0.1:${modern.server.address().port}/mcp`;
	},
	stop() {
		modern.server?.closeAllConnections();
		modern.server?.close();
	},
};

let stack, file, failures;
before(async () => {
	const state = makeState();
	const folder = path.join(state, 'files');
	mkdirSync(folder);
	chmodSync(folder, 0o777); /* as root the services run as www-data */
	writeFileSync(path.join(folder, 'notes.txt'), 'one\ntwo TODO\n');
	prices.folder = path.join(state, 'prices');
	mkdirSync(prices.folder);
	chmodSync(prices.folder, 0o777);
	writeFileSync(path.join(prices.folder, 'calls'), '', { mode: 0o666 });
	chmodSync(path.join(prices.folder, 'calls'), 0o666);
	writeFileSync(path.join(prices.folder, 'server.mjs'), PRICES);
	writeFileSync(path.join(prices.folder, 'counted.mjs'), COUNTED);
	file = path.join(state, 'upstream.json');
	writeFileSync(
		file,
		JSON.stringify({
			mcpServers: {
				everything: { command: node, args: [server('everything')], description: 'All kinds of results', ...open },
				files: { command: node, args: [server('filesystem'), folder], ...open },
				memory: { command: node, args: [server('memory')], env: { MEMORY_FILE_PATH: path.join(folder, 'memory.json') }, ...open, tools: { allow: ['read_*', 'create_*'], deny: ['delete_*'] } },
				prices: { command: node, args: [path.join(prices.folder, 'server.mjs'), prices.folder], jail: false, tools: { allow: ['price'], ask: ['buy'] } },
				counted: { command: node, args: [path.join(prices.folder, 'counted.mjs'), prices.folder], share: 'all', start: 'gateway', instances: 2, ...open },
				dying: { command: '/bin/sh', args: ['-c', `date +%s%N >>${prices.folder}/dying; echo no licence >&2; exit 1`], ...open },
				modern: { url: await modern.start(), private: true, tools: { allow: ['*'] } },
				broken: { command: '${SP_NO_SUCH_VARIABLE}', ...open },
			},
		}),
		{ mode: 0o644 },
	);
	stack = await Stack.start({ state, env: { SALLYPORT_UPSTREAM_FILE: file } });
	failures = (async () => {
		const said = [];
		for (let n = 0; n < 6; n++) said.push((await stack.call('run_code', { conversationId: 'dying', language: 'python', code: '1', servers: ['dying'] })).result.content[0].text);
		return said;
	})();
	failures.catch(() => {}); /* a test awaits it */
});
after(async () => {
	stack?.complaints();
	await stack?.stop();
	modern.stop();
});

test('a Python program calls real servers', { timeout: TIMEOUT_MS }, async () => {
	const code = `
from tools import files, everything
import tools
print(everything.echo(message='hello'))
print(everything.get_sum(a=2, b=3))
text = files.read_text_file(path=files.list_allowed_directories()['content'].splitlines()[-1] + '/notes.txt')
print([line for line in text['content'].splitlines() if 'TODO' in line])
try:
    files.read_text_file(path='/etc/passwd')
except tools.ToolError as error:
    print(error.kind, 'denied' in error.text)
image = next(block for block in everything.get_tiny_image() if block.type == 'image')
print(image.mime, len(image.data) > 100, image.save('/data/tiny.png'))
`;
	const result = await stack.run({ language: 'python', code, servers: ['everything', 'files'] });
	assert.equal(result.stderr, '');
	assert.equal(result.stdout, "Echo: hello\nThe sum of 2 and 3 is 5.\n['two TODO']\ntool True\nimage/png True /data/tiny.png\n");
	assert.deepEqual(result.toolCalls.map((call) => `${call.server}.${call.tool} ${call.state}`), [
		'everything.echo done', 'everything.get-sum done', 'files.list_allowed_directories done', 'files.read_text_file done',
		'files.read_text_file failed', 'everything.get-tiny-image done',
	]);
	assert.equal(result.files.created[0].name, 'tiny.png');
});

test('a program that calls tools without servers learns of the argument', { timeout: TIMEOUT_MS }, async () => {
	for (const [language, code] of [['python', "print(tools.everything.echo(message='x'))"], ['javascript', "await tools.everything.echo({ message: 'x' })"]]) {
		const { result } = await stack.call('run_code', { conversationId: 'forgot', language, code });
		assert.match(result.content[0].text, /^servers: a program calls the tools of the servers that the argument servers names$/m, JSON.stringify(result.content));
	}
});

test('JavaScript, TypeScript and bash call them', { timeout: TIMEOUT_MS }, async () => {
	const script = "import { everything } from 'tools';\nconsole.log(await everything.echo({ message: 'x' }));\n";
	assert.equal((await stack.run({ language: 'javascript', code: script, servers: ['everything'] })).stdout, 'Echo: x\n');
	assert.equal((await stack.run({ language: 'typescript', code: script, servers: ['everything'] })).stdout, 'Echo: x\n');
	const bash = await stack.run({ language: 'bash', code: 'mcp call everything.echo message=x; mcp tools memory | head -1', servers: ['everything', 'memory'] });
	assert.match(bash.stdout, /^Echo: x\nmemory\.create_entities\(/);
	const c = await stack.run({ language: 'c', code: '#include <stdlib.h>\nint main(void) { return system("mcp call everything.echo message=c") ? 1 : 0; }\n', servers: ['everything'] });
	assert.equal(c.stdout, 'Echo: c\n', JSON.stringify(c));
});

test('a server of start: gateway runs before the first call', { timeout: TIMEOUT_MS }, async () => {
	await until('the start of the server', () => noted('counted').length === 1);
	const code = 'import asyncio\nprint(*sorted(set(await asyncio.gather(*[tools.counted.pid() for _ in range(6)]))), sep="\\n")';
	const result = await stack.run({ language: 'python', code, servers: ['counted'] });
	assert.deepEqual(result.stdout.trim().split('\n'), noted('counted').map((pid) => `pid ${pid}`).sort(), result.stderr);
	assert.equal(noted('counted').length, 2);
});

test('search_tools shows as much of a tool as it is asked for', { timeout: TIMEOUT_MS }, async () => {
	const found = async (more) => (await stack.call('search_tools', { query: 'sum of two numbers', servers: ['everything'], limit: 1, ...more })).result.content[0].text;
	const [names, summary, full] = await Promise.all(['names', 'summary', 'full'].map((detail) => found({ detail })));
	assert.match(names, /^everything\.get-sum - Returns the sum of two numbers\n/);
	assert.doesNotMatch(names, /float/);
	assert.match(summary, /get[-_]sum\(\*, a: float, b: float\)/);
	assert.doesNotMatch(summary, /Returns the sum/);
	assert.match(full, /get_sum\(\*, a: float, b: float\) -> Any\nReturns the sum of two numbers\n/);
	for (const text of [names, summary, full]) assert.match(text, /\n1 of 13 tools; more match/);
	const described = async (...tools) => (await stack.call('describe_tools', { tools })).result.content[0].text;
	assert.equal(await described('everything.get-sum'), 'everything.get_sum(*, a: float, b: float) -> Any\nReturns the sum of two numbers\na: First number\nb: Second number\n'); /* nor is another server started for it */
	assert.match(await described('dying.x'), /dying is not available: .*no licence/);
	assert.match(await described('nobody.x'), /"nobody\.x" does not name a tool that you can use/);
});

test('a tool that must be called as a task is', { timeout: TIMEOUT_MS }, async () => {
	const result = await stack.run({ language: 'python', code: "print('Research' in str(tools.everything.simulate_research_query(topic='ports')))", servers: ['everything'] });
	assert.equal(result.stdout, 'True\n', result.stderr);
});

test('a task of a modern server is asked for until it is done', { timeout: TIMEOUT_MS }, async () => {
	const result = await stack.run({ language: 'python', code: 'print(tools.modern.finished())', servers: ['modern'] });
	assert.equal(result.stdout, 'the end of a task\n', result.stderr);
	assert.equal(modern.heard.filter((what) => what === 'tasks/get finished').length, 2);
});

/* The program ends while its call is under way; what its server heard of that is `end`. */
for (const [name, begun, end] of [['hang', 'hang', 'closed'], ['endless', 'tasks/get endless', 'tasks/cancel endless']]) {
	test(`a modern server hears that nobody waits for ${name} any more`, { timeout: TIMEOUT_MS }, async () => {
		const code = `
import os, threading
threading.Thread(target=tools.modern.${name}, daemon=True).start()
print(tools.modern.begun(what='${begun}'), flush=True)
os._exit(0)`;
		const result = await stack.run({ language: 'python', code, servers: ['modern'] });
		assert.equal(result.stdout, 'it has begun\n', result.stderr);
		await until(end, () => modern.heard.includes(end));
	});
}

test('a Go program calls a tool by mcp', { timeout: TIMEOUT_MS, skip: existsSync('/usr/bin/go') ? false : 'Go is not installed (apt-get install golang-go)' }, async () => {
	const code = `package main

import (
	"fmt"
	"os/exec"
)

func main() {
	out, err := exec.Command("mcp", "call", "everything.echo", "message=go").Output()
	fmt.Print(string(out), err)
}
`;
	const result = await stack.run({ language: 'go', code, servers: ['everything'] });
	assert.equal(result.stdout, 'Echo: go\n<nil>', JSON.stringify(result));
});

test('a server that fails at each start is given up', { timeout: TIMEOUT_MS }, async () => {
	const said = await failures;
	const [, ...starts] = noted('dying').map((at) => Number(at) / 1e9); /* the very first ended at our question which era it speaks */
	assert.equal(starts.length, 5);
	for (const [n, seconds] of [1, 2, 4, 8].entries()) assert.ok(starts[n + 1] - starts[n] > seconds - 0.1, `start ${n + 2} after ${starts[n + 1] - starts[n]} s`);
	for (const text of said.slice(0, 5)) assert.match(text, /the server dying: dying is not available: .*it wrote: no licence/);
	assert.match(said[5], /dying is not available, it failed 5 times: .*no licence/);
});

test('calls at once take the time of one', { timeout: TIMEOUT_MS }, async () => {
	const code = `
import asyncio, time
begin = time.monotonic()
done = await asyncio.gather(*[tools.everything.trigger_long_running_operation(duration=2, steps=2) for _ in range(8)])
print(len(done), time.monotonic() - begin < 8)
done = await asyncio.gather(*[tools.everything.get_sum(a=n, b=n) for n in range(192)])
print(len(set(done)))
try:
    await tools.everything.echo(message='one more')
except tools.LimitReached as error:
    print(error.text)
`;
	const result = await stack.run({ language: 'python', code, servers: ['everything'] });
	assert.equal(result.stdout + result.stderr, '8 True\n192\nthis run has made 200 calls, the limit\n');
});

test('a run with an unknown server is refused', { timeout: TIMEOUT_MS }, async () => {
	const code = `
import tools
print(tools.memory.create_entities(entities=[{'name': 'a', 'entityType': 't', 'observations': []}])['entities'][0]['name'])
try: tools.memory.delete_entities(entityNames=['a'])
except tools.Denied as error: print(error.kind)
`;
	const result = await stack.run({ language: 'python', code, servers: ['memory'] });
	assert.equal(result.stdout, 'a\ndenied\n', result.stderr);
	const refused = async (servers) => (await stack.call('run_code', { conversationId: 'test', language: 'python', code: 'print(1)', servers })).result;
	for (const [servers, says] of [[['everythin'], /everything/], [['broken'], /SP_NO_SUCH_VARIABLE/]]) {
		const answer = await refused(servers);
		assert.equal(answer.isError, true);
		assert.match(answer.content[0].text, says);
	}
});

/* Their jails are made, and filled with what programs with tools need, before it is known that they are not needed. */
test('a repeated idempotency key calls no tool again', { timeout: TIMEOUT_MS }, async () => {
	prices.says({ key: 7 });
	const ask = () => stack.run({ language: 'python', code: "print(tools.prices.price(item='key'))", servers: ['prices'], idempotencyKey: 'once', conversationId: 'key' });
	const first = await ask(), again = await ask();
	assert.equal(first.stdout, '7\n', first.stderr);
	assert.equal(again.execution_id, first.execution_id);
	assert.equal(prices.calls().filter((call) => call === 'price key').length, 1);
});

test('a live session: each call has its own servers', { timeout: TIMEOUT_MS }, async () => {
	const session = (language, code, servers) => stack.run({ language, code, session: true, conversationId: `live-${language}`, ...(servers ? { servers } : {}) });
	assert.equal((await session('python', "x = tools.everything.echo(message='a')\nprint(x)", ['everything'])).stdout, 'Echo: a\n');
	assert.equal((await session('python', "print(x, await tools.memory.read_graph.aio() is not None)", ['memory'])).stdout, 'Echo: a True\n');
	/* The host has ended the last run's connection, and the thread that reads it has not seen that yet. */
	const unseen = "import socket\nlink = tools.wire()\nlink.socket, other = socket.socketpair()\nother.close()\n";
	const again = await session('python', `${unseen}print(await tools.everything.echo(message='b'))\n${unseen}print(tools.everything.echo.sync(message='c'))`, ['everything']);
	assert.equal(again.stdout, 'Echo: b\nEcho: c\n', again.stderr);
	const without = await session('python', "import tools\ntry: tools.call('everything', 'echo', {'message': 'a'})\nexcept tools.ToolError as e: print(e.kind)");
	assert.equal(without.stdout, 'unavailable\n', JSON.stringify(without));
	assert.equal((await session('javascript', "var y = await tools.everything.echo({ message: 'b' });\nconsole.log(y)", ['everything'])).stdout, 'Echo: b\n');
	assert.equal((await session('javascript', "import { memory } from 'tools';\nconsole.log(y, typeof (await memory.read_graph({})))", ['memory'])).stdout, 'Echo: b object\n');
	const required = "var { everything } = require('tools');\nconsole.log(await everything.echo({ message: 'c' }), typeof require('tools/everything').echo, typeof require('path').join)";
	assert.equal((await session('javascript', required, ['everything'])).stdout, 'Echo: c function function\n');
	const later = await session('javascript', "console.log(typeof (await require('tools').memory.read_graph({})));\ntry { require('tools').everything } catch (error) { console.log(error.message) }", ['memory']);
	assert.equal(later.stdout, 'object\nno server everything in this run; it names: memory\n', later.stderr);
});

test('replay answers calls of tools from the record', { timeout: TIMEOUT_MS }, async () => {
	const code = `
import asyncio
numbers = await asyncio.gather(*[tools.everything.get_sum(a=n, b=1) for n in range(5)])
print(sorted(numbers), await tools.everything.echo(message='same'), await tools.everything.echo(message='same'))
try: await tools.files.read_text_file(path='/etc/passwd')
except RuntimeError as error: print(error.kind)
`;
	const made = await stack.run({ language: 'python', code, servers: ['everything', 'files'] });
	assert.equal(made.verdict, 'OK', made.stderr);
	const shown = await stack.cli(['show', made.execution_id]);
	assert.match(shown.stdout, /tools of everything, files\n.*TOOL.*\n.*done +allow .*everything\.get-sum/);
	const { tool_calls: toolCalls } = JSON.parse((await stack.cli(['show', '--json', made.execution_id])).stdout);
	assert.equal(toolCalls.length, 8);
	assert.deepEqual(toolCalls.filter((call) => call.tool === 'echo').map((call) => call.occurrence), [0, 1]);
	const same = await stack.cli(['replay', made.execution_id]);
	assert.equal(same.code, 0, same.stdout + same.stderr);
	const random = await stack.run({ language: 'python', code: 'import random\nprint(tools.everything.echo(message=str(random.random())) != "")', servers: ['everything'] });
	const other = await stack.cli(['replay', random.execution_id]);
	assert.match(other.stdout + other.stderr, /diverged/);
	assert.match(other.stdout + other.stderr, /call 1, everything\.echo with \{"message":"0\.\d+"\}, was not made then/);
});

test('long arguments and results are contents of the record, wherever it goes', { timeout: TIMEOUT_MS }, async () => {
	const long = 900_000;
	const code = `
for letter in 'aab':
	answer = tools.everything.echo.sync(message=letter * ${long})
	print(len(answer), answer[-1])
`;
	const made = await stack.run({ language: 'python', code, servers: ['everything'] });
	assert.equal(made.stdout, `${long + 6} a\n${long + 6} a\n${long + 6} b\n`, made.stderr);
	const id = made.execution_id, file = (name) => path.join(stack.state, name);
	const cli = async (config, ...args) => {
		const { stdout, stderr, code: status } = await stack.cli(args, config);
		assert.equal(status, 0, args.join(' ') + stdout + stderr);
		return stdout;
	};
	const there = (name) => {
		writeFileSync(file(name + '.json'), JSON.stringify({ ...JSON.parse(readFileSync(stack.config, 'utf8').replace(/^ *\/\/.*$/gm, '')), data_dir: file(name) }));
		return file(name + '.json');
	};
	const holds = async (config) => {
		const { tool_calls: toolCalls } = JSON.parse(await cli(config, 'show', '--json', id));
		assert.deepEqual(toolCalls.map((call) => JSON.parse(call.arguments).message.length), [long, long, long]);
		assert.deepEqual(toolCalls.map((call) => call.result.includes('Echo: ' + JSON.parse(call.arguments).message)), [true, true, true]);
		assert.match(await cli(config, 'show', id), /everything\.echo +\{"message":"aaaa/);
		await cli(config, 'replay', id);
	};
	await holds(stack.config);
	assert.equal(JSON.parse((await cli(stack.config, 'log', '--json', '--tool', 'everything.echo', '--limit', '1')).split('\n')[0]).id, id);
	await cli(stack.config, 'export', '--output', file('long.bundle'), id);
	await cli(stack.config, 'verify', file('long.bundle'));
	await cli(there('long-imported'), 'import', file('long.bundle'));
	await holds(file('long-imported.json'));
	await cli(stack.config, 'backup', '--key', file('long-backup'));
	await cli(stack.config, 'verify', '--blobs', file('long-backup'));
	await cli(there('long-restored'), 'restore', file('long-backup'));
	await holds(file('long-restored.json'));
	/* In the record that was imported no other contents are so long: two texts of arguments, two results. */
	const contents = () => readdirSync(path.join(file('long-imported'), 'blobs'), { recursive: true }).map((name) => path.join(file('long-imported'), 'blobs', name)).filter((name) => statSync(name).isFile() && statSync(name).size > 100_000);
	assert.equal(contents().length, 4);
	await cli(file('long-imported.json'), 'forget', '--execution', id, '--yes');
	assert.doesNotMatch(await cli(file('long-imported.json'), 'show', '--json', id), /aaa|bbb/);
	await cli(file('long-imported.json'), 'verify');
});

test('replay --live asks the real servers, --record keeps what they answer', { timeout: TIMEOUT_MS }, async () => {
	const replay = async (...options) => {
		const { stdout, stderr, code } = await stack.cli(['replay', '--json', ...options, made.execution_id]);
		const [one] = stdout.trim().split('\n').map((line) => JSON.parse(line));
		return { ...one, code, stderr };
	};
	const live = ['--live', '--upstream', file];
	prices.says({ pear: 3, apple: 5 });
	const code = "total = sum([int(await tools.prices.price(item=i)) for i in ('pear', 'apple')])\nprint('dear' if total > 10 else 'cheap')\ntry: await tools.prices.buy(item='pear')\nexcept tools.ToolError as e: print(e.kind)";
	const made = await stack.run({ language: 'python', code, servers: ['prices'] });
	assert.equal(made.stdout, 'cheap\napproval\n', made.stderr);
	assert.equal((await replay(...live)).class, 'identical');
	prices.says({ pear: 3, apple: 4 });
	const answers = await replay(...live);
	assert.equal(answers.class, 'answers_changed');
	assert.equal(answers.code, 1);
	assert.deepEqual(answers.differences, [{
		what: 'answers of tools, 1 in all: call 2, prices.price', recorded: 'result: {"content":[{"text":"5","type":"text"}],"isError":false}',
		now: 'result: {"content":[{"text":"4","type":"text"}],"isError":false}',
	}]);
	prices.says({ pear: 3, apple: 8 });
	const before = prices.calls().length;
	const output = await replay(...live);
	assert.equal(output.class, 'output_changed');
	assert.deepEqual(output.differences.map(({ what }) => what), ['answers of tools, 1 in all: call 2, prices.price', 'stdout']);
	assert.deepEqual(prices.calls().slice(before), ['price pear', 'price apple']); /* once, though it differs, and nothing that must be asked about */
	assert.equal((await replay()).class, 'identical'); /* the record has not changed */
	const recorded = await replay('--record', '--reason', 'apples are dear', '--force', '--upstream', file);
	assert.equal(recorded.class, 'output_changed');
	assert.equal(recorded.generation, 2);
	prices.says({});
	assert.equal((await replay()).class, 'identical'); /* against generation 2, with its answers */
	const failing = await replay(...live);
	assert.equal(failing.class, 'diverged'); /* it ends before it calls the others */
	assert.match(failing.differences[0].now, /call 2 of the record, prices\.price with \{"item":"apple"\}, is not made now/);
	assert.match(failing.differences[1].recorded, /^result: .*"3"/);
	assert.match(failing.differences[1].now, /^result, the tool failed: .*"undefined"/);
	const shown = await stack.cli(['show', made.execution_id]);
	assert.match(shown.stdout, /^expected +generation 2, OK, .*: apples are dear \(3 calls of tools answered anew\)$/m);
	await stack.cli(['verify']);
	/* A server that is away is no outcome. */
	const away = path.join(stack.state, 'away.json');
	writeFileSync(away, JSON.stringify({ mcpServers: { prices: { command: '/nonexistent', jail: false } } }), { mode: 0o600 });
	const unavailable = await replay('--live', '--upstream', away);
	assert.equal(unavailable.class, 'sandbox_error');
	assert.equal(unavailable.code, 13);
	assert.match(unavailable.reason, /--live: the server prices: .*nonexistent/);
	for (const [options, says] of [
		[['--upstream', file], /without --live the record answers/],
		[['--live'], /no file says what servers there are/],
		[['--record', '--upstream', file], /--record needs a --reason/],
		[['--live', '--bless', '--force', '--reason', 'x'], /say --record/],
		[[...live, '--runner', 'python=/usr/bin/python3'], /cannot be combined with --runner/],
		[[...live, '--merge', away], /no server is asked/],
	]) {
		const refused = await stack.cli(['replay', ...options, made.execution_id]);
		assert.equal(refused.code, 2, refused.stdout + refused.stderr);
		assert.match(refused.stderr, says);
	}
	/* The generation goes along in a bundle, with its calls. */
	const bundle = path.join(stack.state, 'live-bundle'), config = path.join(stack.state, 'live-there.json');
	writeFileSync(config, JSON.stringify({ ...JSON.parse(readFileSync(stack.config, 'utf8').replace(/^ *\/\/.*$/gm, '')), data_dir: path.join(stack.state, 'live-there') }));
	assert.equal((await stack.cli(['export', '--output', bundle, made.execution_id])).code, 0);
	for (const args of [['import', bundle], ['replay', made.execution_id]]) {
		const { stdout, stderr, code: status } = await stack.cli(args, config);
		assert.equal(status, 0, stdout + stderr);
	}
});

test('a replayed program that waits for a real server does not use its own time', { timeout: TIMEOUT_MS }, async () => {
	prices.says({ pear: 3 });
	const made = await stack.run({ language: 'python', code: "print(await tools.prices.price(item='pear'))", servers: ['prices'], timeout_seconds: 8 });
	prices.says({ pear: 3 }, 9000);
	const { stdout } = await stack.cli(['replay', '--live', '--upstream', file, made.execution_id]);
	assert.match(stdout, / identical$/m);
});

test('of a live session the runs before are answered from the record, also with --live', { timeout: TIMEOUT_MS }, async () => {
	const session = (code) => stack.run({ language: 'python', code, servers: ['prices'], session: true, conversationId: 'live-replay' });
	prices.says({ pear: 3, plum: 1 });
	await session("first = await tools.prices.price(item='pear')");
	const second = await session("print(first, await tools.prices.price(item='plum'))");
	assert.equal(second.stdout, '3 1\n', second.stderr);
	prices.says({ pear: 4, plum: 2 });
	const before = prices.calls().length;
	const { stdout } = await stack.cli(['replay', '--live', '--upstream', file, second.execution_id]);
	assert.match(stdout, /now: +"3 2"/);
	assert.deepEqual(prices.calls().slice(before), ['price plum']);
});

test('log and replay choose by the tools that a run called', { timeout: TIMEOUT_MS }, async () => {
	const made = await stack.run({ language: 'python', code: "print(tools.everything.get_sum(a=40, b=2))", servers: ['everything', 'files'] });
	const listed = async (pattern) => {
		const { stdout } = await stack.cli(['log', '--json', '--limit', '1', '--tool', pattern]);
		return stdout ? JSON.parse(stdout).id : null;
	};
	for (const pattern of ['everything', 'everything.get-sum', '*.get-*', 'every*.*']) assert.equal(await listed(pattern), made.execution_id, pattern);
	for (const pattern of ['files.get-sum', 'get-sum', 'nothing', 'everything.get-sums']) assert.notEqual(await listed(pattern), made.execution_id, pattern);
	assert.equal((await stack.cli(['replay', '--tool', '*.get-sum', '--since', '1h'])).code, 0);
});

test('a bundle carries the calls of tools', { timeout: TIMEOUT_MS }, async () => {
	const made = await stack.run({ language: 'python', code: "print(tools.everything.echo(message='over there'))", servers: ['everything'] });
	const bundle = path.join(stack.state, 'bundle'), config = path.join(stack.state, 'there.json');
	writeFileSync(config, JSON.stringify({ ...JSON.parse(readFileSync(stack.config, 'utf8').replace(/^ *\/\/.*$/gm, '')), data_dir: path.join(stack.state, 'there') }));
	const elsewhere = async (...args) => {
		const { stdout, stderr, code } = await stack.cli(args, config);
		assert.equal(code, 0, stdout + stderr);
		return stdout;
	};
	assert.equal((await stack.cli(['export', '--output', bundle, made.execution_id])).code, 0);
	await elsewhere('import', bundle);
	assert.match(await elsewhere('replay', made.execution_id), /1 identical/);
	const { tool_calls: toolCalls, runtime } = JSON.parse(await elsewhere('show', '--json', made.execution_id));
	assert.deepEqual(toolCalls.map((call) => [call.server, call.tool, JSON.parse(call.arguments).message]), [['everything', 'echo', 'over there']]);
	assert.equal(runtime.runner, 'python');
	await elsewhere('verify');
	await elsewhere('import', bundle); /* again: nothing is there twice */
	assert.equal(JSON.parse(await elsewhere('show', '--json', made.execution_id)).tool_calls.length, 1);
});

test('what a program waits for tools is not its wall clock time', { timeout: TIMEOUT_MS }, async () => {
	const waits = 'print(tools.everything.trigger_long_running_operation(duration=4, steps=1) != "")';
	const result = await stack.run({ language: 'python', code: waits, servers: ['everything'], timeout_seconds: 2 });
	assert.equal(result.verdict, 'OK', result.message);
	const busy = await stack.run({ language: 'python', code: `${waits}\nwhile True: pass`, servers: ['everything'], timeout_seconds: 2 });
	assert.equal(busy.verdict, 'TO');
});

/* What a model reads and writes, in characters: the same task by calls of its own, and by one program. */
test('a thousand records from one tool, ten to another: one program is far less text', { timeout: TIMEOUT_MS }, async (t) => {
	const entities = Array.from({ length: 1000 }, (_, n) => ({ name: `order-${n}`, entityType: n % 100 ? 'fine' : 'late', observations: [`placed ${n}`, `value ${n * 7}`] }));
	await stack.run({ language: 'python', code: "import json\ntools.memory.create_entities(entities=json.load(open('in.json')))", servers: ['memory'], files: [{ filename: 'in.json', content: JSON.stringify(entities) }] });
	const code = `late = [e for e in tools.memory.read_graph()["entities"] if e["entityType"] == "late"]
for e in late:
    tools.files.write_file(path="${path.join(stack.state, 'files')}/" + e["name"] + ".txt", content=e["observations"][1])
print(len(late), "written")
`;
	const args = { conversationId: 'records', language: 'python', code, servers: ['memory', 'files'] };
	const { result } = await stack.call('run_code', args);
	const text = result.content.map((block) => block.text ?? '').join('');
	assert.match(text, /\n\[stdout\]\n10 written\n$/);
	const { tool_calls: toolCalls } = JSON.parse((await stack.cli(['show', '--json', result.structuredContent.execution_id])).stdout);
	assert.equal(toolCalls.length, 11);
	const shown = ({ name, description, inputSchema }) => JSON.stringify({ name, description, inputSchema }).length;
	const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
	const definitions = ['memory', 'filesystem'].flatMap((name) => JSON.parse(readFileSync(path.join(root, `tests/data/tools/${name}.json`), 'utf8')));
	const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} };
	const listed = await fetch(stack.url, {
		method: 'POST',
		headers: { ...stack.headers, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/list' },
		body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: meta } }),
	});
	const own = (await listed.json()).result.tools.find((tool) => tool.name === 'run_code');
	const direct = sum(definitions.map(shown)) + sum(toolCalls.map((call) => call.arguments.length + sum(JSON.parse(call.result).content.map((block) => block.text.length))));
	const program = shown(own) + JSON.stringify(args).length + text.length;
	t.diagnostic(`directly ${direct} characters, by a program ${program}: ${(direct / program).toFixed(1)} to 1`);
	assert.ok(direct / program > 10);
});

/* What a hostile program may try on its socket, without our modules: prints one line for each try. */
const HOSTILE = `
import json, os, socket, struct
def connect():
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(30)
    link.connect(os.environ['MCP_SOCKET'])
    return link
def send(link, frame):
    body = frame if isinstance(frame, bytes) else json.dumps(frame).encode()
    link.sendall(struct.pack('>I', len(body)) + body)
def receive(link):
    head = b''
    while len(head) < 4:
        part = link.recv(4 - len(head))
        if not part: return {'error': {'kind': 'ended'}}
        head += part
    body = b''
    while len(body) < struct.unpack('>I', head)[0]:
        body += link.recv(1 << 16)
    return json.loads(body)
def kind(answer): return 'done' if answer.get('ok') else answer['error']['kind']
def ask(frame):
    with connect() as link:
        send(link, frame)
        return kind(receive(link))
call = lambda server, tool, **more: ask({'id': 1, 'op': 'call', 'server': server, 'tool': tool, 'arguments': {}, **more})
print('another server', call('files', 'list_allowed_directories'))
print('not configured', call('../files', 'x'), call('', ''), call('files\\0memory', 'read_graph'))
print('denied', call('memory', 'delete_entities', arguments={'entityNames': ['a']}))
print('a method in place of a tool', call('memory', 'tools/list'), call('memory', 'resources/read'))
print('another way', ask({'id': 1, 'op': 'start', 'server': 'files'}), ask({'id': 1, 'op': 'call', 'server': ['files'], 'tool': 'x'}))
print('rubbish', ask(b'\\xff\\xfe'), ask(b'[]'), ask(b'{"id":1'))
with connect() as link:
    link.sendall(struct.pack('>I', 0xffffffff) + b'x' * 100)
    print('a length of 4 GB', kind(receive(link)))
with connect() as link:
    send(link, {'id': 7, 'op': 'servers'})
    first = kind(receive(link))
    send(link, {'id': 7, 'op': 'servers'})
    print('an id twice', first, kind(receive(link)))
with connect() as link:
    send(link, {'id': 1, 'op': 'servers'})
    print('all that there is', [one['name'] for one in receive(link)['result']])
print('still served', call('memory', 'read_graph'))
`;
const REACHED = `another server invalid
not configured invalid invalid protocol
denied denied
a method in place of a tool invalid invalid
another way protocol protocol
rubbish protocol protocol protocol
a length of 4 GB protocol
an id twice done protocol
all that there is ['memory']
still served done
`;
test('a hostile program reaches nothing on its socket but what policy allows, in a live session as well', { timeout: TIMEOUT_MS }, () => gauged(2, async () => {
	for (const session of [false, true]) {
		const result = await stack.run({ language: 'python', code: HOSTILE, servers: ['memory'], session, conversationId: `hostile-${session}` });
		assert.equal(result.stdout + result.stderr, REACHED);
		assert.deepEqual([...new Set(result.toolCalls.filter(({ state }) => state === 'done').map(({ server, tool }) => `${server}.${tool}`))], ['memory.read_graph']);
	}
	const next = await stack.run({ language: 'python', code: "import socket\ntry: socket.socket(socket.AF_UNIX).connect('/code/.mcp')\nexcept OSError as error: print(type(error).__name__)", session: true, conversationId: 'hostile-true' });
	assert.equal(next.stdout, 'ConnectionRefusedError\n', next.stderr); /* its name is left, nobody listens */
}));

test('the end of a program cancels its calls', { timeout: TIMEOUT_MS }, () => gauged(2, async () => {
	const code = "import os, time, tools\nfor n in range(3): tools.wire().ask({'op': 'call', 'server': 'everything', 'tool': 'trigger-long-running-operation', 'arguments': {'duration': 600, 'steps': 1}}, print)\ntools.everything.echo(message='x')\nprint('ends', flush=True)\nos._exit(0)";
	const result = await stack.run({ language: 'python', code, servers: ['everything'] });
	assert.equal(result.stdout, 'ends\n', result.stderr);
	assert.deepEqual(result.toolCalls.map(({ state }) => state).sort(), ['cancelled', 'cancelled', 'cancelled', 'done']);
}));

test('a server hears that nobody waits any more: a deadline, the end of a run', { timeout: TIMEOUT_MS }, async () => {
	const cancelled = () => prices.calls().filter((line) => line === 'cancelled').length;
	prices.says({ pear: 3 }, 120_000);
	const late = await stack.run({ language: 'python', code: "import tools\ntry: tools.call('prices', 'price', {'item': 'pear'}, timeout=1)\nexcept tools.Timeout as error: print(error.kind)", servers: ['prices'] });
	assert.equal(late.stdout, 'timeout\n', late.stderr);
	await until('the first call to be cancelled', () => cancelled() === 1);
	const code = "import os, time\nimport tools\ntools.wire().ask({'op': 'call', 'server': 'prices', 'tool': 'price', 'arguments': {'item': 'last'}}, print)\ntime.sleep(1)\nos._exit(0)";
	await stack.run({ language: 'python', code, servers: ['prices'] });
	await until('the second call to be cancelled', () => cancelled() === 2);
	assert.deepEqual(prices.calls().slice(-2), ['price last', 'cancelled']);
});

test('a task calls servers', { timeout: TIMEOUT_MS }, async () => {
	const client = new Client({ name: 'test', version: '1' }, { capabilities: {} });
	await client.connect(new StreamableHTTPClientTransport(new URL(stack.url), { requestInit: { headers: stack.headers } }));
	const args = { conversationId: 'task', language: 'python', code: "print(tools.everything.echo(message='in a task'))", servers: ['everything'] };
	const kinds = [];
	let last;
	for await (const message of client.experimental.tasks.callToolStream({ name: 'run_code', arguments: args }, CallToolResultSchema, { task: { ttl: 600_000 } })) {
		kinds.push(message.type);
		last = message;
	}
	await client.close();
	assert.equal(kinds[0], 'taskCreated');
	assert.equal(last.type, 'result');
	assert.match(last.result.content.map((block) => block.text).join(''), /^\[sallyport\] tools: everything\.echo ×1\n\[stdout\]\nEcho: in a task\n$/);
});
