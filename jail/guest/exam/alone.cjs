// alone.cjs - code and tests in one process, for suites that cannot be split. See alone.py; a failed console.assert is a failure. When
// tests are at their end: see examiner.cjs.
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
  let thrown = null, open = false;
  const throws = (e) => {
    thrown = thrown || { e };
  };
  process.on('unhandledRejection', throws);
  process.on('uncaughtException', throws);
  try {
    const value = vm.runInThisContext(source, 'program.js');
    if (value instanceof Promise) {
      open = true;
      value.finally(() => (open = false)).catch(throws);
    }
  } catch (e) {
    throws(e);
  }
  process.on('beforeExit', () => {
    const e = thrown && thrown.e;
    let end = failed === null ? 'passed\n' : 'wrong\n' + failed;
    if (e && e.code === 'ERR_ASSERTION') end = 'wrong\n' + e.message;
    else if (thrown && failed === null) end = 'error\n' + String(e && e.name) + ': ' + String(e && e.message);
    if (!open) write(1, nonce + end.slice(0, 300));
    process.exit(0);
  });
})();
