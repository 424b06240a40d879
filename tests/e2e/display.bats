#!/usr/bin/env bats
# shellcheck disable=SC2016 # dollars and backquotes in the programs are not for this shell
# Results without print: the value of a last expression, open figures; what programs say and how they end stays as it is without.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	sp_setup
	sp_start_jailer
	sp_start_gateway
	sp_token alice
}

teardown_file() {
	sp_teardown
}

# shows CODE [MEMBERS]: runs Python; what it printed is in $SHOWN.
shows() {
	sp_call run_code "$(jq -cn --arg code "$1" --argjson more "${2:-{\}}" '{conversationId: "d", language: "python", $code} + $more')"
	SHOWN=$(sp_get details.stdout)
}

verdict() {
	[ "$(sp_get details.verdict)" = "$1" ]
}

@test "the value of a last expression is shown, as a notebook does" {
	shows $'print("a")\n40 + 2'
	[ "$SHOWN" = $'a\n42' ]
	shows $'x = "tëxt"\nx'
	[ "$SHOWN" = "'tëxt'" ]
	shows $'import sys\n[sys.argv[1:], __name__, __file__, sys.stdin.read(), sys.path[0]]' '{"args":["x"],"stdin":"in"}'
	[ "$SHOWN" = "[['x'], '__main__', '/code/main.py', 'in', '/code']" ]
	for code in 'x = 1' 'print(1, end="")' '40 + 2;' 'None' 'if True:
    5' '' '# nothing'; do
		shows "$code "
		[ "${SHOWN/1/}" = "" ]
		verdict OK
	done
	shows 'from __future__ import annotations
object()'
	[ "$SHOWN" = '<object object>' ]
	shows '40 + 2' '{"display":false}'
	[ "$SHOWN" = "" ]
}

@test "a program that can have nothing to show is started as it is" {
	local there=$'print(os.path.exists("/code/.show"))'
	shows $'import os\n'"$there"
	[ "$SHOWN" = False ]
	shows $'import os\nif True:\n    '"$there"
	[ "$SHOWN" = False ]
	shows $'import os\n'"$there"$' or 5'
	[ "$SHOWN" = $'True\n5' ]
	shows $'import os, matplotlib\n'"$there"
	[ "$SHOWN" = True ]
}

@test "a service compiles its display code once" {
	sp_call list_runners '{}' # is answered when the jailer knows all about them
	shows $'def head(name):\n    with open("/code/" + name, "rb") as file:\n        return file.read(2)\n[head(".show") == b"# ", head(".live") == b"# ", type(__loader__).__name__]'
	[ "$SHOWN" = "[False, False, 'SourceFileLoader']" ]
	shows '[1 for one in []]' '{"session":true,"conversationId":"compiled"}'
	[ "$SHOWN" = "[]" ]
}

@test "a DataFrame is a table of its first rows" {
	shows $'import pandas as pd\npd.DataFrame({"name": ["a|b", "c"], "n": [1, 2.5]})'
	[ "$SHOWN" = $'|  | name | n |\n| --- | --- | --- |\n| 0 | a\\|b | 1.0 |\n| 1 | c | 2.5 |' ]
	shows $'import pandas as pd\npd.DataFrame({"town|": ["a", "a", "b"], "year": [1, 1, 2], "n": [1, 2, 3]}).groupby(["town|", "year"]).sum()'
	[ "$SHOWN" = $'| town\\|, year | n |\n| --- | --- |\n| (\'a\', 1) | 3 |\n| (\'b\', 2) | 3 |' ]
	shows $'import pandas as pd\npd.DataFrame({"n": []})'
	[ "$SHOWN" = $'|  | n |\n| --- | --- |\n\n0 rows, 1 columns' ]
	shows $'import pandas as pd, numpy as np\npd.DataFrame({"n": np.zeros(10_000_000, dtype="int8")})' '{"memory_mb":512}'
	verdict OK
	[ "$(wc -l <<<"$SHOWN")" = 24 ]
	[[ $SHOWN == *$'\n| 19 | 0 |\n\n10000000 rows, 1 columns' ]]
}

