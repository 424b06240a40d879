/*
 * Event streams through nginx: progress and partial output, both ways to cancel, taking up a stream that broke (also after the gateway was
 * started again), the session's own stream, what is logged to a client, HTTP status of everything that is refused. Raw fetch where the wire matters.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { LoggingMessageNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { Stack, TICKED, lines, ticking, until, wakeUntil } from './stack.js';

const FOREVER = "import time\nprint('started', flush=True)\nwhile True:\n    time.sleep(0.05)\n";
let stack;
before(async () => (stack = await Stack.start()));
after(() => stack?.stop());

const headers = (more = {}) => ({ ...stack.headers, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...more });
const post = (message, more, options = {}) => fetch(stack.url, { method: 'POST', headers: headers(more), body: JSON.stringify({ jsonrpc: '2.0', ...message }), ...options });

/* Opens a legacy session: what later requests send. */
async function session(protocolVersion = '2025-11-25') {
	const params = { protocolVersion, capabilities: {}, clientInfo: { name: 'raw', version: '1' } };
	const response = await post({ id: 0, method: 'initialize', params });
	assert.equal(response.status, 200);
	await response.text();
	return { 'Mcp-Session-Id': response.headers.get('mcp-session-id'), 'MCP-Protocol-Version': protocolVersion };
}

/* A call of run_code with a progress token; the id is also the conversation's name. */
const run = (id, code) => ({
	id, method: 'tools/call',
	params: { name: 'run_code', arguments: { language: 'python', code, conversationId: String(id), timeout_seconds: 200 }, _meta: { progressToken: `p-${id}` } },
});
const modern = (request) => ({
	message: { ...request, params: { ...request.params, _meta: {
		...request.params._meta, 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {},
	} } },
	more: { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': request.method, ...(request.params.name ? { 'Mcp-Name': request.params.name } : {}) },
});

/* The events of a response, as they come: { id, data } where data is parsed ('' stays). */
async function* events(response) {
	assert.match(response.headers.get('content-type'), /^text\/event-stream/);
	let text = '';
	for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
		text += chunk;
		for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) {
			const event = {};
			for (const line of text.slice(0, end).split('\n')) {
				const [, name, value] = /^([a-z]*): ?(.*)$/.exec(line) ?? [];
				if (name) event[name] = value;
			}
			if (event.data) event.data = JSON.parse(event.data);
			if ('data' in event) yield event;
		}
	}
}

async function all(response, found = []) {
	for await (const event of events(await response)) found.push(event);
	return found;
}
/* What the messages of progress among the events have shown. */
const shown = (found) => found.map((event) => event.data?.params?.message ?? '').join('');

const verdictOf = async (conversation) => (await stack.rows()).find((row) => row.conversation === conversation && row.verdict);

test('progress carries the output, legacy and modern', async () => {
	const mine = await session(), streams = [[], []];
	for (const [i, found] of streams.entries()) {
		const program = ticking(), wire = i ? modern(run('progress-modern', program.code)) : { message: run('progress-legacy', program.code), more: mine };
		await wakeUntil(program, all(post(wire.message, wire.more), found), () => lines(shown(found)));
		const messages = found.map((event) => event.data).filter((data) => data?.method === 'notifications/progress');
		assert.equal(shown(found), TICKED);
		assert.equal(messages.at(-1).params.progress, TICKED.length);
		for (let n = 1; n < messages.length; n++) assert.ok(messages[n].params.progress > messages[n - 1].params.progress);
		assert.equal(found.at(-1).data.result.structuredContent.stdout, TICKED);
	}
	assert.deepEqual([streams[0][0].data, streams[0][0].retry], ['', '1000'], 'a priming event');
	assert.ok(streams[0].every((event) => event.id), 'legacy events have ids');
	assert.ok(streams[1].every((event) => !event.id), 'modern ones have none');
});

test('no priming event before 2025-11-25, no stream without need', async () => {
	const program = ticking(), found = [];
	await wakeUntil(program, all(post(run('unprimed', program.code), await session('2025-06-18')), found), () => lines(shown(found)));
	assert.ok(found.every((event) => event.data !== ''));
	const short = run('short', 'print(1)');
	delete short.params._meta;
	assert.match((await post(short, await session())).headers.get('content-type'), /^application\/json/);
	const only = await post(run('json-only', 'print(2)'), { ...(await session()), Accept: 'application/json' });
	assert.equal((await only.json()).result.structuredContent.stdout, '2\n');
});

