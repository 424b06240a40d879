#!/usr/bin/env bats
# shellcheck disable=SC2016 # dollars in the programs are not for this shell
# run_code with session true, reset_session; the record of a session, and its replay.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	sp_setup
}

teardown() {
	sp_teardown
}

start() {
	sp_start_jailer
	sp_start_gateway
	sp_token alice
}

text() {
	sp_get '[.result.content[].text] | join("")'
}

stdout() {
	sp_get details.stdout
}

run_live() { # LANGUAGE CODE
	sp_call run_code "$(jq -cn --arg language "$1" --arg code "$2" '{conversationId: "c", session: true, $language, $code}')"
}

@test "python keeps its state" {
	start
	run_live python $'import math\nx = 40\nopen("f", "w").write("file")'
	[ "$(sp_get details.session.number)" = 1 ]
	[ "$(sp_get details.warm)" = false ]
	local sandbox
	sandbox=$(sp_get details.session.sandbox_id)
	run_live python 'print(x + 2, math.floor(1.5), open("f").read())'
	[ "$(text)" = "42 1 file" ]
	[ "$(sp_get details.session.number)" = 2 ]
	[ "$(sp_get details.warm)" = true ]
	"$SP_BIN/sallyport" show --config "$SP_CONFIG" "$(sp_get details.execution_id)" | grep -q '^set-up .*, warm$'
	[ "$(sp_get details.session.sandbox_id)" = "$sandbox" ]
	sp_call run_code '{"conversationId":"c","language":"python","code":"print(open(\"f\").read(), \"x\" in globals())"}'
	[ "$(text)" = "file False" ]
	[ "$(sp_get details.session)" = null ]
	[ "$(sp_get details.warm)" = false ]
}

@test "javascript keeps variables" {
	start
	run_live javascript 'let x = 40; const add = (a, b) => a + b'
	[ "$(sp_get .result.isError)" = false ]
	run_live node 'console.log(add(x, 2))'
	[ "$(text)" = 42 ]
}

@test "a language without a driver keeps files and processes" {
	start
	run_live bash 'x=1; echo hi >/tmp/f'
	[ "$(text)" = "[sallyport] session: A session was started. In bash it keeps files and processes between calls, but not variables." ]
	run_live bash 'echo "$x$(cat /tmp/f)"'
	[ "$(text)" = hi ]
	[ "$(sp_get details.warm)" = false ]
}

@test "reset_session ends the session" {
	start
	run_live python 'x = 1'
	sp_call reset_session '{"conversationId":"c"}'
	[ "$(text)" = "Ended: 1. The next call with session true begins a fresh one; files are kept." ]
	[ "$(sp_get details.ended)" = 1 ]
	run_live python 'print("x" in globals())'
	[ "$(text)" = False ]
	sp_call reset_session '{"conversationId":"c","language":"bash"}'
	[ "$(text)" = "There was no session to end." ]
	[ "$(sp_get .result.isError)" = false ]
	sp_call reset_session '{"conversationId":"c","language":"cobol"}'
	[ "$(sp_get .result.isError)" = true ]
	[[ $(text) == 'language: "cobol" is unknown'* ]]
	sp_call reset_session '{}'
	[[ $(text) == 'conversationId: is required'* ]]
}

@test "the idlest session gives way to a new one" {
	export SALLYPORT_LIMITS_SANDBOXES_PER_OWNER=1
	start
	unset SALLYPORT_LIMITS_SANDBOXES_PER_OWNER
	local first='{"conversationId":"c","session":true,"language":"python","code":"print(6 * 7)","idempotencyKey":"k"}' id
	sp_call run_code "$first"
	id=$(sp_get details.execution_id)
	sp_call reset_session '{"conversationId":"c"}'
	sp_call run_code '{"conversationId":"d","session":true,"language":"python","code":"1"}'
	sp_call run_code "${first/\"k\"/\"other\"}"
	[ "$(sp_get .result.isError)" = false ] # d gave way
	sp_call run_code "${first/6/7}"
	[ "$(sp_get .result.isError)" = true ] # the key is another call's
	sp_call run_code "$first"
	[ "$(sp_get details.execution_id)" = "$id" ]
	[ "$(sp_get details.stdout)" = 42 ]
	[ "$(sp_sql "SELECT count(*) FROM execution")" = 3 ]
	sp_call run_code '{"conversationId":"d","session":true,"language":"python","code":"1"}'
	[[ $(text) == *"lost (it was idle for too long, or gave way to a newer session)"* ]]
}

