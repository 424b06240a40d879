/*
 * chart.js - `make chart`: a first look with a real MCP client (the official SDK). Uploads a small table, has the server draw it with pandas and
 * matplotlib, and downloads the picture. Arguments: the state folder of a running `make run`, and the file to write.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [state, target] = process.argv.slice(2);
if (!existsSync(path.join(state, 'token'))) {
	console.error(`${state} holds no token: start 'make run' in another terminal first (the same PORT)`);
	process.exit(1);
}
const read = (name) => readFileSync(path.join(state, name), 'utf8').trim();
const url = new URL(`http://127.0.0.1:${read('port')}/mcp?results=structured`);
const client = new Client({ name: 'first-chart', version: '1' }, { versionNegotiation: { mode: 'auto' } });
const conversationId = 'first-chart';
const table = 'city,year,value\nOslo,2024,3\nOslo,2025,5\nRome,2024,7\nRome,2025,11\n';

await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers: { Authorization: `Bearer ${read('token')}` } } }));
await client.callTool({ name: 'upload_file', arguments: { conversationId, filename: 'data.csv', content: Buffer.from(table).toString('base64') } });
const code = readFileSync(path.join(import.meta.dirname, '../data/chart.py'), 'utf8');
const result = await client.callTool({ name: 'run_code', arguments: { conversationId, language: 'python', code } });
console.log(result.content[0].text);
const { created, changed } = result.structuredContent.files;
const chart = [...created, ...changed].find((file) => file.name === 'chart.png');
if (chart) {
	writeFileSync(target, Buffer.from(await (await fetch(chart.url)).arrayBuffer()));
	console.log(`chart: ${path.resolve(target)}`);
}
await client.close();
process.exitCode = chart ? 0 : 1;
