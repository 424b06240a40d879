n = int(input())
print(n * n if n < 500 else "half")
