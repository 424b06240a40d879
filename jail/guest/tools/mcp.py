"""mcp - the names of mcp-server-code-execution-mode: mcp.runtime, mcp.servers.NAME, mcp_servers. Calls give the raw result as a dict; a
tool that says that it failed does so in its result, what could not be called raises MCPError."""
import keyword
import re
import sys
import types

import tools
from tools import INDEX, ToolError as MCPError, _definitions, failure


def sanitize(name, fallback):
    text = re.sub(r"[^0-9a-zA-Z_]+", "_", name.strip()).lower().strip("_") or fallback
    return f"_{text}" if text[0].isdigit() else text


def _raw(answer):
    if answer.get("ok"):
        return answer["result"]
    error = answer["error"]
    if error.get("kind") == "tool" and error.get("result") is not None:
        return error["result"]
    raise failure(error)


class Proxy:
    def __init__(self, name):
        self.name = name
        self._alias = next(alias for one, alias, _, _ in INDEX["SERVERS"] if one == name)
        self._tools = None

    def _named(self):
        if self._tools is None:
            self._tools = {}
            for definition in _definitions(self._alias):
                alias = _alias_of(definition)
                unique, number = alias, 1
                while unique in self._tools:
                    number += 1
                    unique = f"{alias}_{number}"
                self._tools[unique] = definition["name"]
        return self._tools

    def __getattr__(self, alias):
        if alias.startswith("__"):
            raise AttributeError(alias)
        target = self._named().get(alias, alias)

        async def invoke(_target=target, **arguments):
            return await call_tool(self.name, _target, arguments)

        return invoke

    async def list_tools(self):
        return await list_tools(self.name)


def _refuse(text):
    return failure({"kind": "invalid", "text": text})


def _available(server):
    if server not in _names():
        raise _refuse(f"Server {server!r} is not available")


async def call_tool(server, tool, arguments=None):
    _available(server)
    if not isinstance(tool, str) or not tool:
        raise _refuse("Missing tool name")
    if not isinstance(arguments or {}, dict):
        raise _refuse("Arguments must be an object")
    return await tools.Pending({"op": "call", "server": server, "tool": tool, "arguments": arguments or {}}, _raw, f"{server}.{tool}")


def _names():
    return sorted(name for name, _, _, _ in INDEX["SERVERS"])


def list_servers_sync():
    return tuple(_names())


async def list_servers():
    return tuple(_names())


def _entry(server, definition, detail):
    entry = {"server": server, "serverAlias": sanitize(server, "server"), "tool": definition["name"], "toolAlias": _alias_of(definition)}
    if definition.get("description"):
        entry["description"] = definition["description"].strip()
    if str(detail).lower() == "full" and definition.get("inputSchema") is not None:
        entry["inputSchema"] = definition["inputSchema"]
    return entry


def _server(name):
    for one, alias, _, _ in INDEX["SERVERS"]:
        if one == name:
            return _definitions(alias)
    raise _refuse(f"Server {name!r} is not loaded")


def _alias_of(definition):
    alias = sanitize(definition["name"], "tool")
    return f"{alias}_" if keyword.iskeyword(alias) else alias


def _metadata(name):
    return [
        {
            "name": one["name"],
            "alias": _alias_of(one),
            "description": one.get("description") or "",
            "input_schema": one.get("inputSchema"),
        }
        for one in _server(name)
    ]


def list_tools_sync(server=None):
    if server is None:
        raise _refuse("list_tools_sync(server) requires a server name")
    return tuple(_metadata(server))


async def list_tools(server):
    _available(server)
    return [{key: one[key] for key in one if key not in ("alias", "parameters")} for one in _server(server)]


def query_tool_docs_sync(server, tool=None, detail="summary"):
    definitions = _server(server)
    if tool is not None and not isinstance(tool, str):
        raise _refuse("'tool' must be a string when provided")
    if tool is not None:
        definitions = [one for one in definitions if tool.lower() in (one["name"].lower(), _alias_of(one))]
        if not definitions:
            raise _refuse(f"Tool {tool!r} not found for server {server}")
    return [_entry(server, one, detail) for one in definitions]


async def query_tool_docs(server, tool=None, detail="summary"):
    _available(server)
    found = query_tool_docs_sync(server, tool, detail)
    return found[0] if tool is not None else found


def search_tool_docs_sync(query, *, limit=5, detail="summary"):
    parts = str(query).lower().split()
    if not parts:
        return []
    found = []
    for name in _names():
        for one in _server(name):
            entry = _entry(name, one, detail)
            text = " ".join([name, entry["serverAlias"], one["name"], entry["toolAlias"], one.get("description") or ""]).lower()
            if all(word in text for word in parts):
                found.append(entry)
    return found[: max(1, min(20, limit))]


async def search_tool_docs(query, *, limit=5, detail="summary"):
    if not isinstance(query, str):
        raise _refuse("Missing 'query' value")
    if not isinstance(limit, int):
        raise _refuse("'limit' must be an integer")
    return search_tool_docs_sync(query, limit=limit, detail=detail)


def discovered_servers(detailed=False):
    found = INDEX["DISCOVERED"]
    return tuple({"name": name, "description": text} for name, text in found) if detailed else tuple(name for name, _ in found)


def describe_server(name):
    for one in list_loaded_server_metadata():
        if name in (one["name"], one["alias"]):
            return one
    raise _refuse(f"Server {name!r} is not loaded")


def list_loaded_server_metadata():
    return tuple({"name": name, "alias": alias, "cwd": None, "tools": _metadata(name)} for name, _, alias, _ in INDEX["SERVERS"])


def capability_summary():
    return (
        "Programs call tools as await mcp_SERVER.TOOL(name=value); the result is a dict with content, structuredContent and isError. "
        "mcp.runtime lists and describes: discovered_servers(), list_servers(), query_tool_docs(server), search_tool_docs(query)."
    )


def save_tool(function):
    """Keeps a function for later runs of this conversation: python.py makes its name known to them."""
    import inspect
    import textwrap

    if not inspect.isfunction(function):
        raise ValueError("save_tool expects a function")
    with open("/data/user_tools.py", "a", encoding="utf-8") as file:
        file.write("\n" + textwrap.dedent(inspect.getsource(function)) + "\n")
    return f"Tool '{function.__name__}' saved. It will be available in future sessions."


class Servers(dict):
    pass


mcp_servers = Servers({name: Proxy(name) for name in _names()})
runtime = types.ModuleType("mcp.runtime")
for _name in (
    "MCPError call_tool list_tools list_tools_sync list_servers list_servers_sync discovered_servers describe_server save_tool "
    "list_loaded_server_metadata query_tool_docs query_tool_docs_sync search_tool_docs search_tool_docs_sync capability_summary"
).split():
    setattr(runtime, _name, globals()[_name])
sys.modules["mcp.runtime"] = runtime
servers = types.ModuleType("mcp.servers")
servers.__path__ = []
sys.modules["mcp.servers"] = servers
for _name, _, _alias, _ in INDEX["SERVERS"]:
    _module = types.ModuleType(f"mcp.servers.{_alias}")

    def _fill(module=_module, proxy=mcp_servers[_name]):
        named = proxy._named()
        module.TOOLS = _metadata(proxy.name)
        module.TOOL_MAP = {alias: next(one for one in module.TOOLS if one["name"] == name) for alias, name in named.items()}
        for alias in named:
            setattr(module, alias, getattr(proxy, alias))
        module.__all__ = [*named, "TOOLS", "TOOL_MAP"]

    _fill()
    setattr(servers, _alias, _module)
    sys.modules[f"mcp.servers.{_alias}"] = _module
__path__ = []
