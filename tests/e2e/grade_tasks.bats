#!/usr/bin/env bats
# sallyport grade over tasks as JSON Lines: the formats, the languages, forgeries, real data (TESTDATA), files that are wrong.
# shellcheck disable=SC2154 # stderr is from bats

bats_require_minimum_version 1.5.0
load lib.bash
load grade.bash

setup_file() {
	export TASKS=$SP_ROOT/tests/data/tasks XDG_CACHE_HOME=$BATS_FILE_TMPDIR/cache
	export REAL=${TESTDATA:-$SP_ROOT/../shared/data}
	sp_private_jailers
}

# grade STATUS ARGUMENT…: as judge, with the members of the summary in $summary
grade() {
	judge "$@"
	summary=$(jq .summary <<<"$summary")
}

# some FILE: the lines of real data that make test takes; TEST_DATA=all: all of them
some() {
	local unpack="xz -dc"
	[ -f "$REAL/$1" ] || skip "there is no $1 in $REAL (TESTDATA)"
	[[ $1 != *.gz ]] || unpack="gzip -dc"
	if [ "${TEST_DATA:-}" = all ]; then $unpack "$REAL/$1"; else $unpack "$REAL/$1" | awk "NR % $2 == 1"; fi >real.jsonl
	count=$(wc -l <real.jsonl)
}

