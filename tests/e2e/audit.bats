#!/usr/bin/env bats
# The audit log from outside: a gateway that serves, a signer under another account, anchors, verify and its exit codes, kills.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	sp_setup
	sp_token alice
	sp_start_jailer
	sp_start_gateway
	chmod 0711 "$SP_DIR"
}

teardown_file() {
	sp_teardown
}

setup() {
	STATE=$SP_DIR/signer
}

cli() { # STATUS COMMAND ARGUMENT…
	local wanted=$1 command=$2
	shift 2
	run "-$wanted" --separate-stderr "$SP_BIN/sallyport" "$command" --config "$SP_CONFIG" "$@"
	# shellcheck disable=SC2154 # bats sets stderr
	echo "$output" "$stderr"
}

call() { # CODE
	sp_call run_code "$(jq -cn --arg code "$1" '{conversationId: "talk", language: "python", $code}')"
	[ "$SP_STATUS" = 200 ]
}

@test "verify holds what a signer signed" {
	cli 3 checkpoint --state "$STATE"
	[[ $stderr == *--init* ]]
	cli 0 checkpoint --state "$STATE" --init test.example/audit
	[[ $output == test.example/audit+* ]]
	[ "$(cat "$STATE/vkey")" = "$output" ]
	cli 5 checkpoint --state "$STATE" --init test.example/audit
	call 'open("f", "w").write("x"); print(1)'
	cli 0 checkpoint --state "$STATE" --anchor "file:$SP_DIR/anchor" --anchor "command:grep -q ^test.example/audit"
	[[ $output == test.example/audit* ]]
	cli 0 checkpoint --state "$STATE" --json
	[ "$(jq .new <<<"$output")" = false ]
	call 'print(2)'
	cli 0 verify --signer "$STATE" --anchor "$SP_DIR/anchor" --blobs --json
	[ "$(jq -r '[.tree, .signatures, .anchors, .coverage, .content] | map(.state) | unique[]' <<<"$output")" = holds ]
	[ "$(jq '.entries - .covered' <<<"$output")" -ge 2 ]
	# Without the signer's folder: by anchor and key.
	cli 0 verify --anchor "$SP_DIR/anchor" --key "$(cat "$STATE/vkey")" "$SP_DIR/data"
	[[ $output == *"signatures  holds"* ]]
	cli 0 verify
	[[ $output == *"not checked"* ]]
}

@test "the signer needs no more than the right to read" {
	[ "$(id -u)" = 0 ] || skip "another account needs root"
	local other=$SP_DIR/other
	mkdir -m 0700 "$other"
	chown nobody "$other"
	as_nobody() {
		setpriv --reuid nobody --clear-groups --inh-caps -all,+dac_read_search --ambient-caps +dac_read_search "$@"
	}
	as_nobody "$SP_BIN/sallyport" checkpoint --config "$SP_CONFIG" --state "$other" --init other.example/audit
	as_nobody "$SP_BIN/sallyport" checkpoint --config "$SP_CONFIG" --state "$other"
	# It cannot write there, and without the capability it cannot even read.
	run ! as_nobody sqlite3 "$SP_DIR/data/sallyport.db" 'CREATE TABLE x (y)'
	run -10 setpriv --reuid nobody --clear-groups "$SP_BIN/sallyport" checkpoint --config "$SP_CONFIG" --state "$other"
}

@test "an anchor that failed gets the newest checkpoint the next time" {
	call 'print(3)'
	cli 1 checkpoint --state "$STATE" --anchor "command:cat >$SP_DIR/sent; exit 3"
	[[ $stderr == *"exit code 3"* ]]
	cli 1 checkpoint --state "$STATE" --anchor "command:cat >$SP_DIR/sent; exit 3" --json
	[ "$(jq .new <<<"$output")" = false ]
	cli 0 checkpoint --state "$STATE" --anchor "command:cat >$SP_DIR/sent"
	cmp "$SP_DIR/sent" "$STATE/checkpoint"
	cli 2 checkpoint --state "$STATE" --anchor carrier-pigeon
}

@test "every second, until history does not fit" {
	cp -r "$SP_DIR/data" "$SP_DIR/copy"
	sed 's|"data_dir": "data"|"data_dir": "copy"|' "$SP_CONFIG" >"$SP_DIR/copy.json"
	cp -r "$STATE" "$SP_DIR/every"
	"$SP_BIN/sallyport" checkpoint --config "$SP_DIR/copy.json" --state "$SP_DIR/every" --every 1 >"$SP_DIR/out" 2>"$SP_DIR/err" &
	local pid=$!
	sqlite3 "$SP_DIR/copy/sallyport.db" "DROP TRIGGER audit_fixed; UPDATE audit SET entry = replace(entry, 'run.begin', 'run.never') WHERE n = (SELECT min(n) FROM audit WHERE kind = 'run.begin')"
	local n code=0
	wait "$pid" || code=$?
	[ "$code" = 11 ]
	n=$(sqlite3 "$SP_DIR/copy/sallyport.db" "SELECT n FROM audit WHERE entry LIKE '%run.never%'")
	[[ $(cat "$SP_DIR/err") == *"rewritten: entry $n "* ]]
	run -1 "$SP_BIN/sallyport" verify --config "$SP_DIR/copy.json" --signer "$SP_DIR/every"
	[[ $output == *"entry $n "* ]]
}

