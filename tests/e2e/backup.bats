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

@test "a backup is updated in place and restored" {
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
	[ "$(sqlite3 "$SP_DIR/back/sallyport.db" "SELECT count(*) FROM audit WHERE kind = 'restore'")" = 1 ]
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
		cat "$SP_DIR"/acknowledged.* | head -n "$before" | sort >"$SP_DIR/earlier"
		cli 0 sallyport backup --key "$SP_DIR/save"
		sqlite3 -readonly "$SP_DIR/save/sallyport.db" "SELECT conversation_name FROM execution WHERE state = 'finished'" | sort >"$SP_DIR/saved"
		[ -s "$SP_DIR/earlier" ]
		[ -z "$(comm -23 "$SP_DIR/earlier" "$SP_DIR/saved")" ]
		cli 0 sallyport verify --blobs "$SP_DIR/save"
	done
	touch "$SP_DIR/enough"
	wait "${pids[@]}"
	[ "$before" -gt 4 ]
	cli 0 back restore "$SP_DIR/save"
	cli 0 back verify --blobs
	rm -r "$SP_DIR/back"
}

@test "a backup killed at any step leaves a whole moment" {
	local point killed=0 code
	for point in renameat:1 renameat:2 renameat:3 renameat:4 syncfs:1 fsync:1 fsync:2 mkdirat:1 unlink:1 write:3 pwrite64:5; do
		call "open('file', 'w').write('$point'); print('$point')"
		strace -f -o /dev/null -e trace="${point%:*}" -e inject="${point%:*}:signal=KILL:when=${point#*:}" \
			"$SP_BIN/sallyport" backup --key --config "$SP_CONFIG" "$SP_DIR/save" >/dev/null 2>&1 && code=0 || code=$?
		[ "$code" = 0 ] || killed=$((killed + 1))
		cmp "$SP_DIR/save/secret.key" "$SP_DIR/data/secret.key"
		cli 0 sallyport verify --blobs "$SP_DIR/save"
		cli 0 back restore "$SP_DIR/save"
		rm -r "$SP_DIR/back"
	done
	[ "$killed" -ge 7 ]
	cli 0 sallyport backup "$SP_DIR/save"
	[ "$(moment "$SP_DIR/save")" = "$(moment "$SP_DIR/data")" ]
}

@test "a restore that was killed can be repeated" {
	local point code killed=0
	for point in renameat:9 syncfs:1 fsync:2 write:5 renameat:1; do
		strace -f -o /dev/null -e trace="${point%:*}" -e inject="${point%:*}:signal=KILL:when=${point#*:}" \
			"$SP_BIN/sallyport" restore --config "$SP_DIR/back.json" "$SP_DIR/save" >/dev/null 2>&1 && code=0 || code=$?
		[ "$code" = 0 ] || killed=$((killed + 1))
		if [ ! -e "$SP_DIR/back/sallyport.db" ] && [ -d "$SP_DIR/back/blobs" ]; then
			run ! timeout 10 "$SP_BIN/sallyport-gateway" --config "$SP_DIR/back.json"
			[[ $output == *"a restore to "*" did not end: repeat sallyport restore"* ]]
			[ ! -e "$SP_DIR/back/sallyport.db" ]
		fi
		[ ! -e "$SP_DIR/back/sallyport.db" ] || rm -r "$SP_DIR/back" # it was put in its place before
	done
	[ "$killed" -ge 4 ]
	[ -e "$SP_DIR/back/restoring" ]
	cli 0 back restore "$SP_DIR/save"
	[ ! -e "$SP_DIR/back/restoring" ]
	cli 0 back verify --blobs
	rm -r "$SP_DIR/back"
}

@test "a restore that was killed behind its end ends with the next one, which restores nothing again" {
	strace -f -o /dev/null -e trace=unlink -e inject=unlink:signal=KILL:when=1 \
		"$SP_BIN/sallyport" restore --config "$SP_DIR/back.json" "$SP_DIR/save" >/dev/null 2>&1 || true
	[ -e "$SP_DIR/back/restoring" ]
	[ -e "$SP_DIR/back/sallyport.db" ]
	local inode
	inode=$(stat -c %i "$SP_DIR/back/sallyport.db")
	cli 0 back restore "$SP_DIR/save"
	[ ! -e "$SP_DIR/back/restoring" ]
	[ "$(stat -c %i "$SP_DIR/back/sallyport.db")" = "$inode" ]
	cli 0 back verify --blobs
	cli 5 back restore "$SP_DIR/save"
	[[ $stderr == *"is not empty"* ]]
	rm -r "$SP_DIR/back"
}

