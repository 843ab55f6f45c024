"""What a checkpoint's configuration says of its encoders and of how pictures and sounds are prepared for them.

``config.json`` has the towers, and the processor's files have the rest: sizes, filters, budgets. A file that is not
there leaves what the models were published with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from langchain_gemma_jax.errors import UnsupportedModelError
from langchain_gemma_jax.models.configuration.config_fields import MOST_LAYERS, Fields, Raw
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.configuration.strict_json import short
from langchain_gemma_jax.models.vision.encoder import MediaEncoder, whole_root
from langchain_gemma_jax.models.vision.gemma3_pictures import SquarePictures
from langchain_gemma_jax.models.vision.resize import Filter
from langchain_gemma_jax.models.vision.siglip import Siglip
from langchain_gemma_jax.models.vision.support import MediaSupport

_FILTERS: Mapping[int, Filter] = {2: "bilinear", 3: "bicubic"}  # by the numbers that imaging libraries give them
_MOST_PIXELS_A_SIDE = 4096


@dataclass(frozen=True)
class Senses:
    """What a model can take beside text, and what makes soft tokens of it."""

    support: MediaSupport
    encoders: tuple[MediaEncoder, ...]


@dataclass(frozen=True)
class MediaFiles:
    """What is known of a checkpoint with encoders: its files' content, the text tower, how it encodes text."""

    config: Raw
    processor: Raw  # of pictures
    location: str  # of config.json, for messages
    text: ModelConfig
    encode: Callable[[str], list[int]]


def senses_of(files: MediaFiles) -> Senses | None:
    """Return what a model can see and hear. None: nothing, it reads text alone.

    Raises:
        ConfigError, UnsupportedModelError: its configuration says something that cannot be, or is not implemented.
    """
    reader = _READERS.get(str(files.config.get("model_type")))
    if reader is None or files.config.get("vision_config") is None:
        return None
    return reader(files)


def _gemma3(files: MediaFiles) -> Senses:
    outer = Fields(files.config, {}, files.location)
    where = f"{files.location} (vision_config)"
    f = Fields(outer.table("vision_config"), {}, where)
    f.refuse("model_type", "Gemma 3's tower is a SigLIP", "siglip_vision_model")
    f.refuse("hidden_act", "its activation is gelu_pytorch_tanh", "gelu_pytorch_tanh")
    side, patch = f.size("image_size", 224, _MOST_PIXELS_A_SIDE), f.size("patch_size", 16, _MOST_PIXELS_A_SIDE)
    width, heads = f.size("hidden_size", 768), f.size("num_attention_heads", 12)
    if width % heads:
        raise f.error("hidden_size", f"a multiple of the {heads} heads", width)
    soft = outer.size("mm_tokens_per_image", 256)
    a_side = whole_root(soft)
    if a_side is None or not 1 <= a_side <= side // patch:
        raise outer.error("mm_tokens_per_image", f"a square number up to {(side // patch) ** 2}", soft)
    p = Fields(files.processor, {}, f"{files.location} (preprocessor)")
    size = p.table("size")
    if size and (size.get("height"), size.get("width")) != (side, side):
        raise p.error("size", f"{side} by {side}, as the tower has it", dict(size))
    encoder = Siglip(
        side=side,
        patch=patch,
        width=width,
        depth=f.size("num_hidden_layers", 12, MOST_LAYERS),
        heads=heads,
        ffw_width=f.size("intermediate_size", 3072),
        eps=f.positive("layer_norm_eps", 1e-6),
        tokens_a_side=a_side,
        text_width=files.text.width,
        scale=p.positive("rescale_factor", 1 / 255),
        mean=_three(p, "image_mean"),
        deviation=_three(p, "image_std"),
    )
    paragraph = tuple(files.encode("\n\n"))
    begin, end = (outer.token_ids(name, (default,))[0] for name, default in _GEMMA3_MARKS.items())
    pictures = SquarePictures(
        side=side,
        soft_tokens=soft,
        before=(*paragraph, begin),
        placeholder=_placeholder(outer, "image_token_index", 262144, files.text),
        after=(end, *paragraph),
        filter=_filter(p, "bilinear"),
    )
    return Senses(MediaSupport(pictures), (encoder,))


_GEMMA3_MARKS = {"boi_token_index": 255999, "eoi_token_index": 256000}


def _placeholder(outer: Fields, name: str, default: int, text: ModelConfig) -> int:
    """The id of a soft token. A vocabulary without it takes the padding's: nothing looks it up."""
    found = outer.token_ids(name, (default,))[0]
    return found if found < text.vocab_size else text.pad_id


def _three(p: Fields, name: str) -> tuple[float, ...]:
    """One number for each colour."""
    value = p.raw.get(name)
    if value is None:
        return (0.5, 0.5, 0.5)
    if not isinstance(value, list) or len(value) != 3 or not all(isinstance(each, float | int) for each in value):
        raise p.error(name, "three numbers", value)
    return tuple(float(each) for each in value)


def _filter(p: Fields, default: Filter) -> Filter:
    value = p.raw.get("resample")
    if value is None:
        return default
    if not isinstance(value, int) or value not in _FILTERS:
        raise UnsupportedModelError(
            f"{p.location}: expected resample to be 2 (bilinear) or 3 (bicubic), found {short(value)}."
        )
    return _FILTERS[value]


_READERS: Mapping[str, Callable[[MediaFiles], Senses]] = {"gemma3": _gemma3}
