#!/usr/bin/env bats
# The production site as it is delivered, under a real nginx with a certificate of the test: valid, and right where nginx answers by
# itself (no gateway runs here; with one it is driven by tests/clients). Two things are the test's: it listens at unix sockets, where nobody
# else can be, and requests come back to their limit so slowly that no machine is too slow to reach it.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file() {
	cd "$BATS_TEST_DIRNAME/../.." || return
	export NGINX_PROGRAM DIR=$BATS_FILE_TMPDIR
	NGINX_PROGRAM=$(PATH=$PATH:/usr/sbin command -v nginx)
	mkdir -p "$DIR/sallyport" "$DIR/blobs/ab"
	echo secret >"$DIR/blobs/ab/cd"
	cp nginx/locations.conf nginx/fastcgi.conf "$DIR/sallyport/"
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=sallyport.example.org -keyout "$DIR/privkey.pem" -out "$DIR/fullchain.pem" 2>/dev/null
	sed -e "s|listen 80;|listen unix:$DIR/plain;|" -e "s|listen 443 ssl http2;|listen unix:$DIR/tls ssl http2;|" -e '/listen \[::\]/d' \
		-e 's/rate=\(30\|5\)r\/s;/rate=1r\/m;/' -e "s|/etc/ssl/sallyport|$DIR|" -e "s|/var/log/nginx|$DIR|" -e "s|/run/sallyport|$DIR|" -e "s|/var/lib/sallyport|$DIR|" \
		nginx/sallyport.conf >"$DIR/site.conf"
	[ "$(grep -c -e "listen unix:$DIR/" -e 'rate=1r/m' "$DIR/site.conf")" = 4 ]
	cat >"$DIR/nginx.conf" <<-END
		daemon off;
		$([ "$(id -u)" != 0 ] || echo 'user root;') # the folder of a test is closed to others
		worker_processes 1;
		pid $DIR/nginx.pid;
		error_log $DIR/error.log;
		events { worker_connections 256; }
		http {
			access_log off;
			set_real_ip_from unix:; real_ip_header X-Client; # who asks, in the tests of limits
			client_body_temp_path $DIR/body; fastcgi_temp_path $DIR/fcgi; proxy_temp_path $DIR/proxy; uwsgi_temp_path $DIR/uwsgi; scgi_temp_path $DIR/scgi;
			include $DIR/site.conf;
		}
	END
	"$NGINX_PROGRAM" -e "$DIR/error.log" -c "$DIR/nginx.conf" 2>"$DIR/start.log" 3>&- &
	echo $! >"$DIR/pid"
	sp_until "$!" fetch -o /dev/null "$(url /none)" || { cat "$DIR/start.log" "$DIR/error.log"; return 1; }
}

teardown_file() {
	kill "$(cat "$DIR/pid")" 2>/dev/null || true
	[ ! -s "$DIR/open.pid" ] || kill "$(cat "$DIR/open.pid")" 2>/dev/null || true # of a test that failed
}

teardown() {
	sp_teardown
}

fetch() {
	curl -sk --max-time "$SP_DEADLINE" --unix-socket "$DIR/tls" "$@"
}
url() { echo "https://sallyport.example.org$1"; }

@test "the production site passes nginx -t without a warning" {
	# The running one keeps its pid file and its sockets.
	sed "s|unix:$DIR/|unix:$DIR/check-|" "$DIR/site.conf" >"$DIR/check-site.conf"
	sed -e "s|^pid .*|pid $DIR/check.pid;|" -e "s|$DIR/site.conf|$DIR/check-site.conf|" "$DIR/nginx.conf" >"$DIR/check.conf"
	run "$NGINX_PROGRAM" -t -e "$DIR/check.log" -c "$DIR/check.conf"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ $output != *warn* ]]
}

