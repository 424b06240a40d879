/*
 * upstream_login.test.js - `sallyport upstream login`: a person signs in to MCP servers that ask for OAuth. The official SDK's example server with its
 * own authorization server; a second Sallyport behind nginx in front of oidc-provider; and servers that lie, each in its own way.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { Authority, redirected, signIn } from './authority.js';
import { bin, makeState, root, run, Stack, until } from './stack.js';

const folder = mkdtempSync(path.join(tmpdir(), 'sp-login-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/* A place of its own for logins and servers: { env, data }. */
function place(servers) {
	const data = mkdtempSync(path.join(folder, 'data-')), file = path.join(data, 'mcp.json');
	writeFileSync(file, JSON.stringify({ mcpServers: servers }), { mode: 0o600 });
	return { data, env: { SALLYPORT_DATA_DIR: data, SALLYPORT_UPSTREAM_FILE: file } };
}
const upstream = (at, args) => run(path.join(bin, 'sallyport'), ['upstream', ...args], { env: { ...process.env, ...at.env } });
const loginFile = (at, name) => path.join(at.data, 'logins', `${name}.json`);
const readLogin = (at, name) => JSON.parse(readFileSync(loginFile(at, name), 'utf8'));
const changeLogin = (at, name, change) => writeFileSync(loginFile(at, name), JSON.stringify({ ...readLogin(at, name), ...change }));

async function freePort() {
	const server = net.createServer().listen(0, '127.0.0.1');
	await once(server, 'listening');
	const { port } = server.address();
	server.close();
	await once(server, 'close');
	return port;
}

