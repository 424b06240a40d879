#!/usr/bin/env bats
# What models write as in a notebook, in a chat or on another system's disk runs: display, magics, fences, sessions with await, places.

bats_require_minimum_version 1.5.0
load lib.bash
load gateway.bash

setup_file() {
	sp_serve alice
}

# runs LANGUAGE CODE OUTPUT [MORE]: with these members more, that is printed, and shown behind it.
runs() {
	sp_call run_code "$(jq -nc --arg l "$1" --arg c "$2" "{conversationId: \"n\", language: \$l, code: \$c} + ${4:-{\}}")"
	[ "$(sp_get 'details.stdout + (details.value // "")')" = "$3" ] || sp_die "$2: $(<"$SP_DIR/body")"
}
text() {
	sp_get '[.result.content[].text] | join("|")'
}
S='{"session": true}'

@test "display, IPython.display" {
	runs python $'display(1 + 1)\nprint("x")' $'x\n2'
	runs python $'from IPython.display import display, HTML, Markdown\ndisplay(Markdown("# t"), HTML("<b>x</b>"))' $'# t\n<b>x</b>'
	runs python $'from IPython.display import display\ndisplay("s")\n7' $'\'s\'\n7'
	runs python $'import IPython\nprint(IPython.get_ipython())' None
	runs python $'display = 3\nprint(display)' 3
}

@test "lines with % and !" {
	runs python $'%matplotlib inline\n!echo shell\nprint(6)' $'shell\n6'
	runs python $'!pip install numpy\nprint(7)' 7
	[ "$(sp_get details.stderr)" = '!pip install is left out: list_runners names what is installed' ]
	runs python $'if True:\n    %time\n    print(8)' 8
	runs python $'x = (\n!no' ''
	[[ "$(sp_get details.stderr)" == *"SyntaxError: '(' was never closed"* ]]
	runs python $'print("""\n%kept\n!kept""")' $'\n%kept\n!kept'
}

@test "a Markdown fence around the program" {
	runs python $'```python\nprint(1)\n```' 1
	runs python $'\n```\nprint(2)\n```\n\n' 2
	runs bash $'~~~sh\necho 3\n~~~' 3
	runs javascript $'```js\r\nconsole.log(4)\r\n```\r\n' 4
	runs bash $'cat <<\'X\'\n```\nnot one\n```\nX' $'```\nnot one\n```'
}

@test "a bash program with CRLF" {
	runs bash $'if true; then\r\n\techo a\r\nfi\r\nfor i in 1 2; do\r\necho $i\r\ndone\r\n' $'a\n1\n2'
	runs bash $'printf "a\\r\\n" | od -An -c | tr -d " "' 'a\r\n'
}

@test "a first task of a session may come from ensure_future or gather" {
	E='{"session": true, "conversationId": "e"}'
	runs python $'import asyncio\nasync def w(n):\n    await asyncio.sleep(0)\n    return n\nt = asyncio.ensure_future(w(1))\ng = asyncio.gather(w(2), w(3))' '' "$E"
	runs python 'print(await t, await g)' '1 [2, 3]' "$E"
}

@test "what a program says of its encoding means nothing" {
	for more in '{}' "$S"; do
		runs python $'# -*- coding: cp1252 -*-\ngröße = 3\nprint(größe, "€")' '3 €' "$more"
		runs python $'\ufeffprint("mark")' mark "$more"
	done
}

@test "a chart has characters of Chinese, Japanese and Korean" {
	fc-list 2>/dev/null | grep -qi wqy || [ -e /usr/share/fonts/truetype/wqy ] || skip "no font: make deps"
	runs python $'import matplotlib.pyplot as plt\nplt.title("中文 日本語")\nplt.savefig("c.png");' '' '{"conversationId": "chart"}'
	[ "$(sp_get details.stderr)" = '' ]
}

@test "a session has one event loop" {
	runs python $'import asyncio\nasync def w(n):\n    await asyncio.sleep(0)\n    return n\nt = asyncio.create_task(w(1)); print(await t)' 1 "$S"
	runs python $'u = asyncio.create_task(w(2))\nprint("made")' made "$S"
	runs python $'print(await u)' 2 "$S"
	runs python $'asyncio.run(w(3))' 3 "$S"
	runs python $'await w(4)' 4 "$S"
	runs python $'_ + 1' 5 "$S"
	runs python $'import multiprocessing as mp\ndef f(x): return x * 2\nwith mp.get_context("spawn").Pool(2) as p: print(p.map(f, [1, 2]))' '[2, 4]' "$S"
	runs python $'%matplotlib inline\n!echo s\n9' $'s\n9' "$S"
}

@test "places of other systems lead to /data" {
	runs python $'import os\nfor n, p in enumerate(["/home/user", "/content", "/workspace", "/mnt/data", "/mnt/user-data/outputs", "/kaggle/working"]): open(f"{p}/{n}", "w").write(str(n))\nprint(sorted(os.listdir("/data")))' "['0', '1', '2', '3', '4', '5']"
	sp_call read_file '{"conversationId":"n","path":"/content/1"}'
	[ "$(text)" = 1 ]
	runs python $'import subprocess\nprint(subprocess.run(["python", "-c", "print(5)"], capture_output=True, text=True).stdout.strip())' 5
	runs bash 'python3 -c "import locale; print(locale.setlocale(locale.LC_ALL, \"en_US.UTF-8\"))"' en_US.UTF-8
}

