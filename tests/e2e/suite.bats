#!/usr/bin/env bats
# sallyport promote and grade over a suite: what is recorded becomes cases, with the recorded code or a submission; suites that are wrong.
# shellcheck disable=SC2154 # bats sets stderr

bats_require_minimum_version 1.5.0
load lib.bash
load recorded.bash

setup() {
	empty_record
	cd "$BATS_TEST_TMPDIR" || return
	export TMPDIR=$BATS_TEST_TMPDIR
	sp_stdio
}

# of NAME FILTER: a member of the case's line
of() {
	jq -r --arg name "$1" "select(.name == \$name) | $2" <<<"$output"
}

# refuse WORD SQL: the suite changed so is refused with that word, by grade and by promote
refuse() {
	cp s bad
	sqlite3 bad "$2"
	cli 2 grade bad
	[[ $stderr == *"$1"* ]]
	cli 2 promote --suite bad --all
	[[ $stderr == *"$1"* ]]
}

no_scratch() {
	[ -z "$(compgen -G "$TMPDIR/sallyport-*")" ]
}

@test "promote turns runs into cases" {
	say python 'print("one")'
	say python 'open("f", "w").write("two"); print("two")'
	say bash 'echo three; exit 3'
	sp_stdio_end
	cli 0 promote --suite s --name first --tag fast --tag new "$(id one)"
	[ "$summary" = '{"cases":1,"new":1,"already_there":0}' ]
	[ "$(stat -c %a s)" = 600 ]
	cli 0 promote --suite s --language bash --tag slow
	cli 0 promote --suite s --all
	[ "$summary" = '{"cases":3,"new":1,"already_there":2}' ]
	cp s before
	cli 0 promote --suite s --all
	[ "$summary" = '{"cases":3,"new":0,"already_there":3}' ]
	diff <(sqlite3 before .dump) <(sqlite3 s .dump)
	cli 0 grade s
	[ "$(jq -c . <<<"$summary")" = '{"suite":"s","cases":3,"submissions":0,"passed":3,"judge_errors":0,"verdicts":{"AC":3}}' ]
	[ "$(of first '[.case, .language, .verdict, .class, .message] | join(" ")')" = "$(id one) python AC identical " ]
	[ "$(jq -r 'select(.case) | .name' <<<"$output" | tail -1)" = first ] # by names; ids begin with a digit
	cli 0 grade s --tag slow --tag none
	[ "$(jq -c .cases <<<"$summary")" = 1 ]
	cli 2 grade s --tag none
	# A name and a mode are set anew, the rest stays.
	cli 0 promote --suite s --name uno --compare=-stdout "$(id one)"
	[ "$(sqlite3 s "SELECT name, tags, compare, normalise FROM suite_case WHERE name = 'uno'")" = 'uno|["fast","new"]|-stdout|default' ]
	sp_until "" no_scratch
}

@test "expected differs: each verdict, the first of them ends it with --fail-fast" {
	say python 'print("out")'
	say python 'import sys; sys.exit(int(open("/proc/sys/kernel/ostype").read() == "Linux\n"))'
	say bash "while :; do :; done # slow" '{"timeout_seconds": 1}'
	say python 'import random; print(random.random())'
	say python 'import time; print(time.time(), "now")'
	sp_stdio_end
	cli 0 promote --suite s --all
	sqlite3 s "UPDATE execution SET stdout = 'oot' WHERE instr(code, 'out'); UPDATE execution SET verdict = 'OK', exit_code = 0 WHERE instr(code, 'ostype');
		UPDATE execution SET verdict = 'OK' WHERE instr(code, 'slow');
		UPDATE suite_case SET name = (SELECT substr(code, 1, 24) FROM execution WHERE id = suite_case.execution)"
	cli 1 grade s -j 2
	[ "$(jq -c .verdicts <<<"$summary")" = '{"AC":1,"WA":2,"TLE":1,"RTE":1}' ]
	[ "$(of 'print("out")' '[.verdict, .message] | join(" ")')" = 'WA stdout, line 1: expected "oot", is "out"' ]
	[ "$(of 'import random; print(ran' .class)" = flaky ]
	cli 1 grade s -j 1 --fail-fast
	[ "$(jq -c '.verdicts | [.[]] | add' <<<"$summary")" = 1 ]
	run -1 "$SP_BIN/sallyport" grade --config "$SP_CONFIG" s
	[[ ${lines[-1]} == "1 of 5 cases passed; "* ]]
	grep -q '^RTE ' <<<"$output"
}

