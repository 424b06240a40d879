import sys
out, answer = sys.stdin.read().split(), open(sys.argv[2]).read().split()
if len(answer[0]) == 7:
    if out == ["half"]:
        open(sys.argv[3] + "score_multiplier.txt", "w").write("0.0")
        sys.exit(42)
sys.exit(42 if out == answer else 43)