@test "kills between any two steps of the signer contradict nothing" {
	local point code killed=0
	for point in write:1 fsync:1 write:2 fsync:2 write:3 fsync:3 renameat:1 fsync:4; do
		call "print('$point')"
		strace -f -o /dev/null -e trace="${point%:*}" -e inject="${point%:*}:signal=KILL:when=${point#*:}" \
			"$SP_BIN/sallyport" checkpoint --config "$SP_CONFIG" --state "$STATE" >/dev/null 2>&1 && code=0 || code=$?
		[ "$code" = 0 ] || killed=$((killed + 1))
	done
	[ "$killed" -ge 7 ]
	cli 0 checkpoint --state "$STATE"
	cli 0 verify --signer "$STATE" --json
	[ "$(jq '.entries - .covered' <<<"$output")" = 0 ]
}

@test "a file that is not a signer's state is refused" {
	cli 3 verify "$SP_DIR/nowhere"
	sqlite3 "$SP_DIR/foreign.db" 'CREATE TABLE x (y)'
	cli 2 verify "$SP_DIR/foreign.db"
	cp "$SP_DIR/copy/sallyport.db" "$SP_DIR/cut.db"
	truncate -s 40000 "$SP_DIR/cut.db"
	cli 11 verify "$SP_DIR/cut.db"
}

@test "a proof of one run is verified without our programs" {
	local check=$SP_ROOT/docs/audit_check.py id vkey proof=$SP_DIR/proof
	id=$(sp_sql 'SELECT id FROM execution ORDER BY id LIMIT 1')
	vkey=$(cat "$STATE/vkey")
	cli 0 prove "$id" --checkpoint "$STATE/checkpoint" --output "$proof"
	[ "$(head -1 "$proof/run.end.proof")" = c2sp.org/tlog-proof@v1 ]
	run -0 "$check" "$vkey" "$proof"
	[ "${#lines[@]}" = 2 ]
	# The details name the sum of the code.
	[ "$(jq -r .code "$proof/run.begin.detail")" = "$(sp_sql "SELECT code FROM execution WHERE id = '$id'" | head -c -1 | sha256sum | cut -d' ' -f1)" ]
	# Each byte of each file matters.
	local file
	for file in "$proof"/*; do
		cp "$file" "$SP_DIR/kept"
		sed -i '1s/[0-9]/X/' "$file"
		run -1 "$check" "$vkey" "$proof"
		cp "$SP_DIR/kept" "$file"
	done
	run -0 "$check" "$vkey" "$proof"
	run -1 "$check" "$(cat "$SP_DIR/other/vkey")" "$proof"
	# Younger than the checkpoint; a log that is not the checkpoint's.
	call 'print("young")'
	cli 8 prove "$(sp_sql 'SELECT max(id) FROM execution')" --checkpoint "$STATE/checkpoint" --output "$proof"
	cli 3 prove "$id" --checkpoint "$STATE/none" --output "$proof"
	cli 2 prove
	run -11 "$SP_BIN/sallyport" prove --config "$SP_DIR/copy.json" "$id" --checkpoint "$SP_DIR/every/checkpoint" --output "$proof"
}

@test "the whole log as tiles, checked by Python" {
	local check=$SP_ROOT/docs/audit_check.py vkey n
	vkey=$(cat "$STATE/vkey")
	# More than one tile: entries of a token that is made and revoked.
	for ((n = 0; n < 140; n++)); do
		"$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner bob >/dev/null
	done
	"$SP_BIN/sallyport" token list --config "$SP_CONFIG" --json | jq -r 'select(.owner == "bob").id' | while read -r id; do
		"$SP_BIN/sallyport" token revoke --config "$SP_CONFIG" "$id" >/dev/null
	done
	cli 0 checkpoint --state "$STATE"
	cli 0 prove --tiles "$SP_DIR/tiles" --checkpoint "$STATE/checkpoint"
	[ -e "$SP_DIR/tiles/tile/0/000" ] && [ -e "$SP_DIR/tiles/tile/1/000.p/1" ]
	run -0 "$check" "$vkey" "$SP_DIR/tiles"
	[ "$output" = "$(sed -n 2p "$STATE/checkpoint") entries fit" ]
	sed -i 's/run.end/run.eud/' "$SP_DIR/tiles/tile/entries/000"
	run -1 "$check" "$vkey" "$SP_DIR/tiles"
}

@test "commands that only read leave audit entries" {
	entries() {
		sp_sql "SELECT count(*) FROM audit WHERE kind = '$1'"
	}
	[ "$(entries config)" = 1 ]
	sp_http GET "/files/$(sp_sql 'SELECT hash FROM conversation LIMIT 1')/f" </dev/null
	[ "$SP_STATUS" = 200 ]
	downloaded() {
		[ "$(entries file.get)" = 1 ]
	}
	sp_until "" downloaded
	sp_http GET "/files/$(sp_sql 'SELECT hash FROM conversation LIMIT 1')/none" </dev/null
	[ "$SP_STATUS" = 404 ]
	cli 0 export --output "$SP_DIR/b" --all
	[ "$(entries export)" = 1 ]
	cli 0 replay --json "$(sp_sql 'SELECT min(id) FROM execution')"
	[ "$(entries replay)" = 1 ]
	[ "$(entries file.get)" = 1 ]
	cli 0 verify
}
