"""Writes ``embeddinggemma.npz`` and ``embeddinggemma-2.npz``: what transformers computes for tiny embedding models.

    python tests/goldens/make_embedder.py

Needs an environment with torch and transformers 5. The matrices behind the mean are not part of transformers: numpy
does here what Sentence Transformers' ``Pooling``, ``Dense`` and ``Normalize`` do. ``tests/parity/made_up.py`` makes the
weights, so that none are stored. Each file holds

    tokens [seed, text, all], lengths [seed, text]   texts as token ids
    vectors [seed, text, width]                      theirs, of length 1
    tensors                                          the stored names and shapes, as JSON
    config                                           the config.json that transformers wrote
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
import transformers

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.parity.architectures import EMBEDDERS
from tests.parity.made_up import prompts, tensor
from tests.parity.reference_hf import read_config

SEEDS, SHORT = 10, 5


def write(name: str, raw: Mapping[str, object], dense: Mapping[str, tuple[int, int]], offset: float) -> None:
    """Write one file."""
    config = read_config(raw)
    every_tokens, every_length, every_vector = [], [], []
    for seed in range(SEEDS):
        model = transformers.AutoModel.from_config(config, attn_implementation="eager", dtype=torch.float32).eval()
        for key, value in model.state_dict().items():
            value.copy_(torch.from_numpy(tensor(key, tuple(value.shape), name, seed, norm_offset=offset)))
        texts = [*prompts(name, seed), prompts(name, seed)[0][:SHORT]]
        lengths = [len(text) for text in texts]
        tokens = np.zeros((len(texts), 128), np.int64)
        for row, text in enumerate(texts):
            tokens[row, : len(text)] = text
        mask = np.arange(128)[None] < np.array(lengths)[:, None]
        with torch.no_grad():
            hidden = model(torch.from_numpy(tokens), attention_mask=torch.from_numpy(mask.astype(np.int64)))
        states = hidden.last_hidden_state.numpy().astype(np.float64)
        found = (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        for folder, shape in dense.items():
            weight = tensor(f"{folder}/linear.weight", shape, name, seed, norm_offset=offset)
            found = found @ weight.astype(np.float64).T
        every_vector.append(found / np.linalg.norm(found, axis=1, keepdims=True))
        every_tokens.append(tokens)
        every_length.append(lengths)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        written = Path(folder, "config.json").read_text()
        content = Path(folder, "model.safetensors").read_bytes()
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    tensors = {key: header[key]["shape"] for key in sorted(header) if key != "__metadata__"}
    np.savez_compressed(
        Path(__file__).with_name(f"{name}.npz"),
        tokens=np.array(every_tokens, np.int32),
        lengths=np.array(every_length, np.int32),
        vectors=np.array(every_vector, np.float32),
        tensors=json.dumps(tensors),
        config=written,
        made_by=f"transformers {transformers.__version__}, torch {torch.__version__}",
    )


def main() -> None:
    """Write both."""
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    for name, (raw, dense, offset) in EMBEDDERS.items():
        write(name, raw, dense, offset)


if __name__ == "__main__":
    main()
