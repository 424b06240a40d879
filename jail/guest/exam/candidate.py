# candidate.py - the code under test, in a process and a jail of its own: answers what examiner.py asks.
#
# Standard input: first the source, then one question a line, as Python literals (values.py). Standard output: one answer a line: "=" or "+"
# and a value, "!" and an exception, or "?", which asks the tests to call a function of theirs, before the answer. Whatever the code does to
# this process, it can do no more than answer: the tests run elsewhere.
#
# It uses only modules that every interpreter has loaded at its start; examiner.py compiles it once for all candidates, with
# site.py, values.py and shared.py before it.
import posix


class Reply(Exception):
    """What the tests answered to a "?"."""


def main():
    questions, answers = open(posix.dup(0), "rb"), posix.dup(1)
    null = posix.open("/dev/null", posix.O_RDONLY)
    posix.dup2(null, 0)
    posix.dup2(2, 1)
    things, places = [], {}  # what cannot cross as a value, by number; the numbers
    theirs, exports = [], {}  # functions and objects of the tests by number; the numbers
    failure = None

    def foreign(v):
        if id(v) in exports:
            return "F(%d)" % exports[id(v)]
        if id(v) not in places:
            places[id(v)] = len(things)
            things.append(v)
        letter, base = values.letter(v)
        return "O(%d,%a)" % (places[id(v)], base.__name__ if base and letter is None and base.__module__ == "builtins" else "")

    values = Values(1, foreign)

    class Theirs:
        """A function or an object of the tests'."""

        def __init__(self, number):
            object.__setattr__(self, "_number", number)

        def __call__(self, *args, **named):
            return ask("call", self, args, named)

        def __getattr__(self, name):
            if name[:2] == "__":
                raise AttributeError(name)
            return ask("attribute", self, name)

        def __setattr__(self, name, value):
            ask("set", self, name, value)

        def __iter__(self):
            return ask("iterate", self)

        def __next__(self):
            return ask("next", self)

        def __getitem__(self, key):
            return ask("item", self, key)

        def __len__(self):
            return ask("length", self)

        def __str__(self):
            return str(ask("text", self))

    def export(number):
        while len(theirs) <= number:
            thing = Theirs(len(theirs))
            exports[id(thing)] = len(theirs)
            theirs.append(thing)
        return theirs[number]

    def say(text):
        data = text.encode() + b"\n"
        while data:
            data = data[posix.write(answers, data) :]

    def answer(mark, write):
        heads, fills, text = values.pack(write)
        say(mark + text if heads == "()" and not fills else mark.replace("=", "+") + "(%s,(%s),%s)" % (heads, fills, text))

    def ask(*question):
        answer("?=", lambda: values.text(question))
        try:
            serve()
        except Reply as e:
            if e.args[0] is not None:
                raise e.args[0]
            return e.args[1]

    def reply(value):
        raise Reply(None, value)

    def throw(name, text, number):
        cls = getattr(builtins, name, None)
        e = (cls if isinstance(cls, type) and issubclass(cls, Exception) else Exception)(text)
        e._sallyport = number
        raise Reply(e)

    def call(f, args, named):
        return f(*args, **named)

    def ours(module, name):
        return getattr(__import__(module, fromlist=[name]), name)

    names = dict(values.makers, O=lambda n, data=None: things[n], F=export, G=ours, B=lambda name: getattr(builtins, name), __builtins__={})
    module = type(sys)("solution")
    sys.modules["solution"] = module
    asked = {
        "get": lambda name: module.__dict__[name],
        "trust": lambda names: values.trust(module.__dict__, names),
        "call": call,
        "attribute": getattr,
        "set": setattr,
        "unset": delattr,
        "iterate": iter,
        "next": next,
        "item": lambda o, key: o[key],
        "put": lambda o, key, value: o.__setitem__(key, value),
        "remove": lambda o, key: o.__delitem__(key),
        "length": len,
        "truth": bool,
        "text": str,
        "shown": repr,
        "int": int,
        "float": float,
        "kind": isinstance,
        "data": lambda o: values.letter(o)[1](o),
        "reply": reply,
        "throw": throw,
    }

    def attempt(line):
        """The question of a line, and its answer."""
        drops, heads, fills, question = eval(line, names)
        for k in drops:
            values.forget(k)
        for head in heads:
            values.empty(*head)
        if fills:
            for k, content in fills():
                values.fill(k, content)
        verb, *args = question()
        if failure is not None:
            raise failure
        result = asked[verb](*args)
        return "=", lambda: values.text(result)

    def serve():
        for line in questions:
            try:
                mark, write = attempt(line)
                answer(mark, write)
            except Reply:
                raise
            except Exception as e:
                values.abandon()
                kinds = [k.__name__ for k in type(e).__mro__]
                try:
                    text = str(e)[:300]
                except Exception:
                    text = ""
                say("!" + ascii((type(e).__name__, kinds, text, getattr(e, "_sallyport", None))))
        posix._exit(0)

    try:
        exec(eval(questions.readline()), module.__dict__)
    except Exception as e:
        failure = e
    serve()


main()
