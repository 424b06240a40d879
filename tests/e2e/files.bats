#!/usr/bin/env bats
# The files of a conversation as clients see and change them: the tools for files.

setup_file() {
	load lib
	sp_serve
}
teardown_file() {
	sp_teardown
}
setup() {
	load lib
	bats_require_minimum_version 1.5.0
}

text() {
	sp_get '[.result.content[] | select(.type == "text").text] | join("")'
}
refused() { # PART-OF-THE-TEXT
	[ "$(sp_get .result.isError)" = true ]
	[[ $(text) == *"$1"* ]] || { text >&2 && return 1; }
}
write() { # CONVERSATION PATH TEXT
	sp_call write_file "$(jq -nc --arg c "$1" --arg p "$2" --arg t "$3" '{conversationId: $c, path: $p, content: $t}')"
}
bash_code() { # CONVERSATION CODE
	sp_call run_code "$(jq -nc --arg c "$1" --arg t "$2" '{conversationId: $c, language: "bash", code: $t}')"
	[ "$(sp_get .result.isError)" = false ]
}

@test "files are written and deleted" {
	write w notes/a.txt $'one\ntwo\nthree\n'
	[[ $(text) == "wrote notes/a.txt (text/plain, 14 bytes) $SP_URL/files/"* ]]
	write w ./b.csv 'x,y'
	sp_call write_file '{"conversationId":"w","path":"/data/raw/c.bin","content_base64":"AAEC"}'
	[ "$(sp_get details.file.name)" = raw/c.bin ]
	bash_code w 'cat notes/a.txt; find . -type f | sort; wc -c <raw/c.bin'
	[ "$(text)" = $'one\ntwo\nthree\n./b.csv\n./notes/a.txt\n./raw/c.bin\n3' ]
	sp_call list_files '{"conversationId":"w"}'
	[[ $(text) == "3 files, 20 bytes; address: $SP_URL/files/"*/NAME$'\nb.csv (text/csv, 3 bytes)\nnotes/a.txt (text/plain, 14 bytes)\nraw/c.bin (application/octet-stream, 3 bytes)' ]]
	[ "$(sp_get 'details | [.count, .bytes, .files[1].name, .next] | tojson')" = '[3,20,"notes/a.txt",null]' ]
	for path in notes ./notes /data/notes/ /mnt/data/notes; do
		sp_call list_files "{\"conversationId\":\"w\",\"path\":\"$path\"}"
		[ "$(sp_get details.count)" = 1 ]
	done
	for path in / . /data /data/ /mnt/data /mnt/data/; do
		sp_call list_files "{\"conversationId\":\"w\",\"path\":\"$path\"}"
		[ "$(sp_get details.count)" = 3 ]
	done
	sp_call read_file '{"conversationId":"w","path":"/mnt/data/b.csv"}'
	[ "$(text)" = x,y ]
	sp_call list_files '{"conversationId":"w","after":"b.csv"}'
	[ "$(sp_get 'details.files | map(.name) | join(" ")')" = "notes/a.txt raw/c.bin" ]
	sp_call read_file '{"conversationId":"w","path":"notes/a.txt"}'
	[ "$(text)" = $'one\ntwo\nthree' ]
	[ "$(sp_get 'details | [.start_line, .end_line, .whole] | tojson')" = '[1,3,true]' ]
	sp_call read_file '{"conversationId":"w","path":"notes/a.txt","start_line":2,"end_line":2}'
	[ "$(text)" = $'[sallyport] the file goes on; start_line=3 reads on\ntwo' ]
	sp_call read_file '{"conversationId":"w","path":"raw/c.bin"}'
	[[ $(text) == "raw/c.bin (application/octet-stream, 3 bytes) $SP_URL/files/"* ]]
	sp_call delete_files '{"conversationId":"w","paths":["notes","/data/raw/c.bin"]}'
	[ "$(text)" = "removed 2 files" ]
	sp_call upload_file '{"conversationId":"w","filename":"/data/up/deep/u.txt","content":"dXA="}'
	[ "$(sp_get details.file.name)" = up/deep/u.txt ]
	bash_code w 'cat up/deep/u.txt; rm -r up'
	[ "$(sp_get details.stdout)" = up ]
	bash_code w 'find . -type f'
	[ "$(text)" = ./b.csv ]
	[ "$(sp_sql "select count(*) from audit where kind = 'file.delete'")" = 1 ]
	run -0 "$SP_BIN/sallyport" verify --config "$SP_CONFIG"
}

