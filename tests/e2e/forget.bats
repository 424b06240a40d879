#!/usr/bin/env bats
# `sallyport forget` and `sallyport gc` beside a gateway that serves: what goes, what stays, what people and clients are told.
# (Kills, two at once, the rules of retention: test_store_erase.)

# shellcheck disable=SC2016,SC2034 # dollars in the programs are not for this shell; SP_TOKEN is read by lib.bash
bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	sp_serve alice
}

teardown() {
	sp_teardown
}

@test "forget: counts first, then the content goes and the fact stays" {
	sp_run_bash 'echo word-of-the-output; echo x >file-of-the-run'
	run sp_cli forget --execution "$ID"
	[ "$status" -eq 0 ]
	[[ $output == *"1 runs and 0 conversations would be forgotten"*"--yes does it"* ]]
	sp_cli show "$ID" | grep -q word-of-the-output
	run sp_cli forget --execution "$ID" --reason 'ticket 7' --yes
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"1 runs and 0 conversations forgotten"* ]]
	run sp_cli show "$ID"
	[ "$status" -eq 0 ]
	[[ $output == *"the content of run $ID was removed on 20"*"(request); that it ran is still recorded"* ]]
	[[ $output == *"verdict"*"OK"* ]]
	[[ $output != *word-of-the-output* ]]
	[[ $output != *file-of-the-run* ]]
	run sp_cli show "$ID" --stdout
	[ "$status" -eq 3 ]
	[[ $output == *"was removed on"* ]]
	[ "$(sp_cli show "$ID" --json | jq -c '[.erased, .erased_why, .code_text, .stdout_text, .code.bytes > 10, .verdict]')" = '["content","request",null,null,true,"OK"]' ]
	run sp_cli replay "$ID"
	[[ $output == *"was removed on"* ]]
	run sp_cli export "$ID" -o "$SP_DIR/bundle"
	[ "$status" -eq 3 ]
	[[ $output == *"was removed on"* ]]
	# The conversation goes on with its files, and what they were is still told by the log.
	sp_cli verify --blobs
	sp_run_bash 'cat file-of-the-run'
	sp_cli show "$ID" --stdout | grep -q '^x$'
}

@test "forget: a file that was put back from before another run verifies after the run that left it was erased" {
	for what in "" --only-output; do
		sp_run_bash 'echo 1 >f'
		first=$ID
		sp_run_bash 'echo 2 >f'
		second=$ID
		# shellcheck disable=SC2086 # nothing, or an option
		sp_cli forget --execution "$first" $what --yes
		sp_cli undo "$second"
		sp_cli verify --blobs
		sp_run_bash 'cat f'
		[ "$(sp_cli show "$ID" --stdout)" = 1 ]
	done
	sp_call restore_files "$(jq -cn --arg id "$second" '{conversationId: "talk", executionId: $id, state: "after"}')"
	sp_cli forget --execution "$second" --yes
	sp_cli verify --blobs
}

@test "forget: --only-output of an owner leaves conversations and their files" {
	sp_run_bash 'echo printed; echo made >f'
	owner=$(sp_sql "select owner from execution where id='$ID'")
	[ "$(sp_cli forget --owner "$owner" --only-output --json | jq -c '[.done, .executions, .conversations]')" = '[false,1,0]' ]
	[ "$(sp_cli forget --owner "$owner" --only-output --yes --json | jq -c '[.done, .executions, .conversations]')" = '[true,1,0]' ]
	sp_cli verify --blobs
	sp_run_bash 'cat f'
	[ "$(sp_cli show "$ID" --stdout)" = made ]
}

@test "forget: a client that asks again gets a sentence" {
	sp_run_bash 'echo once; echo 1 >>count' '{idempotencyKey: "k1"}'
	sp_call run_code '{"conversationId":"talk","language":"bash","code":"echo once; echo 1 >>count","idempotencyKey":"k1"}'
	[ "$(sp_get details.execution_id)" = "$ID" ]
	sp_cli forget --execution "$ID" --yes
	sp_call run_code '{"conversationId":"talk","language":"bash","code":"echo once; echo 1 >>count","idempotencyKey":"k1"}'
	cat "$SP_DIR/body"
	[[ $(cat "$SP_DIR/body") == *"the content of run $ID was removed on"* ]]
	sp_mcp resources/read '"uri":"sallyport://runs/'"$ID"'/stdout"' "sallyport://runs/$ID/stdout"
	cat "$SP_DIR/body"
	[ "$(sp_get .error.code)" -lt 0 ]
	[[ $(cat "$SP_DIR/body") != *once* ]]
	[ "$(sqlite3 "$SP_DIR/data/sallyport.db" 'SELECT count(*) FROM execution')" = 1 ]
}