@test "another timeout_seconds counts for its call" {
	start
	run_live python 'x = 1'
	sp_call run_code '{"conversationId":"c","session":true,"language":"python","code":"print(x)","timeout_seconds":200}'
	[ "$(text)" = 1 ]
	sp_call run_code '{"conversationId":"c","session":true,"language":"python","code":"while True: pass","timeout_seconds":1}'
	[[ $(text) == "[sallyport] TO: The program was stopped after 1 s, its time limit."* ]]
	"$SP_BIN/sallyport" replay --config "$SP_CONFIG" "$(sp_get details.execution_id)" >"$SP_DIR/replayed"
	grep -q '^1 identical' "$SP_DIR/replayed"
}

@test "another owner's conversation of the same name has its own session" {
	start
	sp_two_owners
	run_live python 'x = "alice"'
	export SP_TOKEN=$BOB
	run_live python 'print("x" in globals())'
	[ "$(text)" = False ]
	sp_call reset_session '{"conversationId":"c"}'
	export SP_TOKEN=$ALICE
	run_live python 'print(x)'
	[ "$(text)" = alice ]
}

@test "an interpreter's end by a signal is reported" {
	start
	run_live python 'x = 1'
	run_live python 'import os; print("before", flush=True); os.kill(os.getpid(), 9)'
	[ "$(sp_get .result.isError)" = true ]
	[[ $(text) == *$'\nsession: The session ended with this run: '* ]]
	run_live python 'print("x" in globals())'
	[ "$(sp_get .result.isError)" = false ]
	[ "$(text)" = $'[sallyport] session: The session\'s earlier state was lost (the last run ended it): this run began in a fresh one, with the conversation\'s files, without variables and processes.\n[stdout]\nFalse' ]
	run_live python 'print(1)'
	[ "$(text)" = 1 ]
}

@test "a restart of the gateway loses the state" {
	start
	run_live python 'x = 1; open("f", "w").write("kept")'
	sp_stop "$SP_GATEWAY_PID"
	sp_start_gateway
	run_live python 'print("x" in globals(), open("f").read())'
	[[ $(text) == $'[sallyport] session: The session\'s earlier state was lost (the server was started anew)'*$'\n[stdout]\nFalse kept' ]]
}

@test "replay repeats a session's earlier runs" {
	start
	printf '{"conversationId":"c","filename":"in","content":"%s"}' "$(printf one | base64)" >"$SP_DIR/a"
	sp_call upload_file "$(cat "$SP_DIR/a")"
	run_live python 'x = [open("in").read()]; open("out", "w").write("1")'
	printf '{"conversationId":"c","filename":"in","content":"%s"}' "$(printf two | base64)" >"$SP_DIR/a"
	sp_call upload_file "$(cat "$SP_DIR/a")"
	run_live python 'x.append(open("in").read()); open("out", "a").write("2"); raise SystemExit(3)'
	local second third
	second=$(sp_get details.execution_id)
	run_live python 'print(x, open("out").read())'
	third=$(sp_get details.execution_id)
	[ "$(text)" = "['one', 'two'] 12" ]
	"$SP_BIN/sallyport" show --config "$SP_CONFIG" "$third" | grep -q '^sandbox .*, run 3$'
	[ "$("$SP_BIN/sallyport" show --config "$SP_CONFIG" --json "$second" | jq .sandbox_seq)" = 2 ]
	"$SP_BIN/sallyport" replay --config "$SP_CONFIG" "$third" >"$SP_DIR/replayed"
	grep -q '^1 identical' "$SP_DIR/replayed"
	"$SP_BIN/sallyport" replay --config "$SP_CONFIG" --all -j 2 >"$SP_DIR/replayed"
	grep -q '^3 identical' "$SP_DIR/replayed"
}