@test "HumanEval: several samples give pass@k" {
	{
		for good in '    return n + n' '    return n' '    return 2 * n' '    while True: pass'; do
			jq -cn --arg c "$good" '{task_id: "Small/0", completion: $c}'
		done
	} >samples.jsonl
	grade 1 "$TASKS/humaneval.jsonl" --samples samples.jsonl --k 1,2,5 --time-limit 0.5
	[ "$(jq -c 'select(.task_id) | [.sample, .verdict, .passed, .result]' <<<"$output")" = '[0,"AC",true,"passed"]
[1,"WA",false,"failed: an assertion"]
[2,"AC",true,"passed"]
[3,"TLE",false,"timed out"]' ]
	[ "$(jq -c '[.tasks, .samples, .passed, .judge_errors, .verdicts, ."pass@1", ."pass@5"]' <<<"$summary")" = '[1,4,2,0,{"AC":2,"WA":1,"TLE":1},0.5,null]' ]
	[ "$(jq '."pass@2" * 6 | round' <<<"$summary")" = 5 ]
	gzip -k samples.jsonl
	xz -k samples.jsonl
	for file in samples.jsonl.gz samples.jsonl.xz; do
		grade 1 "$TASKS/humaneval.jsonl" --samples "$file" --time-limit 0.5 -j 4
		[ "$(jq .passed <<<"$summary")" = 2 ]
	done
}

@test "numbers are rounded where they are printed: pass@k, seconds" {
	jq -cn 'range(10) | {task_id: "Small/0", completion: "    return n\(if . < 3 then " + n" else "" end)"}' >samples.jsonl
	grade 1 "$TASKS/humaneval.jsonl" --samples samples.jsonl
	[[ $output == *'"pass@1":0.3,"pass@10":1.0,'* ]] # as doubles, 1 - 7/10 is 0.30000000000000004
	[[ $output =~ '"seconds":'[0-9]+\.[0-9][0-9]?'}' ]]
}

@test "Python: tasks use the installed packages" {
	{
		jq -cn '{task_id: "Small/0", completion: "    exit(0)"}'
		jq -cn '{task_id: "Small/0", completion: "    assert callable(help) and quit.name == \"quit\"\n    return n + n"}'
		jq -cn '{task_id: "Small/0", completion: "    import no.such\n    return n + n"}'
		jq -cn '{task_id: "Small/0", completion: "    try:\n        import nothing\n    except ModuleNotFoundError as e:\n        assert e.name == \"nothing\"\n    import site\n    return n + n if site.PREFIXES else 0"}'
	} >samples.jsonl
	grade 1 "$TASKS/humaneval.jsonl" --samples samples.jsonl
	[ "$(jq -c 'select(.task_id) | [.verdict, .reason]' <<<"$output" | paste -sd ' ')" = '["RTE","premature_exit"] ["AC",null] ["RTE",null] ["AC",null]' ]
	[[ $(jq -r 'select(.sample == 2) | .result' <<<"$output") == *"No module named 'no'"* ]]
	/usr/bin/python3 -c 'import numpy' 2>/dev/null || skip "python3-numpy is not installed"
	jq -cn '{task_id: "Small/0", completion: "    import numpy\n    return int(numpy.add(n, n))"}' >samples.jsonl
	grade 0 "$TASKS/humaneval.jsonl" --samples samples.jsonl
}

@test "the next sample's jail is made ahead: a jail for each, no limit shortened by the wait" {
	local once='    import os\n    if not os.path.exists("/tmp/there"):\n        assert n == 0 or not os.listdir("/tmp")\n        os.mkdir("/tmp/there")\n' wait
	for wait in 1 2.2 0 0; do
		jq -cn --arg c "$(printf '%b        import time\n        time.sleep(%s)\n    return n + n' "$once" "$wait")" '{task_id: "Small/0", completion: $c}'
	done >samples.jsonl
	grade 0 "$TASKS/humaneval.jsonl" --samples samples.jsonl -j 1 --time-limit 0.8
	[ "$(jq .passed <<<"$summary")" = 4 ]
	# From the sample's start to its end: neither what it waited for its sample in a jail that was there already, nor that jail's start.
	jq -es 'map(select(.task_id).wall_us) | .[0] >= 1e6 and .[1] >= 2.2e6 and .[2] < .[1] and .[2] > 0 and .[3] > 0' <<<"$output"
	jq -c '.completion = "    import time\n    time.sleep(600)\n    return n"' samples.jsonl | head -2 >slow.jsonl
	grade 1 "$TASKS/humaneval.jsonl" --samples slow.jsonl -j 1 --time-limit 0.1
	[ "$(jq -c .verdicts <<<"$summary")" = '{"TLE":2}' ]
}

@test "one process of tests serves many samples: what they leave behind, threads of tests" {
	jq -c '.test += "\nimport threading, time\nassert threading.active_count() == 1\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n" | .task_id = "Thread/0"' "$TASKS/humaneval.jsonl" >tasks.jsonl
	cat "$TASKS/humaneval.jsonl" >>tasks.jsonl
	jq -cn '(range(140) | {task_id: "Small/0", completion: (if . % 7 == 3 then "    return n" else "    return n + n" end)}),
		(range(3) | {task_id: "Thread/0", completion: "    return n + n"})' >samples.jsonl
	grade 1 tasks.jsonl --samples samples.jsonl -j 1
	[ "$(jq -c '[.passed, .judge_errors]' <<<"$summary")" = '[123,0]' ]
}

@test "MBPP's tasks are graded" {
	grade 0 "$TASKS/mbpp.jsonl"
	[ "$(jq -c '[.tasks, .passed, .in_process]' <<<"$summary")" = '[4,4,0]' ]
	[ "$(jq -c 'select(.task_id) | .task_id' <<<"$output" | paste -sd ' ')" = "1 2 3 4" ]
	jq -cn '{task_id: 3, completion: "def order(items):\n    pass"}, {task_id: 3, completion: "def order(items):\n    import os\n    os._exit(0)"},
		{task_id: 2, completion: "x = ("}, {task_id: 1, completion: "def other(): pass"}' >samples.jsonl
	grade 1 "$TASKS/mbpp.jsonl" --samples samples.jsonl
	[ "$(jq -c 'select(.task_id) | [.verdict, .reason]' <<<"$output" | paste -sd ' ')" = '["WA",null] ["RTE","premature_exit"] ["RTE",null] ["RTE",null]' ]
}

@test "HumanEvalPack: four languages, canonical and buggy" {
	grade 0 "$TASKS/pack.jsonl"
	[ "$(jq -r 'select(.task_id) | .language' <<<"$output" | paste -sd ' ')" = "python cpp javascript go" ]
	grade 1 "$TASKS/pack.jsonl" --solution buggy_solution
	[ "$(jq -c '[.verdicts, .in_process]' <<<"$summary")" = '[{"WA":4},0]' ]
	# A failed console.assert is a failure, although Node goes on; a panic and a signal are no early ends.
	[ "$(jq -r 'select(.language == "javascript") | .result' <<<"$output")" = "failed: console.assert" ]
	jq -cn '{task_id: "CPP/0", completion: "  int *p = 0; *p = 1; return 0; }"}, {task_id: "Go/0", completion: "  panic(1) }"}' >samples.jsonl
	grade 1 "$TASKS/pack.jsonl" --samples samples.jsonl
	[ "$(jq -c 'select(.task_id) | [.verdict, .reason]' <<<"$output" | paste -sd ' ')" = '["RTE",null] ["RTE",null]' ]
}

@test "C++: tests reach the function that they name" {
	jq -cn '{task_id: "CPP/23", prompt: "", entry_point: "strlen",
		declaration: "#include<stdlib.h>\n#include<algorithm>\n#include<string>\nusing namespace std;\nint strlen(string str){\n",
		canonical_solution: "    return str.length();\n}\n", buggy_solution: "    return str.length() - 1;\n}\n",
		test: "#undef NDEBUG\n#include<assert.h>\n#include<string.h>\nint main(){\n    assert (strlen(\"\") == 0);\n    assert (strlen(\"x\") == 1);\n}\n"}' >tasks.jsonl
	grade 0 tasks.jsonl
	grade 1 tasks.jsonl --solution buggy_solution
	[ "$(jq -r 'select(.task_id) | .result' <<<"$output")" = 'failed: strlen("") == 0' ]
	# The usual headers, where only they make the program compile; the library's function is in scope for the code.
	jq -cn '("set<char> s(str.begin(), str.end()); return s.size() == 0 ? 0 : INT_MAX - 2147483646;", "return strlen(str.c_str());", "cout << 1; return 5;", "return no;")
		| {task_id: "CPP/23", completion: (. + "\n}\n")}' >samples.jsonl
	grade 1 tasks.jsonl --samples samples.jsonl
	[ "$(jq -r 'select(.task_id) | .verdict' <<<"$output" | paste -sd ' ')" = "AC AC WA CE" ]
	# Overloads of the code's own, and tests that name a member like the function.
	jq -c '.test |= sub("int main"; "struct text { int length; int strlen(); };\nint text::strlen() { return length; }\nint main")' tasks.jsonl >member.jsonl
	grade 0 member.jsonl
}

