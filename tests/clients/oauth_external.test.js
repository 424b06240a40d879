/*
 * oauth_external.test.js - the gateway in front of an authorization server of the operator's (oauth.mode external): what clients find, whose tokens
 * count and whose do not, and what happens while that server is away, slow, wrong, or changes its keys.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import * as second from '@modelcontextprotocol/client';
import * as first from '@modelcontextprotocol/sdk/client/auth.js';
import { Issuer, Key } from './issuer.js';
import { Stack, makeState, until } from './stack.js';

let issuer, stack, audience;
const META = '/.well-known/oauth-protected-resource';

function environment(state, more = {}) {
	const secret = path.join(state, 'secret');
	writeFileSync(secret, 's:cret\n', { mode: 0o644 });
	return {
		SALLYPORT_OAUTH_MODE: 'external', SALLYPORT_OAUTH_ISSUER: issuer.url, SALLYPORT_OAUTH_OWNER_CLAIM: 'owner',
		SALLYPORT_OAUTH_INTROSPECTION_ENDPOINT: `${issuer.url}/introspect`, SALLYPORT_OAUTH_INTROSPECTION_CLIENT: 'box',
		SALLYPORT_OAUTH_INTROSPECTION_SECRET_FILE: secret, ...more,
	};
}

async function start(more) {
	const state = makeState();
	return Stack.start({ state, env: environment(state, more) });
}

before(async () => {
	issuer = await Issuer.start();
	stack = await start();
	audience = `${stack.base}/mcp`;
});
after(async () => {
	await stack?.stop();
	await issuer?.stop();
});
beforeEach(() => (issuer.mode = 'good'));

/* One request of the modern era with a token: { status, challenge, body }. */
async function ask(token, { name = 'list_runners', args = {}, at = stack, headers = {} } = {}) {
	const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} };
	const response = await fetch(at.url, {
		method: 'POST',
		headers: {
			'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', 'MCP-Protocol-Version': '2026-07-28',
			'Mcp-Method': 'tools/call', 'Mcp-Name': name, ...(token && { Authorization: `Bearer ${token}` }), ...headers,
		},
		body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args, _meta: meta } }),
	});
	return {
		status: response.status, challenge: response.headers.get('www-authenticate'), retry: response.headers.get('retry-after'),
		headers: response.headers, body: await response.text(),
	};
}
const tokensOf = async (name) => {
	const { stdout } = await stack.cli(['token', 'list', '--json']);
	return stdout.trim().split('\n').map((line) => JSON.parse(line)).filter(({ owner }) => owner === name);
};
const statusOf = async (token, options) => (await ask(token, options)).status;

test('the metadata of the resource stands at both places, for pages of any origin', async () => {
	const texts = [];
	for (const place of [META, `${META}/mcp`]) {
		const response = await fetch(stack.base + place, { headers: { Origin: 'https://anywhere.example', 'X-Forwarded-Host': 'evil.example' } });
		assert.equal(response.status, 200);
		assert.equal(response.headers.get('content-type'), 'application/json');
		assert.equal(response.headers.get('access-control-allow-origin'), '*');
		assert.equal(response.headers.get('cache-control'), 'max-age=300');
		texts.push(await response.text());
	}
	assert.equal(texts[0], texts[1]);
	assert.deepEqual(JSON.parse(texts[0]), {
		resource: audience, authorization_servers: [issuer.url], scopes_supported: ['run', 'files'],
		bearer_methods_supported: ['header'], resource_name: 'Sallyport',
	});
	const head = await fetch(stack.base + META, { method: 'HEAD' });
	assert.equal(head.status, 200);
	assert.equal(await head.text(), '');
	const preflight = await fetch(stack.base + META, {
		method: 'OPTIONS', headers: { Origin: 'https://anywhere.example', 'Access-Control-Request-Method': 'GET', 'Access-Control-Request-Headers': 'mcp-protocol-version' },
	});
	assert.equal(preflight.status, 204);
	assert.match(preflight.headers.get('access-control-allow-headers'), /MCP-Protocol-Version/i);
	for (const other of [`${META}/sse`, `${META}/other`, '/.well-known/oauth-authorization-server', '/.well-known/openid-configuration', '/mcp/.well-known/openid-configuration']) {
		const response = await fetch(stack.base + other);
		assert.equal(response.status, 404, other);
		assert.equal(response.headers.get('content-type'), 'application/json', other);
	}
});

