/*
 * bundle.test.js - what `make bundle` makes: a bundle that the official tool finds valid, unpacks, and from which a desktop client's entry starts
 * a server that runs programs; and the entry for registries.
 *
 * The bundle's manifest is checked by the schema of npm's @anthropic-ai/mcpb. No npm package holds the schema of server.json (2025-12-11), which
 * is published at the address that the file names: what it asks of our members is checked here one by one.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { bin, root, run } from './stack.js';

const TIMEOUT_MS = 240_000;
const NAME = 'org.example/sallyport', URL_OF_BUNDLE = 'https://example.org/releases/sallyport.mcpb';
const mcpb = (...args) => run(process.execPath, [path.join(import.meta.dirname, 'node_modules/@anthropic-ai/mcpb/dist/cli/cli.js'), ...args]);

describe('the bundle', () => {
	let folder, bundle;
	before(async () => {
		folder = mkdtempSync(path.join(tmpdir(), 'sp-bundle-'));
		chmodSync(folder, 0o755);
		bundle = path.join(folder, 'sallyport.mcpb');
		const { code, stderr } = await run(path.join(root, 'debian/bundle/pack'), [bin, folder, NAME, URL_OF_BUNDLE]);
		assert.equal(code, 0, stderr);
	});
	after(() => rmSync(folder, { recursive: true, force: true }));

	test('the official tool unpacks it, its manifest is valid, and a client starts it', { timeout: TIMEOUT_MS }, async () => {
		const place = path.join(folder, 'installed');
		const unpacked = await mcpb('unpack', bundle, place);
		assert.equal(unpacked.code, 0, unpacked.stderr + unpacked.stdout);
		const checked = await mcpb('validate', path.join(place, 'manifest.json'));
		assert.equal(checked.code, 0, checked.stderr + checked.stdout);
		const { manifest_version, version, server, user_config } = JSON.parse(readFileSync(path.join(place, 'manifest.json'), 'utf8'));
		assert.equal(manifest_version, '0.4');
		assert.equal(server.type, 'binary');
		assert.ok(statSync(path.join(place, server.entry_point)).mode & 0o100, 'the program may be started');
		const filled = (text) => text.replaceAll('${__dirname}', place).replaceAll('${user_config.weaker_limits}', String(process.getuid() !== 0 || user_config.weaker_limits.default));
		const { command, args, env } = server.mcp_config;
		const client = new Client({ name: 'desktop', version: '1' });
		await client.connect(new StdioClientTransport({
			command: filled(command), args, stderr: 'ignore',
			env: { PATH: process.env.PATH, HOME: folder, XDG_DATA_HOME: folder, SP_EXCHANGES: process.env.SP_EXCHANGES ?? '', ...Object.fromEntries(Object.entries(env).map(([name, text]) => [name, filled(text)])) },
		}));
		assert.equal(client.getServerVersion().version, version);
		const result = await client.callTool({ name: 'run_code', arguments: { conversationId: 'b', language: 'python', code: 'print(6*7)' } });
		assert.equal(result.content.at(-1).text, '42\n', JSON.stringify(result));
		await client.close();
	});

	test('the same programs make the same bundle', async () => {
		const again = path.join(folder, 'again');
		const { code } = await run(path.join(root, 'debian/bundle/pack'), [bin, again, NAME]);
		assert.equal(code, 0);
		assert.deepEqual(readFileSync(path.join(again, 'sallyport.mcpb')), readFileSync(bundle));
		assert.equal(JSON.parse(readFileSync(path.join(again, 'server.json'), 'utf8')).packages, undefined);
	});

	test('server.json names the bundle by its sum', () => {
		const entry = JSON.parse(readFileSync(path.join(folder, 'server.json'), 'utf8'));
		assert.equal(entry.$schema, 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json');
		assert.match(entry.name, /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/);
		assert.ok(entry.title.length <= 100 && entry.description.length >= 1 && entry.description.length <= 100, entry.description);
		assert.match(entry.version, /^\d+\.\d+\.\d+$/);
		const [{ registryType, identifier, fileSha256, transport, ...more }] = entry.packages;
		assert.deepEqual([registryType, identifier, transport, more], ['mcpb', URL_OF_BUNDLE, { type: 'stdio' }, {}]);
		assert.equal(fileSha256, createHash('sha256').update(readFileSync(bundle)).digest('hex'));
		const [{ type, url, variables, headers: [header] }] = entry.remotes;
		assert.equal(type, 'streamable-http');
		assert.deepEqual([...url.matchAll(/\{(.*?)\}/g)].map(([, name]) => name), Object.keys(variables));
		assert.deepEqual([...header.value.matchAll(/\{(.*?)\}/g)].map(([, name]) => name), Object.keys(header.variables));
		assert.equal(header.isSecret, true);
	});
});
