#!/usr/bin/env bats
# /files/ over HTTP: programs put, remove, list and fetch files without a model; ranges, addresses that end.

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
	[ -n "$PLACE" ] || PLACE=$(place main)
}

# The path of a conversation, which it makes.
place() { # CONVERSATION
	sp_call write_file "{\"conversationId\":\"$1\",\"path\":\"seed\",\"content\":\"seed\"}" >&2
	sp_get details.file.url | sed -E "s|^$SP_URL(/files/[0-9a-f]{64}/).*|\1|"
}
status() { # STATUS
	[ "$SP_STATUS" = "$1" ] || { cat "$SP_DIR/head" "$SP_DIR/body" >&2 && return 1; }
}
header() { # NAME
	sed -n "s/^$1: //p" "$SP_DIR/head"
}
get() { # PATH [NAME=VALUE…]: without a token
	SP_BARE=yes sp_http GET "$@" </dev/null
}
form() { # NAME…: each with its own name as content
	local name
	for name; do
		printf -- '--frontier\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\nContent-Type: text/plain\r\n\r\n%s\r\n' "$name" "$name"
	done
	printf -- '--frontier--\r\n'
}
FORM="CONTENT_TYPE=multipart/form-data; boundary=frontier"

@test "files are put and deleted" {
	printf 'a,b\n' | sp_http PUT "${PLACE}in/one.csv"
	status 201
	[ "$(jq -r '.files[0] | [.name, .size, .media_type] | tojson' "$SP_DIR/body")" = '["in/one.csv",4,"text/csv"]' ]
	printf 'a,b,c\n' | sp_http PUT "${PLACE}in/one.csv"
	status 200
	get "${PLACE}in/one.csv"
	[ "$(cat "$SP_DIR/body")" = a,b,c ]
	printf '\0\1' | sp_http PUT "${PLACE}n%FF%20x"
	status 400
	grep -F "must be UTF-8" "$SP_DIR/body"
	sp_call run_code '{"conversationId":"main","language":"bash","code":"cat in/one.csv; ls; echo 1 >$'"'n\\\\xff x'"'"}'
	[ "$(sp_get details.stdout)" = $'a,b,c\nin\nseed' ]
	get "${PLACE}n%FF%20x"
	[ "$(cat "$SP_DIR/body")" = 1 ]
	sp_http DELETE "${PLACE}n%FF%20x" </dev/null
	status 204
	[ ! -s "$SP_DIR/body" ]
	sp_http DELETE "${PLACE}n%FF%20x" </dev/null
	status 404
	sp_http DELETE "${PLACE}in/" </dev/null
	status 204
	get "${PLACE}in/one.csv"
	status 404
	[ "$(sp_sql "select count(*) from audit where kind = 'file.delete'")" = 2 ]
}

@test "a form puts several files, all or none" {
	form x.txt 'sub/y "q".txt' | sed 's/"sub\/y "q".txt"/"sub\/y %22q%22.txt"/' | sp_http POST "${PLACE}up/" "$FORM"
	status 200
	[ "$(jq -r '.files | map(.name) | tojson' "$SP_DIR/body")" = '["up/x.txt","up/sub/y \"q\".txt"]' ]
	get "${PLACE}up/sub/y%20%22q%22.txt"
	[ "$(cat "$SP_DIR/body")" = 'sub/y "q".txt' ]
	form good ../bad | sp_http POST "$PLACE" "$FORM"
	status 400
	get "${PLACE}good"
	status 404
	form twice twice | sp_http POST "$PLACE" "$FORM"
	status 400
	printf -- '--frontier--\r\n' | sp_http POST "$PLACE" "$FORM"
	status 400
	form x | head -c -10 | sp_http POST "$PLACE" "$FORM"
	status 400
	grep -F "it ends within a part" "$SP_DIR/body"
	form x | sp_http POST "$PLACE" "CONTENT_TYPE=multipart/form-data"
	status 400
	form x | sp_http POST "${PLACE}x" "$FORM"
	status 400
	form $(seq 65) | sp_http POST "$PLACE" "$FORM"
	status 400
}

