import sys
secret = int(open(sys.argv[1]).read())
feedback = sys.argv[3]
def judge(code, text):
    open(feedback + "judgemessage.txt", "a").write(text + "\n")
    sys.exit(code)
for turn in range(12):
    line = sys.stdin.readline()
    if not line.strip().isdigit():
        judge(43, "turn %d: no number" % turn)
    guess = int(line)
    if guess == secret:
        print("correct", flush=True)
        judge(42, "in %d turns" % (turn + 1))
    print("lower" if secret < guess else "higher", flush=True)
judge(43, "too many guesses")
