/*
 * programs.test.js - programs of every language and of every bad kind through the whole stack, each with its verdict and its words; then
 * all of them again by `sallyport replay`, which must find them identical, and must find the one row whose recorded output was altered in a
 * copy of the database.
 */
import assert from 'node:assert/strict';
import { cpSync, lstatSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Stack, processes, run, until } from './stack.js';

const TIMEOUT_MS = 240_000;
const MIB = 1 << 20;

let stack;
before(async () => (stack = await Stack.start()));
after(() => stack?.stop());

/* Programs that must end well: [label, arguments, stdout]. */
const GOOD = [
	['python with numpy and pandas', { language: 'python', code: 'import numpy, pandas\nprint(pandas.Series(numpy.arange(4)).sum())' }, '6\n'],
	['python by its alias, arguments, input and environment', {
		language: 'py', code: 'import os, sys\nprint(sys.argv[1:], sys.stdin.read(), os.environ["A"], os.environ["S"])',
		args: ['x', 'y z'], stdin: 'typed', environment: { A: 'shown' }, secrets: { S: 'hidden' },
	}, "['x', 'y z'] typed shown ***\n"],
	['javascript on Node 22', { language: 'javascript', code: 'console.log(process.versions.node.split(".")[0] >= 22, [1, 2, 3].map((n) => n * n))' },
		'true [ 1, 4, 9 ]\n'],
	['typescript with papaparse', {
		language: 'typescript',
		code: `import Papa from 'papaparse';
interface Row { name: string; age: number }
const parsed = Papa.parse<Row>('name,age\\nAda,36\\nAlan,41\\n', { header: true, dynamicTyping: true, skipEmptyLines: true });
const total: number = parsed.data.reduce((sum: number, row: Row) => sum + row.age, 0);
console.log(parsed.data.length, total);`,
	}, '2 77\n'],
	['typescript with csv-parser, pg and postgres', {
		language: 'typescript',
		code: `import csv from 'csv-parser';
import pg from 'pg';
import postgres from 'postgres';
console.log(typeof csv, typeof pg.Client, typeof postgres);`,
	}, 'function function function\n'],
	['go', {
		language: 'go',
		code: 'package main\n\nimport (\n\t"fmt"\n\t"strings"\n)\n\nfunc main() { fmt.Println(strings.Repeat("go", 3)) }\n',
	}, 'gogogo\n'],
	['c', { language: 'c', code: '#include <stdio.h>\nint main(void) { printf("%d\\n", 6 * 7); }' }, '42\n'],
	['c++', { language: 'c++', code: '#include <iostream>\n#include <vector>\nint main() { std::vector<int> v{1, 2, 3}; std::cout << v.size() << "\\n"; }' }, '3\n'],
	['bash with a file of the request', {
		language: 'bash', code: 'wc -c <in.bin; rm in.bin; echo done >out.txt', files: [{ filename: 'in.bin', content_base64: Buffer.alloc(1000).toString('base64') }],
	}, '1000\n'],
];
for (const [label, args, stdout] of GOOD) {
	test(label, { timeout: TIMEOUT_MS }, async () => {
		const result = await stack.run({ ...args, conversationId: label });
		assert.equal(result.verdict, 'OK', JSON.stringify(result));
		assert.equal(result.stdout, stdout);
		assert.equal(result.stderr, '');
		assert.equal(result.exit_code, 0);
		assert.equal(result.isError, false);
	});
}