@test "only the owner may change files" {
	echo x | SP_BARE=yes sp_http PUT "${PLACE}a"
	status 401
	echo x | SP_TOKEN=$BOB sp_http PUT "${PLACE}a"
	status 404
	SP_TOKEN=$BOB sp_http DELETE "${PLACE}seed" </dev/null
	status 404
	local run_only
	run_only=$("$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner alice --scope run)
	echo x | SP_TOKEN=$run_only sp_http PUT "${PLACE}a"
	status 403
	[[ $(header WWW-Authenticate) == *insufficient_scope*files* ]]
	echo x | sp_http PATCH "${PLACE}a"
	status 405
	[ "$(header Allow)" = "GET, HEAD, PUT, POST, DELETE" ]
	echo x | sp_http PUT "/files/$(printf '0%.0s' {1..64})/a"
	status 404
	get "${PLACE}a"
	status 404
}

@test "bad input: paths and bodies" {
	local path
	for path in ../x a/../x ./x a//x .. %2e%2e/x a%2f..%2fx "$(printf 'x%.0s' {1..300})" "$(printf 'a/%.0s' {1..300})b" a%0ab %00 %zz; do
		echo x | sp_http PUT "$PLACE$path"
		[[ $SP_STATUS == 40[04] ]] || status 400
	done
	echo x | sp_http PUT "$PLACE"
	status 400
	sp_http DELETE "$PLACE" </dev/null
	status 400
	echo short | sp_http PUT "${PLACE}short" CONTENT_LENGTH=100
	status 400
	grep -F "did not arrive whole" "$SP_DIR/body"
	head -c 9000000 /dev/zero | sp_http PUT "${PLACE}large"
	status 413
	echo x | sp_http PUT "${PLACE}zipped" HTTP_CONTENT_ENCODING=gzip
	status 415
	echo x | sp_http PUT "${PLACE}seed" "HTTP_CONTENT_RANGE=bytes 0-1/10"
	status 400
	grep -F "a part of a file cannot be put" "$SP_DIR/body"
	echo x | sp_http PUT "${PLACE}seed/below"
	status 409
	get "$PLACE"
	[ "$(jq -r '.files | map(.name) | map(select(test("short|large|zipped|below"))) | length' "$SP_DIR/body")" = 0 ]
	get "${PLACE}seed"
	[ "$(cat "$SP_DIR/body")" = seed ]
}

@test "ranges: resumed where the content is the same" {
	local tag
	printf 0123456789 | sp_http PUT "${PLACE}digits"
	get "${PLACE}digits"
	tag=$(header ETag)
	[ "$tag" = "\"$(printf 0123456789 | sha256sum | cut -c1-64)\"" ]
	[ "$(header Accept-Ranges)" = bytes ]
	local range part
	while read -r range part; do
		get "${PLACE}digits" "HTTP_RANGE=bytes=$range"
		status 206
		[ "$(cat "$SP_DIR/body")" = "$part" ]
		[ "$(header Content-Length)" = "${#part}" ]
	done <<-END
		0-3 0123
		7- 789
		-2 89
		-100 0123456789
		5-100 56789
		9-9 9
	END
	get "${PLACE}digits" HTTP_RANGE=bytes=3-5
	[ "$(header Content-Range)" = "bytes 3-5/10" ]
	for range in 10- 10-20 99999999999- -0; do
		get "${PLACE}digits" "HTTP_RANGE=bytes=$range"
		status 416
		[ "$(header Content-Range)" = "bytes */10" ]
	done
	for range in 5-3 x-y - 1-2,4-5 99999999999999999999-; do
		get "${PLACE}digits" "HTTP_RANGE=bytes=$range"
		status 200
		[ "$(cat "$SP_DIR/body")" = 0123456789 ]
	done
	get "${PLACE}digits" HTTP_RANGE=bytes=8- "HTTP_IF_RANGE=$tag"
	status 206
	get "${PLACE}digits" HTTP_RANGE=bytes=8- 'HTTP_IF_RANGE="other"'
	status 200
	get "${PLACE}digits" "HTTP_IF_NONE_MATCH=$tag"
	status 304
	[ ! -s "$SP_DIR/body" ]
}

@test "lists come as JSON, page or zip" {
	local all
	all=$(place lists)
	printf 1 | sp_http PUT "${all}d/%3Cscript%3Ealert(1)%3C%2Fx"
	printf 22 | sp_http PUT "${all}d/%E2%82%AC.txt"
	sp_call run_code '{"conversationId":"lists","language":"bash","code":"printf 333 >$'"'n\\\\xff'"'"}'
	get "$all"
	status 200
	[ "$(jq -r '[.count, .bytes] | tojson' "$SP_DIR/body")" = '[4,10]' ]
	[ "$(jq -r '.files | map(.name) | tojson' "$SP_DIR/body")" = '["d/<script>alert(1)</x","d/€.txt","seed","n\\xff"]' ]
	[[ $(jq -r '.files[3].url' "$SP_DIR/body") == "$SP_URL${all}n%FF" ]]
	get "${all}d/"
	[ "$(jq -r .count "$SP_DIR/body")" = 2 ]
	get "${all}nothing/"
	status 404
	get "$all" "HTTP_ACCEPT=text/html,application/xhtml+xml"
	[[ $(header Content-Type) == text/html* ]]
	[[ $(header Content-Security-Policy) == *"default-src 'none'"*sandbox* ]]
	[ "$(header X-Content-Type-Options)" = nosniff ]
	grep -F '&#60;script&#62;alert(1)&#60;/x</a>' "$SP_DIR/body"
	run -1 grep '<script' "$SP_DIR/body"
	get "$all?zip"
	status 200
	[ "$(header Content-Type)" = application/zip ]
	python3 - "$SP_DIR/body" <<-'END'
		import sys, zipfile
		z = zipfile.ZipFile(sys.argv[1])
		assert z.testzip() is None
		assert {n: z.read(n) for n in z.namelist()} == {'d/<script>alert(1)</x': b'1', 'd/€.txt': b'22', 'n\\xff': b'333', 'seed': b'seed'}, z.namelist()
	END
	sp_http HEAD "$all?zip" </dev/null
	status 200
	[ ! -s "$SP_DIR/body" ]
}

@test "archives that nobody reads leave other calls alone" {
	local all other
	all=$(place unread)
	other=$(place unread-too)
	head -c 5000000 /dev/urandom | sp_http PUT "${all}large"
	head -c 5000000 /dev/urandom | sp_http PUT "${other}large"
	# 300 requests of one address for one archive, 30 for another one: what they answer is counted, and none is read on.
	/usr/bin/python3 - "$SP_SOCKET" "$all?zip" "$other?zip" 2>"$SP_DIR/unread.err" >"$SP_DIR/unread" <<-'END' 3>&- &
		import socket, struct, sys
		def record(kind, content):
		    return struct.pack('>BBHHBB', 1, kind, 1, len(content), 0, 0) + content
		def pair(name, value):
		    return struct.pack('>II', len(name) | 1 << 31, len(value) | 1 << 31) + name + value
		def ask(uri, address):
		    s = socket.socket(socket.AF_UNIX)
		    s.connect(sys.argv[1])
		    params = {'REQUEST_METHOD': 'GET', 'REQUEST_URI': uri, 'HTTP_HOST': '127.0.0.1:8080', 'REMOTE_ADDR': address}
		    s.sendall(record(1, struct.pack('>HB5x', 1, 0)) + record(4, b''.join(pair(k.encode(), v.encode()) for k, v in params.items())) +
		              record(4, b'') + record(5, b''))
		    return s, s.recv(64, socket.MSG_PEEK)
		counts = {}
		held = []
		for uri, address, n in (sys.argv[2], '192.0.2.1', 300), (sys.argv[3], '192.0.2.1', 30), (sys.argv[3], '192.0.2.2', 30):
		    for _ in range(n):
		        s, head = ask(uri, address)
		        held.append(s)
		        key = (uri[-12:], address, b'Status: 429' in head)
		        counts[key] = counts.get(key, 0) + 1
		print(sorted(counts.values()), flush=True)
		sys.stdin.close()
		__import__('signal').pause()
	END
	local asker=$!
	sp_until "$asker" test -s "$SP_DIR/unread"
	cat "$SP_DIR/unread"
	[ "$(cat "$SP_DIR/unread")" = '[8, 8, 22, 30, 292]' ]
	sp_call list_files '{"conversationId":"main"}'
	status 200
	get "${PLACE}seed" REMOTE_ADDR=192.0.2.3
	status 200
	get "$all" REMOTE_ADDR=192.0.2.3
	status 429
	[ "$(header Retry-After)" = 1 ]
	kill "$asker"
	wait "$asker" || true
	zip_again() { get "$all?zip" REMOTE_ADDR=192.0.2.3 && [ "$SP_STATUS" = 200 ]; }
	sp_until "" zip_again
}

@test "10,000 files are listed in 20 ms on a free machine" {
	local all us
	all=$(place ten-thousand)
	sqlite3 "$SP_DIR/data/sallyport.db" "with recursive n(i) as (select 1 union all select i + 1 from n where i < 9999) insert into file
		select conversation, 'folder/file number ' || i || '.txt', blob, media_type, mode, size, mtime_us from file, n
		where conversation = (select id from conversation where name = 'ten-thousand') and file.name = 'seed'"
	get "$all" # the first one reads the pages of the database
	[ "$(jq .count "$SP_DIR/body")" = 10000 ]
	for _ in {1..5}; do
		get "$all"
	done
	us=$(grep -o '"\?route"\?[=:]"\?/files/"\?.*us"\?[=:]"\?[0-9]*' "$SP_DIR/gateway.log" | tail -n 5 | grep -oE '[^a-z]us"?[=:]"?[0-9]+' | grep -oE '[0-9]+' | sort -n | head -n 1)
	echo "# $us us" >&3
	[ "$us" -le $((20000 * ${TEST_PATIENCE:-4})) ]
}

@test "addresses of downloads expire" {
	sp_stop "$SP_GATEWAY_PID"
	export SALLYPORT_FILES_URL_SECONDS=3600
	sp_start_gateway
	local url bare
	sp_call write_file '{"conversationId":"ends","path":"d/a b.txt","content":"x"}'
	url=$(sp_get details.file.url)
	url=${url#"$SP_URL"}
	[[ $url == *"/d/a%20b.txt?expires="*"&signature="* ]]
	get "$url"
	status 200
	bare=${url%%\?*}
	get "$bare"
	status 403
	get "${url%?}0"
	[ "$SP_STATUS" = 403 ] || get "${url%?}1"
	status 403
	get "${url/expires=1/expires=2}"
	status 403
	get "${url/a%20b.txt/c}"
	status 403
	sp_http GET "$bare" </dev/null
	status 200
	SP_TOKEN=$BOB sp_http GET "$bare" </dev/null
	status 404
	SP_TOKEN=wrong sp_http GET "$bare" </dev/null
	status 401
	local scope address token
	for scope in run network; do
		token=$("$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner alice --scope "$scope")
		for address in "$bare" "${bare%/d/*}/" "${bare%/d/*}/?zip"; do
			SP_TOKEN=$token sp_http GET "$address" </dev/null
			status 403
		done
	done
	SP_TOKEN=$("$SP_BIN/sallyport" token add --config "$SP_CONFIG" --owner alice --scope files) sp_http GET "$bare" </dev/null
	status 200
	get "${bare%/d/*}/"
	status 403
	sp_http GET "${bare%/d/*}/" HTTP_ACCEPT=text/html </dev/null
	status 200
	get "$(grep -o 'href="[^"]*zip"' "$SP_DIR/body" | sed "s|href=\"$SP_URL||; s/\"//; s/&#38;/\&/g; s/&amp;/\&/g")"
	status 200
	[ "$(header Content-Type)" = application/zip ]
	sp_call list_files '{"conversationId":"ends"}'
	[[ $(sp_get '.result.content[1].text') == *"signature="* ]]
	run -0 "$SP_BIN/sallyport" forget --config "$SP_CONFIG" --owner alice --conversation ends --yes
	sp_call write_file '{"conversationId":"ends","path":"d/a b.txt","content":"new"}'
	get "$url" # the same hash, another conversation
	status 403
	sp_stop "$SP_GATEWAY_PID"
	export SALLYPORT_FILES_URL_SECONDS=1
	sp_start_gateway
	sp_call write_file '{"conversationId":"ends","path":"soon","content":"new"}'
	url=$(sp_get details.file.url)
	url=${url#"$SP_URL"}
	over() {
		get "$url" && [ "$SP_STATUS" = 403 ] && grep -qF "this address has ended" "$SP_DIR/body"
	}
	sp_until "" over
}
