/*
 * doors.test.js - the APIs of other sandboxes by the rules of their clients: /fusion/run_code as verl and tinker-cookbook call it, /piston/ with
 * the two clients on npm, unmodified.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { NodePistonClient } from 'piston-api-client';
import { piston } from 'piston-client';
import { Stack, processes, ticking, until } from './stack.js';

const base64 = (text) => Buffer.from(text).toString('base64');
let stack, origin, token;

before(async () => {
	stack = await Stack.start({ env: { SALLYPORT_DOORS_FUSION: 'true', SALLYPORT_DOORS_PISTON: 'true', SALLYPORT_DOORS_PLACES: '2' } });
	origin = new URL(stack.url).origin;
	token = stack.headers.Authorization.replace('Bearer ', '');
});
after(() => stack?.stop());

/* As verl sends it: no header, the token in the address. */
async function runCode(body, more = {}) {
	const response = await fetch(`${origin}/t/${more.token ?? token}/fusion/run_code`, {
		method: 'POST', headers: { 'Content-Type': 'application/json', Accept: 'application/json' }, signal: body.signal ?? null,
		body: typeof body === 'string' ? body : JSON.stringify({ compile_timeout: 10, run_timeout: 10, memory_limit_MB: 1024, stdin: null, files: {}, fetch_files: [], ...body, signal: undefined }),
	});
	return { status: response.status, headers: response.headers, body: await response.json() };
}
const python = (code, more) => runCode({ language: 'python', code, ...more });

test('run_code: what a program did, in the words of SandboxFusion', async () => {
	const cases = [
		['exit 0', { code: 'print(input())', stdin: 'x' }, 'Success', 'Finished', 0, 'x\n'],
		['exit 3', { code: 'print(1)\nraise SystemExit(3)' }, 'Failed', 'Finished', 3, '1\n'],
		['a signal', { code: 'import os\nos.kill(os.getpid(), 11)' }, 'Failed', 'Finished', -11, ''],
		['processor time', { code: 'print(7, flush=True)\nwhile True: pass', run_timeout: 1 }, 'Failed', 'TimeLimitExceeded', null, '7\n'],
		['sleep', { code: 'import time\ntime.sleep(60)', run_timeout: 0.5 }, 'Failed', 'TimeLimitExceeded', null, ''],
		['memory', { code: 'x = bytearray(1 << 30)', memory_limit_MB: 64 }, 'Failed', 'Finished', -9, ''],
		['no UTF-8', { code: "import os\nos.write(1, b'a\\xffb')" }, 'Success', 'Finished', 0, 'a\ufffdb'],
		['what is written last is no value', { code: "import sys\nsys.stdout.write('42')" }, 'Success', 'Finished', 0, '42'],
	];
	for (const [name, body, status, step, code, stdout] of cases) {
		const answer = await runCode({ language: 'python', ...body });
		assert.equal(answer.status, 200, name);
		assert.equal(answer.body.status, status, `${name}: ${JSON.stringify(answer.body)}`);
		const { run_result: run } = answer.body;
		assert.deepEqual([run.status, run.return_code, run.stdout], [step, code, stdout], name);
		assert.equal(typeof run.execution_time, 'number', name);
		assert.equal(answer.body.compile_result, null, name);
		assert.equal(answer.body.message, '', name);
		assert.equal(answer.body.executor_pod_name, answer.headers.get('x-sallyport-execution'), name);
	}
});

test('run_code: a compiler has a step of its own', async () => {
	const good = await runCode({ language: 'cpp', code: '#include <cstdio>\nint main() { puts("yes"); return 0; }' });
	assert.deepEqual([good.body.status, good.body.compile_result.status, good.body.compile_result.return_code, good.body.run_result.stdout], ['Success', 'Finished', 0, 'yes\n']);
	const bad = await runCode({ language: 'cpp', code: 'int main() { return x; }' });
	assert.equal(bad.body.status, 'Failed');
	assert.equal(bad.body.run_result, null);
	assert.equal(bad.body.compile_result.status, 'Finished');
	assert.notEqual(bad.body.compile_result.return_code, 0);
	assert.match(bad.body.compile_result.stdout + bad.body.compile_result.stderr, /‘x’ was not declared/);
});

