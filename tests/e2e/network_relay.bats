#!/usr/bin/env bats
# The relay: what many, slow and greedy connections do to it, whom it serves, and what it is; PostgreSQL, the operator's proxy (tinyproxy).
# shellcheck disable=SC2016,SC2154 # programs in single quotes are meant for the jail; bats sets stderr

bats_require_minimum_version 1.5.0
load lib.bash
load network.bash

# The name server says nothing for longer than any test waits: who had to wait for a lookup of another jail would wait in vain.
@test "slow names of one jail do not hold up another jail's" {
	local jailer client fetch=(inside "$SP_BIN/sallyport" run --config service --network --timeout 200 -l bash -)
	config config "$ALLOW"
	jq --arg socket "$PWD/jailer.sock" '.jailer.socket = $socket' config >service
	RES_OPTIONS='timeout:30 attempts:5' start_inside jailer.log "$SP_BIN/sallyport-jailer" --config service
	jailer=$PID
	sp_until "$jailer" listens "$PWD/jailer.sock"
	cat >slow.py <<<'
import socket, sys
def asked(text):
    s = socket.create_connection(("127.83.0.1", 3128))
    s.sendall(text)
    return s
for numbers in range(0, 16), range(16, 32):
    waiting = [asked(b"GET http://silent%d.wild.example/ HTTP/1.0\r\n\r\n" % n) for n in numbers]
    asked(b"no request\r\n\r\n").recv(1)  # the relay has taken in what came before
    print("asked", flush=True)
    sys.stdin.readline()
    for s in waiting:
        s.close()
asked(b"no request\r\n\r\n").recv(1)
print("closed", flush=True)
sys.stdin.read()'
	mkfifo input
	inside "$SP_BIN/sallyport" run --config service --network --timeout 300 --stdin slow.py <input >out 2>err 3>&- &
	client=$!
	exec 9>input
	said() { [ "$(xargs <out)" = "$1" ]; }
	silent() { [ "$(grep -oi '^silent[0-9]*' "$DIR/queries" | sort -u | wc -l)" = 2 ]; } # as many as a jail may ask for at once
	fetched() {
		run -0 --separate-stderr "${fetch[@]}" <<<'curl -sSf --max-time 150 http://pub.example/ http://a.wild.example/'
		[ "${lines[*]}" = "pub.example / 80 a.wild.example / 80" ]
		kill -0 "$client"
	}
	sp_until "$client" said asked
	sp_until "$client" silent
	fetched
	echo >&9
	sp_until "$client" said "asked asked"
	fetched
	echo >&9
	sp_until "$client" said "asked asked closed"
	fetched
	silent
	exec 9>&-
	wait "$client"
	"${fetch[@]}" <<<'curl -sSf --max-time 150 http://a.wild.example/'
	sp_stop "$jailer"
}

@test "a relay that a user starts has that user's id" {
	local as=(setpriv --reuid=61234 --regid=61234 --clear-groups)
	"${as[@]}" test -r "$SP_ROOT/jail/runners/python.json" -a -x "$SP_BIN/sallyport" || skip "this checkout cannot be reached by another account"
	config with "$ALLOW"
	jq '.jailer.weaker_limits = true' with >config
	echo 'curl -sS http://pub.example/u; curl -sS http://a.wild.example/v; curl -sS -o /dev/null -w "%{http_code}" http://evil.example/' >program
	chmod 0755 . "$BATS_RUN_TMPDIR" "$(dirname "$BATS_TEST_TMPDIR")"
	run -0 --separate-stderr inside "${as[@]}" env -i PATH="$PATH" "$SP_BIN/sallyport" run --config config --network -l bash program
	echo "$output $stderr"
	[ "${lines[*]}" = "pub.example /u 80 a.wild.example /v 80 403" ]
	[[ $stderr == *"sallyport: network: evil.example:80: not in network.allow"* ]]
}

