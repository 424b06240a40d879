/*
 * admin.test.js - the admin page in headless Chromium, over a whole stack with no run, 3 and 100,000 (make admin-test). What a guest or a client
 * wrote is shown as text; the policy is never violated and nothing is asked of another host; in any view, light and dark, on a desk and on a
 * phone, axe finds nothing, and nothing leaves the window or is cut; the page updates itself, takes keys, and reads without scripts; pages of other
 * sites can do nothing with the cookie. ADMIN_SHOTS=FOLDER keeps a screenshot of each view there; ADMIN_LOOKS=dark-390,light-1280 looks so only.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { chromium } from 'playwright-core';
import { Stack, root, run, until } from '../clients/stack.js';

const ROWS = 100_000, VIEW_CPU_MS = 300, TICK_MS = 10, WIRE_BYTES = 150_000;
const ATTACK = '"><script>window.attacked=1</script>';
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const LOOKS = [['light', 1280], ['dark', 1280], ['light', 390], ['dark', 390], ['light', 320]]
	.filter((look) => !process.env.ADMIN_LOOKS || process.env.ADMIN_LOOKS.split(',').includes(look.join('-')));
const shots = process.env.ADMIN_SHOTS;
const EMPTY = ['/admin/', '/admin/runs', '/admin/owners', '/admin/servers', '/admin/charts', '/admin/audit', '/admin/audit?kind=bless'];

let stack, browser, token, attacked, attackedOwner;
const empty = [], few = []; /* what was found in views of a record without a run, and with three */

async function makeToken(name = 'page') {
	const { stdout, stderr } = await stack.cli(['token', 'add', '--owner', 'ops', '--name', name, '--scope', 'admin', '--json']);
	assert.ok(stdout, stderr);
	return JSON.parse(stdout);
}

/* A browser of its own, whose page has gathered what must not be. */
async function open({ scheme = 'light', width = 1280, scripts = true } = {}) {
	const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme: scheme, javaScriptEnabled: scripts });
	const page = await context.newPage();
	const faults = [];
	page.on('console', (message) => {
		if (message.type() === 'error' && !/status of (400|401|403|404|409)/.test(message.text())) faults.push(`console: ${message.text()}`);
	});
	page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
	page.on('dialog', (dialog) => faults.push(`dialog: ${dialog.message()}`));
	page.on('request', (request) => {
		if (!request.url().startsWith(stack.base)) faults.push(`asked ${request.url()}`);
	});
	page.on('response', (response) => {
		if (response.status() >= 400 && response.request().resourceType() !== 'document') faults.push(`${response.status()}: ${response.url()}`);
	});
	if (scripts) {
		await context.exposeFunction('violated', (text) => faults.push(`policy: ${text}`));
		await page.addInitScript(() => document.addEventListener('securitypolicyviolation', (event) => window.violated(`${event.violatedDirective} ${event.blockedURI}`)));
	}
	return { context, page, faults };
}

async function signIn(page, where = '/admin/', text = token.token) {
	await page.goto(stack.base + where);
	await page.fill('#token', text);
	await page.click('button.main');
	await page.waitForSelector('header.top');
}

/* In the page: what reaches out of the window, or is cut without a sign of it. What scrolls by itself may be wider. */
function overflowing() {
	const scrolls = (element) => ['auto', 'scroll'].includes(getComputedStyle(element).overflowX);
	const found = [];
	for (const element of document.querySelectorAll('main *, header *, footer *')) {
		const style = getComputedStyle(element), box = element.getBoundingClientRect();
		if (box.width === 0 || element.closest('svg') || style.position === 'absolute') continue;
		let above = element;
		while (above && !scrolls(above)) above = above.parentElement;
		if (above) continue;
		const cut = style.overflowX === 'hidden' && style.textOverflow !== 'ellipsis' && element.scrollWidth > element.clientWidth + 1;
		const hidden = element.parentElement.closest('.runs td, .runs th') && getComputedStyle(element.parentElement).overflowX === 'hidden';
		if (cut || (!hidden && (box.right > document.documentElement.clientWidth + 0.5 || box.left < -0.5)))
			found.push(`${element.tagName}.${element.className} ${Math.round(box.left)}-${Math.round(box.right)}: ${element.textContent.slice(0, 40)}`);
	}
	return found;
}

/* Processor time of the gateway so far, in ms. */
function cpuOf(pid) {
	const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\) /, '').split(' ');
	return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