test('a long silence becomes a stream with signs of life', async () => {
	const one = ticking(), other = ticking(), told = [];
	const silent = (id, { marker }) => run(id, `import subprocess\nsubprocess.run(['sleep', '${marker}'])\nprint(3)`);
	const answered = all(post(silent('silent', one), await session()), told);
	await wakeUntil(one, answered, () => told.filter((event) => event.data).length);
	assert.equal(told.find((event) => event.data).data.method, 'notifications/progress', 'keeps the timer of the client going');
	assert.equal(told.at(-1).data.result.structuredContent.stdout, '3\n');
	const request = silent('silent-modern', other);
	const wire = modern({ ...request, params: { ...request.params, _meta: {} } });
	const response = await post(wire.message, wire.more); /* its head comes with the first sign of life */
	assert.match(response.headers.get('content-type'), /^text\/event-stream/);
	const text = await wakeUntil(other, response.text());
	assert.match(text, /^(: keep-alive\n\n)+event: message\ndata: .*"stdout":"3\\n"/);
});

test('notifications/cancelled ends the run, the output so far is kept', async () => {
	const mine = await session();
	const response = await post(run('cancel-legacy', FOREVER), mine);
	const stream = events(response);
	for await (const event of stream) if (event.data?.method === 'notifications/progress') break;
	const other = await session();
	assert.equal((await post({ method: 'notifications/cancelled', params: { requestId: 'cancel-legacy' } }, other)).status, 202);
	assert.equal((await verdictOf('cancel-legacy')), undefined, "another session's request goes on");
	assert.equal((await post({ method: 'notifications/cancelled', params: { requestId: 'cancel-legacy', reason: 'stop' } }, mine)).status, 202);
	const row = await until('the row', () => verdictOf('cancel-legacy'));
	assert.equal(row.verdict, 'CX');
	assert.match((await stack.cli(['show', row.id])).stdout, /started/);
});

test('a cancelled member leaves the rest of its batch alone', async () => {
	const mine = await session('2025-03-26');
	const calls = ['batch-runs', 'batch-waits'].map((id) => ({ jsonrpc: '2.0', ...run(id, FOREVER) }));
	const last = { jsonrpc: '2.0', ...run('batch-last', 'print(4)') };
	const batch = (messages) => fetch(stack.url, { method: 'POST', headers: headers(mine), body: JSON.stringify(messages) });
	const cancel = (requestId) => post({ method: 'notifications/cancelled', params: { requestId } }, mine);
	const answered = batch([...calls, last]);
	await until('the first run', async () => (await stack.rows()).find((row) => row.conversation === 'batch-runs'));
	assert.equal((await cancel('batch-waits')).status, 202);
	assert.equal((await cancel('batch-runs')).status, 202);
	const answers = await (await answered).json();
	assert.deepEqual(answers.map(({ id }) => id), ['batch-last']);
	assert.equal(answers[0].result.structuredContent.stdout, '4\n');
	assert.equal((await until('the row', () => verdictOf('batch-runs'))).verdict, 'CX');
	await until('no trace of the second, or one that was ended at once', async () => {
		const row = (await stack.rows()).find(({ conversation }) => conversation === 'batch-waits');
		return !row || row.verdict === 'CX';
	});

	const alone = batch([calls[0]]);
	await until('the run', async () => (await stack.rows()).filter((row) => row.conversation === 'batch-runs').length === 2);
	await cancel('batch-runs');
	assert.equal((await alone).status, 202, 'nothing to answer');
});

test('a client of the modern era cancels by leaving, one of the legacy era does not', async () => {
	const wire = modern(run('leave-modern', FOREVER));
	const leaving = new AbortController();
	const response = await post(wire.message, wire.more, { signal: leaving.signal });
	for await (const event of events(response)) if (event.data?.method === 'notifications/progress') break;
	leaving.abort();
	assert.equal((await until('the row', () => verdictOf('leave-modern'))).verdict, 'CX');

	const stays = new AbortController(), program = ticking();
	const legacy = await post(run('leave-legacy', program.code), await session(), { signal: stays.signal });
	for await (const event of events(legacy)) if (event.data?.method === 'notifications/progress') break;
	stays.abort();
	assert.equal((await wakeUntil(program, until('the row', () => verdictOf('leave-legacy')))).verdict, 'OK');
});

