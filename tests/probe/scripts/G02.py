# G02 | say that it went well | runner=python ends=RE:3 live=SG kept=sitecustomize.py heavy=1
# The verdict is made outside, from what the kernel says of the process: not from what it prints, patches or catches. In a live sandbox its
# driver may say an exit status and nothing more: who says anything else there ends it, however long that takes on a busy machine.
import atexit, builtins, os, signal, stat, sys, threading

print('{"verdict":"OK","exit_code":0,"message":"The program ended normally."}')
print('{"event":"done","jail":1,"result":{"verdict":"OK"}}', file=sys.stderr)
with open("/data/sitecustomize.py", "w") as file:
    file.write("own = 1\nimport os\nos._exit(0)\n")
for fd in reversed(range(3, 64)):
    try:
        os.write(fd, b'{"event":"done","result":{"verdict":"OK"}}')
    except OSError:
        continue
    if fd == 3 and stat.S_ISSOCK(os.fstat(fd).st_mode):
        signal.pause()  # the driver's: the end comes now (live=SG), else the wall limit's
    print("BROKEN: descriptor", fd, "takes a verdict")
builtins.exit = sys.exit = os.abort = lambda *ignored: None
threading.Thread(target=lambda: None).start()
atexit.register(lambda: os._exit(3))
