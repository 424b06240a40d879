# lib.bash - helpers for the bats files: a whole stack (jailer, gateway, token) in a temporary directory of its own.
#
#   sp_setup                    a new directory $SP_DIR with $SP_CONFIG; programs from $SP_BIN; nothing is started
#   sp_token OWNER              makes a token, sets $SP_TOKEN
#   sp_start_jailer             starts sallyport-jailer, returns when its socket answers; sets $SP_JAILER_PID
#   sp_start_gateway            starts sallyport-gateway, returns when its socket answers; sets $SP_GATEWAY_PID
#   sp_serve [OWNER]            all of it: a new directory, a jailer, a gateway, and a token of OWNER, or, without a word, of alice and bob
#   sp_cli COMMAND…             sallyport with $SP_CONFIG
#   sp_http METHOD URI [NAME=VALUE…]   one request through cgi-fcgi, body on standard input; sets $SP_STATUS, files $SP_DIR/head and $SP_DIR/body
#   sp_call TOOL ARGUMENTS      tools/call of the modern era; sets $SP_STATUS, the reply is in $SP_DIR/body (sp_get)
#   sp_mcp METHOD MEMBERS [NAME]   any other request of the modern era
#   sp_stdio, sp_say TOOL ARGUMENTS, sp_stdio_end   a server on standard input and output: one call after the other; its lines are in $SP_DIR/out
#   sp_wake                     lets a program go on that sleeps for $SP_ASLEEP seconds
#   sp_gauged JAILS FUNCTION    the function, with the gauge of the host around it (tests/unit/host_gauge.h)
#   sp_sql STATEMENT            what is recorded, read from the database
#   sp_page NAME                a block of docs/operator.md or docs/audit.md, the one behind "<!-- tested: NAME -->"
#   sp_teardown                 stops what was started and removes the directory
#
# Use from setup_file (one stack a file) or setup (one a test); variables are exported, so both work. Everything listens on unix sockets
# in $SP_DIR. Waiting is waiting for an event with a deadline, never for a time.

SP_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
SP_BIN=${SP_BIN:-$SP_ROOT/${B:-build}/bin}
SP_DEADLINE=${SP_DEADLINE:-120} # seconds until something that was started must answer, however busy the machine is
SP_ASLEEP=$((1000000 + BASHPID)) # nobody else on this machine sleeps for so many seconds
export SP_ROOT SP_BIN SP_ASLEEP
shopt -s lastpipe # "echo … | sp_http …" sets its variables here

# The folder is short (sun_path has 108 bytes) and open to the accounts that guests and jailer run as.
sp_setup() {
	SP_DIR=$(mktemp -d /tmp/sp-XXXXXX)
	chmod 0755 "$SP_DIR"
	mkdir -m 0755 "$SP_DIR/data"
	SP_CONFIG=$SP_DIR/sallyport.json
	SP_URL=http://127.0.0.1:8080
	SP_SOCKET=$SP_DIR/gateway.sock
	local modules=$SP_ROOT/jail/runners/npm # `make deps` puts node_modules there
	[ -d "$modules/node_modules" ] || modules=
	local runners=$SP_BIN/../tests/runners # without caches, which would take each jailer half a second of processor (Makefile)
	[ -d "$runners" ] || runners=$SP_ROOT/jail/runners
	cat >"$SP_CONFIG" <<-EOF
		{
			"data_dir": "data",
			"public_base_url": "$SP_URL",
			"gateway": {"socket": "gateway.sock", "threads": 4},
			"jailer": {
				"socket": "jailer.sock", "program": "$SP_BIN/sallyport-jailer", "runners_dir": "$runners",
				"modules_dir": "$modules", "weaker_limits": $([ "$(id -u)" = 0 ] && echo false || echo true)
			},
			"limits": {"body_mb": 8}
		}
	EOF
	SP_JAILER_PID='' SP_GATEWAY_PID='' SP_TOKEN=''
	export SP_DIR SP_CONFIG SP_URL SP_SOCKET SP_JAILER_PID SP_GATEWAY_PID SP_TOKEN
}

# Fails the test and shows what the programs said.
sp_die() {
	echo "$*" >&2
	for log in "$SP_DIR"/*.log; do
		[ -e "$log" ] && sed "s|^|${log##*/}: |" "$log" >&2
	done
	return 1
}

