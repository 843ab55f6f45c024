"""A process that loads a model of some size through torchax, and prints how much of its memory that takes.

    python tests/torchax/resident.py FOLDER

Counted is what the kernel calls anonymous: a file that is mapped is read from the disk again when memory is short.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Self

MAKE = """
import sys, transformers
from pathlib import Path
from tests.torchax.torch_models import save_model, save_tokenizer
for name in ("tiny", "large"): Path(sys.argv[1], name).mkdir()
save_model(Path(sys.argv[1], "tiny"), "llama 3")
save_tokenizer(Path(sys.argv[1], "large"))
config = transformers.LlamaConfig(vocab_size=16384, hidden_size=1024, intermediate_size=2816, num_hidden_layers=5,
    num_attention_heads=16, num_key_value_heads=4, bos_token_id=None, eos_token_id=2, pad_token_id=0)
transformers.LlamaForCausalLM(config).save_pretrained(Path(sys.argv[1], "large"))
"""


def anonymous() -> int:
    """Bytes of this process that stand in no file."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


class Most:
    """The most that there was while a block ran, looked at each few milliseconds."""

    def __enter__(self) -> Self:
        self.seen, self._over = anonymous(), threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.is_set():
            self.seen = max(self.seen, anonymous())
            time.sleep(0.003)


def main(folder: str) -> None:
    """Make the models in another process, load them, and print what the large one took."""
    subprocess.run([sys.executable, "-c", MAKE, folder], check=True)
    import jax

    from langchain_gemma_jax.models.loading.load import load

    load(f"torchax:{folder}/tiny").close()  # all that is imported once
    gc.collect()
    before = anonymous()
    with Most() as most:
        model = load(f"torchax:{folder}/large")
        jax.block_until_ready(model.params)
    gc.collect()
    print(json.dumps({"weights": model.nbytes, "more": anonymous() - before, "most": most.seen - before}))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1])