@test "a suite judges submissions in place of the recorded code" {
	say python 'print(sorted(map(int, input().split())))' '{"stdin": "3 1 2"}'
	say python 'print(sorted(map(int, input().split())))#' '{"stdin": "7"}'
	say python 'x = 41' '{"session": true}'
	say python 'print(x + 1)' '{"session": true}'
	sp_stdio_end
	cli 0 promote --suite s --all
	sqlite3 s "UPDATE suite_case SET name = (SELECT coalesce(stdin, code) FROM execution WHERE id = suite_case.execution)"
	cli 0 grade s
	[ "$(jq .passed <<<"$summary")" = 4 ]
	echo 'print([int(x) for x in input().split()])' >wrong.py
	# shellcheck disable=SC2028 # tr knows it
	echo 'tr " " "\n" | sort -n | paste -sd, | sed "s/,/, /g; s/.*/[&]/"' >good.sh
	echo 'def' >syntax.py
	cli 1 grade s wrong.py good.sh syntax.py
	[ "$(jq -r 'select(.stdin | not) | select(.case) | [.submission, .name, .verdict] | join(" ")' <<<"$output")" = \
		"$(printf '%s\n' "wrong.py 3 1 2 WA" "wrong.py 7 AC" "wrong.py print(x + 1) SKIP" "wrong.py x = 41 SKIP" \
			"good.sh 3 1 2 AC" "good.sh 7 AC" "good.sh print(x + 1) SKIP" "good.sh x = 41 SKIP" \
			"syntax.py 3 1 2 RTE" "syntax.py 7 RTE" "syntax.py print(x + 1) SKIP" "syntax.py x = 41 SKIP")" ]
	[ "$(jq -c '[.submissions, .passed]' <<<"$summary")" = '[3,3]' ]
	cli 0 grade s good.sh
	cp good.sh good.txt
	cli 2 grade s good.txt
	cli 0 grade s --language bash good.txt
	cli 3 grade s nowhere.py
	cli 2 grade s --k 1
	cli 2 grade s --time-limit 1
}

@test "a run that cannot be repeated is not promoted" {
	say python 'print("good")'
	say python 'print("secret")' '{"secrets": {"KEY": "abcdefgh"}}'
	sp_stdio_end
	cli 0 promote --suite s "$(id good)"
	cp s before
	cli 3 promote --suite s "$(id good)" ffffffff
	cli 2 promote --suite s --name other "$(id good)" "$(id secret)"
	[[ $stderr == *secrets* ]]
	cli 0 promote --suite s --all
	[ "$summary" = '{"cases":1,"new":0,"already_there":1}' ]
	[[ $stderr == *"is left out"*secrets* ]]
	diff <(sqlite3 before .dump) <(sqlite3 s .dump)
	cli 2 promote --all
	cli 2 promote --suite s
	cli 2 promote --suite s --all --normalise colours
	cli 2 promote --suite s --all --compare colours
	cli 3 promote --suite new ffffffff
	[ ! -e new ]
}

@test "a suite that is not as it must be" {
	say python 'print("x" * 100000)'
	sp_stdio_end
	cli 0 promote --suite s --all
	refuse hash "UPDATE blob SET data = zeroblob(100001)"
	refuse "not as it must be" "UPDATE suite_case SET tags = '{'"
	refuse "not as it must be" "UPDATE suite_case SET name = ''"
	refuse "no run" "INSERT INTO suite_case VALUES ('x', 'x', '[]', '', '', 1)"
	refuse tables "CREATE TRIGGER t AFTER INSERT ON blob BEGIN DELETE FROM blob; END"
	refuse "version 10" "PRAGMA user_version = 10"
	refuse "not a bundle" "PRAGMA application_id = 7"
	# The format before bundles: what to do.
	refuse "make it again with sallyport export or promote" "PRAGMA application_id = 0x53505355; PRAGMA user_version = 4"
	cp s bad
	sqlite3 bad "UPDATE suite_case SET normalise = 'colours'"
	cli 2 grade bad
	head -c 10000 s >bad
	cli 2 grade bad
	cli 0 export --output b --all
	cli 2 grade b
	[[ $stderr == *"no case"* ]]
	cp b before
	cli 2 promote --suite b --all
	[[ $stderr == *"is an export"* ]]
	cmp b before
	cli 0 import --unverified s
	[ "$summary" = '{"executions":1,"new":0,"already_there":1}' ]
	cli 0 grade s
	sp_until "" no_scratch
}

