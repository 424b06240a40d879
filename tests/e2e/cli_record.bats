#!/usr/bin/env bats
# log, show and token on what a real gateway and jailer recorded: filters, --follow, safe output on a terminal, raw output elsewhere.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	sp_setup
	sp_token alice
	sp_start_jailer
	sp_start_gateway
	run_code python talk 'print("\x1b[31mred")' || return
	run_code bash talk 'printf "raw\377\033]0;title\007"; exit 3' || return
	run_code python other 'open("made.txt", "w").write("abc")' || return
}

teardown_file() {
	sp_teardown
}

# run_code LANGUAGE CONVERSATION CODE
run_code() {
	sp_call run_code "$(jq -cn --arg l "$1" --arg c "$2" --arg code "$3" '{conversationId: $c, language: $l, code: $code}')"
	if [ "$SP_STATUS" != 200 ] || [ "$(sp_get details.verdict)" = null ]; then
		sp_die "run_code: $SP_BODY"
	fi
}

sallyport() {
	"$SP_BIN/sallyport" "$1" --config "$SP_CONFIG" "${@:2}"
}

id_of() { # FILTER…
	sallyport log --json -n 1 "$@" | jq -r .id
}

on_terminal() {
	TERM=xterm script -qec "$SP_BIN/sallyport $1 --config $SP_CONFIG ${*:2}" /dev/null
}

@test "log shows what its filters choose" {
	run -0 sallyport log
	[ "${#lines[@]}" -eq 4 ]
	[[ ${lines[0]} == TIME*ID*OWNER*CONVERSATION*LANGUAGE*VERDICT*WALL*CPU*MEMORY*CODE ]]
	[[ ${lines[1]} == *alice*other*python*OK*'open("made.txt"'* ]]
	[[ ${lines[3]} == *alice*talk*python*OK*'print("\x1b[31mred")'* ]]
	[ "$(sallyport log --json --verdict RE | jq -r .exit_code)" = 3 ]
	[ "$(sallyport log --json --verdict RE --verdict OK | jq -r .verdict | sort -u | tr "\n" " ")" = "OK RE " ]
	[ "$(sallyport log --json --conversation talk | jq -r .language | sort | xargs)" = "bash python" ]
	[ "$(sallyport log --json --text made.txt | jq -s length)" = 1 ]
	[ "$(sallyport log --json --since 1h --until 0s | jq -s length)" = 3 ]
	[ "$(sallyport log --json --owner bob | wc -l)" = 0 ]
	[ "$(sallyport log --json --owner bob --owner alice | wc -l)" = 3 ]
	run -2 sallyport log --since tomorrow
	[[ $output == *"'tomorrow' is not a time"* ]]
}

@test "colours appear only on a terminal without NO_COLOR" {
	NO_COLOR="" run -0 on_terminal log
	[[ $output == *$'\e[32mOK'* ]]
	[[ $output != *$'\e[31mred'* ]]
	NO_COLOR=1 run -0 on_terminal log
	[[ $output != *$'\e['* ]]
	NO_COLOR="" run -0 sallyport log
	[[ $output != *$'\e['* ]]
}

@test "show prints a whole run" {
	local id
	id=$(id_of --verdict RE)
	run -0 sallyport show "$id"
	[[ $output == *"$id"*alice*talk*bash*"RE"*"exit code     3"*'raw\xff\x1b]0;title\x07'* ]]
	[ "$(sallyport show --stdout "$id" | od -An -c | tr -d ' \n')" = 'raw377033]0;title\a' ]
	run -0 on_terminal show --stdout "$id"
	[[ $output == *'raw\xff\x1b]0;title\x07'* ]]
	[ "$(sallyport show --code "$id")" = 'printf "raw\377\033]0;title\007"; exit 3' ]
	[ "$(sallyport show --stderr "$id")" = "" ]
	[ "$(sallyport show --json "$id" | jq -r .stdout_text)" = $'raw\\xff\e]0;title\a' ]
	id=$(id_of --conversation other)
	[[ $(sallyport show --files "$id") == *created*0644*3*ba7816bf8f01cfea*made.txt* ]]
	[ "$(sallyport show --json "$id" | jq -r '.files[0].name')" = made.txt ]
}

@test "show takes a unique prefix" {
	local id
	id=$(id_of --verdict RE)
	run -0 sallyport show "${id:0:24}"
	[[ $output == *"$id"* ]]
	run -5 sallyport show "${id:0:4}"
	[[ $output == sallyport:* ]]
	run -3 sallyport show 00000000
	[[ $output == sallyport:* ]]
}

@test "log --follow tells what is recorded meanwhile, once" {
	mkfifo "$BATS_TEST_TMPDIR/pipe"
	"$SP_BIN/sallyport" log --config "$SP_CONFIG" --follow --json -n 1 >"$BATS_TEST_TMPDIR/pipe" 3>&- &
	local pid=$! first second third
	exec {from}<"$BATS_TEST_TMPDIR/pipe"
	read -r -t "$SP_DEADLINE" first <&"$from" # the newest that was there
	run_code bash followed 'echo one'
	read -r -t "$SP_DEADLINE" second <&"$from"
	run_code bash followed 'exit 9'
	read -r -t "$SP_DEADLINE" third <&"$from"
	kill $pid
	wait $pid || true
	exec {from}<&-
	[ "$(jq -r .conversation <<<"$first")" != followed ]
	[ "$(jq -r '.conversation + " " + .first_line' <<<"$second")" = "followed echo one" ]
	[ "$(jq -r .exit_code <<<"$third")" = 9 ]
}

