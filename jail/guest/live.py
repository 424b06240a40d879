# live.py - keeps one Python interpreter over the runs of a live sandbox (jail/init/init_live.c says what comes through descriptor 3).
#
# Each run's source is executed in the one module __main__, as a script is: output is what it prints, an exception ends the run with its
# traceback and status 1, SystemExit with its status; names, modules, threads and open files stay. A run is over when its last statement
# is; threads go on. Tracebacks name /code/main.py for the first run and /code/main.py#N for run N, because code of earlier runs
# is still there and its lines must be found (linecache).
#
# The second half shows values and figures, also for show.py, which reads this file when there is something to show. A value or a figure
# must not spoil what the program did: showing has a time, memory and a length of its own, and what goes wrong in it is one line.
import builtins
import os
import sys
import types

PACKET_MAX = 256 * 1024
SHOW_SECONDS = 5
SHOW_MEMORY = 256 * 1024 * 1024  # beyond what is used already
TEXT_MAX = 16 * 1024
FIGURES_MAX = 20
ROWS, COLUMNS, CELL_MAX = 20, 20, 100
TOP_LEVEL_AWAIT, COROUTINE = 0x2000, 0x80  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, inspect.CO_COROUTINE
TOOLS = "/code/.call"
OWN = ("/code/.show", "/code/.live")


def show(error, frames):
    """As the interpreter itself does, without our own frames."""
    import traceback

    error = error.with_traceback(frames)
    if sys.excepthook is not sys.__excepthook__:
        sys.excepthook(type(error), error, frames)
    elif sys.stderr is not None:
        traceback.print_exception(type(error), error, frames)  # the built-in hook looks for the source on the disk


def without_own(error):
    """The exception with frames of the program and what it calls alone."""
    frame = frames = types.SimpleNamespace(tb_next=error.__traceback__)
    while frame:
        while frame.tb_next and frame.tb_next.tb_frame.f_code.co_filename in OWN:
            frame.tb_next = frame.tb_next.tb_next
        frame = frame.tb_next
    return error.with_traceback(frames.tb_next)


def fail():
    """The interpreter prints the exception that is on its way, without our frames."""
    hook = sys.excepthook

    def show_own(kind, error, frames):
        error = without_own(error)
        hook(kind, error, error.__traceback__)

    sys.excepthook = show_own


def evaluate(code, module):
    """Its value; None of statements."""
    if not code.co_flags & COROUTINE:
        return eval(code, module.__dict__)
    import asyncio

    return asyncio.run(eval(code, module.__dict__))


def execute(name, source, module, shower):
    """Status of one run."""
    last = None
    try:
        if shower:
            code, last = shower["split"](source, name, TOP_LEVEL_AWAIT)
        else:
            code = compile(source, name, "exec", flags=TOP_LEVEL_AWAIT, dont_inherit=True)
        evaluate(code, module)
        value = evaluate(last, module) if last else None
        if shower:
            show_end(value)
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
    space = {"__name__": "call", "__file__": TOOLS}
    exec(code_of(TOOLS), space)
    for name, value in space["names"]().items():
        setattr(builtins, name, value)


def code_of(path):
    """Of one of these files, as it was written or compiled (runner.h, "precompile")."""
    with open(path, "rb") as file:
        text = file.read()
    if text.startswith(b"# "):
        return compile(text, path, "exec")
    import marshal

    return marshal.loads(text[16:])


def load_shower():
    """What show.py has: how a program is split, which libraries are watched."""
    parts = {"__name__": "show"}
    exec(code_of("/code/.show"), parts)
    parts["Shower"](globals())
    return parts


def serve(control):
    import linecache

    shower = None
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
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
            shower = load_shower()
        status = execute(name, source, module, shower if shows == "1" else None)
        status = flush() or status
        if os.getpid() != pid:
            os._exit(status)  # a child that the program made and that came to the end of it
        control.send(bytes([status]))


# -------- values and figures ------------------------------------------------------------------------------


class Bounded:
    """Standard output while a value is made into text: some of them print."""

    def __init__(self):
        self.room = TEXT_MAX

    def write(self, text):
        if len(text) > self.room:
            raise MemoryError("too long")
        self.room -= len(text)
        return len(text)

    def flush(self):
        pass


def guarded(work, *arguments):
    """What it returns, or the exception: it is not the program's."""
    import _signal as signal
    import resource

    def late(number, frame):
        raise TimeoutError(f"took more than {SHOW_SECONDS} s")

    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        room = int(file.read().split()[0]) * resource.getpagesize() + SHOW_MEMORY
    out, sys.stdout = sys.stdout, Bounded()
    handler = signal.signal(signal.SIGALRM, late)
    try:
        if before[0] == resource.RLIM_INFINITY or before[0] > room:
            resource.setrlimit(resource.RLIMIT_AS, (room, before[1]))
        signal.setitimer(signal.ITIMER_REAL, SHOW_SECONDS, 0.1)
        return work(*arguments)
    except BaseException as error:
        return error
    finally:
        while True:  # late() may come until the timer is off
            try:
                signal.setitimer(signal.ITIMER_REAL, 0)
                break
            except TimeoutError:
                pass
        signal.signal(signal.SIGALRM, handler if handler is not None else signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_AS, before)
        sys.stdout = out


def note(text):
    if sys.stdout is not None and not getattr(sys.stdout, "closed", False):
        print(text)


def cell(value):
    text = str(value)[:CELL_MAX]
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


