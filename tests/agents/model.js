/*
 * model.js - a language model that is a script, on a free port of the loopback interface: it speaks OpenAI's chat completions and responses
 * and Gemini's generateContent, each also as a stream.
 *
 * It answers the first requests with one call of run_code each, as `calls` says (the arguments), and every later one with "done". Which
 * call is next is read from the request: as many results of tools are in it as calls were made. `received` has the text of the longest
 * conversation that an agent sent, from which tests see what reached the model: the system's text and the tools are not in it.
 */
import { once } from 'node:events';
import http from 'node:http';

const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 1 };

async function body(request) {
	const parts = [];
	for await (const part of request) parts.push(part);
	return JSON.parse(Buffer.concat(parts).toString() || '{}');
}

function send(response, document) {
	response.writeHead(200, { 'content-type': 'application/json' });
	response.end(JSON.stringify(document));
}

function stream(response, events, name = () => '') {
	response.writeHead(200, { 'content-type': 'text/event-stream' });
	for (const event of events) response.write(`${name(event)}data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`);
	response.end();
}

/* Each dialect: the tools' names, the conversation, how many results it has, and the answer to it. */
const chat = {
	tools: (asked) => (asked.tools ?? []).map((tool) => tool.function.name),
	conversation: (asked) => asked.messages.filter(({ role }) => role !== 'system' && role !== 'developer'),
	results: (asked) => asked.messages.filter(({ role }) => role === 'tool').length,
	answer(response, asked, call, number) {
		const made = call && [{ index: 0, id: `call_${number}`, type: 'function', function: { name: call.name, arguments: JSON.stringify(call.arguments) } }];
		const message = made ? { role: 'assistant', content: null, tool_calls: made } : { role: 'assistant', content: 'done' };
		const base = { id: `c${number}`, created: 1, model: 'scripted' };
		const finish_reason = made ? 'tool_calls' : 'stop';
		if (!asked.stream) return send(response, { ...base, object: 'chat.completion', choices: [{ index: 0, message, finish_reason }], usage });
		const chunk = (delta, reason) => ({ ...base, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: reason }] });
		stream(response, [chunk(message, null), chunk({}, finish_reason), { ...base, object: 'chat.completion.chunk', choices: [], usage }, '[DONE]']);
	},
};

const responses = {
	tools: (asked) => (asked.tools ?? []).map((tool) => tool.name),
	conversation: (asked) => asked.input,
	results: (asked) => [asked.input].flat().filter(({ type }) => type === 'function_call_output').length,
	answer(response, asked, call, number) {
		const item = call
			? { type: 'function_call', id: `fc_${number}`, call_id: `call_${number}`, status: 'completed', name: call.name, arguments: JSON.stringify(call.arguments) }
			: { type: 'message', id: `m_${number}`, status: 'completed', role: 'assistant', content: [{ type: 'output_text', text: 'done', annotations: [] }] };
		const whole = { id: `r_${number}`, object: 'response', created_at: 1, status: 'completed', model: 'scripted', output: [item], parallel_tool_calls: false, tools: [],
			usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2, input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } } };
		if (!asked.stream) return send(response, whole);
		stream(response, [
			{ type: 'response.created', response: { ...whole, output: [], status: 'in_progress' } },
			{ type: 'response.output_item.added', output_index: 0, item },
			{ type: 'response.output_item.done', output_index: 0, item },
			{ type: 'response.completed', response: whole },
		], ({ type }) => `event: ${type}\n`);
	},
};

const gemini = {
	tools: (asked) => (asked.tools ?? []).flatMap((tool) => tool.functionDeclarations ?? []).map(({ name }) => name),
	conversation: (asked) => asked.contents,
	results: (asked) => asked.contents.flatMap(({ parts }) => parts ?? []).filter((part) => part.functionResponse).length,
	answer(response, asked, call, number, streamed) {
		const parts = [call ? { functionCall: { name: call.name, args: call.arguments } } : { text: 'done' }];
		const answer = { responseId: `g${number}`, candidates: [{ index: 0, content: { role: 'model', parts }, finishReason: 'STOP' }],
			usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 } };
		return streamed ? stream(response, [answer]) : send(response, answer);
	},
};

function dialect(path) {
	return path.endsWith('/chat/completions') ? chat : path.endsWith('/responses') ? responses : /enerateContent$/.test(path) ? gemini : null;
}

export class Model {
	static async start(calls) {
		const model = new Model();
		model.calls = calls;
		model.received = '';
		model.errors = [];
		model.server = http.createServer((request, response) => model.serve(request, response).catch((error) => {
			model.errors.push(error);
			response.destroy();
		}));
		model.server.listen(0, '127.0.0.1');
		await once(model.server, 'listening');
		model.base = `http://127.0.0.1:${model.server.address().port}`;
		return model;
	}
	async serve(request, response) {
		const path = new URL(request.url, this.base).pathname, speaks = dialect(path);
		const asked = await body(request);
		if (/countTokens$/.test(path)) return send(response, { totalTokens: 1 });
		if (!speaks) throw new Error(`the script has no ${request.method} ${request.url}`);
		const name = speaks.tools(asked).find((tool) => tool.endsWith('run_code'));
		/* Side questions of an agent (a title, a route) have no tools, and get words. */
		const number = name ? speaks.results(asked) : Infinity;
		const text = JSON.stringify(speaks.conversation(asked));
		if (name && text.length > this.received.length) this.received = text;
		const call = this.calls[number] && { name, arguments: this.calls[number] };
		speaks.answer(response, asked, call, number, /stream/.test(path));
	}
	async stop() {
		this.server.closeAllConnections();
		this.server.close();
		await once(this.server, 'close');
	}
}
