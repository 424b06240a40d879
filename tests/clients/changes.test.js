/*
 * changes.test.js - clients that want to know when something changed: resources/subscribe of the legacy era (SDK v1 over Streamable HTTP and
 * over HTTP+SSE, and across a restart of the gateway), subscriptions/listen of the modern one (SDK v2), list_changed in both, and the output of
 * a program that still runs, read as a resource.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { file, followOne, listenToOne, record, run, upload, V1, V2 } from './follow.js';
import { bin, Stack, until } from './stack.js';

const SUBSCRIPTIONS_MAX = 32; /* STORE_SUBSCRIPTIONS_MAX */
let stack;
before(async () => (stack = await Stack.start({ env: { SALLYPORT_GATEWAY_HTTP_SSE: 'true' } })));
after(() => stack?.stop());

/* The SDK takes up a stream that broke twice, and then no more: a gateway that is started again on a busy machine takes longer. */
const reconnectionOptions = { initialReconnectionDelay: 1000, maxReconnectionDelay: 1000, reconnectionDelayGrowFactor: 1, maxRetries: 120 };
const options = (token = stack.token) => ({ requestInit: { headers: { Authorization: `Bearer ${token}` } }, reconnectionOptions });

async function connect(transport, token) {
	const client = new ClientV1({ name: 'changes', version: '1' });
	const told = record(client, V1);
	await client.connect(transport === SSEClientTransport
		? new SSEClientTransport(new URL(`${stack.base}/sse`), options(token))
		: new TransportV1(new URL(stack.url), options(token)));
	return { client, told };
}

for (const transport of [TransportV1, SSEClientTransport]) {
	test(`resources/subscribe, ${transport.name}`, async () => {
		const one = await connect(transport);
		await until('the stream', async () => { /* the SDK opens it behind the connect */
			await upload(one.client, 'opening', 'a', 'a');
			return one.told.lists > 0;
		});
		await followOne(one, `follow-${transport.name}`);
		await one.client.close();
	});
}

