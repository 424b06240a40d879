// show.cjs - shows the completion value of a program in JavaScript (Node) or TypeScript (bun): loaded before it, as a preloaded module.
//
// The program is loaded as ever. Only where its last statement is an expression, its text gets an assignment to a setter of ours in front of
// that expression, on an earlier line if that is possible: lines and columns of tracebacks stay what they are. Where the last statement begins is not parsed here: places are tried from the end, and the engine
// says whether what stands before is a program and what stands behind is an expression. What does not look like one is left alone.
//
// The value is shown when the expression has it, as node's console does. Showing has a time and a length of its own, and what goes wrong
// in it is one line. undefined, null, functions and promises are not shown: calls made for what they do return them.
'use strict';

const bun = typeof Bun !== 'undefined', say = console.log;
let streams = false; // the program uses process.stdout
const SETTER = 'ᐅ', SHOWN_MAX = 16 * 1024, SHOW_MS = 5000, SOURCE_MAX = 256 * 1024, TRIES = 40;
// What an assignment would turn from a declaration or a block into a value; `import` of a statement, not of a call.
const NO_EXPRESSION = /^(?:function|class|async\s+function|let|var|const|export|enum|interface|type|namespace|declare|abstract|import\s*[^\s(.]|[{@])/;
// Lines that go on with the statement before them.
const GOES_ON = /^(?:[([`+\-*/%,.?:&|^<>=!;)\]}]|in\b|instanceof\b|as\b|satisfies\b)/;
const COMMENTS = /^(?:\s|\/\/.*(?:\n|$)|\/\*[^]*?\*\/)+/;
// bun never runs what a plugin gives it for a CommonJS program. `export` makes one a module, in which these mean something else.
const MODULE = /^[ \t]*(?:import\b(?!\s*[(.])|export\b)/m, COMMONJS = /\b(?:require|module|exports|__filename|__dirname)\b/;
const ENDS = /;?\s*(?:\/\/[^\n]*)?\s*$/;

function checker() {
	if (bun) {
		const transpiler = new Bun.Transpiler({ loader: 'ts' });
		return (text) => {
			try {
				transpiler.transformSync(text);
				return true;
			} catch {
				return false;
			}
		};
	}
	const vm = require('node:vm');
	const whole = (text) => {
		try {
			new vm.Script(`(async function () {${text}\n})`);
			return true;
		} catch {
			return false;
		}
	};
	// import and export declarations are for modules alone: the program before the place may have them
	const plain = (text) => text.replace(/^[ \t]*import\s+(?:[\w$*{][^'"();]*\sfrom\s*)?(['"])[^'"\n]*\1[^;\n]*;?/gm, ';').replace(/^[ \t]*export\s+(?:default\s+)?(?=[\w$({[])/gm, '');
	return (text) => whole(text) || (/^[ \t]*(?:import|export)\b/m.test(text) && whole(plain(text)));
}

// Places where the last statement may begin, from the end: behind each ; of a line, and at each line's beginning.
function* places(source) {
	for (let end = source.length; end > 0; ) {
		const begin = source.lastIndexOf('\n', end - 1) + 1;
		for (let at = source.lastIndexOf(';', end - 1); at >= begin; at = source.lastIndexOf(';', at - 1)) {
			yield at + 1;
			if (at === 0) break;
		}
		yield begin;
		end = begin - 1;
	}
}

// Where the assignment goes: on a line before the expression that cannot throw (blank, a comment, closing brackets), right before a
// name or a number, else behind the line before. A line that throws is printed, and is to look as it was.
function insert(source, start, valid) {
	const at = (place) => `${source.slice(0, place)};${SETTER}=`;
	const between = /^(?:\s|\/\/.*\n|\/\*[^]*?\*\/)*$/;
	let above = -1;
	for (let end = start; (end = source.lastIndexOf('\n', end - 1)) > 0 && between.test(source.slice(end, start)); ) {
		const line = source.lastIndexOf('\n', end - 1) + 1, text = source.slice(line, end);
		const place = /^\s*(?:\/\/.*)?$/.test(text) ? line : /^[\s})\];]*$/.test(text) ? end : -1;
		if (place > 0 && !valid(at(place))) return at(place) + source.slice(place);
		if (above < 0 && !valid(at(end))) above = end;
	}
	if (above < 0 || /^[\w$]+\s*;?\s*$/.test(source.slice(start))) return `${source.slice(0, start)}${SETTER}=${source.slice(start)}`;
	return at(above) + source.slice(above);
}

function rewritten(source) {
	if (source.length > SOURCE_MAX || source.includes(SETTER)) return source;
	const last = source.trimEnd().replace(/^[^]*\n/, '');
	if (/^\s*(?:console\.|process\.)/.test(last) && !/;.*;/.test(last)) return source; // the usual end, which has no value
	const valid = checker();
	let tries = TRIES;
	for (const begin of places(source)) {
		const text = source.slice(begin), start = begin + (COMMENTS.exec(text)?.[0].length ?? 0), expression = source.slice(start);
		if (expression.trim() === '' || (begin > 0 && source[begin - 1] !== ';' && GOES_ON.test(expression))) continue;
		if (tries-- === 0) break;
		if (!valid(source.slice(0, begin))) continue;
		if (!valid(`0?(0,\n${expression.replace(ENDS, '')}\n):0`)) continue;
		if (NO_EXPRESSION.test(expression) || !valid(`0?\n${expression.replace(ENDS, '')}\n:0`)) break;
		return insert(source, start, valid);
	}
	return source;
}

function text(value) {
	const { inspect } = require('node:util'), vm = require('node:vm');
	const output = ['stdout', 'stderr'].map((name) => [name, Object.getOwnPropertyDescriptor(process, name)]);
	const own = Symbol.for('sallyport.inspect');
	let made = '';
	Object.defineProperty(globalThis, own, { value: () => void (made = String(inspect(value, { maxStringLength: SHOWN_MAX })).slice(0, SHOWN_MAX)), configurable: true });
	const speaks = { ...console }, mute = () => true; // what a value prints while it is shown is not the program's
	// put away, not muted: a stream that the program has not used is not made for this
	for (const [name] of output) Object.defineProperty(process, name, { value: { write: mute, end: mute, on: mute, once: mute }, configurable: true });
	for (const name of Object.keys(speaks)) if (typeof speaks[name] === 'function') console[name] = mute;
	try {
		new vm.Script("globalThis[Symbol.for('sallyport.inspect')]()").runInThisContext({ timeout: SHOW_MS });
		return made;
	} catch {
		return '<its value cannot be shown>';
	} finally {
		delete globalThis[own];
		Object.assign(console, speaks);
		for (const [name, own] of output) Object.defineProperty(process, name, own);
	}
}

function show(value) {
	if (value === undefined || value === null || typeof value === 'function' || (typeof value === 'object' && value instanceof Promise)) return;
	const plain = typeof value !== 'object' && typeof value !== 'string';
	const line = plain ? require('node:util').inspect(value) : text(value);
	// process.stdout has a queue, which is to be kept where the program uses it; where not, making it would cost milliseconds.
	if (streams) process.stdout.write(`${line}\n`);
	else if (bun) say(line);
	else require('node:fs').writeSync(1, `${line}\n`);
}

function start() {
	const fs = require('node:fs'), main = process.argv[1];
	const own = process.execArgv.indexOf('--require');
	if (own >= 0) process.execArgv.splice(own, 2); // children of the program are not shown
	const plain = fs.readFileSync(main, 'utf8'), deep = Error.stackTraceLimit;
	let source;
	Error.stackTraceLimit = 0; // nobody reads the stacks of what is tried
	try {
		source = rewritten(plain);
	} finally {
		Error.stackTraceLimit = deep;
	}
	if (source === plain || process.abort.disabled) return; // that: a worker, which runs preloaded modules, too
	if (bun) {
		streams = plain.includes('stdout'); // its console does not use it
	} else {
		const own = Object.getOwnPropertyDescriptor(process, 'stdout');
		Object.defineProperty(process, 'stdout', {
			...own,
			get() {
				streams = true;
				Object.defineProperty(process, 'stdout', own);
				return process.stdout;
			},
		});
	}
	if (bun && !MODULE.test(plain)) {
		if (COMMONJS.test(plain)) return;
		source += '\nexport {};';
	}
	require('node:util'); // by way of the hooks below it takes milliseconds
	let shown = false, hooks;
	Object.defineProperty(globalThis, SETTER, {
		set(value) {
			hooks?.deregister();
			if (!shown) show(value);
			shown = true;
		},
	});
	if (bun) {
		const filter = new RegExp(`^${main.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}$`);
		Bun.plugin({ name: 'show', setup: (build) => build.onLoad({ filter }, () => ({ contents: source, loader: main.endsWith('x') ? 'tsx' : 'ts' })) });
		return;
	}
	const url = require('node:url').pathToFileURL(main).href;
	hooks = require('node:module').registerHooks({
		load(name, context, next) { // of a module twice: its first try is CommonJS
			const loaded = next(name, context);
			return name === url && loaded.source ? { ...loaded, source } : loaded;
		},
	});
}

try {
	start();
} catch {
	// the program runs without
}
