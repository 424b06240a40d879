table = dict(line.split() for line in open("{{table}}"))
for _ in range(int(input())):
    print(table[input()])