@test "the development template passes nginx -t" {
	mkdir -p "$DIR/dev/sallyport" "$DIR/dev/log" "$DIR/dev/nginx"
	cp nginx/locations.conf nginx/fastcgi.conf "$DIR/dev/sallyport/"
	sed -e "s|@STATE@|$DIR/dev|g" -e "s|@PORT@|20001|g" nginx/dev.conf.in >"$DIR/dev/nginx.conf"
	run "$NGINX_PROGRAM" -t -e "$DIR/check.log" -c "$DIR/dev/nginx.conf"
	echo "$output"
	[ "$status" -eq 0 ]
}

@test "plain HTTP is sent to HTTPS, method kept" {
	run curl -s -o /dev/null -w '%{http_code} %{redirect_url}' --unix-socket "$DIR/plain" -d x http://sallyport.example.org/mcp
	[ "$output" = "308 https://sallyport.example.org/mcp" ]
}

@test "a gateway that is away is a 503 with Retry-After and a message, as JSON" {
	run fetch -d '{}' -w '\n%{http_code} %{content_type} %header{retry-after} %header{strict-transport-security}' "$(url /mcp)"
	[ "${lines[1]}" = "503 application/json 1 max-age=31536000" ]
	[[ $(jq -r .error.message <<<"${lines[0]}") == *"the gateway does not answer"* ]]
}

@test "nginx speaks TLS 1.2 or newer" {
	local version
	for version in 1.2 1.3; do
		run fetch --tls-max "$version" --tlsv"$version" -o /dev/null -w '%{http_code} %{http_version}' "$(url /none)"
		[ "$output" = "404 2" ]
	done
	run fetch --http1.1 -o /dev/null -w '%{http_code} %{http_version}' "$(url /none)"
	[ "$output" = "404 1.1" ]
	# The client could: it is the server that refuses.
	for version in tls1 tls1_1; do
		run bash -c "openssl s_client -$version -cipher 'ALL:@SECLEVEL=0' -unix '$DIR/tls' -servername sallyport.example.org </dev/null 2>&1"
		[[ $output == *"alert protocol version"* ]]
	done
	run bash -c "openssl s_client -tls1_2 -cipher 'AES256-SHA:AES128-GCM-SHA256' -unix '$DIR/tls' -servername sallyport.example.org </dev/null 2>&1"
	[[ $output == *"handshake failure"* ]] # without forward secrecy
}

@test "every answer of nginx's own has HSTS and a request id, which the log has, too, with the client's address" {
	local status id
	while read -r status path; do
		fetch -H 'X-Client: 198.51.100.7' -D "$DIR/head" -o /dev/null -d '{}' "$(url "$path")"
		cat "$DIR/head"
		grep -q "^HTTP/2 $status" "$DIR/head"
		grep -qi '^strict-transport-security: max-age=31536000' "$DIR/head"
		id=$(tr -d '\r' <"$DIR/head" | awk 'tolower($1) == "x-request-id:" { print $2 }')
		[[ $id =~ ^[0-9a-f]{32}$ ]]
		sp_until "" grep -q "^198.51.100.7 .* $status .*$id$" "$DIR/sallyport.log"
	done <<-'END'
		503 /mcp
		503 /healthz
		503 /readyz
		404 /none
	END
	truncate -s 50000000 "$DIR/larger" # above client_max_body_size
	fetch -D "$DIR/head" -o /dev/null --data-binary "@$DIR/larger" "$(url /mcp)" || true
	grep -q '^HTTP/2 413' "$DIR/head"
	grep -qi '^strict-transport-security' "$DIR/head"
	grep -qi '^x-request-id' "$DIR/head"
}

@test "what a client should not have put into an address stands in no log: tokens, codes" {
	local path
	for path in /mcp /sse /messages /healthz /authorize /token /register /revoke /.well-known/oauth-authorization-server /admin /admin/x /v1/runs /none /t/Secret7/fusion/run_code /t/Secret8/piston/x /%74/Secret9/fusion/x /t/Secret7 /files/x; do
		fetch -o /dev/null -H 'Referer: https://x.example/?code=Secret5' -H 'Authorization: Bearer sp_alice_Secret4' -H 'Cookie: s=Secret6' \
			"$(url "$path?code=Secret1&access_token=sp_alice_Secret2&sessionId=Secret3")"
	done
	sp_until "" grep -q 'GET /files/x' "$DIR/sallyport.log"
	run grep -rhoE 'Secret[0-9]' "$DIR" --include='*.log'
	echo "$output"
	[ -z "$output" ]
}

