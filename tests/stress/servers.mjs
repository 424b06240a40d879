// servers.mjs - MCP servers over HTTP for neighbours.js: `echo` answers at once; `many` has 990 tools; `hostile` answers a call by a question
// with 65 parts and 200,000 small objects, or by 5 MB of small objects. Prints its port; the path says which server it is.
import http from 'node:http';

const tool = (name, properties = {}) => ({ name, description: `Looks after ${name} and whatever belongs to it`, inputSchema: { type: 'object', properties } });
const tools = {
	echo: [tool('echo', { message: { type: 'string' } })],
	many: Array.from({ length: 990 }, (_, n) => tool(`list_things_${n}`, { of: { type: 'string' }, page: { type: 'integer' }, order: { enum: ['up', 'down'] } })),
	hostile: [tool('ask'), tool('tell'), tool('small', { message: { type: 'string' } })],
};
const parts = Array.from({ length: 65 }, (_, n) => `"k${n}":{"method":"x","params":{"a":[${'{},'.repeat(3076)}{}]}}`);
const ask = `{"resultType":"input_required","requestState":"s","inputRequests":{${parts}}}`;
const tell = `{"resultType":"complete","content":[],"structuredContent":{"a":[${'{},'.repeat(1_700_000)}{}]}}`;

function result(server, method, params) {
	if (method === 'server/discover') return JSON.stringify({ resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, serverInfo: { name: server, version: '1' } });
	if (method === 'tools/list') return JSON.stringify({ resultType: 'complete', tools: tools[server], ttlMs: 3_600_000 });
	if (method !== 'tools/call') return null;
	if (params.name === 'echo') return JSON.stringify({ resultType: 'complete', content: [{ type: 'text', text: params.arguments.message }] });
	if (params.name === 'small') return '{"resultType":"complete","content":[]}';
	return params.name === 'ask' ? ask : tell;
}
const server = http.createServer((request, response) => {
	let body = '';
	request.on('data', (data) => (body += data));
	request.on('end', () => {
		if (request.method !== 'POST') return void response.writeHead(405).end();
		const { id, method, params } = JSON.parse(body);
		const found = result(request.url.slice(1), method, params);
		const answer = found ? `"result":${found}` : '"error":{"code":-32601,"message":"Method not found"}';
		response.writeHead(200, { 'Content-Type': 'application/json' }).end(`{"jsonrpc":"2.0","id":${id},${answer}}`);
	});
}).listen(0, '127.0.0.1', () => console.log(server.address().port));
