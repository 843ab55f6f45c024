"""A voice note to a list of tasks, by a Gemma that hears.

hf download google/gemma-4-E2B-it --local-dir gemma-4-E2B-it
python examples/recipes/voice_note.py note.wav
"""

import base64
import math
import struct
import sys
import wave
from pathlib import Path

from langchain_core.messages import HumanMessage
from pydantic import BaseModel, Field

from langchain_gemma_jax import ChatGemmaJax


class Tasks(BaseModel):
    """What somebody says that there is to do."""

    tasks: list[str] = Field(max_length=5)


note = Path(sys.argv[1] if sys.argv[1:] else "note.wav")
if not sys.argv[1:] and not note.exists():  # a second of humming
    with wave.open(str(note), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(b"".join(struct.pack("<h", int(8000 * math.sin(at * 0.2))) for at in range(16000)))
llm = ChatGemmaJax(model="./gemma-4-E2B-it", temperature=0, max_tokens=60)
sound = {"type": "audio", "base64": base64.b64encode(note.read_bytes()).decode(), "mime_type": "audio/wav"}
asked = HumanMessage([{"type": "text", "text": "List the tasks that are told."}, sound])
found = llm.with_structured_output(Tasks, include_raw=True).invoke([asked])
print(found["parsed"] or f"no tasks: {found['parsing_error']}")
