"""A service: objects, streams, and a word when there is too much to do.

uvicorn --app-dir examples/recipes service:app    # pip install fastapi
"""

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, Field

from langchain_gemma_jax import BusyError, ChatGemmaJax, DeadlineError

llm = ChatGemmaJax(model="sprout-m", temperature=0, max_tokens=200, timeout=60)
app = FastAPI()


class Visit(BaseModel):
    """A visit to a city."""

    city: str = Field(max_length=40)
    days: int = Field(ge=1, le=365)


@app.post("/visit")
async def visit(text: str) -> Visit:
    """Return what a text says, which is a visit whatever the model is like."""
    return Visit.model_validate(await llm.with_structured_output(Visit).ainvoke(text))


@app.get("/answer")
async def answer(question: str) -> StreamingResponse:
    """Stream an answer. A client that leaves stops it."""
    return StreamingResponse((piece.text async for piece in llm.astream(question)), media_type="text/plain")


@app.exception_handler(BusyError)
@app.exception_handler(DeadlineError)
async def refused(_: Request, error: Exception) -> JSONResponse:
    """Say that there is too much to do, so that clients come again."""
    return JSONResponse({"error": str(error)}, 429 if isinstance(error, BusyError) else 504)
