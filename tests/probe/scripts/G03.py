# G03 | change what the next run starts from | runner=python after=plant heavy=1
import glob, os, sys, time

MARK = "sallyport_probe"
PLACES = [
    "/data/sitecustomize.py", "/data/usercustomize.py", "/tmp/.local/lib/python3.11/site-packages/%s.pth" % MARK, "/tmp/.bashrc",
    "/tmp/.bash_profile", "/tmp/.pythonstartup", "/tmp/sitecustomize.py", "/data/.git/hooks/post-checkout", "/code/sitecustomize.py",
    "/usr/lib/python3/dist-packages/%s.pth" % MARK, "/etc/ld.so.preload", "/opt/sallyport/modules/%s.js" % MARK, "/dev/shm/%s.so" % MARK,
]
SYSTEM = ("/usr", "/etc", "/opt")

if sys.argv[-1] == "plant":
    for place in PLACES:
        try:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "w") as file:
                file.write("import sys; sys.%s = 1\n" % MARK)
            if place.startswith(SYSTEM):
                print("BROKEN: wrote", place)
        except OSError:
            pass
    print("planted", flush=True)
    time.sleep(3600)
for place in PLACES:
    if os.path.lexists(place):
        print("BROKEN:", place, "is there")
prepared = "/tmp/matplotlib"  # the jailer's own: a list of fonts, copied into each jail
found = [path for path in glob.glob("/data/*") + glob.glob("/tmp/*") if path != prepared]
if hasattr(sys, MARK) or "LD_PRELOAD" in os.environ or found:
    print("BROKEN: something of another run is at work:", found)
print("held")
