#!/usr/bin/env bats
# sallyport grade: limits, validators, graders, attacks, and what ends it before its time.
# shellcheck disable=SC2016,SC2154 # programs in single quotes are meant for the jail; the variables are from bats and grade.bash

bats_require_minimum_version 1.5.0
load lib.bash
load grade.bash

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

# busy N: a program that needs N hundredths of a second of processor time, and gives the right answer
busy() {
	printf 'import time\nwhile time.process_time() < %d / 100: pass\nprint(int(input()) + 1)\n' "$1"
}

@test "a time limit from the submissions: 2025-09 counts what may not be too slow, legacy what is accepted in full" {
	small p $'problem_format_version: 2025-09\n'
	sed -i '1s/.*/limits: {memory: 256, time_resolution: 0.1}/' p/problem.yaml
	rm p/.timelimit
	mkdir p/submissions/{wrong_answer,time_limit_exceeded}
	{ busy 30 && echo 'print(7)'; } >p/submissions/wrong_answer/slow.py
	busy 5000 >p/submissions/time_limit_exceeded/a.py
	judge 0 p
	limit=$(jq .summary.time_limit_s <<<"$summary")
	[ "$(jq -n "$limit >= 0.6 and $limit < 3")" = true ] # at least twice the 0.3 s
	[[ "$(of time_limit_exceeded/a.py .message)" == "more than "*" s" ]]
	# Named submissions need those that make the limit, which are run but not reported.
	judge 0 p time_limit_exceeded
	[ "$(jq -c '[.summary.submissions, .summary.time_limit_s >= 0.6] | tojson' <<<"$summary")" = '"[1,true]"' ]
	# Too slow, but not by time_limit_to_tle: the limit holds, and the message says what does not fit.
	printf 'limits: {memory: 256, time_resolution: 0.1, time_multipliers: {time_limit_to_tle: 40}}\nproblem_format_version: 2025-09\n' >p/problem.yaml
	rm -r p/submissions/wrong_answer
	busy 50 >p/submissions/time_limit_exceeded/a.py
	judge 0 p
	[[ "$(of time_limit_exceeded/a.py .message)" == *"time_limit_to_tle wants at least"* ]]
	# Legacy: neither a wrong one nor one with a part of the points makes the limit.
	printf 'type: scoring\nlimits: {memory: 256}\n' >p/problem.yaml
	printf 'range: 0 2\non_reject: continue\n' >p/data/testdata.yaml
	mkdir p/submissions/partially_accepted
	rm -r p/submissions/time_limit_exceeded
	case_of p/data/secret 2 1 9
	busy 9000 >p/submissions/partially_accepted/slow.py
	judge 1 p partially_accepted accepted
	[ "$(jq '.summary.time_limit_s < 8' <<<"$summary")" = true ]
	[ "$(of partially_accepted/slow.py .verdict)" != "" ]
}

@test "a time limit can come from parts of the data" {
	small p
	rm p/.timelimit
	printf 'problem_format_version: 2025-09\nlimits: {memory: 256, time_resolution: 0.1}\n' >p/problem.yaml
	case_of p/data/secret 2 2 3
	mkdir p/submissions/time_limit_exceeded
	# One second in the first case, fifty in the second.
	printf 'import time\nn = int(input())\nwhile time.process_time() < (1 if n == 1 else 50): pass\nprint(n + 1)\n' >p/submissions/time_limit_exceeded/part.py
	rules() { # RULE…: of that submission
		printf 'time_limit_exceeded/part.py:\n' >p/submissions/submissions.yaml
		printf '  %s\n' "$@" >>p/submissions/submissions.yaml
	}
	rules 'secret/1: {permitted: [AC]}' 'secret/2: {required: [TLE]}'
	judge 0 p
	[ "$(jq '.summary.time_limit_s >= 2' <<<"$summary")" = true ]
	[ "$(of time_limit_exceeded/part.py '[.verdict, .case, .cases_run, .cpu_us < 30000000] | tojson')" = '["TLE","secret/2",2,true]' ] # the second had the limit
	# Named alone, too: it makes the limit together with what is not reported.
	judge 0 p accepted
	[ "$(jq -c '.summary | [.submissions, .time_limit_s >= 2]' <<<"$summary")" = '[1,true]' ]
	rules 'secret/1: {permitted: [AC], use_for_time_limit: false}'
	judge 1 p
	[ "$(jq '.summary.time_limit_s < 2' <<<"$summary")" = true ]
	[ "$(of time_limit_exceeded/part.py .case)" = secret/1 ]
	rules 'secret/1: {use_for_time_limit: lower}'
	judge 0 p
	[ "$(jq '.summary.time_limit_s >= 2' <<<"$summary")" = true ]
	# What has to be too slow in a part goes on there until it is so by time_limit_to_tle.
	mkdir p/submissions/slow
	mv p/submissions/{time_limit_exceeded,slow}/part.py
	rmdir p/submissions/time_limit_exceeded
	printf 'problem_format_version: 2025-09\nlimits: {memory: 256, time_resolution: 0.1, time_multipliers: {time_limit_to_tle: 40}}\n' >p/problem.yaml
	printf 'slow/part.py: {secret/1: {required: [TLE]}}\n' >p/submissions/submissions.yaml
	judge 0 p
	[[ "$(of slow/part.py .message)" == *"time_limit_to_tle wants at least"* ]]
	printf 'slow/part.py: {secret/1: {permitted: [WA, TLE]}}\n' >p/submissions/submissions.yaml
	judge 0 p
	[[ "$(of slow/part.py .message)" == "more than "*" s" ]]
}

