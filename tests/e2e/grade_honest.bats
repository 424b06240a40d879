#!/usr/bin/env bats
# sallyport grade over tasks: correct values of every kind pass, aliases and changes in place are seen, tests are never ignored, samples as
# people have them are read. Forgeries: grade_tasks.bats.
# shellcheck disable=SC2154 # stderr is from bats

bats_require_minimum_version 1.5.0
load lib.bash
load grade.bash

setup_file() {
	export TASKS=$SP_ROOT/tests/data/tasks XDG_CACHE_HOME=$BATS_FILE_TMPDIR/cache
	sp_private_jailers
}

# verdicts: of all samples, in one line
verdicts() {
	jq -r 'select(.task_id) | .verdict' <<<"$output" | paste -sd ' '
}

@test "Python: values of each kind cross" {
	local left='.'
	/usr/bin/python3 -c 'import numpy' 2>/dev/null || left='select(.sample + .test | contains("numpy") | not)'
	jq -c "$left" "$TASKS/values.jsonl" >tasks.jsonl
	jq -c '{task_id, completion: .sample}' tasks.jsonl >samples.jsonl
	judge 1 tasks.jsonl --samples samples.jsonl
	diff <(jq -r 'select(.task_id) | .task_id + " " + .verdict' <<<"$output") <(jq -r '.task_id + " " + .verdict' tasks.jsonl)
	[ "$(jq '.summary.in_process' <<<"$summary")" = 0 ]
}

@test "compiled languages: values of each kind cross" {
	jq -cn '{task_id: "CPP/1", prompt: "", entry_point: "halve", declaration: "#include<map>\n#include<optional>\n#include<stdexcept>\n#include<string>\n#include<vector>\nusing namespace std;\nmap<string, vector<pair<int, double>>> halve(vector<int> &xs, const string &name, optional<char> c) {\n",
		canonical_solution: "    if (name.empty()) throw invalid_argument(\"no name\");\n    map<string, vector<pair<int, double>>> m;\n    for (int &x : xs) { m[name + (c ? *c : (char)45)].push_back({x, x / 2.0}); x = 0; }\n    return m;\n}\n",
		buggy_solution: "    map<string, vector<pair<int, double>>> m;\n    for (int x : xs) m[name + (c ? *c : (char)45)].push_back({x, x / 2.0});\n    return m;\n}\n",
		test: "#undef NDEBUG\n#include<assert.h>\nint main(){\n    vector<int> v = {1, 4};\n    assert (halve(v, \"a\", {})[\"a-\"][1].second == 2);\n    assert (v == vector<int>({0, 0}));\n    bool thrown = false;\n    try { halve(v, \"\", (char)120); } catch (const invalid_argument &e) { thrown = string(e.what()) == \"no name\"; }\n    assert (thrown);\n}\n"}' >tasks.jsonl
	jq -cn '{task_id: "Go/1", prompt: "", import: "", entry_point: "Mark", declaration: "type pair struct { name string; sizes map[string]int }\n\nfunc Mark(xs []int, p *pair, rest ...interface{}) (interface{}, error) {\n",
		canonical_solution: "    xs[0] = 9\n    p.sizes[p.name] = len(rest)\n    if len(rest) == 0 { return nil, errors.New(\"none\") }\n    return rest[0], nil\n}\n",
		buggy_solution: "    p.sizes[p.name] = len(rest)\n    return rest[0], nil\n}\n",
		test_setup: "package main\n\nimport (\n    \"testing\"\n    \"github.com/stretchr/testify/assert\"\n)\n",
		test: "func TestMark(t *testing.T) {\n    assert := assert.New(t)\n    xs, p := []int{1}, &pair{\"a\", map[string]int{}}\n    v, err := Mark(xs, p, \"x\", 2.5)\n    assert.Equal(\"x\", v)\n    assert.Nil(err)\n    assert.Equal(9, xs[0])\n    assert.Equal(2, p.sizes[\"a\"])\n    _, err = Mark(xs, p)\n    assert.Equal(\"none\", err.Error())\n}\n"}' >>tasks.jsonl
	judge 0 tasks.jsonl
	[ "$(jq '.summary.in_process' <<<"$summary")" = 0 ]
	judge 1 tasks.jsonl --solution buggy_solution
	[ "$(verdicts)" = "WA RTE" ]
}

