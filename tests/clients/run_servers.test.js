/*
 * run_servers.test.js - `sallyport run --servers`: programs call tools of a real server (npm's server-everything) without a gateway and
 * without a record; the jailer is a private one.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { bin, makeState, root, run } from './stack.js';

const TIMEOUT_MS = 180_000;
const node = path.join(root, 'jail/runners/npm/node_modules/.bin/node');
const everything = path.join(root, 'tests/clients/node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const tools = { allow: ['echo', 'get-sum'], ask: ['get-env'], deny: ['get-tiny-*'] };

let state, config, file;
before(() => {
	state = makeState();
	config = path.join(state, 'sallyport.json');
	file = path.join(state, 'upstream.json');
	writeFileSync(
		config,
		JSON.stringify({
			data_dir: 'data',
			jailer: {
				program: path.join(bin, 'sallyport-jailer'), runners_dir: path.join(root, 'jail/runners'),
				modules_dir: path.join(root, 'jail/runners/npm'), weaker_limits: Boolean(process.env.SALLYPORT_JAILER_WEAKER_LIMITS) || process.getuid() !== 0,
			},
		}),
	);
	const entry = { command: node, args: [everything], jail: false, tools };
	writeFileSync(file, JSON.stringify({ mcpServers: { everything: entry, pinned: { ...entry, pin: true }, lacks: { ...entry, env: { X: '${SP_NOT_SET}' } } } }), { mode: 0o600 });
});
after(() => rmSync(state, { recursive: true, force: true }));

let programs = 0;
function sallyport(options, code, extension = 'py') {
	const program = path.join(state, `${++programs}.${extension}`);
	writeFileSync(program, code);
	return run(path.join(bin, 'sallyport'), ['run', '--config', config, ...options, program]);
}
const withServers = (code, extension) => sallyport(['--upstream', file, '--servers', 'everything', '--json'], code, extension);

test('sallyport run calls tools from three languages', { timeout: TIMEOUT_MS }, async () => {
	const plain = await sallyport(['--upstream', file, '--servers', 'everything', '--env', 'WORD=hello'], "import os\nprint(tools.everything.echo(message=os.environ['WORD']))");
	assert.equal(plain.code, 0, plain.stderr);
	assert.equal(plain.stdout, 'Echo: hello\n');
	const python = await withServers(`
import tools
print(await tools.everything.get_sum(a=1, b=2))
for name in ('get-env', 'get-tiny-image'):
    try: await tools.call('everything', name)
    except tools.Denied as error: print(error.kind)
`);
	const result = JSON.parse(python.stdout);
	assert.equal(result.stdout, 'The sum of 1 and 2 is 3.\napproval\ndenied\n', python.stderr);
	assert.deepEqual(result.servers, ['everything']);
	assert.deepEqual(result.tool_calls.map(({ tool, state: was, decision }) => [tool, was, decision]), [
		['get-sum', 'done', 'allow'], ['get-env', 'refused', 'ask'], ['get-tiny-image', 'refused', 'deny'],
	]);
	const script = await withServers("console.log(await tools.everything.echo({ message: 'js' }));", 'mjs');
	assert.equal(JSON.parse(script.stdout).stdout, 'Echo: js\n', script.stdout + script.stderr);
	const bash = await withServers('mcp call everything.echo message=sh', 'sh');
	assert.equal(JSON.parse(bash.stdout).stdout, 'Echo: sh\n', bash.stdout + bash.stderr);
});

test('what a program waits for tools is not its wall clock time', { timeout: TIMEOUT_MS }, async () => {
	const slow = path.join(state, 'slow.json');
	writeFileSync(slow, JSON.stringify({ mcpServers: { everything: { command: node, args: [everything], jail: false, tools: { allow: ['*'] } } } }));
	const waited = await sallyport(['--upstream', slow, '--servers', 'everything', '--timeout', '2', '--json'], 'print(len(tools.everything.trigger_long_running_operation(duration=4, steps=1)) > 0)');
	assert.equal(JSON.parse(waited.stdout).verdict, 'OK', waited.stdout);
});

/* The gateway's handles for HTTP requests are used again, for other servers and other methods, too. */
test('no request over HTTP has anything of the one before it', { timeout: TIMEOUT_MS }, async (t) => {
	const heard = [];
	const results = {
		initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'heard', version: '1' } },
		'tools/list': { tools: [{ name: 'act', inputSchema: { type: 'object' } }] }, 'tools/call': { content: [] },
	};
	const server = http.createServer(async (request, response) => {
		let body = '';
		for await (const part of request) body += part;
		const { id, method, params } = JSON.parse(body || '{}'), said = request.headers;
		heard.push({ path: request.url, method: request.method, said: method, body, own: said['x-own'], only: said['x-only'], session: said['mcp-session-id'] });
		if (params?.arguments?.slow) await new Promise((done) => setTimeout(done, 3000)); /* longer than a goodbye may take */
		if (id === undefined) return void response.writeHead(202).end();
		const session = method === 'initialize' && request.url === '/one' ? { 'Mcp-Session-Id': 'of-one' } : {};
		const answer = results[method] ? { result: results[method] } : { error: { code: -32601, message: 'unknown' } };
		response.writeHead(200, { 'Content-Type': 'application/json', ...session }).end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
	}).listen(0, '127.0.0.1');
	await once(server, 'listening');
	t.after(() => { server.closeAllConnections(); server.close(); });
	const entry = (name, headers, more) => ({ url: `http://127.0.0.1:${server.address().port}/${name}`, private: true, headers: { 'X-Own': name, ...headers }, tools: { allow: ['*'] }, ...more });
	const both = path.join(state, 'both.json');
	writeFileSync(both, JSON.stringify({ mcpServers: { one: entry('one', { 'X-Only': 'one' }, { idle_seconds: 1 }), two: entry('two', {}, {}) } }), { mode: 0o600 });
	const { code, stderr } = await sallyport(
		['--upstream', both, '--servers', 'one,two'], "import time\ntools.one.act()\ntools.two.act()\ntools.one.act()\ntime.sleep(3)\ntools.two.act(slow=True)\ntools.one.act()",
	);
	assert.equal(code, 0, stderr);
	const calls = heard.filter(({ said }) => said === 'tools/call').map(({ path: at }) => at);
	assert.deepEqual(calls, ['/one', '/two', '/one', '/two', '/one']);
	for (const { path: at, own, only, session } of heard) {
		assert.equal(own, at.slice(1));
		assert.equal(only, at === '/one' ? 'one' : undefined);
		if (at === '/two') assert.equal(session, undefined);
	}
	const goodbye = heard.findIndex(({ method }) => method === 'DELETE');
	assert.ok(goodbye > 0 && goodbye < heard.length - 2, 'a goodbye, and calls after it');
	for (const { method, session, body } of heard) {
		assert.ok(method === 'POST' || (method === 'DELETE' && session === 'of-one'), method);
		assert.equal(body === '', method === 'DELETE');
	}
});

test('a wrong argument ends the command with 125', { timeout: TIMEOUT_MS }, async () => {
	for (const [options, says] of [
		[['--upstream', file, '--servers', 'everythin'], /there is no server "everythin", did you mean "everything"\?/],
		[['--upstream', file, '--servers', 'lacks'], /SP_NOT_SET/],
		[['--upstream', file, '--servers', 'pinned'], /pinned has pin: true/],
		[['--upstream', file, '--servers', 'everything,'], /--servers: a name is empty/],
		[['--upstream', file, '--servers', 'a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q'], /--servers: more than 16/],
		[['--upstream', path.join(state, 'missing.json'), '--servers', 'everything'], /missing\.json/],
		[['--servers', 'everything'], /name its file with --upstream/],
		[['--upstream', file], /--upstream: without --servers/],
		[['--upstream', file, '--servers', 'everything', '--network'], /cannot be combined with --network/],
	]) {
		const refused = await sallyport(options, "print('ran')");
		assert.equal(refused.code, 125, refused.stderr);
		assert.equal(refused.stdout, '');
		assert.match(refused.stderr, says);
	}
});
