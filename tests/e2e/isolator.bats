#!/usr/bin/env bats
# shellcheck disable=SC2016 # dollars in the programs are not for this shell
# The set "isolator": execute_code as the system had it that it replaces, and snippets.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	sp_setup
	mkdir "$SP_DIR/snippets" "$SP_DIR/snippets/folder.py"
	echo 'print("hello from a snippet")' >"$SP_DIR/snippets/hello.py"
	echo 'import helper; print(helper.x)' >"$SP_DIR/snippets/uses_helper.py"
	echo 'console.log(1)' >"$SP_DIR/snippets/twice.js"
	echo 'print(2)' >"$SP_DIR/snippets/twice.py"
	echo 'print("hidden")' >"$SP_DIR/snippets/.hidden.py"
	echo 'something' >"$SP_DIR/snippets/note.xyz"
	echo 'print("outside")' >"$SP_DIR/outside.py"
	ln -s ../outside.py "$SP_DIR/snippets/link.py"
	mkfifo "$SP_DIR/snippets/pipe.py"
	head -c 262145 /dev/zero | tr '\0' '#' >"$SP_DIR/snippets/large.py"
	head -c 262144 /dev/zero | tr '\0' '#' >"$SP_DIR/snippets/just.py"
	jq '.tools = {sets: ["isolator"], snippets_dir: "snippets"}' "$SP_CONFIG" >"$SP_DIR/c" && mv "$SP_DIR/c" "$SP_CONFIG"
	sp_start_jailer
	sp_start_gateway
	sp_token alice
}

teardown_file() {
	sp_teardown
}

text() {
	sp_get '.result.content[0].text'
}

method() { # NAME PARAMS
	printf '{"jsonrpc":"2.0","id":1,"method":"%s","params":{%s"_meta":{%s,%s}}}' "$1" "$2" \
		'"io.modelcontextprotocol/protocolVersion":"2026-07-28"' '"io.modelcontextprotocol/clientCapabilities":{}' |
		sp_http POST /mcp HTTP_MCP_PROTOCOL_VERSION=2026-07-28 HTTP_MCP_METHOD="$1" "${@:3}"
}

complete() { # PREFIX
	method completion/complete '"ref":{"type":"ref/prompt","name":"run_snippet"},"argument":{"name":"snippet_name","value":"'"$1"'"},'
	sp_get '.result.completion.values | join(" ")'
}

@test "both streams stand under marks" {
	sp_call execute_code '{"language":"bash","entrypoint_code":"echo out; echo err >&2"}'
	[ "$(text)" = $'--- stdout ---\nout\n--- stderr ---\nerr' ]
	[ "$(sp_get .result.isError)" = false ]
	[ "$(sp_get details.verdict)" = OK ]
	sp_call execute_code '{"language":"bash","entrypoint_code":"printf out"}'
	[ "$(text; echo .)" = $'--- stdout ---\nout\n--- stderr ---\n\n.' ]
	for language in python javascript; do # that system shows no values
		sp_call execute_code "{\"language\":\"$language\",\"entrypoint_code\":\"40 + 2\"}"
		[ "$(sp_get '[details.verdict, details.stdout] | tojson')" = '["OK",""]' ]
	done
}

@test "a failure begins with \"error\" or \"timeout\"" {
	sp_call execute_code '{"language":"bash","entrypoint_code":"echo out; echo err >&2; exit 3"}'
	[ "$(sp_get .result.isError)" = true ]
	local message
	message=$(sp_get details.message)
	[ "$(text)" = "Execution Failed (error): $message"$'\n\n--- stdout ---\nout\n--- stderr ---\nerr' ]
}

@test "a timeout is called one" {
	# Five seconds, so that the program has come to its first word on a busy machine, too.
	jq '.limits.wall_seconds = 5 | .gateway.socket = "slow.sock" | .data_dir = "slow"' "$SP_CONFIG" >"$SP_DIR/slow.json"
	mkdir "$SP_DIR/slow"
	export SP_CONFIG=$SP_DIR/slow.json SP_SOCKET=$SP_DIR/slow.sock
	sp_token alice
	sp_start_gateway
	sp_call execute_code '{"language":"bash","entrypoint_code":"echo early; exec sleep 100"}'
	[ "$(sp_get .result.isError)" = true ]
	[[ $(text) == "Execution Failed (timeout): "*$'\n\n--- stdout ---\nearly\n--- stderr ---' ]]
	sp_stop "$SP_GATEWAY_PID"
}

