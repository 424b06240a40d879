"""An MCP server on standard input and output that says "geheim" wherever a server can say something of its own."""
import json
import os
import sys


def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params", {})
    if "id" not in message or method is None:
        continue
    if method == "initialize":
        print("geheim-stderr", file=sys.stderr, flush=True)
        say({"id": message["id"], "result": {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "instructions": "geheim-instructions",
            "serverInfo": {"name": "geheim-name", "version": "geheim-version"}}})
    elif method == "tools/list":
        say({"id": message["id"], "result": {"tools": [{"name": "note", "description": "geheim-description", "inputSchema": {"type": "object"}}]}})
    elif method == "tools/call":
        what = params["arguments"]["what"]
        print("geheim-garbage", flush=True)
        say({"id": "geheim-id", "method": "geheim/ask", "params": {"geheim": os.environ["KEY"]}})
        say({"method": "notifications/geheim", "params": {"geheim": 1}})
        say({"method": "notifications/message", "params": {"level": "error", "data": "geheim-message"}})
        with open("/data/geheim-file", "w", encoding="utf-8") as file:
            file.write("geheim-kept")
        os.path.lexists("/data/geheim-link") or os.symlink("/geheim-target", "/data/geheim-link")
        if what == "geheim-error":
            say({"id": message["id"], "error": {"code": -32000, "message": "geheim-error", "data": "geheim-data"}})
        elif what == "geheim-broken":
            print('{"jsonrpc":"2.0","id":%s,"result":geheim}' % json.dumps(message["id"]), flush=True)
        elif what == "geheim-end":
            sys.exit("geheim-exit")
        else:
            say({"id": message["id"], "result": {"isError": what == "geheim-failure", "content": [{"type": "text", "text": "geheim-answer to " + what}]}})
    else:
        say({"id": message["id"], "error": {"code": -32601, "message": "geheim-method"}})
