# alone.py - code and tests in one process, for suites that cannot be split.
#
# The judge writes a nonce into the pipe at standard input; it is read, and the pipe closed, before the program starts. Only who has read
# it can write it to the descriptor that was standard output, which has a random number by now.
import os
import sys


def main():
    nonce = os.read(0, 64)
    word = int.from_bytes(os.urandom(2), "little") % 900 + 100
    import fcntl

    out = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, word)
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    with open("/data/program.py", encoding="utf-8") as f:
        text = f.read()
    end = b"passed\n"
    try:
        exec(compile(text, "program.py", "exec"), {"__name__": "program"})
    except AssertionError as e:
        end = b"wrong\n" + str(e)[:300].encode("utf-8", "replace")
    except Exception as e:
        end = b"error\n" + ("%s: %s" % (type(e).__name__, e))[:300].encode("utf-8", "replace")
    os.write(out, nonce + end)
    os._exit(0)


main()