@test "signing in has limits and errors of its own" {
	local path
	for path in /token /register /revoke; do
		run fetch -H 'X-Client: 203.0.113.1' -d grant_type=x -w '\n%{http_code} %{content_type} %header{retry-after} %header{cache-control} %header{access-control-allow-origin}' "$(url $path)"
		echo "$output"
		[ "${lines[1]}" = "503 application/json 1 no-store *" ]
		[ "$(jq -r .error <<<"${lines[0]}")" = temporarily_unavailable ]
		run bash -c "head -c 70000 /dev/zero | curl -sk --max-time $SP_DEADLINE -H 'X-Client: 203.0.113.1' -H 'Expect:' --data-binary @- --unix-socket $DIR/tls -w '\n%{http_code} %{content_type}' $(url $path)"
		[ "${lines[1]}" = "413 application/json" ]
		[ "$(jq -r .error <<<"${lines[0]}")" = invalid_request ]
	done
	run fetch -H 'X-Client: 203.0.113.1' -w '\n%{http_code} %{content_type} %header{cache-control} %header{content-security-policy}' "$(url /authorize?state=x)"
	[ "${lines[0]}" = "Sallyport does not answer now. Wait a moment and load this page again." ]
	[ "${lines[1]}" = "503 text/plain no-store default-src 'none'; frame-ancestors 'none'" ]
	# The twenty of the burst and one are for all of them together; /mcp of the same address goes on.
	for _ in {1..21}; do fetch -H 'X-Client: 203.0.113.2' -o /dev/null -d x "$(url /register)"; done
	for path in /token /register /revoke; do
		run fetch -H 'X-Client: 203.0.113.2' -d x -w '\n%{http_code} %{content_type} %header{retry-after} %header{access-control-allow-origin}' "$(url $path)"
		echo "$output"
		[ "${lines[1]}" = "429 application/json 1 *" ]
		[ "$(jq -r .error <<<"${lines[0]}")" = temporarily_unavailable ]
	done
	run fetch -H 'X-Client: 203.0.113.2' -w '\n%{http_code} %{content_type}' "$(url /authorize)"
	[ "${lines[1]}" = "429 text/plain" ]
	[[ ${lines[0]} == "Too many requests"* ]]
	run fetch -H 'X-Client: 203.0.113.2' -d '{}' -o /dev/null -w '%{http_code}' "$(url /mcp)"
	[ "$output" = 503 ]
	run fetch -H 'X-Client: 203.0.113.3' -d x -o /dev/null -w '%{http_code}' "$(url /token)" # another address
	[ "$output" = 503 ]
}

@test "a gateway that ends with a request under way is a 502 that asks for nothing" {
	python3 - "$DIR/gateway.sock" <<-'END' 3>&- &
		import os, socket, sys
		listener = socket.socket(socket.AF_UNIX)
		listener.bind(sys.argv[1])
		listener.listen()
		connection, _ = listener.accept()
		connection.recv(65536)
		connection.close()
		os.unlink(sys.argv[1])
	END
	local gateway=$!
	sp_until "$gateway" test -S "$DIR/gateway.sock"
	run fetch -d '{}' -w '\n%{http_code} %{content_type} [%header{retry-after}]' "$(url /mcp)"
	wait "$gateway"
	[ "${lines[1]}" = "502 application/json []" ]
	[[ $(jq -r .error.message <<<"${lines[0]}") == *"may have been made"* ]]
}