/* Programs that end badly: [label, arguments, verdict, words of the message, further checks]. */
const BAD = [
	['a program that fails', { language: 'python', code: 'import sys\nprint("before")\nsys.exit(3)' }, 'RE', /3/, (result) => {
		assert.equal(result.exit_code, 3);
		assert.equal(result.stdout, 'before\n');
	}],
	['a program with an exception', { language: 'python', code: 'raise ValueError("told you")' }, 'RE', /1/, (result) =>
		assert.match(result.stderr, /ValueError: told you/)],
	['a program that is ended by a signal', { language: 'bash', code: 'kill -SEGV $$' }, 'SG', /SIGSEGV|11/, (result) => assert.equal(result.exit_code, null)],
	['a program that does not compile', { language: 'c', code: 'int main(void) { return missing; }' }, 'CE', /compile/i, (result) =>
		assert.match(result.stdout + result.stderr, /missing/)],
	['a program that never ends', { language: 'python', code: 'import time\nprint("start", flush=True)\ntime.sleep(1000)', timeout_seconds: 5 }, 'TO', /time|second/i,
		(result) => { /* five seconds, so that Python has come to its first line on a busy machine, here and in the replay */
			assert.equal(result.stdout, 'start\n');
			assert.ok(result.wall_us >= 5_000_000 && result.wall_us < 60_000_000, `wall_us ${result.wall_us}`);
		}],
	['a program that spins', { language: 'c', code: 'int main(void) { for (volatile long i = 0;; i++); }', timeout_seconds: 1 }, 'TO', /time|second/i],
	['a program that prints 100 MB', {
		language: 'python', code: 'import sys\nline = b"x" * 99 + b"\\n"\nfor i in range(1000000): sys.stdout.buffer.write(line)',
	}, 'OL', /output/i, (result) => {
		assert.equal(result.stdout_truncated, true);
		assert.ok(result.stdout.length <= 70_000 && result.stdout.length > 60_000, `${result.stdout.length}`);
		assert.ok(result.stdout.startsWith('x'.repeat(99) + '\n'));
	}],
	['a program that forks without end', {
		language: 'python', code: 'import os\nwhile True:\n    try: os.fork()\n    except OSError: pass', timeout_seconds: 2,
	}, 'TO', /time|second/i],
	['a program that eats memory', { language: 'python', code: 'blocks = []\nwhile True: blocks.append(bytearray(1 << 20))', memory_mb: 128 }, 'ML', /memory/i,
		(result) => assert.ok(result.memory_peak_bytes <= 129 * MIB, `${result.memory_peak_bytes}`)],
];
for (const [label, args, verdict, words, check] of BAD) {
	test(label, { timeout: TIMEOUT_MS }, async () => {
		const marker = `${process.pid}: ${label}`; /* an argument, by which the guest is found */
		const result = await stack.run({ ...args, args: [marker], conversationId: label });
		if (verdict === 'ML' && stack.weaker) {
			assert.equal(result.verdict, 'RE');
			assert.match(result.stderr, /MemoryError/);
			return;
		}
		assert.equal(result.verdict, verdict, JSON.stringify({ ...result, stdout: result.stdout.slice(0, 200), stderr: result.stderr.slice(0, 500) }));
		assert.match(result.message, words);
		assert.equal(result.isError, true);
		check?.(result);
		await until('the guest to be gone', () => processes(marker).length === 0);
	});
}

test('list_runners names what is there', async () => {
	const { result } = await stack.call('list_runners', {});
	const { languages } = result.structuredContent;
	for (const name of ['python', 'javascript', 'typescript', 'go', 'c', 'c++', 'bash']) {
		const runner = languages.find((one) => one.language === name || one.aliases.includes(name));
		assert.ok(runner, `no runner ${name}`);
		assert.equal(runner.available, true, JSON.stringify(runner));
	}
});

/* After everything above: it is all in the record, and runs again alike. */
test('sallyport replay --all finds everything identical', { timeout: 300_000 }, async () => {
	const rows = await stack.rows();
	assert.ok(rows.length >= GOOD.length + BAD.length, `${rows.length} rows`);
	const { code, stdout, stderr } = await stack.cli(['replay', '--all']);
	assert.equal(code, 0, stdout + stderr);
	assert.match(stdout + stderr, new RegExp(`${rows.length - 1} identical.*0 differ`), 'one row has a secret, so it cannot be compared');
});

test('sallyport replay finds the row whose recorded output was altered', { timeout: 120_000 }, async () => {
	const row = (await stack.rows()).find((one) => one.language === 'c' && one.verdict === 'OK');
	const copy = path.join(stack.state, 'copy');
	const database = path.join(copy, 'sallyport.db');
	cpSync(path.join(stack.state, 'data'), copy, { recursive: true, filter: (source) => !lstatSync(source).isSocket() });
	const { code: altered, stdout: changes, stderr } = await run('sqlite3', [
		database, `UPDATE execution SET stdout = '43' || char(10) WHERE id = '${row.id}'; SELECT changes();`,
	]);
	assert.equal(altered, 0, stderr);
	assert.equal(changes.trim(), '1');
	const config = readFileSync(stack.config, 'utf8').replace('"data_dir": "data"', '"data_dir": "copy"');
	writeFileSync(path.join(stack.state, 'copy.conf'), config);
	const replayed = await stack.cli(['replay', '--language', 'c', '--verdict', 'OK'], path.join(stack.state, 'copy.conf'));
	assert.equal(replayed.code, 1, replayed.stdout + replayed.stderr);
	assert.match(replayed.stdout, new RegExp(row.id));
	assert.match(replayed.stdout, /stdout/);
	assert.match(replayed.stdout, /43[\s\S]*42|42[\s\S]*43/);
});
