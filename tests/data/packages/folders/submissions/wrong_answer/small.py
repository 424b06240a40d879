n=int(input())
print(n+1 if n<10 else 0)