# no_pass TASKS FORGERIES: none passes, and early ends are named so
no_pass() {
	grade 1 "$1" --samples "$2"
	[ "$(jq .passed <<<"$summary")" = 0 ]
	[ "$(jq .judge_errors <<<"$summary")" = 0 ]
	[ "$(jq -r 'select(.task_id) | .reason // "-"' <<<"$output")" = "$(jq -r '.reason // "-"' "$2")" ]
}

@test "forgeries: none passes" {
	no_pass "$TASKS/humaneval.jsonl" "$TASKS/forgeries.jsonl"
	[ "$(jq .in_process <<<"$summary")" = 0 ]
	no_pass "$TASKS/pack.jsonl" "$TASKS/forgeries-pack.jsonl"
	# The same Python forgeries against a suite that cannot be split: an exit is an early end there too.
	jq -cn '("import sys\nsys.exit(0)", "import os\nos._exit(0)", "print(\"passed\")", "import os\nfor fd in range(1024):\n  try: os.write(fd, b\"passed\\n\")\n  except OSError: pass")
		| {task_id: 3, completion: "def order(items):\n    pass\n\(.)"}' >samples.jsonl
	grade 1 "$TASKS/mbpp.jsonl" --samples samples.jsonl
	# The last one writes into the descriptor of the verdict, too: what comes first there, its rubbish or the failed assertion, is the machine's load.
	jq -c 'select(.task_id) | [.verdict, .reason]' <<<"$output" | paste -sd ' ' |
		grep -xE '\["RTE","premature_exit"\] \["RTE","premature_exit"\] \["WA",null\] \[("RTE","premature_exit"|"WA",null)\]'
}

@test "forgeries of suites that cannot be split: none passes" {
	grade 0 "$TASKS/whole.jsonl"
	[ "$(jq .in_process <<<"$summary")" = 4 ]
	no_pass "$TASKS/whole.jsonl" "$TASKS/forgeries-whole.jsonl"
	# Other correct answers: nothing of what they do is what forgeries do.
	jq -cn '("    import collections, logging, traceback, warnings\n    logging.getLogger().warning(\"x\")\n    P = collections.namedtuple(\"P\", \"x\")\n    try: raise ValueError\n    except ValueError: traceback.format_exc()\n    class N(int):\n        def __eq__(s, o): return int(s) == o\n        def __sub__(s, o): return int(s) - o\n    return N(P(max([len(x) for x in pattern.findall(text)], default=0)).x)\n",
		"    import dataclasses, subprocess\n    @dataclasses.dataclass\n    class D:\n        n: int\n    return int(subprocess.run([\"echo\", str(D(max([len(x) for x in pattern.findall(text)], default=0)).n)], capture_output=True).stdout)\n")
		| {task_id: "Whole/0", completion: .}' >samples.jsonl
	grade 0 "$TASKS/whole.jsonl" --samples samples.jsonl
}

