"""The encoders of a checkpoint's configuration, and the preparation of pictures and sounds for them.

``config.json`` has the towers, and the processor's files have the rest: sizes, filters, budgets. If such a file is
absent, the values of the published models are used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from langchain_gemma_jax.errors import UnsupportedModelError
from langchain_gemma_jax.media.pictures import Filter
from langchain_gemma_jax.models.configuration.config_fields import MOST_LAYERS, Fields, Raw
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.configuration.strict_json import short
from langchain_gemma_jax.models.hearing.conformer import Conformer
from langchain_gemma_jax.models.hearing.spectrogram import PITCHES, SpectralSounds
from langchain_gemma_jax.models.seams.media_encoder import MediaEncoder, Sight, whole_root
from langchain_gemma_jax.models.seams.media_support import MediaSupport
from langchain_gemma_jax.models.vision.gemma3_pictures import SquarePictures
from langchain_gemma_jax.models.vision.gemma4_rules import BUDGETS, FramedSounds, PatchedPictures
from langchain_gemma_jax.models.vision.gemma4_tower import Gemma4Tower
from langchain_gemma_jax.models.vision.projections import EachPatch, Pooled, Projection
from langchain_gemma_jax.models.vision.siglip import Siglip
from langchain_gemma_jax.models.vision.unified import UnifiedPictures, UnifiedSounds

_FILTERS: Mapping[int, Filter] = {2: "bilinear", 3: "bicubic"}  # by the numbers that imaging libraries give them
_MOST_PIXELS_A_SIDE = 4096


@dataclass(frozen=True)
class Senses:
    """The pictures and sounds that a model can take, and the encoders for them."""

    support: MediaSupport
    encoders: tuple[MediaEncoder, ...]


@dataclass(frozen=True)
class MediaFiles:
    """The facts on a checkpoint with encoders: its files' content, its text tower, its text encoding."""

    config: Raw
    processor: Raw  # of pictures
    location: str  # of config.json, for messages
    text: ModelConfig
    encode: Callable[[str], list[int]]


def senses_of(files: MediaFiles) -> Senses | None:
    """Return the encoders of a model. None: it reads text alone.

    Raises:
        ConfigError, UnsupportedModelError: a value of its configuration is wrong or not implemented.
    """
    reader = _READERS.get(str(files.config.get("model_type")))
    if reader is None or files.config.get("vision_config") is None:
        return None
    return reader(files)


def _gemma3(files: MediaFiles) -> Senses:
    outer = Fields(files.config, {}, files.location)
    soft = outer.size("mm_tokens_per_image", 256)
    a_side = whole_root(soft)
    f, p = _siglip_fields(outer, files)
    encoder = _siglip(f, p, Pooled(a_side or 1), files.text.width)
    if a_side is None or not 1 <= a_side <= encoder.patches_a_side:
        raise outer.error("mm_tokens_per_image", f"a square number up to {encoder.patches_a_side**2}", soft)
    paragraph = tuple(files.encode("\n\n"))
    begin, end = (outer.token_ids(name, (default,))[0] for name, default in _GEMMA3_MARKS.items())
    pictures = SquarePictures(
        side=encoder.side,
        soft_tokens=soft,
        before=(*paragraph, begin),
        placeholder=_placeholder(outer, "image_token_index", 262144, files.text),
        after=(end, *paragraph),
        filter=_filter(p, "bilinear"),
    )
    return Senses(MediaSupport(pictures), (encoder,))


def _paligemma(files: MediaFiles) -> Senses:
    outer = Fields(files.config, {}, files.location)
    f, p = _siglip_fields(outer, files)
    soft = EachPatch()
    encoder = replace(_siglip(f, p, soft, files.text.width), sight=Sight.PREFIX, most_words=_MOST_WORDS)
    if (width := outer.size("projection_dim", 2048)) != files.text.width:
        raise outer.error("projection_dim", f"the width of the text model, {files.text.width}", width)
    if p.size("image_seq_length", encoder.most_soft_tokens) != encoder.most_soft_tokens:
        found = p.raw["image_seq_length"]
        raise p.error("image_seq_length", f"{encoder.most_soft_tokens}, one for each patch of the tower", found)
    pictures = SquarePictures(
        side=encoder.side,
        soft_tokens=encoder.most_soft_tokens,
        before=(),
        placeholder=_placeholder(outer, "image_token_index", 256000, files.text),
        after=(),
        filter=_filter(p, "bicubic"),
    )
    return Senses(MediaSupport(pictures), (encoder,))


_MOST_WORDS = 512  # tokens of a question: the models were trained with 128 at most


def _siglip_fields(outer: Fields, files: MediaFiles) -> tuple[Fields, Fields]:
    """Return the tower's fields, and the processor's."""
    f = Fields(outer.table("vision_config"), {}, f"{files.location} (vision_config)")
    return f, Fields(files.processor, {}, f"{files.location} (preprocessor)")


