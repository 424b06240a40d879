#!/usr/bin/env bats
# The gateway as a process: clients that leave, stops and restarts, what it serves meanwhile, what it refuses at its start.

bats_require_minimum_version 1.5.0
load lib.bash
load gateway.bash

# run_in_background NAME CODE [VARIABLE…]: a call whose client can be killed; sets $CLIENT. Its time is longer than the test has.
run_in_background() {
	local body=$SP_DIR/$1.json code=$2
	jq -nc --arg c "$1" --arg code "$code" '{jsonrpc:"2.0",id:1,method:"tools/call",params:{name:"run_code",
		arguments:{conversationId:$c,language:"bash",code:$code,timeout_seconds:300}}}' >"$body"
	shift 2
	if [ $# -eq 0 ]; then
		jq -c '.params._meta={"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}' "$body" >"$body.m"
		mv "$body.m" "$body"
		set -- HTTP_MCP_PROTOCOL_VERSION=2026-07-28 HTTP_MCP_METHOD=tools/call HTTP_MCP_NAME=run_code
	fi
	env -i PATH="$PATH" REQUEST_METHOD=POST REQUEST_URI=/mcp HTTP_HOST=localhost CONTENT_TYPE=application/json \
		HTTP_AUTHORIZATION="Bearer $SP_TOKEN" CONTENT_LENGTH="$(stat -c %s "$body")" "$@" \
		cgi-fcgi -bind -connect "$SP_SOCKET" <"$body" >"$body.reply" 3>&- &
	CLIENT=$!
	disown "$CLIENT" # its end is no news
}

# How often a run of this conversation is in this state, or has this verdict.
runs_with() {
	[ "$(sp_sql "select count(*) from execution where conversation_name='$1' and '$2' in (state, verdict)")" = 1 ]
}

@test "modern: a client that leaves cancels its run" {
	run_in_background leaver 'sleep 1000'
	sp_until "" runs_with leaver running
	kill -9 "$CLIENT"
	sp_until "" runs_with leaver CX
}

@test "legacy: a client that leaves does not cancel its run" {
	legacy 2025-11-25
	run_in_background stayer "sleep $SP_ASLEEP; echo done" HTTP_MCP_SESSION_ID="$SESSION"
	sp_until "" runs_with stayer running
	kill -9 "$CLIENT"
	sp_until "" sp_gone "$CLIENT"
	sp_wake
	sp_until "" runs_with stayer OK
}

@test "legacy: the end of a session cancels its runs only" {
	legacy 2025-11-25
	run_in_background ended 'sleep 1000' HTTP_MCP_SESSION_ID="$SESSION"
	sp_until "" runs_with ended running
	local first=$SESSION
	legacy 2025-11-25
	run_in_background other "sleep $SP_ASLEEP; echo done" HTTP_MCP_SESSION_ID="$SESSION"
	sp_until "" runs_with other running
	sp_http DELETE /mcp HTTP_MCP_SESSION_ID="$first" </dev/null
	[ "$SP_STATUS" = 200 ]
	sp_until "" runs_with ended CX
	runs_with other running
	sp_wake
	sp_until "" runs_with other OK
}

@test "long runs do not keep short calls waiting" {
	clients=()
	for i in 1 2 3 4 5 6; do
		run_in_background "long$i" 'sleep 1000'
		clients+=("$CLIENT")
	done
	for i in 1 2 3 4 5 6; do sp_until "" runs_with "long$i" running; done
	sp_http GET /healthz </dev/null
	[ "$SP_STATUS" = 200 ]
	for i in 1 2 3 4 5 6; do runs_with "long$i" running; done
	kill -9 "${clients[@]}"
	for i in 1 2 3 4 5 6; do sp_until "" runs_with "long$i" CX; done
}

@test "an orderly stop answers open requests" {
	legacy 2025-06-18
	run_in_background drained "sleep $SP_ASLEEP; echo drained"
	sp_until "" sp_asleep
	kill -TERM "$SP_GATEWAY_PID"
	sp_wake
	sp_until "" sp_gone "$CLIENT"
	grep -q '"stdout":"drained\\n"' "$SP_DIR/drained.json.reply"
	sp_until "" sp_gone "$SP_GATEWAY_PID"
	[ ! -e "$SP_SOCKET" ]
	grep -q 'gateway stopped' "$SP_DIR/gateway.log"
	sp_start_gateway
	echo '{"jsonrpc":"2.0","id":1,"method":"ping"}' | sp_http POST /mcp HTTP_MCP_SESSION_ID="$SESSION"
	[ "$SP_STATUS" = 200 ]
}