@test "changes from outside reach the open sandbox" {
	start
	local name
	for name in in twice; do
		sp_call upload_file "{\"conversationId\":\"c\",\"filename\":\"$name\",\"content\":\"$(printf one | base64)\"}"
	done
	run_live python $'import os, subprocess\nlist = lambda: print(*sorted(os.popen("find * -type f").read().split()))\nos.mkdir("d"); open("d/own", "w").write("own"); open("stays", "w").write("x"); open("way", "w").close(); list()'
	[ "$(stdout)" = "d/own in stays twice way" ]
	sp_call run_code '{"conversationId":"c","language":"bash","code":"rm -r in d way; printf d >d; mkdir way; printf two >way/in"}'
	[ "$(sp_get .result.isError)" = false ]
	sp_call upload_file "{\"conversationId\":\"c\",\"filename\":\"twice\",\"content\":\"$(printf two | base64)\"}"
	run_live python 'list(); print(open("twice").read(), open("d").read(), open("way/in").read())'
	[ "$(stdout)" = $'d stays twice way/in\ntwo d two' ]
	[ "$(sp_get '[details.files[]] | add | length')" = 0 ]
	[ "$(sp_get details.session.number)" = 2 ]
	run_live python 'os.remove("stays"); list()'
	[ "$(stdout)" = "d twice way/in" ]
	"$SP_BIN/sallyport" replay --config "$SP_CONFIG" --all >"$SP_DIR/replayed"
	grep -q '^4 identical' "$SP_DIR/replayed"
}

@test "replay finds what an earlier run of the sandbox does differently" {
	start
	run_live python 'x = 1; print("as it was")'
	run_live python 'print(x)'
	local id
	id=$(sp_get details.execution_id)
	sp_stop "$SP_GATEWAY_PID"
	sqlite3 -cmd '.timeout 60000' "$SP_DIR/data/sallyport.db" "UPDATE execution SET stdout = 'as it was not' || char(10) WHERE sandbox_seq = 1"
	run "$SP_BIN/sallyport" replay --config "$SP_CONFIG" "$id"
	[ "$status" -eq 1 ]
	[[ $output == *"run 1 of its sandbox: stdout, line 1:"* ]]
	sqlite3 -cmd '.timeout 60000' "$SP_DIR/data/sallyport.db" "UPDATE execution SET code = 'import os; os._exit(0)', stdout = '' WHERE sandbox_seq = 1"
	run "$SP_BIN/sallyport" replay --config "$SP_CONFIG" "$id"
	[ "$status" -eq 1 ]
	[[ $output == *"now:      it ended with run 1"* ]]
}

@test "a secret in an earlier run makes the later ones not replayable" {
	start
	sp_call run_code '{"conversationId":"c","language":"python","session":true,"code":"import os; x = os.environ[\"K\"]","secrets":{"K":"value"}}'
	run_live python 'print(x)'
	[ "$(text)" = "***" ] # a sandbox remembers what it was given
	run "$SP_BIN/sallyport" replay --config "$SP_CONFIG" "$(sp_get details.execution_id)"
	[ "$status" -eq 0 ]
	[[ $output == *"not_replayable: the secret K is missing (give it with --secret)"* ]]
}

@test "sessions over standard input and output, with a jailer of its own" {
	jq '.jailer.socket = ""' "$SP_CONFIG" >"$SP_DIR/c" && mv "$SP_DIR/c" "$SP_CONFIG"
	sp_stdio
	sp_say run_code '{"conversationId":"c","language":"python","session":true,"code":"x = 41"}'
	sp_say run_code '{"conversationId":"c","language":"python","session":true,"code":"print(x + 1)"}'
	sp_stdio_end
	[ "$(jq -r 'select(.id == 2) | .result.content[0].text' "$SP_DIR/out")" = 42 ]
}
