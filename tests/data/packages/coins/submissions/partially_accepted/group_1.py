# @EXPECTED_GRADES@ AC WA WA
a, b = map(int, input().split())
print("YES 2" if (a, b) == (3, 7) else "NO")
