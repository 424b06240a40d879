#!/usr/bin/env bats
# sallyport replay: classes, normalisers, flaky programs; results that outlive it: --resume after kill -9, --only, shards and --merge.
# shellcheck disable=SC2016 # dollars in the programs are not for this shell
# shellcheck disable=SC2154 # bats sets stderr

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	sp_setup
	sp_start_jailer
}

teardown_file() {
	sp_teardown
}

setup() {
	rm -rf "${SP_DIR:?}/data" "$SP_DIR/in"
	mkdir "$SP_DIR/data"
	sp_stdio
}

say() { # LANGUAGE CODE
	sp_say run_code "$(jq -cn --arg language "$1" --arg code "$2" '{conversationId: "c", $language, $code}')"
}

# replay STATUS ARGUMENT…: lines in $output, the summary in $summary
replay() {
	local status_wanted=$1
	shift
	run "-$status_wanted" --separate-stderr "$SP_BIN/sallyport" replay --config "$SP_CONFIG" --json "$@"
	echo "$output" "$stderr"
	summary=$(tail -1 <<<"$output")
}

# of CODE: class and what hid something, of the execution whose code contains CODE
of() {
	local id
	id=$(sp_sql "SELECT id FROM execution WHERE instr(code, '$1')")
	jq -r --arg id "$id" 'select(.id == $id) | [.class, .hidden_by[]] | join(" ")' <<<"$output"
}

alter() { # SET CODE
	sqlite3 "$SP_DIR/data/sallyport.db" "UPDATE execution SET $1 WHERE instr(code, '$2')"
}

same_report() { # FILE FILE
	diff <(sed 's/"seconds":[0-9.]*//' "$1") <(sed 's/"seconds":[0-9.]*//' "$2")
}

@test "each class, the members, the matrix first" {
	say python 'print("same")'
	say python 'import time; print("at", "%.3f" % time.time(), object())'
	say python 'print("out")'
	say python 'import sys; print("err", file=sys.stderr)'
	say bash 'exit 3 # code'
	say bash 'true # verdict'
	say bash 'echo x >/data/file'
	say python 'import random; print(random.random())'
	sp_stdio_end
	alter "stdout = replace(stdout, 'out', 'oot')" 'print("out")'
	alter "stderr = 'other'" sys.stderr
	alter "exit_code = 4" '# code'
	alter "verdict = 'RE', exit_code = 1" '# verdict'
	sqlite3 "$SP_DIR/data/sallyport.db" "UPDATE execution_file SET name = 'elif' WHERE phase = 'after'"
	replay 1 --all
	[ "$(of same)" = identical ]
	[ "$(of time.time)" = "equal_after_normalising addresses times" ]
	[ "$(of 'print("out")')" = output_changed ]
	[ "$(of sys.stderr)" = stderr_changed ]
	[ "$(of '# code')" = exit_changed ]
	[ "$(of '# verdict')" = verdict_changed ]
	[ "$(of /data/file)" = files_changed ]
	[ "$(of random)" = flaky ]
	[ "$(jq -c '.summary | [.identical, .equal_after_normalising, .different, .flaky, .not_replayable, .failed]' <<<"$summary")" = '[1,1,5,1,0,0]' ]
	[ "$(jq -c '.summary.classes | [.[]] | add' <<<"$summary")" = 8 ]
	[ "$(head -1 <<<"$output" | jq -c keys_unsorted)" = '["id","language","class","differences","hidden_by"]' ]
	[ "$(jq -r 'select(.id) | .id' <<<"$output")" = "$(sp_sql 'SELECT id FROM execution ORDER BY id')" ]
	# What is not compared does not count; a normaliser that is off hides nothing.
	replay 0 --all --compare=-verdict,-exit,-stderr,-files,-stdout --normalise none
	[ "$(jq -c .summary.classes <<<"$summary")" = '{"identical":8}' ]
	run -1 "$SP_BIN/sallyport" replay --config "$SP_CONFIG" --all
	[[ ${lines[0]} == "recorded"*OK*RE* ]]
	[[ ${lines[1]} =~ ^OK\ +[0-9]+ ]]
	[[ ${lines[-1]} == "1 identical, 1 equal after normalising, 5 differ, 0 not replayable, 1 flaky" ]]
}

@test "CPU time and memory, on request: slower, faster, more memory" {
	say python 'import json; print("slow")'
	say python 'import json; print("fast")'
	say python 'import json; print("large")'
	sp_stdio_end
	alter "run_cpu_user_us = 500, run_cpu_system_us = 0" '"slow"'
	alter "run_cpu_user_us = 60000000" '"fast"'
	alter "run_memory_peak = 4096" '"large"'
	replay 0 --all
	[ "$(jq .summary.identical <<<"$summary")" = 3 ]
	replay 1 --all --compare default,cpu
	[ "$(of '"slow"')" = slower ]
	[ "$(of '"fast"')" = faster ]
	# Only what was altered counts: the third run's own time may be anything on a busy machine.
	fast=$(sp_sql "SELECT json_object('id', id, 'us', run_cpu_user_us + run_cpu_system_us) FROM execution WHERE instr(code, 'fast')")
	[ "$(jq -r --argjson fast "$fast" 'select(.id == $fast.id) | .differences[0] | [.what, .recorded] | join(": ")' <<<"$output")" = "CPU time in µs: $(jq .us <<<"$fast")" ]
	replay 1 --text large --compare memory
	[ "$(of '"large"')" = more_memory ]
}

