/*
 * bad_clients.test.js - clients that behave badly, through nginx: the protocol's table of situations and outcomes in both eras, streams that are
 * read a byte a second, clients that vanish in the middle of an answer, a thousand sessions that are opened and left. Whatever they do, others
 * are served, the gateway's memory and threads stay bounded and go back, and every run is on record.
 */
import assert from 'node:assert/strict';
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Stack, run, until } from './stack.js';

const SESSIONS = 1000, SESSIONS_MAX = 512; /* STORE_SESSIONS_MAX */
const MB = 1024, CALM_LOOKS = 10;
/* Four pictures of 480 KiB: with base64 2.6 MB in one event, more than all the buffers on the way. */
const PICTURES = "for i in 1 2 3 4; do printf '\\x89PNG\\r\\n\\x1a\\n' > $i.png; head -c 491000 /dev/urandom >> $i.png; done";

let stack;
before(async () => (stack = await Stack.start()));
after(() => stack?.stop());

const META = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} };
const headers = (more = {}) => {
	const all = { ...stack.headers, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...more };
	return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null));
};
const post = (body, more) => fetch(stack.url, { method: 'POST', headers: headers(more), body: typeof body === 'string' ? body : JSON.stringify({ jsonrpc: '2.0', ...body }) });
const initialize = (protocolVersion = '2025-11-25') => post({ id: 0, method: 'initialize', params: { protocolVersion, capabilities: {}, clientInfo: { name: 'bad', version: '1' } } });
async function session(protocolVersion) {
	const response = await initialize(protocolVersion);
	await response.text();
	return response.headers.get('mcp-session-id');
}

const gateway = () => stack.process('sallyport-gateway').pid;
const threads = () => readdirSync(`/proc/${gateway()}/task`).length;
/* Its connections: listening, jailer, and one for each request. */
function connections() {
	const folder = `/proc/${gateway()}/fd`;
	return readdirSync(folder).filter((fd) => {
		try {
			return readlinkSync(path.join(folder, fd)).startsWith('socket:');
		} catch {
			return false; /* closed meanwhile */
		}
	}).length;
}
/* As many as when nobody asks anything: the last requests may still be about to go. */
async function calmly(count) {
	let last = count(), same = 0;
	await until('calm', () => {
		const now = count();
		same = now === last ? same + 1 : 0;
		last = now;
		return same === CALM_LOOKS;
	});
	return last;
}
const memoryKb = () => Number(/^RssAnon:\s+(\d+)/m.exec(readFileSync(`/proc/${gateway()}/status`, 'utf8'))[1]);
const sanitized = () => /libasan/.test(readFileSync(`/proc/${gateway()}/maps`, 'utf8'));
/* Sanitizers keep what was freed. */
const assertGrowth = (before, most, what) => sanitized() || assert.ok(memoryKb() - before < most, `${what}: ${memoryKb() - before} kB more`);
const sql = async (text) => (await run('sqlite3', ['-readonly', path.join(stack.state, 'data/sallyport.db'), text])).stdout.trim();