# For setup_file of suites whose programs start a private jailer: $DIR outlasts a test, and jails may look into it.
sp_private_jailers() {
	export DIR=$BATS_FILE_TMPDIR
	chmod 0755 "$DIR"
	unset SALLYPORT_CONFIG
	[ "$(id -u)" = 0 ] || export SALLYPORT_JAILER_WEAKER_LIMITS=true
}

# sp_until PID COMMAND…: runs the command until it succeeds; fails when the process ends or the deadline passes. It is run once more after the
# end of the process, which may have done what is waited for behind the last look.
sp_until() {
	local pid=$1 end=$((SECONDS + SP_DEADLINE)) ended=
	shift
	until "$@"; do
		[ -z "$ended" ] && [ "$SECONDS" -lt "$end" ] || return 1
		[ -z "$pid" ] || kill -0 "$pid" 2>/dev/null || ended=yes
		read -r -t 0.02 <> <(:) || true
	done
}

# Does somebody listen at this unix socket? The file is there a moment before.
sp_listens() {
	awk -v path="$1" '$4 == "00010000" && $8 == path { found = 1 } END { exit !found }' /proc/net/unix
}

# Does a guest run "sleep $SP_ASLEEP"?
sp_asleep() {
	pgrep -fx "sleep $SP_ASLEEP" >/dev/null
}
sp_none_asleep() {
	! sp_asleep
}

# Ends this sleep as soon as it has begun. So a program lasts exactly as long as its test wants it to, on a slow machine, too.
sp_wake() {
	sp_until "" sp_asleep || sp_die "nobody sleeps for $SP_ASLEEP s" || return
	kill -KILL "$(pgrep -fx "sleep $SP_ASLEEP")"
}

# Other programs of the host are in the meters, too: what raised one runs again, and fails if that happens each time. What the function leaves
# running must not hold descriptor 8.
sp_gauged() {
	local round gauge file=$BATS_TEST_TMPDIR/gauge
	for round in 1 2 3; do
		rm -f "$file.in" && mkfifo "$file.in"
		"$SP_BIN/../tests/host_gauge" "$1" <"$file.in" >"$file" 3>&- &
		gauge=$!
		exec 8>"$file.in"
		sp_until "$gauge" grep -q measuring "$file"
		"$2"
		exec 8>&-
		! wait "$gauge" || return 0
		echo "round $round: $(tail -1 "$file")"
	done
	return 1
}

# Another one may be about to write, or to close the database: that is waited for.
sp_sql() {
	sqlite3 -readonly -cmd ".timeout $((SP_DEADLINE * 1000))" "$SP_DIR/data/sallyport.db" "$1"
}