@test "a stopping gateway refuses new requests at once with 503 and Retry-After" {
	SP_GATEWAY_PID=$(tail -1 "$SP_DIR/pids")
	run_in_background drained "sleep $SP_ASLEEP; echo drained"
	sp_until "" sp_asleep
	: >"$SP_DIR/gateway.log"
	kill -TERM "$SP_GATEWAY_PID"
	sp_until "" grep -q 'stopping signal=TERM' "$SP_DIR/gateway.log"
	for _ in 1 2 3; do
		sp_call run_code "$(python refused 'open("never", "w")')"
		[ "$SP_STATUS" = 503 ]
		grep -qi '^retry-after: 2' "$SP_DIR/head"
		[[ $(sp_get .error.message) == *"nothing was done, send the request again"* ]]
	done
	sp_http GET /healthz </dev/null
	[ "$SP_STATUS" = 200 ]
	sp_wake
	sp_until "" sp_gone "$CLIENT"
	grep -q '"stdout":"drained\\n"' "$SP_DIR/drained.json.reply"
	sp_until "" sp_gone "$SP_GATEWAY_PID"
	[ ! -e "$SP_SOCKET" ]
	sp_start_gateway
	sp_call list_files '{"conversationId":"refused"}'
	[[ $(cat "$SP_DIR/body") != *never* ]]
}

@test "SIGHUP ends nothing" {
	kill -HUP "$(tail -1 "$SP_DIR/pids")"
	sp_until "" grep -q 'SIGHUP is ignored' "$SP_DIR/gateway.log"
	sp_http GET /healthz </dev/null
	[ "$SP_STATUS" = 200 ]
}

@test "a gateway that may open too few files is refused at the start" {
	mkdir "$SP_DIR/few"
	printf '{"data_dir": "%s", "public_base_url": "http://127.0.0.1:9", "gateway": {"socket": "%s"}}' "$SP_DIR/few" "$SP_DIR/few.sock" >"$SP_DIR/few.json"
	run bash -c "ulimit -n 95; exec timeout $SP_DEADLINE '$SP_BIN/sallyport-gateway' --config '$SP_DIR/few.json' 3>&-"
	[ "$status" -ne 0 ] && [ "$status" -ne 124 ]
	[[ $output == *"95 open files are allowed, and a gateway of 16 threads needs 96: raise LimitNOFILE= (ulimit -n), or lower gateway.threads"* ]]
	[ -z "$(ls -A "$SP_DIR/few")" ]
}

@test "an unused session expires with its conversation" {
	local idle
	legacy 2025-06-18
	idle=$SESSION
	legacy 2025-06-18
	sp_stop "$(tail -1 "$SP_DIR/pids")" # an earlier test started this one
	sqlite3 "$SP_DIR/data/sallyport.db" "UPDATE session SET idle_from_us = idle_from_us - 31 * 86400000000 WHERE id = '$idle'" # conversation_days: 30
	sp_start_gateway
	for SESSION in "$SESSION 200" "$idle 404"; do
		echo '{"jsonrpc":"2.0","id":1,"method":"ping"}' | sp_http POST /mcp HTTP_MCP_SESSION_ID="${SESSION% *}"
		[ "$SP_STATUS" = "${SESSION#* }" ]
	done
}

# behind: the index of texts lacks some of the 100,000 runs, which is work that start, serving and stop did not wait for.
behind() { [ "$(sp_sql 'SELECT max(recorded) - (SELECT through FROM searched) > 1000 FROM execution')" = 1 ]; }

@test "a gateway starts, serves and stops while 100,000 runs wait for the index of texts" {
	sp_call run_code "$(python index 'print(1)')"
	SP_GATEWAY_PID=$(tail -1 "$SP_DIR/pids")
	sp_stop "$SP_GATEWAY_PID"
	/usr/bin/python3 - "$SP_DIR/data/sallyport.db" <<-'EOF'
		import sqlite3, sys
		db = sqlite3.connect(sys.argv[1])
		db.row_factory = sqlite3.Row
		row = dict(db.execute("SELECT * FROM execution WHERE state <> 'running' LIMIT 1").fetchone())
		last = db.execute('SELECT max(recorded) FROM execution').fetchone()[0]
		def rows():
		    for i in range(100000):
		        row['recorded'] = last + 1 + i
		        row['id'] = '01000000-0000-7000-8000-%012d' % i
		        row['code'] = f'print({i})\n' + 'the same words, run by run ' * 8
		        yield list(row.values())
		db.executemany(f"INSERT INTO execution ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", rows())
		db.commit()
	EOF
	sp_start_gateway
	sp_until "$SP_GATEWAY_PID" grep -qE "the index of texts is behind.*runs=\"?1000[0-9][0-9]" "$SP_DIR/gateway.log" || { cat "$SP_DIR/gateway.log"; false; }
	sp_http GET /readyz </dev/null
	[ "$SP_STATUS" = 200 ]
	sp_call run_code "$(python index 'print(2)')"
	[ "$(sp_get details.stdout)" = 2 ]
	sp_http GET /metrics </dev/null
	[ "$(sed -n 's/^sallyport_index_backlog_runs //p' "$SP_DIR/body")" -gt 1000 ]
	[[ $(sp_cli doctor --json | jq -r '.checks[] | select(.name == "index of texts").found') == "lacks "*" runs: "* ]]
	behind
	kill -9 "$SP_GATEWAY_PID"
	sp_until "" sp_gone "$SP_GATEWAY_PID"
	sp_start_gateway
	sp_call run_code "$(python index 'print(3)')"
	[ "$(sp_get details.stdout)" = 3 ]
	sp_stop "$SP_GATEWAY_PID"
	[ ! -e "$SP_SOCKET" ]
	behind
	sqlite3 "$SP_DIR/data/sallyport.db" 'UPDATE searched SET through = (SELECT max(recorded) FROM execution)' # the next tests need no index
	sp_start_gateway
}

