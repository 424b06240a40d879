/*
 * run_python.test.js - the tool set "bridge": run_python as the users of mcp-server-code-execution-mode know it. Real clients (both SDKs)
 * against a whole stack with real servers; members, status words and texts are that system's, written out.
 */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Stack, makeState, root } from './stack.js';

const TIMEOUT_MS = 180_000;
const URI = 'resource://mcp-server-code-execution-mode/capabilities';
const node = path.join(root, 'jail/runners/npm/node_modules/.bin/node');
const server = (name) => path.join(root, `tests/clients/node_modules/@modelcontextprotocol/server-${name}/dist/index.js`);
const open = { jail: false, tools: { allow: ['*'] } };

async function start(env = {}) {
	const state = makeState(), folder = path.join(state, 'files'), file = path.join(state, 'upstream.json');
	mkdirSync(folder);
	chmodSync(folder, 0o777); /* as root the services run as www-data */
	writeFileSync(path.join(folder, 'notes.txt'), 'one\ntwo TODO\n');
	const mcpServers = {
		everything: { command: node, args: [server('everything')], description: 'All kinds of results', ...open },
		files: { command: node, args: [server('filesystem'), folder], ...open },
	};
	writeFileSync(file, JSON.stringify({ mcpServers }), { mode: 0o644 });
	const stack = await Stack.start({ state, env: { SALLYPORT_TOOLS_SETS: 'bridge', SALLYPORT_UPSTREAM_FILE: file, ...env } });
	const client = new ClientV2({ name: 'test', version: '1' });
	await client.connect(new TransportV2(new URL(stack.url), { requestInit: { headers: stack.headers } }));
	return { stack, client, folder, python: (args) => client.callTool({ name: 'run_python', arguments: args }) };
}

let own;
before(async () => {
	own = await start();
});
after(async () => {
	await own?.client.close();
	await own?.stack.stop();
});
const python = (args) => own.python(args);
const answer = (result) => ({ text: result.content[0].text, form: result.structuredContent, isError: result.isError ?? false });

test('an answer has the form of that system', { timeout: TIMEOUT_MS }, async () => {
	const { tools } = await own.client.listTools();
	const { inputSchema } = tools.find((tool) => tool.name === 'run_python');
	assert.deepEqual(inputSchema.required, ['code']);
	assert.deepEqual(inputSchema.properties.servers.items.enum, ['everything', 'files']);
	assert.equal(inputSchema.properties.timeout.minimum, 1);
	assert.equal(inputSchema.properties.timeout.maximum, 120);
	assert.deepEqual(answer(await python({ code: "print('a')\nprint()\nprint('()')\nprint('b')" })), { text: 'a\nb', form: { stdout: ['a', 'b'] }, isError: false });
	assert.deepEqual(answer(await python({ code: 'x = 1' })), {
		text: 'Success (no output)', form: { summary: 'Success (no output)' }, isError: false,
	});
	assert.deepEqual(answer(await python({ code: "import sys\nprint('note', file=sys.stderr)" })), {
		text: 'stderr:\nnote', form: { stderr: ['note'], summary: 'Success' }, isError: false,
	});
});

test('a failure has the form of that system', { timeout: TIMEOUT_MS }, async () => {
	assert.deepEqual(answer(await python({ code: 'raise SystemExit(3)' })), {
		text: 'status: error\nSandbox error: Sandbox exited with code 3',
		form: { status: 'error', error: 'Sandbox exited with code 3', summary: 'Sandbox error: Sandbox exited with code 3' },
		isError: true,
	});
	assert.deepEqual(answer(await python({ code: "print('begins', flush=True)\nwhile True: pass", timeout: 1 })), {
		text: 'status: timeout\nbegins\nerror: Execution timed out after 1s',
		form: { status: 'timeout', stdout: ['begins'], timeoutSeconds: 1, error: 'Execution timed out after 1s', summary: 'Timeout: execution exceeded 1s' },
		isError: true,
	});
	for (const [args, says] of [
		[{}, "Missing 'code' argument"], [{ code: ' \n' }, "Missing 'code' argument"], [{ code: [7] }, "Missing 'code' argument"],
		[{ code: 'x', servers: 'files' }, "'servers' must be a list"], [{ code: 'x', timeout: 'soon' }, "'timeout' must be an integer"],
	])
		assert.deepEqual(answer(await python(args)), {
			text: `status: validation_error\n${says}\nerror: ${says}`, form: { status: 'validation_error', error: says, summary: says }, isError: true,
		});
	assert.match(answer(await python({ code: 'x', timeout: 121 })).form.error, /timeout: .*120/);
	const unknown = answer(await python({ code: 'x', servers: ['nobody'] }));
	assert.deepEqual(unknown, {
		text: 'status: error\nSandbox error: Unknown MCP server: nobody',
		form: { status: 'error', servers: ['nobody'], error: 'Unknown MCP server: nobody', summary: 'Sandbox error: Unknown MCP server: nobody' },
		isError: true,
	});
	assert.equal(answer(await python({ code: 'x', servers: ['everythin'] })).form.error, 'Unknown MCP server: everythin, did you mean "everything"?');
});

