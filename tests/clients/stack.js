/*
 * stack.js - a whole Sallyport of its own for a test: jailer, gateway and nginx, started by the script behind `make run` in a state folder
 * below /tmp on a free port of the loopback interface, and what tests do with it.
 *
 * The folder is readable for everybody, because as root the services run as www-data. stop() sends SIGTERM, waits for the script's end and
 * removes the folder; a stack that a test forgot dies with the test process (the script asks the kernel for that).
 * Nothing here sleeps: `until` looks again at what it waits for until it is there or the time is up, and then says what it waited for.
 * Programs that are to be seen while they run are made by `ticking`, and go on when their test has seen what they said.
 */
import assert from 'node:assert/strict';
import { spawn, execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
	chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, renameSync, rmSync, statSync,
} from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';

export const root = path.resolve(import.meta.dirname, '../..');
export const bin = process.env.SP_BIN ?? path.join(root, 'build/bin');
const PATIENCE_MS = 120_000; /* for an event on a busy machine; it costs nothing where the event comes early */
const LOOK_AGAIN_MS = 20, ALL_PROCESSES_MS = 100; /* to look at all of them is some work */

export async function until(what, check, ms = PATIENCE_MS) {
	const deadline = Date.now() + ms;
	for (;;) {
		const value = await check();
		if (value) return value;
		if (Date.now() > deadline) throw new Error(`waited ${ms} ms in vain for: ${what}`);
		await pause(LOOK_AGAIN_MS);
	}
}

/* Processes whose command line holds the text: [{ pid, words }]. */
export function processes(text) {
	const found = [];
	for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
		try {
			const words = readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0');
			if (words.some((word) => word.includes(text)) && Number(pid) !== process.pid) found.push({ pid: Number(pid), words });
		} catch {
			/* it ended meanwhile */
		}
	}
	return found;
}

/* Tries it with the gauge of the host around it (tests/unit/host_gauge.h), again if a meter rose too far: other programs are in the numbers. */
export async function gauged(jails, attempt) {
	for (let round = 1; ; round++) {
		const gauge = spawn(path.join(bin, '../tests/host_gauge'), [String(jails)], { stdio: ['pipe', 'pipe', 'inherit'] });
		let said = '';
		gauge.stdout.on('data', (data) => (said += data));
		const ended = once(gauge, 'close');
		await until('the gauge to measure', () => said.startsWith('measuring'));
		try {
			await attempt();
		} finally {
			gauge.stdin.end();
		}
		const [code] = await ended;
		if (code === 0) return;
		assert.ok(round < 3, said);
	}
}

let sleepers = 0;
export const TICKED = 'tick 0\ntick 1\ntick 2\ntick 3\n';
/* A program in Python that prints TICKED, and sleeps behind each line until wakeUntil wakes it: { code, marker }. */
export function ticking() {
	const marker = `${1_000_000 + process.pid}.${++sleepers}1`; /* nobody else on this machine sleeps for so many seconds */
	return { code: `import subprocess\nfor i in range(4):\n    print('tick', i, flush=True)\n    subprocess.run(['sleep', '${marker}'])\n`, marker };
}
export const lines = (text) => text.split('\n').length - 1;

/* Wakes it behind each line that was seen (`seen` gives their number; else behind every line), until the promise is kept: its value. */
export async function wakeUntil({ marker }, promise, seen = () => Infinity) {
	let over = false, woken = 0, last = 0;
	const ended = promise.finally(() => (over = true));
	ended.catch(() => null); /* it is awaited below */
	for (; !over; await pause(LOOK_AGAIN_MS)) {
		if (woken >= seen()) continue;
		const asleep = processes(marker).find(({ pid, words }) => words[0] === 'sleep' && pid !== last);
		if (!asleep) {
			await pause(ALL_PROCESSES_MS);
			continue;
		}
		last = asleep.pid;
		woken++;
		try {
			process.kill(last, 'SIGKILL');
		} catch (error) {
			if (error.code !== 'ESRCH') throw error; /* it was cancelled meanwhile */
		}
	}
	return ended;
}

export function makeState() {
	const state = mkdtempSync(path.join(tmpdir(), 'sp-'));
	chmodSync(state, 0o755);
	return state;
}

/*
 * What the interpreters answered a jailer is kept for the next stack (tests/run names the file): to ask all of them takes a second of processor.
 * The jailer knows what still holds (jail/answers.h).
 */
const keptAnswers = process.env.SP_ANSWERS ? `${process.env.SP_ANSWERS}.stack` : null;
function giveAnswers(state) {
	if (!keptAnswers || !existsSync(keptAnswers) || existsSync(path.join(state, 'jailer/jailer.sock.answers'))) return;
	mkdirSync(path.join(state, 'jailer'), { recursive: true });
	copyFileSync(keptAnswers, path.join(state, 'jailer/jailer.sock.answers'));
}
function keepAnswers(state) {
	const answers = path.join(state, 'jailer/jailer.sock.answers');
	if (!keptAnswers || !existsSync(answers)) return;
	if (existsSync(keptAnswers) && statSync(keptAnswers).size >= statSync(answers).size) return;
	copyFileSync(answers, `${keptAnswers}.${process.pid}`);
	renameSync(`${keptAnswers}.${process.pid}`, keptAnswers);
}

