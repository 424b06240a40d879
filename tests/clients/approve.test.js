/*
 * approve.test.js - calls of tools that the user must allow: both SDKs' clients, both eras, over HTTP and over standard input and output,
 * answer Sallyport's questions as a person would; what they answer decides, and the record says so.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { ASKS, Stack, bin, makeState, root, until } from './stack.js';

const TIMEOUT_MS = 180_000;
const INFO = { name: 'test', version: '1' };
const node = path.join(root, 'jail/runners/npm/node_modules/.bin/node');
const everything = path.join(root, 'tests/clients/node_modules/@modelcontextprotocol/server-everything/dist/index.js');

let stack, env;
before(async () => {
	const state = makeState(), file = path.join(state, 'upstream.json');
	const entry = { command: node, args: [everything], jail: false, tools: { allow: ['get-tiny-image'], ask: ['*'], deny: ['get-env'] } };
	writeFileSync(file, JSON.stringify({ mcpServers: { everything: entry } }), { mode: 0o644 });
	stack = await Stack.start({ state, env: { SALLYPORT_UPSTREAM_FILE: file, SALLYPORT_LIMITS_TOOL_ASK_SECONDS: '20', SALLYPORT_LIMITS_SYNCHRONOUS_SECONDS: '60' } });
	env = stack.stdioEnv({ SALLYPORT_UPSTREAM_FILE: file });
});
after(async () => {
	stack?.complaints();
	await stack?.stop();
});

/* A client whose user is `decide`: from a message to the answer's decision, or to a whole result. */
function answers(decide, asked) {
	return async ({ params }) => {
		asked.push(params.message);
		assert.deepEqual(params.requestedSchema.properties.decision.enum, ['once', 'run', 'no']);
		const decision = await decide(params.message);
		return typeof decision === 'string' ? { action: 'accept', content: { decision } } : decision;
	};
}
const http = (Transport) => () => new Transport(new URL(stack.url), { requestInit: { headers: stack.headers } });
const stdio = (Transport) => () => new Transport({ command: path.join(bin, 'sallyport'), args: ['stdio'], env, stderr: 'ignore' });
const v1 = (transport) => async (decide, asked) => {
	const client = new ClientV1(INFO, { capabilities: decide ? { elicitation: {} } : {} });
	if (decide) client.setRequestHandler(ElicitRequestSchema, answers(decide, asked));
	await client.connect(transport());
	return { client, run: (args, options) => client.callTool({ name: 'run_code', arguments: args, _meta: ASKS }, undefined, options) };
};
const v2 = (mode, transport) => async (decide, asked) => {
	const client = new ClientV2(INFO, { versionNegotiation: { mode }, capabilities: decide ? { elicitation: { form: {} } } : {} });
	if (decide) client.setRequestHandler('elicitation/create', answers(decide, asked));
	await client.connect(transport());
	return { client, run: (args, options) => client.callTool({ name: 'run_code', arguments: args, _meta: ASKS }, options) };
};
const modern = { pin: '2026-07-28' };
const clients = [
	['SDK v1, legacy, HTTP', v1(http(TransportV1))],
	['SDK v2, legacy, HTTP', v2('legacy', http(TransportV2))],
	['SDK v2, modern, HTTP', v2(modern, http(TransportV2))],
	['SDK v1, legacy, stdio', v1(stdio(StdioV1))],
	['SDK v2, modern, stdio', v2(modern, stdio(StdioV2))],
];

/* The newest row, once it has ended. */
const newest = async () => (await stack.rows()).slice(0, 1).find(({ verdict }) => verdict);

const program = (lines) => ({ conversationId: 'ask', language: 'python', servers: ['everything'], code: `import tools\nfrom tools import everything\n${lines}\n` });
const details = (result) => result.structuredContent;
const TRY = `
def attempt(what, **arguments):
    try: print(getattr(everything, what)(**arguments))
    except tools.Denied as error: print(error.kind, '|', error.text)
`;

