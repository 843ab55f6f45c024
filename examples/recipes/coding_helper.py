"""A helper that looks into a repository through an MCP server, here one that greps: git_server.py.

python examples/recipes/coding_helper.py "Where are API keys compared?" google/gemma-4-E4B-it
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool

from langchain_gemma_jax import ChatGemmaJax
from langchain_gemma_jax.cli.tools.mcp_server import McpServer
from langchain_gemma_jax.middleware import KeepWarmMiddleware, RepeatedCallMiddleware

question, model = (*sys.argv[1:], *("Search for: name it", "sprout-m")[len(sys.argv) - 1 :])
if not sys.argv[1:]:  # a repository to try
    os.chdir(tempfile.mkdtemp())
    Path("notes.py").write_text("x = 1  # TODO: name it\n")
    for command in ("git init --quiet", "git add notes.py"):
        subprocess.run(command.split(), check=True)
with McpServer(f"{sys.executable} {Path(__file__).with_name('git_server.py')}") as server:

    def tool(name: str, description: str, parameters: dict[str, object]) -> StructuredTool:
        """Return a tool of the server as the agent calls it."""
        call = lambda **given: str(server.call(name, given))  # noqa: E731
        return StructuredTool.from_function(call, name=name, description=description, args_schema=parameters)

    helper = create_agent(
        ChatGemmaJax(model=model, temperature=0, max_tokens=200),
        [tool(**each["function"]) for each in server.tools],
        middleware=[RepeatedCallMiddleware(), KeepWarmMiddleware()],
    )
    for message in helper.invoke({"messages": [HumanMessage(question)]})["messages"]:
        message.pretty_print()
