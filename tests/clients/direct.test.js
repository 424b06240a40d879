/*
 * direct.test.js - tools of upstream servers that models call themselves (tools.upstream): their names, results as the servers gave them,
 * policy and questions, the record and its replay, and the news that a server's tools changed.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { Stack, makeState, root, until } from './stack.js';

const TIMEOUT_MS = 180_000;
const INFO = { name: 'test', version: '1' };
const node = path.join(root, 'jail/runners/npm/node_modules/.bin/node');
const everything = path.join(root, 'tests/clients/node_modules/@modelcontextprotocol/server-everything/dist/index.js');

/* A server whose tools have awkward names; the tool `grow` gives it one more. */
const awkward = `
const tools = ['my-tool', 'my_tool', 'grow', 'x'.repeat(70)];
const say = (message) => console.log(JSON.stringify({ jsonrpc: '2.0', ...message }));
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
	const { id, method, params } = JSON.parse(line);
	if (method === 'initialize') say({ id, result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'a', version: '1' } } });
	else if (method === 'tools/list') say({ id, result: { tools: tools.map((name) => ({ name, inputSchema: { type: 'object' } })) } });
	else if (method === 'tools/call') {
		if (params.name === 'grow') {
			tools.push('grown');
			say({ method: 'notifications/tools/list_changed' });
		}
		say({ id, result: { content: [{ type: 'text', text: params.name }], structuredContent: params.arguments, _meta: { mine: 1 } } });
	} else if (id !== undefined) say({ id, error: { code: -32601, message: 'Method not found' } });
});
`;

let stack, file;
before(async () => {
	const state = makeState(), script = path.join(state, 'awkward.cjs');
	file = path.join(state, 'upstream.json');
	writeFileSync(script, awkward, { mode: 0o644 });
	writeFileSync(
		file,
		JSON.stringify({
			mcpServers: {
				everything: { command: node, args: [everything], jail: false, tools: { allow: ['*image', 'echo', 'toggle*'], ask: ['get-sum'], deny: ['get-env'], default: 'allow' } },
				awkward: { command: node, args: [script], jail: false, tools: { allow: ['*'] } },
				away: { url: 'http://127.0.0.1:1/mcp', private: true, tools: { allow: ['*'] } },
				broken: { command: '${SP_NO_SUCH_VARIABLE}' },
			},
		}),
		{ mode: 0o644 },
	);
	stack = await Stack.start({ state, env: { SALLYPORT_UPSTREAM_FILE: file, SALLYPORT_TOOLS_UPSTREAM: 'both' } });
});
after(async () => {
	stack?.complaints();
	await stack?.stop();
});

async function v1(decision) {
	const client = new ClientV1(INFO, { capabilities: decision ? { elicitation: {} } : {} }), told = { changed: 0, asked: [] };
	if (decision)
		client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
			told.asked.push(params.message);
			return { action: 'accept', content: { decision } };
		});
	client.setNotificationHandler(ToolListChangedNotificationSchema, () => void told.changed++);
	await client.connect(new TransportV1(new URL(stack.url), { requestInit: { headers: stack.headers } }));
	return { client, told };
}
async function v2(decision) {
	const client = new ClientV2(INFO, { versionNegotiation: { mode: { pin: '2026-07-28' } }, capabilities: decision ? { elicitation: { form: {} } } : {} });
	const told = { asked: [] };
	if (decision)
		client.setRequestHandler('elicitation/create', ({ params }) => {
			told.asked.push(params.message);
			return { action: 'accept', content: { decision } };
		});
	await client.connect(new TransportV2(new URL(stack.url), { requestInit: { headers: stack.headers } }));
	return { client, told };
}

