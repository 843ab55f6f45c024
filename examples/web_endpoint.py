"""An asynchronous endpoint: answers that stream, requests that share steps, and a client that leaves.

    python examples/web_endpoint.py

``app`` is an ASGI app of one path, so it runs under any server for them: uvicorn --app-dir examples web_endpoint:app
Here it is called as a server would call it, so that the example needs no other package. In a framework the body of
``app`` is an endpoint that returns a streaming response.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Any
from urllib.parse import parse_qs

from langchain_gemma_jax import BusyError, ChatGemmaJax, DeadlineError, engine

llm = ChatGemmaJax(model="sprout-s", temperature=0, max_tokens=200, timeout=120)
Receive = Callable[[], Coroutine[Any, Any, dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
STATUS = {BusyError: 429, DeadlineError: 504}


async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Stream an answer to ?q=... until it is complete, or until the client has left."""
    question = parse_qs(scope["query_string"].decode())["q"][0]
    answering = asyncio.create_task(answer(question, send))
    leaving = asyncio.create_task(receive())  # the next thing that is heard of a client without a body: it has left
    await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
    for task in (answering, leaving):
        task.cancel()  # which stops the work on the device, too
    await asyncio.gather(answering, leaving, return_exceptions=True)


async def answer(question: str, send: Send) -> None:
    """Send the pieces of an answer as they come. Errors before the first piece have a status of their own."""
    try:
        async with aclosing(llm.astream(question)) as pieces:  # type: ignore[type-var]
            first = await anext(pieces)
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": first.text.encode(), "more_body": True})
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece.text.encode(), "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    except (BusyError, DeadlineError) as error:
        await send({"type": "http.response.start", "status": STATUS[type(error)], "headers": []})
        await send({"type": "http.response.body", "body": str(error).encode(), "more_body": False})


async def client(question: str, *, leaves_after: int | None = None) -> str:
    """Ask the app as a server would, and leave after so many pieces."""
    got: list[str] = []
    left = asyncio.Event()

    async def receive() -> dict[str, Any]:
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        got.append(message.get("body", b"").decode())
        if leaves_after is not None and len(got) > leaves_after:
            left.set()

    await app({"type": "http", "query_string": f"q={question}".encode()}, receive, send)
    return "".join(got)


async def main() -> None:
    """Three clients at once, of which one leaves."""
    said = await asyncio.gather(client("Hello!"), client("Thank you!"), client("Who are you?", leaves_after=1))
    print(*said, sep="\n")
    report = engine().report()
    print(f"{report.requests} requests, {report.generated_tokens} tokens; {report.running} still run")


if __name__ == "__main__":
    asyncio.run(main())
