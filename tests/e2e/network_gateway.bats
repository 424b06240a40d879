#!/usr/bin/env bats
# network: true through the gateway: whose token may, what the answer and the record say. A web server on loopback is all of the internet.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	sp_setup
	# Prints its port, which the kernel chose.
	/usr/bin/python3 -u -c 'import http.server
http.server.SimpleHTTPRequestHandler.protocol_version = "HTTP/1.1"
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
print(s.server_port)
s.serve_forever()' >"$SP_DIR/port" 2>/dev/null 3>&- &
	export WEB=$!
	sp_until "$WEB" test -s "$SP_DIR/port"
	PORT=$(cat "$SP_DIR/port")
	export PORT
	# Sends to whoever comes, until nobody takes it any more; then prints how much that was.
	/usr/bin/python3 -u -c 'import socket
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1])
while True:
    c, n = s.accept()[0], 0
    c.settimeout(2)
    try:
        while True: n += c.send(b"x" * 65536)
    except TimeoutError: print(n)
    except OSError: pass' >"$SP_DIR/flood" 2>/dev/null 3>&- &
	export FLOOD=$!
	sp_until "$FLOOD" test -s "$SP_DIR/flood"
	FLOOD_PORT=$(cat "$SP_DIR/flood")
	export FLOOD_PORT
	jq --arg entry "web.internal:$PORT private" --arg host "localhost:$PORT private" --arg flood "127.0.0.1:$FLOOD_PORT private" \
		'.network = {allow: [$entry, $host, "*.pub.example:443", $flood]}' \
		"$SP_CONFIG" >"$SP_DIR/with"
	mv "$SP_DIR/with" "$SP_CONFIG"
	sp_token plain
	export PLAIN=$SP_TOKEN
	SP_TOKEN=$("$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner alice --scope run,files,network)
	sp_start_jailer
	sp_start_gateway
}

teardown_file() {
	sp_stop "$WEB"
	sp_stop "$FLOOD"
	sp_teardown
}

code() { # a request of one program with network
	jq -n --arg code "$1" '{conversationId: "n", language: "bash", code: $code, network: true}'
}

@test "a token without the scope is refused the network" {
	SP_TOKEN=$PLAIN sp_call run_code "$(code 'echo ran')"
	[ "$SP_STATUS" = 200 ]
	[ "$(sp_get .result.isError)" = true ]
	[[ $(sp_get '.result.content[0].text') == *'this token lacks the scope "network"'* ]]
	run ! grep -q ran "$SP_DIR/body"
}