@test "forget takes an owner or a conversation" {
	local args
	for args in "" "--conversation talk" "--execution 0 --owner alice"; do
		# shellcheck disable=SC2086 # several words
		run sp_cli forget $args
		[ "$status" -eq 2 ]
	done
	run sp_cli forget --execution 0123
	[ "$status" -eq 3 ]
	for args in "" --yes; do
		# shellcheck disable=SC2086 # nothing, or an option
		run sp_cli forget --owner alcie $args
		[ "$status" -eq 3 ]
		[[ $output == *'no owner "alcie" has tokens or a record here'* ]]
	done
	sp_run_bash 'echo a >a'
	for args in "" --yes; do
		# shellcheck disable=SC2086
		run sp_cli forget --owner alice --conversation other $args
		[ "$status" -eq 3 ]
		[[ $output == *'alice has no conversation "other": sallyport log --owner alice names'* ]]
	done
	sp_call upload_file '{"conversationId":"only files","filename":"a","content":"eA=="}'
	run -0 sp_cli forget --owner alice --conversation "only files"
	[[ $output == *"0 runs and 1 conversations"* ]]
	run -0 sp_cli forget --owner alice --conversation talk --before 1h
	[[ $output == *"0 runs and 0 conversations"* ]]
	run sp_cli forget --owner alice --before 1h --yes
	[[ $output == *"0 runs and 0 conversations"* ]]
	run sp_cli forget --owner alice --conversation talk --yes --json
	[ "$(jq -c '[.done, .executions, .conversations, .running]' <<<"$output")" = '[true,1,1,0]' ]
	run -3 sp_cli forget --owner alice --conversation talk --yes # nothing knows its name any more
	run sp_cli verify
	echo "$output"
	[ "$status" -eq 0 ]
	sp_call run_code '{"conversationId":"talk","language":"bash","code":"ls -A /data; echo end"}'
	[ "$(sp_get details.stdout)" = end ]
	[[ $(sp_cli gc) == *"would leave the disk"*"--yes does it"* ]]
	[ "$(sp_cli gc --yes --json | jq '.done and .bytes == 0 and .young >= 1')" = true ]
}

