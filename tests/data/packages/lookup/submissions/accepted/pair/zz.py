import sys
from pathlib import Path
table = dict(line.split() for line in Path("table.txt").open())
assert Path("more/{{full}}.txt".replace("60", "{" "{full}" "}")).read_text() == "{" "{full}}\n", "data are not replaced"
assert "TABLE={{table}}" in Path("table.conf").read_text()
input()
for line in sys.stdin:
    print(float(table[line.strip()]) * float(sys.argv[1]))