@test "answer and record say what was reached and what was refused" {
	local id
	sp_call run_code "$(code "curl -sS -o /dev/null -w '%{http_code}' http://localhost:$PORT/ --noproxy ''; curl -sS http://evil.example/x >/dev/null; curl -s --noproxy '' -x '' http://192.0.2.1/; exit 3")"
	[ "$(sp_get details.stdout)" = 200 ]
	[ "$(sp_get details.network.connections)" = 1 ]
	[ "$(sp_get 'details.network.bytes_in > 100')" = true ]
	[ "$(sp_get 'details.network.denied[0] | "\(.host) \(.port) \(.reason)"')" = "evil.example 80 not in network.allow" ]
	[[ $(sp_get '.result.content[0].text') == *"[network] evil.example:80: not in network.allow"* ]]
	[[ $(sp_get '.result.content[0].text') == *"[network] an address that is not in network.allow was tried (1)"* ]]
	[ "$(sp_cli stats --by denied --json | jq -c '[.denied, .runs]')" = '["evil.example:80",1]' ]
	id=$(sp_get details.execution_id)
	run -0 "$SP_BIN/sallyport" show --config "$SP_CONFIG" --json "$id"
	[ "$(jq -r .result.network.unrouted <<<"$output")" = 1 ]
	[ "$(jq -r .network <<<"$output")" = true ]
	[ "$(jq -r '.result.network.denied[0].host' <<<"$output")" = evil.example ]
	run -0 "$SP_BIN/sallyport" show --config "$SP_CONFIG" "$id"
	[[ $output == *network*yes* ]]
	# also of a run that goes well, above its own output
	sp_call run_code "$(code "curl -s http://evil.example/x >/dev/null; curl -s --noproxy '' -x '' http://192.0.2.1/; echo done")"
	[ "$(sp_get details.verdict)" = OK ]
	[ "$(sp_get '[.result.content[].text] | join("")')" = "[sallyport] [network] evil.example:80: not in network.allow
[network] an address that is not in network.allow was tried (1): only what it names is reached, by name
[stdout]
done" ]
}

@test "a run without network has none of it in its answer" {
	sp_call run_code '{"conversationId": "n", "language": "bash", "code": "env | grep -ci proxy; grep -c internal /etc/hosts"}'
	[ "$(sp_get details.stdout)" = $'0\n0' ]
	[ "$(sp_get details.network)" = null ]
}

live() { # CODE [NETWORK]: a call of one session
	sp_call run_code "$(jq -n --arg code "$1" --argjson network "${2:-true}" \
		'{conversationId: "s", language: "python", session: true, code: $code, network: $network}')"
}

connected() { # PORT: how many connections to it stand
	ss -Htn state established "dport = :$1" | wc -l
}

none() { [ "$(connected "$1")" = 0 ]; }

frozen() {
	live 'print(1)'
	[[ $(sp_get '.result.content[0].text') != *"no live sandboxes"* ]] || skip "nothing can be frozen here"
}

@test "a session keeps its connections" {
	command -v ss >/dev/null || skip "no ss"
	frozen
	sp_until "" none "$PORT" # of the tests before
	live "import http.client; c = http.client.HTTPConnection('localhost', $PORT); c.request('GET', '/'); c.getresponse().read()"
	[ "$(sp_get details.network.connections)" = 1 ]
	[ "$(connected "$PORT")" = 1 ]
	live "import socket; print(socket.socket().connect_ex(('192.0.2.1', 80)))"
	[ "$(sp_get details.network.unrouted)" = 1 ]
	live "c.request('GET', '/'); print(c.getresponse().status)"
	[ "$(sp_get details.stdout)" = 200 ]
	[ "$(sp_get 'details.network | [.connections, .bytes_in > 12, .unrouted] | tostring')" = "[0,true,0]" ]
	[ "$(connected "$PORT")" = 1 ]
	sp_call reset_session '{"conversationId": "s"}'
	sp_until "" none "$PORT"
}

@test "what is sent to a session while it is frozen waits at the sender" {
	command -v ss >/dev/null || skip "no ss"
	frozen
	live "import socket; s = socket.create_connection(('127.0.0.1', $FLOOD_PORT)); s.recv(1)"
	[ "$(sp_get details.network.connections)" = 1 ]
	sent() { [ "$(wc -l <"$SP_DIR/flood")" = 2 ]; }
	sp_until "$FLOOD" sent
	[ "$(tail -n 1 "$SP_DIR/flood")" -lt $((32 << 20)) ]
	live "print(len(s.recv(1000)))"
	[ "$(sp_get details.stdout)" = 1000 ]
	sp_call reset_session '{"conversationId": "s"}'
	sp_until "" none "$FLOOD_PORT"
}

@test "all calls of a session are with network, or all are without" {
	frozen
	live 'print(2)' false
	[ "$(sp_get .result.isError)" = true ]
	[[ $(sp_get '.result.content[0].text') == "network: this session was started with network; use the same value, or end the session"* ]]
	sp_call reset_session '{"conversationId": "s"}'
	live 'print(3)' false
	[ "$(sp_get details.stdout)" = 3 ]
	live 'print(4)'
	[[ $(sp_get '.result.content[0].text') == "network: this session was started without network; use the same value, or end the session"* ]]
	sp_call reset_session '{"conversationId": "s"}'
}

@test "the tool's description names the hosts, but not which are private" {
	printf '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}' |
		sp_http POST /mcp HTTP_MCP_PROTOCOL_VERSION=2026-07-28 HTTP_MCP_METHOD=tools/list
	[ "$(sp_get '.result.tools[] | select(.name == "run_code").inputSchema.properties.network.description')" = \
		"Default: false. With true a program reaches web.internal:$PORT, localhost:$PORT, *.pub.example:443, 127.0.0.1:$FLOOD_PORT and nothing else." ]
}