@test "kill -9 in mid-suite leaves nothing behind" {
	sp_say run_code "$(jq -cn --arg code "sleep $SP_ASLEEP" '{conversationId: "c", language: "bash", $code, timeout_seconds: 300}')" &
	local saying=$!
	sp_wake
	wait "$saying"
	sp_stdio_end
	cli 0 promote --suite s --all
	"$SP_BIN/sallyport" grade --config "$SP_CONFIG" s 3>&- &
	local grading=$!
	sp_until "$grading" sp_asleep
	[ -n "$(compgen -G "$TMPDIR/sallyport-*")" ]
	kill -KILL "$grading"
	wait "$grading" || true
	sp_until "" sp_none_asleep
	sp_until "" no_scratch
}

@test "the next start of the same user removes scratch folders that were left" {
	say bash 'echo one'
	sp_stdio_end
	cli 0 promote --suite s --all
	mkdir -p "$TMPDIR/sallyport-scratch-left01/below" "$TMPDIR/sallyport-scratch-used01"
	echo x >"$TMPDIR/sallyport-scratch-left01/below/file"
	chmod 0500 "$TMPDIR/sallyport-scratch-left01/below"
	ln -s "$TMPDIR/sallyport-scratch-left01" "$TMPDIR/sallyport-scratch-link01"
	mkdir "$TMPDIR/sallyport-1000"
	exec 7<"$TMPDIR/sallyport-scratch-used01"
	flock -n 7
	cli 0 grade s
	[ ! -e "$TMPDIR/sallyport-scratch-left01" ]
	[ -d "$TMPDIR/sallyport-scratch-used01" ]
	[ -h "$TMPDIR/sallyport-scratch-link01" ]
	[ -d "$TMPDIR/sallyport-1000" ]
	exec 7<&-
	rm "$TMPDIR/sallyport-scratch-link01"
	cli 0 grade s
	rmdir "$TMPDIR/sallyport-1000"
	sp_until "" no_scratch
}

@test "no scratch folder stays after a signal, or kill -9 of the whole group" {
	local signal grading saying
	say bash 'echo one'
	sp_say run_code "$(jq -cn --arg code "sleep $SP_ASLEEP" '{conversationId: "c", language: "bash", $code, timeout_seconds: 300}')" &
	saying=$!
	sp_wake
	wait "$saying"
	sp_stdio_end
	cli 0 promote --suite quick "$(id one)"
	cli 0 promote --suite s "$(id sleep)"
	for signal in INT TERM KILL; do
		setsid env --default-signal=INT "$SP_BIN/sallyport" grade --config "$SP_CONFIG" s >/dev/null 2>&1 3>&- &
		grading=$!
		sp_until "$grading" sp_asleep
		kill -"$signal" -- "-$grading"
		wait "$grading" || true
		sp_until "" sp_none_asleep
		[ "$signal" = KILL ] || sp_until "" no_scratch
	done
	# What would have removed it was killed, too: the next start does.
	[ -n "$(compgen -G "$TMPDIR/sallyport-scratch-*")" ]
	cli 0 grade quick
	sp_until "" no_scratch
}

@test "--resume after kill -9 gives the same report" {
	say python 'print("one")'
	sp_say run_code "$(jq -cn --arg code "sleep $SP_ASLEEP" '{conversationId: "c", language: "bash", $code, timeout_seconds: 300}')" &
	local saying=$! grading
	sp_wake
	wait "$saying"
	sp_stdio_end
	cli 0 promote --suite s --all
	"$SP_BIN/sallyport" grade --config "$SP_CONFIG" -j 1 --resume s 3>&- &
	grading=$!
	sp_until "$grading" sp_asleep
	kill -KILL "$grading"
	wait "$grading" || true
	sp_until "" sp_none_asleep
	[ "$(sqlite3 "$SP_DIR/data/grade.db" 'SELECT count(*) FROM result')" = 1 ]
	"$SP_BIN/sallyport" grade --config "$SP_CONFIG" --json --resume s >resumed 3>&- &
	grading=$!
	sp_wake
	wait "$grading"
	[ "$(jq -c '.summary | select(.) | [.cases, .passed]' resumed)" = '[2,2]' ]
	# Nothing sleeps any more; a submission is not what was recorded.
	cli 0 grade --resume s
	diff <(jq -c 'del(.wall_us, .summary.seconds)' resumed) <(jq -c 'del(.wall_us, .summary.seconds)' <<<"$output")
	echo 'print("two")' >other.py
	cli 1 grade --resume s other.py
}