test('run_code: files go beside the program and come back', async () => {
	const { body } = await python("import helper\nopen('out/a.txt', 'w').write(open('in.txt').read() + helper.more)", {
		files: { 'in.txt': base64('one '), './helper.py': base64("import os\nos.makedirs('out')\nmore = 'two'"), 'none.txt': null },
		fetch_files: ['out/a.txt', 'in.txt', 'missing'],
	});
	assert.equal(body.status, 'Success', JSON.stringify(body));
	assert.deepEqual(body.files, { 'out/a.txt': base64('one two'), 'in.txt': base64('one ') });
});

test('run_code: output is whole up to one MiB a stream', async () => {
	const { body } = await python("import sys\nprint('x' * 200_000)\nsys.stderr.write('y' * (2 << 20))");
	assert.equal(body.run_result.stdout.length, 200_001);
	assert.equal(body.run_result.stderr.length, 1 << 20);
});

test('run_code: bad requests say what is wrong, in the form of its clients', async () => {
	const cases = [
		['{', null], [{ language: 'python' }, 'code'], [{ code: '1' }, 'language'], [{ code: '1', language: 'cobol' }, 'language'],
		[{ code: '1', language: 'python', run_timeout: -1 }, 'run_timeout'], [{ code: '1', language: 'python', compile_timeout: 'x' }, 'compile_timeout'],
		[{ code: '1', language: 'python', files: { '../x': base64('x') } }, 'files'], [{ code: '1', language: 'python', files: { x: '*' } }, 'files'],
		[{ code: '1', language: 'python', memory_limit_MB: 'x' }, 'memory_limit_MB'],
		[{ code: '1', language: 'python', files: Object.fromEntries(Array.from({ length: 64 }, (_, n) => [`${n}`, ''])) }, 'files'],
	];
	for (const [body, member] of cases) {
		const answer = await runCode(body);
		assert.equal(answer.status, 422, JSON.stringify(body));
		assert.deepEqual(answer.body.detail[0].loc, member ? ['body', member] : ['body'], JSON.stringify(answer.body));
	}
	const { body } = await runCode({ code: '1', language: 'cobol' });
	assert.match(body.detail[0].msg, /'python', 'cpp'/);
	const large = await python('print(1)', { memory_limit_MB: 1e9, run_timeout: 1e9 });
	assert.equal(large.body.status, 'Success', JSON.stringify(large.body)); /* lowered to what there is */
});

test('run_code: pytest runs tests, with arguments and files', async () => {
	const code = 'from helper import twice\n\ndef test_good():\n    assert twice(2) == 4\n\ndef test_bad():\n    assert twice(2) == 5\n';
	const files = { 'helper.py': base64('def twice(n): return 2 * n') };
	const all = await runCode({ language: 'pytest', code, files });
	assert.deepEqual([all.body.status, all.body.run_result.return_code], ['Failed', 1], JSON.stringify(all.body));
	assert.match(all.body.run_result.stdout, /1 failed, 1 passed/);
	const some = await runCode({ language: 'pytest', code, files, args: ['-k', 'good'] });
	assert.equal(some.body.status, 'Success', JSON.stringify(some.body));
	assert.match(some.body.run_result.stdout, /1 passed, 1 deselected/);
	const alone = await runCode({ language: 'pytest', code: 'def test_it(tmp_path):\n    (tmp_path / "a").write_text("x")' });
	assert.equal(alone.body.status, 'Success', JSON.stringify(alone.body));
});

async function runJupyter(body) {
	const response = await fetch(`${origin}/t/${token}/fusion/run_jupyter`, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) });
	return { status: response.status, headers: response.headers, body: await response.json() };
}

