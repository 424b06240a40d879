/*
 * The official conformance suite the other way round: the suite's servers against the client of lib/upstream, as
 * tests/unit/upstream_client.c drives it. Not spoken, and so not run: grants without a person (client credentials, enterprise-managed
 * authorization, workload identity) and tokens that are bound to a key (DPoP), all of them extensions.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { bin, root, run } from './stack.js';

const suite = path.join(root, 'tests/clients/node_modules/@modelcontextprotocol/conformance/dist/index.js');

describe('the client of upstream servers', { concurrency: 3 }, () => {
	const client = path.join(bin, '../tests/upstream_client');
	const revisions = {
		'2025-11-25': ['initialize', 'tools_call', 'elicitation-sep1034-client-defaults', 'sse-retry', 'json-schema-2020-12-preservation'],
		'2026-07-28': [
			'tools_call', 'request-metadata', 'sep-2322-client-request-state', 'http-standard-headers', 'http-custom-headers', 'http-invalid-tool-headers',
			'json-schema-ref-no-deref', 'json-schema-2020-12-preservation',
		],
	};
	const metadata = ['metadata-default', 'metadata-var1', 'metadata-var2', 'metadata-var3'];
	const authorization = {
		'2025-03-26': ['2025-03-26-oauth-metadata-backcompat', '2025-03-26-oauth-endpoint-fallback'],
		'2025-11-25': [
			...metadata, 'basic-cimd', 'scope-from-www-authenticate', 'scope-from-scopes-supported', 'scope-omitted-when-undefined', 'scope-step-up',
			'scope-retry-limit', 'token-endpoint-auth-basic', 'token-endpoint-auth-post', 'token-endpoint-auth-none', 'pre-registration',
		],
		'2026-07-28': [
			...metadata, 'basic-cimd', 'scope-step-up', 'scope-retry-limit', 'pre-registration', 'resource-mismatch', 'offline-access-scope',
			'offline-access-not-supported', 'authorization-server-migration', 'iss-supported', 'iss-not-advertised', 'iss-supported-missing',
			'iss-wrong-issuer', 'iss-unexpected', 'iss-normalized', 'metadata-issuer-mismatch',
		],
	};
	for (const [version, scenarios] of Object.entries(authorization)) revisions[version] = [...(revisions[version] ?? []), ...scenarios.map((name) => `auth/${name}`)];
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
