/*
 * protocol.js - the protocol's own JSON schemas, one a revision, and what of a message they say.
 *
 * The schemas stand as object literals in the program of the official conformance suite, which is installed with the clients at an exact
 * version; they are cut out of it and checked for what tells the revisions apart, so that a new version of the suite can only fail here, not
 * pass by holding something else. 2024-11-05 is not among them and is judged by 2025-03-26 without four definitions that came with it: audio,
 * batches and the annotations of tools. That is less than its own schema would say: members that 2025-03-26 added to objects pass, and
 * nothing here proves that the two agree in all else.
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

/* The tasks extension of 2026-07-28 is no part of the core schema; its own text says this. */
const TASK = {
	type: 'object', required: ['resultType', 'taskId', 'status', 'createdAt', 'lastUpdatedAt', 'ttlMs'],
	properties: {
		taskId: { type: 'string', minLength: 1 }, status: { enum: ['working', 'input_required', 'completed', 'failed', 'cancelled'] }, statusMessage: { type: 'string' },
		createdAt: { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\dT.*Z$' }, lastUpdatedAt: { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\dT.*Z$' },
		ttlMs: { type: ['integer', 'null'], minimum: 0 }, pollIntervalMs: { type: 'integer', minimum: 0 }, ttl: false, pollInterval: false, requestState: false, task: false,
	},
};
const when = (status, member) => ({ if: { properties: { status: { const: status } } }, then: { required: [member] }, else: { properties: { [member]: false } } });
const NAMED = { type: 'object', required: ['params'], properties: { params: { type: 'object', required: ['taskId', '_meta'], properties: { taskId: { type: 'string' } } } } };
const EXTENSION = {
	$defs: {
		CreateTaskResult: { ...TASK, properties: { ...TASK.properties, resultType: { const: 'task' }, result: false, error: false, inputRequests: false } },
		GetTaskResult: {
			...TASK, properties: { ...TASK.properties, resultType: { const: 'complete' } },
			allOf: [when('completed', 'result'), when('failed', 'error'), when('input_required', 'inputRequests')],
		},
		AckResult: { type: 'object', required: ['resultType'], properties: { resultType: { const: 'complete' }, taskId: false, status: false } },
		GetTaskRequest: NAMED,
		CancelTaskRequest: NAMED,
		UpdateTaskRequest: { ...NAMED, properties: { params: { ...NAMED.properties.params, required: ['taskId', '_meta', 'inputResponses'] } } },
	},
};
/* Nor is the extension of skills, which all revisions have. */
const SKILL = {
	type: 'object', required: ['uri', 'frontmatter', 'resources'],
	properties: {
		uri: { type: 'string', pattern: '/SKILL\\.md$' },
		frontmatter: { type: 'object', required: ['name', 'description'], properties: { name: { type: 'string' }, description: { type: 'string' } } },
		resources: {
			type: 'array', minItems: 1, maxItems: 512,
			items: {
				type: 'object', required: ['uri', 'digest', 'size'],
				properties: { uri: { type: 'string' }, digest: { type: 'string', pattern: '^sha256:[0-9a-f]{64}$' }, size: { type: 'integer', minimum: 0 } },
			},
		},
	},
};
const ASKED = { type: 'object', properties: { params: { type: 'object' } } };
const BY_URI = { type: 'object', required: ['params'], properties: { params: { type: 'object', required: ['uri'], properties: { uri: { type: 'string' } } } } };
const SKILLS = {
	$defs: {
		ListSkillsRequest: ASKED, GetSkillRequest: BY_URI, ReadResourceDirectoryRequest: BY_URI,
		ListSkillsResult: { type: 'object', required: ['skills'], properties: { skills: { type: 'array', items: SKILL } } },
		GetSkillResult: { type: 'object', required: ['skill'], properties: { skill: SKILL, nextCursor: false } },
		ReadResourceDirectoryResult: {
			type: 'object', required: ['resources'],
			properties: { resources: { type: 'array', items: { type: 'object', required: ['uri', 'name'], properties: { uri: { type: 'string' }, name: { type: 'string' } } } } },
		},
	},
};
const SKILLS_METHODS = {
	'skills/list': ['ListSkillsRequest', 'ListSkillsResult'], 'skills/get': ['GetSkillRequest', 'GetSkillResult'],
	'resources/directory/read': ['ReadResourceDirectoryRequest', 'ReadResourceDirectoryResult'],
};
const EXTENSION_METHODS = { /* request and result */
	'tasks/get': ['GetTaskRequest', 'GetTaskResult'], 'tasks/cancel': ['CancelTaskRequest', 'AckResult'], 'tasks/update': ['UpdateTaskRequest', 'AckResult'],
};

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
	return { '2024-11-05': without(found[0], ['AudioContent', 'JSONRPCBatchRequest', 'JSONRPCBatchResponse', 'ToolAnnotations']), '2025-03-26': found[0], '2025-06-18': found[1], '2025-11-25': found[2], '2026-07-28': found[3] };
}