@test "use_for_time_limit is of its rule: a submission is left out by every rule that would count it" {
	small p
	rm p/.timelimit
	printf 'problem_format_version: 2025-09\nlimits: {memory: 256, time_resolution: 0.1}\n' >p/problem.yaml
	busy 200 >p/submissions/accepted/slow.py
	limit() { # STATUS RULE…: is the limit by the slow one?
		local status=$1
		shift
		printf '%s\n' "$@" >p/submissions/submissions.yaml
		judge "$status" p
		[ "$(of accepted/slow.py .verdict)" = "$([ "$status" = 0 ] && echo AC || echo TLE)" ]
	}
	limit 0 'accepted/slow.py: {use_for_time_limit: false}' # its folder's rule counts it
	limit 1 'accepted: {use_for_time_limit: false}' 'accepted/a.py: {permitted: [AC]}'
	limit 0 'accepted: {use_for_time_limit: false}' 'accepted/*.py: {permitted: [AC]}'
	limit 1 'accepted: {use_for_time_limit: false}' 'accepted/*.py: {permitted: [AC], use_for_time_limit: false}' 'accepted/a.py: {use_for_time_limit: lower}'
	# Out of the known folders, by one word.
	mkdir p/submissions/own
	mv p/submissions/accepted/slow.py p/submissions/own/
	echo 'own/slow.py: {use_for_time_limit: lower}' >p/submissions/submissions.yaml
	judge 0 p
	[ "$(of own/slow.py '[.verdict, .expected] | tojson')" = '["AC",["AC","WA","RTE"]]' ]
	echo 'own/slow.py: {use_for_time_limit: upper}' >p/submissions/submissions.yaml
	judge 0 p
	[ "$(of own/slow.py '[.verdict, .expected] | tojson')" = '["TLE",["WA","TLE","RTE"]]' ]
}

@test "--resume: what depends on a time limit from the submissions is judged again where they make another" {
	small p
	rm p/.timelimit
	mkdir p/submissions/time_limit_exceeded
	printf 'problem_format_version: 2025-09\nlimits: {memory: 256, time_resolution: 2}\n' >p/problem.yaml
	busy 300 >p/submissions/time_limit_exceeded/slow.py
	judge 0 p --results r.db
	[ "$(of time_limit_exceeded/slow.py .verdict)" = TLE ]
	judge 0 p --resume --results r.db
	[ "$(jq '.summary.time_limit_s == 2' <<<"$summary")" = true ]
	busy 170 >p/submissions/accepted/a.py
	judge 1 p --resume --results r.db
	[ "$(jq '.summary.time_limit_s >= 4' <<<"$summary")" = true ]
	[ "$(of time_limit_exceeded/slow.py .verdict)" = AC ]
}