test('subscriptions/listen, SDK v2', async () => {
	const client = new ClientV2({ name: 'changes', version: '2' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
	const told = record(client, V2);
	await client.connect(new TransportV2(new URL(stack.url), options()));
	await listenToOne({ client, told }, 'listen');
	await client.close();
});

test('a client hears only of what its token may read', async () => {
	const { stdout } = await stack.cli(['token', 'add', '--owner', 'mallory', '--json']);
	const [mine, other] = [await connect(TransportV1), await connect(TransportV1, JSON.parse(stdout).token)];
	for (const { client } of [mine, other]) await client.subscribeResource({ uri: file('shared', 'a.txt') });
	await until('my stream', async () => (await upload(mine.client, 'shared', 'a.txt', 'mine'), mine.told.uris.length > 0));
	await until('the other stream', async () => (await upload(other.client, 'theirs', 'b.txt', 'b'), other.told.lists > 0));
	assert.deepEqual(other.told.uris, []);
	const added = await stack.cli(['token', 'add', '--owner', 'dev', '--scope', 'run', '--json']);
	const blind = await connect(TransportV1, JSON.parse(added.stdout).token);
	await assert.rejects(blind.client.subscribeResource({ uri: file('shared', 'a.txt') }), /scope/);
	const pinned = new ClientV2({ name: 'blind', version: '2' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
	await pinned.connect(new TransportV2(new URL(stack.url), options(JSON.parse(added.stdout).token)));
	assert.deepEqual((await pinned.listen({ resourcesListChanged: true, resourceSubscriptions: [file('shared', 'a.txt')] })).honoredFilter, {});
	for (const { client } of [mine, other, blind]) await client.close();
	await pinned.close();
	assert.equal(blind.told.lists, 0);
});

/* A call of a plain CGI process on the same database: with the account of the gateway, as it would be. */
function aside(name, args) {
	const params = { name, arguments: args, _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} } };
	const input = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
	const { uid, gid } = statSync(path.join(stack.state, 'data'));
	const { stdout, stderr } = spawnSync(path.join(bin, 'sallyport-gateway'), {
		input, uid, gid, encoding: 'utf8',
		env: {
			GATEWAY_INTERFACE: 'CGI/1.1', SALLYPORT_CONFIG: stack.config, SP_EXCHANGES: process.env.SP_EXCHANGES ?? '', REQUEST_METHOD: 'POST', REQUEST_URI: '/mcp',
			HTTP_HOST: 'localhost', CONTENT_TYPE: 'application/json', CONTENT_LENGTH: String(Buffer.byteLength(input)), HTTP_AUTHORIZATION: `Bearer ${stack.token}`,
			HTTP_MCP_PROTOCOL_VERSION: '2026-07-28', HTTP_MCP_METHOD: 'tools/call', HTTP_MCP_NAME: name,
		},
	});
	assert.match(stdout, /"isError":false/, stderr);
}

test('what another process records in the same database is told, too', async () => {
	const { client, told } = await connect(TransportV1);
	const wanted = file('beside', 'wanted.txt');
	await client.subscribeResource({ uri: wanted });
	await until('the stream', async () => (await upload(client, 'beside', 'other.txt', 'a'), told.lists > 0));
	assert.deepEqual(told.uris, []);
	let { lists } = told;
	aside('upload_file', { conversationId: 'beside', filename: 'wanted.txt', content: 'YQ==' });
	await until('the upload', () => told.uris.length === 1 && told.lists > lists);
	({ lists } = told);
	aside('run_code', { conversationId: 'beside', language: 'bash', code: 'rm wanted.txt; for i in {1..60}; do echo $i >$i; done' });
	await until('the removal', () => told.uris.length === 2 && told.lists > lists);
	assert.deepEqual(told.uris, [wanted, wanted]);
	await client.close();
});

test('a subscription outlives the gateway', async () => {
	const { client, told } = await connect(TransportV1);
	await assert.rejects(client.subscribeResource({ uri: file('spelling', '%61.txt') }), /sallyport:\/\/conversation\/spelling\/a\.txt/);
	await assert.rejects(client.subscribeResource({ uri: `${file('spelling', 'a.txt')}?offset=1` }), /spelling\/a\.txt/);
	await assert.rejects(client.subscribeResource({ uri: 'sallyport://execution/00000000-0000-7000-8000-000000000000/stdout' }), /not found/i);
	for (let i = 0; i < SUBSCRIPTIONS_MAX; i++) await client.subscribeResource({ uri: file('many', `${i}.txt`) });
	await assert.rejects(client.subscribeResource({ uri: file('many', 'more.txt') }), /32 resources already/);
	await client.unsubscribeResource({ uri: file('many', '0.txt') });
	await client.subscribeResource({ uri: file('many', 'more.txt') });
	const { pid } = stack.process('sallyport-gateway');
	process.kill(pid, 'SIGTERM');
	await until('another gateway', () => ![undefined, pid].includes(stack.process('sallyport-gateway')?.pid));
	await until('the notification', async () => {
		await stack.call('upload_file', { conversationId: 'many', filename: 'more.txt', content: 'YQ==' }).catch(() => null);
		return told.uris.includes(file('many', 'more.txt'));
	});
	await client.close();
});

test('the output of a running program is a resource', async () => {
	const { client, told } = await connect(TransportV1);
	const leaving = new AbortController();
	const code = 'echo so far; echo oops >&2; sleep 1000';
	const call = client.callTool({ name: 'run_code', arguments: { conversationId: 'so-far', language: 'bash', code, timeout_seconds: 200 } },
		undefined, { signal: leaving.signal });
	call.catch(() => null);
	const row = await until('the row', async () => (await stack.rows()).find((one) => one.conversation === 'so-far'));
	const uri = `sallyport://execution/${row.id}/stdout`;
	const read = async (which) => (await client.readResource({ uri: which })).contents[0].text;
	await until('the output', async () => (await read(uri)) === 'so far\n' && (await read(uri.replace('stdout', 'stderr'))) === 'oops\n');
	assert.equal(await read(`${uri}?offset=3`), 'far\n');
	await client.subscribeResource({ uri });
	leaving.abort();
	await until('the news of the end', () => told.uris.includes(uri));
	assert.equal(await read(uri), 'so far\n');
	await client.close();
});
