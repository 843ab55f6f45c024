"""The results of transformers, for tiny models of every architecture.

    python tests/parity/reference_hf.py OUT_FOLDER [--seeds N] [--only NAME]

Needs an environment with torch and transformers 5. For each architecture and seed it writes a folder
``OUT_FOLDER/<architecture>-<seed>`` with

    config.json, model.safetensors   the model as transformers saves it, in float32
    reference.npz                    tokens [2, all], lengths [2], logits [2, all, vocabulary]

A row holds a prompt of ``lengths`` tokens, the 64 that greedy decoding adds, and padding. The tokens come from
``generate``; the logits from one forward over the whole row without a cache, which has to agree with each of them.
``reference.npz`` is written last, and holds a digest of everything that it follows from: a folder that has the
right one is left alone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
import transformers

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.parity.architectures import MULTIMODAL, SHRUNK
from tests.parity.made_up import NEW_TOKENS, ROWS, prompts, tensor

SOURCES = (Path(__file__), Path(__file__).with_name("architectures.py"), Path(__file__).with_name("made_up.py"))


def read_config(raw: Mapping[str, object]) -> transformers.PreTrainedConfig:
    """The configuration as transformers reads it out of a published ``config.json``."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(raw))
        return transformers.AutoConfig.from_pretrained(folder)


def make(name: str, raw: Mapping[str, object], seed: int) -> transformers.PreTrainedModel:
    """A model with made-up weights, in float32 with attention written out."""
    config = read_config(raw)
    kind = transformers.AutoModelForImageTextToText if "text_config" in raw else transformers.AutoModelForCausalLM
    model = kind.from_config(config, attn_implementation="eager", dtype=torch.float32).eval()
    offset = 0.0 if "gemma4" in str(raw["model_type"]) else 1.0
    tied = set(model.all_tied_weights_keys)
    for key, value in model.state_dict().items():
        if key not in tied:
            value.copy_(torch.from_numpy(tensor(key, tuple(value.shape), name, seed, norm_offset=offset)))
    return model


@torch.no_grad()
def greedy(model: transformers.PreTrainedModel, rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``(tokens, lengths, logits)`` as the files hold them. What stands right of a token cannot reach it."""
    lengths = np.array([len(row) for row in rows])
    width = int(lengths.max())
    tokens = torch.zeros((ROWS, width + NEW_TOKENS), dtype=torch.long)
    padded = torch.zeros((ROWS, width), dtype=torch.long)
    for row, prompt in enumerate(rows):
        tokens[row, : len(prompt)] = padded[row, width - len(prompt) :] = torch.tensor(prompt)
    model.generation_config.eos_token_id = None
    is_prompt = torch.arange(width)[None] >= width - torch.from_numpy(lengths)[:, None]
    answer = model.generate(
        padded, attention_mask=is_prompt.long(), max_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=0
    )
    for row, length in enumerate(lengths):
        tokens[row, length : length + NEW_TOKENS] = answer[row, width:]
    logits = model(tokens, use_cache=False).logits
    while (wrong := first_wrong(tokens, lengths, logits)) is not None:
        # Decoding with its cache and padding, transformers took another token than without. Without is what counts.
        row, end = wrong
        tokens[row, end] = logits[row, end - 1].argmax()
        logits = model(tokens, use_cache=False).logits
    return tokens.numpy(), lengths, logits.numpy()


def first_wrong(tokens: torch.Tensor, lengths: np.ndarray, logits: torch.Tensor) -> tuple[int, int] | None:
    """Where a new token is not the one that the logits before it prefer."""
    for row, length in enumerate(lengths):
        new = slice(length, length + NEW_TOKENS)
        differs = (logits[row, length - 1 : length + NEW_TOKENS - 1].argmax(-1) != tokens[row, new]).nonzero()
        if len(differs):
            return row, int(length + differs[0])
    return None


def digest(name: str, seed: int) -> str:
    """Changes with anything that the files follow from."""
    parts = [name, str(seed), torch.__version__, transformers.__version__, *(path.read_text() for path in SOURCES)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def is_there(reference: Path, wanted: str) -> bool:
    """Return True if an earlier run wrote exactly this."""
    if not reference.exists():
        return False
    with np.load(reference) as found:
        return str(found["digest"]) == wanted


def dump(name: str, raw: Mapping[str, object], seed: int, folder: Path) -> None:
    """Write one folder, unless it is there."""
    reference, wanted = folder / "reference.npz", digest(name, seed)
    if is_there(reference, wanted):
        return
    model = make(name, raw, seed)
    tokens, lengths, logits = greedy(model, prompts(name, seed))
    model.save_pretrained(folder)
    unfinished = reference.with_suffix(".part.npz")
    np.savez(unfinished, tokens=tokens, lengths=lengths, logits=logits, digest=wanted)
    unfinished.replace(reference)


def main() -> None:
    """Write them all."""
    known = {**SHRUNK, **MULTIMODAL}
    parser = argparse.ArgumentParser(description="Dump checkpoints, logits and greedy tokens of transformers.")
    parser.add_argument("folder", type=Path, help="where to write")
    parser.add_argument("--seeds", type=int, default=10, help="models of each architecture (10)")
    parser.add_argument("--only", help="one architecture")
    options = parser.parse_args()
    if options.only not in {None, *known}:
        parser.error(f"--only: expected one of {', '.join(known)}, found {options.only!r}")
    logging.getLogger("transformers").setLevel(logging.ERROR)
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)  # for models this small, a second thread costs more than it does
    for name in [options.only] if options.only else known:
        for seed in range(options.seeds):
            dump(name, known[name], seed, options.folder / f"{name}-{seed}")
        print(f"transformers {transformers.__version__}: {name}", flush=True)  # noqa: T201  a script's progress


if __name__ == "__main__":
    main()
