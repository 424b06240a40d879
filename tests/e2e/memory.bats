#!/usr/bin/env bats
# What the gateway keeps of memory that large requests needed.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	sp_setup
	sp_start_jailer
	SALLYPORT_LIMITS_BODY_MB=32 sp_start_gateway
	sp_token alice
}

teardown_file() {
	sp_teardown
}

readonly LARGE=11000000 AT_ONCE=6 ROUNDS=4 KEPT_KB=16384

resident_kb() {
	awk '$1 == "RssAnon:" { print $2 }' "/proc/$SP_GATEWAY_PID/status"
}

upload() { # NUMBER
	env -i PATH="$PATH" REQUEST_METHOD=POST REQUEST_URI=/mcp SCRIPT_NAME=/mcp HTTP_HOST=127.0.0.1:8080 CONTENT_TYPE=application/json \
		HTTP_AUTHORIZATION="Bearer $SP_TOKEN" HTTP_MCP_PROTOCOL_VERSION=2026-07-28 HTTP_MCP_METHOD=tools/call HTTP_MCP_NAME=upload_file \
		CONTENT_LENGTH="$(stat -c %s "$SP_DIR/large")" cgi-fcgi -bind -connect "$SP_SOCKET" <"$SP_DIR/large" >"$SP_DIR/reply.$1" 3>&-
}

@test "memory of large requests goes back to the system" {
	local round number before pids
	[[ $SP_BIN != */san/* ]] || skip "a sanitizer keeps what was freed for a while"
	{
		printf '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"upload_file","arguments":{"conversationId":"c","filename":"f","content":"'
		head -c "$LARGE" /dev/zero | base64 -w0
		printf '"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'
	} >"$SP_DIR/large"
	sp_call upload_file '{"conversationId":"c","filename":"a","content":"YQ=="}'
	before=$(resident_kb)
	for ((round = 0; round < ROUNDS; round++)); do
		pids=()
		for ((number = 0; number < AT_ONCE; number++)); do
			upload "$number" &
			pids+=($!)
		done
		wait "${pids[@]}"
		[ "$(grep -l "uploaded successfully ($LARGE bytes)" "$SP_DIR"/reply.* | wc -l)" = "$AT_ONCE" ]
	done
	goes_back() { [ "$(resident_kb)" -lt $((before + KEPT_KB)) ]; }
	sp_until "$SP_GATEWAY_PID" goes_back || { echo "$before kB before, $(resident_kb) kB after"; false; }
}
