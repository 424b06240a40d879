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
    """One question at a time, and its answer; meanwhile the candidate may call functions of the tests."""

    def __init__(self, fd_in, fd_out):
        self.fd_in, self.fd_out, self.ended = fd_in, fd_out, False
        self.values = Values(2, self.foreign)
        self.things, self.exports, self.places, self.thrown = {}, [], {}, []
        self.classes = {}  # of exceptions of the task's own text
        self.makers = dict(self.values.makers, O=self.thing, F=self.exports.__getitem__)

    def thing(self, number, data=""):
        if number not in self.things:
            self.things[number] = Thing(self, number, data)
        return self.things[number]

    def foreign(self, v):
        """What is no value, as text: a Thing, what both sides have by name, or something of the tests'."""
        if type(v) is Thing:
            return "O(%d)" % v._number
        if callable(v):
            module, name = getattr(v, "__module__", None), getattr(v, "__qualname__", None)
            if module == "builtins" and getattr(builtins, str(name), None) is v:
                return "B(%a)" % name
            if str(module).partition(".")[0] in NAMED and getattr(sys.modules.get(module), str(name), None) is v:
                return "G(%a,%a)" % (module, name)
        elif type(v).__module__ != "tests" and not hasattr(v, "__next__"):
            raise Apart("a value of type %s" % type(v).__name__)
        if id(v) not in self.places:
            self.places[id(v)] = len(self.exports)
            self.exports.append(v)
        return "F(%d)" % self.places[id(v)]

    def drops(self):
        """Containers that the tests hold no more, or that were of no interest for long."""
        known = self.values
        gone = []
        for k in list(known.objects):
            v = known.objects[k]
            if sys.getrefcount(v) <= 3 or known.message - known.crossed[k] > KEEP:
                gone.append(k)
                known.forget(k)
        return gone

    def send(self, *question):
        drops = self.drops() if self.values.objects else ()
        heads, fills, text = self.values.pack(lambda: self.values.text(question))
        write(self.fd_out, "Q(%s,%s,%s,lambda:%s)\n" % (drops, heads, "lambda:(%s)" % fills if fills else None, text))

    def ask(self, *question):
        if not self.ended:
            self.send(*question)
            line = read_line(self.fd_in)
            while line and line[:1] == b"?":
                self.called(*parse(self, line[1:]))
                line = read_line(self.fd_in)
            if line and line[:1] in (b"=", b"+"):
                return parse(self, line)
            if line and line[:1] == b"!":
                raise self.exception(*parse(self, b"=" + line[1:]))
        self.ended = True
        raise Ended()

    def called(self, verb, target, *args):
        """A call of the candidate's. It may call what it was given, and no more: no way leads from there into this process."""
        own = type(target).__module__ == "tests"
        if not any([target is x for x in self.exports]) or verb not in CALLS or verb in ("attribute", "set") and not (own and args[0][:1] != "_"):
            raise CandidateError("a call of what is not the candidate's")
        try:
            result = CALLS[verb](target, *args)
        except Exception as e:
            self.thrown.append(e)
            name = next(k.__name__ for k in type(e).__mro__ if k.__module__ == "builtins")
            self.send("throw", name, str(e), len(self.thrown) - 1)
        else:
            self.send("reply", result)

    def exception(self, name, kinds, text, thrown):
        if thrown is not None:
            return self.thrown[thrown]
        for kind in [name] + kinds:
            found = self.classes.get(kind) or getattr(builtins, str(kind), None)
            if isinstance(found, type) and issubclass(found, Exception):
                try:
                    return found(text)
                except Exception:
                    break
        return CandidateError("%s: %s" % (name, text))


NAMED = sys.stdlib_module_names | {"numpy"}
CALLS = {
    "call": lambda f, args, named: f(*args, **named),
    "attribute": getattr,
    "set": setattr,
    "iterate": iter,
    "next": next,
    "item": lambda o, key: o[key],
    "length": len,
    "text": str,
}


class CandidateError(Exception):
    pass


