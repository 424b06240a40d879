/*
 * api.test.js - /v1/ with the requests of LibreChat's client, as its code makes them: @librechat/agents' CodeExecutor (exec, and the list of a
 * session before it), LibreChat's server (upload as a form, download, the list with detail=summary to see whether a file is still there; ids of
 * 21 characters). Every answer is held against the OpenAPI document that the server gives.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Ajv from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { Stack } from './stack.js';

const TIMEOUT_MS = 120_000;
const isValidID = (text) => /^[A-Za-z0-9_-]{21}$/.test(text); /* LibreChat's route of downloads asks so */

class Client {
	constructor(base, key) {
		this.base = base;
		this.headers = { 'User-Agent': 'LibreChat/1.0', 'X-API-Key': key };
	}

	async #answer(response, schema) {
		const body = await response.json();
		this.check?.(response.ok ? schema : 'Error', body);
		return { status: response.status, body };
	}

	async exec(body) {
		const headers = { 'Content-Type': 'application/json', ...this.headers };
		return this.#answer(await fetch(`${this.base}/exec`, { method: 'POST', headers, body: JSON.stringify(body) }), 'Result');
	}

	async upload(files, fields = {}) {
		const body = new FormData();
		for (const [name, value] of Object.entries(fields)) body.append(name, value);
		for (const [name, content] of Object.entries(files)) body.append('file', new Blob([content]), name);
		return this.#answer(await fetch(`${this.base}/upload`, { method: 'POST', headers: { 'User-Id': 'u1', ...this.headers }, body }), 'Uploaded');
	}

	async list(session, detail) {
		return this.#answer(await fetch(`${this.base}/files/${session}?detail=${detail}`, { headers: this.headers }), 'Files');
	}

	download(identifier, headers = {}) {
		return fetch(`${this.base}/download/${identifier}`, { headers: { ...headers, ...this.headers } });
	}

	async remove(identifier) {
		return this.#answer(await fetch(`${this.base}/files/${identifier}`, { method: 'DELETE', headers: this.headers }), 'Done');
	}
}

async function checker(client) {
	const document = await (await fetch(`${client.base}/openapi.json`, { headers: client.headers })).json();
	const ajv = formats(new Ajv({ strict: false, validateFormats: true }));
	document.components.schemas.Files = document.paths['/files/{session_id}'].get.responses['200'].content['application/json'].schema;
	ajv.addSchema(document, 'document');
	for (const [path, methods] of Object.entries(document.paths)) {
		for (const operation of Object.values(methods)) {
			assert.ok(operation.operationId && operation.summary && operation.responses['200'], path);
			const named = [...path.matchAll(/\{(\w+)\}/g)].map((found) => found[1]);
			const described = (operation.parameters ?? []).filter((one) => one.in === 'path').map((one) => one.name);
			assert.deepEqual(described, named, path);
		}
	}
	client.check = (name, body) => {
		const valid = ajv.getSchema(`document#/components/schemas/${name}`);
		assert.ok(valid(body), `${name}: ${JSON.stringify(valid.errors)} of ${JSON.stringify(body)}`);
	};
	return document;
}

