#!/usr/bin/env bats
# sallyport backup and restore: under load, again into the same folder, killed, without room, into itself, damaged, of a newer release.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	sp_setup
	sp_token alice
	sp_start_jailer
	sp_start_gateway
	call 'open("big", "w").write("x" * 3000000); print("first")'
	call 'open("small", "w").write("y"); print("z" * 100000)'
	sed 's|"data_dir": "data"|"data_dir": "back"|' "$SP_CONFIG" >"$SP_DIR/back.json"
}

teardown_file() {
	sp_teardown
}

cli() { # STATUS CONFIG COMMAND ARGUMENT…
	local wanted=$1 config=$2 command=$3
	shift 3
	run "-$wanted" --separate-stderr "$SP_BIN/sallyport" "$command" --config "$SP_DIR/$config.json" "$@"
	# shellcheck disable=SC2154 # bats sets stderr
	echo "$output" "$stderr"
}

call() { # CODE
	sp_call run_code "$(jq -cn --arg code "$1" '{conversationId: "talk", language: "python", $code}')"
	[ "$SP_STATUS" = 200 ]
}

# Executions and contents of a folder, by which two moments are compared.
moment() {
	sqlite3 -readonly "$1/sallyport.db" 'SELECT id, verdict, code, stdout_blob FROM execution WHERE state <> '"'running'"' ORDER BY id; SELECT sha256 FROM blob ORDER BY 1' | sha256sum
}

@test "a backup, another one into the same folder, and back" {
	cli 0 sallyport backup --key --json "$SP_DIR/save"
	[ "$(jq .executions <<<"$output")" = 2 ]
	[ "$(jq .new_blobs <<<"$output")" = "$(jq .blobs <<<"$output")" ]
	[ "$(stat -c %a "$SP_DIR/save/secret.key")" = 600 ]
	[ "$(moment "$SP_DIR/save")" = "$(moment "$SP_DIR/data")" ]
	call 'open("more", "w").write("m"); print(3)'
	cli 0 sallyport backup --full --json "$SP_DIR/save"
	[ "$(jq .new_blobs <<<"$output")" = 1 ]
	[ "$(sp_sql "SELECT count(*) FROM audit WHERE kind = 'backup.made'")" = 2 ]
	cli 0 sallyport verify --blobs "$SP_DIR/save"
	cli 0 back restore --json "$SP_DIR/save"
	[ "$(jq .executions <<<"$output")" = 3 ]
	[ "$(moment "$SP_DIR/back")" = "$(moment "$SP_DIR/data")" ]
	cli 0 back verify --blobs
	cli 0 back replay --all --json
	[ "$(tail -1 <<<"$output" | jq .summary.identical)" = 3 ]
	# A gateway serves it.
	sed -i 's|gateway.sock|back.sock|' "$SP_DIR/back.json"
	"$SP_BIN/sallyport-gateway" --config "$SP_DIR/back.json" >>"$SP_DIR/back.log" 2>&1 3>&- &
	local pid=$!
	sp_until "$pid" sp_listens "$SP_DIR/back.sock"
	kill -TERM "$pid"
	wait "$pid"
	# What is there is never overwritten.
	cli 5 back restore "$SP_DIR/save"
	[[ $stderr == *"not empty"* ]]
	rm -r "$SP_DIR/back"
}

@test "under load: every run that was acknowledged before it began is in it" {
	local i before pids=()
	for i in 1 2 3 4; do
		(
			n=0 base=$SP_DIR
			SP_DIR=$SP_DIR/client.$i # for what an answer is read from
			mkdir "$SP_DIR"
			while [ ! -e "$base/enough" ]; do
				n=$((n + 1))
				sp_call run_code "$(jq -cn --arg n "$i $n" '{conversationId: $n, language: "bash", code: "echo \($n); echo \($n) >file"}')"
				[ "$SP_STATUS" != 200 ] || echo "$i $n" >>"$base/acknowledged.$i"
			done
		) 3>&- &
		pids+=($!)
	done
	sp_until "" test -s "$SP_DIR/acknowledged.1"
	for i in 1 2 3; do
		before=$(cat "$SP_DIR"/acknowledged.* | wc -l)
		cat "$SP_DIR"/acknowledged.* | head -n "$before" | sort >"$SP_DIR/before"
		cli 0 sallyport backup --key "$SP_DIR/save"
		sqlite3 -readonly "$SP_DIR/save/sallyport.db" "SELECT conversation_name FROM execution WHERE state = 'finished'" | sort >"$SP_DIR/saved"
		[ -s "$SP_DIR/before" ]
		[ -z "$(comm -23 "$SP_DIR/before" "$SP_DIR/saved")" ]
		cli 0 sallyport verify --blobs "$SP_DIR/save"
	done
	touch "$SP_DIR/enough"
	wait "${pids[@]}"
	[ "$before" -gt 4 ]
	cli 0 back restore "$SP_DIR/save"
	cli 0 back verify --blobs
	rm -r "$SP_DIR/back"
}

