#!/usr/bin/env bats
# What an error tells people to do is done here, word for word, and nothing is lost by it. remedies.txt has every text of ours that tells
# somebody to take away, replace, move, stop or give away something, with the test that does so; one that is missing there fails here.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	sp_serve alice
	chmod 700 "$SP_DIR/data" # as an operator's is
	sp_call run_code '{"conversationId":"talk","language":"python","code":"import os; open(\"data\", \"wb\").write(os.urandom(200000)); print(\"z\" * 100000)"}'
	[ "$SP_STATUS" = 200 ]
	sp_stop "$SP_GATEWAY_PID"
	sp_cli backup --key "$SP_DIR/save"
	mv "$SP_DIR/data" "$SP_DIR/whole"
}

teardown_file() {
	sp_teardown
}

setup() { # each test has a record of its own
	[ ! -e "$SP_DIR/data" ] || rm -r "${SP_DIR:?}/data"
	cp -a "$SP_DIR/whole" "$SP_DIR/data"
	before=$(record)
}

teardown() {
	sp_stop "$SP_GATEWAY_PID"
	SP_GATEWAY_PID=
}

# What must not be lost: runs, tokens, contents with their bytes, and the key.
record() {
	local folder=$SP_DIR/data
	sqlite3 -readonly "$folder/sallyport.db" "SELECT id, verdict, code, stdout_blob FROM execution ORDER BY id; SELECT id, owner FROM token ORDER BY id; SELECT sha256 FROM blob ORDER BY 1"
	contents "$folder"
	sha256sum <"$folder/secret.key"
}
contents() { (cd "$1/blobs" && find . -type f ! -name lock -exec sha256sum {} + | sort); }
kept() { [ "$(record)" = "$before" ] || { diff <(echo "$before") <(record) && false; }; }
gateway_refuses() { # TEXT [PROGRAM THAT STARTS IT…]
	run "${@:2}" "$SP_BIN/sallyport-gateway" --config "$SP_CONFIG"
	echo "$output"
	[ "$status" -ne 0 ]
	[[ $output == *"$1"* ]]
}
serves() {
	sp_start_gateway
	sp_call run_code '{"conversationId":"talk","language":"bash","code":"echo serves"}'
	[ "$(sp_get details.stdout)" = serves ]
}

@test "a content that is missing, cut or altered: restored from a backup" {
	local file how said id
	id=$(sqlite3 -readonly "$SP_DIR/data/sallyport.db" 'SELECT id FROM execution')
	while read -r file; do
		for how in missing cut altered; do
			case $how in
			missing) rm "$SP_DIR/data/$file" ;;
			cut) truncate -s 10 "$SP_DIR/data/$file" ;;
			altered) printf Q | dd of="$SP_DIR/data/$file" bs=1 seek=30 conv=notrunc status=none ;;
			esac
			run sp_cli verify --blobs
			[ "$status" -ne 0 ]
			run sp_cli show "$id" --stdout
			if [ "$status" -ne 0 ]; then # not every command reads every content
				said=$(grep -oE 'restore blobs/[0-9a-f/]+(\.gz)?( \(or its \.gz\))? from a backup' <<<"$output")
				said=${said#restore } said=${said%% *}
				[ -e "$SP_DIR/save/$said" ] || said=$said.gz
				cp -p "$SP_DIR/save/$said" "$SP_DIR/data/$said"
				touch "$BATS_TEST_TMPDIR/said.$how"
			else
				cp -p "$SP_DIR/save/$file" "$SP_DIR/data/$file"
			fi
			kept
			sp_cli verify --blobs
		done
	done < <(cd "$SP_DIR/data" && find blobs -type f ! -name lock)
	[ "$(echo "$BATS_TEST_TMPDIR"/said.* | wc -w)" = 3 ]
	sp_cli show "$id" --stdout | grep -q zzz
}

