#!/usr/bin/env bats
# What clients and models send is read as it is meant: types, unknown members, nulls, ids, byte order marks, base64, revisions. In both eras,
# over standard input and output, in sessions, and in /v1/; with tools.strict as the schemas have it. (lib/base/bind_meant.h)

bats_require_minimum_version 1.5.0
load lib.bash
load gateway.bash

setup_file() {
	unset SP_EXCHANGES # whose judge holds requests against the schemas
	sp_setup
	jq '.api.enabled = true' "$SP_CONFIG" >"$SP_CONFIG.new"
	mv "$SP_CONFIG.new" "$SP_CONFIG"
	sp_start_jailer
	sp_start_gateway
	sp_token alice
}

text() {
	sp_get '[.result.content[].text] | join("|")'
}

# says TEXT TOOL ARGUMENTS: in both eras, and over standard input and output.
says() {
	local wanted=$1 era
	shift
	sp_call "$@"
	[ "$(text)" = "${wanted%$'\n'}" ] || sp_die "modern: $(<"$SP_DIR/body")"
	for era in 2024-11-05 2025-11-25; do
		printf '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":%s}}' "$@" | sp_http POST /mcp HTTP_MCP_PROTOCOL_VERSION=$era
		[ "$(text)" = "${wanted%$'\n'}" ] || sp_die "$era: $(<"$SP_DIR/body")"
	done
}

@test "texts that are exactly a value of the schema's type are that value" {
	# shellcheck disable=SC2016 # the guest's shell expands it
	code='"conversationId":"t","language":"bash","code":"echo $* $A; cat; cat f"'
	says 'x 2 5
inputline' run_code '{'"$code"',"args":"[\"x\",\"2\"]","environment":"{\"A\":\"5\"}","files":"[{\"filename\":\"f\",\"content\":\"line\"}]","stdin":"input","timeout_seconds":"20","memory_mb":"128","session":"false","display":"true"}'
	says 'x 2 5
input' run_code '{'"${code/; cat f/}"',"args":["x",2],"environment":[{"name":"A","value":5}],"stdin":"input","session":"False"}'
	says 'timeout_seconds: must be an integer, not a string' run_code '{'"$code"',"timeout_seconds":"20s"}'
	says 'session: must be a boolean, not a string' run_code '{'"$code"',"session":"maybe"}'
	says 'files: must be an array of objects, not a string' run_code '{'"$code"',"files":"[{]"}'
	says 'files[0]: must have exactly one of content and content_base64' run_code '{'"$code"',"files":"[{\"filename\":\"f\",\"content\":\"\",\"content_base64\":\"\"}]"}'
	sp_call delete_files '{"conversationId":"t","paths":"[\"f\"]"}'
	[ "$(sp_get .result.isError)" = false ]
}

