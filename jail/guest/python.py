# python.py - starts every Python program: `python3 /code/.start MODE /code/main.py ARGUMENT…`. Modes:
#
#   run    the program is the module __main__ and keeps its traceback, exit status, argv and atexit functions, as `python3 main.py` has them
#   show   the same; the value of its last expression and its open figures are shown (python_values.py, which is read when it is needed)
#   tools  the same; `tools` and the seed's names (mcp_NAME …) are there without an import
#   live   keeps one interpreter over the runs of a live sandbox; jail/init/init_live.c says what comes through descriptor 3
#
# `await` may stand at the top in each of them. Our own frames are taken out of tracebacks. Every run reads and compiles this file, and a
# program sees in sys.modules what was imported here: nothing is imported before it is needed that a bare interpreter does not have.
import builtins
import os
import sys

VALUES = "/code/.helper"
SHOWN = "/code/.value"  # what is shown; no output of the program: the jailer reads it when the run has ended
OWN = ("/code/.start", VALUES)
OWN_FOLDER = "/code/tools/"  # lib/bridge/bridge_files.c
AWAIT, COROUTINE = 0x2000, 0x80  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, inspect.CO_COROUTINE
ONLY_AST = 0x400
FUTURES = 0x1FE0000  # compiler flags of `from __future__ import …`
SIMPLE = 200  # values, characters of one of them
WATCHED = ("matplotlib.pyplot", "plotly.basedatatypes", "PIL.Image")
LIVE_WATCHED = ("multiprocessing.context",)
NOTEBOOK = ("IPython", "IPython.display")
TOOLS = "/code/tools/_index.py"  # lib/bridge/bridge_files.c
USER_TOOLS = "/data/user_tools.py"
CONTROL, PACKET_MAX = 3, 256 * 1024


# -------- a program ------------------------------------------------------------------------------------------
def new_main(path):
    """The module __main__ as the interpreter makes it."""
    module = type(sys)("__main__")
    module.__loader__ = sys.modules["_frozen_importlib_external"].SourceFileLoader("__main__", path)
    module.__annotations__, module.__builtins__ = {}, builtins
    module.__file__, module.__cached__ = path, None
    return module


def is_write(node):
    """A call that writes: what it returns, a count, is nobody's result."""
    call = node.value if type(node).__name__ == "Await" else node
    return type(call).__name__ == "Call" and getattr(call.func, "attr", "").startswith("write")


def text_of(source):
    """It came as text: what its first lines say of an encoding means nothing any more."""
    text = source.decode()
    return text[1:] if text[:1] == "\ufeff" else text


def split(source, name, shows):
    """The program; if its last value is shown and its last statement is an expression: what is before that, and that."""
    if not shows:
        return [compile(text_of(source), name, "exec", AWAIT, dont_inherit=True)]
    tree = compile(text_of(source), name, "exec", AWAIT | ONLY_AST, dont_inherit=True)
    last = tree.body[-1] if tree.body else None
    if type(last).__name__ == "Expr" and not is_write(last.value):
        behind = source.splitlines()[last.end_lineno - 1][last.end_col_offset :]
        if not behind.lstrip().startswith(b";"):  # as in a notebook: not to be seen
            import _ast

            del sys.modules["_ast"]
            tree.body.pop()
            code = compile(tree, name, "exec", AWAIT, dont_inherit=True)
            flags = AWAIT | code.co_flags & FUTURES
            return [code, compile(_ast.Expression(last.value), name, "eval", flags, dont_inherit=True)]
    return [compile(tree, name, "exec", AWAIT, dont_inherit=True)]


def read(path, shows):
    """split() of the file. What the interpreter reads in another way from a file than from memory is left to it."""
    try:
        with open(path, "rb") as file:
            source = file.read()
        source.decode()
        return split(source, path, shows)
    except SyntaxError as error:
        if error.lineno:
            return as_notebook(source, path, shows, error)
    except (OSError, ValueError):  # not there; not UTF-8; a NUL
        pass
    os.execv(sys.executable, [sys.orig_argv[0], *sys.argv])