@test "JavaScript: a test ends when nothing is left to do" {
	jq -cn '{task_id: "JavaScript/1", prompt: "const f = (x) => {\n", declaration: "const f = (x) => {\n", entry_point: "f",
		canonical_solution: "  return Promise.resolve(x + 1)\n}\n",
		test: "const assert = require(\"assert\")\nconst testF = async () => {\n  assert.strictEqual(await f(1), 2)\n  console.assert(await f(41) === 42)\n}\n\ntestF()\n"}' >late.jsonl
	grade 0 late.jsonl
	jq -cn '("  return 0\n}\n", "  return Promise.resolve(2)\n}\n", "  return new Promise(() => {})\n}\n", "  return Promise.reject(new Error(\"no\"))\n}\n",
		"  return new Promise((kept) => setTimeout(kept, 1, x + 1))\n}\n") | {task_id: "JavaScript/1", completion: .}' >samples.jsonl
	grade 1 late.jsonl --samples samples.jsonl
	[ "$(jq -c 'select(.task_id) | [.verdict, .reason]' <<<"$output" | paste -sd ' ')" = \
		'["WA",null] ["WA",null] ["RTE","premature_exit"] ["RTE",null] ["AC",null]' ]
	# The function is as it ever was, and the tests alone go on.
	jq -c '.canonical_solution = "  return x + 1\n}\n" | .test |= gsub("await f\\((?<n>[0-9]+)\\)"; "(await null, f(\(.n)))")' late.jsonl >split.jsonl
	grade 0 split.jsonl
	[ "$(jq .in_process <<<"$summary")" = 0 ]
	jq -c '{task_id, completion: "  return x + 2\n}\n"}' split.jsonl >samples.jsonl
	grade 1 split.jsonl --samples samples.jsonl
	jq -c '.test = "new Promise(() => { f(1) })\n"' split.jsonl >never.jsonl
	grade 1 never.jsonl
	jq -c '.canonical_solution = "  return {}\n}\n" | .test = "require(\"assert\").deepEqual(f(1), {})\n"' split.jsonl >thing.jsonl
	grade 0 thing.jsonl
	jq -c '{task_id, completion: "  return new (class { a = 1 })\n}\n"}' split.jsonl >samples.jsonl
	grade 1 thing.jsonl --samples samples.jsonl
}

@test "each limit has its verdict" {
	jq -cn '("    x = bytearray(4 << 30)\n    return 0", "    while True: print(\"x\" * 10000)", "    import os\n    os.kill(os.getpid(), 11)")
		| {task_id: "Small/0", completion: .}' >samples.jsonl
	grade 1 "$TASKS/humaneval.jsonl" --samples samples.jsonl --time-limit 20 -j 4
	[ "$(jq -r 'select(.task_id) | .verdict' <<<"$output" | paste -sd ' ')" = "MLE OLE RTE" ]
	[ "$(jq .judge_errors <<<"$summary")" = 0 ]
	jq -cn '{task_id: "Small/0", completion: "    import time\n    time.sleep(60)"}' >samples.jsonl
	grade 1 "$TASKS/humaneval.jsonl" --samples samples.jsonl --time-limit 0.1
	[ "$(jq -c '.verdicts' <<<"$summary")" = '{"TLE":1}' ]
}

@test "real data: HumanEval, canonical and pass" {
	some HumanEval.jsonl.gz 8
	grade 0 real.jsonl
	[ "$(jq -c '[.passed, .in_process]' <<<"$summary")" = "[$count,0]" ]
	jq -c '{task_id, completion: "    pass\n"}' real.jsonl >samples.jsonl
	grade 1 real.jsonl --samples samples.jsonl
	[ "$(jq -c '[.passed, .judge_errors]' <<<"$summary")" = '[0,0]' ]
}

