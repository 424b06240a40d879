/*
 * oauth_builtin.test.js - the gateway as the authorization server of its own clients (oauth.mode builtin), behind nginx: the official SDKs through
 * the whole flow, the page as a browser sees it, and every refusal of its endpoints with status and body.
 */
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';
import * as second from '@modelcontextprotocol/client';
import * as first from '@modelcontextprotocol/sdk/client/auth.js';
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as FirstTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Browser, REDIRECT, authorizeUrl, fetchFrom, pkce } from './browser.js';
import { Stack, makeState, until } from './stack.js';

let stack, off;
const BUILTIN = { SALLYPORT_OAUTH_MODE: 'builtin', SALLYPORT_ADMIN_ENABLED: 'true' };

before(async () => {
	[stack, off] = await Promise.all([Stack.start({ state: makeState(), env: BUILTIN }), Stack.start({ state: makeState() })]);
});
after(async () => {
	await stack?.stop();
	await off?.stop();
});

/* The database, as somebody with a shell has it. */
function sql(text, ...values) {
	const database = new DatabaseSync(path.join(stack.state, 'data/sallyport.db'), { timeout: 60_000 });
	try {
		return database.prepare(text).all(...values);
	} finally {
		database.close();
	}
}
let address = 1; /* registrations are counted by address */
async function register(metadata = {}, from = `127.0.0.${++address}`) {
	const answer = await fetchFrom(from, `${stack.base}/register`, {
		method: 'POST', headers: { 'Content-Type': 'application/json' },
		body: JSON.stringify({ redirect_uris: [REDIRECT], grant_types: ['authorization_code', 'refresh_token'], ...metadata }),
	});
	return { ...answer, json: JSON.parse(answer.body) };
}
async function post(place, fields, headers = {}) {
	const response = await fetch(stack.base + place, {
		method: 'POST', headers: { 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
		body: typeof fields === 'string' ? fields : new URLSearchParams(Object.entries(fields).filter(([, value]) => value !== undefined)).toString(),
	});
	const text = await response.text();
	return { status: response.status, headers: response.headers, text, json: text.startsWith('{') ? JSON.parse(text) : null };
}
async function pasted(owner = 'alice', more = []) {
	const { stdout, stderr } = await stack.cli(['token', 'add', '--owner', owner, '--json', ...more]);
	assert.ok(stdout, stderr);
	return JSON.parse(stdout);
}
/* A code of a client, ready for /token: the form. */
async function codeFor(client_id, { token, scope, redirect_uri = REDIRECT, browser = new Browser(stack.base), ...more } = {}) {
	const { verifier, challenge } = pkce();
	const credential = token ?? (await pasted()).token;
	const back = await browser.approve(authorizeUrl(stack.base, { client_id, code_challenge: challenge, scope, redirect_uri, state: 's' }), credential, more);
	return { grant_type: 'authorization_code', code: back.searchParams.get('code'), code_verifier: verifier, client_id, redirect_uri };
}
const secrets = []; /* that were given out */
async function signIn(client_id, options) {
	const form = await codeFor(client_id, options), answer = await post('/token', form);
	assert.equal(answer.status, 200, answer.text);
	secrets.push(form.code, form.code_verifier, answer.json.access_token, answer.json.refresh_token);
	return answer.json;
}
async function call(token, name = 'list_runners', args = {}) {
	const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} };
	const response = await fetch(stack.url, {
		method: 'POST',
		headers: {
			'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', 'MCP-Protocol-Version': '2026-07-28',
			'Mcp-Method': 'tools/call', 'Mcp-Name': name, Authorization: `Bearer ${token}`,
		},
		body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args, _meta: meta } }),
	});
	return { status: response.status, challenge: response.headers.get('www-authenticate'), body: await response.text() };
}
const statusOf = async (token) => (await call(token)).status;
const listed = async (command) => (await stack.cli([command, 'list', '--json'])).stdout.trim().split('\n').filter(Boolean).map((line) => JSON.parse(line));

test('the metadata of the server says what there is, from the configuration alone', async () => {
	const forged = { 'X-Forwarded-Host': 'evil.example', Origin: 'https://anywhere.example', 'MCP-Protocol-Version': '2025-11-25' };
	const response = await fetch(`${stack.base}/.well-known/oauth-authorization-server`, { headers: forged });
	assert.equal(response.status, 200);
	assert.equal(response.headers.get('content-type'), 'application/json');
	assert.equal(response.headers.get('access-control-allow-origin'), '*');
	assert.equal(response.headers.get('cache-control'), 'max-age=300');
	const methods = ['none', 'client_secret_basic', 'client_secret_post'];
	assert.deepEqual(await response.json(), {
		issuer: stack.base, authorization_endpoint: `${stack.base}/authorize`, token_endpoint: `${stack.base}/token`,
		registration_endpoint: `${stack.base}/register`, revocation_endpoint: `${stack.base}/revoke`,
		response_types_supported: ['code'], response_modes_supported: ['query'], grant_types_supported: ['authorization_code', 'refresh_token'],
		token_endpoint_auth_methods_supported: methods, revocation_endpoint_auth_methods_supported: methods,
		code_challenge_methods_supported: ['S256'], scopes_supported: ['run', 'files', 'offline_access'],
		client_id_metadata_document_supported: true, authorization_response_iss_parameter_supported: true,
		protected_resources: [`${stack.base}/mcp`],
	});
	const resource = await (await fetch(`${stack.base}/.well-known/oauth-protected-resource/mcp`)).json();
	assert.deepEqual(resource.authorization_servers, [stack.base]);
	assert.deepEqual(resource.scopes_supported, ['run', 'files']);
	for (const other of ['/.well-known/oauth-authorization-server/mcp', '/.well-known/openid-configuration', '/.well-known/openid-configuration/mcp', '/mcp/.well-known/openid-configuration']) {
		const missing = await fetch(stack.base + other);
		assert.equal(missing.status, 404, other);
		assert.equal(missing.headers.get('content-type'), 'application/json', other);
	}
	const loopback = await fetchFrom('127.0.0.1', `${stack.base}/.well-known/oauth-authorization-server`, { headers: { Host: 'localhost' } });
	assert.equal(loopback.status, 404);
});

