/*
 * readme.test.js - what README.md tells people to paste into their clients, taken from there and used: each configuration block is given to
 * the transport that its client would make of it, and the command lines of curl and the Inspector are run in a shell. Only the address, the token, the path of
 * the program and the place of the npm packages are this test's; their versions must be those that the tests were made with.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ASKS, Stack, bin, root, run } from './stack.js';

const readme = readFileSync(path.join(root, 'README.md'), 'utf8');
const blocks = (language) => [...readme.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'gm'))].map(([, text]) => text);
const pinned = JSON.parse(readFileSync(path.join(import.meta.dirname, 'package.json'), 'utf8')).dependencies;
const programs = { 'mcp-remote': 'mcp-remote/dist/proxy.js', '@modelcontextprotocol/inspector': '.bin/mcp-inspector' };
const TIMEOUT_MS = 240_000;

let stack, npx;
before(async () => {
	stack = await Stack.start();
	/* `npx PACKAGE@VERSION …` as a user has it, but from what is installed here, and only in the versions that are. */
	npx = mkdtempSync(path.join(stack.state, 'npx-'));
	const cases = Object.entries(programs).map(([name, program]) =>
		`'${name}@${pinned[name]}') shift; exec '${process.execPath}' '${path.join(import.meta.dirname, 'node_modules', program)}' "$@" ;;`);
	writeFileSync(path.join(npx, 'npx'), `#!/bin/sh\n[ "$1" != -y ] || shift\ncase $1 in\n${cases.join('\n')}\n*) echo "npx: not $1" >&2; exit 1 ;;\nesac\n`, { mode: 0o755 });
});
after(() => stack?.stop());

const ours = (text) => text.replaceAll('http://127.0.0.1:8080/mcp', stack.url).replaceAll('sp_dev_…', stack.token).replaceAll('/usr/local/bin', bin);
const environment = () => ({
	PATH: `${npx}:${process.env.PATH}`, HOME: stack.home(), XDG_DATA_HOME: stack.home(), SP_EXCHANGES: process.env.SP_EXCHANGES ?? '',
	...(process.getuid() === 0 ? {} : { SALLYPORT_JAILER_WEAKER_LIMITS: 'true' }),
});

/* What clients make of a server's entry: a program, or an address with headers. */
function transport({ command, args, env, url, headers }) {
	if (!command) return new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
	return new StdioClientTransport({ command, args, env: { ...environment(), ...env }, stderr: 'ignore' });
}

describe('configuration blocks', { concurrency: 2 }, () => {
	const found = blocks('json').map((text) => ({ text, configuration: JSON.parse(text) })).filter(({ configuration }) => configuration.servers || configuration.mcpServers);
	test('the README has five configuration blocks', () => assert.equal(found.length, 5));
	for (const { text, configuration } of found) {
		const [entry] = Object.values(configuration.servers ?? configuration.mcpServers);
		test(`${configuration.servers ? 'VS Code' : 'Claude Desktop, Cursor'}: ${entry.url ?? [entry.command, ...entry.args.slice(0, 2)].join(' ')}`, { timeout: TIMEOUT_MS }, async () => {
			const parsed = JSON.parse(ours(text));
			const client = new Client({ name: 'readme', version: '1' });
			await client.connect(transport((parsed.servers ?? parsed.mcpServers).sallyport));
			const result = await client.callTool({ name: 'run_code', _meta: ASKS, arguments: { conversationId: 'readme', language: 'python', code: 'print(6 * 7)' } });
			assert.equal(result.structuredContent.stdout, '42\n');
			await client.close();
		});
	}
});

test('a first call by the Inspector', { timeout: TIMEOUT_MS }, async () => {
	const lines = blocks('sh').filter((text) => text.startsWith('npx '));
	assert.equal(lines.length, 1);
	const { code, stdout, stderr } = await run('bash', ['-c', ours(lines[0])], { env: environment() });
	assert.equal(code, 0, stderr);
	assert.match(stdout, /"stdout": "42\\n"/);
});

test('a first call by curl, without a session', { timeout: TIMEOUT_MS }, async () => {
	const lines = blocks('sh').filter((text) => text.startsWith('curl '));
	assert.equal(lines.length, 1);
	const { code, stdout, stderr } = await run('bash', ['-c', ours(lines[0])], { env: environment() });
	assert.equal(code, 0, stderr);
	assert.equal(JSON.parse(stdout).result.structuredContent.stdout, '42\n');
});
