#!/usr/bin/env bats
# The gateway over FastCGI with the real jailer and the real store: both eras, every tool, files, bad input, owners.

bats_require_minimum_version 1.5.0
load lib.bash
load gateway.bash

# What is in the record, as one line: it must not change when a request is refused.
record() {
	sp_sql 'select (select count(*) from execution), (select count(*) from conversation),
		(select count(*) from file), (select count(*) from blob)' | tr '\n' ' '
	find "$SP_DIR/data/blobs" -type f | wc -l
}

# refuses TOOL ARGUMENTS TEXT: the call is a tool error that says TEXT, and nothing was stored.
refuses() {
	local before
	before=$(record)
	sp_call "$1" "$2"
	[ "$SP_STATUS" = 200 ]
	[ "$(sp_get .result.isError)" = true ]
	[ "$(sp_get '.result|has("structuredContent")')" = false ]
	sp_get '.result.content[0].text' | grep -F -- "$3" || {
		sp_get '.result.content[0].text'
		return 1
	}
	[ "$(record)" = "$before" ]
}

# http_refuses STATUS TEXT METHOD URI [VARIABLE…] with the body on standard input.
http_refuses() {
	local before status=$1 text=$2
	before=$(record)
	shift 2
	sp_http "$@"
	[ "$SP_STATUS" = "$status" ] || {
		cat "$SP_DIR/head" "$SP_DIR/body"
		return 1
	}
	grep -F -- "$text" "$SP_DIR/body" || {
		cat "$SP_DIR/body"
		return 1
	}
	[ "$(record)" = "$before" ]
}

@test "modern: a client discovers and runs" {
	meta='"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'
	echo '{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{'"$meta"'}}' |
		sp_http POST /mcp HTTP_MCP_PROTOCOL_VERSION=2026-07-28 HTTP_MCP_METHOD=server/discover
	[ "$SP_STATUS" = 200 ]
	[ "$(sp_get '.result.supportedVersions[0]')" = 2026-07-28 ]
	echo '{"jsonrpc":"2.0","id":"l","method":"tools/list","params":{'"$meta"'}}' |
		sp_http POST /mcp HTTP_MCP_PROTOCOL_VERSION=2026-07-28 HTTP_MCP_METHOD=tools/list
	[ "$(sp_get '[.result.tools[].name]|join(",")')" = list_runners,run_code,read_output,list_files,read_file,write_file,delete_files,diff,restore_files,upload_file,reset_session ]
	sp_get '.result.tools[1].description' | grep -q '^- python 3'
	sp_get '.result.tools[1].inputSchema.properties.language.enum[]' | grep -qx python
	sp_call run_code "$(python modern 'print(6*7)')"
	[ "$SP_STATUS" = 200 ]
	[ "$(sp_get .result.isError)" = false ]
	[ "$(sp_get .result.resultType)" = complete ]
	[ "$(sp_get '.result.content[0].text')" = 42 ]
	[ "$(sp_get 'details|[.verdict,.exit_code,.signal,.stdout,.stderr]|tojson')" = '["OK",0,null,"42\n",""]' ]
	id=$(sp_get details.execution_id)
	[ "$(sp_sql "select verdict from execution where id='$id'")" = OK ]
}

@test "a run's details hold all that the jail knows" {
	sp_call run_code "$(python modern 'import ctypes, os, sys
ctypes.CDLL(None).unshare(0x10000000)
[os.fork() or os._exit(0) for _ in range(3)]
[os.wait() for _ in range(3)]
sys.exit(4)')"
	local usage='.wall_us > 0 and .cpu_us == .cpu_user_us + .cpu_system_us and .cpu_us > 0 and .memory_peak_bytes > 0 and .rss_peak_bytes > 1000000
		and .pids_peak >= 0 and .pids_hits == 0 and .switches_voluntary > 0 and .switches_forced >= 0'
	[ "$(sp_get "details | $usage")" = true ]
	[ "$(sp_get 'details | [.oom_killed, (.warm | type), .setup_us >= 0, .denied] | tojson')" = '[false,"boolean",true,[{"name":"unshare","number":'"$(uname -m | sed 's/x86_64/272/; t; s/.*/97/')"'}]]' ]
	[[ $(sp_get details.message) == *"exit status 4. The jail refused it: unshare." ]]
	id=$(sp_get details.execution_id)
	[ "$(sp_get '.result.content[0].text')" = "[sallyport] RE: The program ended with exit status 4. The jail refused it: unshare." ]
	sp_call run_code "$(python modern 'import ctypes; ctypes.CDLL(None).unshare(0x10000000); print("went on")')"
	[ "$(sp_get '[details.verdict, .result.content[].text] | tojson')" = '["OK","[sallyport] the jail refused: unshare\n[stdout]\n","went on\n"]' ]
	[ "$(sp_sql "select result->>'denied[0].name', result->>'rss_peak_bytes' > 1000000, result->>'switches_voluntary' > 0 from execution where id='$id'" | tr '|' ' ')" = "unshare 1 1" ]
}

