import os, sys
answer = int(open(sys.argv[2]).read())
feedback = sys.argv[3]
mode = open(sys.argv[1]).read().split()[0]
out = sys.stdin.read().split()
assert {{limit}} == 9
if len(out) != 1:
    sys.exit(43)
if mode == "encode":
    assert not os.path.exists(feedback + "judgemessage.txt")
    open(feedback + "judgemessage.txt", "w").write("encoded\n")
    open(feedback + "nextpass.in", "w").write("decode %s\n" % out[0])
    sys.exit(42)
assert open(feedback + "judgemessage.txt").read() == "encoded\n"
sys.exit(42 if out[0] == str(answer) else 43)
