#!/usr/bin/env bats
# sallyport grade: what packages and programs of real contests are like.
# shellcheck disable=SC2016,SC2154 # programs in single quotes are meant for the jail; the variables are from bats and grade.bash

bats_require_minimum_version 1.5.0
load lib.bash
load grade.bash

@test "programs of older and newer compilers run" {
	small p 'validation: custom'
	mkdir p/output_validators
	printf 'import sys\nassert int("7" * 5000)\nsys.exit(42 if input() == "2" else 43)\n' >p/output_validators/v.py
	printf 'n = int(input())\nprint(int(str(10**5000 + n)) - 10**5000 + 1)\n' >p/submissions/accepted/large.py
	printf '#include <iostream>\nint main() { std::string s; std::cin >> s; std::cout << s.contains("1") + 1; }\n' >p/submissions/accepted/new.cpp
	printf '// Bj\xf6rn\npublic class latin { public static void main(String[] a) { System.out.println("\xf6".length() + 1); } }\n' >p/submissions/accepted/latin.java
	judge 0 p
	[ "$(jq -c .summary.verdicts <<<"$summary")" = '{"AC":4}' ]
}

@test "real packages' flags, marks and folders are read" {
	small p $'validation: custom\nvalidator_flags: --say "not \'this\'" it\'s\n'
	mkdir -p p/output_validators p/submissions/{mixed,no_output}
	printf 'output_validator_flags: --tell "a b"\n' >p/data/secret/testdata.yaml
	printf 'import sys\nassert sys.argv[4:] == ["--say", "not %s", "it%s", "--tell", "a b"]\nsys.exit(42 if "2" in sys.stdin.read() else 43)\n' "'this'" "'s" >p/output_validators/v.py
	printf '# @expected_results@: Wrong-Answer\nprint(3)\n' >p/submissions/mixed/a.py
	printf '# @EXPECTED_SCORE@: CORRECT\nprint(2)\n' >p/submissions/mixed/b.py
	printf '# me@home @EXPECTED_SCORE@: WRONG-ANSWER\nprint(2)\n' >p/submissions/mixed/c.py
	echo >p/submissions/no_output/a.py
	judge 1 p
	[ "$(jq -r 'select(.submission) | [.verdict, .as_expected] | join(" ")' <<<"$output" | paste -sd,)" = "AC true,WA true,AC true,AC false,WA true" ]
}

@test "a package's own programs are used as they were meant" {
	small p $'type: scoring\nvalidation: custom\n'
	mkdir p/graders p/output_validators
	printf '#!/usr/bin/env python3\nimport sys\nsys.exit(42 if sys.stdin.read().split() == open(sys.argv[2]).read().split() else 43)\n' >p/output_validators/compare
	echo 'print "AC 1"' >p/graders/old.py
	judge 0 p
	[ "$(of accepted/a.py .score)" = 1 ]
	case_of p/data/sample 1 1 2
	printf 'on_reject: continue\ngrading: custom\ngrader_flags: ignore_sample\n' >p/data/testdata.yaml
	printf 'grading: default\n' | tee p/data/sample/testdata.yaml >p/data/secret/testdata.yaml
	judge 13 p
	[[ $stderr == *"the grader cannot be used"*"Python 2"* ]]
	rm p/graders/old.py
	printf 'import sys\nassert sys.argv[1:] == ["ignore_sample"]\nprint("AC", 10 * len(sys.stdin.readlines()))\n' >p/graders/new.py
	judge 0 p
	[ "$(of accepted/a.py .score)" = 20 ]
}

@test "a driver of the package's that has a name of its own: it imports the submission, which imports it" {
	small p
	rm p/submissions/accepted/a.py
	mkdir -p p/include/{python3,java} p/submissions/wrong_answer
	printf 'import guess\nn = 0\ndef get(): return n\nif __name__ == "__main__":\n    import driver\n    driver.n = int(input())\n    print(guess.solve())\n' >p/include/python3/driver.py
	printf 'import driver\ndef solve(): return driver.get() + 1\n' >p/submissions/accepted/guess.py
	mkdir p/submissions/wrong_answer/py
	printf 'import driver\ndef solve(): return driver.get() + 2\n' >p/submissions/wrong_answer/py/guess.py
	printf 'public class driver { public static void main(String[] a) { System.out.println(Guess.solve(1)); } }\n' >p/include/java/driver.java
	printf 'class Guess { static int solve(int n) { return n + 1; } }\n' >p/submissions/accepted/Guess.java
	judge 0 p
	[ "$(jq -c .summary.verdicts <<<"$summary")" = '{"AC":2,"WA":1}' ]
}

