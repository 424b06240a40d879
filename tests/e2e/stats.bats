#!/usr/bin/env bats
# sallyport stats on what a real gateway and jailer recorded: by each word, with filters, as a table and as JSON.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	sp_setup
	sp_two_owners
	sp_start_jailer
	sp_start_gateway
	export SP_TOKEN=$ALICE
	call python talk 'print(1)'
	call python talk 'raise SystemExit(3)'
	call python other 'raise SystemExit(4)'
	call bash talk 'head -c 3000 /dev/zero'
	SP_TOKEN=$BOB
	call bash talk 'echo 1'
	# Yesterday at noon, two hours apart; the log is not asked here.
	local noon
	noon=$(date -d 'yesterday 12:30' +%s)000000
	sqlite3 "$SP_DIR/data/sallyport.db" "UPDATE execution SET created_us = $noon WHERE id = (SELECT min(id) FROM execution);
		UPDATE execution SET created_us = $noon + 7200000000 WHERE id = (SELECT id FROM execution ORDER BY id LIMIT 1 OFFSET 1)"
}

teardown_file() {
	sp_teardown
}

call() { # LANGUAGE CONVERSATION CODE
	sp_call run_code "$(jq -cn --arg l "$1" --arg c "$2" --arg code "$3" '{conversationId: $c, language: $l, code: $code}')"
	[ "$SP_STATUS" = 200 ] || sp_die "run_code: $SP_BODY"
}

stats() { # ARGUMENT…
	"$SP_BIN/sallyport" stats --config "$SP_CONFIG" --json "$@"
}

@test "stats are grouped by each word" {
	[ "$(stats | jq -c '[.owner, .runs, .failed]' | paste -sd' ')" = '["alice",4,2] ["bob",1,0]' ]
	[ "$(stats --by language | jq -c '[.language, .runs]' | paste -sd' ')" = '["python",3] ["bash",2]' ]
	[ "$(stats --by verdict | jq -c '[.verdict, .runs, .failed]' | paste -sd' ')" = '["OK",3,0] ["RE",2,2]' ]
	[ "$(stats --by conversation --owner alice | jq -c '[.conversation, .runs]' | paste -sd' ')" = '["talk",3] ["other",1]' ]
	[ "$(stats --by token -n 1 | jq .runs)" = 4 ]
	[ "$(stats --by language --language bash --owner alice | jq .bytes)" -gt 3000 ]
	[ "$(stats --owner nobody)" = "" ]
}

@test "failures are grouped without their figures" {
	[ "$(stats --by message | jq -c '[.runs, .failed]')" = '[2,2]' ]
	stats --by message | jq -r .message | grep '^RE: .*#'
}

@test "stats by hour and day have no gaps" {
	[ "$(stats --by hour --since yesterday --until today | jq -c '[.hour[11:], .runs]' | paste -sd' ')" = '["12:00",1] ["13:00",0] ["14:00",1]' ]
	[ "$(stats --by day | jq -c .runs | paste -sd' ')" = '2 3' ]
	[ "$(stats --since today | jq -s 'map(.runs) | add')" = 3 ]
	run -0 "$SP_BIN/sallyport" stats --config "$SP_CONFIG" --by day
	[[ ${lines[1]} == *"█"* ]]
	[[ ${lines[2]} == *"████████████████████████████████████████"* ]]
}

@test "system calls that were denied" {
	call python talk 'import ctypes; ctypes.CDLL(None).mount(b"a", b"/", b"tmpfs", 0, None); print(1)'
	[ "$(stats --by denied | jq -c '[.denied, .runs]')" = '["mount",1]' ]
}

@test "the slowest runs" {
	SP_TOKEN=$BOB call bash talk 'sleep 2'
	[ "$(stats --by slowest --language bash -n 1 | jq -c '[.owner, .language, .verdict, .wall_us >= 2000000]')" = '["bob","bash","OK",true]' ]
	[ "$(stats --by slowest --owner alice | jq -s '(map(.wall_us) | . == (sort | reverse)) and length == 4')" = true ]
	stats --by disk | jq -s -e 'map(.owner) | sort == ["alice", "bob"]'
	[ "$(stats --by disk | jq -s '(map(.bytes) | . == (sort | reverse)) and .[0].owner == "alice" and .[0].bytes > 3000')" = true ]
	[ "$(stats --by disk --owner bob | jq -s length)" = 1 ]
	[ "$(stats --by disk --owner bob --owner alice | jq -s length)" = 2 ]
	[ "$(stats --by owner --owner alice --owner bob | jq -s 'map(.owner) | sort')" = "$(stats --by owner | jq -s 'map(.owner) | sort')" ]
	[ "$(stats --by owner --owner bob --owner nobody | jq -r .owner)" = bob ]
	run -0 "$SP_BIN/sallyport" stats --config "$SP_CONFIG" --by slowest
	[[ $output == *"STARTED"* ]]
	run -0 env SALLYPORT_RETENTION_OWNER_MB=1 "$SP_BIN/sallyport" stats --config "$SP_CONFIG" --by disk
	[[ $output == *" %"* ]]
}

@test "failures are grouped by their kind" {
	local code
	for code in 'int("x")' 'int("y")' 'import nothing_of_this_name' 'raise SystemExit(3)' \
		'import ctypes; ctypes.CDLL(None).unshare(0x10000000); import sys; sys.exit(1)'; do
		SP_TOKEN=$BOB call python kinds "$code"
	done
	SP_TOKEN=$BOB call bash kinds 'kill -SEGV $$'
	[ "$(stats --by failure --conversation kinds | jq -r '"\(.runs) \(.failure)"' | head -5)" = "2 ValueError
1 RE: The program ended with exit status 3.
1 SG: The program was ended by signal # (Segmentation fault).
1 call denied: unshare
1 missing module: nothing_of_this_name" ] || {
		stats --by failure --conversation kinds | jq -r .failure
		false
	}
	[ "$(stats --by owner-day --owner bob --since today | jq -r .owner)" = bob ]
	[ "$(stats --by largest | jq -s 'map(.bytes) | . == (sort | reverse)')" = true ]
}

@test "limits that were hit" {
	local _
	for _ in 1 2 3; do
		head -c 9000000 /dev/zero | SP_TOKEN=$ALICE sp_http POST /mcp
		[ "$SP_STATUS" = 413 ]
		SP_TOKEN=sp_alice_wrong sp_http POST /mcp <<<'{}'
		[ "$SP_STATUS" = 401 ]
	done
	# The first of each is written at once, the others with the next minute, or at the end.
	first() { [ "$(stats --by limit | jq -c '[.limit, .owner, .refused]' | sort | paste -sd' ')" = '["auth:unknown","",1] ["body","alice",1]' ]; }
	sp_until "" first
	sp_stop "$SP_GATEWAY_PID"
	[ "$(stats --by limit | jq -c '[.limit, .owner, .refused]' | sort | paste -sd' ')" = '["auth:unknown","",3] ["body","alice",3]' ]
	[ "$(stats --by limit --owner alice | jq -c '[.limit, .refused, .first <= .last]')" = '["body",3,true]' ]
	[ "$(stats --by limit --until yesterday)" = "" ]
	run -0 "$SP_BIN/sallyport" stats --config "$SP_CONFIG" --by limit
	[[ $output == *"REFUSED"*"body"* ]]
}

@test "wrong usage" {
	run -2 "$SP_BIN/sallyport" stats --config "$SP_CONFIG" --by colour
	run -2 "$SP_BIN/sallyport" stats --config "$SP_CONFIG" --since someday
}
