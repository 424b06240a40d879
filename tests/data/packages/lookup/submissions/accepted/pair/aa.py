raise SystemExit("not the entry point")