def as_notebook(source, path, shows, error):
    """The program as a notebook would read it: lines with % and !; a mistake that is another one is raised."""
    lines = source.decode().split("\n")
    for number, line in enumerate(lines):
        text = line.lstrip()
        if text[:1] in ("!", "%"):
            lines[number] = line[: len(line) - len(text)] + f"__import__('builtins')._sallyport_magic({text!r})"
    try:
        codes = split("\n".join(lines).encode(), path, shows)
    except SyntaxError:
        raise error from None
    builtins._sallyport_magic = magic
    return codes


def magic(line):
    """One line of a notebook. Commands run; nothing is installed, and figures are shown without being asked for."""
    words = line[1:].split()
    if words[:2] in (["pip", "install"], ["pip3", "install"], ["conda", "install"]):
        print(f"{line[0]}{words[0]} install is left out: list_runners names what is installed", file=sys.stderr)
    elif line[0] == "!":
        import subprocess

        sys.stdout.flush()
        subprocess.run(line[1:], shell=True)


async def in_a_loop(codes, space):
    for code in codes:
        value = eval(code, space)
        if code.co_flags & COROUTINE:
            value = await value
    return value


def evaluate(codes, space, run=None):
    """The value of the last of them; None of statements. `run`: what an event loop's work is given to."""
    for code in codes:
        if code.co_flags & COROUTINE or run and needs_loop(code):
            import asyncio

            return (run or asyncio.run)(in_a_loop(codes, space))
    for code in codes:
        value = eval(code, space)
    return value


def file_of(frame):
    return frame.tb_frame.f_code.co_filename


def is_own(name):
    return name in OWN or name.startswith(OWN_FOLDER)


def without_own(error, path):
    """The exception with the frames of the program, and of what it calls, alone."""
    first = error.__traceback__
    while first and file_of(first) != path:  # ours, and the event loop's
        first = first.tb_next
    frame = first
    while frame:
        while frame.tb_next and is_own(file_of(frame.tb_next)):
            frame.tb_next = frame.tb_next.tb_next
        frame = frame.tb_next
    return error.with_traceback(first)


def hide_frames(path):
    """The interpreter prints the exception that is on its way without our frames."""
    hook = sys.excepthook

    def show(kind, error, frames):
        sys.excepthook = hook
        error = without_own(error, path)
        hook(kind, error, error.__traceback__)

    sys.excepthook = show


def start(mode, path):
    """Runs the program of this process; sys.argv is what it is to see."""
    pid, own = os.getpid(), sys.modules["__main__"]  # which is kept: it holds what runs here
    shower = Shower() if mode == "show" else None
    sys.path[0] = os.path.dirname(path)
    if mode == "tools":
        Shower()  # for display() and show(); the last value is not shown
        give_tools()
    try:
        codes = read(path, shower)
        module = sys.modules["__main__"] = new_main(path)
        value = evaluate(codes, module.__dict__)
    except SystemExit as error:
        if shower and not error.code and os.getpid() == pid:
            shower.end(None)
        raise
    except BaseException:
        hide_frames(path)
        raise
    if shower and os.getpid() == pid:  # not a child that the program made and that came to its end
        shower.end(value)


# -------- its last value -------------------------------------------------------------------------------------
def simple(value, left):
    """No code of the program has a part in its text, which is short: nothing has to guard it."""
    left[0] -= 1
    kind = type(value)
    if kind is list or kind is tuple or kind is set:
        return len(value) <= left[0] and all([simple(one, left) for one in value])
    if kind is dict:
        return len(value) <= left[0] and all([simple(one, left) for pair in value.items() for one in pair])
    if kind is str or kind is bytes:
        return len(value) <= SIMPLE
    if kind is int:
        return value.bit_length() <= SIMPLE
    return left[0] > 0 and (kind is float or kind is bool or value is None)


def plain_text(value):
    """Of a simple value; else empty."""
    try:
        text = repr(value) if simple(value, [SIMPLE]) else ""
    except Exception:  # another thread changes it
        return ""
    return "" if " at 0x" in text else text