@test "legacy: every revision opens a session and runs a program" {
	for version in 2024-11-05 2025-03-26 2025-06-18 2025-11-25; do
		legacy "$version"
		echo '{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"run_code","arguments":'"$(python legacy 'print(1)')"'}}' |
			sp_http POST /mcp HTTP_MCP_SESSION_ID="$SESSION" HTTP_MCP_PROTOCOL_VERSION="$version"
		[ "$SP_STATUS" = 200 ]
		[ "$(sp_get '[.id,.result.isError,details.stdout]|tojson')" = '["c",false,"1\n"]' ]
		[ "$(sp_get '.result|has("resultType")')" = false ]
		id=$(sp_get details.execution_id)
		[ "$(sp_sql "select s.protocol from execution e join session s on s.id=e.session where e.id='$id'")" = "$version" ]
	done
	sp_http DELETE /mcp HTTP_MCP_SESSION_ID="$SESSION" </dev/null
	[ "$SP_STATUS" = 200 ]
	echo '{"jsonrpc":"2.0","id":1,"method":"ping"}' | sp_http POST /mcp HTTP_MCP_SESSION_ID="$SESSION"
	[ "$SP_STATUS" = 404 ]
}

@test "legacy: a program runs without a session, in the header's revision or the assumed one" {
	local call variables
	call='{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"run_code","arguments":'$(python bare 'open("a", "w"); print(1)')'}}'
	for variables in HTTP_X=1 HTTP_MCP_PROTOCOL_VERSION=2025-03-26 HTTP_MCP_PROTOCOL_VERSION=2025-11-25; do
		sp_http POST /mcp/ "$variables" <<<"$call"
		[ "$SP_STATUS" = 200 ]
		[ "$(sp_get '.result.isError')" = false ]
		[[ $(sp_get '.result.content[-1].text') == *1* ]]
		[ "$(sp_get '.result | [(.content[].type), has("structuredContent")] | tojson')" = '["text","text",true]' ]
		run ! grep -i mcp-session-id "$SP_DIR/head"
	done
	[ "$(sp_sql "select count(*) from execution where conversation_name = 'bare' and session is null and verdict = 'OK'")" = 3 ]
	http_refuses 400 'needs a session' POST /mcp <<<'{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"sallyport://conversation/bare/a"}}'
	http_refuses 400 'initialize' DELETE /mcp </dev/null
	http_refuses 400 'initialize' GET /mcp HTTP_ACCEPT=text/event-stream </dev/null
	http_refuses 415 'compressed' POST /mcp HTTP_CONTENT_ENCODING=gzip <<<"$call"
}

@test "legacy: a session of another owner is unknown" {
	legacy 2025-11-25
	SP_TOKEN=$BOB
	echo '{"jsonrpc":"2.0","id":1,"method":"ping"}' | sp_http POST /mcp HTTP_MCP_SESSION_ID="$SESSION"
	[ "$SP_STATUS" = 404 ]
}