def _siglip(f: Fields, p: Fields, projection: Projection, text_width: int) -> Siglip:
    f.refuse("model_type", "this model's tower is a SigLIP", "siglip_vision_model")
    f.refuse("hidden_act", "its activation is gelu_pytorch_tanh", "gelu_pytorch_tanh")
    side, patch = f.size("image_size", 224, _MOST_PIXELS_A_SIDE), f.size("patch_size", 16, _MOST_PIXELS_A_SIDE)
    width, heads = f.size("hidden_size", 768), f.size("num_attention_heads", 12)
    if width % heads:
        raise f.error("hidden_size", f"a multiple of the {heads} heads", width)
    if patch > side:
        raise f.error("patch_size", f"at most the picture's {side} pixels", patch)
    size = p.table("size")
    if size and (size.get("height"), size.get("width")) != (side, side):
        raise p.error("size", f"{side} by {side}, as the tower has it", dict(size))
    return Siglip(
        side=side,
        patch=patch,
        width=width,
        depth=f.size("num_hidden_layers", 12, MOST_LAYERS),
        heads=heads,
        ffw_width=f.size("intermediate_size", 3072),
        eps=f.positive("layer_norm_eps", 1e-6),
        projection=projection,
        text_width=text_width,
        scale=p.positive("rescale_factor", 1 / 255),
        mean=_three(p, "image_mean"),
        deviation=_three(p, "image_std"),
    )


_GEMMA3_MARKS = {"boi_token_index": 255999, "eoi_token_index": 256000}


def _placeholder(outer: Fields, name: str, default: int, text: ModelConfig) -> int:
    """Return the id of a soft token. If the vocabulary lacks it, that of padding is used: it is never looked up."""
    token_id = outer.token_ids(name, (default,))[0]
    return token_id if token_id < text.vocab_size else text.pad_id


def _three(p: Fields, name: str) -> tuple[float, ...]:
    """Return one number for each color."""
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


def _gemma4(files: MediaFiles) -> Senses:
    outer = Fields(files.config, {}, files.location)
    f = Fields(outer.table("vision_config"), {}, f"{files.location} (vision_config)")
    f.refuse("hidden_activation", "its activation is gelu_pytorch_tanh", "gelu_pytorch_tanh")
    f.refuse("attention_bias", "its projections have no biases")
    ropes = Fields(f.table("rope_parameters"), {}, f.location)
    ropes.refuse("rope_type", "its heads are turned by column and row", "axial", "default")
    heads, head_dim = f.size("num_attention_heads", 12), f.size("head_dim", 64)
    kv_heads = f.size("num_key_value_heads", 12)
    if heads % kv_heads or head_dim % 4:
        raise f.error("num_key_value_heads", f"a divisor of the {heads} heads, whose size 4 divides", kv_heads)
    patch, pool = f.size("patch_size", 16, _MOST_PIXELS_A_SIDE), f.size("pooling_kernel_size", 3, _MOST_PIXELS_A_SIDE)
    encoder = Gemma4Tower(
        budgets=BUDGETS,
        patch=patch,
        pool=pool,
        width=f.size("hidden_size", 768),
        depth=f.size("num_hidden_layers", 16, MOST_LAYERS),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        ffw_width=f.size("intermediate_size", 3072),
        places=f.size("position_embedding_size", 10240),
        theta=ropes.positive("rope_theta", 100.0),
        eps=f.positive("rms_norm_eps", 1e-6),
        clipped=f.get("use_clipped_linears", False),
        standardized=f.get("standardize", False),
        text_width=files.text.width,
        sight=_sight(outer, None),
        scale=Fields(files.processor, {}, files.location).positive("rescale_factor", 1 / 255),
    )
    seen = _patched(outer, files, patch, pool, merged=False)
    if outer.raw.get("audio_config") is None:
        return Senses(MediaSupport(seen), (encoder,))
    heard = SpectralSounds(
        sizes=_FRAMES,
        before=outer.token_ids("boa_token_id", (256000,)),
        placeholder=_placeholder(outer, "audio_token_id", 258881, files.text),
        after=outer.token_ids("eoa_token_index", (258883,)),
    )
    return Senses(MediaSupport(seen, heard), (encoder, _conformer(outer, files)))


