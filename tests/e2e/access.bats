#!/usr/bin/env bats
# What a token may do and how often: scopes (403), requests a minute and calls at once (429), pages in browsers (CORS).

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	sp_setup
	jq '.limits.in_flight = 2 | .limits.wait_seconds = 0 | .gateway.allowed_origins = ["https://app.example"]' "$SP_CONFIG" >"$SP_DIR/c" &&
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

# A request of the modern era: modern METHOD MEMBERS-OF-PARAMS
modern() {
	printf '{"jsonrpc":"2.0","id":1,"method":"%s","params":{%s"_meta":{%s,%s,%s}}}' "$1" "$2" \
		'"io.modelcontextprotocol/protocolVersion":"2026-07-28"' '"io.modelcontextprotocol/clientCapabilities":{}' \
		'"io.modelcontextprotocol/clientInfo":{"name":"'"${3-t}"'","version":"1"}' |
		sp_http POST /mcp HTTP_MCP_PROTOCOL_VERSION=2026-07-28 HTTP_MCP_METHOD="$1" ${HTTP_MCP_NAME+HTTP_MCP_NAME="$HTTP_MCP_NAME"}
}
list() {
	modern "$1" ""
}

# initialize of REVISION, by a client called NAME: sets $SESSION
open_session() {
	printf '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"%s","capabilities":{},"clientInfo":%s}}' \
		"$1" '{"name":"'"${2-t}"'","version":"1"}' | sp_http POST /mcp
	SESSION=$(sed -n 's/^Mcp-Session-Id: //p' "$SP_DIR/head")
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
	local scope
	local files="list_files read_file write_file delete_files diff restore_files upload_file"
	local all="list_runners run_code read_output $files reset_session"
	declare -A expected=([run]="list_runners run_code read_output reset_session" [files]="list_runners $files" [run,files]="$all" [admin]="$all")
	for scope in run files run,files admin run; do
		scoped "$scope"
		list tools/list
		[ "$(tools)" = "${expected[$scope]}" ]
		open_session 2025-11-25
		printf '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' | sp_http POST /mcp HTTP_MCP_SESSION_ID="$SESSION"
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
	sp_until "" languages '["bash"]'
	sp_stop "$SP_JAILER_PID"
	sp_start_jailer
	sp_until "" languages "$before"
}

@test "each tool is refused to exactly the tokens whose list lacks it" {
	local all scope tool listed
	scoped admin
	list tools/list
	all=$(tools)
	[ "$(wc -w <<<"$all")" -ge 11 ]
	for scope in run files network; do
		scoped "$scope"
		list tools/list
		listed=" $(tools) "
		for tool in $all; do
			sp_call "$tool" '{"conversationId":"none"}'
			if [[ $listed == *" $tool "* ]]; then [ "$SP_STATUS" != 403 ]; else [ "$SP_STATUS" = 403 ]; fi || sp_die "$tool, $scope: $SP_STATUS"
		done
	done
}

# Every row of the table of routes: METHOD PATH, and the statuses for tokens with run, files, network, admin, and for none.
ROUTES='
	GET /_token 204 204 204 204 401
	POST /mcp 200 200 200 200 401
	POST /mcp/ 200 200 200 200 401
	GET /sse 404 404 404 404 401
	POST /messages 404 404 404 404 401
	PUT /files/ 403 201 403 200 401
	DELETE /files/ 403 204 403 404 401
	GET /admin 404 404 404 404 404
	GET /admin/ 404 404 404 404 404
	GET /v1/ 404 404 404 404 401
	POST /fusion/ 404 404 404 404 401
	POST /piston/ 404 404 404 404 401
	GET / 404 404 404 404 404
	GET /.well-known/oauth-protected-resource 404 404 404 404 404
	GET /.well-known/oauth-protected-resource/mcp 404 404 404 404 404
	GET /.well-known/oauth-protected-resource/sse 404 404 404 404 404
	GET /.well-known/oauth-authorization-server 404 404 404 404 404
	GET /mcp/server-card 200 200 200 200 200
	GET /authorize 404 404 404 404 404
	POST /token 404 404 404 404 404
	POST /revoke 404 404 404 404 404
	POST /register 404 404 404 404 404
	GET /healthz 200 200 200 200 200
	GET /readyz 200 200 200 200 200
	GET /metrics 200 200 200 200 200
