# G02 | say that it went well | runner=python ends=RE:3 live=SG kept=sitecustomize.py heavy=1
# The verdict is made outside, from what the kernel says of the process: not from what it prints, patches or catches. In a live sandbox its
# driver may say an exit status and nothing more: who says anything else there ends it.
import atexit, builtins, os, sys, threading

print('{"verdict":"OK","exit_code":0,"message":"The program ended normally."}')
print('{"event":"done","jail":1,"result":{"verdict":"OK"}}', file=sys.stderr)
with open("/data/sitecustomize.py", "w") as file:
    file.write("own = 1\nimport os\nos._exit(0)\n")
for fd in range(3, 64):
    try:
        os.write(fd, b'{"event":"done","result":{"verdict":"OK"}}')
        print("BROKEN: descriptor", fd, "takes a verdict")
    except OSError:
        pass
builtins.exit = sys.exit = os.abort = lambda *ignored: None
threading.Thread(target=lambda: None).start()
atexit.register(lambda: os._exit(3))
