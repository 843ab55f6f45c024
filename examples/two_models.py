"""Two models where one fits: they take turns, and a conversation goes on where it was.

python examples/two_models.py                                              # two tiny random ones
python examples/two_models.py google/gemma-3-270m-it google/gemma-3-1b-it  # and a budget that fits the larger one
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from load_checkpoint import CONFIG, byte_tokenizer, random_weights
from safetensors.numpy import save_file

from langchain_gemma_jax import Ladders, Sampling, configure, engine

PROMPT = [2, *range(10, 60)]


def main(sources: list[str]) -> None:
    """Ask one, then the other, then the first one again."""
    small, large = (engine().load(source) for source in sources)
    # What the larger one needs and a little more: not enough for both.
    status = engine().models()[-1]
    configure(memory_budget=int(1.5 * status.nbytes))
    history = list(PROMPT)
    for served in (small, large, small, large, small):
        done = engine().submit(served, history if served is small else PROMPT, Sampling(max_tokens=4)).result()
        print(f"{served.name}: {done.prompt_tokens} tokens sent, {done.reused_tokens} of them known")
        if served is small:
            history += [*done.ids, 70, 71]
        for model in engine().models():
            print(f"   {model}")
    for evicted in engine().report().eviction_log:
        print(f"evicted {evicted}")


def tiny(folder: Path) -> str:
    """A tiny random Gemma in Hugging Face's layout."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    byte_tokenizer().save(str(folder / "tokenizer.json"))
    save_file(random_weights(), folder / "model.safetensors")
    return str(folder)


if __name__ == "__main__":
    if sys.argv[1:]:
        main(sys.argv[1:3])
    else:
        configure(ladders=Ladders(chunks=(16, 64), capacities=(128,), rows=(1,), draft=0))
        with tempfile.TemporaryDirectory() as scratch:
            main([tiny(Path(scratch, name)) for name in ("light", "heavy")])
