#!/usr/bin/env bats
# shellcheck disable=SC2016 # dollars in the programs are not for this shell
# sallyport stdio: both eras over standard input and output, side by side, subscriptions, batches, bad lines, cancel, the end.

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	HOME_DIR=$(mktemp -d /tmp/sp-XXXXXX)
	chmod 0755 "$HOME_DIR"
	unset SALLYPORT_CONFIG
	export XDG_DATA_HOME=$HOME_DIR
	[ "$(id -u)" = 0 ] || export SALLYPORT_JAILER_WEAKER_LIMITS=true
}

teardown() {
	rm -rf "$HOME_DIR"
}

ASKS='"sallyport/results":"structured"'
META='"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},'$ASKS'}'
INITIALIZE='{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}'

# call ID CODE [ERA]: one line.
call() {
	printf '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"run_code","arguments":{"conversationId":"c%s","language":"bash","code":"%s","timeout_seconds":300}%s}}\n' \
		"$1" "$1" "$2" "$([ -n "${3:-}" ] && echo ",$META" || echo ",\"_meta\":{$ASKS}")"
}

# The answer to a request out of $output.
answer() { # ID FILTER
	jq -r "def details: .result.structuredContent; select(.id == $1) | $2" <<<"$output"
}

stdio() {
	"$SP_BIN/sallyport" stdio "$@" 2>"$HOME_DIR/log"
}

