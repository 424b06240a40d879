/*
 * oauth_documents.test.js - clients that name themselves by the address of a document (client ID metadata documents): what is fetched, from where,
 * which documents count, and what becomes of people while the host of a document misbehaves. The host is a server of this test with a CA of its
 * own; because the gateway is on loopback itself, it may be there, too.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import https from 'node:https';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';
import { Browser, REDIRECT, authorizeUrl, pkce } from './browser.js';
import { Stack, makeState } from './stack.js';

let folder, server, host, stack, token, asked = 0;
const documents = new Map(); /* path: (request, response) */

before(async () => {
	folder = mkdtempSync(path.join(tmpdir(), 'sp-ca-'));
	chmodSync(folder, 0o755);
	const make = (...args) => execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' });
	make('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', 'key.pem', '-out', 'ca.pem', '-days', '2', '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1');
	chmodSync(path.join(folder, 'ca.pem'), 0o644);
	server = https.createServer({ key: readFileSync(path.join(folder, 'key.pem')), cert: readFileSync(path.join(folder, 'ca.pem')) }, (request, response) => {
		asked++;
		(documents.get(request.url) ?? ((_, answer) => answer.writeHead(404).end()))(request, response);
	});
	server.listen(0, '127.0.0.1');
	await once(server, 'listening');
	host = `https://localhost:${server.address().port}`;
	stack = await Stack.start({ state: makeState(), env: { SALLYPORT_OAUTH_MODE: 'builtin', SALLYPORT_OAUTH_CA_FILE: path.join(folder, 'ca.pem') } });
	token = JSON.parse((await stack.cli(['token', 'add', '--owner', 'alice', '--json'])).stdout).token;
});
after(async () => {
	await stack?.stop();
	server?.closeAllConnections();
	server?.close();
	rmSync(folder, { recursive: true, force: true });
});

function sql(text, ...values) {
	const database = new DatabaseSync(path.join(stack.state, 'data/sallyport.db'), { timeout: 60_000 });
	try {
		return database.prepare(text).all(...values);
	} finally {
		database.close();
	}
}
/* Serves a document at a path; its members, or a function of the response. */
function serve(place, members = {}, headers = {}) {
	const answer = typeof members === 'function' ? members : (_, response) =>
		response.writeHead(200, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify({ client_id: host + place, client_name: 'Document', redirect_uris: [REDIRECT, `${host}/cb`], grant_types: ['authorization_code', 'refresh_token'], ...members }));
	documents.set(place, answer);
	return host + place;
}
/* The page behind the credential; so many hosts may be asked a minute that the gateway is started anew in between. */
async function second(client_id, parameters = {}) {
	const browser = new Browser(stack.base), { challenge } = pkce();
	const ask = await browser.open(authorizeUrl(stack.base, { client_id, code_challenge: challenge, ...parameters }));
	if (ask.status !== 200) return ask;
	return browser.post({ ...ask.fields, credential: token });
}
async function restart() {
	const port = new URL(stack.base).port;
	await stack.stop({ keep: true });
	stack = await Stack.start({ state: stack.state, port: Number(port), env: { SALLYPORT_OAUTH_MODE: 'builtin', SALLYPORT_OAUTH_CA_FILE: path.join(folder, 'ca.pem') } });
}

test('a document is fetched for people who have signed in, once an hour, and its client gets tokens', async () => {
	const client_id = serve('/client.json'), browser = new Browser(stack.base), { verifier, challenge } = pkce();
	const before = asked, url = authorizeUrl(stack.base, { client_id, code_challenge: challenge, redirect_uri: `${host}/cb` });
	const ask = await browser.open(url);
	assert.equal(ask.status, 200);
	assert.match(ask.words, /localhost:\d+ wants to use this server/);
	await browser.post({ ...ask.fields, credential: 'BCDF-GHJK-LMNP' });
	assert.equal(asked, before);
	const back = await browser.approve(url, token);
	assert.equal(asked, before + 1);
	assert.equal(back.origin + back.pathname, `${host}/cb`);
	const answer = await fetch(`${stack.base}/token`, {
		method: 'POST', body: new URLSearchParams({ grant_type: 'authorization_code', code: back.searchParams.get('code'), code_verifier: verifier, client_id, redirect_uri: `${host}/cb` }),
	});
	assert.equal(answer.status, 200);
	assert.match((await answer.json()).refresh_token, /^spr_alice_/);
	const again = await browser.open(url);
	assert.match(again.words, /“Document” wants/);
	await browser.approve(url, token);
	assert.equal(asked, before + 1);
	const row = (await stack.cli(['client', 'list', '--json'])).stdout.trim().split('\n').map((line) => JSON.parse(line)).find(({ id }) => id === client_id);
	assert.equal(row.kind, 'document');
	/* A copy counts while the host is away, and a week long. */
	documents.set('/client.json', (_, response) => response.writeHead(503).end());
	sql('UPDATE oauth_client SET fresh_us = 1');
	const stale = await second(client_id, { redirect_uri: `${host}/cb` });
	assert.equal(stale.title, 'Allow this program?', stale.words);
	sql('UPDATE oauth_client SET fresh_us = 1, fetched_us = fetched_us - 8 * 86400000000');
	await restart(); /* it forgets that this address failed */
	assert.equal((await second(client_id, { redirect_uri: `${host}/cb` })).status, 502);
	/* The document changes: what it does not name any more is refused. */
	serve('/client.json', { redirect_uris: [REDIRECT] });
	await restart();
	const changed = await second(client_id, { redirect_uri: `${host}/cb` });
	assert.equal(changed.status, 400);
	assert.match(changed.problem, /not one that this client registered/);
});

