# call.py - starts a Python program that may call tools: `tools` and the seed's names (mcp_NAME …) are there without an import, and
# `await` may stand at the top. A program without such an await runs as a plain script, so it may call asyncio.run itself.
#
# Nothing is imported before the program asks for it: a program that calls nothing pays nothing.
import _warnings
import builtins
import os
import sys
import types

INDEX = "/code/tools/_index.py"  # lib/bridge/bridge_files.c


class Later:
    """A name that imports what it stands for when it is used."""

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


def names():
    """What a program finds without an import."""
    index = {}
    with open(INDEX, "rb") as file:
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


USER_TOOLS = "/data/user_tools.py"


def user_tools():
    """What save_tool kept: everything in that file that is not private. A mistake in it is shown and ends nothing."""
    if not os.path.isfile(USER_TOOLS):
        return {}
    module = types.ModuleType("user_tools")
    module.__file__ = USER_TOOLS
    sys.modules["user_tools"] = module
    try:
        with open(USER_TOOLS, "rb") as file:
            exec(compile(file.read(), USER_TOOLS, "exec"), module.__dict__)
    except Exception:
        import traceback

        print("user_tools.py, which save_tool wrote, fails:", file=sys.stderr)
        traceback.print_exc()
    return {name: value for name, value in vars(module).items() if not name.startswith("_")}


class Begun(BaseException):
    pass


def renamed(code, path):
    consts = tuple(renamed(one, path) if isinstance(one, types.CodeType) else one for one in code.co_consts)
    return code.replace(co_filename=path, co_consts=consts)


def begun(source, path):
    """The source's code out of its frame, before the first line runs. What exec() would warn of is an error here."""
    found = []

    def begin(frame, event, arg):
        found.append(frame.f_code)
        raise Begun

    _warnings.filters.insert(0, ("error", None, SyntaxWarning, None, 0))
    _warnings._filters_mutated()
    sys.settrace(begin)
    try:
        exec(source, {})
    except Begun:
        return renamed(found[0], path)
    finally:
        sys.settrace(None)
        del _warnings.filters[0]
        _warnings._filters_mutated()


def compiled(source, path):
    """compile() makes Python's classes for syntax trees, which takes a fifth of the time in which Python starts; exec() does not,
    but gives the code no file. So compile() is for what exec() cannot do: await at the top, and errors, which name the file."""
    if b"await" not in source and b"async" not in source:
        try:
            return begun(source, path)
        except Exception:
            pass
    return compile(source, path, "exec", flags=0x2000, dont_inherit=True)  # PyCF_ALLOW_TOP_LEVEL_AWAIT


def execute(code, namespace):
    if code.co_flags & 0x80:  # CO_COROUTINE: it awaits at the top
        import asyncio

        asyncio.run(eval(code, namespace))
    else:
        exec(code, namespace)


def own_frames(trace, path):
    """Frames of this file, and of the event loop before the program's, are not the program's."""
    while trace is not None and trace.tb_frame.f_code.co_filename != path:
        trace = trace.tb_next
    return trace


def main(path):
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(path)
    if "/code" not in sys.path:
        sys.path.append("/code")
    for name, value in names().items():
        setattr(builtins, name, value)
    for name, value in user_tools().items():
        if not hasattr(builtins, name):
            setattr(builtins, name, value)
    module = types.ModuleType("__main__")
    module.__file__ = path
    module.__builtins__ = builtins
    sys.modules["__main__"] = module
    with open(path, "rb") as file:
        source = file.read()
    try:
        execute(compiled(source, path), module.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        trace = own_frames(error.__traceback__, path)
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        sys.exit(130 if isinstance(error, KeyboardInterrupt) else 1)


if __name__ == "__main__":
    main(sys.argv[1])
