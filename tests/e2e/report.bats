#!/usr/bin/env bats
# --report of replay and grade: text, JSON Lines, JUnit, TAP 14, HTML; hostile names and outputs; diffs; a file that is there is whole.
# shellcheck disable=SC2154 # bats sets stderr

bats_require_minimum_version 1.5.0
load lib.bash
load recorded.bash

setup() {
	empty_record
	cd "$BATS_TEST_TMPDIR" || return
	all=(--report text=r.txt --report jsonl=r.jsonl --report junit=r.xml --report tap=r.tap --report html=r.html)
}

# For people, where `cli` of recorded.bash is for programs.
cli() { # STATUS COMMAND ARGUMENT…
	local wanted=$1 command=$2
	shift 2
	run "-$wanted" --separate-stderr "$SP_BIN/sallyport" "$command" --config "$SP_CONFIG" "$@"
	echo "$output" "$stderr"
}

xpath() {
	xmllint --xpath "$1" r.xml
}

# Nobody else's control characters; of the page, no script and nothing from elsewhere either.
harmless() {
	local file
	for file in r.txt r.jsonl r.xml r.tap r.html; do
		run ! grep -qP '[\x00-\x08\x0b-\x1f\x7f]' "$file"
	done
	xmllint --noout r.xml
	xmllint --html --noout r.html 2>&1 | grep '^r.html:' | grep -vE 'Tag (svg|rect|text|details|summary) invalid' | (! grep .)
	[ "$(xmllint --html --xpath 'count(//script | //img | //link | //iframe | //*[@onerror] | //*[@onload])' r.html 2>/dev/null)" = 0 ]
	grep -q "default-src 'none'" r.html
	grep -q '^TAP version 14$' r.tap
	[ "$(sed -n 's/^1\.\.//p' r.tap)" = "$(grep -cE '^(not )?ok [0-9]+ - ' r.tap)" ]
	sed 's/^TAP version 14/TAP version 13/' r.tap >r13.tap
	run prove -e cat r13.tap
	[[ $output != *"Parse errors"* ]]
	jq -e . r.jsonl >/dev/null
}

@test "replay: every format has the same counts" {
	sp_stdio
	say python 'for i in range(40): print(i)'
	say python 'print("same")'
	say python 'import random; print(random.random())'
	say bash 'true # lost'
	sp_stdio_end
	alter "stdout = replace(stdout, '17', 'seventeen')" "range(40)"
	alter "verdict = 'XX'" lost
	cli 1 replay --all "${all[@]}"
	echo "$output" >shown
	harmless
	[ "$(xpath 'string(/testsuites/@tests)') $(xpath 'string(/testsuites/testsuite/@failures)') $(xpath 'string(//testsuite/@skipped)')" = "4 2 1" ]
	[ "$(xpath 'string(//failure[@type="output_changed"]/@message)')" = stdout ]
	[[ $(xpath 'string(//failure[@type="output_changed"])') == *$'\n-seventeen\n+17\n'* ]]
	[ "$(grep -c '^not ok' r.tap)" = 2 ]
	grep -q ' # SKIP the sandbox failed' r.tap
	[ "$(jq -c 'select(.summary) | [.summary.different, .summary.flaky]' r.jsonl)" = '[1,1]' ]
	[[ $(head -1 r.txt) =~ ^expected\ .\ now\ +OK\ +XX\ +-$ ]]
	grep -q '^1 passed, 2 failed, 0 errors, 1 skipped; ' r.txt
	[ "$(xmllint --html --xpath 'count(//*[local-name()="rect"])' r.html 2>/dev/null)" = 4 ]
	[ "$(xmllint --html --xpath 'string(//span[@class="minus"])' r.html 2>/dev/null)" = -seventeen ]
	# What changed comes first, with its program and conversation; what is flaky is folded.
	[ "$(xmllint --html --xpath 'string(//body/details[1]/details/pre)' r.html 2>/dev/null)" = 'for i in range(40): print(i)' ]
	[ "$(xmllint --html --xpath 'string(//body/details[1]/p[2])' r.html 2>/dev/null)" = 'conversation c' ]
	[ "$(xmllint --html --xpath 'string(//body/details[not(@open)][1]/summary/b)' r.html 2>/dev/null)" = flaky ]
	[ ! -e "$(compgen -G 'r.*.part-*')" ]
	# The same diff, plain, on standard output; and in colours where that is a terminal.
	grep -qx -- '    @@ -15,7 +15,7 @@' shown
	grep -qx -- '    -seventeen' shown
	run ! grep -q $'\033' shown
	NO_COLOR='' TERM=xterm script -qec "$SP_BIN/sallyport replay --config $SP_CONFIG --text 40" /dev/null >coloured || true
	grep -qF $'\033[31m-seventeen\033[0m' coloured
	# A long difference is cut.
	alter "stdout = ''" "range(40)"
	sqlite3 "$SP_DIR/data/sallyport.db" "UPDATE execution SET stdout = (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT group_concat('x' || i, char(10)) FROM n) WHERE instr(code, '40')"
	cli 1 replay --text 40
	[ "${#lines[@]}" -lt 80 ]
	[[ $output == *"… and more"* ]]
}

