a, b = map(float, input().split())
while a > 100:
    b += 0
print(a + b)