@test "normalisers are switched by name" {
	say python 'import time; print(time.time())'
	say python 'print({"a", "b", "c", "d", "e", "f"})'
	sp_stdio_end
	replay 0 --all
	[ "$(of time.time)" = "equal_after_normalising times" ]
	replay 1 --language python --text time.time --normalise=-times
	[ "$(of time.time)" = flaky ]
	replay 2 --all --normalise colours
	[[ $stderr == *colours* ]]
	replay 2 --all --compare colour
	replay 2 --all --only slow
	replay 0 --all --compare verdict,exit
	[ "$(jq .summary.identical <<<"$summary")" = 2 ]
}

@test "a project's own normalisers, listed with the built-in ones" {
	say bash 'echo "build $RANDOM$RANDOM"'
	sp_stdio_end
	replay 1 --all
	echo '{"normalisers": [{"name": "build-id", "version": 3, "pattern": "build [0-9]+", "replacement": "[BUILD]"}]}' >"$SP_DIR/n.json"
	replay 0 --all --normalisers "$SP_DIR/n.json"
	[ "$(of RANDOM)" = "equal_after_normalising build-id" ]
	replay 1 --all --normalisers "$SP_DIR/n.json" --normalise=-build-id
	# Another pattern under the same name and version is another key.
	sed 's/build \[/Build [/' "$SP_DIR/n.json" >"$SP_DIR/m.json"
	replay 1 --all --resume --normalisers "$SP_DIR/m.json"
	run -0 "$SP_BIN/sallyport" promote --config "$SP_CONFIG" --suite "$SP_DIR/s" --all --normalise build-id --normalisers "$SP_DIR/n.json"
	run -0 "$SP_BIN/sallyport" grade --config "$SP_CONFIG" "$SP_DIR/s" --normalisers "$SP_DIR/n.json"
	run -2 "$SP_BIN/sallyport" grade --config "$SP_CONFIG" "$SP_DIR/s"
	run -0 "$SP_BIN/sallyport" normalisers --normalisers "$SP_DIR/n.json" --json
	[ "$(tail -1 <<<"$output" | jq -c '[.name, .version[:2], .default, .pattern]')" = '["build-id","3:",true,"build [0-9]+"]' ]
	[ "$(head -1 <<<"$output" | jq -c '[.name, .version, .default]')" = '["newlines","1",true]' ]
	run -0 "$SP_BIN/sallyport" normalisers --normalisers "$SP_DIR/n.json"
	[[ ${lines[-1]} == build-id*"build [0-9]+" ]]
	echo '{' >"$SP_DIR/n.json"
	replay 2 --all --normalisers "$SP_DIR/n.json"
}

@test "repeats find what is flaky though it was as recorded at first" {
	say bash 'echo $((RANDOM % 2))'
	sp_stdio_end
	replay 1 --all --repeat 40
	[ "$(of RANDOM)" = flaky ]
	replay 1 --all --repeat 40 --only flaky
	[ "$(jq .summary.flaky <<<"$summary")" = 1 ]
	replay 0 --all --repeat 40 --only failed
	[ "$(jq -c .summary.classes <<<"$summary")" = '{}' ]
}

@test "--resume after kill -9 gives the same report" {
	say python 'print("first")'
	say python 'import time; print(time.time_ns())'
	sp_say run_code "$(jq -cn --arg code "sleep $SP_ASLEEP; echo last" '{conversationId: "c", language: "bash", $code, timeout_seconds: 300}')" &
	local saying=$!
	sp_wake
	wait "$saying"
	sp_stdio_end
	alter "stdout = 'frist'" first
	"$SP_BIN/sallyport" replay --config "$SP_CONFIG" --all -j 1 --json >"$SP_DIR/whole" 3>&- &
	local replaying=$!
	sp_wake
	wait "$replaying" || [ $? = 1 ]
	"$SP_BIN/sallyport" replay --config "$SP_CONFIG" --all -j 1 --json --results "$SP_DIR/r.db" >"$SP_DIR/killed" 3>&- &
	replaying=$!
	sp_until "$replaying" sp_asleep
	kill -KILL "$replaying"
	wait "$replaying" || true
	sp_until "" sp_none_asleep
	[ "$(sqlite3 "$SP_DIR/r.db" 'SELECT count(*) FROM result')" = 2 ]
	"$SP_BIN/sallyport" replay --config "$SP_CONFIG" --all --json --resume --results "$SP_DIR/r.db" >"$SP_DIR/resumed" 3>&- &
	replaying=$!
	sp_wake
	wait "$replaying" || [ $? = 1 ]
	same_report "$SP_DIR/whole" "$SP_DIR/resumed"
	# Everything is done: nothing sleeps any more. What is printed is what was stored.
	sqlite3 "$SP_DIR/r.db" "UPDATE result SET report = replace(report, 'frist', 'thrift')"
	replay 1 --all --resume --results "$SP_DIR/r.db"
	[[ $output == *thrift* ]]
	# Other normalisers are another key.
	replay 1 --text first --resume --results "$SP_DIR/r.db" --normalise none
	[[ $output == *frist* ]]
	replay 1 --text first --only failed --results "$SP_DIR/r.db"
	[ "$(jq .summary.different <<<"$summary")" = 1 ]
	replay 0 --text first --only missing --results "$SP_DIR/r.db"
}

