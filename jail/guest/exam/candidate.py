# candidate.py - the code under test, in a process and a jail of its own: answers what examiner.py asks.
#
# Standard input: first the source, then one question a line, as Python literals. Standard output: one answer a line, "=" and a value or
# "!" and an exception. Whatever the code does to this process, it can do no more than answer: the tests run elsewhere.
#
# It uses only modules that every interpreter has loaded at its start; examiner.py compiles site.py and this file once for all candidates.
import posix


def main():
    questions, answers = open(posix.dup(0), "rb"), posix.dup(1)
    null = posix.open("/dev/null", posix.O_RDONLY)
    posix.dup2(null, 0)
    posix.dup2(2, 1)
    things = []  # what cannot cross as a value, by number

    def value(v, depth=0):
        kind = type(v)
        if v is None or kind in (bool, str, bytes):
            return ascii(v)
        if kind is int:
            return ascii(v) if -1 << 62 < v < 1 << 62 else hex(v)
        if kind is float:
            return ascii(v) if v - v == 0 else "1e999" if v > 0 else "-1e999" if v < 0 else "nan"
        if kind is complex:
            return "complex(%s,%s)" % (value(v.real), value(v.imag))
        if depth < 50:
            if kind is list:
                return "[" + ",".join([value(x, depth + 1) for x in v]) + "]"
            if isinstance(v, tuple):
                return "(" + "".join([value(x, depth + 1) + "," for x in tuple.__iter__(v)]) + ")"
            if kind is dict or kind.__module__ == "collections" and isinstance(v, dict):
                items = "{" + ",".join([value(k, depth + 1) + ":" + value(x, depth + 1) for k, x in v.items()]) + "}"
                return kind.__name__ + "(" + items + ")" if kind.__name__ in ("Counter", "OrderedDict") else items
            if kind in (set, frozenset) or kind.__module__ == "collections" and kind.__name__ == "deque":
                return kind.__name__ + "([" + ",".join([value(x, depth + 1) for x in v]) + "])"
            if kind is range:
                return "range(%d,%d,%d)" % (v.start, v.stop, v.step)
        things.append(v)
        return "O(%d)" % (len(things) - 1)

    class Names(dict):
        def __missing__(self, name):
            import collections

            return getattr(collections, name)

    names = Names(O=things.__getitem__, nan=float("nan"), set=set, frozenset=frozenset, complex=complex, range=range, __builtins__={})
    module = type(sys)("solution")
    sys.modules["solution"] = module
    failure = None
    asked = {
        "get": lambda name: module.__dict__[name],
        "call": lambda f, args, named: f(*args, **named),
        "attribute": getattr,
        "set": setattr,
        "iterate": iter,
        "next": next,
        "item": lambda o, key: o[key],
        "length": len,
        "truth": bool,
        "text": str,
    }
    try:
        exec(eval(questions.readline()), module.__dict__)
    except Exception as e:
        failure = e
    for line in questions:
        try:
            if failure is not None:
                raise failure
            question = eval(line, names)
            answer = "=" + value(asked[question[0]](*question[1:]))
        except Exception as e:
            kinds = [k.__name__ for k in type(e).__mro__ if k.__module__ == "builtins"]
            try:
                text = str(e)[:300]
            except Exception:
                text = ""
            answer = "!" + ascii((type(e).__name__, kinds, text))
        data = answer.encode() + b"\n"
        while data:
            data = data[posix.write(answers, data) :]
    posix._exit(0)


main()