@test "tracebacks, exit codes and what a program does at its end are as without" {
	local code plain
	for code in $'def f():\n    return 1 / 0\nf()' $'import sys\nsys.exit(3)' $'import sys\nsys.exit("gone")' 'x = (' $'import atexit\natexit.register(print, "end")\nprint("now")\nraise SystemExit' \
		$'try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError("x") from e' $'import os\nif os.fork() == 0:\n    os._exit(0)\nos.wait()\nprint("p")' \
		$'import sys\nsys.excepthook = lambda *a: print("hook", a[0].__name__, a[2].tb_lineno)\n\n1 / 0' $'import threading\nthreading.Thread(target=lambda: print(1 / 0)).start()' \
		$'import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))).__module__)' 'raise KeyboardInterrupt' $'import os\nos.kill(os.getpid(), 9)'; do
		shows "$code" '{"display":false}'
		plain=$(sp_get '[details.verdict, details.exit_code, details.signal, details.stdout, details.stderr] | tojson')
		shows "$code"
		[ "$(sp_get '[details.verdict, details.exit_code, details.signal, details.stdout, details.stderr] | tojson')" = "$plain" ]
	done
}

@test "small values of the language itself are shown by themselves, all others under guard" {
	local value
	shows $'import atexit, sys\natexit.register(lambda: print("resource" in sys.modules))\n[1, -2.5, None, True, "x", b"y", (3,), {4: {5}}]'
	[ "$SHOWN" = $'[1, -2.5, None, True, \'x\', b\'y\', (3,), {4: {5}}]\nFalse' ]
	for value in 'range(3)' '[1] * 300' '[[type("A", (int,), {})(1)]]' '"x" * 300' '1 << 900' '(lambda a: a.append(a) or a)([])'; do
		shows $'import atexit, sys\natexit.register(lambda: print("resource" in sys.modules))\n'"$value"
		[ "$(tail -n 1 <<<"$SHOWN")" = True ] || { echo "$value"; cat "$SP_DIR/body"; return 1; }
		[ "$(head -n 1 <<<"$SHOWN")" = "$(python3 -c "print(repr($value))")" ]
	done
	shows $'import sys\nclass Out:\n    def write(self, text):\n        return sys.__stdout__.write(text.upper())\n    flush = sys.stdout.flush\nsys.stdout = Out()\n"low"'
	verdict OK
	[ "$SHOWN" = "'LOW'" ]
}

@test "a value that cannot be shown costs the program nothing" {
	shows $'class A:\n    def __repr__(self): raise ValueError("x")\nprint("done")\nA()'
	[ "$SHOWN" = $'done\n<A: its value cannot be shown: ValueError>' ]
	verdict OK
	shows $'class A:\n    def __repr__(self):\n        print("x" * 10**9)\n        return "A"\nA()'
	[ "$SHOWN" = '<A: its value cannot be shown: MemoryError>' ]
	verdict OK
	shows $'class A:\n    def __repr__(self): return "x" * (1 << 30)\nA()'
	[ "$SHOWN" = '<A: its value cannot be shown: MemoryError>' ]
	verdict OK
	shows $'class A:\n    def __repr__(self):\n        while True: pass\nA()'
	[ "$SHOWN" = '<A: its value cannot be shown: TimeoutError>' ]
	verdict OK
	shows '"x" * 100_000'
	[ "${#SHOWN}" -lt 17000 ]
	[[ $SHOWN == *"(83618 more characters)" ]]
	shows $'import sys\nsys.stdout.close()\n5'
	verdict OK
}

@test "figures that are open at the end, or shown, become images" {
	shows $'import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nplt.figure()\nplt.plot([2, 1])'
	[ "$SHOWN" = "" ]
	[ "$(sp_get details.stderr)" = "" ]
	[ "$(sp_get '[details.files.created[].name] | tojson')" = '["figure-1.png","figure-2.png"]' ]
	[ "$(sp_get '[.result.content[] | select(.type == "image")] | length')" = 2 ]
	# what is saved by name is not saved twice, also after show()
	shows $'import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nax.plot([1, 2])\nplt.savefig("own.png")\nfig'
	[ "$(sp_get '[details.files.created[].name] | tojson')" = '["own.png"]' ]
	shows $'import matplotlib\nmatplotlib.use("Agg")\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nplt.savefig("later.png")'
	[ "$(sp_get '[details.files.created[].name] | tojson')" = '["figure-3.png","later.png"]' ]
	shows $'import matplotlib.pyplot as plt\nplt.plot([1, 2])' '{"display":false}'
	[ "$(sp_get '[details.files.created[].name] | tojson')" = '[]' ]
	shows $'import matplotlib.pyplot as plt\nplt.savefig("/nowhere/x.png")'
	verdict RE
	[[ $(sp_get details.stderr) != */code/.live* ]]
}

