/*
 * The official conformance suite against nginx and the gateway: everything with the fixtures (tests/gateway), and what needs none
 * against a normal start, through a proxy that adds the token (the suite cannot send one).
 *
 * The suite must not pass by not running: the number of checks that passed is held, too, also of the scenarios that the suite runs without
 * scoring them (tasks).
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { root, Stack } from './stack.js';

const suite = path.join(root, 'tests/clients/node_modules/@modelcontextprotocol/conformance/dist/index.js');

/* Runs the suite: { code, output, scenarios: { name: [passed, failed] }, others: the ids of checks that neither passed nor failed,
 * passed: how many passed }. */
async function conformance(url, args) {
	const results = mkdtempSync(path.join(tmpdir(), 'sp-suite-'));
	const child = spawn(process.execPath, [suite, 'server', '--url', url, '-o', results, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
	let output = '';
	for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += data));
	const code = await new Promise((resolve) => child.once('close', resolve));
	const scenarios = {};
	for (const [, name, passed, failed] of output.matchAll(/^[✓✗⚠] ([a-z0-9-]+): (\d+) passed, (\d+) failed/gm)) scenarios[name] = [Number(passed), Number(failed)];
	const files = readdirSync(results, { recursive: true }).filter((name) => name.endsWith('checks.json'));
	const checks = files.flatMap((name) => JSON.parse(readFileSync(path.join(results, name), 'utf8')));
	const others = checks.filter(({ status }) => !['SUCCESS', 'FAILURE'].includes(status)).map(({ id }) => id);
	const passed = checks.length - others.length - checks.filter(({ status }) => status === 'FAILURE').length;
	rmSync(results, { recursive: true, force: true });
	return { code, output, scenarios, others, passed };
}

/* Adds up what passed; fails for anything that did not. */
function sum({ output, scenarios }) {
	let checks = 0;
	for (const [name, [passed, failed]] of Object.entries(scenarios)) {
		assert.equal(failed, 0, `${name}:\n${output.slice(0, 20_000)}`);
		checks += passed;
	}
	return checks;
}

/* A fixture asks its client something, and the client never answers: what came on the stream, and after how long it ended. */
async function neverAnswer({ url, headers }) {
	const post = (message, more) => fetch(url, {
		method: 'POST',
		headers: { ...headers, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...more },
		body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
	});
	const params = { protocolVersion: '2025-11-25', capabilities: { sampling: {} }, clientInfo: { name: 'mute', version: '1' } };
	const opened = await post({ method: 'initialize', params });
	const asked = Date.now();
	const call = { method: 'tools/call', params: { name: 'test_sampling', arguments: { prompt: 'hello?' } } };
	const response = await post(call, { 'Mcp-Session-Id': opened.headers.get('mcp-session-id') });
	return { text: await response.text(), seconds: (Date.now() - asked) / 1000 };
}

/* Takes a minute; the suite runs meanwhile. */
let fixtures, unanswered;
before(async () => {
	fixtures = await Stack.start({ env: { SP_FIXTURES: '1' } });
	unanswered = Promise.allSettled([neverAnswer(fixtures)]);
});
after(() => fixtures?.stop());

describe('with the fixtures', () => {
	let stack;
	before(() => (stack = fixtures));

	test('2025-11-25', async () => {
		const result = await conformance(stack.url, ['--requirements', '2025-11-25']);
		assert.equal(sum(result), 84);
		assert.equal(result.code, 0, result.output);
	});
	/* The suite has 198 checks at this revision; one of them it always skips. */
	test('2026-07-28', async () => {
		const result = await conformance(stack.url, ['--requirements', '2026-07-28']);
		assert.equal(sum(result), 197);
		assert.deepEqual(result.others, ['tasks-status-notifications']);
		assert.equal(result.code, 0, result.output);
	});
	test('2025-06-18', async () => {
		const result = await conformance(stack.url, ['--spec-version', '2025-06-18']);
		assert.equal(sum(result), 56);
		assert.equal(result.code, 0, result.output);
	});
});

