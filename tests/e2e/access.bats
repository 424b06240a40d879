#!/usr/bin/env bats
# What a token may do and how often: scopes (403), requests a minute and calls at once (429), pages in browsers (CORS).

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	sp_setup
	jq '.limits.in_flight = 2 | .gateway.allowed_origins = ["https://app.example"]' "$SP_CONFIG" >"$SP_DIR/c" &&
		mv "$SP_DIR/c" "$SP_CONFIG"
	sp_start_jailer
	sp_start_gateway
	sp_token alice
}

teardown_file() {
	sp_teardown
}

scoped() {
	SP_TOKEN=$("$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner alice --scope "$1")
}

list() {
	printf '{"jsonrpc":"2.0","id":1,"method":"%s","params":{"_meta":{%s,%s}}}' "$1" \
		'"io.modelcontextprotocol/protocolVersion":"2026-07-28"' '"io.modelcontextprotocol/clientCapabilities":{}' |
		sp_http POST /mcp HTTP_MCP_PROTOCOL_VERSION=2026-07-28 HTTP_MCP_METHOD="$1"
}

RUN='{"conversationId":"c","language":"bash","code":"echo 1"}'
UPLOAD='{"conversationId":"c","filename":"a","content":"YQ=="}'

forbidden() { # SCOPE
	[ "$SP_STATUS" = 403 ]
	grep -qx "WWW-Authenticate: Bearer .*error=\"insufficient_scope\".* scope=\"$1\"" "$SP_DIR/head"
	[[ $(sp_get .error.message) == *"lacks the scope \"$1\""* ]]
}

@test "a token may do what its scopes say" {
	scoped run
	sp_call run_code "$RUN"
	[ "$SP_STATUS" = 200 ]
	sp_call upload_file "$UPLOAD"
	forbidden files
	list resources/list
	forbidden files
	scoped files
	sp_call upload_file "$UPLOAD"
	[ "$SP_STATUS" = 200 ]
	list resources/list
	[ "$SP_STATUS" = 200 ]
	sp_call run_code "$RUN"
	forbidden run
	sp_call list_runners '{}'
	[ "$SP_STATUS" = 200 ]
	scoped admin
	sp_call run_code "$RUN"
	[ "$SP_STATUS" = 200 ]
	sp_call upload_file "$UPLOAD"
	[ "$SP_STATUS" = 200 ]
	[ "$(sp_sql 'select count(*) from execution')" = 2 ]
}

tools() {
	jq -r '[.result.tools[].name] | join(" ")' "$SP_DIR/body"
}

@test "tools/list shows what the token may call, in both eras" {
	local scope session
	local all="list_runners run_code upload_file reset_session"
	declare -A expected=([run]="list_runners run_code reset_session" [files]="list_runners upload_file" [run,files]="$all" [admin]="$all")
	for scope in run files run,files admin run; do
		scoped "$scope"
		list tools/list
		[ "$(tools)" = "${expected[$scope]}" ]
		printf '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' | sp_http POST /mcp
		session=$(sed -n 's/^Mcp-Session-Id: //p' "$SP_DIR/head")
		printf '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' | sp_http POST /mcp HTTP_MCP_SESSION_ID="$session"
		[ "$(tools)" = "${expected[$scope]}" ]
	done
}

# The languages that tools/list names now.
languages() {
	list tools/list
	[ "$(jq -c '.result.tools[1].inputSchema.properties.language.enum' "$SP_DIR/body")" = "$1" ]
}

@test "tools/list: the languages are those of the jailer that is there now" {
	local before
	sp_token alice
	list tools/list
	before=$(jq -c '.result.tools[1].inputSchema.properties.language.enum' "$SP_DIR/body")
	[[ $before == *'"bash"'* && $before == *'"python"'* ]]
	languages "$before" # the second answer is the printed one
	sp_stop "$SP_JAILER_PID"
	sp_until "" languages null
	mkdir "$SP_DIR/runners"
	cp "$SP_ROOT/jail/runners/bash.json" "$SP_DIR/runners"
	SALLYPORT_JAILER_RUNNERS_DIR=$SP_DIR/runners sp_start_jailer
	sp_until "" languages '["bash","sh","shell"]'
	sp_stop "$SP_JAILER_PID"
	sp_start_jailer
	sp_until "" languages "$before"
}

@test "a batch is no way around it" {
	scoped files
	printf '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' | sp_http POST /mcp
	local session
	session=$(sed -n 's/^Mcp-Session-Id: //p' "$SP_DIR/head")
	printf '[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_code","arguments":%s}}]' "$RUN" |
		sp_http POST /mcp HTTP_MCP_SESSION_ID="$session"
	forbidden run
}

@test "unknown scopes are refused, and list shows those there are" {
	run -2 "$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner alice --scope run,root
	[[ $output == *"scope 'root': there are run, files, network and admin"* ]]
	run -2 "$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner alice --scope ,
	run -0 "$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner carol --scope files,run --json
	[ "$(jq -r .scopes <<<"$output")" = "run files" ]
	run -0 "$SP_BIN/sallyport" token list --config "$SP_CONFIG"
	[[ $output == *SCOPES* && $output == *"run files"* ]]
}

# A call in the background with files of its own.
background() { # NUMBER
	mkdir "$SP_DIR/$1"
	(
		SP_DIR=$SP_DIR/$1
		sp_call run_code "{\"conversationId\":\"b$1\",\"language\":\"bash\",\"code\":\"sleep 1000\",\"timeout_seconds\":300}"
	) 3>&- &
}

running() {
	[ "$(sp_sql "select count(*) from execution where state = 'running'")" = "$1" ]
}

place_free() {
	sp_call list_runners '{}'
	[ "$SP_STATUS" = 200 ]
}

@test "more calls at once than a token may have: 429, and a place when one is over" {
	scoped run
	background 1
	background 2
	sp_until "" running 2
	sp_call list_runners '{}'
	[ "$SP_STATUS" = 429 ]
	grep -qx 'Retry-After: 1' "$SP_DIR/head"
	[[ $(sp_get .error.message) == "Too many calls: 2 of this token"* ]]
	[ "$(sp_get .id)" = 1 ]
	list tools/list # is no call
	[ "$SP_STATUS" = 200 ]
	local mine=$SP_TOKEN
	scoped run # another token is not concerned
	sp_call list_runners '{}'
	[ "$SP_STATUS" = 200 ]
	SP_TOKEN=$mine
	for pid in $(pgrep -f "^cgi-fcgi -bind -connect $SP_SOCKET"); do kill "$pid"; done # the clients leave: cancelled
	sp_until "" place_free
	sp_until "" running 0
	[ "$(sp_sql "select group_concat(distinct verdict) from execution where conversation_name like 'b_'")" = CX ]
}

@test "more requests in a minute than a token may send: 429 and when to come again" {
	sp_stop "$SP_GATEWAY_PID"
	SALLYPORT_LIMITS_REQUESTS_PER_MINUTE=2 sp_start_gateway # few: on a slow machine many would never be as fast
	scoped run
	local i
	for ((i = 0; i < 20; i++)); do
		list tools/nothing
		[ "$SP_STATUS" = 404 ] || break
	done
	[ "$SP_STATUS" = 429 ]
	[ "$i" -ge 2 ]
	grep -qxE 'Retry-After: ([1-9]|[12][0-9]|30)' "$SP_DIR/head" # one comes back every thirty seconds
	[[ $(sp_get .error.message) == *"2 a minute"* ]]
	scoped run # another token is not concerned
	list tools/list
	[ "$SP_STATUS" = 200 ]
}

@test "pages of allowed Origins may ask, others not" {
	SP_BARE=1 sp_http OPTIONS /mcp HTTP_ORIGIN=https://app.example HTTP_ACCESS_CONTROL_REQUEST_METHOD=POST \
		HTTP_ACCESS_CONTROL_REQUEST_HEADERS="authorization, mcp-param-region,x-other" </dev/null
	[ "$SP_STATUS" = 204 ]
	grep -qx 'Access-Control-Allow-Origin: https://app.example' "$SP_DIR/head"
	grep -qx 'Access-Control-Allow-Methods: POST.*' "$SP_DIR/head"
	grep '^Access-Control-Allow-Headers: .*Authorization, .*Mcp-Name, .*, mcp-param-region$' "$SP_DIR/head"
	[ ! -s "$SP_DIR/body" ]
	SP_BARE=1 sp_http OPTIONS /mcp HTTP_ORIGIN=https://evil.example HTTP_ACCESS_CONTROL_REQUEST_METHOD=POST </dev/null
	[ "$SP_STATUS" = 403 ]
	run ! grep -i access-control "$SP_DIR/head"
	SP_BARE=1 sp_http POST /mcp HTTP_ORIGIN=https://app.example CONTENT_TYPE=application/json </dev/null
	[ "$SP_STATUS" = 401 ] # the page may read why
	grep -qx 'Access-Control-Allow-Origin: https://app.example' "$SP_DIR/head"
	grep -qx 'Access-Control-Expose-Headers: Mcp-Session-Id, WWW-Authenticate.*' "$SP_DIR/head"
	grep -qx 'Vary: Origin' "$SP_DIR/head"
	SP_BARE=1 sp_http OPTIONS /mcp </dev/null # no browser's question
	[ "$SP_STATUS" != 204 ]
}
