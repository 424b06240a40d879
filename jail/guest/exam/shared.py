# shared.py - containers that can change (lists, dicts, sets, arrays, objects …) are the same ones in both processes: see values.py.
#
# Each has a number, and crosses by content only where the other side does not know it, or where it has changed. So `is`, aliases, and
# changes in place are seen as in one process. What has changed is found by comparing with `before`. The examiner forgets what its tests hold
# no more, and what has not crossed for KEEP messages.

KEEP = 16


class Values(Text):
    """Text of values, and the containers that both sides know."""

    def __init__(self, first, foreign):
        super().__init__(foreign)
        self.next, self.message, self.todo = first, 0, []
        self.objects, self.numbers, self.before, self.crossed = {}, {}, {}, {}
        self.makers = dict(MAKERS, A=self.objects.__getitem__, E=self.member, nan=float("nan"))

    def add(self, v, letter):
        k, self.next = self.next, self.next + 2
        self.know(k, v)
        self.todo.append((k, letter))
        return k

    def know(self, k, v):
        self.objects[k] = v
        self.numbers[id(v)] = k
        self.crossed[k] = self.message

    def forget(self, k):
        if k in self.objects:
            self.numbers.pop(id(self.objects.pop(k)), None)
            self.before.pop(k, None)
            self.crossed.pop(k, None)

    def content(self, v, letter):
        if letter == "l" or letter == "q":
            return self.list_text((list if letter == "l" else self.letter(v)[1]).__iter__(v))
        if letter in DICTS:
            items = self.letter(v)[1].items(v)
            return "{" + ",".join([self.text(k) + ":" + self.text(x) for k, x in items]) + "}"
        if letter == "s":
            return self.list_text(set.__iter__(v))
        if letter == "n":
            return ascii(v.tobytes()) if v.dtype.kind in "biufcSUmM" else self.list_text(v.ravel().tolist())
        if letter == "b":
            return ascii(bytes(v))
        return "{" + ",".join(["%a:%s" % (str(k), self.text(x)) for k, x in vars(v).items()]) + "}"

    def head(self, k, v, letter):
        """What makes an empty one."""
        if letter == "q":
            return '(%d,"q",%a)' % (k, v.maxlen)
        if letter == "f":
            factory = v.default_factory
            return '(%d,"f",%s)' % (k, "None" if type(factory) is not type else self.text(factory))
        if letter == "n":
            return '(%d,"n",%a,%a)' % (k, v.dtype.str, tuple(v.shape))
        if letter == "i":
            return '(%d,"i",%a)' % (k, self.trusted[type(v)])
        if letter == "r":
            params = type(v).__dataclass_params__
            flags = [bool(params.eq), bool(params.order), bool(params.frozen), bool(params.unsafe_hash)]
            return '(%d,"r",%a,%a,%a)' % (k, type(v).__name__, tuple(type(v).__dataclass_fields__), tuple(flags))
        return '(%d,"%s")' % (k, letter)

    def pack(self, write):
        """The text that `write` makes, with that of new containers and of those that have changed."""
        self.message += 1
        for k, v in self.objects.items():
            if k in self.before and not self.unchanged(k, v):
                self.todo.append((k, self.letter(v)[0]))
        known = set(self.before)
        text, heads, fills = write(), [], []
        at = 0
        while at < len(self.todo):
            k, letter = self.todo[at]
            v = self.objects[k]
            if k not in known:
                heads.append(self.head(k, v, letter) + ",")
            fills.append("(%d,%s)," % (k, self.content(v, letter)))
            at += 1
        for k, letter in self.todo:
            self.note(k, letter)
        self.todo = []
        return "(" + "".join(heads) + ")" if heads else "()", "(" + "".join(fills) + ")" if fills else "", text

    def abandon(self):
        """What was begun of a message that could not be written."""
        for k in [k for k in self.objects if k not in self.before]:
            self.forget(k)
        self.todo = []

    def note(self, k, letter):
        v = self.objects[k]
        if letter == "l" or letter == "q":
            self.before[k] = tuple(v)
        elif letter in DICTS:
            self.before[k] = tuple(dict.keys(v)), tuple(dict.values(v))
        elif letter == "s":
            self.before[k] = frozenset(set.__iter__(v))
        elif letter == "n":
            self.before[k] = v.tobytes()
        elif letter == "b":
            self.before[k] = bytes(v)
        else:
            self.before[k] = tuple(vars(v)), tuple(vars(v).values())

    def unchanged(self, k, v):
        def alike(a, b):
            return len(a) == len(b) and all([x is y for x, y in zip(a, b)])

        before, letter = self.before[k], self.letter(v)[0]
        if letter == "l" or letter == "q":
            return alike(before, tuple(v))
        if letter in DICTS:
            return alike(before[0], tuple(dict.keys(v))) and alike(before[1], tuple(dict.values(v)))
        if letter == "s":
            return before == set(set.__iter__(v))
        if letter == "n":
            return before == v.tobytes()
        if letter == "b":
            return before == bytes(v)
        return alike(before[0], tuple(vars(v))) and alike(before[1], tuple(vars(v).values()))

    def empty(self, k, letter, *args):
        """Begins a container of the other side's."""
        if letter == "l":
            v = []
        elif letter == "d":
            v = {}
        elif letter == "s":
            v = set()
        elif letter == "b":
            v = bytearray()
        elif letter == "n":
            import numpy

            size = 1
            for n in args[1]:
                size *= n
            found = numpy.dtype(args[0])
            if size > 1 << 24:
                raise ValueError("no plain value")
            v = numpy.zeros(args[1], found if found.kind in "biufcSUmM" else object)
        elif letter == "i":
            v = object.__new__(self.trusted_class(*args))
        elif letter == "r":
            v = object.__new__(record_class(*args))
        else:
            import collections

            makers = {"q": collections.deque, "c": collections.Counter, "o": collections.OrderedDict, "f": collections.defaultdict}
            v = makers[letter](*([()] if letter == "q" else []), *args)
        self.know(k, v)

    def fill(self, k, content):
        v = self.objects[k]
        letter, base = self.letter(v)
        if letter == "l":
            list.__setitem__(v, slice(None), content)
        elif letter in DICTS:
            base.clear(v)
            (base if letter == "o" else dict).update(v, content)
        elif letter == "s":
            set.clear(v)
            set.update(v, content)
        elif letter == "q":
            v.clear()
            v.extend(content)
        elif letter == "b":
            v[:] = content
        elif letter == "n":
            import numpy

            if type(content) is bytes:
                v[...] = numpy.frombuffer(content, v.dtype).reshape(v.shape)
            else:
                v.ravel()[:] = content
        else:
            vars(v).clear()
            vars(v).update(content)
        self.crossed[k] = self.message
        self.note(k, letter)