@test "forget: what an upstream server keeps for an owner goes with the owner, unless it is in use" {
	sp_counting_server
	[[ $(sp_cli upstream call count count) == *"files: 1"* ]]
	[[ $(sp_cli upstream call count count) == *"files: 2"* ]]
	grep -qr word-that-is-kept "$SP_DIR/data/upstream"
	[ "$(sp_cli forget --owner alice --yes --json | jq -c '[.upstream_data, .upstream_data_busy]')" = '[0,0]' ]
	[ "$(sp_cli forget --owner local --before 1d --yes --json | jq .upstream_data)" = 0 ]
	run flock "$SP_DIR"/data/upstream/*/* "$SP_BIN/sallyport" forget --owner local --yes --config "$SP_CONFIG"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"1 upstream servers are in use and keep their /data"* ]]
	[[ $(sp_cli upstream call count count) == *"files: 3"* ]]
	run sp_cli forget --owner local --yes
	[[ $output == *"1 upstream servers lost what they kept in /data"* ]]
	run ! grep -qr word-that-is-kept "$SP_DIR/data"
	[[ $(sp_cli upstream call count count) == *"files: 1"* ]]
}

# A conversation of this name is made, and expires.
one_expires() {
	sp_call upload_file '{"conversationId":"one-that-expires","filename":"a","content":"eA=="}'
	sp_stop "$SP_GATEWAY_PID"
	sqlite3 "$SP_DIR/data/sallyport.db" "UPDATE conversation SET idle_from_us = idle_from_us - 31 * 86400000000 WHERE name = 'one-that-expires'"
	sp_start_gateway
	# shellcheck disable=SC2317 # sp_until calls it
	gone() { [ "$(sp_sql "SELECT count(*) FROM conversation WHERE name = 'one-that-expires'")" = 0 ]; }
	sp_until "$SP_GATEWAY_PID" gone
}

@test "forget: no name of an owner's conversations stays" {
	sp_call run_code '{"conversationId":"a-telling-name","language":"bash","code":"echo word"}'
	sp_cli tag telling-tag "$(sp_sql "SELECT id FROM execution")"
	one_expires
	[ "$(sp_sql "SELECT count(*) FROM audit_detail WHERE detail LIKE '%one-that-expires%'")" = 1 ]
	[[ $(sp_cli forget --owner alice --yes) == *"1 tokens revoked"* ]]
	sp_cli verify
	[ "$(sp_sql "SELECT count(*) FROM execution WHERE conversation_name IS NOT NULL AND owner = 'alice'")" = 0 ]
	[ "$(sp_sql '.dump' | grep -cE 'a-telling-name|one-that-expires')" = 0 ]
	[ "$(sp_sql 'SELECT count(*) FROM execution_tag')" = 0 ]
	sp_call run_code '{"conversationId":"new","language":"bash","code":"echo word"}'
	[ "$SP_STATUS" = 401 ]
	[ "$(sp_sql "SELECT count(*) FROM audit WHERE kind = 'token.revoke'")" = 1 ]
	sp_cli forget --owner alice --yes # again, as after a kill
	sp_cli verify
}

@test "forget: no name of a conversation stays that was forgotten alone" {
	sp_call run_code '{"conversationId":"one-of-two","language":"bash","code":"echo word >f","session":true}'
	sp_call reset_session '{"conversationId":"one-of-two"}'
	sp_call run_code '{"conversationId":"two-of-two","language":"bash","code":"echo word >f"}'
	one_expires
	sp_cli forget --owner alice --conversation one-of-two --yes
	sp_cli forget --owner alice --conversation one-that-expires --yes # known by the audit log alone
	sp_cli verify --blobs
	[ "$(sp_sql '.dump' | grep -cE 'one-of-two|one-that-expires')" = 0 ]
	[ "$(sp_sql "SELECT count(*) FROM execution WHERE conversation_name = 'two-of-two'")" = 1 ]
	[ "$(sp_cli files --owner alice -c two-of-two f)" = word ]
	run -3 sp_cli forget --owner alice --conversation one-that-expires --yes
}

@test "gc: another process collects garbage" {
	run flock "$SP_DIR/data/gc.lock" "$SP_BIN/sallyport" gc --yes --config "$SP_CONFIG"
	echo "$output"
	[ "$status" -eq 5 ]
	[[ $output == *"another process collects garbage"* ]]
}

# killed POINT COMMAND…: with SIGKILL at a system call; fails where the command got through.
killed() {
	run strace -f -o /dev/null -e trace="${1%:*}" -e inject="${1%:*}:signal=KILL:when=${1#*:}" \
		"$SP_BIN/sallyport" "${@:2}" --config "$SP_CONFIG"
	[ "$status" -ne 0 ]
}

@test "forget and gc can be killed at any step" {
	local point kills=0
	sp_call run_code '{"conversationId":"stays","language":"bash","code":"echo what-stays >f; echo out-stays"}'
	for point in pwrite64:1 pwrite64:4 fdatasync:1 fdatasync:2 unlinkat:1 unlink:1; do
		sp_call run_code "$(jq -nc --arg code "echo word-that-goes-$point >f; cat f" '{conversationId: "goes", language: "bash", code: $code}')"
		! killed "$point" forget --owner alice --conversation goes --yes || kills=$((kills + 1))
		sp_cli verify --blobs
		run sp_cli forget --owner alice --conversation goes --yes
		[ "$status" = 0 ] || [ "$status" = 3 ] # killed behind its last word in the database
		[ "$(sp_sql "select count(*) from execution where instr(code, 'goes') or instr(stdout, 'goes') or conversation_name = 'goes'")" = 0 ]
		# Old enough to leave the disk.
		sqlite3 -cmd ".timeout $((SP_DEADLINE * 1000))" "$SP_DIR/data/sallyport.db" 'update blob set created_us = 1'
		find "$SP_DIR/data/blobs" -type f -exec touch -d 2020-01-01 {} +
		! killed "$point" gc --yes || kills=$((kills + 1))
		sp_cli verify --blobs
		sp_until "" sp_cli gc --yes # the gateway collects garbage, too
		run ! grep -rqF "word-that-goes-$point" "$SP_DIR/data/blobs"
	done
	[ "$kills" -ge 6 ]
	sp_call run_code '{"conversationId":"stays","language":"bash","code":"cat f"}'
	[ "$(sp_get details.stdout)" = what-stays ]
	[ "$(sp_sql "select count(*) from execution where stdout like 'out-stays%'")" = 1 ]
	sp_cli verify --blobs
}

@test "forget and gc go on after a full disk" {
	[ "$(id -u)" = 0 ] || skip "needs root to mount a small disk"
	sp_run_bash 'head -c 60000 /dev/zero | tr "\0" x'
	sp_stop "$SP_GATEWAY_PID"
	rm "$SP_DIR/data/reserve" # such a small disk never has one
	run unshare -m bash -c '
		mkdir "$SP_DIR/disk" && mount -t tmpfs -o size=2m none "$SP_DIR/disk" && cp -a "$SP_DIR"/data/. "$SP_DIR/disk/" || exit 77
		export SALLYPORT_DATA_DIR=$SP_DIR/disk
		head -c 4000000 /dev/zero >"$SP_DIR/disk/fill" 2>/dev/null
		truncate -s -60K "$SP_DIR/disk/fill"
		"$SP_BIN/sallyport" forget --owner alice --yes --config "$SP_CONFIG" && exit 78
		"$SP_BIN/sallyport" gc --yes --config "$SP_CONFIG" >"$SP_DIR/gc" 2>&1 || grep -q "space\|full" "$SP_DIR/gc" || exit 79
		rm "$SP_DIR/disk/fill"
		"$SP_BIN/sallyport" forget --owner alice --yes --config "$SP_CONFIG" && "$SP_BIN/sallyport" gc --yes --config "$SP_CONFIG" &&
			"$SP_BIN/sallyport" verify --blobs --config "$SP_CONFIG"'
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"space"*"1 runs and 1 conversations forgotten"* ]]
}

# What erases gives up the reserve first; whatever else would write is refused.
@test "forget and gc get through on a disk that is full to the last byte" {
	[ "$(id -u)" = 0 ] || skip "needs root to mount a small disk"
	for n in 1 2 3; do sp_run_bash "head -c 20000 /dev/zero | tr '\0' $n; echo $n >file" >/dev/null; done
	sp_cli export --all -o "$SP_DIR/bundle"
	run unshare -m bash -c '
		mkdir "$SP_DIR/disk" && mount -t tmpfs -o size=48m none "$SP_DIR/disk" || exit 77
		export SALLYPORT_DATA_DIR=$SP_DIR/disk
		cli() { "$SP_BIN/sallyport" "$@" --config "$SP_CONFIG"; }
		fill() { head -c 64M /dev/zero >>"$SP_DIR/disk/fill" 2>/dev/null; [ "$(stat -f -c %a "$SP_DIR/disk")" = 0 ]; }
		cli import "$SP_DIR/bundle" || exit 78
		[ "$(stat -c %s "$SP_DIR/disk/reserve")" = 8388608 ] || exit 79
		fill || exit 80
		cli token add --owner bob && exit 81
		[ -e "$SP_DIR/disk/reserve" ] || exit 82
		cli forget --owner alice --yes || exit 83
		[ ! -e "$SP_DIR/disk/reserve" ] || exit 84
		cli verify --blobs || exit 85
		cli gc --yes || exit 86
		rm "$SP_DIR/disk/fill"
		cli gc --yes && [ -e "$SP_DIR/disk/reserve" ] || exit 87
		fill || exit 88
		cli gc --yes && [ ! -e "$SP_DIR/disk/reserve" ] || exit 89
		[ "$(cli log --json | jq -r .erased | sort -u)" = content ] || exit 90'
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output == *"space"*"3 runs and 0 conversations forgotten"* ]]
}
