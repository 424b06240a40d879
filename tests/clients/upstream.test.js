/*
 * The client of upstream servers (lib/upstream) through `sallyport upstream`: real servers from npm in jails and over HTTP, a second Sallyport
 * in both eras, and servers that do everything wrong.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { bin, legacyProxy, programsForJails, root, run, Stack, until } from './stack.js';

const packages = path.join(root, 'tests/clients/node_modules');
const folder = mkdtempSync(path.join(tmpdir(), 'sp-upstream-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/* `sallyport upstream ARGS` with these servers: { code, stdout, stderr }. */
async function upstream(servers, args, env = {}) {
	const file = path.join(folder, `${Math.random()}.json`);
	writeFileSync(file, JSON.stringify({ mcpServers: servers }), { mode: 0o600 });
	return run(path.join(bin, 'sallyport'), ['upstream', ...args], { env: { ...process.env, SALLYPORT_UPSTREAM_FILE: file, ...env } });
}
async function call(servers, tool, args = {}, more = []) {
	const [server] = Object.keys(servers);
	return upstream(servers, ['call', ...more, server, tool, JSON.stringify(args)]);
}
async function result(servers, tool, args) {
	const { code, stdout, stderr } = await call(servers, tool, args);
	assert.equal(code, 0, stderr);
	return JSON.parse(stdout);
}
const rowsOf = (stdout) => stdout.trim().split('\n').map((line) => JSON.parse(line));
async function freePort() {
	const server = net.createServer().listen(0, '127.0.0.1');
	await once(server, 'listening');
	const { port } = server.address();
	server.close();
	await once(server, 'close');
	return port;
}

describe('servers from npm in jails', () => {
	const program = (name, ...args) => ({ command: 'node', args: [programs.server(name), ...args] });
	let programs, servers, env;
	before(() => {
		programs = programsForJails();
		servers = {
			everything: program('everything'), files: program('filesystem', '/data'),
			memory: { ...program('memory'), env: { MEMORY_FILE_PATH: '/data/memory.json' } },
		};
		env = { SALLYPORT_UPSTREAM_BINDS: programs.binds };
	});
	after(() => programs.remove());
	const jailed = (args) => upstream(servers, args, env);

	test('all of them start and list their tools', async () => {
		const { code, stdout, stderr } = await jailed(['check', '--json']);
		assert.equal(code, 0, stdout + stderr);
		const rows = rowsOf(stdout);
		assert.deepEqual(rows.map(({ state }) => state), ['ok', 'ok', 'ok']);
		assert.match(rows[0].about, /^13 tools, 0 left out; mcp-servers\/everything/);
		assert.match(rows[1].about, /^14 tools/);
		assert.match(rows[2].about, /^9 tools/);
	});
	test('a program sees its own environment and nothing of ours', async () => {
		process.env.OUR_OWN_SECRET = 'not for servers';
		const { stdout } = await jailed(['call', 'everything', 'get-env']);
		delete process.env.OUR_OWN_SECRET;
		const seen = JSON.parse(JSON.parse(stdout).content[0].text);
		assert.deepEqual(Object.keys(seen).sort(), ['HOME', 'LANG', 'LOGNAME', 'NODE_PATH', 'PATH', 'TMPDIR', 'USER']);
	});
	test('files are those of its jail', async () => {
		const { code, stdout } = await jailed(['call', 'files', 'read_text_file', '{"path":"/etc/passwd"}']);
		assert.equal(code, 1);
		assert.match(stdout, /Access denied/);
		const written = await jailed(['call', 'files', 'write_file', '{"path":"/data/notes.txt","content":"hello"}']);
		assert.equal(written.code, 0, written.stderr);
	});
	test('progress comes while the call lasts', async () => {
		const { code, stderr } = await jailed(['call', 'everything', 'trigger-long-running-operation', '{"duration":1,"steps":3}']);
		assert.equal(code, 0, stderr);
		assert.deepEqual(stderr.match(/^progress \d/gm), ['progress 1', 'progress 2', 'progress 3']);
	});
	test('a call that takes too long ends in time', async () => {
		const { stderr } = await jailed(['call', '-t', '0.5', 'everything', 'trigger-long-running-operation', '{"duration":30,"steps":2}']);
		assert.match(stderr, /timeout: everything did not answer/);
	});
	test('an unknown tool is refused with the nearest name, before anything is sent', async () => {
		const { code, stderr } = await jailed(['call', 'everything', 'get-sun']);
		assert.notEqual(code, 0);
		assert.match(stderr, /everything has no tool "get-sun", did you mean "get-sum"\?/);
	});
	test('a program that reaches for the network finds none, one that ends says why', async () => {
		const odd = {
			net: { command: 'python3', args: ['-c', 'import socket; socket.create_connection(("127.0.0.1", 80), 1)'] },
			dies: { command: 'sh', args: ['-c', 'echo "no licence" >&2; exit 3'] },
			absent: { command: '/nonexistent/server' },
			listed: { command: 'sh', network: ['example.com:443'] },
		};
		const { code, stdout } = await upstream(odd, ['check', '--json'], env);
		const about = Object.fromEntries(rowsOf(stdout).map((row) => [row.server, row.about]));
		assert.equal(code, 1);
		assert.match(about.net, /OSError|Network is unreachable|Connection refused/);
		assert.match(about.dies, /dies is not available: the program ended(: The program ended with exit status 3\.)?, it wrote: no licence$/);
		assert.match(about.absent, /not found/);
		assert.match(about.listed, /network\.allow in its configuration is empty/);
	});
});