@test "unknown members are named in one line and ignored, near misses are refused" {
	code='"conversationId":"u","language":"python","code":"print(42)"'
	says '[sallyport] ignored: task_progress
[stdout]
|42
' run_code '{'"$code"',"task_progress":"- [ ] x"}'
	says '[sallyport] ignored: sessionId, toolCallId, action, chatInput
[stdout]
|42
' run_code '{'"$code"',"sessionId":"s","toolCallId":"t","action":"a","chatInput":{"a":[1]}}'
	says '[sallyport] ignored: x
|(no output)
' run_code '{"conversationId":"u","language":"bash","code":":","x":1}'
	for name in timeout:timeout_seconds lang:language conversation_id:conversationId env:environment; do
		says "${name%:*}: unknown member, did you mean \"${name#*:}\"?" run_code '{'"$code"',"'"${name%:*}"'":"1"}'
	done
	sp_call run_code '{"conversationId":"u","language":"bash","code":"echo out; exit 3","x":1}'
	[ "$(text)" = '[sallyport] RE: The program ended with exit status 3.
[sallyport] ignored: x
[stdout]
|out' ]
	# Other tools say it behind their answer.
	sp_call write_file '{"conversationId":"u","path":"a.txt","content":"a","explanation":"why"}'
	[ "$(sp_get '.result.content | length')" = 2 ]
	[ "$(sp_get '.result.content[1].text')" = '[sallyport] ignored: explanation' ]
	for call in 'list_files "after":"."' 'read_file "path":"a.txt"' 'upload_file "filename":"a.txt","content":"YQ=="' 'delete_files "paths":["a.txt"]'; do
		sp_call "${call%% *}" '{"conversationId":"u",'"${call#* }"',"requestId":7}'
		[ "$(sp_get .result.isError)" = false ]
		grep -q 'ignored: .*requestId' "$SP_DIR/body"
	done
}

@test "a session reads its arguments in the same way" {
	session='{"conversationId":"s","language":"python","session":"true","timeout_seconds":"30","sessionId":"n8n","code":'
	sp_call run_code "$session\"x = 41\"}"
	sp_call run_code "$session\"print(x + 1)\"}"
	[[ "$(text)" == *'ignored: sessionId'*'42'* ]]
}

@test "null, an empty cursor, ids like 1.0, a byte order mark, half of a surrogate pair" {
	for members in '' ',"params":null' ',"params":{"cursor":null}' ',"params":{"cursor":""}'; do
		for method in tools/list prompts/list resources/list resources/templates/list; do
			printf '{"jsonrpc":"2.0","id":1.0,"method":"%s"%s}' $method "$members" | sp_http POST /mcp
			[ "$(sp_get '.result | type')" = object ] || sp_die "$method $members: $(<"$SP_DIR/body")"
			[ "$(jq -c .id "$SP_DIR/body")" = 1 ]
		done
	done
	printf '{"jsonrpc":"2.0","id":1.5,"method":"ping"}' | sp_http POST /mcp
	[ "$(sp_get .error.code)" = -32600 ]
	printf '\xef\xbb\xbf{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_runners","arguments":null}}' | sp_http POST /mcp
	[ "$(sp_get '.result.isError')" = false ]
	printf '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_runners","arguments":"{}"}}' | sp_http POST /mcp
	[[ "$(sp_get .error.message)" == 'Invalid params: arguments: must be an object, not a text: send the object itself'* ]]
	sp_call run_code '{"conversationId":"h","language":"python","code":"print(ascii(\"a\ud83d\"))"}'
	[ "$(text)" = "'a\\ufffd'" ]
	printf '{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{"name":"no","arguments":null}}' | sp_http POST /mcp
	[[ "$(sp_get .error.message)" == 'Unknown prompt'* ]]
}

@test "standard input and output: a byte order mark, an id 1.0 that is cancelled, texts of values" {
	sp_stdio
	# shellcheck disable=SC2016 # the guest's shell expands it
	printf '\xef\xbb\xbf{"jsonrpc":"2.0","id":2.0,"method":"tools/call","params":{"name":"run_code","arguments":{"conversationId":"o","language":"bash","code":"echo $1","args":"[\\"hi\\"]","toolCallId":"x"}}}\n' >&9
	sp_until "" grep -q '"id":2' "$SP_DIR/out"
	grep -q 'ignored: toolCallId' "$SP_DIR/out"
	grep -q 'hi\\n' "$SP_DIR/out"
	sp_stdio_end
}

@test "base64 with line ends, without padding, as a data: URI" {
	for content in 'aGVs\nbG8=\n' aGVsbG8 'data:text/plain;base64,aGVsbG8='; do
		sp_call upload_file '{"conversationId":"b","filename":"a","content":"'"$content"'"}'
		[[ "$(text)" == *'(5 bytes)'* ]]
		sp_call write_file '{"conversationId":"b","path":"b","content_base64":"'"$content"'"}'
		[[ "$(text)" == *'5 bytes'* ]]
		says hello run_code '{"conversationId":"b","language":"bash","code":"cat c","files":[{"filename":"c","content_base64":"'"$content"'"}]}'
	done
	says 'content: not base64: character 6 is wrong; write_file takes plain text' upload_file '{"conversationId":"b","filename":"a","content":"hello, world"}'
}

@test "a later revision is negotiated, or told what there is" {
	later=HTTP_MCP_PROTOCOL_VERSION=2027-06-01
	echo '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2027-06-01","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' |
		sp_http POST /mcp $later
	[ "$(sp_get .result.protocolVersion)" = 2025-11-25 ]
	echo '{"jsonrpc":"2.0","id":0,"method":"tools/list"}' | sp_http POST /mcp $later
	[ "$SP_STATUS $(sp_get .error.code) $(sp_get .error.data.requested)" = '400 -32022 2027-06-01' ]
	[ "$(sp_get '.error.data.supported | join(" ")')" = 2026-07-28 ]
	echo '{"jsonrpc":"2.0","id":0,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2027-06-01"}}}' | sp_http POST /mcp $later HTTP_MCP_METHOD=tools/list
	[ "$SP_STATUS $(sp_get .error.code)" = '400 -32022' ]
	echo '{"jsonrpc":"2.0","id":0,"method":"ping"}' | sp_http POST /mcp HTTP_MCP_PROTOCOL_VERSION=2024-01-01
	[[ "$SP_STATUS $(sp_get .error.message)" == '400 '*'supported: 2024-11-05, '* ]]
}

@test "/v1/ reads the same texts" {
	# shellcheck disable=SC2016 # the guest's shell expands it
	echo '{"lang":"bash","code":"echo $1","args":"[\"v\"]","user_id":7,"timeout":5}' | sp_http POST /v1/exec
	[ "$(sp_get .stdout)" = v ]
	for parameters in "filename*=UTF-8''%e2%82%ac.txt" "filename=x.txt; filename*=UTF-8''%e2%82%ac.txt" 'filename="C:\Users\me\€.txt"'; do
		printf -- '--b\r\nContent-Disposition: form-data; name="file"; %s\r\n\r\nx\r\n--b--\r\n' "$parameters" |
			sp_http POST /v1/upload 'CONTENT_TYPE=multipart/form-data; boundary=b'
		[ "$(sp_get '.files[0].filename')" = €.txt ] || sp_die "$parameters: $(<"$SP_DIR/body")"
	done
}

@test "tools.strict takes arguments only as the schemas have them" {
	sp_stop "$SP_GATEWAY_PID"
	SALLYPORT_TOOLS_STRICT=true sp_start_gateway
	code='"conversationId":"t","language":"bash","code":"echo 1"'
	says 'timeout_seconds: must be an integer, not a string' run_code '{'"$code"',"timeout_seconds":"20"}'
	says 'args: must be an array of strings, not a string' run_code '{'"$code"',"args":"[]"}'
	says 'task_progress: unknown member' run_code '{'"$code"',"task_progress":"x"}'
	sp_call upload_file '{"conversationId":"b","filename":"a","content":"aGVsbG8"}'
	[[ "$(text)" == 'content: not base64: character 8 is missing'* ]]
}
