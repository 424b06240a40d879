import sys
sys.setrecursionlimit(10**9)
# @EXPECTED_RESULTS@: RUN-ERROR */
def f(n): return f(n - 1)[n] if n > 100 else 0
n = int(input())
print(*range(1, n + 1), f(n) or "")
