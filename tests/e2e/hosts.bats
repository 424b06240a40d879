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

@test "an owner's runs are on the owner's host only" {
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

# on HOST COMMAND…: the CLI there
on() { "$SP_BIN/sallyport" "$2" --config "$(readlink "$FRONT/h$1")/sallyport.json" "${@:3}"; }

@test "a drained host starts nothing new" {
	run on 3 drain --reason 'new kernel'
	[ "$status" = 0 ]
	[ "$output" = "everybody: drained; nothing is under way" ]
	run runs 3
	[ "${lines[-1]}" = 503 ]
	[[ $output == *"This host is being emptied"* ]]
	ask 3 /mcp -D - -o /dev/null -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
		-d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"upload_file","arguments":{}}}' | grep -qi '^retry-after: 30'
	run call 3 list_runners '{}'
	[ "${lines[-1]}" = 200 ]
	run on 3 drain --reason "$(printf "x%.0s" {1..201})"
	[ "$status" = 2 ]
	[[ $output == *"at most 200 are kept"* ]]
	run on 3 drain --list
	[[ $output == *everybody*"new kernel"* ]]
	[ "$(on 3 drain --list --json | jq -sc '[.[] | [.owner, .reason]]')" = '[["*","new kernel"]]' ]
	SP_DIR=$(readlink "$FRONT/h3") SP_SOCKET=$(readlink "$FRONT/h3")/gateway.sock sp_http GET /readyz </dev/null
	[ "$(sed -n 's/^Status: \([0-9]*\).*/\1/p' "$(readlink "$FRONT/h3")/head")" = 503 ]
	jq -e '.checks.drain.ok == false and .checks.database.ok' "$(readlink "$FRONT/h3")/body"
	run runs 1
	[ "${lines[-1]}" = 200 ]
	on 3 drain --end
	run runs 3
	[ "${lines[-1]}" = 200 ]
	run on 3 drain --end
	[ "$status" = 3 ]
}

@test "a drain waits for open runs until its time is up" {
	local client id
	call 3 run_code '{"conversationId":"c","language":"bash","code":"echo began >/data/began; sleep 1000"}' >"$BATS_TEST_TMPDIR/reply" 3>&- &
	client=$!
	running() { [ "$(sqlite3 -readonly "$(readlink "$FRONT/h3")/data/sallyport.db" "SELECT count(*) FROM execution WHERE state = 'running'")" = 1 ]; }
	sp_until "$client" running
	run on 3 drain --owner owner3 --no-wait
	[ "$status" = 5 ]
	[ "$output" = "owner3: drained; still under way: 1" ]
	run on 3 export --move --owner owner3 -o "$BATS_TEST_TMPDIR/owner3"
	[ "$status" = 5 ]
	[[ $output == *"are under way"* ]]
	id=$(sqlite3 -readonly "$(readlink "$FRONT/h3")/data/sallyport.db" "SELECT id FROM execution WHERE state = 'running'")
	on 3 cancel "$id"
	wait "$client"
	run on 3 drain --owner owner3 --wait 60
	[ "$status" = 0 ]
	on 3 drain --end --owner owner3
}

@test "owners edits one line of the placement table" {
	local table=$BATS_TEST_TMPDIR/map
	printf '# who lives where\nbob h3;\nalice h1;\n' >"$table"
	on 1 owners place alice h2 --table "$table"
	[ "$(cat "$table")" = $'# who lives where\nbob h3;\nalice h2;' ]
	on 1 owners place carol h1 --table "$table"
	on 1 owners place bob --table "$table"
	[ "$(cat "$table")" = $'# who lives where\nalice h2;\ncarol h1;' ]
	for words in 'Alice h1' '-a h1' 'alice h1;' 'alice {' "$(printf 'a%.0s' {1..33}) h1" 'alice a*b'; do
		# shellcheck disable=SC2086
		run on 1 owners place --table "$table" -- $words
		[ "$status" = 2 ]
	done
	[ "$(cat "$table")" = $'# who lives where\nalice h2;\ncarol h1;' ]
	[ "$(on 2 owners list --json --table "$FRONT/placed.map" | jq -c '[.owner, .tokens, .host]')" = '["owner2",1,"h2"]' ]
}

