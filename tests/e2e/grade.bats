#!/usr/bin/env bats
# sallyport grade over the packages of tests/data/packages: verdicts, scores, expectations, attacks, packages and validators that are wrong.
# shellcheck disable=SC2016 # programs in single quotes are meant for the jail

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	export DIR=$BATS_FILE_TMPDIR PACKAGES=$SP_ROOT/tests/data/packages XDG_CACHE_HOME=$BATS_FILE_TMPDIR/cache
	chmod 0755 "$DIR"
	unset SALLYPORT_CONFIG
	[ "$(id -u)" = 0 ] || export SALLYPORT_JAILER_WEAKER_LIMITS=true
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

# judge STATUS ARGUMENT…: lines in $output, the summary in $summary
judge() {
	local status_wanted=$1
	shift
	run "-$status_wanted" --separate-stderr "$SP_BIN/sallyport" grade --json "$@"
	# shellcheck disable=SC2154 # bats sets stderr
	echo "$output" "$stderr"
	summary=$(tail -1 <<<"$output")
}

# of SUBMISSION FILTER: a member of its line
of() {
	jq -r --arg name "$1" "select(.submission == \$name) | $2" <<<"$output"
}

# case_of FOLDER NAME INPUT ANSWER
case_of() {
	mkdir -p "$1"
	printf '%s\n' "$3" >"$1/$2.in"
	printf '%s\n' "$4" >"$1/$2.ans"
}

# small FOLDER: a package with one secret case, input 1, answer 2, and nothing else
small() {
	mkdir -p "$1"/submissions/accepted
	case_of "$1/data/secret" 1 1 2
	printf 'limits: {memory: 256}\n%s' "${2:-}" >"$1/problem.yaml"
	echo 5 >"$1/.timelimit"
	echo 'print(int(input()) + 1)' >"$1/submissions/accepted/a.py"
}

@test "each verdict, several languages, several files, a language without a runner" {
	judge 0 "$PACKAGES/sums"
	[ "$(jq -c '.summary | [.submissions, .as_expected, .unexpected, .skipped, .judge_errors]' <<<"$summary")" = '[9,8,0,1,0]' ]
	[ "$(jq -c '.summary.verdicts' <<<"$summary")" = '{"AC":5,"WA":1,"TLE":1,"RTE":1,"SKIP":1}' ]
	[ "$(jq ".summary.time_limit_s == 1" <<<"$summary")" = true ]
	[ "$(of accepted/parts .language)" = cpp ]
	[ "$(of accepted/folder .verdict)" = AC ]
	[ "$(of accepted/old.cob .as_expected)" = null ]
	[[ "$(of accepted/old.cob .message)" == *".cob"* ]]
	[ "$(of wrong_answer/int.py .case)" = secret/02-float ]
	[ "$(of accepted/a.cpp '[.cases_run, .cases, (.expected | join(" "))] | join(" ")')" = "4 4 AC" ]
	[ "$(jq -c 'select(.submission) | .groups' <<<"$output" | sort -u)" = '[]' ]
	[ "$(jq -r 'select(.submission) | .submission' <<<"$output")" = "$(jq -r 'select(.submission) | .submission' <<<"$output" | LC_ALL=C sort)" ]
	# Compiled once: the second time everything comes out of the cache.
	judge 0 "$PACKAGES/sums" accepted
	[ "$(jq -c '.summary | [.submissions, .compiled, .from_cache]' <<<"$summary")" = '[6,0,3]' ]
}

@test "an interactive problem: who is to blame" {
	judge 0 "$PACKAGES/guess"
	[ "$(jq -c .summary.verdicts <<<"$summary")" = '{"AC":2,"WA":2,"TLE":1,"RTE":1}' ]
	[ "$(of wrong_answer/linear.py .message)" = "too many guesses" ]
}

@test "groups with scores, a sample that counts for nothing, a partial score" {
	judge 0 "$PACKAGES/groups"
	[ "$(of accepted/a.py .score)" = 100 ]
	[ "$(of partially_accepted/small.cpp .score)" = 30 ]
	[ "$(of partially_accepted/small.cpp '.groups | map([.name, .verdict, .score]) | tojson')" = \
		'[["sample","AC",1],["secret","AC",30],["secret/1","AC",30],["secret/2","WA",0]]' ]
	[ "$(of wrong_answer/one.py .score)" = 0 ]
}

