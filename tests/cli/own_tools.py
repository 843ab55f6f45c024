"""Tools as somebody has them in a file, and a server that has some."""

from __future__ import annotations

TOOLS = '''
def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"Sunny in {city}, 21 degrees"
'''
SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
    elif asked.get("method") == "tools/list" and "cursor" not in asked["params"]:
        result = {"tools": [], "nextCursor": "2"}
    elif asked.get("method") == "tools/list":
        result = {"tools": [{"name": "add", "description": "Add two numbers.", "inputSchema": {"type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}}]}
    elif asked.get("method") == "tools/call":
        given = asked["params"]["arguments"]
        result = {"content": [{"type": "text", "text": str(given["a"] + given["b"])}], "isError": given["a"] < 0}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "method": "ping", "id": "p"}), flush=True)
    print("not json", flush=True)
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
