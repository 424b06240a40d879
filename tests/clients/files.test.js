/* files.test.js - /files/ through nginx, as programs fetch: uploads, forms, ranges that are resumed, an archive. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Stack } from './stack.js';

const TIMEOUT_MS = 120_000;
const LARGE = Buffer.alloc(300_000, 'sally');

test('files over HTTP', { timeout: TIMEOUT_MS }, async (t) => {
	const stack = await Stack.start({});
	try {
		const { result } = await stack.call('write_file', { conversationId: 'http', path: 'seed', content: 'seed' });
		const base = result.structuredContent.file.url.replace(/seed$/, '');
		const { Authorization } = stack.headers;
		const put = (name, body, headers = { Authorization }) => fetch(base + name, { method: 'PUT', headers, body });

		await t.test('put: small and large, with the token only', async () => {
			assert.equal((await put('small', 'x')).status, 201);
			assert.equal((await put('large', LARGE)).status, 201);
			assert.equal((await put('large', LARGE, {})).status, 401);
			assert.equal((await put('small', 'x', {})).status, 401);
			assert.deepEqual(Buffer.from(await (await fetch(`${base}large`)).arrayBuffer()), LARGE);
		});
		await t.test('ranges are resumed by the entity tag', async () => {
			const whole = await fetch(`${base}large`, { method: 'HEAD' });
			const tag = whole.headers.get('etag');
			assert.match(tag, /^"[0-9a-f]{64}"$/);
			assert.equal(whole.headers.get('content-length'), String(LARGE.length));
			const rest = await fetch(`${base}large`, { headers: { Range: 'bytes=299990-', 'If-Range': tag } });
			assert.equal(rest.status, 206);
			assert.equal(rest.headers.get('content-range'), 'bytes 299990-299999/300000');
			assert.equal(await rest.text(), LARGE.subarray(299_990).toString());
			assert.equal((await fetch(`${base}large`, { headers: { Range: 'bytes=300000-' } })).status, 416);
			await put('large', Buffer.alloc(300_000, 'other'));
			const other = await fetch(`${base}large`, { headers: { Range: 'bytes=299990-', 'If-Range': tag } });
			assert.equal(other.status, 200);
			assert.equal((await other.text()).length, LARGE.length);
			assert.equal((await fetch(`${base}large`, { headers: { 'If-None-Match': other.headers.get('etag') } })).status, 304);
		});
		await t.test('a form, as FormData sends it', async () => {
			const form = new FormData();
			form.append('entity', 'ignored');
			form.append('file', new Blob(['a,b\n']), 'a "b" ä.csv');
			form.append('file', new Blob([LARGE]), 'c.bin');
			const answer = await fetch(`${base}form/`, { method: 'POST', headers: { Authorization }, body: form });
			assert.equal(answer.status, 200);
			const { files } = await answer.json();
			assert.deepEqual(files.map((file) => [file.name, file.size]), [['form/a "b" ä.csv', 4], ['form/c.bin', LARGE.length]]);
			assert.equal(await (await fetch(files[0].url)).text(), 'a,b\n');
		});
		await t.test('an archive of all, a list, a removal', async () => {
			const zip = Buffer.from(await (await fetch(`${base}?zip`)).arrayBuffer());
			assert.equal(zip.subarray(0, 4).toString('latin1'), 'PK\x03\x04');
			assert.ok(zip.includes('form/c.bin') && zip.includes(Buffer.from('ä.csv')));
			assert.equal((await fetch(`${base}form/`, { method: 'DELETE', headers: { Authorization } })).status, 204);
			const { files } = await (await fetch(base)).json();
			assert.deepEqual(files.map(({ name }) => name), ['large', 'seed', 'small']);
			const page = await fetch(base, { headers: { Accept: 'text/html' } });
			assert.match(page.headers.get('content-type'), /^text\/html/);
		});
	} finally {
		await stack.stop();
	}
});

/* The SDK's client refuses a structured result that does not fit the tool's output schema. */
test('details of the file tools fit their schemas', { timeout: TIMEOUT_MS }, async () => {
	const stack = await Stack.start();
	const client = new Client({ name: 'sallyport-test', version: '1' });
	try {
		await client.connect(new StreamableHTTPClientTransport(new URL(`${stack.url}?results=both`), { requestInit: { headers: stack.headers } }));
		await client.listTools();
		const call = async (name, args) => {
			const result = await client.callTool({ name, arguments: { conversationId: 'sdk', ...args } });
			assert.ok(!result.isError, JSON.stringify(result.content));
			return result.structuredContent;
		};
		assert.equal((await call('write_file', { path: 'd/a.txt', content: 'one\ntwo\n' })).file.name, 'd/a.txt');
		await call('write_file', { path: 'd/b.bin', content_base64: 'AAE=' });
		assert.equal((await call('list_files', {})).count, 2);
		assert.equal((await call('list_files', { path: 'd', after: null })).next, undefined);
		assert.equal((await call('read_file', { path: 'd/a.txt', start_line: 2 })).start_line, 2);
		assert.equal((await call('read_file', { path: 'd/b.bin' })).whole, false);
		await call('run_code', { language: 'bash', code: 'echo 2 >d/a.txt' });
		const { executionId } = await call('diff', {});
		assert.equal((await call('restore_files', { executionId })).put, 1);
		assert.equal((await call('delete_files', { paths: ['d'] })).removed, 2);
	} finally {
		await client.close();
		await stack.stop();
	}
});
