/*
 * tasks.test.js - runs that outlive their request, by real clients: SDK v1 with its experimental tasks (revision 2025-11-25), SDK v2 with the
 * package ext-tasks and the Inspector (revision 2026-07-28, extension io.modelcontextprotocol/tasks), and SDK v2 alone, which knows none.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { createTaskSessionFromClient, resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema, TaskStatusNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { Stack, TICKED, lines, run, ticking, until, wakeUntil } from './stack.js';

const INFO = { name: 'sallyport-test', version: '1' };
const VERSION = '2026-07-28', EXTENSION = 'io.modelcontextprotocol/tasks';
const CAPABILITIES = { extensions: { [EXTENSION]: {} } };
const SYNCHRONOUS = 40; /* seconds: longer runs are tasks only */
const LONG = SYNCHRONOUS + 1;
const FOREVER = "import time\nprint('started', flush=True)\nwhile True:\n    time.sleep(0.05)\n";

let stack;
before(async () => (stack = await Stack.start({ env: { SALLYPORT_LIMITS_SYNCHRONOUS_SECONDS: String(SYNCHRONOUS) } })));
after(() => stack?.stop());

const program = (conversationId, code, more) => ({ conversationId, language: 'python', code, ...more });
const rowOf = async (conversation) => (await stack.rows()).find((row) => row.conversation === conversation);

async function connectV1() {
	const client = new ClientV1(INFO);
	await client.connect(new TransportV1(new URL(stack.url), { requestInit: { headers: stack.headers } }));
	return client;
}

describe('SDK v1', () => {
	test('a task from its beginning to its result, with progress and news of its end', async () => {
		const client = await connectV1(), seen = [], messages = [], news = [], ticks = ticking();
		client.setNotificationHandler(TaskStatusNotificationSchema, ({ params }) => void news.push(params));
		try {
			await client.listTools(); /* so that results are held against the tool's schema */
			const stream = client.experimental.tasks.callToolStream({ name: 'run_code', arguments: program('v1', ticks.code) }, CallToolResultSchema, {
				task: { ttl: 600_000 }, onprogress: ({ message }) => seen.push(message),
			});
			const followed = async () => {
				for await (const message of stream) messages.push(message);
			};
			await wakeUntil(ticks, followed(), () => lines(seen.join('')));
			assert.equal(messages[0].type, 'taskCreated');
			assert.equal(messages[0].task.status, 'working');
			assert.equal(messages[0].task.ttl, 600_000);
			assert.ok(messages.some(({ type, task }) => type === 'taskStatus' && task.status === 'completed'), JSON.stringify(messages));
			const { type, result, error } = messages.at(-1);
			assert.equal(type, 'result', String(error));
			assert.equal(result.structuredContent.stdout, TICKED);
			assert.equal(seen.join(''), TICKED);
			const { taskId } = messages[0].task;
			await until('news of its end', () => news.some((task) => task.taskId === taskId && task.status === 'completed'));
		} finally {
			await client.close();
		}
	});

	test('another client fetches the result of a task', async () => {
		const first = await connectV1(), ticks = ticking();
		let taskId;
		for await (const message of first.experimental.tasks.callToolStream({ name: 'run_code', arguments: program('away', ticks.code) }, CallToolResultSchema, { task: {} })) {
			taskId = message.task.taskId;
			break; /* begun: that is all it waits for */
		}
		await first.close();
		const second = await connectV1();
		try {
			const result = await wakeUntil(ticks, second.experimental.tasks.getTaskResult(taskId, CallToolResultSchema));
			assert.equal(result.structuredContent.stdout, TICKED);
			assert.equal(result._meta['io.modelcontextprotocol/related-task'].taskId, taskId);
			const { tasks } = await second.experimental.tasks.listTasks();
			assert.equal(tasks.find((task) => task.taskId === taskId).status, 'completed');
		} finally {
			await second.close();
		}
	});

	test('a task that is cancelled ends its run', async () => {
		const client = await connectV1();
		try {
			const stream = client.experimental.tasks.callToolStream({ name: 'run_code', arguments: program('cancel', FOREVER) }, CallToolResultSchema, { task: {} });
			const { task } = (await stream.next()).value;
			await until('the run', () => rowOf('cancel'));
			assert.equal((await client.experimental.tasks.cancelTask(task.taskId)).status, 'cancelled');
			const row = await until('its end', async () => (await rowOf('cancel')).verdict && rowOf('cancel'));
			assert.equal(row.verdict, 'CX');
			assert.equal((await client.experimental.tasks.getTask(task.taskId)).status, 'cancelled');
			await stream.return();
		} finally {
			await client.close();
		}
	});
});

/* One request of the modern era over HTTP, for a package that leaves this to its host: the JSON-RPC answer. */
let requests = 0;
async function dispatch({ method, params }, { signal } = {}) {
	const response = await fetch(stack.url, {
		method: 'POST',
		signal,
		headers: {
			...stack.headers, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream',
			'MCP-Protocol-Version': VERSION, 'Mcp-Method': method, ...(params.name ?? params.taskId ? { 'Mcp-Name': params.name ?? params.taskId } : {}),
		},
		body: JSON.stringify({ jsonrpc: '2.0', id: ++requests, method, params }),
	});
	return response.json();
}
const meta = { 'io.modelcontextprotocol/protocolVersion': VERSION, 'io.modelcontextprotocol/clientCapabilities': CAPABILITIES };

