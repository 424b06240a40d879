a, b = input().split(); print(int(float(a)) + int(float(b)))
