#!/usr/bin/env bats
# The same binary as a plain CGI program: started by hand, and by lighttpd with mod_cgi, which listens at a unix socket, where nobody else can be.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	sp_setup
	sp_start_jailer
	sp_token alice
	export SALLYPORT_CONFIG=$SP_CONFIG
	export WEB=http://127.0.0.1
	cat >"$SP_DIR/lighttpd.conf" <<-EOF
		server.modules = ("mod_cgi", "mod_alias", "mod_setenv")
		server.document-root = "$SP_DIR"
		server.bind = "$SP_DIR/web"
		server.errorlog = "$SP_DIR/lighttpd.log"
		server.upload-dirs = ("$SP_DIR")
		setenv.set-environment = ("SALLYPORT_CONFIG" => "$SP_CONFIG", "SP_EXCHANGES" => "${SP_EXCHANGES:-}")
		alias.url = ("/mcp" => "$SP_BIN/sallyport-gateway", "/files" => "$SP_BIN/sallyport-gateway", "/gate" => "$SP_BIN/sallyport-gateway")
		cgi.assign = ("sallyport-gateway" => "")
	EOF
	lighttpd -D -f "$SP_DIR/lighttpd.conf" 3>&- &
	export LIGHTTPD=$!
	sp_until "$LIGHTTPD" ask -o /dev/null "$WEB/nothing" || sp_die "lighttpd does not start"
}

teardown_file() {
	sp_stop "$LIGHTTPD"
	sp_teardown
}

ask() {
	curl -s -m "$SP_DEADLINE" --unix-socket "$SP_DIR/web" "$@"
}

# cgi METHOD URI [VARIABLE…]: one request, the program started as web servers do it.
cgi() {
	local method=$1 uri=$2
	shift 2
	cat >"$SP_DIR/request"
	env -i GATEWAY_INTERFACE=CGI/1.1 SALLYPORT_CONFIG="$SP_CONFIG" SP_EXCHANGES="${SP_EXCHANGES:-}" REQUEST_METHOD="$method" REQUEST_URI="$uri" HTTP_HOST=localhost \
		CONTENT_TYPE=application/json CONTENT_LENGTH="$(stat -c %s "$SP_DIR/request")" HTTP_AUTHORIZATION="Bearer $SP_TOKEN" "$@" \
		"$SP_BIN/sallyport-gateway" ${ARGUMENT:+"$ARGUMENT"} <"$SP_DIR/request" >"$SP_DIR/reply" 2>>"$SP_DIR/cgi.log" || true
	sp_split
}

call() {
	printf '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":%s,"_meta":{%s,%s}}}' "$1" "$2" \
		'"io.modelcontextprotocol/protocolVersion":"2026-07-28"' '"io.modelcontextprotocol/clientCapabilities":{}'
}

@test "by hand: calls and files work" {
	call run_code '{"conversationId":"c","language":"python","code":"print(7); _ = open(\"f.txt\",\"w\").write(\"x\"*100000)"}' |
		cgi POST /mcp HTTP_MCP_PROTOCOL_VERSION=2026-07-28 HTTP_MCP_METHOD=tools/call HTTP_MCP_NAME=run_code
	[ "$SP_STATUS" = 200 ]
	[ "$(sp_get 'details.stdout')" = 7 ]
	url=$(sp_get 'details.files.created[0].url')
	cgi GET "${url#"$SP_URL"}" HTTP_AUTHORIZATION= </dev/null
	[ "$SP_STATUS" = 200 ]
	[ "$(stat -c %s "$SP_DIR/body")" = 100000 ]
	cgi HEAD "${url#"$SP_URL"}" </dev/null
	[ "$SP_STATUS" = 200 ]
	[ ! -s "$SP_DIR/body" ]
	cgi GET /mcp </dev/null
	[ "$SP_STATUS" = 405 ]
	cgi POST /mcp HTTP_AUTHORIZATION= </dev/null
	[ "$SP_STATUS" = 401 ]
	cgi POST /mcp CONTENT_LENGTH=100000000 </dev/null
	[ "$SP_STATUS" = 413 ]
	echo '{' | cgi POST /mcp
	[ "$SP_STATUS" = 400 ]
	echo '{}' | cgi POST /mcp CONTENT_LENGTH=1000
	[ "$SP_STATUS" = 400 ]
	grep -q 'did not arrive whole' "$SP_DIR/body"
}

