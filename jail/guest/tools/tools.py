"""tools - calls of the MCP servers that this run names.

    tools.github.list_issues(owner="o")       a value; ToolError if the tool fails. In a coroutine: await it
    tools["my-server"]["get-sum"](a=1, b=2)   exact names; tools.call(server, tool, arguments) too
      .sync(...)  .aio(...)  .full(...)       always blocking, always awaitable, a Result with all blocks
    tools.servers()  tools.list(server)  tools.search(words)  tools.describe(server, tool)  tools.read(server, uri)

The files next to this one say what there is: index.txt, stubs/SERVER.pyi.
"""
import base64
import json
import os
import re
import socket
import struct
import sys
import threading
import types

HERE = os.path.dirname(os.path.abspath(__file__))


class ToolError(RuntimeError):
    """A call that failed: .kind .server .tool .text .content .signature"""

    def __init__(self, error):
        self.kind = error.get("kind", "protocol")
        self.server, self.tool = error.get("server"), error.get("tool")
        self.text, self.signature = error.get("text", ""), error.get("signature")
        self.result = error.get("result")
        self.content = [Block(block) for block in (self.result or {}).get("content", [])]
        where = f"{self.server}.{self.tool} failed: " if self.tool else f"{self.server}: " if self.server else ""
        super().__init__(where + self.text + (f"\nsignature: {self.signature}" if self.signature else ""))


class Denied(ToolError):
    pass


class LimitReached(ToolError):
    pass


class Timeout(ToolError):
    pass


class Unavailable(ToolError):
    pass


class InvalidArguments(ToolError):
    pass


class ReplayMiss(ToolError):
    pass


KINDS = {
    "denied": Denied,
    "approval": Denied,
    "limit": LimitReached,
    "timeout": Timeout,
    "unavailable": Unavailable,
    "unknown_outcome": Unavailable,
    "invalid": InvalidArguments,
    "replay": ReplayMiss,
}


def failure(error):
    return KINDS.get(error.get("kind"), ToolError)(error)


class Block:
    """One block of a result."""

    def __init__(self, raw):
        self.raw, self.type = raw, raw.get("type")
        inner = raw.get("resource") or raw
        self.text, self.mime, self.uri = inner.get("text"), inner.get("mimeType"), inner.get("uri")
        self._data = inner.get("data") or inner.get("blob")

    @property
    def data(self):
        if self._data is not None:
            return base64.b64decode(self._data)
        return self.text.encode() if self.text is not None else None

    def save(self, path):
        with open(path, "wb") as file:
            file.write(self.data or b"")
        return path

    def __repr__(self):
        return f"<{self.type}{' ' + self.mime if self.mime else ''}>"


class Result:
    """All that a tool answered: .value .text .content .images .structured .meta .server .tool"""

    def __init__(self, raw, wrapped, server, tool):
        self.raw, self.server, self.tool = raw, server, tool
        self.content = [Block(block) for block in raw.get("content") or []]
        self.structured, self.meta = raw.get("structuredContent"), raw.get("_meta")
        self._wrapped = wrapped

    @property
    def text(self):
        return "\n".join(block.text for block in self.content if block.text is not None)

    @property
    def images(self):
        return [block for block in self.content if block.type == "image"]

    @property
    def value(self):
        """Structured content; else text, parsed only if all of it is an object or array; else the blocks."""
        if self.structured is not None:
            return self.structured.get("result") if self._wrapped and isinstance(self.structured, dict) else self.structured
        if not self.content:
            return None
        if any(block.type != "text" for block in self.content):
            return self.content
        text = self.text
        if text.lstrip()[:1] in ("{", "["):
            try:
                return json.loads(text)
            except ValueError:
                pass
        return text

    def __repr__(self):
        return f"<Result of {self.server}.{self.tool}: {len(self.content)} blocks>"


# -------- the wire: one connection of this process, a thread that reads it


