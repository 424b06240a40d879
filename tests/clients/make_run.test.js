/*
 * make_run.test.js - the supervisor behind `make run`: what it prints, that nothing that serves is root, that a second one on the same port is
 * refused in words, that two on two ports do not disturb each other, that a stop leaves no process, and that a later start keeps token and data.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, readFileSync, rmSync, statSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { Stack, bin, makeState, processes, root, run, until } from './stack.js';

const TIMEOUT_MS = 240_000;
const RUN_SECONDS = 200, STOP_SECONDS = 100; /* a stop does not wait for a run; how fast it is on a busy machine is another thing */
const USER = 64242; /* of nobody */

function users(pid) {
	return /^Uid:\s+(\d+)\s+(\d+)\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')).slice(1);
}

test('no serving process is root', { timeout: TIMEOUT_MS }, async () => {
	const stack = await Stack.start();
	try {
		for (const program of ['sallyport-jailer', 'sallyport-gateway', 'nginx']) {
			const found = stack.process(program);
			assert.ok(found, `${program} runs`);
			assert.ok(users(found.pid).every((id) => id !== '0'), `${program} runs as ${users(found.pid)}`);
		}
		assert.equal(statSync(path.join(stack.state, 'token')).mode & 0o077, 0);
		assert.equal(statSync(path.join(stack.state, 'data')).mode & 0o077, 0);
	} finally {
		await stack.stop();
	}
});

test('a stop leaves no process, even while a program runs', { timeout: TIMEOUT_MS }, async () => {
	const marker = `${2_000_000 + process.pid}.25`;
	let stack = await Stack.start();
	const { state, printed } = stack;
	await stack.run({ conversationId: 'kept', language: 'bash', code: 'echo kept >note.txt' });
	const answer = stack.call('run_code', { conversationId: 'long', language: 'bash', code: 'exec sleep "$1"', args: [marker], timeout_seconds: RUN_SECONDS }).catch(() => null);
	await until('the guest to run', () => processes(marker).length > 0);
	const begun = Date.now();
	assert.deepEqual(await stack.stop({ keep: true }), { code: 0, signal: null });
	assert.ok(Date.now() - begun < STOP_SECONDS * 1000, `it took ${Date.now() - begun} ms`);
	await answer;
	assert.deepEqual(processes(state), []);
	await until('the guest to be gone', () => processes(marker).length === 0);
	stack = await Stack.start({ state });
	try {
		assert.equal(stack.printed, printed);
		assert.equal((await stack.run({ conversationId: 'kept', language: 'bash', code: 'cat note.txt' })).stdout, 'kept\n');
		const row = (await stack.rows()).find((one) => one.conversation === 'long');
		assert.ok(row.state === 'interrupted' || ['XX', 'CX'].includes(row.verdict), JSON.stringify(row));
	} finally {
		await stack.stop();
	}
});

test('a killed supervisor takes everything with it', { timeout: TIMEOUT_MS }, async () => {
	const stack = await Stack.start();
	stack.child.kill('SIGKILL');
	await until('its children to be gone', () => processes(stack.state).length === 0);
	rmSync(stack.state, { recursive: true, force: true });
});

function whyNotAsUser() {
	if (process.getuid() !== 0) return 'needs root to become another user';
	const reached = spawnSync('setpriv', [`--reuid=${USER}`, `--regid=${USER}`, '--clear-groups', 'test', '-x', path.join(bin, 'sallyport-jailer')]);
	return reached.status === 0 ? false : 'another user cannot reach this checkout';
}

/* Another account than root, without a name, a home or a cgroup of its own: what a container's arbitrary user id has. */
test('started by a user, everything runs as that user', { timeout: TIMEOUT_MS, skip: whyNotAsUser() }, async () => {
	const state = makeState();
	chownSync(state, USER, USER);
	const stack = await Stack.start({ state, user: USER });
	try {
		assert.match(stack.output, /^note: this account has no cgroup of its own/m);
		for (const program of ['sallyport-jailer', 'sallyport-gateway', 'nginx'])
			assert.deepEqual(users(stack.process(program).pid), [`${USER}`, `${USER}`, `${USER}`], program);
		for (const [language, code] of [['python', 'print(1)'], ['javascript', 'console.log(1)'], ['typescript', 'console.log(1 as number)'],
			['go', 'package main\nimport "fmt"\nfunc main() { fmt.Println(1) }'], ['bash', 'echo 1']]) {
			const result = await stack.run({ language, code });
			assert.equal(result.stdout, '1\n', `${language}: ${JSON.stringify(result)}`);
		}
		const hog = await stack.run({ language: 'python', code: 'bytearray(1500 << 20)' });
		assert.equal(hog.verdict, 'RE');
		assert.match(hog.stderr, /MemoryError/);
		assert.equal((await stack.run({ language: 'bash', code: 'while :; do :; done', timeout_seconds: 1 })).verdict, 'TO');
	} finally {
		await stack.stop();
	}
});

