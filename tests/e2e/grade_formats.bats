#!/usr/bin/env bats
# sallyport grade over the formats of tasks that people have: a small file of each, made by ourselves, with samples and their verdicts.
# shellcheck disable=SC2154 # stderr is from bats

bats_require_minimum_version 1.5.0
load lib.bash
load grade.bash

setup_file() {
	export FORMATS=$SP_ROOT/tests/data/tasks/formats XDG_CACHE_HOME=$BATS_FILE_TMPDIR/cache
	sp_private_jailers
}

# format NAME [OWN]: verdicts and tests that passed are those that the samples say; OWN: the exit status over the tasks' own solutions
format() {
	judge 1 "$FORMATS/$1.jsonl" --samples "$FORMATS/$1-samples.jsonl"
	diff <(jq -r 'select(.task_id) | .verdict' <<<"$output" | paste -sd ' ') <(jq -r '.verdicts // .verdict' "$FORMATS/$1-samples.jsonl" | paste -sd ' ')
	! grep -q '"tests_passed"' "$FORMATS/$1-samples.jsonl" ||
		diff <(jq 'select(.task_id) | .tests_passed' <<<"$output") <(jq .tests_passed "$FORMATS/$1-samples.jsonl")
	judge "${2:-0}" "$FORMATS/$1.jsonl"
}

@test "evalplus: base and plus, tolerances, MBPP's tuples" {
	format evalplus
	judge 1 "$FORMATS/evalplus.jsonl" --samples "$FORMATS/evalplus-samples.jsonl" --report evalplus=eval_results.json --report bigcode=bigcode.json
	[ "$(jq -c '.eval."HumanEval/902" | map([.base_status, .plus_status])' eval_results.json)" = '[["pass","pass"],["fail","fail"],["pass","fail"]]' ]
	[ "$(jq -r '.eval."HumanEval/901"[2].solution' eval_results.json | head -1)" = "def halves(xs):" ]
	[ "$(jq -c '."Mbpp/2"[0] | [.[0], .[1].passed, .[1].result]' bigcode.json)" = '[0,true,"passed"]' ]
}

@test "HumanEval-X: four languages" {
	format humaneval-x
}

@test "MultiPL-E: lists of completions" {
	format multipl-e 2
	[[ $stderr == *"HumanEval_9_a has no solution of its own"* ]]
}

@test "APPS: standard input and functions" {
	format apps
}

@test "CodeContests: three lists of tests" {
	format codecontests
	# Programs in other languages.
	jq -cn '{name: "1_A. Half", solution: "#include <cstdio>\nint main() { double n; scanf(\"%lf\", &n); printf(\"%f\\n\", n / 2); }\n"}' >samples.jsonl
	judge 0 "$FORMATS/codecontests.jsonl" --samples samples.jsonl --language cpp
}

@test "LiveCodeBench: standard input and functions" {
	format livecodebench 2
	# A pickle of anything but a text is refused.
	jq -c '.private_test_cases = "eJxrYJkqxgABHYwAFJ8DQw=="' "$FORMATS/livecodebench.jsonl" >hostile.jsonl
	judge 2 hostile.jsonl
}

@test "BigCodeBench: test cases of unittest" {
	format bigcodebench
	[ "$(jq .summary.in_process <<<"$summary")" = 1 ] # one patches a module of the code's
}

@test "DS-1000: tests that run the code themselves" {
	format ds-1000
}

@test "CRUXEval: predictions are values" {
	format cruxeval
}

@test "verifiable-coding-problems: fences and cases" {
	format verifiable
}

