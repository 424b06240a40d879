#!/usr/bin/env bats
# `sallyport forget` and `sallyport gc` beside a gateway that serves: what goes, what stays, what people and clients are told.
# (Kills, two at once, the rules of retention: test_store_erase.)

# shellcheck disable=SC2016,SC2034 # dollars in the programs are not for this shell; SP_TOKEN is read by lib.bash
bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	sp_setup
	sp_start_jailer
	sp_start_gateway
	SP_TOKEN=$(cli token add --owner alice --json | jq -r .token)
}

teardown() {
	sp_teardown
}

cli() { "$SP_BIN/sallyport" "$@" --config "$SP_CONFIG"; }

# run_one CODE [MORE ARGUMENTS]: sets ID.
run_one() {
	local more=${2:-null}
	sp_call run_code "$(jq -nc --arg code "$1" '{conversationId: "talk", language: "bash", code: $code} + '"$more")"
	cat "$SP_DIR/body"
	ID=$(sqlite3 "$SP_DIR/data/sallyport.db" 'SELECT id FROM execution ORDER BY id DESC LIMIT 1')
}

@test "forget: counts first, then the content goes and the fact stays" {
	run_one 'echo word-of-the-output; echo x >file-of-the-run'
	run cli forget --execution "$ID"
	[ "$status" -eq 0 ]
	[[ $output == *"1 runs and 0 conversations would be forgotten"*"--yes does it"* ]]
	cli show "$ID" | grep -q word-of-the-output
	run cli forget --execution "$ID" --reason 'ticket 7' --yes
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"1 runs and 0 conversations forgotten"* ]]
	run cli show "$ID"
	[ "$status" -eq 0 ]
	[[ $output == *"the content of run $ID was removed on 20"*"(request); that it ran is still recorded"* ]]
	[[ $output == *"verdict"*"OK"* ]]
	[[ $output != *word-of-the-output* ]]
	[[ $output != *file-of-the-run* ]]
	run cli show "$ID" --stdout
	[ "$status" -eq 3 ]
	[[ $output == *"was removed on"* ]]
	[ "$(cli show "$ID" --json | jq -c '[.erased, .erased_why, .code_text, .stdout_text, .code.bytes > 10, .verdict]')" = '["content","request",null,null,true,"OK"]' ]
	run cli replay "$ID"
	[[ $output == *"was removed on"* ]]
	run cli export "$ID" -o "$SP_DIR/bundle"
	[ "$status" -eq 3 ]
	[[ $output == *"was removed on"* ]]
	# The conversation goes on with its files.
	run_one 'cat file-of-the-run'
	cli show "$ID" --stdout | grep -q '^x$'
}

@test "forget: a client that asks again gets a sentence, and nothing runs twice" {
	run_one 'echo once; echo 1 >>count' '{idempotencyKey: "k1"}'
	sp_call run_code '{"conversationId":"talk","language":"bash","code":"echo once; echo 1 >>count","idempotencyKey":"k1"}'
	[ "$(sp_get details.execution_id)" = "$ID" ]
	cli forget --execution "$ID" --yes
	sp_call run_code '{"conversationId":"talk","language":"bash","code":"echo once; echo 1 >>count","idempotencyKey":"k1"}'
	cat "$SP_DIR/body"
	[[ $(cat "$SP_DIR/body") == *"the content of run $ID was removed on"* ]]
	sp_mcp resources/read '{"uri":"sallyport://runs/'"$ID"'/stdout"}' || true
	[[ $(cat "$SP_DIR/body") != *once* ]]
	[ "$(sqlite3 "$SP_DIR/data/sallyport.db" 'SELECT count(*) FROM execution')" = 1 ]
}

@test "forget: an owner, a conversation; wrong command lines" {
	local args
	for args in "" "--conversation talk" "--execution 0 --owner alice"; do
		# shellcheck disable=SC2086 # several words
		run cli forget $args
		[ "$status" -eq 2 ]
	done
	run cli forget --execution 0123
	[ "$status" -eq 3 ]
	run_one 'echo a >a'
	run cli forget --owner alice --conversation other --yes
	[[ $output == *"0 runs and 0 conversations"* ]]
	run cli forget --owner alice --before 1h --yes
	[[ $output == *"0 runs and 0 conversations"* ]]
	run cli forget --owner alice --conversation talk --yes --json
	[ "$(jq -c '[.done, .executions, .conversations, .running]' <<<"$output")" = '[true,1,1,0]' ]
	run cli verify
	echo "$output"
	[ "$status" -eq 0 ]
	sp_call run_code '{"conversationId":"talk","language":"bash","code":"ls -A /data; echo end"}'
	[ "$(sp_get details.stdout)" = end ]
	[[ $(cli gc) == *"would leave the disk"*"--yes does it"* ]]
	[ "$(cli gc --yes --json | jq '.done and .bytes == 0 and .young >= 1')" = true ]
}

@test "gc: another process sweeps" {
	run flock "$SP_DIR/data/gc.lock" "$SP_BIN/sallyport" gc --yes --config "$SP_CONFIG"
	echo "$output"
	[ "$status" -eq 5 ]
	[[ $output == *"another process sweeps"* ]]
}

@test "forget: a full disk is named, and afterwards it goes on" {
	[ "$(id -u)" = 0 ] || skip "needs root to mount a small disk"
	run_one 'head -c 60000 /dev/zero | tr "\0" x'
	sp_stop "$SP_GATEWAY_PID"
	run unshare -m bash -c '
		mkdir "$SP_DIR/disk" && mount -t tmpfs -o size=2m none "$SP_DIR/disk" && cp -a "$SP_DIR"/data/. "$SP_DIR/disk/" || exit 77
		export SALLYPORT_DATA_DIR=$SP_DIR/disk
		head -c 4000000 /dev/zero >"$SP_DIR/disk/fill" 2>/dev/null
		truncate -s -60K "$SP_DIR/disk/fill"
		"$SP_BIN/sallyport" forget --owner alice --yes --config "$SP_CONFIG" && exit 78
		rm "$SP_DIR/disk/fill"
		"$SP_BIN/sallyport" forget --owner alice --yes --config "$SP_CONFIG"'
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"space"*"1 runs and 1 conversations forgotten"* ]]
}