test('the plain HTTP API', { timeout: TIMEOUT_MS }, async (t) => {
	const stack = await Stack.start({ env: { SALLYPORT_API_ENABLED: 'true' } });
	const base = `${new URL(stack.url).origin}/v1`;
	const client = new Client(base, stack.headers.Authorization.replace('Bearer ', ''));
	try {
		await t.test('the document describes every path', async () => {
			const document = await checker(client);
			assert.equal(document.openapi, '3.1.0');
			assert.deepEqual(Object.keys(document.paths).length, 6);
		});
		await t.test('exec: output, files, members that we do not know', async () => {
			const { status, body } = await client.exec({ lang: 'py', code: "print('hi'); open('a.csv', 'w').write('x')", args: ['1'], user_id: 'u', entity_id: 'e' });
			assert.equal(status, 200);
			assert.equal(body.stdout, 'hi\n');
			assert.ok(isValidID(body.session_id) && isValidID(body.files[0].id));
			assert.deepEqual(body.files.map(({ name }) => name), ['a.csv']);
			const file = await client.download(`${body.session_id}/${body.files[0].id}`);
			assert.equal(await file.text(), 'x');
			assert.match(file.headers.get('content-disposition'), /a\.csv/);
			assert.equal(file.headers.get('x-content-type-options'), 'nosniff');
		});
		await t.test('what an upload put is there for exec, which changes a copy', async () => {
			const uploaded = (await client.upload({ 'data 1.csv': 'a\n1\n2\n' }, { entity_id: 'agent' })).body;
			assert.equal(uploaded.message, 'success');
			const { session_id: session, files: [{ fileId: id, filename: name }] } = uploaded;
			assert.ok(isValidID(id) && name === 'data 1.csv');
			const code = "f = open('data 1.csv', 'r+'); print(len(f.readlines())); f.write('3\\n'); open('out.txt', 'w').write('new')";
			const { body } = await client.exec({ lang: 'py', code, files: [{ id, name, session_id: session }] });
			assert.equal(body.stdout, '3\n');
			assert.notEqual(body.session_id, session);
			assert.deepEqual(body.files.map((file) => file.name).sort(), ['data 1.csv', 'out.txt']);
			assert.equal(await (await client.download(`${session}/${id}`)).text(), 'a\n1\n2\n');
			/* CodeExecutor with a session_id of before: lists it, and names all of its files */
			const listed = (await client.list(body.session_id, 'full')).body;
			const refs = listed.map((file) => ({ session_id: body.session_id, id: file.name.split('/')[1].split('.')[0], name: file.metadata['original-filename'] }));
			const next = await client.exec({ lang: 'bash', code: 'cat "data 1.csv" out.txt', files: refs });
			assert.equal(next.body.stdout, 'a\n1\n2\n3\nnew');
			assert.deepEqual(next.body.files, []);
			/* getSessionInfo: is it still there, and since when? */
			const summary = (await client.list(session, 'summary')).body;
			const found = summary.find((file) => file.name.startsWith(`${session}/${id}`));
			assert.ok(Date.now() - new Date(found.lastModified) < TIMEOUT_MS);
		});
		await t.test('a session that is named keeps its files', async () => {
			const first = (await client.exec({ lang: 'bash', code: 'echo 1 >n' })).body;
			const second = (await client.exec({ lang: 'bash', code: 'cat n', session_id: first.session_id, files: first.files })).body;
			assert.equal(second.stdout, '1\n');
			assert.equal(second.session_id, first.session_id);
			const more = (await client.upload({ m: '2' }, { session_id: first.session_id })).body;
			assert.equal(more.session_id, first.session_id);
			assert.equal((await client.remove(`${first.session_id}/${first.files[0].id}`)).status, 200);
			assert.equal((await client.remove(`${first.session_id}/${first.files[0].id}`)).status, 404);
			assert.deepEqual((await client.list(first.session_id, 'full')).body.map((file) => file.metadata['original-filename']), ['m']);
		});
		await t.test('programs that fail', async () => {
			const raised = (await client.exec({ lang: 'py', code: '1/0' })).body;
			assert.equal(raised.status, 'RE');
			assert.match(raised.stderr, /ZeroDivisionError/);
			const stopped = (await client.exec({ lang: 'bash', code: 'kill -9 $$' })).body;
			assert.match(stopped.stderr, /\[sallyport\] SG: /);
			const broken = (await client.exec({ lang: 'c', code: 'int main(' })).body;
			assert.equal(broken.status, 'CE');
		});
		await t.test('bad input', async () => {
			const id = 'x'.repeat(21);
			const refused = async (body, status, text) => {
				const answer = await client.exec(body);
				assert.equal(answer.status, status, JSON.stringify(answer.body));
				assert.match(answer.body.error_description, text);
			};
			await refused({ lang: 'py' }, 400, /code/);
			await refused({ lang: 'cobol', code: '1' }, 400, /^lang: "cobol" is unknown; there are bash/);
			await refused({ lang: 'py', code: '1', session_id: '../x' }, 400, /session_id/);
			await refused({ lang: 'py', code: '1', files: [{ id, session_id: id }] }, 404, /files\[0\]/);
			await refused({ lang: 'py', code: '1', files: [{ id: '..', session_id: id }] }, 404, /files\[0\]/);
			await refused({ lang: 'py', code: '1', files: Array(65).fill({ id, session_id: id }) }, 400, /files/);
			await refused([], 400, /object/);
			assert.equal((await client.list(id, 'full')).status, 404);
			assert.equal((await client.download(`${id}/${id}`)).status, 404);
			assert.equal((await client.upload({ '../x': '1' })).status, 400);
			assert.equal((await client.upload({}, { entity_id: 'e' })).status, 400);
			for (const path of ['', '/nothing', '/files/', '/files/short', `/files/${id}/${id}/x`, '/download', `/download/${id}`]) {
				assert.equal((await fetch(base + path, { headers: client.headers })).status, 404, path);
			}
			assert.equal((await fetch(`${base}/exec`, { headers: client.headers })).status, 405);
			const bad = new Client(base, 'sp_alice_wrong');
			assert.equal((await bad.exec({ lang: 'py', code: '1' })).status, 401);
			assert.equal((await fetch(`${base}/exec`, { method: 'POST', body: '{}' })).status, 401);
			assert.equal((await bad.upload({ large: Buffer.alloc(200_000) })).status, 401);
		});
	} finally {
		await stack.stop();
	}
});

test('it is off unless configured', { timeout: TIMEOUT_MS }, async () => {
	const stack = await Stack.start({});
	try {
		const answer = await fetch(`${new URL(stack.url).origin}/v1/openapi.json`, { headers: stack.headers });
		assert.equal(answer.status, 404);
	} finally {
		await stack.stop();
	}
});
