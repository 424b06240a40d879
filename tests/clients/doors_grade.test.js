/*
 * doors_grade.test.js - /fusion/common_evaluate and common_evaluate_batch as ScaleBox' clients call them, next to `sallyport grade`; and the record
 * of what came through a door.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { root, Stack, until } from './stack.js';

let stack, base;

before(async () => {
	stack = await Stack.start({ env: { SALLYPORT_DOORS_FUSION: 'true', SALLYPORT_DOORS_PISTON: 'true', SALLYPORT_DOORS_PLACES: '2' } });
	base = `${new URL(stack.url).origin}/t/${stack.headers.Authorization.replace('Bearer ', '')}`;
});
after(() => stack?.stop());

async function evaluate(body, endpoint = 'common_evaluate_batch') {
	const response = await fetch(`${base}/fusion/${endpoint}`, {
		method: 'POST', headers: { 'Content-Type': 'application/json', 'User-Agent': 'python-requests/2.28.1' }, body: typeof body === 'string' ? body : JSON.stringify(body),
	});
	return { status: response.status, headers: response.headers, body: await response.json() };
}
const fenced = (code, language = 'python') => `Here it is:\n\`\`\`${language}\n${code}\n\`\`\`\n`;
const grading = (code, test_cases, more = {}) => ({
	completion: fenced(code, more.language), ...more.top,
	config: { language: more.language ?? 'python', compile_timeout: 10, run_timeout: 10, provided_data: { test_cases }, extra: { run_all_cases: true, total_timeout: 30, ...more.extra }, ...more.config },
});
const stdio = (...pairs) => ({ type: 'stdin_stdout', input: pairs.map(([input]) => input), output: pairs.map(([, output]) => output), fn_name: null });
const passed = ({ tests }) => tests.map((one) => one.passed);

test('a batch of standard input: one program, all cases, as ScaleBox answers', async () => {
	const answer = await evaluate(grading('a, b = map(int, input().split())\nprint(a + b)', stdio(['1 2', '3'], ['3 4', '7'], ['1 1', '3']), { top: { id: 'case-7' } }));
	assert.equal(answer.status, 200, JSON.stringify(answer.body));
	const { tests, ...rest } = answer.body;
	assert.deepEqual(rest, { id: 'case-7', accepted: false, extracted_code: 'a, b = map(int, input().split())\nprint(a + b)\n', full_code: null, test_code: null, extracted_type: null, extra: null });
	assert.deepEqual(passed(answer.body), [true, true, false]);
	const [{ exec_info: info, test_info: about }] = tests;
	assert.deepEqual(about, { input: { stdin: '1 2' }, output: { stdout: '3' } });
	assert.deepEqual([info.status, info.message, info.compile_result, info.files], ['Success', '', null, {}]);
	assert.deepEqual([info.run_result.status, info.run_result.return_code, info.run_result.stdout, info.run_result.stderr], ['Finished', 0, '3\n', '']);
	assert.equal(info.executor_pod_name, answer.headers.get('x-sallyport-execution'));
	const first = await evaluate(grading('print(1)', stdio(['', '2'], ['', '1']), { extra: { run_all_cases: false } }));
	assert.deepEqual(passed(first.body), [false], 'the first wrong case is the last');
});

test('outputs are compared as ScaleBox does it, but every line counts', async () => {
	const cases = [
		['YES \n no', 'yes\nNO\n', true], ['1.0000001', '1', true], ['1.1', '1', false], ['3', '3\n4', false], ['3\n4', '3', false], ['a  b', 'a b', false], ['', '', true], ['x', '', false],
	];
	const { body } = await evaluate(grading('import sys\nsys.stdout.write(sys.stdin.read())', stdio(...cases)));
	assert.deepEqual(passed(body), cases.map(([, , right]) => right), JSON.stringify(body));
});

test('what a program does wrong in a case is in the words of run_code', async () => {
	const code = [
		'import os, sys, time', 'what = input()', "if what == 'exit': sys.exit(3)", "if what == 'signal': os.kill(os.getpid(), 11)", "if what == 'loop':", '    while True: pass',
		"if what == 'memory': x = bytearray(1 << 30)", "print('right')",
	].join('\n');
	const { body } = await evaluate(grading(code, stdio(['exit', ''], ['signal', ''], ['loop', ''], ['memory', ''], ['fine', 'right']), { config: { run_timeout: 1, memory_limit_mb: 128 } }));
	assert.deepEqual(passed(body), [false, false, false, false, true], JSON.stringify(body));
	assert.deepEqual(body.tests.map(({ exec_info: { status, run_result: run } }) => [status, run.status, run.return_code]), [
		['Failed', 'Finished', 3], ['Failed', 'Finished', -11], ['Failed', 'TimeLimitExceeded', null], ['Failed', 'Finished', -9], ['Success', 'Finished', 0],
	]);
});

test('a compiler runs once for all cases; what it refuses fails each of them', async () => {
	const cases = stdio(...Array.from({ length: 8 }, (_, n) => [`${n}`, `${n * n}`]));
	const { body } = await evaluate(grading('#include <iostream>\nint main() { long n; std::cin >> n; std::cout << n * n << "\\n"; }', cases, { language: 'cpp' }));
	assert.equal(body.accepted, true, JSON.stringify(body));
	assert.equal(body.tests.length, 8);
	assert.equal(new Set(body.tests.map(({ exec_info }) => exec_info.compile_result.execution_time)).size, 1);
	const broken = await evaluate(grading('int main() { return x; }', cases, { language: 'cpp' }));
	assert.deepEqual(passed(broken.body), Array(8).fill(false));
	const { status, compile_result, run_result } = broken.body.tests[0].exec_info;
	assert.deepEqual([status, compile_result.status, compile_result.return_code, run_result], ['Failed', 'Finished', 1, null]);
	assert.match(compile_result.stderr, /‘x’ was not declared/);
	const python = await evaluate(grading('print(', stdio(['', ''])));
	assert.match(python.body.tests[0].exec_info.run_result.stderr, /SyntaxError/);
});

test('calls of a function, and tests that are code', async () => {
	const add = 'def add(a, b):\n    return a + b';
	const call = { type: 'function_call', fn_name: 'add', input: [[1, 2], [3, 4], ['a', 'b']], output: [3, [7], 'ba'] };
	const { body } = await evaluate(grading(add, call));
	assert.deepEqual(passed(body), [true, true, false], JSON.stringify(body));
	assert.deepEqual(body.tests[1].test_info, { type: 'function_call', fn_name: 'add', input: [3, 4], output: [7] });
	const lines = await evaluate(grading('class Solution:\n    def add(self, a, b):\n        return a + b', { ...call, json_input: true, input: ['1\n2'], output: ['3'] }));
	assert.equal(lines.body.accepted, true, JSON.stringify(lines.body));
	const single = await evaluate(grading('import sys\nprint(sys.stdin.read()[::-1])', [{ type: 'stdin_stdout', input: 'ab', output: 'ba' }]), 'common_evaluate');
	assert.equal(single.body.accepted, true, JSON.stringify(single.body));
	const check = (text) => ({ type: 'assert', entry_point: 'add', test: `def check(candidate):\n    ${text}\n` });
	const good = await evaluate(grading(`def twice(x):\n    return 2 * x\n${add}`, check('assert candidate(1, 2) == 3\n    assert add(1, 1) == twice(1)')));
	assert.equal(good.body.accepted, true, JSON.stringify(good.body));
	const bad = await evaluate(grading(add, check('assert candidate(1, 2) == 4, "too little"')));
	assert.deepEqual([bad.body.accepted, bad.body.tests.length, bad.body.tests[0].exec_info.status], [false, 1, 'Failed']);
	assert.match(bad.body.tests[0].exec_info.run_result.stderr, /too little/);
	const cheat = await evaluate(grading('import os\ndef add(a, b):\n    os._exit(0)', check('assert candidate(1, 2) == 3')));
	assert.equal(cheat.body.accepted, false, 'an early end is no pass');
});

test('a special judge is jailed, sees the three files and decides by its exit status', async () => {
	const judge = ["import os, sys", "given, wanted, got = (open(n).read() for n in ('stdin.txt', 'stdout.txt', 'answer.txt'))", "assert not os.path.exists('main.txt')",
		"sys.exit(0 if sorted(got.split()) == sorted(wanted.split()) and given == 'x' else 1)"].join('\n');
	const extra = { special_judge_program: judge, special_judge_language: 'python' };
	const { body } = await evaluate(grading("input()\nprint('b a')", stdio(['x', 'a b'], ['y', 'a b'], ['x', 'a c']), { extra }));
	assert.deepEqual(passed(body), [true, false, false], JSON.stringify(body));
	const never = { special_judge_program: '#include <cstdlib>\nint main() { return 1; }', special_judge_language: 'cpp' };
	assert.equal((await evaluate(grading('print(1)', stdio(['', '1']), { extra: never }))).body.accepted, true, 'what is equal needs no judge');
	assert.equal((await evaluate(grading('print(1)', stdio(['', '1']), { extra: { ...never, force_special_judge: true } }))).body.accepted, false);
	const broken = await evaluate(grading('print(2)', stdio(['', '1']), { extra: { special_judge_program: 'import os\nos.kill(os.getpid(), 11)', special_judge_language: 'python' } }));
	assert.equal(broken.body.tests[0].exec_info.status, 'SandboxError', JSON.stringify(broken.body));
});

test('after total_timeout no case begins', async () => {
	const { body } = await evaluate(grading('import time\ntime.sleep(0.3)\nprint(1)', stdio(...Array(50).fill(['', '1'])), { extra: { total_timeout: 0.5 } }));
	assert.equal(body.accepted, false);
	assert.equal(body.tests.length, 50);
	const last = body.tests.at(-1);
	assert.deepEqual([body.tests[0].passed, last.passed, last.exec_info.status, last.exec_info.message, last.exec_info.run_result], [true, false, 'SandboxError', 'Total Timeout', null]);
});

test('a grading ends when its client leaves, whatever runs then', async () => {
	const kinds = {
		'standard input': grading('while True: pass', stdio(['', ''], ['', ''])),
		'a call': grading('def f(x):\n    while True: pass', { type: 'function_call', fn_name: 'f', input: [[1], [2]], output: [1, 2] }),
	};
	for (const [name, body] of Object.entries(kinds)) {
		body.id = `left ${name}`;
		Object.assign(body.config, { run_timeout: 250 });
		const leaver = new AbortController();
		const left = fetch(`${base}/fusion/common_evaluate_batch`, { method: 'POST', body: JSON.stringify(body), signal: leaver.signal }).catch((error) => error.name);
		const row = async () => JSON.parse((await stack.cli(['log', '--json', '--request', body.id])).stdout.split('\n')[0] || 'null');
		await until(`${name} to run`, async () => (await row())?.state === 'running');
		leaver.abort();
		assert.equal(await left, 'AbortError');
		const ended = await until(`${name} to end`, async () => { const one = await row(); return one?.state !== 'running' && one; });
		assert.equal(ended.verdict, 'CX', JSON.stringify(ended));
		assert.match(ended.message, /its client left/);
	}
});

test('bad gradings say what is wrong', async () => {
	const one = stdio(['', '1']), check = async (body, status, text) => {
		const answer = await evaluate(body);
		assert.equal(answer.status, status, JSON.stringify(answer.body));
		assert.match(JSON.stringify(answer.body.detail), text);
	};
	await check('{', 422, /json_invalid/);
	await check({ completion: 'x' }, 422, /config/);
	await check(grading('x', one, { config: { language: null } }), 400, /config.language field must exist, got None/);
	await check(grading('x', one, { config: { language: 'cobol' } }), 422, /'python', 'cpp'/);
	await check(grading('x', stdio()), 422, /between 1 and 10000/);
	await check(grading('x', { ...one, output: [] }), 422, /as many outputs as inputs/);
	await check(grading('x', { ...one, input: [1] }), 422, /must be strings/);
	await check(grading('x', { ...one, type: 'nothing' }), 422, /stdin_stdout, function_call or assert/);
	await check(grading('x', { type: 'function_call', input: [1], output: [1] }), 422, /fn_name/);
	await check(grading('x', { type: 'assert', test: 'x' }), 422, /entry_point/);
	await check(grading('x', one, { config: { run_timeout: -1 } }), 422, /greater than 0/);
	await check(grading('x', one, { config: { custom_extract_logic: 'x' } }), 422, /custom_extract_logic/);
	await check({ ...grading('x', one), completion: 'a\0b' }, 422, /NUL/);
});

test('a grading is one row with its cases, which replay and a suite grade again', async () => {
	const { headers } = await evaluate(grading('print(int(input()) ** 2)', stdio(['2', '4'], ['3', '8']), { top: { id: 4711 } }));
	const id = headers.get('x-sallyport-execution');
	const row = JSON.parse((await stack.cli(['show', id, '--json'])).stdout);
	assert.deepEqual([row.grading, row.door, row.caller, row.client, row.verdict, row.exit_code, row.language], [true, 'fusion', '4711', 'python-requests/2.28.1', 'RE', 1, 'python'], JSON.stringify(row));
	const cases = row.stdout_text.trim().split('\n').map((line) => JSON.parse(line));
	assert.deepEqual(cases.map((one) => [one.case, one.verdict, one.exit, one.stdout]), [[0, 'AC', 0, '4\n'], [1, 'WA', 0, '9\n']]);
	assert.equal(JSON.parse((await stack.cli(['log', '--door', 'fusion', '--request', '4711', '--json'])).stdout).id, id);
	assert.equal((await stack.cli(['log', '--door', 'mcp', '--json'])).stdout, '');
	const replay = await stack.cli(['replay', '--json', id]);
	assert.match(replay.stdout, /"identical":1/, replay.stdout + replay.stderr);
	const suite = path.join(stack.state, 'gradings.suite');
	await stack.cli(['promote', id, '--suite', suite]);
	const graded = await stack.cli(['grade', suite]);
	assert.equal(graded.code ?? 0, 0, graded.stdout + graded.stderr);
});

/* As open-r1 sends a test of a problem. */
async function execute(language, files, more = {}) {
	const response = await fetch(`${base}/piston/api/v2/execute`, {
		method: 'POST', headers: { 'Content-Type': 'application/json' },
		body: JSON.stringify({ language, version: '*', files: Object.entries(files).map(([name, content]) => ({ name, content })), run_timeout: 5000, ...more }),
	});
	return { status: response.status, body: await response.json() };
}
const seen = ({ body: { run, compile } }) => [compile?.code, run?.code, run?.stdout, run?.signal];

