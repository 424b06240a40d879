/*
 * readme.test.js - what README.md tells people to paste into their clients, taken from there and used: each configuration block is given to
 * the transport that its client would make of it, and the command lines of curl and the Inspector are run in a shell. Only the address, the token, the path of
 * the program and the place of the npm packages are this test's; their versions must be those that the tests were made with.
 */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { picture } from '../../docs/picture.mjs';
import { ASKS, Stack, bin, root, run, until } from './stack.js';

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

/* What `make run` printed, as it is on a machine where it has the usual port and folder. */
const usual = (text) => text.replaceAll(stack.base, 'http://127.0.0.1:8080').replaceAll(stack.printed, 'sp_dev_…').replaceAll(stack.state, 'build/run/8080');

test('a first call by curl: the line that make run prints, and what comes back', { timeout: TIMEOUT_MS }, async () => {
	const [line] = blocks('sh').filter((text) => text.startsWith('curl '));
	assert.equal(line, `${usual(stack.curl)}\n`);
	const { code, stdout, stderr } = await run('bash', ['-c', stack.curl], { env: environment() });
	assert.equal(code, 0, stderr);
	assert.ok(blocks('json').includes(`${stdout.trim()}\n`), stdout);
	const drawn = path.join(root, 'docs/first-run.svg');
	const text = picture([`$ make run`, ...usual(stack.output).trim().split('\n').filter((one) => !/^(note:|\s)/.test(one)), '', `$ ${usual(stack.curl)}`, stdout.trim()].join('\n'));
	if (process.env.UPDATE) writeFileSync(drawn, text);
	assert.equal(readFileSync(drawn, 'utf8'), text, 'docs/first-run.svg shows something else: make picture draws it anew');
});

describe('install links', () => {
	const link = (host) => new URL(new RegExp(`\\]\\((https://${host}/[^)]*)\\)`).exec(readme)[1]).searchParams;
	const calls = async (entry) => {
		const client = new Client({ name: 'readme', version: '1' });
		await client.connect(transport(entry));
		assert.ok((await client.listTools()).tools.length > 0);
		await client.close();
	};

	test('VS Code', async () => {
		const asked = link('insiders\\.vscode\\.dev');
		assert.equal(asked.get('name'), 'sallyport');
		const [{ id, type, password }] = JSON.parse(asked.get('inputs'));
		assert.deepEqual([type, password], ['promptString', true]);
		await calls(JSON.parse(ours(asked.get('config')).replace(`\${input:${id}}`, stack.token)));
	});
	test('Cursor', async () => {
		const asked = link('cursor\\.com');
		assert.equal(asked.get('name'), 'sallyport');
		await calls(JSON.parse(ours(Buffer.from(asked.get('config'), 'base64').toString()).replace('${env:SALLYPORT_TOKEN}', stack.token)));
	});
});

/* A server as people have them in their clients' files: a package that npx starts, and a folder that it may read. */
const SERVER = `
import readline from 'node:readline';
const results = {
	initialize: () => ({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'files', version: '1' } }),
	'tools/list': () => ({ tools: [{ name: 'list_allowed_directories', inputSchema: { type: 'object' } }] }),
	'tools/call': () => ({ content: [{ type: 'text', text: 'Allowed: ' + process.argv[2] }] }),
};
for await (const line of readline.createInterface({ input: process.stdin })) {
	const { id, method, params } = JSON.parse(line);
	if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: results[method]?.(params) ?? {} }));
}`;

test('a client\'s file is pasted, one command, first call', { timeout: TIMEOUT_MS }, async () => {
	const place = mkdtempSync(path.join(process.getuid() === 0 ? '/srv' : os.homedir(), 'sp-readme-')); /* a jail has a /tmp of its own */
	chmodSync(place, 0o755);
	try {
		for (const folder of ['package', 'docs', 'into']) mkdirSync(path.join(place, folder), { mode: 0o755 });
		writeFileSync(path.join(place, 'package/package.json'), JSON.stringify({ name: 'files', version: '1.0.0', bin: { files: 'server.mjs' } }));
		writeFileSync(path.join(place, 'package/server.mjs'), SERVER);
		const file = path.join(place, 'claude_desktop_config.json');
		writeFileSync(file, JSON.stringify({ mcpServers: { files: { command: 'npx', args: ['-y', path.join(place, 'package'), path.join(place, 'docs')] } } }));
		const [line] = blocks('sh').filter((text) => text.includes('upstream add --'));
		const [, call] = blocks('sh').filter((text) => text.startsWith('curl '));
		const typed = line.trim().replace('build/bin', bin).replace('build/run/8080/sallyport.conf', stack.config).replace(/~\S+/, file);
		const env = { ...process.env, PATH: `${path.join(root, 'jail/runners/npm/node_modules/.bin')}:${process.env.PATH}` };
		const added = await run('bash', ['-c', `${typed} --into ${path.join(place, 'into')} --yes`], { env });
		assert.equal(added.code, 0, added.stderr + added.stdout);
		assert.match(added.stdout, /^files: ok: 1 tools/);
		const { result } = await until('the gateway to be started anew', async () => {
			const { stdout } = await run('bash', ['-c', ours(call)]);
			return stdout.startsWith('{') && JSON.parse(stdout).result?.isError === false && JSON.parse(stdout);
		});
		assert.match(result.content.at(-1).text, new RegExp(`Allowed: ${place}/docs`));
	} finally {
		rmSync(place, { recursive: true, force: true });
	}
});