@test "what cannot be split says so on its line" {
	jq -cn '{task_id: "CPP/2", prompt: "", entry_point: "first", declaration: "#include<vector>\nint first(int *xs, int n){\n", canonical_solution: "    return n ? xs[0] : -1;\n}\n",
		test: "#undef NDEBUG\n#include<assert.h>\nint main(){\n    int xs[] = {7};\n    assert (first(xs, 1) == 7);\n    assert (first(xs, 0) == -1);\n}\n"}' >tasks.jsonl
	# The forgeries of suites that share a process: what reads the nonce, finds it, or stands in for the harness' calls.
	jq -c 'select((.task_id == "CPP/0") and (.forgery | test("nonce|interposed|rand"))) | .task_id = "CPP/2"' "$TASKS/forgeries-pack.jsonl" >forged.jsonl
	[ "$(wc -l <forged.jsonl)" = 6 ]
	judge 1 tasks.jsonl --samples forged.jsonl
	[ "$(jq -c '.summary | [.passed, .judge_errors, .in_process]' <<<"$summary")" = '[0,0,6]' ]
	cat "$TASKS/humaneval.jsonl" >>tasks.jsonl
	judge 0 tasks.jsonl
	[ "$(jq -c 'select(.task_id) | .in_process' <<<"$output" | paste -sd ' ')" = "true null" ]
	judge 1 tasks.jsonl --require-split
	[ "$(jq -c 'select(.task_id) | [.verdict, .in_process]' <<<"$output" | paste -sd ' ')" = '["SKIP",true] ["AC",null]' ]
}

@test "MBPP+: its plus tests run" {
	jq -cn '{task_id: 2, code: "def add(a, b):\n    return a + b", prompt: "", source_file: "x", test_imports: [], test_list: ["assert add(1, 2) == 3"],
		test: "def assertion(out, exp, atol):\n    assert out == exp, f\"out: {out}\"\n\ninputs = [[1, 2], [5, 6]]\nresults = [3, 11]\nfor inp, exp in zip(inputs, results):\n    assertion(add(*inp), exp, 0)\n"}' >tasks.jsonl
	judge 0 tasks.jsonl
	jq -cn '("return 3", "return a + b") | {task_id: 2, completion: "def add(a, b):\n    \(.)"}' >samples.jsonl
	judge 1 tasks.jsonl --samples samples.jsonl
	[ "$(verdicts)" = "WA AC" ]
	jq -c 'del(.test_list)' tasks.jsonl >only.jsonl
	judge 1 only.jsonl --samples samples.jsonl
	[ "$(verdicts)" = "WA AC" ]
	# Other members that look like tests are refused by name, empty ones are not.
	jq -c '.hidden_tests = ["assert add(2, 2) == 4"] | .more_cases = []' tasks.jsonl >unknown.jsonl
	judge 2 unknown.jsonl
	[[ $stderr == *"its member hidden_tests looks like tests"* ]]
}

@test "samples: solutions, generations, fences, --raw" {
	local fence='```'
	{
		jq -cn '{task_id: "Small/0", solution: "def double(n):\n    return n + n\n"}'
		jq -cn '{task_id: "Small/0", generation: "    return n + n\n"}'
		jq -cn --arg f "$fence" '("Here it is:\n\($f)python\ndef double(n):\n  return n + n\n\($f)\nIt doubles.", "\($f)\n    return n + n\n\($f)", "    return n + n\n\($f)\nDone.",
			"\($f)python\nprint(1)\n\($f)\nand\n\($f)py\nimport math\n\ndef double(n):\n    return 2 * n\n", "    return \"\"\"\n    \($f)\n\"\"\" and n + n\n") | {task_id: "Small/0", completion: .}'
	} >samples.jsonl
	judge 0 "$TASKS/humaneval.jsonl" --samples samples.jsonl
	judge 1 "$TASKS/humaneval.jsonl" --samples samples.jsonl --raw
	[ "$(verdicts)" = "AC AC RTE RTE RTE RTE AC" ]
}

@test "samples: what is none is left out by name" {
	{
		printf '\xef\xbb\xbf'
		jq -cn '{task_id: "Small/0", solution: "def double(n):\n    return n + n\n"}'
		echo '{"task_id": "Small/0", "comp'
		echo '{"task_id": "Small/7", "completion": ""}'
		echo '{"task_id": "Small/0"}'
		jq -cn '{task_id: "Small/0", completion: "    return n + n\n"}'
	} >samples.jsonl
	judge 1 "$TASKS/humaneval.jsonl" --samples samples.jsonl
	[ "$(verdicts)" = "AC AC" ]
	[ "$(jq -c '.summary | [.samples, .passed, .left_out]' <<<"$summary")" = '[2,2,3]' ]
	[[ $stderr == *"left out: samples.jsonl, line 2:"*"left out: samples.jsonl: there is no task Small/7"*"left out: samples.jsonl: sample number 3 has no task_id"* ]]
}
