n = int(input())
assert n not in (2, 50)
print(n + 1)
