#!/usr/bin/env bats
# Programs with network: real servers and a name server in network namespaces of this test, PostgreSQL, tinyproxy. Nothing leaves the machine.
#
#   here (host)        [ inside: the jailer, its relay, PostgreSQL, tinyproxy ] ---veth--- [ outside: network_servers.py, "the internet" ]
#                        198.51.100.2, 93.184.215.2                                          198.51.100.1, 93.184.215.14
# shellcheck disable=SC2016,SC2154 # programs in single quotes are meant for the jail; bats sets stderr

bats_require_minimum_version 1.5.0
load lib.bash

PUBLIC=93.184.215.14
OWN=93.184.215.2

setup_file() {
	[ "$(id -u)" = 0 ] || skip "makes network namespaces: needs root"
	command -v ip >/dev/null || skip "no ip"
	export DIR=$BATS_FILE_TMPDIR
	chmod 0755 "$DIR"
	unset SALLYPORT_CONFIG
	world >&3 2>&1 || { cat "$DIR/world.log" >&3; return 1; }
}

teardown_file() {
	local pid folder
	for pid in $(tac "$DIR/pids" 2>/dev/null); do sp_stop "$pid"; done
	while read -r folder; do rm -rf "$folder"; done < <(cat "$DIR/folders" 2>/dev/null)
}

setup() {
	[ "$(id -u)" = 0 ] || skip "makes network namespaces: needs root"
	cd "$BATS_TEST_TMPDIR" || return
	: >"$DIR/queries"
}

# start LOG COMMAND…: in the background, ended by teardown_file; sets $PID. The command is a program: a function would be a shell around it.
start() {
	local log=$1
	shift
	"$@" >"$log" 2>&1 3>&- &
	PID=$!
	echo "$PID" >>"$DIR/pids"
}

inside() {
	nsenter -t "$INSIDE" -n -m --wd="$PWD" -- "$@"
}

# The same with `inside`.
start_inside() {
	local log=$1
	shift
	start "$log" nsenter -t "$INSIDE" -n -m --wd="$PWD" -- "$@"
}