test('run_jupyter: cells share an interpreter, and an exception ends only its cell', async () => {
	const { status, headers, body } = await runJupyter({
		cells: ['a = 123', 'a', 'print(a)', '', 'import sys; sys.stderr.write("stderr message")', 'raise RuntimeError("error message")', 'a + 1', 'open("out.txt", "w").write(open("in.txt").read() * 2);'],
		cell_timeout: 0, total_timeout: 45, kernel: 'python3', files: { 'in.txt': base64('hi') }, fetch_files: ['out.txt', 'in.txt', 'missing'],
	});
	assert.equal(status, 200);
	assert.equal(body.status, 'Success', JSON.stringify(body));
	assert.deepEqual([body.driver.status, body.driver.return_code, body.message], ['Finished', 0, '']);
	assert.deepEqual(body.files, { 'out.txt': base64('hihi'), 'in.txt': base64('hi') });
	const plain = { stdout: '', stderr: '', display: [], error: [] };
	const { error, ...sixth } = body.cells[5];
	assert.deepEqual(body.cells.toSpliced(5, 1), [
		plain, { ...plain, display: [{ 'text/plain': '123' }] }, { ...plain, stdout: '123\n' }, plain, { ...plain, stderr: 'stderr message' },
		{ ...plain, display: [{ 'text/plain': '124' }] }, plain,
	]);
	assert.deepEqual(sixth, { stdout: '', stderr: '', display: [] });
	assert.deepEqual([error.length, error[0].ename, error[0].evalue, error[0].traceback[0]], [1, 'RuntimeError', 'error message', 'Traceback (most recent call last):']);
	assert.equal(body.executor_pod_name, headers.get('x-sallyport-execution'));
	/* Its replay is that of the whole session. */
	const { stdout } = await stack.cli(['replay', body.executor_pod_name]);
	assert.match(stdout, /identical/);
});

test('run_jupyter: errors as a notebook has them, and figures', async () => {
	const { body } = await runJupyter({
		cells: ['x = (', 'try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError("two\\nlines") from e', 'import sys\nprint("before", file=sys.stderr)\nsys.exit(3)',
			'import json\njson.loads("{")', 'import matplotlib.pyplot as plt\nplt.plot([1, 2])'],
	});
	assert.equal(body.status, 'Success', JSON.stringify(body));
	const errors = body.cells.map(({ error }) => error[0] && [error[0].ename, error[0].evalue]);
	assert.equal(errors[0][0], 'SyntaxError');
	assert.deepEqual(errors.slice(1, 3), [['ValueError', 'two\nlines'], ['SystemExit', '3']]);
	assert.ok(body.cells[1].error[0].traceback.includes('ZeroDivisionError: division by zero'));
	assert.equal(body.cells[2].stderr, 'before\n');
	assert.equal(errors[3][0], 'JSONDecodeError');
	const picture = body.cells[4].display.find((one) => one['image/png']);
	assert.equal(Buffer.from(picture['image/png'], 'base64').subarray(1, 4).toString(), 'PNG');
});

test('run_jupyter: what ends the interpreter or meets a limit is the last cell', async () => {
	const cases = [
		[{ cells: ['print(1)', 'import os; os._exit(4)', 'print(2)'] }, 'Finished', 'DeadKernelError'],
		[{ cells: ['print(1)', 'while True: pass', 'print(2)'], cell_timeout: 1 }, 'TimeLimitExceeded', 'DeadKernelError'],
		[{ cells: ['print(1)', 'while True: pass', 'print(2)'], total_timeout: 2 }, 'TimeLimitExceeded', 'DeadKernelError'],
		[{ cells: ['print(1)', 'x = bytearray(1 << 30)', 'print(2)'], memory_limit_MB: 128 }, 'Finished', null],
	];
	for (const [request, driver, name] of cases) {
		const { body } = await runJupyter(request);
		if (!name && stack.weaker) continue; /* memory is the process' own there: an exception */
		assert.deepEqual([body.status, body.driver.status, body.cells.length], ['Failed', driver, 2], JSON.stringify(body));
		assert.equal(body.cells[0].stdout, '1\n');
		if (name) assert.equal(body.cells[1].error[0].ename, name);
	}
});

test('run_jupyter: more at once than an owner may have sessions', async () => {
	const answers = await Promise.all(Array.from({ length: 12 }, (_, n) => runJupyter({ cells: [`n = ${n}`, 'print(n)'] })));
	assert.deepEqual(answers.map(({ body }) => body.cells[1].stdout), Array.from({ length: 12 }, (_, n) => `${n}\n`));
	await until('all sandboxes to have ended', async () => !(await stack.cli(['ps', '--json'])).stdout.includes('fusion-'));
});

