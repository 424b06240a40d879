/*
 * bridge.test.js - programs call the tools of real MCP servers: server-everything, server-filesystem and server-memory from npm, through a
 * whole Sallyport; what the client sees, what the record holds, and a replay without any server.
 */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Stack, makeState, root } from './stack.js';

const TIMEOUT_MS = 180_000;
const node = path.join(root, 'jail/runners/npm/node_modules/.bin/node');
const server = (name) => path.join(root, `tests/clients/node_modules/@modelcontextprotocol/server-${name}/dist/index.js`);
const open = { jail: false, tools: { allow: ['*'] } };

let stack;
before(async () => {
	const state = makeState();
	const folder = path.join(state, 'files');
	mkdirSync(folder);
	chmodSync(folder, 0o777); /* as root the services run as www-data */
	writeFileSync(path.join(folder, 'notes.txt'), 'one\ntwo TODO\n');
	const file = path.join(state, 'upstream.json');
	writeFileSync(
		file,
		JSON.stringify({
			mcpServers: {
				everything: { command: node, args: [server('everything')], description: 'All kinds of results', ...open },
				files: { command: node, args: [server('filesystem'), folder], ...open },
				memory: { command: node, args: [server('memory')], env: { MEMORY_FILE_PATH: path.join(folder, 'memory.json') }, ...open, tools: { allow: ['read_*', 'create_*'], deny: ['delete_*'] } },
				broken: { command: '${SP_NO_SUCH_VARIABLE}', ...open },
			},
		}),
		{ mode: 0o644 },
	);
	stack = await Stack.start({ state, env: { SALLYPORT_UPSTREAM_FILE: file } });
});
after(async () => {
	stack?.complaints();
	await stack?.stop();
});

test('Python calls real servers; values, failures, images', { timeout: TIMEOUT_MS }, async () => {
	const code = `
from tools import files, everything
import tools
print(everything.echo(message='hello'))
print(everything.get_sum(a=2, b=3))
text = files.read_text_file(path=files.list_allowed_directories()['content'].splitlines()[-1] + '/notes.txt')
print([line for line in text['content'].splitlines() if 'TODO' in line])
try:
    files.read_text_file(path='/etc/passwd')
except tools.ToolError as error:
    print(error.kind, 'denied' in error.text)
image = next(block for block in everything.get_tiny_image() if block.type == 'image')
print(image.mime, len(image.data) > 100, image.save('/data/tiny.png'))
`;
	const result = await stack.run({ language: 'python', code, servers: ['everything', 'files'] });
	assert.equal(result.stderr, '');
	assert.equal(result.stdout, "Echo: hello\nThe sum of 2 and 3 is 5.\n['two TODO']\ntool True\nimage/png True /data/tiny.png\n");
	assert.deepEqual(result.toolCalls.map((call) => `${call.server}.${call.tool} ${call.state}`), [
		'everything.echo done', 'everything.get-sum done', 'files.list_allowed_directories done', 'files.read_text_file done',
		'files.read_text_file failed', 'everything.get-tiny-image done',
	]);
	assert.equal(result.files.created[0].name, 'tiny.png');
});

