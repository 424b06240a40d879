// candidate.cjs - the code under test, in a process and a jail of its own: answers what examiner.cjs asks.
//
// Standard input: the source as a JSON string, then one question a line. Standard output: one answer a line, "=" and a value or "!" and
// an exception. What the code prints goes to standard error.
'use strict';
(() => {
  const fs = require('fs');
  const vm = require('vm');
  const write = fs.writeSync, read = fs.readSync, parse = JSON.parse, print = JSON.stringify;
  const things = [];
  let rest = Buffer.alloc(0);

  const line = () => {
    let at;
    while ((at = rest.indexOf(10)) < 0) {
      const block = Buffer.alloc(65536);
      const n = read(0, block, 0, block.length, null);
      if (n === 0) process.exit(0);
      rest = Buffer.concat([rest, block.subarray(0, n)]);
    }
    const text = rest.toString('utf8', 0, at);
    rest = rest.subarray(at + 1);
    return text;
  };
  const thing = (v) => ({ $: 't', v: things.push(v) - 1, f: typeof v === 'function' });
  const encode = (v, depth) => {
    if (v === undefined) return { $: 'u' };
    if (typeof v === 'number') return Number.isFinite(v) && !Object.is(v, -0) ? v : { $: 'n', v: Object.is(v, -0) ? '-0' : String(v) };
    if (typeof v === 'bigint') return { $: 'b', v: String(v) };
    if (v === null || typeof v === 'string' || typeof v === 'boolean') return v;
    if (depth > 100 || typeof v !== 'object') return thing(v);
    if (Array.isArray(v)) return Array.from(v, (x) => encode(x, depth + 1));
    if (v instanceof Map) return { $: 'm', v: Array.from(v, ([k, x]) => [encode(k, depth + 1), encode(x, depth + 1)]) };
    if (v instanceof Set) return { $: 's', v: Array.from(v, (x) => encode(x, depth + 1)) };
    const kind = Object.getPrototypeOf(v);
    if (kind !== Object.prototype && kind !== null) return thing(v);
    return { $: 'o', v: Object.entries(v).map(([k, x]) => [k, encode(x, depth + 1)]) };
  };
  const decode = (v) => {
    if (Array.isArray(v)) return v.map(decode);
    if (v === null || typeof v !== 'object') return v;
    if (v.$ === 'u') return undefined;
    if (v.$ === 'n') return Number(v.v);
    if (v.$ === 'b') return BigInt(v.v);
    if (v.$ === 'm') return new Map(v.v.map(([k, x]) => [decode(k), decode(x)]));
    if (v.$ === 's') return new Set(v.v.map(decode));
    if (v.$ === 't') return things[v.v];
    return Object.fromEntries(v.v.map(([k, x]) => [k, decode(x)]));
  };
  let failure = null;
  const source = parse(line());
  globalThis.console = new console.Console(process.stderr, process.stderr);
  globalThis.require = require;
  globalThis.module = { exports: {} };
  globalThis.exports = globalThis.module.exports;
  try {
    vm.runInThisContext(source, 'solution.js');
  } catch (e) {
    failure = { e };
  }
  for (;;) {
    const question = parse(line());
    let answer;
    try {
      if (failure) throw failure.e;
      const value = question.ask === 'get' ? vm.runInThisContext(question.name) : things[question.f](...question.args.map(decode));
      answer = '=' + print(encode(value, 0));
    } catch (e) {
      answer = '!' + print([String(e && e.name), String(e && e.message).slice(0, 300)]);
    }
    const data = Buffer.from(answer + '\n');
    for (let at = 0; at < data.length; ) at += write(1, data, at);
  }
})();