@test "a damaged database is replaced by the backup" {
	local how text
	for how in damaged letter altered version gone; do
		case $how in
		letter) echo "Dear operator," >"$SP_DIR/data/sallyport.db" && text="this file is not a database of Sallyport: restore it from a backup, or name another data_dir" ;;
		damaged) dd if=/dev/urandom of="$SP_DIR/data/sallyport.db" bs=4096 seek=1 count=40 conv=notrunc status=none && text="restore it from a backup" ;;
		altered) sqlite3 "$SP_DIR/data/sallyport.db" 'DROP TABLE snippet' && text="schema is not as Sallyport made it (no such table: snippet): restore it from a backup" ;;
		version) sqlite3 "$SP_DIR/data/sallyport.db" 'PRAGMA user_version = -1' && text="no valid version (-1): restore it from a backup" ;;
		gone) rm "$SP_DIR"/data/sallyport.db* && text="is empty or was missing, but $SP_DIR/data/blobs has contents that it must name: restore it from a backup" ;;
		esac
		gateway_refuses "$text"
		# Nothing is written over what is there; it is moved away, as that says.
		run sp_cli restore "$SP_DIR/save"
		[ "$status" -ne 0 ]
		[[ $output == *"is not empty: move what is there away, nothing is overwritten"* ]]
		mv "$SP_DIR/data" "$SP_DIR/aside.$how"
		sp_cli restore "$SP_DIR/save"
		kept
		[ "$(contents "$SP_DIR/aside.$how")" = "$(contents "$SP_DIR/whole")" ]
		serves
		sp_stop "$SP_GATEWAY_PID"
		sp_cli verify --blobs
		rm -r "$SP_DIR/data"
		cp -a "$SP_DIR/whole" "$SP_DIR/data"
	done
}

@test "a database that is gone: begun without it, the contents are in the folder that was moved" {
	rm "$SP_DIR"/data/sallyport.db*
	gateway_refuses "to begin without them, move the folder blobs away"
	mv "$SP_DIR/data/blobs" "$SP_DIR/blobs.aside"
	sp_token alice 2>/dev/null || { sp_start_gateway && sp_token alice && sp_stop "$SP_GATEWAY_PID"; }
	serves
	mkdir "$SP_DIR/moved"
	mv "$SP_DIR/blobs.aside" "$SP_DIR/moved/blobs"
	[ "$(contents "$SP_DIR/moved")" = "$(contents "$SP_DIR/whole")" ]
}

@test "the key is missing or cut: restored from the backup" {
	rm "$SP_DIR/data/secret.key"
	gateway_refuses "secret.key is missing, and sallyport.db needs it: restore it from the backup"
	cp -p "$SP_DIR/save/secret.key" "$SP_DIR/data/"
	kept
	truncate -s 10 "$SP_DIR/data/secret.key"
	gateway_refuses "secret.key must hold 32 bytes, not 10: restore it from the backup"
	cp -p "$SP_DIR/save/secret.key" "$SP_DIR/data/"
	kept
	serves
}

# The name may be one that somebody else needs: no text says that what has it is to be removed.
@test "the gateway's socket has a name that is taken: another place, or the other program is stopped" {
	local taken
	cp -p "$SP_CONFIG" "$SP_DIR/config"
	sed -i 's|"socket": "gateway.sock"|"socket": "data/sallyport.db"|' "$SP_CONFIG"
	gateway_refuses "there is something that is not a socket: name another place"
	kept
	cp -p "$SP_DIR/config" "$SP_CONFIG"
	/usr/bin/python3 -c 'import signal, socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); signal.alarm(600); signal.pause()' "$SP_SOCKET" 3>&- &
	taken=$!
	sp_until "$taken" sp_listens "$SP_SOCKET"
	gateway_refuses "another program listens there: stop it first"
	kill "$taken"
	wait "$taken" || true
	serves # the socket that it left is no hindrance
}

