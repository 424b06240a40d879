#!/usr/bin/env bats
# shellcheck disable=SC2016 # dollars in the programs are not for this shell
# The set "interpreter": initialize_sandbox, execute_code, stop_sandbox; alone, and beside the set "isolator".

bats_require_minimum_version 1.5.0
load lib.bash

setup() {
	sp_setup
}

teardown() {
	sp_teardown
}

start() { # SETS as JSON
	jq --argjson sets "$1" '.tools.sets = $sets' "$SP_CONFIG" >"$SP_DIR/c" && mv "$SP_DIR/c" "$SP_CONFIG"
	sp_start_jailer
	sp_start_gateway
	sp_token alice
}

text() {
	sp_get '.result.content[0].text'
}

tools() {
	printf '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{%s,%s}}}' \
		'"io.modelcontextprotocol/protocolVersion":"2026-07-28"' '"io.modelcontextprotocol/clientCapabilities":{}' |
		sp_http POST /mcp HTTP_MCP_PROTOCOL_VERSION=2026-07-28 HTTP_MCP_METHOD=tools/list
}

@test "a sandbox lives between calls and ends when it is stopped" {
	start '["interpreter"]'
	sp_call execute_code '{"code":"1"}'
	[ "$(sp_get .result.isError)" = true ]
	[ "$(text)" = "the sandbox is not initialized: call initialize_sandbox first" ]
	sp_call initialize_sandbox '{}'
	[ "$(text)" = "Sandbox initialized with python." ]
	[ "$(sp_get .result.isError)" = false ]
	local conversation
	conversation=$(sp_get details.conversationId)
	sp_call execute_code '{"code":"x = 40; open(\"f\", \"w\").write(\"file\")"}'
	[ "$(sp_get 'details.files.created[0].name')" = f ]
	sp_call execute_code '{"code":"print(x + 2, open(\"f\").read())"}'
	[ "$(text)" = "42 file" ]
	sp_call execute_code '{"code":"x + 2"}' # that system shows no values
	[ "$(sp_get '[details.verdict, details.stdout] | tojson')" = '["OK",""]' ]
	sp_call execute_code '{"code":"print(\"oops\"); raise SystemExit(3)","language":"python"}'
	[ "$(sp_get .result.isError)" = true ]
	[[ $(text) == $'oops\n[verdict RE] '* ]]
	sp_call execute_code '{"code":"cat f","language":"bash"}'
	[[ $(text) == $'file\n[session] '* ]]
	sp_call stop_sandbox '{}'
	[ "$(text)" = "Sandbox stopped." ]
	[ "$(sp_get details.conversationId)" = "$conversation" ]
	sp_call execute_code '{"code":"1"}'
	[ "$(text)" = "the sandbox is not initialized: call initialize_sandbox first" ]
	sp_call stop_sandbox '{}'
	[ "$(sp_get .result.isError)" = true ]
	[ "$(sp_sql "SELECT group_concat(DISTINCT cause) FROM sandbox")" = reset ]
}