@test "an image is shown, a large one as a copy" {
	local png=iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==
	sp_call write_file "{\"conversationId\":\"i\",\"path\":\"p.png\",\"content_base64\":\"$png\"}"
	sp_call read_file '{"conversationId":"i","path":"p.png"}'
	[ "$(sp_get '.result.content | map(.type) | join(" ")')" = "text image" ]
	[ "$(sp_get '.result.content[1] | .mimeType + .data')" = "image/png$png" ]
	bash_code i 'cp p.png big.png; head -c 600000 /dev/zero >>big.png'
	sp_call read_file '{"conversationId":"i","path":"big.png"}'
	[ "$(sp_get '.result.content | map(.type) | join(" ")')" = "text image" ]
	[[ $(text) == "big.png (image/png, "*"is shown as a smaller copy: it has 1 x 1 pixels"* ]]
}

@test "long texts come in parts, a line that is too long is cut" {
	bash_code l 'seq 1 20000 >n; head -c 200000 /dev/zero | tr "\0" x >x; printf "a\nb" >open; : >empty; printf "a\xff\n" >latin'
	sp_call read_file '{"conversationId":"l","path":"n"}'
	local next
	next=$(text | sed -nE 's/.*start_line=([0-9]+) reads on/\1/p')
	[ "$(sp_get details.end_line)" = $((next - 1)) ]
	[ "$(text | tail -n 2)" = $((next - 1)) ]
	sp_call read_file "{\"conversationId\":\"l\",\"path\":\"n\",\"start_line\":$next}"
	[ "$(text | sed -n 2p)" = "$next" ]
	sp_call read_file '{"conversationId":"l","path":"n","start_line":20001}'
	refused "start_line: is beyond the end: the file has 20000 lines"
	sp_call read_file '{"conversationId":"l","path":"x"}'
	[[ $(text) == *"[sallyport] line 1 is longer than 7900 bytes and cut"* ]]
	sp_call read_file '{"conversationId":"l","path":"open"}'
	[ "$(text)" = $'a\nb' ]
	[ "$(sp_get 'details | [.end_line, .whole] | tojson')" = '[2,true]' ]
	sp_call read_file '{"conversationId":"l","path":"empty"}'
	[ "$(text)" = "[sallyport] the file is empty" ]
	sp_call read_file '{"conversationId":"l","path":"latin"}'
	[ "$(text)" = 'a\xff' ]
	sp_call read_file '{"conversationId":"l","path":"n","start_line":5,"end_line":4}'
	refused "end_line: is before start_line"
}

@test "many files are listed in pages" {
	# shellcheck disable=SC2016 # the program's
	bash_code many 'mkdir d; for i in $(seq -w 1 1500); do echo >d/$i; done'
	sp_call list_files '{"conversationId":"many"}'
	local shown next
	shown=$(sp_get 'details.files | length') next=$(printf 'd/%04d' "$(sp_get 'details.files | length')")
	[ "$shown" -gt 100 ]
	[ "$(text | wc -c)" -le 9000 ]
	[ "$(sp_get 'details | [.count, .next] | tojson')" = "[1500,\"$next\"]" ]
	[[ $(text) == *"[sallyport] and $((1500 - shown)) more: after=$next" ]]
	sp_call list_files '{"conversationId":"many","path":"d","after":"d/1400"}'
	[ "$(sp_get 'details | [(.files | length), .files[0].name, .next] | tojson')" = '[100,"d/1401",null]' ]
	sp_call delete_files '{"conversationId":"many","paths":["d"]}'
	[ "$(text)" = "removed 1500 files" ]
}

