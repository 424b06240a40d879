#!/usr/bin/python3
"""What packages.bats installs from: a simple index for pip with a wheel, and a registry for npm with a tarball, both made here, on one port of
loopback. Prints the port, which the kernel chose."""
import base64
import hashlib
import http.server
import io
import json
import tarfile
import zipfile


def wheel():
    data = io.BytesIO()
    about = "demo_wheel-1.0.dist-info"
    files = {
        "demo_wheel/__init__.py": "def twice(n):\n    return 2 * n\n",
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: demo-wheel\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{name},,\n" for name in files) + f"{about}/RECORD,,\n"
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return data.getvalue()


def tarball():
    data = io.BytesIO()
    files = {
        "package/package.json": json.dumps({"name": "demo-npm", "version": "1.0.0", "main": "index.js"}),
        "package/index.js": "exports.thrice = (n) => 3 * n;\n",
    }
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return data.getvalue()


PACKED = tarball()  # once: it has a time in it


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        place = f"http://localhost:{self.server.server_port}"
        packed = PACKED
        about = {"name": "demo-npm", "version": "1.0.0", "main": "index.js"}
        about["dist"] = {
            "tarball": f"{place}/demo-npm/-/demo-npm-1.0.0.tgz",
            "integrity": "sha512-" + base64.b64encode(hashlib.sha512(packed).digest()).decode(),
        }
        name = "demo_wheel-1.0-py3-none-any.whl"
        answers = {
            "/simple/demo-wheel/": ("text/html", f'<!DOCTYPE html><a href="/{name}">{name}</a>'.encode()),
            f"/{name}": ("application/octet-stream", wheel()),
            "/demo-npm": ("application/json", json.dumps({"name": "demo-npm", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": about}}).encode()),
            "/demo-npm/-/demo-npm-1.0.0.tgz": ("application/octet-stream", packed),
        }
        kind, body = answers.get(self.path, (None, b""))
        self.send_response(200 if kind else 404)
        self.send_header("Content-Type", kind or "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