@test "two gateways: the other one is stopped, or the second has a folder of its own" {
	serves
	local first=$SP_GATEWAY_PID
	cp -p "$SP_CONFIG" "$SP_DIR/config"
	sed -i 's|gateway.sock|second.sock|' "$SP_CONFIG"
	gateway_refuses "another gateway (process $first) serves $SP_DIR/data: stop it, or give this one a data_dir of its own"
	SALLYPORT_DATA_DIR=$SP_DIR/own "$SP_BIN/sallyport-gateway" --config "$SP_CONFIG" >>"$SP_DIR/gateway.log" 2>&1 3>&- &
	local second=$!
	echo "$second" >>"$SP_DIR/pids"
	sp_until "$second" sp_listens "$SP_DIR/second.sock"
	sp_stop "$second"
	kill -0 "$first"
	before=$(record)
	sp_stop "$first"
	"$SP_BIN/sallyport-gateway" --config "$SP_CONFIG" >>"$SP_DIR/gateway.log" 2>&1 3>&- &
	second=$!
	echo "$second" >>"$SP_DIR/pids"
	sp_until "$second" sp_listens "$SP_DIR/second.sock"
	sp_stop "$second"
	kept
	cp -p "$SP_DIR/config" "$SP_CONFIG"
}

@test "a run of a command is to be cancelled: its process is ended, other runs go on" {
	sp_start_gateway
	sp_call run_code "$(jq -cn --arg code "sleep $SP_ASLEEP" '{conversationId: "other", language: "bash", code: $code, timeout_seconds: 200}')" >/dev/null 3>&- &
	local other=$! id said
	sp_until "$other" sp_asleep
	sp_stdio
	jq -cn --arg code "sleep $((SP_ASLEEP + 5000000))" '{jsonrpc: "2.0", id: 1, method: "tools/call", params: {name: "run_code", arguments: {conversationId: "own", language: "bash", code: $code, timeout_seconds: 200}}}' >&9
	begun() { pgrep -fx "sleep $((SP_ASLEEP + 5000000))" >/dev/null; }
	sp_until "$SP_STDIO_PID" begun || { cat "$SP_DIR/out" "$SP_DIR/stdio.log" && false; }
	id=$(sp_sql "SELECT execution.id FROM execution JOIN instance ON instance.id = execution.instance WHERE state = 'running' AND kind = 'cli'")
	run sp_cli cancel "$id"
	echo "$output"
	[[ $output =~ "belongs to a command (process "([0-9]+)"), which takes no requests: end that process" ]]
	said=${BASH_REMATCH[1]}
	[ "$said" = "$SP_STDIO_PID" ]
	kill "$said"
	wait "$said" || true
	exec 9>&-
	run ! begun
	sp_asleep # the gateway's is not touched
	sp_wake
	wait "$other"
	sp_stop "$SP_GATEWAY_PID"
	serves # which marks what that process left
	[ "$(sp_sql "SELECT count(*) FROM execution WHERE state = 'running'")" = 0 ]
	[ "$(sp_sql "SELECT count(*) FROM execution WHERE conversation_name = 'own' AND verdict IN ('CX', 'XX')")" = 1 ]
}

@test "another account is refused with commands that work" {
	[ "$(id -u)" = 0 ] || skip "needs root to become nobody"
	chmod 755 "$SP_DIR/data"
	printf '{"data_dir": "%s"}' "$SP_DIR/data" >"$SP_DIR/verify.json"
	run setpriv --reuid nobody --regid nogroup --clear-groups "$SP_BIN/sallyport" verify --config "$SP_DIR/verify.json"
	echo "$output"
	[ "$status" -ne 0 ]
	[[ $output == *"run this as the account that owns its folder"* ]]
	sp_cli verify
	kept
}

# says TEXT COMMAND…: the command fails, and the error is TEXT.
says() {
	run "${@:2}"
	echo "$output"
	[ "$status" -ne 0 ]
	[[ $output == *"$1" || $output == *"$1\"" ]]
}
as_other() { setpriv --reuid 61234 --regid 61234 --clear-groups "$@"; }