test('where it is off nothing of it is there', async () => {
	for (const place of ['/.well-known/oauth-authorization-server', '/authorize', '/token', '/register', '/revoke']) {
		for (const method of ['GET', 'POST', 'OPTIONS']) {
			const response = await fetch(off.base + place, { method });
			assert.equal(response.status, 404, `${method} ${place}`);
			assert.equal(response.headers.get('access-control-allow-origin'), null);
		}
	}
});

test('pages of any origin may register, take tokens and give them back', async () => {
	for (const place of ['/token', '/register', '/revoke']) {
		const preflight = await fetch(stack.base + place, {
			method: 'OPTIONS', headers: { Origin: 'https://chatgpt.com', 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'content-type,authorization' },
		});
		assert.equal(preflight.status, 204, place);
		assert.equal(preflight.headers.get('access-control-allow-origin'), '*');
		assert.match(preflight.headers.get('access-control-allow-methods'), /POST/);
		assert.match(preflight.headers.get('access-control-allow-headers'), /Authorization, Content-Type/i);
		const answer = await post(place, '', { Origin: 'https://evil.example' });
		assert.equal(answer.status, 400, place);
		assert.equal(answer.headers.get('access-control-allow-origin'), '*');
		const get = await fetch(stack.base + place);
		assert.equal(get.status, 405, place);
		assert.equal(get.headers.get('allow'), 'POST');
	}
	const page = await fetch(`${stack.base}/authorize`, { headers: { Origin: 'https://evil.example' } });
	assert.equal(page.headers.get('access-control-allow-origin'), null);
});