@test "stdio answers everything before its end" {
	run -0 stdio < <(
		echo "$INITIALIZE"
		echo '{"jsonrpc":"2.0","method":"notifications/initialized"}'
		call 1 'echo 42 | tee f'
	)
	[ "$(jq -r 'select(has("id")) | .id' <<<"$output")" = $'i\n1' ]
	[ "$(answer '"i"' .result.protocolVersion)" = 2025-11-25 ]
	[ "$(answer 1 details.stdout)" = 42 ]
	[ "$(answer 1 'details.files.created[0].url')" = sallyport://conversation/c1/f ]
	# The record is there for the next start.
	run -0 stdio < <(printf '{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"sallyport://conversation/c1/f",%s}}' "$META")
	[ "$(answer 2 '.result.contents[0].text')" = 42 ]
	[ "$(stat -c %a "$HOME_DIR/sallyport/secret.key")" = 600 ]
	[ "$(sqlite3 -readonly -cmd '.timeout 60000' "$HOME_DIR/sallyport/sallyport.db" "select group_concat(distinct owner || coalesce(token, '')) from execution")" = local ]
}

@test "the modern era needs no session" {
	run -0 stdio < <(
		printf '{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{%s}}\n' "$META"
		call 2 'echo modern' modern
		printf '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"nötool",%s}}\n' "$META"
		printf '{"jsonrpc":"2.0","id":4,"method":"no/such","params":{%s}}\n' "$META"
	)
	[ "$(answer 1 '.result.supportedVersions[0]')" = 2026-07-28 ]
	[ "$(answer 2 details.stdout)" = modern ]
	[ "$(answer 3 .error.code)" = -32602 ]
	[ "$(answer 4 .error.code)" = -32601 ]
}

@test "bad lines get errors and do no harm" {
	run -0 stdio < <(
		echo 'nonsense'
		echo
		echo '[]'
		echo '{"jsonrpc":"2.0","id":7}'
		echo '{"jsonrpc":"2.0","id":8,"method":"ping"}'
		head -c 40000000 /dev/zero | tr '\0' x
		echo
		echo "$INITIALIZE"
		printf '{"jsonrpc":"2.0","id":9,"method":"ping"}' # without a line end
	)
	[ "${#lines[@]}" = 7 ]
	[ "$(jq -s '[.[] | select(.id == null) | .error.code] | sort | tojson' -r <<<"$output")" = '[-32700,-32600,-32600]' ]
	[ "$(answer 7 .error.code)" = -32600 ]
	[ "$(answer 8 '.result | length')" = 0 ] # needs no session
	[ "$(answer 9 '.result | length')" = 0 ]
}

# Starts one with descriptors of its own: IN to write to, OUT to read from.
start() {
	coproc SERVER { exec "$SP_BIN/sallyport" stdio 2>"$HOME_DIR/log" 3>&-; }
	exec {IN}>&"${SERVER[1]}" {OUT}<&"${SERVER[0]}"
	PID=$SERVER_PID # bash forgets its own when it ends
}

# The end of what `start` writes to, in both its descriptors.
end_input() {
	exec {IN}>&-
	eval "exec ${SERVER[1]}>&-"
}

running() {
	[ "$(sqlite3 -readonly -cmd '.timeout 60000' "$HOME_DIR/sallyport/sallyport.db" "select count(*) from execution where state = 'running'" 2>/dev/null)" = "$1" ]
}

@test "a long run can be cancelled" {
	start
	call 1 'sleep 1000' modern >&"$IN"
	sp_until "" running 1
	printf '{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{%s}}\n' "$META" >&"$IN"
	read -r -t "$SP_DEADLINE" -u "$OUT" line
	[ "$(jq .id <<<"$line")" = 2 ]
	echo '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}' >&"$IN"
	sp_until "" running 0
	end_input
	run ! read -r -t "$SP_DEADLINE" -u "$OUT" line
	wait "$PID" || [ $? = 127 ] # reaped already: what follows says how it ended
	[ "$(sqlite3 -readonly -cmd '.timeout 60000' "$HOME_DIR/sallyport/sallyport.db" "select verdict from execution")" = CX ]
}

# listen ID: to the list of resources.
listen() {
	printf '{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{"notifications":{"resourcesListChanged":true},%s}}\n' "$1" "$META"
}

# The next line of the server in $line.
next() {
	read -r -t 20 -u "$OUT" line
}

# The next answer.
next_answer() {
	next
	while [[ $line == *'"method":"notifications/'* ]]; do
		next
	done
}

@test "changes are announced in both eras" {
	local uri=sallyport://conversation/c1/f
	run -0 stdio < <(
		echo "$INITIALIZE"
		echo '{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"'"$uri"'"}}'
		call 1 'echo 42 > f; echo 43 > g'
	)
	[ "$(answer '"i"' '.result.capabilities.resources | tojson')" = '{"listChanged":true,"subscribe":true}' ]
	[ "$(answer 2 '.result | length')" = 0 ]
	[ "$(jq -sc 'map(select(.method) | [.method, .params.uri]) | unique' <<<"$output")" = \
		'[["notifications/resources/list_changed",null],["notifications/resources/updated","'"$uri"'"]]' ]
	# One subscription beside another; the end of input is the end of both.
	start
	printf '{"jsonrpc":"2.0","id":3,"method":"server/discover","params":{%s}}\n' "$META" >&"$IN"
	next
	[ "$(jq -c .result.capabilities.resources <<<"$line")" = '{"listChanged":true,"subscribe":true}' ]
	for id in 4 5; do
		listen "$id" >&"$IN"
		next
		[ "$(jq -c '[.method, .params._meta[]]' <<<"$line")" = '["notifications/subscriptions/acknowledged",'"$id]" ]
	done
	call 1 'echo 44 > f' modern >&"$IN"
	end_input
	run cat <&"$OUT"
	[ "$(jq -sc 'map(select(.method) | .params._meta[]) | unique' <<<"$output")" = '[4,5]' ]
	[ "$(jq -sc 'map(select(.id) | [.id, .result.resultType]) | sort' <<<"$output")" = '[[1,"complete"],[4,"complete"],[5,"complete"]]' ]
	wait "$PID" || [ $? = 127 ]
}

@test "a cancelled subscription is silent" {
	local id
	start
	for id in {1..32}; do # STDIO_LISTENING_MAX
		listen "$id" >&"$IN"
		next
		[ "$(jq .params._meta[] <<<"$line")" = "$id" ]
	done
	listen 33 >&"$IN"
	next
	[[ $(jq -r '[.id, .error.message] | @tsv' <<<"$line") == "33	Too many concurrent requests"* ]]
	for id in {1..31}; do
		echo '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":'"$id"'}}' >&"$IN"
	done
	refused() { # until the places are free again
		listen 34 >&"$IN"
		next
		jq -e .error <<<"$line"
	}
	sp_until "" run ! refused
	call 40 'echo 1 > f' modern >&"$IN"
	end_input
	run cat <&"$OUT"
	[ "$(jq -sc 'map(select(.method) | .params._meta[]) | unique' <<<"$output")" = '[32,34]' ]
	[ "$(jq -sc 'map(.id | select(.)) | sort' <<<"$output")" = '[32,34,40]' ]
}

@test "a batch of 2025-03-26 holds up nothing" {
	start
	echo "${INITIALIZE/2025-11-25/2025-03-26}" >&"$IN"
	next_answer
	jq -n --argjson a "$(call 1 'sleep 60')" --argjson b "$(call 2 'echo 42')" -c '[$a, $b]' >&"$IN"
	sp_until "" running 1
	echo '{"jsonrpc":"2.0","id":3,"method":"ping"}' >&"$IN"
	next_answer
	[ "$(jq -c '[.id, .result]' <<<"$line")" = '[3,{}]' ]
	echo '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}' >&"$IN"
	next_answer
	[ "$(jq -c 'map([.id, .result.structuredContent.stdout])' <<<"$line")" = '[[2,"42\n"]]' ]
	# Another session takes the place of this one, and other revisions have no batches.
	echo "$INITIALIZE" >&"$IN"
	next_answer
	echo '[{"jsonrpc":"2.0","id":4,"method":"ping"}]' >&"$IN"
	next_answer
	[ "$(jq .error.code <<<"$line")" = -32600 ]
	[ "$(sqlite3 -readonly "$HOME_DIR/sallyport/sallyport.db" "select protocol from session where ended_us is null")" = 2025-11-25 ]
	end_input
	wait "$PID" || [ $? = 127 ]
	[ -z "$(sqlite3 -readonly "$HOME_DIR/sallyport/sallyport.db" "select protocol from session where ended_us is null")" ]
	run -0 ls "$HOME_DIR/sallyport/listeners"
	[ -z "$output" ]
}

@test "the record says what ran: a private jailer asks an interpreter when its first run comes" {
	run -0 stdio < <(
		echo "$INITIALIZE"
		for id in 1 2 3; do
			printf '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"run_code","arguments":{"language":"python","session":%s,"conversationId":"p%s","code":"import platform; print(platform.python_version())"},"_meta":{%s}}}\n' \
				"$id" "$([ "$id" = 2 ] && echo true || echo false)" "$id" "$ASKS"
		done
		call 4 'echo ${BASH_VERSION%%(*}'
	)
	local id version SALLYPORT_DATA_DIR=$HOME_DIR/sallyport
	export SALLYPORT_DATA_DIR
	for id in 1 2 3; do
		version=$(answer $id details.stdout)
		[ "$("$SP_BIN/sallyport" show --json "$(answer $id details.execution_id)" | jq -r .fingerprint)" = "Python $version" ]
	done
	[[ $("$SP_BIN/sallyport" show --json "$(answer 4 details.execution_id)" | jq -r .fingerprint) == *"$(answer 4 details.stdout)"* ]]
}

@test "an interpreter that is too old is refused at its first run" {
	mkdir "$HOME_DIR/runners"
	cp "$SP_ROOT"/jail/runners/*.* "$HOME_DIR/runners"
	jq '.version_least = 9' "$SP_ROOT/jail/runners/python.json" >"$HOME_DIR/runners/python.json"
	SALLYPORT_JAILER_RUNNERS_DIR=$HOME_DIR/runners run -0 stdio < <(
		printf '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":{"conversationId":"c","language":"python","code":"print(1)"},%s}}\n' "$META"
	)
	[ "$(answer 1 .result.isError)" = true ]
	[[ $(answer 1 '.result.content[0].text') == *"python is too old on this server (Python 3."* ]]
}

@test "two servers share the record" {
	start
	call 1 'sleep 1000' modern >&"$IN"
	sp_until "" running 1
	run -0 stdio < <(call 2 'echo second' modern)
	[ "$(answer 2 details.stdout)" = second ]
	# The second has tasks, too: what it began is at its end when it goes.
	run -0 stdio < <(
		echo "$INITIALIZE"
		echo '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"run_code","arguments":{"conversationId":"t","language":"bash","code":"echo task"},"task":{}}}'
	)
	[ "$(answer 4 .result.task.status)" = working ]
	[ "$(sqlite3 -readonly "$HOME_DIR/sallyport/sallyport.db" "select t.state || e.verdict from task t join execution e on e.id = t.execution")" = completedOK ]
	kill -TERM "$PID"
	wait "$PID" || [ $? = 127 ] # reaped already
	sp_until "" sp_gone "$PID"
	run -0 stdio < <(call 3 'echo third' modern)
	[ "$(answer 3 details.stdout)" = third ]
	running 0
}

@test "a client that does not read is left at a signal" {
	local id
	start
	call 1 'sleep 60' modern >&"$IN"
	sp_until "" running 1
	for id in {1..40}; do # more than a pipe holds
		printf '{"jsonrpc":"2.0","id":%s,"method":"tools/list","params":{%s}}\n' "$id" "$META"
	done >&"$IN"
	full() {
		local bytes
		bytes=$(python3 -c 'import fcntl, struct, termios; print(struct.unpack("i", fcntl.ioctl(0, termios.FIONREAD, b"\0" * 4))[0])' <&"$OUT")
		[ "$bytes" -gt 30000 ] # a write that does not fill its pages wastes them
	}
	sp_until "" full
	kill -TERM "$PID"
	sp_until "" sp_gone "$PID"
	run -0 stdio < <(call 3 'echo next' modern)
	[ "$(answer 3 details.stdout)" = next ]
	running 0
}

@test "no folder for the record is a clear refusal" {
	run env -u XDG_DATA_HOME -u HOME "$SP_BIN/sallyport" stdio </dev/null
	[ "$status" -ne 0 ]
	[[ $output == *"neither XDG_DATA_HOME nor HOME"* ]]
}

@test "list_runners finds versions and libraries, which the description of run_code then has" {
	start
	listed() {
		printf '{"jsonrpc":"2.0","id":1,"method":"tools/%s,%s}}\n' "$1" "$META" >&"$IN"
		read -r -t "$SP_DEADLINE" -u "$OUT" line
	}
	listed 'call","params":{"name":"list_runners","arguments":{"language":"python"}'
	text=$(jq -r '.result.content[0].text' <<<"$line")
	[[ $text == *"Python 3"*"; libraries: "*numpy* ]]
	listed 'list","params":{"_":0'
	description=$(jq -r ".result.tools[] | select(.name == \"run_code\") | .description" <<<"$line")
	[[ $description == *"- python 3."*numpy* ]]
	end_input
	wait "$PID" || [ $? = 127 ]
}

# Whoever reads the record next is told, without another start of a server.
@test "a server that is killed leaves no run that seems to run" {
	local id
	start
	call 1 'sleep 1000' modern >&"$IN"
	sp_until "" running 1
	export SALLYPORT_DATA_DIR=$HOME_DIR/sallyport
	run -0 "$SP_BIN/sallyport" log --json # as long as it lives, nobody calls its run interrupted
	[ "$(jq -r .state <<<"$output")" = running ]
	id=$(jq -r .id <<<"$output")
	kill -KILL "$PID"
	wait "$PID" || true
	sp_until "" sp_gone "$PID"
	run -0 --separate-stderr "$SP_BIN/sallyport" log --json
	[ "$(jq -r '.state + " " + .verdict' <<<"$output")" = "interrupted XX" ]
	run -0 "$SP_BIN/sallyport" show "$id"
	[[ $output == *"ended before this run did"* ]]
	running 0
}

@test "a request that needs a session and comes before initialize is told to send initialize" {
	run -0 stdio < <(echo '{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"x"}}')
	[[ $(answer 1 .error.message) == *"send initialize first"* ]]
}

@test "a server that can make no jails says so in each call" {
	export SALLYPORT_JAILER_RUNNERS_DIR=/nowhere
	run -0 stdio < <(call 1 'echo 1' && call 2 'echo 2' modern && printf '{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{%s}}\n' "$META")
	for id in 1 2; do [[ "$(answer $id '.result.content[0].text')" == *'/nowhere'* ]] || { echo "$output"; false; }; done
	[ "$(answer 3 '.result.tools | length > 5')" = true ]
}
