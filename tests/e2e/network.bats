#!/usr/bin/env bats
# Programs with network: what they reach and what they are refused, with real servers and a name server.
# shellcheck disable=SC2016,SC2154 # programs in single quotes are meant for the jail; bats sets stderr

bats_require_minimum_version 1.5.0
load lib.bash
load network.bash

@test "exact entries are reached by name without a proxy" {
	run -0 --separate-stderr net python <<<'
import socket
assert not socket.gethostbyname("pub.example").startswith("93.")
s = socket.create_connection(("pub.example", 80))
s.sendall(b"GET /x HTTP/1.0\r\nHost: pub.example\r\n\r\n")
print(s.makefile().read().splitlines()[-1])'
	[ "$output" = "pub.example /x 80" ]
}

@test "an address in the list is reached at that address only" {
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

@test "without --network there is no way out" {
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

@test "usual clients go through the proxy unchanged" {
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
@test "another host inside a tunnel is refused and told: TLS server name" { sp_gauged 1 other_server_names; }

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

@test "names of addresses that are not public are refused" {
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

@test "a private address is reached where the entry says so" {
	start_inside web.log /usr/bin/python3 -m http.server --bind 127.0.0.1 8123
	sp_until "$PID" inside curl -s -o /dev/null http://127.0.0.1:8123/
	config config '"local.example:8123 private", "*.wild.example:8123"'
	run -0 --separate-stderr net bash <<<'for host in local loop.wild; do curl -sS -o /dev/null -w "%{http_code} " http://$host.example:8123/; done'
	[ "$output" = "200 403 " ]
	[[ $stderr == *"sallyport: network: loop.wild.example:8123: not a public address"* ]]
	sp_stop "$PID"
}

@test "IPv6: a private server is reached" {
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
