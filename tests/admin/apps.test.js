/*
 * apps.test.js - ui://sallyport/run in headless Chromium (make admin-test): the official bridge of ext-apps shows the result of a real call.
 * Charts, tables and changes are there; what a guest wrote is text; nothing is asked of another host; axe finds nothing.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { chromium } from 'playwright-core';
import { Stack, root, run } from '../clients/stack.js';

const ATTACK = '<img src=x onerror=window.attacked=1>';
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const CODE = `
import matplotlib.pyplot as plt
open('sales.csv', 'w').write('city,"what, really",n\\nOslo,"a ""b""",3\\nRome,${ATTACK},11\\n')
open('list.json', 'w').write('[{"a": 1, "b": {"c": 2}}, {"a": 3}]')
open('notes.txt', 'w').write('new\\n${ATTACK}\\n')
plt.plot([1, 3, 2])
print('${ATTACK}')
`;

describe('the app of a run', () => {
	let stack, browser, server, base;
	before(async () => {
		stack = await Stack.start();
		const { interpreters } = JSON.parse(readFileSync(path.join(root, 'jail/runners/typescript.json'), 'utf8'));
		const bun = interpreters.map((place) => place.replace('/opt/sallyport/modules', path.join(root, 'jail/runners/npm'))).find(existsSync);
		const made = await run(bun, ['build', path.join(root, 'tests/clients/app_host.js'), '--target', 'browser']);
		assert.equal(made.code, 0, made.stderr);
		const pages = { '/': ['text/html', '<!doctype html><title>host</title><script src="/host.js"></script><body></body>'], '/host.js': ['text/javascript', made.stdout] };
		server = createServer(({ url }, response) => {
			const [type, text] = pages[url] ?? ['text/plain', ''];
			response.writeHead(pages[url] ? 200 : 404, { 'Content-Type': type }).end(text);
		});
		await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
		base = `http://127.0.0.1:${server.address().port}`;
		browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
	});
	after(async () => {
		await browser?.close();
		server?.closeAllConnections();
		server?.close();
		await stack?.stop();
	});

	/* The page's frame after the call, and what must not have been. */
	async function shown(args, options = {}) {
		const page = await (await browser.newContext({ viewport: { width: 800, height: 900 } })).newPage();
		const faults = [];
		page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
		page.on('console', (message) => message.type() === 'error' && !/favicon/.test(message.location().url) && faults.push(message.text()));
		page.on('request', (request) => !/^(data|about|blob):/.test(request.url()) && ![base, stack.base].includes(new URL(request.url()).origin) && faults.push(request.url()));
		await page.goto(base);
		const answer = await page.evaluate((given) => window.host(given), { url: stack.url, token: stack.printed, mode: { pin: '2026-07-28' }, args: { language: 'python', ...args }, ...options });
		const frame = page.frames().find((one) => one !== page.mainFrame());
		return { page, frame, answer, faults, section: (title) => frame.locator('section', { has: frame.locator('h2', { hasText: new RegExp(`^${title}$`) }) }) };
	}

	for (const mode of [{ pin: '2026-07-28' }, 'legacy']) {
		test(`charts, tables and changes of a run, ${mode.pin ?? mode}`, async () => {
			const conversationId = `app ${mode.pin ?? mode}`;
			await stack.run({ conversationId, language: 'bash', code: 'echo old > notes.txt' });
			const { page, frame, answer, faults, section } = await shown({ conversationId, code: CODE }, { mode });
			assert.equal(answer.mimeType, 'text/html;profile=mcp-app');
			assert.deepEqual(answer.ui, { csp: {}, prefersBorder: true });
			await section('Changes').waitFor();
			assert.equal(await section('Charts').locator('img').evaluate((image) => image.complete && image.naturalWidth > 100), true);
			const cells = await section('sales\\.csv').locator('tr').evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
			assert.deepEqual(cells, [['city', 'what, really', 'n'], ['Oslo', 'a "b"', '3'], ['Rome', ATTACK, '11']]);
			assert.deepEqual(await section('list\\.json').locator('tbody tr').evaluateAll((rows) => rows.map((row) => row.textContent)), ['1{"c":2}', '3']);
			assert.deepEqual(await section('Changes').locator('.minus').allTextContents(), ['-old']);
			assert.ok((await section('Changes').locator('.plus').allTextContents()).includes(`+${ATTACK}`));
			assert.match(await section('Output').textContent(), new RegExp(ATTACK.replace('.', '\\.')));
			await section('Files').locator('button', { hasText: 'sales.csv' }).click();
			await page.waitForFunction(() => window.opened);
			assert.match(await page.evaluate(() => window.opened), /\/files\/[0-9a-f]{64}\/sales\.csv$/);
			/* What a guest wrote is text. */
			assert.deepEqual(await frame.evaluate(() => [window.attacked, document.querySelectorAll('main script, main iframe, main [onerror], main img:not([src^="data:image/"])').length]), [undefined, 0]);
			assert.deepEqual(faults, []);
			await page.context().close();
		});
	}

	test('a failed run, and a host that reads nothing', async () => {
		const { page, frame, faults } = await shown({ conversationId: 'bad', code: 'open("a.csv", "w").write("a,b\\n1,2\\n")\nraise SystemExit(3)' }, { capabilities: {} });
		await frame.locator('.bad').waitFor();
		assert.match(await frame.locator('.bad').textContent(), /3/);
		assert.deepEqual(await frame.locator('h2').allTextContents(), ['Output', 'Files']);
		assert.equal(await frame.locator('button').count(), 0);
		assert.deepEqual(faults, []);
		await page.context().close();
	});

	test('axe finds nothing', async () => {
		const { page, frame, section } = await shown({ conversationId: 'axe', code: CODE });
		await section('Changes').waitFor();
		await page.evaluate(() => document.querySelector('iframe').setAttribute('title', 'run'));
		const found = await frame.evaluate(`${axe}; axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] }).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes[0].html))`);
		assert.deepEqual(found, []);
		await page.context().close();
	});
});