@test "several passes, constants, rules of submissions.yaml" {
	judge 0 "$PACKAGES/passes"
	[ "$(jq -c .summary.verdicts <<<"$summary")" = '{"AC":1,"WA":1,"RTE":1}' ]
	[ "$(of rejected/exit.py '.expected | join(" ")')" = RTE ]
}

@test "programs: extensions, entry points, include/LANGUAGE, cases that are links" {
	small p
	ln -s 1.in p/data/secret/2.in
	ln -s 1.ans p/data/secret/2.ans
	local folder=p/submissions/accepted name
	for name in a.c++ b.C c.cc d.cpp; do
		printf '#include "answer.h"\n#include <cstdio>\nint main() { std::printf("%%d", answer); }\n' >$folder/$name
	done
	printf '#include <stdio.h>\nint main(void) { puts("2"); return 0; }\n' >$folder/e.c
	echo 'import answer; print(answer.answer)' >$folder/f.py3
	echo 'echo 2' >$folder/g.bash
	for name in __main__ main entrypoint; do
		mkdir $folder/$name
		echo 'import other' >$folder/$name/$name.py
		echo 'print(2)' >$folder/$name/other.py
		echo 'print("the wrong one")' >$folder/$name/aaa.py
	done
	mkdir -p p/include/cpp p/include/python
	echo 'enum { answer = 2 };' >p/include/cpp/answer.h
	echo 'answer = 2' >p/include/python/answer.py
	judge 0 p
	[ "$(jq -c '[.summary.submissions, .summary.verdicts]' <<<"$summary")" = '[11,{"AC":11}]' ]
	[ "$(of accepted/b.C '[.language, .cases_run] | join(" ")')" = "cpp 2" ]
}

@test "legacy groups: nested, inherited, accept_if_any_accepted, ignore_sample" {
	small p 'type: scoring'
	mkdir p/data/sample
	case_of p/data/sample 1 1 999 # nobody gets the sample right
	rm p/data/secret/1.*
	case_of p/data/secret/any 1 1 2
	case_of p/data/secret/any 2 1 999
	case_of p/data/secret/sum/deep 1 1 2
	case_of p/data/secret/sum/deep 2 3 4
	case_of p/data/secret/sum 9 5 6
	printf 'grader_flags: ignore_sample\naccept_score: 10\nrange: 0 1000\non_reject: continue\n' >p/data/testdata.yaml
	printf 'grader_flags: sum\n' >p/data/secret/testdata.yaml
	printf 'grader_flags: max accept_if_any_accepted\n' >p/data/secret/any/testdata.yaml
	printf 'accept_score: 3\n' >p/data/secret/sum/testdata.yaml
	judge 0 p
	[ "$(of accepted/a.py '.groups | map([.name, .verdict, .score]) | tojson')" = \
		'[["sample","WA",0],["secret","AC",19],["secret/any","AC",10],["secret/sum","AC",9],["secret/sum/deep","AC",6]]' ]
	[ "$(of accepted/a.py '[.verdict, .score] | tojson')" = '["AC",19]' ]
}

@test "rules of submissions.yaml for parts of the data" {
	cp -r "$PACKAGES/points" p
	rule() { # STATUS MESSAGE RULE
		echo "$3" >p/submissions/submissions.yaml
		judge "$1" p partly/small.py
		[ "$1" = 0 ] || [[ "$(of partly/small.py .message)" == *"$2"* ]]
		[ "$(of partly/small.py .as_expected)" = "$([ "$1" = 0 ] && echo true || echo false)" ]
	}
	rule 0 "" 'partly/small.py: {sample: {permitted: [AC]}, secret/1: {permitted: [AC], score: 20}, secret: {required: [WA]}}'
	rule 1 "does not permit in secret" 'partly/small.py: {secret: {permitted: [AC]}}'
	rule 1 "secret/1 has 20 points, submissions.yaml expects 30 to 40" 'partly/*.py: {secret/1: {score: [30, 40]}}'
	rule 1 "no case in secret/1 has a verdict" 'partly/small.py: {secret/1: {required: [TLE, MLE]}}'
}

