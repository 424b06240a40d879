#!/usr/bin/env bats
# sallyport grade over the packages of tests/data/packages: verdicts, interactive problems, where the submissions come from.
# shellcheck disable=SC2016,SC2154 # programs in single quotes are meant for the jail; the variables are from bats and grade.bash

bats_require_minimum_version 1.5.0
load lib.bash
load grade.bash

@test "each verdict in several languages" {
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

@test "a submission shows no value of its last line" {
	small p
	rm p/submissions/accepted/a.py
	printf 'n = int(input())\nprint(n + 1)\nn\n' >p/submissions/accepted/a.py
	printf 'const n = +require("fs").readFileSync(0, "utf8"); console.log(n + 1)\nn\n' >p/submissions/accepted/b.js
	judge 0 p
	[ "$(jq -c '.summary.verdicts' <<<"$summary")" = '{"AC":2}' ]
}

@test "an interactive problem: who is to blame" {
	judge 0 "$PACKAGES/guess"
	[ "$(jq -c .summary.verdicts <<<"$summary")" = '{"AC":2,"WA":2,"TLE":1,"RTE":1}' ]
	[ "$(of wrong_answer/linear.py .message)" = "too many guesses" ]
}

@test "interactive: a validator that closes its output has said all" {
	small p 'validation: custom interactive'
	mkdir -p p/output_validators p/submissions/wrong_answer
	printf 'import os, sys\nprint(5, flush=True)\nos.close(1)\nsys.exit(42 if sys.stdin.read().split() == ["6"] else 43)\n' >p/output_validators/v.py
	printf 'import sys\nprint(sum(int(x) for x in sys.stdin) + 1)\n' >p/submissions/accepted/a.py
	printf 'import sys\nprint(sum(int(x) for x in sys.stdin))\n' >p/submissions/wrong_answer/a.py
	judge 0 p
	[ "$(jq -c .summary.verdicts <<<"$summary")" = '{"AC":1,"WA":1}' ]
}

@test "interactive: what a rejected submission does counts for nothing" {
	small p $'type: interactive\nproblem_format_version: 2025-09\n'
	rm p/.timelimit
	mkdir -p p/output_validator p/submissions/wrong_answer
	printf 'import sys\nprint(1, flush=True)\nsys.exit(42 if sys.stdin.readline() == "2\\n" else 43)\n' >p/output_validator/v.py
	printf 'print(7, flush=True)\nwhile True: pass\n' >p/submissions/wrong_answer/spins.py
	judge 0 p
	[ "$(jq '.summary | .time_limit_s == 1' <<<"$summary")" = true ]
	[ "$(of wrong_answer/spins.py .verdict)" = WA ]
}

@test "a package without secret data is judged with a warning" {
	small p
	mv p/data/secret p/data/sample
	judge 0 p
	[[ $stderr == *"data/secret has no test cases"* ]]
	judge 1 p --strict
	mv p/data/sample p/data/secret
	judge 0 p --strict
}

@test "interactive: every way to end has its verdict" {
	mkdir -p p/output_validators p/submissions/{accepted,wrong_answer,run_time_error,time_limit_exceeded} p/data/secret
	printf 'validation: custom interactive\nlimits: {memory: 256, time_limit: 1}\n' >p/problem.yaml
	echo 37 >p/data/secret/1.in
	cat >p/output_validators/v.py <<-'END'
		import sys
		secret = int(open(sys.argv[1]).read())
		def reject(why):
		    open(sys.argv[3] + "judgemessage.txt", "w").write(why)
		    sys.exit(43)
		for line in sys.stdin:
		    word = line.split()
		    if len(word) != 2 or word[0] not in "QA" or not word[1].isdigit(): reject("not understood")
		    if word[0] == "A":
		        if sys.stdin.readline(): reject("and more")
		        sys.exit(42) if int(word[1]) == secret else reject("not that")
		    print("<" if int(word[1]) < secret else ">" if int(word[1]) > secret else "=", flush=True)
		reject("no answer")
	END
	local to=p/submissions
	printf 'l, h = 1, 100\nwhile l < h:\n m = (l + h) // 2\n print("Q", m, flush=True)\n s = input()\n if s == "<": l = m + 1\n else: h = m\nprint("A", l)\n' >$to/accepted/a.py
	echo 'print("hello")' >$to/wrong_answer/word.py
	echo 'pass' >$to/wrong_answer/silent.py
	echo 'print("A 5")' >$to/wrong_answer/wrong.py
	printf 'print("A 37")\nprint("A 37")\n' >$to/wrong_answer/more.py
	printf 'import os, time\nos.close(1)\ntime.sleep(0.2)\n' >$to/wrong_answer/closes.py
	printf 'while True: print("Q x")\n' >$to/wrong_answer/floods.py
	printf 'print("Q", 5, flush=True)\ninput()\n1 / 0\n' >$to/run_time_error/middle.py
	printf 'import sys\nprint("A 37", flush=True)\nsys.exit(1)\n' >$to/run_time_error/after.py
	printf 'print("Q 5", flush=True)\ninput()\ninput()\n' >$to/time_limit_exceeded/waits.py
	judge 0 p
	[ "$(jq -c '.summary | [.verdicts, .as_expected]' <<<"$summary")" = '[{"AC":1,"WA":6,"TLE":1,"RTE":2},10]' ]
	[ "$(jq -r 'select(.verdict == "WA") | .message' <<<"$output" | paste -sd,)" = "no answer,not understood,and more,no answer,not understood,not that" ]
	# Both sides open what they talk through by name.
	cat >$to/accepted/named.sh <<-'END'
		exec 4</dev/stdin
		l=1 h=100
		while [ $l -lt $h ]; do
			m=$(((l + h) / 2))
			echo "Q $m" >/dev/stdout
			read -r s <&4
			if [ "$s" = "<" ]; then l=$((m + 1)); else h=$m; fi
		done
		echo "A $l" | tee /dev/stderr
	END
	sed -i '1s/.*/import sys; sys.stdin = open("\/dev\/stdin"); sys.stdout = open("\/dev\/stdout", "w")/' p/output_validators/v.py
	judge 0 p accepted
	[ "$(of accepted/named.sh .verdict)" = AC ]
	# The validator talks to one run of the program after the other.
	printf 'problem_format_version: 2025-09\ntype: [interactive, multi-pass]\nlimits: {memory: 256, time_limit: 1, validation_passes: 3}\n' >p/problem.yaml
	cat >p/output_validators/v.py <<-'END'
		import os, sys
		n, first = int(open(sys.argv[1]).read()), not os.path.exists(sys.argv[3] + "seen")
		print(n, flush=True)
		if sys.stdin.readline().strip() != str(2 * n): sys.exit(43)
		if first:
		    open(sys.argv[3] + "seen", "w").close()
		    open(sys.argv[3] + "nextpass.in", "w").write("38")
		sys.exit(42)
	END
	rm $to/*/*
	rmdir $to/time_limit_exceeded
	echo 'print(int(input()) * 2)' >$to/accepted/a.py
	echo 'print(74)' >$to/wrong_answer/once.py
	printf 'n = int(input())\nassert n == 37\nprint(74)\n' >$to/run_time_error/once.py
	judge 0 p
	[ "$(jq -c .summary.verdicts <<<"$summary")" = '{"AC":1,"WA":1,"RTE":1}' ]
}

@test "submissions that misbehave get a verdict each" {
	small p
	rm p/submissions/accepted/a.py
	mkdir p/submissions/rejected
	local to=p/submissions/rejected
	echo 'int no_main(void) { return 0; }' >$to/no_main.c
	printf 'import itertools\nfor i in itertools.count():\n open("/data/%%d" %% i, "wb").write(bytes(1 << 24))\n' >$to/fills.py
	printf 'import os, time\nif os.fork() == 0:\n time.sleep(0.5)\n print(2, flush=True)\n' >$to/orphan.py
	printf 'import os\nwhile True: os.fork()\n' >$to/forks.py
	printf 'import os\nos.kill(os.getppid(), 9)\nos.kill(-1, 9)\n' >$to/kills.py
	printf 'import sys\nsys.stderr.write("x" * (9 << 20))\nprint(2)\n' >$to/talks.py
	echo 'print(int(input()) + 1)' >p/submissions/accepted/z.py
	mkdir -p p/submissions/accepted
	judge 1 p # no_main.c is CE, which no folder of the format expects
	[ "$(of rejected/no_main.c .verdict)" = CE ]
	[ "$(of accepted/z.py .verdict)" = AC ]
	[ "$(jq -c '.summary | [.submissions, .unexpected, .judge_errors]' <<<"$summary")" = '[7,1,0]' ]
	[ "$(of rejected/orphan.py .verdict)" = WA ]
}

@test "a problem has several passes" {
	judge 0 "$PACKAGES/passes"
	[ "$(jq -c .summary.verdicts <<<"$summary")" = '{"AC":1,"WA":1,"RTE":1}' ]
	[ "$(of rejected/exit.py '.expected | join(" ")')" = RTE ]
}

@test "jails that are made ahead: one for each run, whichever program it is of" {
	small p
	local n
	for ((n = 2; n <= 12; n++)); do case_of p/data/secret "$n" "$n" $((n + 1)); done
	echo 'import os
for place in "/tmp/there", "/data/there":
    assert not os.path.exists(place)
    open(place, "w").close()
print(int(input()) + 1)' >p/submissions/accepted/b.py
	cat >p/submissions/accepted/c.c <<-'END'
		#include <stdio.h>
		#include <unistd.h>
		int main(void)
		{
			int n;

			if (symlink("x", "/tmp/there") || symlink("x", "/data/there") || scanf("%d", &n) < 1)
				return 1;
			printf("%d\n", n + 1);
			return 0;
		}
	END
	mkdir p/submissions/run_time_error
	echo 'import os; n = int(input()); os.kill(os.getpid(), 9 if n == 7 else 0); print(n + 1)' >p/submissions/run_time_error/d.py
	judge 0 p -j 3
	[ "$(jq -c '.summary | [.submissions, .verdicts, .judge_errors]' <<<"$summary")" = '[4,{"AC":3,"RTE":1},0]' ]
	for n in a.py b.py c.c; do [ "$(of accepted/$n .cases_run)" = 12 ]; done
	[ "$(of run_time_error/d.py .case)" = secret/7 ]
}

@test "grade judges a program outside of the package" {
	echo 'print(sum(map(float, input().split())))' >mine.py
	judge 0 "$PACKAGES/sums" "$PWD/mine.py" wrong_answer/int.py
	[ "$(of "$PWD/mine.py" '[.verdict, .expected, .as_expected] | tojson')" = '["AC",null,null]' ]
	judge 3 "$PACKAGES/sums" nowhere.py
	[[ $stderr == *"nowhere.py is neither below submissions/ nor a file"* ]]
}

@test "DOMjudge's packages need no problem.yaml" {
	small ini
	rm ini/problem.yaml ini/.timelimit
	printf "probid = A\ntimelimit = 3\n" >ini/domjudge-problem.ini
	judge 0 ini
	[ "$(jq -c '.summary | [.verdicts, .time_limit_s == 3]' <<<"$summary")" = '[{"AC":1},true]' ]
	/usr/bin/python3 -m zipfile -c ini.zip ini
	judge 0 ini.zip
}

@test "a package that lacks what grading needs is refused with what is missing" {
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
	judge 13 q
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