@test "half-closed connections count all bytes" {
	run -0 --separate-stderr net python --json <<<'
import socket
s = socket.create_connection(("pub.example", 82))
s.sendall(b"x" * 3000000)
s.shutdown(socket.SHUT_WR)
print(s.recv(100).decode())
s = socket.create_connection(("127.83.0.1", 3128))
s.sendall(b"CONNECT a.wild.example:82 HTTP/1.1\r\n\r\nearly")
f = s.makefile("rwb")
print(f.readline().decode().strip(), f.readline())
s.shutdown(socket.SHUT_WR)
print(f.read().decode())'
	[ "$(jq -j .stdout <<<"$output" | tr '\n' ' ' | tr -d '\r')" = "3000000 HTTP/1.1 200 Connection established b'\\r\\n' 5 " ]
	[ "$(jq -c '[.network.connections, .network.bytes_out, .network.bytes_in]' <<<"$output")" = "[2,3000005,8]" ]
}

@test "a thousand connections of one run are served" {
	run -0 --separate-stderr net python --json --timeout 100 <<<'
import select, socket
done = 0
for batch in range(2):
    open_ = [socket.create_connection(("pub.example", 80)) for _ in range(500)]
    for s in open_:
        s.sendall(b"GET /n HTTP/1.0\r\nHost: pub.example\r\n\r\n")
    for s in open_:
        done += s.makefile().read().count("pub.example /n 80")
        s.close()
print(done)'
	[ "$(jq -r '.stdout, .network.connections' <<<"$output" | xargs)" = "1000 1000" ]
}

@test "a connection that is not read from is not read" {
	run -0 --separate-stderr net python <<<'
import select, socket
s = socket.create_connection(("pub.example", 81))
s.setblocking(False)
sent = 0
while select.select([], [s], [], 1)[1]:
    sent += s.send(b"x" * 65536)
print(sent < 8000000)
s = socket.create_connection(("pub.example", 80))
s.sendall(b"GET /big/50 HTTP/1.0\r\nHost: pub.example\r\n\r\n")
n = 0
while data := s.recv(1 << 20):
    n += len(data)
print(n > 50 << 20)'
	[ "${lines[*]}" = "True True" ]
}

@test "the limit of bytes cuts connections" {
	config config "$ALLOW" '"mb": 3'
	run -0 --separate-stderr net python --json <<<'
import socket
s = socket.create_connection(("pub.example", 80))
s.sendall(b"GET /big/50 HTTP/1.0\r\nHost: pub.example\r\n\r\n")
n = 0
try:
    while data := s.recv(1 << 20):
        n += len(data)
except ConnectionResetError:
    print("reset", n <= 3 << 20)'
	[ "$(jq -j .stdout <<<"$output")" = "reset True" ]
	run -0 denied
	[ "$output" = "pub.example:80 the limit of bytes is used up" ]
}

