// @bun
// javascript.cjs - starts a program in JavaScript (Node) or TypeScript (bun) whose completion value is shown: loaded before it, as a
// preloaded module.
//
// The program is loaded as ever. Only where its last statement is an expression, its text gets `instanceof` behind it, or an assignment to
// a setter of ours in front of it, on an earlier line if that is possible: lines and columns of tracebacks stay what they are. Where the last statement begins is not parsed here: places are tried from the end, and the engine
// says whether what stands before is a program and what stands behind is an expression. What does not look like one is left alone.
//
// The value is shown when the expression has it, as the engine's console does. Showing has a length of its own and, where code of the
// program may take part in it, a time; what goes wrong in it is one line. undefined, null, functions, promises and objects
// of the engine are not shown: calls made for what they do return them.
//
// All of this is compiled before the program, so its length counts. The first line makes bun take the file as it is: as a module (no `require`),
// and its bytes as Latin-1 (no other characters in strings). Generators and first uses of regular expressions cost more than to show a value.
'use strict';

const bun = typeof Bun !== 'undefined';
const SHOWN = '/code/.value'; // no output of the program: the jailer reads it when the run has ended
let proxies = false; // it may have one (bun, which cannot ask a value)
const CUSTOM = Symbol.for('nodejs.util.inspect.custom');
const SIMPLE = 200; // values in what is shown without a guard
const SETTER = '\u1405', SHOWN_MAX = 16 * 1024, SHOW_MS = 5000, SOURCE_MAX = 256 * 1024, TRIES = 40, COMMENTS_MAX = 4;
const LOOKED_MAX = 16 * SOURCE_MAX; // characters looked at behind the places that are tried
// What an assignment would turn from a declaration or a block into a value, and export default; nothing else begins like it.
const NO_EXPRESSION = /^(?:(?:function|class|async\s+function|export)(?![\w$])|[{@])/, ITS_FIRST = 'fcae{@';
// Lines that go on with the statement before them.
const GOES_ON = /^(?:[([`+\-*/%,?:&|^<>=;)\]}]|\.(?!\d)|!=|in\b|instanceof\b|as\b|satisfies\b)/;
const COMMENTS = /^(?:\s|\/\/.*(?:\n|$)|\/\*[^]*?\*\/)+/;
// A last line that is a call which prints: it has nothing to show, and looking for more costs milliseconds.
const PRINTS = /^(?:console\.\w+|process\.(?:exit|std(?:out|err)\.write))\((?:[^()'"`]|'[^'\\]*'|"[^"\\]*"|`[^`\\]*`|\((?:[^()'"`]|\([^()'"`]*\))*\))*\);?$/;
// A call that writes: what it returns, a count, is nobody's result.
const WRITES = /^(?:await\s+)?(?:[\w$]+(?:\([^()]*\))?\s*\??\.\s*)*write\w*\([^]*\)$/;
const NAME = /^[\w$]+(?:\s*\/\/[^\n]*)?$/;
// In an expression without strings and brackets: operators that bind less than instanceof; and a slash, behind which a string may be none.
const LOOSE = /[=&|^?:,/]/, STRINGS = /(['"`])(?:\\[^]|(?!\1)[^\\])*\1|\?\./g, BRACKETS = /[([{][^()[\]{}]*[)\]}]/g;

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

// The last place before `end` where a statement may begin: behind a ; or at a line's beginning. -1: none.
function place(source, end) {
	return end > 1 ? Math.max(source.lastIndexOf(';', end - 2), source.lastIndexOf('\n', end - 2)) + 1 : end - 1;
}

// Where what stands behind blanks and comments begins.
function behindComments(text, begin) {
	const rest = text.slice(begin).trimStart();
	return text.length - rest.length + (rest[0] === '/' ? (COMMENTS.exec(rest)?.[0].length ?? 0) : 0);
}

// Does a comment begin on the line before this place? Then anything may follow on it.
function isComment(text, begin, valid) {
	return text.slice(text.lastIndexOf('\n', begin - 1) + 1, begin).includes('//') && valid(`${text.slice(0, begin)})`);
}

// Does what stands before end with a block? Then no line goes on with it, and a declaration could stand on the same line.
function endsWithBlock(before, valid) {
	before = before.trimEnd();
	for (let line; (line = before.lastIndexOf('\n') + 1) > 0 && before.slice(line).trimStart().startsWith('//'); ) before = before.slice(0, line).trimEnd();
	return before.endsWith('}') && valid(`${before}let ${SETTER}`);
}

// The expression without what may follow it, ; and a comment, as far as it is accepted; '' if it is not. A // may also stand in a string.
function bare(expression, accepts) {
	const line = expression.lastIndexOf('\n');
	for (let end = expression.length, left = COMMENTS_MAX; end > line && left > 0; end = expression.lastIndexOf('//', end - 1), left--) {
		let plain = expression.slice(0, end).trimEnd();
		while (plain.endsWith(';')) plain = plain.slice(0, -1).trimEnd();
		if (accepts(plain)) return plain;
	}
	return '';
}

// On lines of its own behind the expression, where all of it is then the left side of instanceof: its own lines stay what they are. A
// semicolon has to go, which Node (but not bun) would show in the line of an error.
function behind(source, start, valid, plain) {
	let rest = source.slice(start + plain.length), bare = plain.replace(STRINGS, '');
	for (let before; before !== bare; ) bare = (before = bare).replace(BRACKETS, '');
	if (LOOSE.test(bare) || plain.includes('${') || (!bun && rest.trimStart().startsWith(';'))) return undefined;
	const text = `${source.slice(0, start)}${plain}${bun ? rest.replaceAll(';', ' ') : rest}\ninstanceof ${SETTER}`;
	return !bun || valid(text) ? text : undefined;
}

// Or an assignment in front of it: on a line before the expression that cannot throw (blank, a comment, closing brackets), else behind
// the line before. Only a sequence needs a bracket behind it.
function insert(source, start, valid, plain, sequence) {
	// of a name that is not there V8 blames the assignment, unless something stands between
	const assign = `${SETTER}=${bun ? '' : '[][0]?0:'}${sequence ? '(' : ''}`;
	if (sequence) source = `${source.slice(0, start + plain.length)}\n)${source.slice(start + plain.length)}`; // it may end with a comment
	const at = (place) => `${source.slice(0, place)};${assign}`;
	const between = /^(?:\s|\/\/.*\n|\/\*[^]*?\*\/)*$/;
	let above = -1;
	for (let end = start; (end = source.lastIndexOf('\n', end - 1)) > 0 && between.test(source.slice(end, start)); ) {
		const line = source.lastIndexOf('\n', end - 1) + 1, text = source.slice(line, end);
		const place = /^\s*(?:\/\/.*)?$/.test(text) ? line : /^[\s})\];]*$/.test(text) ? end : -1;
		if (place > 0 && !valid(at(place))) return at(place) + source.slice(place);
		if (above < 0 && !valid(at(end))) above = end;
	}
	if (above < 0) return source.slice(0, start) + assign + source.slice(start);
	return at(above) + source.slice(above);
}