test('a port in use and a bad port are refused in words', { timeout: TIMEOUT_MS }, async () => {
	const stack = await Stack.start();
	const state = makeState();
	try {
		const start = (port) => run(path.join(root, 'nginx/dev.sh'), ['--bin', bin, '--state', state, port]);
		const port = new URL(stack.url).port;
		const used = await start(port);
		assert.equal(used.code, 1);
		assert.match(used.stderr, new RegExp(`port ${port} is in use: .*make run PORT=`));
		const free = async (word) => (await run(path.join(root, 'nginx/dev.sh'), ['--free', word])).code; /* before a build */
		assert.deepEqual([await free(port), await free('0')], [1, 0]);
		const bad = await start('70000');
		assert.equal(bad.code, 1);
		assert.match(bad.stderr, /PORT=70000 is not a port number/);
		const same = await run(path.join(root, 'nginx/dev.sh'), ['--bin', bin, '--state', stack.state, '0']);
		assert.equal(same.code, 1);
		assert.match(same.stderr, /another 'make run' uses/);
	} finally {
		await stack.stop();
		rmSync(state, { recursive: true, force: true });
	}
});

const noIpv6 = Object.values(networkInterfaces()).flat().some(({ address }) => address === '::1') ? false : 'this machine has no ::1';
test('where localhost is ::1 first, clients come in, too', { timeout: TIMEOUT_MS, skip: noIpv6 }, async () => {
	const stack = await Stack.start();
	try {
		const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
		const answer = await fetch(stack.url.replace('127.0.0.1', '[::1]'), { method: 'POST', headers: { ...stack.headers, 'Content-Type': 'application/json' }, body });
		assert.deepEqual(await answer.json(), { jsonrpc: '2.0', id: 1, result: {} });
	} finally {
		await stack.stop();
	}
});

test('make run says how long it took', { timeout: TIMEOUT_MS }, async () => {
	const state = makeState(), began = Math.floor(Date.now() / 1000) - 100;
	const child = spawn(path.join(root, 'nginx/dev.sh'), ['--bin', bin, '--state', state, '--since', String(began), '0'], { stdio: ['ignore', 'pipe', 'inherit'] });
	let output = '';
	child.stdout.on('data', (data) => (output += data));
	const ended = once(child, 'exit');
	await until('it to serve', () => /^logs: /m.test(output));
	const [, seconds] = /^ready after (\d+) s: /m.exec(output);
	assert.ok(Number(seconds) >= 100 && Number(seconds) <= Math.ceil(Date.now() / 1000) - began, output);
	child.kill('SIGTERM');
	await ended;
	rmSync(state, { recursive: true, force: true });
});

test('two stacks at once do not disturb each other', { timeout: TIMEOUT_MS }, async () => {
	const [one, two] = await Promise.all([Stack.start(), Stack.start()]);
	try {
		const all = [];
		for (let i = 0; i < 8; i++) {
			for (const [name, stack] of [['one', one], ['two', two]])
				all.push(stack.run({ conversationId: 'same', language: 'bash', code: `echo ${name}${i} >>log.txt; cat log.txt` }));
		}
		const results = await Promise.all(all);
		assert.ok(results.every((result) => result.verdict === 'OK'));
		for (const [name, stack] of [['one', one], ['two', two]]) {
			const { stdout } = await stack.run({ conversationId: 'same', language: 'bash', code: 'sort log.txt' });
			assert.equal(stdout, [...Array(8).keys()].map((i) => `${name}${i}\n`).join(''));
			assert.equal((await stack.rows()).length, 9);
		}
		const foreign = await fetch(two.url, { method: 'POST', headers: { ...one.headers, 'Content-Type': 'application/json' }, body: '{}' });
		assert.equal(foreign.status, 401, 'a token of one is none of the other');
		await one.stop();
		assert.equal((await two.run({ conversationId: 'after', language: 'bash', code: 'echo alive' })).stdout, 'alive\n');
	} finally {
		await Promise.all([one.stop(), two.stop()]);
	}
});