def note(text):
    """Shows a line."""
    try:
        with open(SHOWN, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text + "\n")
    except OSError:
        pass


class Shower:
    """Shows a last value and open figures; as a finder, it sees which libraries are imported that draw."""

    parts = {"note": note}  # and what python_values.py has

    def __init__(self, live=False):
        self.draws, self.live = False, live
        sys.meta_path.insert(0, self)
        builtins.display = self.display

    def display(self, *values, **options):
        """As in a notebook."""
        for value in values:
            self.part("show_value")(value)

    def part(self, name):
        if name not in self.parts:
            with open(VALUES, "rb") as file:
                exec(compile(file.read(), VALUES, "exec", dont_inherit=True), self.parts)
        return self.parts[name]

    def find_spec(self, name, path=None, target=None):
        if name in NOTEBOOK:
            return self.part("notebook")(self, name, path, target)
        if name not in WATCHED and not (self.live and name in LIVE_WATCHED):
            return None
        self.draws = self.draws or name in WATCHED
        return self.part("watched")(self, name, path, target)

    def end(self, value):
        text = plain_text(value) if not self.draws and value is not None else ""
        if text:
            note(text)
        elif value is not None or self.draws:
            self.part("show_end")(value)


# -------- tools ----------------------------------------------------------------------------------------------
class Later:
    """A name that imports what it stands for when it is used: a program that calls nothing pays nothing."""

    def __init__(self, get):
        object.__setattr__(self, "_get", get)

    def __getattr__(self, name):
        return getattr(self._get(), name)

    def __getitem__(self, name):
        return self._get()[name]

    def __iter__(self):
        return iter(self._get())

    def __len__(self):
        return len(self._get())

    def __contains__(self, name):
        return name in self._get()

    def __repr__(self):
        return repr(self._get())


def tool_names():
    """What a program finds without an import."""
    index = {}
    with open(TOOLS, "rb") as file:
        exec(file.read(), index)

    def module(name):
        __import__(name)
        return sys.modules[name]

    found = {
        "tools": Later(lambda: module("tools")),
        "mcp": Later(lambda: module("mcp")),
        "mcp_servers": Later(lambda: module("mcp").mcp_servers),
        "save_tool": lambda function: module("mcp").save_tool(function),
        "LOADED_MCP_SERVERS": tuple(name for name, _, _, _ in index["SERVERS"]),
    }
    for name, _, alias, _ in index["SERVERS"]:
        found[f"mcp_{alias}"] = Later(lambda name=name: module("mcp").mcp_servers[name])
    return found


def user_tools():
    """What save_tool kept: everything in that file that is not private. A mistake in it is shown and ends nothing."""
    if not os.path.isfile(USER_TOOLS):
        return {}
    module = sys.modules["user_tools"] = type(sys)("user_tools")
    module.__file__ = USER_TOOLS
    try:
        with open(USER_TOOLS, "rb") as file:
            exec(compile(file.read(), USER_TOOLS, "exec", dont_inherit=True), module.__dict__)
    except Exception as error:
        import traceback

        print("user_tools.py, which save_tool wrote, fails:", file=sys.stderr)
        traceback.print_exception(without_own(error, USER_TOOLS))
    return {name: value for name, value in vars(module).items() if not name.startswith("_")}


def give_tools():
    if "/code" not in sys.path:
        sys.path.append("/code")
    vars(builtins).update(tool_names())
    for name, value in user_tools().items():
        if not hasattr(builtins, name):
            setattr(builtins, name, value)


# -------- the runs of a live sandbox -------------------------------------------------------------------------
# Each run's source is executed in the one module __main__, as a script is: output is what it prints, an exception ends the run with its
# traceback and status 1, SystemExit with its status; names, modules, threads and open files stay. A run is over when its last statement
# is; threads go on. Tracebacks name /code/main.py for the first run and /code/main.py#N for run N, because code of earlier runs
# is still there and its lines must be found (linecache).
def complain(error, name):
    """As the interpreter itself does."""
    error = without_own(error, name)
    if sys.excepthook is not sys.__excepthook__:
        sys.excepthook(type(error), error, error.__traceback__)
    elif sys.stderr is not None:
        import traceback

        traceback.print_exception(error)  # the built-in hook looks for the source on the disk