@test "an interrupt ends it with 5" {
	sp_say run_code "$(jq -cn --arg code "sleep $SP_ASLEEP" '{conversationId: "c", language: "bash", $code, timeout_seconds: 300}')" &
	local saying=$!
	sp_wake
	wait "$saying"
	sp_stdio_end
	(trap - INT; exec "$SP_BIN/sallyport" replay --config "$SP_CONFIG" --all 3>&- 2>"$SP_DIR/said") &
	local replaying=$!
	sp_until "$replaying" sp_asleep
	kill -TERM "$replaying"
	local ended=0
	wait "$replaying" || ended=$?
	[ "$ended" = 5 ]
	grep -q -e --resume "$SP_DIR/said"
	sp_until "" sp_none_asleep
}

@test "--fail-fast ends with the first that differs" {
	for i in 1 2 3 4; do say bash "echo $i"; done
	sp_stdio_end
	alter "stdout = 'x'" "echo 2"
	replay 1 --all -j 1 --fail-fast
	[ "$(jq -c .summary.classes <<<"$summary")" = '{"identical":1,"output_changed":1}' ]
	[[ $stderr == *"2 were not looked at"* ]]
}

@test "shards merge to the whole" {
	for i in 1 2 3 4 5 6 7 8; do say bash "echo $i"; done
	sp_stdio_end
	alter "stdout = 'x'" "echo 2"
	replay 1 --all
	echo "$output" >"$SP_DIR/whole"
	replay 0 --text "echo 1" --shard 1/1 --results "$SP_DIR/one.db"
	run "$SP_BIN/sallyport" replay --config "$SP_CONFIG" --all --shard 1/3 --results "$SP_DIR/s1.db"
	SLURM_ARRAY_TASK_ID=10 SLURM_ARRAY_TASK_MIN=6 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_STEP=4 \
		run "$SP_BIN/sallyport" replay --config "$SP_CONFIG" --all --results "$SP_DIR/s2.db"
	TEST_SHARD_STATUS_FILE="$SP_DIR/status" JOB_COMPLETION_INDEX=2 \
		run "$SP_BIN/sallyport" replay --config "$SP_CONFIG" --all --shard /3 --results "$SP_DIR/s3.db"
	[ -e "$SP_DIR/status" ]
	[ "$(for i in 1 2 3; do sqlite3 "$SP_DIR/s$i.db" "SELECT execution FROM result"; done | sort | uniq -u | wc -l)" = 8 ]
	replay 1 --all --merge "$SP_DIR/s3.db" --merge "$SP_DIR/s1.db" --merge "$SP_DIR/s2.db"
	echo "$output" >"$SP_DIR/merged"
	same_report "$SP_DIR/whole" "$SP_DIR/merged"
	replay 5 --all --merge "$SP_DIR/s3.db" --merge "$SP_DIR/s1.db"
	[[ $stderr == *"shard 2 of 3 is missing"* ]]
	# So it is where its file is named but was never made, or was only just made.
	: >"$SP_DIR/begun.db"
	for file in nowhere begun; do
		replay 5 --all --merge "$SP_DIR/$file.db" --merge "$SP_DIR/s3.db" --merge "$SP_DIR/s1.db"
		[[ $stderr == *"$file.db "*"shard 2 of 3 is missing"* ]]
		replay 5 --all --merge "$SP_DIR/$file.db"
	done
	replay 2 --all --merge "$SP_DIR/s1.db" --merge "$SP_DIR/s1.db"
	replay 2 --all --merge "$SP_DIR/s1.db" --merge "$SP_DIR/one.db"
	# Ids are random: of eight cases, a shard may have none.
	for i in 1 2 3; do [ "$(sqlite3 "$SP_DIR/s$i.db" 'SELECT count(*) FROM result')" = 0 ] || some=$i; done
	sqlite3 "$SP_DIR/s$some.db" 'DELETE FROM result'
	replay 5 --all --merge "$SP_DIR/s3.db" --merge "$SP_DIR/s1.db" --merge "$SP_DIR/s2.db"
	[ "$(jq '.summary.classes.missing > 0' <<<"$summary")" = true ]
	# More executions move none from one shard to another.
	rm "$SP_DIR/in"
	sp_stdio
	for i in 9 10 11 12; do say bash "echo $i"; done
	sp_stdio_end
	for i in 1 2 3; do
		[ "$i" != "$some" ] || continue
		sqlite3 "$SP_DIR/s$i.db" 'SELECT execution FROM result' | sort >"$SP_DIR/before"
		run "$SP_BIN/sallyport" replay --config "$SP_CONFIG" --all --shard "$i/3" --results "$SP_DIR/n$i.db"
		[ -z "$(sqlite3 "$SP_DIR/n$i.db" 'SELECT execution FROM result' | sort | comm -13 - "$SP_DIR/before")" ]
		[ "$(sqlite3 "$SP_DIR/n$i.db" 'SELECT execution FROM result' | sort | comm -23 - "$SP_DIR/before" | sort)" = \
			"$(sqlite3 "$SP_DIR/n$i.db" "SELECT execution FROM result WHERE execution IN (SELECT value FROM json_each('$(sp_sql "SELECT json_group_array(id) FROM (SELECT id FROM execution ORDER BY id DESC LIMIT 4)")')) ORDER BY execution")" ]
	done
	replay 2 --all --shard 4/3
	replay 2 --all --shard 3
	replay 2 --all --shard /3
	# Half a shard's work is not everybody's.
	TEST_SHARD_INDEX=second TEST_TOTAL_SHARDS=2 replay 2 --all
	[[ $stderr == *"TEST_SHARD_INDEX is 'second'"* ]]
	SLURM_ARRAY_TASK_ID=4000001 SLURM_ARRAY_TASK_MIN=4000000 SLURM_ARRAY_TASK_COUNT=1 replay 2 --all
	[[ $stderr == *"no shard 2 of 1"* ]]
	TEST_SHARD_INDEX='' TEST_TOTAL_SHARDS='' SLURM_ARRAY_TASK_ID=7 JOB_COMPLETION_INDEX=3 run "$SP_BIN/sallyport" replay --config "$SP_CONFIG" --all
	[ "$status" != 2 ]
}

