#!/usr/bin/env bats
# The signer and a witness (C2SP tlog-witness): audit_witness.py, which shares no code with Sallyport. Entries are made by `sallyport token`.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	sp_setup
	sp_token alice
	export STATE=$SP_DIR/signer WITNESS=$SP_DIR/witness
	mkdir "$WITNESS"
	"$SP_BIN/sallyport" checkpoint --state "$STATE" --init test.example/audit
	begin_witness
	ANCHOR="witness:$(cat "$WITNESS/vkey") http://127.0.0.1:$(cat "$WITNESS/port")/w/"
	export ANCHOR
}

teardown_file() {
	end_witness
	sp_teardown
}

begin_witness() {
	python3 "$BATS_TEST_DIRNAME/audit_witness.py" "$WITNESS" "$(cat "$STATE/vkey")" </dev/null >/dev/null 2>"$WITNESS/err" 3>&- &
	echo $! >"$WITNESS/pid"
	there() { [ -e "$WITNESS/port" ]; }
	sp_until "" there
}

end_witness() {
	kill "$(cat "$WITNESS/pid")"
	rm -f "$WITNESS/port"
}

cli() { # STATUS COMMAND ARGUMENT…
	local wanted=$1 command=$2
	shift 2
	run "-$wanted" --separate-stderr "$SP_BIN/sallyport" "$command" --config "$SP_CONFIG" "$@"
	# shellcheck disable=SC2154 # bats sets stderr
	echo "$output" "$stderr"
}

grow() { # ENTRIES
	for ((n = 0; n < $1; n++)); do
		"$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner bob >/dev/null
	done
}

seen() { jq .size "$WITNESS/seen"; }
signed() { sed -n 2p "$STATE/checkpoint"; }

@test "each checkpoint is signed by the witness, from the first to any later one" {
	local n
	for n in 0 1 2 3 7; do
		grow "$n"
		cli 0 checkpoint --state "$STATE" --anchor "$ANCHOR"
		[ "$(seen)" = "$(signed)" ]
	done
	cli 0 verify --signer "$STATE" --key "$(cat "$WITNESS/vkey")" --anchor "$STATE/cosigned.log" --json
	[ "$(jq -r '[.tree, .signatures, .anchors] | map(.state) | unique[]' <<<"$output")" = holds ]
	[ "$(jq .anchors.checked <<<"$output")" = 5 ]
	[ "$(jq '.entries - .covered' <<<"$output")" = 0 ]
}

@test "what the witness saw is its own to say: a folder that was forgotten, an answer that was lost" {
	rm "$STATE/anchored"
	grow 2
	cli 0 checkpoint --state "$STATE" --anchor "$ANCHOR"
	[ "$(seen)" = "$(signed)" ]
	rm "$STATE/anchored" # and nothing new: the witness signs the same once more
	cli 0 checkpoint --state "$STATE" --anchor "$ANCHOR"
	[ "$(seen)" = "$(signed)" ]
	# A witness that began anew takes the log from its beginning.
	rm "$WITNESS/seen"
	grow 1
	cli 0 checkpoint --state "$STATE" --anchor "$ANCHOR"
	[ "$(seen)" = "$(signed)" ]
}