for (const [name, connect] of clients)
	test(`${name}: once, no, for this run`, { timeout: TIMEOUT_MS }, async () => {
		const asked = [];
		const { client, run } = await connect((message) => (/"a1"/.test(message) ? 'once' : /echo/.test(message) ? 'no' : 'run'), asked);
		const result = details(await run(program(`${TRY}
attempt('echo', message='a1')
attempt('echo', message='a2')
attempt('get_sum', a=1, b=2)
attempt('get_sum', a=3, b=4)
attempt('get_env')
print(len(everything.get_tiny_image()))`)));
		assert.equal(result.stderr, '');
		assert.equal(result.stdout, 'Echo: a1\ndenied | the user did not allow this call\nThe sum of 1 and 2 is 3.\nThe sum of 3 and 4 is 7.\n' +
			'denied | not allowed (everything.tools.deny get-env)\n3\n');
		assert.deepEqual(asked, ['a1', 'a2'].map((text) => `A program wants to call everything.echo with {"message":"${text}"}`).concat(
			'A program wants to call everything.get-sum with {"a":1,"b":2}'));
		await client.close();
		if (!/HTTP/.test(name)) return;
		const { tool_calls: toolCalls } = JSON.parse((await stack.cli(['show', '--json', result.execution_id])).stdout);
		assert.deepEqual(toolCalls.map((call) => [call.decision, call.decided_by ?? null, call.state]), [
			['ask', 'user: once', 'done'], ['ask', 'user: no', 'refused'], ['ask', 'user: for this run', 'done'],
			['ask', 'user: for this run', 'done'], ['deny', null, 'refused'], ['allow', null, 'done'],
		]);
		assert.equal((await stack.cli(['replay', result.execution_id])).code, 0);
	});

for (const [name, connect] of clients.slice(0, 3))
	test(`${name}: the question does not show the run's secrets`, { timeout: TIMEOUT_MS }, async () => {
		const asked = [];
		const { client, run } = await connect(() => 'once', asked);
		const result = details(await run({ ...program("import os\nprint(len(everything.echo(message='is ' + os.environ['S'])))"), secrets: { S: 'hunter2 "ü"' } }));
		assert.equal(result.stdout, '20\n', JSON.stringify(result));
		assert.deepEqual(asked, ['A program wants to call everything.echo with {"message":"is ***"}']);
		await client.close();
	});

for (const [name, connect] of clients)
	test(`${name}: who declines, or cannot be asked`, { timeout: TIMEOUT_MS }, async () => {
		const decline = await connect(() => ({ action: 'decline' }), []);
		assert.equal(details(await decline.run(program(`${TRY}attempt('echo', message='x')`))).stdout, 'denied | the user did not allow this call\n');
		await decline.client.close();
		const without = await connect(null);
		assert.equal(details(await without.run(program(`${TRY}attempt('echo', message='x')`))).stdout,
			"approval | this call needs the user's approval, and this client cannot be asked (it has no elicitation capability) (everything.tools.ask *)\n");
		await without.client.close();
	});

for (const [name, connect] of clients.slice(0, 3))
	test(`${name}: the user takes time, which is not the program's; calls at once`, { timeout: TIMEOUT_MS }, async () => {
		const asked = [];
		const { client, run } = await connect(async () => {
			await new Promise((resolve) => setTimeout(resolve, 6000));
			return 'once';
		}, asked);
		const code = "import asyncio\nprint(await asyncio.gather(*[everything.echo(message=str(n)) for n in range(2)]))";
		const result = details(await run({ ...program(code), timeout_seconds: 5 }));
		assert.equal(result.stdout, "['Echo: 0', 'Echo: 1']\n", JSON.stringify(result));
		assert.equal(asked.length, 2);
		await client.close();
	});

for (const [name, connect] of clients.slice(0, 2))
	test(`${name}: a call that is cancelled takes its question with it`, { timeout: TIMEOUT_MS }, async () => {
		const cancel = new AbortController();
		let asked = 0;
		const { client, run } = await connect(() => {
			asked++;
			cancel.abort();
			return new Promise(() => {});
		}, []);
		await assert.rejects(run(program("everything.echo(message='x')"), { signal: cancel.signal }));
		const row = await until('the run to end', newest);
		assert.equal(row.verdict, 'CX');
		assert.equal(asked, 1);
		await client.close();
	});

/* The modern era without an SDK: [status, result or error]. */
const raw = (args, more, token) => request('tools/call', 'run_code', { name: 'run_code', arguments: args, ...more }, token);
async function request(method, name, params, token = stack.token) {
	const extensions = { 'io.modelcontextprotocol/tasks': {} };
	const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} }, extensions } };
	const response = await fetch(stack.url, {
		method: 'POST',
		headers: {
			Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', Accept: 'application/json',
			'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': method, 'Mcp-Name': name,
		},
		body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } }),
	});
	return response.json();
}
const yes = { action: 'accept', content: { decision: 'once' } };

