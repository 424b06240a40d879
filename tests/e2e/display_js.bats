#!/usr/bin/env bats
# shellcheck disable=SC2016 # dollars and backquotes in the programs are not for this shell
# Results without print in JavaScript and TypeScript: the completion value; what programs say and how they end stays as it is without.

bats_require_minimum_version 1.5.0
load lib.bash
load display.bash

# both LANGUAGE CODE [MEMBERS]: runs it with and without display; fails unless status, output and errors are the same.
both() {
	local call plain
	call=$(jq -cn --arg language "$1" --arg code "$2" --argjson more "${3:-{\}}" '{conversationId: "d", $language, $code} + $more')
	sp_call run_code "$(jq -c '. + {display: false, conversationId: "plain"}' <<<"$call")" # which is not replayed
	plain=$(sp_get '[details.verdict, details.exit_code, details.stdout, details.stderr] | tojson')
	sp_call run_code "$call"
	[ "$(sp_get '[details.verdict, details.exit_code, details.stdout, details.stderr] | tojson')" = "$plain" ] || { echo "$plain"; cat "$SP_DIR/body"; return 1; }
}

@test "JavaScript and TypeScript: the completion value is shown" {
	local language
	for language in javascript typescript; do
		value $language $'const a = [1, {b: 2}]; console.log("first")\n// the value\na; // and a comment\n'
		[ "$(tr -d ' \n,' <<<"$SHOWN")" = 'first[1{b:2}]' ] # each engine has a layout of its own
		value $language $'import fs from "node:fs";\nconst n = await Promise.resolve(fs.readFileSync(0, "utf8"))\nn\n  .split(",")\n  .map((x) => x * 2)' '{"stdin":"1,2"}'
		[ "$SHOWN" = '[ 2, 4 ]' ]
		value $language $'const wide = "x".repeat(100000);\nwide' '{"conversationId":"js2"}'
		[ "${#SHOWN}" -gt 16000 ] && [ "${#SHOWN}" -lt 20000 ]
		value $language $'process.stdout.write("x".repeat(300000) + "\\n");\n"last"' '{"conversationId":"js2"}' # more than a pipe holds
		[[ $("$SP_BIN/sallyport" show --config "$SP_CONFIG" --stdout "$(sp_get details.execution_id)" | wc -c) = 300001 ]]
		[[ $(sp_get details.value) == [\'\"]last[\'\"] ]]
		for strict in "'use strict';" '"use strict"'; do
			value $language "$strict"$'\nclass A { x = 1; f() { return this.x } }\nnew A().f() + 1'
			[ "$SHOWN" = 2 ]
		done
		value $language $'const { join } = require("node:path");\nlet dir;\ndir = "b"\nconsole.log("ran");\n[join("a", dir), __filename.length].length'
		[ "$SHOWN" = $'ran\n2' ]
		value $language $'const fs = require("fs")\nfs.existsSync(__dirname)'
		[ "$SHOWN" = true ]
		# what is no module to bun, and may differ as one, runs as it is
		for code in 'const fs = require("fs")
undeclared = 5
if (fs) console.log(undeclared)
undeclared' 'const fs = require("fs")
for (one of [1, 2]) console.log(one, typeof fs)
7' 'const fs = require("fs")
console.log(require.main === module, typeof fs)
7' 'function f() { return typeof this }
console.log(typeof require, f())
7'; do
			[ $language = javascript ] || both typescript "$code"
		done
		for code in 'function f() { return 1 }' 'console.log(process.argv.slice(2), require.main === module, __filename)' 'if (true) {
	1
} else
	2' 'async function main() { console.log("in") }
main()' 'undefined' '// nothing' 'let x = 1
process.exitCode = 3
console.error(x)' 'let x
x = 1, console.error(x)' 'console.log(1)
null.x' 'console.log(1)
missing' 'if (1) {
}
missing // and a comment' 'function f() { throw new Error("x") }
// last
f()' 'const x = (' 'process.exit(4)' 'const s = new Set([1])
for (const one of s)
	one' 'const t = `
a`
throw t'; do
			both $language "$code" '{"args":["x"]}'
		done
	done
	both javascript $'return 5\n'
	value typescript $'interface P { x: number }\nconst p: P = { x: 1 }\np as P'
	[ "$SHOWN" = '{ x: 1 }' ] || [ "$SHOWN" = $'{\n  x: 1,\n}' ]
}

@test "JavaScript and TypeScript: only a last expression is shown" {
	local language code wanted
	for language in javascript typescript; do
		while IFS='|' read -r code wanted; do
			value $language "$(printf '%b' "$code")" '{"conversationId":"looks"}'
			[ "${SHOWN//\"/\'}" = "$(printf '%b' "$wanted")" ] || { echo "$language: $code: $SHOWN"; return 1; }
			verdict OK
		done <<-'END'
			const variance = 3\nvariance|3
			const types = [1]\ntypes.map((x) => x + 1)|[ 2 ]
			const letters = ["a"]; letters.join("")|'a'
			const classes = 2\nclasses + 1|3
			const importer = 1\nimporter|1
			const async = 4; async|4
			typeof 5|'number'
			"http://a.example/b"|'http://a.example/b'
			[1].concat("http://a").length; // see http://b|2
			const s = 4\ns // rows; columns|4
			const s = 4\ns; // first; second()|4
			process.argv.length|2
			console.log("in") ?? 5|in\n5
			;;5;;|5
			function twice(x) { return 2 * x }\n[1, 2].map(twice)|[ 2, 4 ]
			for (const i of [1]) {\n}\n// note; that\n(1 + 1)|2
			const f = function () { return [] }\n[0]|
			const t = true\n!t|false
			console.log("in")\n.5|in\n0.5
			let z\nz = 5, 6|6
			let z\nz = 5,\n"a,b"; // last|'a,b'
			let z = 1, y = 2;\n(z, y)|2
			const list = [1, 2], n = 3\nlist.length, n // both|3
			5, console.log("in")|in
			let a = 1, b = 2|
			function f() {}|
			class A {}|
			const f = 1\nexport default f|
			process.stdout.write("42")|42
			import fs from "node:fs"\nfs.writeSync(1, "42")|42
			import { writeSync } from "node:fs"\nwriteSync(1, "4" + [2]);|42
			setTimeout(() => console.log("late"), 1)|late
			setInterval(() => {}, 1000).unref()|
			setImmediate(() => console.log("soon"))|soon
			process.stdin.on("end", () => console.log("end")).resume()|end
			import net from "node:net"\nnet.createServer().listen(0, () => process.exit())|
			import { spawn } from "node:child_process"\nspawn("/bin/true")|
			import { Readable } from "node:stream"\nReadable.from(["piped"]).pipe(process.stdout)|piped
			const on = { on: 1, ref: 2 }\non.on|1
		END
	done
	for language in javascript typescript; do # 30,000 lines of comments are not searched for ever
		value $language $'5\n'"$(printf '//\n%.0s' {1..30000})" '{"conversationId":"looks"}'
		verdict OK
		[ "$(sp_get details.cpu_us)" -lt 700000 ]
	done
}

# Each ends before it has a value, or has none: what it says on the way and at its end is as without.
THROWING=(
	'null.x'
	'missing'
	'const a = 1
null.x // why'
	'const a = 1;
missing(a)'
	'const a = [1];
// the last
a.map((x) => x.y.z)'
	'const a = {}

a
	.b
	.c'
	'function f(x) {
	if (x > 2) throw new RangeError(`too ${x}`);
	return f(x + 1);
}
f(0)'
	'function f(x) { return x.y.z; }
const one = 1;
f();'
	'const f = async (x) => { await null; throw new TypeError("late"); };
await f([1, "a"])'
	'await Promise.reject(new Error("refused"))'
	'const late = Promise.reject(new Error("nobody waits"));
await 1
undefined'
	'setTimeout(() => { throw new Error("later") }, 1);
undefined'
	'class A { get x() { throw new Error("got", { cause: new Error("why") }) } }
new A().x'
	'function f() { return f() + 1 }
f()'
	'JSON.parse("[1,")'
	'let a = [1,
	2].at(0).x
a.y'
	'import { nothing } from "node:fs"
nothing'
	'import { nothing } from "./nowhere.mjs"
nothing'
	'console.log(1)
process.exit(3)
5'
	'const e = new Error("made"); console.log(e.stack)
function f() { throw e }
f()'
	'function f() { return 1 }
console.log(f.toString(), new Error("here").stack)
undefined'
	'const a = 1
f(a b)'
	'const a = 1 2
a'
	'const a = 1
const a = 2
a'
	'const a = (1
a'
	'let x = "a
x'
	'x y'
	'5 +'
	'()'
)

@test "JavaScript and TypeScript: a program that fails has the same traceback" {
	local language code
	[ ${#THROWING[@]} -ge 29 ]
	for language in javascript typescript; do
		for code in "${THROWING[@]}"; do
			both $language "$code"
		done
	done
}

@test "TypeScript: its own syntax has the same traceback" {
	local code
	for code in 'const f = async (x) => { await null; throw new TypeError("late"); };
await f([1, "a"]);' 'null.x;' 'missing(1); // gone' 'const a = 1;
null.x;' 'let a = 1
a = missing.x' 'const a = 1
a ? missing : a' 'const a = 1; [a
,
missing, 5
]' 'const p = { x: 1 } as any
p.y.z as number' 'const a = 1; a b;' 'const a = 1;
f(1,,2);' 'const a = 1;
a.;' 'import fs from "node:fs"
console.log(fs.readFileSync(import.meta.path, "utf8"), process.argv)
undefined' 'import fs from "node:fs"
console.log(fs.readFileSync(process.argv[1], "utf8"));
undefined;' 'enum E { A }
E.A.b.c' 'namespace N { export const x = null }
N.x.y'; do
		both typescript "$code"
	done
}

@test "JavaScript and TypeScript: a value that cannot be shown costs nothing" {
	local language custom='[Symbol.for("nodejs.util.inspect.custom")]'
	for language in javascript typescript; do
		value $language "const o = { $custom() { throw 1 } }; console.log(1)"$'\no'
		[ "$SHOWN" = $'1\n<its value cannot be shown>' ]
		verdict OK
		value $language "const o = { $custom() { for (let i = 0; i < 3; i++) console.log('x'.repeat(8 << 20)); return 'y'.repeat(1 << 26) } }"$'\no'
		verdict OK
		[ "${#SHOWN}" -lt 20000 ]
	done
	value javascript "const o = { $custom() { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0) } }"$'\no'
	verdict OK
	[ "$SHOWN" = '<its value cannot be shown>' ]
}

@test "a replay shows the same completion values" {
	replays_the_same
}
