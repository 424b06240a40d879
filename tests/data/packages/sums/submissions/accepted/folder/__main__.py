from helper import add

print(add(*map(float, input().split())))