function rewritten(source) {
	const text = source.trimEnd();
	if (source.length > SOURCE_MAX || source.includes(SETTER) || PRINTS.test(text.slice(text.lastIndexOf('\n') + 1))) return source;
	const valid = checker();
	let looked = LOOKED_MAX, tries = TRIES;
	for (let begin = text.length + 1; (begin = place(text, begin)) >= 0 && (looked -= text.length - begin) > 0; ) {
		const start = behindComments(text, begin), expression = text.slice(start);
		if (expression === '') continue;
		if (begin > 0 && text[begin - 1] !== ';' && GOES_ON.test(expression) && !endsWithBlock(text.slice(0, begin), valid)) continue;
		if (tries-- === 0) break;
		if (begin > 0 && (!valid(text.slice(0, begin)) || isComment(text, begin, valid))) continue;
		const plain = bare(expression, (text) => NAME.test(text) || valid(`0?(0,\n${text}\n):0`));
		if (plain === '') continue;
		if (WRITES.test(plain)) break;
		if (ITS_FIRST.includes(plain[0]) && NO_EXPRESSION.test(plain)) break;
		const sequence = !valid(`0?\n${plain}\n:0`);
		if (sequence && !valid(`0?[0,\n${plain}\n]:0`)) break;
		return behind(source, start, valid, plain) ?? insert(source, start, valid, plain, sequence);
	}
	return source;
}

function inspect(value) {
	return String(bun ? Bun.inspect(typeof value === 'string' ? value.slice(0, SHOWN_MAX) : value) : require('node:util').inspect(value, { maxStringLength: SHOWN_MAX })).slice(0, SHOWN_MAX);
}