@test "relative imports find files next to the program" {
	sp_call execute_code '{"language":"python","entrypoint_code":"import helper\nfrom pack.inner import y\nprint(helper.x + y, open(\"d.txt\").read(), __file__)",
		"additional_files":[{"filename":"helper.py","content":"x = 40"},{"filename":"pack/inner.py","content":"y = 2"},{"filename":"d.txt","content":"data"}]}'
	[ "$(text)" = $'--- stdout ---\n42 data /data/main.py\n--- stderr ---' ]
	sp_call execute_code '{"language":"javascript","entrypoint_filename":"src/app.js","entrypoint_code":"console.log(require(\"./lib\").x + require(\"../top.js\"))",
		"additional_files":[{"filename":"src/lib.js","content":"exports.x = 40"},{"filename":"top.js","content":"module.exports = 2"}]}'
	[ "$(text)" = $'--- stdout ---\n42\n--- stderr ---' ]
	sp_call execute_code '{"language":"c","entrypoint_code":"#include \"answer.h\"\n#include <stdio.h>\nint main(void) { printf(\"%d\\n\", ANSWER); }",
		"additional_files":[{"filename":"answer.h","content":"#define ANSWER 42\n"}]}'
	[ "$(text)" = $'--- stdout ---\n42\n--- stderr ---' ]
}

@test "a sandbox begins empty" {
	sp_call execute_code '{"language":"bash","entrypoint_code":"ls -A; echo 1 >a.txt"}'
	[ "$(text)" = $'--- stdout ---\n--- stderr ---' ]
	local url
	url=$(sp_get 'details.files.created[0].url')
	sp_http GET "${url#"$SP_URL"}" </dev/null
	[ "$SP_STATUS" = 200 ]
	[ "$(cat "$SP_DIR/body")" = 1 ]
	sp_call execute_code '{"language":"bash","entrypoint_code":"ls -A; echo 1 >a.txt"}'
	[ "$(text)" = $'--- stdout ---\n--- stderr ---' ]
}

@test "the record replays a sandbox" {
	sp_call execute_code '{"language":"javascript","entrypoint_code":"console.log(require(\"./lib/a\").x)","additional_files":[{"filename":"lib/a.js","content":"exports.x = 7"}]}'
	local id
	id=$(sp_get details.execution_id)
	[ "$(text)" = $'--- stdout ---\n7\n--- stderr ---' ]
	"$SP_BIN/sallyport" show --config "$SP_CONFIG" "$id" >"$SP_DIR/shown"
	grep -q '^run in place *main.js$' "$SP_DIR/shown"
	"$SP_BIN/sallyport" replay --config "$SP_CONFIG" "$id" >"$SP_DIR/replayed"
	grep -q '^1 identical' "$SP_DIR/replayed"
}

@test "what is wrong is named" {
	local case arguments
	while IFS='|' read -r arguments case; do
		sp_call execute_code "$arguments"
		[ "$(sp_get .result.isError)" = true ]
		[[ $(text) == *"$case"* ]] || { text; echo "expected: $case"; false; }
	done <<-'CASES'
		{}|snippet_name: is missing: give snippet_name, or language and entrypoint_code
		{"language":"python"}|entrypoint_code: is missing
		{"entrypoint_code":"1"}|language: is missing
		{"language":"cobol","entrypoint_code":"1"}|language: "cobol" is unknown
		{"snippet_name":"hello","entrypoint_code":"1"}|snippet_name: and entrypoint_code exclude each other
		{"language":"python","code":"1"}|code: unknown member
		{"language":"python","entrypoint_code":"1","entrypoint_filename":"../x.py"}|must not be ".."
		{"language":"python","entrypoint_code":"1","entrypoint_filename":"/etc/x.py"}|must be relative
		{"language":"python","entrypoint_code":"1","additional_files":[{"filename":"a","content":""},{"filename":"a/b","content":""}]}|one is a folder of the other
		{"language":"python","entrypoint_code":"1","additional_files":[{"filename":"main.py","content":""}]}|main.py is the program's own name
		{"language":"python","entrypoint_code":"1","additional_files":[{"filename":"a//b","content":""}]}|must not contain "//" or end with "/"
	CASES
}

@test "the folder's snippets run by name" {
	sp_call execute_code '{"snippet_name":"hello"}'
	[ "$(text)" = $'--- stdout ---\nhello from a snippet\n--- stderr ---' ]
	[ "$(sp_get details.language)" = python ]
	sp_call execute_code '{"snippet_name":"uses_helper","additional_files":[{"filename":"helper.py","content":"x = 5"}]}'
	[ "$(text)" = $'--- stdout ---\n5\n--- stderr ---' ]
	sp_call execute_code '{"snippet_name":"just"}'
	[ "$(sp_get .result.isError)" = false ]
	sp_call execute_code '{"snippet_name":"twice"}'
	[ "$(text)" = $'--- stdout ---\n1\n--- stderr ---' ]
	sp_call execute_code '{"snippet_name":"twice.js"}'
	[ "$(text)" = $'--- stdout ---\n1\n--- stderr ---' ]
	sp_call execute_code '{"snippet_name":"note"}'
	[[ $(text) == 'language: "xyz" is unknown'* ]]
	local name
	for name in link pipe folder large .hidden ../outside nothing; do
		sp_call execute_code '{"snippet_name":"'"$name"'"}'
		[ "$(text)" = "snippet_name: unknown snippet; the server has: hello, just, note, twice, uses_helper" ]
		[[ $name == *[.n]* ]] || grep -q "snippet not imported.*$name.py" "$SP_DIR/gateway.log"
	done
	grep -q 'snippet not imported.*twice.py.*same name' "$SP_DIR/gateway.log"
}

