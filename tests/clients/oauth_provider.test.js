/*
 * oauth_provider.test.js - oidc-provider from npm as the operator's authorization server (oauth.mode external), behind nginx: the tokens that it
 * really gives out, as JWT of each algorithm and as opaque texts, while its keys change, while it fails, and while clocks differ. People sign in by
 * `sallyport upstream login`, a client like any other.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { ALGORITHMS, Authority, signIn } from './authority.js';
import { bin, makeState, run, Stack } from './stack.js';

const folder = mkdtempSync(path.join(tmpdir(), 'sp-provider-'));
after(() => rmSync(folder, { recursive: true, force: true }));

async function begin(authority) {
	const state = makeState(), secret = path.join(state, 'secret');
	writeFileSync(secret, 's:cret\n', { mode: 0o644 });
	const stack = await Stack.start({
		state,
		env: {
			SALLYPORT_OAUTH_MODE: 'external', SALLYPORT_OAUTH_ISSUER: authority.url, SALLYPORT_OAUTH_OWNER_CLAIM: 'owner',
			SALLYPORT_OAUTH_INTROSPECTION_ENDPOINT: `${authority.url}/token/introspection`, SALLYPORT_OAUTH_INTROSPECTION_CLIENT: 'box',
			SALLYPORT_OAUTH_INTROSPECTION_SECRET_FILE: secret,
		},
	});
	authority.audience = stack.url;
	return stack;
}

/* The tokens of somebody who signed in. */
async function tokensOf(authority, stack, login) {
	const data = mkdtempSync(path.join(folder, 'data-')), file = path.join(data, 'mcp.json');
	writeFileSync(file, JSON.stringify({ mcpServers: { box: { url: stack.url, private: true } } }), { mode: 0o600 });
	const { code, stderr } = await signIn(['box'], {
		env: { SALLYPORT_DATA_DIR: data, SALLYPORT_UPSTREAM_FILE: file }, person: (address) => authority.person(address, login),
	});
	assert.equal(code, 0, stderr);
	return JSON.parse(readFileSync(path.join(data, 'logins/box.json'), 'utf8'));
}
async function statusOf(stack, token) {
	const response = await fetch(stack.url, {
		method: 'POST',
		headers: {
			Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', 'MCP-Protocol-Version': '2026-07-28',
			'Mcp-Method': 'tools/call', 'Mcp-Name': 'list_runners',
		},
		body: JSON.stringify({
			jsonrpc: '2.0', id: 1, method: 'tools/call',
			params: { name: 'list_runners', arguments: {}, _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} } },
		}),
	});
	await response.text();
	return response.status;
}

describe('tokens that are JWTs', () => {
	let authority, stack;
	before(async () => {
		authority = await Authority.start();
		stack = await begin(authority);
	});
	after(async () => {
		await stack?.stop();
		await authority?.stop();
	});
	beforeEach(() => (authority.mode = 'good'));
	/* A token as the issuer makes them, with its key, but with the times that a test wants (seconds from now). */
	const dated = (good, { iat = 0, exp = 300, ...more }, key = authority.keys[0]) => {
		const claims = JSON.parse(Buffer.from(good.split('.')[1], 'base64url')), now = Math.floor(Date.now() / 1000);
		return key.sign({ ...claims, iat: now + iat, exp: now + exp, jti: String(Math.random()), ...more });
	};

	for (const alg of ALGORITHMS) {
		test(`signed by ${alg}: good at once, and neither altered nor unsigned`, async () => {
			authority.alg = alg;
			const { access_token: token } = await tokensOf(authority, stack, 'ann');
			authority.alg = 'RS256';
			const [header, claims, signature] = token.split('.');
			assert.equal(JSON.parse(Buffer.from(header, 'base64url')).alg, alg);
			assert.equal(await statusOf(stack, token), 200);
			const richer = { ...JSON.parse(Buffer.from(claims, 'base64url')), owner: 'bob' };
			assert.equal(await statusOf(stack, `${header}.${Buffer.from(JSON.stringify(richer)).toString('base64url')}.${signature}`), 401);
			assert.equal(await statusOf(stack, `${header}.${claims}.`), 401);
			assert.equal(await statusOf(stack, `${Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url')}.${claims}.`), 401);
			const { stdout } = await stack.cli(['token', 'list', '--json']);
			assert.ok(stdout.trim().split('\n').map((line) => JSON.parse(line)).some(({ owner }) => owner === 'ann'));
		});
	}
	test('clocks that differ by less than a minute do no harm, more is refused', async () => {
		const { access_token: good } = await tokensOf(authority, stack, 'clara');
		assert.equal(await statusOf(stack, dated(good, { iat: 50 })), 200); /* theirs is ahead */
		assert.equal(await statusOf(stack, dated(good, { iat: -300, exp: -50 })), 200); /* theirs is behind */
		assert.equal(await statusOf(stack, dated(good, { iat: 0, nbf: Math.floor(Date.now() / 1000) + 50 })), 200);
		assert.equal(await statusOf(stack, dated(good, { iat: 75 })), 401);
		assert.equal(await statusOf(stack, dated(good, { iat: -300, exp: -75 })), 401);
		assert.equal(await statusOf(stack, dated(good, { nbf: Math.floor(Date.now() / 1000) + 75 })), 401);
	});
	test('keys that are rotated while calls are under way lose nobody who has a new token', async () => {
		const { access_token: before } = await tokensOf(authority, stack, 'finn');
		assert.equal(await statusOf(stack, before), 200);
		const asked = authority.asked['/jwks'], calls = Array.from({ length: 10 }, () => statusOf(stack, before));
		authority.rotate();
		const { access_token: fresh } = await tokensOf(authority, stack, 'finn');
		const statuses = await Promise.all([...calls, ...Array.from({ length: 10 }, () => statusOf(stack, fresh))]);
		assert.deepEqual([...new Set(statuses)], [200]);
		assert.ok(authority.asked['/jwks'] <= asked + 1);
		assert.equal(await statusOf(stack, before), 401); /* its key is gone */
	});
	test('while it answers 500, whoever has a token goes on, also with one that is new here', async () => {
		const { access_token: first } = await tokensOf(authority, stack, 'dora'), { access_token: second } = await tokensOf(authority, stack, 'emil');
		assert.equal(await statusOf(stack, first), 200);
		authority.mode = '500';
		for (let i = 0; i < 20; i++) assert.equal(await statusOf(stack, first), 200);
		assert.equal(await statusOf(stack, second), 200); /* the keys are here */
		assert.equal(await statusOf(stack, stack.token), 200);
	});
});

