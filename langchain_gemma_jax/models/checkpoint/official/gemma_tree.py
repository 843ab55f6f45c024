"""The official library's parameter tree, in any of its forms, as plain names.

The tree of one model was published in several forms, and training adds more:

* nested, as ``model.init`` makes it:     ``{"layer_0": {"attn": {"q_einsum": {"w": ...}}}}``
* the same inside ``{"params": ...}``, with or without an optimizer's state
* flat, most published checkpoints:       ``{"transformer/layer_0/attn/q_einsum": {"w": ...}}``
* stacked, layers of one attention type:  ``{"transformer/stacked_layers/attention_type_0/attn/q_einsum": ...}``

``text_tower`` turns all of them into one form: ``"layer_0/attn/q_einsum"``, with the library's own spelling
of each name, but without the last ``/w``, which only some forms have.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from langchain_gemma_jax.errors import CheckpointNotFoundError, CorruptCheckpointError, UnsupportedModelError
from langchain_gemma_jax.models.configuration.abstract import ITEM_BYTES
from langchain_gemma_jax.models.seams.tensor_source import TensorSource

_WRAPPERS = ("params/", "transformer/")
_TEXT = re.compile(r"(embedder|final_norm|stacked_layers|layer_\d+)(/|$)")
_MEDIA = re.compile(r"embedder/(mm|audio)_")  # projections of image and sound into the text tower
_PICTURES = re.compile(
    r"(params/)?((transformer/)?vision_encoder|SigLiPFromPatches_0)/siglip_encoder/(?P<tower>.+)"
    r"|(params/)?(transformer/)?embedder/(?P<projection>mm_(input_projection|soft_embedding_norm)/.+)"
)
_MOST_LAYERS = 1000
_STACKED = re.compile(r"stacked_layers/attention_type_(\d+)/(.+)")


@dataclass(frozen=True)
class StoredArray:
    """One array of a tree: its key in the source, and the facts that are known without reading it."""

    key: str
    shape: tuple[int, ...]
    dtype: str
    row: int | None = None  # the row of the stored array; None: all of it


class TowerSource(TensorSource):
    """A source of the text tower's arrays of one tree, on disk or in memory. Names are those of ``text_tower``."""

    def __init__(self, tree: Mapping[str, StoredArray], location: str) -> None:
        self.location = location
        self.tower = text_tower(tree, location)

    def names(self) -> Collection[str]:
        return self.tower.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        return self.tower[name].shape

    def dtype(self, name: str) -> str:
        return self.tower[name].dtype


def text_tower(tree: Mapping[str, StoredArray], location: str) -> dict[str, StoredArray]:
    """Return the text tower's arrays by plain name, without those for images, sound or an optimizer.

    The keys of ``tree`` are paths: nested mappings are joined by slashes, and a key may itself contain slashes.

    Raises ``CheckpointNotFoundError`` when there is no text tower in the tree, and
    ``UnsupportedModelError`` for one whose weights cannot be used as they are: with LoRA adapters,
    quantized, or a Gemma 3n's.
    """
    tower = {name: leaf for name, leaf in _unwrap(tree).items() if _TEXT.match(name) and not _MEDIA.match(name)}
    if "embedder/input_embedding" not in tower:
        roots = ", ".join(sorted({path.split("/")[0] for path in tree})[:8]) or "nothing"
        raise CheckpointNotFoundError(
            location,
            "a Gemma tree as Google's library writes it, with an embedder/input_embedding",
            roots,
            "A folder with the optimizer's state or with several models is not a model.",
        )
    _refuse_what_cannot_be_used(tower, location)
    return _unstack({name.removesuffix("/w"): leaf for name, leaf in tower.items()}, location)


def picture_tower(tree: Mapping[str, StoredArray]) -> dict[str, StoredArray]:
    """Return the arrays of Gemma 3's vision tower and its projection by plain name; empty for a text model."""
    matches = ((_PICTURES.fullmatch(path), leaf) for path, leaf in tree.items())
    return {match["tower"] or match["projection"]: leaf for match, leaf in matches if match is not None}


def _unwrap(tree: Mapping[str, StoredArray]) -> Mapping[str, StoredArray]:
    for wrapper in _WRAPPERS:
        inner = {path.removeprefix(wrapper): leaf for path, leaf in tree.items() if path.startswith(wrapper)}
        tree = inner or tree
    return tree


def _refuse_what_cannot_be_used(tower: Mapping[str, StoredArray], location: str) -> None:
    for name, leaf in tower.items():
        if re.search(r"/(altup|laurel)/", name):
            raise UnsupportedModelError(f"{location}: this is a Gemma 3n ({name}), which is not supported.")
        if "lora" in name.lower():
            raise UnsupportedModelError(
                f"{location}: found LoRA adapters ({name}), expected plain weights. Merge the adapters first: "
                "add each product of its two matrices to the weight beside it, and drop the adapters from the tree."
            )
        if leaf.dtype not in ITEM_BYTES or re.search(r"qat/|quantized|_IntEinsum", name, re.IGNORECASE):
            raise UnsupportedModelError(
                f"{location}: found quantized weights ({name}, {leaf.dtype}), expected one of "
                f"{', '.join(ITEM_BYTES)}. Use the checkpoint that it was made from."
            )


def _unstack(tower: Mapping[str, StoredArray], location: str) -> dict[str, StoredArray]:
    """Split stacked arrays into layers: row ``r`` of attention type ``t`` of ``n`` is layer ``r * n + t``."""
    stacked = {name: match for name in tower if (match := _STACKED.fullmatch(name))}
    types = 1 + max((int(match[1]) for match in stacked.values()), default=0)
    plain = {name: leaf for name, leaf in tower.items() if name not in stacked}
    for name, match in stacked.items():
        leaf = tower[name]
        if not leaf.shape or leaf.shape[0] > _MOST_LAYERS:
            raise CorruptCheckpointError(location, f"{name} of at most {_MOST_LAYERS} layers", f"{list(leaf.shape)}")
        for row in range(leaf.shape[0]):
            layer = row * types + int(match[1])
            plain[f"layer_{layer}/{match[2]}"] = replace(leaf, shape=leaf.shape[1:], row=row)
    return plain