test('open-r1: Codeforces in C++ and Python, with and without a checker', async () => {
	const config = 'TIME_LIMIT=1\nMEMORY_LIMIT=256\nINPUT_MODE=stdio', test = { 'input.txt': '2 3\n', 'correct_output.txt': '5\n', grader_config: config };
	const cpp = '#include <iostream>\nint main() { int a, b; std::cin >> a >> b; std::cout << a + b; }';
	assert.deepEqual(seen(await execute('c++17', { 'main.cpp': cpp, ...test })), [0, 0, '1\n', null]);
	assert.deepEqual(seen(await execute('c++17', { 'main.cpp': cpp, ...test, 'correct_output.txt': '6' })), [0, 0, '0\n', null]);
	const broken = await execute('c++17', { 'main.cpp': 'int main( {}', ...test });
	assert.deepEqual([broken.body.compile.code, broken.body.run], [1, broken.body.compile]);
	assert.match(broken.body.compile.stderr, /error/);
	const python = 'a, b = map(int, input().split())\nprint(b + a)';
	assert.deepEqual(seen(await execute('cf_python3', { 'main.python': python, ...test })), [0, 0, '1\n', null]);
	const late = await execute('cf_python3', { 'main.python': 'while True: pass', ...test });
	assert.deepEqual(seen(late), [0, 0, '0\n', null]);
	assert.match(late.body.run.stderr, /timed out/);
	const checker = 'import sys\na, b, c = (open(name).read().split() for name in sys.argv[1:4])\nprint(0.5 if c == b else 1 if c[::-1] == b else 0)\nsys.stderr.write("%s %s" % (a, c))';
	const half = await execute('cf_python3', { 'main.python': python, 'checker.py': checker, ...test, 'correct_output.txt': '5' });
	assert.deepEqual([...seen(half), half.body.run.stderr], [0, 0, '0.5\n', null, "['2', '3'] ['5']"]);
	const peek = "import os\nprint(sorted(os.listdir('/data')))";
	const spy = await execute('cf_python3', { 'main.python': peek, ...test });
	const { stdout } = await stack.cli(['log', '--door', 'piston', '--limit', '1', '--json']);
	const row = JSON.parse((await stack.cli(['show', JSON.parse(stdout).id, '--json'])).stdout);
	assert.equal(JSON.parse(row.stdout_text).stdout, "['main.py']\n", 'the submission sees neither checker nor answer');
	assert.equal(spy.body.run.stdout, '0\n');
	assert.equal((await execute('c++17', { 'a.cpp': 'int main() {}' }, { version: '*' })).status, 400, 'without a configuration it is a language like any other');
});