def needs_loop(code):
    """It makes tasks, and starts no loop of its own."""
    names = set(code.co_names)
    return bool({"create_task", "ensure_future", "gather", "get_running_loop"} & names) and not {"run", "run_until_complete"} & names


def run_in_loop(work, loops=[]):
    """One event loop for a session: tasks go on in later runs."""
    import asyncio

    if not loops or loops[0].is_closed():
        loops[:] = [asyncio.new_event_loop()]
    asyncio.set_event_loop(loops[0])
    return loops[0].run_until_complete(work)


def read_run(name, source, shower):
    try:
        return split(source, name, shower)
    except SyntaxError as error:
        return as_notebook(source, name, shower, error)


def execute(name, source, module, shower):
    """Status of one run."""
    try:
        value = evaluate(read_run(name, source, shower), module.__dict__, run_in_loop)
        if shower:
            shower.end(value)
            if value is not None:
                builtins._ = value
        return 0
    except SystemExit as error:
        if error.code is None:
            return 0
        if isinstance(error.code, int):
            return error.code & 0xFF
        print(error.code, file=sys.stderr)
        return 1
    except BaseException as error:
        try:
            complain(error, name)
        except BaseException:
            sys.__excepthook__(*sys.exc_info())
        return 130 if isinstance(error, KeyboardInterrupt) else 1


def flush():
    status = 0
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except (OSError, ValueError, AttributeError):
            status = 120  # what Python itself exits with
    return status


def prepare(path, arguments, environment, given):
    """What belongs to a run, not to the interpreter. Returns the names of its variables."""
    for name in given:
        os.environ.pop(name, None)
    pairs = [entry.split("=", 1) for entry in environment]
    os.environ.update(pairs)
    sys.argv = [path, *arguments]
    sys.path[0] = os.path.dirname(path)
    sys.stdin = open(0, closefd=False)
    if sys.stdout is None or sys.stdout.closed:
        sys.stdout = open(1, "w", closefd=False)
    if sys.stderr is None or sys.stderr.closed:
        sys.stderr = open(2, "w", closefd=False, errors="backslashreplace", line_buffering=True)
    return [name for name, _ in pairs]


def take_tools():
    """The servers of this run need not be those of the last one."""
    for name in [name for name in sys.modules if name.split(".")[0] in ("tools", "mcp")]:
        del sys.modules[name]
    vars(builtins).update(tool_names())


def serve(control):
    import linecache

    shower = None
    module = sys.modules["__main__"] = new_main("/code/main.py")
    pid, number, given = os.getpid(), 0, []
    while packet := control.recv(PACKET_MAX):
        path, shows, count, *strings = [os.fsdecode(part) for part in packet.split(b"\0")[:-1]]
        number += 1
        given = prepare(path, strings[: int(count)], strings[int(count) :], given)
        if "MCP_SOCKET" in given:
            take_tools()
        with open(path, "rb") as file:
            source = file.read()
        module.__file__ = path
        name = path if number == 1 else f"{path}#{number}"
        lines = [line + "\n" for line in source.decode("utf-8", "replace").splitlines()]  # as linecache has them
        linecache.cache[name] = (len(source), None, lines, name)
        if shows == "1" and shower is None:
            shower = Shower(live=True)
        status = execute(name, source, module, shower if shows == "1" else None)
        status = flush() or status
        if os.getpid() != pid:
            os._exit(status)  # a child that the program made and that came to the end of it
        control.send(bytes([status]))


def main():
    mode, *argv = sys.argv[1:]
    if mode == "live":
        import socket

        control = socket.socket(fileno=CONTROL)
        control.set_inheritable(False)
        serve(control)
        return
    sys.argv[:] = argv
    del sys.orig_argv[1:3]
    start(mode, argv[0])


if __name__ == "__main__":
    main()
