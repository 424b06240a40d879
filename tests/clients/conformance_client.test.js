/*
 * The official conformance suite the other way round: the suite's servers against the client of lib/upstream, as
 * tests/unit/upstream_client.c drives it. Its scenarios of authorization need OAuth, which that client does not speak.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { bin, root, run } from './stack.js';

const suite = path.join(root, 'tests/clients/node_modules/@modelcontextprotocol/conformance/dist/index.js');

describe('the client of upstream servers', () => {
	const client = path.join(bin, '../tests/upstream_client');
	const revisions = {
		'2025-11-25': ['initialize', 'tools_call', 'elicitation-sep1034-client-defaults', 'sse-retry', 'json-schema-2020-12-preservation'],
		'2026-07-28': [
			'tools_call', 'request-metadata', 'sep-2322-client-request-state', 'http-standard-headers', 'http-custom-headers', 'http-invalid-tool-headers',
			'json-schema-ref-no-deref', 'json-schema-2020-12-preservation',
		],
	};
	for (const [version, scenarios] of Object.entries(revisions)) {
		for (const scenario of scenarios) {
			test(`${version} ${scenario}`, async () => {
				const results = mkdtempSync(path.join(tmpdir(), 'sp-suite-'));
				const args = ['client', '--command', client, '--scenario', scenario, '--spec-version', version, '-o', results, '--timeout', '60000'];
				const { code, stdout, stderr } = await run(process.execPath, [suite, ...args]);
				rmSync(results, { recursive: true, force: true });
				assert.match(stdout + stderr, /Passed: [1-9]\d*\/[1-9]\d*, 0 failed, 0 warnings/);
				assert.equal(code, 0, stdout + stderr);
			});
		}
	}
});