test('open-r1: a problem of IOI, with its grader and its checker', async () => {
	const files = {
		'graders/sum.cpp': '#include "sum.h"\nint sum(int a, int b) { return a + b; }', 'graders/sum.h': 'int sum(int a, int b);',
		'graders/grader.cpp': '#include <cstdio>\n#include "sum.h"\nint main() { int a, b; if (scanf("%d %d", &a, &b) == 2) printf("%d\\n", sum(a, b)); }',
		'graders/grader_config.json': '{"task_type": "Batch", "code": "sum", "time_limit": 1.0, "memory_limit": 268435456}', 'input.txt': '2 3\n', 'correct_output.txt': '5\n',
	};
	assert.deepEqual(seen(await execute('cms_ioi', files)), [0, 0, '1\n', null]);
	assert.deepEqual(seen(await execute('cms_ioi', { ...files, 'correct_output.txt': '7' })), [0, 0, '0\n', null]);
	const checker = { 'checker/checker.cpp': '#include "points.h"\nint main(int, char **names) { return points(names[2], names[3]); }',
		'checker/points.h': '#include <cstdio>\n#include <fstream>\ninline int points(const char *right, const char *got) {\n\tint a = 0, b = 1;\n\tstd::ifstream(right) >> a;\n\tstd::ifstream(got) >> b;\n\tprintf("%g\\n", a == b ? 1 : 0.25);\n\tfprintf(stderr, "translate:partial");\n\treturn 0;\n}' };
	const partial = await execute('cms_ioi', { ...files, ...checker, 'correct_output.txt': '7' });
	assert.deepEqual([...seen(partial), partial.body.run.stderr], [0, 0, '0.25\n', null, 'translate:partial'], JSON.stringify(partial.body));
	assert.match((await execute('cms_ioi', { ...files, 'graders/manager.cpp': 'int main() {}' })).body.message, /manager/);
	assert.match((await execute('cms_ioi', { 'input.txt': '' })).body.message, /no submission/);
	const runtimes = await (await fetch(`${base}/piston/api/v2/runtimes`)).json();
	for (const language of ['cms_ioi', 'cf_python3', 'c++17']) assert.ok(runtimes.some((one) => one.language === language), language);
});