test('servers: proxies, modules, raw results', { timeout: TIMEOUT_MS }, async () => {
	const code = `
import asyncio
from mcp.servers.files import *
print((await mcp_everything.echo(message='hello'))['content'][0]['text'])
notes = '${path.join(own.folder, 'notes.txt')}'
first = await mcp_servers['files'].read_text_file(path=notes)
print(first == await read_text_file(path=notes), first['structuredContent'], first.get('isError'))
failed = await mcp_files.read_text_file(path='/etc/passwd')
print(failed['isError'], 'denied' in failed['content'][0]['text'])
print(LOADED_MCP_SERVERS, TOOL_MAP['read_text_file']['name'], len(TOOLS) == len(TOOL_MAP))
print([r['content'][0]['text'] for r in await asyncio.gather(*[mcp_everything.get_sum(a=n, b=1) for n in range(3)])])
`;
	const { text, form } = answer(await python({ code, servers: ['everything', 'files'] }));
	assert.deepEqual(form.servers, ['everything', 'files']);
	assert.equal(text, [
		'Echo: hello', "True {'content': 'one\\ntwo TODO\\n'} None", 'True True', "('everything', 'files') read_text_file True",
		"['The sum of 0 and 1 is 1.', 'The sum of 1 and 1 is 2.', 'The sum of 2 and 1 is 3.']",
	].join('\n'));
});

test('a program imports mcp.runtime', { timeout: TIMEOUT_MS }, async () => {
	const code = `
import mcp.runtime as runtime
print(runtime.discovered_servers(), runtime.discovered_servers(detailed=True)[0])
print(runtime.list_servers_sync(), await runtime.list_servers())
print(await runtime.query_tool_docs('everything', 'GET-SUM'))
print(runtime.query_tool_docs_sync('everything', 'get_sum', detail='full')[0]['inputSchema']['required'])
print([d['tool'] for d in await runtime.search_tool_docs('sum everything', limit=1)], runtime.search_tool_docs_sync(' '))
print(len(runtime.search_tool_docs_sync('everything', limit=99)) > 5, len(runtime.search_tool_docs_sync('everything', limit=-1)))
print(len(await runtime.list_tools('everything')) == len(runtime.list_tools_sync('everything')) == len(runtime.describe_server('everything')['tools']))
print([m['alias'] for m in runtime.list_loaded_server_metadata()], 'mcp.runtime' in runtime.capability_summary())
async def refused(coroutine):
    try: await coroutine
    except runtime.MCPError as error: print(error)
def fails(function, *args):
    try: function(*args)
    except runtime.MCPError as error: print(error)
await refused(runtime.call_tool('files', 'read_text_file', {}))
await refused(runtime.call_tool('everything', ''))
await refused(runtime.call_tool('everything', 'echo', 'text'))
await refused(runtime.query_tool_docs('everything', 'nothing'))
await refused(runtime.search_tool_docs(None))
await refused(runtime.search_tool_docs('x', limit='many'))
fails(runtime.list_tools_sync, 'files')
fails(runtime.describe_server, 'files')
`;
	const { text, form } = answer(await python({ code, servers: ['everything'] }));
	assert.equal(form.stderr, undefined, text);
	assert.equal(text, [
		"('everything', 'files') {'name': 'everything', 'description': 'All kinds of results'}", "('everything',) ('everything',)",
		"{'server': 'everything', 'serverAlias': 'everything', 'tool': 'get-sum', 'toolAlias': 'get_sum', 'description': 'Returns the sum of two numbers'}",
		"['a', 'b']", "['get-sum'] []", 'True 1', 'True', "['everything'] True",
		"Server 'files' is not available", 'Missing tool name', 'Arguments must be an object', "Tool 'nothing' not found for server everything",
		"Missing 'query' value", "'limit' must be an integer", "Server 'files' is not loaded", "Server 'files' is not loaded",
	].join('\n'));
});

