# workspace.bash - what the tests of `sallyport stdio --workspace` share: a folder in $W, and a server on it.
# shellcheck shell=bash disable=SC2034 # for who loads it

setup() {
	HOME_DIR=$(mktemp -d /tmp/sp-XXXXXX)
	chmod 0755 "$HOME_DIR"
	W=$HOME_DIR/work
	mkdir "$W" "$HOME_DIR/data"
	unset SALLYPORT_CONFIG
	export XDG_DATA_HOME=$HOME_DIR/data
	[ "$(id -u)" = 0 ] || export SALLYPORT_JAILER_WEAKER_LIMITS=true
}

teardown() {
	[ -z "${PID:-}" ] || kill -KILL "$PID" 2>/dev/null || true
	[ -z "${OTHER:-}" ] || kill -KILL "$OTHER" 2>/dev/null || true
	[ ! -e "$HOME_DIR/small" ] || umount "$HOME_DIR/small" || true
	chmod -R u+rwX "$HOME_DIR"
	rm -rf "$HOME_DIR"
}

META='"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"sallyport/results":"structured"}'

start() {
	coproc SERVER { exec "$SP_BIN/sallyport" stdio --workspace "$W" 2>>"$HOME_DIR/log" 3>&-; }
	exec {IN}>&"${SERVER[1]}" {OUT}<&"${SERVER[0]}"
	PID=$SERVER_PID
}

stop() {
	exec {IN}>&-
	eval "exec ${SERVER[1]}>&-"
	wait "$PID" || [ $? = 127 ]
}

# texts RESULT: sets $output to the result's text, $printed to what the program printed of it.
texts() {
	output=$(jq -r '[.result.content[] | .text // empty] | add' <<<"$1")
	printed=$(jq -r '[.result.content[] | .text // empty] | if .[0] // "" | startswith("[sallyport]") then .[1:] else . end | add' <<<"$1")
}

# send TOOL ARGUMENTS; receive: sets $result to the answer.
send() {
	printf '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":%s,%s}}\n' "$1" "$2" "$META" >&"$IN"
}

receive() {
	read -r -t "$SP_DEADLINE" -u "$OUT" result
	texts "$result"
}

call() {
	send "$@"
	receive
}

run_bash() {
	call run_code "$(jq -cn --arg code "$1" '{language: "bash", code: $code}')"
}

fails() {
	[ "$(jq .result.isError <<<"$result")" = true ]
}