/* An MCP server whose one tool runs Python in it: what a program in its place could do. */
const anything = `
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if m['method'] == 'initialize': r = {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'a', 'version': '1'}}
    elif m['method'] == 'tools/list': r = {'tools': [{'name': 'do', 'inputSchema': {'type': 'object'}}]}
    elif m['method'] == 'tools/call':
        scope = {}
        try: exec(m['params']['arguments']['code'], scope)
        except Exception as e: scope['out'] = type(e).__name__ + ' ' + str(getattr(e, 'errno', ''))
        r = {'content': [{'type': 'text', 'text': str(scope.get('out'))}]}
    else:
        if 'id' in m: print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'error': {'code': -32601, 'message': 'no'}}), flush=True)
        continue
    print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'result': r}), flush=True)
`;

describe('what the entry of a server in a jail says', () => {
	const entry = { command: 'python3', args: ['-c', anything] };
	let folders, data;
	before(() => {
		folders = mkdtempSync('/srv/sp-folders-');
		chmodSync(folders, 0o755);
		for (const name of ['a', 'b']) mkdirSync(path.join(folders, name), { mode: 0o755 }), writeFileSync(path.join(folders, name, 'name'), name);
		data = mkdtempSync(path.join(folder, 'data-'));
	});
	after(() => rmSync(folders, { recursive: true, force: true }));
	/* What the server's `out` is, of a process of its own. */
	async function of(more, code, env = {}) {
		const binds = ['a', 'b'].map((name) => path.join(folders, name)).join();
		const answer = await upstream({ one: { ...entry, ...more } }, ['call', 'one', 'do', JSON.stringify({ code })], { SALLYPORT_UPSTREAM_BINDS: binds, SALLYPORT_DATA_DIR: data, ...env });
		assert.equal(answer.code, 0, answer.stderr);
		return JSON.parse(answer.stdout).content[0].text;
	}

	test('binds: the folders that it names, of those that the configuration names', async () => {
		const code = `import os\nout = [n for n in 'ab' if os.path.exists('${folders}/' + n + '/name')]`;
		assert.equal(await of({}, code), "['a', 'b']");
		assert.equal(await of({ binds: [path.join(folders, 'b')] }, code), "['b']");
		assert.equal(await of({ binds: [] }, code), '[]');
		const { stderr } = await upstream({ one: { ...entry, binds: [folders] } }, ['call', 'one', 'do']);
		assert.match(stderr, /mcpServers\.one\.binds: \/srv\/\S+ is not one of upstream\.binds/);
	});
	test('cwd: where it starts', async () => {
		const code = 'import os; out = os.getcwd()';
		assert.equal(await of({}, code), '/data');
		assert.equal(await of({ cwd: path.join(folders, 'a') }, code), path.join(folders, 'a'));
		assert.equal(await of({ jail: false, cwd: path.join(folders, 'b') }, code), path.join(folders, 'b'));
		for (const jail of [true, false]) {
			const { stderr } = await upstream({ one: { ...entry, jail, cwd: '/srv/absent' } }, ['call', 'one', 'do']);
			assert.match(stderr, jail ? /"working directory": No such file or directory\. The directory in which the program is to start \(cwd\)/ : /cwd \/srv\/absent: No such file or directory/);
		}
	});
	test('data: kept files are there again, with mode and time', async () => {
		const write = `
import os
os.makedirs('/data/x/y'); open('/data/x/y/one', 'w').write('1'); open('/data/two', 'wb').write(bytes(3000000)); open('/data/three', 'w').write('3')
os.chmod('/data/x/y/one', 0o700); os.utime('/data/x/y/one', (1e9, 1e9)); os.mkfifo('/data/fifo'); out = 'written'`;
		const read = `
import os
out = sorted((os.path.join(d, f)[6:], oct(os.stat(os.path.join(d, f)).st_mode & 0o777), os.path.getsize(os.path.join(d, f))) for d, _, fs in os.walk('/data') for f in fs)`;
		assert.equal(await of({}, write), 'written');
		assert.equal(await of({}, read), '[]');
		assert.equal(await of({ data: 'keep' }, write), 'written');
		assert.equal(await of({ data: 'keep' }, read), "[('three', '0o644', 1), ('two', '0o644', 3000000), ('x/y/one', '0o700', 1)]");
		assert.equal(await of({ data: 'keep' }, `import os; out = os.path.getmtime('/data/x/y/one')`), '1000000000.0');
		/* A file in the place of a directory, a directory in that of a file, one that is changed, one that goes. */
		await of({ data: 'keep' }, `import os, shutil; shutil.rmtree('/data/x'); open('/data/x', 'w').write('file'); os.unlink('/data/two'); os.mkdir('/data/two'); open('/data/two/z', 'w'); open('/data/three', 'a').write('3')`);
		assert.equal(await of({ data: 'keep' }, read), "[('three', '0o644', 2), ('two/z', '0o644', 0), ('x', '0o644', 4)]");
		const [server] = readdirSync(path.join(data, 'upstream')), [owner] = readdirSync(path.join(data, 'upstream', server));
		assert.equal(readdirSync(path.join(data, 'upstream', server, owner)).length, 4, 'three contents and the index');
	});
	test('data: a killed server keeps what it wrote', async () => {
		const other = { SALLYPORT_DATA_DIR: mkdtempSync(path.join(folder, 'other-')) };
		const kept = (n) => of({ data: 'keep' }, `import os; open('/data/n${n}', 'w').write('x' * 1000000); out = len(os.listdir('/data'))`, other);
		const counts = await Promise.all([1, 2, 3].map(kept));
		assert.deepEqual(counts.sort(), ['1', '2', '3'], 'one after the other, each with the files of those before it');
		await upstream({ one: { ...entry, data: 'keep' } }, ['call', 'one', 'do', JSON.stringify({ code: `import os; open('/data/last', 'w').write('x'); os.kill(os.getpid(), 9)` })], other);
		assert.equal(await of({ data: 'keep' }, `import os; out = os.path.exists('/data/last')`, other), 'True');
	});
	test('data: its size and its files have an end', async () => {
		const env = { SALLYPORT_DATA_DIR: mkdtempSync(path.join(folder, 'small-')), SALLYPORT_LIMITS_DATA_MB: '1' }, ENOSPC = 'OSError 28';
		assert.equal(await of({ data: 'keep' }, `open('/data/large', 'wb').write(bytes(2 << 20))`, env), ENOSPC);
		assert.equal(await of({ data: 'keep' }, `import os; os.unlink('/data/large')\nfor n in range(1200): open('/data/%d' % n, 'w')`, env), ENOSPC);
		assert.ok(Number(await of({ data: 'keep' }, `import os; out = len(os.listdir('/data'))`, env)) > 900);
	});
});

