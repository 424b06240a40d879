# values.py - how values cross between candidate.py and examiner.py: as text of literals and of a few calls (MAKERS). Both begin with this
# file. The candidate evaluates what it gets; the examiner parses it. Containers that can change: shared.py.
import builtins
import sys

DEPTH = 80  # of tuples in tuples: Python's parser nests no deeper than 200


def number(v):
    return ascii(v) if -1 << 62 < v < 1 << 62 else hex(v)


def real(v):
    return float.__repr__(v) if v - v == 0 else "1e999" if v > 0 else "-1e999" if v < 0 else "nan"


# Classes whose objects are made again from what is in them, by module: the arguments.
MADE = {
    "fractions": {"Fraction": lambda v: [int(v.numerator), int(v.denominator)]},
    "decimal": {"Decimal": lambda v: [str(v)]},
    "datetime": {
        "datetime": lambda v: [v.year, v.month, v.day, v.hour, v.minute, v.second, v.microsecond, v.tzinfo],
        "date": lambda v: [v.year, v.month, v.day],
        "time": lambda v: [v.hour, v.minute, v.second, v.microsecond, v.tzinfo],
        "timedelta": lambda v: [v.days, v.seconds, v.microseconds],
        "timezone": lambda v: [v.utcoffset(None)],
    },
    "zoneinfo": {"ZoneInfo": lambda v: [v.key]},
    "pathlib": dict.fromkeys(["PosixPath", "PurePosixPath", "PureWindowsPath"], lambda v: [str(v)]),
    "uuid": {"UUID": lambda v: [v.hex]},
    "array": {"array": lambda v: [v.typecode, tuple(v)]},
    "ipaddress": dict.fromkeys(["IPv4Address", "IPv6Address", "IPv4Network", "IPv6Network"], lambda v: [str(v)]),
}
# Which classes are containers that can change: the letter of each.
CONTAINERS = {
    "builtins.list": "l",
    "builtins.dict": "d",
    "builtins.set": "s",
    "builtins.bytearray": "b",
    "collections.deque": "q",
    "collections.Counter": "c",
    "collections.OrderedDict": "o",
    "collections.defaultdict": "f",
    "numpy.ndarray": "n",
}
DICTS = "dcof"


def made(module, name, *args):
    if name not in MADE.get(module, ()):
        raise ValueError("no plain value")
    return getattr(__import__(module), name)(*args)


def kind(name):
    found = getattr(builtins, name)
    if not isinstance(found, type):
        raise ValueError("no plain value")
    return found


def scalar(name, v):
    import numpy

    if name.startswith("datetime64") or name.startswith("timedelta64"):
        return getattr(numpy, name.partition("[")[0])(v, name.partition("[")[2][:-1] or "generic")
    found = numpy.dtype(name)
    if found.kind not in "biufc":
        raise ValueError("no plain value")
    return found.type(v)


CLASSES = {}  # of records, by what they are like


def record(name, fields, values):
    """A tuple with names."""
    if (name, fields) not in CLASSES:
        import collections

        CLASSES[name, fields] = collections.namedtuple(name, fields)
    return CLASSES[name, fields](*values)


def record_class(name, fields, flags):
    """A class like the candidate's data class of that name."""
    if (name, fields, flags) not in CLASSES:
        import dataclasses

        eq, order, frozen, unsafe_hash = flags
        CLASSES[name, fields, flags] = dataclasses.make_dataclass(
            name, fields, eq=eq, order=order, frozen=frozen, unsafe_hash=unsafe_hash
        )
    return CLASSES[name, fields, flags]


def namespace(values):
    import types

    return types.SimpleNamespace(**values)


MAKERS = {
    "set": set,
    "frozenset": frozenset,
    "complex": complex,
    "range": range,
    "slice": slice,
    "bytearray": bytearray,
    "X": made,
    "B": kind,
    "Y": scalar,
    "T": record,
    "V": namespace,
    "keys": lambda v: dict.fromkeys(v).keys(),
    "items": lambda v: dict(v).items(),
    "values": lambda v: dict(enumerate(v)).values(),
}


