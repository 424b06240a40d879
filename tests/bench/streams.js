/*
 * streams.js - holds idle event streams open while the bench calls tools: the sessions' own streams, through nginx.
 *
 *   node streams.js URL COUNT TOKEN…        prints "ready" when all are open; at the end of its standard input how many were dropped
 */
import http from 'node:http';

const [url, count, ...tokens] = process.argv.slice(2);
const agent = new http.Agent({ maxSockets: Infinity });
let dropped = 0;

async function open(token) {
	const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
	const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
	const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }) });
	await response.text();
	const session = response.headers.get('mcp-session-id');
	if (!session) throw new Error(`no session: ${response.status}`);
	await new Promise((resolve, reject) => {
		const request = http.get(url, { agent, headers: { ...headers, Accept: 'text/event-stream', 'Mcp-Session-Id': session } }, (stream) => {
			if (stream.statusCode !== 200) reject(new Error(`stream refused: ${stream.statusCode}`));
			stream.on('close', () => dropped++).on('error', () => {}).resume();
			resolve();
		});
		request.on('error', reject);
	});
}

for (let i = 0; i < Number(count); i++) await open(tokens[i % tokens.length]);
console.log('ready');
process.stdin.on('end', () => {
	console.log(dropped);
	process.exit(0);
}).resume();