describe('server-everything over HTTP', () => {
	let child, port;
	async function start() {
		child = spawn(process.execPath, [`${packages}/@modelcontextprotocol/server-everything/dist/index.js`, 'streamableHttp'], {
			env: { ...process.env, PORT: String(port) }, stdio: 'ignore',
		});
		await until('server-everything to listen', () => fetch(`http://127.0.0.1:${port}/mcp`).then(() => true, () => false));
	}
	before(async () => {
		port = await freePort();
		await start();
	});
	after(() => child.kill());
	const servers = () => ({ everything: { url: `http://127.0.0.1:${port}/mcp`, private: true } });

	test('tools, results as they were sent, progress', async () => {
		const { code, stdout } = await upstream(servers(), ['tools', 'everything', '--json']);
		assert.equal(code, 0);
		assert.equal(rowsOf(stdout).length, 13);
		assert.deepEqual(await result(servers(), 'get-sum', { a: 1, b: 2 }), { content: [{ type: 'text', text: 'The sum of 1 and 2 is 3.' }] });
		const image = await result(servers(), 'get-tiny-image');
		assert.ok(image.content.some(({ type, mimeType }) => type === 'image' && mimeType === 'image/png'));
		const { stderr } = await call(servers(), 'trigger-long-running-operation', { duration: 1, steps: 2 });
		assert.match(stderr, /progress 1[^]*progress 2/);
	});
	test('an address that is not public needs the word private', async () => {
		const { stderr } = await call({ everything: { url: `http://127.0.0.1:${port}/mcp` } }, 'get-sum', { a: 1, b: 2 });
		assert.match(stderr, /its address is not a public one: its entry must say "private": true/);
	});
});