test('a request without a token is told where to sign in', async () => {
	const { status, challenge } = await ask(null);
	assert.equal(status, 401);
	assert.equal(challenge, `Bearer realm="sallyport", resource_metadata="${stack.base}${META}/mcp", scope="run files"`);
	const bad = await ask('x.y.z');
	assert.equal(bad.status, 401);
	assert.match(bad.challenge, /^Bearer realm="sallyport", error="invalid_token", error_description="[^"]*", resource_metadata="[^"]*", scope="run files"$/);
	/* A large body is asked for its token before it is taken in. */
	const large = await fetch(stack.url, { method: 'POST', body: Buffer.alloc(200_000, ' ') });
	assert.equal(large.status, 401);
	assert.match(large.headers.get('www-authenticate'), /resource_metadata=/);
});

test('the official clients find the issuer', async () => {
	for (const sdk of [first, second]) {
		const refused = await fetch(stack.url, { method: 'POST' });
		const { resourceMetadataUrl, scope } = sdk.extractWWWAuthenticateParams(refused);
		assert.equal(String(resourceMetadataUrl), `${stack.base}${META}/mcp`);
		assert.equal(scope, 'run files');
		for (const hint of [{ resourceMetadataUrl }, {}]) {
			const found = await sdk.discoverOAuthProtectedResourceMetadata(stack.url, hint);
			assert.equal(found.resource, audience);
			assert.deepEqual(found.authorization_servers, [issuer.url]);
		}
	}
});

test('tokens of our own go on working, and never reach the issuer', async () => {
	assert.equal(await statusOf(stack.token), 200);
	const before = issuer.asked.introspect;
	for (const text of ['sp_dev_0000', 'spa_dev_0000', 'spr_dev_0000', 'spc_x']) assert.equal(await statusOf(text), 401, text);
	assert.equal(issuer.asked.introspect, before);
});

test('a JWT of each algorithm is its owner', async () => {
	const keys = ['RS256', 'PS256', 'ES256', 'EdDSA'].map((alg) => new Key(alg));
	issuer.keys = [...keys, ...issuer.keys];
	for (const key of keys) {
		const token = issuer.token(audience, { owner: key.alg.toLowerCase(), padding: 'x'.repeat(3000) }, {}, key);
		assert.ok(token.length > 4000);
		const { status, body } = await ask(token, { name: 'run_code', args: { conversationId: 'c', language: 'bash', code: 'echo 7' } });
		assert.equal(status, 200, `${key.alg}: ${body}`);
		const [row] = await stack.rows();
		assert.equal(row.owner, key.alg.toLowerCase());
	}
	issuer.keys = issuer.keys.slice(keys.length);
});

test('keys that change are followed at once, and asked for once', async () => {
	const fresh = await start(), kept = issuer.keys, [old] = kept, here = `${fresh.base}/mcp`;
	const before = issuer.asked.keys;
	assert.equal(await statusOf(issuer.token(here), { at: fresh }), 200);
	assert.equal(issuer.asked.keys, before + 1);
	issuer.keys = [new Key('ES256', 'third')];
	const tokens = Array.from({ length: 200 }, (_, i) => issuer.token(here, { sub: `p${i % 5}` }));
	const statuses = await Promise.all(tokens.map((token) => statusOf(token, { at: fresh })));
	assert.deepEqual([...new Set(statuses.filter((status) => status !== 503))], [200]);
	assert.equal(issuer.asked.keys, before + 2);
	assert.equal(await statusOf(old.sign(issuer.claims(here)), { at: fresh }), 401); /* the old key is gone */
	/* A flood of made-up ids asks nobody. */
	const forger = new Key('ES256');
	for (let i = 0; i < 50; i++) assert.equal(await statusOf(forger.sign(issuer.claims(here), { kid: `k${i}` }), { at: fresh }), 401);
	assert.equal(issuer.asked.keys, before + 2);
	issuer.keys = kept;
	await fresh.stop();
});

const BAD_MODES = ['other', '500', 'html', 'redirect', 'huge', 'silent'];

