// javascript_live.cjs - keeps one Node interpreter over the runs of a live sandbox (jail/init/init_live.c says what comes through descriptor 3).
//
// Each run's source is evaluated as the debugger's console does it (Runtime.evaluate in REPL mode, over the inspector's in-process
// session): one global scope, const and let of earlier runs are seen and may be declared again, await is allowed at the top. require,
// module and the rest of what a CommonJS file has are globals; import statements become dynamic imports. Output is what it prints.
//
// A run is over when nothing is left that would keep a script alive (`beforeExit`), or with an error that nobody caught: that one is
// printed and makes the status 1. What is unref'ed goes on in later runs. process.exit() ends the interpreter, and so the sandbox.
'use strict';

const fs = require('node:fs');
const inspector = require('node:inspector');
const { createRequire, registerHooks } = require('node:module');
const { dirname } = require('node:path');
const { pathToFileURL } = require('node:url');
const { inspect } = require('node:util');

const CONTROL = 3, PACKET_MAX = 256 * 1024;
const session = new inspector.Session();
session.connect();
let order = 0; // number of the run
let running = false; // one is under way and not told
let leaving = false; // process.exit(): what it rejects on its way is nobody's error
let unsettled = false; // its top-level await has not come back
let given = []; // names of its environment variables

// What is evaluated has no loader of its own: import() goes by way of ours, and import statements (what a model writes for a module) become
// that. Comments, strings and templates are matched only to be stepped over.
const OVER = /\/\/.*|\/\*[^]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[^]|[^`\\])*`/;
const STATEMENT = /^[ \t]*import\s+(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)\s*|(\{[^}]*\})\s*)?(?:from\s*)?(['"][^'"\n]+['"])[ \t]*;?/;
const CALL = /(?<![.\w$])import\s*(?=\()/;
const IMPORTS = new RegExp([OVER, STATEMENT, CALL].map((one) => one.source).join('|'), 'gm');
const LOADER = 'globalThis[Symbol.for("sallyport.import")]';
const TOOLS = '/code/node_modules/tools'; // of a run that calls tools; its servers need not be those of the last run
const toolsModule = (name) => `${pathToFileURL(TOOLS)}/${name === 'tools' ? 'index' : name.slice('tools/'.length)}.mjs?${order}`;
const load = (name, options) => import(process.env.MCP_SOCKET && /^tools(\/|$)/.test(name) ? toolsModule(name) : /^\.{0,2}\//.test(name) ? new URL(name, pathToFileURL(globalThis.__filename)).href : name, options);
Object.defineProperty(globalThis, Symbol.for('sallyport.import'), { value: load });

// What the conversation has installed: import does not look into NODE_PATH.
const INSTALLED = pathToFileURL('/data/.packages/npm/lib/program.js').href;
registerHooks({
	resolve(name, context, next) {
		try {
			return next(name, context);
		} catch (error) {
			if (error.code !== 'ERR_MODULE_NOT_FOUND' || context.parentURL === INSTALLED) throw error;
			try {
				return next(name, { ...context, parentURL: INSTALLED });
			} catch {
				throw error;
			}
		}
	},
});

// require() of tools: Node keeps a module for ever, but the servers of this run need not be those of the last one.
function requireWith(found, tools) {
	const module = new Proxy(tools, { get: (own, key) => (key === 'default' || key === 'tools' ? own : own[key]) });
	const required = (name) => (name === 'tools' ? module : /^tools\//.test(name) ? tools[name.slice('tools/'.length)] : found(name));
	return Object.assign(required, found);
}

function ownLoader(source) {
	return source.replace(IMPORTS, (text, standard, all, some, from) => {
		if (!from) return text.startsWith('import') ? LOADER : text;
		const parts = [];
		if (standard) parts.push(`{ default: ${standard} } = await ${LOADER}(${from})`);
		if (all) parts.push(`${all} = await ${LOADER}(${from})`);
		if (some) parts.push(`${some.replace(/\bas\b/g, ':').replace(/\s+/g, ' ')} = await ${LOADER}(${from})`);
		const lines = '\n'.repeat(text.split('\n').length - 1);
		return (parts.length ? `var ${parts.join(', ')};` : `await ${LOADER}(${from});`) + lines;
	});
}

// Frames of this file and what lies below them are not the program's.
function ownFrames(text) {
	const kept = [];
	for (const line of String(text).split('\n')) {
		if (/^ +at .*(\/code\/\.helper|node:inspector)/.test(line)) break;
		kept.push(line);
	}
	return kept.join('\n');
}

// The head of a message as Node prints it: the line, and a mark below it.
function where(name, source, line, column) {
	return `${name}:${line}\n${source.split('\n')[line - 1] ?? ''}\n${' '.repeat(column - 1)}^`;
}

function describe(error) {
	if (error instanceof Error && typeof error.stack === 'string') return ownFrames(error.stack);
	return `Uncaught ${inspect(error)}`;
}

function report(text) {
	try {
		fs.writeSync(2, `${text}\n`);
	} catch {
		// standard error was closed by the program
	}
}

// The end of a run; waits for the next one and begins it. Blocks: between runs everything is frozen anyway.
function finish(status) {
	if (running) {
		running = false;
		process.exitCode = undefined;
		fs.writeSync(CONTROL, Buffer.from([status & 255]));
	}
	const packet = Buffer.alloc(PACKET_MAX);
	const length = fs.readSync(CONTROL, packet);
	if (length === 0) process.reallyExit(0);
	const [path, shows, count, ...strings] = packet.toString('utf8', 0, length).split('\0').slice(0, -1);
	setImmediate(begin, path, strings.slice(0, Number(count)), strings.slice(Number(count)), shows === '1');
}

function fail(text) {
	report(text);
	finish(process.exitCode || 1);
}

function begin(path, args, environment, shows) {
	running = true;
	order++;
	for (const name of given) delete process.env[name];
	given = environment.map((entry) => entry.slice(0, entry.indexOf('=')));
	for (const entry of environment) process.env[entry.slice(0, entry.indexOf('='))] = entry.slice(entry.indexOf('=') + 1);
	const found = createRequire(path), tools = process.env.MCP_SOCKET && require(`${TOOLS}/core.mjs`).begin();
	Object.assign(globalThis, { require: tools ? requireWith(found, tools) : found, __filename: path, __dirname: dirname(path) });
	if (tools) Object.defineProperty(globalThis, 'tools', { configurable: true, writable: true, value: tools });
	process.argv = [process.execPath, path, ...args];
	let input;
	Object.defineProperty(process, 'stdin', {
		configurable: true,
		enumerable: true,
		get: () => (input ??= new fs.ReadStream(null, { fd: 0, autoClose: false })),
	});
	const name = order === 1 ? path : `${path}#${order}`;
	const source = fs.readFileSync(path, 'utf8').replace(/^#!.*/, '');
	const expression = `${ownLoader(source)}\n//# sourceURL=${name}`;
	const own = order;
	unsettled = true;
	session.post('Runtime.evaluate', { expression, replMode: true, awaitPromise: true, objectGroup: 'run' }, (error, answer) => {
		if (own !== order || leaving) return undefined; // an await of an earlier run
		unsettled = false;
		const last = source.trimEnd();
		if (shows && !error && !answer.exceptionDetails && !WRITES.test(last.slice(last.lastIndexOf('\n') + 1))) showValue(answer.result);
		session.post('Runtime.releaseObjectGroup', { objectGroup: 'run' });
		if (error) return fail(`${name}: ${error.message}`);
		const what = answer.exceptionDetails;
		if (!what) return undefined; // it is over when the event loop is empty
		const thrown = ownFrames(what.exception ? what.exception.description ?? `Uncaught ${JSON.stringify(what.exception.value)}` : what.text);
		const [, line, column] = thrown.split(`${name}:`)[1]?.match(/^(\d+):(\d+)/) ?? [];
		return fail(`${where(name, source, Number(line ?? what.lineNumber + 1), Number(column ?? what.columnNumber + 1))}\n\n${thrown}`);
	});
}

// As in javascript.cjs; of the last line.
const WRITES = /^(?:.*;)?\s*(?:await\s+)?(?:[\w$]+(?:\([^()]*\))?\s*\??\.\s*)*write\w*\(.*\);?$/;
function isHost(value) {
	return (typeof value.ref === 'function' && typeof value.unref === 'function') || (typeof value.on === 'function' && typeof value.emit === 'function');
}

// The completion value, as the console shows it; what goes wrong there is not the program's.
const SHOWN_MAX = 16 * 1024, SHOW_MS = 5000;
function showValue({ type, subtype, value, unserializableValue, description, objectId }) {
	if (type === 'undefined' || subtype === 'null' || type === 'function' || subtype === 'promise') return;
	let text = unserializableValue ?? (type === 'string' ? inspect(value.slice(0, SHOWN_MAX)) : String(value));
	if (objectId) {
		const own = Symbol.for('sallyport.inspect');
		Object.defineProperty(globalThis, own, { value: (one) => isHost(one) ? '' : inspect(one, { maxStringLength: SHOWN_MAX }).slice(0, SHOWN_MAX), configurable: true });
		const functionDeclaration = "function () { return globalThis[Symbol.for('sallyport.inspect')](this); }";
		session.post('Runtime.callFunctionOn', { objectId, functionDeclaration, returnByValue: true, timeout: SHOW_MS }, (error, answer) => {
			text = error || answer.exceptionDetails ? `<${description}: its value cannot be shown>` : String(answer.result.value);
		});
		delete globalThis[own];
	}
	if (text === '') return;
	try {
		fs.writeFileSync('/code/.value', `${text.slice(0, SHOWN_MAX)}\n`);
	} catch {
		// the program changed its folder
	}
}

globalThis.module = { exports: {} };
globalThis.exports = globalThis.module.exports;
process.on('exit', () => (leaving = true));
process.on('uncaughtException', (error) => fail(describe(error)));
process.on('beforeExit', () => {
	if (unsettled && running) {
		unsettled = false;
		return fail('Warning: Detected unsettled top-level await');
	}
	return finish(Number(process.exitCode ?? 0));
});
finish(0);
