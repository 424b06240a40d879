// core.mjs - calls of the MCP servers that this run names, from JavaScript and TypeScript.
//
//     await tools.github.list_issues({ owner: 'o' })      a value; throws ToolError if the tool fails
//     await tools['my-server']['get-sum']({ a: 1 })       exact names; tools.call(server, tool, arguments) too
//       .full(...)                                        everything that the tool answered
//     tools.servers() .list(server) .search(words) .describe(server, tool) .read(server, uri)
import fs from 'node:fs';
import net from 'node:net';

const HERE = '/code/tools';

export class ToolError extends Error {
	constructor(error) {
		const where = error.tool ? `${error.server}.${error.tool} failed: ` : error.server ? `${error.server}: ` : '';
		super(where + error.text + (error.signature ? `\nsignature: ${error.signature}` : ''));
		this.name = this.constructor.name;
		const { kind, server, tool, text, signature, result } = error;
		Object.assign(this, { kind, server, tool, text, signature, result, content: result?.content ?? [] });
	}
}
export class Denied extends ToolError {}
export class LimitReached extends ToolError {}
export class Timeout extends ToolError {}
export class Unavailable extends ToolError {}
export class InvalidArguments extends ToolError {}
export class ReplayMiss extends ToolError {}
const KINDS = {
	denied: Denied, approval: Denied, limit: LimitReached, timeout: Timeout, unavailable: Unavailable,
	unknown_outcome: Unavailable, invalid: InvalidArguments, replay: ReplayMiss,
};
const failure = (error) => new (KINDS[error.kind] ?? ToolError)(error);

// The stack of an error is the program's: where it made the call, without what stands here.
function withStack(error, stack) {
	const own = stack.split('\n').filter((line) => /^ +at /.test(line) && !line.includes('/node_modules/tools/'));
	error.stack = [`${error.name}: ${error.message}`, ...own].join('\n');
	return error;
}

// -------- the wire: one connection of this process, which does not keep it alive while nothing is asked
let wire = null;

function lost(link, error) {
	if (wire === link) wire = null;
	for (const { reject } of link.waiting.values()) reject(failure(error));
	link.waiting.clear();
}

function take(link, chunk) {
	link.parts.push(chunk);
	link.size += chunk.length;
	while (link.size >= link.wanted) {
		const bytes = link.parts.length === 1 ? link.parts[0] : Buffer.concat(link.parts);
		const piece = bytes.subarray(0, link.wanted);
		link.parts = [bytes.subarray(link.wanted)];
		link.size = bytes.length - link.wanted;
		if (link.head) {
			link.wanted = piece.readUInt32BE(0);
			link.head = false;
			continue;
		}
		link.wanted = 4;
		link.head = true;
		const answer = JSON.parse(piece.toString('utf8'));
		if (!('id' in answer)) return lost(link, answer.error);
		const waiting = link.waiting.get(answer.id);
		link.waiting.delete(answer.id);
		if (link.waiting.size === 0) link.socket.unref();
		if (answer.ok) waiting?.resolve(answer);
		else waiting?.reject(failure(answer.error));
	}
	return undefined;
}

function connect() {
	const socket = net.connect(process.env.MCP_SOCKET ?? '/code/.mcp');
	const link = { socket, waiting: new Map(), last: 0, parts: [], size: 0, wanted: 4, head: true };
	const over = { kind: 'unavailable', text: 'the run has ended' };
	socket.on('data', (chunk) => take(link, chunk));
	socket.on('error', () => lost(link, { kind: 'unavailable', text: 'this run may call no tools: it names no servers' }));
	socket.on('close', () => lost(link, over));
	return link;
}

function ask(request) {
	wire ??= connect();
	const link = wire, { stack } = new Error();
	return new Promise((resolve, refuse) => {
		const reject = (error) => refuse(withStack(error, stack));
		const id = ++link.last;
		const body = Buffer.from(JSON.stringify({ id, ...request }));
		const head = Buffer.alloc(4);
		head.writeUInt32BE(body.length);
		link.waiting.set(id, { resolve, reject });
		link.socket.ref();
		link.socket.write(Buffer.concat([head, body]));
	});
}

// -------- values
function block(raw) {
	const inner = raw.resource ?? raw;
	const bytes = inner.data ?? inner.blob;
	return {
		raw, type: raw.type, text: inner.text, mime: inner.mimeType, uri: inner.uri,
		get data() {
			return bytes === undefined ? Buffer.from(inner.text ?? '') : Buffer.from(bytes, 'base64');
		},
		save(path) {
			fs.writeFileSync(path, this.data);
			return path;
		},
	};
}

