/*
 * doors_load.test.js - 4,096 requests that wait at a door at once: what they take of the gateway's memory, and what becomes of one more. They
 * come as nginx sends them, by FastCGI to the gateway's socket, so that nothing of nginx is in the figures.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Stack, processes, ticking, until } from './stack.js';

const WAITING = 4096, MIB = 1 << 20, AT_ONCE = 64, OWNERS = 4;
const PATIENT = { compile_timeout: 10, run_timeout: 100_000 };
let stack, tokens;

before(async () => {
	stack = await Stack.start({ env: { SALLYPORT_DOORS_FUSION: 'true', SALLYPORT_DOORS_PLACES: '1', SALLYPORT_LIMITS_WALL_SECONDS_MAX: '3600' } });
	tokens = await Promise.all(Array.from({ length: OWNERS }, async (_, n) => JSON.parse((await stack.cli(['token', 'add', '--owner', `owner${n}`, '--json'])).stdout).token));
});
after(() => stack?.stop());

/* -------- FastCGI: one request a connection ---- */
const record = (type, content) => {
	const head = Buffer.from([1, type, 0, 1, content.length >> 8, content.length & 255, 0, 0]);
	return Buffer.concat([head, content]);
};
function pair(name, value) {
	const size = (text) => (text.length < 128 ? Buffer.from([text.length]) : Buffer.from([0x80 | (text.length >>> 24), text.length >> 16, text.length >> 8, text.length]));
	return Buffer.concat([size(name), size(value), Buffer.from(name), Buffer.from(value)]);
}
function requestOf(token, body) {
	const text = Buffer.from(JSON.stringify(body));
	const variables = { REMOTE_ADDR: '127.0.0.1', REQUEST_METHOD: 'POST', REQUEST_URI: '/fusion/run_code', CONTENT_LENGTH: `${text.length}`, CONTENT_TYPE: 'application/json', HTTP_AUTHORIZATION: `Bearer ${token}` };
	const parameters = Buffer.concat(Object.entries(variables).map(([name, value]) => pair(name, value)));
	return Buffer.concat([record(1, Buffer.from([0, 1, 0, 0, 0, 0, 0, 0])), record(4, parameters), record(4, Buffer.alloc(0)), record(5, text), record(5, Buffer.alloc(0))]);
}
function send(number, body) {
	const socket = net.connect(path.join(stack.state, 'run/gateway.sock'));
	socket.answer = '';
	socket.on('data', (data) => (socket.answer += data.toString('latin1')));
	socket.on('error', (error) => (socket.answer += error));
	socket.write(requestOf(tokens[number % OWNERS], body));
	return socket;
}

const waiting = async () => Number(/^sallyport_door_queue_length (\d+)$/m.exec(await (await fetch(`${stack.base}/metrics`)).text())[1]);
function memory() {
	const { pid } = processes('sallyport-gateway').find(({ words }) => words.includes(stack.config));
	return Number(/^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))[1]) * 1024;
}

test('4,096 requests wait in at most 64 MiB', async () => {
	const { marker } = ticking();
	const held = send(0, { language: 'python', code: `import subprocess\nsubprocess.run(['sleep', '${marker}'])\nprint('woken')`, ...PATIENT });
	const { pid } = await until('the place to be taken', () => processes(marker).find(({ words }) => words[0] === 'sleep'));
	const before = memory(), sockets = [];
	const body = { language: 'python', code: `print(input())\n${'# what a model writes\n'.repeat(40)}`, stdin: 'x'.repeat(200), files: {}, fetch_files: [], memory_limit_MB: 1024, ...PATIENT };
	while (sockets.length < WAITING) {
		for (let n = 0; n < AT_ONCE; n++) sockets.push(send(sockets.length, body));
		await until(`${sockets.length} requests to wait`, async () => (await waiting()) === sockets.length);
	}
	const taken = memory() - before;
	console.log(`# ${WAITING} waiting requests take ${(taken / MIB).toFixed(1)} MiB`);
	assert.ok(taken <= 64 * MIB, `${taken} bytes`);
	/* One more has not begun, and is told so at once. */
	const more = send(0, body);
	await until('one more to be answered', () => /Status: 504/.test(more.answer));
	assert.equal(await waiting(), WAITING);
	/* All but the first of each owner leave; those are answered as soon as there is a place. */
	sockets.forEach((socket, n) => n >= OWNERS && socket.destroy());
	process.kill(pid, 'SIGKILL');
	await until('the place to be free', () => held.answer.includes('woken'));
	await until('the first ones to be answered', () => sockets.slice(0, OWNERS).every(({ answer }) => answer.includes('"Success"')));
	await until('nobody to wait', async () => (await waiting()) === 0);
});