describe('the example server of the official SDK', () => {
	let server, url;
	before(async () => {
		const [port, issuer] = [await freePort(), await freePort()];
		const program = path.join(root, 'tests/clients/node_modules/@modelcontextprotocol/sdk/dist/esm/examples/server/simpleStreamableHttp.js');
		server = spawn(process.execPath, [program, '--oauth', '--oauth-strict'], { env: { ...process.env, MCP_PORT: String(port), MCP_AUTH_PORT: String(issuer) } });
		let said = '';
		for (const stream of [server.stdout, server.stderr]) stream.on('data', (data) => (said += data));
		await until('both servers to listen', () => said.includes('MCP Streamable HTTP Server listening') && said.includes('OAuth Authorization Server listening'));
		url = `http://localhost:${port}/mcp`;
	});
	after(() => server?.kill());

	test('a person signs in, and tools can be called until the sign-in is given back', async () => {
		const at = place({ demo: { url, private: true } });
		const before = await upstream(at, ['check']);
		assert.equal(before.code, 1);
		assert.match(before.stdout, /demo is not available: it asks for a sign-in: sallyport upstream login demo/);
		const { code, stdout, stderr, page } = await signIn(['demo'], { env: at.env, person: redirected });
		assert.equal(code, 0, stderr);
		assert.match(stdout, /^signed in to demo at http:\/\/localhost:\d+\/, scopes mcp:tools/);
		assert.match(page, /Signed in\. You can close this window/);
		const { access_token: token } = readLogin(at, 'demo');
		assert.equal(statSync(loginFile(at, 'demo')).mode & 0o777, 0o600);
		assert.equal(statSync(path.join(at.data, 'logins')).mode & 0o777, 0o700);
		assert.ok(!`${stdout}${stderr}${page}`.includes(token));
		assert.equal(JSON.parse((await upstream(at, ['list', '--json'])).stdout).kind, 'http, signed in');
		const called = await upstream(at, ['call', 'demo', 'greet', '{"name":"Ann"}']);
		assert.equal(called.code, 0, called.stderr);
		assert.match(called.stdout, /Hello, Ann!/);
		assert.equal((await upstream(at, ['logout', 'demo'])).code, 0);
		assert.equal(JSON.parse((await upstream(at, ['list', '--json'])).stdout).kind, 'http');
		assert.match((await upstream(at, ['check'])).stdout, /it asks for a sign-in/);
	});
	test('the address that the browser ended at can be pasted', async () => {
		const at = place({ demo: { url, private: true } });
		const { code, stdout, stderr } = await signIn(['demo', '--json'], { env: at.env, person: redirected, paste: true });
		assert.equal(code, 0, stderr);
		assert.equal(JSON.parse(stdout).scope, 'mcp:tools');
		assert.equal((await upstream(at, ['check'])).code, 0);
	});
	test('an entry whose address changed has no token', async () => {
		const at = place({ demo: { url, private: true } });
		await signIn(['demo'], { env: at.env, person: redirected });
		changeLogin(at, 'demo', { url: url.replace('localhost', '127.0.0.1') });
		assert.match((await upstream(at, ['check'])).stdout, /it asks for a sign-in/);
	});
	test('an address that is not public needs the entry to say so, and so do those that it names', async () => {
		const at = place({ demo: { url } });
		const { code, stderr } = await signIn(['demo'], { env: at.env, person: redirected });
		assert.notEqual(code, 0);
		assert.match(stderr, /has an address that is not the internet's/);
	});
	test('a gateway uses a sign-in without being started again', async () => {
		const state = makeState(), file = path.join(state, 'mcp.json');
		writeFileSync(file, JSON.stringify({ mcpServers: { demo: { url, private: true } } }), { mode: 0o644 });
		const stack = await Stack.start({ state, env: { SALLYPORT_UPSTREAM_FILE: file } });
		const code = 'import tools\nprint(tools.demo.greet(name="Bob"))\n';
		try {
			const refused = await stack.call('run_code', { conversationId: 'a', language: 'python', code, servers: ['demo'] });
			assert.match(refused.result.content[0].text, /demo is not available: it asks for a sign-in: sallyport upstream login demo/);
			const signed = await signIn(['demo'], { config: stack.config, env: { SALLYPORT_UPSTREAM_FILE: file }, person: redirected });
			assert.equal(signed.code, 0, signed.stderr);
			const answer = await stack.run({ language: 'python', code, servers: ['demo'] });
			assert.match(JSON.stringify(answer), /Hello, Bob!/);
			/* The file is the gateway's account's, whoever signed in. */
			assert.equal(statSync(path.join(stack.state, 'data/logins/demo.json')).uid, statSync(path.join(stack.state, 'data')).uid);
			assert.equal((await stack.cli(['verify'])).code, 0);
		} finally {
			await stack.stop();
		}
	});
});

describe('another Sallyport in front of oidc-provider', () => {
	let authority, stack;
	before(async () => {
		authority = await Authority.start();
		stack = await Stack.start({
			env: { SALLYPORT_OAUTH_MODE: 'external', SALLYPORT_OAUTH_ISSUER: authority.url, SALLYPORT_OAUTH_OWNER_CLAIM: 'owner' },
		});
		authority.audience = stack.url;
	});
	after(async () => {
		await stack?.stop();
		await authority?.stop();
	});
	beforeEach(() => (authority.mode = 'good'));
	const person = (login) => (address) => authority.person(address, login);
	const entry = (more = {}) => place({ box: { url: stack.url, private: true, ...more } });
	const echo = ['call', 'box', 'run_code', '{"language":"bash","code":"echo 7","conversationId":"a"}'];
	async function signed(more) {
		const at = entry(more);
		const { code, stderr } = await signIn(['box'], { env: at.env, person: person('ann') });
		assert.equal(code, 0, stderr);
		return at;
	}

	test('discovers, registers, signs in and calls as the person', async () => {
		const at = entry();
		const { code, stdout, stderr, address } = await signIn(['box'], { env: at.env, person: person('ann') });
		assert.equal(code, 0, stderr);
		assert.match(stdout, /the tokens renew themselves/);
		const asked = new URL(address).searchParams;
		assert.equal(asked.get('resource'), stack.url);
		assert.equal(asked.get('code_challenge_method'), 'S256');
		assert.equal(asked.get('scope'), 'run files offline_access');
		const called = await upstream(at, echo);
		assert.equal(called.code, 0, called.stderr);
		assert.equal((await stack.rows())[0].owner, 'ann');
	});
	test('a token that ran out is renewed, by one of several processes, and no refresh token is used twice', async () => {
		const at = await signed(), first = readLogin(at, 'box'), before = authority.asked['/token'];
		for (const round of [1, 2]) {
			changeLogin(at, 'box', { got_us: 1, expires_us: 2 });
			const results = await Promise.all(Array.from({ length: 4 }, () => upstream(at, echo)));
			for (const { code, stderr } of results) assert.equal(code, 0, stderr);
			assert.equal(authority.asked['/token'], before + round);
		}
		const last = readLogin(at, 'box');
		assert.notEqual(last.refresh_token, first.refresh_token);
		assert.notEqual(last.access_token, first.access_token);
		assert.equal(authority.refused, 0);
	});
	test('a token that the server refuses is renewed once, and the call is sent again', async () => {
		const at = await signed(), before = authority.asked['/token'], rows = (await stack.rows()).length;
		changeLogin(at, 'box', { access_token: 'spoilt-token' });
		const called = await upstream(at, echo);
		assert.equal(called.code, 0, called.stderr);
		assert.equal(authority.asked['/token'], before + 1);
		assert.equal((await stack.rows()).length, rows + 1);
	});
	test('while the issuer is away, a token that is still good goes on, and one that is not says why', async () => {
		const at = await signed();
		authority.mode = '500';
		assert.equal((await upstream(at, echo)).code, 0);
		const { refresh_token: kept } = readLogin(at, 'box');
		changeLogin(at, 'box', { got_us: 1, expires_us: 2 });
		const { code, stderr } = await upstream(at, echo);
		assert.notEqual(code, 0);
		assert.match(stderr, /its token cannot be renewed now: .*status 500/);
		assert.equal(readLogin(at, 'box').refresh_token, kept);
		authority.mode = 'good';
		assert.equal((await upstream(at, echo)).code, 0);
	});
	test('when the grant is gone a person must sign in again', async () => {
		const at = await signed();
		changeLogin(at, 'box', { got_us: 1, expires_us: 2, refresh_token: 'nobody-gave-this' });
		const { stderr } = await upstream(at, echo);
		assert.match(stderr, /its sign-in has ended .*: sallyport upstream login box/);
		assert.equal(readLogin(at, 'box').refresh_token, undefined);
		authority.refused = 0;
		const registered = authority.asked['/reg'];
		assert.equal((await signIn(['box'], { env: at.env, person: person('ann') })).code, 0);
		assert.equal(authority.asked['/reg'], registered); /* the client is known there */
		assert.equal((await upstream(at, echo)).code, 0);
	});
	test('signing out tells the issuer', async () => {
		const at = await signed(), { refresh_token: token, client_id: client } = readLogin(at, 'box');
		assert.equal((await upstream(at, ['logout', 'box'])).code, 0);
		const form = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: token, client_id: client });
		assert.equal((await fetch(`${authority.url}/token`, { method: 'POST', body: form })).status, 400);
		authority.refused = 0;
	});
	test('no output, log or record has a token', async () => {
		const at = await signed(), login = readLogin(at, 'box');
		const seen = await Promise.all([['check', '--json'], ['list', '--json'], ['tools', 'box', '--json'], echo].map((args) => upstream(at, args)));
		for (const { stdout, stderr } of seen)
			for (const secret of [login.access_token, login.refresh_token]) assert.ok(!`${stdout}${stderr}`.includes(secret));
	});
});

