import sys

verdicts = [line.split()[0] for line in sys.stdin]
print("AC" if len(verdicts) == int(sys.argv[1]) and 2 * verdicts.count("AC") >= len(verdicts) else "WA", 0)