@test "real data: HumanEvalPack Python and C++, canonical and buggy" {
	some humanevalpack-python.jsonl.xz 8
	grade 0 real.jsonl
	grade 1 real.jsonl --solution buggy_solution
	[ "$(jq -c '[.samples, .passed, .judge_errors]' <<<"$summary")" = "[$count,0,0]" ]
	some humanevalpack-cpp.jsonl.xz 37
	grade "$([ "$count" -gt 100 ] && echo 1 || echo 0)" real.jsonl
	[ "$(jq -r 'select(.passed == false) | .task_id' <<<"$output")" = "$([ "$count" -lt 100 ] || echo CPP/38)" ] # its canonical solution lacks a brace
	grade 1 real.jsonl --solution buggy_solution
	[ "$(jq -c '[.samples, .passed, .judge_errors]' <<<"$summary")" = "[$count,0,0]" ]
}

@test "--fail-fast ends at the first task that does not pass" {
	jq -cn '("n + n", "n", "n + n", "2 * n") | {task_id: "Small/0", completion: "    return \(.)"}' >samples.jsonl
	grade 1 "$TASKS/humaneval.jsonl" --samples samples.jsonl --k 1,2 -j 1 --fail-fast
	[ "$(jq -r 'select(.task_id) | .verdict' <<<"$output" | paste -sd ' ')" = "AC WA" ]
	[ "$(jq -c '[.samples, .passed, ."pass@1", ."pass@2"]' <<<"$summary")" = '[2,1,null,null]' ]
	grade 1 "$TASKS/humaneval.jsonl" --samples samples.jsonl --k 1,2 -j 4 --fail-fast
	[ "$(jq .samples <<<"$summary")" = 2 ]
}

@test "shards of tasks merge to the whole" {
	local n words=(--k "1,2")
	jq -c 'range(5) as $i | .task_id = "Small/\($i)"' "$TASKS/humaneval.jsonl" >tasks.jsonl
	jq -c '(.task_id | split("/")[1] | tonumber) as $i | ("n + n", (if $i == 2 then "n" else "2 * n" end)) | {task_id: "Small/\($i)", completion: "    return \(.)"}' tasks.jsonl >samples.jsonl
	local untimed='del(.cpu_us, .wall_us, .summary.seconds)'
	grade 1 tasks.jsonl --samples samples.jsonl "${words[@]}"
	jq -c "$untimed" <<<"$output" >whole
	for n in 1 2 3; do
		run --separate-stderr "$SP_BIN/sallyport" grade --json --shard "$n/3" --results "part$n.db" tasks.jsonl --samples samples.jsonl "${words[@]}"
		jq -r 'select(.task_id) | .task_id' <<<"$output" | sort -u >"part$n"
	done
	[ "$(cat part1 part2 part3 | sort | paste -sd ' ')" = "Small/0 Small/1 Small/2 Small/3 Small/4" ] # the samples of a task are together
	grade 1 --merge part3.db --merge part1.db --merge part2.db tasks.jsonl --samples samples.jsonl "${words[@]}"
	diff whole <(jq -c "$untimed" <<<"$output")
	grade 5 --merge part1.db --merge part2.db tasks.jsonl --samples samples.jsonl
	[[ $stderr == *"shard 3 of 3 is missing"* ]]
	grade 2 --merge part1.db --shard 1/3 tasks.jsonl
	grade 2 --shard 4/3 tasks.jsonl
	grade 2 --shard 1/3 "$SP_ROOT/tests/data/packages/sums"
	# Only the failed one runs again, and is all that --quiet prints.
	grade 1 --results all.db tasks.jsonl --samples samples.jsonl --quiet
	[ "$(jq -c 'select(.task_id) | [.task_id, .verdict]' <<<"$output")" = '["Small/2","WA"]' ]
	[ "$(jq .samples <<<"$summary")" = 10 ]
	grade 1 --results all.db --only failed tasks.jsonl --samples samples.jsonl
	[ "$(jq -c '[.samples, .passed]' <<<"$summary")" = '[1,0]' ]
	grade 0 --results all.db --only missing tasks.jsonl --samples samples.jsonl
	[ "$(jq .samples <<<"$summary")" = 0 ]
	run -0 --separate-stderr "$SP_BIN/sallyport" grade --json - <tasks.jsonl
	[ "$(tail -1 <<<"$output" | jq .summary.passed)" = 5 ]
	grade 1 tasks.jsonl --samples - <samples.jsonl
	grade 2 - --samples -
}

