#!/usr/bin/env bats
# shellcheck disable=SC2016 # dollars in the programs are not for this shell
# Resources, prompts and completion over the real record: pages, parts, links, other owners, both eras.

bats_require_minimum_version 1.5.0
load lib.bash
load gateway.bash

setup_file() {
	sp_setup
	jq '.tools.links = true' "$SP_CONFIG" >"$SP_DIR/c" && mv "$SP_DIR/c" "$SP_CONFIG"
	sp_start_jailer
	sp_start_gateway
	sp_two_owners
}

read_uri() {
	modern resources/read "\"uri\":\"$1\"," "$1"
}

# legacy VERSION METHOD PARAMS: in a session of its own.
legacy() {
	printf '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"%s","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' \
		"$1" | sp_http POST /mcp
	local session
	session=$(sed -n 's/^Mcp-Session-Id: //p' "$SP_DIR/head")
	printf '{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}' "$2" "$3" | sp_http POST /mcp HTTP_MCP_SESSION_ID="$session"
}

@test "what a run made is linked, listed and read" {
	sp_call run_code '{"conversationId":"mine & yours","language":"bash","code":"echo héllo > a.txt; printf \"\\\\0\\\\377\" > b.bin; mkdir d; echo x > \"d/c d.csv\""}'
	[ "$(sp_get '[.result.content[] | select(.type == "resource_link") | .uri] | sort | join(" ")')" = \
		"sallyport://conversation/mine%20%26%20yours/a.txt sallyport://conversation/mine%20%26%20yours/b.bin sallyport://conversation/mine%20%26%20yours/d/c%20d.csv" ]
	[ "$(sp_get '[.result.content[] | select(.type == "resource_link")][0] | .name + " " + .mimeType + " " + (.size | tostring)')" = "a.txt text/plain 7" ]
	read_uri "sallyport://conversation/mine%20%26%20yours/a.txt"
	[ "$(sp_get '.result.contents[0].text')" = héllo ]
	[ "$(sp_get '.result.contents[0].mimeType')" = text/plain ]
	[ "$(sp_get '.result | .cacheScope + .resultType')" = privatecomplete ]
	read_uri "sallyport://conversation/mine%20%26%20yours/b.bin"
	[ "$(sp_get '.result.contents[0].blob' | base64 -d | od -An -tx1)" = " 00 ff" ]
	modern resources/list ''
	[ "$(sp_get '[.result.resources[] | select(.name == "d/c d.csv") | .size] | first')" = 2 ]
	modern resources/templates/list ''
	[ "$(sp_get '.result.resourceTemplates | length')" = 2 ]
}

@test "links go to revisions that know them, the text to all" {
	legacy 2025-03-26 tools/call '{"name":"run_code","arguments":{"conversationId":"l","language":"bash","code":"echo 1 > f"}}'
	[ "$(sp_get '[.result.content[].type] | unique | join(" ")')" = text ]
	[[ $(sp_get '[.result.content[].text] | join(" ")') == *"new f "* ]]
	legacy 2025-06-18 tools/call '{"name":"run_code","arguments":{"conversationId":"l","language":"bash","code":"echo 2 > f"}}'
	[ "$(sp_get '[.result.content[].type] | unique | join(" ")')" = "resource_link text" ]
}