@test "results are of one set of interpreters: under another, or beside other old ones, runs are done again" {
	local now=$BATS_TEST_TMPDIR/now old=$BATS_TEST_TMPDIR/old
	say python 'print("one")'
	say bash 'echo two'
	sp_stdio_end
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_TEST_TMPDIR"
	for folder in "$now" "$old"; do
		cp -r "$SP_ROOT/jail/runners" "$folder"
		cp /bin/true "$folder.bin"
		jq '.name = "mine" | .aliases = [] | .extensions = [] | .interpreters = [$path]' --arg path "$folder.bin" "$folder/bash.json" >"$folder/mine.json"
		chmod -R a+rX "$folder" "$folder.bin"
	done
	# Stored results are printed as they are, so a replay that prints this text ran nothing.
	again() { # CLASS ARGUMENT…
		local class=$1
		shift
		SALLYPORT_JAILER_SOCKET='' SALLYPORT_JAILER_RUNNERS_DIR=$now replay 0 --all --resume --results "$SP_DIR/r.db" "$@"
		[ "$(jq -r 'select(.id) | .class' <<<"$output" | sort -u | xargs)" = "$class" ]
		sqlite3 "$SP_DIR/r.db" "UPDATE result SET report = replace(report, '\"identical\"', '\"stored\"')"
	}
	again identical
	again stored
	touch -d yesterday "$now.bin"
	again identical
	again stored
	again identical --compare default,memory --old-runners "$old"
	again stored --compare default,memory --old-runners "$old"
	echo >>"$old.bin"
	again identical --compare default,memory --old-runners "$old"
	again stored --old-runners "$old" # nothing is compared that they are for
	again identical --deterministic
	again identical --normalise none
	# What says which libraries there are, for those that nobody asked: names of folders, contents of files.
	mkdir -p "$now.libraries/numpy-1.24.2.dist-info"
	echo '"pg": "8.11.3"' >"$now.lock"
	jq --arg names "$now.libraries/*-info" --arg file "$now.lock" '.libraries_are = [$names, $file, "/nowhere/*"]' "$now/python.json" >"$now/new"
	mv "$now/new" "$now/python.json"
	chmod a+r "$now/python.json"
	again identical
	again stored
	mv "$now.libraries/numpy-1.24.2.dist-info" "$now.libraries/numpy-1.24.3.dist-info"
	again identical
	again stored
	echo '"pg": "8.11.4"' >"$now.lock"
	again identical
	again stored
	mkdir "$now.libraries/notes"
	again stored
	mkdir "$now.libraries/more-0.1.egg-info"
	again identical
	# A service knows versions.
	replay 0 --all --resume --results "$SP_DIR/r.db"
	[ "$(jq -r 'select(.id) | .class' <<<"$output" | sort -u)" = identical ]
}

@test "results that do not fit on the disk are counted" {
	for i in 1 2 3 4 5 6 7 8; do say bash "echo $i"; done
	sp_stdio_end
	ulimit -S -f 40
	replay 5 --all --results "$SP_DIR/full.db"
	[[ $stderr == *" results could not be kept: "*"disk I/O error"* ]]
	[ "$(jq .summary.identical <<<"$summary")" = 8 ]
	replay 0 --all
	[[ $stderr == *" results could not be kept: "* ]]
	ulimit -S -f unlimited
	replay 0 --all --resume --results "$SP_DIR/full.db"
	[ "$(sqlite3 "$SP_DIR/full.db" 'SELECT count(DISTINCT execution) FROM result')" = 8 ]
}

