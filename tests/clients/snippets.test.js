/*
 * snippets.test.js - programs that are kept by name: save_snippet, run_snippet and list_snippets through a whole stack, what operators do
 * with them (sallyport snippet), and their limits.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Stack, makeState, root } from './stack.js';

const TIMEOUT_MS = 180_000;
const node = path.join(root, 'jail/runners/npm/node_modules/.bin/node');
const everything = path.join(root, 'tests/clients/node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const SCHEMA = JSON.stringify({ type: 'object', required: ['n'], additionalProperties: false, properties: { n: { type: 'integer' } } });
const DOUBLE = { name: 'double', description: 'Doubles n', language: 'python', code: "import json, sys\nprint(json.load(sys.stdin)['n'] * 2)", inputSchema: SCHEMA };
const NAMES_MAX = 100, VERSIONS_MAX = 10;

let stack, other;
before(async () => {
	const state = makeState(), file = path.join(state, 'upstream.json');
	writeFileSync(file, JSON.stringify({ mcpServers: { everything: { command: node, args: [everything], jail: false, tools: { allow: ['*'] } } } }), { mode: 0o644 });
	stack = await Stack.start({ state, env: { SALLYPORT_TOOLS_SETS: 'snippets', SALLYPORT_RETENTION_OWNER_MB: '2', SALLYPORT_UPSTREAM_FILE: file } });
	const { token } = JSON.parse((await stack.cli(['token', 'add', '--owner', 'other', '--results', 'structured', '--json'])).stdout);
	other = Object.create(stack, { token: { value: token } });
});
after(async () => {
	await stack?.stop();
});

async function call(name, args, who = stack) {
	const { result, error } = await who.call(name, args);
	assert.ok(result, JSON.stringify(error));
	return { text: result.content.map((block) => block.text ?? '').join('\n'), isError: result.isError ?? false, details: result.structuredContent };
}
const save = (args, who) => call('save_snippet', args, who);
const runs = (args, who) => call('run_snippet', { conversationId: 'snippets', ...args }, who);

test('a program is kept, versioned, checked and run', { timeout: TIMEOUT_MS }, async () => {
	assert.equal((await call('list_snippets', {})).text, 'There are no snippets. save_snippet keeps one.\n');
	assert.equal((await save(DOUBLE)).text, 'Saved double, version 1. run_snippet runs it.');
	assert.equal((await runs({ name: 'double', input: '{"n": 21}' })).details.stdout, '42\n');
	assert.deepEqual((await save({ ...DOUBLE, code: DOUBLE.code.replace('* 2', '* 20'), description: 'Twenty\u202etimes' })).details, { name: 'double', version: 2 });
	assert.equal((await runs({ name: 'double', input: '{"n": 2}' })).details.stdout, '40\n');
	assert.equal((await runs({ name: 'double', input: '{"n": 2}', version: 1 })).details.stdout, '4\n');
	const listed = await call('list_snippets', {});
	assert.equal(listed.text, 'double (python, version 2): Twenty\\xe2\\x80\\xaetimes\n');
	assert.deepEqual(listed.details.snippets.map(({ name, version, everybody }) => [name, version, everybody]), [['double', 2, false]]);
	assert.match((await call('list_snippets', { name: 'double' })).text, /inputSchema: \{"type"[^]*code:\nimport json/);
	assert.equal((await call('list_snippets', {}, other)).text, 'There are no snippets. save_snippet keeps one.\n');
});

test('what is wrong is refused before anything runs', { timeout: TIMEOUT_MS }, async () => {
	await save(DOUBLE);
	const rows = (await stack.rows()).length;
	for (const [refused, says] of [
		[await runs({ name: 'double' }), /^input: n: is missing; the inputSchema is \{"type"/],
		[await runs({ name: 'double', input: '{"n": "x"}' }), /^input: n: must be an integer, not a string/],
		[await runs({ name: 'double', input: '{"n": 1, "m": 2}' }), /^input: m: is not an argument/],
		[await runs({ name: 'double', input: '[1]' }), /^input: must be a JSON object/],
		[await runs({ name: 'double', input: '{' }), /^input: is not JSON/],
		[await runs({ name: 'nothing' }), /^there is no snippet "nothing"$/],
		[await runs({ name: 'double', version: 99 }), /^there is no version 99 of the snippet "double"$/],
		[await runs({ name: 'double', input: '{"n": 1}' }, other), /^there is no snippet "double"$/],
		[await save({ ...DOUBLE, name: 'a/b' }), /^name: must be 1 to 64 letters, digits, _ or -$/],
		[await save({ ...DOUBLE, name: 'n'.repeat(65) }), /^name: .*64/],
		[await save({ ...DOUBLE, language: 'klingon' }), /^language: no language has this name/],
		[await save({ ...DOUBLE, inputSchema: '{' }), /^inputSchema: is not JSON/],
		[await save({ ...DOUBLE, inputSchema: '7' }), /^inputSchema: must be a JSON object$/],
		[await save({ ...DOUBLE, inputSchema: JSON.stringify({ description: 'x'.repeat(16 << 10) }) }), /^inputSchema: .*16384/],
		[await save({ ...DOUBLE, code: 'x'.repeat((64 << 10) + 1) }), /^code: .*65536/],
		[await save({ ...DOUBLE, description: 'x'.repeat(1025) }), /^description: .*1024/],
	]) {
		assert.equal(refused.isError, true, refused.text);
		assert.match(refused.text, says);
	}
	assert.equal((await stack.rows()).length, rows);
});

test('a snippet calls the servers that it names', { timeout: TIMEOUT_MS }, async () => {
	await save({ name: 'echo', description: 'Says it again', language: 'javascript', code: "console.log(await tools.everything.echo({ message: 'kept' }));", servers: ['everything'] });
	const made = await runs({ name: 'echo' });
	assert.equal(made.details.stdout, 'Echo: kept\n', made.text);
	assert.deepEqual(made.details.toolCalls.map(({ server, tool }) => `${server}.${tool}`), ['everything.echo']);
	await save({ name: 'lost', description: 'x', language: 'python', code: 'print(1)', servers: ['everythin'] });
	assert.match((await runs({ name: 'lost' })).text, /did you mean "everything"/);
});

test('an operator promotes, lists and removes', { timeout: TIMEOUT_MS }, async () => {
	const owner = (await stack.cli(['snippet', 'list', '--json'])).stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line)).find(({ name }) => name === 'double').owner;
	await save({ ...DOUBLE, code: "print('promoted')" });
	assert.match((await stack.cli(['snippet', 'promote', 'double', '--owner', owner])).stdout, /^double: version 1 for all owners$/m);
	assert.equal((await runs({ name: 'double', input: '{"n": 1}' }, other)).details.stdout, 'promoted\n');
	await save({ ...DOUBLE, code: "print('own')" }, other);
	assert.equal((await runs({ name: 'double', input: '{"n": 1}' }, other)).details.stdout, 'own\n');
	assert.match((await stack.cli(['snippet', 'list'])).stdout, /^double +\(all owners\) +1 +python/m);
	assert.equal((await stack.cli(['snippet', 'remove', 'double', '--owner', 'other'])).code, 0);
	assert.equal((await runs({ name: 'double', input: '{"n": 1}' }, other)).details.stdout, 'promoted\n');
	for (const [args, code] of [
		[['remove', 'nothing'], 3], [['promote', 'double'], 2], [['promote', 'double', '--owner', 'other'], 3], [['promote'], 2], [['list', 'x'], 2], [['sing'], 2],
	])
		assert.equal((await stack.cli(['snippet', ...args])).code, code, args.join(' '));
	assert.equal((await stack.cli(['snippet', 'remove', 'double'])).code, 0);
	assert.match((await runs({ name: 'double', input: '{"n": 1}' }, other)).text, /^there is no snippet/);
});

test('snippets have limits for each name and owner', { timeout: TIMEOUT_MS }, async () => {
	const one = { name: 'n0', description: 'x', language: 'python', code: 'print(1)' };
	for (let n = 0; n <= VERSIONS_MAX; n++) await save(one, other);
	assert.match((await runs({ name: 'n0', version: 1 }, other)).text, /^there is no version 1 /);
	assert.equal((await runs({ name: 'n0', version: 2 }, other)).details.stdout, '1\n');
	for (let n = 1; n < NAMES_MAX; n++) assert.equal((await save({ ...one, name: `n${n}` }, other)).isError, false);
	assert.match((await save({ ...one, name: 'more' }, other)).text, /^there are 100 snippets already, the limit/);
	assert.equal((await save(one, other)).isError, false);
	assert.equal((await save({ ...one, name: 'more' })).isError, false);
	const forgotten = await stack.cli(['forget', '--owner', 'other', '--yes']);
	assert.equal(forgotten.code, 0, forgotten.stderr);
	const left = (await stack.cli(['snippet', 'list', '--json'])).stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line));
	assert.ok(left.length > 0 && left.every(({ owner }) => owner !== 'other'));
});

test('snippets count under the cap of their owner', { timeout: TIMEOUT_MS }, async () => {
	const { token } = JSON.parse((await stack.cli(['token', 'add', '--owner', 'third', '--results', 'structured', '--json'])).stdout);
	const third = Object.create(stack, { token: { value: token } });
	const large = (n) => save({ name: `large${n % 5}`, description: 'x', language: 'python', code: '#'.repeat(60_000) }, third);
	let saved = 0, last;
	while (saved < 50 && !(last = await large(saved)).isError) saved++;
	assert.ok(saved >= 30 && saved < 50, `${saved} of 60 kB were saved`);
	assert.match(last.text, /MiB|room|cap/);
	const placed = path.join(stack.state, 'placed.map');
	writeFileSync(placed, '');
	const listed = (await stack.cli(['owners', 'list', '--json', '--table', placed])).stdout.trim().split('\n').map((line) => JSON.parse(line));
	const { bytes } = listed.find(({ owner }) => owner === 'third');
	assert.equal(bytes, saved * (60_000 + 512 + 'x{"type":"object"}[]'.length));
	assert.equal((await stack.cli(['snippet', 'remove', 'large0', '--owner', 'third'])).code, 0);
	assert.equal((await large(0)).isError, false);
});