/* What axe finds in a page, and what else must not be in it. */
async function look(page, view, label) {
	if (shots) {
		mkdirSync(shots, { recursive: true });
		const { width } = page.viewportSize();
		await page.screenshot({ path: path.join(shots, `${label}-${width}-${view.replace(/[^a-z0-9]+/gi, '_').slice(0, 60)}.png`), fullPage: true, caret: 'initial' });
	}
	await page.evaluate(`${axe}; 0`);
	const result = await page.evaluate(() => axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }));
	const state = await page.evaluate(() => ({
		attacked: window.attacked,
		inline: [...document.scripts].filter((script) => !script.src).length,
		wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
		strange: document.querySelectorAll('main script, main [onerror], main [style], main iframe').length,
	}));
	const { wide, ...rest } = state;
	assert.deepEqual(rest, { attacked: undefined, inline: 0, strange: 0 }, view);
	return [...(wide ? [`${view}: ${wide} px wider than the window`] : []), ...(await page.evaluate(overflowing)).map((found) => `${view}: out of sight: ${found}`),
		...result.violations.map((violation) => `${view}: ${violation.id}: ${violation.nodes.map((node) => node.html).slice(0, 2).join(' ')}`)];
}

/* The views of a small record; what is found goes into `kept`. */
async function lookAt(views, label, kept) {
	for (const [scheme, width] of LOOKS) {
		const { context, page } = await open({ scheme, width });
		await signIn(page);
		for (const view of views) {
			await page.goto(stack.base + view);
			kept.push({ view, width, found: await look(page, view, `${label}-${scheme}`), says: await page.locator('.empty').count() });
		}
		await context.close();
	}
}

/* One that does, one that fails, one that is denied something. */
async function lookAtFew() {
	const run = (code) => stack.run({ code, language: 'python', conversationId: 'first steps' });
	await run('open("table.csv", "w").write("a,b\\n1,2\\n")\nprint("done")');
	const failed = await run('open("table.csv", "a").write("3,4\\n")\nimport nowhere');
	await run('import ctypes\nctypes.CDLL(None).unshare(0x10000000)\nprint("a line\\n" * 40)');
	const id = failed.execution_id;
	await lookAt(['/admin/', '/admin/runs', `/admin/run/${id}`, '/admin/conversation?owner=dev&name=first+steps', '/admin/owners', '/admin/tokens', '/admin/charts',
		'/admin/charts?by=owner', '/admin/audit', '/admin/audit/3', `/admin/act/forget/${id}`, `/admin/act/replay/${id}`], '3', few);
}

const views = () => [
	'/admin/', '/admin/runs', `/admin/runs?text=${encodeURIComponent(ATTACK)}&verdict=failed`, '/admin/runs?owner=nobody', `/admin/run/${attacked}`,
	'/admin/run/01932c00-0000-7000-8000-000000000000', `/admin/conversation?owner=${attackedOwner}&name=chat`, '/admin/owners', '/admin/tokens', '/admin/servers',
	'/admin/charts', '/admin/charts?by=owner&since=7d', '/admin/charts?by=language&since=1h', '/admin/health/doctor', '/admin/audit', '/admin/audit/0',
	'/admin/audit/verify', '/admin/audit?since=garbage', '/admin/runs?order=slowest&denied=yes', '/admin/act/token/', `/admin/act/revoke/${token.id}`, `/admin/act/forget/${attacked}`, `/admin/act/replay/${attacked}`,
];

