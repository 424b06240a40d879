import sys
table = dict(line.split() for line in open("{{table}}"))
wide = len(table) > 50
for _ in range(int(input())):
    print(float(table[input()]) * float(sys.argv[1]) * (1.01 if wide else 1.0005))