# A process that ends with its request cannot go on with a task, nor tell of changes: it must not say that it could.
@test "by hand: tasks and streams are absent in both eras" {
	local meta='"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}'
	printf '{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{%s}}' "$meta" |
		cgi POST /mcp HTTP_MCP_PROTOCOL_VERSION=2026-07-28 HTTP_MCP_METHOD=server/discover
	[ "$(sp_get '.result.capabilities | [(.extensions | keys), .resources, has("tools")] | tostring')" = '[["io.modelcontextprotocol/skills"],{},true]' ]
	for method in tasks/get tasks/cancel tasks/update; do
		printf '{"jsonrpc":"2.0","id":1,"method":"%s","params":{"taskId":"t",%s}}' "$method" "$meta" |
			cgi POST /mcp HTTP_MCP_PROTOCOL_VERSION=2026-07-28 HTTP_MCP_METHOD="$method" HTTP_MCP_NAME=t
		[ "$SP_STATUS $(sp_get .error.code) $(sp_get .error.message)" = "404 -32601 Method not found: $method" ]
	done
	printf '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":{"conversationId":"c","language":"bash","code":"echo 1","timeout_seconds":50},%s}}' "$meta" |
		cgi POST /mcp HTTP_MCP_PROTOCOL_VERSION=2026-07-28 HTTP_MCP_METHOD=tools/call HTTP_MCP_NAME=run_code SALLYPORT_LIMITS_SYNCHRONOUS_SECONDS=40
	[ "$(sp_get .result.isError)" = true ]
	[ "$(sp_get '.result.content[0].text')" = "timeout_seconds: 50 is more than the 40 s that a call is waited for: ask for at most 40" ]
	local session
	printf '%s' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}' |
		cgi POST /mcp
	session=$(sed -n 's/^Mcp-Session-Id: \([0-9a-f-]*\).*/\1/p' "$SP_DIR/head")
	[ "$(sp_get '.result.capabilities | [.tasks, .logging, .resources, has("tools")] | tostring')" = '[null,null,{},true]' ]
	echo '{"jsonrpc":"2.0","id":5,"method":"logging/setLevel","params":{"level":"info"}}' | cgi POST /mcp HTTP_MCP_SESSION_ID="$session"
	[ "$SP_STATUS $(sp_get .error.code)" = "200 -32601" ]
	echo '{"jsonrpc":"2.0","id":2,"method":"tools/list"}' | cgi POST /mcp HTTP_MCP_SESSION_ID="$session"
	[ "$(sp_get '[.result.tools[] | select(.execution)] | length')" = 0 ]
	echo '{"jsonrpc":"2.0","id":3,"method":"tasks/list"}' | cgi POST /mcp HTTP_MCP_SESSION_ID="$session"
	[ "$SP_STATUS $(sp_get .error.message)" = "200 Method not found: tasks/list" ]
	# The hint of a client that did not look is not for us, as the revision has it: the call is answered at once.
	echo '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"run_code","arguments":{"conversationId":"c","language":"bash","code":"echo 4"},"task":{}}}' |
		cgi POST /mcp HTTP_MCP_SESSION_ID="$session"
	[ "$(sp_get details.stdout)" = 4 ]
}