@test "--resume after kill -9 gives the same report" {
	jq -cn 'range(6) | {task_id: "Small/0", completion: "    import time\n    time.sleep(0.1)\n    return n + n * (\(.) % 2)"}' >samples.jsonl
	local untimed='del(.cpu_us, .wall_us, .summary.seconds)' pid
	grade 1 "$TASKS/humaneval.jsonl" --samples samples.jsonl --k 1,2
	jq -c "$untimed" <<<"$output" >whole
	mkfifo out
	"$SP_BIN/sallyport" grade --json -j 1 --resume --results r.db "$TASKS/humaneval.jsonl" --samples samples.jsonl >out 2>/dev/null 3>&- &
	pid=$!
	head -n 2 out >lines_out
	kill -KILL $pid
	wait $pid || true
	grade 1 --resume --results r.db "$TASKS/humaneval.jsonl" --samples samples.jsonl --k 1,2
	diff whole <(jq -c "$untimed" <<<"$output")
	[ "$(sqlite3 r.db 'SELECT count(*) FROM result')" = 6 ]
	sqlite3 r.db "UPDATE result SET report = replace(report, 'an assertion', 'a record')"
	grade 1 --resume --results r.db "$TASKS/humaneval.jsonl" --samples samples.jsonl
	[ "$(jq -r 'select(.sample == 2) | .result' <<<"$output")" = "failed: a record" ]
	# Another limit is another key; without --resume everything is graded.
	grade 1 --resume --results r.db "$TASKS/humaneval.jsonl" --samples samples.jsonl --time-limit 2
	[ "$(jq -r 'select(.sample == 2) | .result' <<<"$output")" = "failed: an assertion" ]
	grade 1 --results r.db "$TASKS/humaneval.jsonl" --samples samples.jsonl
	[ "$(jq -r 'select(.sample == 2) | .result' <<<"$output")" = "failed: an assertion" ]
}

@test "files that are wrong" {
	echo '{"task_id": 1}' >neither.jsonl
	grade 2 neither.jsonl
	[[ $stderr == *"task 1 is of none of the formats"* ]]
	for list in '[]' '[5]' '["assert True", null]'; do
		echo '{"task_id": 1, "code": "", "test_list": '"$list"'}' >untested.jsonl
		grade 2 untested.jsonl
		[[ $stderr == *"task 1: test_list must hold one test or more"* ]]
	done
	printf '{"task_id": "x"}\nnot json\n' >broken.jsonl
	grade 2 broken.jsonl
	[[ $stderr == *"broken.jsonl, line 2:"* ]]
	: >empty.jsonl
	grade 2 empty.jsonl
	[[ $stderr == *"holds no tasks"* ]]
	head -c 40 "$TASKS/humaneval.jsonl" | gzip | head -c 30 >cut.jsonl.gz
	grade 2 cut.jsonl.gz
	grade 3 nowhere.jsonl
	echo '{"task_id": "Small/1", "completion": ""}' >samples.jsonl
	grade 2 "$TASKS/humaneval.jsonl" --samples samples.jsonl
	[[ $stderr == *"there is no task Small/1"* ]]
	grade 2 "$TASKS/humaneval.jsonl" --solution buggy_solution
	[[ $stderr == *"task Small/0 has no member buggy_solution"* ]]
	grade 2 "$TASKS/pack.jsonl" --language cobol
	grade 2 "$TASKS/humaneval.jsonl" --k 0
	grade 2 "$TASKS/humaneval.jsonl" submission.py
	grade 2 . --k 1
}

@test "a language without an interpreter is SKIP, a completion with a NUL fails" {
	mkdir runners
	cp "$SP_ROOT"/jail/runners/*.* runners
	jq '.interpreters = ["/nonexistent"]' "$SP_ROOT/jail/runners/javascript.json" >runners/javascript.json
	chmod 0755 . runners
	SALLYPORT_JAILER_RUNNERS_DIR=$PWD/runners grade 1 "$TASKS/pack.jsonl" --solution buggy_solution
	[ "$(jq -r 'select(.language == "javascript") | [.verdict, .result] | join(": ")' <<<"$output")" = "SKIP: the runner javascript is not installed" ]
	printf '{"task_id": "Small/0", "completion": "    return 2 * n\\u0000 x"}\n' >samples.jsonl
	grade 1 "$TASKS/humaneval.jsonl" --samples samples.jsonl
	[ "$(jq -c .verdicts <<<"$summary")" = '{"RTE":1}' ]
}
