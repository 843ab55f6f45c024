"""Long pictures that are shown in pieces too, how they are cut, and a vocabulary in which it matters what joins what.

Nothing but numpy, and the library of vocabularies: this file is read in environments that have no JAX.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import tokenizers
from tokenizers import decoders, models, normalizers

from tests.parity.media_models import MODELS, SIZES

MODEL = "gemma-3-4b-vision"
PROCESSOR = MODELS[MODEL].processor
SOFT_TOKENS = 9
MARKS = ("<start_of_image>", "<image_soft_token>", "<end_of_image>")
TEXT = f"Look: {MARKS[0]}What is it?"

_SMALL = {"min_crop_size": 4, "max_num_crops": 4, "min_ratio_to_activate": 1.2}
SCANS: tuple[tuple[int, Mapping[str, float]], ...] = (
    *((number, _SMALL) for number in range(len(SIZES))),
    *((number, {**_SMALL, "max_num_crops": 2}) for number in (5, 6, 10)),
    *((number, {**_SMALL, "max_num_crops": 6, "min_ratio_to_activate": 1.0}) for number in (0, 3, 5, 6)),
    *((number, {"min_crop_size": 64, "max_num_crops": 4, "min_ratio_to_activate": 1.2}) for number in (3, 5, 8, 11)),
    *((number, {"min_crop_size": 200, "max_num_crops": 3, "min_ratio_to_activate": 1.3}) for number in (3, 9, 11)),
)
"""The number of a picture, and the limits of the processor."""


def vocabulary() -> dict[str, object]:
    """A ``tokenizer.json`` whose words reach over the ends of lines: texts that are joined have other tokens."""
    letters = [chr(code) for code in range(33, 127)]
    joined = [("\n", "\n"), ("\n\n", "\u2581"), ("\u2581", "\n\n"), ("\u2581", "a"), ("\n\n", "\n\n"), ("e", "r")]
    names = ["<pad>", "<eos>", "<bos>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", "\n"]
    names += [*letters, *map("".join, joined), *MARKS]
    model = models.BPE({name: at for at, name in enumerate(names)}, joined, byte_fallback=True, unk_token="<unk>")
    library = tokenizers.Tokenizer(model)
    library.normalizer = normalizers.Replace(" ", "\u2581")
    library.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    library.add_special_tokens([*names[:4], *MARKS])
    found: dict[str, object] = json.loads(library.to_str())
    return found