@test "C++: a program of any standard compiles" {
	small p
	printf '#include <bits/stdc++.h>\nusing namespace std;\nint data[10], size, n;\nint main() { cin >> n; data[size++] = n; cout << data[0] + size << endl; }\n' >p/submissions/accepted/old.cpp
	printf '#include <bits/stdc++.h>\nusing namespace std;\nint main() { int n; cin >> n; vector<int> v{n}; cout << ssize(v) + n + ranges::max(v) - n << endl; }\n' >p/submissions/accepted/new.cpp
	printf '#include <bits/stdc++.h>\nusing namespace std;\nint main() { ranges::sort(none); }\n' >p/submissions/accepted/wrong.cpp
	printf '#include <cstdio>\nint main() { char line[10]; int n; gets(line); sscanf(line, "%%d", &n); printf("%%d\\n", n + 1); }\n' >p/submissions/accepted/older.cpp
	judge 1 p
	[ "$(of accepted/older.cpp .verdict)" = AC ]
	[ "$(of accepted/old.cpp '[.verdict, .message] | tojson')" = '["AC",""]' ]
	[ "$(of accepted/wrong.cpp .verdict)" = CE ]
	[[ "$(of accepted/wrong.cpp .message)" == *"none"* ]]
	[[ "$(of accepted/wrong.cpp .message)" != *"ranges"*"not been declared"* ]] # what the newer standard says
	judge 0 p accepted/old.cpp
	[ "$(jq .summary.from_cache <<<"$summary")" = 1 ]
}

@test "a program that computes past the wall clock is tried again" {
	small p
	mkdir p/submissions/time_limit_exceeded
	echo 1 >p/.timelimit # so the wall clock has 3 s
	cat >p/submissions/accepted/starved.py <<-'END'
		import time
		until = int(input())
		while time.time() < until:
		    end = time.process_time() + 0.03
		    while time.process_time() < end: pass
		    time.sleep(0.07)
		print(2)
	END
	rm p/submissions/accepted/a.py
	printf 'import time\ntime.sleep(4)\nprint(2)\n' >p/submissions/time_limit_exceeded/sleeps.py
	echo $(($(date +%s) + 5)) >p/data/secret/1.in # over before a second run of it is
	judge 0 p -j 2
}

