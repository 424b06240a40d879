/*
 * browser.js - a person with a browser at the page of /authorize, as tests drive it: cookies, forms as they stand in the page, and what the last
 * page leads to. No scripts run, because the page has none.
 */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import http from 'node:http';

export const REDIRECT = 'http://localhost:3334/oauth/callback';

/* A verifier and its challenge (PKCE, S256). */
export function pkce() {
	const verifier = randomBytes(32).toString('base64url');
	return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') };
}

const unescaped = (text) =>
	text.replace(/&quot;/g, '"').replace(/&#39;/g, "'").replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&amp;/g, '&');

export class Page {
	constructor(response, text) {
		this.status = response.status;
		this.headers = response.headers;
		this.text = text;
		this.title = unescaped(/<h1>([^<]*)<\/h1>/.exec(text)?.[1] ?? '');
		this.problem = unescaped(/<p class="error" role="alert">([^<]*)<\/p>/.exec(text)?.[1] ?? '');
		this.words = unescaped(text.replace(/<style>.*<\/style>/s, '').replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' '));
	}
	/* The fields of its form that are hidden or ticked. */
	get fields() {
		const found = {};
		for (const [tag] of this.text.matchAll(/<input [^>]*>/g)) {
			const name = /name="([^"]*)"/.exec(tag)?.[1], value = unescaped(/value="([^"]*)"/.exec(tag)?.[1] ?? '');
			if (/type="hidden"/.test(tag) || / checked/.test(tag)) found[name] = value;
		}
		return found;
	}
	get offered() {
		return [...this.text.matchAll(/name="scope_([a-z]*)"/g)].map(([, scope]) => scope);
	}
	/* Where its refresh and its link lead: the same. */
	get onward() {
		const refresh = unescaped(/<meta http-equiv="refresh" content="0;url=([^"]*)">/.exec(this.text)?.[1] ?? '');
		const link = unescaped(/<a rel="noreferrer" href="([^"]*)">/.exec(this.text)?.[1] ?? '');
		if (refresh) assert.equal(refresh, link);
		return refresh ? new URL(refresh) : null;
	}
	get link() {
		const link = /<a rel="noreferrer" href="([^"]*)">/.exec(this.text)?.[1];
		return link ? new URL(unescaped(link)) : null;
	}
}

export class Browser {
	constructor(base) {
		this.base = base;
		this.cookies = new Map();
	}
	async #take(response) {
		for (const line of response.headers.getSetCookie()) {
			const [, name, value] = /^([^=]*)=([^;]*)/.exec(line);
			this.cookies.set(name, value);
			this.setCookie = line;
		}
		return new Page(response, await response.text());
	}
	get #cookie() {
		return this.cookies.size ? { Cookie: [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ') } : {};
	}
	async open(url) {
		return this.#take(await fetch(url, { headers: this.#cookie, redirect: 'manual' }));
	}
	async post(fields, headers = {}) {
		return this.#take(
			await fetch(`${this.base}/authorize`, {
				method: 'POST',
				headers: { Origin: this.base, 'Sec-Fetch-Site': 'same-origin', 'Content-Type': 'application/x-www-form-urlencoded', ...this.#cookie, ...headers },
				body: new URLSearchParams(fields).toString(),
				redirect: 'manual',
			}),
		);
	}
	/* From the address that the client opens to the one that it gets back; `untick`: scopes that the person does not want. */
	async approve(url, credential, { decision = 'approve', untick = [] } = {}) {
		const first = await this.open(url);
		assert.equal(first.status, 200, first.words);
		const second = await this.post({ ...first.fields, credential });
		assert.equal(second.status, 200, second.words);
		assert.equal(second.title, 'Allow this program?', second.words);
		const fields = { ...second.fields, decision };
		for (const scope of untick) delete fields[`scope_${scope}`];
		const last = await this.post(fields);
		assert.equal(last.status, 200, last.words);
		assert.ok(last.onward, last.words);
		return last.onward;
	}
}

/* An address of /authorize; a parameter that is undefined is left out. */
export function authorizeUrl(base, parameters) {
	const url = new URL('/authorize', base);
	for (const [name, value] of Object.entries({ response_type: 'code', code_challenge_method: 'S256', redirect_uri: REDIRECT, ...parameters }))
		if (value !== undefined) url.searchParams.set(name, value);
	return url.href;
}

/* As fetch, from another address of loopback: { status, headers, body }. */
export function fetchFrom(localAddress, url, { method = 'GET', headers = {}, body } = {}) {
	return new Promise((resolve, reject) => {
		const request = http.request(url, { method, headers, localAddress }, (response) => {
			let text = '';
			response.setEncoding('utf8').on('data', (data) => (text += data)).on('end', () => resolve({ status: response.statusCode, headers: response.headers, body: text }));
		});
		request.on('error', reject);
		request.end(body);
	});
}