@test "all of a cut output is a resource" {
	local uri offset=0 length id
	sp_call run_code '{"conversationId":"long","language":"python","code":"print(\"ä\" * 100000, end=\"\")"}'
	[ "$(sp_get details.stdout_truncated)" = true ]
	id=$(sp_get details.execution_id)
	uri=sallyport://execution/$id/stdout
	read_uri "$uri"
	[ "$(sp_get '.result.contents[0].text | length')" = 100000 ]
	: >"$SP_DIR/whole"
	next="$uri?length=65535"
	while [ "$next" != null ]; do
		read_uri "$next"
		sp_get '.result.contents[0].text' | head -c -1 >>"$SP_DIR/whole" # jq's newline
		[ "$(sp_get '.result.contents[0]._meta["sallyport/offset"]')" = "$offset" ]
		length=$(sp_get '.result.contents[0]._meta["sallyport/length"]')
		offset=$((offset + length))
		next=$(sp_get '.result.contents[0]._meta["sallyport/next"]')
	done
	[ "$offset" = 200000 ]
	python3 -c 'import sys; sys.stdout.write("ä" * 100000)' | cmp - "$SP_DIR/whole"
	modern resources/list '' # files only: there is no end of outputs
	[ "$(sp_get "[.result.resources[] | select(.uri | startswith(\"sallyport://execution/\"))] | length")" = 0 ]
	modern completion/complete '"ref":{"type":"ref/resource","uri":"sallyport://execution/{id}/{stream}{?offset,length}"},"argument":{"name":"id","value":"'"${id:0:8}"'"},'
	[ "$(sp_get '.result.completion.values[0]')" = "$id" ]
	read_uri "$uri?offset=1&length=1" # within a character: bytes as they are
	[ "$(sp_get '.result.contents[0].blob' | base64 -d | od -An -tx1)" = " a4" ]
}

@test "bad URIs and cursors are refused" {
	local uri
	sp_call run_code '{"conversationId":"private","language":"bash","code":"echo secret | tee s"}'
	uri=sallyport://execution/$(sp_get details.execution_id)/stdout
	for bad in "$uri?offset=8" "$uri?offset=-1" "$uri?length=0" "$uri?length=99999999" "$uri?x=1"; do
		read_uri "$bad"
		[ "$SP_STATUS" = 200 ]
		[ "$(sp_get .error.code)" = -32602 ]
	done
	for bad in "${uri%/stdout}/stdin" "${uri%?}" "sallyport://execution/x/stdout" "sallyport://conversation/private" \
		"sallyport://conversation/private/" "sallyport://conversation/private/%00" "sallyport://conversation/private/nothing" "$uri#x" other://x; do
		read_uri "$bad"
		[ "$(sp_get .error.code)" = -32602 ]
		[ "$(sp_get .error.data.uri)" = "$bad" ]
	done
	legacy 2025-11-25 resources/read "{\"uri\":\"sallyport://conversation/private/nothing\"}"
	[ "$(sp_get '.error | (.code | tostring) + .data.uri')" = "-32002sallyport://conversation/private/nothing" ]
	SP_TOKEN=$BOB
	read_uri "$uri"
	[ "$(sp_get .error.code)" = -32602 ]
	read_uri sallyport://conversation/private/s
	[ "$(sp_get .error.code)" = -32602 ]
	modern resources/list ''
	[ "$(sp_get '[.result.resources[] | select(.uri | startswith("skill://") | not)] | length')" = 0 ]
}

@test "a list has pages" {
	local cursor pages=0 names=0
	sp_call run_code '{"conversationId":"many","language":"bash","code":"for i in {1..250}; do echo $i > $(printf %03d $i); done"}'
	cursor=
	while :; do
		modern resources/list "${cursor:+\"cursor\":\"$cursor\",}"
		names=$((names + $(sp_get '[.result.resources[] | select(.uri | startswith("sallyport://conversation/many/"))] | length')))
		pages=$((pages + 1))
		[ "$(sp_get '.result|has("nextCursor")')" = true ] || break
		cursor=$(sp_get .result.nextCursor)
	done
	[ "$names" = 250 ]
	[ "$pages" -ge 3 ]
	modern resources/list ''
	cursor=$(sp_get .result.nextCursor)
	modern resources/list "\"cursor\":\"A${cursor:1}\","
	[ "$(sp_get .error.code)" = -32602 ]
	SP_TOKEN=$BOB
	modern resources/list "\"cursor\":\"$cursor\","
	[ "$(sp_get .error.code)" = -32602 ]
}

@test "the prompt carries task, language and file" {
	modern prompts/list ''
	[ "$(sp_get '.result.prompts[0].name')" = solve_with_code ]
	modern prompts/get '"name":"solve_with_code","arguments":{"task":"Count the lines","language":"go","file":"in.csv"},' solve_with_code
	[[ $(sp_get '.result.messages[0].content.text') == *"run_code"*"Count the lines"*"Language: go"*"file in.csv"* ]]
	modern prompts/get '"name":"solve_with_code",' solve_with_code
	[ "$(sp_get .error.code)" = -32602 ]
}

@test "completion knows languages, conversations and files" {
	local ref='"ref":{"type":"ref/prompt","name":"solve_with_code"}'
	sp_call upload_file '{"conversationId":"quarterly","filename":"sales.csv","content":"YQ=="}'
	modern completion/complete "$ref,\"argument\":{\"name\":\"language\",\"value\":\"pyt\"},"
	[ "$(sp_get '.result.completion.values[0]')" = python ]
	modern completion/complete "$ref,\"argument\":{\"name\":\"conversationId\",\"value\":\"qua\"},"
	[ "$(sp_get '.result.completion.values | join(" ")')" = quarterly ]
	modern completion/complete "$ref,\"argument\":{\"name\":\"file\",\"value\":\"sa\"},\"context\":{\"arguments\":{\"conversationId\":\"quarterly\"}},"
	[ "$(sp_get '.result.completion.values | join(" ")')" = sales.csv ]
	modern completion/complete '"ref":{"type":"ref/resource","uri":"sallyport://conversation/{conversation}/{+path}{?offset,length}"},"argument":{"name":"path","value":""},"context":{"arguments":{"conversation":"quarterly"}},'
	[ "$(sp_get '.result.completion.values | join(" ")')" = sales.csv ]
	modern completion/complete '"ref":{"type":"ref/resource","uri":"sallyport://execution/{id}/{stream}{?offset,length}"},"argument":{"name":"stream","value":"stde"},'
	[ "$(sp_get '.result.completion.values | join(" ")')" = stderr ]
	export SP_TOKEN=$BOB
	modern completion/complete "$ref,\"argument\":{\"name\":\"conversationId\",\"value\":\"\"},"
	[ "$(sp_get '.result.completion.values | length')" = 0 ]
}