@test "rewritten history is not signed" {
	local before
	before=$(seen)
	cp -r "$SP_DIR/data" "$SP_DIR/copy"
	sed 's|"data_dir": "data"|"data_dir": "copy"|' "$SP_CONFIG" >"$SP_DIR/copy.json"
	sqlite3 "$SP_DIR/copy/sallyport.db" "DROP TRIGGER audit_fixed; UPDATE audit SET entry = replace(entry, 'token.add', 'token.odd') WHERE n = (SELECT min(n) FROM audit WHERE kind = 'token.add')"
	mkdir "$SP_DIR/forged"
	cp "$STATE/key" "$STATE/vkey" "$SP_DIR/forged"
	run -1 --separate-stderr "$SP_BIN/sallyport" checkpoint --config "$SP_DIR/copy.json" --state "$SP_DIR/forged" --anchor "$ANCHOR"
	[[ $stderr == *"saw another history"* ]]
	SP_CONFIG=$SP_DIR/copy.json grow 3
	run -1 --separate-stderr "$SP_BIN/sallyport" checkpoint --config "$SP_DIR/copy.json" --state "$SP_DIR/forged" --anchor "$ANCHOR"
	[[ $stderr == *"saw another history"*"proof is wrong"* ]]
	# Without its newest entries.
	rm -r "$SP_DIR/forged/leaves" "$SP_DIR/forged/checkpoint"
	cp "$SP_DIR/data/sallyport.db" "$SP_DIR/copy/sallyport.db"
	rm -f "$SP_DIR/copy/sallyport.db"-*
	sqlite3 "$SP_DIR/copy/sallyport.db" "DROP TRIGGER audit_kept; DELETE FROM audit WHERE n > 3"
	run -1 --separate-stderr "$SP_BIN/sallyport" checkpoint --config "$SP_DIR/copy.json" --state "$SP_DIR/forged" --anchor "$ANCHOR"
	[[ $stderr == *"saw another history of this log than the 4 entries"* ]]
	[ "$(seen)" = "$before" ]
	[ ! -e "$SP_DIR/forged/cosigned.log" ]
	# The true log goes on.
	grow 1
	cli 0 checkpoint --state "$STATE" --anchor "$ANCHOR"
}

@test "a witness that misbehaves is named" {
	local mood said
	declare -A said=([forge]="signature of witness.example/w1"*"wrong" [mute]="without a signature" [large]="more than 64 KiB"
		[away]="HTTP 307" [busy]="HTTP 503: overloaded")
	for mood in forge mute large away busy; do
		grow 1
		echo "$mood" >"$WITNESS/mood"
		cp "$STATE/cosigned.log" "$SP_DIR/before"
		cli 1 checkpoint --state "$STATE" --anchor "$ANCHOR"
		# shellcheck disable=SC2053 # a pattern
		[[ $stderr == *${said[$mood]}* ]]
		cmp "$STATE/cosigned.log" "$SP_DIR/before"
		[ "$(signed)" = "$(sp_sql 'SELECT count(*) FROM audit')" ]
	done
	rm "$WITNESS/mood"
	cli 0 checkpoint --state "$STATE" --anchor "$ANCHOR"
	end_witness
	grow 1
	cli 1 checkpoint --state "$STATE" --anchor "$ANCHOR"
	[[ $stderr == *"witness.example/w1 at http://127.0.0.1:"* ]]
	begin_witness
	ANCHOR="witness:$(cat "$WITNESS/vkey") http://127.0.0.1:$(cat "$WITNESS/port")/w"
	cli 0 checkpoint --state "$STATE" --anchor "$ANCHOR"
	[ "$(seen)" = "$(signed)" ]
}

@test "verify misses the signature of a named witness" {
	local other
	other=$(PYTHONPATH=$SP_ROOT/docs python3 - <<-'END'
		import base64, hashlib
		key = b"\4" + b"\x58" + b"\x66" * 31
		print("other.example/w2+%s+%s" % (hashlib.sha256(b"other.example/w2\n" + key).hexdigest()[:8], base64.b64encode(key).decode()))
	END
	)
	cli 1 verify --signer "$STATE" --key "$other" --anchor "$STATE/cosigned.log"
	[[ $output == *"no checkpoint that was given is signed by the witness other.example/w2"* ]]
	cli 2 checkpoint --state "$STATE" --anchor "witness:$(cat "$STATE/vkey") http://127.0.0.1:1/"
	[[ $stderr == *"the key of a log"* ]]
	cli 2 checkpoint --state "$STATE" --anchor "witness:$other ftp://127.0.0.1/"
	cli 2 checkpoint --state "$STATE" --anchor "witness:$other"
	cli 2 checkpoint --state "$STATE" --anchor "witness:other+00000000+AAAA http://127.0.0.1/"
}