test('HumanEval as batches comes to what `sallyport grade` says, line by line', async () => {
	const real = path.join(process.env.TESTDATA ?? path.join(root, '../shared/data'), 'HumanEval.jsonl.gz');
	const every = process.env.TEST_DATA === 'all' ? 1 : 8;
	const text = existsSync(real) ? gunzipSync(readFileSync(real)).toString() : readFileSync(path.join(root, 'tests/data/tasks/humaneval.jsonl'), 'utf8');
	const tasks = text.trim().split('\n').map((line) => JSON.parse(line)).filter((_, n) => n % every === 0 || [32, 38, 50].includes(n));
	const wrong = (task, n) => (n % 3 === 1 ? task.prompt.replace(/"""[^]*"""|'''[^]*'''/, '') + '    return None\n' : task.prompt + task.canonical_solution);
	const files = ['tasks', 'samples'].map((name) => path.join(stack.state, `${name}.jsonl`));
	writeFileSync(files[0], tasks.map((task) => JSON.stringify(task)).join('\n'));
	writeFileSync(files[1], tasks.map((task, n) => JSON.stringify({ task_id: task.task_id, solution: wrong(task, n) })).join('\n'));
	const { stdout } = await stack.cli(['grade', files[0], '--samples', files[1], '--json']);
	const said = new Map(stdout.trim().split('\n').map((line) => JSON.parse(line)).filter((one) => one.task_id).map((one) => [one.task_id, one.passed]));
	assert.equal(said.size, tasks.length, stdout);
	const answers = await Promise.all(tasks.map((task, n) => evaluate(grading(wrong(task, n), { type: 'assert', test: task.test, entry_point: task.entry_point }))));
	answers.forEach(({ body }, n) => assert.equal(body.accepted, said.get(tasks[n].task_id), `${tasks[n].task_id}: ${JSON.stringify(body)}`));
});