test('a lost connection ends no call that has an idempotency key: repeated, it gets the first result', async () => {
	const program = ticking(), call = run('lost', `open('acted', 'a').write('x')\n${program.code}`);
	call.params.arguments.idempotencyKey = 'lost-1';
	const wire = modern(call), leaving = new AbortController();
	for await (const event of events(await post(wire.message, wire.more, { signal: leaving.signal }))) {
		if (event.data?.method === 'notifications/progress') break;
	}
	leaving.abort();
	const again = await wakeUntil(program, post(wire.message, wire.more).then((response) => response.json()));
	assert.equal(again.result.structuredContent.stdout, TICKED, JSON.stringify(again));
	assert.equal((await stack.rows()).filter((row) => row.conversation === 'lost').length, 1);
	assert.equal(await verdictOf('lost').then((row) => row.verdict), 'OK');
});

/* Reads up to the first progress message, leaves, and gives the id of the last event that was seen. */
async function leaveEarly(request, mine) {
	const leaving = new AbortController();
	let last;
	for await (const event of events(await post(request, mine, { signal: leaving.signal }))) {
		last = event.id;
		if (event.data?.method === 'notifications/progress') break;
	}
	leaving.abort();
	return last;
}
const resume = (mine, last) => fetch(stack.url, { headers: { ...stack.headers, ...mine, Accept: 'text/event-stream', 'Last-Event-ID': last } });

test('a broken stream is taken up where it broke', async () => {
	const mine = await session(), program = ticking(), one = [], two = [];
	const last = await leaveEarly(run('resume', program.code), mine);
	const both = Promise.all([all(resume(mine, last), one), all(resume(mine, last), two)]);
	await wakeUntil(program, both, () => 1 + Math.min(lines(shown(one)), lines(shown(two))));
	assert.equal(one.at(-1).data.result.structuredContent.stdout, TICKED);
	assert.deepEqual(one, two);
	assert.ok(one.every((event) => event.id !== last && event.id.split('_')[0] === last.split('_')[0]));
	const again = await all(resume(mine, one.at(-2).id));
	assert.deepEqual(again, [one.at(-1)], 'exactly what came after');
	assert.deepEqual(await all(resume(mine, one.at(-1).id)), [], 'nothing after the answer');
	assert.equal((await resume(await session(), last)).status, 400, "another session's stream");
	for (const bad of ['x', `${last}0x`, '_', '1_2', last.replace(/^./, 'z')]) assert.equal((await resume(mine, bad)).status, 400, bad);
});

test('after the gateway was started again, too', async () => {
	const mine = await session(), program = ticking();
	const last = await leaveEarly(run('restart-done', program.code), mine);
	await wakeUntil(program, until('the answer', async () => (await verdictOf('restart-done')) && (await all(resume(mine, last))).length));
	const lost = await leaveEarly(run('restart-lost', FOREVER), mine);
	process.kill(stack.process('sallyport-gateway').pid, 'SIGKILL');
	const found = await until('the gateway', async () => {
		const response = await resume(mine, last);
		return response.status === 200 && all(response);
	});
	assert.equal(found.at(-1).data.result.structuredContent.stdout, TICKED);
	const error = (await all(resume(mine, lost))).at(-1).data;
	assert.equal(error.id, 'restart-lost');
	assert.match(error.error.message, /started again/);
});

