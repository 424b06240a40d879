/*
 * agents.test.js - what reaches the model of real agents (make agents-test; SHOW=FOLDER keeps what each model got). Each agent works through the same calls of run_code, as its
 * scripted model (model.js) asks for them, and the model looks at what it got: every text once, the image as an image, nothing that is cut
 * without saying so, and the agent goes on after each of them.
 *
 * The packages are large (0.8 GB), so they are in a folder of their own that `make test` does not install.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Stack } from '../clients/stack.js';
import { Model } from './model.js';

const TIMEOUT_MS = 300_000;
const run = (code, more = {}) => ({ conversationId: 'agents', language: 'python', code, ...more });
/* What programs print is not in their code: the model sees the code, too. */
const calls = [
	run('print("print", 6 * 7, sep="-")'),
	run('import sys\nprint("before", 6 * 7, sep="-")\nsys.exit("-".join(["failure", str(6 * 7)]))'),
	run('import matplotlib\nmatplotlib.use("Agg")\nimport matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.savefig("chart.png")'),
	run('for i in range(60):\n    open(f"many{i:02}.txt", "w").write("x")\nprint("wrote", 6 * 10, sep="-")'),
	run('for i in range(30000):\n    print("line", i, sep="-")'),
	run('for i in range(30000):\n    print("more", i, sep="-")\nraise ValueError("-".join(["reason", str(6 * 7)]))'),
	run('import time\nprint("begun", 6 * 7, sep="-", flush=True)\ntime.sleep(60)', { timeout_seconds: 1 }),
	run('print("end", 6 * 7, sep="-")'),
];
const PNG = 'iVBORw0KGgo'; /* the first bytes of each, in base64 */
const count = (text, part) => text.split(part).length - 1;

let stack, home;
before(async () => {
	stack = await Stack.start();
	home = mkdtempSync(path.join(tmpdir(), 'sp-agents-'));
});
after(async () => {
	await stack?.stop();
	rmSync(home, { recursive: true, force: true });
});

/* What its client makes of a result, where that is not what it should: these are theirs to mend.
 *   image  'text': the image arrives as base64 between other text; 'none': chat completions have no images in results, and it drops them */
const known = {
	'@openai/agents, chat completions': { image: 'none' },
	'@mastra/mcp': { image: 'text' },
	genkit: { image: 'text' },
};

/* Each drives an agent to its end and gives its last words. `model` is the scripted one, `server` ours: { url, headers }. */
const agents = {
	'@openai/agents, chat completions': (model, server) => openai('chat_completions', model, server),
	'@openai/agents, responses': (model, server) => openai('responses', model, server),

	async '@langchain/mcp-adapters'(model, { url, headers }) {
		const { MultiServerMCPClient } = await import('@langchain/mcp-adapters');
		const { ChatOpenAI } = await import('@langchain/openai');
		const { createAgent } = await import('langchain');
		const client = new MultiServerMCPClient({ mcpServers: { sallyport: { transport: 'http', url, headers } } });
		try {
			const agent = createAgent({
				model: new ChatOpenAI({ model: 'scripted', apiKey: 'none', configuration: { baseURL: `${model.base}/v1` } }),
				tools: await client.getTools(),
			});
			const { messages } = await agent.invoke({ messages: [{ role: 'user', content: 'go' }] }, { recursionLimit: 60 });
			return messages.at(-1).text;
		} finally {
			await client.close();
		}
	},

	async '@mastra/mcp'(model, { url, headers }) {
		const { MCPClient } = await import('@mastra/mcp');
		const { Agent } = await import('@mastra/core/agent');
		const client = new MCPClient({ id: 'agents', servers: { sallyport: { url: new URL(url), requestInit: { headers } } } });
		try {
			const agent = new Agent({
				id: 'scripted', name: 'scripted', instructions: 'none', tools: await client.listTools(),
				model: { id: 'scripted/scripted', url: `${model.base}/v1`, apiKey: 'none' },
			});
			return (await agent.generate('go', { maxSteps: 30 })).text;
		} finally {
			await client.disconnect();
		}
	},

	async genkit(model, { url, headers }) {
		const { genkit } = await import('genkit');
		const { createMcpHost } = await import('@genkit-ai/mcp');
		const { default: openAICompatible, compatOaiModelRef, defineCompatOpenAIModel } = await import('@genkit-ai/compat-oai');
		const ai = genkit({ plugins: [openAICompatible({ name: 'scripted', apiKey: 'none', baseURL: `${model.base}/v1`,
			initializer: async (client) => [defineCompatOpenAIModel({ name: 'scripted/scripted', client, modelRef: compatOaiModelRef({ name: 'scripted/scripted', info: { supports: { tools: true, media: true, multiturn: true } } }) })] })] });
		const host = createMcpHost({ name: 'agents', mcpServers: { sallyport: { url, requestInit: { headers } } } });
		try {
			const answer = await ai.generate({ model: 'scripted/scripted', prompt: 'go', tools: await host.getActiveTools(ai), maxTurns: 30 });
			return answer.text;
		} finally {
			await host.close();
		}
	},

	async '@google/gemini-cli'(model, { url, headers }) {
		const folder = path.join(home, 'gemini');
		mkdirSync(path.join(folder, '.gemini'), { recursive: true });
		writeFileSync(path.join(folder, '.gemini/settings.json'), JSON.stringify({
			security: { auth: { selectedType: 'gemini-api-key' }, folderTrust: { enabled: false } },
			privacy: { usageStatisticsEnabled: false }, telemetry: { enabled: false }, general: { disableAutoUpdate: true },
			mcpServers: { sallyport: { httpUrl: url, headers, trust: true } },
		}));
		const child = spawn(process.execPath, [path.join(import.meta.dirname, 'node_modules/.bin/gemini'), '--yolo', '-m', 'gemini-2.5-flash', '-p', 'go'], {
			cwd: folder, stdio: ['ignore', 'pipe', 'pipe'],
			env: { PATH: process.env.PATH, HOME: folder, GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: model.base, GEMINI_CLI_TRUST_WORKSPACE: 'true', NO_COLOR: '1' },
		});
		let output = '', errors = '';
		child.stdout.on('data', (data) => (output += data));
		child.stderr.on('data', (data) => (errors += data));
		const code = await new Promise((resolve) => child.once('close', resolve));
		assert.equal(code, 0, output + errors);
		return output.trim();
	},
};