@test "a configuration that is missing or of another account is refused with a remedy" {
	says "there is no configuration $SP_DIR/none.json: name another file with --config or in SALLYPORT_CONFIG" "$SP_BIN/sallyport" log --config "$SP_DIR/none.json"
	"$SP_BIN/sallyport" log --config "$SP_CONFIG"
	[ "$(id -u)" = 0 ] || skip "needs root to become another account"
	printf '{"data_dir": "%s"}' "$SP_DIR/data" >"$SP_DIR/other.json"
	chown 0:61234 "$SP_DIR/other.json"
	chmod 600 "$SP_DIR/other.json"
	says "account 61234 may not read the configuration $SP_DIR/other.json: give its group read access (chgrp, chmod g+r), or run this as the account of the gateway" \
		as_other "$SP_BIN/sallyport" log --config "$SP_DIR/other.json"
	chmod g+r "$SP_DIR/other.json"
	says "run this as the account that owns its folder" as_other "$SP_BIN/sallyport" log --config "$SP_DIR/other.json" # the next one
	kept
}

@test "a data folder without a parent or of another account is refused with a remedy" {
	printf '{"data_dir": "%s", "public_base_url": "http://x", "gateway": {"socket": "%s"}}' "$SP_DIR/above/data" "$SP_DIR/other.sock" >"$SP_DIR/other.json"
	says "making the data folder $SP_DIR/above/data: the folder above is missing; make it first, as the account that runs the gateway" \
		"$SP_BIN/sallyport" token add --owner bob --config "$SP_DIR/other.json"
	mkdir "$SP_DIR/above"
	"$SP_BIN/sallyport" token add --owner bob --config "$SP_DIR/other.json"
	[ "$(id -u)" = 0 ] || skip "needs root to become another account"
	chmod 755 "$SP_DIR/above"
	local remedy="account 0 owns it, and this is account 61234: run this as the account that owns its folder" command
	for command in "sallyport log" "sallyport token add --owner eve" sallyport-gateway; do
		chmod 700 "$SP_DIR/above/data"
		# shellcheck disable=SC2086 # several words
		says "opening $SP_DIR/above/data: $remedy" as_other "$SP_BIN"/$command --config "$SP_DIR/other.json"
		chmod 755 "$SP_DIR/above/data"
		local file=secret.key
		[ "$command" != sallyport-gateway ] || file=gateway.lock
		# shellcheck disable=SC2086
		says "opening $SP_DIR/above/data/$file: $remedy" as_other "$SP_BIN"/$command --config "$SP_DIR/other.json"
	done
	# All of it is given away, but for the database.
	chown -R 61234:61234 "$SP_DIR/above/data"
	chown 0:0 "$SP_DIR"/above/data/sallyport.db
	says "opening $SP_DIR/above/data/sallyport.db: $remedy" as_other "$SP_BIN/sallyport-gateway" --config "$SP_DIR/other.json"
	says "the database cannot be opened (unable to open database file): run this as the account that owns its folder" \
		as_other "$SP_BIN/sallyport" log --config "$SP_DIR/other.json"
	chown 61234 "$SP_DIR"/above/data/sallyport.db
	as_other "$SP_BIN/sallyport" token add --owner eve --config "$SP_DIR/other.json"
	[ "$("$SP_BIN/sallyport" token list --config "$SP_DIR/other.json" --json | jq -r .owner | sort | xargs)" = "bob eve" ]
}

