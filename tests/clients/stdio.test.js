/*
 * stdio.test.js - `sallyport stdio` as desktop clients start it: the SDK's StdioClientTransport, with a record in a folder of its own.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, chmodSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { Client as ClientV2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as TransportV2 } from '@modelcontextprotocol/client/stdio';
import { file, followOne, listenToOne, record, upload, V1, V2 } from './follow.js';
import { ASKS, TICKED, lines, ticking, until, wakeUntil } from './stack.js';

const BIN = process.env.SP_BIN ?? path.join(import.meta.dirname, '../../build/bin');
const TIMEOUT_MS = 180_000;

let folder, client, env, told;
const start = () => ({ command: path.join(BIN, 'sallyport'), args: ['stdio'], env, stderr: 'ignore' });
async function modernClient() {
	const modern = new ClientV2({ name: 'test', version: '2' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
	const heard = record(modern, V2);
	await modern.connect(new TransportV2(start()));
	return { client: modern, told: heard };
}

before(async () => {
	folder = mkdtempSync(path.join(tmpdir(), 'sp-'));
	chmodSync(folder, 0o755);
	env = { PATH: process.env.PATH, XDG_DATA_HOME: folder, SP_EXCHANGES: process.env.SP_EXCHANGES ?? '' };
	if (process.getuid() !== 0) env.SALLYPORT_JAILER_WEAKER_LIMITS = 'true';
	client = new Client({ name: 'test', version: '1' });
	told = record(client, V1);
	await client.connect(new StdioClientTransport(start()));
});
after(async () => {
	await client?.close();
	if (folder) rmSync(folder, { recursive: true, force: true });
});

test('SDK v1 over stdio: tools, upload, run, resource, prompt, completion', { timeout: TIMEOUT_MS }, async () => {
	assert.equal(client.getServerVersion().name, 'sallyport');
	const { tools } = await client.listTools();
	assert.ok(tools.some((tool) => tool.name === 'run_code'));
	await client.callTool({ name: 'upload_file', arguments: { conversationId: 'd', filename: 'in.csv', content: Buffer.from('1\n2\n').toString('base64') } });
	const result = await client.callTool({
		name: 'run_code',
		_meta: ASKS,
		arguments: { conversationId: 'd', language: 'python', code: "n = [int(l) for l in open('in.csv')]\nopen('sum.txt', 'w').write(str(sum(n)))\nprint(len(n))" },
	});
	assert.equal(result.structuredContent.stdout, '2\n');
	const [made] = result.structuredContent.files.created;
	assert.equal(made.name, 'sum.txt');
	const read = await client.readResource({ uri: made.url });
	assert.equal(read.contents[0].text, '3');
	const { resources } = await client.listResources();
	assert.ok(resources.some((resource) => resource.uri === made.url));
	const prompt = await client.getPrompt({ name: 'solve_with_code', arguments: { task: 'Add it up' } });
	assert.match(prompt.messages[0].content.text, /Add it up/);
	const completed = await client.complete({ ref: { type: 'ref/prompt', name: 'solve_with_code' }, argument: { name: 'language', value: 'pyth' } });
	assert.equal(completed.completion.values[0], 'python');
});

test('progress carries the output, in both eras', { timeout: TIMEOUT_MS }, async () => {
	const call = (code) => ({ name: 'run_code', _meta: ASKS, arguments: { conversationId: 'progress', language: 'python', code } });
	const { client: modern } = await modernClient();
	for (const run of [(code, options) => client.callTool(call(code), undefined, options), (code, options) => modern.callTool(call(code), options)]) {
		const messages = [], program = ticking(), seen = () => messages.map(({ message }) => message).join('');
		const result = await wakeUntil(program, run(program.code, { onprogress: (progress) => messages.push(progress) }), () => lines(seen()));
		assert.equal(result.structuredContent.stdout, TICKED);
		assert.equal(seen(), TICKED);
		assert.equal(messages.at(-1).progress, TICKED.length);
	}
	await modern.close();
});

test('calls run side by side', { timeout: TIMEOUT_MS }, async () => {
	const calls = Array.from({ length: 6 }, (_, i) =>
		client.callTool({ name: 'run_code', _meta: ASKS, arguments: { conversationId: `p${i}`, language: 'bash', code: `echo ${i}` } }));
	const results = await Promise.all([client.ping(), ...calls]);
	assert.deepEqual(results.slice(1).map((result) => result.structuredContent.stdout), ['0\n', '1\n', '2\n', '3\n', '4\n', '5\n']);
});

test('resources/subscribe and list_changed, SDK v1', { timeout: TIMEOUT_MS }, () => followOne({ client, told }, 'follow'));

test('two processes of one record hear of each other', { timeout: TIMEOUT_MS }, async () => {
	const beside = await modernClient();
	await listenToOne(beside, 'listen');
	const [mine, theirs] = [file('both', 'mine.txt'), file('both', 'theirs.txt')];
	await client.subscribeResource({ uri: theirs });
	const subscription = await beside.client.listen({ resourceSubscriptions: [mine] });
	await upload(client, 'both', 'mine.txt', 'a');
	await until('news for the second', () => beside.told.uris.includes(mine));
	await upload(beside.client, 'both', 'theirs.txt', 'b');
	await until('news for the first', () => told.uris.includes(theirs));
	await subscription.close();
	await beside.client.close();
});