@test "by hand: tokens of an issuer count, one that is away is no refusal" {
	local node=$SP_ROOT/jail/runners/npm/node_modules/.bin/node audience=$SP_URL/mcp url token
	cat >"$SP_DIR/issuer.mjs" <<-END
		import { Issuer } from '$SP_ROOT/tests/clients/issuer.js';
		const issuer = await Issuer.start();
		console.log(issuer.url, issuer.token('$audience'), issuer.token('https://other.example/mcp'));
	END
	"$node" "$SP_DIR/issuer.mjs" >"$SP_DIR/issued" 3>&- &
	local issuer=$!
	sp_until "$issuer" test -s "$SP_DIR/issued"
	read -r url token other <"$SP_DIR/issued"
	local settings=(SALLYPORT_OAUTH_MODE=external SALLYPORT_OAUTH_ISSUER="$url" SALLYPORT_OAUTH_OWNER=alice HTTP_HOST="${SP_URL#http://}")
	cgi GET /.well-known/oauth-protected-resource/mcp "${settings[@]}" HTTP_AUTHORIZATION= </dev/null
	[ "$SP_STATUS $(sp_get '.resource + " " + .authorization_servers[0]')" = "200 $audience $url" ]
	cgi POST /mcp "${settings[@]}" HTTP_AUTHORIZATION= </dev/null
	[ "$SP_STATUS" = 401 ]
	grep -q 'WWW-Authenticate: Bearer realm="sallyport", resource_metadata=' "$SP_DIR/head"
	ask_runners() {
		call list_runners '{}' | cgi POST /mcp "${settings[@]}" HTTP_MCP_PROTOCOL_VERSION=2026-07-28 HTTP_MCP_METHOD=tools/call HTTP_MCP_NAME=list_runners HTTP_AUTHORIZATION="Bearer $1"
	}
	ask_runners "$token"
	[ "$SP_STATUS" = 200 ]
	ask_runners "$other"
	[ "$SP_STATUS" = 401 ]
	kill "$issuer"
	wait "$issuer" || true
	ask_runners "$token" # nothing remembers the keys
	[ "$SP_STATUS" = 503 ]
	grep -q 'Retry-After:' "$SP_DIR/head"
}

@test "by hand: the query of a URL is no command line" {
	ARGUMENT=--version cgi GET /healthz </dev/null
	[ "$SP_STATUS" = 200 ]
	[ "$(cat "$SP_DIR/body")" = ok ]
}

@test "by hand: a broken set-up is 503, the reason stands in the log only" {
	cgi GET /healthz SALLYPORT_CONFIG=/nonexistent/secret-place </dev/null
	[ "$SP_STATUS" = 503 ]
	run ! grep -q secret-place "$SP_DIR/body"
	grep -q secret-place "$SP_DIR/cgi.log"
}

web() {
	ask -H "Authorization: Bearer $SP_TOKEN" -H 'Content-Type: application/json' -H 'MCP-Protocol-Version: 2026-07-28' "$@"
}

@test "lighttpd: a file is uploaded and downloaded" {
	call upload_file '{"conversationId":"web","filename":"a b.txt","content":"aGVsbG8K"}' |
		web -H 'Mcp-Method: tools/call' -H 'Mcp-Name: upload_file' --data-binary @- "$WEB/mcp" >"$SP_DIR/body"
	[ "$(sp_get details.success)" = true ]
	url=$(sp_get details.file.url)
	call run_code '{"conversationId":"web","language":"python","code":"print(open(\"a b.txt\").read().upper())"}' |
		web -H 'Mcp-Method: tools/call' -H 'Mcp-Name: run_code' --data-binary @- "$WEB/mcp" >"$SP_DIR/body"
	[ "$(sp_get details.stdout | head -1)" = HELLO ]
	[ "$(ask "$WEB${url#"$SP_URL"}")" = hello ]
	ask -D "$SP_DIR/head" -o /dev/null "$WEB${url#"$SP_URL"}"
	grep -qi '^x-content-type-options: nosniff' "$SP_DIR/head"
	[ "$(ask -o /dev/null -w '%{http_code}' "$WEB${url#"$SP_URL"}x")" = 404 ]
}

@test "lighttpd: the gateway serves below a name" {
	ask -H "Authorization: Bearer $SP_TOKEN" -H 'Content-Type: application/json' --data-binary \
		'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}' \
		"$WEB/gate/mcp" >"$SP_DIR/body"
	[ "$(sp_get .result.protocolVersion)" = 2024-11-05 ]
	head -c 9000000 /dev/zero >"$SP_DIR/big"
	[ "$(web -o "$SP_DIR/body" -w '%{http_code}' --data-binary @"$SP_DIR/big" "$WEB/mcp")" = 413 ]
	[ "$(ask -o /dev/null -w '%{http_code}' -d '' "$WEB/mcp")" = 401 ]
}
