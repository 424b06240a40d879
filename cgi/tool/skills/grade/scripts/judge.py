"""judge.py CASES SECONDS COMMAND...: runs COMMAND on each case, prints a verdict a case, and the sum."""
import json
import subprocess
import sys


def lines(text):
    return [line.rstrip() for line in text.rstrip().split("\n")]


def judge(case, seconds, command):
    try:
        done = subprocess.run(command + case.get("args", []), input=case.get("stdin", ""), text=True, errors="replace",
                              capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return "TLE", f"no end after {seconds:g} s"
    if done.returncode != 0:
        last = done.stderr.strip().split("\n")[-1]
        return "RE", f"exit status {done.returncode}: {last}"
    if lines(done.stdout) != lines(case["expected"]):
        return "WA", f"expected {case['expected'][:200]!r}, got {done.stdout[:200]!r}"
    return "AC", ""


with open(sys.argv[1], encoding="utf-8") as file:
    cases = json.load(file)
passed = 0
for number, case in enumerate(cases, 1):
    verdict, reason = judge(case, float(sys.argv[2]), sys.argv[3:])
    passed += verdict == "AC"
    print(f"case {number}: {verdict} {reason}".rstrip())
print(f"{passed} of {len(cases)} passed")