# kept NAME CONTENT: the conversation has that file.
kept() {
	sp_call read_file '{"conversationId":"n","path":"'"$1"'"}'
	[ "$(text)" = "$2" ] || sp_die "$1: $(<"$SP_DIR/body")"
}

@test "a program and the conversation's files are one folder" {
	files='{"files": [{"filename": "m.js", "content": "module.exports = 6"}, {"filename": "m.mjs", "content": "export default 7"}, {"filename": "t.ts", "content": "export const n: number = 8"}, {"filename": "in.txt", "content": "in"}, {"filename": "lib.sh", "content": "n=9"}, {"filename": "util.py", "content": "x = 10"}]'
	runs javascript "console.log(require('./m.js'), require('./m'))" '6 6' "$files}"
	runs javascript $'import m from \'./m.mjs\'\nconsole.log(m)' 7
	runs typescript $'import { n } from \'./t\'\nconsole.log(n)' 8
	# shellcheck disable=SC2016 # the guest shell expands it
	runs bash 'source "$(dirname "$0")/lib.sh"; echo $n; cat "$(dirname "$0")/in.txt"' $'9\nin'
	runs python $'from pathlib import Path\nimport util\nhere = Path(__file__).parent\n(here / "out.csv").write_text(here.joinpath("in.txt").read_text() + "1")\n(here / "d").mkdir()\n(here / "d" / "deep.txt").write_text("2")\n(here / "in.txt").write_text("changed")\nprint(util.x)' 10
	[[ "$(text)" == *'new out.csv '* ]]
	kept out.csv in1
	kept d/deep.txt 2
	kept in.txt changed
	runs javascript $'const fs = require("fs"), path = require("path")\nfs.writeFileSync(path.join(__dirname, "o.txt"), fs.readFileSync(path.join(__dirname, "in.txt")) + "!")' ''
	kept o.txt 'changed!'
	runs python $'open(__file__.replace("main.py", "s.txt"), "w").write("s")\nimport util; print(util.x)' 10 "$S"
	runs python $'print(open("/data/s.txt").read(), open(__file__.replace("main.py", "s.txt")).read())' 's s' "$S"
	kept s.txt s
	runs javascript "console.log(require('./m.js'))" 6 "$S"
}

@test "an empty folder is there for the next call" {
	runs python $'import os\nos.makedirs("results/plots")' ''
	[ "$(text)" = $'[sallyport] new results/plots/ (empty folder)' ] || sp_die "$(text)"
	runs python $'import os\nprint(os.listdir("results"), os.listdir("results/plots"))' "['plots'] []"
	[ "$(text)" = "['plots'] []" ]
	runs python $'open("results/plots/a", "w").close()' ''
	runs python $'import os\nprint(os.listdir("results/plots"))\nos.remove("results/plots/a")' "['a']"
	runs python $'import os\nprint(os.listdir("results/plots"))\nos.rmdir("results/plots")\nos.rmdir("results")' '[]'
	runs python $'import os\nprint(os.path.exists("results"))' False
}

@test "what a program leaves in /tmp is named" {
	runs python $'import os, tempfile\nopen("/tmp/out.csv", "w").close()\nos.makedirs("/tmp/plots")\ntempfile.mkstemp();' ''
	[[ "$(text)" == *'left in /tmp and gone with it: '*'out.csv'*'; write what is to stay to /data'* ]] || sp_die "$(text)"
	runs bash 'mktemp >/dev/null; echo ok' ok
	[ "$(text)" = ok ]
	runs python 'open("/tmp/s.csv", "w").close(); print(1)' 1 "$S"
	[ "$(text)" = 1 ]
}

@test "headers next to a C program" {
	runs c $'#include <stdio.h>\n#include "h.h"\nint main(void) { printf("%d", H); }' 3 '{"files": [{"filename": "h.h", "content": "#define H 3"}]}'
	runs c $'#include <stdio.h>\nint main(void) { int *p = 3L; printf("%d", p == 0); }' 0
	[[ "$(text)" == '0|[compiler]'*'warning: initialization'* ]] || sp_die "$(text)"
	runs cpp $'#include <iostream>\n#include "d/h.hpp"\nint main() { std::cout << H; }' 4 '{"files": [{"filename": "d/h.hpp", "content": "#define H 4"}]}'
}

@test "what is missing is named with what there is instead" {
	runs python 'import cv2_missing' ''
	[[ "$(text)" == *'packages: nothing can be installed here; list_runners'* ]]
	runs python 'import polars' ''
	[[ "$(text)" == *'packages: polars is not installed, pandas is'* ]]
	runs python $'import urllib.request\nurllib.request.urlopen("http://example.org")' ''
	[[ "$(text)" == *'network: programs have no network here'* ]]
	runs bash 'curl -sS http://example.org' ''
	[[ "$(text)" == *'network: programs have no network here'* ]]
}

@test "a limit names the argument that asks for more" {
	runs python 'x = bytearray(10**9)' '' '{"memory_mb": 64}'
	[[ "$(text)" == *'memory: memory_mb asks for more, up to 2048'* ]]
	runs python 'while True: pass' '' '{"timeout_seconds": 1}'
	[[ "$(text)" == *'time: timeout_seconds asks for more, up to 300'* ]]
	runs bash 'head -c 100000000 /dev/zero >big' ''
	[[ "$(text)" == *'space: /data holds 64 MiB and 4096 files and folders, /tmp 64 MiB; delete_files makes room'* ]]
}
