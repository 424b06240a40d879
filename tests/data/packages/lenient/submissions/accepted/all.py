n = int(input())
print(n + 1 if n in (1, 2, 3, 4, 5, 6, 7, 8, 9) else 0)