@test "an image is a language" {
	start '["interpreter"]'
	local case image language
	for case in python:3.12-slim=python node=javascript docker.io/library/node:22=javascript alpine:latest=python \
		ubuntu@sha256:00=python ghcr.io/x/bash:5=bash; do
		image=${case%=*} language=${case#*=}
		sp_call initialize_sandbox "{\"image\":\"$image\"}"
		[ "$(text)" = "Sandbox initialized with $language." ]
	done
	sp_call execute_code '{"code":"echo $BASH_VERSION"}'
	[[ $(text) == [0-9].* ]]
	for image in cobol:1 : x/; do
		sp_call initialize_sandbox "{\"image\":\"$image\"}"
		[ "$(sp_get .result.isError)" = true ]
		[[ $(text) == "image: no language of this server has this name"* ]]
	done
	sp_call execute_code '{"code":"echo still here"}'
	[ "$(text)" = "still here" ]
}

@test "to initialize again is to begin afresh" {
	start '["interpreter"]'
	sp_call initialize_sandbox '{"image":"python"}'
	sp_call execute_code '{"code":"x = 1; open(\"f\", \"w\").write(\"1\")"}'
	sp_call initialize_sandbox '{"image":"python"}'
	sp_call execute_code '{"code":"import os; print(\"x\" in globals(), os.listdir())"}'
	[ "$(text)" = "False []" ]
	[ "$(sp_sql "SELECT count(*) FROM sandbox WHERE ended_us IS NULL")" = 1 ]
}

@test "a stop that is refused leaves the sandbox to its client" {
	export SALLYPORT_LIMITS_IN_FLIGHT=1
	start '["interpreter"]'
	unset SALLYPORT_LIMITS_IN_FLIGHT
	local session task
	say() { # METHOD PARAMS
		printf '{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}' "$1" "$2" | sp_http POST /mcp HTTP_MCP_SESSION_ID="$session"
	}
	say initialize '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}'
	session=$(sed -n 's/^Mcp-Session-Id: //p' "$SP_DIR/head")
	say tools/call '{"name":"initialize_sandbox","arguments":{}}'
	say tools/call '{"name":"execute_code","arguments":{"code":"x = 42"}}'
	# A task of the token's is all that may be under way.
	say tools/call '{"name":"execute_code","task":{},"arguments":{"code":"import subprocess; subprocess.run([\"sleep\", \"'"$SP_ASLEEP"'\"])"}}'
	task=$(sp_get .result.task.taskId)
	say tools/call '{"name":"stop_sandbox","arguments":{}}'
	[[ $(text) == *"calls of this token are already running"* ]]
	say tools/call '{"name":"initialize_sandbox","arguments":{"image":"node"}}'
	[[ $(text) == *"calls of this token are already running"* ]]
	sp_wake
	say tasks/result "{\"taskId\":\"$task\"}" # waits for it
	say tools/call '{"name":"execute_code","arguments":{"code":"print(x)"}}'
	[ "$(text)" = 42 ]
	say tools/call '{"name":"stop_sandbox","arguments":{}}'
	[ "$(text)" = "Sandbox stopped." ]
}

@test "every token has a sandbox of its own" {
	start '["interpreter"]'
	sp_two_owners
	sp_call initialize_sandbox '{}'
	sp_call execute_code '{"code":"x = 1"}'
	export SP_TOKEN=$BOB
	sp_call execute_code '{"code":"print(x)"}'
	[ "$(text)" = "the sandbox is not initialized: call initialize_sandbox first" ]
	sp_call stop_sandbox '{}'
	[ "$(sp_get .result.isError)" = true ]
	export SP_TOKEN=$ALICE
	sp_call execute_code '{"code":"print(x)"}'
	[ "$(text)" = 1 ]
}

@test "the tools are there only where the set is on, with the arguments of the sets that are on" {
	start '["interpreter"]'
	tools
	[ "$(sp_get '[.result.tools[].name] | sort | join(" ")')" = \
		"delete_files diff execute_code initialize_sandbox list_files list_runners read_file read_output reset_session restore_files run_code stop_sandbox upload_file write_file" ]
	[ "$(sp_get '.result.tools[] | select(.name == "execute_code").inputSchema | [(.properties | keys | join(",")), (.required | join(","))] | join(" ")')" = "code,idempotencyKey,language code" ]
	sp_call execute_code '{"language":"python","entrypoint_code":"1"}'
	[ "$(sp_get .result.isError)" = true ]
}

@test "both tool sets: run_code takes the arguments of either" {
	start '["isolator", "interpreter"]'
	tools
	[ "$(sp_get '[.result.tools[].name | select(. == "execute_code")] | length')" = 1 ]
	[ "$(sp_get '.result.tools[] | select(.name == "execute_code").inputSchema.properties | keys | join(",")')" = "additional_files,code,entrypoint_code,entrypoint_filename,idempotencyKey,language,snippet_name" ]
	sp_call initialize_sandbox '{}'
	sp_call execute_code '{"code":"x = 1; print(x)"}'
	[ "$(text)" = 1 ]
	sp_call execute_code '{"language":"python","entrypoint_code":"print(\"x\" in globals())"}'
	[ "$(text)" = $'--- stdout ---\nFalse\n--- stderr ---' ]
	sp_call execute_code '{"code":"print(x)","language":"python"}'
	[ "$(text)" = 1 ]
	sp_call execute_code '{"language":"python"}'
	[ "$(text)" = "code: is missing: give code, or language and entrypoint_code, or snippet_name" ]
	sp_call execute_code '{"code":"1","entrypoint_code":"1"}'
	[[ $(text) == "code: runs in the sandbox of initialize_sandbox and excludes entrypoint_code"* ]]
	sp_call execute_code '{"entrypoint_code":"1"}'
	[ "$(text)" = "language: is missing" ]
}

@test "over standard input and output" {
	jq '.tools.sets = ["interpreter"] | .jailer.socket = ""' "$SP_CONFIG" >"$SP_DIR/c" && mv "$SP_DIR/c" "$SP_CONFIG"
	sp_stdio
	sp_say initialize_sandbox '{"image":"python"}'
	sp_say execute_code '{"code":"x = 41"}'
	sp_say execute_code '{"code":"print(x + 1)"}'
	sp_stdio_end
	[ "$(jq -r 'select(.id == 3) | .result.content[0].text' "$SP_DIR/out")" = 42 ]
}

# Two clients with one token, each in a session of the legacy protocol.
legacy() { # SESSION TOOL ARGUMENTS
	printf '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":%s}}' "$2" "$3" |
		sp_http POST /mcp HTTP_MCP_SESSION_ID="$1" HTTP_MCP_PROTOCOL_VERSION=2025-06-18 HTTP_ACCEPT='application/json, text/event-stream'
	sed -n 's/^data: //p' "$SP_DIR/body" | grep -q . && sed -n 's/^data: //p' "$SP_DIR/body" >"$SP_DIR/b" && mv "$SP_DIR/b" "$SP_DIR/body"
	return 0
}

open_session() {
	echo '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' |
		sp_http POST /mcp HTTP_ACCEPT='application/json, text/event-stream'
	sed -n 's/^[Mm]cp-[Ss]ession-[Ii]d: //p' "$SP_DIR/head"
}

@test "two sessions of one token have a sandbox each" {
	start '["interpreter"]'
	local one two
	one=$(open_session)
	two=$(open_session)
	[ -n "$one" ]
	[ "$one" != "$two" ]
	legacy "$one" initialize_sandbox '{}'
	legacy "$two" initialize_sandbox '{}'
	legacy "$one" execute_code '{"code":"x = 1"}'
	legacy "$two" execute_code '{"code":"x = 2"}'
	legacy "$one" execute_code '{"code":"print(x)"}'
	[ "$(text)" = 1 ]
	legacy "$two" execute_code '{"code":"print(x)"}'
	[ "$(text)" = 2 ]
}
