# P05b | kill everybody, with Python | runner=python heavy=1
import os, signal

signal.signal(signal.SIGTERM, signal.SIG_IGN)
for pid in [1, -1, 0] + list(range(2, 4096)):
    if pid == os.getpid():
        continue
    for number in (signal.SIGTERM, 0) if pid <= 0 else (signal.SIGKILL,):
        try:
            os.kill(pid, number)
            if pid > 1:
                print("BROKEN: killed", pid)
        except (ProcessLookupError, PermissionError):
            pass
try:
    os.kill(1, 0)
except PermissionError:
    pass  # it is there, and not for us
print("held")
