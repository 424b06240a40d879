/*
 * crash.test.js - what a sudden death leaves: gateway or jailer killed with SIGKILL while a program runs. No guest survives, the row says
 * what became of it, the supervisor brings the service back, and everything that was acknowledged before is there.
 */
import assert from 'node:assert/strict';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Stack, makeState, processes, root, until } from './stack.js';

const TIMEOUT_MS = 240_000;
const EVERYTHING = 'tests/clients/node_modules/@modelcontextprotocol/server-everything/dist/index.js';
const asleep = (test) => `${2_000_000 + process.pid}.${test}5`; /* seconds: nobody else on this machine sleeps for so many */

let stack;
before(async () => {
	const state = makeState(), file = path.join(state, 'upstream.json');
	const everything = { command: path.join(root, 'jail/runners/npm/node_modules/.bin/node'), args: [path.join(root, EVERYTHING)], jail: false, tools: { allow: ['*'] } };
	writeFileSync(file, JSON.stringify({ mcpServers: { everything } }), { mode: 0o644 });
	stack = await Stack.start({ state, env: { SALLYPORT_UPSTREAM_FILE: file } });
});
after(() => stack?.stop());

/* Starts a program that would sleep for long and is found in /proc by `marker`; the promise of its answer, or of its failure. */
function sleeper(marker) {
	return stack.call('run_code', {
		conversationId: marker, language: 'bash', code: 'echo begun; exec sleep "$1"', args: [marker], timeout_seconds: 200,
	}).then((value) => ({ value }), (error) => ({ error }));
}

async function kept(conversationId) {
	const { result } = await stack.call('run_code', { conversationId, language: 'bash', code: 'cat note.txt' });
	assert.equal(result.structuredContent.stdout, 'kept');
}

async function acknowledged(conversationId) {
	const { result } = await stack.call('upload_file', { conversationId, filename: 'note.txt', content: Buffer.from('kept').toString('base64') });
	assert.ok(!result.isError, JSON.stringify(result));
}

async function killAndComeBack(program) {
	const { pid } = stack.process(program);
	process.kill(pid, 'SIGKILL');
	await until(`${program} to be started again`, () => {
		const now = stack.process(program);
		return now && now.pid !== pid;
	});
	await until('the stack to answer again', async () => {
		const answer = await stack.call('run_code', { conversationId: 'probe', language: 'bash', code: 'echo back' }).catch(() => null);
		return answer?.result?.structuredContent?.stdout === 'back\n';
	});
}

/* The processes of a group, its leader first. */
function group(leader) {
	return readdirSync('/proc')
		.filter((name) => /^\d+$/.test(name))
		.filter((pid) => {
			try {
				const [state, , pgrp] = readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/.*\) /s, '').split(' ');
				return Number(pgrp) === leader && state !== 'Z';
			} catch {
				return false;
			}
		})
		.map(Number)
		.sort((a, b) => (b === leader) - (a === leader));
}

async function rowOf(marker) {
	return (await stack.rows()).find((row) => row.conversation === marker);
}

/* Bounded by JOB_SILENT_US and the ping before it; the program would run for longer than `until` waits. */
test('a hanging jailer ends its runs as XX', { timeout: TIMEOUT_MS }, async () => {
	const marker = asleep(1), answer = sleeper(marker);
	await until('the guest to run', () => processes(marker).length > 0);
	const { pid } = stack.process('sallyport-jailer');
	const jailers = processes(stack.state).filter(({ words }) => words[0].endsWith('sallyport-jailer')).map((one) => one.pid); /* it is two */
	for (const one of jailers) process.kill(one, 'SIGSTOP');
	const row = await until('the verdict', async () => [await rowOf(marker)].find((found) => found?.verdict));
	assert.equal(row.verdict, 'XX');
	await answer; /* a stream by then: it took longer than a keep-alive */
	assert.equal((await stack.call('list_runners', {})).status, 200, 'the gateway serves meanwhile');
	for (const one of jailers) process.kill(one, 'SIGCONT');
	await until('the guest to be gone', () => processes(marker).length === 0);
	await until('runs to work again', async () => {
		const again = await stack.call('run_code', { conversationId: 'hang', language: 'bash', code: 'echo back' }).catch(() => null);
		return again?.result?.structuredContent?.stdout === 'back\n';
	});
	assert.equal(stack.process('sallyport-jailer').pid, pid, 'the same jailer');
});