test('run_jupyter: bad requests', async () => {
	const cases = [
		['{', null], [{}, 'cells'], [{ cells: 'x' }, 'cells'], [{ cells: [1] }, 'cells'], [{ cells: Array(257).fill('') }, 'cells'], [{ cells: [], kernel: 'ir' }, 'kernel'],
		[{ cells: [], total_timeout: -1 }, 'total_timeout'], [{ cells: [], cell_timeout: -1 }, 'cell_timeout'], [{ cells: [], cell_timeout: 'x' }, 'cell_timeout'], [{ cells: ['1'], files: { x: '*' } }, 'files'],
	];
	for (const [body, member] of cases) {
		const answer = await runJupyter(body);
		assert.equal(answer.status, 422, JSON.stringify(body));
		assert.deepEqual(answer.body.detail[0].loc, member ? ['body', member] : ['body'], JSON.stringify(answer.body));
	}
	assert.deepEqual((await runJupyter({ cells: [] })).body.cells, []);
});

test('the other addresses of SandboxFusion', async () => {
	const get = async (rest, init) => {
		const response = await fetch(`${origin}/t/${token}/fusion/${rest}`, init);
		return [response.status, await response.json()];
	};
	assert.deepEqual(await get('v1/ping'), [200, 'pong']);
	assert.equal((await get(''))[0], 200);
	assert.ok((await get('list_languages'))[1].includes('nodejs'));
	assert.deepEqual(await get('submit', { method: 'POST', body: '{"dataset": "x"}' }), [400, { detail: 'no eval class found for dataset x' }]);
	assert.equal((await get('nothing'))[0], 404);
});

test('a token is taken in each form that clients have, and the path with it is in no log', async () => {
	const ask = async (address, headers = {}) => (await fetch(address, { headers })).status;
	const ping = `${origin}/fusion/v1/ping`;
	assert.equal(await ask(ping), 401);
	for (const headers of [{ Authorization: `Bearer ${token}` }, { 'X-API-Key': token }, { 'X-Auth-Token': token }, { Authorization: `Basic ${base64(`any:${token}`)}` },
		{ Authorization: `Basic ${base64(`${token}:`)}` }]) assert.equal(await ask(ping, headers), 200, JSON.stringify(headers));
	for (const headers of [{ Authorization: `Basic ${base64('any:wrong')}` }, { Authorization: 'Basic *' }, { 'X-Auth-Token': 'x'.repeat(600) }]) assert.equal(await ask(ping, headers), 401, JSON.stringify(headers));
	assert.equal(await ask(`${origin}/t/sp_wrong/fusion/v1/ping`), 401);
	for (const rest of ['mcp', 'files/x', 'admin', 'metrics']) assert.equal(await ask(`${origin}/t/${token}/${rest}`), 404, rest);
	await python('print(1)');
	for (const log of ['log/gateway.log', 'log/jailer.log', 'log/nginx.log', 'sallyport.db']) {
		const file = path.join(stack.state, log);
		let text = '';
		try { text = readFileSync(file, 'latin1'); } catch { /* it is not kept there */ }
		assert.ok(!text.includes(token), log);
	}
});

test('piston-api-client, unmodified', async () => {
	const client = new NodePistonClient({ server: `${origin}/t/${token}/piston`, cacheTime: 1 });
	const runtimes = await client.runtimes();
	assert.match(runtimes.data.find((one) => one.language === 'python').version, /^3\.\d+\.\d+$/, JSON.stringify(runtimes));
	const { data } = await client.execute({
		language: 'python', version: '3.x', files: [{ content: 'import sys\nprint(sys.stdin.read(), sys.argv[1])' }], stdin: 'in', args: ['arg'],
	});
	assert.equal(data.run.stdout, 'in arg\n', JSON.stringify(data));
});

test('piston-client, unmodified, which sends text/plain', async () => {
	const client = piston({ server: `${origin}/t/${token}/piston` });
	const answer = await client.execute('python', 'print(6 * 7)');
	assert.equal(answer.run.stdout, '42\n', JSON.stringify(answer));
});

async function execute(body) {
	const response = await fetch(`${origin}/piston/api/v2/execute`, {
		method: 'POST', headers: { Authorization: `Bearer ${token}` }, body: typeof body === 'string' ? body : JSON.stringify({ language: 'python', version: '*', ...body }),
	});
	return { status: response.status, body: await response.json() };
}
const files = (content, more = {}) => [{ content, ...more }];

