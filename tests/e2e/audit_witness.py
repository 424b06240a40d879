#!/usr/bin/python3
"""A C2SP tlog-witness for one log, on a port of its own: audit_witness.py FOLDER LOG_VKEY

Writes its public key to FOLDER/vkey, its port to FOLDER/port, and what it saw to FOLDER/seen (size and root), which it finds again at the
next start. The file FOLDER/mood makes it misbehave: forge, mute, large, away (to elsewhere), busy.
"""
import base64, hashlib, http.server, importlib.util, json, os, sys, time

here = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location("audit_check", os.path.join(here, "../../docs/audit_check.py"))
check = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check)
NAME = "witness.example/w1"
BASE = check.decode((4 * pow(5, check.P - 2, check.P) % check.P).to_bytes(32, "little"))


def encode(point):
    z = pow(point[2], check.P - 2, check.P)
    x, y = point[0] * z % check.P, point[1] * z % check.P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def sign(seed, text):  # RFC 8032, 5.1.6
    h = hashlib.sha512(seed).digest()
    a = int.from_bytes(h[:32], "little") & (1 << 254) - 8 | 1 << 254
    number = lambda *parts: int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little") % check.Q
    r = number(h[32:], text)
    public, point = encode(check.multiply(a, BASE)), encode(check.multiply(r, BASE))
    return point + ((r + number(point, public, text) * a) % check.Q).to_bytes(32, "little")


def public_of(seed):
    h = hashlib.sha512(seed).digest()
    return encode(check.multiply(int.from_bytes(h[:32], "little") & (1 << 254) - 8 | 1 << 254, BASE))


def continues(old, old_root, size, root, proof):  # RFC 9162, 2.1.4.2
    if old == 0 or old == size:
        return not proof and (old == 0 or old_root == root)
    path = list(proof)
    if old & (old - 1) == 0:
        path.insert(0, old_root)
    if not path:
        return False
    f, s = old - 1, size - 1
    while f & 1:
        f, s = f >> 1, s >> 1
    have_old = have = path[0]
    for other in path[1:]:
        if s == 0:
            return False
        if f & 1 or f == s:
            have_old, have = check.node(other, have_old), check.node(other, have)
            while not f & 1 and f:
                f, s = f >> 1, s >> 1
        else:
            have = check.node(have, other)
        f, s = f >> 1, s >> 1
    return have_old == old_root and have == root and s == 0


class Witness(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def reply(self, code, text="", kind="text/plain", **more):
        body = text.encode()
        self.send_response(code)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **more}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def misbehave(self, mood):
        if mood == "away":
            return self.reply(307, Location="http://127.0.0.1:1/")
        return self.reply(503, "overloaded\n") if mood == "busy" else self.reply(200, "x" * 100000 if mood == "large" else "")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        mood = open(folder + "/mood").read().strip() if os.path.exists(folder + "/mood") else ""
        if mood not in ("", "forge"):
            return self.misbehave(mood)
        if self.path != "/w/add-checkpoint":
            return self.reply(404, "no such address\n")
        head, note = body.split(b"\n\n", 1)
        lines = head.decode().split("\n")
        old, proof = int(lines[0].removeprefix("old ")), [base64.b64decode(line) for line in lines[1:]]
        if note.decode().split("\n")[0] != log_vkey.split("+")[0]:
            return self.reply(404, "unknown log\n")
        try:
            size, root = check.check_note(note, log_vkey)
        except (AssertionError, ValueError) as wrong:
            return self.reply(403, str(wrong) + "\n")
        seen = json.load(open(folder + "/seen")) if os.path.exists(folder + "/seen") else {"size": 0, "root": ""}
        if old > size:
            return self.reply(400, "old is larger than the checkpoint\n")
        if old != seen["size"] or (old == size and seen["root"] != root.hex()):
            return self.reply(409, "%d\n" % seen["size"], "text/x.tlog.size")
        if not continues(old, bytes.fromhex(seen["root"]), size, root, proof):
            return self.reply(422, "the proof is wrong\n")
        json.dump({"size": size, "root": root.hex()}, open(folder + "/seen.new", "w"))
        os.rename(folder + "/seen.new", folder + "/seen")
        now = int(time.time())
        text = b"cosignature/v1\ntime %d\n" % now + note.split(b"\n\n", 1)[0] + b"\n"
        signature = key_id + now.to_bytes(8, "big") + sign(b"f" * 32 if mood == "forge" else seed, text)
        self.reply(200, "\u2014 %s %s\n" % (NAME, base64.b64encode(signature).decode()))


folder, log_vkey = sys.argv[1:]
if not os.path.exists(folder + "/seed"):
    open(folder + "/seed", "wb").write(os.urandom(32))
seed = open(folder + "/seed", "rb").read()
key = b"\4" + public_of(seed)
key_id = hashlib.sha256(NAME.encode() + b"\n" + key).digest()[:4]
open(folder + "/vkey", "w").write("%s+%s+%s" % (NAME, key_id.hex(), base64.b64encode(key).decode()))
server = http.server.HTTPServer(("127.0.0.1", 0), Witness)
open(folder + "/port.new", "w").write(str(server.server_port))
os.rename(folder + "/port.new", folder + "/port")
server.serve_forever()
