/*
 * neighbours.js - what one client, program or upstream server can do to another owner's calls, and to the gateway's memory. Part of
 * `make stress`.
 *
 *   node tests/stress/neighbours.js [PATTERN]      PATTERN: only the attacks whose name matches it (a regular expression)
 *
 * A whole stack (tests/clients/stack.js) serves two owners. Each attack is measured in rounds: the victim's calls in quiet, then the same calls
 * while the attack goes on, until some of its calls have ended. A round's ratio is that of the means, in which a single long wait counts; the figure
 * is the median of the rounds, its bound is BOUND. An attack that keeps a program of its own computing is
 * compared with a program that computes and does nothing else: how processors are shared is the kernel's business, and the figure against quiet
 * is shown beside it. Attacks on memory send forty bodies of 30 MiB at once; their figure is the gateway's peak above its rest.
 * A bound that is missed is said, and ends the run with 1 when everything was measured. It needs root for the memory figures.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, openSync, readFileSync, writeFileSync, writeSync, closeSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { promisify } from 'node:util';
import { Stack, makeState, root } from '../clients/stack.js';

const BOUND = 1.2, MEMORY_MIB = 256;
const ROUNDS = Number(process.env.STRESS_ROUNDS ?? 7), CALLS = Number(process.env.STRESS_CALLS ?? 8);
const ENDED = 3, PATIENCE_MS = 8_000; /* so many calls of an attack, or that long */
const BODY_BYTES = 30 << 20, BODIES = 40;
const wanted = new RegExp(process.argv[2] ?? '');
const node = path.join(root, 'jail/runners/npm/node_modules/.bin/node');
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

let stack, victim, attacker, missed = 0;

async function owner(name, ...more) {
	const { code, stdout, stderr } = await stack.cli(['token', 'add', '--owner', name, '--servers', '*', '--json', ...more]);
	if (code !== 0) throw new Error(stderr);
	return Object.assign(Object.create(stack), { token: JSON.parse(stdout).token });
}

/* -------- the victim's calls -------------------------------------------------------------------------- */

const calls = {
	/* A program that calls a tool of another server. */
	tool: () => victim.call('run_code', { conversationId: 'tools', language: 'bash', servers: ['echo'], code: 'mcp call echo.echo message=x' }),
	run: () => victim.call('run_code', { conversationId: 'victim', language: 'bash', code: 'echo x >x' }),
	write: () => victim.call('write_file', { conversationId: 'victim', path: 'w', content: String(Math.random()) }),
	list: () => victim.call('list_files', { conversationId: 'victim' }),
};
async function timed(kind) {
	const began = performance.now();
	const { result, error } = await calls[kind]();
	if (!result || result.isError) throw new Error(`the victim's call ${kind} failed: ${JSON.stringify(error ?? result)}`);
	return performance.now() - began;
}
/* The kinds in turns: { kind: [ms…] }. */
async function series(kinds, into = {}) {
	for (let n = 0; n < CALLS; n++) for (const kind of kinds) (into[kind] ??= []).push(await timed(kind));
	return into;
}

/* -------- attacks ------------------------------------------------------------------------------------- */

/* `at_once` of them all the time, one after the other: { stop() }. Refusals are counted, not judged. */
function keep(at_once, once_more) {
	let over = false, count = 0, refused = 0;
	const abort = new AbortController();
	const one = async (n) => {
		while (!over) {
			const answer = await once_more(n, abort.signal).catch((error) => (over ? null : { error }));
			if (over) return;
			count++;
			if (answer?.error || answer?.result?.isError) refused++;
			if (process.env.STRESS_SAYS && count < 4) console.log(JSON.stringify(answer).slice(0, 300));
			if (answer?.error) await new Promise((resolve) => setTimeout(resolve, 100));
		}
	};
	const all = Promise.all(Array.from({ length: at_once }, (_, n) => one(n)));
	return {
		ended: () => count,
		async stop() {
			over = true;
			abort.abort();
			await all;
			return `${count} calls${refused ? `, ${refused} failed` : ''}`;
		},
	};
}
const program = (at_once, args) => () => keep(at_once, (n, signal) => attacker.call('run_code', { conversationId: `attack-${n}`, timeout_seconds: 60, ...args }, { signal }));
const computing = (at_once) => program(at_once, { language: 'bash', code: 'while :; do :; done' });