'
@test "each route of the table asks for a token with the scope that it needs" {
	local method path statuses place status scope
	diff <(sed -nE 's/^\t\{"(\/[^"]*)", (true|false), ".*/\1/p' "$SP_ROOT/cgi/routes.c" | sort) <(awk 'NF { print $2 }' <<<"$ROUTES" | sort -u)
	scoped admin
	sp_call write_file '{"conversationId":"c","path":"a","content":"x"}'
	place=$(sp_get details.file.url | sed -E 's|^.*(/files/[0-9a-f]{64}/).*|\1|')
	while read -r method path statuses; do
		[ -n "$method" ] || continue
		for scope in run files network admin; do
			scoped "$scope"
			status=${statuses%% *} statuses=${statuses#* }
			[ "$path" != /files/ ] || path=${place}new
			printf '{"jsonrpc":"2.0","id":1,"method":"ping"}' | sp_http "$method" "$path" REMOTE_ADDR=127.0.0.1
			[ "$SP_STATUS" = "$status" ] || sp_die "$method $path, $scope: $SP_STATUS"
		done
		printf '{"jsonrpc":"2.0","id":1,"method":"ping"}' | SP_BARE=yes sp_http "$method" "$path" REMOTE_ADDR=127.0.0.1 CONTENT_TYPE=application/json
		[ "$SP_STATUS" = "$statuses" ] || sp_die "$method $path, no token: $SP_STATUS"
	done <<<"$ROUTES"
}

@test "a batch is no way around it" {
	scoped files
	open_session 2025-03-26
	printf '[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_code","arguments":%s}}]' "$RUN" |
		sp_http POST /mcp HTTP_MCP_SESSION_ID="$SESSION"
	forbidden run
}

@test "names of conversations and files are not for a token without files, in both eras" {
	local resource='"ref":{"type":"ref/resource","uri":"sallyport://conversation/{conversation}/{+path}{?offset,length}"},'
	local prompt='"ref":{"type":"ref/prompt","name":"solve_with_code"},' argument path
	argument='"argument":{"name":"conversation","value":""},'
	path='"argument":{"name":"path","value":""},"context":{"arguments":{"conversation":"c"}},'
	sp_call upload_file "$UPLOAD"
	[ "$SP_STATUS" = 200 ]
	modern completion/complete "$resource$argument"
	[ "$(sp_get '.result.completion.values | index("c") != null')" = true ] # there is something to keep back
	modern completion/complete "$resource$path"
	[ "$(sp_get '.result.completion.values | join(" ")')" = a ]
	scoped run
	modern completion/complete "$resource$argument"
	forbidden files
	modern completion/complete "$resource$path"
	forbidden files
	modern completion/complete "$prompt"'"argument":{"name":"language","value":"ba"},'
	[ "$(sp_get '.result.completion.values[0]')" = bash ]
	modern completion/complete "$prompt"'"argument":{"name":"conversationId","value":""},'
	[ "$(sp_get '.result.completion.values | length')" = 0 ]
	modern completion/complete "$prompt"'"argument":{"name":"file","value":""},"context":{"arguments":{"conversationId":"c"}},'
	[ "$(sp_get '.result.completion.values | length')" = 0 ]
	open_session 2025-11-25
	printf '{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{%s}}' "$resource${argument%,}" |
		sp_http POST /mcp HTTP_MCP_SESSION_ID="$SESSION"
	forbidden files
	printf '{"jsonrpc":"2.0","id":1,"method":"resources/unsubscribe","params":{"uri":"sallyport://conversation/c/a"}}' |
		sp_http POST /mcp HTTP_MCP_SESSION_ID="$SESSION"
	forbidden files
}

@test "a token with an unknown scope is refused with the list of scopes" {
	run -2 "$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner alice --scope run,root
	[[ $output == *"scope 'root' is unknown; use run, files, network or admin"* ]]
	run -2 "$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner alice --scope ,
	run -0 "$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner carol --scope files,run --json
	[ "$(jq -r .scopes <<<"$output")" = "run files" ]
	run -0 "$SP_BIN/sallyport" token list --config "$SP_CONFIG"
	[[ $output == *SCOPES* && $output == *"run files"* ]]
}

@test "a token that expired is refused like one that never was" {
	local id
	for words in 2020-01-01 0d soon 1y -3d; do
		run -2 "$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner eve --expires="$words"
	done
	run -2 "$SP_BIN/sallyport" token list --config "$SP_CONFIG" --expires 1d
	run -0 "$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner eve --expires 90d --json
	id=$(jq -r .id <<<"$output") SP_TOKEN=$(jq -r .token <<<"$output")
	[ "$(sp_sql "SELECT (expires_us - created_us) / 1000000 BETWEEN 90 * 86400 - 60 AND 90 * 86400 FROM token WHERE id = '$id'")" = 1 ]
	list tools/list
	[ "$SP_STATUS" = 200 ]
	sqlite3 "$SP_DIR/data/sallyport.db" "UPDATE token SET expires_us = created_us + 1 WHERE id = '$id'"
	list tools/list
	[ "$SP_STATUS" = 401 ]
	[[ $("$SP_BIN/sallyport" token list --config "$SP_CONFIG") == *expired* ]]
}

@test "a token says where its results carry their details" {
	local form
	run -2 "$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner eve --results xml
	for form in none content structured both ''; do
		SP_TOKEN=$("$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner eve ${form:+--results "$form"})
		list tools/list
		[ "$(jq '[.result.tools[] | has("outputSchema")] | unique | tojson' "$SP_DIR/body")" = "\"[$([[ $form = @(structured|both) ]] && echo true || echo false)]\"" ]
		echo '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":{"conversationId":"'"f$form"'","language":"bash","code":"echo 1"}}}' | sp_http POST /mcp
		[ "$(places)" = "$(jq -cn --arg f "$form" '[($f == "content" or $f == "both"), ($f == "structured" or $f == "both")]')" ]
	done
}

# Are there details in _meta, and as structuredContent? In _meta they have no nulls, and nothing that the text has.
places() {
	jq -e '.result._meta["sallyport/result"] // {} | has("stdout") or has("stderr") or ([.. | select(. == null)] | length > 0) | not' "$SP_DIR/body" >/dev/null
	jq -c '[(.result._meta // {} | has("sallyport/result")), (.result | has("structuredContent"))]' "$SP_DIR/body"
}

@test "so does a request" {
	local form
	SP_TOKEN=$("$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner eve --results structured)
	for form in none content structured both; do
		echo '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":{"conversationId":"r","language":"bash","code":"exit 3"},"_meta":{"sallyport/results":"'$form'"}}}' |
			sp_http POST /mcp
		[ "$(places)" = "$(jq -cn --arg f "$form" '[($f == "content" or $f == "both"), ($f == "structured" or $f == "both")]')" ]
	done
	echo '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_runners","_meta":{"sallyport/results":7}}}' | sp_http POST /mcp
	[ "$(sp_get .error.message)" = 'Invalid params: _meta: sallyport/results must be content, structured, both or none' ]
}

@test "so does the address" {
	local call='{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":{"conversationId":"q","language":"bash","code":"echo 1"}}}'
	for form in none structured; do
		sp_http POST "/mcp?results=$form" <<<"$call"
		[ "$(jq -r '.result.content[0].text' "$SP_DIR/body")" = 1 ]
		[ "$(jq -c '[(.result._meta // {} | has("sallyport/result")), (.result | has("structuredContent"))]' "$SP_DIR/body")" = \
			"[false,$([ "$form" = none ] && echo false || echo true)]" ]
	done
	sp_http POST "/mcp?results=all" <<<"$call"
	[ "$SP_STATUS" = 400 ]
	grep -q 'results in the address must be content, structured, both or none' "$SP_DIR/body"
}

@test "a token says how long its answers are" {
	local call='{"conversationId":"long","language":"python","code":"print(\"x\" * 15000)"}' size
	length() { sp_get '[.result.content[].text | length] | add'; }
	for size in '' 2 64; do
		SP_TOKEN=$("$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner eve ${size:+--text-kb "$size"})
		sp_call run_code "$call"
		[ "$SP_STATUS" = 200 ]
		case $size in
		'') [ "$(length)" -le 9000 ] && [ "$(length)" -gt 2000 ] ;;
		2) [ "$(length)" -le 2000 ] ;;
		64) [ "$(sp_get '[.result.content[].text] | join("")' | tr -dc x | wc -c)" -ge 15000 ] ;;
		esac
	done
	"$SP_BIN/sallyport" token list --config "$SP_CONFIG" --json | jq -es 'map(.text_kb) | contains([2, 64])'
	for size in 1 65 x; do run -2 "$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner eve --text-kb $size; done
}

@test "?results= of the address wins over the token's setting" {
	local name lists=() arguments='{"conversationId":"m","language":"bash","code":"echo 1"}'
	local call='{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":'"$arguments"'}}'
	details() { jq '.result | has("structuredContent")' "$SP_DIR/body"; }
	for name in gemini-cli-mcp-client ''; do
		open_session 2025-06-18 "$name"
		for query in '' '?results=none'; do
			sp_http POST "/mcp$query" HTTP_MCP_SESSION_ID="$SESSION" <<<"$call"
			[ "$(jq -r '.result.content[0].text' "$SP_DIR/body")" = 1 ]
			[ "$(details)" = "$([ "$query" ] && echo false || echo true)" ]
		done
		sp_http POST /mcp HTTP_MCP_SESSION_ID="$SESSION" <<<'{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
		lists+=("$(md5sum <"$SP_DIR/body")")
		HTTP_MCP_NAME=run_code modern tools/call '"name":"run_code","arguments":'"$arguments"',' "$name"
		[ "$(details)" = true ]
	done
	[ "$(printf '%s\n' "${lists[@]}" | sort -u | wc -l)" = 1 ]
	SP_TOKEN=$("$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner eve --results both)
	sp_http POST "/mcp?results=none" <<<"$call"
	[ "$(details)" = false ]
}

# batch MESSAGE… in $SESSION
batch() {
	local IFS=,
	echo "[$*]" | sp_http POST /mcp HTTP_MCP_SESSION_ID="$SESSION"
}
PING='{"jsonrpc":"2.0","id":1,"method":"ping"}'
# put CONVERSATION: an upload as member of a batch
put() {
	printf '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"upload_file","arguments":%s}}' "${UPLOAD/\"c\"/\"$1\"}"
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

@test "more calls at once than a token may have get 429" {
	scoped run,files
	background 1
	background 2
	sp_until "" running 2
	sp_call list_runners '{}'
	[ "$SP_STATUS" = 429 ]
	grep -qx 'Retry-After: 1' "$SP_DIR/head"
	[[ $(sp_get .error.message) == "Too many calls: 2 of this token"* ]]
	[ "$(sp_get .id)" = 1 ]
	open_session 2025-03-26
	batch "$PING" "$(put full)"
	[ "$SP_STATUS" = 429 ]
	batch "$PING"
	[ "$SP_STATUS" = 200 ]
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

# A gateway that takes three requests a minute of a token: on a slow machine many would never be as fast. One comes back every twenty seconds.
few() {
	[ ! -e "$SP_DIR/few" ] || return 0
	sp_stop "$SP_GATEWAY_PID"
	SALLYPORT_LIMITS_REQUESTS_PER_MINUTE=3 sp_start_gateway
	touch "$SP_DIR/few"
}

@test "more requests in a minute than a token may send get 429 with Retry-After" {
	few
	scoped run
	local i
	for ((i = 0; i < 20; i++)); do
		list tools/nothing
		[ "$SP_STATUS" = 404 ] || break
	done
	[ "$SP_STATUS" = 429 ]
	[ "$i" -ge 3 ]
	grep -qxE 'Retry-After: ([1-9]|1[0-9]|20)' "$SP_DIR/head"
	[[ $(sp_get .error.message) == *"3 a minute"* ]]
	scoped run # another token is not concerned
	list tools/list
	[ "$SP_STATUS" = 200 ]
}

@test "a batch of N messages counts as N requests" {
	few
	scoped files
	open_session 2025-03-26 # the owner's: his other tokens may use it
	scoped files
	batch "$PING" "$(put whole)" "$PING"
	[ "$SP_STATUS" = 200 ]
	[ "$(jq -c '[.[] | .id, (.result != null)]' "$SP_DIR/body")" = '[1,true,2,true,1,true]' ]
	batch "$PING" "$(put no)" "$PING" # none is left
	[ "$SP_STATUS" = 429 ]
	scoped files
	batch "$PING"
	[ "$SP_STATUS" = 200 ]
	batch "$(put no)" "$PING" "$(put no)" # two are left
	[ "$SP_STATUS" = 429 ]
	grep -qxE 'Retry-After: ([1-9]|1[0-9]|20)' "$SP_DIR/head"
	[[ $(sp_get .error.message) == *"3 a minute"* ]]
	scoped files
	batch "$(put no)" "$PING" "$PING" "$PING" # there is never room for it
	[ "$SP_STATUS" = 400 ]
	[[ $(sp_get .error.message) == "A batch of 4 messages: this token may send 3 a minute" ]]
	run ! grep -i retry-after "$SP_DIR/head"
	[ "$(sp_sql "select group_concat(name) from conversation where name in ('whole', 'no')")" = whole ]
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
