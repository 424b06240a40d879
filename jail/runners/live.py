# live.py - keeps one Python interpreter over the runs of a live sandbox (jail/init/init_live.c says what comes through descriptor 3).
#
# Each run's source is executed in the one module __main__, as a script is: output is what it prints, an exception ends the run with its
# traceback and status 1, SystemExit with its status; names, modules, threads and open files stay. A run is over when its last statement
# is; threads go on. Tracebacks name /code/main.py for the first run and /code/main.py#N for run N, because code of earlier runs
# is still there and its lines must be found (linecache).
import linecache
import os
import socket
import sys
import traceback
import types

PACKET_MAX = 256 * 1024


def show(error, frames):
    """As the interpreter itself does, without our own frames."""
    error = error.with_traceback(frames)
    if sys.excepthook is not sys.__excepthook__:
        sys.excepthook(type(error), error, frames)
    elif sys.stderr is not None:
        traceback.print_exception(type(error), error, frames)  # the built-in hook looks for the source on the disk


def execute(name, source, module):
    """Status of one run."""
    code = None
    try:
        code = compile(source, name, "exec", dont_inherit=True)
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
        frames = error.__traceback__.tb_next if code else None
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


def serve(control):
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    pid, number, given = os.getpid(), 0, []
    while packet := control.recv(PACKET_MAX):
        path, count, *strings = [os.fsdecode(part) for part in packet.split(b"\0")[:-1]]
        number += 1
        given = prepare(path, strings[: int(count)], strings[int(count) :], given)
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
