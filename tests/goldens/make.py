"""Writes the vectors in this folder: what transformers computes for tiny models of every architecture.

    python tests/goldens/make.py

Needs an environment with torch and transformers 5. The weights are not stored: ``tests/parity/made_up.py`` makes
the same ones from the same names wherever it runs. Each file holds

    tokens [2, all], lengths [2]   two prompts, and the 64 tokens each that greedy decoding adds
    positions [2, few]             where the logits were kept
    logits [2, few, vocabulary]    of one forward over each row
    spread                         the standard deviation of all logits
    tensors                        the stored names and shapes, as JSON
    config                         the config.json that transformers wrote, which reads differently from a published one
    made_by                        the versions
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.parity.architectures import MULTIMODAL, SHRUNK, WINDOW
from tests.parity.made_up import NEW_TOKENS, prompts
from tests.parity.reference_hf import greedy, make

SEED = 0


def written(model: transformers.PreTrainedModel) -> tuple[str, str]:
    """The names and shapes of the tensors, and the configuration, as transformers saves them."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        content = Path(folder, "model.safetensors").read_bytes()
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        tensors = {name: header[name]["shape"] for name in sorted(header) if name != "__metadata__"}
        return json.dumps(tensors), Path(folder, "config.json").read_text()


def main() -> None:
    """Write them all."""
    logging.getLogger("transformers").setLevel(logging.ERROR)
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    for name, raw in {**SHRUNK, **MULTIMODAL}.items():
        model = make(name, raw, SEED)
        tokens, lengths, logits = greedy(model, prompts(name, SEED))
        # Around the edge of the window, of the ring that holds it, and of the prompt; and the end.
        kept = [[WINDOW - 1, WINDOW, 3 * WINDOW, end - 1, end, end + NEW_TOKENS - 1] for end in lengths]
        spread = np.std(np.concatenate([row[: end + NEW_TOKENS] for row, end in zip(logits, lengths, strict=True)]))
        tensors, config = written(model)
        np.savez_compressed(
            Path(__file__).with_name(f"{name}.npz"),
            tokens=tokens.astype(np.int32),
            lengths=lengths.astype(np.int32),
            positions=np.array(kept, np.int32),
            logits=np.stack([row[positions] for row, positions in zip(logits, kept, strict=True)]),
            spread=spread,
            tensors=tensors,
            config=config,
            made_by=f"transformers {transformers.__version__}, torch {torch.__version__}",
        )


if __name__ == "__main__":
    main()