class Thing:
    """A value of the candidate's that is not plain data; `data`: a list, set or dict that can do more than others. Two are equal where they
    are the same, or their data are. What the tests compare it with never leaves this process: else it could tell them what they want."""

    __slots__ = ("_link", "_number", "_data")

    def __init__(self, link, number, data):
        object.__setattr__(self, "_link", link)
        object.__setattr__(self, "_number", number)
        object.__setattr__(self, "_data", getattr(builtins, data) if data in ("list", "dict", "set") else None)

    @property
    def __class__(self):
        return self._data or Thing

    def __call__(self, *args, **named):
        return self._link.ask("call", self, args, named)

    def __getattr__(self, name):
        if name[:2] == "__":
            raise AttributeError(name)
        return self._link.ask("attribute", self, name)

    def __setattr__(self, name, value):
        self._link.ask("set", self, name, value)

    def __delattr__(self, name):
        self._link.ask("unset", self, name)

    def __iter__(self):
        return self._link.ask("iterate", self)

    def __next__(self):
        return self._link.ask("next", self)

    def __getitem__(self, key):
        return self._link.ask("item", self, key)

    def __setitem__(self, key, value):
        self._link.ask("put", self, key, value)

    def __delitem__(self, key):
        self._link.ask("remove", self, key)

    def __enter__(self):
        return self._link.ask("call", self._link.ask("attribute", self, "__enter__"), (), {})

    def __exit__(self, *why):
        return self._link.ask("call", self._link.ask("attribute", self, "__exit__"), (None, None, None), {})

    def __len__(self):
        return self._link.ask("length", self)

    def __bool__(self):
        return bool(self._link.ask("truth", self))

    def __str__(self):
        return str(self._link.ask("text", self))

    def __repr__(self):
        return str(self._link.ask("shown", self))

    def __int__(self):
        return int(self._link.ask("int", self))

    def __float__(self):
        return float(self._link.ask("float", self))

    def __instancecheck__(self, thing):
        return type(thing) is Thing and bool(self._link.ask("kind", thing, self))

    def __eq__(self, other):
        if type(other) is Thing and self._number == other._number:
            return True
        if self._data is None or type(other) is Thing and other._data is None:
            return False
        mine = self._link.ask("data", self)
        return mine == (self._link.ask("data", other) if type(other) is Thing else other)

    def __hash__(self):
        return self._number


def parse(link, line):
    """An answer, after its first letter: "=" and a value, or "+" and new containers, their contents, and a value."""

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
            return link.makers[node.func.id](*[value(x) for x in node.args])
        raise ValueError("no plain value")

    try:
        node = compile(line[1:], "answer.py", "eval", _ast.PyCF_ONLY_AST).body
        if line[:1] == b"=":
            return value(node)
        heads, fills, rest = node.elts
        for head in value(heads):
            if head[0] % 2 == 0 or head[0] in link.values.objects:
                raise ValueError("no plain value")
            link.values.empty(*head)
        for fill in fills.elts:
            link.values.fill(value(fill.elts[0]), value(fill.elts[1]))
        return value(rest)
    except Exception as e:
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


def unknown(tests):
    """What tests name and do not define: where nothing is given, helpers that the candidate has."""
    import ast

    names = [n for text in tests for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)]
    return {n.id for n in names} - {n.id for n in names if isinstance(n.ctx, ast.Store)} - set(dir(builtins))


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
        return {task["entry"]} | (unknown(task["tests"]) if task.get("open") else set())
    import ast

    names, imports = names_of(task["reference"])
    exec(compile(ast.Module(body=imports, type_ignores=[]), "imports.py", "exec"), space)
    used = {n.id for text in task["tests"] for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
    return names & used


def run(task, link):
    space = {"__name__": "tests"}
    names = begin(task, space)
    classes = [name for name, v in space.items() if isinstance(v, type) and v.__module__ == "tests"]
    link.classes = {name: space[name] for name in classes}
    link.values.trust(space, classes)
    if link.values.trusted:
        link.ask("trust", list(link.values.trusted.values()))
    for name in sorted(names):
        try:
            space[name] = link.ask("get", name)
        except KeyError:
            space.pop(name, None)
    if task.get("cases"):
        return CASES[task["cases"]](task, space, link)
    for number, text in enumerate(task["tests"]):
        exec(compile(text, "tests.py", "exec"), space)
    if task["call"]:
        space[task["call"]](space[task["entry"]])


def judge(task, link):
    link.counts = {}
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
        end, text = judge(eval(line, {"null": None, "true": True, "false": False}), link)
        if link.ended:
            end = "ended"
        link.ended = True  # for a Thing that outlives its task
        sys.setrecursionlimit(limit)
        counts = "".join([', "%s": %d' % pair for pair in link.counts.items()])
        write(fd_out, 'V{"end": "%s", "text": %s%s}\n' % (end, _json.encode_basestring_ascii(text[:300]), counts))
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