@test "the address of a download that fails stands in no log" {
	local hash
	hash=$(printf 'ab%.0s' {1..32})
	fetch -o /dev/null "$(url "/files/$hash/x")"
	run ! grep -r "$hash" "$DIR"/*.log
}

@test "a body of 100 MB is refused in words, as JSON" {
	run bash -c "head -c 100000000 /dev/zero | curl -sk --max-time $SP_DEADLINE -H 'Expect:' -H 'Content-Length: 100000000' -H 'Transfer-Encoding:' --data-binary @- \
		--unix-socket $DIR/tls -w '\n%{http_code} %{content_type}' $(url /mcp)"
	echo "$output"
	[ "${lines[1]}" = "413 application/json" ]
	[[ $(jq -r .error.message <<<"${lines[0]}") == *"limits.body_mb"* ]]
}

@test "blobs cannot be had by their own address" {
	run fetch -o /dev/null -w '%{http_code}' "$(url /_blobs/ab/cd)"
	[ "$output" = 404 ]
	run fetch --path-as-is -o /dev/null -w '%{http_code}' "$(url /files/../_blobs/ab/cd)"
	[ "$output" = 404 ]
}

@test "what nginx sends of a file is sandboxed, whatever the file is" {
	# The location of the site as it is, but open: the gateway is who else leads there.
	mkdir -p "$DIR/open/sallyport"
	cp "$DIR/sallyport/fastcgi.conf" "$DIR/open/sallyport/"
	sed '/^location \/_blobs\//,/^}/s/internal;//' "$DIR/sallyport/locations.conf" >"$DIR/open/sallyport/locations.conf"
	sed "s|unix:$DIR/|unix:$DIR/open-|" "$DIR/site.conf" >"$DIR/open/site.conf"
	sed -e "s|^pid .*|pid $DIR/open.pid;|" -e "s|$DIR/site.conf|$DIR/open/site.conf|" "$DIR/nginx.conf" >"$DIR/open/nginx.conf"
	"$NGINX_PROGRAM" -e "$DIR/open/error.log" -c "$DIR/open/nginx.conf" 3>&- &
	local pid=$!
	open_fetch() { curl -sk --max-time "$SP_DEADLINE" --unix-socket "$DIR/open-tls" "$@"; }
	sp_until "$pid" open_fetch -o /dev/null "$(url /none)"
	echo '<script>alert(1)</script>' >"$DIR/blobs/ab/cd.html"
	open_fetch -D "$DIR/open/head" -o "$DIR/open/body" "$(url /_blobs/ab/cd.html)"
	open_fetch -D "$DIR/open/beyond" -o "$DIR/open/refusal" -r 1000- "$(url /_blobs/ab/cd.html)"
	kill "$pid"
	wait "$pid" || true
	tr -d '\r' <"$DIR/open/head" >"$DIR/open/lines"
	cat "$DIR/open/lines"
	cmp "$DIR/open/body" "$DIR/blobs/ab/cd.html"
	grep -qix "content-security-policy: sandbox; default-src 'none'" "$DIR/open/lines"
	grep -qix 'x-content-type-options: nosniff' "$DIR/open/lines"
	grep -qix 'referrer-policy: no-referrer' "$DIR/open/lines"
	tr -d '\r' <"$DIR/open/beyond" >"$DIR/open/lines" # each header once, too, where the range is none of the file's
	cat "$DIR/open/lines"
	grep -q '^HTTP/.* 416' "$DIR/open/lines"
	grep -qix 'content-range: bytes \*/26' "$DIR/open/lines"
	[ "$(grep -ci "^content-security-policy: sandbox; default-src 'none'" "$DIR/open/lines")" = 1 ]
	[ "$(cut -d: -f1 "$DIR/open/lines" | grep . | sort | uniq -d)" = "" ]
	[ "$(jq -r .error_description "$DIR/open/refusal")" = "the range begins beyond the end of the file" ]
}

@test "other paths are 404 as JSON" {
	run fetch -w '\n%{http_code} %{content_type}' "$(url /.well-known/openid-configuration)"
	[ "${lines[1]}" = "404 application/json" ]
	jq -e .error <<<"${lines[0]}"
}

