#!/usr/bin/env bats
# The record of a test run (tests/exchanges): what is written down, what the judge of it finds, and that neither is in what is installed.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	sp_setup
	export SP_EXCHANGES=$SP_DIR/exchanges
	: >"$SP_EXCHANGES"
	chmod 666 "$SP_EXCHANGES"
	recorded=${SP_BIN%-recorded}-recorded
	[ -x "$recorded/sallyport-gateway" ] || skip "there is no gateway with a recorder: make recorded"
	SP_BIN=$recorded
}

teardown() {
	sp_teardown
}

judge() {
	run "$SP_ROOT/jail/runners/npm/node_modules/.bin/node" --test --test-reporter=tap "$SP_ROOT/tests/exchanges/check.js"
	echo "$output"
}

# line PROTOCOL REQUEST MESSAGE [TOOL]: one more line of the record.
line() {
	jq -cn --arg protocol "$1" --argjson request "$2" --argjson message "$3" --argjson tool "${4:-null}" \
		'{pid: 1, $protocol, $request, $message, sent: true, $tool}' >>"$SP_EXCHANGES"
}

# heard PROTOCOL MESSAGE: one that a client sent besides requests; unasked PROTOCOL MESSAGE: one on a stream that belongs to no request.
heard() {
	jq -cn --arg protocol "$1" --argjson message "$2" '{pid: 1, $protocol, $message, received: true}' >>"$SP_EXCHANGES"
}
unasked() {
	jq -cn --arg protocol "$1" --argjson message "$2" '{pid: 1, $protocol, $message, received: false}' >>"$SP_EXCHANGES"
}

PING='{"jsonrpc":"2.0","id":1,"method":"ping"}'
CALL='{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":1}}}'
TOOL='{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"integer"}}},"outputSchema":{"type":"object","required":["b"]}}'
RESULT='{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"b":1}}}'

@test "a gateway that is killed leaves whole lines, the next one adds to them" {
	sp_start_jailer
	sp_start_gateway
	sp_token alice
	sp_call list_runners '{}'
	sp_call list_runners '{}'
	sp_stop "$SP_GATEWAY_PID" KILL
	sp_start_gateway
	sp_call list_runners '{}'
	[ "$(jq -c 'select(.request.method == "tools/call" and .tool.name == "list_runners" and .protocol == "2026-07-28" and .sent)' "$SP_EXCHANGES" | wc -l)" -eq 3 ]
	[ "$(jq .pid "$SP_EXCHANGES" | sort -u | wc -l)" -eq 2 ]
	judge
	[ "$status" -eq 0 ]
}

@test "the record has what clients send besides requests" {
	sp_start_jailer
	sp_start_gateway
	sp_token alice
	printf '%s' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' | sp_http POST /mcp
	local session
	session=$(sed -n 's/^Mcp-Session-Id: //p' "$SP_DIR/head")
	printf '%s' '{"jsonrpc":"2.0","method":"notifications/initialized"}' | sp_http POST /mcp HTTP_MCP_SESSION_ID="$session"
	printf '%s' '{"jsonrpc":"2.0","id":"s-9","result":{}}' | sp_http POST /mcp HTTP_MCP_SESSION_ID="$session"
	[ "$(jq -c 'select(.received) | [.protocol, .message.method, .message.id]' "$SP_EXCHANGES" | xargs -d '\n')" = '["2025-11-25","notifications/initialized",null] ["2025-11-25",null,"s-9"]' ]
	judge
	[ "$status" -eq 0 ]
}

@test "a gateway that cannot write its record does not start" {
	SP_EXCHANGES=$SP_DIR/nothing run -1 "$SP_BIN/sallyport-gateway" --version
	[[ $output == *"$SP_DIR/nothing: No such file"* ]]
}

@test "what is installed holds no recorder" {
	run ! grep -q SP_EXCHANGES "${SP_BIN%-recorded}/sallyport-gateway"
	grep -q SP_EXCHANGES "$SP_BIN/sallyport-gateway"
}

@test "the judge passes what is right" {
	line 2025-11-25 "$CALL" "$RESULT" "$TOOL"
	line 2025-11-25 "$PING" '{"jsonrpc":"2.0","id":1,"result":{}}'
	line 2025-11-25 "$CALL" '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":2}}' "$TOOL"
	line 2025-11-25 "${CALL/:1\}/:\"x\"\}}" '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"no"}],"isError":true}}' "$TOOL"
	judge
	[ "$status" -eq 0 ]
}

# finds TEST [TEXT]: the judge fails exactly this test, and says TEXT.
finds() {
	judge
	[ "$status" -ne 0 ]
	[ "$(grep -c '^not ok' <<<"$output")" -eq 1 ]
	grep -q "^not ok.* $1" <<<"$output"
	[[ $output == *"$2"* ]]
}