describe('a second Sallyport', () => {
	let stack, proxy;
	before(async () => {
		stack = await Stack.start();
		proxy = await legacyProxy(stack.base);
	});
	after(async () => {
		proxy?.closeAllConnections();
		proxy?.close();
		await stack?.stop();
	});
	const entry = (url) => ({ other: { url, private: true, headers: { Authorization: `Bearer ${stack.token}` } } });
	const eras = {
		'2026-07-28': () => stack.url,
		'2025-11-25': () => `http://127.0.0.1:${proxy.address().port}/mcp`,
	};
	for (const [revision, url] of Object.entries(eras)) {
		test(`speaks ${revision}: list, run_code, progress, an error of the program`, async () => {
			const servers = entry(url());
			const { stdout } = await upstream(servers, ['check', '--json']);
			assert.match(rowsOf(stdout)[0].about, new RegExp(`MCP ${revision};`));
			const answer = await result(servers, 'run_code', { language: 'python', code: 'print(6 * 7)', conversationId: 'a' });
			assert.match(answer.content[0].text, /42/);
			const { code } = await call(servers, 'run_code', { language: 'python', code: 'raise SystemExit(3)', conversationId: 'a' });
			assert.equal(code, 1);
		});
	}
	test('a wrong token makes the server unavailable', async () => {
		const { stderr } = await call({ other: { url: stack.url, private: true, headers: { Authorization: 'Bearer wrong-token' } } }, 'run_code');
		assert.match(stderr, /other is not available: it wants other credentials/);
		assert.doesNotMatch(stderr, /wrong-token/);
	});
});