@test "the log does not hold the address of a download" {
	local hash=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
	fetch -o /dev/null "$(url "/files/$hash/chart.png?x=1")"
	sp_until "" grep -q "/files/01234567[.][.][.]" "$DIR/sallyport.log" # it writes a line when the answer is gone
	for spelling in "/%66iles/$hash/chart.png" "//files/$hash/a" "/%2e/files/$hash/a" "/elsewhere/$hash"; do
		fetch --path-as-is -o /dev/null "$(url "$spelling")"
	done
	sp_until "" grep -q "/elsewhere/01234567[.][.][.]" "$DIR/sallyport.log"
	run grep -c "$hash" "$DIR/sallyport.log"
	[ "$output" = 0 ]
}

@test "too many requests are a 429 with Retry-After, as JSON" {
	yes "url = \"$(url /mcp)\"" | head -n 100 >"$DIR/many"
	fetch -K "$DIR/many" -o /dev/null -w '%{http_code} %header{retry-after} %{content_type}\n' | sort | uniq -c >"$DIR/codes" || true
	cat "$DIR/codes"
	grep -q ' 429 1 application/json' "$DIR/codes"
	grep -q ' 503 ' "$DIR/codes"
}

@test "what is over the limit leaves no line in the error log" {
	run grep -c 'limiting' "$DIR/sallyport.error.log"
	[ "$output" = 0 ]
}

@test "a client of IPv6 is limited by its network" {
	local i
	ask() { fetch -H "X-Client: $1" -o /dev/null -w '%{http_code}\n' "$(url /mcp)"; }
	for i in {1..70}; do ask "2001:db8:0:1:$i::$i"; done >"$DIR/codes"
	grep -q 429 "$DIR/codes"
	[ "$(ask 2001:db8:0:2::1)" = 503 ] # the neighbour
	for i in {1..70}; do ask "192.0.2.$i"; done >"$DIR/codes"
	run grep -c 429 "$DIR/codes"
	[ "$output" = 0 ]
}

@test "a large body is taken in only behind a token that is good" {
	sp_setup
	SP_SOCKET=$DIR/gateway.sock
	sed -i -e "s|\"gateway.sock\"|\"$SP_SOCKET\"|" -e 's|"http://127.0.0.1:8080"|"https://sallyport.example.org"|' "$SP_CONFIG"
	"$SP_BIN/sallyport-gateway" --config "$SP_CONFIG" >"$SP_DIR/gateway.log" 2>&1 3>&- &
	echo $! >"$SP_DIR/pids"
	sp_until $! sp_listens "$SP_SOCKET"
	sp_token alice
	# The client waits until its body is wanted.
	truncate -s 40000000 "$DIR/huge"
	for header in 'X-None: 1' 'Authorization: Bearer sp_alice_0000000000000000000000000000000000000000000' 'Authorization: Basic x'; do
		run curl -sk --max-time "$SP_DEADLINE" --http1.1 --unix-socket "$DIR/tls" -H 'X-Client: 192.0.2.201' -H "$header" -H 'Expect: 100-continue' \
			--expect100-timeout "$SP_DEADLINE" -H 'Content-Type: application/json' --data-binary "@$DIR/huge" -D "$DIR/head" -w '\n%{http_code} %{content_type}' "$(url /mcp)"
		cat "$DIR/head"
		echo "$output"
		[ "$(jq -r .error <<<"${lines[0]}")" = invalid_token ]
		[ "${lines[1]}" = '401 application/json' ]
		grep -i '^www-authenticate: Bearer' "$DIR/head"
		run grep -c ' 100 ' "$DIR/head"
		[ "$output" = 0 ]
	done
	# A good one goes on to the gateway, whatever its size; so does a small one that is bad.
	head -c 200000 /dev/zero | tr '\0' ' ' >"$DIR/large"
	run fetch -H 'X-Client: 192.0.2.202' -H "Authorization: Bearer $SP_TOKEN" -H 'Content-Type: application/json' --data-binary "@$DIR/large" "$(url /mcp)"
	echo "$output"
	[ "$(jq .error.code <<<"$output")" = -32700 ]
	run fetch -H 'X-Client: 192.0.2.202' -H 'Authorization: Bearer sp_alice_0' -H 'Content-Type: application/json' -d '{}' "$(url /mcp)"
	echo "$output"
	[[ $(jq -r .error_description <<<"$output") == Unknown* ]]
}
