# examiner.py - runs tests, in a process that it forks anew after MOST tasks; the code under test is in another jail.
#
# The tests of one file of tasks trust each other: what one changes in the interpreter, the next ones see.
#
# Standard input: a task a line, as JSON (a Python literal but for null), and the candidate's answers; what goes to standard output is for
# the judge, by its first letter: P the candidate's program, compiled (CANDIDATE, which the judge puts before this file, is its text), Q a
# question to pass on to the candidate, V the verdict, D the process of the tests has ended. What the candidate says is data: it is parsed
# here, never evaluated, and only plain values come of it; anything else is a Thing, which can be asked, called and handed back.
#
# The imports are few because each judge starts such a process: these cost 11 ms, with ast, json and importlib.util it was 21.
import _ast
import _frozen_importlib_external
import _json
import collections
import gc
import marshal
import math
import os

MOST = 64


class Ended(BaseException):
    """The candidate's process has ended."""


class Apart(BaseException):
    """This cannot cross between two processes."""


def write(fd, text):
    data = text.encode()
    while data:
        data = data[os.write(fd, data) :]


def read_line(fd, rest=bytearray()):
    while b"\n" not in rest:
        block = os.read(fd, 1 << 16)
        if not block:
            return None
        rest += block
    line, _, tail = bytes(rest).partition(b"\n")
    rest[:] = tail
    return line


class Link:
    """One question at a time, and its answer."""

    def __init__(self, fd_in, fd_out):
        self.fd_in, self.fd_out, self.ended = fd_in, fd_out, False

    def ask(self, *question):
        if not self.ended:
            write(self.fd_out, "Q" + literal(question) + "\n")
            line = read_line(self.fd_in)
            if line and line[:1] == b"=":
                return parse(self, line[1:])
            if line and line[:1] == b"!":
                raise exception(*parse(self, line[1:]))
        self.ended = True
        raise Ended()


class CandidateError(Exception):
    pass


def exception(name, kinds, text):
    for kind in [name] + kinds:
        found = getattr(builtins, str(kind), None)
        if isinstance(found, type) and issubclass(found, Exception):
            try:
                return found(text)
            except Exception:
                break
    return CandidateError(name + ": " + text)


class Thing:
    """A value of the candidate's that is not plain data. Two are equal where they are the same."""

    __slots__ = ("_link", "_number")

    def __init__(self, link, number):
        object.__setattr__(self, "_link", link)
        object.__setattr__(self, "_number", number)

    def __call__(self, *args, **named):
        return self._link.ask("call", self, args, named)

    def __getattr__(self, name):
        if name[:2] == "__":
            raise AttributeError(name)
        return self._link.ask("attribute", self, name)

    def __setattr__(self, name, value):
        self._link.ask("set", self, name, value)

    def __iter__(self):
        return self._link.ask("iterate", self)

    def __next__(self):
        return self._link.ask("next", self)

    def __getitem__(self, key):
        return self._link.ask("item", self, key)

    def __len__(self):
        return self._link.ask("length", self)

    def __bool__(self):
        return bool(self._link.ask("truth", self))

    def __str__(self):
        return str(self._link.ask("text", self))

    def __eq__(self, other):
        return isinstance(other, Thing) and self._number == other._number

    def __hash__(self):
        return self._number


def literal(v, depth=0):
    """A value as text that candidate.py evaluates."""
    kind = type(v)
    if v is None or kind in (bool, str, bytes):
        return ascii(v)
    if kind is int:
        return ascii(v) if -1 << 62 < v < 1 << 62 else hex(v)
    if kind is float:
        return ascii(v) if math.isfinite(v) else "nan" if v != v else "1e999" if v > 0 else "-1e999"
    if kind is complex:
        return "complex(%s,%s)" % (literal(v.real), literal(v.imag))
    if kind is Thing:
        return "O(%d)" % v._number
    if depth > 50:
        raise Apart("nested too deeply")
    if kind is list:
        return "[" + ",".join([literal(x, depth + 1) for x in v]) + "]"
    if kind is tuple:
        return "(" + "".join([literal(x, depth + 1) + "," for x in v]) + ")"
    if kind in (dict, collections.Counter, collections.OrderedDict):
        items = "{" + ",".join([literal(k, depth + 1) + ":" + literal(x, depth + 1) for k, x in v.items()]) + "}"
        return items if kind is dict else kind.__name__ + "(" + items + ")"
    if kind in (set, frozenset, collections.deque):
        return kind.__name__ + "([" + ",".join([literal(x, depth + 1) for x in v]) + "])"
    if kind is range:
        return "range(%d,%d,%d)" % (v.start, v.stop, v.step)
    raise Apart("a value of type %s" % kind.__name__)