@test "hostile names and outputs" {
	local evil=$'</pre><script>alert(1)</script> & "q" \' ]]> # todo \\ \x1b[2J'
	printf 'import sys\nprint("""%s\nsecond\xef\xbf\xbf""")\nsys.stdout.buffer.write(b"\\x00\\xff\\x07")\n' "$evil" >program.py
	sp_stdio
	say python "$(cat program.py)"
	sp_stdio_end
	cli 0 promote --suite s --all --name "$evil"
	sqlite3 s "UPDATE execution SET stdout = 'a' || char(10) || '<b onload=x>' || char(10)"
	cli 1 grade s "${all[@]}"
	run ! grep -qP '[\x00-\x08\x0b-\x1f\x7f]' <<<"$output"
	harmless
	[[ $(xpath 'string(//testcase/@name)') == '</pre><script>alert(1)</script> & "q"'*'\x1b[2J' ]]
	[[ $(xpath 'string(//failure)') == *'+second\xef\xbf\xbf'* ]]
	[ "$(xmllint --html --xpath 'count(//details)' r.html 2>/dev/null)" = 1 ]
	cli 0 replay --all "${all[@]}"
	harmless
}

@test "grade: a package, tasks" {
	export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
	cli 0 grade "$SP_ROOT/tests/data/packages/groups" "${all[@]}"
	harmless
	[ "$(xpath 'string(/testsuites/@tests)') $(xpath 'string(/testsuites/@failures)')" = "3 0" ]
	cp -r "$SP_ROOT/tests/data/packages/sums" p
	rm -r p/submissions/*
	mkdir -p p/submissions/accepted
	echo 'print("1' >"p/submissions/accepted/<b>&.py"
	echo 'IDENTIFICATION DIVISION.' >p/submissions/accepted/old.cob
	cli 1 grade p "${all[@]}" --time-limit 2
	harmless
	[ "$(xpath 'string(/testsuites/@failures)') $(xpath 'string(/testsuites/@skipped)')" = "1 1" ]
	[ "$(xpath 'string(//testcase[failure]/@name)')" = "accepted/<b>&.py" ]
	cli 0 grade "$SP_ROOT/tests/data/tasks/humaneval.jsonl" "${all[@]}"
	harmless
	[ "$(xpath 'string(//testcase/@name)')" = "Small/0 #0" ]
}

@test "a report can be written into a pipe" {
	sp_stdio
	say python 'print("same")'
	sp_stdio_end
	mkfifo pipe
	cat pipe >piped &
	cli 0 replay --all --report tap=pipe
	wait $!
	[ -p pipe ]
	[ "$(head -1 piped)" = "TAP version 14" ]
	cli 0 replay --all --report tap=/dev/fd/4 4>given
	[ "$(head -1 given)" = "TAP version 14" ]
}

@test "an interrupted replay leaves no report" {
	sp_stdio
	sp_say run_code "$(jq -cn --arg code "sleep $SP_ASLEEP" '{conversationId: "c", language: "bash", $code, timeout_seconds: 300}')" &
	local saying=$!
	sp_wake
	wait "$saying"
	sp_stdio_end
	cli 2 replay --all --report xml=r
	[[ $stderr == *"text, jsonl, junit, tap and html"* ]]
	cli 2 replay --all --report html=
	run ! "$SP_BIN/sallyport" replay --config "$SP_CONFIG" --all --report html=nowhere/r
	[[ $output == *nowhere* ]]
	(trap - INT; exec "$SP_BIN/sallyport" replay --config "$SP_CONFIG" --all --report html=r.html 3>&- 2>said) &
	local replaying=$!
	sp_until "$replaying" sp_asleep
	kill -TERM "$replaying"
	local ended=0
	wait "$replaying" || ended=$?
	[ "$ended" = 5 ]
	[ ! -e r.html ]
	sp_until "" sp_none_asleep
	"$SP_BIN/sallyport" replay --config "$SP_CONFIG" --all --report html=r.html 3>&- 2>said &
	replaying=$!
	sp_until "$replaying" sp_asleep
	kill -KILL "$replaying"
	wait "$replaying" || true
	[ ! -e "$(compgen -G 'r.html*')" ]
	sp_until "" sp_none_asleep
}