/* The status table: [situation, legacy: [request, headers, status, code], modern: likewise]. null: the era has no such thing. */
const list = { id: 1, method: 'tools/list' };
const modernList = { ...list, params: { _meta: META } };
const M = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/list' };
const call = (params) => ({ id: 1, method: 'tools/call', params });
const MC = (name) => ({ 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', ...(name && { 'Mcp-Name': name }) });
const NARROW = 'a token that may read files and run nothing';
const TABLE = [
	['request', [list, {}, 200], [modernList, M, 200]],
	['notification', [{ method: 'notifications/initialized' }, {}, 202], [{ method: 'notifications/cancelled', params: { requestId: 1, _meta: META } }, M, 202]],
	['response that nobody waits for', [{ id: 's-1', result: {} }, {}, 202], null],
	['bad notification', [{ method: 7 }, {}, 400, -32600], [{ method: 7, params: { _meta: META } }, M, 400, -32600]],
	['invalid JSON', ['{"jsonrpc"', {}, 400, -32700], ['{"jsonrpc"', M, 400, -32700]],
	['no session id', [list, { 'Mcp-Session-Id': null }, 200], [modernList, { ...M, 'Mcp-Session-Id': null }, 200]],
	['unknown session id', [list, { 'Mcp-Session-Id': '01a1fd86-fa9c-739b-8ba1-c6e9eb1d7acf' }, 404, -32001], [modernList, { ...M, 'Mcp-Session-Id': 'whatever' }, 200]],
	['no session id, and the method changes the session', [{ id: 1, method: 'logging/setLevel', params: { level: 'info' } }, { 'Mcp-Session-Id': null }, 400, -32600], null],
	['malformed session id', [list, { 'Mcp-Session-Id': '../../x' }, 404, -32001], null],
	['unsupported version', [list, { 'MCP-Protocol-Version': '1999-01-01' }, 400, -32600],
		[{ ...list, params: { _meta: { ...META, 'io.modelcontextprotocol/protocolVersion': '2099-01-01' } } }, { ...M, 'MCP-Protocol-Version': '2099-01-01' }, 400, -32022]],
	['no version header', [list, { 'MCP-Protocol-Version': null }, 200], [modernList, { ...M, 'MCP-Protocol-Version': null }, 400, -32020]],
	['unknown method', [{ id: 1, method: 'x/y' }, {}, 200, -32601], [{ id: 1, method: 'x/y', params: { _meta: META } }, { ...M, 'Mcp-Method': 'x/y' }, 404, -32601]],
	['unknown tool', [call({ name: 'zz' }), {}, 200, -32602], [call({ name: 'zz', _meta: META }), MC('zz'), 200, -32602]],
	['bad arguments', [call({ name: 'run_code', arguments: { code: 7 } }), {}, 200, 'isError'], [call({ name: 'run_code', arguments: { code: 7 }, _meta: META }), MC('run_code'), 200, 'isError']],
	['no _meta', null, [list, M, 400, -32602]],
	['no client capabilities', null, [{ ...list, params: { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } } }, M, 400, -32602]],
	['header and body differ', null, [modernList, { ...M, 'Mcp-Method': 'tools/call' }, 400, -32020]],
	['name and body differ', null, [call({ name: 'run_code', _meta: META }), MC('upload_file'), 400, -32020]],
	['no name', null, [call({ name: 'run_code', _meta: META }), MC(), 400, -32020]],
	['method and body differ in case', null, [modernList, { ...M, 'Mcp-Method': 'TOOLS/LIST' }, 400, -32020]],
	['name that is no base64', null, [call({ name: 'run_code', _meta: META }), MC('=?base64?cnVuX2NvZGU?='), 400, -32020]],
	['no client capability that is needed', null,
		[{ id: 1, method: 'tasks/get', params: { taskId: 'x', _meta: META } }, { ...M, 'Mcp-Method': 'tasks/get', 'Mcp-Name': 'x' }, 400, -32021]],
	['initialize', [{ id: 1, method: 'initialize', params: { protocolVersion: '2026-07-28', capabilities: {}, clientInfo: { name: 'bad', version: '1' } } }, {}, 200],
		[{ id: 1, method: 'initialize', params: { protocolVersion: '2026-07-28', capabilities: {}, _meta: META } }, { ...M, 'Mcp-Method': 'initialize' }, 404, -32601]],
	['altered cursor', [{ ...list, method: 'resources/list', params: { cursor: 'Zm9v.YmFy' } }, {}, 200, -32602],
		[{ ...list, method: 'resources/list', params: { cursor: 'Zm9v.YmFy', _meta: META } }, { ...M, 'Mcp-Method': 'resources/list' }, 200, -32602]],
	['no media type', [JSON.stringify({ jsonrpc: '2.0', ...list }), { 'Content-Type': 'text/plain' }, 415, -32600], [modernList, { ...M, 'Content-Type': 'text/plain' }, 415, -32600]],
	['takes no answer', [list, { Accept: 'image/png' }, 406, -32600], [modernList, { ...M, Accept: 'image/png' }, 406, -32600]],
	['batch', ['[{"jsonrpc":"2.0","id":1,"method":"ping"}]', {}, 400, -32600], [JSON.stringify([{ jsonrpc: '2.0', ...modernList }]), M, 400, -32600]],
	['page of another origin', [list, { Origin: 'http://evil.example' }, 403], [modernList, { ...M, Origin: 'http://evil.example' }, 403]],
	['no token', [list, { Authorization: null }, 401], [modernList, { ...M, Authorization: null }, 401]],
	['token without the scope', [call({ name: 'run_code' }), { Authorization: NARROW }, 403, -32600], [call({ name: 'run_code', _meta: META }), { ...MC('run_code'), Authorization: NARROW }, 403, -32600]],
	['wrong token', [list, { Authorization: 'Bearer sp_dev_0' }, 401], [modernList, { ...M, Authorization: 'Bearer sp_dev_0' }, 401]],
];

/* The status where the request says that it is for another host, which fetch does not let it say. */
const statusFor = (Host) => new Promise((resolve, reject) => {
	const request = http.request(stack.url, { method: 'POST', headers: headers({ ...M, Host }) }, (response) => resolve(response.resume().statusCode));
	request.on('error', reject).end(JSON.stringify({ jsonrpc: '2.0', ...modernList }));
});

test('every situation has the outcome that its era has for it', async () => {
	const mine = { 'Mcp-Session-Id': await session(), 'MCP-Protocol-Version': '2025-11-25' };
	const added = await stack.cli(['token', 'add', '--owner', 'dev', '--scope', 'files', '--json']);
	const narrow = { Authorization: `Bearer ${JSON.parse(added.stdout).token}` };
	for (const [situation, ...eras] of TABLE) {
		for (const [i, row] of eras.entries()) {
			if (!row) continue;
			const [body, more, status, code] = row, what = `${situation}, ${i ? 'modern' : 'legacy'}`;
			const response = await post(body, { ...(i ? {} : mine), ...more, ...(more.Authorization === NARROW && narrow) });
			const text = await response.text();
			assert.equal(response.status, status, `${what}: ${text}`);
			if (status === 202) assert.equal(text, '', what);
			else if (status === 401) assert.match(response.headers.get('www-authenticate'), /^Bearer /, what);
			else if (more.Authorization === NARROW) assert.match(response.headers.get('www-authenticate'), /^Bearer .*error="insufficient_scope".*scope="run"/, what);
			else if (status === 403) assert.equal(response.headers.get('www-authenticate'), null, what);
			else if (code === 'isError') assert.equal(JSON.parse(text).result.isError, true, what);
			else assert.equal(JSON.parse(text).error?.code, code, `${what}: ${text}`);
		}
	}
	assert.equal(await statusFor(new URL(stack.url).host), 200);
	assert.equal(await statusFor('evil.example.com'), 403);
	const request = (method, more) => fetch(stack.url, { method, headers: headers({ ...mine, ...more }) }).then((response) => response.status);
	assert.equal(await request('GET', { Accept: 'application/json' }), 406);
	const leaving = new AbortController();
	const first = await fetch(stack.url, { headers: headers({ ...mine, Accept: 'text/event-stream' }), signal: leaving.signal });
	assert.deepEqual([first.status, first.headers.get('content-type')], [200, 'text/event-stream']);
	assert.equal(await request('GET', { Accept: 'text/event-stream' }), 409);
	leaving.abort();
	for (const bad of ['x', '-1', `${mine['Mcp-Session-Id']}_`, `${mine['Mcp-Session-Id']}_9`, `${mine['Mcp-Session-Id']}_99999999999999999999`])
		assert.equal(await request('GET', { 'Last-Event-ID': bad }), 400, bad);
	for (const method of ['GET', 'DELETE']) assert.equal(await request(method, { 'MCP-Protocol-Version': '2026-07-28' }), 405, method);
	assert.equal(await request('PUT'), 405);
	assert.equal(await request('DELETE'), 200);
	assert.equal(await request('DELETE'), 404);
});

/* The call that makes PICTURES, and a stream of its answer where progress is wanted. */
const pictures = (id, progress) => JSON.stringify({ jsonrpc: '2.0', ...call({ name: 'run_code', arguments: { conversationId: id, language: 'bash', code: PICTURES },
	_meta: { ...META, ...(progress && { progressToken: id }) } }), id });

/* As it goes over the wire to nginx. */
function overHttp(body) {
	const lines = Object.entries(headers({ ...MC('run_code'), Host: new URL(stack.url).host, 'Content-Length': Buffer.byteLength(body) }));
	return `POST /mcp HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`;
}

/* And to the gateway: records of FastCGI (type, content) with one request id. */
function fastcgi(body) {
	const record = (type, content) => Buffer.concat([Buffer.from([1, type, 0, 1, content.length >> 8, content.length & 255, 0, 0]), content]);
	const variables = { REQUEST_METHOD: 'POST', REQUEST_URI: '/mcp', CONTENT_LENGTH: String(Buffer.byteLength(body)), CONTENT_TYPE: 'application/json' };
	for (const [name, value] of Object.entries(headers({ ...MC('run_code'), 'Content-Type': null }))) variables[`HTTP_${name.toUpperCase().replaceAll('-', '_')}`] = value;
	const size = (text) => Buffer.from([128, 0, text.length >> 8, text.length & 255]);
	const params = Buffer.concat(Object.entries(variables).flatMap(([name, value]) => [size(name), size(value), Buffer.from(name + value)]));
	const none = Buffer.alloc(0);
	return Buffer.concat([record(1, Buffer.from([0, 1, 0, 0, 0, 0, 0, 0])), record(4, params), record(4, none), record(5, Buffer.from(body)), record(5, none)]);
}

/* Takes so many bytes a second from a socket; 0: none at all, ever. */
function slowly(where, bytesPerSecond, text) {
	const onread = { buffer: Buffer.alloc(1), callback: () => {
		setTimeout(() => socket.resume(), 1000 / bytesPerSecond).unref();
		return false;
	} };
	const socket = net.connect({ ...where, ...(bytesPerSecond && { onread }) });
	if (!bytesPerSecond) socket.pause();
	socket.on('error', () => null).write(text);
	return socket;
}
const verdicts = async (prefix) => (await stack.rows()).filter((row) => row.conversation?.startsWith(prefix) && row.verdict).map((row) => row.verdict);
const servesOthers = async () => {
	for (let i = 0; i < 50; i++) assert.equal((await post(modernList, M)).status, 200);
	assert.equal((await stack.run({ conversationId: 'other', language: 'bash', code: 'echo fine' })).stdout, 'fine\n');
};

/* The buffers between nginx and a client hold all of an answer; those of the gateway's own socket do not: there the senders wait in earnest. */
test('streams that are read a byte a second are given up', async () => {
	/* From the first picture on, what looks at pictures keeps a connection of its own to the jailer. */
	await stack.run({ conversationId: 'first', language: 'bash', code: PICTURES });
	await servesOthers();
	const [memory, calm] = [memoryKb(), await calmly(connections)];
	const ways = [[{ port: new URL(stack.url).port, host: '127.0.0.1' }, overHttp], [{ path: path.join(stack.state, 'run/gateway.sock') }, fastcgi]];
	const sockets = ways.flatMap(([where, print], way) => [0, 1].map((rate) => slowly(where, rate, print(pictures(`slow-${way}${rate}`, true)))));
	/* Looked at all the time: they are given up when they have taken nothing for STREAM_SEND_SECONDS, the first perhaps before the last
	 * run has ended. */
	let waiting = 0;
	await until('the runs', async () => {
		waiting = Math.max(waiting, connections());
		return (await verdicts('slow-')).length === sockets.length;
	});
	waiting = Math.max(waiting, connections());
	assert.ok(waiting >= calm + 2, `${waiting} connections, ${calm} before: nobody waits`);
	await servesOthers();
	assertGrowth(memory, 64 * MB, 'slow readers');
	assert.deepEqual(await verdicts('slow-'), Array(sockets.length).fill('OK'));
	await until('the senders that waited for them', () => connections() <= calm);
	await servesOthers();
	for (const socket of sockets) socket.destroy();
});

test('clients that vanish in the middle of an answer leave nothing behind', async () => {
	await servesOthers();
	const [memory, calm, open] = [memoryKb(), threads(), await calmly(connections)];
	for (let round = 0; round < 10; round++) {
		const socket = net.connect({ port: new URL(stack.url).port, host: '127.0.0.1' });
		socket.on('error', () => null).on('data', () => null).write(overHttp(pictures(`vanish-${round}`, round % 2)));
		await until('the beginning of the answer', () => socket.bytesRead > 1000);
		socket.destroy();
	}
	assert.deepEqual(await verdicts('vanish-'), Array(10).fill('OK'));
	await until('threads and connections', () => threads() <= calm && connections() <= open);
	await servesOthers();
	assertGrowth(memory, 64 * MB, 'vanished clients');
});

test('a thousand sessions that are opened and left: the oldest make room', async () => {
	const memory = memoryKb(), mine = [];
	for (let i = 0; i < SESSIONS; i += 20) mine.push(...(await Promise.all(Array.from({ length: 20 }, () => session()))));
	assert.equal(new Set(mine).size, SESSIONS);
	assert.equal(Number(await sql("SELECT count(*) FROM session WHERE owner = 'dev'")), SESSIONS_MAX);
	const ping = async (id) => (await post({ id: 1, method: 'ping' }, { 'Mcp-Session-Id': id })).status;
	for (const id of mine.slice(0, SESSIONS - SESSIONS_MAX - 20)) assert.equal(await ping(id), 404);
	for (const id of mine.slice(SESSIONS - SESSIONS_MAX + 20)) assert.equal(await ping(id), 200);
	assertGrowth(memory, 16 * MB, 'sessions');
	const { stdout } = await stack.cli(['token', 'add', '--owner', 'mallory', '--json']);
	assert.equal((await post({ id: 1, method: 'ping' }, { 'Mcp-Session-Id': mine.at(-1), Authorization: `Bearer ${JSON.parse(stdout).token}` })).status, 404);
});
