# python_values.py - shows the last value and the open figures of a Python program; python.py reads it when there is something to show.
#
# A value or a figure must not spoil what the program did: showing has a time, memory and a length of its own, and what goes wrong in it
# is one line. note() is python.py's.
import os
import sys

SHOW_SECONDS = 5
SHOW_MEMORY = 256 * 1024 * 1024  # beyond what is used already
TEXT_MAX = 16 * 1024
FIGURES_MAX = 20
ROWS, COLUMNS, CELL_MAX = 20, 20, 100


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


figures = {"count": 0, "last": None, "plots": None, "savefig": None, "run": 1}


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
    figure._sallyport_saved = figures["run"]
    plain = figures["savefig"] or type(figure).savefig
    complain(save(lambda name: plain(figure, name, format="png")))


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
        self._sallyport_saved = figures["run"]
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
    elif name == "multiprocessing.context":  # of a session: a fresh interpreter has neither its names nor its earlier runs
        module._concrete_contexts.update(dict.fromkeys(("spawn", "forkserver"), module._concrete_contexts["fork"]))
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


class Shown(str):
    """What IPython.display makes of a text: HTML, Markdown, Latex …"""

    __module__ = "IPython.display"

    def __new__(cls, data=None, *arguments, **options):
        return super().__new__(cls, "" if data is None else data)

    def __repr__(self):
        return str(self)


class Notebook:
    """Loads IPython and IPython.display where there is no IPython: what shows things."""

    def __init__(self, shower):
        self.shower = shower

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        if module.__name__ == "IPython":
            module.__path__ = []
            module.get_ipython = lambda: None
            return
        module.display = self.shower.display
        module.clear_output = lambda wait=False: None
        for name in ("HTML", "Markdown", "Latex", "Math", "JSON", "SVG", "Javascript", "Pretty"):
            setattr(module, name, type(name, (Shown,), {"__module__": "IPython.display"}))

        def image(data=None, filename=None, **options):
            from PIL import Image
            import io

            return Image.open(io.BytesIO(data) if isinstance(data, bytes) else filename or data)

        module.Image = image


def notebook(shower, name, path, target):
    import importlib.machinery

    for finder in sys.meta_path:
        spec = finder.find_spec(name, path, target) if finder is not shower else None
        if spec is not None:
            return spec
    return importlib.machinery.ModuleSpec(name, Notebook(shower), is_package=name == "IPython")


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
    elif kind.__module__ == "matplotlib.figure" and hasattr(value, "savefig"):
        saved = getattr(value, "_sallyport_saved", 0)
        if saved != figures["run"] and (saved or not is_open(value)):  # else save_plots() does
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
    figures["run"] += 1