describe('the admin page', { concurrency: false }, () => {
	before(async () => {
		stack = await Stack.start({ env: { SALLYPORT_ADMIN_ENABLED: 'true', SALLYPORT_GATEWAY_HTTP_SSE: 'false' } });
		token = await makeToken(ATTACK);
		browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
		await lookAt(EMPTY, '0', empty);
		await lookAtFew();
		const file = { code: `open('notes.txt', 'w').write('<script>window.attacked=1</script>\\n')\nopen('"><img src=x onerror=attacked=1>.html', 'w').write('<script>')`, language: 'python' };
		await stack.run({ ...file, conversationId: ATTACK });
		await stack.run({ ...file, code: file.code.replace('</script>', '</script>changed'), conversationId: ATTACK });
		const rows = await run('/usr/bin/python3', [path.join(root, 'tests/admin/rows.py'), path.join(stack.state, 'data/sallyport.db'), String(ROWS)]);
		assert.equal(rows.code, 0, rows.stderr);
		[attacked, attackedOwner] = rows.stdout.trim().split(' ');
	});
	after(async () => {
		await browser?.close();
		await stack?.stop();
	});

	test('the first view of 100,000 runs takes little processor time', async (t) => {
		const context = await browser.newContext();
		const { pid } = stack.process('sallyport-gateway');
		const form = { token: token.token, next: '/admin/' };
		const signed = await context.request.post(`${stack.base}/admin/sign-in`, { form, headers: { 'Sec-Fetch-Site': 'same-origin' }, maxRedirects: 0 });
		assert.equal(signed.status(), 303);
		const first = ['/admin/', '/admin/runs']; /* where people begin; the others are figures */
		for (const view of [...first, '/admin/charts', '/admin/charts?by=owner&since=7d', '/admin/owners', '/admin/audit', '/admin/runs?order=slowest', '/admin/servers']) {
			const times = [];
			for (let i = 0; i < 4; i++) {
				const before = cpuOf(pid);
				assert.equal((await context.request.get(stack.base + view)).status(), 200, view);
				times.push(cpuOf(pid) - before);
			}
			t.diagnostic(`${view}: ${times.join(', ')} ms of processor`);
			assert.ok(times[0] <= VIEW_CPU_MS || !first.includes(view), `${view}: the first took ${times[0]} ms of processor`);
		}
		await context.close();
	});

	test('the first page is small on the wire', async () => {
		const { context, page } = await open();
		await signIn(page);
		const cookies = await context.cookies();
		for (const view of ['/admin/', '/admin/runs']) {
			// With nothing in the cache: the page and all that it loads.
			const first = await open();
			await first.context.addCookies(cookies);
			await first.page.goto(stack.base + view);
			const sizes = await first.page.evaluate(() => ['navigation', 'resource'].map((type) => performance.getEntriesByType(type).map((entry) => entry.transferSize)));
			const bytes = sizes.flat().reduce((sum, size) => sum + size, 0);
			assert.ok(sizes[0][0] > 2000 && sizes[1].length >= 2 && bytes <= WIRE_BYTES, `${view}: ${JSON.stringify(sizes)} bytes`);
			await first.context.close();
		}
		await context.close();
	});

	test('views of a record without a run say so', () => {
		assert.deepEqual(empty.flatMap(({ found }) => found), []);
		assert.equal(empty.length, LOOKS.length * EMPTY.length);
		for (const view of ['/admin/', '/admin/runs', '/admin/servers', '/admin/charts', '/admin/audit?kind=bless'])
			assert.ok(empty.filter((one) => one.view === view).every(({ says }) => says > 0), view);
	});

	test('views of a record with three runs have nothing out of sight', () => {
		assert.deepEqual(few.flatMap(({ found }) => found), []);
		assert.equal(few.length, LOOKS.length * 12);
	});

	for (const [scheme, width] of LOOKS)
		test(`every view, ${scheme}, ${width} px: no script of others, no violation, nothing that axe finds`, async () => {
			const { context, page, faults } = await open({ scheme, width });
			await page.goto(`${stack.base}/admin/`);
			const found = [];
			found.push(...(await look(page, 'sign-in', `100000-${scheme}`)));
			await signIn(page);
			for (const view of views()) {
				await page.goto(stack.base + view);
				await page.waitForSelector('h1');
				found.push(...(await look(page, view, `100000-${scheme}`)));
			}
			assert.deepEqual(found, []);
			assert.deepEqual(faults, []);
			await context.close();
		});

	test('attacks are readable as text', async () => {
		const { context, page, faults } = await open();
		await signIn(page, `/admin/run/${attacked}`);
		const text = await page.textContent('main');
		assert.ok(text.split(ATTACK).length > 12, 'every text of the row stands there as it is');
		assert.ok(text.includes('\\xe2\\x80\\xae\\x01'), 'what steers text is visible');
		await page.goto(`${stack.base}/admin/runs?owner=dev`);
		await page.click(`a[href*="conversation"]`);
		assert.ok((await page.textContent('h1')).includes(ATTACK));
		await page.goto(`${stack.base}/admin/tokens`);
		assert.ok((await page.textContent('main')).includes(ATTACK));
		assert.deepEqual(faults, []);
		await context.close();
	});

	test('downloads and previews are never pages', async () => {
		const { context, page } = await open();
		await signIn(page);
		for (const part of ['code', 'stdout', 'stderr']) {
			const response = await page.request.get(`${stack.base}/admin/run/${attacked}/${part}`);
			assert.equal(response.status(), 200);
			assert.equal(response.headers()['content-type'], 'application/octet-stream');
			assert.equal(response.headers()['content-security-policy'], "sandbox; default-src 'none'");
			assert.equal(response.headers()['x-content-type-options'], 'nosniff');
			assert.match(response.headers()['content-disposition'], /^attachment;/);
		}
		await context.close();
	});

	test('it reads without scripts', async () => {
		const { context, page, faults } = await open({ scripts: false });
		await signIn(page);
		await page.click('nav a[href="/admin/runs"]');
		await page.fill('input[name=owner]', 'alice');
		await page.click('.filters button');
		await page.click('tbody tr:first-child .program a');
		assert.match(await page.textContent('h1'), /Run/);
		await page.click('text=Forget its content');
		await page.click('text=No, back');
		await page.click('text=Sign out');
		await page.waitForSelector('#token');
		assert.deepEqual(faults, []);
		await context.close();
	});

	test('the first page updates itself, stops when it is paused, and takes keys', async () => {
		const { context, page, faults } = await open();
		await signIn(page);
		const newest = () => page.getAttribute('[data-live=last] tr[data-id]', 'data-id');
		const first = await newest();
		await stack.run({ code: 'print("new")', language: 'python', conversationId: 'live' });
		await until('the new run to be shown', async () => (await newest()) !== first);
		await page.click('text=Pause updating');
		const paused = await newest();
		let asked = 0;
		page.on('request', () => asked++);
		await stack.run({ code: 'print("newer")', language: 'python', conversationId: 'live' });
		await page.waitForTimeout(9000); /* two turns of the update: that nothing happens can only be waited for */
		assert.equal(asked, 0);
		assert.equal(await newest(), paused);
		await page.keyboard.press('j');
		await page.keyboard.press('j');
		await page.keyboard.press('Enter');
		await page.waitForURL(/\/admin\/run\//);
		await page.keyboard.press('/');
		await page.waitForURL(/\/admin\/runs/);
		await page.keyboard.press('/');
		await page.keyboard.type('jk/'); /* in a field keys are letters */
		assert.equal(await page.inputValue('#search'), 'jk/');
		assert.deepEqual(faults, []);
		await context.close();
	});

	test('ages and elapsed times go on', async () => {
		const { context, page } = await open();
		await signIn(page);
		await page.click('text=Pause updating');
		const age = page.locator('[data-live=last] [data-age]').first();
		const shown = await age.textContent();
		assert.match(shown, / ago$/);
		await page.evaluate(() => document.querySelector('[data-live=last] [data-age]').dataset.age = '59'); /* as if it had come so */
		await until('the age to go on', async () => Number.parseInt(await age.textContent(), 10) > 59);
		await context.close();
	});

	test('a link on another site keeps the sign-in; its forms and frames get nothing', async () => {
		const { context, page } = await open();
		await signIn(page);
		const key = await page.getAttribute('.who input[name=key]', 'value');
		const other = createServer((request, response) => {
			response.setHeader('Content-Type', 'text/html');
			response.end(`<a id="link" href="${stack.base}/admin/runs">runs</a><iframe src="${stack.base}/admin/runs"></iframe>
				<form id="form" method="post" action="${stack.base}/admin/sign-out"><input name="key" value="${key}"><button>out</button></form>`);
		});
		await new Promise((resolve) => other.listen(0, '127.0.0.1', resolve));
		const site = `http://localhost:${other.address().port}/`; /* another site than 127.0.0.1 */
		await page.goto(site);
		assert.equal(await page.frames()[1].locator('.runs').count(), 0);
		await page.click('#link');
		await page.waitForSelector('header.top');
		assert.match(await page.textContent('h1'), /Runs/);
		await page.goto(site);
		const refused = page.waitForResponse((response) => response.url().endsWith('/admin/sign-out'));
		await page.click('#form button');
		assert.equal((await refused).status(), 403);
		await page.goto(`${stack.base}/admin/`);
		await page.waitForSelector('header.top');
		other.close();
		await context.close();
	});

	test('a revoked token ends the session; the old cookie opens nothing', async () => {
		const { context, page } = await open();
		const mine = await makeToken();
		await signIn(page, '/admin/', mine.token);
		await page.goto(`${stack.base}/admin/act/revoke/${mine.id}`);
		await page.click('button.danger');
		await page.waitForSelector('#token');
		assert.equal((await page.request.get(`${stack.base}/admin/runs`)).status(), 401);
		await context.close();
	});
});
