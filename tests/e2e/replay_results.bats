#!/usr/bin/env bats
# sallyport replay --results: what outlives it: --resume after kill -9, --only, shards and --merge, sums, damage.
# shellcheck disable=SC2016 # dollars in the programs are not for this shell
# shellcheck disable=SC2154 # bats sets stderr

bats_require_minimum_version 1.5.0
load lib.bash
load recorded.bash

setup() {
	empty_record
	sp_stdio
}

same_report() { # FILE FILE
	diff <(sed 's/"seconds":[0-9.]*//' "$1") <(sed 's/"seconds":[0-9.]*//' "$2")
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
	[ "$(jq .different <<<"$summary")" = 1 ]
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
	[ "$(jq '.classes.missing > 0' <<<"$summary")" = true ]
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

@test "results are of one set of interpreters" {
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
	[ "$(jq .identical <<<"$summary")" = 8 ]
	replay 0 --all
	[[ $stderr == *" results could not be kept: "* ]]
	ulimit -S -f unlimited
	replay 0 --all --resume --results "$SP_DIR/full.db"
	[ "$(sqlite3 "$SP_DIR/full.db" 'SELECT count(DISTINCT execution) FROM result')" = 8 ]
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
	replay 0 --all --results "$SP_DIR/b.db"
	sums() { sqlite3 "$SP_DIR/$1.db" "SELECT coalesce($2, 'none') FROM result WHERE report LIKE '%$3%' ORDER BY execution"; }
	[ "$(sums a stdout python | head -1)" = "$(echo same | sha256sum | cut -d' ' -f1)" ]
	[ "$(sums a stdout_normalised python | tail -1)" = "$(printf '<object object at [ADDRESS]>' | sha256sum | cut -d' ' -f1)" ]
	[ "$(sums a stdout python | tail -1)" != "$(sums a stdout_normalised python | tail -1)" ]
	[ "$(sums a stdout_normalised python)" = "$(sums b stdout_normalised python)" ]
	[ "$(sums a stderr bash)" = "$(echo x | sha256sum | cut -d' ' -f1)" ]
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
