#!/usr/bin/env bats
# sallyport replay --bless: generations of what is expected, who made them and why; what is new; what is refused.
# shellcheck disable=SC2154 # bats sets stderr

bats_require_minimum_version 1.5.0
load lib.bash
load recorded.bash

setup() {
	empty_record
	unset CI
	sp_stdio
}

@test "what differs becomes a generation" {
	say python 'print("small")'
	say python 'print("x" * 100000); open("made", "w").write("y")'
	say python 'print("same")'
	say python 'import random; print(random.random())'
	sp_stdio_end
	alter "stdout = 'lams'" small
	alter "stdout = 'old', stdout_blob = NULL" 100000
	cli 1 replay --all --bless --reason "the rule
changed" --author ann
	[ "$(jq -c '[.identical, .different, .flaky, .blessed]' <<<"$summary")" = '[1,2,1,2]' ]
	[ "$(jq -r "select(.id == \"$(id small)\") | [.class, .generation] | join(\" \")" <<<"$output")" = "output_changed 2" ]
	[ "$(sp_sql "SELECT count(*) FROM baseline")" = 2 ]
	[ "$(sp_sql "SELECT author || reason || stdout FROM baseline WHERE execution = '$(id small)'")" = "annthe rule
changedsmall" ]
	[ "$(sp_sql "SELECT stdout FROM execution WHERE id = '$(id small)'")" = lams ]
	[ "$(sp_sql "SELECT count(*) FROM audit WHERE kind = 'bless' AND object = 'execution:$(id small)'")" = 1 ]
	cli 0 replay "$(id small)" "$(id 100000)" "$(id same)"
	[ "$(jq .identical <<<"$summary")" = 3 ]
	# The results that were stored before do not count any more.
	cli 0 replay "$(id small)" --resume
	# Files are part of it; a third generation.
	sqlite3 "$SP_DIR/data/sallyport.db" "UPDATE baseline_file SET name = 'edam'"
	cli 1 replay "$(id 100000)"
	[ "$(head -1 <<<"$output" | jq -r .class)" = files_changed ]
	cli 0 replay "$(id 100000)" --bless --reason again
	cli 0 replay "$(id 100000)"
	run -0 "$SP_BIN/sallyport" show --config "$SP_CONFIG" --json "$(id 100000)"
	[ "$(jq -c '.generations | map([.generation, .reason, .verdict])' <<<"$output")" = '[[2,"the rule\nchanged","OK"],[3,"again","OK"]]' ]
	run -0 "$SP_BIN/sallyport" show --config "$SP_CONFIG" "$(id small)"
	grep -qE '^expected +generation 2, OK, .*, by ann: the rule' <<<"$output"
	# Nothing differs: nothing is written.
	cli 0 replay "$(id small)" --bless --reason none
	[ "$(jq .blessed <<<"$summary")" = 0 ]
	[ "$(sp_sql "SELECT count(*) FROM baseline")" = 3 ]
}

@test "a run without an outcome is new" {
	say python 'print("lost")'
	say python 'print("secret")' '{"secrets": {"KEY": "abcdefgh"}}'
	sp_stdio_end
	alter "verdict = 'XX', message = 'the sandbox failed'" lost
	cli 0 replay --all
	[ "$(jq .not_replayable <<<"$summary")" = 2 ]
	cli 0 replay --all --bless --reason first
	[ "$(jq -c '[.classes, .blessed]' <<<"$summary")" = '[{"new":1,"not_replayable":1},1]' ]
	cli 0 replay "$(id lost)"
	[ "$(jq .identical <<<"$summary")" = 1 ]
	sqlite3 "$SP_DIR/data/sallyport.db" "UPDATE baseline SET exit_code = 4"
	cli 1 replay "$(id lost)"
	[ "$(head -1 <<<"$output" | jq -r .class)" = exit_changed ]
}

@test "generations are carried by bundles" {
	say python 'print("z" * 100000); _ = open("made", "w").write("y")'
	sp_stdio_end
	alter "stdout = 'old', stdout_blob = NULL" 100000
	cd "$BATS_TEST_TMPDIR"
	cli 0 promote --suite s --all
	cli 1 grade s
	cli 0 replay --all --bless --reason why --author ann
	cli 0 promote --suite s --all
	cli 0 grade s
	cli 0 export -o b --all
	sed 's|"data_dir": "data"|"data_dir": "other"|' "$SP_CONFIG" >"$SP_DIR/other.json"
	for again in 1 0; do
		run -0 "$SP_BIN/sallyport" import --config "$SP_DIR/other.json" --unverified --json b
		[ "$(jq .summary.new <<<"$output")" = $again ]
	done
	run -0 "$SP_BIN/sallyport" replay --config "$SP_DIR/other.json" --all
	[ "$(sqlite3 "$SP_DIR/other/sallyport.db" "SELECT author, reason, generation FROM baseline")" = "ann|why|2" ]
	refuse() {
		cp b bad
		sqlite3 bad "$2"
		cli 2 import bad
		[[ $stderr == *"$1"* ]]
	}
	refuse generation "UPDATE baseline SET generation = 'x'"
	refuse generation "UPDATE baseline SET execution = 'x'"
	refuse generation "UPDATE baseline_file SET generation = 9"
	refuse "out of /data" "UPDATE baseline_file SET name = '../x'"
	refuse "a call of a generation" "INSERT INTO baseline_call (execution, generation, seq, arguments) SELECT execution, 9, 1, '{}' FROM baseline"
	refuse "a call of a generation" "INSERT INTO baseline_call (execution, generation, seq, arguments) SELECT execution, 2, 1, '{' FROM baseline"
	refuse "a server of a generation" "INSERT INTO baseline_server (execution, generation, position, list) SELECT execution, 2, 0, 'no such list' FROM baseline"
	refuse missing "DELETE FROM blob WHERE sha256 = (SELECT stdout_blob FROM baseline)"
	refuse "version 2" "PRAGMA user_version = 2"
}

@test "an earlier run of a sandbox that was blessed" {
	say python 'x = 41; print("one")' '{"session": true}'
	say python 'print(x + 1)' '{"session": true}'
	sp_stdio_end
	alter "stdout = 'eno'" one
	cli 1 replay "$(id 'x + 1')"
	cli 0 replay "$(id one)" --bless --reason why
	cli 0 replay --all
	[ "$(jq .identical <<<"$summary")" = 2 ]
}

@test "a blessed outcome is forgotten with its run" {
	say bash 'echo word-of-the-output | tee -a file-of-the-run; seq 20000 | sed s/^/long-word-/'
	sp_stdio_end
	alter "stdout = 'x', stdout_blob = NULL" word-of
	cli 0 replay "$(id word-of)" --bless --reason why
	[ "$(sp_sql "SELECT count(*) FROM baseline WHERE stdout_blob IS NOT NULL")" = 1 ]
	cli 0 replay "$(id word-of)"
	local run blob
	run=$(id word-of)
	blob=$(sp_sql "SELECT stdout_blob FROM baseline")
	[ -n "$(find "$SP_DIR/data/blobs" -type f -name "${blob:2}*")" ]
	"$SP_BIN/sallyport" forget --config "$SP_CONFIG" --execution "$run" --only-output --yes
	[ "$(sp_sql "SELECT (SELECT count(*) FROM baseline) + (SELECT count(*) FROM baseline_file)")" = 0 ]
	# The code is there still; but there is nothing to compare with, and nothing becomes what is expected.
	cli 0 replay "$run" --bless --reason again
	[ "$(jq -c '[.not_replayable, .blessed]' <<<"$summary")" = '[1,0]' ]
	[ "$(sp_sql "SELECT count(*) FROM baseline")" = 0 ]
	# Six hours later nothing of it is on the disk.
	sqlite3 "$SP_DIR/data/sallyport.db" "UPDATE blob SET created_us = 1"
	find "$SP_DIR/data/blobs" -type f -exec touch -d '2 days ago' {} +
	"$SP_BIN/sallyport" gc --config "$SP_CONFIG" --yes
	[ "$(sp_sql "SELECT count(*) FROM blob WHERE sha256 = '$blob'")" = 0 ]
	[ -z "$(find "$SP_DIR/data/blobs" -type f -name "${blob:2}*")" ]
}

@test "--bless is refused under CI" {
	say python 'print("small")'
	sp_stdio_end
	alter "stdout = 'lams'" small
	cli 2 replay --all --bless
	cli 2 replay --all --reason why
	cli 2 replay --all --force
	cli 2 replay --all --bless --reason why --merge x
	cli 2 replay --all --bless --reason "$(printf '%5000s' x)"
	export CI=true
	cli 2 replay --all --bless --reason why
	[[ $stderr == *--force* ]]
	[ "$(sp_sql "SELECT count(*) FROM baseline")" = 0 ]
	cli 0 replay --all --bless --reason why --force
	[ "$(sp_sql "SELECT count(*) FROM baseline")" = 1 ]
}

@test "a deterministic run can be expected" {
	say python 'import random, time, os; print("dice", random.random(), time.time(), id(os), {"a", "b", "c"}, os.cpu_count())'
	say javascript 'console.log("js", Math.random(), Date.now(), new Date().getFullYear() > 2025)'
	sp_stdio_end
	cli 1 replay --all
	[ "$(jq -c '[.flaky, .different]' <<<"$summary")" = '[2,0]' ]
	[ "$(head -1 <<<"$output" | jq .deterministic)" = null ]
	cli 1 replay --all --deterministic
	[ "$(jq -c '[.flaky, .different]' <<<"$summary")" = '[0,2]' ]
	[ "$(head -2 <<<"$output" | jq .deterministic | sort -u)" = true ]
	# It is the time of the recorded run.
	grep -q "js [0-9.]* $(($(sp_sql "SELECT created_us FROM execution WHERE instr(code, 'js')") / 1000)) true" <<<"$output"
	cli 0 replay --all --deterministic --bless --reason "the same every time"
	[ "$(sp_sql 'SELECT sum(deterministic) FROM baseline')" = 2 ]
	# So are its replays from then on, without the option and with it.
	cli 0 replay --all --repeat 2
	[ "$(jq -c '[.identical, .flaky]' <<<"$summary")" = '[2,0]' ]
	[ "$(head -2 <<<"$output" | jq .deterministic | sort -u)" = true ]
	cli 0 replay --all --deterministic --normalise none
	[ "$(jq .identical <<<"$summary")" = 2 ]
	run -0 "$SP_BIN/sallyport" replay --config "$SP_CONFIG" --all
	[ "$(grep -c 'identical, deterministic$' <<<"$output")" = 2 ]
}

@test "times that a deterministic run prints are within its own window, which is the recorded run's" {
	say python 'import time; print("at", int(time.time()))'
	sp_stdio_end
	# As if it had been recorded a day ago: the clock begins there again, far from the time of the replay.
	sqlite3 "$SP_DIR/data/sallyport.db" "UPDATE execution SET created_us = created_us - 86400000000, finished_us = finished_us - 86400000000,
		stdout = 'at ' || (substr(stdout, 4) - 86400) || char(10)"
	cli 0 replay --all --deterministic
	[ "$(jq -c '[.identical + .equal_after_normalising, .flaky]' <<<"$summary")" = '[1,0]' ]
	sqlite3 "$SP_DIR/data/sallyport.db" "UPDATE execution SET stdout = 'at ' || (substr(stdout, 4) + 1) || char(10)" # within the window, but never what the clock shows
	cli 0 replay --all --deterministic
	[ "$(jq -c .equal_after_normalising <<<"$summary")" = 1 ]
}
