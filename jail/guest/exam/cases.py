# cases.py - tasks whose tests are cases of arguments: evalplus, LiveCodeBench, APPS, CRUXEval. Part of examiner.py.
#
# All cases run, so that the verdict can say how many passed ("passed" of "tests"; for evalplus also by "base"). What a case expects is
# known here only. The rules of comparison are those of the formats' own harnesses.


class Wrong(AssertionError):
    pass


def each(link, cases, check):
    """Runs check(case) for all; the first failure is the verdict's."""
    first, link.counts["tests"], link.counts["passed"] = None, len(cases), 0
    failed = []
    for number, case in enumerate(cases):
        try:
            check(case)
            link.counts["passed"] += 1
        except Exception as e:
            failed.append(number)
            first = first or e
    return first, failed


# ---- evalplus

AS_SETS = ("similar_elements find_char_long common_in_nested_lists extract_singly larg_nnum intersection_array find_dissimilar Diff").split()
IS_THERE = "check_str text_match_three text_starta_endb".split()


def floats(v):
    if isinstance(v, float):
        return True
    if isinstance(v, (list, tuple)) and v:
        return all([isinstance(x, float) for x in v])
    return type(v).__module__ == "numpy" and v.dtype.kind == "f"


def close(a, b, atol, rtol=1e-7):
    """As numpy.allclose(a, b)."""
    if isinstance(b, (list, tuple)) or type(b).__module__ == "numpy" and getattr(b, "shape", ()):
        if not hasattr(a, "__len__"):
            return all([close(a, y, atol, rtol) for y in b])
        return len(a) == len(b) and all([close(x, y, atol, rtol) for x, y in zip(a, b)])
    return a == b or abs(a - b) <= atol + rtol * abs(b)


def tuples(v):
    return tuple([tuples(x) for x in v]) if isinstance(v, list) else v


def mbpp_inputs(number, inputs):
    """JSON has no tuples, sets and complex numbers: which of the arguments are those, by task."""

    def inner(v):
        return [tuple(x) for x in v]

    def of(numbers):
        return number in [int(n) for n in numbers.split()]

    if of("2 116 132 143 222 261 273 394 399 421 424 429 470 560 579 596 616 630 726 740 744 809"):
        return [inner(inp) for inp in inputs]
    if of("63 64 70 94 120 237 272 299 400 409 417 438 473 614 780"):
        return [[inner(inp[0])] for inp in inputs]
    if of("75 413 444 753"):
        return [[inner(inp[0]), inp[1]] for inp in inputs]
    if of("106 750"):
        return [[inp[0], tuple(inp[1])] for inp in inputs]
    if of("115"):
        return [[[set(x) if isinstance(x, list) and x else {} for x in inp[0]]] for inp in inputs]
    if of("124"):
        return [[float(inp[0]), complex(inp[1])] for inp in inputs]
    if of("250 405 446 617 720 763 808"):
        return [[tuple(inp[0]), inp[1]] for inp in inputs]
    if of("259 401 445"):
        return [[tuple(inner(x)) for x in inp] for inp in inputs]
    if of("278"):
        return [[tuple([tuple(x) if isinstance(x, list) else x for x in inp[0]])] for inp in inputs]
    if of("307"):
        return [[tuple(inp[0]), inp[1], inp[2]] for inp in inputs]
    if of("722"):
        return [[{k: tuple(v) for k, v in inp[0].items()}] + inp[1:] for inp in inputs]
    if of("252"):
        return [[complex(inp[0])] for inp in inputs]
    if of("580 615 791"):
        return [tuples(inp) for inp in inputs]
    return inputs


def evalplus(task, space, link):
    import copy

    entry, atol = task["entry"], task.get("atol") or 0
    right, mbpp = {"__name__": "reference"}, task["id"].startswith("Mbpp")
    exec(compile(task["solution"], "reference.py", "exec"), right)
    base, plus = task["base_input"], task["plus_input"] or []
    cases = base + plus
    if mbpp:
        cases = mbpp_inputs(int(task["id"].rpartition("/")[2]), cases)

    def check(args):
        expected = right[entry](*copy.deepcopy(args))
        got = space[entry](*copy.deepcopy(args))
        tolerance = atol or (1e-6 if floats(expected) else 0)
        if entry == "find_zero":
            if not abs(sum([c * got**i for i, c in enumerate(args[0])])) <= (atol or 1e-6):
                raise Wrong("no zero of %r" % (args[0],))
            return
        if mbpp and (entry == "are_equivalent" or entry == "sum_div" and got == 0):
            return
        if mbpp and entry in AS_SETS:
            equal = set(got) == set(expected)
        elif mbpp and entry in IS_THERE:
            equal = got == expected if isinstance(got, bool) else expected == (got is not None)
        else:
            equal = got == expected
        if not equal and tolerance:  # of an array that has not one element this is an error, as it is there
            same = type(got) is type(expected) or isinstance(got, float) and isinstance(expected, float)
            equal = same and close(got, expected, tolerance)
        if not equal:
            raise Wrong("%s(%s) is not %r" % (entry, ", ".join([repr(x)[:60] for x in args]), expected))

    first, failed = each(link, cases, check)
    link.counts["base_tests"] = len(base)
    link.counts["base_passed"] = len(base) - len([n for n in failed if n < len(base)])
    if first:
        raise first


# ---- LiveCodeBench, APPS


def method(task, space, link):
    """The function, or the method of that name of a class Solution."""
    try:
        return getattr(link.ask("get", "Solution")(), task["entry"])
    except (KeyError, AttributeError):
        return link.ask("get", task["entry"])


def plain(v):
    """As JSON has it: tuples are lists."""
    return [plain(x) for x in v] if isinstance(v, (list, tuple)) else v


def livecodebench(task, space, link):
    import json

    def check(case):
        args = [json.loads(line) for line in case["input"].split("\n") if line.strip()]
        got, expected = method(task, space, link)(*args), json.loads(case["output"])
        if plain(got) != expected:
            raise Wrong("%s(%s) is not %r" % (task["entry"], case["input"][:60], expected))

    first, _ = each(link, task["list"], check)
    if first:
        raise first


def apps(task, space, link):
    import json

    def value(v):
        try:
            return json.loads(v) if isinstance(v, str) else v
        except ValueError:
            return v

    def check(case):
        args, expected = case["input"], case["output"]
        if isinstance(args, str):
            args = [value(line) for line in args.split("\n") if line.strip()]
        if not isinstance(args, list):
            args = [args]
        got, expected = plain(method(task, space, link)(*args)), plain(expected)
        if got != expected and not (isinstance(expected, list) and expected and got == expected[0]) and got != value(expected):
            raise Wrong("%s(%s) is not %r" % (task["entry"], ", ".join([repr(x)[:60] for x in args]), expected))

    first, _ = each(link, task["list"], check)
    if first:
        raise first


# ---- CRUXEval


def cruxeval(task, space, link):
    expected = eval(compile("f(%s)" % task["input"], "case.py", "eval"), space)
    if link.ask("get", "prediction") != expected:
        raise Wrong("f(%s) is another value" % task["input"])


CASES = {"evalplus": evalplus, "livecodebench": livecodebench, "apps": apps, "cruxeval": cruxeval}