@test "filters choose what log shows with them" {
	local filter
	say python 'print("one")'
	say bash 'exit 3'
	sp_say run_code '{"conversationId": "d", "language": "bash", "code": "echo three"}'
	sp_stdio_end
	sqlite3 "$SP_DIR/data/sallyport.db" "UPDATE execution SET created_us = created_us - 7200000000, finished_us = finished_us - 7200000000 WHERE instr(code, 'one')"
	"$SP_BIN/sallyport" tag --config "$SP_CONFIG" mine --language bash
	for filter in "--language bash" "--verdict RE" "--verdict OK --conversation c" "--conversation d" "--since 1h" "--until 1h" "--text three" "--tag mine" \
		"--tag mine --verdict OK" "--owner local" "--owner nobody" "--task 1234"; do
		# shellcheck disable=SC2086 # words
		replay 0 $filter
		# shellcheck disable=SC2086
		diff <(jq -r 'select(.id) | .id' <<<"$output") <("$SP_BIN/sallyport" log --config "$SP_CONFIG" --json $filter | jq -r .id | sort)
		echo "$filter: $(jq -s 'map(select(.id)) | length' <<<"$output")"
	done | tee "$BATS_TEST_TMPDIR/counts"
	[ "$(grep -c ': [12]$' "$BATS_TEST_TMPDIR/counts")" = 9 ]
}

@test "a file that holds no results is left alone" {
	say bash true
	sp_stdio_end
	sqlite3 "$SP_DIR/other.db" 'CREATE TABLE mine (x)'
	replay 2 --all --results "$SP_DIR/other.db"
	[[ $stderr == *"no results"* ]]
	head -c 8192 /dev/urandom >"$SP_DIR/noise.db"
	replay 2 --all --results "$SP_DIR/noise.db"
	sqlite3 "$SP_DIR/newer.db" 'PRAGMA application_id = 0x53505245; PRAGMA user_version = 9; CREATE TABLE result (x)'
	run ! "$SP_BIN/sallyport" replay --config "$SP_CONFIG" --all --results "$SP_DIR/newer.db"
	[[ $output == *"version 9"* ]]
}

@test "two replays are compared by their sums" {
	say python 'print("same")'
	say python 'print(object())'
	say bash 'echo x >&2'
	sp_stdio_end
	replay 0 --all --results "$SP_DIR/a.db"
	# A file of the version before: its results count, and get no sums.
	sqlite3 "$SP_DIR/b.db" "PRAGMA application_id = 0x53505245; PRAGMA user_version = 1;
		CREATE TABLE result (execution TEXT NOT NULL CHECK (length(execution) = 36), key TEXT NOT NULL CHECK (length(key) = 64), class TEXT NOT NULL,
			recorded TEXT NOT NULL, now TEXT NOT NULL, report TEXT NOT NULL CHECK (substr(report, 1, 1) = '{'), PRIMARY KEY (execution, key)) STRICT, WITHOUT ROWID;
		CREATE TABLE shard (id INTEGER PRIMARY KEY, key TEXT NOT NULL, number INTEGER NOT NULL, count INTEGER NOT NULL CHECK (number BETWEEN 1 AND count)) STRICT;
		ATTACH '$SP_DIR/a.db' AS a;
		INSERT INTO result SELECT execution, key, class, recorded, now, report FROM a.result WHERE report LIKE '%bash%'"
	replay 0 --all --resume --results "$SP_DIR/b.db"
	sums() { sqlite3 "$SP_DIR/$1.db" "SELECT coalesce($2, 'none') FROM result WHERE report LIKE '%$3%' ORDER BY execution"; }
	[ "$(sums a stdout python | head -1)" = "$(echo same | sha256sum | cut -d' ' -f1)" ]
	[ "$(sums a stdout_normalised python | tail -1)" = "$(printf '<object object at [ADDRESS]>' | sha256sum | cut -d' ' -f1)" ]
	[ "$(sums a stdout python | tail -1)" != "$(sums a stdout_normalised python | tail -1)" ]
	[ "$(sums a stdout_normalised python)" = "$(sums b stdout_normalised python)" ]
	[ "$(sums a stderr bash)" = "$(echo x | sha256sum | cut -d' ' -f1)" ]
	[ "$(sums b stderr bash)" = none ]
	replay 0 --all --compare verdict --results "$SP_DIR/a.db"
	[ "$(sqlite3 "$SP_DIR/a.db" 'SELECT count(*), count(stdout), count(stderr_normalised) FROM result')" = '6|3|3' ]
	# A run that puts out something else, found by the query of docs/batch.md.
	sqlite3 "$SP_DIR/b.db" "UPDATE result SET stdout_normalised = 'other' WHERE report LIKE '%python%'"
	run -0 sqlite3 "$SP_DIR/a.db" -cmd "ATTACH '$SP_DIR/b.db' AS new" "$(sed -n '/^SELECT execution/,/^```/p' "$SP_ROOT/docs/batch.md" | grep -v '^```')"
	[ "${#lines[@]}" = 2 ]
}

