/*
 * doors.mjs - the doors for graders beside tools/call, in alternating rounds of the same minutes: one request at a time, many at once, a batch.
 *
 *   node doors.mjs ORIGIN TOKEN CASES
 *
 * A trainer counts an answer that is not 200, or whose status is SandboxError, as -1; the figures say how many there were.
 */
const [origin, token, cases] = process.argv.slice(2);
const ROUNDS = 5, EACH = 20;
const json = { 'Content-Type': 'application/json' };

async function timed(work) {
	const begin = performance.now();
	await work();
	return performance.now() - begin;
}
const quantile = (times, part) => times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * part))];
const median = (times) => quantile(times, 0.5);

const post = (rest, body, headers = {}) => fetch(`${origin}${rest}`, { method: 'POST', headers: { ...json, ...headers }, body: JSON.stringify(body) });
async function tool(code) {
	const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} };
	const headers = { Authorization: `Bearer ${token}`, 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'run_code' };
	const response = await post('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'run_code', arguments: { language: 'python', code }, _meta: meta } }, headers);
	const text = await response.text();
	if (response.status !== 200 || !text.includes('1')) throw new Error(`${response.status} ${text.slice(0, 300)}`);
}
let bad = 0;
async function run(code, language = 'python', more = {}) {
	const response = await post(`/t/${token}/fusion/run_code`, { language, code, run_timeout: 60, compile_timeout: 60, ...more });
	const body = await response.json();
	if (response.status !== 200 || body.status !== 'Success') bad++;
}

/* So many requests by so many connections, as they are answered; milliseconds of each, and of all. */
async function load(connections, requests) {
	const times = [];
	let left = requests;
	const client = async () => {
		while (left-- > 0) times.push(await timed(() => run('print(1)')));
	};
	const all = await timed(() => Promise.all(Array.from({ length: connections }, client)));
	return { times, rate: (requests / all) * 1000 };
}

const calls = [], runs = [];
await tool('print(1)');
await run('print(1)');
for (let round = 0; round < ROUNDS; round++) {
	const both = [[], []];
	for (let n = 0; n < EACH; n++) both[0].push(await timed(() => tool('print(1)')));
	for (let n = 0; n < EACH; n++) both[1].push(await timed(() => run('print(1)')));
	calls.push(median(both[0]));
	runs.push(median(both[1]));
}
console.log(`  /run_code of print(1): ${(median(runs) / median(calls)).toFixed(3)} times tools/call (aim 1.02; ${median(runs).toFixed(1)} ms)`);

const few = await load(8, Math.min(Number(cases), 400));
for (const connections of [128, 1000]) {
	bad = 0;
	const { times, rate } = await load(connections, Math.max(Number(cases), connections));
	const [p50, p99] = [median(times), quantile(times, 0.99)];
	console.log(`  ${connections} connections, ${times.length} programs: ${bad} counted as -1 (aim 0), p99 ${(p99 / p50).toFixed(2)} times p50 (${p50.toFixed(0)} ms), ` +
		`${(rate / few.rate).toFixed(2)} times the programs a second of 8 connections (aim 0.95; ${few.rate.toFixed(1)}/s)`);
}

const code = '#include <iostream>\nint main() { int n; std::cin >> n; std::cout << n * 2 << "\\n"; }';
const each = await timed(async () => {
	for (let n = 0; n < 20; n++) await run(code, 'cpp', { stdin: `${n}` });
});
const numbers = Array.from({ length: 20 }, (_, n) => n);
const test_cases = { type: 'stdin_stdout', input: numbers.map(String), output: numbers.map((n) => `${n * 2}`), fn_name: null };
const together = await timed(async () => {
	const config = { language: 'cpp', compile_timeout: 60, run_timeout: 60, provided_data: { test_cases }, extra: { run_all_cases: true } };
	const body = await (await post(`/t/${token}/fusion/common_evaluate_batch`, { completion: code, config })).json();
	if (!body.accepted) throw new Error(JSON.stringify(body).slice(0, 500));
});
console.log(`  20 cases of one C++ program: a batch is ${(each / together).toFixed(1)} times as fast as 20 calls (aim 5)`);