@test "an owner moves with all that belongs to the owner" {
	local url before
	url=$(runs 2 | grep -oE '/files/[0-9a-f]{64}/f.txt' | head -1)
	before=$(rows 2 2)
	run on 2 export --move --owner owner2 -o "$FRONT/owner2"
	[ "$status" = 5 ]
	[[ $output == *"sallyport drain --owner owner2"* ]]
	[ ! -e "$FRONT/owner2" ]
	on 2 drain --owner owner2
	sqlite3 "$(readlink "$FRONT/h2")/data/sallyport.db" "INSERT INTO snippet VALUES ('owner2', 'kept', 2, 'bash', 'what it does', '{}', '[]', 'echo kept', 1),
		('', 'all', 1, 'bash', 'for everybody', '{}', '[]', 'echo all', 1)"
	on 2 tag nightly --owner owner2
	run on 2 export --move --owner owner2 -o "$FRONT/owner2"
	[ "$output" = "owner2: 1 tokens, 1 versions of snippets, 1 conversations with 1 files, $before runs" ]
	[ "$(stat -c %a "$FRONT/owner2")" = 600 ]

	# A file that somebody changed is refused, and nothing of it is written.
	cp "$FRONT/owner2" "$BATS_TEST_TMPDIR/changed"
	sqlite3 "$BATS_TEST_TMPDIR/changed" "UPDATE token SET owner = 'owner1'"
	run on 1 import --move "$BATS_TEST_TMPDIR/changed"
	[ "$status" = 2 ]
	[[ $output == *"a token is not as it must be"* ]]
	cp "$FRONT/owner2" "$BATS_TEST_TMPDIR/changed"
	sqlite3 "$BATS_TEST_TMPDIR/changed" "UPDATE file SET name = '../x'"
	run on 1 import --move "$BATS_TEST_TMPDIR/changed"
	[ "$status" = 2 ]
	cp "$FRONT/owner2" "$BATS_TEST_TMPDIR/changed"
	sqlite3 "$BATS_TEST_TMPDIR/changed" "UPDATE snippet SET owner = ''"
	run on 1 import --move "$BATS_TEST_TMPDIR/changed"
	[ "$status" = 2 ]
	[[ $output == *"a snippet is not as it must be"* ]]
	[ "$(rows 1 2)" = 0 ]

	on 1 import --move "$FRONT/owner2"
	[ "$(rows 1 2)" = "$before" ]
	[ "$(sqlite3 -readonly "$(readlink "$FRONT/h1")/data/sallyport.db" "SELECT owner, name, version, code FROM snippet")" = "owner2|kept|2|echo kept" ]
	[ "$(on 1 tag --json | jq -c .)" = "{\"tag\":\"nightly\",\"executions\":$before}" ]
	run on 1 import --move "$FRONT/owner2"
	[ "$status" = 5 ]
	[[ $output == *"has conversations here already"* ]]
	on 1 owners place owner2 --table "$FRONT/placed.map"
	on 2 owners leave owner2
	reload
	here() { runs 2 >/dev/null && [ "$(rows 1 2)" -gt "$before" ]; } # the front's new workers
	sp_until "$(cat "$FRONT/pid")" here
	[ "$(curl -s --unix-socket "$FRONT/front.sock" -H 'Host: 127.0.0.1:8080' "http://127.0.0.1:8080$url")" = "made by 2" ]
	[ "$(rows 2 2)" = "$before" ]
	on 1 verify
	on 2 verify
	# The runs belong to the conversation again: the same program sees its files.
	call 2 run_code '{"conversationId":"c","language":"bash","code":"cat f.txt"}' | grep -q 'made by 2'
}

# method OWNER SESSION METHOD PARAMS: a request of the legacy era; the last line is the status
method() {
	ask "$1" /mcp -D "$BATS_TEST_TMPDIR/head" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
		-H "Mcp-Session-Id: $2" -w '\n%{http_code}' -d "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"$3\",\"params\":$4}"
}

# The front reads its table again; the workers that have the old one accept nothing more.
reload() {
	local old worker
	old=$(pgrep -P "$(cat "$FRONT/pid")")
	kill -HUP "$(cat "$FRONT/pid")"
	for worker in $old; do
		retired() { ! ps -o args= -p "$worker" | grep -qv 'shutting down'; }
		sp_until "$(cat "$FRONT/pid")" retired
	done
}

@test "an owner moves once no task is open" {
	local session task text
	on 1 token add --owner carol --json | jq -r .token >"$FRONT/token.carol"
	lives() { call carol run_code "{\"conversationId\":\"c\",\"language\":\"python\",\"session\":true,\"code\":\"$1\"}"; }
	run lives "x = 41; open('kept.txt', 'w').write('kept')"
	[ "${lines[-1]}" = 200 ]
	method carol '' initialize '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}' >/dev/null
	session=$(tr -d '\r' <"$BATS_TEST_TMPDIR/head" | sed -n 's/^Mcp-Session-Id: //p')
	task=$(method carol "$session" tools/call "{\"name\":\"run_code\",\"task\":{},\"arguments\":{\"conversationId\":\"t\",\"language\":\"bash\",\"code\":\"echo begun; sleep $SP_ASLEEP; echo woken\"}}" |
		head -1 | jq -r .result.task.taskId)
	[ "${#task}" = 36 ]
	sp_until "" sp_asleep
	run on 1 drain --owner carol --no-wait
	[ "$status" = 5 ]
	[ "$output" = "carol: drained; still under way: 1" ]
	for words in "export --move --owner carol -o $BATS_TEST_TMPDIR/carol" "owners leave carol"; do
		# shellcheck disable=SC2086
		run on 1 $words
		[ "$status" = 5 ]
		[[ $output == *"1 runs and tasks of carol are under way: wait for them"* ]]
	done
	[ ! -e "$BATS_TEST_TMPDIR/carol" ]
	sp_wake
	# Drained, she still fetches what her task left; the idle interpreter is nothing that is under way.
	method carol "$session" tasks/result "{\"taskId\":\"$task\"}" | grep -q woken
	run on 1 drain --owner carol --wait 600
	[ "$output" = "carol: drained; nothing is under way" ]
	on 1 export --move --owner carol -o "$BATS_TEST_TMPDIR/carol"
	on 2 import --move "$BATS_TEST_TMPDIR/carol"
	on 1 owners place carol h2 --table "$FRONT/placed.map"
	on 1 owners leave carol
	reload
	there() { runs carol >/dev/null && [ "$(sqlite3 -readonly "$(readlink "$FRONT/h2")/data/sallyport.db" "SELECT count(*) FROM execution WHERE code = 'echo made by carol >/data/f.txt; echo hello'")" -gt 0 ]; }
	sp_until "$(cat "$FRONT/pid")" there
	run lives "print(open('kept.txt').read()); print(x)"
	text=$output
	[[ $text == *kept* && $text == *NameError* ]]
	[[ $text == *"The session's earlier state was lost (the server was started anew)"* ]]
	# Her clients open new sessions; the task stayed behind.
	run method carol "$session" tasks/get "{\"taskId\":\"$task\"}"
	[ "${lines[-1]}" = 404 ]
}

# One line of the page, "h1$ COMMAND": `sallyport` is the CLI there, nginx and systemctl are those of the front.
# shellcheck disable=SC2317 # called by the line
at() {
	local host=${1%%\$*} line=${1#*\$}
	sallyport() {
		if [ "$host" = front ]; then on 1 "$@" --table "$FRONT/placed.map"; else on "${host#h}" "$@"; fi
	}
	nginx() { "$NGINX" "$@" -e "$FRONT/check.log" -c "$FRONT/nginx.conf"; }
	systemctl() { [ "$*" = 'reload nginx' ] && reload; }
	echo "$host: $line"
	eval "$line"
	unset -f sallyport nginx systemctl
}

@test "the operator's page moves an owner line by line" {
	local url before line
	on 1 token add --owner alice --json | jq -r .token >"$FRONT/token.alice"
	url=$(runs alice | grep -oE '/files/[0-9a-f]{64}/f.txt' | head -1)
	list() { sqlite3 -readonly "$(readlink "$FRONT/h$1")/data/sallyport.db" "SELECT id, verdict, code FROM execution WHERE owner = 'alice' ORDER BY id"; }
	before=$(list 1)
	[ -n "$before" ]
	sp_page move >"$BATS_TEST_TMPDIR/page"
	[ "$(grep -c '^\(h1\|h2\|front\)\$ ' "$BATS_TEST_TMPDIR/page")" = "$(grep -c . "$BATS_TEST_TMPDIR/page")" ]
	cd "$BATS_TEST_TMPDIR"
	while read -r line; do at "$line"; done <page
	cd "$SP_ROOT"
	[ "$(list 2)" = "$before" ]
	moved() { runs alice >/dev/null && [ "$(list 2 | wc -l)" -gt "$(wc -l <<<"$before")" ]; }
	sp_until "$(cat "$FRONT/pid")" moved
	[ "$(curl -s --unix-socket "$FRONT/front.sock" -H 'Host: 127.0.0.1:8080' "http://127.0.0.1:8080$url")" = "made by alice" ]
	on 2 verify
}

@test "a host that is away: its owners get a 503 with a sentence, nobody else notices" {
	kill "$(cat "$FRONT/n3/pid")"
	sp_until "" sp_gone "$(cat "$FRONT/n3/pid")"
	run runs 3
	[ "${lines[-1]}" = 503 ]
	[[ $output == *"the host of this token does not answer"* ]]
	run runs 1
	[ "${lines[-1]}" = 200 ]
	local url
	url=$(runs 2 | grep -oE '/files/[0-9a-f]{64}/f.txt' | head -1)
	[ "$(curl -s --unix-socket "$FRONT/front.sock" -H 'Host: 127.0.0.1:8080' "http://127.0.0.1:8080$url")" = "made by 2" ] # asks the dead one, too
	[ "$(rows 1 3)$(rows 2 3)" = 00 ]
}
