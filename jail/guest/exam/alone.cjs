// alone.cjs - code and tests in one process, for suites that cannot be split. See alone.py; a failed console.assert is a failure. When
// tests are at their end: see examiner.cjs.
//
// The code may change nothing that its tests compare by: the language's own objects, the modules assert and util, how events are emitted.
'use strict';
(() => {
  const fs = require('fs');
  const { runInThisContext: run } = require('vm');
  const { is } = Object, { ownKeys, getOwnPropertyDescriptor: look } = Reflect, { isPromise } = require('util').types, Fault = Error;
  const write = fs.writeSync, exit = process.exit, event = process.on, listeners = process.listeners, text = String, has = Function.call.bind(''.includes), cut = Function.call.bind(''.slice);
  const buffer = Buffer.alloc(64);
  const proof = require('crypto').createHash('sha256').update(buffer.subarray(0, fs.readSync(0, buffer, 0, 64, null)));
  const add = proof.update.bind(proof), value = proof.digest.bind(proof, 'hex');
  buffer.fill(0);
  const read = (name) => {
    const source = fs.readFileSync('/data/' + name, 'utf8');
    fs.unlinkSync('/data/' + name);
    return source;
  };
  const code = read('program.js'), tests = read('tests.js');
  const plain = new console.Console(process.stderr, process.stderr);
  let failed = null, thrown = null, open = false, begun = false;
  const all = (list) => {
    let line = '';
    for (let i = 0; i < list.length; i++) line += (i ? ' ' : '') + text(list[i]);
    return line;
  };
  Object.defineProperty(plain, 'assert', {
    value: (ok, ...why) => {
      if (!ok && failed === null) failed = all(why) || 'console.assert';
    },
  });
  Object.defineProperty(globalThis, 'console', { value: Object.freeze(plain) });
  globalThis.require = require;
  globalThis.module = { exports: {} };
  globalThis.exports = globalThis.module.exports;

  // What may not change: properties of these, and what the names mean.
  const kept = [], known = new Set();
  const keep = (o) => {
    if (o === null || (typeof o !== 'object' && typeof o !== 'function') || known.has(o)) return;
    known.add(o);
    for (const key of ownKeys(o)) kept.push({ o, key, was: look(o, key) });
    if (typeof o === 'function') keep(o.prototype);
  };
  const names = ('Object Function Array String Number Boolean Symbol BigInt Math JSON Reflect Promise Proxy Map Set WeakMap Date RegExp Error TypeError ' +
    'RangeError SyntaxError AggregateError isNaN isFinite parseInt parseFloat require').split(' ');
  const values = names.map((name) => globalThis[name]);
  values.forEach(keep);
  for (const o of [require('assert'), require('assert').strict, require('util'), require('events').prototype, Object.getPrototypeOf([][Symbol.iterator]())]) keep(o);
  for (const key of ['emit', 'on', 'listeners', 'exit']) kept.push({ o: process, key, was: look(process, key) });
  const converters = [Object.prototype, Array.prototype, String.prototype, Number.prototype, Boolean.prototype, Function.prototype];
  const changed = () => {
    for (let i = 0; i < kept.length; i++) {
      const { o, key, was } = kept[i], now = look(o, key);
      if (was ? !now || !is(now.value, was.value) || now.get !== was.get || now.set !== was.set : now) return text(key);
    }
    for (let i = 0; i < converters.length; i++) if (look(converters[i], 'toJSON')) return 'toJSON';
    for (let i = 0; i < names.length; i++) if (!is(run(names[i]), values[i])) return names[i];
    for (let i = 0; i < heard.length; i++) if (!hears(heard[i])) return heard[i];
    return null;
  };

  const throws = (e) => {
    thrown = thrown || { e };
  };
  const heard = ['unhandledRejection', 'uncaughtException'];
  const hears = (name) => {
    const list = listeners.call(process, name);
    for (let i = 0; i < list.length; i++) if (list[i] === throws) return true;
    return false;
  };
  event.call(process, heard[0], throws);
  event.call(process, heard[1], throws);
  event.call(process, 'beforeExit', () => {
    const e = thrown && thrown.e, other = changed();
    if (!begun || has(new Fault().stack, 'program.js')) return; // or the code says that it is the end
    let end = 'passed\n';
    if (e && e.code === 'ERR_ASSERTION') end = 'wrong\n' + e.message;
    else if (failed !== null) end = 'wrong\n' + failed;
    else if (thrown) end = 'error\n' + text(e && e.name) + ': ' + text(e && e.message);
    else if (other !== null) end = 'wrong\nthe code replaced ' + other;
    end = cut(end, 0, 300);
    add(end);
    if (!open) write(1, value() + end);
    exit(0);
  });
  try {
    run(code, 'program.js');
    const other = changed();
    if (other !== null) throw new Fault('the code replaced ' + other);
    const last = run(tests, 'tests.js');
    if (isPromise(last)) {
      open = true;
      (async () => {
        try {
          await last;
          open = false;
        } catch (e) {
          throws(e);
          open = false;
        }
      })();
    }
  } catch (e) {
    throws(e);
  }
  begun = true;
})();