@test "a database has one gateway" {
	run -1 --separate-stderr timeout "$SP_DEADLINE" "$SP_BIN/sallyport-gateway" --config "$SP_CONFIG" 3>&- || [ "$status" -ne 0 ]
	[ "$status" -ne 0 ]
	[ "$status" -ne 124 ]
	sp_http GET /healthz </dev/null
	[ "$SP_STATUS" = 200 ]
	SP_GATEWAY_PID=$(tail -1 "$SP_DIR/pids")
	kill -9 "$SP_GATEWAY_PID"
	sp_until "" sp_gone "$SP_GATEWAY_PID"
	[ -S "$SP_SOCKET" ]
	sp_start_gateway
	kill -INT "$SP_GATEWAY_PID"
	wait "$SP_GATEWAY_PID"
}

@test "only the tests' gateway has the fixtures" {
	local installed=${SP_BIN%-recorded}/sallyport-gateway names='test_simple_text|conformance_token|only this machine is served|SP_FIXTURES'
	[ -x "$installed" ] && [ "$installed" != "$SP_BIN/sallyport-gateway" ] || skip "there is only one gateway here"
	grep -qaE "$names" "$SP_BIN/sallyport-gateway"
	run -1 grep -aoE "$names" "$installed"
	mkdir "$SP_DIR/profile"
	refused() { # GATEWAY URL MEMBERS
		printf '{"data_dir": "%s", "public_base_url": "%s", "gateway": {"socket": "%s"%s}}' \
			"$SP_DIR/profile" "$2" "$SP_DIR/profile.sock" "$3" >"$SP_DIR/profile.json"
		run timeout "$SP_DEADLINE" "$1" --config "$SP_DIR/profile.json" </dev/null 3>&-
		[ "$status" -ne 0 ]
		[ "$status" -ne 124 ]
		[ ! -e "$SP_DIR/profile.sock" ]
	}
	refused "$installed" http://127.0.0.1:9 ', "profile": "conformance"'
	[[ $output == *"gateway.profile: was removed: only the gateway of "* ]]
	[ -z "$(ls -A "$SP_DIR/profile")" ]
	export SP_FIXTURES=1
	refused "$SP_BIN/sallyport-gateway" http://192.0.2.1:80 ''
	[[ $output == *"public_base_url: must be http://127.0.0.1:PORT: the fixtures ask for no token"* ]]
	refused "$SP_BIN/sallyport-gateway" http://127.0.0.1:9 ', "allowed_hosts": ["x"]'
	[[ $output == *"allowed_hosts and allowed_origins must be empty"* ]]
}

@test "a listening socket as descriptor 0 is served" {
	sp_token dora
	/usr/bin/python3 - "$SP_DIR/fd0.sock" "$SP_BIN/sallyport-gateway" "$SP_CONFIG" 2>>"$SP_DIR/fd0.log" 3>&- <<-'EOF' &
		import os, socket, sys
		s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(16)
		os.dup2(s.fileno(), 0)
		os.execv(sys.argv[2], [sys.argv[2], "--config", sys.argv[3]])
	EOF
	SP_GATEWAY_PID=$!
	echo "$SP_GATEWAY_PID" >>"$SP_DIR/pids"
	SP_SOCKET=$SP_DIR/fd0.sock
	sp_until "$SP_GATEWAY_PID" sp_gateway_answers || sp_die "not served"
	sp_call run_code "$(python fd0 'print("zero")')"
	[ "$(sp_get details.stdout)" = zero ]
	kill -TERM "$SP_GATEWAY_PID"
	wait "$SP_GATEWAY_PID" # exit code 0; a sanitizer's finding would be another
	[ -S "$SP_SOCKET" ] # not ours to remove
}

@test "the gateway's command line" {
	run -0 "$SP_BIN/sallyport-gateway" --help
	[[ $output == usage:* ]]
	run -0 "$SP_BIN/sallyport-gateway" --version
	[[ $output == "sallyport-gateway "* ]]
	run -2 "$SP_BIN/sallyport-gateway" --nothing
	run -2 "$SP_BIN/sallyport-gateway" extra
	run ! "$SP_BIN/sallyport-gateway" --config /nonexistent
	[[ $output == */nonexistent* ]]
	echo '{"data_dir":"data"}' >"$SP_DIR/bare.json"
	run ! "$SP_BIN/sallyport-gateway" --config "$SP_DIR/bare.json"
	[[ $output == *gateway.socket* ]]
}
