# piston_load.py CASES THREADS: a load on the workers that Slurm names, by the rules of open-r1's client, which were read and not copied: the
# jobs named piston-worker-PORT that run are the endpoints; a request goes to one that is free; it is repeated up to five times where the
# status is not 200 or the connection breaks; an endpoint that refuses connections is asked nothing more. All nodes are this machine, so the
# node's name is not used. Prints "started" when a tenth is answered, and at the end what came of it as JSON.
import json
import queue
import re
import subprocess
import sys
import threading
import time

import requests

TRIES, PATIENCE = 5, 30
cases, threads = int(sys.argv[1]), int(sys.argv[2])
jobs = subprocess.run(["squeue", "--format=%j %N %T", "--noheader", "--states=RUNNING"], capture_output=True, text=True, check=True).stdout
ports = [found.group(1) for line in jobs.splitlines() if (found := re.match(r"piston-worker-(\d+) ", line.strip()))]
assert ports, jobs
free = queue.Queue()
for port in ports * (threads // len(ports) + 1):
    free.put(f"http://127.0.0.1:{port}/api/v2")
gone, lock = set(), threading.Lock()
done = {"right": 0, "wrong": 0, "failed": 0, "repeated": 0, "endpoints": len(ports)}
todo = queue.SimpleQueue()
for number in range(cases):
    todo.put(number)


def count(name):
    with lock:
        done[name] += 1
        if name == "right" and done[name] == cases // 10:
            print("started", flush=True)


def take():
    while True:
        endpoint = free.get()
        if endpoint not in gone:
            return endpoint


def ask(number):
    body = {"language": "python", "version": "*", "files": [{"content": f"import time\ntime.sleep(0.2)\nprint({number} * 2)"}], "run_timeout": 5000}
    for attempt in range(TRIES):
        endpoint = take()
        try:
            answer = requests.post(endpoint + "/execute", json=body, timeout=PATIENCE)
            if answer.status_code == 200:
                free.put(endpoint)
                return count("right" if answer.json()["run"]["stdout"] == f"{number * 2}\n" else "wrong")
        except requests.ConnectionError as error:
            if "refused" in str(error):
                with lock:
                    gone.add(endpoint)
        except requests.RequestException:
            pass
        free.put(endpoint)
        count("repeated")
        time.sleep(min(2**attempt, 10))
    count("failed")


def work():
    while True:
        try:
            ask(todo.get_nowait())
        except queue.Empty:
            return


workers = [threading.Thread(target=work) for _ in range(threads)]
for one in workers:
    one.start()
for one in workers:
    one.join()
print(json.dumps(done))
