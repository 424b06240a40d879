n = int(input())
print(n * n if n < 50 else 0)