@test "scores of 2025-09: sum, min, require_pass, multipliers" {
	judge 0 "$PACKAGES/points"
	[ "$(of accepted/a.py .score)" = 100 ]
	[ "$(of partly/small.py .score)" = 20 ]
	[ "$(of partly/half.py .score)" = 50 ]
	[ "$(of partly/small.py '.groups[] | select(.name == "secret/3") | .name')" = "" ] # was not run: secret/2 did not pass
	[ "$(of wrong_answer/none.py '[.verdict, .score] | tojson')" = '["WA",0]' ]
}

@test "a submission from elsewhere, and what is not there" {
	echo 'print(sum(map(float, input().split())))' >mine.py
	judge 0 "$PACKAGES/sums" "$PWD/mine.py" wrong_answer/int.py
	[ "$(of "$PWD/mine.py" '[.verdict, .expected, .as_expected] | tojson')" = '["AC",null,null]' ]
	judge 2 "$PACKAGES/sums" nowhere.py
	[[ $stderr == *"nowhere.py is neither below submissions/ nor a file"* ]]
	judge 2 .
	[[ $stderr == *"not a problem package: it has no problem.yaml"* ]]
	small p
	rm -r p/data/secret/*
	judge 2 p
	[[ $stderr == *"no test cases"* ]]
	small q
	rm q/.timelimit
	rm -r q/submissions/accepted
	mkdir -p q/submissions/wrong_answer
	echo 'print(1)' >q/submissions/wrong_answer/a.py
	judge 3 q
	[[ $stderr == *"--time-limit"* ]]
	judge 0 --time-limit 3 q
}

@test "limits of a package above the caps of a server" {
	small p
	printf 'limits: {memory: 3000, output: 20, validation_time: 400}\n' >p/problem.yaml
	echo 140 >p/.timelimit
	echo 'x = bytearray(18 << 20); print("2" + " " * len(x))' >p/submissions/accepted/long.py
	judge 0 p
}

@test "the time limit comes from the accepted submissions" {
	small p
	rm p/.timelimit
	mkdir p/submissions/time_limit_exceeded
	printf 'while True:\n    pass\n' >p/submissions/time_limit_exceeded/a.py
	judge 0 p
	[ "$(jq ".summary.time_limit_s == 1" <<<"$summary")" = true ]
	judge 0 p time_limit_exceeded # the accepted one runs, and is not reported
	[ "$(jq -c '.summary | [.submissions, .time_limit_s == 1]' <<<"$summary")" = '[1,true]' ]
}

@test "something that is not as expected, a compile error, too much output, too much memory, a deep stack" {
	small p
	echo 'print(3)' >p/submissions/accepted/wrong.py
	echo 'int main( {' >p/submissions/accepted/bad.cpp
	printf 'while True:\n    print("x" * 100000)\n' >p/submissions/accepted/long.py
	echo 'x = bytearray(300 << 20)' >p/submissions/accepted/large.py
	cat >p/submissions/accepted/deep.cpp <<-'END'
		#include <cstdio>
		__attribute__((noinline)) int deep(int n) { volatile char a[4096]; a[n % 4096] = 1; return n ? deep(n - 1) + a[n % 4096] : 0; }
		int main() { int n; scanf("%d", &n); printf("%d\n", deep(25000) / 25000 + n); }
	END
	judge 1 p
	[ "$(of accepted/deep.cpp .verdict)" = AC ] # 100 MiB
	[ "$(of accepted/wrong.py '[.verdict, .as_expected] | tojson')" = '["WA",false]' ]
	[ "$(of accepted/bad.cpp .verdict)" = CE ]
	[[ "$(of accepted/bad.cpp .message)" == *error* ]]
	[ "$(of accepted/long.py .verdict)" = OLE ]
	[ "$(of accepted/large.py .verdict)" = "$([ "$(id -u)" = 0 ] && echo MLE || echo RTE)" ]
	[ "$(jq .summary.unexpected <<<"$summary")" = 4 ]
}

@test "neither a compiler nor a program sees the answers" {
	small p
	cat >p/submissions/accepted/include.cpp <<-'END'
		#include <cstdio>
		int main() { printf("%d\n",
		#include "../../data/secret/1.ans"
		); }
	END
	cat >p/submissions/accepted/incbin.c <<-'END'
		#include <stdio.h>
		__asm__("answer: .incbin \"/data/../data/secret/1.ans\"\n.byte 0\n");
		extern char answer[];
		int main(void) { puts(answer); }
	END
	cat >p/submissions/accepted/look.py <<-'END'
		import os
		for top in ("/data", "/code", "/tmp", "/home", "/run", "/var"):
		    for folder, _, names in os.walk(top):
		        for name in names:
		            assert not name.endswith(".ans"), folder + name
		for path in ("/data/judge.ans", "data/secret/1.ans", "../data/secret/1.ans"):
		    assert not os.path.exists(path)
		print(int(input()) + 1)
	END
	ln -s /etc/passwd p/submissions/accepted/passwd.py
	judge 3 p
	[ "$(of accepted/include.cpp .verdict)" = CE ]
	[ "$(of accepted/incbin.c .verdict)" = CE ]
	[ "$(of accepted/look.py .verdict)" = AC ]
	[[ "$(of accepted/passwd.py .message)" == *"leads out of the package"* ]]
}

@test "validators that fail are the judge's errors, and the other cases go on" {
	local kind
	for kind in 'sys.exit(7)' 'sys.exit(0)' 'os.abort()' 'raise ValueError' \
		'open(sys.argv[3] + "nextpass.in", "w").write("x"); sys.exit(43)'; do
		small p 'validation: custom'
		mkdir -p p/output_validators
		printf 'import os, sys\n%s\n' "$kind" >p/output_validators/v.py
		judge 3 p
		[ "$(of accepted/a.py .verdict)" = JE ]
		rm -r p
	done
	small p 'validation: custom'
	mkdir -p p/output_validators
	printf 'import sys\nopen("/etc/x", "w")\n' >p/output_validators/v.py
	judge 3 p
	[[ "$(of accepted/a.py .message)" == *"exited with status 1"* ]]
	echo 'int main( {' >p/output_validators/v.cpp
	rm p/output_validators/v.py
	judge 3 p
	[[ $stderr == *"the output validator cannot be used"* ]]
}

@test "a validator that never ends, and one that prints for ever" {
	local body
	for body in 'while True: pass' 'while True: print("x" * 100000)'; do
		small p $'validation: custom\nlimits: {validation_time: 1, validation_output: 1}\n'
		sed -i 1d p/problem.yaml
		mkdir -p p/output_validators
		echo "$body" >p/output_validators/v.py
		judge 3 p
		[[ "$(of accepted/a.py '[.verdict, .message] | join(" ")')" == "JE the validator failed: "* ]]
		rm -r p
	done
}

# both KIND: a validator in Python that accepts what contains KIND
both() {
	printf 'import helper, sys\nout = sys.stdin.read()\nopen(sys.argv[3] + "judgemessage.txt", "a").write("no %s")\nsys.exit(helper.ends["%s" in out])\n' "$1" "$1"
}

@test "several validators: an output has to please all of them; parts of programs are no programs" {
	small p 'validation: custom'
	mkdir p/output_validators
	both 2 >p/output_validators/two.py
	both x >p/output_validators/x.py
	echo 'ends = {True: 42, False: 43}' >p/output_validators/helper.py
	echo 'print("2 x")' >p/submissions/accepted/a.py
	mkdir p/submissions/wrong_answer
	echo 'print("2")' >p/submissions/wrong_answer/two.py
	echo 'print("x")' >p/submissions/wrong_answer/x.py
	judge 0 p
	[ "$(jq -c .summary.verdicts <<<"$summary")" = '{"AC":1,"WA":2}' ]
	[ "$(of wrong_answer/two.py .message)" = "no x" ] # and nothing of what the other one wrote
	[ "$(of wrong_answer/x.py .message)" = "no 2" ]
	# A folder, in another language, with a header; and one that holds no program.
	mkdir p/output_validators/even p/output_validators/texts
	echo 'enum { NO = 43 };' >p/output_validators/even/even.h
	echo 'no program' >p/output_validators/texts/README
	printf '#include "even.h"\n#include <stdio.h>\nint main(void) { int c, n = 0; while ((c = getchar()) != EOF) n++; return n %% 2 ? NO : 42; }\n' >p/output_validators/even/even.c
	judge 0 p accepted # "2 x" and a newline
	echo 'print("2 x!")' >p/submissions/wrong_answer/odd.py
	judge 0 p wrong_answer/odd.py
	[ "$(of wrong_answer/odd.py .verdict)" = WA ]
	# One that fails is the judge's error, whatever the others say.
	echo 'import sys; sys.exit(7)' >p/output_validators/y.py
	judge 3 p accepted
	[ "$(of accepted/a.py .verdict)" = JE ]
}

@test "the parts of one validator, side by side" {
	small p 'validation: custom'
	mkdir p/output_validators
	printf 'int check(int, int);\n#include <cstdio>\nint main(int, char **argv) { int a, b; scanf("%%d", &a); fscanf(fopen(argv[2], "r"), "%%d", &b); return check(a, b); }\n' >p/output_validators/validate.cpp
	printf 'int check(int a, int b) { return a == b ? 42 : 43; }\n' >p/output_validators/check.cpp
	judge 0 p
}

@test "testlib's checkers: their arguments, their exit codes" {
	small p 'validation: custom'
	mkdir p/output_validators
	cat >p/output_validators/check.cpp <<-'END'
		#include <cstdio>
		#include <cstdlib>
		static void registerTestlibCmd(int argc, char **argv) { if (argc < 4) exit(3); }
		int main(int argc, char **argv)
		{
			int a = 0, b = 0;
			registerTestlibCmd(argc, argv);
			fscanf(fopen(argv[2], "r"), "%d", &a);
			fscanf(fopen(argv[3], "r"), "%d", &b);
			return a == b ? 0 : a == 7 ? 2 : a == 8 ? 3 : 1;
		}
	END
	for n in 3 7 8; do echo "print($n)" >"p/submissions/accepted/$n.py"; done
	judge 3 p
	[ "$(jq -r 'select(.submission) | .verdict' <<<"$output" | paste -sd' ')" = "WA PE JE AC" ]
}

@test "a custom grader, and a validator with build and run" {
	small p $'type: scoring\nvalidation: custom\n'
	case_of p/data/secret 2 5 9
	printf 'grading: custom\non_reject: continue\n' >p/data/secret/testdata.yaml
	mkdir -p p/graders p/output_validators/scripts
	cat >p/graders/grade.py <<-'END'
		import sys
		results = [line.split() for line in sys.stdin]
		print("AC", 10 * sum(r[0] == "AC" for r in results))
	END
	printf '#!/bin/sh\necho "exit 43" > no\necho "read x; test \\"\\$x\\" = \\"\\$(cat \\$2)\\" && exit 42; . /data/no" > check\n' >p/output_validators/scripts/build
	printf '#!/bin/sh\n. /data/check\n' >p/output_validators/scripts/run
	chmod +x p/output_validators/scripts/*
	judge 0 p
	[ "$(of accepted/a.py .score)" = 10 ]
}

@test "ended by a signal: what is complete was printed, exit 5" {
	small p
	printf 'while True:\n    pass\n' >p/submissions/accepted/b.py
	echo 100 >p/.timelimit
	mkfifo out
	"$SP_BIN/sallyport" grade --json -j1 p >out 2>err &
	local pid=$!
	read -r line <out # b.py runs, or will
	[ "$(jq -r .submission <<<"$line")" = accepted/a.py ]
	kill $pid
	local code=0
	wait $pid || code=$? # not by run: a subshell may not know the process
	[ "$code" = 5 ]
	grep -q "interrupted" err
}
