"""An MCP server on standard input and output with one tool, whose description is what the file of its argument says, and whose result is long."""
import json
import sys

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message.get("method") == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "notes", "version": "1"}}
    elif message.get("method") == "tools/list":
        with open(sys.argv[1], encoding="utf-8") as file:
            result = {"tools": [{"name": "read<b>", "description": file.read(), "inputSchema": {"type": "object"}}]}
    elif message.get("method") == "tools/call":
        result = {"content": [{"type": "text", "text": "<i>the result</i> " + 100_000 * "y"}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no such method"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
