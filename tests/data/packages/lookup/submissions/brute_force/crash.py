n = int(input())
while n > 100: pass
assert False