class Wire:
    def __init__(self):
        self.pid, self.lock, self.waiting, self.last = os.getpid(), threading.Lock(), {}, 0
        path = os.environ.get("MCP_SOCKET", "/code/.mcp")
        self.socket = socket.socket(socket.AF_UNIX)
        try:
            self.socket.connect(path)
        except OSError:
            raise failure({"kind": "unavailable", "text": "this run may call no tools: it names no servers"}) from None
        threading.Thread(target=self.read, daemon=True).start()

    def receive(self, length):
        parts = bytearray()
        while len(parts) < length:
            part = self.socket.recv(min(length - len(parts), 1 << 20))
            if not part:
                raise EOFError
            parts += part
        return parts

    def read(self):
        error = {"kind": "unavailable", "text": "the run has ended"}
        try:
            while True:
                (length,) = struct.unpack(">I", self.receive(4))
                answer = json.loads(self.receive(length))
                if "id" not in answer:
                    error = answer["error"]
                    break
                with self.lock:
                    done = self.waiting.pop(answer["id"], None)
                if done:
                    done(answer)
        except (OSError, EOFError, ValueError):
            pass
        with self.lock:
            left, self.waiting = [*self.waiting.values()], None
        for done in left:
            done({"ok": False, "error": error})

    def ask(self, request, done):
        """Sends it; done(answer) comes on the reading thread. Returns its id, or None: the host ended this connection, as
        it does with a run of a session, and has not seen the request."""
        with self.lock:
            if self.waiting is None:
                return None
            self.last += 1
            number = self.last
            body = json.dumps({"id": number, **request}, allow_nan=False, separators=(",", ":")).encode()
            self.waiting[number] = done
            try:
                self.socket.sendall(struct.pack(">I", len(body)) + body)
            except OSError:  # before the reading thread saw it
                del self.waiting[number]
                return None
        return number


_wire = None
_wire_lock = threading.Lock()


def wire():
    global _wire
    with _wire_lock:
        if _wire is None or _wire.pid != os.getpid() or _wire.waiting is None:
            _wire = Wire()
        return _wire


def send(request, done):
    """On the connection of this run, which is made anew where the one that is there has ended."""
    global _wire
    for _ in range(2):
        link = wire()
        number = link.ask(request, done)
        if number is not None:
            return link, number
        with _wire_lock:
            if _wire is link:
                _wire = None
    raise failure({"kind": "unavailable", "text": "the connection to the host has ended"})


def sync(request, take):
    """The answer, for a program that waits."""
    answers, there = [], threading.Event()

    def done(answer):
        answers.append(answer)
        there.set()

    link, number = send(request, done)
    try:
        there.wait()
    except BaseException:
        link.ask({"op": "cancel", "call": number}, lambda answer: None)
        raise
    return take(answers[0])


class Pending:
    """A call that was made in a coroutine: its value is there after `await`."""

    def __init__(self, request, take, name):
        import asyncio

        loop = asyncio.get_running_loop()
        future = loop.create_future()

        def finish(answer):
            if not future.done():
                try:
                    future.set_result(take(answer))
                except BaseException as error:
                    future.set_exception(error)

        def done(answer):
            try:
                loop.call_soon_threadsafe(finish, answer)
            except RuntimeError:
                pass  # the loop is closed

        link, number = send(request, done)

        def cancelled(future):
            if future.cancelled():
                link.ask({"op": "cancel", "call": number}, lambda answer: None)

        future.add_done_callback(cancelled)
        self._future, self._name = future, name

    def __await__(self):
        return self._future.__await__()

    def _refuse(self, *args, **named):
        raise TypeError(f"{self._name}(...) was called in a coroutine: write `await {self._name}(...)`, or {self._name}.sync(...)")

    __getattr__ = __getitem__ = __iter__ = __len__ = __contains__ = __bool__ = __str__ = __eq__ = __add__ = __lt__ = _refuse
    __hash__ = object.__hash__

    def __repr__(self):
        return f"<{self._name}(...): not awaited>"


def ask(request, take, name):
    """Waits where no event loop runs, else gives an awaitable."""
    if sys.modules.get("asyncio") and sys.modules["asyncio"]._get_running_loop() is not None:
        return Pending(request, take, name)
    return sync(request, take)


def taking(convert):
    def take(answer):
        if not answer.get("ok"):
            raise failure(answer["error"])
        return convert(answer)

    return take


# -------- names


def _index():
    space = {}
    with open(os.path.join(HERE, "_index.py"), encoding="utf-8") as file:
        exec(file.read(), space)
    return space


INDEX = _index()


def _definitions(alias):
    with open(os.path.join(HERE, "stubs", alias + ".json"), encoding="utf-8") as file:
        return json.load(file)