for (const [name, connect] of [['SDK v1, legacy', v1], ['SDK v2, modern', v2]])
	test(`${name}: tools of servers are listed and called`, { timeout: TIMEOUT_MS }, async () => {
		const { client, told } = await connect('once');
		const { tools } = await client.listTools();
		const names = tools.map((tool) => tool.name);
		for (const expected of ['run_code', 'search_tools', 'everything__echo', 'everything__get_sum', 'awkward__grow']) assert.ok(names.includes(expected), expected);
		assert.ok(!names.includes('everything__get_env'), 'what is denied is not shown');
		assert.ok(names.every((tool) => /^[A-Za-z0-9_]{1,64}$/.test(tool)), names.join());
		assert.equal(new Set(names).size, names.length);
		assert.match(names.join(), /awkward__my_tool_[0-9a-f]{8},awkward__my_tool_[0-9a-f]{8},/);
		assert.ok(tools.find((tool) => tool.name === 'everything__echo').inputSchema.properties.message);
		const call = (tool, args) => client.callTool({ name: tool, arguments: args });
		assert.deepEqual((await call('everything__echo', { message: 'é\n"' })).content, [{ type: 'text', text: 'Echo: é\n"' }]);
		const image = await call('everything__get_tiny_image', {});
		assert.equal(image.content.find((block) => block.type === 'image').mimeType, 'image/png');
		const [mine, other] = names.filter((tool) => /^awkward__my_tool_/.test(tool));
		assert.deepEqual([(await call(mine, {})).content[0].text, (await call(other, {})).content[0].text], ['my-tool', 'my_tool']);
		const long = await call(names.find((tool) => /^awkward__xxx/.test(tool)), { n: 12345678901234, list: [1.5, null] });
		assert.equal(long.content[0].text, 'x'.repeat(70));
		assert.deepEqual(long.structuredContent, { n: 12345678901234, list: [1.5, null] });
		assert.equal((await call('everything__get_sum', { a: 2, b: 3 })).content[0].text, 'The sum of 2 and 3 is 5.');
		assert.deepEqual(told.asked, ['The model wants to call everything.get-sum with {"a":2,"b":3}']);
		const wrong = await call('everything__echo', { massage: 1 });
		assert.equal(wrong.isError, true);
		assert.match(wrong.content[0].text, /message/);
		await assert.rejects(call('everything__nothing', {}), /Unknown tool/);
		await client.close();
	});

test('a denied call is a result with the rule that denies it', { timeout: TIMEOUT_MS }, async () => {
	const { result: refused } = await stack.call('everything__get_sum', { a: 1, b: 2 });
	assert.equal(refused.isError, true);
	assert.match(refused.content[0].text, /cannot be asked .*everything\.tools\.ask get-sum/);
	const { result: denied } = await stack.call('everything__get_env', {});
	assert.match(denied.content[0].text, /^not allowed \(everything\.tools\.deny get-env\)/);
});

test('a call is in the record, and replays from it', { timeout: TIMEOUT_MS }, async () => {
	const { result } = await stack.call('everything__echo', { message: 'kept' });
	const id = result._meta['sallyport/result'].execution_id;
	const { tool_calls: toolCalls } = JSON.parse((await stack.cli(['show', '--json', id])).stdout);
	assert.deepEqual(toolCalls.map((call) => [call.server, call.tool, call.state, call.decision]), [['everything', 'echo', 'done', 'allow']]);
	assert.equal((await stack.cli(['replay', id])).code, 0);
});

test('a token sees the tools of its servers alone', { timeout: TIMEOUT_MS }, async () => {
	const { token } = JSON.parse((await stack.cli(['token', 'add', '--owner', 'dev', '--servers', 'awkward', '--json'])).stdout);
	const client = new ClientV1(INFO);
	await client.connect(new TransportV1(new URL(stack.url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } }));
	const names = (await client.listTools()).tools.map((tool) => tool.name);
	assert.ok(names.includes('awkward__grow') && !names.some((name) => name.startsWith('everything__')), names.join());
	await assert.rejects(client.callTool({ name: 'everything__echo', arguments: { message: 'x' } }), /Unknown tool/);
	await client.close();
});

test('a tool of a server that is down is unavailable, not unknown', { timeout: TIMEOUT_MS }, async () => {
	for (const make of [v1, v2]) {
		const { client } = await make();
		const result = await client.callTool({ name: 'away__search', arguments: {} });
		assert.equal(result.isError, true);
		assert.match(result.content[0].text, /the server away is not available now: try again later/);
		await client.close();
	}
});

test('clients hear that the tools of a server changed', { timeout: TIMEOUT_MS }, async () => {
	const { client, told } = await v1();
	assert.equal(client.getServerCapabilities().tools.listChanged, true);
	await client.callTool({ name: 'awkward__grow', arguments: {} });
	await until('the notification', () => told.changed > 0);
	await until('the new tool', async () => (await client.listTools()).tools.some((tool) => tool.name === 'awkward__grown'));
	await client.close();
});

test('direct alone: programs call nothing', { timeout: TIMEOUT_MS }, async () => {
	const only = await Stack.start({ env: { SALLYPORT_UPSTREAM_FILE: file, SALLYPORT_TOOLS_UPSTREAM: 'direct' } });
	try {
		const { result } = await only.call('run_code', { conversationId: 'x', language: 'python', code: 'print(1)', servers: ['awkward'] });
		assert.match(result.content[0].text, /tools\.upstream is direct/);
		assert.equal((await only.call('search_tools', { query: 'grow' })).error?.code, -32602);
		assert.equal((await only.call('awkward__grow', {})).result.content[0].text, 'grow');
	} finally {
		await only.stop();
	}
});
