/*
 * issuer.js - an authorization server for tests, as far as a resource server sees one: metadata, keys, introspection, and tokens that say what a
 * test wants. It counts what it is asked, and fails as it is told (`mode`).
 */
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';

const KINDS = {
	RS256: ['rsa', { modulusLength: 2048 }], PS256: ['rsa', { modulusLength: 2048 }], ES256: ['ec', { namedCurve: 'P-256' }],
	ES384: ['ec', { namedCurve: 'P-384' }], EdDSA: ['ed25519', {}],
};
const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

export class Key {
	constructor(alg, kid = `${alg}-${Math.random()}`) {
		const { publicKey, privateKey } = generateKeyPairSync(...KINDS[alg]);
		Object.assign(this, { alg, kid, privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid, alg, use: 'sig' } });
	}
	sign(claims, header = {}) {
		const text = `${encode({ alg: this.alg, kid: this.kid, typ: 'at+jwt', ...header })}.${encode(claims)}`;
		const hash = this.alg === 'EdDSA' ? null : `sha${this.alg.slice(2)}`;
		const options = this.alg.startsWith('PS') ? { padding: 6, saltLength: 32 } : this.alg.startsWith('ES') ? { dsaEncoding: 'ieee-p1363' } : {};
		return `${text}.${sign(hash, Buffer.from(text), { key: this.privateKey, ...options }).toString('base64url')}`;
	}
}

export class Issuer {
	/* `mode`: good, 500, html, redirect, silent, other (another issuer's metadata). */
	static async start() {
		const issuer = new Issuer();
		Object.assign(issuer, { keys: [new Key('RS256', 'first')], mode: 'good', asked: { metadata: 0, keys: 0, introspect: 0 }, opaque: new Map(), seen: [] });
		issuer.server = http.createServer((request, response) => issuer.answer(request, response)).listen(0, '127.0.0.1');
		await once(issuer.server, 'listening');
		issuer.url = `http://127.0.0.1:${issuer.server.address().port}`;
		return issuer;
	}
	async answer(request, response) {
		let body = '';
		for await (const part of request) body += part;
		const { pathname } = new URL(request.url, this.url);
		const json = (value, status = 200) => void response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(value));
		if (pathname === '/.well-known/oauth-authorization-server') this.asked.metadata++;
		if (pathname === '/jwks') this.asked.keys++;
		if (pathname === '/introspect') this.asked.introspect++, this.seen.push(new URLSearchParams(body).get('token'));
		if (this.mode === '500') return json({ error: 'server_error' }, 500);
		if (this.mode === 'html') return void response.writeHead(200, { 'Content-Type': 'text/html' }).end('<html>sign in</html>');
		if (this.mode === 'redirect') return void response.writeHead(302, { Location: 'http://127.0.0.1:1/' }).end();
		if (this.mode === 'huge') return void response.writeHead(200).end(Buffer.alloc(10 << 20, ' '));
		if (this.mode === 'silent') return undefined;
		if (pathname === '/.well-known/oauth-authorization-server') {
			return json({ issuer: this.mode === 'other' ? `${this.url}/` : this.url, jwks_uri: `${this.url}/jwks` });
		}
		if (pathname === '/jwks') return json({ keys: this.keys.map((key) => key.jwk) });
		if (pathname === '/introspect') {
			if (request.headers.authorization !== `Basic ${Buffer.from('box:s%3Acret').toString('base64')}`) return json({}, 401);
			return json(this.opaque.get(new URLSearchParams(body).get('token')) ?? { active: false });
		}
		return json({}, 404);
	}
	claims(audience, more = {}) {
		const now = Math.floor(Date.now() / 1000);
		return { iss: this.url, aud: audience, exp: now + 300, iat: now, sub: 'ann-1', owner: 'ann', client_id: 'app', scope: 'run files', ...more };
	}
	token(audience, more = {}, header = {}, key = this.keys.at(-1)) {
		return key.sign(this.claims(audience, more), header);
	}
	/* A token that says nothing by itself. */
	grant(audience, more = {}) {
		const text = createHash('sha256').update(String(Math.random())).digest('base64url');
		this.opaque.set(text, { active: true, ...this.claims(audience, more) });
		return text;
	}
	async stop() {
		this.server.closeAllConnections();
		this.server.close();
		await once(this.server, 'close');
	}
}
