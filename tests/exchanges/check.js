/*
 * check.js - judges what the gateways of a test run and their clients said (recorder.c): the last suite of `make test`, over the record of all
 * others.
 *
 * Every message against the protocol's own schema of the revision that is spoken, every accepted call of a tool against the schemas that tools/list
 * shows. SP_EXCHANGES names the record. After a whole run (SP_EXCHANGES_WHOLE=yes) every tool must have been called with success: those that
 * are listed anywhere, and those that stand in cgi/tool/tool_*.c, whether any test switched them on or not.
 */
import assert from 'node:assert/strict';
import { createReadStream, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';
import { test } from 'node:test';
import { Ajv2020, LATEST, LATEST_LEGACY, revision } from './protocol.js';

const SHOWN = 10; /* findings of one kind, and bytes … */
const SHOWN_BYTES = 1500; /* … of the message that each is about */
const FIXTURE = 'Conformance fixture'; /* some must fail, and what becomes of them is the official suite's own business */
const root = path.resolve(import.meta.dirname, '../..');
const record = process.env.SP_EXCHANGES;
const findings = { message: [], request: [], client: [], id: [], schema: [], arguments: [], result: [] };
const tasks = new Map(); /* id: the tool that was called */
const questions = new Map(); /* process and id: the method of what we asked a client */
const listed = new Set(), called = new Set();
let messages = 0, unasked = 0, received = 0, calls = 0;

function find(kind, what, line) {
	findings[kind].push(`${what}\n  protocol ${line.protocol ?? 'none'}, process ${line.pid}: ${JSON.stringify({ ...line, tool: undefined }).slice(0, SHOWN_BYTES)}`);
}

/* A misspelt keyword in one of our schemas is an error: strict. Those of one run are few, and compiled once. */
const ajv = new Ajv2020({ strict: true, allErrors: true, validateFormats: false, allowUnionTypes: true, strictRequired: false });
ajv.addVocabulary(['x-mcp-header', '$anchor']);
const compiled = new Map();
function validator(schema, line) {
	const text = JSON.stringify(schema);
	if (!compiled.has(text)) {
		let validate = null;
		try {
			validate = ajv.compile(schema);
		} catch (error) {
			find('schema', error.message, line);
		}
		compiled.set(text, validate);
	}
	return compiled.get(text);
}

function checkMessage(line) {
	const { message, request } = line;
	const answers = 'result' in message || 'error' in message;
	let { protocol } = line;
	if (!request && protocol) { /* on a session's own stream */
		unasked++;
		if (answers && !message.error) find('message', 'a result that belongs to no request', line);
	} else if (!request) { /* refused before anybody knew the revision; without an id JSON-RPC wants null where the schemas want nothing */
		assert.ok(message.error);
		protocol = LATEST;
		if (message.id === null) delete message.id;
	}
	protocol ??= LATEST_LEGACY; /* an `initialize` that was not understood */
	const wrong = revision(protocol).wrongMessage(message, request?.method);
	if (wrong) find('message', wrong, line);
	if (request && answers && message.id !== request.id) find('id', `${message.id} is not ${request.id}`, line);
	if (request && message.result && message.result.resultType !== 'input_required') { /* that asks again after a bad answer, too */
		const bad = revision(protocol).wrongRequest(request);
		if (bad) find('request', bad, line);
	}
}

/* What a client sent besides requests. An answer is held against what we asked. */
function checkReceived(line) {
	const { pid, protocol, message } = line;
	const method = questions.get(`${pid} ${message.id}`);
	received++;
	const wrong = message.result ? revision(protocol).wrongAnswer(message, method) : revision(protocol).wrongMessage(message);
	if (wrong) find('client', wrong, line);
}

/* server__tool is another server's (tools.upstream): its description and schemas are not ours. */
const foreign = (tool) => tool.name.includes('__');

function checkList(line) {
	for (const tool of line.message.result.tools) {
		if (foreign(tool)) continue;
		if (!tool.description.startsWith(FIXTURE)) listed.add(tool.name);
		for (const schema of [tool.inputSchema, tool.outputSchema]) if (schema) validator(schema, line);
	}
}

/* Arguments may be written in more ways than the schema says: null is not given, a map may be an object, a language's name has aliases, and
 * unknown members are ignored. */
function asMeant(value, schema) {
	if (schema.items?.properties?.value && value && !Array.isArray(value) && typeof value === 'object') return Object.entries(value).map(([name, text]) => ({ name, value: text }));
	if (Array.isArray(value)) return value.map((item) => asMeant(item, schema.items ?? {}));
	if (schema.enum?.includes('python') && typeof value === 'string') return schema.enum[0];
	if (!schema.properties || typeof value !== 'object') return value;
	return Object.fromEntries(Object.entries(value).filter(([name, item]) => item !== null && schema.properties[name]).map(([name, item]) => [name, asMeant(item, schema.properties[name])]));
}

const detailsOf = (result) => result.structuredContent ?? result._meta?.['sallyport/result'];

/* A refusal is a result with isError and no details, or with those of run_python and no exit code; what was not refused has taken its arguments. */
function checkCall(line) {
	const { request, tool, message: { result } } = line;
	if (foreign(request.params)) return;
	if (!tool) {
		find('result', 'a result of a tool that is not listed', line);
		return;
	}
	const details = detailsOf(result);
	if (result.isError && (!details || (details.status && !('exitCode' in details)))) return;
	calls++;
	const input = validator(tool.inputSchema, line);
	if (input && !input(asMeant(request.params.arguments ?? {}, tool.inputSchema))) find('arguments', ajv.errorsText(input.errors), line);
	const task = result.task?.taskId ?? (result.resultType === 'task' && result.taskId);
	if (task) tasks.set(task, tool);
	else if ((result.resultType ?? 'complete') === 'complete') checkResult(result, tool, line);
}

function checkResult(result, tool, line) {
	const { isError, structuredContent: details } = result; /* what is in _meta leaves out nulls and output */
	const output = tool.outputSchema && validator(tool.outputSchema, line);
	if (isError && !details) return;
	if (output && !detailsOf(result)) find('result', 'no details though there is an output schema', line);
	else if (output && details && !output(details)) find('result', ajv.errorsText(output.errors), line);
	if (!isError) called.add(tool.name);
}

/* What became of a call that was answered with a task: asked for by name, or inside of the task. */
function checkTask(line) {
	const { request, message: { result } } = line;
	const tool = tasks.get(request.params.taskId);
	const outcome = request.method === 'tasks/result' ? result : result.result;
	if (tool && outcome) checkResult(outcome, tool, line);
}

for await (const text of readline.createInterface({ input: createReadStream(record), crlfDelay: Infinity })) {
	const line = JSON.parse(text);
	messages++;
	if (line.received) {
		checkReceived(line);
		continue;
	}
	checkMessage(line);
	if (line.message.method && 'id' in line.message) questions.set(`${line.pid} ${line.message.id}`, line.message.method);
	if (!line.message.result || !line.request) continue;
	if (line.request.method === 'tools/list') checkList(line);
	if (line.request.method === 'tools/call') checkCall(line);
	if (['tasks/get', 'tasks/result'].includes(line.request.method)) checkTask(line);
}

function none(kind) {
	const found = findings[kind];
	assert.ok(found.length === 0, `${found.length} found, the first ones:\n${found.slice(0, SHOWN).join('\n')}`);
}

test('every message fits the schema of its revision', (t) => {
	t.diagnostic(`${messages} messages, of them ${unasked} on streams that belong to no request, and ${received} of clients`);
	assert.ok(messages > 0);
	none('message');
});
test('every request that got a result fits it, too', () => none('request'));
test('every notification and every answer of a client fits, too', () => none('client'));
test('every answer has the id of its request', () => none('id'));
test('the schemas of the tools are proper ones', (t) => {
	t.diagnostic(`${compiled.size} schemas`);
	none('schema');
});
test('every call that was not refused has arguments that fit the input schema', (t) => {
	t.diagnostic(`${calls} calls`);
	none('arguments');
});
test('every structured result fits the output schema', () => none('result'));
test('every tool was called with success', { skip: process.env.SP_EXCHANGES_WHOLE !== 'yes' && 'only a part of the suites ran' }, () => {
	const sources = globSync('cgi/tool/tool_*.c', { cwd: root }).map((file) => readFileSync(path.join(root, file), 'utf8'));
	const ours = sources.flatMap((text) => text.split(/^const struct tool (?=\w)/m).slice(1)).map((text) => /\.name = "(\w+)"/.exec(text)[1]);
	assert.ok(ours.includes('run_code'));
	assert.deepEqual([...listed.union(new Set(ours))].filter((name) => !called.has(name)).sort(), []);
});
