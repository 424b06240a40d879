#!/usr/bin/python3
"""Checks proofs and tiles of Sallyport's audit log without Sallyport: Python's standard library is all that it needs.

    audit_check.py VKEY proof/       what `sallyport prove ID --output proof` wrote
    audit_check.py VKEY tiles/       what `sallyport prove --tiles tiles` wrote

VKEY is the log's public key as `sallyport checkpoint --init` printed it. Ends with 0 where everything fits.
"""
import base64, hashlib, hmac, os, re, sys

P, Q = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def add(a, b):  # points of edwards25519, extended coordinates (RFC 8032, 5.1.4)
    m, n = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    c, d = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = n - m, d - c, d + c, n + m
    return e * f % P, g * h % P, f * g % P, e * h % P


def multiply(n, point):
    result = (0, 1, 1, 0)
    while n:
        if n & 1:
            result = add(result, point)
        point, n = add(point, point), n >> 1
    return result


def decode(text):
    y = int.from_bytes(text, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - square) % P or y >= P or (x == 0 and sign):
        raise ValueError("not a point")
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


def signed(key, text, signature):
    base = decode((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))
    s = int.from_bytes(signature[32:], "little")
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + text).digest(), "little") % Q
    left, right = multiply(s, base), add(decode(signature[:32]), multiply(h, decode(key)))
    return s < Q and (left[0] * right[2] - right[0] * left[2]) % P == 0 and (left[1] * right[2] - right[1] * left[2]) % P == 0


def leaf(entry):
    return hashlib.sha256(b"\0" + entry).digest()


def node(left, right):
    return hashlib.sha256(b"\1" + left + right).digest()


def check_note(text, vkey):
    """Size and root of a checkpoint that the key signed."""
    name, key_id, key = vkey.split("+", 2)
    key = base64.b64decode(key)
    assert hashlib.sha256(name.encode() + b"\n" + key).digest()[:4].hex() == key_id and key[0] == 1, "the public key is none"
    body, signatures = text.split(b"\n\n", 1)
    for line in signatures.decode().splitlines():
        dash, who, signature = line.split(" ")
        signature = base64.b64decode(signature)
        if dash == "\u2014" and who == name and signature[:4].hex() == key_id:
            assert signed(key[1:], body + b"\n", signature[4:]), "the signature is wrong"
            origin, size, root = body.decode().split("\n")[:3]
            assert origin == name, "the checkpoint is of another log"
            return int(size), base64.b64decode(root)
    raise AssertionError("the checkpoint is not signed by this key")


def check_proof(folder, name, vkey):
    kind = re.sub(r"\.\d+$", "", name)  # of several of a kind the others are call.2, call.3 …
    read = lambda suffix: open(os.path.join(folder, name + suffix), "rb").read()
    head, note = read(".proof").split(b"\n\n", 1)
    lines = head.decode().split("\n")
    assert lines[0] == "c2sp.org/tlog-proof@v1" and lines[1].startswith("index "), "this is not a proof"
    size, root = check_note(note, vkey)
    at, last, have = int(lines[1][6:]), size - 1, leaf(read(".entry"))
    assert at < size, "the index is behind the end"
    for line in lines[2:]:  # RFC 9162, 2.1.3.2
        other = base64.b64decode(line)
        assert last > 0, "the proof is too long"
        if at & 1 or at == last:
            have = node(other, have)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            have = node(have, other)
        at, last = at >> 1, last >> 1
    assert last == 0 and have == root, "the entry is not in the tree"
    if os.path.exists(os.path.join(folder, name + ".salt")):
        text = b"sallyport audit detail 1\0" + kind.encode() + b"\0" + read(".detail")
        commitment = hmac.new(bytes.fromhex(read(".salt").decode()), text, "sha256").hexdigest()
        assert read(".entry").endswith(b'"d":"%s"}' % commitment.encode()), "the details are not those of the entry"


def tile_path(folder, level, number, width):
    digits = "%03d" % (number % 1000)
    while number >= 1000:
        number //= 1000
        digits = "x%03d/" % (number % 1000) + digits
    return os.path.join(folder, "tile", str(level), digits + ("" if width == 256 else ".p/%d" % width))


def subtree(hashes):
    if len(hashes) == 1:
        return hashes[0]
    k = 1 << (len(hashes) - 1).bit_length() - 1
    return node(subtree(hashes[:k]), subtree(hashes[k:]))


def check_tiles(folder, vkey):
    size, root = check_note(open(os.path.join(folder, "checkpoint"), "rb").read(), vkey)
    entries, level, hashes = [], 0, None
    for first in range(0, size, 256):
        data = open(tile_path(folder, "entries", first // 256, min(256, size - first)), "rb").read()
        while data:
            length = int.from_bytes(data[:2], "big")
            entries.append(data[2 : 2 + length])
            data = data[2 + length :]
    assert len(entries) == size, "entries are missing"
    leaves = hashes = [leaf(entry) for entry in entries]
    while hashes:
        for first in range(0, len(hashes), 256):
            here = hashes[first : first + 256]
            assert open(tile_path(folder, level, first // 256, len(here)), "rb").read() == b"".join(here), "a tile does not fit"
        full = len(hashes) // 256 * 256
        hashes, level = [subtree(hashes[i : i + 256]) for i in range(0, full, 256)], level + 1
    assert (subtree(leaves) if leaves else hashlib.sha256().digest()) == root, "the entries are not those of the checkpoint"
    return size


def main():
    vkey, folder = sys.argv[1:]
    try:
        if os.path.exists(os.path.join(folder, "tile")):
            print(check_tiles(folder, vkey), "entries fit")
            return 0
        names = [name[:-6] for name in sorted(os.listdir(folder)) if name.endswith(".proof")]
        assert names, "there is no proof in this folder"
        for name in names:
            check_proof(folder, name, vkey)
            print(name, "fits")
        return 0
    except (AssertionError, ValueError, OSError) as wrong:
        print(wrong, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