@test "files that were cut are named as damaged" {
	local before n
	for ((n = 0; n < 8; n++)); do say bash "echo $n # $(printf '%04000d' 0)"; done
	sp_stdio_end
	replay 0 --all --results "$SP_DIR/cut.db"
	run -0 "$SP_BIN/sallyport" promote --config "$SP_CONFIG" --suite "$SP_DIR/cut.suite" --all
	cut_file() {
		sqlite3 "$1" 'PRAGMA journal_mode = DELETE' >/dev/null # all of it is in one file
		truncate -s $(($(stat -c %s "$1") / 2)) "$1"
		before=$(sha256sum <"$1")
	}
	cut_file "$SP_DIR/cut.suite"
	run -2 --separate-stderr "$SP_BIN/sallyport" grade --config "$SP_CONFIG" "$SP_DIR/cut.suite"
	[[ $stderr == *"cut.suite"*"malformed"* ]]
	[ "$(sha256sum <"$SP_DIR/cut.suite")" = "$before" ]
	cut_file "$SP_DIR/cut.db"
	replay 11 --all --resume --results "$SP_DIR/cut.db"
	[[ $stderr == *"cut.db"*"malformed"* ]]
	[ "$(sha256sum <"$SP_DIR/cut.db")" = "$before" ]
	sqlite3 "$SP_DIR/data/sallyport.db" "PRAGMA user_version = 999"
	replay 8 --all
	[[ $stderr == *"install the newer release"* ]]
	run -8 "$SP_BIN/sallyport" export --config "$SP_CONFIG" --all -o "$SP_DIR/none"
	[ ! -e "$SP_DIR/none" ]
	sqlite3 "$SP_DIR/data/sallyport.db" "PRAGMA user_version = $(sed -n 's/^PRAGMA user_version = \([0-9]*\);.*/\1/p' "$SP_ROOT/schema.sql")"
	cut_file "$SP_DIR/data/sallyport.db"
	replay 11 --all
	[[ $stderr == *"the database is damaged"*"restore it from a backup"* ]]
	[ "$(sha256sum <"$SP_DIR/data/sallyport.db")" = "$before" ]
}

@test "other interpreters: --runner, several, the first bad one of an ordered list" {
	local good=/usr/bin/python3 bad=/bin/echo tried
	say python 'print(6 * 7)'
	say bash 'echo other'
	sp_stdio_end
	replay 0 --all --runner "python=$good"
	[ "$(jq -c 'select(.runner)' <<<"$output")" = "{\"runner\":\"python=$good\"}" ]
	[ "$(jq -c '.identical' <<<"$(jq .summary <<<"$summary")")" = 2 ]
	replay 1 --all --runner "python=$good" --runner "python=$bad"
	[ "$(jq -c 'select(.runner) | .runner' <<<"$output" | paste -sd ' ')" = "\"python=$good\" \"python=$bad\"" ]
	[ "$(jq -r 'select(.class) | .class' <<<"$output" | sort | uniq -c | xargs)" = "3 identical 1 output_changed" ]
	replay 1 --all --first-bad --runner "python=$good" --runner="python=$good" --runner "python=$good" --runner "python=$bad" --runner "python=$bad" \
		--runner "python=$bad" --runner "python=$bad"
	[ "$(jq -r 'select(.first_bad) | .first_bad' <<<"$output")" = "python=$bad" ]
	tried=$(jq -r 'select(.runner) | .runner' <<<"$output" | wc -l)
	[ "$tried" = 3 ]
	replay 0 --all --first-bad --runner "python=$good"
	[ "$(tail -1 <<<"$output")" = '{"first_bad":null}' ]
	replay 2 --all --runner python3
	replay 2 --all --runner python=python3
	replay 2 --all --runner cobol=/bin/sh
	[[ $stderr == *"no runner of that name"* ]]
}

@test "--runner: an interrupted replay leaves no program behind" {
	local ended pid said=$SP_DIR/said signal
	say bash "sleep $SP_ASLEEP" &
	pid=$!
	sp_wake
	wait "$pid"
	say bash 'echo 1'
	sp_stdio_end
	for signal in TERM KILL; do
		(exec "$SP_BIN/sallyport" replay --config "$SP_CONFIG" --all --results "$SP_DIR/ended.db" \
			--runner bash=/bin/bash --runner bash=/bin/bash 3>&- >"$said" 2>&1) &
		pid=$!
		sp_until "$pid" sp_asleep
		kill "-$signal" "$pid"
		ended=0
		wait "$pid" || ended=$?
		[ "$ended" = "$([ $signal = TERM ] && echo 5 || echo 137)" ]
		sp_until "" sp_none_asleep
		[ "$(grep -c '^==' "$said")" = 1 ]
	done
	# None of a long list of arguments is forgotten.
	mapfile -t many < <(yes -- -q | head -n 5000)
	replay 0 "${many[@]}" --runner bash=/bin/bash "$(sp_sql "SELECT id FROM execution WHERE instr(code, 'echo')")"
	[ "$(jq .summary.identical <<<"$summary")" = 1 ]
	replay 2 --all --first-bad
	replay 2 --all --runner bash=/bin/bash --runner bash=/bin/bash --report "tap=$SP_DIR/r.tap"
}