@test "bad input: paths" {
	local path
	for path in /etc/passwd /data /mnt /mnt/data; do
		write bad "$path" x
		refused 'path: must be relative, without "/" in front'
	done
	for path in a//b a/ notes/b//; do
		write bad "$path" x
		refused 'path: must not contain "//" or end with "/"'
	done
	for path in ../a a/../b .. '' $'a\nb' "$(printf 'x%.0s' {1..300})" "$(printf 'a/%.0s' {1..300})b" "$(printf 'abcdefghijklmnop/%.0s' {1..62})abcdefghijklmnop"; do
		write bad "$path" x
		refused "path"
	done
	write bad "$(printf 'a/%.0s' {1..64})b" x
	refused "path: must have at most 63 folders"
	write bad "$(printf 'a/%.0s' {1..63})b" deep
	[ "$(sp_get .result.isError)" = false ]
	bash_code bad 'find . -type f | tr -dc / | wc -c'
	[ "$(text)" = 64 ]
	sp_call write_file '{"conversationId":"bad","path":"a\u0000b","content":""}'
	refused "path"
	sp_call write_file '{"conversationId":"bad","path":"a"}'
	refused "content"
	sp_call write_file '{"conversationId":"bad","path":"a","content":"","content_base64":""}'
	refused "content"
	sp_call write_file '{"conversationId":"bad","path":"a","content_base64":"*"}'
	refused "content_base64"
	write bad a x
	refused '"a" is a folder of this conversation'
	write bad f x
	write bad f/g x
	refused '"f" is a file of this conversation, so it cannot be a folder'
	sp_call run_code '{"conversationId":"bad","language":"bash","code":"cat new/x","files":[{"filename":"new/x","content":"folder"}]}'
	[ "$(text)" = folder ]
	sp_call read_file '{"conversationId":"bad","path":"../../etc/passwd"}'
	refused "path: there is no such file"
	sp_call read_file '{"conversationId":"nobody","path":"a"}'
	refused "conversationId: has no files and no calls yet"
	sp_call list_files '{"conversationId":"bad","path":"f"}'
	refused "path: names no folder"
	sp_call delete_files '{"conversationId":"bad","paths":["f","../x"]}'
	refused 'paths[1]: this conversation has no file and no folder "../x"'
	sp_call delete_files '{"conversationId":"bad","paths":["","f"]}'
	refused paths
	sp_call delete_files '{"conversationId":"bad","paths":[]}'
	refused paths
	sp_call delete_files "{\"conversationId\":\"bad\",\"paths\":[$(printf '"f",%.0s' {1..256})\"f\"]}"
	refused paths
	sp_call read_file '{"conversationId":"bad","path":"f"}' # nothing of a refused removal was done
	[ "$(text)" = x ]
}

@test "names that are not UTF-8, links" {
	bash_code odd 'echo 1 >$'"'"'n\xff'"'"'; ln -s /etc/passwd link; echo 2 >ok'
	sp_call list_files '{"conversationId":"odd"}'
	[ "$(sp_get 'details.files | map(.name) | join(" ")')" = 'ok n\xff' ]
	[[ $(sp_get 'details.files[1].url') == */n%FF ]]
	sp_call read_file '{"conversationId":"odd","path":"link"}'
	refused "there is no such file"
}

@test "a key removes and writes once" {
	write k a 1
	write k b 1
	sp_call delete_files '{"conversationId":"k","paths":["a"],"idempotencyKey":"once"}'
	[ "$(text)" = "removed 1 file" ]
	write k a 2
	sp_call delete_files '{"conversationId":"k","paths":["a"],"idempotencyKey":"once"}'
	[ "$(text)" = "an earlier call with this key removed them" ]
	sp_call delete_files '{"conversationId":"k","paths":["b"],"idempotencyKey":"once"}'
	refused "key"
	sp_call list_files '{"conversationId":"k"}'
	[ "$(sp_get details.count)" = 2 ]
	sp_call write_file '{"conversationId":"k","path":"c","content":"1","idempotencyKey":"c"}'
	write k c 2
	sp_call write_file '{"conversationId":"k","path":"c","content":"1","idempotencyKey":"c"}'
	sp_call read_file '{"conversationId":"k","path":"c"}'
	[ "$(text)" = 2 ]
}

@test "files are their owner's" {
	write mine a secret
	export SP_TOKEN=$BOB
	sp_call list_files '{"conversationId":"mine"}'
	refused "has no files"
	sp_call delete_files '{"conversationId":"mine","paths":["a"]}'
	refused "no file"
	[ "$(sp_sql "select count(*) from conversation where owner = 'bob'")" = 0 ]
	export SP_TOKEN=$ALICE
	sp_call read_file '{"conversationId":"mine","path":"a"}'
	[ "$(text)" = secret ]
}

@test "a live sandbox sees what was written and removed" {
	write live a 1
	sp_call run_code '{"conversationId":"live","language":"python","session":true,"code":"import os; print(os.listdir())"}'
	[ "$(text)" = "['a']" ]
	write live d/b 1
	sp_call delete_files '{"conversationId":"live","paths":["a"]}'
	sp_call run_code '{"conversationId":"live","language":"python","session":true,"code":"print(os.listdir(), os.listdir(\"d\"))"}'
	[ "$(text)" = "['d'] ['b']" ]
}