describe('servers that lie', () => {
	const TOKEN = 'tok-0123456789abcdef';
	let server, url, lies, seen;
	const json = (response, body, status = 200, headers = {}) => response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(body));
	before(async () => {
		server = http.createServer(async (request, response) => {
			let body = '';
			for await (const part of request) body += part;
			const { pathname, searchParams } = new URL(request.url, url);
			seen.push({ pathname, body, authorization: request.headers.authorization });
			if (lies[pathname]) return lies[pathname](request, response, body, searchParams);
			if (pathname === '/.well-known/oauth-protected-resource/mcp') return json(response, { resource: `${url}/mcp`, authorization_servers: [url], ...lies.resource });
			if (pathname === '/.well-known/oauth-authorization-server') {
				return json(response, {
					issuer: url, authorization_endpoint: `${url}/authorize`, token_endpoint: `${url}/token`, registration_endpoint: `${url}/register`,
					code_challenge_methods_supported: ['S256'], token_endpoint_auth_methods_supported: ['none'], ...lies.metadata,
				});
			}
			if (pathname === '/register') return json(response, { client_id: 'c1', ...lies.client }, 201);
			if (pathname === '/authorize') {
				const back = new URL(searchParams.get('redirect_uri'));
				for (const [name, value] of Object.entries({ code: 'c-o-d-e', state: searchParams.get('state'), ...lies.answer })) if (value !== null) back.searchParams.append(name, value);
				return response.writeHead(302, { Location: back.href }).end();
			}
			if (pathname === '/token') return json(response, { access_token: TOKEN, token_type: 'Bearer', expires_in: 3600, ...lies.token }, lies.status ?? 200);
			if (pathname !== '/mcp') return json(response, {}, 404);
			if (request.headers.authorization !== `Bearer ${TOKEN}`) return json(response, {}, 401, { 'WWW-Authenticate': lies.challenge ?? `Bearer resource_metadata="${url}/.well-known/oauth-protected-resource/mcp"` });
			const { id, method, params } = JSON.parse(body);
			const results = {
				initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'liar', version: '1' } },
				'tools/list': { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] },
				'tools/call': { content: [{ type: 'text', text: `you are ${request.headers.authorization}` }] },
			};
			if (lies.call && method === 'tools/call') return lies.call(request, response, params);
			if (results[method]) return json(response, { jsonrpc: '2.0', id, result: results[method] });
			return id === undefined ? response.writeHead(202).end() : json(response, { jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } });
		}).listen(0, '127.0.0.1');
		await once(server, 'listening');
		url = `http://127.0.0.1:${server.address().port}`;
	});
	after(() => server?.close());
	beforeEach(() => {
		lies = {};
		seen = [];
	});
	const attempt = async (more = {}, args = []) => {
		const at = place({ liar: { url: `${url}/mcp`, private: true, ...more } });
		return { at, ...(await signIn(['liar', ...args], { env: at.env, person: redirected, paste: true })) };
	};
	const asked = (pathname) => seen.filter((one) => one.pathname === pathname).length;

	test('one that tells the truth is signed in to, and what it sends of the token is masked', async () => {
		const { at, code, stderr } = await attempt();
		assert.equal(code, 0, stderr);
		const { stdout } = await upstream(at, ['call', 'liar', 'echo', '{}']);
		assert.match(stdout, /you are Bearer \*\*\*/);
		assert.ok(!stdout.includes(TOKEN));
	});

	/* What it says, what becomes of it, and which place must never have been asked. */
	const rows = {
		'the resource is another server': [() => (lies.resource = { resource: 'https://evil.example/mcp' }), /about https:\/\/evil\.example\/mcp/, '/register'],
		'the resource is another port': [() => (lies.resource = { resource: 'http://127.0.0.1:1/mcp' }), /nowhere else/, '/register'],
		'the resource is a longer path': [() => (lies.resource = { resource: `${url}/mcp/more` }), /nowhere else/, '/register'],
		'the resource is the beginning of a word': [() => (lies.resource = { resource: `${url}/mc` }), /nowhere else/, '/register'],
		'there is no authorization server': [() => (lies.resource = { authorization_servers: [] }), /names no authorization server/, '/register'],
		'the issuer is another one': [() => (lies.metadata = { issuer: `${url}/` }), /the same to the last character/, '/register'],
		'PKCE is not offered': [() => (lies.metadata = { code_challenge_methods_supported: ['plain'] }), /does not offer PKCE with S256/, '/register'],
		'the page is not https': [() => (lies.metadata = { authorization_endpoint: 'http://evil.example/' }), /authorization_endpoint .* is not an address of https/, '/register'],
		'the page is a program': [() => (lies.metadata = { authorization_endpoint: 'javascript:alert(1)' }), /is not an address of https/, '/register'],
		'tokens come over http': [() => (lies.metadata = { token_endpoint: 'http://evil.example/token' }), /is not an address of https/, '/register'],
		'the metadata redirects': [() => (lies['/.well-known/oauth-authorization-server'] = (_, response) => response.writeHead(302, { Location: `${url}/elsewhere` }).end()), /status 302/, '/elsewhere'],
		'the metadata is huge': [() => (lies['/.well-known/oauth-authorization-server'] = (_, response) => response.writeHead(200).end(Buffer.alloc(1 << 20, ' '))), /more than 131072 bytes/, '/register'],
		'the metadata is HTML': [() => (lies['/.well-known/oauth-authorization-server'] = (_, response) => response.writeHead(200).end('<html>')), /not with a JSON object/, '/register'],
		'the metadata has a member twice': [() => (lies['/.well-known/oauth-authorization-server'] = (_, response) => response.writeHead(200).end(`{"issuer":"${url}","issuer":"${url}"}`)), /not with a JSON object/, '/register'],
		'registration is closed': [() => (lies.metadata = { registration_endpoint: undefined }), /put its id into mcpServers\.liar\.oauth\.client_id/, '/authorize'],
		'the client has no id': [() => (lies.client = { client_id: '' }), /without an id/, '/authorize'],
		'the client must show itself in an unknown way': [() => (lies.client = { token_endpoint_auth_method: 'private_key_jwt' }), /private_key_jwt: not spoken/, '/authorize'],
		'the answer is of another issuer': [() => (lies.answer = { iss: 'https://evil.example' }), /the answer is of https:\/\/evil\.example/, '/token'],
		'the answer lacks the issuer that was promised': [() => (lies.metadata = { authorization_response_iss_parameter_supported: true }), /does not say which issuer/, '/token'],
		'the person says no': [() => (lies.answer = { code: null, error: 'access_denied', error_description: 'not today' }), /refused: access_denied: not today/, '/token'],
		'the token is not a bearer token': [() => (lies.token = { token_type: 'DPoP' }), /only Bearer is spoken/, '/none'],
		'the token ends the header': [() => (lies.token = { access_token: 'a\r\nX-Evil: 1' }), /gave no access token/, '/none'],
		'there is no token': [() => (lies.token = { access_token: undefined }), /gave no access token/, '/none'],
		'the code is refused': [() => ((lies.status = 400), (lies.token = { error: 'invalid_grant', error_description: 'too late' })), /invalid_grant: too late/, '/none'],
	};
	for (const [name, [lie, text, never]] of Object.entries(rows)) {
		test(name, async () => {
			lie();
			const { at, code, stdout, stderr } = await attempt();
			assert.notEqual(code, 0, stdout);
			assert.match(stderr, text);
			assert.equal(asked(never), 0);
			assert.ok(!readdirSync(at.data).includes('logins') || !readdirSync(path.join(at.data, 'logins')).includes('liar.json'));
		});
	}
	test('an answer to another request does not end the waiting', async () => {
		const at = place({ liar: { url: `${url}/mcp`, private: true } });
		const { code, stderr } = await signIn(['liar'], {
			env: at.env,
			person: async (address) => {
				const good = new URL(await redirected(address)), bad = new URL(good);
				bad.searchParams.set('state', 'another');
				assert.equal((await fetch(bad)).status, 400);
				const twice = new URL(good);
				twice.searchParams.append('code', 'second');
				assert.equal((await fetch(twice)).status, 400);
				assert.equal((await fetch(new URL('/favicon.ico', good))).status, 404);
				assert.equal(asked('/token'), 0);
				return good.href;
			},
		});
		assert.equal(code, 0, stderr);
		assert.equal(asked('/token'), 1);
	});
	test('a client that the operator registered shows its secret as the issuer wants it', async () => {
		for (const [method, way] of [['client_secret_basic', (one) => one.authorization === `Basic ${Buffer.from('my%20id:a%3Ab').toString('base64')}`],
			['client_secret_post', (one) => new URLSearchParams(one.body).get('client_secret') === 'a:b']]) {
			seen = [];
			lies.metadata = { token_endpoint_auth_methods_supported: [method], registration_endpoint: undefined };
			const { code, stderr, address } = await attempt({ oauth: { client_id: 'my id', client_secret: 'a:b', scopes: 'one two' } });
			assert.equal(code, 0, stderr);
			assert.equal(new URL(address).searchParams.get('scope'), 'one two');
			assert.ok(way(seen.find(({ pathname }) => pathname === '/token')), method);
			assert.ok(!`${stderr}${address}`.includes('a:b'));
		}
	});
	test('an issuer that takes addresses of documents as clients gets ours', async () => {
		lies.metadata = { client_id_metadata_document_supported: true };
		const { code, address } = await attempt({ oauth: { client_metadata_url: 'https://me.example/client.json' } });
		assert.equal(code, 0);
		assert.equal(new URL(address).searchParams.get('client_id'), 'https://me.example/client.json');
		assert.equal(asked('/register'), 0);
	});
	test('another issuer gets another client', async () => {
		const { at } = await attempt();
		changeLogin(at, 'liar', { issuer: 'https://before.example', client_id: 'client-of-another' });
		const { address } = await signIn(['liar'], { env: at.env, person: redirected, paste: true });
		assert.equal(new URL(address).searchParams.get('client_id'), 'c1');
		assert.equal(asked('/register'), 2);
	});
	test('a server that wants more rights says how to give them', async () => {
		const { at } = await attempt({ oauth: { scopes: 'read' } });
		lies.call = (_, response) => json(response, {}, 403, { 'WWW-Authenticate': 'Bearer error="insufficient_scope", scope="write"' });
		const { stderr } = await upstream(at, ['call', 'liar', 'echo', '{}']);
		assert.match(stderr, /it wants more rights: sallyport upstream login --scope "read write" liar/);
		lies.call = (_, response) => json(response, {}, 403, { 'WWW-Authenticate': 'Bearer error="insufficient_scope", scope="$(reboot)"' });
		assert.doesNotMatch((await upstream(at, ['call', 'liar', 'echo', '{}'])).stderr, /reboot/);
	});
	test('a server whose challenge names nobody is asked where revision 2025-03-26 says', async () => {
		lies.challenge = 'Bearer';
		lies['/.well-known/oauth-protected-resource/mcp'] = (_, response) => json(response, {}, 404);
		lies['/.well-known/oauth-authorization-server'] = (_, response) => json(response, {}, 404);
		const { code, stderr, address } = await attempt();
		assert.equal(code, 0, stderr);
		assert.ok(address.startsWith(`${url}/authorize?`));
	});
	test('what cannot be signed in to says so', async () => {
		const texts = {
			'a program': [{ command: 'node' }, /is a program/],
			'not https': [{ url: 'http://mcp.example/mcp' }, /is not https/],
			'a header of its own': [{ url: `${url}/mcp`, private: true, headers: { Authorization: 'Bearer mine-own-token' } }, /headers\.Authorization is what this server gets/],
		};
		for (const [name, [entry, text]] of Object.entries(texts)) {
			const at = place({ one: entry });
			const { code, stderr } = await signIn(['one'], { env: at.env, person: redirected });
			assert.notEqual(code, 0, name);
			assert.match(stderr, text, name);
		}
	});
	test('a damaged file and a folder that cannot be written say what to do', async () => {
		const { at } = await attempt();
		writeFileSync(loginFile(at, 'liar'), '{"url":');
		assert.match((await upstream(at, ['check'])).stdout, /it asks for a sign-in/);
		rmSync(path.join(at.data, 'logins'), { recursive: true });
		writeFileSync(path.join(at.data, 'logins'), '');
		const { code, stderr } = await signIn(['liar'], { env: at.env, person: redirected, paste: true });
		assert.notEqual(code, 0);
		assert.match(stderr, /logins: Not a directory/);
	});
});
