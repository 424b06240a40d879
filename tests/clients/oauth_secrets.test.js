/*
 * oauth_secrets.test.js - where tokens of clients must not be: with upstream servers, in programs, in logs and in the record; and that no token
 * chooses an address. A gateway in front of oidc-provider (oauth.mode external) with an upstream server that notes all that it gets.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Authority, signIn } from './authority.js';
import { makeState, Stack } from './stack.js';

let authority, stack, upstream, got, login;

/* An MCP server that answers any call with what it was sent. */
async function startUpstream() {
	got = [];
	upstream = http.createServer(async (request, response) => {
		let body = '';
		for await (const part of request) body += part;
		got.push(JSON.stringify([request.url, request.rawHeaders, body]));
		const { id, method } = body ? JSON.parse(body) : {};
		const results = {
			initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'note', version: '1' } },
			'tools/list': { tools: [{ name: 'note', inputSchema: { type: 'object' } }] },
			'tools/call': { content: [{ type: 'text', text: got.at(-1) }] },
		};
		if (id === undefined) return void response.writeHead(202).end();
		const answer = results[method] ? { result: results[method] } : { error: { code: -32601, message: 'no' } };
		return void response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
	}).listen(0, '127.0.0.1');
	await once(upstream, 'listening');
	return `http://127.0.0.1:${upstream.address().port}/mcp`;
}

before(async () => {
	authority = await Authority.start();
	const state = makeState(), file = path.join(state, 'mcp.json'), url = await startUpstream();
	writeFileSync(file, JSON.stringify({ mcpServers: { note: { url, private: true } } }), { mode: 0o644 });
	stack = await Stack.start({
		state,
		env: {
			SALLYPORT_UPSTREAM_FILE: file, SALLYPORT_OAUTH_MODE: 'external', SALLYPORT_OAUTH_ISSUER: authority.url, SALLYPORT_OAUTH_OWNER_CLAIM: 'owner',
		},
	});
	authority.audience = stack.url;
	const own = path.join(state, 'own.json'), data = stack.home();
	writeFileSync(own, JSON.stringify({ mcpServers: { box: { url: stack.url, private: true } } }), { mode: 0o600 });
	const signed = await signIn(['box'], {
		env: { SALLYPORT_DATA_DIR: data, SALLYPORT_UPSTREAM_FILE: own }, person: (address) => authority.person(address, 'ann'),
	});
	assert.equal(signed.code, 0, signed.stderr);
	login = JSON.parse(readFileSync(path.join(data, 'logins/box.json'), 'utf8'));
});
after(async () => {
	await stack?.stop();
	await authority?.stop();
	upstream?.close();
});

async function runCode(token, args) {
	const response = await fetch(stack.url, {
		method: 'POST',
		headers: {
			Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', 'MCP-Protocol-Version': '2026-07-28',
			'Mcp-Method': 'tools/call', 'Mcp-Name': 'run_code',
		},
		body: JSON.stringify({
			jsonrpc: '2.0', id: 1, method: 'tools/call',
			params: {
				name: 'run_code', arguments: { conversationId: 'a', language: 'python', ...args },
				_meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} },
			},
		}),
	});
	return { status: response.status, text: await response.text() };
}
const LOOK = `
import os
print(dict(os.environ))
for name in ('cmdline', 'environ'):
    print(open('/proc/1/' + name, 'rb').read() if os.access('/proc/1/' + name, os.R_OK) else '')
`;
const signatureOf = (token) => token.split('.').at(-1);

test('neither a program nor an upstream server sees the token of the client', async () => {
	const own = await runCode(stack.token, { code: `${LOOK}\nimport tools\nprint(tools.note.note())\n`, servers: ['note'] });
	assert.equal(own.status, 200);
	assert.match(own.text, /tools\/call/);
	const signed = await runCode(login.access_token, { code: LOOK });
	assert.equal(signed.status, 200);
	for (const secret of [stack.token, login.access_token, signatureOf(login.access_token)]) {
		assert.ok(!own.text.includes(secret) && !signed.text.includes(secret));
		for (const request of got) assert.ok(!request.includes(secret));
	}
	assert.ok(got.length >= 3);
	for (const request of got) assert.doesNotMatch(request, /authorization/i);
});

test('no token chooses an address', async () => {
	const [header, claims, signature] = login.access_token.split('.');
	const named = JSON.parse(Buffer.from(header, 'base64url'));
	const asked = () => JSON.stringify(authority.asked);
	const before = asked();
	for (const more of [{ jku: `${authority.url}/chosen` }, { x5u: `${authority.url}/chosen` }, { jwk: authority.keys[0].jwk }, { kid: `${authority.url}/chosen` }]) {
		const text = Buffer.from(JSON.stringify({ ...named, ...more })).toString('base64url');
		const { status } = await runCode(`${text}.${claims}.${signature}`, { code: '1' });
		assert.ok([401, 503].includes(status));
	}
	assert.equal(authority.asked['/chosen'], undefined, before);
	/* A token of the same issuer's keys that names another issuer. */
	const elsewhere = authority.keys[0].sign({ ...JSON.parse(Buffer.from(claims, 'base64url')), iss: `${authority.url}/other` });
	assert.equal((await runCode(elsewhere, { code: '1' })).status, 401);
	assert.equal(authority.asked['/other'], undefined);
});

test('logs and record hold no token, good or bad', async () => {
	const bad = `${login.access_token.slice(0, -6)}AAAAAA`;
	assert.equal((await runCode(bad, { code: '1' })).status, 401);
	assert.equal((await runCode('sp_ann_0123456789abcdef0123456789abcdef0123456789abcdef', { code: '1' })).status, 401);
	await fetch(`${stack.url}?access_token=${login.access_token}`);
	const secrets = [login.access_token, signatureOf(login.access_token), bad, login.refresh_token, stack.token, 'sp_ann_0123456789abcdef'];
	let files = 0;
	const look = (folder) => {
		for (const name of readdirSync(folder)) {
			const place = path.join(folder, name), { mode } = statSync(place);
			if ((mode & 0o170000) === 0o040000) look(place);
			if ((mode & 0o170000) !== 0o100000) continue;
			const bytes = readFileSync(place, 'latin1');
			files++;
			for (const secret of secrets) assert.ok(!bytes.includes(secret), place);
		}
	};
	look(path.join(stack.state, 'log'));
	look(path.join(stack.state, 'data'));
	assert.ok(files > 3);
	assert.match(readFileSync(path.join(stack.state, 'log/gateway.log'), 'utf8'), /token refused/);
	assert.equal((await stack.cli(['verify'])).code, 0);
});

test('a token in the address, or two of them, counts nothing', async () => {
	const bare = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{}' };
	assert.equal((await fetch(`${stack.url}?access_token=${login.access_token}`, bare)).status, 401);
	assert.equal((await fetch(stack.url, { ...bare, headers: { 'Content-Type': 'application/x-www-form-urlencoded' }, body: `access_token=${login.access_token}` })).status, 401);
	const request = http.request(stack.url, { method: 'POST', headers: [['Authorization', `Bearer ${login.access_token}`], ['Authorization', `Bearer ${stack.token}`]].flat() });
	request.end('{}');
	const [response] = await once(request, 'response');
	response.resume();
	assert.ok([400, 401].includes(response.statusCode));
});