test('what is no document of its address is refused', async () => {
	const rows = [
		[{ client_id: `${host}/other.json` }, 400, /not its address/], [{ client_secret: 'x' }, 400, /client_secret/], [{ redirect_uris: ['https://evil.example/cb'] }, 400, /redirect_uris/],
		[{ token_endpoint_auth_method: 'client_secret_basic' }, 400, /must be none/],
		[(_, response) => response.end('<html>'), 400, /not a JSON object/], [(_, response) => response.end('[]'), 400, /not a JSON object/],
		[(_, response) => response.writeHead(302, { Location: `${host}/client.json` }).end(), 502, /status 302/],
		[(_, response) => response.writeHead(404).end('{}'), 502, /status 404/],
		[(_, response) => response.end(`{"client_id":"x","pad":"${'x'.repeat(10_240)}"}`), 502, /more than 10240 bytes/],
		[(_, response) => { response.writeHead(200); const timer = setInterval(() => response.write(' '), 500); response.on('close', () => clearInterval(timer)); }, 502, /.|Timeout/i],
		[(request) => request.socket.destroy(), 502, /./],
	];
	for (const [i, [document, status, pattern]] of rows.entries()) {
		if (i % 4 === 0) await restart();
		const place = `/bad/${i}.json`, page = await second(serve(place, document));
		assert.equal(page.status, status, `${i}: ${page.words}`);
		assert.match(page.problem, pattern);
		assert.ok(page.problem.includes(host + place));
		assert.equal(page.onward, null);
		assert.deepEqual(sql('SELECT id FROM oauth_client WHERE id = ?', host + place), []); /* errors are not kept */
	}
});

test('one host is asked five times a minute, and an address that failed not at once again', async () => {
	await restart();
	const id = serve('/failing.json', (_, response) => response.writeHead(500).end()), before = asked;
	assert.equal((await second(id)).status, 502);
	assert.match((await second(id)).problem, /try again in a minute/);
	assert.equal(asked, before + 1);
	const statuses = [];
	for (let i = 0; i < 6; i++) statuses.push((await second(serve(`/many/${i}.json`))).status);
	assert.deepEqual(statuses, [200, 200, 200, 200, 502, 502]);
	assert.equal(asked, before + 5);
});

test('addresses that are not the internet are not connected to', async () => {
	await restart();
	/* Loopback is allowed to a gateway that is on it; nothing else is, whatever the spelling or the name says. */
	for (const id of ['https://10.0.0.1/x', 'https://[fc00::1]/x', 'https://169.254.169.254/latest', 'https://100.64.0.1/x', 'https://0.0.0.0/x', 'https://[::ffff:192.168.0.1]/x', 'https://[64:ff9b::a00:1]/x']) {
		const page = await second(id);
		assert.equal(page.status, 502, id);
		assert.match(page.problem, /not the internet's|minute/, id);
	}
	for (const id of ['https://2130706433/x', 'https://0x7f.1/x', 'http://localhost/x', 'https://user@localhost/x', `${host}/a/../b`, `${host}/a/%2e%2e/b`]) {
		const page = await second(id);
		assert.equal(page.status, 400, id);
		assert.equal(page.link, null);
	}
});

test('where documents are switched off, clients are not invited to have them', async () => {
	const state = makeState(), other = await Stack.start({ state, env: { SALLYPORT_OAUTH_MODE: 'builtin', SALLYPORT_OAUTH_CLIENT_METADATA: 'false', SALLYPORT_OAUTH_DYNAMIC_REGISTRATION: 'false' } });
	const metadata = await (await fetch(`${other.base}/.well-known/oauth-authorization-server`)).json();
	assert.equal(metadata.client_id_metadata_document_supported, false);
	assert.equal('registration_endpoint' in metadata, false);
	assert.equal((await fetch(`${other.base}/register`, { method: 'POST', body: '{}' })).status, 404);
	const page = await new Browser(other.base).open(authorizeUrl(other.base, { client_id: `${host}/client.json`, code_challenge: pkce().challenge }));
	assert.equal(page.status, 400);
	assert.match(page.problem, /oauth\.client_metadata/);
	await other.stop();
});