@test "pictures of PIL become images" {
	/usr/bin/python3 -c "import PIL" 2>/dev/null || skip "no PIL"
	shows $'from PIL import Image\nImage.new("RGB", (4, 4)).show()\nImage.new("RGB", (5, 5))' '{"conversationId":"pil"}'
	[ "$(sp_get '[details.files.created[].name] | tojson')" = '["figure-1.png","figure-2.png"]' ]
	shows $'from PIL import Image\nfor i in range(500): Image.new("RGB", (4, 4)).show()' '{"conversationId":"many"}'
	[ "$(sp_get '[(details.files.created | length), details.stdout] | tojson')" = '[20,"480 more figures are not saved\n"]' ]
}

@test "500 open figures of matplotlib: some are saved, the program's own result stands" {
	shows $'import matplotlib.pyplot as plt\nplt.rcParams["figure.max_open_warning"] = 0\nfor i in range(500): plt.figure(figsize=(1, 1))\nprint("made", 500)\nplt.gcf()' '{"conversationId":"open"}'
	verdict OK
	[ "$SHOWN" = $'made 500\n480 more figures are not saved' ]
	[ "$(sp_get '[details.files.created[].name] | length')" = 20 ]
	[ "$(sp_get '[.result.content[] | select(.type == "image")] | length')" = 20 ]
	[ "$(sp_get details.stderr)" = "" ]
}

@test "figures of plotly become pages, because pictures need a browser" {
	/usr/bin/python3 -c "import plotly" 2>/dev/null || skip "no plotly"
	shows $'import plotly.graph_objects as go\nfig = go.Figure(go.Bar(y=[1, 2]))\nfig.show()\nfig' '{"conversationId":"plotly"}'
	verdict OK
	[ "$(sp_get '[details.files.created[].name] | tojson')" = '["figure-1.html","figure-2.html"]' ]
	[ "$(sp_get '[details.stdout, details.stderr] | tojson')" = '["",""]' ]
}

@test "sessions show values, too" {
	shows $'x = 40\nx' '{"session":true}'
	[ "$SHOWN" = 40 ]
	shows $'import asyncio\nawait asyncio.sleep(0, x + 2)' '{"session":true}'
	[ "$SHOWN" = 42 ]
	shows 'x' '{"session":true,"display":false}'
	[ "$SHOWN" = "" ]
	shows $'import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()' '{"session":true}'
	[ "$(sp_get '[.result.content[] | select(.type == "image")] | length')" = 1 ]
	shows '1 / 0' '{"session":true}'
	[ "$(sp_get details.stderr)" = $'Traceback (most recent call last):\n  File "/code/main.py#5", line 1, in <module>\n    1 / 0\n    ~~^~~\nZeroDivisionError: division by zero' ]
	sp_call run_code '{"conversationId":"d","language":"javascript","session":true,"code":"const a = [1, {b: 2}]; a"}'
	[ "$(sp_get details.stdout)" = '[ 1, { b: 2 } ]' ]
	sp_call run_code '{"conversationId":"d","language":"javascript","session":true,"code":"await Promise.resolve(a.length + 40)"}'
	[ "$(sp_get details.stdout)" = 42 ]
	sp_call run_code '{"conversationId":"d","language":"javascript","session":true,"code":"({ get [Symbol.toStringTag]() { throw 1 } })"}'
	verdict OK
	sp_call run_code '{"conversationId":"d","language":"javascript","session":true,"code":"a","display":false}'
	[ "$(sp_get details.stdout)" = "" ]
}

# both LANGUAGE CODE [MEMBERS]: runs it with and without display; fails unless status, output and errors are the same.
both() {
	local call plain
	call=$(jq -cn --arg language "$1" --arg code "$2" --argjson more "${3:-{\}}" '{conversationId: "js", $language, $code} + $more')
	sp_call run_code "$(jq -c '. + {display: false}' <<<"$call")"
	plain=$(sp_get '[details.verdict, details.exit_code, details.stdout, details.stderr] | tojson')
	sp_call run_code "$call"
	[ "$(sp_get '[details.verdict, details.exit_code, details.stdout, details.stderr] | tojson')" = "$plain" ] || { echo "$plain"; cat "$SP_DIR/body"; return 1; }
}