test('while the issuer is away the answer is 503, and never 401', async () => {
	const fresh = await start(), here = `${fresh.base}/mcp`, token = issuer.token(here);
	for (const mode of BAD_MODES) { /* there are no keys yet */
		issuer.mode = mode;
		const before = issuer.asked.metadata;
		const { status, retry, challenge } = await until(`an answer of the kind ${mode}`, async () => {
			const answer = await ask(token, { at: fresh });
			return issuer.asked.metadata > before ? answer : null;
		});
		assert.equal(status, 503, mode);
		assert.ok(Number(retry) > 0, mode);
		assert.equal(challenge, null, mode);
		if (mode !== 'other') assert.equal(await statusOf(issuer.grant(here), { at: fresh }), 503, mode);
		assert.equal(await statusOf(fresh.token, { at: fresh }), 200, mode);
	}
	assert.ok(readFileSync(path.join(fresh.state, 'log/gateway.log'), 'utf8').includes(`its own metadata says ${issuer.url}/`));
	issuer.mode = 'good';
	await until('the issuer to be asked again', async () => (await statusOf(token, { at: fresh })) === 200);
	for (const mode of BAD_MODES.slice(1)) { /* from now on the old ones count */
		issuer.mode = mode;
		assert.equal(await statusOf(issuer.token(here, { sub: mode }), { at: fresh }), 200, mode);
		/* Nobody knows whether this key is the issuer's. */
		assert.equal(await statusOf(new Key('RS256').sign(issuer.claims(here)), { at: fresh }), 503, mode);
	}
	await fresh.stop();
});

test('a token without the scope is told which scopes to ask for', async () => {
	const { status, challenge, body } = await ask(issuer.token(audience, { scope: 'files' }), { name: 'run_code', args: { conversationId: 'c', language: 'bash', code: 'echo' } });
	assert.equal(status, 403);
	assert.match(challenge, /error="insufficient_scope"/);
	assert.match(challenge, new RegExp(`resource_metadata="${stack.base}${META}/mcp", scope="run files"$`));
	assert.match(JSON.parse(body).error.message, /lacks the scope "run"/);
	const none = await ask(issuer.token(audience, { scope: 'openid' }), { name: 'run_code', args: { conversationId: 'c', language: 'bash', code: 'echo' } });
	assert.equal(none.status, 403);
	assert.match(none.challenge, /scope="run"$/);
	assert.equal(await statusOf(issuer.token(audience, { scope: 'admin' }), { name: 'run_code', args: { conversationId: 'c', language: 'bash', code: 'echo' } }), 403);
	/* Our own tokens have nobody to ask for more. */
	const { stdout } = await stack.cli(['token', 'add', '--owner', 'dev', '--scope', 'files']);
	const own = await ask(stdout.trim(), { name: 'run_code', args: { conversationId: 'c', language: 'bash', code: 'echo' } });
	assert.equal(own.challenge, 'Bearer realm="sallyport", error="insufficient_scope", error_description="run is needed", scope="run"');
});

test('somebody who has no owner here is not sent to sign in again', async () => {
	for (const owner of [undefined, '', 'ANN', 'a.b', 'ann/../bob', ['ann'], 7, 'x'.repeat(33)]) {
		const { status, challenge } = await ask(issuer.token(audience, { owner, sub: 'nobody' }));
		assert.equal(status, 403, String(owner));
		assert.equal(challenge, null);
	}
	assert.equal(await statusOf(issuer.token(audience, { aud: 'https://other.example/mcp' })), 401);
	assert.equal(await statusOf(issuer.token(audience, { exp: 1 })), 401);
});

test('an opaque token is asked about once', async () => {
	const token = issuer.grant(audience), before = issuer.asked.introspect;
	const answers = await Promise.all(Array.from({ length: 6 }, () => statusOf(token)));
	assert.deepEqual([...new Set(answers)], [200]);
	assert.equal(issuer.asked.introspect, before + 1);
	assert.equal(await statusOf(token), 200);
	assert.equal(issuer.asked.introspect, before + 1);
	assert.equal(await statusOf('nobody-gave-this'), 401);
	assert.equal(await statusOf('nobody-gave-this'), 401);
	assert.equal(issuer.asked.introspect, before + 2);
});