def table(frame):
    """The first rows in Markdown."""
    rows, columns = frame.shape
    part = frame.iloc[:ROWS, :COLUMNS]
    names = ", ".join(str(name) for name in part.index.names if name is not None)
    lines = [[cell(names), *map(cell, part.columns)], ["---"] * (part.shape[1] + 1)]
    lines += [[cell(value) for value in row] for row in part.itertuples(name=None)]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return text + (f"\n\n{rows} rows, {columns} columns" if rows > ROWS or columns > COLUMNS or rows == 0 else "")


def as_text(value):
    kind = type(value)
    if kind.__name__ == "DataFrame" and kind.__module__.startswith("pandas."):
        text = table(value)
    else:
        text = repr(value)
    length = len(text)
    text = text[:TEXT_MAX]
    if " at 0x" in text:  # it is another one in each run
        import re

        text = re.sub(r" at 0x[0-9a-f]{4,16}\b", "", text)
    return text if length <= TEXT_MAX else f"{text}… ({length - TEXT_MAX} more characters)"


def is_drawn(value):
    """Is it what a call that draws returns?"""
    for _ in range(3):
        if type(value).__module__.startswith("matplotlib."):
            return True
        if type(value) not in (list, tuple) or not value:
            return False
        value = value[0]
    return False


def free_name(ending):
    for number in range(1, 10_000):
        name = f"figure-{number}.{ending}"
        try:
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
            return name
        except FileExistsError:
            pass
    raise OSError("there are 10000 figures")


figures = {"count": 0, "last": None, "plots": None, "savefig": None}


def save(write, ending="png"):
    """Writes a figure; what fails leaves no file. Returns the exception, or None."""
    figures["count"] += 1
    if figures["count"] > FIGURES_MAX:
        return None

    def work():
        name = free_name(ending)
        try:
            write(name)
        except BaseException:
            os.unlink(name)
            raise

    return guarded(work)


def complain(error):
    if error is not None:
        note(f"a figure could not be saved: {type(error).__name__}: {str(error)[:200]}")


def save_plot(figure):
    figure._sallyport_saved = True
    complain(save(lambda name: figures["savefig"](figure, name, format="png")))


def save_plots():
    plots = figures["plots"]
    for number in plots.get_fignums() if plots else []:
        figure = plots._pylab_helpers.Gcf.get_fig_manager(number).canvas.figure
        if not getattr(figure, "_sallyport_saved", False):
            save_plot(figure)


def watch_plots(plots):
    kind = plots.Figure
    plain = plots.savefig
    figures.update(plots=plots, savefig=kind.savefig)

    def savefig(self, *arguments, **options):
        result = figures["savefig"](self, *arguments, **options)
        self._sallyport_saved = True
        return result

    def savefig_last(*arguments, **options):
        """show() closes what a script without a display has still open."""
        if not plots.get_fignums() and figures["last"] is not None:
            return figures["last"].savefig(*arguments, **options)
        return plain(*arguments, **options)

    def show(*arguments, **options):
        if plots.get_fignums():
            save_plots()
            figures["last"] = plots.gcf()
            plots.close("all")

    kind.savefig, kind.show = savefig, lambda self, warn=True: save_plot(self)
    plots.savefig, plots.show = savefig_last, show


def save_plotly(figure):
    error = save(figure.write_image)  # needs a browser
    if error is not None:
        figures["count"] -= 1
        error = save(lambda name: figure.write_html(name, include_plotlyjs="cdn"), "html")
    complain(error)


def save_picture(picture):
    complain(save(lambda name: picture.save(name, format="PNG")))


def watch(name, module):
    if name == "matplotlib.pyplot":
        watch_plots(module)
    elif name == "PIL.Image":
        module.Image.show = lambda self, *arguments, **options: save_picture(self)
    else:
        module.BaseFigure.show = lambda self, *arguments, **options: save_plotly(self)


def watched(shower, name, path, target):
    """The library's spec: when it is loaded, what shows things is put in place of what needs a display."""
    for finder in sys.meta_path:
        spec = finder.find_spec(name, path, target) if finder is not shower else None
        if spec is not None:
            load = spec.loader.exec_module

            def exec_module(module):
                load(module)
                watch(name, module)

            spec.loader.exec_module = exec_module
            return spec
    return None


def is_open(figure):
    plots = figures["plots"]
    return plots is not None and getattr(figure, "number", None) in plots.get_fignums()


def show_value(value):
    kind = type(value)
    plotly, pictures = sys.modules.get("plotly.basedatatypes"), sys.modules.get("PIL.Image")
    if plotly and isinstance(value, plotly.BaseFigure):
        save_plotly(value)
    elif pictures and isinstance(value, pictures.Image):
        save_picture(value)
    elif kind.__module__ == "matplotlib.figure" and figures["savefig"]:
        if not getattr(value, "_sallyport_saved", False) and not is_open(value):
            save_plot(value)
    elif not is_drawn(value):
        text = guarded(as_text, value)
        note(text if isinstance(text, str) else f"<{kind.__name__}: its value cannot be shown: {type(text).__name__}>")


def show_end(value):
    """At the end of a run that ended well."""
    if value is not None:
        show_value(value)
    save_plots()
    if figures["count"] > FIGURES_MAX:
        note(f"{figures['count'] - FIGURES_MAX} more figures are not saved")
    figures["count"] = 0


if __name__ == "__main__":
    import socket

    link = socket.socket(fileno=3)
    link.set_inheritable(False)
    serve(link)
