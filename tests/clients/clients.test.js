/*
 * clients.test.js - real MCP clients from npm against one running stack: both SDKs in every way that they can open a connection, and the
 * Inspector's command line in both eras. Each lists the tools, uploads a CSV, draws a chart of it with pandas and matplotlib, and downloads
 * the chart through nginx; the SDKs check every structured result against the tool's own output schema.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { Stack, pngSize, run } from './stack.js';

const INSPECTOR = path.join(import.meta.dirname, 'node_modules/.bin/mcp-inspector');
const CSV = 'city,year,value\nOslo,2024,3\nOslo,2025,5\nRome,2024,7\nRome,2025,11\n';
const CHART = readFileSync(path.join(import.meta.dirname, '../data/chart.py'), 'utf8');
const TOOLS = ['list_runners', 'run_code', 'upload_file'];
const CHART_WIDTH = 640, CHART_HEIGHT = 480; /* chart.py: 6.4 by 4.8 inches, 100 dots an inch */
const TIMEOUT_MS = 120_000;

let stack;
before(async () => (stack = await Stack.start()));
after(() => stack?.stop());

/* What every client does; `call(name, arguments)` gives a tool's result. */
async function uploadAndDraw(conversationId, call) {
	const uploaded = await call('upload_file', { conversationId, filename: 'data.csv', content: Buffer.from(CSV).toString('base64') });
	assert.ok(!uploaded.isError, JSON.stringify(uploaded));
	const drawn = await call('run_code', { conversationId, language: 'python', code: CHART });
	assert.ok(!drawn.isError, JSON.stringify(drawn.content));
	const result = drawn.structuredContent;
	assert.equal(result.verdict, 'OK');
	assert.equal(result.exit_code, 0);
	assert.equal(result.stdout, 'Oslo 8\nRome 18\n');
	assert.match(drawn.content[0].text, /Oslo 8\nRome 18/);
	const image = drawn.content.find((block) => block.type === 'image');
	assert.equal(image.mimeType, 'image/png');
	assert.deepEqual(pngSize(Buffer.from(image.data, 'base64')), { width: CHART_WIDTH, height: CHART_HEIGHT });
	const chart = result.files.created.find((file) => file.name === 'chart.png');
	assert.ok(chart.url.startsWith(`${stack.base}/files/`), chart.url);
	await download(chart, Buffer.from(image.data, 'base64'));
}

async function download(file, expected) {
	const response = await fetch(file.url);
	assert.equal(response.status, 200);
	assert.equal(response.headers.get('content-type'), 'image/png');
	assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
	assert.match(response.headers.get('content-security-policy'), /sandbox/);
	assert.match(response.headers.get('content-disposition'), /^inline; filename.*chart\.png/);
	assert.equal(response.headers.get('x-accel-redirect'), null);
	const bytes = new Uint8Array(await response.arrayBuffer());
	assert.deepEqual(pngSize(bytes), { width: CHART_WIDTH, height: CHART_HEIGHT });
	assert.equal(bytes.length, file.size);
	assert.deepEqual(Buffer.from(bytes), expected);
}

function names(list) {
	return list.tools.map((tool) => tool.name).sort();
}

test('SDK v1', { timeout: TIMEOUT_MS }, async () => {
	const client = new ClientV1({ name: 'sallyport-test', version: '1' });
	const transport = new TransportV1(new URL(stack.url), { requestInit: { headers: stack.headers } });
	await client.connect(transport);
	assert.equal(transport.protocolVersion, '2025-11-25');
	assert.ok(transport.sessionId);
	await client.ping();
	assert.deepEqual(names(await client.listTools()), TOOLS);
	await uploadAndDraw('sdk-v1', (name, args) => client.callTool({ name, arguments: args }));
	await transport.terminateSession();
	await client.close();
});

for (const [label, mode, era] of [['legacy', 'legacy', 'legacy'], ['auto', 'auto', 'modern'], ['pinned', { pin: '2026-07-28' }, 'modern']]) {
	test(`SDK v2, ${label}`, { timeout: TIMEOUT_MS }, async () => {
		const client = new ClientV2({ name: 'sallyport-test', version: '1' }, { versionNegotiation: { mode } });
		await client.connect(new TransportV2(new URL(stack.url), { requestInit: { headers: stack.headers } }));
		assert.equal(client.getProtocolEra(), era);
		assert.deepEqual(names(await client.listTools()), TOOLS);
		await uploadAndDraw(`sdk-v2-${label}`, (name, args) => client.callTool({ name, arguments: args }));
		await client.close();
	});
}

for (const era of ['legacy', 'modern']) {
	test(`Inspector CLI, ${era}`, { timeout: TIMEOUT_MS }, async () => {
		const inspect = async (...args) => {
			const { code, stdout, stderr } = await run(process.execPath, [
				INSPECTOR, '--cli', stack.url, '--transport', 'http', '--header', `Authorization: Bearer ${stack.token}`,
				'--protocol-era', era, '--format', 'json', '--stored-auth-only', ...args,
			], { env: { ...process.env, HOME: stack.state } });
			assert.equal(code, 0, stdout + stderr);
			return JSON.parse(stdout).result;
		};
		assert.deepEqual(names(await inspect('--method', 'tools/list')), TOOLS);
		await uploadAndDraw(`inspector-${era}`, (name, args) =>
			inspect('--method', 'tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args)));
	});
}

test('a wrong token is refused, and the client can tell', async () => {
	const client = new ClientV2({ name: 'sallyport-test', version: '1' });
	const transport = new TransportV2(new URL(stack.url), { requestInit: { headers: { Authorization: 'Bearer sp_dev_wrong' } } });
	await assert.rejects(client.connect(transport), /invalid_token.*revoked/);
});

test('the curl line that make run prints works when it is pasted', async () => {
	const { code, stdout } = await run('bash', ['-c', stack.curl]);
	assert.equal(code, 0);
	const { result } = JSON.parse(stdout);
	assert.equal(result.structuredContent.verdict, 'OK');
	assert.match(result.content[0].text, /^42 3\./);
});

test('a download that does not exist, and one with another hash, are 404', async () => {
	const { files } = await stack.run({ conversationId: 'downloads', language: 'bash', code: 'echo a >a.txt; mkdir d; echo "<b>" >d/b.html' });
	const [text, page] = files.created;
	assert.equal(await (await fetch(text.url)).text(), 'a\n');
	const html = await fetch(page.url);
	assert.equal(html.status, 200);
	assert.match(html.headers.get('content-disposition'), /^attachment/);
	assert.match(html.headers.get('content-security-policy'), /sandbox; default-src 'none'/);
	const wrong = text.url.replace(/files\/(.)/, (all, digit) => `files/${digit === '0' ? '1' : '0'}`);
	for (const url of [`${text.url}x`, wrong, text.url.replace('a.txt', 'd'), text.url.replace('a.txt', 'd%2Fb.html/'), text.url.replace('a.txt', '')])
		assert.equal((await fetch(url)).status, 404, url);
	const head = await fetch(text.url, { method: 'HEAD' });
	assert.equal(head.status, 200);
	assert.equal(head.headers.get('content-length'), '2');
	const part = await fetch(text.url, { headers: { Range: 'bytes=0-0' } });
	assert.equal(part.status, 206);
	assert.equal(await part.text(), 'a');
});