sp_token() {
	SP_TOKEN=$("$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner "$1" --results structured --json | jq -r .token)
	[[ $SP_TOKEN == sp_* ]] || sp_die "no token for $1: $SP_TOKEN"
	export SP_TOKEN
}

# Tokens of two owners in ALICE and BOB; requests go out as alice unless they say otherwise.
sp_two_owners() {
	sp_token bob
	export BOB=$SP_TOKEN
	sp_token alice
	export ALICE=$SP_TOKEN
}

sp_start_jailer() {
	local answers=$SP_DIR/jailer.sock.answers
	[ -e "$answers" ] || [ ! -e "$SP_ANSWERS" ] || cp "$SP_ANSWERS" "$answers"
	"$SP_BIN/sallyport-jailer" --config "$SP_CONFIG" >>"$SP_DIR/jailer.log" 2>&1 3>&- &
	SP_JAILER_PID=$!
	export SP_JAILER_PID
	echo "$SP_JAILER_PID" >>"$SP_DIR/pids"
	sp_until "$SP_JAILER_PID" sp_listens "$SP_DIR/jailer.sock" || sp_die "the jailer does not start"
}

sp_serve() {
	sp_setup
	if [ -n "$1" ]; then sp_token "$1"; else sp_two_owners; fi
	sp_start_jailer
	sp_start_gateway
}

sp_cli() { "$SP_BIN/sallyport" "$@" --config "$SP_CONFIG"; }

# A run of bash in the conversation `talk`, with more members of the call; sets ID.
sp_run_bash() { # CODE [MEMBERS]
	local more=${2:-null}
	sp_call run_code "$(jq -nc --arg code "$1" '{conversationId: "talk", language: "bash", code: $code} + '"$more")"
	cat "$SP_DIR/body"
	# shellcheck disable=SC2034 # for the test
	ID=$(sp_sql 'SELECT id FROM execution ORDER BY id DESC LIMIT 1')
}

sp_gateway_answers() {
	[ -S "$SP_SOCKET" ] && sp_http GET /healthz </dev/null 2>/dev/null && [ "$SP_STATUS" = 200 ]
}

sp_start_gateway() {
	"$SP_BIN/sallyport-gateway" --config "$SP_CONFIG" >>"$SP_DIR/gateway.log" 2>&1 3>&- &
	SP_GATEWAY_PID=$!
	export SP_GATEWAY_PID
	echo "$SP_GATEWAY_PID" >>"$SP_DIR/pids"
	sp_until "$SP_GATEWAY_PID" sp_gateway_answers || sp_die "the gateway does not start"
}

# Stops a process of ours and waits for its end.
sp_stop() {
	[ -n "$1" ] || return 0
	kill -"${2:-TERM}" "$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
	sp_until "" sp_gone "$1"
}
sp_gone() {
	! kill -0 "$1" 2>/dev/null
}

# Splits a CGI reply into $SP_DIR/head, $SP_DIR/body and $SP_STATUS.
sp_split() {
	sed -e '/^\r*$/q' "$SP_DIR/reply" | tr -d '\r' >"$SP_DIR/head"
	tail -c "+$(($(sed -e '/^\r*$/q' "$SP_DIR/reply" | wc -c) + 1))" "$SP_DIR/reply" >"$SP_DIR/body"
	SP_STATUS=$(sed -n 's/^Status: \([0-9]*\).*/\1/p' "$SP_DIR/head")
	export SP_STATUS=${SP_STATUS:-200}
}

# sp_http METHOD URI [NAME=VALUE…]: variables as CGI names them (HTTP_ORIGIN=…). The token and the JSON type are there unless SP_BARE is set.
sp_http() {
	local method=$1 uri=$2
	shift 2
	cat >"$SP_DIR/request"
	local defaults=(CONTENT_TYPE=application/json HTTP_AUTHORIZATION="Bearer $SP_TOKEN")
	[ -z "$SP_BARE" ] || defaults=()
	env -i PATH="$PATH" REQUEST_METHOD="$method" REQUEST_URI="$uri" SCRIPT_NAME="${uri%%\?*}" HTTP_HOST=127.0.0.1:8080 \
		CONTENT_LENGTH="$(stat -c %s "$SP_DIR/request")" "${defaults[@]}" "$@" \
		cgi-fcgi -bind -connect "$SP_SOCKET" <"$SP_DIR/request" >"$SP_DIR/reply" || return
	sp_split
}

# sp_call TOOL ARGUMENTS: a modern tools/call.
sp_call() {
	printf '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":%s,"_meta":{%s,%s,%s}}}' "$1" "$2" \
		'"io.modelcontextprotocol/protocolVersion":"2026-07-28"' '"io.modelcontextprotocol/clientCapabilities":{}' \
		'"sallyport/results":"structured"' |
		sp_http POST /mcp HTTP_MCP_PROTOCOL_VERSION=2026-07-28 HTTP_MCP_METHOD=tools/call HTTP_MCP_NAME="$1" || return
}

# sp_mcp METHOD MEMBERS [NAME]: a modern request; MEMBERS of its params: '"uri":"…"'; NAME for the header Mcp-Name.
sp_mcp() {
	printf '{"jsonrpc":"2.0","id":1,"method":"%s","params":{%s,"_meta":{%s,%s}}}' "$1" "$2" \
		'"io.modelcontextprotocol/protocolVersion":"2026-07-28"' \
		'"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}' |
		sp_http POST /mcp HTTP_MCP_PROTOCOL_VERSION=2026-07-28 HTTP_MCP_METHOD="$1" HTTP_MCP_NAME="$3"
}

# The server reads a pipe that descriptor 9 writes to.
sp_stdio() {
	mkfifo "$SP_DIR/in"
	"$SP_BIN/sallyport" stdio --config "$SP_CONFIG" <"$SP_DIR/in" >"$SP_DIR/out" 2>"$SP_DIR/stdio.log" 3>&- &
	SP_STDIO_PID=$! SP_CALLS=0
	echo "$SP_STDIO_PID" >>"$SP_DIR/pids"
	exec 9>"$SP_DIR/in"
	printf '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":%s}}\n' \
		'{"name":"t","version":"1"}' >&9
	echo '{"jsonrpc":"2.0","method":"notifications/initialized"}' >&9
}
# Calls of one client may overtake each other: this waits for its answer, the first of which has the id 1.
sp_say() {
	SP_CALLS=$((SP_CALLS + 1))
	printf '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":%s,"_meta":{"sallyport/results":"structured"}}}\n' \
		"$SP_CALLS" "$1" "$2" >&9
	sp_until "$SP_STDIO_PID" grep -q "\"id\":${SP_CALLS}[,}]" "$SP_DIR/out" || sp_die "no answer to $1"
}
sp_stdio_end() {
	exec 9>&-
	wait "$SP_STDIO_PID"
}

# One string out of the last reply: sp_get .result.isError, sp_get details.stdout. A call that takes seconds is answered by a stream of events,
# whose last one is the reply.
SP_DETAILS='def details: .result.structuredContent; '
sp_get() {
	if grep -qi '^content-type: text/event-stream' "$SP_DIR/head" 2>/dev/null; then
		sed -n 's/^data: \({.*\)/\1/p' "$SP_DIR/body" | tail -n 1 | jq -r "$SP_DETAILS$1"
	else
		jq -r "$SP_DETAILS$1" "$SP_DIR/body"
	fi
}

# What the operator's pages tell people to type is what tests type. A block inside a list is indented.
sp_page() {
	awk -v name="<!-- tested: $1 -->" '{ line = $0; sub(/^ +/, "", line) } line == name { wanted = 1 } wanted && line == "```" { exit } open { print line }
		wanted && line == "```sh" { open = 1 }' "$SP_ROOT"/docs/{operator,audit}.md
}

# What interpreters answered a jailer is kept for the next one, of whichever test: to ask all of them takes half a second of processor. The
# jailer knows what still holds (jail/answers.h). The file with the most answers stays.
SP_ANSWERS=${SP_ANSWERS:-${BATS_RUN_TMPDIR:-/nowhere}/answers}
sp_keep_answers() {
	local answers=$SP_DIR/jailer.sock.answers
	[ -e "$answers" ] && [ "$(stat -c %s "$answers")" -gt "$(stat -c %s "$SP_ANSWERS" 2>/dev/null || echo 0)" ] || return 0
	cp "$answers" "$SP_ANSWERS.$$" && mv "$SP_ANSWERS.$$" "$SP_ANSWERS"
}

# The last one first. A test may have started another gateway in a process of its own: the file knows all of them.
sp_teardown() {
	local pid
	[ -n "$SP_DIR" ] || return 0
	for pid in $(tac "$SP_DIR/pids" 2>/dev/null); do
		[[ $(readlink "/proc/$pid/exe") != "$SP_BIN"/* ]] || sp_stop "$pid"
	done
	sp_keep_answers || true
	rm -rf "$SP_DIR"
}

# A server whose tool adds a file to its /data, and says how many there are.
sp_counting_server() {
	cat >"$SP_DIR/count.py" <<-'EOF'
		import json, os, sys
		for line in sys.stdin:
		    m = json.loads(line)
		    if m['method'] == 'initialize': r = {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'c', 'version': '1'}}
		    elif m['method'] == 'tools/list': r = {'tools': [{'name': 'count', 'inputSchema': {'type': 'object'}}]}
		    elif m['method'] == 'tools/call':
		        n = len(os.listdir('/data'))
		        open('/data/%d' % n, 'w').write('word-that-is-kept')
		        r = {'content': [{'type': 'text', 'text': 'files: %d' % (n + 1)}]}
		    else:
		        if 'id' in m: print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'error': {'code': -32601, 'message': 'no'}}), flush=True)
		        continue
		    print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'result': r}), flush=True)
	EOF
	jq -n --rawfile code "$SP_DIR/count.py" '{mcpServers: {count: {command: "python3", args: ["-c", $code], data: "keep"}}}' >"$SP_DIR/upstream.json"
	chmod 600 "$SP_DIR/upstream.json"
	export SALLYPORT_UPSTREAM_FILE=$SP_DIR/upstream.json
}
