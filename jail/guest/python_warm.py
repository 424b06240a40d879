# python_warm.py - what a template runs as /code/.start: an interpreter that has python.py loaded, and is copied into each jail that joins
# (jail/warm/warm.h). A copy runs the jail's program through python.py as an interpreter does that was started for it; where the view of
# the program would differ, another interpreter takes its place.
#
# Nothing of an owner's is here before become(): the template has no file of any, and /data of the jail is looked at, by name, only after
# its program is known.
import os
import sys

STARTER = "/code/.python"
SOCKET = 3
SEEN = ("/code", "/data", "/data/.packages/python")  # directories in sys.path that are the jail's own
SITE = ("sitecustomize", "usercustomize")
REHEARSED = b"import sys\nprint(len(sys.argv))\n[1]\n"


def load_extension():
    """The module, which is in no list of modules."""
    boot = sys.modules["_frozen_importlib"]
    loader = sys.modules["_frozen_importlib_external"].ExtensionFileLoader("warm", "/code/.warm.so")
    module = loader.create_module(boot.ModuleSpec("warm", loader, origin=loader.path))
    sys.modules.pop("warm", None)
    return module


def load_starter():
    """Its names; it is not started yet."""
    with open(STARTER, "rb") as file:
        text = file.read().rpartition(b"\nif __name__ ==")[0]
    names = {"__name__": "__main__", "__builtins__": __builtins__}
    exec(compile(text, "/code/.start", "exec", dont_inherit=True), names)
    return names


def rehearse(starter):
    """Goes through what a program goes through: memory that is written to then is a copy now, not when the program waits for it."""
    known = set(sys.modules)
    space = starter["new_main"]("/code/main.py").__dict__
    starter["evaluate"](starter["split"](REHEARSED, "/code/main.py", True), space)
    starter["plain_text"]([1])
    sys.stdout.flush()
    for name in set(sys.modules) - known:
        del sys.modules[name]


def shadowed():
    """Would an interpreter that is started here find another module than those that are there?"""
    names = {name.partition(".")[0] for name in sys.modules}
    names.update(SITE)
    for directory in SEEN:
        try:
            found = os.listdir(directory)
        except OSError:
            continue
        if any(name.partition(".")[0] in names for name in found):
            return True
    return False


def look_again():
    """The importers of the directories that are the jail's."""
    make = sys.modules["_frozen_importlib_external"].PathFinder._path_importer_cache
    for directory in SEEN:
        if sys.path_importer_cache.pop(directory, sys) is not sys:
            make(directory)


def standard(fd, mode, old):
    """A standard stream, as the interpreter makes it."""
    io = sys.modules["io"]
    buffer = io.open(fd, mode + "b", -1, closefd=False)
    buffer.raw.name = old.name
    stream = io.TextIOWrapper(buffer, old.encoding, old.errors, "\n", fd == 2)
    stream.mode = mode
    return stream


def open_standard():
    sys.stdin = sys.__stdin__ = standard(0, "r", sys.__stdin__)
    sys.stdout = sys.__stdout__ = standard(1, "w", sys.__stdout__)
    sys.stderr = sys.__stderr__ = standard(2, "w", sys.__stderr__)


def join():
    """In the template it does not return; in a process whose program is to run here, its starter."""
    import gc

    del sys.modules["gc"]
    warm, starter = load_extension(), load_starter()
    rehearse(starter)
    gc.collect()
    gc.freeze()
    warm.serve(SOCKET)
    rehearse(starter)
    arguments = os.fsdecode(warm.wait()).split("\0")[:-1]
    if not arguments or shadowed():
        warm.become(1)
    warm.become(0)
    look_again()
    open_standard()
    sys.argv[:] = [sys.argv[0], *arguments]
    sys.orig_argv[2:] = arguments
    return starter["main"]


if __name__ == "__main__":
    join()()  # as deep as python.py alone is