describe('in production', () => {
	/* "Fixture-free and meaningful for production"; some need nothing but a list that is there. completion-complete asks for a prompt that is
	 * not there: nothing is suggested. */
	const lists = ['tools-list', 'resources-list', 'prompts-list', 'completion-complete'];
	const oldest = ['server-initialize', 'server-session-lifecycle', 'ping', 'logging-set-level', ...lists];
	const legacy = [...oldest, 'server-sse-multiple-streams', 'dns-rebinding-protection'];
	const modern = [
		...lists, 'server-sse-multiple-streams', 'dns-rebinding-protection', 'sep-2164-resource-not-found', 'caching', 'http-header-validation',
		'input-required-result-unsupported-methods', 'input-required-result-missing-input-response', 'input-required-result-ignore-extra-params',
		'input-required-result-validate-input',
	];
	/* Of server-stateless, four checks call fixtures. */
	const STATELESS_PASSED = 24, STATELESS_FIXTURES = 4;
	/* All scenarios of a revision in one start of the suite, which takes a second of processor; those that need fixtures fail, and are nobody's. */
	const revisions = [
		['2025-06-18', oldest, ['--spec-version', '2025-06-18']],
		['2025-11-25', legacy, ['--requirements', '2025-11-25']],
		['2026-07-28', modern, ['--requirements', '2026-07-28']],
	];
	const results = {};
	let stack, proxy, url;
	before(async () => {
		stack = await Stack.start();
		const target = new URL(stack.base);
		proxy = http.createServer((request, response) => {
			const headers = { ...request.headers, authorization: `Bearer ${stack.token}` };
			const onward = http.request({ host: target.hostname, port: target.port, method: request.method, path: request.url, headers }, (answer) => {
				response.writeHead(answer.statusCode, answer.headers);
				answer.pipe(response);
			});
			onward.on('error', () => response.destroy());
			request.pipe(onward);
		});
		await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
		url = `http://127.0.0.1:${proxy.address().port}/mcp`;
		for (const [version, , args] of revisions) results[version] = await conformance(url, args);
	});
	after(async () => {
		proxy?.closeAllConnections();
		proxy?.close();
		await stack?.stop();
	});

	for (const [version, expected] of revisions) {
		for (const scenario of expected) {
			test(`${version} ${scenario}`, () => {
				const { output, scenarios } = results[version];
				const [passed, failed] = scenarios[scenario] ?? [0, 0];
				assert.ok(passed > 0 && failed === 0, `${passed} passed, ${failed} failed:\n${output}`);
			});
		}
	}
	test('2025-03-26 server-session-lifecycle', async () => {
		const result = await conformance(url, ['--scenario', 'server-session-lifecycle', '--spec-version', '2025-03-26']);
		assert.equal(result.code, 0, result.output);
	});
	test('2026-07-28 server-stateless', () => {
		const { output, scenarios } = results['2026-07-28'];
		assert.deepEqual(scenarios['server-stateless'], [STATELESS_PASSED, STATELESS_FIXTURES], output.slice(0, 20_000));
	});
	/* The extension io.modelcontextprotocol/skills, which the suite runs when it is named and forced; and how many checks each has. */
	for (const [scenario, checks] of Object.entries({ 'sep-2640-skills-enumeration': 32, 'sep-2640-skills-manifest': 6, 'sep-2640-skills-directory': 7 })) {
		test(`2026-07-28 ${scenario}`, async () => {
			const { code, output, others, passed } = await conformance(url, ['--scenario', scenario, '--spec-version', '2026-07-28', '--force']);
			assert.deepEqual({ code, others, passed }, { code: 0, others: [], passed: checks }, output);
		});
	}
	test('no fixture is there', async () => {
		const result = await conformance(url, ['--scenario', 'tools-call-simple-text', '--spec-version', '2025-11-25']);
		assert.notEqual(result.code, 0);
	});
});

test('a question that nobody answers ends after a minute, with signs of life until then', async () => {
	const [{ value, reason }] = await unanswered;
	assert.ok(value, reason);
	assert.match(value.text, /"method":"sampling\/createMessage"/);
	assert.ok(value.text.match(/^: keep-alive$/gm).length >= 3, value.text); /* every 15 s, the last one may meet the end */
	assert.match(value.text, /the client did not answer within 60 s","data":\{"requestId":"[0-9a-f]+"\}\}\}\s*$/);
	assert.ok(value.seconds >= 60 && value.seconds < 120, `${value.seconds} s`);
});