test("the session's own stream", async () => {
	const mine = await session();
	const get = (more, options) => fetch(stack.url, { headers: { ...stack.headers, Accept: 'text/event-stream', ...more }, ...options });
	const leaving = new AbortController();
	const asked = Date.now();
	const first = await get(mine, { signal: leaving.signal });
	assert.ok(Date.now() - asked < 10_000, 'the head comes at once, not with the first keep-alive');
	assert.equal(first.status, 200);
	assert.match(first.headers.get('content-type'), /^text\/event-stream/);
	assert.equal((await get(mine)).status, 409);
	leaving.abort();
	const second = new AbortController();
	await until('the first one to be forgotten', async () => (await get(mine, { signal: second.signal })).status === 200);
	second.abort();
	assert.equal((await get({})).status, 400);
	assert.equal((await get({ 'Mcp-Session-Id': '01a1fd86-fa9c-739b-8ba1-c6e9eb1d7acf' })).status, 404);
	assert.equal((await get({ ...mine, Accept: 'application/json' })).status, 406);
	assert.equal((await get({ ...mine, 'MCP-Protocol-Version': '2026-07-28' })).status, 405);
	/* The end of the session is its stream's. */
	const third = await until('the second one to be forgotten', async () => {
		const response = await get(mine);
		return response.status === 200 && response;
	});
	assert.equal((await fetch(stack.url, { method: 'DELETE', headers: { ...stack.headers, ...mine } })).status, 200);
	assert.deepEqual(await all(third), []);
});

/* SDK v1: nothing is logged before a level was asked for, then what is at least as severe; the level is the session's, also of the next gateway. */
test('logging/setLevel chooses the messages of a session', async () => {
	const client = new Client({ name: 'sdk', version: '1' });
	const logged = [];
	client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void logged.push(params));
	await client.connect(new StreamableHTTPClientTransport(new URL(stack.url), { requestInit: { headers: stack.headers } }));
	const call = async (code) => {
		logged.length = 0;
		const { structuredContent: details } = await client.callTool({ name: 'run_code', arguments: { conversationId: 'logged', language: 'bash', code } });
		for (const { logger, data } of logged) assert.ok(logger === 'sallyport' && data.startsWith(`run ${details.execution_id}: `), data);
		return logged.map(({ level, data }) => `${level}: ${data.slice(`run ${details.execution_id}: `.length)}`);
	};
	assert.deepEqual(await call('true'), []);
	assert.deepEqual(await client.setLoggingLevel('debug'), {});
	assert.deepEqual(await call('true'), ['debug: a bash program was accepted', 'info: OK, The program ended normally.']);
	await client.setLoggingLevel('notice');
	assert.deepEqual(await call('true'), []);
	assert.match((await call('exit 3')).join(), /^warning: RE, [^,]*3\.$/);
	await assert.rejects(client.setLoggingLevel('loud'));
	const { pid } = stack.process('sallyport-gateway');
	process.kill(pid, 'SIGTERM');
	await until('another gateway', async () => ![undefined, pid].includes(stack.process('sallyport-gateway')?.pid) && (await client.ping().catch(() => null)));
	assert.match((await call('exit 4')).join(), /^warning: RE, [^,]*4\.$/);
	const { 'Mcp-Session-Id': id } = await session();
	assert.equal((await (await post({ id: 1, method: 'logging/setLevel', params: { level: 'loud' } }, { 'Mcp-Session-Id': id })).json()).error.code, -32602);
	await client.close();
});

test('a token that is revoked ends the streams that were opened with it', async () => {
	const { stdout } = await stack.cli(['token', 'add', '--owner', 'dev', '--json']);
	const added = JSON.parse(stdout), token = { Authorization: `Bearer ${added.token}` };
	const mine = await session();
	const own = await fetch(stack.url, { headers: { ...stack.headers, Accept: 'text/event-stream', ...mine, ...token } });
	assert.equal(own.status, 200);
	const wire = modern({ id: 'revoked', method: 'subscriptions/listen', params: { notifications: { resourcesListChanged: true } } });
	const listening = await post(wire.message, { ...wire.more, ...token });
	assert.equal(listening.status, 200);
	const again = await session(), last = await leaveEarly(run('taken-up', FOREVER), again);
	const taken = await resume({ ...again, ...token }, last);
	assert.equal(taken.status, 200);
	await stack.cli(['token', 'revoke', added.id]);
	const ends = await Promise.all([all(own), all(listening), all(taken)]);
	assert.ok(ends[2].every(({ data }) => !data?.result && !data?.error), 'no answer to one who may not have it');
	assert.equal((await verdictOf('taken-up')), undefined, 'the run goes on');
	assert.equal((await post({ method: 'notifications/cancelled', params: { requestId: 'taken-up' } }, again)).status, 202);
	assert.deepEqual(ends[0], []);
	assert.deepEqual(ends[1].map(({ data }) => data.method ?? data.result.resultType), ['notifications/subscriptions/acknowledged', 'complete']);
});

