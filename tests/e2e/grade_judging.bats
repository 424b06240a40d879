#!/usr/bin/env bats
# sallyport grade: time limits, retries, attacks, and what ends it before its time.
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

@test "a time limit counts the submissions that may not be too slow" {
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

@test "--resume judges again what another time limit changes" {
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

@test "jails have the weight of processes, not one for all" {
	local shares=/sys/fs/cgroup/cpu/sallyport/cpu.shares
	[ "$(id -u)" = 0 ] && [ -w "${shares%/*/*}" ] || skip "no cgroup v1 of ours"
	small p
	judge 0 p
	# Of as many processes as there are processors, for each instance.
	local each=$(($(nproc) * 1024))
	[ $(($(cat $shares) % each)) = 0 ]
	[ "$(cat $shares)" -ge $each ]
}

@test "a pass that is tried again begins with its feedback" {
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

@test "each way not to be as expected is reported" {
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
	judge 13 p
	[ "$(of accepted/include.cpp .verdict)" = CE ]
	[ "$(of accepted/incbin.c .verdict)" = CE ]
	[ "$(of accepted/look.py .verdict)" = AC ]
	[[ "$(of accepted/passwd.py .message)" == *"leads out of the package"* ]]
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
	[ "$seen" = "0 AC 13 JE " ]
	[[ "$(of accepted/a.bash .message)" == "the sandbox of the submission failed: "* ]]
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

@test "grade ended by a signal has printed what is complete" {
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

@test "another compiler compiles again" {
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