// No code of the program has a part in showing it, and it is small.
function simple(value, left = { over: SIMPLE }) {
	if (typeof value === 'function' || left.over-- === 0) return false;
	if (value === null || typeof value !== 'object') return true;
	if (bun ? proxies : require('node:util').types.isProxy(value)) return false;
	const prototype = Object.getPrototypeOf(value), list = Array.isArray(value);
	if (prototype !== (list ? Array : Object).prototype || CUSTOM in value || (list && value.length > SIMPLE)) return false;
	for (const name of Reflect.ownKeys(value)) {
		const own = Object.getOwnPropertyDescriptor(value, name);
		if (own.get || own.set || !simple(own.value, left)) return false;
	}
	return true;
}

// Timers, servers, streams, children: objects of the engine, which calls return that are made for what they do.
function isHost(value) {
	if (value === null || typeof value !== 'object') return false;
	return (typeof value.ref === 'function' && typeof value.unref === 'function') || (typeof value.on === 'function' && typeof value.emit === 'function');
}

function isModule(source) {
	return (source.includes('import') || source.includes('export')) && /^[ \t]*(?:import\b(?!\s*[(.])|export\b)/m.test(source);
}

// bun never runs what a plugin gives it for a CommonJS program: such a one is made a module. Modules have require, but neither module
// nor exports, and are strict. Is it the same as a module, as far as can be told without parsing it: all that it assigns to it declares?
function isLikeModule(source) {
	if (!(source.includes('require') || source.includes('__')) || !/\b(?:require|__filename|__dirname)\b/.test(source)) return true;
	if (/\b(?:module|exports)\b/.test(source)) return false;
	if (/^\s*(['"])use strict\1/.test(source)) return true;
	const declaring = /\b(?:const|let|var)\s+(?:[{[][^=;]*[\]}]|[\w$]+)/g, assigned = /(?<![.\w$]|:\s*)([A-Za-z_$][\w$]*)\s*=(?![=>])/g;
	if (/\b(?:this|arguments|with|delete|eval|Function)\b|[\]}]\s*=(?![=>])|\bfor\s*\(\s*[\w$.]+\s+(?:of|in)\b/.test(source.replace(declaring, ''))) return false;
	const declared = new Set((source.match(declaring) ?? []).join(' ').match(/[\w$]+/g));
	return Array.from(source.matchAll(assigned)).every(([, name]) => declared.has(name));
}

function text(value) {
	const vm = bun ? process.getBuiltinModule('node:vm') : require('node:vm');
	const output = ['stdout', 'stderr'].map((name) => [name, Object.getOwnPropertyDescriptor(process, name)]);
	const own = Symbol.for('sallyport.inspect');
	let made = '';
	Object.defineProperty(globalThis, own, { value: () => void (made = isHost(value) ? '' : inspect(value)), configurable: true });
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
	const line = simple(value) ? inspect(value) : text(value);
	if (line === '') return;
	if (bun) Bun.write(SHOWN, `${line}\n`);
	else require('node:fs').writeFileSync(SHOWN, `${line}\n`);
}

function start() {
	if (bun ? !Bun.isMainThread : process.abort.disabled) return; // a worker, which runs preloaded modules, too
	const own = bun ? -1 : process.execArgv.indexOf('--require');
	if (own >= 0) process.execArgv.splice(own, 2); // children of the program are not shown
	// bun takes milliseconds to make `process`, to load node:fs or node:util
	const main = bun ? Bun.main : process.argv[1];
	const plain = bun ? new TextDecoder().decode(Bun.mmap(main)) : require('node:fs').readFileSync(main, 'utf8'), deep = Error.stackTraceLimit;
	let source;
	Error.stackTraceLimit = 0; // nobody reads the stacks of what is tried
	try {
		source = rewritten(plain);
	} finally {
		Error.stackTraceLimit = deep;
	}
	if (source === plain) return;
	if (bun) proxies = plain.includes('Proxy');
	if (bun && !isModule(plain)) {
		if (!isLikeModule(plain)) return;
		source += '\nexport {};';
	}
	if (!bun) require('node:util'); // by way of the hooks below it takes milliseconds
	let shown = false, hooks;
	const set = (value) => {
		hooks?.deregister();
		if (!shown) show(value);
		shown = true;
	};
	Object.defineProperty(globalThis, SETTER, { set, get: () => ({ [Symbol.hasInstance]: set }) });
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
