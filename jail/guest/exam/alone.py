# alone.py - code and tests in one process, for suites that cannot be split.
#
# The judge writes a nonce into the pipe at standard input; what is left of it, before any code runs, is a hash that was begun with it: whose
# value with the last word nobody can say but who calls it. So a pass is a word that comes out of the end of the tests in this process, and
# in no copy of it. Tests and code are two texts; neither is on the disk by then.
#
# The code shares the interpreter with its tests. What it can do to them by other means than its answers is refused where that is possible
# (`hook`: frames, traces, the garbage collector's lists, the interpreter's memory), and looked for at the end where it is not (`changed`:
# functions of libraries that the tests compare by, objects that are equal to whatever they meet).
import os
import sys

NEVER = {"sys.settrace", "sys.setprofile", "sys._current_frames", "sys.monitoring.register_callback", "ctypes.string_at", "ctypes.wstring_at"}
FRAMES = {"tb_frame", "gi_frame", "cr_frame", "ag_frame"}
GIVES_FRAMES = {"currentframe", "walk_tb", "walk_stack", "stack", "trace", "getinnerframes", "getouterframes", "getframeinfo"}
WATCHED = {"builtins", "unittest", "numpy", "pandas", "math", "copy", "json", "operator", "ast", "collections", "itertools", "functools", "re", "difflib"}
LEFT = {"open", "print", "input"}  # tests themselves stand in for these


class Tampering(RuntimeError):
    pass


def ours(filename):
    return filename in (HERE, "tests.py") or filename.startswith(("/usr/", "<frozen "))


HERE = ours.__code__.co_filename


def make_hook():
    from _thread import get_ident

    getframe, asking = sys._getframe, set()

    def by_code(frame):
        while frame and frame.f_code.co_name in GIVES_FRAMES:
            frame = frame.f_back
        return frame and not ours(frame.f_code.co_filename)

    def hook(event, args):
        if event in NEVER or event[:7] == "gc.get_" or event == "ctypes.dlsym" and str(args[1])[:2] in ("Py", "_P"):
            raise Tampering(event + " is not for code under test")
        if event == "sys._getframe":
            watched = True
        elif event == "object.__getattr__":
            watched = args[1] in FRAMES
        elif event == "object.__setattr__":
            watched = args[1] == "__code__"
        elif event == "compile":
            watched = type(args[1]) is str and ours(args[1])
        elif event == "open":
            watched = type(args[0]) is str and args[0][:6] == "/proc/" and args[0][-4:] == "/mem"
        else:
            watched = event in ("code.__new__", "function.__new__") or event[:12] == "ctypes.cdata"
        me = get_ident()
        if not watched or me in asking:
            return
        asking.add(me)
        try:
            bad = by_code(getframe(1))
        finally:
            asking.discard(me)
        if bad:
            raise Tampering(event + " is not for code under test")

    return hook


def functions():
    """What tests compare by, as it is now, and its code, by name."""
    found = {}

    def add(place, name, v):
        if callable(v):
            found["%s.%s" % (place, name)] = v, v.__code__ if type(v) is type(add) else None

    for module in [m for name, m in list(sys.modules.items()) if name.partition(".")[0] in WATCHED and m]:
        for name, v in list(vars(module).items()):
            if name not in LEFT:
                add(module.__name__, name, v)
            if isinstance(v, type) and v.__flags__ & 1 << 9:  # its members can be replaced
                for member, x in list(vars(v).items()):
                    add("%s.%s" % (v.__module__, v.__qualname__), member, x)
    return found


def classes(known=()):
    found, todo = set(), [object]
    while todo:
        for cls in type.__subclasses__(todo.pop()):
            if cls not in found:
                found.add(cls)
                todo.append(cls)
    return found.difference(known)


def lies(cls, others):
    """Is what is made of it equal to whatever it meets, or no distance away?"""
    base = next(c for c in cls.__mro__ if c.__module__ == "builtins")
    for name, lie in (("__eq__", True), ("__ne__", False), ("__sub__", None), ("__rsub__", None)):
        f = next((vars(c)[name] for c in cls.__mro__ if name in vars(c)), None)
        if f is None or type(f).__name__ in ("wrapper_descriptor", "method_descriptor") or ours(getattr(getattr(f, "__code__", None), "co_filename", "")):
            continue
        for other in others:
            try:
                answer = f(base.__new__(cls), other)
                if answer is not NotImplemented and (lie is None and other is others[0] or bool(answer) is lie):
                    return name
            except Exception:
                pass
    return None


def changed(before, known):
    made, now = classes(known), functions()
    for name, v in before.items():
        if name in now and (now[name][0] is not v[0] or now[name][1] is not v[1]):
            return "the code replaced %s" % name
    some = int.from_bytes(os.urandom(7), "big")
    for cls in made:
        name = lies(cls, (object(), some, str(some), [some], (some,), {some: some}))
        if name:
            return "the code's %s answers to anything (%s)" % (cls.__name__, name)
    return None


def imports(text):
    """Libraries that code and tests use are loaded before either runs."""
    import ast

    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in nodes:
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
        for name in names:
            if name.partition(".")[0] in WATCHED:
                try:
                    __import__(name)
                except Exception:
                    pass


def main():
    import fcntl
    import gc
    import hashlib

    gc.disable()  # classes that the code made are there at the end
    proof, write, finish, pid, getpid = hashlib.sha256(os.read(0, 64)), os.write, os._exit, os.getpid(), os.getpid
    out = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, int.from_bytes(os.urandom(2), "little") % 900 + 100)
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    os.dup2(2, 1)
    texts = []
    for name in ("program.py", "tests.py"):
        with open("/data/" + name, encoding="utf-8") as f:
            texts.append(f.read())
        os.unlink("/data/" + name)
        imports(texts[-1])
    Failed, Any, failed, show, look, space = AssertionError, Exception, None, str, changed, {"__name__": "program"}
    before, known, run, make = functions(), classes(), exec, compile
    hidden, sys.modules["__main__"] = sys.modules["__main__"], type(sys)("__main__")
    sys.addaudithook(make_hook())
    word = b"passed\n"
    try:
        for name, text in zip(("program.py", "tests.py"), texts):
            run(make(text, name, "exec"), space)
    except Failed as e:
        word, failed = b"wrong\n", e
    except Any as e:
        word, failed = b"error\n", e
    why = b""
    if failed is not None:
        try:
            why = (type(failed).__name__ + ": " if word == b"error\n" else "") + show(failed)
        except Any:
            why = ""
        why = why[:300].encode("utf-8", "replace")
    else:
        why = look(before, known)
        word, why = (b"wrong\n", why.encode("utf-8", "replace")[:300]) if why else (word, b"")
    if getpid() == pid:
        proof.update(word + why)
        write(out, proof.hexdigest().encode() + word + why)
    finish(0)


main()