@test "samples: folders and one array" {
	mkdir -p samples/HumanEval_901 samples/HumanEval_902
	printf 'def halves(xs):\n    return [x / 2 for x in xs]\n' >samples/HumanEval_901/0.py
	printf 'def least(xs):\n    return max(xs)\n' >samples/HumanEval_902/2.py
	printf 'def least(xs):\n    return min(xs)\n' >samples/HumanEval_902/10.py
	judge 1 "$FORMATS/evalplus.jsonl" --samples samples
	[ "$(jq -r 'select(.task_id) | .verdict' <<<"$output" | paste -sd ' ')" = "AC WA AC" ]
	jq -cn '[["print(sum(map(int, input().split())))", "print(3)"], ["class Solution:\n    def add(self, a, b): return a + sum(b)"]]' >list.json
	judge 1 "$FORMATS/apps.jsonl" --samples list.json
	[ "$(jq -r 'select(.task_id) | .verdict' <<<"$output" | paste -sd ' ')" = "AC WA AC" ]
}

@test "a checker decides where several answers are right" {
	mkdir -p checkers/8_x
	jq -cn '("7", "8/x") | {problem_id: ., question: "A larger even number.", input_output: "{\"inputs\": [\"3\\n\"], \"outputs\": [\"4\\n\"]}"}' >tasks.jsonl
	printf 'import sys\nn, x = int(open(sys.argv[1]).read()), sys.stdin.read().strip()\nassert open(sys.argv[2]).read() == "4\\n"\nsys.exit(42 if x.isdigit() and int(x) > n and int(x) %% 2 == 0 else 43)\n' >checkers/7.py
	printf 'import helper, sys\nsys.exit(helper.right(sys.stdin.read()))\n' >checkers/8_x/main.py
	printf 'def right(text):\n    return 42 if text.strip() in ("4", "12") else 43 if text else 9\n' >checkers/8_x/helper.py
	jq -cn '("7", "8/x") as $id | ("print(4)", "print(12)", "print(5)", "pass") | {task_id: $id, solution: .}' >samples.jsonl
	judge 13 tasks.jsonl --samples samples.jsonl --checkers checkers
	[ "$(jq -r 'select(.task_id) | .verdict' <<<"$output" | paste -sd ' ')" = "AC AC WA WA AC AC WA JE" ] # it says nothing of no output
	judge 1 tasks.jsonl --samples samples.jsonl
	[ "$(jq -r 'select(.task_id) | .verdict' <<<"$output" | paste -sd ' ')" = "AC WA WA WA AC WA WA WA" ]
	rm -r checkers/*
	judge 2 tasks.jsonl --samples samples.jsonl --checkers checkers
	[[ $stderr == *"has no program that is called as a task"* ]]
	judge 2 "$FORMATS/../humaneval.jsonl" --checkers . --resume
}

@test "a user without a cgroup is told what is weaker" {
	[ "$(id -u)" = 0 ] || skip "becomes another user"
	chmod 755 "$BATS_TEST_TMPDIR" "$BATS_FILE_TMPDIR" "$BATS_RUN_TMPDIR"
	mkdir -m 777 cache
	local as=(setpriv --reuid=65534 --regid=65534 --clear-groups env -u SALLYPORT_JAILER_SOCKET HOME="$PWD/cache" XDG_CACHE_HOME="$PWD/cache" XDG_RUNTIME_DIR= TMPDIR=/tmp)
	"${as[@]}" test -x "$SP_BIN/sallyport" || skip "its programs are out of reach of other users"
	"${as[@]}" unshare -Ur true || skip "no user namespaces for users"
	cp "$FORMATS/../humaneval.jsonl" tasks.jsonl
	run -0 --separate-stderr "${as[@]}" "$SP_BIN/sallyport" grade --json tasks.jsonl
	[ "$(tail -1 <<<"$output" | jq .summary.passed)" = 1 ]
	[ "$(grep -c 'this user has no cgroup: each program runs in a jail of its own' <<<"$stderr")" = 1 ]
	# A user who said no gets none.
	run -13 --separate-stderr "${as[@]}" SALLYPORT_JAILER_WEAKER_LIMITS=false "$SP_BIN/sallyport" grade --json tasks.jsonl
}

@test "an unknown layout is refused with those that are known" {
	echo '{"task_id": 1, "question": "x"}' >unknown.jsonl
	judge 2 unknown.jsonl
	[[ $stderr == *"evalplus (base_input, plus_input"*"CRUXEval (input, output)"*"MBPP (code, test_list|test)"* ]]
}