@test "what others can read or change: a start warns of secret.key and of runners_dir" {
	chmod 644 "$SP_DIR/data/secret.key"
	: >"$SP_DIR/gateway.log"
	sp_start_gateway
	sp_stop "$SP_GATEWAY_PID"
	grep -F "warn gateway other accounts may read or write the key file=$SP_DIR/data/secret.key remedy=\"chmod 600\"" "$SP_DIR/gateway.log"
	chmod 600 "$SP_DIR/data/secret.key"
	: >"$SP_DIR/gateway.log"
	sp_start_gateway
	[[ $(cat "$SP_DIR/gateway.log") != *'may read or write'* ]]
	mkdir "$SP_DIR/languages"
	chmod 777 "$SP_DIR/languages"
	cp "$SP_ROOT/jail/runners/bash.json" "$SP_DIR/languages"
	echo 'echo runs' >"$SP_DIR/program"
	export SALLYPORT_JAILER_SOCKET='' SALLYPORT_JAILER_RUNNERS_DIR=$SP_DIR/languages
	run "$SP_BIN/sallyport" run --config "$SP_CONFIG" "$SP_DIR/program" -l bash
	echo "$output"
	[[ $output == *"warn jailer every account can change the languages jailer.runners_dir=$SP_DIR/languages remedy=\"chmod o-w\""* ]]
	chmod o-w "$SP_DIR/languages"
	run "$SP_BIN/sallyport" run --config "$SP_CONFIG" "$SP_DIR/program" -l bash
	[ "$output" = runs ]
	SALLYPORT_JAILER_RUNNERS_DIR=$SP_DIR/none run "$SP_BIN/sallyport" run --config "$SP_CONFIG" "$SP_DIR/program" -l bash
	echo "$output"
	[[ $output == *"jailer.runners_dir must name the folder of the languages' files, or be left out for the installed one: opening the runners' directory $SP_DIR/none: No such file or directory"* ]]
	unset SALLYPORT_JAILER_RUNNERS_DIR
	jq 'del(.jailer.runners_dir)' "$SP_CONFIG" >"$SP_DIR/other.json"
	run "$SP_BIN/sallyport" run --config "$SP_DIR/other.json" "$SP_DIR/program" -l bash
	[ "$output" = runs ]
}

@test "the jailer's folder of locks belongs to somebody else: given back to root" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	# Not this machine's: a folder that exists in a mount namespace only.
	# shellcheck disable=SC2016 # the inner shell's
	run env SALLYPORT_JAILER_CGROUP="sallyport-test-$$" SALLYPORT_JAILER_ID_BASE=1900000000 SALLYPORT_JAILER_ID_COUNT=65536 SALLYPORT_JAILER_SOCKET="$SP_DIR/locks.sock" \
		unshare -m bash -c 'mkdir -p /run/sallyport-jailer && mount -t tmpfs -o uid=12345,mode=777 tmpfs /run/sallyport-jailer && touch /run/sallyport-jailer/theirs
		said=$("$0/sallyport-jailer" --config "$1" 2>&1) && exit 9
		echo "$said"
		remedy=$(grep -o "as root: .*" <<<"$said" | tail -1)
		[[ $remedy == "as root: chown root /run/sallyport-jailer && chmod 755 /run/sallyport-jailer"* ]] || exit 8
		eval "${remedy#as root: }" && [ -e /run/sallyport-jailer/theirs ] || exit 7
		listens() { grep -q " 00010000 .* $SALLYPORT_JAILER_SOCKET\$" /proc/net/unix; }
		"$0/sallyport-jailer" --config "$1" &
		first=$!
		until listens; do kill -0 $first || exit 6; done
		# These ids are enough for one: the second is refused, until the first is stopped.
		said=$(SALLYPORT_JAILER_SOCKET=$SALLYPORT_JAILER_SOCKET.2 "$0/sallyport-jailer" --config "$1" 2>&1) && exit 5
		echo "$said"
		[[ $said == *"all 1 instances of the jailer are in use: stop one, or give it more ids (jailer.id_count)"* ]] || exit 4
		kill $first && wait $first
		"$0/sallyport-jailer" --config "$1" &
		first=$!
		until listens; do kill -0 $first || exit 3; done
		echo "echo runs" >"$2/script" && "$0/sallyport" run --config "$1" -l bash "$2/script"
		kill $first && wait $first; true' "$SP_BIN" "$SP_CONFIG" "$BATS_TEST_TMPDIR"
	echo "$output"
	find /sys/fs/cgroup -maxdepth 2 -name "sallyport-test-$$" | while read -r group; do find "$group" -depth -type d -exec rmdir {} +; done
	[ "$status" -eq 0 ]
	[[ $output == *$'\nruns'* ]]
}