test('Piston: stages and codes', async () => {
	const cases = [
		[{ files: files('print(1)') }, { code: 0, signal: null, status: null, stdout: '1\n', output: '1\n' }],
		[{ files: files('import sys\nsys.stderr.write("no")\nsys.exit(4)') }, { code: 4, signal: null, status: 'RE', stderr: 'no', output: 'no' }],
		[{ files: files('import os\nos.kill(os.getpid(), 6)') }, { code: null, signal: 'SIGABRT', status: 'SG' }],
		[{ files: files('while True: pass'), run_timeout: 500 }, { code: null, signal: 'SIGKILL', status: 'TO' }],
		[{ files: files('x = bytearray(1 << 30)'), run_memory_limit: 64 << 20 }, { code: null, signal: 'SIGKILL', status: 'SG' }],
		[{ files: files(base64('print(2)'), { encoding: 'base64' }) }, { code: 0, stdout: '2\n' }],
		[{ files: files(Buffer.from('print(3)').toString('hex'), { encoding: 'hex' }) }, { code: 0, stdout: '3\n' }],
		[{ files: [{ name: 'a.py', content: 'import b\nprint(b.x)' }, { name: 'b.py', content: 'x = 4' }] }, { code: 0, stdout: '4\n' }],
	];
	for (const [body, wanted] of cases) {
		const answer = await execute(body);
		assert.equal(answer.status, 200, JSON.stringify(answer.body));
		const seen = Object.fromEntries(Object.keys(wanted).map((key) => [key, answer.body.run[key]]));
		assert.deepEqual(seen, wanted, JSON.stringify(answer.body));
		for (const figure of ['cpu_time', 'wall_time', 'memory']) assert.equal(typeof answer.body.run[figure], 'number');
		assert.ok(!('compile' in answer.body));
	}
	const compiled = await execute({ language: 'c++', files: files('int main() {}') });
	assert.equal(compiled.body.compile.code, 0, JSON.stringify(compiled.body));
	const broken = await execute({ language: 'c++', files: files('int main( {}') });
	assert.deepEqual(broken.body.run, broken.body.compile);
	assert.notEqual(broken.body.run.code, 0);
});

test('Piston: refusals in the words of the original', async () => {
	const cases = [
		[{ language: undefined, files: [] }, 'language is required as a string'], [{ version: undefined, files: [] }, 'version is required as a string'],
		[{}, 'files is required as an array'], [{ files: [{}] }, 'files[0].content is required as a string'], [{ language: 'x', version: '1.0', files: files('') }, 'x-1.0 runtime is unknown'],
		[{ version: '2.7', files: files('') }, 'python-2.7 runtime is unknown'], [{ files: files(''), run_timeout: 1e9 }, 'run_timeout cannot exceed the configured limit of 300000'],
		[{ files: files('zz', { encoding: 'hex' }) }, 'files[0].content is not hexadecimal'], [{ files: [{ content: '' }, { name: '../x', content: '' }] }, 'files[1].name must lead below the program\'s folder'],
	];
	for (const [body, message] of cases) assert.deepEqual(await execute(body), { status: 400, body: { message } });
	assert.equal((await execute('{')).status, 400);
	const response = await fetch(`${origin}/piston/api/v2/packages`, { method: 'POST', headers: { Authorization: `Bearer ${token}` }, body: '{}' });
	assert.equal(response.status, 403);
	for (const version of ['3', '3.x', '>=3.0.0', '^3.1', '~3.11', '3.0.0 || 3.11']) assert.equal((await execute({ version, files: files('1') })).status, 200, version);
});

test('a token without the scope run runs nothing', async () => {
	const { stdout } = await stack.cli(['token', 'add', '--owner', 'reader', '--scope', 'files', '--json']);
	assert.equal((await runCode({ language: 'python', code: '1' }, { token: JSON.parse(stdout).token })).status, 403);
	assert.equal((await fetch(`${origin}/t/${JSON.parse(stdout).token}/piston/api/v2/execute`, { method: 'POST', body: '{}' })).status, 403);
});

