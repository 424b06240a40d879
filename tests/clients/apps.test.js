/*
 * apps.test.js - the app of a run, for clients that render apps and for those that do not: what each is sent. tests/admin/apps.test.js shows it.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Stack } from './stack.js';

const APPS = { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } };
const OTHERS = [undefined, { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/x-other'] } }, { 'io.modelcontextprotocol/tasks': {} }];

describe('the app of a run', () => {
	let stack;
	before(async () => (stack = await Stack.start()));
	after(() => stack?.stop());

	async function connected(mode, extensions, use) {
		const client = new Client({ name: 'apps', version: '1' }, { capabilities: extensions ? { extensions } : {}, versionNegotiation: { mode } });
		await client.connect(new StreamableHTTPClientTransport(new URL(stack.url), { requestInit: { headers: { Authorization: `Bearer ${stack.printed}` } } }));
		try {
			return await use(client);
		} finally {
			await client.close();
		}
	}
	const call = (client, more) => client.callTool({ name: 'run_code', arguments: { conversationId: 'apps', language: 'bash', code: 'echo 1 >a.txt; echo 2' }, ...more });

	for (const mode of ['legacy', { pin: '2026-07-28' }]) {
		const name = mode.pin ?? mode;
		test(`a client that renders apps gets the details that the page needs, ${name}`, async () => {
			const [result, listed] = await connected(mode, APPS, async (client) => {
				const { tools } = await client.listTools();
				const { contents: [page] } = await client.readResource({ uri: tools.find((tool) => tool.name === 'run_code')._meta.ui.resourceUri });
				assert.equal(page.mimeType, 'text/html;profile=mcp-app');
				assert.doesNotMatch(page.text, /(src|href)="?https?:|@import|url\(/, 'nothing is loaded');
				const none = await call(client, { _meta: { 'sallyport/results': 'none' } });
				assert.equal(none._meta?.['sallyport/result'], undefined, 'what a request asks for holds');
				return [await call(client), await client.listResources()];
			});
			const details = result._meta['sallyport/result'];
			assert.match(details.execution_id, /^[0-9a-f-]{36}$/);
			assert.equal(details.verdict, 'OK');
			assert.equal(details.stdout, undefined);
			assert.equal(result.structuredContent, undefined);
			assert.ok(!listed.resources.some(({ uri }) => uri.startsWith('ui://')), 'who renders no apps does not see it');
		});
		test(`the text is the same for others, and there are no details, ${name}`, async () => {
			const texts = [];
			for (const extensions of [APPS, ...OTHERS]) {
				const result = await connected(mode, extensions, call);
				if (extensions !== APPS) assert.equal(result._meta?.['sallyport/result'], undefined, JSON.stringify(extensions));
				texts.push(result.content.filter(({ type }) => type === 'text').map(({ text }) => text).join(''));
			}
			assert.equal(new Set(texts.slice(1)).size, 1);
			assert.ok(texts[0].includes('2\n') && texts[0].includes('a.txt'), texts[0]);
		});
	}
});
