// alone.cjs - code and tests in one process, for suites that cannot be split. See alone.py; a failed console.assert is a failure.
'use strict';
(() => {
  const fs = require('fs');
  const vm = require('vm');
  const write = fs.writeSync;
  const buffer = Buffer.alloc(64);
  const nonce = buffer.toString('latin1', 0, fs.readSync(0, buffer, 0, 64, null));
  buffer.fill(0);
  const source = fs.readFileSync('/data/program.js', 'utf8');
  const plain = new console.Console(process.stderr, process.stderr);
  let failed = null;
  Object.defineProperty(plain, 'assert', {
    value: (ok, ...why) => {
      if (!ok && failed === null) failed = why.map(String).join(' ') || 'console.assert';
    },
  });
  Object.defineProperty(globalThis, 'console', { value: Object.freeze(plain) });
  globalThis.require = require;
  globalThis.module = { exports: {} };
  globalThis.exports = globalThis.module.exports;
  let end;
  try {
    vm.runInThisContext(source, 'program.js');
    end = failed === null ? 'passed\n' : 'wrong\n' + failed;
  } catch (e) {
    end = e && e.code === 'ERR_ASSERTION' ? 'wrong\n' + e.message : 'error\n' + String(e && e.name) + ': ' + String(e && e.message);
  }
  write(1, nonce + end.slice(0, 300));
  process.exit(0);
})();