moved() { # PID: is it in namespaces of its own, which unshare has made private before it starts the program?
	[ "$(cat "/proc/$1/comm")" = sleep ] && [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}

listens() { # PATH: in the jailer's network namespace
	nsenter -t "$INSIDE" -n awk -v path="$1" '$4 == "00010000" && $8 == path { found = 1 } END { exit !found }' /proc/net/unix
}

certificates() {
	openssl req -x509 -newkey rsa:2048 -nodes -keyout "$DIR/ca.key" -out "$DIR/ca.pem" -days 30 -subj "/CN=test CA" \
		-addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
	openssl req -newkey rsa:2048 -nodes -keyout "$DIR/key.pem" -out "$DIR/request.pem" -subj "/CN=pub.example"
	printf 'subjectAltName=DNS:pub.example,DNS:*.wild.example,DNS:db.internal\nextendedKeyUsage=serverAuth\n' >"$DIR/extensions"
	openssl x509 -req -in "$DIR/request.pem" -CA "$DIR/ca.pem" -CAkey "$DIR/ca.key" -CAcreateserial -days 30 -out "$DIR/cert.pem" \
		-extfile "$DIR/extensions"
}

world() {
	start "$DIR/world.log" unshare --net --mount sleep infinity
	export INSIDE=$PID
	start "$DIR/world.log" unshare --net sleep infinity
	export OUTSIDE=$PID
	sp_until "" moved "$INSIDE" && sp_until "" moved "$OUTSIDE" || return
	certificates >>"$DIR/world.log" 2>&1 || return
	{
		ip link add spin netns "$INSIDE" type veth peer name spout netns "$OUTSIDE" &&
			nsenter -t "$INSIDE" -n sh -c "ip link set lo up && ip link set spin up && ip addr add 198.51.100.2/24 dev spin &&
				ip addr add $OWN/24 dev spin && ip route add default via 198.51.100.1" &&
			nsenter -t "$OUTSIDE" -n sh -c "ip link set lo up && ip link set spout up && ip addr add 198.51.100.1/24 dev spout &&
				ip addr add $PUBLIC/24 dev spout && ip route add default via 198.51.100.2"
	} >>"$DIR/world.log" 2>&1 || return
	# Asked once, and patiently: the log of what was asked for is compared, and one name has another answer at the second time.
	printf 'nameserver 198.51.100.1\noptions timeout:30 attempts:2\n' >"$DIR/resolv.conf"
	echo "hosts: files dns" >"$DIR/nsswitch.conf"
	inside sh -c "mount --bind $DIR/resolv.conf /etc/resolv.conf && mount --bind $DIR/nsswitch.conf /etc/nsswitch.conf" || return
	start "$DIR/servers.log" nsenter -t "$OUTSIDE" -n /usr/bin/python3 "$BATS_TEST_DIRNAME/network_servers.py" "$PUBLIC" 198.51.100.1 "$OWN" "$DIR"
	sp_until "$PID" grep -q ready "$DIR/servers.log"
}

# config NAME ENTRIES [MORE]: a configuration for a private jailer; more members of network
config() {
	cat >"$1" <<-EOF2
		{"jailer": {"runners_dir": "$SP_ROOT/jail/runners", "modules_dir": "$(dirname "$(realpath "$SP_ROOT/jail/runners/npm/node_modules")")"},
		 "network": {"allow": [$2] ${3:+, $3}}}
	EOF2
}

ALLOW='"pub.example:80", "pub.example:443", "pub.example:444", "*.wild.example:80", "*.wild.example:443", "*.wild.example:444", "93.184.215.14:8080", "pub.example:81", "pub.example:82",
	"*.wild.example:82"'

# net LANGUAGE [OPTION…]: runs the program on standard input with network and $CONFIG
net() {
	local language=$1
	shift
	cat >program
	[ -e config ] || config config "$ALLOW"
	inside "$SP_BIN/sallyport" run --config config --network -l "$language" "$@" program
}

denied() { # the refusals of a --json result, one a line
	jq -r '.network.denied[] | "\(.host):\(.port) \(.reason)"' <<<"$output"
}

@test "exact entries are reached by name, without a proxy" {
	run -0 --separate-stderr net python <<<'
import socket
assert not socket.gethostbyname("pub.example").startswith("93.")
s = socket.create_connection(("pub.example", 80))
s.sendall(b"GET /x HTTP/1.0\r\nHost: pub.example\r\n\r\n")
print(s.makefile().read().splitlines()[-1])'
	[ "$output" = "pub.example /x 80" ]
}

@test "an address in the list is reached at that address, its neighbours are not" {
	run -0 --separate-stderr net python <<<'
import socket
s = socket.create_connection(("93.184.215.14", 8080))
s.sendall(b"GET /x HTTP/1.0\r\nHost: h\r\n\r\n")
print(s.makefile().read().splitlines()[-1])
for at in [("93.184.215.14", 80), ("93.184.215.15", 8080), ("93.184.215.2", 22), ("198.51.100.1", 53), ("192.0.2.1", 80), ("169.254.169.254", 80)]:
    try:
        socket.create_connection(at, 5)
        print("connected", at)
    except OSError as e:
        print(e.errno)'
	[ "${lines[*]}" = "h /x 8080 111 101 101 101 101 101" ]
	[[ $stderr == *"sallyport: network: an address that is not in network.allow was tried (5)"* ]]
}

@test "denied connections are counted" {
	run -0 --separate-stderr net python --json <<<'
import socket, urllib.request
for family, host in [(socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")]:
    for kind in [socket.SOCK_STREAM, socket.SOCK_DGRAM]:
        print(socket.socket(family, kind).connect_ex((host, 80)))
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname())
print(socket.socket().connect_ex(("127.0.0.1", 9)))
print(urllib.request.urlopen("http://a.wild.example/").status)'
	[ "$(jq -j .stdout <<<"$output" | xargs)" = "101 101 101 101 111 200" ]
	[ "$(jq -c '[.network.unrouted, .network.connections, .network.denied]' <<<"$output")" = "[4,1,[]]" ]
}

@test "without --network there are no names, no proxy, no way" {
	config config "$ALLOW"
	cat >program <<<'
import os, socket
print([k for k in os.environ if "proxy" in k.lower()], "example" in open("/etc/hosts").read())
for at in [("127.83.0.1", 3128), ("127.83.1.1", 80), ("93.184.215.14", 80)]:
    try:
        socket.create_connection(at, 5)
        print("connected", at)
    except OSError as e:
        print(e.errno)'
	run -0 --separate-stderr inside "$SP_BIN/sallyport" run --config config -l python program
	[ "${lines[*]}" = "[] False 111 111 101" ]
}

@test "requests, urllib, curl, Node's and bun's fetch go through the proxy unchanged" {
	cp "$DIR/ca.pem" .
	run -0 --separate-stderr net python -f ca.pem <<<'
import requests, urllib.request, ssl
print(requests.get("https://a.wild.example/r", verify="ca.pem").text, end="")
print(requests.get("http://a.wild.example/r").text, end="")
print(requests.post("http://a.wild.example/", data="olleh").text)
context = ssl.create_default_context(cafile="ca.pem")
print(urllib.request.urlopen("https://a.wild.example/u", context=context).read().decode(), end="")
print(urllib.request.urlopen("http://pub.example/u").read().decode(), end="")'
	[ "${lines[*]}" = "a.wild.example /r 443 a.wild.example /r 80 hello a.wild.example /u 443 pub.example /u 80" ]
	[ -z "$stderr" ]
	run -0 --separate-stderr net bash -f ca.pem <<<'curl -sS --cacert ca.pem https://a.wild.example/c https://pub.example/d; curl -sS http://a.wild.example/e'
	[ "${lines[*]}" = "a.wild.example /c 443 pub.example /d 443 a.wild.example /e 80" ]
	for language in javascript typescript; do
		run -0 --separate-stderr net $language -f ca.pem -e NODE_EXTRA_CA_CERTS=/data/ca.pem <<<'
for (const url of ["https://a.wild.example/f", "http://a.wild.example/f", "https://pub.example/f"])
	await fetch(url).then(r => r.text()).then(t => console.log(t.trim()));' || { echo "$language: $output $stderr"; return 1; }
		echo "$language: $stderr"
		[ "${lines[*]}" = "a.wild.example /f 443 a.wild.example /f 80 pub.example /f 443" ]
		[ -z "$stderr" ]
	done
}

@test "TLS through a tunnel has the right server name" {
	cp "$DIR/ca.pem" .
	run -0 --separate-stderr net bash -f ca.pem <<<'
unset HTTPS_PROXY https_proxy
curl -sS --cacert ca.pem https://pub.example/t'
	[ "$output" = "pub.example /t 443" ]
}

# In a tunnel through the proxy, and on an exact entry's own listener; the server writes down which names it is asked for.
other_server_names() {
	: >"$DIR/names"
	run -0 --separate-stderr net python --json <<<'
import socket, ssl
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

def tunnel(host):
    s = socket.create_connection(("127.83.0.1", 3128))
    s.sendall(b"CONNECT %s:443 HTTP/1.1\r\n\r\n" % host.encode())
    while not (head := locals().get("head", b"") + s.recv(1)).endswith(b"\r\n\r\n"):
        pass
    assert b" 200 " in head, head
    return s

def shake(s, name, piece=65536, before=b""):
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    get, put = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(get, put, server_hostname=name)
    try:
        while True:
            try:
                tls.do_handshake()
                return print("shaken")
            except ssl.SSLWantReadError:
                out, before = before + put.read(), b""
                for at in range(0, len(out), piece):
                    s.sendall(out[at : at + piece])
                data = s.recv(65536)
                if not data:
                    return print("closed")
                get.write(data)
    except (ConnectionResetError, BrokenPipeError):
        print("reset")

shake(tunnel("a.wild.example"), "A.wild.example")
shake(tunnel("a.wild.example"), "a.wild.example", 1)
shake(tunnel("a.wild.example"), "evil.example")
shake(tunnel("a.wild.example"), "evil.example", 1)
shake(tunnel("a.wild.example"), "two.wild.example")
shake(tunnel("two.wild.example"), None)
shake(tunnel("pub.example"), "evil.example")
shake(tunnel("pub.example"), None)
shake(socket.create_connection(("pub.example", 443)), "evil.example")
shake(socket.create_connection(("pub.example", 443)), "pub.example")
shake(socket.create_connection(("pub.example", 443)), None)
shake(tunnel("a.wild.example"), "evil.example", before=b"\x14\x03\x01\x00\x00")
s = tunnel("a.wild.example")
s.sendall(b"\x16\x03\x01\x02\x00\x01")
s.shutdown(socket.SHUT_WR)
try:
    print(s.recv(1))
except ConnectionResetError:
    print("reset")'
	[ "$(jq -j .stdout <<<"$output" | tr '\n' ' ')" = "shaken shaken reset reset reset reset reset shaken reset shaken shaken reset reset " ]
	run -0 denied
	[ "$output" = "a.wild.example:443 another host was named inside the connection (TLS server name or HTTP Host)
two.wild.example:443 TLS without a server name
pub.example:443 another host was named inside the connection (TLS server name or HTTP Host)
a.wild.example:443 TLS or HTTP that names no host which the relay can read" ]
	[ "$(LC_ALL=C sort -u "$DIR/names" | xargs)" = "A.wild.example None a.wild.example pub.example" ]
}
@test "another host inside a tunnel is refused and told: TLS server name, none, ClientHello in pieces" { sp_gauged 1 other_server_names; }

# The server has the name by then, but it is the last one that counts.
@test "another host inside a tunnel is refused and told: in the second ClientHello, after a HelloRetryRequest" {
	: >"$DIR/names"
	run -0 --separate-stderr net python --json <<<'
import socket, ssl
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
AGAIN = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")

def shake(s, name, second, early=b"", piece=65536):
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    get, put = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(get, put, server_hostname=name)
    hellos = 0
    try:
        while True:
            try:
                tls.do_handshake()
                tls.write(b"GET /again HTTP/1.0\r\nHost: %s\r\n\r\n" % name.encode())
                s.sendall(put.read())
                while b" 444" not in (text := locals().get("text", b"") + get_some(tls, s, get)):
                    pass
                return print(hellos, text.splitlines()[-1].decode())
            except ssl.SSLWantReadError:
                out = put.read()
                if b"\x16\x03" in out and name.encode() in out:
                    hellos += 1
                    if hellos == 2:
                        out = early + out.replace(name.encode(), second.encode())
                for at in range(0, len(out), piece):
                    s.sendall(out[at : at + piece])
                data = s.recv(65536)
                if hellos == 1:
                    assert AGAIN in data, data
                if not data:
                    return print("closed")
                get.write(data)
    except (ConnectionResetError, BrokenPipeError):
        print(hellos, "reset")

def get_some(tls, s, get):
    while True:
        try:
            return tls.read(65536)
        except ssl.SSLWantReadError:
            get.write(s.recv(65536))

def tunnel(host):
    s = socket.create_connection(("127.83.0.1", 3128))
    s.sendall(b"CONNECT %s:444 HTTP/1.1\r\n\r\n" % host.encode())
    while not (head := locals().get("head", b"") + s.recv(1)).endswith(b"\r\n\r\n"):
        pass
    return s

shake(tunnel("a.wild.example"), "a.wild.example", "a.wild.example")
shake(tunnel("a.wild.example"), "a.wild.example", "a.wild.example", piece=1)
shake(tunnel("a.wild.example"), "a.wild.example", "b.wild.example")
shake(tunnel("a.wild.example"), "a.wild.example", "b.wild.example", piece=1)
shake(socket.create_connection(("pub.example", 444)), "pub.example", "pub.example")
shake(socket.create_connection(("pub.example", 444)), "pub.example", "bad.example")
shake(socket.create_connection(("pub.example", 444)), "pub.example", "pub.example", b"\x17\x03\x03\x00\x03xyz")'
	echo "$output $stderr"
	[ "$(jq -j .stdout <<<"$output" | tr '\n' ';')" = "2 a.wild.example /again 444;2 a.wild.example /again 444;2 reset;2 reset;2 pub.example /again 444;2 reset;2 reset;" ]
	run -0 denied
	[ "$output" = "a.wild.example:444 another host was named inside the connection (TLS server name or HTTP Host)
pub.example:444 another host was named inside the connection (TLS server name or HTTP Host)
pub.example:444 TLS or HTTP that names no host which the relay can read" ]
	[ "$(LC_ALL=C sort -u "$DIR/names" | xargs)" = "a.wild.example pub.example" ]
}

other_requests() {
	run -0 --separate-stderr net python --json <<<'
import socket

def ask(to, text, tunnel=b"", pieces=1):
    s = socket.create_connection(to)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    f = s.makefile("rb")
    if tunnel:
        s.sendall(b"CONNECT %s HTTP/1.1\r\n\r\n" % tunnel)
        assert b" 200 " in f.readline() and f.readline() == b"\r\n"
    try:
        for at in range(0, len(text), len(text) // pieces):
            s.sendall(text[at : at + len(text) // pieces])
        text = f.read()
        print(text.count(b"HTTP/1.0 200"), text.split(b"\r\n")[-1].strip().decode())
    except (ConnectionResetError, BrokenPipeError):
        print("reset")

proxy, exact = ("127.83.0.1", 3128), ("pub.example", 80)
for to, host, tunnel in (proxy, b"a.wild.example", b"a.wild.example:80"), (exact, b"pub.example", b""):
    ask(to, b"GET /1 HTTP/1.1\r\nHost: %s\r\n\r\n" % host, tunnel, 10)
    ask(to, b"GET /2 HTTP/1.1\r\nHost: evil.example\r\n\r\n", tunnel, 10)
    ask(to, b"GET /3 HTTP/1.1\r\nHost: %s\r\nConnection: keep-alive\r\n\r\nGET /4 HTTP/1.1\r\nHost: evil.example\r\n\r\n" % host, tunnel)
    ask(to, b"GET http://evil.example/5 HTTP/1.1\r\nHost: %s\r\n\r\n" % host, tunnel)
    ask(to, b"GET /6 RTSP/1.0\r\nHost: evil.example\r\n\r\n", tunnel)
    ask(to, b"A" * 40 + b" /7 HTTP/1.1\r\nHost: evil.example\r\n\r\n", tunnel)'
	[ "$(jq -j .stdout <<<"$output" | tr '\n' ' ')" = "1 a.wild.example /1 80 reset reset reset reset reset 1 pub.example /1 80 reset reset reset reset reset " ]
	run -0 denied
	[ "$output" = "a.wild.example:80 another host was named inside the connection (TLS server name or HTTP Host)
a.wild.example:80 TLS or HTTP that names no host which the relay can read
pub.example:80 another host was named inside the connection (TLS server name or HTTP Host)
pub.example:80 TLS or HTTP that names no host which the relay can read" ]
}
@test "another host inside a tunnel is refused and told: a second HTTP request" { sp_gauged 1 other_requests; }

not_on_the_list() {
	run -0 --separate-stderr net bash --json <<<'
for url in http://evil.example/ https://evil.example/ http://pub.example:8081/ http://wild.example/ http://xwild.example/ http://pub.example.evil.example/ \
	http://user:pw@evil.example/ http://93.184.215.14/ http://127.0.0.1:22/ "http://[::ffff:127.0.0.1]/" http://0x7f.1/ http://2130706433/ ; do
	curl -sS -o /dev/null -w "%{http_code}\n" --noproxy "" "$url"
done 2>&1
curl -sS https://secret.data.evil.example/ 2>&1 | grep -o "CONNECT.*40[03]"
exit 0'
	[ "$(jq -r .verdict <<<"$output")" = OK ]
	run -0 denied
	echo "$output"
	[[ $output == *"evil.example:80 not in network.allow"* ]]
	[[ $output == *"evil.example:443 not in network.allow"* ]]
	[[ $output == *"wild.example:80 not in network.allow"* ]]
	[[ $output == *"xwild.example:80 not in network.allow"* ]]
	[[ $output == *"pub.example.evil.example:80 not in network.allow"* ]]
	[[ $output == *"93.184.215.14:80 not in network.allow"* ]]
	[[ $output == *"127.0.0.1:80 not in network.allow"* ]]
	[[ $output == *"secret.data.evil.example:443 not in network.allow"* ]]
	[ ! -s "$DIR/queries" ]
}
@test "a host that is not on the list is never asked for" { sp_gauged 1 not_on_the_list; }

@test "names that mean addresses which are not public are refused, however they are written" {
	run -0 --separate-stderr net bash --json <<<'
for name in loop zero priv meta mapped six own two none LOOP turn turn; do
	curl -sS -o /dev/null -w "$name %{http_code}\n" http://$name.wild.example/
done
curl -sS -o /dev/null -w "dot %{http_code}\n" http://loop.wild.example./
curl -sSk -o /dev/null https://priv.wild.example/ 2>/dev/null
exit 0'
	[ "$(jq -j .stdout <<<"$output" | tr '\n' ' ')" = "loop 403 zero 403 priv 403 meta 403 mapped 403 six 403 own 403 two 200 none 502 LOOP 403 turn 200 turn 403 dot 403 " ]
	[ "$(jq -r .network.connections <<<"$output")" = 2 ]
	run -0 denied
	[[ $output == *"loop.wild.example:80 not a public address"* ]]
	[[ $output == *"own.wild.example:80 an address of this host"* ]]
	[[ $output == *"none.wild.example:80 the name does not resolve"* ]]
	[[ $output == *"priv.wild.example:443 not a public address"* ]]
	# With a dot at the end, so that no search domain is tried.
	run ! grep -v 'wild.example [0-9]*$' "$DIR/queries"
}

# The name server says nothing for longer than any test waits: who had to wait for a lookup of another jail would wait in vain.
@test "slow names of one jail hold no other jail's, also when who asked has gone" {
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

@test "the same name private where the entry says so" {
	start_inside web.log /usr/bin/python3 -m http.server --bind 127.0.0.1 8123
	sp_until "$PID" inside curl -s -o /dev/null http://127.0.0.1:8123/
	config config '"local.example:8123 private", "*.wild.example:8123"'
	run -0 --separate-stderr net bash <<<'for host in local loop.wild; do curl -sS -o /dev/null -w "%{http_code} " http://$host.example:8123/; done'
	[ "$output" = "200 403 " ]
	[[ $stderr == *"sallyport: network: loop.wild.example:8123: not a public address"* ]]
	sp_stop "$PID"
}

@test "IPv6: a private server, by name and by address" {
	start_inside web.log /usr/bin/python3 -m http.server --bind ::1 8124
	sp_until "$PID" inside curl -s -o /dev/null "http://[::1]:8124/"
	config config '"six.wild.example:8124 private", "[::1]:8124 private"'
	run -0 --separate-stderr net bash <<<'for host in six.wild.example "[::1]"; do curl -sS -o /dev/null -w "%{http_code} " --noproxy "*" "http://$host:8124/"; done'
	[ "$output" = "200 200 " ]
	config config '"six.wild.example:8124"'
	# An end before the answer: curl's 7 (before it saw that it is connected), 52 (empty), 55 (while it sends) or 56 (while it reads).
	run --separate-stderr net bash <<<'curl -sS --noproxy "*" http://six.wild.example:8124/ 2>/dev/null; echo $?'
	[[ $output == @(7|52|55|56) ]]
	[[ $stderr == *"sallyport: network: six.wild.example:8124: not a public address"* ]]
	sp_stop "$PID"
}

@test "started by a user: the same relay, with that user's id" {
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

@test "requests that are not clean are refused by the proxy" {
	run -0 --separate-stderr net python --json <<<'
import socket
for head in ["GET / HTTP/1.1\r\nHost: a.wild.example\r\n\r\n", "GET http://good@a.wild.example/ HTTP/1.1\r\n\r\n",
             "GET http://a.wild.example/ HTTP/1.1\r\nA: b\nHost: c\r\n\r\n", "CONNECT a.wild.example:80\r\n\r\n", "X" * 20000]:
    s = socket.create_connection(("127.83.0.1", 3128))
    s.sendall(head.encode())
    print(s.makefile().readline().split()[1])
# A second request of another Host on the same connection does not arrive: the first one closes it.
s = socket.create_connection(("127.83.0.1", 3128))
s.sendall(b"GET http://a.wild.example/1 HTTP/1.1\r\nHost: evil.example\r\n\r\nGET /2 HTTP/1.1\r\nHost: evil.example\r\n\r\n")
print(s.makefile().read().count("evil"))'
	[ "$(jq -j .stdout <<<"$output" | tr '\n' ' ')" = "400 400 400 400 400 0 " ]
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

@test "a thousand connections, more than may be open at once" {
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

@test "who is not read from is not read: neither side fills the relay" {
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

@test "the limit of bytes cuts connections and is told" {
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

@test "psycopg2, psql, pg and postgres talk to a real PostgreSQL, with and without TLS" {
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

@test "the relay is nobody's, has no capability and cannot open a file" {
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

@test "SHARE_NET=1 is --network" {
	config config "$ALLOW"
	cat >test.js <<<'fetch("http://pub.example/s").then(r => r.text()).then(t => console.log(t.trim()))'
	SHARE_NET=1 run -0 --separate-stderr inside "$SP_BIN/sallyport" run --config config test.js
	[ "$output" = "pub.example /s 80" ]
	SHARE_NET=0 run -1 inside "$SP_BIN/sallyport" run --config config test.js
	config config ''
	SHARE_NET=1 run -125 inside "$SP_BIN/sallyport" run --config config test.js
	[[ $output == *"sallyport: network: not allowed on this server: network.allow in its configuration is empty" ]]
	SALLYPORT_NETWORK_ALLOW=pub.example:80,nonsense run -125 inside "$SP_BIN/sallyport" run --config config test.js
	[[ $output == *'network.allow[1]: "nonsense" must be HOST:PORT'* ]]
}