MAKERS = {
    "set": set,
    "frozenset": frozenset,
    "complex": complex,
    "range": range,
    "deque": collections.deque,
    "Counter": collections.Counter,
    "OrderedDict": collections.OrderedDict,
}


def parse(link, line):
    def value(node):
        kind = type(node)
        if kind is _ast.Constant:
            return node.value
        if kind is _ast.UnaryOp and type(node.op) is _ast.USub and type(node.operand) is _ast.Constant:
            return -node.operand.value
        if kind is _ast.List:
            return [value(x) for x in node.elts]
        if kind is _ast.Tuple:
            return tuple([value(x) for x in node.elts])
        if kind is _ast.Dict and None not in node.keys:
            return {value(k): value(x) for k, x in zip(node.keys, node.values)}
        if kind is _ast.Name and node.id == "nan":
            return math.nan
        if kind is _ast.Call and type(node.func) is _ast.Name and not node.keywords:
            args = [value(x) for x in node.args]
            if node.func.id == "O" and len(args) == 1 and type(args[0]) is int:
                return Thing(link, args[0])
            return MAKERS[node.func.id](*args)
        raise ValueError("no plain value")

    try:
        return value(compile(line, "answer.py", "eval", _ast.PyCF_ONLY_AST).body)
    except (SyntaxError, ValueError, TypeError, KeyError, RecursionError, MemoryError) as e:
        raise CandidateError("the answer is not a value") from e


def names_of(source):
    """What a reference solution defines at its top level, and its imports."""
    import ast

    names, imports = set(), []
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            imports.append(node)
        else:
            names.update(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return names, imports


def begin(task, space):
    """What comes before the tests: the task's own text, which is trusted."""
    if task["given"] is not None:
        for ending in ("", "\n    pass\n", "\npass\n"):
            try:
                code = compile(task["given"] + ending, "prompt.py", "exec")
            except SyntaxError:
                continue
            exec(code, space)
            break
        return {task["entry"]}
    import ast

    names, imports = names_of(task["reference"])
    exec(compile(ast.Module(body=imports, type_ignores=[]), "imports.py", "exec"), space)
    used = {n.id for text in task["tests"] for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
    return names & used


def run(task, link):
    space = {"__name__": "tests"}
    names = begin(task, space)
    for name in sorted(names):
        try:
            space[name] = link.ask("get", name)
        except KeyError:
            space.pop(name, None)
    for number, text in enumerate(task["tests"]):
        exec(compile(text, "tests.py", "exec"), space)
    if task["call"]:
        space[task["call"]](space[task["entry"]])


def judge(task, link):
    try:
        run(task, link)
        return "passed", ""
    except Apart as e:
        return "apart", str(e)
    except Ended:
        return "ended", ""
    except AssertionError as e:
        return "wrong", str(e)
    except BaseException as e:
        return "error", "%s: %s" % (type(e).__name__, e)


def serve(most):
    """Tasks, one after the other, in this process, which ends after `most` of them or when one left something running."""
    gc.freeze()
    fd_in, fd_out = os.dup(0), os.dup(1)
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    for number in range(1, most + 1):
        line = read_line(fd_in)
        if line is None:
            os._exit(1)
        limit = sys.getrecursionlimit()
        link = Link(fd_in, fd_out)
        end, text = judge(eval(line, {"null": None}), link)
        if link.ended:
            end = "ended"
        link.ended = True  # for a Thing that outlives its task
        sys.setrecursionlimit(limit)
        write(fd_out, 'V{"end": "%s", "text": %s}\n' % (end, _json.encode_basestring_ascii(text[:300])))
        if number == most or len(sys._current_frames()) > 1:
            os._exit(0)
        write(fd_out, "D0\n")


def main():
    code = compile(CANDIDATE, "/code/main.py", "exec", dont_inherit=True)
    write(1, "P" + (_frozen_importlib_external.MAGIC_NUMBER + bytes(12) + marshal.dumps(code)).hex() + "\n")
    sys.setrecursionlimit(5000)
    while True:
        pid = os.fork()
        if pid == 0:
            serve(MOST)
        _, status = os.waitpid(pid, 0)
        write(1, "D%d\n" % status)
        if status != 0:
            break


main()