@test "an uploaded file is used and downloaded" {
	sp_call upload_file '{"conversationId":"up","filename":"data.csv","content":"YSxiCjEsMgozLDQK"}'
	[ "$(sp_get .result.isError)" = false ]
	[ "$(sp_get '.result.content[0].text|fromjson|.message')" = "File 'data.csv' uploaded successfully (12 bytes)" ]
	[ "$(sp_get '(.result.content[0].text|fromjson) == details')" = true ]
	url=$(sp_get details.file.url)
	[[ $url =~ ^http://127.0.0.1:8080/files/[0-9a-f]{64}/data.csv$ ]]
	sp_call run_code "$(python up 'import os
t=open("data.csv").read().upper()
open("out.txt","w").write(t)
open("data.csv","a").write("5,6\n")
os.makedirs("sub",exist_ok=True); open("sub/ü .bin","wb").write(b"\xff\x00")
print(os.environ["FILE_BASE_URL"])')"
	[ "$(sp_get details.verdict)" = OK ]
	[ "$(sp_get 'details.stdout')" = "${url%/data.csv}" ]
	[ "$(sp_get '[details.files.created[].name]|tojson')" = '["out.txt","sub/ü .bin"]' ]
	[ "$(sp_get '[details.files.changed[].name]|tojson')" = '["data.csv"]' ]
	binary=$(sp_get 'details.files.created[1].url')
	[[ $binary == *"/sub/%C3%BC%20.bin" ]]
	SP_BARE=1 sp_http GET "${binary#"$SP_URL"}" </dev/null
	[ "$SP_STATUS" = 200 ]
	[ "$(xxd -p "$SP_DIR/body")" = ff00 ]
	grep -qx 'X-Content-Type-Options: nosniff' "$SP_DIR/head"
	SP_BARE=1 sp_http GET "${url#"$SP_URL"}" </dev/null
	[ "$(tail -1 "$SP_DIR/body")" = 5,6 ]
	sp_call run_code "$(python up 'import os; os.remove("out.txt"); print(sorted(os.listdir()))')"
	[ "$(sp_get 'details.files.deleted|tojson')" = '["out.txt"]' ]
	SP_BARE=1 sp_http GET "/files/${url#*/files/}" </dev/null
	[ "$SP_STATUS" = 200 ]
	SP_BARE=1 sp_http GET "${url%data.csv}out.txt" </dev/null
	[ "$SP_STATUS" = 404 ]
}

@test "a downloaded file cannot be active content of this origin" {
	local name
	for name in a.js a.mjs a.css a.html a.svg a.xhtml a.xml a.pdf; do
		sp_call upload_file "{\"conversationId\":\"js\",\"filename\":\"$name\",\"content\":\"YQ==\"}"
		url=$(sp_get details.file.url)
		SP_BARE=1 sp_http GET "${url#"$SP_URL"}" </dev/null
		case $name in
		*s) grep -qx 'Content-Type: text/plain; charset=utf-8' "$SP_DIR/head" ;;
		esac
		grep -qx "Content-Security-Policy: sandbox; default-src 'none'" "$SP_DIR/head"
		grep -qx 'X-Content-Type-Options: nosniff' "$SP_DIR/head"
		grep -q '^Content-Disposition: attachment' "$SP_DIR/head"
	done
}

@test "images come back as images, exactly" {
	sp_call run_code "$(python img 'import struct, zlib
def chunk(t, d): return struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))
png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(b"\0abc")) + chunk(b"IEND", b"")
open("dot.bin", "wb").write(png)
open("not.png", "w").write("no image at all")
_ = open("v.svg", "w").write("<svg/>")')"
	[ "$(sp_get '[.result.content[]|[.type,.mimeType]]|tojson')" = '[["text",null],["image","image/png"]]' ]
	sp_get '.result.content[1].data' | base64 -d >"$SP_DIR/image"
	SP_BARE=1 sp_http GET "$(sp_get 'details.files.created[]|select(.name=="dot.bin").url' | sed "s|^$SP_URL||")" </dev/null
	cmp "$SP_DIR/image" "$SP_DIR/body"
	grep -qx 'Content-Type: image/png' "$SP_DIR/head"
	grep -q '^Content-Disposition: inline;' "$SP_DIR/head"
}

@test "everything a run can be given arrives" {
	sp_call run_code '{"conversationId":"all","language":"py","code":"import os,sys\nprint(sys.argv[1:], sys.stdin.read(), os.environ[\"A\"], os.environ[\"S\"], open(\"t\").read(), open(\"b\",\"rb\").read())",
		"args":["x y",""],"stdin":"in","environment":{"A":"b c"},"secrets":{"S":"geheim-4711"},
		"files":[{"filename":"t","content":"tëxt"},{"filename":"b","content_base64":"AP8="}],"timeout_seconds":20,"memory_mb":128}'
	[ "$(sp_get details.stdout)" = "['x y', ''] in b c *** tëxt b'\\x00\\xff'" ]
	# the program printed the secret, so the record's output has it; nothing else has
	id=$(sp_get details.execution_id)
	sp_call run_code '{"conversationId":"all","language":"python","code":"pass","secrets":{"S":"nirgends-0815"}}'
	[ "$(sp_get details.verdict)" = OK ]
	run ! grep -r -a -q nirgends-0815 "$SP_DIR/data" "$SP_DIR/gateway.log" "$SP_DIR/jailer.log"
	[ -n "$id" ]
}