/* Frames of lib/bridge/bridge_frame.h, by so many connections; answers are thrown away unread. */
const frames = (connections, ask) => `
import json, socket, struct, threading
def ask(n, i): return ${ask}
def flood(n):
    s = socket.socket(socket.AF_UNIX)
    s.connect('/code/.mcp')
    for i in range(1 << 30):
        data = json.dumps({'id': i, **ask(n, i)}).encode()
        s.sendall(struct.pack('>I', len(data)) + data)
        left = struct.unpack('>I', s.recv(4, socket.MSG_WAITALL))[0]
        while left: left -= len(s.recv(min(left, 1 << 20)))
        if i > 25 and 'tool' in ask(n, i): return # more calls than a run may make
for n in range(${connections}): threading.Thread(target=flood, args=(n,)).start()
`;
const FLOOD = frames(16, `{'op': 'search', 'query': 'things whatever belongs list looks', 'limit': 100, 'detail': 'full'} if n % 2 else {'op': 'describe', 'server': 'many', 'detail': 'full'}`);
const calls_of = (tool) => frames(8, `{'op': 'call', 'server': 'hostile', 'tool': '${tool}', 'arguments': {}}`);
const WIDE_CALLS = `
import tools
for _ in range(60):
    try: tools.hostile.small(message='"x' * 330_000)
    except Exception: pass
`;
const SMALL_CALLS = WIDE_CALLS.replace('60', '190').replace('330_000', '20_000');
const python = (code, more) => ({ language: 'python', code, ...more });
const repeat = (at_once, code, more) => program(at_once, python(code, more));
const secrets = Object.fromEntries(Array.from({ length: 32 }, (_, n) => [`SECRET_${n}`, `aaaa-secret-number-${n}-${'aZ09'.repeat(12)}`]));
const environment = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`VARIABLE_WITH_A_LONG_NAME_${n}`, 'v'.repeat(50)]));

/* Live sandboxes that begin and end. */
const sessions = () => keep(4, async (n, signal) => {
	const began = await attacker.call('run_code', { conversationId: `live-${n}`, language: 'bash', session: true, code: 'x=1' }, { signal });
	return began?.error || began?.result?.isError ? began : attacker.call('reset_session', { conversationId: `live-${n}` }, { signal });
});
async function crowded() {
	const ids = Array.from({ length: 4 }, (_, n) => `crowded-${n}`);
	for (const conversationId of ids) await attacker.call('run_code', { conversationId, timeout_seconds: 60, ...python("for n in range(4000): open(f'{n}', 'w').write(str(n))") });
	return keep(4, (n, signal) => attacker.call('run_code', { conversationId: ids[n], language: 'bash', code: ':' }, { signal }));
}
const LARGE_UPLOAD = 'A'.repeat(30_000_000);
const uploads = () => keep(2, (n, signal) => attacker.call('upload_file', { conversationId: `large-${n}`, filename: 'f', content: LARGE_UPLOAD }, { signal }));
/* A call whose progress is a stream of its own. */
const progress = () => keep(2, async (n, signal) => {
	const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {}, progressToken: n };
	const args = { conversationId: `lines-${n}`, language: 'python', code: "import os\nfor n in range(100000): os.write(1, b'line\\n')" };
	const response = await fetch(attacker.url, {
		method: 'POST', signal,
		headers: { ...attacker.headers, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'run_code' },
		body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'run_code', arguments: args, _meta: meta } }),
	});
	await response.text();
	return { status: response.status };
});

/* Requests for an archive, of which nothing is read beyond the first bytes. */
async function unread() {
	const written = await attacker.call('write_file', { conversationId: 'large', path: 'seed', content: 'seed' });
	const place = new URL(written.result.structuredContent.file.url).pathname.replace(/[^/]*\/[^/]*$/, '');
	const target = new URL(attacker.base);
	await fetch(`${attacker.base}${place}large`, { method: 'PUT', headers: attacker.headers, body: Buffer.alloc(20_000_000, 'x') });
	const sockets = Array.from({ length: 300 }, () => {
		const socket = net.connect(target.port, target.hostname);
		socket.on('error', () => {}).on('data', () => socket.pause());
		socket.write(`GET ${place}?zip HTTP/1.1\r\nHost: ${target.host}\r\n\r\n`);
		return socket;
	});
	await Promise.all(sockets.map((socket) => once(socket, 'readable').catch(() => {})));
	return { async stop() { for (const socket of sockets) socket.destroy(); return '300 requests'; } };
}

