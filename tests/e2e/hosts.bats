#!/usr/bin/env bats
# Three installations behind nginx/front.conf as it is shipped (its addresses replaced by unix sockets, and no TLS between): owners live where
# the table says, downloads are found, a dead host is nobody else's business.

load lib.bash

setup_file() {
	export FRONT=$BATS_FILE_TMPDIR/front NGINX
	NGINX=$(PATH=$PATH:/usr/sbin command -v nginx)
	mkdir -p "$FRONT"
	local n key=
	for n in 1 2 3; do
		sp_setup
		[ -z "$key" ] || cp "$key" "$SP_DIR/data/secret.key"
		sp_token "owner$n"
		key=$SP_DIR/data/secret.key
		echo "$SP_TOKEN" >"$FRONT/token.$n"
		sp_start_jailer
		sp_start_gateway
		ln -s "$SP_DIR" "$FRONT/h$n"
		mkdir -p "$FRONT/n$n/sallyport"
		cp nginx/locations.conf nginx/fastcgi.conf "$FRONT/n$n/sallyport/"
		nginx_of "$FRONT/n$n" "upstream sallyport { server unix:$SP_DIR/gateway.sock; }
			server { listen unix:$SP_DIR/nginx.sock; set \$sallyport_blobs $SP_DIR/data/blobs; set \$sallyport_hsts \"\"; include sallyport/locations.conf; }"
	done
	printf 'owner2 h2;\nowner3 h3;\n' >"$FRONT/placed.map"
	sed -e "s|listen 443 ssl http2;|listen unix:$FRONT/front.sock;|" -e '/listen \[::\]/d' -e '/^\tssl_/d' -e 's|https://|http://|' \
		-e "s|\(h[123]\)\.internal:443|unix:$FRONT/\1/nginx.sock|" -e "s|/etc/nginx/sallyport-placed.map|$FRONT/placed.map|" -e "s|/var/log/nginx|$FRONT|" \
		nginx/front.conf >"$FRONT/site.conf"
	nginx_of "$FRONT" "include $FRONT/site.conf;"
}

# nginx_of FOLDER CONFIGURATION: one, in the foreground, its pid in FOLDER/pid
nginx_of() {
	local folder=$1
	cat >"$folder/nginx.conf" <<-END
		daemon off;
		$([ "$(id -u)" != 0 ] || echo 'user root;')
		worker_processes 1;
		pid $folder/nginx.pid;
		events { worker_connections 256; }
		http {
			access_log off;
			client_body_temp_path $folder/body; fastcgi_temp_path $folder/fcgi; proxy_temp_path $folder/proxy; uwsgi_temp_path $folder/uwsgi; scgi_temp_path $folder/scgi;
			$2
		}
	END
	"$NGINX" -e "$folder/error.log" -c "$folder/nginx.conf" 2>"$folder/start.log" 3>&- &
	echo $! >"$folder/pid"
}

teardown_file() {
	local n
	kill "$(cat "$FRONT/pid")" 2>/dev/null || true
	for n in 1 2 3; do
		kill "$(cat "$FRONT/n$n/pid")" 2>/dev/null || true
		SP_DIR=$(readlink "$FRONT/h$n") sp_teardown
	done
}

setup() {
	sp_until "$(cat "$FRONT/pid")" test -S "$FRONT/front.sock"
}

# ask OWNER PATH [CURL'S WORDS]
ask() { curl -s --max-time "$SP_DEADLINE" --unix-socket "$FRONT/front.sock" -H "Authorization: Bearer $(cat "$FRONT/token.$1")" -H 'Host: 127.0.0.1:8080' "http://127.0.0.1:8080$2" "${@:3}"; }

# call OWNER TOOL ARGUMENTS
call() {
	ask "$1" /mcp -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' -w '\n%{http_code}' \
		-d "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"$2\",\"arguments\":$3}}"
}
runs() { call "$1" run_code '{"conversationId":"c","language":"bash","code":"echo made by '"$1"' >/data/f.txt; echo hello"}'; }
rows() { sqlite3 -readonly "$(readlink "$FRONT/h$1")/data/sallyport.db" "SELECT count(*) FROM execution WHERE owner = 'owner$2'"; }

@test "each owner's runs are on his host, and nowhere else" {
	local n
	for n in 1 2 3; do
		run runs "$n"
		[ "${lines[-1]}" = 200 ]
		[[ $output == *hello* ]]
	done
	[ "$(rows 1 1)$(rows 2 2)$(rows 3 3)" = 111 ]
	[ "$(rows 1 2)$(rows 1 3)$(rows 2 1)$(rows 3 1)" = 0000 ]
}

@test "a download without a token finds the host that has the file" {
	local n url
	for n in 3 2 1; do
		url=$(runs "$n" | grep -oE '/files/[0-9a-f]{64}/f.txt' | head -1)
		[ "$(curl -s --unix-socket "$FRONT/front.sock" -H 'Host: 127.0.0.1:8080' "http://127.0.0.1:8080$url")" = "made by $n" ]
	done
}

@test "a token of another host is refused, not passed on" {
	cp "$FRONT/token.2" "$FRONT/token.x"
	sed -i 's/owner2/owner3/' "$FRONT/token.x"
	run runs x
	[ "${lines[-1]}" = 401 ]
}

@test "a host that is away: its owners get a 503 with a sentence, nobody else notices" {
	kill "$(cat "$FRONT/n2/pid")"
	sp_until "" sp_gone "$(cat "$FRONT/n2/pid")"
	run runs 2
	[ "${lines[-1]}" = 503 ]
	[[ $output == *"the host of this token does not answer"* ]]
	run runs 1
	[ "${lines[-1]}" = 200 ]
	local url
	url=$(runs 3 | grep -oE '/files/[0-9a-f]{64}/f.txt' | head -1)
	[ "$(curl -s --unix-socket "$FRONT/front.sock" -H 'Host: 127.0.0.1:8080' "http://127.0.0.1:8080$url")" = "made by 3" ] # asks the dead one, too
	[ "$(rows 1 2)$(rows 3 2)" = 00 ]
}