@test "what an upstream server kept has a damaged index: the folder is moved away, the server begins anew" {
	sp_counting_server
	chmod 644 "$SP_DIR/upstream.json"
	run sp_cli upstream list
	echo "$output"
	[[ $output == *"$SP_DIR/upstream.json: everybody can read it, or others can write it: chmod 600"* ]]
	chmod 600 "$SP_DIR/upstream.json"
	run sp_cli upstream call count count
	[[ $output == *"files: 1"* ]]
	run sp_cli upstream list
	[[ $output != *chmod* ]]
	rm -r "$SP_DIR/data/upstream"
	[[ $(sp_cli upstream call count count) == *"files: 1"* ]]
	local index folder
	index=$(echo "$SP_DIR"/data/upstream/*/*/index)
	printf 'not an index' >"$index"
	run sp_cli upstream call count count
	echo "$output"
	[ "$status" -ne 0 ]
	folder=$(grep -oE 'move [^ ]+ away' <<<"$output" | cut -d' ' -f2 | head -1)
	[ "$folder" = "${index%/index}" ]
	mv "$folder" "$SP_DIR/kept.aside"
	[[ $(sp_cli upstream call count count) == *"files: 1"* ]]
	grep -qr kept "$SP_DIR/kept.aside"
}

# -------- the table -------------------------------------------------------------------------------------------------

# Every text of ours, one a line: strings that are continued on the next line become one.
texts() {
	find "$SP_ROOT"/{lib,cgi,cli,jail,nginx} -name node_modules -prune -o \( -name '*.[ch]' -o -name '*.sh' \) -exec cat {} + | tr '\n' '\f' | sed 's/"[[:space:]]*"//g' | tr '\f' '\n' |
		grep -oE '"([^"\\]|\\.)*"'
}

@test "every text that advises to take something away has a test" {
	local text proof known count=0 verbs='remove|delete|drop|erase|move|replace|overwrite|restore|stop|end|kill|chown|chmod|umount|unmount|swapoff|reset|free|make room|run this as'
	grep -v '^#' "$BATS_TEST_DIRNAME/remedies.txt" >"$BATS_TEST_TMPDIR/table"
	texts | grep -E "(: |; |\(| or |, |and |to begin without them, )(first )?(as root: )?(the operator must )?($verbs) " |
		grep -vE '^"(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|\)|IS NULL|OR |WITH)|\\n|:[a-z_]+ ' | sort -u >"$BATS_TEST_TMPDIR/texts"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/texts")" -gt 20 ]
	while IFS= read -r text; do
		known=
		while IFS='|' read -r fragment proof; do
			[[ $text != *"$fragment"* ]] || known=yes
		done <"$BATS_TEST_TMPDIR/table"
		[ -n "$known" ] || { echo "remedies.txt does not have: $text" && count=$((count + 1)); }
	done <"$BATS_TEST_TMPDIR/texts"
	[ "$count" = 0 ]
}

@test "every row of remedies.txt names a text with a test" {
	local fragment proof count=0
	texts >"$BATS_TEST_TMPDIR/texts"
	while IFS='|' read -r fragment proof; do
		grep -qF -- "$fragment" "$BATS_TEST_TMPDIR/texts" || { echo "nobody says: $fragment" && count=$((count + 1)); }
		case $proof in
		*.bats:\ *) grep -qF -- "@test \"${proof#*: }\" {" "$SP_ROOT/tests/e2e/${proof%%: *}" || { echo "no test: $proof" && count=$((count + 1)); } ;;
		*.c:\ *) grep -qE "^static .*[ *]${proof#*: }\(" "$SP_ROOT/tests/unit/${proof%%: *}" || { echo "no test: $proof" && count=$((count + 1)); } ;;
		*.test.js:\ *) grep -qF -- "test('${proof#*: }'" "$SP_ROOT/tests/clients/${proof%%: *}" || { echo "no test: $proof" && count=$((count + 1)); } ;;
		harmless:\ *) ;;
		*) echo "neither a test nor a reason: $fragment|$proof" && count=$((count + 1)) ;;
		esac
	done < <(grep -v '^#' "$BATS_TEST_DIRNAME/remedies.txt")
	[ "$count" = 0 ]
}