const attacks = [
	{ name: 'a server asks a question of 65 parts, 200,000 objects', victims: ['tool', 'run'], start: program(1, { language: 'python', servers: ['hostile'], code: calls_of('ask') }), like: computing(1) },
	{ name: 'a server answers 5 MB of small objects', victims: ['tool', 'run'], start: program(1, { language: 'python', servers: ['hostile'], code: calls_of('tell') }), like: computing(1) },
	{ name: 'a program floods search and describe of 990 tools', victims: ['tool', 'run'], start: program(1, { language: 'python', servers: ['many'], code: FLOOD }), like: computing(1) },
	{ name: '300 archives that nobody reads', victims: ['run', 'list'], start: unread },
	{ name: 'reactor: 100,000 tiny lines with progress', victims: ['run', 'write'], start: progress, like: computing(2) },
	{ name: 'reactor: 60 calls of tools with 1 MB of arguments', victims: ['run', 'write'], start: repeat(2, WIDE_CALLS, { servers: ['hostile'] }), like: computing(2) },
	{ name: 'reactor: 32 secrets and 15 MB of output', victims: ['run', 'write'], start: repeat(2, "print('aaaa-secre' * 1_500_000)", { secrets }), like: computing(2) },
	{ name: 'writer: 190 calls of tools with 60 kB of arguments in one run', victims: ['run', 'write'], start: repeat(2, SMALL_CALLS, { servers: ['hostile'] }), like: computing(2) },
	{ name: 'writer: 4,000 files of each run', victims: ['run', 'write'], start: repeat(2, "for n in range(4000): open(f'{n}', 'w').write(str(n))"), like: computing(2) },
	{ name: 'writer: short runs in conversations of 4,000 files', victims: ['run', 'write'], start: crowded, like: computing(4) },
	{ name: 'writer: uploads of 22 MB', victims: ['run', 'write'], start: uploads },
	{ name: 'writer: wide audit entries', victims: ['run', 'write'], start: program(4, { language: 'bash', code: ':', environment, args: Array.from({ length: 200 }, (_, n) => `${n}`.repeat(20)) }), like: computing(4) },
	{ name: 'jailer: sandboxes that begin and end', victims: ['run', 'write'], start: sessions, like: computing(4) },
	{ name: 'jailer: 16 MB of output at once', victims: ['run', 'write'], start: program(2, { language: 'bash', code: 'head -c 16000000 /dev/zero' }), like: computing(2) },
	{ name: 'jailer: full /data and /tmp, 60 processes', victims: ['run', 'write'], start: program(2, { language: 'bash', code: 'head -c 60M /dev/zero >/tmp/a; cd /tmp; for n in {1..2000}; do mkdir -p d$n/e/f; done; for n in {1..60}; do sleep 9 & done' }), like: computing(2) },
];

/* -------- measuring ----------------------------------------------------------------------------------- */

async function under(start, victims) {
	const attack = await start(), times = {}, began = performance.now();
	await new Promise((resolve) => setTimeout(resolve, 300)); /* it is under way */
	try {
		do await series(victims, times);
		while (attack.ended && attack.ended() < ENDED && performance.now() - began < PATIENCE_MS);
	} finally {
		times.said = await attack.stop();
	}
	return times;
}

async function measure({ name, victims, start, like }) {
	const rounds = [];
	for (let round = 0; round < ROUNDS; round++)
		rounds.push({ quiet: await series(victims), attacked: await under(start, victims), ...(like && { alike: await under(() => ({ ...like(), ended: null }), victims) }) });
	for (const kind of victims) {
		const against = (which) => median(rounds.map((round) => mean(round.attacked[kind]) / mean(round[which][kind])));
		const ratio = against(like ? 'alike' : 'quiet'), good = ratio <= BOUND;
		if (!good) missed++;
		console.log(`${good ? 'ok    ' : 'MISSED'} ${ratio.toFixed(2)} × (bound ${BOUND}) ${kind}: ${name}${like ? `; against quiet ${against('quiet').toFixed(2)} ×` : ''}; ${median(rounds.map((round) => mean(round.quiet[kind]))).toFixed(1)} ms in quiet; ${rounds.at(-1).attacked.said}`);
	}
}

/* -------- memory -------------------------------------------------------------------------------------- */