@test "a suspect is slower only if it is so in turn with the old interpreter, whatever was recorded" {
	local slow=$BATS_TEST_TMPDIR/slow recorded now
	cp -r "$SP_ROOT/jail/runners" "$slow"
	jq '.run = ["/bin/bash", "-c", "for ((i = 0; i < 300000; i++)); do :; done; exec \"$0\" \"$@\"", .run[]]' "$SP_ROOT/jail/runners/python.json" \
		>"$slow/python.json"
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_TEST_TMPDIR"
	chmod -R a+rX "$slow"
	say python 'print("suspect")'
	sp_stdio_end
	# The machine that recorded it was ten times as fast, it seems.
	alter "run_cpu_user_us = 500, run_cpu_system_us = 0, run_memory_peak = 4096" suspect
	replay 1 --all --compare default,cpu
	[ "$(of suspect)" = slower ]
	replay 1 --all --compare default,memory
	[ "$(of suspect)" = more_memory ]
	replay 0 --all --compare default,cpu,memory --runner python=/usr/bin/python3
	[ "$(of suspect)" = identical ]
	SALLYPORT_JAILER_SOCKET='' SALLYPORT_JAILER_RUNNERS_DIR=$slow replay 1 --all --compare default,cpu --old-runners "$SP_ROOT/jail/runners"
	[ "$(of suspect)" = slower ]
	recorded=$(jq -r 'select(.class == "slower") | .differences[0].recorded' <<<"$output")
	now=$(jq -r 'select(.class == "slower") | .differences[0].now' <<<"$output")
	[ "$recorded" -gt 500 ]
	[ "$now" -gt $((recorded * 12 / 10)) ]
	# The other way round: the slow one is what was there before.
	alter "run_cpu_user_us = 60000000" suspect
	replay 1 --all --compare default,cpu --old-runners "$slow"
	[ "$(of suspect)" = faster ]
	[ "$(jq -r 'select(.class == "faster") | .differences[0].recorded' <<<"$output")" -lt 60000000 ]
	# An old side that cannot run is no result.
	jq '.run = ["/nowhere"]' "$SP_ROOT/jail/runners/python.json" >"$slow/python.json"
	replay 3 --all --compare default,cpu --old-runners "$slow"
	[[ "$(jq -r 'select(.class == "sandbox_error") | .reason' <<<"$output")" == "under the old runner: "* ]]
	replay 8 --all --compare default,cpu --old-runners /nowhere
	[[ $stderr == *nowhere* ]]
}

# policy_of_replay ARGUMENT…: how the kernel schedules the command (5: idle), and whether the group of its jail is idle, while a program of it runs.
policy_of_replay() {
	local replay path
	"$SP_BIN/sallyport" replay --config "$SP_CONFIG" --json -j 1 "$@" >"$SP_DIR/out" 2>"$SP_DIR/err" 3>&- &
	replay=$!
	sp_until "$replay" sp_asleep
	path=$(sed -n 's/^[0-9]*:\(cpu\|cpu,cpuacct\)://p; s/^0:://p' "/proc/$(pgrep -fx "sleep $SP_ASLEEP")/cgroup" | head -1)
	policy=$(cut -d' ' -f41 "/proc/$replay/stat")
	idle=$(cat "/sys/fs/cgroup/cpu$path/cpu.idle" 2>/dev/null || cat "/sys/fs/cgroup$path/cpu.idle" 2>/dev/null || echo unknown)
	sp_wake
	wait "$replay"
}

@test "replays are idle where a gateway serves" {
	sp_say run_code "$(jq -cn --arg code "sleep $SP_ASLEEP; echo done" '{conversationId: "c", language: "bash", $code, timeout_seconds: 300}')" &
	local saying=$!
	sp_wake
	wait "$saying"
	sp_stdio_end
	policy_of_replay --all
	[ "$policy" = 0 ] && [ "$idle" != 1 ]
	sp_start_gateway
	policy_of_replay --all
	[ "$policy" = 5 ] && [ "$idle" != 0 ]
	policy_of_replay --all --priority normal
	[ "$policy" = 0 ] && [ "$idle" != 1 ]
	policy_of_replay --all --priority idle
	sp_stop "$SP_GATEWAY_PID"
	[ "$policy" = 5 ]
	[ "$(tail -1 "$SP_DIR/out" | jq .summary.different)" = 0 ]
}

