# live.py - keeps one Python interpreter over the runs of a live sandbox (jail/init/init_live.c says what comes through descriptor 3).
#
# Each run's source is executed in the one module __main__, as a script is: output is what it prints, an exception ends the run with its
# traceback and status 1, SystemExit with its status; names, modules, threads and open files stay. A run is over when its last statement
# is; threads go on. Tracebacks name /code/main.py for the first run and /code/main.py#N for run N, because code of earlier runs
# is still there and its lines must be found (linecache).
import builtins
import linecache
import os
import socket
import sys
import traceback
import types

PACKET_MAX = 256 * 1024
TOP_LEVEL_AWAIT, COROUTINE = 0x2000, 0x80  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, inspect.CO_COROUTINE
TOOLS = "/code/tools/run.py"


def show(error, frames):
    """As the interpreter itself does, without our own frames."""
    error = error.with_traceback(frames)
    if sys.excepthook is not sys.__excepthook__:
        sys.excepthook(type(error), error, frames)
    elif sys.stderr is not None:
        traceback.print_exception(type(error), error, frames)  # the built-in hook looks for the source on the disk


def execute(name, source, module):
    """Status of one run."""
    try:
        code = compile(source, name, "exec", flags=TOP_LEVEL_AWAIT, dont_inherit=True)
        if code.co_flags & COROUTINE:
            import asyncio

            asyncio.run(eval(code, module.__dict__))
        else:
            exec(code, module.__dict__)
        return 0
    except SystemExit as error:
        if error.code is None:
            return 0
        if isinstance(error.code, int):
            return error.code & 0xFF
        print(error.code, file=sys.stderr)
        return 1
    except BaseException as error:
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename != name:
            frames = frames.tb_next  # ours, and the event loop's
        try:
            show(error, frames)
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
    """What a run that calls tools finds without an import: its servers, which need not be those of the last run."""
    for name in [name for name in sys.modules if name.split(".")[0] in ("tools", "mcp")]:
        del sys.modules[name]
    space = {"__name__": "run", "__file__": TOOLS}
    with open(TOOLS, "rb") as file:
        exec(compile(file.read(), TOOLS, "exec"), space)
    for name, value in space["names"]().items():
        setattr(builtins, name, value)


def serve(control):
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    pid, number, given = os.getpid(), 0, []
    while packet := control.recv(PACKET_MAX):
        path, count, *strings = [os.fsdecode(part) for part in packet.split(b"\0")[:-1]]
        number += 1
        given = prepare(path, strings[: int(count)], strings[int(count) :], given)
        if "MCP_SOCKET" in given:
            take_tools()
        with open(path, "rb") as file:
            source = file.read()
        module.__file__ = path
        name = path if number == 1 else f"{path}#{number}"
        lines = source.decode("utf-8", "replace").splitlines(keepends=True)
        linecache.cache[name] = (len(source), None, lines, name)
        status = execute(name, source, module)
        status = flush() or status
        if os.getpid() != pid:
            os._exit(status)  # a child that the program made and that came to the end of it
        control.send(bytes([status]))


if __name__ == "__main__":
    link = socket.socket(fileno=3)
    link.set_inheritable(False)
    serve(link)
