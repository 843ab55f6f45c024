"""An MCP server with one tool, which looks into the repository of its folder: coding_helper.py starts it."""

import json
import subprocess
import sys

SEARCH = {
    "name": "search",
    "description": "Search for a text in all files of the repository.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        version = asked["params"]["protocolVersion"]
        found: object = {
            "protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "git", "version": "1"},
        }  # fmt: skip
    elif asked["method"] == "tools/list":
        found = {"tools": [SEARCH]}
    elif asked["method"] == "tools/call":
        command = ["git", "grep", "-n", "-I", "-F", "-e", str(asked["params"]["arguments"]["text"]), "--"]
        text = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
        found = {"content": [{"type": "text", "text": text[:4000] or "Nothing was found."}], "isError": False}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": found}), flush=True)