test('modern: a state is of use to its own call alone', { timeout: TIMEOUT_MS }, async () => {
	const call = program("print(everything.echo(message='x'), everything.get_sum(a=1, b=1))");
	const first = (await raw(call)).result;
	assert.equal(first.resultType, 'input_required');
	assert.deepEqual(Object.keys(first.inputRequests), ['call-1']);
	const answer = { requestState: first.requestState, inputResponses: { 'call-1': yes } };
	const { token } = JSON.parse((await stack.cli(['token', 'add', '--owner', 'other', '--json'])).stdout);
	for (const refused of [
		await raw(call, answer, token), await raw({ ...call, args: ['more'] }, answer), await raw(call, { ...answer, requestState: 'x' }),
		await raw(call, { ...answer, requestState: first.requestState.replace(/.$/, (c) => (c === '0' ? '1' : '0')) }),
	]) {
		assert.equal(refused.error?.code, -32602, JSON.stringify(refused));
		assert.match(refused.error.message, /requestState/);
	}
	const [second, again] = await Promise.all([raw(call, answer), raw(call, answer)]);
	for (const { result } of [second, again]) assert.deepEqual(Object.keys(result.inputRequests), ['call-2']);
	const last = { requestState: second.result.requestState, inputResponses: { 'call-2': yes } };
	const both = await Promise.all([raw(call, last), raw(call, last)]);
	for (const { result } of both) assert.equal(details(result).stdout, 'Echo: x The sum of 1 and 1 is 2.\n');
	assert.equal(details(both[0].result).execution_id, details(both[1].result).execution_id);
	assert.equal(details((await raw(call, last)).result).execution_id, details(both[0].result).execution_id);
});

test('modern: no answer in time is a no', { timeout: TIMEOUT_MS }, async () => {
	const call = program(`${TRY}attempt('echo', message='x')`);
	const { result } = await raw(call);
	const row = await until('the run to end', newest);
	assert.equal(row.verdict, 'OK');
	const late = (await raw(call, { requestState: result.requestState, inputResponses: { 'call-1': yes } })).result;
	assert.equal(details(late).stdout, 'approval | nobody answered the question whether this call is allowed\n');
});

test('modern: an owner has at most four programs that wait', { timeout: TIMEOUT_MS }, async () => {
	const call = (n) => ({ ...program(`${TRY}attempt('echo', message='${n}')`), conversationId: `parked${n}` });
	const waiting = await Promise.all([0, 1, 2, 3].map((n) => raw(call(n))));
	for (const { result } of waiting) assert.equal(result.resultType, 'input_required');
	assert.match(details((await raw(call(4))).result).stdout, /^approval \| .*4 programs of yours wait for an answer already/);
	for (const [n, { result }] of waiting.entries())
		assert.equal(details((await raw(call(n), { requestState: result.requestState, inputResponses: { 'call-1': yes } })).result).stdout, `Echo: ${n}\n`);
});

test('modern: a task waits for the user, too', { timeout: TIMEOUT_MS }, async () => {
	const call = { ...program(`${TRY}attempt('echo', message='a')\nattempt('echo', message='b')`), timeout_seconds: 100 };
	const { result: task } = await raw(call);
	assert.equal(task.resultType, 'task', JSON.stringify(task));
	const look = async () => (await request('tasks/get', task.taskId, { taskId: task.taskId })).result;
	const asks = (key) => until(`the question ${key}`, async () => [await look()].find(({ status, inputRequests }) => status === 'input_required' && inputRequests[key]));
	const tell = (key, response) => request('tasks/update', task.taskId, { taskId: task.taskId, inputResponses: { [key]: response } });
	assert.match((await asks('call-1')).inputRequests['call-1'].params.message, /"message":"a"/);
	await tell('call-1', yes);
	await asks('call-2');
	await tell('call-2', { action: 'decline' });
	const ended = await until('the end', async () => [await look()].find(({ status }) => status === 'completed'));
	assert.equal(details(ended.result).stdout, 'Echo: a\ndenied | the user did not allow this call\n');
});