async function connectV2() {
	const client = new ClientV2(INFO, { versionNegotiation: { mode: { pin: VERSION } } });
	await client.connect(new TransportV2(new URL(stack.url), { requestInit: { headers: stack.headers } }));
	return client;
}

describe('the modern era', () => {
	test('SDK v2 with ext-tasks: a long run is a task, a short one is not, to the caller both are the same', async () => {
		const client = await connectV2();
		assert.deepEqual(client.getServerCapabilities().extensions[EXTENSION], {});
		const session = createTaskSessionFromClient(client, {
			endpointId: 'sallyport', rawDispatch: dispatch, v2RequestFraming: { protocolVersion: VERSION, clientInfo: INFO, clientCapabilities: {} },
		});
		try {
			for (const more of [{ timeout_seconds: LONG }, {}]) {
				const execution = await session.callTool('run_code', program('ext', "print('as ever')", more));
				const { outcome } = await execution.settle();
				const result = resultFromTaskOutcome(outcome);
				assert.equal(result.structuredContent.stdout, 'as ever\n');
			}
			const { code, stdout } = await run('sqlite3', ['-readonly', path.join(stack.state, 'data/sallyport.db'), "SELECT count(*) FROM task JOIN execution ON execution.id = task.execution WHERE conversation_name = 'ext'"]);
			assert.equal(code, 0);
			assert.equal(stdout.trim(), '1');
		} finally {
			await session.close();
			await client.close();
		}
	});

	test('SDK v2 alone knows no tasks: a short run is answered, a long one refused', async () => {
		const client = await connectV2();
		try {
			assert.equal((await client.callTool({ name: 'run_code', arguments: program('alone', 'print(1)') })).structuredContent.stdout, '1\n');
			await assert.rejects(client.callTool({ name: 'run_code', arguments: program('alone', 'print(1)', { timeout_seconds: LONG }) }), (error) => error.code === -32021);
		} finally {
			await client.close();
		}
	});

	test('the Inspector waits for a task by itself', async () => {
		const home = stack.home(), ticks = ticking();
		const { code, stdout, stderr } = await wakeUntil(ticks, run(process.execPath, [
			path.join(import.meta.dirname, 'node_modules/.bin/mcp-inspector'), '--cli', stack.url, '--transport', 'http', '--header', `Authorization: Bearer ${stack.token}`,
			'--protocol-era', 'modern', '--format', 'json', '--stored-auth-only', '--method', 'tools/call', '--tool-name', 'run_code',
			'--tool-args-json', JSON.stringify(program('inspector', ticks.code, { timeout_seconds: LONG })),
		], { env: { ...process.env, HOME: home } }));
		assert.equal(code, 0, stdout + stderr);
		assert.equal(JSON.parse(stdout).result.structuredContent.stdout, TICKED);
	});

	/* What no client here does: following tasks on a stream. */
	test('subscriptions/listen tells how a task of the owner ends', async () => {
		const { result: task } = await dispatch({ method: 'tools/call', params: { name: 'run_code', arguments: program('listen', FOREVER, { timeout_seconds: LONG }), _meta: meta } });
		assert.equal(task.resultType, 'task');
		const unknown = '0193d4f0-0000-7000-8000-000000000000';
		const response = await fetch(stack.url, {
			method: 'POST',
			headers: {
				...stack.headers, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', 'MCP-Protocol-Version': VERSION,
				'Mcp-Method': 'subscriptions/listen',
			},
			body: JSON.stringify({ jsonrpc: '2.0', id: 'l', method: 'subscriptions/listen', params: { notifications: { taskIds: [task.taskId, unknown] }, _meta: meta } }),
		});
		const seen = [];
		let text = '';
		for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
			text += chunk;
			for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) {
				const data = /^data: (.*)$/m.exec(text.slice(0, end));
				if (data) seen.push(JSON.parse(data[1]));
			}
			if (seen.length === 2 && !seen.asked) {
				seen.asked = true;
				await dispatch({ method: 'tasks/cancel', params: { taskId: task.taskId, _meta: meta } });
			}
			if (seen.some(({ params }) => params.status === 'cancelled')) break;
		}
		assert.equal(seen[0].method, 'notifications/subscriptions/acknowledged');
		assert.deepEqual(seen[0].params.notifications, { taskIds: [task.taskId] });
		assert.equal(seen[1].method, 'notifications/tasks');
		assert.equal(seen[1].params.status, 'working');
		for (const { params } of seen) assert.equal(params._meta['io.modelcontextprotocol/subscriptionId'], 'l');
		const bare = { ...meta, 'io.modelcontextprotocol/clientCapabilities': {} };
		const refused = await dispatch({ method: 'subscriptions/listen', params: { notifications: { taskIds: [task.taskId] }, _meta: bare } });
		assert.equal(refused.error.code, -32021);
	});
});