last_call() { # CONVERSATION
	sp_sql "select id from execution where conversation_name = '$1' order by id desc limit 1"
}
names() {
	sp_call list_files "{\"conversationId\":\"$1\"}"
	sp_get 'details.files | map(.name) | join(" ")'
}

@test "diff shows what a call changed" {
	write u a.txt $'one\ntwo\nthree\n'
	write u gone.txt $'bye\n'
	write u data.bin ''
	sp_call diff '{"conversationId":"u"}'
	refused "conversationId: has no calls yet"
	bash_code u 'sed -i s/two/TWO/ a.txt; rm gone.txt; printf "\0\1" >data.bin; echo new >b.txt; ln -s a.txt link; mkfifo pipe'
	local first
	first=$(last_call u)
	sp_call diff '{"conversationId":"u"}'
	[ "$(sp_get '.result.content[1].text')" = "--- a/a.txt
+++ b/a.txt
@@ -1,3 +1,3 @@
 one
-two
+TWO
 three
--- /dev/null
+++ b/b.txt
@@ -0,0 +1,1 @@
+new
Binary data.bin: 2 bytes, were 0
--- a/gone.txt
+++ /dev/null
@@ -1,1 +0,0 @@
-bye
Not kept link: symbolic link
Not kept pipe: named pipe" ] || { text >&2 && false; }
	[[ $(sp_get '.result.content[0].text') == "[sallyport] $first of "*", bash: OK; it is the first call" ]]
	bash_code u true
	sp_call diff '{"conversationId":"u"}'
	[[ $(text) == *"the call before it: $first"*"it changed no files"* ]]
	[ "$(sp_get details.before)" = "$first" ]
	sp_call diff "{\"conversationId\":\"u\",\"executionId\":\"$first\"}"
	[ "$(sp_get details.executionId)" = "$first" ]
	run -0 "$SP_BIN/sallyport" diff --config "$SP_CONFIG" "$first"
	[[ $output == *"+TWO"*"Not kept pipe"* ]]
	run -3 "$SP_BIN/sallyport" diff --config "$SP_CONFIG" 00000000
	sp_call diff "{\"conversationId\":\"w\",\"executionId\":\"$first\"}"
	refused "executionId: is not the id of a call of this conversation"
	sp_call diff "{\"conversationId\":\"u\",\"executionId\":\"x' or 1\"}"
	refused "executionId: is not the id of a call of this conversation"
	SP_TOKEN=$BOB sp_call diff "{\"conversationId\":\"u\",\"executionId\":\"$first\"}"
	refused "executionId: is not the id of a call of this conversation"
}

@test "diff is bounded: large files by size, many counted" {
	# shellcheck disable=SC2016 # the program's
	bash_code large 'seq 200000 >large; lines=$(seq 300); for i in {100..500}; do echo "$lines" >f$i; done'
	sp_call diff '{"conversationId":"large"}'
	[[ $(text) == *"+1"* && $(text) == *"… and "*" more files"* ]]
	[ "$(text | wc -c)" -lt 70000 ]
	bash_code large 'echo >>large'
	sp_call diff '{"conversationId":"large"}'
	[[ $(text) == *"Binary large: 1288896 bytes, were 1288895"* ]]
}

@test "restore_files goes to before or after any call" {
	write r keep 1
	write r dir/inner 1
	bash_code r 'echo 2 >keep; chmod 600 keep; echo x >made'
	local first second
	first=$(last_call r)
	bash_code r 'rm -r dir; echo now a file >dir; rm made'
	second=$(last_call r)
	write r later 1
	sp_call restore_files '{"conversationId":"r"}'
	[ "$(text)" = "the files are as before call $second: 2 put back, 2 removed" ]
	[ "$(names r)" = "dir/inner keep made" ]
	bash_code r 'cat keep dir/inner made; stat -c %a keep'
	[ "$(text)" = $'2\n1x\n600' ]
	sp_call restore_files "{\"conversationId\":\"r\",\"executionId\":\"$first\"}"
	bash_code r 'cat keep dir/inner; ls'
	[ "$(text)" = $'11dir\nkeep' ]
	sp_call restore_files "{\"conversationId\":\"r\",\"executionId\":\"$second\",\"state\":\"after\"}"
	[ "$(names r)" = "dir keep" ]
	sp_call restore_files "{\"conversationId\":\"r\",\"executionId\":\"$second\",\"state\":\"after\"}"
	[ "$(sp_get 'details | [.put, .removed, .repeated] | tojson')" = '[0,0,false]' ]
	sp_call restore_files "{\"conversationId\":\"r\",\"executionId\":\"$first\",\"idempotencyKey\":\"k\"}"
	write r keep 3
	sp_call restore_files "{\"conversationId\":\"r\",\"executionId\":\"$first\",\"idempotencyKey\":\"k\"}"
	[ "$(text)" = "an earlier call with this key did it" ]
	sp_call read_file '{"conversationId":"r","path":"keep"}'
	[ "$(text)" = 3 ]
	sp_call restore_files "{\"conversationId\":\"r\",\"state\":\"between\"}"
	refused state
	SP_TOKEN=$BOB sp_call restore_files "{\"conversationId\":\"r\",\"executionId\":\"$first\"}"
	refused "executionId: is not the id of a call of this conversation"
	run -0 "$SP_BIN/sallyport" undo --config "$SP_CONFIG" "$second" --after
	[ "$output" = "2 files put back, 1 removed" ]
	[ "$(names r)" = "dir keep" ]
	run -0 "$SP_BIN/sallyport" verify --config "$SP_CONFIG"
	[ "$(sp_sql "select count(*) from audit where kind = 'file.restore'")" = 6 ]
}

@test "no way back to a run whose content is gone, nor for an operator while a program runs" {
	write e a 1
	bash_code e 'echo 2 >a'
	local id
	id=$(last_call e)
	sp_call run_code "{\"conversationId\":\"e\",\"language\":\"bash\",\"code\":\"sleep $SP_ASLEEP\"}" &
	sp_until "" sp_asleep
	run -7 "$SP_BIN/sallyport" undo --config "$SP_CONFIG" "$id"
	[[ $output == *"a program of this conversation is running"* ]]
	sp_wake
	wait
	run -0 "$SP_BIN/sallyport" forget --config "$SP_CONFIG" --execution "$id" --yes
	sp_call restore_files "{\"conversationId\":\"e\",\"executionId\":\"$id\"}"
	refused "was removed on"
	sp_call diff "{\"conversationId\":\"e\",\"executionId\":\"$id\"}"
	refused "was removed on"
	sp_call read_file '{"conversationId":"e","path":"a"}'
	[ "$(text)" = 2 ]
}

@test "a thousand restores lose nothing (RESTORES=10000: as many)" {
	local before after count=${RESTORES:-1000} batch entries
	entries=$(sp_sql "select count(*) from audit where kind = 'file.restore'")
	bash_code many 'echo 1 >kept; echo 1 >gone'
	before=$(last_call many)
	bash_code many 'echo 2 >kept; rm gone; echo 2 >made'
	after=$(last_call many)
	# To and fro, so that each has something to do; in the revision that takes many calls at once.
	batch=$(jq -nc --arg a "$before" --arg b "$after" '[range(100) | {jsonrpc: "2.0", id: ., method: "tools/call", params: {name: "restore_files",
		arguments: {conversationId: "many", executionId: (if . % 2 == 0 then $a else $b end), state: "after"}}}]')
	for ((; count > 0; count -= 100)); do
		sp_http POST /mcp HTTP_MCP_PROTOCOL_VERSION=2025-03-26 <<<"$batch"
		[ "$(jq '[.[].result.content[0].text | select(endswith("2 put back, 1 removed"))] | length' "$SP_DIR/body")" = 100 ]
	done
	bash_code many 'cat kept made; ls'
	[ "$(text)" = $'2\n2\nkept\nmade' ]
	sp_call restore_files "$(jq -nc --arg id "$before" '{conversationId: "many", executionId: $id, state: "after"}')"
	bash_code many 'cat kept gone; ls'
	[ "$(text)" = $'1\n1\ngone\nkept' ]
	[ "$(sp_sql "select count(*) from audit where kind = 'file.restore'")" = $((entries + ${RESTORES:-1000} + 1)) ]
	run -0 "$SP_BIN/sallyport" verify --config "$SP_CONFIG"
	[ "$(sp_sql 'select count(*) from blob')" -lt 200 ] # contents are stored once
}