class Tool:
    """One tool; call it with keywords, or with one dict."""

    def __init__(self, server, definition):
        self._server, self._definition = server, definition
        self.name, self.__name__ = definition["name"], definition["alias"]
        self.__doc__ = definition.get("description")
        self._names = definition.get("parameters") or {}

    def _request(self, args, named):
        if len(args) > 1 or (args and not isinstance(args[0], dict)):
            raise TypeError(f"{self} takes keywords, or one dict: {self.signature}")
        arguments = dict(args[0]) if args else {}
        arguments.update((self._names.get(name, name), value) for name, value in named.items())
        return {"op": "call", "server": self._server.name, "tool": self.name, "arguments": arguments}

    def _result(self, answer):
        return Result(answer["result"], answer.get("wrap"), self._server.name, self.name)

    def _value(self, answer):
        return self._result(answer).value

    def __call__(self, *args, **named):
        return ask(self._request(args, named), taking(self._value), str(self))

    def sync(self, *args, **named):
        return sync(self._request(args, named), taking(self._value))

    def aio(self, *args, **named):
        return Pending(self._request(args, named), taking(self._value), str(self))

    def full(self, *args, **named):
        return ask(self._request(args, named), taking(self._result), str(self))

    @property
    def signature(self):
        return sync({"op": "describe", "server": self._server.name, "tool": self.name}, taking(lambda answer: answer["result"][0]["signature"]))

    def __str__(self):
        return f"tools.{self._server.alias}.{self.__name__}"

    def __repr__(self):
        return f"<tool {self._server.name}.{self.name}>"


class Server(types.ModuleType):
    """One server; its tools are attributes, exact names by [...]."""

    def __init__(self, name, alias, description):
        super().__init__(f"tools.{alias}", description)
        self.__dict__.update(name=name, alias=alias, __path__=[])

    def _tools(self):
        if "_by_name" not in self.__dict__:
            tools = [Tool(self, definition) for definition in _definitions(self.alias)]
            aliases = [tool.__name__ for tool in tools]
            self.__dict__["_by_name"] = {tool.name: tool for tool in tools}
            self.__dict__["_by_alias"] = {tool.__name__: tool for tool in tools if aliases.count(tool.__name__) == 1}
            self.__dict__["__all__"] = [*self._by_alias]
        return self._by_name

    def __getattr__(self, name):
        if name == "__all__":
            self._tools()
            return self.__dict__["__all__"]
        if name.startswith("__"):
            raise AttributeError(name)
        self._tools()
        tool = self._by_alias.get(name) or self._by_name.get(name)
        if tool is None:
            raise AttributeError(f"server {self.name} has no tool {name}; it has: {', '.join(self._by_alias)}")
        return tool

    def __getitem__(self, name):
        self._tools()
        tool = self._by_name.get(name)
        if tool is None:
            raise KeyError(f"server {self.name} has no tool {name}")
        return tool

    def __dir__(self):
        self._tools()
        return [*self._by_alias]

    def __iter__(self):
        return iter(self._tools().values())

    def __repr__(self):
        return f"<server {self.name}: {len(self._tools())} tools>"


_servers = {name: Server(name, alias, description) for name, alias, _, description in INDEX["SERVERS"]}
_aliases = {server.alias: server for server in _servers.values()}
for _alias, _server in _aliases.items():
    sys.modules[f"tools.{_alias}"] = _server


class _Module(types.ModuleType):
    def __getattr__(self, name):
        server = _aliases.get(name)
        if server is None:
            raise AttributeError(f"no server {name} in this run; it names: {', '.join(_servers) or 'none'}")
        return server

    def __getitem__(self, name):
        if name not in _servers:
            raise KeyError(f"no server {name} in this run; it names: {', '.join(_servers) or 'none'}")
        return _servers[name]


sys.modules[__name__].__class__ = _Module
__path__ = []


def call(server, tool, arguments=None, timeout=None):
    """By exact names."""
    request = {"op": "call", "server": server, "tool": tool, "arguments": arguments or {}}
    if timeout is not None:
        request["timeout"] = timeout
    return ask(request, taking(lambda answer: Result(answer["result"], answer.get("wrap"), server, tool).value), "tools.call")


def _listed(request, name):
    return ask(request, taking(lambda answer: answer["result"]), name)


def servers():
    return _listed({"op": "servers"}, "tools.servers")


def list(server, detail="summary"):
    return _listed({"op": "describe", "server": server, "detail": detail}, "tools.list")


def search(query, server=None, limit=10, detail="summary"):
    request = {"op": "search", "query": query, "limit": limit, "detail": detail}
    return _listed(request if server is None else {**request, "server": server}, "tools.search")


def describe(server, tool=None, detail="full"):
    request = {"op": "describe", "server": server, "detail": detail}
    return _listed(request if tool is None else {**request, "tool": tool}, "tools.describe")


def read(server, uri):
    """A resource of a server: its contents as blocks."""
    return ask(
        {"op": "read", "server": server, "uri": uri},
        taking(lambda answer: [Block({"type": "resource", "resource": one}) for one in answer["result"].get("contents", [])]),
        "tools.read",
    )
