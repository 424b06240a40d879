# gateway.bash - what the tests of the gateway over FastCGI share: one gateway and jailer for a file, requests of both eras.
# shellcheck shell=bash

setup_file() {
	sp_setup
	sp_start_jailer
	sp_start_gateway
	sp_two_owners
}

teardown_file() {
	sp_teardown
}

python() {
	jq -nc --arg c "$1" --arg code "$2" '{conversationId:$c, language:"python", code:$code}'
}

# modern METHOD PARAMS [NAME]: a request of 2026-07-28; PARAMS is '"uri":"…",' or empty.
modern() {
	local named=()
	[ -z "${3:-}" ] || named=(HTTP_MCP_NAME="$3")
	printf '{"jsonrpc":"2.0","id":1,"method":"%s","params":{%s"_meta":{%s,%s}}}' "$1" "$2" \
		'"io.modelcontextprotocol/protocolVersion":"2026-07-28"' '"io.modelcontextprotocol/clientCapabilities":{}' |
		sp_http POST /mcp HTTP_MCP_PROTOCOL_VERSION=2026-07-28 HTTP_MCP_METHOD="$1" "${named[@]}"
}

# legacy VERSION: opens a session and sets $SESSION.
legacy() {
	echo '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"'"$1"'","capabilities":{},"clientInfo":{"name":"bats","version":"1"}}}' |
		sp_http POST /mcp
	[ "$SP_STATUS" = 200 ]
	[ "$(sp_get .result.protocolVersion)" = "$1" ]
	SESSION=$(sed -n 's/^Mcp-Session-Id: //p' "$SP_DIR/head")
	[ -n "$SESSION" ]
	echo '{"jsonrpc":"2.0","method":"notifications/initialized"}' | sp_http POST /mcp HTTP_MCP_SESSION_ID="$SESSION"
	[ "$SP_STATUS" = 202 ]
	[ ! -s "$SP_DIR/body" ]
}