class Text:
    """Values as text. `foreign` gives the text of what is no value; `trusted`: classes that the task's own text defines, by name."""

    def __init__(self, foreign):
        self.foreign, self.kinds, self.trusted = foreign, {}, {}

    def trust(self, space, names):
        for name in names:
            cls = space.get(name)
            if isinstance(cls, type) and (cls.__new__ is object.__new__ and "__dict__" in dir(cls) or hasattr(cls, "__members__")):
                self.trusted[cls] = name

    def trusted_class(self, name):
        return [cls for cls, known in self.trusted.items() if known == name][0]

    def member(self, name, member):
        return self.trusted_class(name).__members__[member]

    def classify(self, cls):
        """How objects of a class cross: a letter and the class that they are to be; None: they do not."""
        own = False
        if cls in self.trusted:
            return ("i" if cls.__new__ is object.__new__ else "enum"), cls
        for base in cls.__mro__:
            name = base.__module__ + "." + base.__qualname__
            if name in ("builtins.bool", "builtins.int", "builtins.float", "builtins.complex", "builtins.str", "builtins.bytes"):
                return base.__name__, base
            if name in ("builtins.tuple", "builtins.frozenset", "builtins.range", "builtins.slice", "numpy.generic", "builtins.type"):
                return base.__name__, base
            if name in ("builtins.dict_keys", "builtins.dict_values", "builtins.dict_items"):
                return "view", base
            if name in CONTAINERS:
                return (None, base) if own else (CONTAINERS[name], base)
            if name == "types.SimpleNamespace":
                return "space", base
            module = base.__module__.partition(".")[0]
            if base.__name__ in MADE.get(module, ()):
                return "made", base
            own = own or any(n[:1] != "_" for n in base.__dict__)
            if "__dataclass_fields__" in base.__dict__:
                fields = cls.__dataclass_fields__
                methods = [n for c in cls.__mro__[:-1] for n in c.__dict__ if n[:2] != "__" and n not in fields and n[:4] != "_abc"]
                return (None, base) if methods or "__dict__" not in dir(cls) else ("r", cls)
        return None, None

    def letter(self, v):
        cls = type(v)
        found = self.kinds.get(cls)
        if found is None:
            found = self.kinds[cls] = self.classify(cls)
        return found

    def text(self, v, depth=0):
        cls = type(v)
        if v is None or cls in (bool, str, bytes):
            return ascii(v)
        if cls is int:
            return number(v)
        if cls is float:
            return real(v)
        if depth > DEPTH:
            return self.foreign(v)
        known = self.numbers.get(id(v))
        if known is not None:
            self.crossed[known] = self.message
            return "A(%d)" % known
        letter, base = self.letter(v)
        if letter is None:
            return self.other(v)
        if len(letter) == 1:
            return "A(%d)" % self.add(v, letter)
        return getattr(self, "text_" + letter)(v, base, depth + 1)

    def list_text(self, v, depth=0):
        return "[" + ",".join([self.text(x, depth) for x in v]) + "]"

    def other(self, v):
        """Numbers of libraries."""
        numbers = sys.modules.get("numbers")
        if numbers and isinstance(v, numbers.Integral):
            return number(int(v))
        if numbers and isinstance(v, numbers.Rational):
            return 'X("fractions","Fraction",%d,%d)' % (int(v.numerator), int(v.denominator))
        if numbers and isinstance(v, numbers.Real):
            return real(float(v))
        if numbers and isinstance(v, numbers.Complex):
            return self.text_complex(complex(v), complex, 0)
        return self.foreign(v)

    def text_int(self, v, base, depth):
        return number(int.__index__(v) + 0)

    def text_float(self, v, base, depth):
        return real(float.__pos__(v))

    def text_str(self, v, base, depth):
        return ascii(str.__str__(v))

    def text_bytes(self, v, base, depth):
        return ascii(bytes.__getitem__(v, slice(None)))

    def text_complex(self, v, base, depth):
        return "complex(%s,%s)" % (real(complex.__pos__(v).real), real(complex.__pos__(v).imag))

    def text_tuple(self, v, base, depth):
        items = "(" + "".join([self.text(x, depth) + "," for x in tuple.__iter__(v)]) + ")"
        fields = getattr(type(v), "_fields", None)
        if type(fields) is not tuple or not all(type(x) is str for x in fields):
            return items
        return "T(%a,%a,%s)" % (type(v).__name__, fields, items)

    def text_frozenset(self, v, base, depth):
        return "frozenset(%s)" % self.list_text(frozenset.__iter__(v), depth)

    def text_range(self, v, base, depth):
        return "range(%d,%d,%d)" % (v.start, v.stop, v.step)

    def text_slice(self, v, base, depth):
        return "slice(%s,%s,%s)" % tuple([self.text(x, depth) for x in (v.start, v.stop, v.step)])

    def text_type(self, v, base, depth):
        return "B(%a)" % v.__name__ if getattr(builtins, v.__name__, None) is v else self.foreign(v)

    def text_view(self, v, base, depth):
        return "%s(%s)" % (base.__name__[5:], self.list_text(v, depth))

    def text_generic(self, v, base, depth):
        kind = v.dtype.kind
        if kind in "mM":
            return "Y(%a,%s)" % (str(v.dtype), ascii(int(v.astype("int64"))))
        if kind not in "biufc":
            return self.foreign(v)
        return "Y(%a,%s)" % (v.dtype.name, self.text(v.item() if kind in "biufc" and v.dtype.itemsize <= 8 else complex(v) if kind == "c" else float(v)))

    def text_made(self, v, base, depth):
        module = base.__module__.partition(".")[0]
        args = [self.text(x, depth) for x in MADE[module][base.__name__](v)]
        return "X(%s)" % ",".join([ascii(module), ascii(base.__name__)] + args)

    def text_enum(self, v, base, depth):
        return "E(%a,%a)" % (self.trusted[base], v.name)

    def text_space(self, v, base, depth):
        return "V({%s})" % ",".join(["%a:%s" % (str(k), self.text(x, depth)) for k, x in vars(v).items()])
