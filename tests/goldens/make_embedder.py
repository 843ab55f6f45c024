"""Writes ``embeddinggemma.npz``: the vectors that transformers computes for tiny embedding models.

    python tests/goldens/make_embedder.py

Needs an environment with torch and transformers 5. The matrices behind the mean are not part of transformers: numpy
does here what Sentence Transformers' ``Pooling``, ``Dense`` and ``Normalize`` do. ``tests/parity/made_up.py`` makes the
weights, so that none are stored. The file holds

    tokens [seed, text, all], lengths [seed, text]   texts as token ids
    vectors [seed, text, width]                      theirs, of length 1
    tensors                                          the stored names and shapes, as JSON
    config                                           the config.json that transformers wrote
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.parity.architectures import EMBEDDER, EMBEDDER_DENSE
from tests.parity.made_up import prompts, tensor
from tests.parity.reference_hf import read_config

NAME, SEEDS, SHORT = "embeddinggemma", 10, 5


def main() -> None:
    """Write it."""
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    config = read_config(EMBEDDER)
    every_tokens, every_length, every_vector = [], [], []
    for seed in range(SEEDS):
        model = transformers.Gemma3TextModel._from_config(config, attn_implementation="eager", dtype=torch.float32)
        model.eval()
        for key, value in model.state_dict().items():
            value.copy_(torch.from_numpy(tensor(key, tuple(value.shape), NAME, seed, norm_offset=1.0)))
        texts = [*prompts(NAME, seed), prompts(NAME, seed)[0][:SHORT]]
        lengths = [len(text) for text in texts]
        tokens = np.zeros((len(texts), 128), np.int64)
        for row, text in enumerate(texts):
            tokens[row, : len(text)] = text
        mask = np.arange(128)[None] < np.array(lengths)[:, None]
        with torch.no_grad():
            hidden = model(torch.from_numpy(tokens), attention_mask=torch.from_numpy(mask.astype(np.int64)))
        states = hidden.last_hidden_state.numpy().astype(np.float64)
        found = (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        for folder, shape in EMBEDDER_DENSE.items():
            weight = tensor(f"{folder}/linear.weight", shape, NAME, seed, norm_offset=1.0)
            found = found @ weight.astype(np.float64).T
        every_vector.append(found / np.linalg.norm(found, axis=1, keepdims=True))
        every_tokens.append(tokens)
        every_length.append(lengths)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        written = Path(folder, "config.json").read_text()
        content = Path(folder, "model.safetensors").read_bytes()
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    tensors = {name: header[name]["shape"] for name in sorted(header) if name != "__metadata__"}
    np.savez_compressed(
        Path(__file__).with_name(f"{NAME}.npz"),
        tokens=np.array(every_tokens, np.int32),
        lengths=np.array(every_length, np.int32),
        vectors=np.array(every_vector, np.float32),
        tensors=json.dumps(tensors),
        config=written,
        made_by=f"transformers {transformers.__version__}, torch {torch.__version__}",
    )


if __name__ == "__main__":
    main()
