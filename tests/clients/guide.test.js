/*
 * guide.test.js - the text that teaches a model to call tools from programs: as a prompt and as a resource, the same, below 400 tokens;
 * and what it says works as it says.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { encode } from 'gpt-tokenizer';
import { Stack, makeState, root } from './stack.js';

const TIMEOUT_MS = 120_000;
const TOKENS_MAX = 400;
const node = path.join(root, 'jail/runners/npm/node_modules/.bin/node');
/* The server of the guide's examples. */
const github = `
const tools = [['list_issues', 'owner'], ['get_issue', 'number']].map(([name, argument]) => ({ name, inputSchema: { type: 'object', properties: { [argument]: {} } } }));
const say = (id, result) => console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
	const { id, method, params } = JSON.parse(line);
	if (method === 'initialize') say(id, { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'g', version: '1' } });
	else if (method === 'tools/list') say(id, { tools });
	else if (method === 'tools/call') say(id, { content: [{ type: 'text', text: JSON.stringify([params.name, params.arguments]) }] });
	else if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } }));
});
`;

let stack;
const connect = async (other = stack) => {
	const client = new Client({ name: 'test', version: '1' });
	await client.connect(new StreamableHTTPClientTransport(new URL(other.url), { requestInit: { headers: other.headers } }));
	return client;
};
before(async () => {
	const state = makeState(), file = path.join(state, 'upstream.json'), script = path.join(state, 'github.cjs');
	writeFileSync(script, github, { mode: 0o644 });
	writeFileSync(file, JSON.stringify({ mcpServers: { github: { command: node, args: [script], jail: false, tools: { allow: ['*'] } } } }), { mode: 0o644 });
	stack = await Stack.start({ state, env: { SALLYPORT_UPSTREAM_FILE: file } });
});
after(() => stack?.stop());

test('prompt and resource have one text, which is short', { timeout: TIMEOUT_MS }, async () => {
	const client = await connect();
	assert.ok((await client.listPrompts()).prompts.some(({ name }) => name === 'call_tools_from_code'));
	const prompt = (await client.getPrompt({ name: 'call_tools_from_code' })).messages[0].content.text;
	const listed = (await client.listResources()).resources.find(({ uri }) => uri === 'sallyport://guide/tools');
	const [resource] = (await client.readResource({ uri: listed.uri })).contents;
	assert.equal(resource.text, prompt);
	assert.equal(Buffer.byteLength(prompt), listed.size);
	assert.ok(encode(prompt).length < TOKENS_MAX, `${encode(prompt).length} tokens`);
	const asked = (await client.getPrompt({ name: 'call_tools_from_code', arguments: { task: 'Close stale issues' } })).messages[0].content.text;
	assert.equal(asked, `${prompt}\nTask: Close stale issues\n`);
	await assert.rejects(client.readResource({ uri: 'sallyport://guide/other' }));
	await client.close();
});

test('its examples run as they are', { timeout: TIMEOUT_MS }, async () => {
	const client = await connect();
	const text = (await client.getPrompt({ name: 'call_tools_from_code' })).messages[0].content.text;
	const example = (label) => new RegExp(`^ *${label}: (.*)$`, 'm').exec(text)[1];
	const run = (language, code) => stack.run({ language, code, servers: ['github'] });
	const plain = await run('python', `${example('Python')}\nprint(issues)`);
	assert.equal(plain.stdout + plain.stderr, "['list_issues', {'owner': 'o', 'repo': 'r'}]\n");
	const awaits = await run('python', `from tools import github\nimport asyncio\nnumbers = [1, 2]\nprint(${example('Where a program awaits anything, it awaits each call')})`);
	assert.equal(awaits.stdout + awaits.stderr, "[['get_issue', {'number': 1}], ['get_issue', {'number': 2}]]\n");
	for (const language of ['javascript', 'typescript']) {
		const [imported, call] = example('JavaScript, TypeScript').split('; ');
		const result = await run(language, `${imported};\nconsole.log(JSON.stringify(${call}))`);
		assert.equal(result.stdout + result.stderr, '["list_issues",{"owner":"o"}]\n');
	}
	assert.equal(JSON.stringify(JSON.parse((await run('bash', example('bash'))).stdout)), '["list_issues",{"owner":"o","limit":5}]');
	assert.equal((await run('bash', 'ls /code/tools/stubs/github.pyi')).stdout, '/code/tools/stubs/github.pyi\n');
	await client.close();
});

test('without upstream servers there is neither', { timeout: TIMEOUT_MS }, async () => {
	const bare = await Stack.start();
	try {
		const client = await connect(bare);
		assert.ok(!(await client.listPrompts()).prompts.some(({ name }) => name === 'call_tools_from_code'));
		await assert.rejects(client.readResource({ uri: 'sallyport://guide/tools' }));
		await client.close();
	} finally {
		await bare.stop();
	}
});
