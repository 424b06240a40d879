// examiner.cjs - runs tests, one task after the other; the code under test is in another jail. See examiner.py.
//
// A failed console.assert is a failure, although Node only prints it. Tests are at their end when nothing is left to do and the promise,
// if it is one, that their last line gave is kept.
'use strict';
const fs = require('fs');

class Ended extends Error {}
class Apart extends Error {}

let rest = Buffer.alloc(0);
const line = () => {
  let at;
  while ((at = rest.indexOf(10)) < 0) {
    const block = Buffer.alloc(65536);
    const n = fs.readSync(0, block, 0, block.length, null);
    if (n === 0) process.exit(0);
    rest = Buffer.concat([rest, block.subarray(0, n)]);
  }
  const text = rest.toString('utf8', 0, at);
  rest = rest.subarray(at + 1);
  return text;
};
const say = (text) => {
  const data = Buffer.from(text + '\n');
  for (let at = 0; at < data.length; ) at += fs.writeSync(1, data, at);
};

const numbers = new WeakMap(); // of what is the candidate's and cannot cross
class Thing {
  constructor(number) {
    this.thing = number; // so that it equals no other, nor an empty object
  }
}
const encode = (v, depth) => {
  if (v === undefined) return { $: 'u' };
  if (typeof v === 'number') return Number.isFinite(v) && !Object.is(v, -0) ? v : { $: 'n', v: Object.is(v, -0) ? '-0' : String(v) };
  if (typeof v === 'bigint') return { $: 'b', v: String(v) };
  if (v === null || typeof v === 'string' || typeof v === 'boolean') return v;
  if (numbers.has(v)) return { $: 't', v: numbers.get(v) };
  if (depth > 100 || typeof v !== 'object') throw new Apart('a value of type ' + typeof v);
  if (Array.isArray(v)) return Array.from(v, (x) => encode(x, depth + 1));
  if (v instanceof Map) return { $: 'm', v: Array.from(v, ([k, x]) => [encode(k, depth + 1), encode(x, depth + 1)]) };
  if (v instanceof Set) return { $: 's', v: Array.from(v, (x) => encode(x, depth + 1)) };
  if (Object.getPrototypeOf(v) !== Object.prototype) throw new Apart('an object of a class');
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
  if (v.$ === 't') {
    const number = v.v;
    const thing = v.f ? (...args) => ask({ ask: 'call', f: number, args: args.map((x) => encode(x, 0)) }) : new Thing(number);
    numbers.set(thing, number);
    return thing;
  }
  const object = {};
  for (const [k, x] of v.v) Object.defineProperty(object, k, { value: decode(x), enumerable: true, configurable: true, writable: true });
  return object;
};

let ended = false;
function ask(question) {
  if (!ended) {
    say('Q' + JSON.stringify(question));
    const answer = line();
    if (answer[0] === '=') {
      try {
        return decode(JSON.parse(answer.slice(1)));
      } catch (e) {
        throw new Error('the answer is not a value');
      }
    }
    if (answer[0] === '!') {
      const [name, message] = JSON.parse(answer.slice(1));
      const e = new Error(String(message));
      e.name = String(name);
      throw e;
    }
  }
  ended = true;
  throw new Ended();
}

// The helpers that stand before the function to be completed are the task's own.
const helpers = (given, entry) => {
  const lines = given.trimEnd().split('\n');
  const last = lines.findLastIndex ? lines.findLastIndex((l) => l.includes(entry)) : lines.length - 1;
  return lines.slice(0, Math.max(last, 0)).join('\n');
};

let now; // of the tests that run: the first failed assertion, what was thrown, is a promise open?
const throws = (e) => {
  now.thrown = now.thrown || { e };
};

const begin = () => {
  const task = JSON.parse(line());
  ended = false;
  const state = (now = { failed: null, thrown: null, open: false });
  const check = (ok, ...why) => {
    if (!ok && state.failed === null) state.failed = why.map(String).join(' ') || 'console.assert';
  };
  const quiet = new Proxy({ assert: check }, { get: (o, name) => o[name] || (() => {}) });
  try {
    const entry = ask({ ask: 'get', name: task.entry });
    const text = helpers(task.given, task.entry) + '\n' + task.tests.join('\n');
    const value = new Function('console', 'require', task.entry, 'return eval(arguments[3])')(quiet, require, entry, text);
    if (value instanceof Promise) {
      state.open = true;
      value.finally(() => (state.open = false)).catch(throws);
    }
  } catch (e) {
    throws(e);
  }
};

const verdict = () => {
  const e = now.thrown && now.thrown.e;
  if (e instanceof Apart) return ['apart', e.message];
  if (e && e.code === 'ERR_ASSERTION') return ['wrong', e.message];
  if (now.failed !== null) return ['wrong', now.failed];
  if (now.thrown) return ['error', String(e && e.name) + ': ' + String(e && e.message)];
  return now.open ? ['error', 'the tests wait for what never comes'] : ['passed', ''];
};

process.on('unhandledRejection', throws);
process.on('uncaughtException', throws);
process.on('beforeExit', () => {
  const [end, text] = verdict();
  say('V' + JSON.stringify({ end: ended ? 'ended' : end, text: text.slice(0, 300) }));
  say('D0');
  begin();
  setImmediate(() => {}); // else this process would end
});
begin();
