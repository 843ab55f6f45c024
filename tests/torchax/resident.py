"""A process that loads a model of some size through torchax, and prints how much of its memory is resident then.

python tests/torchax/resident.py FOLDER
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path

MAKE = """
import sys, torch, transformers
from tests.torchax.torch_models import save_tokenizer
from pathlib import Path
folder = Path(sys.argv[1]); save_tokenizer(folder)
config = transformers.LlamaConfig(vocab_size=16384, hidden_size=1024, intermediate_size=2816, num_hidden_layers=5,
    num_attention_heads=16, num_key_value_heads=4, bos_token_id=None, eos_token_id=2, pad_token_id=0)
transformers.LlamaForCausalLM(config).save_pretrained(folder)
"""


def resident(name: str) -> int:
    """Bytes, by the kernel: ``VmRSS`` now, ``VmHWM`` at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def main(folder: str) -> None:
    """Make the model in another process, load it, and print what that took."""
    subprocess.run([sys.executable, "-c", MAKE, folder], check=True, timeout=200)
    import jax

    from langchain_gemma_jax.models.load import load
    from langchain_gemma_jax.models.torchax.libraries import libraries

    found = libraries()
    found.torch.ones(4) @ found.torch.ones(4)
    jax.block_until_ready(jax.numpy.ones(4) + 1)
    before = resident("VmRSS")
    model = load(f"torchax:{folder}")
    jax.block_until_ready(model.params)
    gc.collect()
    print(  # noqa: T201
        json.dumps(
            {
                "weights": model.nbytes,
                "more": resident("VmRSS") - before,
                "most": resident("VmHWM") - before,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
