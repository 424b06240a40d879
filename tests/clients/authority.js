/*
 * authority.js - oidc-provider from npm as an operator's authorization server, on loopback, and a person with a browser who signs in at it: its
 * pages are forms, which need no JavaScript.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import path from 'node:path';
import Provider from 'oidc-provider';
import { Key } from './issuer.js';
import { bin, until } from './stack.js';

export const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA'];
const privateJwk = (key) => ({ ...createPrivateKey(key.privateKey.export({ type: 'pkcs8', format: 'pem' })).export({ format: 'jwk' }), kid: key.kid, alg: key.alg, use: 'sig' });

export class Authority {
	/* `audience` is set by the test before somebody signs in. `format` of access tokens: jwt, signed by `alg`, or opaque; `mode`: good, 500. */
	static async start({ format = 'jwt' } = {}) {
		const authority = new Authority();
		Object.assign(authority, { format, alg: 'RS256', mode: 'good', audience: null, asked: {}, refused: 0 });
		authority.server = http.createServer((request, response) => authority.answer(request, response)).listen(0, '127.0.0.1');
		await once(authority.server, 'listening');
		authority.url = `http://127.0.0.1:${authority.server.address().port}`;
		authority.rotate();
		return authority;
	}
	/* New keys, and nobody is known any more. */
	rotate() {
		this.keys = ALGORITHMS.map((alg) => new Key(alg));
		this.provider = new Provider(this.url, {
			clients: [{ client_id: 'box', client_secret: 's:cret', redirect_uris: [], response_types: [], grant_types: [] }],
			jwks: { keys: this.keys.map(privateJwk) },
			cookies: { keys: ['for a test'] },
			scopes: ['openid', 'offline_access'],
			enabledJWA: { idTokenSigningAlgValues: ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519'] },
			features: {
				devInteractions: { enabled: true }, registration: { enabled: true }, revocation: { enabled: true },
				introspection: { enabled: true, allowedPolicy: () => true },
				resourceIndicators: {
					enabled: true, useGrantedResource: () => true, defaultResource: () => this.audience,
					getResourceServerInfo: () => ({
						scope: 'run files', audience: this.audience, accessTokenFormat: this.format, accessTokenTTL: 3600, jwt: { sign: { alg: this.alg } },
					}),
				},
			},
			findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
			extraTokenClaims: (_, token) => ({ owner: token.accountId }),
			issueRefreshToken: (_, client) => client.grantTypeAllowed('refresh_token'),
			rotateRefreshToken: () => true,
		});
		this.provider.on('grant.error', (_, error) => (this.refused++, this.error = error));
		this.callback = this.provider.callback();
	}
	answer(request, response) {
		const { pathname } = new URL(request.url, this.url);
		this.asked[pathname] = (this.asked[pathname] ?? 0) + 1;
		if (this.mode === '500') return void response.writeHead(500, { 'Content-Type': 'application/json' }).end('{"error":"server_error"}');
		return this.callback(request, response);
	}
	/* What a person does with an address: signs in as `login` and says yes. Where the browser is sent to in the end. */
	async person(address, login) {
		const cookies = new Map();
		let at = address, body;
		for (let step = 0; step < 20; step++) {
			const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
			const response = await fetch(at, { method: body ? 'POST' : 'GET', body, redirect: 'manual', headers: { Cookie: cookie } });
			for (const [, name, value] of response.headers.getSetCookie().map((text) => /^([^=]*)=([^;]*)/.exec(text))) cookies.set(name, value);
			const text = await response.text();
			body = undefined;
			if (response.status >= 300 && response.status < 400) {
				at = new URL(response.headers.get('location'), at).href;
				if (!at.startsWith(`${this.url}/`)) return at;
				continue;
			}
			const action = /action="([^"]*)"/.exec(text)?.[1], prompt = /name="prompt" value="([^"]*)"/.exec(text)?.[1];
			assert.ok(action && prompt, `${response.status} ${text}`);
			at = new URL(action, at).href;
			body = new URLSearchParams({ prompt, login, password: 'any' });
		}
		throw new Error('the sign-in does not end');
	}
	async stop() {
		this.server.closeAllConnections();
		this.server.close();
		await once(this.server, 'close');
	}
}

/*
 * `sallyport upstream login ARGS` with a person: `person(address)` gives the address that the browser ends at. It is opened there, or pasted where
 * `paste`. { code, stdout, stderr, address, ended }.
 */
export async function signIn(args, { env = {}, person, paste = false, config = null }) {
	const child = spawn(path.join(bin, 'sallyport'), ['upstream', ...(config ? ['--config', config] : []), 'login', ...args], { env: { ...process.env, ...env } });
	let stdout = '', stderr = '', code = null, page = null;
	child.stdout.on('data', (data) => (stdout += data));
	child.stderr.on('data', (data) => (stderr += data));
	const closed = once(child, 'close').then(([status]) => (code = status));
	const address = await until('the address to open', () => /^ {2}(http\S+)$/m.exec(stderr)?.[1] ?? (code !== null && 'none'));
	if (address === 'none') return { code, stdout, stderr, address: null, ended: null };
	const ended = await person(address);
	if (paste) child.stdin.write(`${ended}\n`);
	else page = await (await fetch(ended)).text();
	await closed;
	return { code, stdout, stderr, address, ended, page };
}

/* A person at a server that asks nothing: the address that it redirects to. */
export async function redirected(address) {
	const response = await fetch(address, { redirect: 'manual' });
	await response.body?.cancel();
	return response.headers.get('location');
}