const head = (name, args) => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"arguments":${args}`;
const bodies = [
	{ name: 'an upload', tool: 'upload_file', begin: '{"conversationId":"c","filename":"f","content":"', fill: 'AAAA', end: '"}}}' },
	{ name: 'a program of escapes', tool: 'run_code', begin: '{"language":"bash","code":"', fill: '\\u0041', end: '"}}}' },
	{ name: 'as many values as there may be', tool: 'run_code', begin: `{"language":"bash","code":"","args":[${'"",'.repeat(262_000)}"`, fill: ' ', end: '"]}}}' },
	{ name: 'as many members as there may be', tool: 'run_code', begin: `{"language":"bash","code":"",${Array.from({ length: 65_000 }, (_, n) => `"k${n}":${n}`)},"x":"`, fill: ' ', end: '"}}}' },
	{ name: 'no JSON', tool: 'run_code', begin: '{', fill: '[', end: '' },
	{ name: 'a token that may send none', tool: 'upload_file', scope: 'network', begin: '{"conversationId":"c","filename":"f","content":"', fill: 'AAAA', end: '"}}}' },
];
const status = (pid, word) => Number(new RegExp(`^${word}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;

async function memory({ name, tool, scope, begin, fill, end }) {
	const who = scope ? await owner(`flood-${scope}`, '--scope', scope) : attacker;
	const file = path.join(stack.state, 'body'), fd = openSync(file, 'w');
	const front = head(tool, begin), rest = BODY_BYTES - front.length - end.length;
	writeSync(fd, front);
	writeSync(fd, fill.repeat(Math.floor(rest / fill.length)));
	writeSync(fd, end);
	closeSync(fd);
	const { pid } = stack.process('sallyport-gateway');
	writeFileSync(`/proc/${pid}/clear_refs`, '5'); /* the peak begins again */
	const rest_mib = status(pid, 'VmHWM');
	const send = promisify(execFile);
	const headers = { Authorization: `Bearer ${who.token}`, 'Content-Type': 'application/json', 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': tool };
	const options = Object.entries(headers).flatMap(([key, value]) => ['-H', `${key}: ${value}`]);
	let over = false, honest = 0;
	const others = (async () => {
		while (!over) {
			await timed('write');
			honest++;
		}
	})();
	const codes = (await Promise.all(Array.from({ length: BODIES }, () => send('curl', ['-s', '-o', '/dev/null', '-w', '%{http_code}', ...options, '--data-binary', `@${file}`, stack.url]).then(({ stdout }) => stdout, () => 'none'))));
	over = true;
	await others;
	const took = status(pid, 'VmHWM') - rest_mib, good = took <= MEMORY_MIB;
	if (!good) missed++;
	const answers = Object.entries(Object.groupBy(codes, (code) => code)).map(([code, { length }]) => `${length} × ${code}`).join(', ');
	console.log(`${good ? 'ok    ' : 'MISSED'} ${took.toFixed(0)} MiB above rest (bound ${MEMORY_MIB}): ${BODIES} bodies of 30 MiB, ${name}; ${answers}; ${honest} calls of another owner`);
}

/* A process for each, so that none waits for another one. */
const servers = [];
async function serve(name) {
	const child = spawn(node, [path.join(root, 'tests/stress/servers.mjs')], { stdio: ['ignore', 'pipe', 'inherit'] });
	servers.push(child);
	const [port] = await once(child.stdout, 'data');
	return [name, { url: `http://127.0.0.1:${String(port).trim()}/${name}`, private: true, tools: { allow: ['*'] } }];
}
try {
	const state = makeState(), file = path.join(state, 'upstream.json');
	writeFileSync(file, JSON.stringify({ mcpServers: Object.fromEntries(await Promise.all(['echo', 'many', 'hostile'].map(serve))) }));
	chmodSync(file, 0o644);
	stack = await Stack.start({ state, env: { SALLYPORT_UPSTREAM_FILE: file } });
	victim = await owner('victim');
	attacker = await owner('attacker');
	await series(['run', 'tool', 'write', 'list']); /* warms up */
	for (const attack of attacks) if (wanted.test(attack.name)) await measure(attack);
	for (const body of bodies) if (wanted.test(`bodies: ${body.name}`)) await memory(body);
	console.log(missed ? `neighbours: ${missed} bounds were missed` : 'neighbours: every bound was kept');
} finally {
	await stack?.stop();
	for (const child of servers) child.kill();
}
process.exitCode = missed ? 1 : 0;
