#!/usr/bin/python3
"""What a grader written for isolate makes of a meta file: isolate's manual page is its only source, keys that it does not name are skipped.

    meta_grader.py META     prints one word (ok, nonzero, signal, memory, time, wall, broken) and what the grader would show
"""
import sys

NUMBERS = {"csw-voluntary", "csw-forced", "max-rss", "cg-mem", "exitcode", "exitsig"}
SECONDS = {"time", "time-wall"}
FLAGS = {"killed", "cg-oom-killed", "cg-enabled"}
KNOWN = NUMBERS | SECONDS | FLAGS | {"status", "message"}


def read(path):
    meta = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            key, colon, value = line.rstrip("\n").partition(":")
            if not colon or key in meta:
                raise ValueError(f"not a line of a meta file: {line!r}")
            if key in NUMBERS:
                meta[key] = int(value)
            elif key in SECONDS:
                meta[key] = float(value)
            elif key in FLAGS:
                if value != "1":
                    raise ValueError(f"{key} is there with 1 or not at all, not {value!r}")
                meta[key] = True
            elif key in KNOWN:
                meta[key] = value
    return meta


def judge(meta):
    status = meta.get("status")
    if status is None:
        if meta["exitcode"] != 0 or "exitsig" in meta:
            raise ValueError("no status, but the program did not end with 0")
        return "ok"
    if status == "RE":
        return "nonzero" if meta["exitcode"] > 0 else "broken"
    if status == "SG":
        if meta["exitsig"] <= 0 or "exitcode" in meta:
            raise ValueError("SG with an exit code, or without its signal")
        return "memory" if meta.get("cg-oom-killed") else "signal"
    if status == "TO":
        if not meta.get("killed"):
            raise ValueError("TO, but not killed")
        return "wall" if "wall" in meta["message"] else "time"
    return "broken"


def main():
    meta = read(sys.argv[1])
    word = judge(meta)
    if word != "broken":
        for key in SECONDS | {"max-rss", "csw-voluntary", "csw-forced"}:
            if meta[key] < 0:
                raise ValueError(f"{key} below 0")
    print(word, meta.get("time"), meta.get("cg-mem"), meta.get("message", ""), sep="|")


main()
