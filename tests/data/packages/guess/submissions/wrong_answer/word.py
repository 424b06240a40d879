print("seven", flush=True)