@test "the judge finds a message that its revision does not know" {
	line 2025-11-25 "$CALL" '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text"}],"structuredContent":{"b":1}}}' "$TOOL"
	finds 'every message fits' "must have required property 'text'"
}

@test "the judge checks clients' messages against their revision" {
	heard 2025-11-25 '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
	unasked 2025-06-18 '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b"}}'
	unasked 2025-06-18 '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"interrupted"}}'
	judge
	[ "$status" -eq 0 ]
	heard 2025-06-18 '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}'
	finds 'every notification and every answer' "must have required property 'requestId'"
	: >"$SP_EXCHANGES"
	unasked 2025-06-18 '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{}}'
	finds 'every message fits' "must have required property 'uri'"
	: >"$SP_EXCHANGES"
	unasked 2025-06-18 '{"jsonrpc":"2.0","id":1,"result":{}}'
	finds 'every message fits' 'belongs to no request'
}

@test "the judge holds the answer of a client against what it was asked" {
	line 2025-11-25 "$CALL" '{"jsonrpc":"2.0","id":"s-1","method":"elicitation/create","params":{"message":"x","requestedSchema":{"type":"object","properties":{}}}}' "$TOOL"
	heard 2025-11-25 '{"jsonrpc":"2.0","id":"s-1","result":{"action":"accept","content":{}}}'
	heard 2025-11-25 '{"jsonrpc":"2.0","id":"s-1","error":{"code":-1,"message":"no"}}'
	judge
	[ "$status" -eq 0 ]
	heard 2025-11-25 '{"jsonrpc":"2.0","id":"s-1","result":{"action":"perhaps"}}'
	finds 'every notification and every answer' 'must be equal to one of the allowed values'
}

@test "the judge knows what 2024-11-05 had not" {
	local audio='{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"audio","data":"YQ==","mimeType":"audio/wav"}],"structuredContent":{"b":1}}}'
	line 2025-03-26 "$CALL" "$audio" "$TOOL"
	judge
	[ "$status" -eq 0 ]
	line 2024-11-05 "$CALL" "$audio" "$TOOL"
	finds 'every message fits' 'protocol 2024-11-05'
}

@test "the judge finds a request that should have been refused" {
	line 2026-07-28 "$PING" '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}'
	finds 'every request' 'no such method in this revision'
}

@test "the judge finds another id" {
	line 2025-11-25 "$PING" '{"jsonrpc":"2.0","id":"1","result":{}}'
	finds 'every answer has the id'
}

@test "the judge finds a schema with a misspelt keyword" {
	line 2025-11-25 "$CALL" "$RESULT" "${TOOL/required/requires}"
	finds 'the schemas' 'unknown keyword'
}

@test "the judge finds arguments that were taken against the schema" {
	line 2025-11-25 "${CALL/:1\}/:\"x\"\}}" "$RESULT" "$TOOL"
	finds 'every call' 'must be integer'
}

@test "the judge finds a result that does not fit, or is missing" {
	line 2025-11-25 "$CALL" "${RESULT/b/c}" "$TOOL"
	line 2025-11-25 "$CALL" '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}' "$TOOL"
	finds 'every structured result' 'no details'
}

# task STATUS [MEMBER]: a task of the modern extension, as tasks/get tells of it.
task() {
	jq -cn --arg status "$1" --argjson more "${2:-{\}}" '{resultType: "complete", taskId: "t1", $status, createdAt: "2026-11-21T12:00:00.000000Z",
		lastUpdatedAt: "2026-11-21T12:00:01.000000Z", ttlMs: 1000} + $more | {jsonrpc: "2.0", id: 1, result: .}'
}
META='"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'
GET="{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tasks/get\",\"params\":{\"taskId\":\"t1\",$META}}"

@test "the judge follows a task to the result of its call" {
	local call=${CALL/%\}\}/,$META\}\}}
	line 2026-07-28 "$call" "$(task working '{"resultType":"task"}')" "$TOOL"
	line 2026-07-28 "$GET" "$(task working)"
	line 2026-07-28 "$GET" "$(task completed "{\"result\":$(jq -c .result <<<"$RESULT")}")"
	judge
	[ "$status" -eq 0 ]
	line 2026-07-28 "$GET" "$(task completed '{"result":{"content":[],"structuredContent":{"c":1}}}')"
	finds 'every structured result' "must have required property 'b'"
}

@test "the judge finds a task that is none" {
	line 2026-07-28 "$GET" "$(task completed)"
	finds 'every message fits' "must have required property 'result'"
}

@test "the judge finds tools that were never called, listed or not" {
	line 2025-11-25 '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' \
		'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"never","description":"x","inputSchema":{"type":"object"}}]}}'
	SP_EXCHANGES_WHOLE=yes finds 'every tool was called' "'never'"
	[[ $output == *"'run_code'"* ]]
}

@test "the judge does not pass an empty record" {
	judge
	[ "$status" -ne 0 ]
}