test('JavaScript, TypeScript and bash call them', { timeout: TIMEOUT_MS }, async () => {
	const script = "import { everything } from 'tools';\nconsole.log(await everything.echo({ message: 'x' }));\n";
	assert.equal((await stack.run({ language: 'javascript', code: script, servers: ['everything'] })).stdout, 'Echo: x\n');
	assert.equal((await stack.run({ language: 'typescript', code: script, servers: ['everything'] })).stdout, 'Echo: x\n');
	const bash = await stack.run({ language: 'bash', code: 'mcp call everything.echo message=x; mcp tools memory | head -1', servers: ['everything', 'memory'] });
	assert.match(bash.stdout, /^Echo: x\nmemory\.create_entities\(/);
});

test('calls at once take the time of one', { timeout: TIMEOUT_MS }, async () => {
	const code = `
import asyncio, time
begin = time.monotonic()
done = await asyncio.gather(*[tools.everything.trigger_long_running_operation(duration=2, steps=2) for _ in range(8)])
print(len(done), time.monotonic() - begin < 8)
done = await asyncio.gather(*[tools.everything.get_sum(a=n, b=n) for n in range(192)])
print(len(set(done)))
try:
    await tools.everything.echo(message='one more')
except tools.LimitReached as error:
    print(error.text)
`;
	const result = await stack.run({ language: 'python', code, servers: ['everything'] });
	assert.equal(result.stdout + result.stderr, '8 True\n192\nthis run has made 200 calls, the limit\n');
});

test('policy, unknown servers, a server that is not configured completely', { timeout: TIMEOUT_MS }, async () => {
	const code = `
import tools
print(tools.memory.create_entities(entities=[{'name': 'a', 'entityType': 't', 'observations': []}])['entities'][0]['name'])
try: tools.memory.delete_entities(entityNames=['a'])
except tools.Denied as error: print(error.kind)
`;
	const result = await stack.run({ language: 'python', code, servers: ['memory'] });
	assert.equal(result.stdout, 'a\ndenied\n', result.stderr);
	const refused = async (servers) => (await stack.call('run_code', { conversationId: 'test', language: 'python', code: 'print(1)', servers })).result;
	for (const [servers, says] of [[['everythin'], /everything/], [['broken'], /SP_NO_SUCH_VARIABLE/]]) {
		const answer = await refused(servers);
		assert.equal(answer.isError, true);
		assert.match(answer.content[0].text, says);
	}
});

test('a live session: each call has its own servers', { timeout: TIMEOUT_MS }, async () => {
	const session = (language, code, servers) => stack.run({ language, code, session: true, conversationId: `live-${language}`, ...(servers ? { servers } : {}) });
	assert.equal((await session('python', "x = tools.everything.echo(message='a')\nprint(x)", ['everything'])).stdout, 'Echo: a\n');
	assert.equal((await session('python', "print(x, await tools.memory.read_graph.aio() is not None)", ['memory'])).stdout, 'Echo: a True\n');
	const without = await session('python', "import tools\ntry: tools.call('everything', 'echo', {'message': 'a'})\nexcept tools.ToolError as e: print(e.kind)");
	assert.equal(without.stdout, 'unavailable\n');
	assert.equal((await session('javascript', "var y = await tools.everything.echo({ message: 'b' });\nconsole.log(y)", ['everything'])).stdout, 'Echo: b\n');
	assert.equal((await session('javascript', "import { memory } from 'tools';\nconsole.log(y, typeof (await memory.read_graph({})))", ['memory'])).stdout, 'Echo: b object\n');
});

test('the record shows the calls, and answers them again without any server', { timeout: TIMEOUT_MS }, async () => {
	const code = `
import asyncio
numbers = await asyncio.gather(*[tools.everything.get_sum(a=n, b=1) for n in range(5)])
print(sorted(numbers), await tools.everything.echo(message='same'), await tools.everything.echo(message='same'))
try: await tools.files.read_text_file(path='/etc/passwd')
except RuntimeError as error: print(error.kind)
`;
	const made = await stack.run({ language: 'python', code, servers: ['everything', 'files'] });
	assert.equal(made.verdict, 'OK', made.stderr);
	const shown = await stack.cli(['show', made.execution_id]);
	assert.match(shown.stdout, /tools of everything, files\n.*TOOL.*\n.*done +allow .*everything\.get-sum/);
	const { toolCalls } = JSON.parse((await stack.cli(['show', '--json', made.execution_id])).stdout);
	assert.equal(toolCalls.length, 8);
	assert.deepEqual(toolCalls.filter((call) => call.tool === 'echo').map((call) => call.occurrence), [0, 1]);
	const same = await stack.cli(['replay', made.execution_id]);
	assert.equal(same.code, 0, same.stdout + same.stderr);
	const random = await stack.run({ language: 'python', code: 'import random\nprint(tools.everything.echo(message=str(random.random())) != "")', servers: ['everything'] });
	const other = await stack.cli(['replay', random.execution_id]);
	assert.match(other.stdout + other.stderr, /diverged/);
	assert.match(other.stdout + other.stderr, /call 1, everything\.echo with \{"message":"0\.\d+"\}, was not made then/);
});

test('what a program waits for tools is not its wall clock time', { timeout: TIMEOUT_MS }, async () => {
	const waits = 'print(tools.everything.trigger_long_running_operation(duration=4, steps=1) != "")';
	const result = await stack.run({ language: 'python', code: waits, servers: ['everything'], timeout_seconds: 2 });
	assert.equal(result.verdict, 'OK', result.message);
	const busy = await stack.run({ language: 'python', code: `${waits}\nwhile True: pass`, servers: ['everything'], timeout_seconds: 2 });
	assert.equal(busy.verdict, 'TO');
});

/* What a model reads and writes, in characters: the same task by calls of its own, and by one program. */
test('a thousand records from one tool, ten to another: one program is far less text', { timeout: TIMEOUT_MS }, async (t) => {
	const entities = Array.from({ length: 1000 }, (_, n) => ({ name: `order-${n}`, entityType: n % 100 ? 'fine' : 'late', observations: [`placed ${n}`, `value ${n * 7}`] }));
	await stack.run({ language: 'python', code: "import json\ntools.memory.create_entities(entities=json.load(open('in.json')))", servers: ['memory'], files: [{ filename: 'in.json', content: JSON.stringify(entities) }] });
	const code = `late = [e for e in tools.memory.read_graph()["entities"] if e["entityType"] == "late"]
for e in late:
    tools.files.write_file(path="${path.join(stack.state, 'files')}/" + e["name"] + ".txt", content=e["observations"][1])
print(len(late), "written")
`;
	const args = { conversationId: 'records', language: 'python', code, servers: ['memory', 'files'] };
	const { result } = await stack.call('run_code', args);
	const text = result.content.map((block) => block.text ?? '').join('');
	assert.match(text, /^10 written\n/);
	const { toolCalls } = JSON.parse((await stack.cli(['show', '--json', result._meta['sallyport/result'].execution_id])).stdout);
	assert.equal(toolCalls.length, 11);
	const shown = ({ name, description, inputSchema }) => JSON.stringify({ name, description, inputSchema }).length;
	const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
	const definitions = ['memory', 'filesystem'].flatMap((name) => JSON.parse(readFileSync(path.join(root, `tests/data/tools/${name}.json`), 'utf8')));
	const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} };
	const listed = await fetch(stack.url, {
		method: 'POST',
		headers: { ...stack.headers, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/list' },
		body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: meta } }),
	});
	const own = (await listed.json()).result.tools.find((tool) => tool.name === 'run_code');
	const direct = sum(definitions.map(shown)) + sum(toolCalls.map((call) => call.arguments.length + sum(JSON.parse(call.result).content.map((block) => block.text.length))));
	const program = shown(own) + JSON.stringify(args).length + text.length;
	t.diagnostic(`directly ${direct} characters, by a program ${program}: ${(direct / program).toFixed(1)} to 1`);
	assert.ok(direct / program > 10);
});