/* The schema without these definitions: whatever refers to them is no choice and no member any more. */
function without(schema, names) {
	const gone = names.map((name) => `#/definitions/${name}`);
	const copy = JSON.parse(JSON.stringify(schema), (key, value) => {
		if (Array.isArray(value)) return value.filter((one) => !gone.includes(one?.$ref));
		return gone.includes(value?.$ref) ? undefined : value;
	});
	for (const name of names) delete copy.definitions[name];
	return copy;
}

class Revision {
	constructor(schema, extension) {
		const key = schema.$defs ? '$defs' : 'definitions';
		this.ajv = schema.$defs ? new Ajv2020(options) : new Ajv07(options);
		this.ajv.addSchema(structuredClone(schema), 'mcp'); /* of this realm, not the literal's */
		if (extension) this.ajv.addSchema(extension, 'tasks');
		this.ajv.addSchema(SKILLS, 'skills');
		this.extended = Boolean(extension);
		this.definitions = schema[key];
		this.path = `mcp#/${key}/`;
		this.ofMethod = {};
		for (const [name, definition] of Object.entries(this.definitions)) {
			const method = definition.properties?.method?.const;
			if (method) this.ofMethod[method] = name;
		}
	}
	/* What is wrong with a value as the definition has it; '' for nothing. */
	wrong(name, value, path = this.path) {
		const validate = this.ajv.getSchema(path + name);
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
		if (SKILLS_METHODS[method]) return this.wrong(SKILLS_METHODS[method][1], message.result, 'skills#/$defs/');
		const { resultType, task } = message.result ?? {};
		const extended = this.extended && (EXTENSION_METHODS[method]?.[1] ?? (resultType === 'task' && 'CreateTaskResult'));
		if (extended) return this.wrong(extended, message.result, 'tasks#/$defs/');
		let result = this.ofMethod[method]?.replace(/Request$/, 'Result');
		if (resultType === 'input_required') result = 'InputRequiredResult';
		if (task) result = this.name('CreateTaskResult');
		if (result && result in this.definitions) return this.wrong(result, message.result);
		return this.wrong(this.name('JSONRPCResultResponse', 'JSONRPCResponse'), message);
	}
	/* A result that a client sent; `method` is that of our request which it answers. */
	wrongAnswer(message, method) {
		const result = this.ofMethod[method]?.replace(/Request$/, 'Result');
		return result && result in this.definitions ? this.wrong(result, message.result) : this.wrongMessage(message);
	}
	/* A request that was answered with a result. */
	wrongRequest(request) {
		if (this.extended && EXTENSION_METHODS[request.method]) return this.wrong(EXTENSION_METHODS[request.method][0], request, 'tasks#/$defs/');
		if (SKILLS_METHODS[request.method]) return this.wrong(SKILLS_METHODS[request.method][0], request, 'skills#/$defs/');
		const name = this.ofMethod[request.method];
		return name ? this.wrong(name, request) : 'no such method in this revision';
	}
}

const all = Object.fromEntries(Object.entries(schemas()).map(([revision, schema]) => [revision, new Revision(schema, revision === '2026-07-28' && EXTENSION)]));
export const LATEST = '2026-07-28', LATEST_LEGACY = '2025-11-25';
export const revision = (name) => all[name];
