"""Tools of an MCP server, called by the model and held to the schemas that the server declares.

    python examples/mcp_tools.py

The server is this file, started once more. It speaks the protocol by hand, so that the example needs no other package.
In your own program use LangChain's adapters (docs/agents.md); in the terminal, gemma-jax chat --mcp 'python server.py'
"""

from __future__ import annotations

import json
import sys

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from langchain_gemma_jax import ChatGemmaJax
from langchain_gemma_jax.cli.tools.mcp_server import McpServer

CONVERT = {
    "name": "convert",
    "description": "Convert miles to kilometres.",
    "inputSchema": {"type": "object", "properties": {"miles": {"type": "number"}}, "required": ["miles"]},
}


def serve() -> None:
    """Answer the protocol's three requests, a line each, until nobody asks any more."""
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["method"] == "initialize":
            found: object = {
                "protocolVersion": asked["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "converter", "version": "1"},
            }
        elif asked["method"] == "tools/list":
            found = {"tools": [CONVERT]}
        elif asked["method"] == "tools/call":
            text = f"{asked['params']['arguments']['miles'] * 1.609344:.1f} km"
            found = {"content": [{"type": "text", "text": text}], "isError": False}
        else:  # something that is told, and wants no answer
            continue
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": found}), flush=True)


def main(llm: ChatGemmaJax) -> None:
    """Have the model call the server's tool, and answer from what it says."""
    with McpServer(f"{sys.executable} {__file__} serve") as server:
        with_tools = llm.bind_tools(server.tools)
        messages: list[BaseMessage] = [HumanMessage("Convert 12 miles to kilometres.")]
        answer = with_tools.invoke(messages)
        messages.append(answer)
        for call in answer.tool_calls:
            result = server.call(call["name"], call["args"])
            print(f"{call['name']}({call['args']}) = {result}")
            messages.append(ToolMessage(str(result), tool_call_id=call["id"]))
        print(with_tools.invoke(messages).text)


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        main(ChatGemmaJax(temperature=0, max_tokens=64))