def _conformer(outer: Fields, files: MediaFiles) -> Conformer:
    f = Fields(outer.table("audio_config"), {}, f"{files.location} (audio_config)")
    f.refuse("hidden_act", "its activation is silu", "silu")
    f.refuse("attention_context_right", "it hears nothing that is still to come", 0)
    width, heads = f.size("hidden_size", 1024), f.size("num_attention_heads", 8)
    channels = f.raw.get("subsampling_conv_channels", [128, 32])
    if (
        not isinstance(channels, list)
        or len(channels) != 2
        or not all(type(each) is int and each > 0 for each in channels)
    ):
        raise f.error("subsampling_conv_channels", "two numbers", channels)
    if width % (2 * heads) or channels[0] != PITCHES:
        raise f.error("hidden_size", f"a multiple of twice the {heads} heads, and {PITCHES} channels first", width)
    back = f.size("attention_context_left", 13)
    return Conformer(
        tokens=_FRAMES,
        width=width,
        depth=f.size("num_hidden_layers", 12, MOST_LAYERS),
        heads=heads,
        channels=(channels[0], channels[1]),
        kernel=f.size("conv_kernel_size", 5),
        back=max(1, back - 1),
        reach=(f.size("attention_chunk_size", 12) + back - 1) // 2 + 1,
        cap=f.positive("attention_logit_cap", 50.0),
        residual=f.positive("residual_weight", 0.5),
        eps=f.positive("rms_norm_eps", 1e-6),
        clipped=f.get("use_clipped_linears", True),
        output_width=f.size("output_proj_dims", 1536),
        text_width=files.text.width,
    )


def _gemma4_unified(files: MediaFiles) -> Senses:
    outer = Fields(files.config, {}, files.location)
    f = Fields(outer.table("vision_config"), {}, f"{files.location} (vision_config)")
    patch, pool = f.size("patch_size", 16, _MOST_PIXELS_A_SIDE), f.size("pooling_kernel_size", 3, _MOST_PIXELS_A_SIDE)
    width = f.size("mm_embed_dim", 3840)
    if f.size("output_proj_dims", width) != width:
        raise f.error("output_proj_dims", f"mm_embed_dim, {width}", f.raw["output_proj_dims"])
    pictures = UnifiedPictures(
        budgets=BUDGETS,
        patch_numbers=3 * (patch * pool) ** 2,
        width=width,
        places=f.size("mm_posemb_size", 1120),
        text_width=files.text.width,
        eps=f.positive("rms_norm_eps", 1e-6),
        sight=_sight(outer, "vision"),
        scale=Fields(files.processor, {}, files.location).positive("rescale_factor", 1 / 255),
    )
    seen = _patched(outer, files, patch, pool, merged=True)
    if outer.raw.get("audio_config") is None:
        return Senses(MediaSupport(seen), (pictures,))
    a = Fields(outer.table("audio_config"), {}, f"{files.location} (audio_config)")
    frame = a.size("audio_embed_dim", 640)
    sounds = UnifiedSounds(_FRAMES, frame, files.text.width, a.positive("rms_norm_eps", 1e-6))
    heard = FramedSounds(
        frame=frame,
        sizes=_FRAMES,
        before=outer.token_ids("boa_token_id", (256000,)),
        placeholder=_placeholder(outer, "audio_token_id", 258881, files.text),
        after=outer.token_ids("eoa_token_index", (258883,)),
    )
    return Senses(MediaSupport(seen, heard), (pictures, sounds))


_FRAMES = (50, 250, 750)  # of 40 ms: 2, 10 and 30 seconds, which is the most that these models hear at once


def _patched(outer: Fields, files: MediaFiles, patch: int, pool: int, *, merged: bool) -> PatchedPictures:
    p = Fields(files.processor, {}, f"{files.location} (preprocessor)")
    budget = p.size("max_soft_tokens", 280)
    if budget not in BUDGETS:
        raise p.error("max_soft_tokens", f"one of {', '.join(map(str, BUDGETS))}", budget)
    for name, own in (("patch_size", patch), ("pooling_kernel_size", pool)):
        if p.size(name, own) != own:
            raise p.error(name, f"{own}, as the tower has it", p.raw[name])
    p.refuse("do_normalize", "the model itself moves pixels to where it wants them")
    return PatchedPictures(
        budget=budget,
        patch=patch,
        pool=pool,
        merged=merged,
        before=outer.token_ids("boi_token_id", (255999,)),
        placeholder=_placeholder(outer, "image_token_id", 258880, files.text),
        after=outer.token_ids("eoi_token_id", (258882,)),
        filter=_filter(p, "bicubic"),
    )


def _sight(outer: Fields, default: str | None) -> Sight:
    """Return the attention among a picture's tokens, which the text tower's configuration sets."""
    text = outer.table("text_config")
    return Sight.LOCAL if text.get("use_bidirectional_attention", default) == "vision" else Sight.CAUSAL


_READERS: Mapping[str, Callable[[MediaFiles], Senses]] = {
    "gemma3": _gemma3,
    "shieldgemma2": _gemma3,
    "paligemma": _paligemma,
    "gemma4": _gemma4,
    "gemma4_unified": _gemma4_unified,
}