test('a flood of made-up tokens is no flood at the issuer, and nobody else waits for it', async () => {
	issuer.mode = 'silent';
	const before = issuer.asked.introspect;
	const flood = Array.from({ length: 100 }, (_, i) => statusOf(`made-up-${i}`));
	assert.equal(await statusOf(stack.token), 200);
	assert.deepEqual([...new Set(await Promise.all(flood))], [503]);
	assert.ok(issuer.asked.introspect - before <= 16, String(issuer.asked.introspect - before));
});

test('what introspection says is checked like a JWT', async () => {
	const rows = [
		[{ aud: undefined }, 401], [{ aud: 'https://other.example/mcp' }, 401], [{ iss: 'https://other.example' }, 401], [{ iss: undefined }, 200],
		[{ exp: 1 }, 401], [{ exp: undefined }, 200], [{ cnf: { jkt: 'x' } }, 401], [{ active: 'true' }, 503], [{ active: 1 }, 503],
		[{ owner: undefined }, 403], [{ sub: undefined, client_id: undefined }, 401],
	];
	for (const [more, status] of rows) assert.equal(await statusOf(issuer.grant(audience, more)), status, JSON.stringify(more));
});

test('an operator sees people in the list of tokens, and can keep one out', async () => {
	const token = issuer.token(audience, { sub: 'mallory', owner: 'mallory' });
	assert.equal(await statusOf(token), 200);
	assert.equal(await statusOf(issuer.token(audience, { sub: 'mallory', owner: 'mallory', jti: 'another' })), 200);
	const rows = await tokensOf('mallory');
	assert.equal(rows.length, 1);
	assert.equal(rows[0].name, 'mallory');
	assert.equal((await stack.cli(['token', 'revoke', rows[0].id])).code, 0);
	assert.equal(await statusOf(token), 403);
	assert.equal((await tokensOf('mallory')).length, 1);
	assert.equal((await stack.cli(['verify'])).code, 0);
});

test('an open stream ends when its person is kept out', async () => {
	const headers = { Authorization: `Bearer ${issuer.token(audience, { sub: 'lurker', owner: 'lurker' })}`, 'Content-Type': 'application/json' };
	const accept = { Accept: 'application/json, text/event-stream' };
	const opened = await fetch(stack.url, {
		method: 'POST', headers: { ...headers, ...accept },
		body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } } }),
	});
	const session = { 'Mcp-Session-Id': opened.headers.get('mcp-session-id'), 'MCP-Protocol-Version': '2025-06-18' };
	await opened.text();
	const stream = await fetch(stack.url, { headers: { ...headers, ...session, Accept: 'text/event-stream' } });
	assert.equal(stream.status, 200);
	const [{ id }] = await tokensOf('lurker');
	await stack.cli(['token', 'revoke', id]);
	await stream.text(); /* ends */
});

test('connectors of claude.ai and ChatGPT may call with their Origin', async () => {
	for (const origin of ['https://claude.ai', 'https://claude.com', 'https://chatgpt.com', 'https://vscode.dev']) {
		const { status, headers } = await ask(issuer.token(audience), { headers: { Origin: origin } });
		assert.equal(status, 200, origin);
		assert.equal(headers.get('access-control-allow-origin'), origin);
		assert.match(headers.get('access-control-expose-headers'), /WWW-Authenticate/);
	}
	assert.equal(await statusOf(issuer.token(audience), { headers: { Origin: 'https://evil.example' } }), 403);
	assert.equal((await fetch(`${stack.base}/admin`, { headers: { Origin: 'https://claude.ai' } })).status, 403);
});

test('a person who opens the address in a browser reads what it is for', async () => {
	const page = { Accept: 'text/html,application/xhtml+xml' };
	const root = await fetch(stack.base, { headers: page });
	assert.equal(root.status, 200);
	assert.match(root.headers.get('content-type'), /^text\/html/);
	assert.match(root.headers.get('content-security-policy'), /default-src 'none'/);
	assert.ok((await root.text()).includes(`<code>${audience}</code>`));
	const mcp = await fetch(audience, { headers: page });
	assert.equal(mcp.status, 401);
	assert.match(mcp.headers.get('www-authenticate'), /resource_metadata=/);
	assert.ok((await mcp.text()).includes(`<code>${audience}</code>`));
	for (const place of [stack.base, audience]) {
		const head = await fetch(place, { method: 'HEAD' });
		assert.equal(head.status, place === audience ? 401 : 200);
	}
	assert.equal((await (await fetch(stack.base)).json()).endpoint, audience);
});