@test "of two restores into one folder at once one is whole and the other is refused" {
	local first second
	for _ in 1 2 3 4 5; do
		"$SP_BIN/sallyport" restore --config "$SP_DIR/back.json" "$SP_DIR/save" >"$SP_DIR/one" 2>&1 &
		first=$!
		"$SP_BIN/sallyport" restore --config "$SP_DIR/back.json" "$SP_DIR/save" >"$SP_DIR/two" 2>&1 && second=0 || second=$?
		wait "$first" && first=0 || first=$?
		cat "$SP_DIR/one" "$SP_DIR/two"
		[ "$first" = 0 ] || [ "$second" = 0 ]
		[ "$first" = 0 ] || grep -E 'another restore writes|is not empty|has a database' "$SP_DIR/one"
		[ "$second" = 0 ] || grep -E 'another restore writes|is not empty|has a database' "$SP_DIR/two"
		cli 0 back verify --blobs
		rm -r "$SP_DIR/back"
	done
}

@test "a backup that cannot be made is refused" {
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

@test "a restore onto a full disk fails until there is room" {
	[ "$(id -u)" = 0 ] || skip "mounting a small file system needs root"
	mkdir -p "$SP_DIR/narrow"
	jq '.data_dir = "narrow/data"' "$SP_DIR/back.json" >"$SP_DIR/narrow.json"
	# shellcheck disable=SC2016 # the inner shell expands them
	run -0 unshare -m bash -c '
		restore() { "$SP_BIN/sallyport" restore --config "$SP_DIR/narrow.json" "$SP_DIR/save"; }
		mount -t tmpfs none "$SP_DIR/narrow" || exit 77
		for room in 100k 600k 2m; do
			mount -o remount,size=$room "$SP_DIR/narrow" || exit 77
			restore && exit 78
			[ ! -e "$SP_DIR/narrow/data/sallyport.db" ] || exit 79
		done
		mount -o remount,size=1g "$SP_DIR/narrow" && restore && [ ! -e "$SP_DIR/narrow/data/restoring" ] || exit 80
		"$SP_BIN/sallyport" verify --blobs --config "$SP_DIR/narrow.json" && cp -r "$SP_DIR/narrow/data" "$SP_DIR/roomy"'
	echo "$output"
	[ "$(grep -ci "no space left\|disk is full" <<<"$output")" = 3 ]
	[ "$(moment "$SP_DIR/roomy")" = "$(moment "$SP_DIR/save")" ]
}

@test "a backup that is not whole is refused" {
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

@test "a backup reports that its record was altered" {
	cli 0 back restore "$SP_DIR/save"
	sqlite3 "$SP_DIR/back/sallyport.db" "UPDATE execution SET verdict = 'CX' WHERE id = (SELECT min(id) FROM execution)"
	cli 1 back backup "$SP_DIR/altered"
	[[ $stderr == *"does not fit its audit log"* ]]
	[ -e "$SP_DIR/altered/manifest.json" ]
}

@test "what was erased after the backup is erased once more" {
	sp_call run_code '{"conversationId":"gone","language":"bash","code":"echo secret-word >file; echo said"}'
	sp_call run_code '{"conversationId":"stays","language":"bash","code":"echo other"}'
	local id
	id=$(sp_sql "SELECT id FROM execution WHERE conversation_name = 'gone'")
	cli 0 sallyport backup --key "$SP_DIR/undone"
	cli 0 sallyport forget --owner alice --conversation gone --yes
	cli 0 sallyport forget --list
	cp /dev/null "$SP_DIR/erasures"
	echo "$output" >"$SP_DIR/erasures"
	grep -q "^[0-9]* execution:$id content$" "$SP_DIR/erasures"
	grep -q '^[0-9]* conversation:[0-9a-f]* content$' "$SP_DIR/erasures"
	local from
	for from in data erasures; do
		rm -rf "$SP_DIR/back"
		cli 0 back restore "$SP_DIR/undone"
		cli 0 back show --json "$id"
		[ "$(jq -r .erased <<<"$output")" = null ]
		rm -rf "$SP_DIR/back"
		cli 0 back restore --erasures "$SP_DIR/$from" "$SP_DIR/undone"
		[[ $output == *"erased once more: 2 runs and conversations"* ]]
		cli 0 back show --json "$id"
		[ "$(jq -r .erased <<<"$output")" = content ]
		cli 0 back files --json
		[[ $output != *'"gone"'* ]]
		cli 0 back log --json --conversation stays
		[ "$(jq -r .erased <<<"$output")" = null ]
		cli 0 back verify
	done
	# What the backup knows of already is left alone.
	cli 0 sallyport backup --key "$SP_DIR/undone"
	rm -rf "$SP_DIR/back"
	cli 0 back restore --erasures "$SP_DIR/erasures" "$SP_DIR/undone"
	[[ $output == *"erased once more: 0 runs"* ]]
	echo "1 execution" >"$SP_DIR/erasures"
	rm -rf "$SP_DIR/back"
	cli 2 back restore --erasures "$SP_DIR/erasures" "$SP_DIR/undone"
	[[ $stderr == *"line 1: a number, an object"* ]]
	cli 2 sallyport forget --list --yes
}

# The database as the upgrade to the next release leaves it, and the way back.
@test "the copy made before an upgrade takes its place" {
	local old=$SP_DIR/old pid copy before newest
	sed -e 's|"data_dir": "data"|"data_dir": "old"|' -e 's|gateway.sock|old.sock|' "$SP_CONFIG" >"$SP_DIR/old.json"
	cli 0 sallyport backup --key "$SP_DIR/of-old"
	cli 0 old restore "$SP_DIR/of-old"
	rows() { sqlite3 -readonly "$old/sallyport.db" 'PRAGMA user_version; SELECT group_concat(id) FROM (SELECT id FROM execution ORDER BY id)'; }
	before=$(rows)
	newest=$(head -1 <<<"$before")
	cli 3 old restore --before-upgrade # there was none yet
	[[ $stderr == *"no upgrade made one"* ]]
	[ "$(rows)" = "$before" ]
	"$SP_BIN/sallyport-gateway" --config "$SP_DIR/old.json" >>"$SP_DIR/old.log" 2>&1 3>&- &
	pid=$!
	echo "$pid" >>"$SP_DIR/pids"
	sp_until "$pid" sp_listens "$SP_DIR/old.sock"
	cli 5 old restore --before-upgrade
	[[ $stderr == *"a gateway serves"*"systemctl stop"* ]]
	sp_stop "$pid"
	copy=sallyport.db.version-$newest.20261122T150000Z
	sqlite3 -readonly "$old/sallyport.db" "VACUUM INTO '$old/$copy'"
	sqlite3 "$old/sallyport.db" "PRAGMA user_version = $((newest + 1))"
	cli 8 old log
	[[ $stderr == *"install the newer release"* ]]

	# Somebody reads: refused. Wrong words: refused. A damaged copy: refused. Everything is as it was.
	mkfifo "$SP_DIR/reader"
	sqlite3 "$old/sallyport.db" <"$SP_DIR/reader" >"$SP_DIR/read" 3>&- &
	local reader=$!
	exec 8>"$SP_DIR/reader"
	echo 'BEGIN; SELECT count(*) FROM execution;' >&8
	sp_until "$reader" test -s "$SP_DIR/read"
	cli 5 old restore --before-upgrade
	[[ $stderr == *"is open in another process"* ]]
	exec 8>&-
	wait "$reader"
	cli 2 old restore --before-upgrade "$SP_DIR/save"
	cli 2 old restore
	cp "$old/$copy" "$SP_DIR/whole"
	dd if=/dev/urandom of="$old/$copy" bs=4096 seek=2 count=3 conv=notrunc status=none
	cli 11 old restore --before-upgrade
	[ "$(rows | head -1)" = $((newest + 1)) ]
	cp "$SP_DIR/whole" "$old/$copy"

	# A run since the upgrade is set aside with the rest, not lost. An older copy is not taken.
	sqlite3 "$old/sallyport.db" "INSERT INTO uptime (one, served_us) VALUES (1, 0) ON CONFLICT DO NOTHING; CREATE TABLE mark (x)"
	cp "$SP_DIR/whole" "$old/sallyport.db.version-$newest.20200101T000000Z"
	cli 0 old restore --before-upgrade --json
	[ "$(jq -c '[.schema, .lost]' <<<"$output")" = "[$newest,0]" ]
	[ "$(rows)" = "$before" ]
	[ ! -e "$old/sallyport.db-wal" ] && [ ! -e "$old/sallyport.db-shm" ]
	[ -e "$old/sallyport.db.version-$newest.20200101T000000Z" ] && [ ! -e "$old/$copy" ]
	[ "$(sqlite3 -readonly "$old/$(jq -r .set_aside <<<"$output")" 'SELECT count(*) FROM mark')" = 0 ]
	"$SP_BIN/sallyport-gateway" --config "$SP_DIR/old.json" >>"$SP_DIR/old.log" 2>&1 3>&- &
	pid=$!
	echo "$pid" >>"$SP_DIR/pids"
	sp_until "$pid" sp_listens "$SP_DIR/old.sock"
	sp_stop "$pid"
	[ "$(rows)" = "$before" ]
}