@test "JavaScript for SpiderMonkey's shell is skipped" {
	small p
	printf 'var n;\nwhile ((n = readline()))\n\tprint(parseInt(n) + 1);\n' >p/submissions/accepted/shell.js
	printf 'const readline = require("readline").createInterface({input: process.stdin});\nreadline.on("line", l => console.log(+l + 1));\n' >p/submissions/accepted/node.js
	printf 'const lines = require("fs").readFileSync(0, "utf8").split("\\n");\nconst readline = () => lines.shift();\nconsole.log(+readline() + 1);\n' >p/submissions/accepted/own.js
	judge 0 p
	[ "$(jq -c .summary.verdicts <<<"$summary")" = '{"AC":3,"SKIP":1}' ]
	[ "$(of accepted/shell.js .message)" = "no runner has the language of SpiderMonkey files" ]
}

@test "a validator whose build makes no program: the message says so" {
	small p 'validation: custom'
	mkdir -p p/output_validators/v
	printf '#!/bin/sh\nln -s v.sh run\n' >p/output_validators/v/build
	echo 'exit 42' >p/output_validators/v/v.sh
	judge 13 p
	mv p/output_validators/v/{v.sh,run} # no fault of a build that makes nothing
	echo : >p/output_validators/v/build
	sed -i '1i #!/bin/sh' p/output_validators/v/run
	judge 0 p
	rm p/output_validators/v/run
	judge 13 p
	[[ $stderr == *"the output validator cannot be used: its build made no file called run"* ]]
}

@test "interactive: a rejected submission is ended at once" {
	small p $'validation: custom interactive\n'
	mkdir -p p/output_validators p/submissions/{wrong_answer,run_time_error}
	rm p/submissions/accepted/a.py
	cat >p/output_validators/v.py <<-'END'
		import sys
		open(sys.argv[3] + "judgemessage.txt", "x").write("no")
		print(1, flush=True)
		sys.exit(42 if sys.stdin.readline() == "2\n" else 43)
	END
	printf 'while True: print(7, flush=True)\n' >p/submissions/wrong_answer/spam.py
	echo 100 >p/.timelimit
	judge 0 p
	[ "$(of wrong_answer/spam.py '[.verdict, .message, .cpu_us < 50000000] | tojson')" = '["WA","no",true]' ]
	# It computes, and runs out of wall clock the first time.
	cat >p/submissions/accepted/starved.py <<-END
		import time
		while time.time() < $(($(date +%s) + 5)):
		    end = time.process_time() + 0.03
		    while time.process_time() < end: pass
		    time.sleep(0.07)
		print(2)
	END
	echo 1 >p/.timelimit
	judge 0 p accepted
}

@test "Python: a syntax error in any file is a compile error" {
	small p
	mkdir -p p/submissions/{compiler_error/folder,run_time_error}
	printf 'print(int(input()) + 1\n' >p/submissions/compiler_error/a.py
	echo 'import other' >p/submissions/compiler_error/folder/main.py
	echo 'else: 1' >p/submissions/compiler_error/folder/other.py
	echo 'print(2, file=nowhere)' >p/submissions/run_time_error/name.py
	echo 'eval("1 +")' >p/submissions/run_time_error/later.py
	judge 0 p
	[ "$(of compiler_error/a.py .message)" = "'(' was never closed (a.py, line 1)" ]
	[ "$(of compiler_error/folder .message)" = "invalid syntax (other.py, line 1)" ]
	[ "$(jq -c '.summary | [.verdicts, .cases_run] | tojson' <<<"$summary")" = '"[{\"AC\":1,\"RTE\":2,\"CE\":2},3]"' ]
}

@test "a case without an answer: the judge's error says which file is missing" {
	small p
	echo 3 >p/data/secret/2.in
	judge 13 p
	[ "$(of accepted/a.py '[.verdict, .case, .message] | tojson')" = '["JE","secret/2","data/secret/2.in has no answer: data/secret/2.ans is missing"]' ]
}

@test "an archive of another kind is no file of tasks" {
	small p
	tar czf p.tar.gz p
	judge 2 p.tar.gz
	[[ $stderr == *"p.tar.gz: a problem package is a folder or a ZIP archive"* ]]
}