test('a client registers itself, and gets no more than it needs', async () => {
	const { status, headers, json } = await register({
		client_name: 'Claude', scope: 'mcp:tools', token_endpoint_auth_method: 'client_secret_post', client_id: 'https://mine.example/x', jwks: {},
	});
	assert.equal(status, 201);
	assert.equal(headers['cache-control'], 'no-store');
	assert.match(json.client_id, /^spd_[0-9a-f]{32}$/);
	const { client_id, client_id_issued_at, ...rest } = json;
	assert.equal(typeof client_id_issued_at, 'number');
	assert.deepEqual(rest, {
		client_name: 'Claude', redirect_uris: [REDIRECT], grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'], token_endpoint_auth_method: 'none',
	});
	assert.equal((await register({ client_name: 'Claude' })).json.client_id, client_id); /* the same again, unused */
	assert.notEqual((await register({ client_name: 'Claude 2' })).json.client_id, client_id);
	const bare = await register({ grant_types: undefined });
	assert.deepEqual(bare.json.grant_types, ['authorization_code']);
	assert.equal('client_name' in bare.json, false);
	const bad = [
		[{ redirect_uris: [] }, 'invalid_redirect_uri'], [{ redirect_uris: ['http://evil.example/'] }, 'invalid_redirect_uri'],
		[{ redirect_uris: ['javascript:alert(1)'] }, 'invalid_redirect_uri'], [{ redirect_uris: Array(11).fill(REDIRECT) }, 'invalid_redirect_uri'],
		[{ redirect_uris: Array(1000).fill('x') }, 'invalid_redirect_uri'], [{ redirect_uris: [`https://a.example/${'x'.repeat(2000)}`] }, 'invalid_redirect_uri'],
		[{ client_name: 'x'.repeat(201) }, 'invalid_client_metadata'], [{ client_name: 'a\u202eb' }, 'invalid_client_metadata'],
		[{ response_types: ['token'] }, 'invalid_client_metadata'], [{ software_statement: 'x' }, 'invalid_client_metadata'],
	];
	for (const [metadata, error] of bad) {
		const answer = await register(metadata);
		assert.equal(answer.status, 400, JSON.stringify(metadata));
		assert.equal(answer.json.error, error, JSON.stringify(metadata));
		assert.equal(typeof answer.json.error_description, 'string');
	}
	for (const body of ['', 'null', '[]', '{', '<html>']) {
		const answer = await fetchFrom(`127.0.1.${body.length + 1}`, `${stack.base}/register`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
		assert.equal(answer.status, 400, body);
		assert.equal(JSON.parse(answer.body).error, 'invalid_client_metadata');
	}
	const large = await register({ client_uri: 'x'.repeat(17_000) });
	assert.equal(large.status, 413);
});

/* An OAuth client as the SDKs want it, which keeps everything in memory. */
class Provider {
	redirectUrl = REDIRECT;
	clientMetadata = { client_name: 'SDK', redirect_uris: [REDIRECT], grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'], token_endpoint_auth_method: 'none' };
	state = () => 'a state: ä&=%';
	clientInformation = () => this.client;
	saveClientInformation = (client) => (this.client = client);
	tokens = () => this.kept;
	saveTokens = (tokens) => (this.kept = tokens);
	redirectToAuthorization = (url) => (this.opened = url);
	saveCodeVerifier = (verifier) => (this.verifier = verifier);
	codeVerifier = () => this.verifier;
}

test('the official clients sign in, call tools, refresh, and ask for more', async () => {
	const { token } = await pasted('sdk');
	for (const [sdk, Client, Transport] of [[first, FirstClient, FirstTransport], [second, second.Client, second.StreamableHTTPClientTransport]]) {
		const provider = new Provider(), make = () => new Transport(new URL(stack.url), { authProvider: provider });
		const transport = make(), client = new Client({ name: 'c', version: '1' });
		await assert.rejects(client.connect(transport), sdk.UnauthorizedError);
		assert.equal(provider.opened.origin, stack.base);
		assert.equal(provider.opened.searchParams.get('resource'), stack.url);
		const back = await new Browser(stack.base).approve(provider.opened.href, token);
		assert.equal(back.searchParams.get('state'), 'a state: ä&=%');
		assert.equal(back.searchParams.get('iss'), stack.base);
		await transport.finishAuth(sdk === second ? back.searchParams : back.searchParams.get('code'));
		assert.match(provider.kept.access_token, /^spa_sdk_[0-9a-f]{48}$/);
		assert.match(provider.kept.refresh_token, /^spr_sdk_[0-9a-f]{48}$/);
		assert.equal(provider.kept.expires_in, 3600);
		assert.match(provider.kept.scope, /^run files/);
		const again = new Client({ name: 'c', version: '1' });
		await again.connect(make());
		const { content } = await again.callTool({ name: 'run_code', arguments: { conversationId: 'c', language: 'bash', code: 'echo $((6 * 7))' } });
		assert.match(content[0].text, /42/);
		await again.close();
		/* The access token ends: the client refreshes by itself. */
		sql('UPDATE oauth_token SET expires_us = 1 WHERE kind = ?', 'access');
		const before = provider.kept;
		const third = new Client({ name: 'c', version: '1' });
		await third.connect(make());
		assert.ok((await third.listTools()).tools.length > 0);
		assert.notEqual(provider.kept.access_token, before.access_token);
		assert.notEqual(provider.kept.refresh_token, before.refresh_token);
		await third.close();
	}
	const rows = (await listed('token')).filter(({ owner, kind }) => owner === 'sdk' && kind === 'oauth');
	assert.equal(rows.length, 2);
	for (const row of rows) assert.deepEqual([row.name, row.host, row.state], ['SDK', 'localhost:3334', 'valid']);
	assert.ok(rows[0].used);
	assert.equal((await stack.cli(['verify'])).code, 0);
});

const CSP = /^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$/;

test('the page shows who asks and where the answer goes, and takes no for an answer', async () => {
	const { json } = await register({ client_name: '<b>Claude</b>"\'', redirect_uris: ['https://evil.example/cb?x=1'] });
	const browser = new Browser(stack.base), { challenge } = pkce(), { token } = await pasted();
	const url = authorizeUrl(stack.base, { client_id: json.client_id, redirect_uri: 'https://evil.example/cb?x=1', code_challenge: challenge, state: '"><script>\r\nX: y', scope: 'run files admin claudeai' });
	const ask = await browser.open(url);
	assert.equal(ask.status, 200);
	assert.match(browser.setCookie, /^sallyport-oauth=[0-9a-f]{64}; Path=\/; HttpOnly; SameSite=Lax$/);
	assert.equal(ask.headers.get('referrer-policy'), 'same-origin');
	const known = await browser.post({ ...ask.fields, credential: token });
	for (const page of [ask, known]) {
		assert.match(page.headers.get('content-security-policy'), CSP);
		assert.equal(page.headers.get('x-frame-options'), 'DENY');
		assert.equal(page.headers.get('x-content-type-options'), 'nosniff');
		assert.equal(page.headers.get('cache-control'), 'no-store');
		assert.equal(page.headers.get('cross-origin-opener-policy'), null);
		assert.doesNotMatch(page.text, /<b>|<script/);
		assert.doesNotMatch(page.text, /(src|href)="http/);
	}
	assert.match(known.words, /“<b>Claude<\/b>"'”/);
	assert.match(known.words, /registered itself: its name is not verified/);
	assert.match(known.text, /<dd class="host">evil\.example<\/dd>/);
	assert.deepEqual(known.offered, ['run', 'files']); /* admin is asked for, and the token has it not */
	assert.deepEqual(Object.keys(known.fields), ['step', 'transaction', 'scope_run', 'scope_files']);
	const denied = await browser.post({ ...known.fields, decision: 'deny' });
	assert.equal(denied.headers.get('referrer-policy'), 'no-referrer');
	assert.match(denied.headers.get('content-security-policy'), CSP);
	assert.equal(denied.onward.origin, 'https://evil.example');
	assert.deepEqual(Object.fromEntries(denied.onward.searchParams), {
		x: '1', error: 'access_denied', error_description: 'the person said no', state: '"><script>\r\nX: y', iss: stack.base,
	});
	const local = await register({ client_name: 'Local' });
	const page = await browser.open(authorizeUrl(stack.base, { client_id: local.json.client_id, code_challenge: challenge, redirect_uri: 'http://localhost:49999/oauth/callback' }));
	const next = await browser.post({ ...page.fields, credential: token });
	assert.match(next.words, /a program on this computer/);
	assert.match(next.words, /only if you have just started it yourself/);
});

test('what is ticked is what the token may, and never more', async () => {
	const { json } = await register({ client_name: 'ticks' }), { token } = await pasted('alice', ['--scope', 'run,files']), admin = await pasted('root', ['--scope', 'admin']);
	const narrow = await signIn(json.client_id, { token, scope: 'run files offline_access', untick: ['run'] });
	assert.equal(narrow.scope, 'files offline_access');
	const refused = await call(narrow.access_token, 'run_code', { conversationId: 'c', language: 'bash', code: 'echo' });
	assert.equal(refused.status, 403);
	assert.match(refused.challenge, new RegExp(`error="insufficient_scope".*scope="run files"$|scope="run files", |resource_metadata="${stack.base}.*scope="run files"$`));
	assert.equal((await signIn(json.client_id, { token, scope: ' claudeai  openid' })).scope, 'run files'); /* nothing of ours: the usual */
	/* A forged tick is cut, and admin is never ticked by us. */
	const browser = new Browser(stack.base), { challenge } = pkce();
	const open = async (credential, scope) => {
		const page = await browser.open(authorizeUrl(stack.base, { client_id: json.client_id, code_challenge: challenge, scope }));
		return browser.post({ ...page.fields, credential });
	};
	const forged = await browser.post({ ...(await open(token, 'run')).fields, scope_admin: 'yes', scope_files: 'yes', decision: 'approve' });
	const [row] = sql('SELECT scopes FROM oauth_code ORDER BY expires_us DESC LIMIT 1');
	assert.ok(forged.onward);
	assert.equal(row.scopes, 'run');
	const offered = await open(admin.token, 'run admin');
	assert.deepEqual(offered.offered, ['run', 'admin']);
	assert.equal('scope_admin' in offered.fields, false);
	const none = await browser.post({ step: '2', transaction: offered.fields.transaction, decision: 'approve' });
	assert.match(none.problem, /Tick at least one/);
	const files = await pasted('alice', ['--scope', 'files']);
	assert.match((await open(files.token, 'run')).problem, /may do nothing of what the program asks for \(run\)/);
});

test('what is wrong with a request is a page, with a link where the way back is known', async () => {
	const { client_id } = (await register({ client_name: 'faults', redirect_uris: [REDIRECT, 'https://a.example/cb'] })).json;
	const { challenge } = pkce(), good = { client_id, code_challenge: challenge, state: 'x y' };
	const open = (parameters) => new Browser(stack.base).open(authorizeUrl(stack.base, { ...good, ...parameters }));
	const dead = [
		[{ client_id: undefined }, /client_id is missing/], [{ client_id: 'spd_00' }, /registration is gone/], [{ client_id: 'other' }, /unknown/],
		[{ redirect_uri: undefined }, /redirect_uri is missing/], [{ redirect_uri: 'https://a.example/cb/' }, /not one that this client registered/],
		[{ redirect_uri: 'https://a.example/cb?x' }, /not one/], [{ redirect_uri: 'https://A.example/cb' }, /not one/], [{ redirect_uri: 'https://a.example@evil.example/cb' }, /not one/],
		[{ redirect_uri: 'http://localhost:1/oauth/callback#x' }, /not one/], [{ redirect_uri: 'http://127.0.0.1:3334/oauth/callback' }, /not one/],
		[{ client_id: 'https://127.0.0.1/' }, /must have a path/], [{ client_id: `${stack.base}/x`.replace('http:', 'https:') }, /this server itself/],
		[{ state: 'x'.repeat(2049) }, /state is longer/],
	];
	for (const [parameters, pattern] of dead) {
		const page = await open(parameters);
		assert.equal(page.status, 400, JSON.stringify(parameters));
		assert.match(page.problem, pattern);
		assert.equal(page.link, null);
		assert.match(page.headers.get('content-security-policy'), CSP);
	}
	for (const more of ['&state=2', '&%73tate=2', '&x=%zz', '&x=%00', '&code_challenge_method=S256']) {
		const page = await new Browser(stack.base).open(authorizeUrl(stack.base, good) + more);
		assert.equal(page.status, 400, more);
		assert.equal(page.link, null);
	}
	const alive = [
		[{ response_type: 'token' }, 'unsupported_response_type'], [{ response_type: undefined }, 'invalid_request'],
		[{ code_challenge: undefined }, 'invalid_request'], [{ code_challenge: challenge.slice(1) }, 'invalid_request'], [{ code_challenge: `${challenge}x` }, 'invalid_request'],
		[{ code_challenge_method: undefined }, 'invalid_request'], [{ code_challenge_method: 'plain' }, 'invalid_request'], [{ resource: 'https://other.example/mcp' }, 'invalid_target'],
		[{ resource: `${stack.url}#x` }, 'invalid_target'], [{ prompt: 'none' }, 'interaction_required'], [{ request: 'x' }, 'request_not_supported'],
		[{ request_uri: 'https://a.example/' }, 'request_uri_not_supported'], [{ response_mode: 'fragment' }, 'invalid_request'],
	];
	for (const [parameters, error] of alive) {
		const page = await open(parameters);
		assert.equal(page.status, 400, JSON.stringify(parameters));
		assert.equal(page.onward, null);
		assert.equal(page.link.origin + page.link.pathname, REDIRECT);
		assert.equal(page.link.searchParams.get('error'), error, JSON.stringify(parameters));
		assert.equal(page.link.searchParams.get('state'), 'x y');
		assert.equal(page.link.searchParams.get('iss'), stack.base);
	}
	for (const resource of [stack.base, `${stack.base}/`, stack.url, `${stack.url}/`, stack.url.replace('http:', 'HTTP:')]) assert.equal((await open({ resource, audience: 'x', prompt: 'consent' })).status, 200, resource);
});

test('a form is taken from its own browser and page alone, and once', async () => {
	const { client_id } = (await register({ client_name: 'forms' })).json, { token } = await pasted();
	const mine = new Browser(stack.base), other = new Browser(stack.base), { challenge } = pkce();
	const url = authorizeUrl(stack.base, { client_id, code_challenge: challenge });
	const ask = await mine.open(url), theirs = await other.open(url);
	const fields = { ...ask.fields, credential: token };
	for (const headers of [
		{ Origin: 'null' }, { Origin: 'https://evil.example' }, { Origin: 'http://localhost:1' }, { 'Sec-Fetch-Site': 'cross-site' }, { 'Sec-Fetch-Site': 'same-site' }, { 'Sec-Fetch-Site': 'none' },
	]) {
		const page = await mine.post(fields, headers);
		assert.equal(page.status, 403, JSON.stringify(headers));
	}
	for (const [browser, wrong, pattern] of [
		[other, fields, /another browser/], [new Browser(stack.base), fields, /no cookie/], [mine, { ...fields, transaction: theirs.fields.transaction }, /another browser/],
		[mine, { ...fields, transaction: `${ask.fields.transaction.slice(0, -2)}AA` }, /not made by this server/], [mine, { credential: token }, /not made by this server/],
		[mine, { ...fields, step: '2', decision: 'approve', scope_run: 'yes' }, /not made by this server/], /* sealed for another step */
	]) {
		const page = await browser.post(wrong);
		assert.equal(page.status, 400);
		assert.match(page.problem, pattern);
		assert.match(page.problem, /Start again/);
	}
	assert.equal((await mine.post(fields, { 'Content-Type': 'text/plain' })).status, 400);
	const known = await mine.post(fields);
	assert.equal((await mine.post({ ...known.fields, step: '1' })).status, 400);
	assert.equal((await other.post({ ...known.fields, decision: 'approve' })).status, 400);
	const both = await Promise.all([1, 2].map(() => mine.post({ ...known.fields, decision: 'approve' })));
	assert.deepEqual(both.map(({ status }) => status).sort(), [200, 400]); /* twice at once: one code */
	assert.match((await mine.post({ ...known.fields, decision: 'approve' })).problem, /answered this already/);
});

test('a login code is good once; what is no token is not good at all', async () => {
	const { client_id } = (await register({ client_name: 'codes' })).json;
	const made = await stack.cli(['login-code', '--owner', 'carol', '--scope', 'run', '--json']);
	const { code, owner, seconds } = JSON.parse(made.stdout);
	assert.match(code, /^[BCDFGHJKLMNPQRSTVWXZ]{4}(-[BCDFGHJKLMNPQRSTVWXZ]{4}){2}$/);
	assert.deepEqual([owner, seconds], ['carol', 600]);
	const browser = new Browser(stack.base), { challenge } = pkce(), url = authorizeUrl(stack.base, { client_id, code_challenge: challenge });
	const tokens = await signIn(client_id, { token: code.toLowerCase().replaceAll('-', ' ') });
	assert.equal(tokens.scope, 'run');
	assert.match(tokens.access_token, /^spa_carol_/);
	const revoked = await pasted('alice');
	await stack.cli(['token', 'revoke', revoked.id]);
	for (const credential of [code, tokens.access_token, tokens.refresh_token, 'sp_alice_00', 'x', revoked.token]) {
		const ask = await browser.open(url), again = await browser.post({ ...ask.fields, credential });
		assert.equal(again.status, 200, credential);
		assert.equal(again.title, 'Sign in');
		assert.match(again.problem, /not good here/);
		assert.doesNotMatch(again.text, new RegExp(credential.length > 5 ? credential : 'sp_alice'));
	}
	/* One that is used between the two steps. */
	const { stdout } = await stack.cli(['login-code', '--owner', 'carol']), late = stdout.trim();
	const ask = await browser.open(url), known = await browser.post({ ...ask.fields, credential: late });
	await signIn(client_id, { token: late });
	const over = await browser.post({ ...known.fields, decision: 'approve' });
	assert.equal(over.title, 'Sign in');
	assert.match(over.problem, /not good here/);
	assert.equal((await stack.cli(['login-code'])).code, 2);
	assert.equal((await stack.cli(['login-code', '--owner', 'A B'])).code, 2);
});

test('guessing ends after ten attempts a minute', async () => {
	const { client_id } = (await register({ client_name: 'guesses' })).json, { challenge } = pkce();
	const url = authorizeUrl(stack.base, { client_id, code_challenge: challenge });
	const send = (method, headers, body) => fetchFrom('127.0.9.9', method === 'GET' ? url : `${stack.base}/authorize`, { method, headers, body });
	const ask = await send('GET', {});
	const Cookie = ask.headers['set-cookie'][0].split(';')[0], transaction = /name="transaction" value="([^"]*)"/.exec(ask.body)[1];
	const guess = (credential) => send('POST', { Cookie, Origin: stack.base, 'Content-Type': 'application/x-www-form-urlencoded' }, new URLSearchParams({ step: '1', transaction, credential }).toString());
	const statuses = [];
	for (let i = 0; i < 13 && statuses.at(-1) !== 429; i++) statuses.push((await guess('BCDF-GHJK-LMNP')).status);
	assert.ok(statuses.length > 10, String(statuses));
	assert.equal(statuses.at(-1), 429);
	const last = await guess((await pasted()).token); /* a good one as well */
	assert.equal(last.status, 429);
	assert.ok(Number(last.headers['retry-after']) > 0);
});

test('every refusal of the token endpoint has its status and its error', async () => {
	const { client_id } = (await register({ client_name: 'tokens' })).json, other = (await register({ client_name: 'other' })).json.client_id;
	const form = await codeFor(client_id);
	const refused = async (fields, status, error, headers) => {
		const answer = await post('/token', fields, headers);
		assert.equal(answer.status, status, `${JSON.stringify(fields)}: ${answer.text}`);
		assert.equal(answer.json.error, error, `${JSON.stringify(fields)}: ${answer.text}`);
		assert.equal(answer.headers.get('cache-control'), 'no-store');
		return answer;
	};
	await refused({}, 400, 'invalid_request');
	await refused({ ...form, grant_type: undefined }, 400, 'invalid_request');
	await refused({ ...form, grant_type: 'password' }, 400, 'unsupported_grant_type');
	await refused({ ...form, client_id: 'spd_00' }, 401, 'invalid_client');
	await refused({ ...form, client_id: undefined }, 400, 'invalid_request');
	await refused({ ...form, client_secret: 'x' }, 401, 'invalid_client');
	await refused({ ...form, code: undefined }, 400, 'invalid_request');
	await refused({ ...form, code_verifier: undefined }, 400, 'invalid_request');
	await refused({ ...form, code_verifier: 'x'.repeat(42) }, 400, 'invalid_grant');
	await refused({ ...form, code_verifier: 'x'.repeat(129) }, 400, 'invalid_grant');
	await refused({ ...form, code_verifier: `${form.code_verifier.slice(1)} ` }, 400, 'invalid_grant');
	await refused({ ...form, code_verifier: 'x'.repeat(43) }, 400, 'invalid_grant');
	await refused({ ...form, code: 'spc_unknown' }, 400, 'invalid_grant');
	await refused({ ...form, client_id: other }, 400, 'invalid_grant');
	await refused({ ...form, redirect_uri: 'http://localhost:3335/oauth/callback' }, 400, 'invalid_grant');
	await refused({ ...form, resource: 'https://other.example/mcp' }, 400, 'invalid_target');
	await refused(`${new URLSearchParams(form)}&code=x`, 400, 'invalid_request');
	await refused(`${new URLSearchParams(form)}&resource=${encodeURIComponent(stack.url)}&resource=https://other.example`, 400, 'invalid_target');
	await refused(JSON.stringify(form), 400, 'invalid_request', { 'Content-Type': 'application/json' });
	await refused('x', 400, 'invalid_request', { 'Content-Type': 'multipart/form-data; boundary=x' });
	await refused({ ...form, padding: 'x'.repeat(17_000) }, 413, 'invalid_request');
	const basic = (id, secret) => ({ Authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` });
	const challenged = await refused({ ...form, client_id: undefined }, 401, 'invalid_client', basic(client_id, 'wrong'));
	assert.equal(challenged.headers.get('www-authenticate'), 'Basic realm="sallyport"');
	await refused({ ...form, client_id: other }, 400, 'invalid_request', basic(client_id, 'x'));
	await refused({ ...form, client_secret: 'x' }, 400, 'invalid_request', basic(client_id, 'x'));
	await refused({ ...form, client_id: undefined }, 401, 'invalid_client', { Authorization: 'Basic !!' });
	/* After all that the code is still good; two at once, and one wins. */
	const both = await Promise.all([1, 2].map(() => post('/token', form)));
	assert.deepEqual(both.map(({ status }) => status).sort(), [200, 400]);
	assert.equal(both.find(({ status }) => status === 400).json.error, 'invalid_grant');
	const { access_token } = both.find(({ status }) => status === 200).json;
	await until('the grant to end', async () => (await statusOf(access_token)) === 401); /* the code was used twice: nobody knows by whom */
	const late = await codeFor(client_id);
	sql('UPDATE oauth_code SET expires_us = 1 WHERE used_us IS NULL');
	await refused(late, 400, 'invalid_grant');
	const noRedirect = await codeFor(client_id);
	assert.equal((await post('/token', { ...noRedirect, redirect_uri: undefined, resource: stack.url })).status, 200);
});

test('refresh tokens rotate, two addresses at once are no theft, a late one is', async () => {
	const { client_id } = (await register({ client_name: 'rotation' })).json, other = (await register({ client_name: 'rotation 2' })).json.client_id;
	const tokens = await signIn(client_id), refresh = (refresh_token, more) => post('/token', { grant_type: 'refresh_token', refresh_token, client_id, ...more });
	assert.equal((await refresh(tokens.refresh_token, { client_id: other })).json.error, 'invalid_grant');
	assert.equal((await refresh(tokens.refresh_token, { scope: 'run network' })).json.error, 'invalid_scope');
	assert.equal((await refresh(tokens.access_token)).json.error, 'invalid_grant');
	assert.equal((await refresh(undefined)).json.error, 'invalid_request');
	assert.equal((await refresh('spr_alice_00')).json.error, 'invalid_grant');
	const answers = await Promise.all([1, 2].map(() => refresh(tokens.refresh_token)));
	for (const answer of answers) {
		assert.equal(answer.status, 200, answer.text);
		assert.equal(await statusOf(answer.json.access_token), 200);
		assert.equal(answer.json.token_type, 'Bearer');
	}
	assert.equal((await refresh(answers[0].json.refresh_token, { scope: 'files mcp:tools' })).json.scope, 'files');
	sql('UPDATE oauth_token SET proved_us = proved_us - 61000000');
	const stolen = await refresh(tokens.refresh_token);
	assert.deepEqual([stolen.status, stolen.json.error], [400, 'invalid_grant']);
	assert.equal(await statusOf(answers[0].json.access_token), 401);
	assert.equal((await refresh(answers[1].json.refresh_token)).json.error, 'invalid_grant');
	assert.equal((await listed('token')).find(({ name, kind }) => kind === 'oauth' && name === 'rotation').state, 'revoked');
});

test('a client gives back its own tokens alone', async () => {
	const { client_id } = (await register({ client_name: 'revocation' })).json, other = (await register({ client_name: 'revocation 2' })).json.client_id;
	const tokens = await signIn(client_id), revoke = (token, id = client_id) => post('/revoke', { token, client_id: id });
	for (const [token, id] of [[tokens.refresh_token, other], ['x', client_id], [stack.token, client_id], [tokens.access_token, other]]) {
		const answer = await revoke(token, id);
		assert.deepEqual([answer.status, answer.text], [200, '']);
	}
	assert.equal(await statusOf(tokens.access_token), 200);
	assert.equal(await statusOf(stack.token), 200);
	assert.equal((await post('/revoke', { client_id })).json.error, 'invalid_request');
	assert.equal((await post('/revoke', { client_id: 'spd_00', token: 'x' })).status, 401);
	assert.equal((await revoke(tokens.access_token)).status, 200);
	assert.equal(await statusOf(tokens.access_token), 401);
	const next = await post('/token', { grant_type: 'refresh_token', refresh_token: tokens.refresh_token, client_id });
	assert.equal(next.status, 200);
	assert.equal((await revoke(next.json.refresh_token)).status, 200);
	assert.equal(await statusOf(next.json.access_token), 401);
});

test('a grant that is revoked ends its streams; one of a revoked token does, too', async () => {
	const { client_id } = (await register({ client_name: 'streams' })).json;
	for (const whose of ['grant', 'parent']) {
		const parent = await pasted('dora'), tokens = await signIn(client_id, { token: parent.token });
		const headers = { Authorization: `Bearer ${tokens.access_token}`, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
		const open = await fetch(stack.url, {
			method: 'POST', headers,
			body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'c', version: '1' } } }),
		});
		await open.text();
		const stream = await fetch(stack.url, { headers: { ...headers, 'Mcp-Session-Id': open.headers.get('mcp-session-id') } });
		assert.equal(stream.status, 200);
		const ended = stream.text();
		const grant = (await listed('token')).find(({ owner, kind, state }) => owner === 'dora' && kind === 'oauth' && state === 'valid');
		assert.equal((await stack.cli(['token', 'revoke', whose === 'grant' ? grant.id : parent.id])).code, 0);
		assert.equal(await statusOf(tokens.access_token), 401);
		await ended; /* the test's time is the bound */
		assert.equal((await post('/token', { grant_type: 'refresh_token', refresh_token: tokens.refresh_token, client_id })).json.error, 'invalid_grant');
	}
});

test('an operator enters a client with a secret, blocks it, and removes it', async () => {
	const made = await stack.cli(['client', 'add', '--name', 'Portal', '--redirect-uri', REDIRECT, '--secret', '--json']);
	const { id, client_secret, kind } = JSON.parse(made.stdout);
	assert.match(id, /^spm_[0-9a-f]{16}$/);
	assert.equal(kind, 'manual');
	const form = await codeFor(id);
	assert.equal((await post('/token', form)).json.error, 'invalid_client');
	assert.equal((await post('/token', { ...form, client_secret: 'wrong' })).json.error, 'invalid_client');
	const answer = await post('/token', { ...form, client_id: undefined }, { Authorization: `Basic ${Buffer.from(`${id}:${client_secret}`).toString('base64')}` });
	assert.equal(answer.status, 200, answer.text);
	const inBody = await post('/token', { grant_type: 'refresh_token', refresh_token: answer.json.refresh_token, client_id: id, client_secret });
	assert.equal(inBody.status, 200);
	const row = (await listed('client')).find((one) => one.id === id);
	assert.deepEqual([row.kind, row.name, row.secret, row.state], ['manual', 'Portal', true, 'good']);
	assert.doesNotMatch(JSON.stringify(row), new RegExp(client_secret));
	assert.equal((await stack.cli(['client', 'block', id])).code, 0);
	assert.equal(await statusOf(answer.json.access_token), 401);
	assert.equal((await post('/token', { grant_type: 'refresh_token', refresh_token: inBody.json.refresh_token, client_id: id, client_secret })).json.error, 'invalid_client');
	assert.match((await new Browser(stack.base).open(authorizeUrl(stack.base, { client_id: id, code_challenge: pkce().challenge }))).problem, /blocked/);
	assert.equal((await stack.cli(['client', 'remove', id])).code, 0);
	assert.equal((await stack.cli(['client', 'remove', id])).code, 3);
	assert.equal((await stack.cli(['client', 'add', '--name', 'x', '--redirect-uri', 'http://evil.example/'])).code, 2);
});

test('the admin page shows grants with their clients', async () => {
	const { client_id } = (await register({ client_name: 'Shown <b>' })).json, admin = await pasted('root', ['--scope', 'admin']);
	await signIn(client_id);
	const opened = await fetch(`${stack.base}/admin/sign-in`, {
		method: 'POST', redirect: 'manual', headers: { Origin: stack.base, 'Content-Type': 'application/x-www-form-urlencoded' }, body: new URLSearchParams({ token: admin.token }),
	});
	assert.equal(opened.status, 303);
	const page = await (await fetch(`${stack.base}/admin/tokens`, { headers: { Cookie: opened.headers.getSetCookie()[0].split(';')[0] } })).text();
	const row = page.split('</tr>').find((one) => one.includes(client_id));
	assert.match(row, /Shown &lt;b&gt;<\/a><\/td><td class="wide name">localhost:3334<br><small>spd_/);
	assert.match(row, /act\/revoke/);
	/* A grant signs in nowhere itself. */
	const { access_token } = await signIn(client_id, { token: admin.token, scope: 'run' });
	const refused = await fetch(`${stack.base}/admin/sign-in`, {
		method: 'POST', redirect: 'manual', headers: { Origin: stack.base, 'Content-Type': 'application/x-www-form-urlencoded' }, body: new URLSearchParams({ token: access_token }),
	});
	assert.equal(refused.status, 401);
});

test('no code and no token is in a log or in the database', async () => {
	const { client_id } = (await register({ client_name: 'logs' })).json, { token } = await pasted();
	await signIn(client_id, { token });
	const folders = ['log', 'data'].map((name) => path.join(stack.state, name));
	const files = folders.flatMap((folder) => readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile()).map(({ name }) => path.join(folder, name)));
	assert.ok(files.some((file) => file.endsWith('gateway.log')) && files.some((file) => file.endsWith('sallyport.db')));
	for (const file of files) {
		const text = readFileSync(file, 'latin1');
		for (const secret of [token, ...secrets]) assert.ok(!text.includes(secret), file);
	}
	assert.match(readFileSync(path.join(stack.state, 'log/gateway.log'), 'latin1'), /client approved owner=alice client=spd_/);
});

test('a flood of registrations stops new ones, and nothing else', async () => {
	const kept = (await register({ client_name: 'kept' })).json.client_id, tokens = await signIn(kept);
	const statuses = [];
	for (let i = 0; i < 40; i++) statuses.push((await register({ client_name: `flood ${i}` }, '127.0.7.7')).status);
	assert.ok(statuses.includes(429));
	assert.ok(statuses.filter((status) => status === 201).length <= 20);
	const refused = await register({ client_name: 'late' }, '127.0.7.7');
	assert.equal(refused.json.error, 'temporarily_unavailable');
	assert.ok(Number(refused.headers['retry-after']) > 0);
	assert.equal((await post('/token', { grant_type: 'refresh_token', refresh_token: tokens.refresh_token, client_id: kept })).status, 200);
	await signIn(kept);
});
