// upstream.mjs - a server over HTTP that does as little as one can: the tool `echo`, answers as JSON, no session. Prints its port.
import http from 'node:http';

const echo = { name: 'echo', inputSchema: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] } };
const results = {
	initialize: () => ({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'bench', version: '1' } }),
	'tools/list': () => ({ tools: [echo] }),
	'tools/call': ({ arguments: { message } }) => ({ content: [{ type: 'text', text: message }] }),
};
const server = http.createServer((request, response) => {
	const parts = [];
	request.on('data', (part) => parts.push(part));
	request.on('end', () => {
		const { id, method, params } = JSON.parse(Buffer.concat(parts).toString() || '{}');
		if (id === undefined) return void response.writeHead(request.method === 'POST' ? 202 : 405).end();
		const answer = results[method] ? { result: results[method](params) } : { error: { code: -32601, message: 'Method not found' } };
		const body = JSON.stringify({ jsonrpc: '2.0', id, ...answer });
		response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }).end(body);
	});
}).listen(0, '127.0.0.1', () => console.log(server.address().port));
