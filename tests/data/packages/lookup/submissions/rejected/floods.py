while True: print("0" * 100000)