@test "what a run ran on is stored once" {
	local python interpreter
	say python 'print("one")'
	say python 'print("two")'
	say bash 'echo three'
	sp_stdio_end
	rm "$SP_DIR/in"
	sp_stdio # another start meets what is there
	say python 'print("four")'
	sp_stdio_end
	[ "$(sp_sql 'SELECT count(*), count(runtime), count(DISTINCT runtime) FROM execution')" = '4|4|2' ]
	[ "$(sp_sql 'SELECT count(*) FROM runtime')" = 2 ]
	python=$(sp_sql "SELECT description FROM runtime WHERE description ->> 'runner' = 'python'")
	interpreter=$(jq -r .interpreter <<<"$python")
	[ "$(jq -r .sha256 <<<"$python")" = "$(sha256sum "$interpreter" | cut -d' ' -f1)" ]
	[ "$(jq -r .kernel <<<"$python")" = "$(uname -r)" ]
	[ "$(jq -r .version <<<"$python")" = "$(/usr/bin/python3 --version)" ]
	[ "$(jq -r .architecture <<<"$python")" = "$(uname -m)" ]
	[ "$(jq -r .processor <<<"$python")" = "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" ]
	[ "$(jq -r .libraries.numpy <<<"$python")" = "$(/usr/bin/python3 -c 'import numpy; print(numpy.__version__)')" ]
	run -0 "$SP_BIN/sallyport" show --config "$SP_CONFIG" "$(sp_sql "SELECT id FROM execution WHERE instr(code, 'four')")"
	grep -qE '^ran on +interpreter +/' <<<"$output"
	grep -qE "^ +kernel +$(uname -r)$" <<<"$output"
	run -0 "$SP_BIN/sallyport" show --json --config "$SP_CONFIG" "$(sp_sql "SELECT id FROM execution WHERE instr(code, 'four')")"
	[ "$(jq -c .runtime <<<"$output")" = "$python" ]
	# Nothing differs in what it ran on.
	alter "stdout = 'eno'" one
	replay 1 --all
	[ "$(jq -c 'select(.class == "output_changed") | .runtime' <<<"$output")" = '[]' ]
	[ "$(jq -c 'select(.class == "identical") | .runtime' <<<"$output" | sort -u)" = null ]
	sqlite3 "$SP_DIR/data/sallyport.db" "UPDATE runtime SET description = json_set(description, '$.kernel', '2.4.0', '$.processor', 'Z80', '$.libraries.numpy', '0.1', '$.libraries.gone', '7')"
	replay 1 --all
	[ "$(jq -c 'select(.class == "output_changed") | .runtime | map([.what, .recorded]) | sort' <<<"$output")" = '[["kernel","2.4.0"],["library gone","7"],["library numpy","0.1"],["processor","Z80"]]' ]
	run -1 "$SP_BIN/sallyport" replay --config "$SP_CONFIG" --all
	grep -q "^  ran on another kernel: recorded 2.4.0, now $(uname -r)$" <<<"$output"
}

@test "tags are given by ids or filters" {
	say python 'print("one")'
	say python 'print("two")'
	say bash 'echo three'
	local one cli=("$SP_BIN/sallyport")
	on() {
		local command=$1
		shift
		"${cli[@]}" "$command" --config "$SP_CONFIG" --json "$@"
	}
	codes() {
		on log "$@" | jq -r .id | while read -r id; do sp_sql "SELECT code FROM execution WHERE id = '$id'"; done | sort | xargs
	}
	one=$(sp_sql "SELECT id FROM execution WHERE instr(code, 'one')")
	[ "$(on tag nightly --language python | jq -c .)" = '{"tag":"nightly","executions":2,"changed":2}' ]
	[ "$(on tag nightly "$one" | jq .changed)" = 0 ]
	[ "$(on tag v1.2:smoke/a "${one:0:30}" | jq .changed)" = 1 ]
	[ "$(on tag | jq -c '[.[] | [.tag, .executions]]')" = '[["nightly",2],["v1.2:smoke/a",1]]' ]
	[ "$(codes --tag nightly)" = "print(one) print(two)" ]
	[ "$(codes --tag v1.2:smoke/a)" = "print(one)" ]
	[ "$(codes --tag none)" = "" ]
	replay 0 --tag nightly
	[ "$(jq .summary.identical <<<"$summary")" = 2 ]
	replay 0 --tag nightly --text two
	[ "$(jq .summary.identical <<<"$summary")" = 1 ]
	on export --output "$BATS_TEST_TMPDIR/b" --tag v1.2:smoke/a
	[ "$(sqlite3 "$BATS_TEST_TMPDIR/b" 'SELECT id FROM execution')" = "$one" ]
	# By another tag, and away again.
	[ "$(on tag other --tag nightly | jq .changed)" = 2 ]
	[ "$(on tag --remove nightly "$one" | jq .changed)" = 1 ]
	[ "$(codes --tag nightly)" = "print(two)" ]
	[ "$(on tag --remove nightly --all | jq -c '[.executions, .changed]')" = '[3,1]' ]
	[ "$(on tag | jq -c 'map(.tag)')" = '["other","v1.2:smoke/a"]' ]
	# What is wrong changes nothing.
	for name in "" "a b" "a,b" "$(printf 'x%.0s' {1..65})"; do run -2 on tag "$name" --all; done
	run -2 on tag good
	run -2 on tag --remove
	run -3 on tag good 00000000-0000-7000-8000-000000000000
	[ "$(on tag | jq length)" = 2 ]
	run -0 "${cli[@]}" verify --config "$SP_CONFIG"
	[ "$(sp_sql "SELECT count(*) FROM audit WHERE kind = 'admin.act'")" = 5 ]
}
