print(open("tables.txt").read())