@test "arguments may be written in several ways" {
	local name
	for name in Python PY python3; do
		sp_call run_code "{\"conversationId\":\"names\",\"language\":\"$name\",\"code\":\"import os; print(os.environ['A'])\",\"stdin\":null,
			\"environment\":[{\"name\":\"A\",\"value\":\"b c\"}],\"timeout_seconds\":null,\"files\":null}"
		[ "$(sp_get details.stdout)" = "b c" ]
	done
	sp_call run_code '{"conversationId":"names","language":"cc","code":"#include <stdio.h>\nint main(void) { int class = 1; printf(\"%d\", class); }"}'
	[ "$(sp_get details.stdout)" = 1 ]
	sp_call run_code '{"conversationId":"names","language":"C++","code":"#include <iostream>\nint main() { std::cout << 2; }"}'
	[ "$(sp_get details.stdout)" = 2 ]
}

@test "a program that fails is never a protocol error" {
	sp_call run_code "$(python bad 'import sys; print("out"); sys.exit("oops")')"
	[ "$(sp_get '[.result.isError,details.verdict,details.exit_code]|tojson')" = '[true,"RE",1]' ]
	[ "$(sp_get '[.result.content[].text]|tojson')" = '["[sallyport] RE: The program ended with exit status 1.\n[stderr]\n","oops\n","[stdout]\n","out\n"]' ]
	sp_call run_code "$(python bad 'import os; os.kill(os.getpid(), 11)')"
	[ "$(sp_get 'details|[.verdict,.exit_code,.signal]|tojson')" = '["SG",null,11]' ]
	sp_call run_code "$(python bad 'while True: pass' | jq -c '.timeout_seconds=1')"
	[ "$(sp_get 'details.verdict')" = TO ]
	sp_call run_code "$(python bad 'x = bytearray(1 << 30)' | jq -c '.memory_mb=64')"
	[ "$(sp_get .result.isError)" = true ]
	sp_call run_code '{"conversationId":"bad","language":"c","code":"int main( {"}'
	[ "$(sp_get 'details|[.verdict,has("compile")]|tojson')" = '["CE",true]' ]
}