/* An answer that takes long comes as a stream with signs of life before it. */
function answerIn(text, type) {
	if (!type?.startsWith('text/event-stream')) return JSON.parse(text);
	return JSON.parse(text.match(/^data: .*$/gm).at(-1).slice('data: '.length));
}

export class Stack {
	/* `port` 0: a free one; `user`: an id to start it as, instead of our own; `env`: variables to add. The promise is kept when the stack serves. */
	static async start(options = {}) {
		for (;;) {
			const stack = new Stack();
			try {
				return await stack.begin(options);
			} catch (error) {
				/* It was free when it was chosen, and somebody else's a moment later: then there is another one. */
				if (options.port || options.state || !/bind\(\) to .* failed \(98/.test(stack.log())) throw error;
				stack.child.kill('SIGTERM');
				await stack.ended;
				rmSync(stack.state, { recursive: true, force: true });
			}
		}
	}
	async begin({ port = 0, state = makeState(), user = null, env = {} }) {
		this.state = state;
		this.output = '';
		this.ownUser = user === null; /* another one may not read what is ours */
		if (this.ownUser) giveAnswers(state);
		const identity = user === null ? [] : [`--reuid=${user}`, `--regid=${user}`, '--clear-groups'];
		this.child = spawn('setpriv', [...identity, '--pdeathsig', 'TERM', path.join(root, 'nginx/dev.sh'), '--bin', bin, '--state', state, String(port)], {
			stdio: ['ignore', 'pipe', 'pipe'],
			env: { ...process.env, ...env },
		});
		this.ended = new Promise((resolve) => this.child.once('exit', (code, signal) => resolve(this.status = { code, signal })));
		for (const stream of [this.child.stdout, this.child.stderr]) stream.on('data', (data) => (this.output += data));
		await until('the stack to serve', () => this.status || /^logs: /m.test(this.output)).catch((error) => {
			throw new Error(`${error.message}\n${this.output}`);
		});
		if (this.status) throw new Error(`the stack ended with ${JSON.stringify(this.status)}:\n${this.output}${this.log()}`);
		const line = (name) => new RegExp(`^${name}: (.*)$`, 'm').exec(this.output)[1];
		this.url = line('url');
		this.printed = line('token');
		this.config = line('config');
		const { stdout, stderr } = await this.cli(['token', 'add', '--owner', 'dev', '--servers', '*', '--results', 'structured', '--json']);
		assert.ok(stdout, stderr);
		this.token = JSON.parse(stdout).token; /* of the same owner; its answers have details */
		this.curl = /^curl .*$/m.exec(this.output)[0];
		this.base = this.url.replace(/\/mcp$/, '');
		return this;
	}
	get headers() {
		return { Authorization: `Bearer ${this.token}` };
	}
	/* No cgroup: memory is limited by process, so that its excess is an error of the program's. */
	get weaker() {
		return Boolean(process.env.SALLYPORT_JAILER_WEAKER_LIMITS) || /^note: this account has no cgroup/m.test(this.output);
	}
	log() {
		let text = '';
		for (const name of ['jailer', 'gateway', 'nginx']) {
			try {
				text += `--- ${name}.log\n` + readFileSync(path.join(this.state, 'log', `${name}.log`), 'utf8').split('\n').slice(-12).join('\n');
			} catch {
				/* not started */
			}
		}
		return text;
	}
	/* What the sanitizers found in a service stands in its log. */
	complaints() {
		for (const name of ['jailer', 'gateway']) {
			const text = readFileSync(path.join(this.state, 'log', `${name}.log`), 'utf8');
			assert.doesNotMatch(text, /Sanitizer|runtime error:/, name);
		}
	}
	/* A new home folder for a client that keeps things there; it goes with the stack. */
	home() {
		return mkdtempSync(path.join(this.state, 'home-'));
	}
	/* The environment of a `sallyport stdio` with a data folder of its own, which goes with the stack. */
	stdioEnv(more) {
		const folder = this.home();
		chmodSync(folder, 0o755);
		const env = { PATH: process.env.PATH, XDG_DATA_HOME: folder, SP_EXCHANGES: process.env.SP_EXCHANGES ?? '', ...more };
		return process.getuid() === 0 ? env : { ...env, SALLYPORT_JAILER_WEAKER_LIMITS: 'true' };
	}
	/* The process that serves as jailer, gateway or nginx. */
	process(program) {
		return processes(this.state).find(({ pid, words }) => {
			if (!words[0].endsWith(program) && !words[0].startsWith(`${program}:`)) return false;
			try {
				return !readlinkSync(`/proc/${pid}/exe`).endsWith('/setpriv');
			} catch {
				return false;
			}
		});
	}
	/* The CLI with this stack's configuration: { code, stdout, stderr }. */
	async cli(args, config = this.config) {
		return run(path.join(bin, 'sallyport'), [args[0], '--config', config, ...args.slice(1)]);
	}
	/* Every row of `sallyport log --json`, newest first. */
	async rows() {
		const { code, stdout, stderr } = await this.cli(['log', '--json', '--limit', '1000']);
		assert.equal(code, 0, stderr);
		return stdout.trim().split('\n').filter(Boolean).map((line) => JSON.parse(line));
	}
	/* One raw request of the modern era, without any SDK: the JSON-RPC answer. */
	async call(name, args, { signal } = {}) {
		const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} };
		const response = await fetch(this.url, {
			method: 'POST',
			signal,
			headers: {
				...this.headers, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream',
				'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': name,
			},
			body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args, _meta: meta } }),
		});
		return { status: response.status, ...answerIn(await response.text(), response.headers.get('content-type')) };
	}
	/* The structured result of run_code. */
	async run(args) {
		const answer = await this.call('run_code', { conversationId: 'test', ...args });
		assert.ok(answer.result, JSON.stringify(answer));
		assert.ok(answer.result.structuredContent, JSON.stringify(answer.result.content));
		return { ...answer.result.structuredContent, isError: answer.result.isError ?? false };
	}
	async stop({ keep = false } = {}) {
		if (this.stopped) return this.status;
		this.stopped = true;
		if (!this.status) this.child.kill('SIGTERM');
		await until('the stack to stop', () => this.status);
		this.complaints();
		if (this.ownUser) keepAnswers(this.state);
		if (!keep) rmSync(this.state, { recursive: true, force: true });
		return this.status;
	}
}