test('kill -9 of the gateway: the guest dies, the row is interrupted, what was kept is there', { timeout: TIMEOUT_MS }, async () => {
	const marker = asleep(2);
	await acknowledged('before-gateway');
	const answer = sleeper(marker);
	await until('the guest to run', () => processes(marker).length > 0);
	await killAndComeBack('sallyport-gateway');
	await until('the guest to be gone', () => processes(marker).length === 0);
	const { value, error } = await answer;
	assert.ok(error || value.status === 502, 'nginx says that the gateway went away, or breaks a stream that had begun');
	const row = await rowOf(marker);
	assert.equal(row.state, 'interrupted', JSON.stringify(row));
	await kept('before-gateway');
});

test('kill -9 of the gateway: calls of tools leave a trace, also one that was under way', { timeout: TIMEOUT_MS }, async () => {
	const secret = 'hunter2 für "einen" 😀';
	const code = `
import os
from tools import everything
everything.echo(message='é')
everything.echo(message='é')
try: everything.get_sum(a='x')
except Exception: pass
everything.echo(message=os.environ['S'])
everything.trigger_long_running_operation(duration=100, steps=1)
`;
	const answer = stack.call('run_code', { conversationId: 'calls', language: 'python', code, servers: ['everything'], secrets: { S: secret } }).catch(() => null);
	const trace = () => readdirSync(path.join(stack.state, 'data/running')).filter((name) => name.endsWith('.calls'));
	const noted = () => trace().map((name) => readFileSync(path.join(stack.state, 'data/running', name), 'utf8')).join('');
	await until('the last call to be under way', () => noted().includes('trigger-long-running-operation'));
	assert.doesNotMatch(noted(), /hunter2/);
	await killAndComeBack('sallyport-gateway');
	await answer;
	const row = await rowOf('calls');
	assert.equal(row.state, 'interrupted');
	const { tool_calls: toolCalls } = JSON.parse((await stack.cli(['show', '--json', row.id])).stdout);
	assert.deepEqual(toolCalls.map((call) => [call.seq, call.server, call.tool, call.state, call.occurrence]), [
		[1, 'everything', 'echo', 'done', 0], [2, 'everything', 'echo', 'done', 1], [4, 'everything', 'echo', 'done', 0],
		[5, 'everything', 'trigger-long-running-operation', 'failed', 0],
	]);
	assert.match(JSON.stringify(toolCalls[0]), /Echo: é/);
	assert.equal(toolCalls[2].arguments, '{"message":"***"}');
	assert.match(JSON.stringify(toolCalls[2]), /Echo: \*\*\*/);
	assert.match(JSON.stringify(toolCalls[3]), /interrupted.*whether the tool acted is not known|whether the tool acted is not known.*interrupted/);
	assert.deepEqual(trace(), []);
	assert.equal((await stack.cli(['verify'])).code, 0);
});

test('kill -9 of the jailer: the guest dies, the run is XX, what was kept is there', { timeout: TIMEOUT_MS }, async () => {
	const marker = asleep(3);
	await acknowledged('before-jailer');
	const answer = sleeper(marker);
	await until('the guest to run', () => processes(marker).length > 0);
	await killAndComeBack('sallyport-jailer');
	await until('the guest to be gone', () => processes(marker).length === 0);
	const { value } = await answer;
	assert.equal(value.result.isError, true);
	assert.equal(value.result.structuredContent.verdict, 'XX', JSON.stringify(value.result));
	assert.equal((await rowOf(marker)).verdict, 'XX');
	await kept('before-jailer');
});

/* A worker that outlived its master would keep the port, and the new nginx could not have it. */
test('kill -9 of nginx leaves no worker behind', { timeout: TIMEOUT_MS }, async () => {
	const old = group(stack.process('nginx').pid);
	assert.ok(old.length >= 2, `master and worker: ${old}`);
	await killAndComeBack('nginx');
	await until('the old workers to be gone', () => group(old[0]).length === 0);
});
