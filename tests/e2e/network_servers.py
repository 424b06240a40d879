#!/usr/bin/python3
"""The internet of network.bats: a name server and a few servers, in a network namespace that the test makes.

usage: network_servers.py ADDRESS NAME_SERVER_ADDRESS OWN_ADDRESS FOLDER      FOLDER: cert.pem and key.pem; what is asked for goes there, too:
of the name server in `queries`, in TLS in `names`

The name server never answers for silentN.wild.example.

80, 8080 http; 443 https; 444 https that asks for a second ClientHello; 81 takes connections and never reads; 82 answers with
how many bytes came before the end. Prints "ready".
"""
import http.server
import socket
import socketserver
import ssl
import struct
import sys
import threading

PUBLIC, NAMES, OWN, FOLDER = sys.argv[1:5]
ANSWERS = {
    "pub.example": [PUBLIC],
    "a.wild.example": [PUBLIC],
    "loop.wild.example": ["127.0.0.1"],
    "zero.wild.example": ["0.0.0.0"],
    "priv.wild.example": ["10.1.2.3"],
    "meta.wild.example": ["169.254.169.254"],
    "mapped.wild.example": ["::ffff:127.0.0.1"],
    "six.wild.example": ["::1"],
    "own.wild.example": [OWN],
    "two.wild.example": ["10.1.2.3", PUBLIC],
    "dead.wild.example": ["127.0.0.9"],
    "local.example": ["127.0.0.1"],
    "db.internal": ["127.0.0.1"],
}
turns = 0


def addresses(name):
    global turns
    if name == "turn.wild.example":  # public when asked first, then loopback
        turns += 1
        return [PUBLIC] if turns <= 1 else ["127.0.0.1"]
    return ANSWERS.get(name)


def answer(query):
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode())
        at += query[at] + 1
    name, kind = ".".join(labels).lower(), struct.unpack("!H", query[at + 1 : at + 3])[0]
    with open(FOLDER + "/queries", "a") as log:
        print(name, kind, file=log)
    if name.startswith("silent"):
        return None
    found = addresses(name) if kind == 1 or name != "turn.wild.example" else []
    records = []
    for text in found or []:
        six = ":" in text
        if kind == (28 if six else 1):
            data = socket.inet_pton(socket.AF_INET6 if six else socket.AF_INET, text)
            records.append(b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 0, len(data)) + data)
    flags = 0x8180 if found is not None else 0x8183
    return query[:2] + struct.pack("!HHHHH", flags, 1, len(records), 0, 0) + query[12 : at + 5] + b"".join(records)


class Names(socketserver.BaseRequestHandler):
    def handle(self):
        if text := answer(self.request[0]):
            self.request[1].sendto(text, self.client_address)


class Web(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path.startswith("/big"):
            body = b"x" * (int(self.path[5:]) << 20)
        else:
            body = f"{self.headers['Host']} {self.path} {self.server.server_port}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[::-1])

    def log_message(self, *_):
        pass


class Count(socketserver.BaseRequestHandler):
    def handle(self):
        n = 0
        while data := self.request.recv(65536):
            n += len(data)
        self.request.sendall(b"%d" % n)


class Deaf(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        threading.Event().wait()


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 1024
    server_port = 0


def serve(server):
    threading.Thread(target=server.serve_forever, daemon=True).start()


class WebServer(http.server.ThreadingHTTPServer):
    request_queue_size = 1024

    def server_bind(self):  # without asking who we are
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]


def asked_for(_, name, __):
    with open(FOLDER + "/names", "a") as log:
        print(name, file=log)


def tls(port, *curve):
    server = WebServer((PUBLIC, port), Web)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(FOLDER + "/cert.pem", FOLDER + "/key.pem")
    context.sni_callback = asked_for
    for name in curve:  # that clients can, but have no share for in their first ClientHello
        context.set_ecdh_curve(name)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    return server


for server in (
    socketserver.ThreadingUDPServer((NAMES, 53), Names),
    WebServer((PUBLIC, 80), Web),
    WebServer((PUBLIC, 8080), Web),
    tls(443),
    tls(444, "secp521r1"),
    Server((PUBLIC, 81), Deaf),
    Server((PUBLIC, 82), Count),
):
    serve(server)
print("ready", flush=True)
threading.Event().wait()
