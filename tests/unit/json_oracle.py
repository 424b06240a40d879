"""Reads pairs of frames (a text; what lib/base/json.c printed for it, empty if it refused) and says where Python's json differs.

Python is told the rules that lib/base/json.c adds to RFC 8259: no duplicate members, integers of 64 bits, finite numbers, whole
surrogate pairs, no NUL in a name, at most 64 levels.
"""

import json
import math
import struct
import sys

DEPTH_MAX = 64


def members(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError("duplicate member")
    if any("\0" in name for name in names):
        raise ValueError("NUL in a name")
    return dict(pairs)


def integer(text):
    value = int(text)
    if not -(2**63) <= value < 2**63:
        raise ValueError("beyond 64 bits")
    return value


def fraction(text):
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("not finite")
    return value


def constant(text):
    raise ValueError(text)


def check(value, depth=0):
    """Depth and surrogates, which the decoder does not look at."""
    if isinstance(value, str):
        value.encode("utf-8")
    elif isinstance(value, (list, dict)):
        if depth == DEPTH_MAX:
            raise ValueError("too deep")
        for item in value:
            check(item, depth + 1)
            if isinstance(value, dict):
                check(value[item], depth + 1)


def parse(data):
    value = json.loads(
        data.decode("utf-8"),
        object_pairs_hook=members,
        parse_int=integer,
        parse_float=fraction,
        parse_constant=constant,
    )
    check(value)
    return value


def frame(stream):
    header = stream.read(4)
    if len(header) < 4:
        return None
    return stream.read(struct.unpack("=I", header)[0])


def compare(text, printed):
    """None, or how the two differ."""
    try:
        value = parse(text)
    except ValueError as error:
        return f"we took it, Python says {error}" if printed else None
    if not printed:
        return "Python took it, we refused"
    # repr tells 1 from 1.0 from True; -0 is the integer 0 to both.
    if repr(parse(printed)) != repr(value):
        return f"we print {printed!r}"
    return None


def main():
    different = 0
    while (text := frame(sys.stdin.buffer)) is not None:
        why = compare(text, frame(sys.stdin.buffer))
        if why:
            different += 1
            print(f"{text!r}: {why}", file=sys.stderr)
    return 1 if different else 0


sys.exit(main())
