#!/usr/bin/env bats
# shellcheck disable=SC2016 # dollars in the programs are not for this shell
# idempotencyKey through the gateway: a repeated call gives the first answer, word for word, and acts once.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	sp_setup
	sp_start_jailer
	sp_start_gateway
	sp_token alice
}

teardown_file() {
	sp_teardown
}

ACTS='"conversationId":"c","language":"python","code":"import os\nopen(\"runs\",\"a\").write(\"x\")\nprint(os.urandom(8).hex())"'

@test "the same key gives the same answer, after a restart too" {
	sp_call run_code "{$ACTS,\"idempotencyKey\":\"k1\"}"
	[ "$(sp_get details.verdict)" = OK ]
	jq -S "$SP_DETAILS.result.content,details" "$SP_DIR/body" >"$SP_DIR/first"
	sp_call run_code "{\"idempotencyKey\":\"k1\",$ACTS}"
	jq -S "$SP_DETAILS.result.content,details" "$SP_DIR/body" | cmp - "$SP_DIR/first"
	sp_stop "$SP_GATEWAY_PID"
	sp_start_gateway
	sp_call run_code "{$ACTS,\"idempotencyKey\":\"k1\"}"
	jq -S "$SP_DETAILS.result.content,details" "$SP_DIR/body" | cmp - "$SP_DIR/first"
	[ "$(sp_sql 'select count(*) from execution')" = 1 ]
}

@test "the same key with another call is an error" {
	sp_call run_code '{"conversationId":"c2","language":"bash","code":"echo 1","idempotencyKey":"k2"}'
	sp_call run_code '{"conversationId":"c2","language":"bash","code":"echo 2","idempotencyKey":"k2"}'
	[ "$(sp_get .result.isError)" = true ]
	[[ $(sp_get '.result.content[0].text') == "idempotencyKey: was used for a call with other arguments"* ]]
	sp_call upload_file '{"conversationId":"c2","filename":"a","content":"YQ==","idempotencyKey":"k2"}'
	[ "$(sp_get .result.isError)" = true ]
	[ "$(sp_sql "select count(*) from execution where conversation_name = 'c2'")" = 1 ]
	[ "$(sp_sql "select count(*) from files where conversation = 'c2'")" = 0 ]
}

@test "idempotency keys have bounds" {
	sp_call run_code "{$ACTS,\"idempotencyKey\":\"\"}"
	[[ $(sp_get '.result.content[0].text') == idempotencyKey:* ]]
	sp_call run_code "{$ACTS,\"idempotencyKey\":\"$(printf 'k%.0s' {1..129})\"}"
	[[ $(sp_get '.result.content[0].text') == idempotencyKey:* ]]
	sp_call run_code '{"conversationId":"c3","language":"bash","code":"echo $S | wc -c","secrets":{"S":"four"},"idempotencyKey":"k3"}'
	[ "$(sp_get details.stdout)" = 5 ]
	# Another value of a secret is the same call: a digest of it would be a trace of it.
	sp_call run_code '{"conversationId":"c3","language":"bash","code":"echo $S | wc -c","secrets":{"S":"twotwo"},"idempotencyKey":"k3"}'
	[ "$(sp_get details.stdout)" = 5 ]
}