test('without servers there is all but tools', { timeout: TIMEOUT_MS }, async () => {
	const code = "import mcp.runtime as runtime\nprint(mcp_servers, LOADED_MCP_SERVERS, runtime.discovered_servers(), runtime.list_servers_sync())";
	assert.equal(answer(await python({ code })).text, "{} () ('everything', 'files') ()");
});

test('save_tool keeps functions of one owner', { timeout: TIMEOUT_MS }, async () => {
	const saved = answer(await python({ code: "def double(x):\n    return x * 2\nprint(save_tool(double))" }));
	assert.equal(saved.text, "Tool 'double' saved. It will be available in future sessions.");
	assert.equal(answer(await python({ code: 'print(double(21))\nimport user_tools\nprint(user_tools.double(1))' })).text, '42\n2');
	const token = JSON.parse((await own.stack.cli(['token', 'add', '--owner', 'other', '--json'])).stdout).token;
	const other = new ClientV1({ name: 'other', version: '1' });
	await other.connect(new TransportV1(new URL(own.stack.url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } }));
	const without = answer(await other.callTool({ name: 'run_python', arguments: { code: 'print(double(21))' } }));
	await other.close();
	assert.match(without.text, /^status: error\nstderr:\n[^]*NameError: name 'double' is not defined$/);
	assert.match(answer(await python({ code: 'save_tool(7)' })).text, /ValueError: save_tool expects a function/);
	await python({ code: "open('/data/user_tools.py', 'a').write('\\n1 / 0\\n')" });
	const broken = answer(await python({ code: "print('runs')" }));
	assert.equal(broken.isError, false);
	assert.deepEqual(broken.form.stdout, ['runs']);
	assert.match(broken.text, /ZeroDivisionError/);
	await python({ code: "import os\nos.remove('/data/user_tools.py')" });
});

test('the resource of capabilities is served', { timeout: TIMEOUT_MS }, async () => {
	const { resources } = await own.client.listResources();
	assert.equal(resources.find(({ uri }) => uri === URI).mimeType, 'text/markdown');
	const { contents: [content] } = await own.client.readResource({ uri: URI });
	assert.match(content.text, /mcp_servers[^]*save_tool/);
	await assert.rejects(own.client.readResource({ uri: `${URI}/other` }));
});

test('a replay answers as the run did', { timeout: TIMEOUT_MS }, async () => {
	for (const args of [
		{ code: "print((await mcp_everything.echo(message='kept'))['content'][0]['text'])", servers: ['everything'] },
		{ code: 'import mcp.runtime as runtime\nprint(mcp_servers, runtime.list_servers_sync())' },
	]) {
		await python(args);
		const replayed = await own.stack.cli(['replay', (await own.stack.rows())[0].id]);
		assert.equal(replayed.code, 0, replayed.stdout + replayed.stderr);
	}
});

test('the output form toon is printed', { timeout: TIMEOUT_MS }, async () => {
	const toon = await start({ SALLYPORT_TOOLS_BRIDGE_OUTPUT: 'toon', SALLYPORT_UPSTREAM_FILE: '' });
	const code = "print('plain')\nprint('a, b: \"c\"')\nprint('-1')\nprint(' x')\nprint('c:\\\\\\\\d\\te')";
	assert.deepEqual(answer(await toon.python({ code })), {
		text: '```toon\nstatus: success\nsummary: Success\nexitCode: 0\nstdout[5]: plain,"a, b: \\"c\\"","-1"," x","c:\\\\\\\\d\\te"\n```',
		form: { status: 'success', summary: 'Success', exitCode: 0, stdout: ['plain', 'a, b: "c"', '-1', ' x', 'c:\\\\d\te'] },
		isError: false,
	});
	assert.deepEqual(answer(await toon.python({})), {
		text: "```toon\nstatus: validation_error\nsummary: Missing 'code' argument\nerror: Missing 'code' argument\n```",
		form: { status: 'validation_error', summary: "Missing 'code' argument", error: "Missing 'code' argument" },
		isError: true,
	});
	assert.match(answer(await toon.python({ code: 'x', servers: ['files'] })).form.error, /^Unknown MCP server: files$/);
	await toon.client.close();
	await toon.stack.stop();
	const without = await start({ SALLYPORT_TOOLS_SETS: '' });
	assert.ok(!(await without.client.listTools()).tools.some(({ name }) => name === 'run_python'));
	assert.ok(!(await without.client.listResources()).resources.some(({ uri }) => uri === URI));
	await assert.rejects(without.client.readResource({ uri: URI }));
	await without.client.close();
	await without.stack.stop();
});