describe('a hostile server over HTTP', () => {
	const SECRET = 'sk-0123456789abcdef/+==';
	let server, calls, inits, discovers, cancelled;
	const tool = (name, more = {}) => ({ name, inputSchema: { type: 'object' }, ...more });
	const text = (value) => ({ content: [{ type: 'text', text: value }] });
	const json = (response, status, body, headers = {}) => response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(body));

	/* What each path does with tools/call. */
	const acts = {
		never: () => {},
		half: (request, response) => {
			response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': 1000 });
			response.write('{"jsonrpc":');
			setImmediate(() => response.destroy());
		},
		drops: (request, response) => response.destroy(), /* a connection that was kept: libcurl would try once more */
		gateway: (request, response) => response.writeHead(502).end('<html>bad gateway</html>'),
		redirect: (request, response) => response.writeHead(307, { Location: 'http://127.0.0.1:9/elsewhere' }).end(),
		rubbish: (request, response) => response.writeHead(200, { 'Content-Type': 'application/json' }).end('<html>'),
		deep: (request, response) => response.writeHead(200, { 'Content-Type': 'application/json' }).end('['.repeat(100_000)),
		huge: (request, response) => {
			response.writeHead(200, { 'Content-Type': 'application/json' });
			response.write(`{"jsonrpc":"2.0","id":${request.id},"result":{"content":[{"type":"text","text":"`);
			const piece = 'x'.repeat(1 << 20);
			let left = 100;
			const more = () => {
				while (left-- > 0 && !response.destroyed) if (!response.write(piece)) return void response.once('drain', more);
				response.end('"}]}}');
			};
			response.on('error', () => {});
			more();
		},
		endless: (request, response) => {
			response.writeHead(200, { 'Content-Type': 'text/event-stream' });
			const piece = `data: ${'x'.repeat(1 << 20)}`;
			const more = () => {
				while (!response.destroyed) if (!response.write(piece)) return void response.once('drain', more);
			};
			response.on('error', () => {});
			more();
		},
		otherid: (request, response) => json(response, 200, { jsonrpc: '2.0', id: 424242, result: text('of somebody else') }),
		twice: (request, response) => {
			response.writeHead(200, { 'Content-Type': 'text/event-stream' });
			for (const value of ['first', 'second']) response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: request.id, result: text(value) })}\n\n`);
			response.end();
		},
		asks: (request, response) => {
			const ask = (id, method) => response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, method, params: {} })}\n\n`);
			response.writeHead(200, { 'Content-Type': 'text/event-stream' });
			ask('q1', 'sampling/createMessage');
			ask('q2', 'elicitation/create');
			ask('q3', 'ping');
			const heard = {};
			server.heard = (message) => {
				heard[message.id] = message.error?.code ?? message.result;
				if (Object.keys(heard).length < 3) return;
				response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id: request.id, result: text(JSON.stringify(heard)) })}\n\n`);
			};
		},
		exact: (request, response) => response.writeHead(200, { 'Content-Type': 'application/json' })
			.end(`{"jsonrpc":"2.0","id":${request.id},"result": {"n": 18446744073709551617, "cut": "\\ud83d", "a": 1, "a": 2, "content": []}}`),
		secret: (request, response, headers) => {
			const value = headers.authorization.split(' ')[1];
			const forms = [value, Buffer.from(value).toString('base64'), Buffer.from(value).toString('hex'), encodeURIComponent(value), JSON.stringify(value)];
			json(response, 200, { jsonrpc: '2.0', id: request.id, result: text(forms.join('\n')) });
		},
		lost: (request, response, headers) => {
			/* The first session is gone at the first call. */
			if (headers['mcp-session-id'] === 'session-1') json(response, 404, { jsonrpc: '2.0', id: null, error: { code: -32001, message: 'Session not found' } });
			else json(response, 200, { jsonrpc: '2.0', id: request.id, result: text(headers['mcp-session-id']) });
		},
		unknown: (request, response, headers) => {
			if (headers['mcp-session-id'] === 'session-1') json(response, 400, { jsonrpc: '2.0', id: null, error: { code: -32000, message: 'Bad Request: No valid session ID provided' } });
			else json(response, 200, { jsonrpc: '2.0', id: request.id, result: text(headers['mcp-session-id']) });
		},
		busy: (request, response) => {
			if (calls.length === 1) response.writeHead(503, { 'Retry-After': '0' }).end();
			else json(response, 200, { jsonrpc: '2.0', id: request.id, result: text('at last') });
		},
		ok: (request, response) => json(response, 200, { jsonrpc: '2.0', id: request.id, result: text('fine') }),
	};
	const lists = {
		loop: () => ({ tools: [], nextCursor: 'again' }),
		two: ({ cursor }) => (cursor === undefined ? { tools: [tool('a')], nextCursor: '' } : { tools: [tool(`b${cursor}`)] }),
		pages: (params) => ({ tools: [], nextCursor: String(Number(params.cursor ?? 0) + 1) }),
		many: () => ({ tools: Array.from({ length: 1001 }, (_, i) => tool(`t${i}`)) }),
		nolist: () => ({}),
		odd: () => ({
			tools: [
				tool('good'), tool('good'), { name: 'bare' }, tool('x'.repeat(200)), tool('app', { _meta: { ui: { visibility: ['app'] } } }),
				tool('header', { inputSchema: { type: 'object', properties: { a: { type: 'number', 'x-mcp-header': 'A' } } } }),
				tool('large', { description: 'x'.repeat(300_000) }),
			],
		}),
	};
	function answer(request, response, headers, what) {
		if (request.method === 'server/discover') {
			discovers++;
			response.writeHead(404).end();
		} else if (request.method === 'initialize') {
			inits++;
			const info = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'hostile', version: '1' } };
			json(response, 200, { jsonrpc: '2.0', id: request.id, result: info }, { 'Mcp-Session-Id': `session-${inits}` });
		} else if (request.method === 'tools/list') {
			json(response, 200, { jsonrpc: '2.0', id: request.id, result: lists[what]?.(request.params ?? {}) ?? { tools: [tool('act')] } });
		} else if (request.method === 'tools/call') {
			calls.push(request);
			acts[what](request, response, headers);
		} else {
			if (!request.method) server.heard?.(request);
			if (request.method === 'notifications/cancelled') cancelled.push(request.params.requestId);
			response.writeHead(202).end();
		}
	}
	before(async () => {
		server = http.createServer((request, response) => {
			let body = '';
			request.on('data', (data) => (body += data));
			request.on('end', () => {
				if (request.method === 'POST') answer(JSON.parse(body), response, request.headers, request.url.slice(1));
				else response.writeHead(405).end();
			});
		}).listen(0, '127.0.0.1');
		await once(server, 'listening');
	});
	after(() => {
		server.closeAllConnections();
		server.close();
	});
	const entry = (what, more = {}) => {
		calls = [];
		cancelled = [];
		inits = discovers = 0;
		return { bad: { url: `http://127.0.0.1:${server.address().port}/${what}`, private: true, ...more } };
	};

	/* What is said; each of these calls reaches the server exactly once. */
	const failures = {
		never: [/timeout: bad did not answer within 1 s/, ['-t', '1']],
		half: [/unknown_outcome: bad did not answer to the end, so it may have done what was asked/],
		drops: [/unknown_outcome: bad did not answer to the end, so it may have done what was asked: the connection broke off/],
		gateway: [/unknown_outcome: bad: it answered with status 502/],
		redirect: [/protocol: bad: it answered with status 307 \(redirects are not followed\)/],
		rubbish: [/protocol: bad's answer is not MCP: not JSON/],
		deep: [/protocol: bad's answer is not MCP: not JSON: deeper than allowed/],
		huge: [/limit: bad's answer is larger than what is taken/],
		endless: [/limit: bad's answer is larger than what is taken/],
		otherid: [/protocol: bad's answer is not MCP: it holds no answer to the request/],
	};
	for (const [what, [said, options]] of Object.entries(failures)) {
		test(`${what}: ${said.source.slice(0, 40)}`, async () => {
			const { code, stderr } = await call(entry(what), 'act', {}, options);
			assert.notEqual(code, 0);
			assert.match(stderr, said);
			assert.equal(calls.length, 1);
		});
	}
	test('it hears of a call that nobody waits for any more', async () => {
		/* On a busy machine the time may be over before the call is sent, or the command's last second before the notice is. Each try
		 * forgets the calls before it. */
		for (const seconds of ['0.5', '4', '4', '30']) {
			await call(entry('never'), 'act', {}, ['-t', seconds]);
			await until('the notice', () => cancelled.length > 0, 2000).catch(() => {});
			if (cancelled.length) break;
		}
		assert.deepEqual(cancelled, [calls[0].id]);
	});
	test('a lost answer of an idempotent tool is asked for again, once', async () => {
		await call(entry('half', { idempotent: ['a*'] }), 'act');
		assert.equal(calls.length, 2);
	});
	test('a server that is busy is asked again', async () => {
		assert.equal((await result(entry('busy'), 'act')).content[0].text, 'at last');
		assert.equal(calls.length, 2);
	});
	for (const what of ['lost', 'unknown']) {
		test(`a session that is gone (${what}) is begun again, exactly once`, async () => {
			assert.equal((await result(entry(what), 'act')).content[0].text, 'session-2');
			assert.equal(inits, 2);
			assert.equal(discovers, 1);
			assert.equal(calls.length, 2);
		});
	}
	test('the first answer counts', async () => {
		assert.equal((await result(entry('twice'), 'act')).content[0].text, 'first');
	});
	test('it may not use our model, nor ask people', async () => {
		const answer = await result(entry('asks'), 'act');
		assert.deepEqual(JSON.parse(answer.content[0].text), { q1: -32601, q2: { action: 'cancel' }, q3: {} });
	});
	test('results are bytes', async () => {
		const { stdout } = await call(entry('exact'), 'act');
		assert.equal(stdout, '{"n": 18446744073709551617, "cut": "\\ufffd", "a": 1, "a": 2, "content": []}\n');
	});
	test('secrets come back masked in every form', async () => {
		process.env.HOSTILE_SECRET = SECRET;
		const { stdout, stderr } = await call(entry('secret', { headers: { Authorization: 'Bearer ${HOSTILE_SECRET}' } }), 'act');
		delete process.env.HOSTILE_SECRET;
		assert.match(stdout, /\*\*\*/);
		for (const form of [SECRET, Buffer.from(SECRET).toString('base64').slice(0, 24), Buffer.from(SECRET).toString('hex'), encodeURIComponent(SECRET)])
			assert.ok(!(stdout + stderr).includes(form), form);
	});
	test('lists: pages that do not end, too many tools, no list', async () => {
		for (const [what, said] of Object.entries({
			loop: /0 tools/, two: /2 tools/, pages: /longer than 8 MiB or 100 pages/, many: /more than 1000 tools/, nolist: /answered tools\/list without a list/,
		})) {
			const { stdout } = await upstream(entry(what), ['check', '--json']);
			assert.match(rowsOf(stdout)[0].about, said);
		}
	});
	test('tools that cannot be called are left out, with the reason', async () => {
		const { stdout, stderr } = await upstream(entry('odd'), ['tools', 'bad', '--json']);
		assert.deepEqual(rowsOf(stdout).map((row) => row.tool), ['good']);
		for (const said of [/good: the name occurs twice/, /bare: it has no inputSchema/, /x: its name must have/, /app: it is not for models/,
			/header: x-mcp-header "A" belongs to no string/, /large: its definition is larger/]) assert.match(stderr, said);
	});
	test('a server that is down leaves the others available', async () => {
		const port = await freePort();
		const servers = { ...entry('ok'), down: { url: `http://127.0.0.1:${port}/`, private: true }, unset: { command: 'x', args: ['${NO_SUCH_VARIABLE}'] } };
		const { code, stdout } = await upstream(servers, ['check', '--json']);
		assert.equal(code, 1);
		assert.deepEqual(rowsOf(stdout).map(({ state }) => state), ['ok', 'unavailable', 'unavailable']);
		assert.match(stdout, /mcpServers\.unset\.args\[0\]: the variable NO_SUCH_VARIABLE is not set/);
	});
});

/* A program in JavaScript: `message` is each line that comes, `say` answers. */
function hostile(body) {
	const program = `
		const say = (o) => process.stdout.write(JSON.stringify(o) + '\\n');
		let text = '';
		process.stdin.on('data', (data) => {
			text += data;
			for (let end; (end = text.indexOf('\\n')) >= 0; text = text.slice(end + 1)) {
				const message = JSON.parse(text.slice(0, end)), { id, method } = message;
				if (method === 'server/discover') { ${body.discover ?? `say({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } });`} }
				else if (method === 'initialize') say({ jsonrpc: '2.0', id, result: { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'h', version: '1' } } });
				else if (method === 'tools/list') say({ jsonrpc: '2.0', id, result: { tools: [{ name: 'act', inputSchema: { type: 'object' } }] } });
				else if (method === 'tools/call') { ${body.call} }
			}
		});`;
	return { bad: { command: process.execPath, args: ['-e', program], jail: false } };
}

describe('a hostile program', () => {
	test('a server that ends at the first request is started again', async () => {
		const answer = await result(hostile({ discover: 'process.exit(1);', call: `say({ jsonrpc: '2.0', id, result: { content: [] } });` }), 'act');
		assert.deepEqual(answer, { content: [] });
	});
	test('one that does not answer what it does not know is asked differently', async () => {
		const answer = await result(hostile({ discover: '', call: `say({ jsonrpc: '2.0', id, result: { content: [] } });` }), 'act');
		assert.deepEqual(answer, { content: [] });
	});
	test('output that is not JSON-RPC is passed over', async () => {
		const answer = await result(hostile({
			call: `process.stdout.write('hello\\n{"half\\n\\n[]\\n');
				process.stderr.write('x'.repeat(1 << 20)); say({ jsonrpc: '2.0', id, result: { content: [], n: 7 } });`,
		}), 'act');
		assert.equal(answer.n, 7);
	});
	test('one that ends in the middle of a call: the outcome is not known', async () => {
		const { stderr } = await call(hostile({ call: `process.stderr.write('it broke'); process.exit(1);` }), 'act');
		assert.match(stderr, /unknown_outcome: bad went away before it answered, so it may have done what was asked: the program ended/);
	});
	test('a line that is too long fails its call at once', async () => {
		const { stderr } = await call(hostile({ call: `process.stdout.write('{"result":{"x":"' + 'x'.repeat(20 << 20) + '"},"jsonrpc":"2.0","id":' + id + '}\\n');` }), 'act');
		assert.match(stderr, /limit: bad's answer is larger than what is taken/);
	});
	test('an endless line ends with the time of the call', async () => {
		const { stderr } = await call(hostile({ call: `const more = () => process.stdout.write('x'.repeat(1 << 20), more); more();` }), 'act', {}, ['-t', '2']);
		assert.match(stderr, /timeout: bad did not answer/);
	});
});

describe('who may call what', () => {
	let stack, server, description = 'first', calls = 0;
	before(async () => {
		server = http.createServer((request, response) => {
			let body = '';
			request.on('data', (data) => (body += data));
			request.on('end', () => {
				const { id, method } = request.method === 'POST' ? JSON.parse(body) : {};
				const reply = (result) => response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }));
				if (method === 'initialize') reply({ protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'x', version: '1' } });
				else if (method === 'tools/list') reply({ tools: ['read_it', 'write_it'].map((name) => ({ name, description, inputSchema: { type: 'object' } })) });
				else if (method === 'tools/call') {
					calls++;
					response.writeHead(200, { 'Content-Type': 'text/event-stream' });
					for (const message of [{ method: 'notifications/tools/list_changed' }, { id, result: { content: [{ type: 'text', text: 'done' }] } }])
						response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
					response.end();
				} else response.writeHead(method?.startsWith('notifications/') ? 202 : 404).end();
			});
		}).listen(0, '127.0.0.1');
		await once(server, 'listening');
		const file = path.join(folder, 'policy.json');
		chmodSync(folder, 0o755);
		const entry = { url: `http://127.0.0.1:${server.address().port}/`, private: true, pin: true, tools: { allow: ['*'] } };
		writeFileSync(file, JSON.stringify({ mcpServers: { things: entry } }), { mode: 0o644 });
		stack = await Stack.start({ env: { SALLYPORT_UPSTREAM_FILE: file, SALLYPORT_UPSTREAM_CALLS_PER_MINUTE: '40' } });
		stack.file = file;
	});
	after(async () => {
		server.closeAllConnections();
		server.close();
		await stack?.stop();
	});
	const PER_MINUTE = 40;
	const code = (tool) => `import tools\ntry:\n    print(tools.things.${tool}())\nexcept tools.ToolError as error:\n    print(error.kind, error.text)\n`;
	async function as(servers, tool) {
		const { stdout, stderr } = await stack.cli(['token', 'add', '--owner', 'alice', ...(servers ? ['--servers', servers] : [])]);
		assert.match(stdout, /^sp_/, stderr);
		const token = stack.token;
		stack.token = stdout.trim();
		try {
			return await stack.call('run_code', { language: 'python', code: code(tool), servers: ['things'], conversationId: 'a' });
		} finally {
			stack.token = token;
		}
	}
	const said = (answer) => JSON.stringify(answer.result ?? answer.error);

	test('a token that is given no servers has none', async () => {
		assert.match(said(await as(null, 'read_it')), /may not use the server things/);
		assert.match(said(await as('others,mail.send', 'read_it')), /may not use the server things/);
	});
	test('a token calls what its list names, as strictly as the list says', async () => {
		assert.match(said(await as('things', 'write_it')), /done/);
		assert.match(said(await as('things.read_*', 'read_it')), /done/);
		const before = calls;
		assert.match(said(await as('things.read_*', 'write_it')), /denied/);
		assert.match(said(await as('things,deny:things.write_*', 'write_it')), /denied/);
		assert.match(said(await as('ask:things', 'write_it')), /approval/);
		assert.equal(calls, before);
	});
	test('search shows what the token may call', async () => {
		const answers = {};
		for (const [list, tool, args] of [
			['things', 'search_tools', { query: 'write' }], ['things.read_*', 'search_tools', { query: 'read or write' }], [null, 'search_tools', { query: 'write' }],
			['things', 'describe_tools', { tools: ['things.read_it'] }], ['things', 'describe_tools', { tools: ['things.nothing'] }],
		]) {
			const { stdout } = await stack.cli(['token', 'add', '--owner', 'alice', ...(list ? ['--servers', list] : [])]);
			const token = stack.token;
			stack.token = stdout.trim();
			answers[`${list} ${tool} ${JSON.stringify(args)}`] = said(await stack.call(tool, args));
			stack.token = token;
		}
		const [all, part, none, described, unknown] = Object.values(answers);
		assert.match(all, /things\.write_it - first/);
		assert.doesNotMatch(part, /things\.write_it/);
		assert.match(part, /things\.read_it/);
		assert.match(none, /0 of 0 tools/);
		assert.match(described, /things\.read_it\(\)|read_it/);
		assert.match(unknown, /things has no tool \\"nothing\\"/);
		assert.match(said(await stack.call('search_tools', { query: 'x', servers: ['thing'] })), /there is no server \\"thing\\", did you mean \\"things\\"/);
	});
	test('a list that is none is refused', async () => {
		for (const list of ['a,,b', 'a b', '.x']) {
			const { code: exit, stderr } = await stack.cli(['token', 'add', '--owner', 'alice', '--servers', list]);
			assert.equal(exit, 2, stderr);
		}
	});
	test('an owner has so many calls in a minute', async () => {
		const { stdout } = await stack.cli(['token', 'add', '--owner', 'busy', '--servers', 'things']);
		const token = stack.token;
		stack.token = stdout.trim();
		const many = `import tools\nkinds = []\nfor i in range(${2 * PER_MINUTE + 2}):\n    try:\n        tools.things.read_it()\n        kinds.append('done')\n`
			+ '    except tools.ToolError as error:\n        kinds.append(error.kind)\nprint(kinds)\n';
		const answer = said(await stack.call('run_code', { language: 'python', code: many, servers: ['things'], conversationId: 'b' }));
		stack.token = token;
		const kinds = /\[('(done|limit)'(, )?)+\]/.exec(answer)[0];
		assert.match(kinds, /limit/); /* a minute may have begun meanwhile: then twice as many */
		assert.ok(kinds.match(/done/g).length >= PER_MINUTE, kinds);
	});
	test('a definition that changed is refused until an operator accepts it', async () => {
		assert.match(said(await as('things', 'read_it')), /done/);
		description = 'second';
		const before = calls;
		await until('the change to be seen', async () => /definition changed/.test(said(await as('things', 'read_it'))));
		assert.match(readFileSync(path.join(stack.state, 'log/gateway.log'), 'utf8'), /definition of an upstream tool changed.*things.*read_it/);
		const { code: exit, stderr } = await run(path.join(bin, 'sallyport'), ['upstream', 'accept', '--config', stack.config, 'things'], {
			env: { ...process.env, SALLYPORT_UPSTREAM_FILE: stack.file },
		});
		assert.equal(exit, 0, stderr);
		assert.match(said(await as('things', 'read_it')), /done/);
		assert.ok(calls <= before + 2);
	});
});