@test "a pass that is tried again begins with the feedback that it had, not with what the failed try left" {
	small p $'type: [interactive, multi-pass]\nproblem_format_version: 2025-09\n'
	echo 1 >p/.timelimit # so the wall clock has 3 s
	mkdir p/output_validator
	cat >p/output_validator/v.py <<-'END'
		import os, sys
		folder = sys.argv[3]
		number = len(open(folder + "state").read()) if os.path.exists(folder + "state") else 0
		open(folder + "state", "a").write("x")
		open(folder + "judgemessage.txt", "a").write("pass %d " % number)
		if number == 0: open(folder + "nextpass.in", "w").write(open(sys.argv[1]).read())
		print(number, open(sys.argv[1]).read(), flush=True)
		sys.exit(42 if sys.stdin.readline() == "done %d\n" % number and number < 2 else 43)
	END
	cat >p/submissions/accepted/starved.py <<-'END'
		import time
		number, until = map(int, input().split())
		while number == 1 and time.time() < until:
		    end = time.process_time() + 0.03
		    while time.process_time() < end: pass
		    time.sleep(0.07)
		print("done", number)
	END
	rm p/submissions/accepted/a.py
	echo $(($(date +%s) + 5)) >p/data/secret/1.in # over before a second run of the second pass
	judge 0 p
	[ "$(of accepted/starved.py .verdict)" = AC ]
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

@test "a validator that fails is a judge error of its case" {
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

# Ends the jail in which somebody sleeps for $SP_ASLEEP s, as soon as there is one: its init is the sleeper's parent's parent.
kill_sandbox() {
	local sleeper
	sp_until "" sp_asleep
	sleeper=$(pgrep -fx "sleep $SP_ASLEEP")
	kill -KILL "$(ps -o ppid= -p "$(ps -o ppid= -p "$sleeper" | xargs)" | xargs)"
	sp_until "" gone "$sleeper"
}
gone() {
	! kill -0 "$1" 2>/dev/null
}

@test "a sandbox that fails is tried again" {
	[ "$(id -u)" -eq 0 ] || skip "only root can kill the init of a jail"
	export SP_ASLEEP=1000.$BASHPID$RANDOM
	small p $'limits: {time_limit: 60, memory: 256}\n'
	sed -i 1d p/problem.yaml
	rm p/submissions/accepted/a.py
	echo "sleep $SP_ASLEEP; echo 2" >p/submissions/accepted/a.bash
	local kills grade status seen=
	for kills in 1 3; do
		"$SP_BIN/sallyport" grade --json p >out 2>err 3>&- &
		grade=$! status=0
		for ((i = 0; i < kills; i++)); do kill_sandbox; done
		[ "$kills" = 3 ] || sp_wake
		wait "$grade" || status=$?
		output=$(cat out)
		seen+="$status $(of accepted/a.bash .verdict) "
	done
	echo "$output"
	[ "$seen" = "0 AC 3 JE " ]
	[[ "$(of accepted/a.bash .message)" == "the sandbox of the submission failed: "* ]]
}

@test "a validator has limits of time and output" {
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

@test "every output validator must accept the output" {
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
	# A copy of it that speaks the package format's codes has the format's arguments, too.
	local define
	for define in '#define  OK_EXIT_CODE	42' 'enum { _ok = 42, _wa = 43 };' '// -DOK_EXIT_CODE=42'; do
		printf '%s\nvoid registerTestlibCmd();\nint main(int, char **argv) { return argv[3][6] == 102 ? 42 : 3; } // /data/feedback/\n' \
			"$define" >p/output_validators/check.cpp
		judge 0 p accepted/3.py
	done
}

@test "testlib's checkers: one that its package wraps in a script speaks the format's codes" {
	small p 'validation: custom'
	mkdir -p p/output_validators/check p/submissions/wrong_answer
	cat >p/output_validators/check/check.cpp <<-'END'
		#include <cstdio>
		#include <cstdlib>
		static void registerTestlibCmd(int argc, char **argv) { if (argc < 4) exit(3); }
		int main(int argc, char **argv)
		{
			int a = 0, b = 0;
			registerTestlibCmd(argc, argv);
			return fscanf(fopen(argv[2], "r"), "%d", &a) == 1 && fscanf(fopen(argv[3], "r"), "%d", &b) == 1 && a == b ? 0 : 1;
		}
	END
	printf '#!/bin/sh\nc++ -o checker check.cpp\n' >p/output_validators/check/build
	printf '#!/bin/sh\ncat >out\n"$(dirname "$0")/checker" "$1" out "$2" && exit 42\nexit 43\n' >p/output_validators/check/run
	chmod +x p/output_validators/check/{build,run}
	echo 'print(7)' >p/submissions/wrong_answer/a.py
	judge 0 p
	[ "$(jq -c .summary.verdicts <<<"$summary")" = '{"AC":1,"WA":1}' ]
	# Without it, what the build makes is the checker itself.
	printf '#!/bin/sh\nc++ -o run check.cpp\n' >p/output_validators/check/build
	rm p/output_validators/check/run
	judge 0 p
}

@test "testlib's interactors: what they write beside is a file, never the program's output" {
	small p 'validation: custom interactive'
	mkdir -p p/output_validators p/submissions/{wrong_answer,run_time_error}
	cat >p/output_validators/interact.cpp <<-'END'
		#include <cstdio>
		static FILE *in, *tout, *ans;
		static void registerInteraction(int argc, char **argv)
		{
			in = fopen(argv[1], "r");
			tout = fopen(argv[2], "w");
			ans = argc > 3 ? fopen(argv[3], "r") : nullptr;
		}
		int main(int argc, char **argv)
		{
			int n = 0, wanted = 0, got = 0;
			registerInteraction(argc, argv);
			if (!in || !tout || !ans || fscanf(in, "%d", &n) != 1 || fscanf(ans, "%d", &wanted) != 1)
				return 3;
			printf("%d\n", n);
			fflush(stdout);
			fprintf(tout, "%d\n", wanted);
			fclose(tout);
			if (scanf("%d", &got) != 1) return 8;
			return got == wanted ? 0 : 1;
		}
	END
	echo 'print(7)' >p/submissions/wrong_answer/a.py
	echo 'input()' >p/submissions/wrong_answer/silent.py
	echo 'input(); raise SystemExit(1)' >p/submissions/run_time_error/a.py
	judge 0 p
	[ "$(jq -c .summary.verdicts <<<"$summary")" = '{"AC":1,"WA":2,"RTE":1}' ]
}

@test "legacy: a rejected case has the score of its group" {
	small p $'type: scoring\nvalidation: custom score\nvalidator_flags: [-a, 7]\n'
	case_of p/data/secret 2 5 9
	case_of p/data/secret 3 6 7
	printf 'on_reject: continue\ngrading: custom\nreject_score: 2\n' >p/data/secret/testdata.yaml
	mkdir p/output_validators p/graders
	cat >p/output_validators/v.py <<-'END'
		import sys
		assert sys.argv[4:] == ["-a", "7"]
		open(sys.argv[3] + "score.txt", "w").write("30")
		sys.exit(42 if open(sys.argv[2]).read() == sys.stdin.read() else 43)
	END
	printf 'import sys\nprint("AC", sum({"AC": 1, "WA": 100, "RTE": 1000, "TLE": 10000}[l.split()[0]] * float(l.split()[1]) for l in sys.stdin))\n' >p/graders/g.py
	printf 'n = int(input())\nif n == 6: x = bytearray(300 << 20)\nprint(n + 1)\n' >p/submissions/accepted/a.py
	judge 0 p
	[ "$(of accepted/a.py .score)" = 2230 ]
}

@test "a package may bring its own grader" {
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
	local said
	for said in "AC nan" "AC inf" "AC" "OK 3" ""; do
		printf 'print("%s")\n' "$said" >p/graders/grade.py
		judge 3 p
		[ "$(of accepted/a.py '[.verdict, .score, .message] | tojson')" = '["JE",0,"data/secret: the grader printed no verdict and score"]' ]
	done
}

@test "--fail-fast: nothing is judged after the first that is not as expected" {
	small p
	echo 'print(3)' >p/submissions/accepted/b.py
	for name in c d e; do echo 'print(2)' >p/submissions/accepted/$name.py; done
	judge 1 p -j 1 --fail-fast
	[ "$(jq -r 'select(.submission) | .submission' <<<"$output" | paste -sd ' ')" = "accepted/a.py accepted/b.py" ]
	[ "$(jq -c '.summary | [.submissions, .as_expected, .unexpected, .cases_run]' <<<"$summary")" = '[2,1,1,2]' ]
	rm p/.timelimit # the accepted ones run first then, to find it
	judge 1 p -j 4 --fail-fast
	[ "$(jq -c '.summary | [.submissions, .unexpected]' <<<"$summary")" = '[2,1]' ]
	judge 1 p -j 4
	[ "$(jq -c '.summary | [.submissions, .unexpected]' <<<"$summary")" = '[5,1]' ]
}

# lines FILE: what a report says, without times
lines() {
	jq -cS 'del(.cpu_us, .wall_us, .memory_kb, .summary.seconds, .summary.compiled, .summary.from_cache)' "$1"
}

# killed LINES ARGUMENT…: grades, and is killed as soon as so many lines are there
killed() {
	local wanted=$1
	shift
	rm -f out
	mkfifo out
	"$SP_BIN/sallyport" grade --json "$@" >out 2>/dev/null 3>&- &
	local pid=$!
	head -n "$wanted" out >lines_out # the pipe stays open for as long as head reads
	kill -KILL $pid
	wait $pid || true
}

@test "--resume after kill -9 gives the same report" {
	small p
	rm p/.timelimit
	local name
	for name in b c d e; do { busy 20; } >p/submissions/accepted/$name.py; done
	mkdir p/submissions/wrong_answer
	printf '# @EXPECTED_RESULTS@: WRONG-ANSWER, TIMELIMIT\nprint(7)\n' >p/submissions/wrong_answer/w.py
	printf 'int main( {' >p/submissions/wrong_answer/bad.cpp
	judge 1 p
	echo "$output" >whole
	killed 1 -j 1 --resume --results r.db p
	[ "$(jq -r .submission lines_out)" = accepted/a.py ]
	[ "$(sqlite3 r.db 'SELECT count(*) < 8 FROM result')" = 1 ]
	killed 3 -j 2 --resume --results r.db p
	judge 1 --resume --results r.db p
	echo "$output" >resumed
	diff <(lines whole) <(lines resumed)
	# All of it was kept, the time limit too: what is printed now is what was stored.
	sqlite3 r.db "SELECT class FROM result ORDER BY class" | paste -sd "" >classes
	[ "$(cat classes)" = ACACACACACCEWA ]
	sqlite3 r.db "UPDATE result SET report = replace(report, 'got \\\"7\\\"', 'got seven') WHERE class = 'WA'"
	judge 1 --resume --results r.db p
	[[ "$(of wrong_answer/w.py .message)" == *"got seven" ]]
	# Another program, or another package: judged.
	echo 'print(8)' >>p/submissions/wrong_answer/w.py
	judge 1 --resume --results r.db p
	[[ "$(of wrong_answer/w.py .message)" == *'got "7"' ]]
	echo 7 >p/data/secret/1.ans
	judge 0 --resume --results r.db p wrong_answer/w.py --time-limit 3
	[ "$(of wrong_answer/w.py .message)" = 'token 2: expected the end, got "8"' ]
	# Groups and scores, from the record.
	judge 0 --results points.db "$PACKAGES/points"
	echo "$output" >whole
	judge 0 --resume --results points.db "$PACKAGES/points"
	diff whole <(echo "$output" | sed "s/\"seconds\":[0-9.]*/$(grep -o '"seconds":[0-9.]*' whole)/; s/\"from_cache\":[0-9]*/$(grep -o '"from_cache":[0-9]*' whole)/")
	# Runners that nobody asked for versions: their files stand for these.
	cp -r "$SP_ROOT/jail/runners" runners
	jq '.libraries_are = [$names]' --arg names "$PWD/libraries/*-info" runners/python.json >new
	mv new runners/python.json
	chmod -R a+rX . runners
	mkdir -p libraries/numpy-1.24.2.dist-info
	export SALLYPORT_JAILER_RUNNERS_DIR=$PWD/runners
	judge 0 --results points.db "$PACKAGES/points"
	sqlite3 points.db "UPDATE result SET report = replace(report, '\"cpu\":', '\"cpu\":7')"
	judge 0 --resume --results points.db "$PACKAGES/points"
	[[ "$(of accepted/a.py .cpu_us)" == 7* ]]
	echo "$output" >stored
	mv libraries/numpy-1.24.{2,3}.dist-info
	judge 0 --resume --results points.db "$PACKAGES/points"
	[ "$(of accepted/a.py .cpu_us)" != "$(jq -r 'select(.submission == "accepted/a.py") | .cpu_us' stored)" ]
	unset SALLYPORT_JAILER_RUNNERS_DIR
	echo text >no.db
	judge 2 --resume --results no.db p
	[[ $stderr == *no.db* ]]
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

@test "an executable is of the compiler that made it: another one compiles again, also where nobody asked its version" {
	small p
	cp -r "$SP_ROOT/jail/runners" runners
	# A private jailer starts no compiler to ask for its version.
	compiler() { # NUMBER: what programs of it print
		printf '#!/bin/sh\nexec /usr/bin/gcc -DNUMBER=%s "$@"\n' "$1" >runners/cc.sh
		chmod -R a+rX . runners && chmod a+x runners/cc.sh
	}
	jq '.interpreters = [$cc] | .helper = "cc.sh" | .run = ["/bin/sh", "/code/.helper"] + .run[1:]' --arg cc "$PWD/runners/cc.sh" \
		"$SP_ROOT/jail/runners/build-c.json" >runners/build-c.json
	printf '#include <stdio.h>\nint main(void) { printf("%%d\\n", NUMBER); return 0; }\n' >p/submissions/accepted/a.c
	export SALLYPORT_JAILER_RUNNERS_DIR=$PWD/runners
	compiler 2
	judge 0 p accepted/a.c
	judge 0 p accepted/a.c
	[ "$(jq -c '.summary | [.compiled, .from_cache]' <<<"$summary")" = '[0,1]' ]
	compiler 3333
	judge 1 p accepted/a.c
	[ "$(jq -c '.summary | [.compiled, .from_cache]' <<<"$summary")" = '[1,0]' ]
	[[ "$(of accepted/a.c .message)" == *3333* ]]
	unset SALLYPORT_JAILER_RUNNERS_DIR
}
