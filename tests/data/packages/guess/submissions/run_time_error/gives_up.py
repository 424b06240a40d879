print(3, flush=True)
input()
raise SystemExit(3)