# Between a writer's last write and the moment at which others see what it has committed no file changes. Here none does at all: the
# database is written to under names in another folder, which nobody watches.
@test "log --follow tells what no change of a file has announced" {
	mkfifo "$BATS_TEST_TMPDIR/pipe"
	mkdir "$SP_DIR/aside"
	for part in "" -wal -shm; do ln "$SP_DIR/data/sallyport.db$part" "$SP_DIR/aside/sallyport.db$part"; done
	"$SP_BIN/sallyport" log --config "$SP_CONFIG" --follow --json -n 1 >"$BATS_TEST_TMPDIR/pipe" 3>&- &
	local pid=$! line
	exec {from}<"$BATS_TEST_TMPDIR/pipe"
	read -r -t "$SP_DEADLINE" line <&"$from"
	sqlite3 -cmd '.timeout 60000' "$SP_DIR/aside/sallyport.db" \
		"update execution set recorded = 1000000 where conversation_name = 'other'"
	read -r -t "$SP_DEADLINE" line <&"$from"
	[ "$(jq -r .conversation <<<"$line")" = other ]
	kill $pid
	wait $pid || true
	exec {from}<&-
}

@test "log --follow filters until its reader is gone" {
	mkfifo "$BATS_TEST_TMPDIR/pipe"
	"$SP_BIN/sallyport" log --config "$SP_CONFIG" --follow --json --verdict SG >"$BATS_TEST_TMPDIR/pipe" 3>&- &
	local pid=$! line
	exec {from}<"$BATS_TEST_TMPDIR/pipe"
	run_code bash quiet 'exit 0'
	run_code bash loud 'kill -SEGV $$'
	read -r -t "$SP_DEADLINE" line <&"$from"
	[ "$(jq -r .conversation <<<"$line")" = loud ]
	exec {from}<&-
	sp_until "" sp_gone $pid
}

@test "a progress bar on a terminal once a second is over, never elsewhere" {
	# two replays of 0.8 s each: the bar has its time to appear and something left to do
	run_code python slow $'import time\nend = time.monotonic() + 0.8\nwhile time.monotonic() < end: pass'
	run_code python slow $'import time\nend = time.monotonic() + 0.8\nwhile time.monotonic() < end: pass'
	run_code bash slow true
	run -0 on_terminal replay -j 1 --conversation slow
	[[ $output =~ 'replay ['[#\ ]+'] 2 of 3, '[0-9.]+'/s, '[0-9]+' s left' ]]
	run -0 sallyport promote --suite "$BATS_TEST_TMPDIR/suite" --conversation slow
	run -0 on_terminal grade -j 1 "$BATS_TEST_TMPDIR/suite"
	[[ $output =~ 'cases ['[#\ ]+'] '[12]' of 3, '[0-9.]+'/s, '[0-9]+' s left' ]]
	run -0 --separate-stderr sallyport replay --conversation slow
	# shellcheck disable=SC2154 # bats sets it
	[[ $output$stderr != *'replay ['* ]]
}

@test "a token can be revoked at once" {
	local before=$SP_TOKEN id
	sp_token carol
	id=$("$SP_BIN/sallyport" token list --json --config "$SP_CONFIG" | jq -r 'select(.owner == "carol") | .id')
	run_code bash talk 'echo hers'
	[ "$(sallyport log --json --token "$id" | jq -r .owner)" = carol ]
	[ "$(sallyport log --json --owner carol --conversation talk | jq -s length)" = 1 ]
	run -0 "$SP_BIN/sallyport" token revoke --config "$SP_CONFIG" "$id"
	sp_call run_code '{"conversationId":"talk","language":"bash","code":"true"}' || true
	[ "$SP_STATUS" = 401 ]
	run -1 grep -rqs -- "$SP_TOKEN" "$SP_DIR/data"
	SP_TOKEN=$before
}

@test "output that has nowhere to go is an error" {
	run bash -c '"$@" >&-' _ "$SP_BIN/sallyport" log --config "$SP_CONFIG"
	[ "$status" != 0 ]
	[[ $output == *'Bad file descriptor'* ]] || { echo "$output"; false; }
}

@test "wide characters have two columns" {
	printf -v wide '中文%.0s' 1 2 3
	run_code python "$wide" 'print(1)'
	run_code python "abcdefghijkl" 'print(2)'
	run -0 sallyport log -n 2
	# The column behind the conversation begins at the same column of a terminal: the wide name has six characters in twelve columns.
	local first second
	first=${lines[1]%%python*} second=${lines[2]%%python*}
	[ $((${#first} - ${#second})) = 6 ] || [ $((${#second} - ${#first})) = 6 ]
}