function result(answer, server, tool) {
	const raw = answer.result;
	const content = (raw.content ?? []).map(block);
	const text = content.filter((one) => one.text !== undefined).map((one) => one.text).join('\n');
	return {
		raw, server, tool, content, text, structured: raw.structuredContent, meta: raw._meta,
		images: content.filter((one) => one.type === 'image'),
		// Structured content; else text, parsed only if all of it is an object or array; else the blocks.
		get value() {
			if (raw.structuredContent !== undefined && raw.structuredContent !== null)
				return answer.wrap ? raw.structuredContent.result : raw.structuredContent;
			if (content.length === 0) return null;
			if (content.some((one) => one.type !== 'text')) return content;
			if (/^\s*[{[]/.test(text)) {
				try {
					return JSON.parse(text);
				} catch {
					// a text that only begins like one
				}
			}
			return text;
		},
	};
}

function missing(text) {
	const error = new TypeError(text);
	return withStack(error, error.stack);
}

// -------- names
// As JavaScript writes them: readTextFile for read_text_file.
const plain = (key) => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function makeTool(server, definition) {
	const request = (args) => ({ op: 'call', server, tool: definition.name, arguments: args ?? {} });
	const call = async (args) => result(await ask(request(args)), server, definition.name).value;
	call.full = async (args) => result(await ask(request(args)), server, definition.name);
	Object.defineProperty(call, 'name', { value: definition.alias });
	call.tool = definition.name;
	return call;
}

function makeServer(name, alias) {
	let byName, byAlias;
	const load = () => {
		if (byName) return;
		const definitions = JSON.parse(fs.readFileSync(`${HERE}/stubs/${alias}.json`, 'utf8'));
		byName = new Map(definitions.map((one) => [one.name, makeTool(name, one)]));
		byAlias = new Map();
		for (const one of definitions)
			if (definitions.filter((other) => other.alias === one.alias).length === 1) byAlias.set(one.alias, byName.get(one.name));
	};
	const find = (key) => (load(), byName.get(key) ?? byAlias.get(key) ?? (typeof key === 'string' ? byAlias.get(plain(key)) : undefined));
	return new Proxy({}, {
		get(_, key) {
			if (typeof key !== 'string' || key === 'then' || key === 'toJSON') return undefined;
			const tool = find(key);
			if (!tool) throw missing(`server ${name} has no tool ${key}; it has: ${[...byAlias.keys()].join(', ')}`);
			return tool;
		},
		has: (_, key) => find(key) !== undefined,
		ownKeys: () => (load(), [...byAlias.keys()]),
		getOwnPropertyDescriptor: (_, key) => ({ value: find(key), enumerable: true, configurable: true }),
	});
}

const cache = { socket: undefined, servers: new Map() };

// In a live sandbox each run has its own servers.
function index() {
	const text = fs.readFileSync(`${HERE}/index.json`, 'utf8');
	if (cache.text !== text) {
		cache.text = text;
		cache.servers = new Map();
		for (const { name, alias } of JSON.parse(text).servers) {
			const made = makeServer(name, alias);
			cache.servers.set(alias, made);
			cache.servers.set(name, made);
		}
	}
	return cache.servers;
}

const listed = async (request) => (await ask(request)).result;
const own = {
	call: async (server, tool, args, timeout) =>
		result(await ask({ op: 'call', server, tool, arguments: args ?? {}, ...(timeout ? { timeout } : {}) }), server, tool).value,
	servers: () => listed({ op: 'servers' }),
	list: (server, detail = 'summary') => listed({ op: 'describe', server, detail }),
	search: (query, { server, limit = 10, detail = 'summary' } = {}) => listed({ op: 'search', query, limit, detail, ...(server ? { server } : {}) }),
	describe: (server, tool, detail = 'full') => listed({ op: 'describe', server, detail, ...(tool ? { tool } : {}) }),
	read: async (server, uri) => ((await ask({ op: 'read', server, uri })).result.contents ?? []).map((resource) => block({ type: 'resource', resource })),
	ToolError, Denied, LimitReached, Timeout, Unavailable, InvalidArguments, ReplayMiss,
};

export const tools = new Proxy(own, {
	get(_, key) {
		if (key in own) return own[key];
		if (typeof key !== 'string' || key === 'then' || key === 'toJSON') return undefined;
		const found = index().get(key) ?? index().get(plain(key));
		if (!found) throw missing(`no server ${key} in this run; it names: ${[...new Set(JSON.parse(cache.text).servers.map((one) => one.name))].join(', ')}`);
		return found;
	},
	has: (_, key) => key in own || index().has(key),
});
export default tools;

// In a live sandbox, before each run: the connection of the last one leads nowhere.
export function begin() {
	wire = null;
	return tools;
}
