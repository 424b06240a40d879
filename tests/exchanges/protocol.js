/*
 * protocol.js - the protocol's own JSON schemas, one a revision, and what of a message they say.
 *
 * The schemas stand as object literals in the program of the official conformance suite, which is installed with the clients at an exact
 * version; they are cut out of it and checked for what tells the revisions apart, so that a new version of the suite can only fail here, not
 * pass by holding something else. 2024-11-05 is judged by 2025-03-26, which only added to it.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import vm from 'node:vm';

const require = createRequire(new URL('../clients/package.json', import.meta.url));
const Ajv07 = require('ajv').default;
export const Ajv2020 = require('ajv/dist/2020.js').default;
const suite = new URL('../clients/node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url);
const options = { strict: false, allErrors: true, validateFormats: false };

/* From the brace at `start` to the one that closes it. */
function literal(text, start) {
	for (let i = start, depth = 0; i < text.length; i++) {
		if ('`"\''.includes(text[i])) {
			for (const quote = text[i++]; text[i] !== quote; i++) if (text[i] === '\\') i++;
		} else if (text[i] === '{') depth++;
		else if (text[i] === '}' && --depth === 0) return text.slice(start, i + 1);
	}
	throw new Error('the literal has no end');
}

function schemas() {
	const text = readFileSync(suite, 'utf8');
	const found = [...text.matchAll(/=\{\$schema:`/g)].map(({ index }) => vm.runInNewContext(`(${literal(text, index + 1)})`));
	const has = (schema, ...names) => names.map((name) => name in (schema.$defs ?? schema.definitions));
	assert.deepEqual(found.map((schema) => has(schema, 'JSONRPCBatchRequest', 'ResourceLink', 'GetTaskRequest', 'DiscoverRequest')), [
		[true, false, false, false], [false, true, false, false], [false, true, true, false], [false, true, false, true],
	], 'the schemas of 2025-03-26, 2025-06-18, 2025-11-25 and 2026-07-28');
	for (const { $defs, definitions } of [found[1], found[2]]) { /* written as integers by the generator, numbers in the protocol's text */
		for (const property of Object.values(($defs ?? definitions).NumberSchema.properties)) if (property.type === 'integer') property.type = 'number';
	}
	return { '2025-03-26': found[0], '2025-06-18': found[1], '2025-11-25': found[2], '2026-07-28': found[3] };
}

class Revision {
	constructor(schema) {
		const key = schema.$defs ? '$defs' : 'definitions';
		this.ajv = schema.$defs ? new Ajv2020(options) : new Ajv07(options);
		this.ajv.addSchema(structuredClone(schema), 'mcp'); /* of this realm, not the literal's */
		this.definitions = schema[key];
		this.path = `mcp#/${key}/`;
		this.ofMethod = {};
		for (const [name, definition] of Object.entries(this.definitions)) {
			const method = definition.properties?.method?.const;
			if (method) this.ofMethod[method] = name;
		}
	}
	/* What is wrong with a value as the definition has it; '' for nothing. */
	wrong(name, value) {
		const validate = this.ajv.getSchema(this.path + name);
		return validate(value) ? '' : `${name}: ${this.ajv.errorsText(validate.errors.slice(0, 4))}`;
	}
	/* The first of the names that this revision has. */
	name(...names) {
		return names.find((name) => name in this.definitions);
	}
	/* A message that the server sent; `method` is that of the request which it answers. */
	wrongMessage(message, method) {
		if (message.method) return this.wrong(this.ofMethod[message.method] ?? this.name('id' in message ? 'JSONRPCRequest' : 'JSONRPCNotification'), message);
		if (message.error) return this.wrong(this.name('JSONRPCErrorResponse', 'JSONRPCError'), message);
		const { resultType, task } = message.result ?? {};
		let result = this.ofMethod[method]?.replace(/Request$/, 'Result');
		if (resultType === 'input_required') result = 'InputRequiredResult';
		if (resultType === 'task' || task) result = this.name('CreateTaskResult');
		if (result && result in this.definitions) return this.wrong(result, message.result);
		return this.wrong(this.name('JSONRPCResultResponse', 'JSONRPCResponse'), message);
	}
	/* A request that was answered with a result. */
	wrongRequest(request) {
		const name = this.ofMethod[request.method];
		return name ? this.wrong(name, request) : 'no such method in this revision';
	}
}

const all = Object.fromEntries(Object.entries(schemas()).map(([revision, schema]) => [revision, new Revision(schema)]));
all['2024-11-05'] = all['2025-03-26'];
export const LATEST = '2026-07-28', LATEST_LEGACY = '2025-11-25';
export const revision = (name) => all[name];