@test "killed at any step, the folder holds a whole moment, and the next one goes on" {
	local point killed=0 code
	for point in renameat:1 renameat:2 renameat:3 syncfs:1 fsync:1 fsync:2 mkdirat:1 unlink:1 write:3 pwrite64:5; do
		call "open('file', 'w').write('$point'); print('$point')"
		strace -f -o /dev/null -e trace="${point%:*}" -e inject="${point%:*}:signal=KILL:when=${point#*:}" \
			"$SP_BIN/sallyport" backup --config "$SP_CONFIG" "$SP_DIR/save" >/dev/null 2>&1 && code=0 || code=$?
		[ "$code" = 0 ] || killed=$((killed + 1))
		cli 0 sallyport verify --blobs "$SP_DIR/save"
		cli 0 back restore "$SP_DIR/save"
		rm -r "$SP_DIR/back"
	done
	[ "$killed" -ge 7 ]
	cli 0 sallyport backup "$SP_DIR/save"
	[ "$(moment "$SP_DIR/save")" = "$(moment "$SP_DIR/data")" ]
}

@test "a restore that was killed can be repeated, and no gateway takes it for a record" {
	local point code killed=0
	for point in renameat:1 renameat:9 syncfs:1 fsync:2 write:5; do
		strace -f -o /dev/null -e trace="${point%:*}" -e inject="${point%:*}:signal=KILL:when=${point#*:}" \
			"$SP_BIN/sallyport" restore --config "$SP_DIR/back.json" "$SP_DIR/save" >/dev/null 2>&1 && code=0 || code=$?
		[ "$code" = 0 ] || killed=$((killed + 1))
		if [ ! -e "$SP_DIR/back/sallyport.db" ] && [ -d "$SP_DIR/back/blobs" ]; then
			run ! timeout 10 "$SP_BIN/sallyport-gateway" --config "$SP_DIR/back.json"
			rm -f "$SP_DIR/back/sallyport.db"
		fi
	done
	[ "$killed" -ge 4 ]
	[ -e "$SP_DIR/back/restoring" ]
	cli 0 back restore "$SP_DIR/save"
	[ ! -e "$SP_DIR/back/restoring" ]
	cli 0 back verify --blobs
	rm -r "$SP_DIR/back"
}

@test "into itself, two at once, no room" {
	cli 2 sallyport backup "$SP_DIR/data"
	cli 2 sallyport backup "$SP_DIR/data/blobs/save"
	cli 2 sallyport backup "$SP_DIR"
	[ ! -e "$SP_DIR/manifest.json" ]
	exec 9>>"$SP_DIR/save/lock"
	flock 9
	cli 7 sallyport backup "$SP_DIR/save"
	exec 9>&-
	[ "$(id -u)" = 0 ] || skip "mounting a small file system needs root"
	mkdir -p "$SP_DIR/small"
	unshare -m bash -c "mount -t tmpfs -o size=1m tmpfs '$SP_DIR/small' && ! '$SP_BIN/sallyport' backup --config '$SP_CONFIG' '$SP_DIR/small' 2>'$SP_DIR/err' && [ ! -e '$SP_DIR/small/sallyport.db' ]"
	cat "$SP_DIR/err"
	grep -i "no space left" "$SP_DIR/err"
}

@test "a backup that is damaged, altered, of a newer release or without a key is refused" {
	local bad=$SP_DIR/bad content
	bad() { # STATUS WORD
		cli "$1" back restore "$bad"
		[[ $stderr == *"$2"* ]]
		[ ! -e "$SP_DIR/back/sallyport.db" ]
		rm -rf "$bad" "$SP_DIR/back"
	}
	cp -r "$SP_DIR/save" "$bad"
	sqlite3 "$bad/sallyport.db" "UPDATE execution SET message = 'other'"
	bad 11 "not the one of its manifest"
	cp -r "$SP_DIR/save" "$bad"
	content=$(find "$bad/blobs" -mindepth 2 -type f | head -1)
	printf x >>"$content"
	bad 11 "damaged"
	cp -r "$SP_DIR/save" "$bad"
	find "$bad/blobs" -mindepth 2 -type f -delete
	bad 11 "cannot be read"
	cp -r "$SP_DIR/save" "$bad"
	sed -i 's/"schema": .*,/"schema": 999,/' "$bad/manifest.json"
	bad 8 "newer release"
	cp -r "$SP_DIR/save" "$bad"
	rm "$bad/secret.key"
	bad 3 "--key"
	cp -r "$SP_DIR/save" "$bad"
	rm "$bad/secret.key"
	cli 0 back restore --key "$SP_DIR/data/secret.key" "$bad"
	rm -rf "$bad" "$SP_DIR/back"
	mkdir "$bad"
	bad 10 "not a backup"
}

@test "a record that was altered is saved, and said to be" {
	cli 0 back restore "$SP_DIR/save"
	sqlite3 "$SP_DIR/back/sallyport.db" "UPDATE execution SET verdict = 'CX' WHERE id = (SELECT min(id) FROM execution)"
	cli 1 back backup "$SP_DIR/altered"
	[[ $stderr == *"does not fit its audit log"* ]]
	[ -e "$SP_DIR/altered/manifest.json" ]
}
