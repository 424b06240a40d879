import itertools
n = int(input())
for p in itertools.permutations(range(n, 0, -1)):
    if all(a < b for a, b in zip(p, p[1:])): break
print(*p)