@test "four clients talk to a real PostgreSQL" {
	local server=/usr/lib/postgresql/15/bin
	[ -x $server/postgres ] || skip "no postgresql-15"
	local pg
	pg=$(mktemp -d /tmp/sp-pg-XXXXXX)
	echo "$pg" >>"$DIR/folders"
	chown nobody "$pg"
	as_nobody() { (cd / && inside setpriv --reuid nobody --regid nogroup --clear-groups "$@"); }
	install -m 0600 -o nobody "$DIR/key.pem" "$DIR/cert.pem" "$pg"
	cp "$DIR/ca.pem" .
	as_nobody $server/initdb -D "$pg/data" -U alice --auth=trust --no-sync >pg.log
	cd / # where nobody may be
	start_inside "$BATS_TEST_TMPDIR/pg.log" setpriv --reuid nobody --regid nogroup --clear-groups $server/postgres -D "$pg/data" -p 5433 -c listen_addresses=127.0.0.1 \
		-c unix_socket_directories="$pg" -c fsync=off -c ssl=on -c ssl_cert_file="$pg/cert.pem" -c ssl_key_file="$pg/key.pem"
	cd "$BATS_TEST_TMPDIR"
	sp_until "$PID" inside $server/pg_isready -q -h 127.0.0.1 -p 5433
	config config '"db.internal:5433 private"'
	run -0 --separate-stderr net python <<<'
import psycopg2
c = psycopg2.connect("host=db.internal port=5433 user=alice dbname=postgres")
cur = c.cursor()
cur.execute("create table t(x int); insert into t select generate_series(1, 1000); select sum(x) from t")
print(cur.fetchone()[0])
c.commit()'
	[ "$output" = 500500 ]
	run -0 --separate-stderr net bash <<<'/usr/lib/postgresql/15/bin/psql -h db.internal -p 5433 -U alice -Atc "select count(*) from t" postgres'
	[ "$output" = 1000 ]
	run -0 --separate-stderr net javascript <<<'
const { Client } = require("pg");
const c = new Client({host: "db.internal", port: 5433, user: "alice", database: "postgres"});
c.connect().then(() => c.query("select max(x) from t")).then(r => { console.log(r.rows[0].max); return c.end(); });'
	[ "$output" = 1000 ]
	run -0 --separate-stderr net javascript <<<'
const sql = require("postgres")({host: "db.internal", port: 5433, username: "alice", database: "postgres"});
sql`select min(x) from t`.then(r => { console.log(r[0].min); return sql.end(); });'
	[ "$output" = 1 ]
	# The server's name is checked by them and by the relay, which reads it behind PostgreSQL's request for TLS.
	local ssl='select ssl from pg_stat_ssl where pid = pg_backend_pid()'
	run -0 --separate-stderr net python -f ca.pem <<<"
import psycopg2
c = psycopg2.connect('host=db.internal port=5433 user=alice dbname=postgres sslmode=verify-full sslrootcert=/data/ca.pem').cursor()
c.execute('$ssl')
print(c.fetchone()[0])
c = psycopg2.connect('host=db.internal port=5433 user=alice dbname=postgres sslmode=disable').cursor()
c.execute('$ssl')
print(c.fetchone()[0])"
	[ "${lines[*]}" = "True False" ]
	run -0 --separate-stderr net javascript -f ca.pem <<<"
const ssl = {ca: require('fs').readFileSync('/data/ca.pem')}, to = {host: 'db.internal', port: 5433, database: 'postgres', ssl};
const c = new (require('pg').Client)({...to, user: 'alice'}), sql = require('postgres')({...to, username: 'alice'});
c.connect().then(() => c.query('$ssl')).then(r => { console.log(r.rows[0].ssl); return c.end(); })
	.then(() => sql\`$ssl\`).then(r => { console.log(r[0].ssl); return sql.end(); });"
	[ "${lines[*]}" = "true true" ]
	run --separate-stderr net bash <<<'/usr/lib/postgresql/15/bin/psql -At "host=evil.example hostaddr=$(getent hosts db.internal | cut -d" " -f1) port=5433 user=alice dbname=postgres sslmode=require" -c "select 1"'
	[ "$status" -ne 0 ]
	[[ $stderr == *"network: db.internal:5433: another host was named inside the connection"* ]]
	sp_stop "$PID"
}

@test "the operator's proxy carries everything" {
	command -v tinyproxy >/dev/null || skip "no tinyproxy"
	cat >"$DIR/tinyproxy.conf" <<-EOF2
		Port 8888
		Listen 127.0.0.1
		Allow 127.0.0.1
		BasicAuth user secret
		ConnectPort 80
		ConnectPort 443
		LogLevel Connect
	EOF2
	start_inside tinyproxy.log tinyproxy -d -c "$DIR/tinyproxy.conf"
	sp_until "$PID" inside curl -s -o /dev/null http://127.0.0.1:8888/
	config config "$ALLOW" '"proxy": "http://user:secret@127.0.0.1:8888"'
	run -0 --separate-stderr net bash <<<'curl -sS http://a.wild.example/p; unset http_proxy; curl -sS http://pub.example/q; curl -sSo /dev/null -w "%{http_code}" http://loop.wild.example/ --proxy $HTTP_PROXY'
	[ "${lines[*]}" = "a.wild.example /p 80 pub.example /q 80 403" ]
	grep -q "CONNECT $PUBLIC:80" tinyproxy.log
	run ! grep -q "CONNECT a.wild" tinyproxy.log
	config config "$ALLOW" '"proxy": "http://user:secret@127.0.0.1:8888", "proxy_resolves": true'
	: >"$DIR/queries"
	run -0 --separate-stderr net bash <<<'curl -sS http://a.wild.example/p'
	[ "$output" = "a.wild.example /p 80" ]
	grep -q "CONNECT a.wild.example:80" tinyproxy.log
	run --separate-stderr net bash <<<'curl -sk --connect-to evil.example:443:a.wild.example:443 https://evil.example/'
	[ "$status" -ne 0 ]
	[[ $stderr == *"network: a.wild.example:443: another host was named inside the connection"* ]]
	run -0 --separate-stderr net bash <<<'curl -sSk https://a.wild.example/p'
	[ "$output" = "a.wild.example /p 443" ]
	config config "$ALLOW" '"proxy": "http://user:wrong@127.0.0.1:8888"'
	run -0 --separate-stderr net bash --json <<<'curl -sSo /dev/null -w "%{http_code}" http://a.wild.example/p'
	[ "$(jq -j .stdout <<<"$output")" = 502 ]
	run -0 denied
	[ "$output" = "a.wild.example:80 the operator's proxy did not connect" ]
	sp_stop "$PID"
}

@test "a relay that is killed is replaced" {
	config config "$ALLOW"
	jq --arg socket "$PWD/jailer.sock" '.jailer.socket = $socket' config >service
	start_inside jailer.log "$SP_BIN/sallyport-jailer" --config service
	local jailer=$PID monitor relay
	sp_until "$jailer" listens "$PWD/jailer.sock"
	sp_until "$jailer" pgrep -P "$jailer" relay-monitor
	monitor=$(pgrep -P "$jailer" relay-monitor)
	sp_until "$jailer" pgrep -P "$monitor" jailer-relay
	relay=$(pgrep -P "$monitor" jailer-relay)
	# As long as it takes: the first client waits until all languages have told their versions, which is much on a busy machine.
	inside "$SP_BIN/sallyport" run --config service -l bash - <<<:
	mkfifo input
	printf 'import sys, urllib.request\nprint(urllib.request.urlopen("http://pub.example/").status, flush=True)\nsys.stdin.read()\n' >program.py
	inside "$SP_BIN/sallyport" run --config service --network --stdin program.py <input >out 2>err 3>&- &
	local client=$! status=0
	exec 9>input
	sp_until "$client" grep -q 200 out
	kill -KILL "$relay"
	wait "$client" || status=$?
	exec 9>&-
	[ "$status" = 125 ]
	grep -q 'The sandbox failed at "network relay"' err
	again() { inside "$SP_BIN/sallyport" run --config service --network -l bash - <<<'curl -sSf http://pub.example/'; }
	sp_until "$jailer" again
	[ "$(pgrep -P "$monitor" jailer-relay)" != "$relay" ]
	sp_stop "$jailer"
	sp_until "" sp_gone "$monitor"
}

@test "the relay has no privileges" {
	config config "$ALLOW"
	jq --arg socket "$PWD/jailer.sock" '.jailer.socket = $socket' config >service
	start_inside jailer.log "$SP_BIN/sallyport-jailer" --config service
	local jailer=$PID relay resolver
	sp_until "$jailer" listens "$PWD/jailer.sock"
	run -0 --separate-stderr inside "$SP_BIN/sallyport" run --config service --network -l bash - <<<'curl -sSf http://pub.example/'
	relay=$(pgrep -P "$(pgrep -P "$jailer" relay-monitor)" jailer-relay)
	resolver=$(pgrep -P "$relay" relay-resolver | head -1)
	for pid in $relay $resolver; do
		grep -qx $'Seccomp:\t2' "/proc/$pid/status"
		grep -qx $'NoNewPrivs:\t1' "/proc/$pid/status"
		grep -qx $'CapPrm:\t0000000000000000' "/proc/$pid/status"
		[ "$(awk '/^Uid:/ { print $2 }' "/proc/$pid/status")" -ge 1879048192 ]
		[ "$(awk '/^Uid:/ { print $2 }' "/proc/$pid/status")" != "$(awk '/^Uid:/ { print $2 }' "/proc/$jailer/status")" ]
	done
	[ "$(find "/proc/$relay/fd" -lname '/*' ! -lname '/dev/null' ! -lname "$PWD/jailer.log" | wc -l)" = 0 ]
	sp_stop "$jailer"
}
