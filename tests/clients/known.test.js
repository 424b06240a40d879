/*
 * known.test.js - whose a request is without a token of ours: users of a chat front end (LibreChat's JWT below /v1/), and clients of a trusted
 * network (doors.trusted).
 */
import assert from 'node:assert/strict';
import { createHash, createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Stack, bin, makeState, run } from './stack.js';

const keys = { ed: generateKeyPairSync('ed25519'), rsa: generateKeyPairSync('rsa', { modulusLength: 2048 }), other: generateKeyPairSync('ed25519') };
let stack, origin, token, folder;

const pem = (...names) => names.map((name) => keys[name].publicKey.export({ type: 'spki', format: 'pem' })).join('');
before(async () => {
	folder = makeState();
	writeFileSync(path.join(folder, 'keys.pem'), pem('ed', 'rsa'), { mode: 0o644 });
	stack = await Stack.start({
		env: {
			SALLYPORT_API_ENABLED: 'true', SALLYPORT_API_JWT_KEY: path.join(folder, 'keys.pem'), SALLYPORT_DOORS_FUSION: 'true', SALLYPORT_DOORS_PISTON: 'true',
			SALLYPORT_DOORS_TRUSTED: '10.0.0.0/8 -> far,127.0.0.0/8 -> near,::1 -> near', SALLYPORT_GATEWAY_TRUSTED_PROXIES: '127.0.0.1',
		},
	});
	origin = new URL(stack.url).origin;
	token = stack.headers.Authorization.replace('Bearer ', '');
});
after(async () => {
	await stack?.stop();
	rmSync(folder, { recursive: true, force: true });
});

/* As LibreChat signs it. */
const encode = (value) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
function jwt(claims = {}, { key = 'ed', alg = key === 'rsa' ? 'RS256' : 'EdDSA', header = {} } = {}) {
	const now = Math.floor(Date.now() / 1000);
	const all = {
		iss: 'librechat', aud: 'codeapi', sub: '507f1f77bcf86cd799439011', tenant_id: 'legacy', role: 'USER', principal_source: 'librechat_jwt', iat: now, nbf: now, exp: now + 300,
		jti: 'the same each time', auth_context_hash: 'x', ...claims,
	};
	const text = `${encode({ alg, typ: 'JWT', kid: 'lc-codeapi-2026-05', ...header })}.${encode(all)}`;
	if (alg === 'none') return `${text}.`;
	if (alg === 'HS256') return `${text}.${createHmac('sha256', pem('ed')).update(text).digest('base64url')}`;
	return `${text}.${sign(key === 'rsa' ? 'sha256' : null, Buffer.from(text), keys[key].privateKey).toString('base64url')}`;
}
async function call(text, rest, init = {}) {
	const response = await fetch(`${origin}/${rest}`, { ...init, headers: { Authorization: `Bearer ${text}`, ...init.headers } });
	return { status: response.status, body: await response.json().catch(() => null) };
}
const exec = (text, code) => call(text, 'v1/exec', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ lang: 'py', code }) });
const ownerOf = async (id) => JSON.parse((await stack.cli(['show', id, '--json'])).stdout).owner;

test("each user of a front end is an owner, and sees none of another's files", async () => {
	const ann = jwt(), bob = jwt({ sub: 'b0b' }, { key: 'rsa' });
	const made = await exec(ann, 'open("a.txt", "w").write("of Ann"); print(1)');
	assert.deepEqual([made.status, made.body.stdout], [200, '1\n'], JSON.stringify(made.body));
	assert.equal(await ownerOf(made.body.execution_id), 'chat-507f1f77bcf86cd799439011');
	assert.equal((await exec(ann, 'print(2)')).body.stdout, '2\n'); /* the same token again: its jti is not used up */
	assert.equal((await call(ann, `v1/files/${made.body.session_id}`)).body.length, 1);
	assert.equal((await call(bob, `v1/files/${made.body.session_id}`)).status, 404);
	const his = await exec(bob, 'print(3)');
	assert.equal(await ownerOf(his.body.execution_id), 'chat-b0b');
	/* No name of an owner, and the same user of another tenant: digits. */
	const digits = (text) => `chat-${createHash('sha256').update(text).digest('hex').slice(0, 20)}`;
	for (const [claims, owner] of [[{ sub: 'Ann Ö' }, digits('Ann Ö')], [{ sub: 'b0b', tenant_id: 'acme' }, digits('acme/b0b')], [{ sub: 'b0b', tenant_id: undefined }, 'chat-b0b']])
		assert.equal(await ownerOf((await exec(jwt(claims), '1')).body.execution_id), owner, JSON.stringify(claims));
});