test('a lost answer is given to who sends the same again; nothing runs twice', async () => {
	const ids = async () => (await stack.cli(['log', '--json', '--door', 'fusion', '--limit', '1000'])).stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line));
	const waits = () => {
		const { marker } = ticking();
		return { marker, code: `import subprocess\nsubprocess.run(['sleep', '${marker}'])\nprint('woken')` };
	};
	const asleep = (program) => until('the program to sleep', () => processes(program.marker).find(({ words }) => words[0] === 'sleep'));
	const leave = async (program) => {
		const leaver = new AbortController();
		const left = python(program.code, { signal: leaver.signal, run_timeout: 100 }).catch(({ name }) => name);
		const { pid } = await asleep(program);
		leaver.abort();
		assert.equal(await left, 'AbortError');
		return pid;
	};
	const before = (await ids()).length;
	/* It still runs. */
	const first = waits(), pid = await leave(first);
	const again = python(first.code, { run_timeout: 100 });
	process.kill(pid, 'SIGKILL');
	const { headers, body } = await again;
	assert.equal(body.run_result.stdout, 'woken\n', JSON.stringify(body));
	let rows = await ids();
	assert.equal(rows.length, before + 1);
	assert.equal(rows.find((one) => one.id === body.executor_pod_name).verdict, 'OK');
	assert.equal(headers.get('x-sallyport-execution'), body.executor_pod_name);
	/* It has ended meanwhile; and its answer is given once. */
	const second = waits();
	process.kill(await leave(second), 'SIGKILL');
	await until('it to end', async () => (await ids()).length === before + 2 && (await ids()).every((one) => one.state !== 'running'));
	const late = await python(second.code, { run_timeout: 100 });
	rows = await ids();
	assert.equal(rows.length, before + 2);
	assert.equal(late.body.run_result.stdout, 'woken\n');
	const anew = python(second.code, { run_timeout: 100 });
	process.kill((await asleep(second)).pid, 'SIGKILL');
	assert.notEqual((await anew).body.executor_pod_name, late.body.executor_pod_name);
	/* Nobody comes again: cancelled. */
	const third = waits();
	await leave(third);
	await until('it to be cancelled', async () => (await ids()).some((one) => one.verdict === 'CX'));
	/* Equal requests of clients that stay run each. */
	const equal = await Promise.all([0, 1].map(() => python('import os\nprint(os.urandom(8).hex())')));
	assert.notEqual(equal[0].body.run_result.stdout, equal[1].body.run_result.stdout);
});

/* The place in the line of a program that runs until its file is there. */
const holding = (name) => python(`import os, time\nwhile not os.path.exists('/data/stop'): time.sleep(0.05)`, { run_timeout: 5, files: { [name]: '' } });

test('more requests than places wait, and every one is answered', async () => {
	const answers = await Promise.all(Array.from({ length: 60 }, (_, n) => python(`print(${n})`)));
	assert.deepEqual(answers.map(({ body }) => body.run_result?.stdout), Array.from({ length: 60 }, (_, n) => `${n}\n`));
});

test('owners have their turns one after the other', async () => {
	const { stdout } = await stack.cli(['token', 'add', '--owner', 'other', '--json']);
	const other = JSON.parse(stdout).token, order = [];
	const many = Array.from({ length: 40 }, () => python('print(1)').then(() => order.push('many')));
	await until('the first owner to have begun', () => order.length >= 2);
	await runCode({ language: 'python', code: 'print(2)' }, { token: other }).then(() => order.push('other'));
	const place = order.indexOf('other');
	await Promise.all(many);
	assert.ok(place < 20, `behind ${place} of 40`);
});

test('who waits too long has not begun: 504, or 503 of Piston; who has left never begins', async () => {
	const before = (await stack.cli(['log', '--json', '--limit', '1000'])).stdout.split('"verdict":"CX"').length;
	const held = [holding('a'), holding('b')];
	await until('both places to be taken', async () => (await stack.cli(['ps', '--json'])).stdout.split('\n').filter((line) => line.includes('running')).length >= 2);
	const leaver = new AbortController();
	const left = python('print(1)', { signal: leaver.signal }).catch(({ name }) => name);
	const [late, piston_late] = await Promise.all([
		python('print(1)', { compile_timeout: 0.001, run_timeout: 0.001 }),
		execute({ files: files('print(1)') }), /* its client waits for longer: it has its turn */
		new Promise((resolve) => setImmediate(resolve)).then(() => leaver.abort()),
	]);
	assert.equal(late.status, 504, JSON.stringify(late.body));
	assert.match(late.body.error_description, /has not begun/);
	assert.equal(piston_late.status, 200);
	assert.equal(await left, 'AbortError');
	for (const { body } of await Promise.all(held)) assert.equal(body.run_result.status, 'TimeLimitExceeded');
	const { stdout } = await stack.cli(['log', '--json', '--limit', '1000']);
	assert.equal(stdout.split('"verdict":"CX"').length, before, 'nothing that had not begun was begun and cancelled');
});
