"""An image, shown to a model: what it costs and what the model says, or why it cannot be shown.

    python examples/images.py                                        # an image that is made here
    python examples/images.py google/gemma-3-4b-it ./photo.jpg       # a model that sees (needs Pillow)
    python examples/images.py ./gemma-3-4b-it-Q4_K_M.gguf ./photo.jpg  # a file, with its mmproj file beside it

The embedded model reads text alone. It refuses the image by an error that says so, instead of leaving it out.
"""

from __future__ import annotations

import base64
import struct
import sys
import zlib
from pathlib import Path

from langchain_core.messages import BaseMessage, HumanMessage

from langchain_gemma_jax import ChatGemmaJax
from langchain_gemma_jax.errors import MediaError


def red_square(side: int = 64) -> bytes:
    """Return a PNG."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    rows = (b"\0" + b"\xff\0\0" * side) * side
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def main() -> None:
    """Ask about an image."""
    model = sys.argv[1] if len(sys.argv) > 1 else "sprout-m"
    image = Path(sys.argv[2]).read_bytes() if len(sys.argv) > 2 else red_square()
    llm = ChatGemmaJax(model=model, max_tokens=120)
    print(f"{model} sees: {llm.profile is not None and llm.profile.get('image_inputs', False)}")
    shown = {"type": "image", "base64": base64.b64encode(image).decode(), "mime_type": "image/png"}
    messages: list[BaseMessage] = [HumanMessage([{"type": "text", "text": "What is on this image?"}, shown])]
    try:
        print("tokens:", llm.get_num_tokens_from_messages(messages))
        print(llm.invoke(messages).text)
    except MediaError as error:
        print(error)


if __name__ == "__main__":
    main()
