"""Alt texts for the pictures of a folder, kept beside them: started again, it goes on. By a Gemma that sees.

hf download google/gemma-3-4b-it --local-dir gemma-3-4b-it
python examples/recipes/alt_texts.py pictures/
"""

import base64
import mimetypes
import sys
from pathlib import Path

from langchain_core.messages import HumanMessage
from PIL import Image

from langchain_gemma_jax import ChatGemmaJax

folder = Path(sys.argv[1] if sys.argv[1:] else "pictures")
if not sys.argv[1:] and not folder.exists():  # one to try
    folder.mkdir()
    Image.new("RGB", (64, 48), "teal").save(folder / "teal.png")
llm = ChatGemmaJax(model="./gemma-3-4b-it", temperature=0, max_tokens=60)
images = (file for file in sorted(folder.iterdir()) if str(mimetypes.guess_type(file)[0]).startswith("image/"))
todo = [file for file in images if not file.with_suffix(".alt.txt").exists()]


def shown(file: Path) -> HumanMessage:
    """Return the question with its picture. The words come first, so they are read once for all of them."""
    data, kind = base64.b64encode(file.read_bytes()).decode(), mimetypes.guess_type(file)[0]
    text = "Write an alt text for this picture in one sentence."
    return HumanMessage([{"type": "text", "text": text}, {"type": "image", "base64": data, "mime_type": kind}])


for number, answer in llm.batch_as_completed([[shown(file)] for file in todo], return_exceptions=True):
    if not isinstance(answer, Exception):
        todo[number].with_suffix(".alt.txt").write_text(answer.text.strip() + "\n")
    print(f"{todo[number].name}: {answer if isinstance(answer, Exception) else repr(answer.text)}")