@test "the folder is read when the gateway starts: what is new or changed is a new version" {
	listed() { "$SP_BIN/sallyport" snippet list --json --config "$SP_CONFIG" | jq -rs '[.[] | "\(.owner) \(.name) \(.version)"] | join(",")'; }
	[ "$(listed)" = "null hello 1,null just 1,null note 1,null twice 1,null uses_helper 1" ]
	echo 'echo new' >"$SP_DIR/snippets/added.sh"
	echo 'print("changed")' >"$SP_DIR/snippets/hello.py"
	rm "$SP_DIR/snippets/just.py"
	sp_stop "$SP_GATEWAY_PID"
	sp_start_gateway
	[ "$(listed)" = "null added 1,null hello 2,null just 1,null note 1,null twice 1,null uses_helper 1" ]
	sp_call execute_code '{"snippet_name":"added"}'
	[ "$(text)" = $'--- stdout ---\nnew\n--- stderr ---' ]
	sp_call execute_code '{"snippet_name":"hello"}'
	[ "$(text)" = $'--- stdout ---\nchanged\n--- stderr ---' ]
	"$SP_BIN/sallyport" snippet remove just --config "$SP_CONFIG"
	[[ $(listed) != *just* ]]
}

@test "a folder that cannot be read is refused at the start" {
	jq '.tools.snippets_dir = "nowhere" | .gateway.socket = "fresh.sock" | .data_dir = "fresh"' "$SP_CONFIG" >"$SP_DIR/nowhere.json"
	mkdir "$SP_DIR/fresh"
	run -10 "$SP_BIN/sallyport-gateway" --config "$SP_DIR/nowhere.json"
	[[ $output == *"reading tools.snippets_dir $SP_DIR/nowhere: "* ]]
}

@test "names of snippets are completed" {
	[ "$(complete '')" = "added hello note twice uses_helper" ]
	[ "$(complete u)" = "uses_helper" ]
	[ "$(complete zzz)" = "" ]
	method prompts/get '"name":"run_snippet","arguments":{"snippet_name":"hello"},' HTTP_MCP_NAME=run_snippet
	[[ $(sp_get '.result.messages[0].content.text') == "Run the snippet hello "* ]]
	method prompts/get '"name":"run_snippet","arguments":{"snippet_name":"none"},' HTTP_MCP_NAME=run_snippet
	[ "$(sp_get .error.code)" = -32602 ]
}

@test "the same key gives the first result again" {
	sp_call execute_code '{"language":"bash","entrypoint_code":"echo $RANDOM$RANDOM","idempotencyKey":"k"}'
	local first
	first=$(text)
	sp_call execute_code '{"language":"bash","entrypoint_code":"echo $RANDOM$RANDOM","idempotencyKey":"k"}'
	[ "$(text)" = "$first" ]
	# While the first one runs, too: three at once are one run.
	local i pids=()
	for i in 1 2 3; do
		(
			SP_DIR=$SP_DIR/at-once-$i
			mkdir "$SP_DIR"
			sp_call execute_code '{"language":"bash","entrypoint_code":"sleep 1; echo $RANDOM$RANDOM","idempotencyKey":"at once"}'
			text >"$SP_DIR/text"
		) &
		pids+=($!)
	done
	wait "${pids[@]}"
	[[ $(<"$SP_DIR/at-once-1/text") == *stdout*[0-9]* ]]
	cmp "$SP_DIR/at-once-1/text" "$SP_DIR/at-once-2/text"
	cmp "$SP_DIR/at-once-1/text" "$SP_DIR/at-once-3/text"
}

@test "the tool exists only where its set is switched on" {
	jq 'del(.tools) | .gateway.socket = "off.sock" | .data_dir = "off"' "$SP_CONFIG" >"$SP_DIR/off.json"
	mkdir "$SP_DIR/off"
	export SP_CONFIG=$SP_DIR/off.json SP_SOCKET=$SP_DIR/off.sock
	sp_token alice
	sp_start_gateway
	sp_call execute_code '{"language":"bash","entrypoint_code":"1"}'
	[ "$(sp_get .error.code)" = -32602 ]
	method tools/list ''
	[ "$(sp_get '[.result.tools[].name | select(. == "execute_code")] | length')" = 0 ]
	method prompts/list ''
	[ "$(sp_get '[.result.prompts[].name | select(. == "run_snippet")] | length')" = 0 ]
	sp_stop "$SP_GATEWAY_PID"
	jq '.tools = {sets: ["magic"]}' "$SP_CONFIG" >"$SP_DIR/c" && mv "$SP_DIR/c" "$SP_CONFIG"
	run "$SP_BIN/sallyport-gateway" --config "$SP_CONFIG"
	[ "$status" -ne 0 ]
	[[ $output == *'tools.sets: '*magic*"is not a tool set"* ]]
}
