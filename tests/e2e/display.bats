#!/usr/bin/env bats
# shellcheck disable=SC2016 # dollars and backquotes in the programs are not for this shell
# Results without print: the value of a last expression, open figures; what programs say and how they end stays as it is without.

bats_require_minimum_version 1.5.0
load lib.bash
load display.bash

# shows CODE [MEMBERS]: runs Python; what it printed is in $SHOWN.
shows() {
	value python "$@"
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

@test "what a write returns is no value" {
	local code
	for code in $'import sys\nsys.stdout.write("42")' $'import os\nos.write(1, b"42")' $'import sys\nsys.stdout.buffer.write(b"42")' $'import sys\nprint(42)\nopen("a", "w").write("x" * 9)' \
		$'from pathlib import Path\nprint(42)\nPath("a").write_text("b");' $'import csv, sys\ncsv.writer(sys.stdout).writerow([42])'; do
		shows "$code"
		[ "${SHOWN%$'\r'}" = 42 ] || { echo "$code: $SHOWN"; return 1; }
		shows "$code" '{"session":true,"conversationId":"writes"}'
		[ "${SHOWN%$'\r'}" = 42 ] || { echo "$code: $SHOWN"; return 1; }
	done
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

@test "displaying changes nothing that a program does" {
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

@test "only small values of the language are shown without guard" {
	local value
	shows $'import atexit, sys\natexit.register(lambda: print("resource" in sys.modules))\n[1, -2.5, None, True, "x", b"y", (3,), {4: {5}}]'
	[ "$SHOWN" = $'False\n[1, -2.5, None, True, \'x\', b\'y\', (3,), {4: {5}}]' ]
	for value in 'range(3)' '[1] * 300' '[[type("A", (int,), {})(1)]]' '"x" * 300' '1 << 900' '(lambda a: a.append(a) or a)([])'; do
		shows $'import atexit, sys\natexit.register(lambda: print("resource" in sys.modules))\n'"$value"
		[ "$(head -n 1 <<<"$SHOWN")" = True ] || { echo "$value"; cat "$SP_DIR/body"; return 1; }
		[ "$(tail -n 1 <<<"$SHOWN")" = "$(python3 -c "print(repr($value))")" ]
	done
	shows $'import sys\nclass Out:\n    def write(self, text):\n        return sys.__stdout__.write(text.upper())\n    flush = sys.stdout.flush\nsys.stdout = Out()\n"low"'
	verdict OK
	[ "$SHOWN" = "'low'" ] # it is no output of the program
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

@test "open or shown figures become images" {
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
	[[ $(sp_get details.stderr) != */code/.* ]]
}

@test "pictures of PIL become images" {
	/usr/bin/python3 -c "import PIL" 2>/dev/null || skip "no PIL"
	shows $'from PIL import Image\nImage.new("RGB", (4, 4)).show()\nImage.new("RGB", (5, 5))' '{"conversationId":"pil"}'
	[ "$(sp_get '[details.files.created[].name] | tojson')" = '["figure-1.png","figure-2.png"]' ]
	shows $'from PIL import Image\nfor i in range(500): Image.new("RGB", (4, 4)).show()' '{"conversationId":"many"}'
	[ "$(sp_get '[(details.files.created | length), details.value] | tojson')" = '[20,"480 more figures are not saved\n"]' ]
}

# pictures CODE [MEMBERS]: $SHOWN is TYPE WIDTHxHEIGHT of each picture of the answer; $NOTES our lines.
pictures() {
	sp_call run_code "$(jq -nc --arg c "$1" "{conversationId: \"pictures\", language: \"python\", code: \$c} + ${2:-{\}}")"
	NOTES=$(sp_get '[.result.content[] | select(.type == "text") | .text] | join("")')
	SHOWN=$(jq -c '[.result.content[] | select(.type == "image") | {mimeType, data}]' "$SP_DIR/body" | /usr/bin/python3 -c '
import base64, io, json, sys
from PIL import Image
for one in json.load(sys.stdin):
    picture = Image.open(io.BytesIO(base64.b64decode(one["data"])))
    picture.load()
    print(one["mimeType"], *picture.size)')
}

@test "a picture is shown only if it decodes" {
	/usr/bin/python3 -c "import PIL" 2>/dev/null || skip "no PIL"
	pictures $'import os\nfrom PIL import Image\nImage.effect_noise((400, 300), 90).save("n.png")\nd = open("n.png", "rb").read()\nopen("cut.png", "wb").write(d[:len(d) // 2])\nImage.new("RGB", (800, 600), "red").save("r.jpg")\nj = open("r.jpg", "rb").read()\nopen("cut.jpg", "wb").write(j[:len(j) - 400])\nopen("lie.png", "wb").write(j)\nopen("no.png", "wb").write(b"\\x89PNG\\r\\n\\x1a\\n" + b"x" * 100)\nopen("same.png", "wb").write(d)'
	[ "$(sort <<<"$SHOWN")" = $'image/jpeg 800 600\nimage/png 400 300' ] || sp_die "$SHOWN $NOTES"
	for name in cut.png cut.jpg no.png; do [[ $NOTES == *"$name does not decode as a picture and is not shown"* ]]; done
	[[ $NOTES == *'new same.png (image/png'* ]]
	pictures $'from PIL import Image\nImage.new("RGB", (9000, 5400), "red").save("big.png")\nImage.linear_gradient("L").resize((3000, 1800)).save("wide.webp")'
	[ "$(sort <<<"$SHOWN")" = $'image/png 2000 1200\nimage/png 2000 1200' ] || sp_die "$SHOWN $NOTES"
	[[ $NOTES == *'big.png is shown as a smaller copy: it has 9000 x 5400 pixels'* ]]
	pictures $'import os\nfrom PIL import Image\nImage.frombytes("RGB", (1500, 1500), os.urandom(3 * 1500 * 1500)).save("noise.png")'
	[[ $SHOWN =~ ^image/jpeg\ ([0-9]+)\ [0-9]+$ ]] && [ "${BASH_REMATCH[1]}" -le 1500 ]
	[[ $NOTES == *'noise.png is shown as a smaller copy'* ]]
	pictures $'import struct, zlib\nc = lambda t, d: struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))\nopen("bomb.png", "wb").write(b"\\x89PNG\\r\\n\\x1a\\n" + c(b"IHDR", struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0)) + c(b"IDAT", zlib.compress(bytes(1000))) + c(b"IEND", b""))'
	[ -z "$SHOWN" ]
	[[ $NOTES == *'bomb.png is too large to be shown'* ]]
	# The file tools, too.
	sp_call read_file '{"conversationId":"pictures","path":"big.png"}'
	[ "$(sp_get '.result.content[1].mimeType')" = image/png ]
	[[ "$(sp_get '.result.content[0].text')" == *'shown as a smaller copy'* ]]
	sp_call read_file '{"conversationId":"pictures","path":"cut.png"}'
	[ "$(sp_get '.result.content | length')" = 1 ]
	[[ "$(sp_get '.result.content[0].text')" == *'does not decode as a picture'* ]]
}

# Each takes seconds to decode; what the program made is recorded before the look begins.
@test "slow pictures of one owner hold up nobody else's" {
	/usr/bin/python3 -c "import PIL" 2>/dev/null || skip "no PIL"
	local slow client
	slow=$'from PIL import Image, PngImagePlugin as P\nfor n in range(8):\n    more = P.PngInfo()\n    more.add_text("n", str(n))\n    Image.new("1", (10000, 10000)).save(f"slow{n}.png", pnginfo=more)'
	(SP_DIR=$BATS_TEST_TMPDIR sp_call run_code "$(jq -nc --arg c "$slow" '{conversationId: "slow", language: "python", code: $c}')") 3>&- &
	client=$!
	recorded() { [ "$(sp_sql "SELECT count(*) FROM execution WHERE code LIKE '%slow{n}.png%' AND verdict = 'OK'")" = 1 ]; }
	sp_until "$client" recorded
	sp_token bob
	pictures $'from PIL import Image\nImage.new("RGB", (400, 300), "red").save("quick.png")'
	sp_token alice
	[ "$SHOWN" = "image/png 400 300" ]
	kill -0 "$client" # alice's answer has not come yet
	wait "$client"
	[ "$(jq '[.result.content[] | select(.type == "image")] | length' "$BATS_TEST_TMPDIR/body")" -ge 1 ]
}

@test "a figure of an earlier call or without pyplot is shown" {
	/usr/bin/python3 -c "import matplotlib" 2>/dev/null || skip "no matplotlib"
	pictures $'from matplotlib.figure import Figure\nf = Figure()\nf.subplots().plot([1, 2])\nf'
	[ "$SHOWN" = 'image/png 640 480' ] || sp_die "$SHOWN $NOTES"
	pictures $'import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nax.plot([1])' '{"session": true}'
	[ "$SHOWN" = 'image/png 640 480' ]
	pictures 1 '{"session": true}'
	[ "$SHOWN" = '' ]
	pictures $'ax.set_title("again")\nfig' '{"session": true}'
	[ "$SHOWN" = 'image/png 640 480' ]
	pictures $'plt.close("all")\nfig' '{"session": true}'
	[ "$SHOWN" = 'image/png 640 480' ]
	pictures $'fig\nprint(2)' '{"session": true}'
	[ "$SHOWN" = '' ]
}

@test "500 open figures of matplotlib leave the program's result" {
	shows $'import matplotlib.pyplot as plt\nplt.rcParams["figure.max_open_warning"] = 0\nfor i in range(500): plt.figure(figsize=(1, 1))\nprint("made", 500)\nplt.gcf()' '{"conversationId":"open"}'
	verdict OK
	[ "$SHOWN" = $'made 500\n480 more figures are not saved' ]
	[ "$(sp_get '[details.files.created[].name] | length')" = 20 ]
	[ "$(sp_get '[.result.content[] | select(.type == "image")] | length')" = 1 ] # they are equal
	[ "$(sp_get details.stderr)" = "" ]
}

@test "figures of plotly become pages" {
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
	[ "$(sp_get details.value)" = '[ 1, { b: 2 } ]' ]
	sp_call run_code '{"conversationId":"d","language":"javascript","session":true,"code":"await Promise.resolve(a.length + 40)"}'
	[ "$(sp_get details.value)" = 42 ]
	sp_call run_code '{"conversationId":"d","language":"javascript","session":true,"code":"({ get [Symbol.toStringTag]() { throw 1 } })"}'
	verdict OK
	value javascript $'const { writeSync } = require("fs"), out = process.stdout\nlet n = 1; writeSync(1, "4" + "2");' '{"session":true}'
	[ "$SHOWN" = 42 ]
	for code in 'setTimeout(() => {}, 1)' 'process.stdin.on("end", () => {})' 'require("node:net").createServer().unref()' 'require("node:child_process").spawn("/bin/true")'; do
		value javascript "$code" '{"session":true}'
		[ "$SHOWN" = "" ] || { echo "$code: $SHOWN"; return 1; }
	done
	sp_call run_code '{"conversationId":"d","language":"javascript","session":true,"code":"a","display":false}'
	[ "$(sp_get '[details.stdout, details.value] | tojson')" = '["",null]' ]
}

@test "standard output is the program's, byte for byte" {
	local language code more
	while IFS='|' read -r language code; do
		for more in '{}' '{"session":true}'; do
			[ "$language$more" != 'typescript{"session":true}' ] || continue
			value "$language" "$(printf '%b' "$code")" "$more"
			[ "$(sp_get '[details.stdout, details.value, .result.content[-1].text] | tojson')" = '["loading...","42\n","[value]\n42\n"]' ] || { cat "$SP_DIR/body"; return 1; }
		done
	done <<-'END'
		python|print("loading...", end="")\n40 + 2
		javascript|process.stdout.write("loading...")\n40 + 2
		typescript|process.stdout.write("loading...")\n40 + 2
	END
	shows '"s3" + "cret"' '{"secrets":{"KEY":"s3cret"}}'
	[ "$(sp_get '[details.stdout, .result.content[0].text] | tojson')" = '["","[value]\n'"'***'"'\n"]' ]
	shows $'import os\nos.remove("/code/.value") if os.path.exists("/code/.value") else os.symlink("/etc/passwd", "/code/.value")\n5'
	[ "$(sp_get details.value)" = null ]
	verdict OK
	shows $'open("/code/.value", "wb").write(b"\\x00\\xff" * 100_000) and 0'
	[ "$(sp_get 'details.value | length > 1000 and length < 33000')" = true ]
	verdict OK
}

@test "a replay shows the same values" {
	replays_the_same
}

@test "the command line shows no values" {
	echo '40 + 2' >"$SP_DIR/bare.py"
	run -0 "$SP_BIN/sallyport" run --config "$SP_CONFIG" "$SP_DIR/bare.py"
	[ "$output" = "" ]
}