@test "output of any bytes is shown safely" {
	local shown left
	sp_call run_code "$(python out 'import sys; _ = sys.stdout.buffer.write(b"a\xffb\x00c\x1b[31m")')"
	[ "$(sp_get 'details.stdout|tojson')" = '"a\\xffb\u0000c\u001b[31m"' ]
	sp_call run_code "$(python out 'print("x"*100000)')"
	[ "$(sp_get 'details|[.verdict,.stdout_truncated,(.stdout|length)]|tojson')" = '["OK",true,65536]' ]
	shown=$(sp_get '.result.content[1].text|length')
	left=$((100001 - 2 * shown))
	[ "$shown" -ge 3000 ]
	[ "$(sp_get '.result.content[3].text|length')" = "$shown" ]
	[ "$(sp_get '.result.content[2].text')" = "[$left bytes of stdout are left out here]" ]
	[[ $(sp_get '.result.content[0].text') == "[sallyport] stdout: $left of 100001 bytes are left out; read_output executionId=$(sp_get details.execution_id) stream=stdout offset=$shown reads on"$'\n[stdout]' ]]
	id=$(sp_get details.execution_id)
	sp_call read_output "{\"executionId\":\"$id\",\"offset\":32768}"
	[ "$(sp_get '[(.result.content[1].text|length), .result.content[0].text, details]|tojson')" = '[8000,"[sallyport] bytes 32768 to 40768 of 100001; offset=40768 reads on\n",{"offset":32768,"length":8000,"size":100001}]' ]
	sp_call read_output "{\"executionId\":\"$id\",\"offset\":98304}"
	[ "$(sp_get '[(.result.content[1].text|length), .result.content[0].text]|tojson')" = '[1697,"[sallyport] this is the end: 100001 bytes\n"]' ]
	refuses read_output "{\"executionId\":\"$id\",\"offset\":100002}" offset
	refuses read_output "{\"executionId\":\"$id\",\"stream\":\"stdin\"}" stream
	refuses read_output '{"executionId":"../x"}' executionId
	TOKEN=$SP_TOKEN SP_TOKEN=$BOB
	refuses read_output "{\"executionId\":\"$id\"}" executionId
	SP_TOKEN=$TOKEN
	sp_call run_code "$(python out 'open(b"n\xff\n", "w").write("x")')"
	[ "$(sp_get 'details.files.created[0].name|tojson')" = '"n\\xff\n"' ]
	SP_BARE=1 sp_http GET "$(sp_get 'details.files.created[0].url' | sed "s|^$SP_URL||")" </dev/null
	[ "$(cat "$SP_DIR/body")" = x ]
}

@test "list_runners lists languages with their limits" {
	sp_call list_runners '{}'
	[ "$(sp_get 'details.languages|map(.language)|sort|tojson')" = '["bash","c","cpp","go","javascript","python","typescript"]' ]
	[ "$(sp_get 'details.languages[]|select(.language=="python")|.available')" = true ]
	[ "$(sp_get details.limits.timeout_seconds_max)" = 300 ]
	sp_get '.result.content[0].text' | grep -q '^- python'
}

@test "bad input: JSON" {
	http_refuses 400 'Parse error' POST /mcp <<<'not json'
	http_refuses 400 'Parse error' POST /mcp <<<'{"a":'
	http_refuses 400 '64 levels' POST /mcp < <(printf '[%.0s' {1..10000})
	http_refuses 400 'there before' POST /mcp <<<'{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}'
	http_refuses 400 'UTF-8' POST /mcp < <(printf '{"a":"\xff"}')
	http_refuses 400 'Parse error' POST /mcp </dev/null
	http_refuses 415 'application/json' POST /mcp CONTENT_TYPE=text/plain <<<'{}'
}

@test "bad input: 100 MB body" {
	local status=/proc/$SP_GATEWAY_PID/status before most
	head -c 100000000 /dev/zero >"$SP_DIR/big"
	echo 5 >"/proc/$SP_GATEWAY_PID/clear_refs" # VmHWM begins at what is in use now: proc(5)
	before=$(awk '/VmRSS/{print $2}' "$status")
	http_refuses 413 'at most 8 MiB' POST /mcp <"$SP_DIR/big"
	rm "$SP_DIR/big"
	most=$(awk '/VmHWM/{print $2}' "$status")
	[ $((most - before)) -lt 40000 ]
}

@test "bad input: arguments" {
	refuses run_code '{}' conversationId
	refuses run_code '{"conversationId":"n","language":"python"}' code
	refuses run_code '{"conversationId":"n","code":"1"}' language
	refuses run_code '{"conversationId":["n"],"language":"python","code":"1"}' conversationId
	refuses run_code '{"conversationId":"n","language":"cobol","code":"1"}' 'cobol" is unknown; there are bash, c, '
	refuses run_code '{"conversationId":"n","language":"Pyton","code":"1"}' 'did you mean "python"?'
	refuses run_code '{"conversationId":"n","language":"python","code":"1","timeout":1}' 'timeout: unknown member, did you mean "timeout_seconds"?'
	refuses run_code '{"conversationId":"n","language":"python","code":"1","network":true}' 'network: there is no network on this server (network.allow'
	refuses run_code '{"conversationId":"n","language":"python","code":"1","timeout_seconds":301}' 'timeout_seconds: must be between 1 and 300, not 301'
	refuses run_code '{"conversationId":"n","language":"python","code":"1","memory_mb":999999}' 'memory_mb: must be between 1 and 2048, not 999999'
	refuses run_code '{"conversationId":"n","language":"python","code":"1","environment":{"a=b":"c"}}' environment
	refuses run_code '{"conversationId":"n","language":"python","code":"1","environment":{"A":"1"},"secrets":{"A":"2"}}' A
	refuses run_code '{"conversationId":"n","language":"python","code":"1","files":[{"filename":"a"}]}' 'files[0]'
	refuses run_code '{"conversationId":"n","language":"python","code":"1","files":[{"filename":"a","content_base64":"*"}]}' 'files[0].content_base64'
	refuses run_code '{"conversationId":"n","language":"python","code":"1","files":[{"filename":"../a","content":""}]}' 'files[0].filename'
	refuses run_code "$(printf '{"conversationId":"%0200d","language":"python","code":"1"}' 0)" conversationId
	refuses upload_file '{"conversationId":"n","filename":"a","content":"not base64"}' 'is wrong; write_file takes plain text'
	refuses upload_file '{"conversationId":"n","filename":"a"}' content
}

@test "bad input: file names" {
	refuses upload_file '{"conversationId":"n","filename":"a//b","content":""}' filename
	refuses upload_file '{"conversationId":"n","filename":"..","content":""}' filename
	refuses upload_file '{"conversationId":"n","filename":".","content":""}' filename
	refuses upload_file '{"conversationId":"n","filename":"","content":""}' filename
	refuses upload_file '{"conversationId":"n","filename":"../../etc/passwd","content":""}' filename
	refuses upload_file '{"conversationId":"n","filename":"a\u0000b","content":""}' filename
	refuses upload_file '{"conversationId":"n","filename":"a\nb","content":""}' filename
	refuses upload_file "$(printf '{"conversationId":"n","filename":"%05000d","content":""}' 0)" filename
	printf '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"upload_file","arguments":{"conversationId":"n","filename":"\xff\xfe","content":""}}}' >"$SP_DIR/bytes"
	http_refuses 400 UTF-8 POST /mcp <"$SP_DIR/bytes"
}

@test "bad input: tokens" {
	http_refuses 401 'Missing Authorization' POST /mcp HTTP_AUTHORIZATION= <<<'{}'
	grep -qx 'WWW-Authenticate: Bearer realm="sallyport"' "$SP_DIR/head"
	http_refuses 401 invalid_token POST /mcp HTTP_AUTHORIZATION='Bearer sp_alice_wrong' <<<'{}'
	grep -q 'WWW-Authenticate: .*error="invalid_token"' "$SP_DIR/head"
	sp_token carol
	sp_call list_runners '{}'
	[ "$SP_STATUS" = 200 ]
	id=$("$SP_BIN/sallyport" token list --config "$SP_CONFIG" --json | jq -r 'if type=="array" then .[] else . end|select(.owner=="carol").id' | head -1)
	"$SP_BIN/sallyport" token revoke --config "$SP_CONFIG" "$id"
	http_refuses 401 invalid_token POST /mcp <<<'{}'
	run ! grep -q "$SP_TOKEN" "$SP_DIR/gateway.log" "$SP_DIR/jailer.log"
}

@test "two owners, one conversationId: two conversations" {
	sp_call upload_file '{"conversationId":"shared","filename":"a.txt","content":"YWxpY2U="}'
	url=$(sp_get details.file.url)
	SP_TOKEN=$BOB
	sp_call run_code "$(python shared 'import os; print(os.listdir()); _ = open("a.txt","w").write("bob")')"
	[ "$(sp_get details.stdout)" = '[]' ]
	[ "$(sp_get 'details.files.created[0].url')" != "$url" ]
	SP_BARE=1 sp_http GET "${url#"$SP_URL"}" </dev/null
	[ "$(cat "$SP_DIR/body")" = alice ]
}

@test "unknown tools and origins are refused" {
	sp_call nothing '{}'
	[ "$SP_STATUS" = 200 ]
	[ "$(sp_get '[.error.code,.error.message]|tojson')" = '[-32602,"Unknown tool: nothing"]' ]
	for path in /.well-known/oauth-protected-resource /.well-known/oauth-authorization-server/mcp /nothing; do
		http_refuses 404 /mcp GET $path </dev/null
		[ "$(sp_get .error)" = not_found ] # clients of OAuth show these two
		[[ $(sp_get .error_description) == *" "* ]]
	done
	http_refuses 403 Origin POST /mcp HTTP_ORIGIN=http://evil.example.com <<<'{}'
	http_refuses 403 Host POST /mcp HTTP_HOST=evil.example.com <<<'{}'
	http_refuses 405 method PUT /mcp </dev/null
}