describe('opaque tokens', () => {
	let authority, stack;
	before(async () => {
		authority = await Authority.start({ format: 'opaque' });
		stack = await begin(authority);
	});
	after(async () => {
		await stack?.stop();
		await authority?.stop();
	});

	test('are asked about once, while the issuer is away not again, and not at all once they were revoked', async () => {
		const { access_token: token, client_id: client } = await tokensOf(authority, stack, 'gina');
		assert.ok(!token.includes('.'));
		assert.equal(await statusOf(stack, token), 200);
		const asked = authority.asked['/token/introspection'];
		for (let i = 0; i < 5; i++) assert.equal(await statusOf(stack, token), 200);
		assert.equal(authority.asked['/token/introspection'], asked);
		authority.mode = '500';
		assert.equal(await statusOf(stack, token), 200);
		assert.equal(await statusOf(stack, 'an-unknown-text'), 503);
		authority.mode = 'good';
		const { access_token: other, client_id: same } = await tokensOf(authority, stack, 'hugo');
		assert.notEqual(client, same);
		const revoked = await fetch(`${authority.url}/token/revocation`, { method: 'POST', body: new URLSearchParams({ token: other, client_id: same }) });
		assert.equal(revoked.status, 200);
		assert.equal(await statusOf(stack, other), 401);
	});
	test('of another resource count nothing', async () => {
		authority.audience = 'https://other.example/mcp';
		const elsewhere = mkdtempSync(path.join(folder, 'data-')), file = path.join(elsewhere, 'mcp.json');
		writeFileSync(file, JSON.stringify({ mcpServers: { box: { url: stack.url, private: true } } }), { mode: 0o600 });
		const { code } = await signIn(['box'], {
			env: { SALLYPORT_DATA_DIR: elsewhere, SALLYPORT_UPSTREAM_FILE: file }, person: (address) => authority.person(address, 'ivan'),
		});
		assert.equal(code, 0);
		const { access_token: token } = JSON.parse(readFileSync(path.join(elsewhere, 'logins/box.json'), 'utf8'));
		assert.equal(await statusOf(stack, token), 401);
		authority.audience = stack.url;
	});
	test('doctor sees issuer, keys, introspection and our own address, and says what is wrong', async () => {
		const doctor = async (env = {}) => {
			const { stdout } = await run(path.join(bin, 'sallyport'), ['doctor', '--config', stack.config, '--json'], {
				env: {
					...process.env, SALLYPORT_OAUTH_MODE: 'external', SALLYPORT_OAUTH_ISSUER: authority.url, SALLYPORT_OAUTH_OWNER: 'ann',
					SALLYPORT_OAUTH_INTROSPECTION_ENDPOINT: `${authority.url}/token/introspection`, SALLYPORT_OAUTH_INTROSPECTION_CLIENT: 'box',
					SALLYPORT_OAUTH_INTROSPECTION_SECRET_FILE: path.join(stack.state, 'secret'), ...env,
				},
			});
			return Object.fromEntries(JSON.parse(stdout).checks.map(({ name, ...rest }) => [name, rest]));
		};
		const good = await doctor();
		assert.equal(good['oauth address'].state, 'weaker'); /* http, this computer */
		assert.match(good['oauth address'].remedy, /https/);
		assert.equal(good['oauth resource'].state, 'ok');
		assert.match(good['oauth issuer'].found, /4 keys/);
		assert.equal(good['oauth issuer'].state, 'ok');
		assert.equal(good.introspection.state, 'ok');
		assert.ok(good.clock);
		const slash = await doctor({ SALLYPORT_OAUTH_ISSUER: `${authority.url}/` });
		assert.match(slash['oauth issuer'].found, /they must be the same to the last character/);
		const client = await doctor({ SALLYPORT_OAUTH_INTROSPECTION_CLIENT: 'nobody' });
		assert.match(client.introspection.found, /status 401/);
		const base = await doctor({ SALLYPORT_PUBLIC_BASE_URL: authority.url });
		assert.equal(base['oauth resource'].state, 'weaker');
		assert.equal((await run(path.join(bin, 'sallyport'), ['doctor', '--config', stack.config, '--json'])).stdout.includes('oauth'), false);
	});
});
