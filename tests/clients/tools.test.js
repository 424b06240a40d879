/*
 * tools.test.js - what tools/list costs a model, and whether the services that models run at take its schemas.
 *
 * Each service takes a part of JSON Schema. The rules are those that they publish (OpenAI: structured outputs, supported schemas, in strict
 * mode; Gemini: Schema of the API's function declarations; Anthropic: tool names), after what every client does on the way: it makes what is
 * optional nullable and required for OpenAI, and leaves additionalProperties out for Gemini.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encode } from 'gpt-tokenizer';
import { Stack } from './stack.js';

const TOKENS_MAX = 2000; /* of all tools of our own, as a model sees them: JSON with name, description and parameters */
const CHARACTERS_MAX = 8000; /* of the same */
const DESCRIPTION_MAX = 1024;
const TIMEOUT_MS = 120_000;

const OPENAI = {
	string: ['pattern', 'format', 'enum'], integer: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'], boolean: [],
	array: ['items', 'minItems', 'maxItems'], object: ['properties', 'required', 'additionalProperties'],
};
const OPENAI_LEVELS_MAX = 10;
const GEMINI = [
	'type', 'format', 'title', 'description', 'nullable', 'enum', 'maxItems', 'minItems', 'properties', 'required', 'minProperties', 'maxProperties',
	'minLength', 'maxLength', 'pattern', 'example', 'anyOf', 'propertyOrdering', 'default', 'items', 'minimum', 'maximum',
];

/* Every schema within this one, itself included: [path, schema, level]. */
function* parts(schema, path = '', level = 1) {
	yield [path, schema, level];
	for (const [name, part] of Object.entries(schema.properties ?? {})) yield* parts(part, `${path}.${name}`, level + 1);
	if (schema.items) yield* parts(schema.items, `${path}[]`, level + 1);
}

function wrongForOpenAi(path, schema, level) {
	const known = OPENAI[schema.type];
	if (!known) return `${path}: type ${JSON.stringify(schema.type)}`;
	const unknown = Object.keys(schema).find((key) => !['type', 'description', ...known].includes(key));
	if (unknown) return `${path}: ${unknown}`;
	if (schema.type === 'object' && schema.additionalProperties !== false) return `${path}: free members`;
	if (schema.type === 'array' && !schema.items) return `${path}: an array of anything`;
	return level > OPENAI_LEVELS_MAX && `${path}: ${level} levels`;
}

function wrongForGemini(path, { additionalProperties, ...schema }) {
	const unknown = Object.keys(schema).find((key) => !GEMINI.includes(key));
	if (unknown) return `${path}: ${unknown}`;
	if (schema.type === 'object' && !Object.keys(schema.properties ?? {}).length) return `${path}: an object without properties`;
	if (schema.type === 'array' && !schema.items) return `${path}: an array without items`;
	if (schema.enum && (schema.type !== 'string' || schema.enum.includes(''))) return `${path}: an enum that is not of texts`;
	return schema.required?.some((name) => !schema.properties[name]) && `${path}: requires what it does not have`;
}

async function ask(stack, method, params = {}, token = stack.token) {
	const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', Accept: 'application/json' };
	const answer = await fetch(stack.url, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }) });
	return (await answer.json()).result;
}

async function listed(env, use) {
	const stack = await Stack.start({ env });
	try {
		const { tools } = await ask(stack, 'tools/list', {}, stack.printed);
		await use?.(tools, (name, args) => ask(stack, 'tools/call', { name, arguments: args }));
		return tools;
	} finally {
		await stack.stop();
	}
}

/* What several SDKs send for members that are not given: null, for each optional one of each tool. */
async function takesNull(tools, call) {
	const conversation = { conversationId: 'null' };
	await call('write_file', { ...conversation, path: 'a', content: 'x' });
	const ran = await call('run_code', { ...conversation, language: 'bash', code: 'echo 1' });
	const given = { ...conversation, executionId: ran.structuredContent.execution_id, language: 'bash', code: 'true', path: 'a', paths: ['a'], filename: 'a', content: 'YQ==' };
	for (const { name, inputSchema: { properties, required = [] } } of tools) {
		const needed = name === 'write_file' ? [...required, 'content'] : required;
		const args = Object.fromEntries(Object.keys(properties).map((member) => [member, needed.includes(member) ? given[member] : null]));
		const result = await call(name, args);
		if (name === 'reset_session') assert.equal(result.content[0].text, 'There was no session to end.');
		else assert.ok(result && !result.isError, `${name} ${JSON.stringify(args)}: ${JSON.stringify(result)}`);
	}
}

const asSeen = ({ name, description, inputSchema }) => ({ name, description, parameters: inputSchema });

test('every service takes the list of tools', { timeout: TIMEOUT_MS }, async (t) => {
	const own = await listed({}, takesNull), all = await listed({ SALLYPORT_TOOLS_SETS: 'isolator,interpreter,bridge,snippets', SALLYPORT_NETWORK_ALLOW: 'example.org:443' });
	assert.ok(all.length > own.length);
	await t.test(`at most ${TOKENS_MAX} tokens`, () => {
		const each = own.map((tool) => [tool.name, encode(JSON.stringify(asSeen(tool))).length]);
		const sum = each.reduce((total, [, tokens]) => total + tokens, 0);
		console.log(`# ${sum} tokens: ${each.map((pair) => pair.join(' ')).join(', ')}`);
		assert.ok(sum <= TOKENS_MAX, String(sum));
	});
	await t.test(`at most ${CHARACTERS_MAX} characters`, () => {
		const sum = own.reduce((total, tool) => total + JSON.stringify(asSeen(tool)).length, 0);
		assert.ok(sum <= CHARACTERS_MAX, String(sum));
	});
	for (const tool of all) {
		await t.test(tool.name, () => {
			assert.match(tool.name, /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/);
			assert.ok(tool.description.length <= DESCRIPTION_MAX, String(tool.description.length));
			assert.equal(tool.inputSchema.type, 'object');
			assert.equal(tool.outputSchema, undefined);
			/* Other systems' tools are as they are there: one of them takes nothing at all. */
			if (!Object.keys(tool.inputSchema.properties).length) return assert.equal(tool.name, 'stop_sandbox');
			for (const part of parts(tool.inputSchema)) {
				for (const wrong of [wrongForOpenAi, wrongForGemini]) assert.ok(!wrong(...part), `${wrong.name}: ${tool.name}${wrong(...part)}`);
			}
		});
	}
	await t.test('the rules find what breaks them', () => {
		const free = { type: 'object', additionalProperties: { type: 'string' } };
		assert.match(wrongForOpenAi('.a', free, 1), /free members/);
		assert.match(wrongForGemini('.a', free), /without properties/);
		assert.match(wrongForOpenAi('.a', { type: 'string', minLength: 1 }, 1), /minLength/);
		assert.match(wrongForGemini('.a', { type: 'integer', enum: [1] }), /enum/);
		assert.match(wrongForGemini('.a', { type: 'object', properties: { b: {} }, required: ['c'] }), /requires/);
	});
});