test('a JWT that is not good is refused', async () => {
	const now = Math.floor(Date.now() / 1000);
	const cases = [
		['another key', jwt({}, { key: 'other' })], ['another issuer', jwt({ iss: 'x' })], ['another audience', jwt({ aud: 'x' })], ['old', jwt({ exp: now - 120 })],
		['not yet', jwt({ nbf: now + 600 })], ['no end', jwt({ exp: undefined })], ['no user', jwt({ sub: '' })], ['a tenant that is no text', jwt({ tenant_id: 7 })],
		['no signature', jwt({}, { alg: 'none' })], ['HMAC with the public key', jwt({}, { alg: 'HS256' })], ['EdDSA by the RSA key', jwt({}, { key: 'rsa', alg: 'EdDSA' })],
		['altered', jwt().replace(/\.[^.]+\./, `.${encode({ iss: 'librechat', aud: 'codeapi', sub: 'eve', exp: now + 300 })}.`)], ['cut', jwt().slice(0, -4)],
		['a long name', jwt({ sub: 'x'.repeat(300) })],
	];
	for (const [name, text] of cases) assert.equal((await exec(text, '1')).status, 401, name);
	for (const rest of ['fusion/v1/ping', 'piston/api/v2/runtimes', 'admin/']) assert.notEqual((await call(jwt(), rest)).status, 200, rest);
	const mcp = await fetch(stack.url, { method: 'POST', headers: { Authorization: `Bearer ${jwt()}`, 'Content-Type': 'application/json' }, body: '{}' });
	assert.equal(mcp.status, 401);
	assert.equal((await exec(token, 'print(4)')).body.stdout, '4\n'); /* tokens of ours count as ever */
});

test('who is revoked stays out', async () => {
	const eve = jwt({ sub: 'eve' });
	assert.equal((await exec(eve, '1')).status, 200);
	const row = (await stack.cli(['token', 'list', '--json'])).stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line)).find((one) => one.owner === 'chat-eve');
	await stack.cli(['token', 'revoke', row.id]);
	assert.equal((await exec(eve, '1')).status, 403);
});

test('clients of a trusted network need no token at the doors, and only there', async () => {
	const runAs = async (headers = {}) => {
		const response = await fetch(`${origin}/fusion/run_code`, { method: 'POST', headers, body: JSON.stringify({ language: 'python', code: 'print(1)' }) });
		return { status: response.status, body: await response.json() };
	};
	const near = await runAs();
	assert.deepEqual([near.status, near.body.run_result?.stdout], [200, '1\n'], JSON.stringify(near.body));
	assert.equal(await ownerOf(near.body.executor_pod_name), 'near');
	assert.equal(await ownerOf((await runAs({ 'X-Forwarded-For': '10.1.2.3' })).body.executor_pod_name), 'far');
	assert.equal((await runAs({ 'X-Forwarded-For': '192.0.2.1' })).status, 401);
	assert.equal((await fetch(`${origin}/piston/api/v2/runtimes`)).status, 200);
	for (const headers of [{ Authorization: 'Bearer wrong' }, { Authorization: 'Bearer' }, { 'X-API-Key': 'wrong' }, { 'X-Auth-Token': '' }]) assert.equal((await runAs(headers)).status, 401, JSON.stringify(headers));
	assert.equal((await fetch(`${origin}/t/wrong/fusion/v1/ping`)).status, 401);
	for (const rest of ['v1/openapi.json', 'mcp']) assert.equal((await fetch(`${origin}/${rest}`, { method: rest === 'mcp' ? 'POST' : 'GET' })).status, 401, rest);
	/* A body that nginx asks about before it takes it in. */
	const large = await fetch(`${origin}/fusion/run_code`, { method: 'POST', body: JSON.stringify({ language: 'python', code: 'print(2)', stdin: 'x'.repeat(200_000) }) });
	assert.equal((await large.json()).run_result.stdout, '2\n');
	const page = await runAs({ Origin: 'https://evil.example' });
	assert.equal(page.status, 403);
});

test('an entry of doors.trusted that is none is refused at the start', async () => {
	const { code, stderr } = await run(path.join(bin, 'sallyport-gateway'), ['--config', stack.config], { env: { ...process.env, SALLYPORT_DOORS_TRUSTED: 'everybody' } });
	assert.notEqual(code, 0);
	assert.match(stderr, /doors\.trusted.*NETWORK -> OWNER/);
});