# value LANGUAGE CODE [MEMBERS]: what it printed is in $SHOWN.
value() {
	sp_call run_code "$(jq -cn --arg language "$1" --arg code "$2" --argjson more "${3:-{\}}" '{conversationId: "js", $language, $code} + $more')"
	SHOWN=$(sp_get details.stdout)
}

@test "JavaScript and TypeScript: the completion value is shown, what programs do is as without" {
	local language
	for language in javascript typescript; do
		value $language $'const a = [1, {b: 2}]; console.log("first")\n// the value\na; // and a comment\n'
		[ "$(tr -d ' \n,' <<<"$SHOWN")" = 'first[1{b:2}]' ] # each engine has a layout of its own
		value $language $'import fs from "node:fs";\nconst n = await Promise.resolve(fs.readFileSync(0, "utf8"))\nn\n  .split(",")\n  .map((x) => x * 2)' '{"stdin":"1,2"}'
		[ "$SHOWN" = '[ 2, 4 ]' ]
		value $language $'const wide = "x".repeat(100000);\nwide' '{"conversationId":"js2"}'
		[ "${#SHOWN}" -gt 16000 ] && [ "${#SHOWN}" -lt 20000 ]
		value $language $'process.stdout.write("x".repeat(300000) + "\\n");\n"last"' '{"conversationId":"js2"}' # more than a pipe holds
		[[ $("$SP_BIN/sallyport" show --config "$SP_CONFIG" --stdout "$(sp_get details.execution_id)" | tail -n 1) == [\'\"]last[\'\"] ]]
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

@test "JavaScript and TypeScript: thirty ways to fail, with the same traceback" {
	local language code
	[ ${#THROWING[@]} -ge 29 ]
	for language in javascript typescript; do
		for code in "${THROWING[@]}"; do
			both $language "$code"
		done
	done
}

@test "TypeScript: semicolons, looser operators and own ways, with the same traceback" {
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

@test "TypeScript: a program is continued behind its last expression where that can be, else shown as ever" {
	local there='[process.execArgv.length, [1].length]'
	value typescript "$there"
	[ "$SHOWN" = '[ 0, 1 ]' ]
	value typescript $'const a: number = process.execArgv.length\na; // and a comment'
	[ "$SHOWN" = 0 ]
	for code in "0 || $there" "$there;" $'const Symbol = 1;\n'"$there"; do
		value typescript "$code"
		[ "${SHOWN%%,*}" != '[ 0' ] || { echo "$code"; return 1; }
	done
	for code in 'new Map([["a", [1]]])' '({ get x() { return 5 } })' '[Symbol("s")]' '"x".repeat(20000).length' 'new (class A { a = 1 })()' '({ f() {} })' 'new Date(0)' '/x/' '[1, [2, [3, [4, { five: [6] }]]]]'; do
		value typescript "$code"
		wanted=$SHOWN
		value typescript "0 || ($code)"
		[ "$SHOWN" = "$wanted" ] && [ -n "$wanted" ] || { echo "$code: $wanted, $SHOWN"; return 1; }
	done
}

@test "JavaScript and TypeScript: a program that ends in a call that prints is started as it is" {
	local language
	for language in javascript typescript; do
		value $language $'import fs from "node:fs"\nconsole.log(fs.existsSync("/code/.show"));' '{"conversationId":"as it is"}'
		[ "$SHOWN" = false ]
		value $language $'import fs from "node:fs"\nfs.existsSync("/code/.show")' '{"conversationId":"as it is"}'
		[ "$SHOWN" = true ]
	done
}

@test "JavaScript and TypeScript: values that fail, never end or print are not the program's failure" {
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

@test "a replay shows the same values" {
	local conversation
	for conversation in d js; do
		run -0 "$SP_BIN/sallyport" replay --config "$SP_CONFIG" --conversation $conversation --verdict OK --json
		jq -s -e 'map(select(.status == "changed" or .changed)) | length == 0' <<<"$output"
	done
	echo '40 + 2' >"$SP_DIR/bare.py"
	run -0 "$SP_BIN/sallyport" run --config "$SP_CONFIG" "$SP_DIR/bare.py"
	[ "$output" = "" ]
}