test('subscriptions/listen without anything to listen to ends at once', async () => {
	const wire = modern({ id: 'sub', method: 'subscriptions/listen', params: { notifications: { toolsListChanged: true } } });
	const found = await all(post(wire.message, wire.more));
	assert.deepEqual(found[0].data.params, { notifications: {}, _meta: { 'io.modelcontextprotocol/subscriptionId': 'sub' } });
	assert.equal(found[1].data.result.resultType, 'complete');
	assert.equal(found.length, 2);
});

test('SDK v1 sees progress and cancels', async () => {
	const client = new Client({ name: 'sdk', version: '1' });
	await client.connect(new StreamableHTTPClientTransport(new URL(stack.url), { requestInit: { headers: stack.headers } }));
	const seen = [], program = ticking();
	const call = (conversationId, code, options) =>
		client.callTool({ name: 'run_code', arguments: { language: 'python', code, conversationId, timeout_seconds: 200 } }, undefined, options);
	const watched = call('sdk-progress', program.code, { onprogress: (progress) => seen.push(progress.message) });
	assert.equal((await wakeUntil(program, watched, () => lines(seen.join('')))).structuredContent.verdict, 'OK');
	assert.equal(seen.join(''), TICKED);
	const stop = new AbortController();
	await assert.rejects(call('sdk-cancel', FOREVER, { signal: stop.signal, onprogress: () => stop.abort('enough') }));
	assert.equal((await until('the row', () => verdictOf('sdk-cancel'))).verdict, 'CX');
	await client.close();
});

test('HTTP+SSE of 2024-11-05, where it is switched on', async () => {
	const old = await Stack.start({ env: { SALLYPORT_GATEWAY_HTTP_SSE: 'true' } });
	try {
		const client = new Client({ name: 'sse', version: '1' });
		const transport = new SSEClientTransport(new URL(`${old.base}/sse`), {
			requestInit: { headers: old.headers },
			eventSourceInit: { fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, ...old.headers } }) },
		});
		await client.connect(transport);
		assert.equal(client.getServerVersion().name, 'sallyport');
		const call = (conversationId, code, options) =>
			client.callTool({ name: 'run_code', arguments: { language: 'python', code, conversationId, timeout_seconds: 200 } }, undefined, options);
		assert.equal((await call('sse', 'print(6 * 7)')).structuredContent.stdout, '42\n');
		const seen = [], program = ticking();
		const watched = call('sse-progress', program.code, { onprogress: (progress) => seen.push(progress.message) });
		assert.equal((await wakeUntil(program, watched, () => lines(seen.join('')))).structuredContent.verdict, 'OK');
		assert.equal(seen.join(''), TICKED);
		const stop = new AbortController();
		const rows = async (conversation) => (await old.rows()).filter((row) => row.conversation === conversation);
		const refused = assert.rejects(call('sse-cancel', FOREVER, { signal: stop.signal }));
		await until('the run', async () => (await rows('sse-cancel')).length);
		stop.abort('enough');
		await refused;
		assert.equal((await until('the row', async () => (await rows('sse-cancel')).find((row) => row.verdict))).verdict, 'CX');
		const to = (id, body = '{"jsonrpc":"2.0","id":1,"method":"ping"}') => fetch(`${old.base}/messages?sessionId=${id}`, {
			method: 'POST', headers: { ...old.headers, 'Content-Type': 'application/json' }, body,
		});
		const id = transport._endpoint.searchParams.get('sessionId');
		assert.equal((await to('01a1fd86-fa9c-739b-8ba1-c6e9eb1d7acf')).status, 404);
		assert.equal((await to('')).status, 404);
		assert.equal((await to(id, '{')).status, 400);
		await client.close();
		await until('the session to end', async () => (await to(id)).status === 404);
	} finally {
		await old.stop();
	}
	assert.equal((await fetch(`${stack.base}/sse`, { headers: stack.headers })).status, 404, 'switched off');
});