async function openai(api, model, { url, headers }) {
	const { Agent, MCPServerStreamableHttp, OpenAIProvider, Runner } = await import('@openai/agents');
	const server = new MCPServerStreamableHttp({ name: 'sallyport', url, requestInit: { headers } });
	await server.connect();
	try {
		const provider = new OpenAIProvider({ apiKey: 'none', baseURL: `${model.base}/v1`, useResponses: api === 'responses' });
		const runner = new Runner({ modelProvider: provider, tracingDisabled: true });
		const agent = new Agent({ name: 'scripted', model: 'scripted', mcpServers: [server] });
		return (await runner.run(agent, 'go', { maxTurns: 30 })).finalOutput;
	} finally {
		await server.close();
	}
}

describe('what reaches the model', () => {
	for (const [name, work] of Object.entries(agents)) {
		const { image = 'image' } = known[name] ?? {};
		test(name, { timeout: TIMEOUT_MS }, async () => {
			const model = await Model.start(calls);
			let words;
			try {
				words = await work(model, { url: stack.url, headers: { Authorization: `Bearer ${stack.printed}` } });
			} finally {
				await model.stop();
			}
			assert.deepEqual(model.errors, []);
			assert.match(words, /done/, 'the agent came to its end');
			const got = model.received.replaceAll(/\\+n/g, '\\n'); /* also of texts in texts */
			if (process.env.SHOW) writeFileSync(path.join(process.env.SHOW, `${name.replaceAll(/\W+/g, '-')}.json`), got);
			for (const once of ['print-42', 'before-42', 'failure-42', 'wrote-60', 'begun-42', 'end-42', 'reason-42'])
				assert.equal(count(got, once), 1, `${once}: ${count(got, once)} times`);
			assert.ok(count(got, 'exit status 1') >= 1 || count(got, 'RE:') >= 1, 'the failure is called one');
			assert.equal(count(got, 'sallyport/result'), 0, 'the details for programs');
			assert.equal(count(got, PNG), image === 'none' ? 0 : 1, `the chart: ${count(got, PNG)} times`);
			const before = got.slice(Math.max(0, got.indexOf(PNG) - 60), got.indexOf(PNG));
			if (image === 'image') assert.match(before, /"(image_url|inlineData)":/, 'the chart is an image, not text');
			assert.equal(count(got, '/many00.txt'), 1, 'a file has one address');
			assert.equal(count(got, 'and 40 more files'), 1);
			assert.equal(count(got, 'many59.txt'), 0, 'files beyond the twentieth are not named');
			assert.equal(count(got, 'line-0\\n'), 1, 'the beginning of a long output');
			assert.equal(count(got, 'line-29999'), 1, 'and its end');
			assert.equal(count(got, 'line-15000\\n'), 0, 'not its middle');
			assert.ok(count(got, 'left out') >= 1, 'which is said');
			assert.match(got, /TO: /, 'and what was cut off by the clock');
			assert.ok(got.length < 300_000, `all of it is small: ${got.length} bytes`);
		});
	}
});