/* What a request asks for, so that its answer has details, where no token does. */
export const ASKS = { 'sallyport/results': 'structured' };

export async function run(program, args, options = {}) {
	try {
		const { stdout, stderr } = await promisify(execFile)(program, args, { maxBuffer: 64 << 20, ...options });
		return { code: 0, stdout, stderr };
	} catch (error) {
		if (typeof error.code !== 'number') throw error;
		return { code: error.code, stdout: error.stdout, stderr: error.stderr };
	}
}

/* The folders of a package and of all that it needs, below `packages`. */
function needed(packages, folder, found = new Set()) {
	if (found.has(folder)) return found;
	found.add(folder);
	const { dependencies, optionalDependencies, peerDependencies } = JSON.parse(readFileSync(path.join(packages, folder, 'package.json'), 'utf8'));
	for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })) {
		const place = [path.join(folder, 'node_modules', name), name].find((one) => existsSync(path.join(packages, one)));
		if (place) needed(packages, place, found);
	}
	return found;
}

/* The npm servers of the tests where jails can be shown them: { binds, server(name), remove() }. A jail has a /tmp of its own: in a checkout
 * there they are copied, without the packages of other tests. */
export function programsForJails() {
	const packages = path.join(root, 'tests/clients/node_modules');
	const copy = root.startsWith('/tmp/') ? mkdtempSync('/srv/sp-programs-') : null;
	if (copy) {
		const folders = new Set(['everything', 'filesystem', 'memory'].flatMap((name) => [...needed(packages, `@modelcontextprotocol/server-${name}`)]));
		chmodSync(copy, 0o755);
		mkdirSync(path.join(copy, 'node_modules'));
		execFileSync('cp', ['-r', '--parents', ...[...folders].filter((folder) => !folder.includes('/node_modules/')), path.join(copy, 'node_modules')], { cwd: packages });
		execFileSync('chmod', ['-R', 'go-w,a+rX', copy]);
	}
	const binds = copy ? `${copy}/node_modules` : packages;
	return {
		binds,
		server: (name) => `${binds}/@modelcontextprotocol/server-${name}/dist/index.js`,
		remove: () => copy && rmSync(copy, { recursive: true, force: true }),
	};
}

/* Width and height of a PNG, after its eight magic bytes and the IHDR chunk were checked. */
export function pngSize(bytes) {
	assert.equal(Buffer.from(bytes.subarray(0, 8)).toString('hex'), '89504e470d0a1a0a', 'not a PNG');
	assert.equal(Buffer.from(bytes.subarray(12, 16)).toString('latin1'), 'IHDR');
	const view = new DataView(bytes.buffer, bytes.byteOffset);
	return { width: view.getUint32(16), height: view.getUint32(20) };
}

/*
 * A server in front of the Sallyport at `base` that does not know server/discover, so that its clients take it for a legacy one. It listens on
 * loopback; the caller closes it.
 */
export async function legacyProxy(base) {
	const proxy = http.createServer((request, response) => {
		if (request.headers['mcp-method'] === 'server/discover') return void response.writeHead(400).end();
		const target = new URL(base);
		const onward = http.request({ host: target.hostname, port: target.port, method: request.method, path: request.url, headers: request.headers }, (answer) => {
			response.writeHead(answer.statusCode, answer.headers);
			answer.pipe(response);
		});
		onward.on('error', () => response.destroy());
		request.pipe(onward);
	}).listen(0, '127.0.0.1');
	await once(proxy, 'listening');
	return proxy;
}
