"""The metadata of an mmproj file as fields of a ``config.json``, with what only its tensors show.

Values that are in neither are the same for all models of a kind. They are constants here, as in other readers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langchain_gemma_jax.errors import ConfigError, TensorMismatchError, UnsupportedModelError
from langchain_gemma_jax.models.configuration.config_fields import Raw
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.configuration.strict_json import short
from langchain_gemma_jax.models.encoders.mmproj_inputs import PICTURES, SOUNDS
from langchain_gemma_jax.models.gguf.fields import Metadata
from langchain_gemma_jax.models.gguf.gguf_source import GgufSource
from langchain_gemma_jax.models.hearing.spectrogram import PITCHES
from langchain_gemma_jax.models.seams.media_encoder import LIMITS
from langchain_gemma_jax.models.tokenizer import Tokenizer
from langchain_gemma_jax.models.vision.media_config import MediaFiles

ARCHITECTURE = "clip"
READ = {"gemma3": "gemma3", "gemma4v": "gemma4", "gemma4uv": "gemma4"}
"""The picture projectors that are read, and the generation of their text models."""
_HEARD = {"gemma4v": "gemma4a", "gemma4uv": "gemma4ua"}  # the sound projector that may come with a picture projector
_DOWN = "v.blk.0.ffn_down.weight"  # from feed_forward_length inputs to embedding_length outputs
ADVICE = "To use the model for text alone, move this file out of its folder."


class Projector:
    """Typed look-ups in one open mmproj file."""

    def __init__(self, source: GgufSource) -> None:
        """Check the kind of an open file.

        Raises:
            UnsupportedModelError: it is no mmproj file, or one of a kind that is not read.
        """
        self.source, self.metadata = source, Metadata(source.header, source.location)
        self.location = source.location
        if self.metadata.architecture != ARCHITECTURE:
            found = short(self.metadata.architecture or "none")
            raise UnsupportedModelError(
                f"{self.location}: expected a file of encoders (general.architecture {ARCHITECTURE!r}), as its name "
                f"says, found {found}. {ADVICE}"
            )
        self.kind = next(filter(None, (self.metadata.text(key, "") for key in PICTURES)), "")
        self.heard = next(filter(None, (self.metadata.text(key, "") for key in SOUNDS)), "")
        if self.kind not in READ or self.heard not in {"", _HEARD.get(self.kind)}:
            found = " and ".join(filter(None, (self.kind, self.heard))) or "none"
            raise UnsupportedModelError(
                f"{self.location}: expected a projector type that is read here ({', '.join(READ)}; of sounds "
                f"{', '.join(_HEARD.values())}), found {short(found)}. {ADVICE}"
            )

    def misfit(self, text: ModelConfig) -> str | None:
        """Return why the encoders do not fit a text model. None: they may fit."""
        if (generation := READ[self.kind]) != text.generation:
            return f"encoders of a {generation}, and the text model is a {text.generation}"
        if (width := self.size("vision", "projection_dim")) != text.width:
            return f"vectors of {width} numbers, and the text model's have {text.width}"
        return None

    def size(self, sense: str, name: str, default: int | None = None) -> int:
        """Return a required whole number."""
        key = f"clip.{sense}.{name}"
        value = self.metadata.whole(key, default)
        if value is None:
            raise ConfigError(f"{self.location}: expected a value of {key}, found none.")
        return value

    def shape(self, name: str, rank: int) -> tuple[int, ...]:
        """Return the shape of a required tensor."""
        if name not in self.source.names():
            raise TensorMismatchError(self.location, f"a tensor {name!r}", "no tensor of that name")
        shape = self.source.shape(name)
        if len(shape) != rank:
            raise TensorMismatchError(self.location, f"{name!r} with {rank} axes", f"the shape {list(shape)}")
        return shape

    def has(self, name: str) -> bool:
        """Return True if the file has a tensor of this name."""
        return name in self.source.names()

    @property
    def swapped(self) -> bool:
        """True if the names of a layer's two matrices are swapped, as an early converter wrote them."""
        if self.kind != "gemma3" or not self.has(_DOWN):
            return False
        return self.shape(_DOWN, 2) == (
            self.size("vision", "feed_forward_length"),
            self.size("vision", "embedding_length"),
        )

    def each_color(self, name: str, default: float) -> list[float]:
        """Return the value for each color."""
        values = self.metadata.numbers(f"clip.vision.{name}")
        return [default] * 3 if values is None else [float(each) for each in values]

    def eps(self, sense: str) -> float:
        """Return the epsilon of norms."""
        return self.metadata.number(f"clip.{sense}.attention.layer_norm_epsilon") or 1e-6


def media_files(projector: Projector, text: ModelConfig, tokenizer: Tokenizer) -> MediaFiles:
    """Return the facts on a model's encoders, as from a folder with a ``config.json`` and a processor's file.

    Raises:
        ConfigError, TensorMismatchError, UnsupportedModelError: a value is wrong or not implemented.
    """
    raw, processor = _READERS[projector.kind](projector, text)
    marks = _MARKS[READ[projector.kind]]
    ids = {name: _id(projector, tokenizer, token) for name, (token, sense) in marks.items() if sense in raw}
    location = f"{projector.location} (its metadata in the words of config.json)"
    return MediaFiles({**raw, **ids}, processor, location, text, tokenizer.encode_text)


# The fields of config.json for the ids of soft tokens and of the tokens around them: the token's string in the
# vocabulary, and the section that must be present.
_SEEN, _SOUND = "vision_config", "audio_config"
_MARKS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "gemma3": {
        "boi_token_index": ("<start_of_image>", _SEEN),
        "eoi_token_index": ("<end_of_image>", _SEEN),
    },
    "gemma4": {
        "boi_token_id": ("<|image>", _SEEN),
        "image_token_id": ("<|image|>", _SEEN),
        "eoi_token_id": ("<image|>", _SEEN),
        "boa_token_id": ("<|audio>", _SOUND),
        "audio_token_id": ("<|audio|>", _SOUND),
        "eoa_token_index": ("<audio|>", _SOUND),
    },
}


def _id(projector: Projector, tokenizer: Tokenizer, token: str) -> int:
    token_id = tokenizer.control_id(token)
    if token_id is None:
        raise UnsupportedModelError(
            f"{projector.location}: expected a text model whose vocabulary has {token}, which stands beside what these "
            f"encoders make, found one without it. {ADVICE}"
        )
    return token_id


def _gemma3(f: Projector, text: ModelConfig) -> tuple[Raw, Raw]:
    del text  # it does not matter here
    side, patch = f.size("vision", "image_size"), f.size("vision", "patch_size")
    tokens_a_side = side // max(1, patch) // max(1, f.size("vision", "projector.scale_factor", 4))
    vision = {
        "model_type": "siglip_vision_model",
        "image_size": side,
        "patch_size": patch,
        "hidden_size": f.size("vision", "embedding_length"),
        "intermediate_size": f.size("vision", "feed_forward_length"),
        "num_hidden_layers": f.size("vision", "block_count"),
        "num_attention_heads": f.size("vision", "attention.head_count"),
        "layer_norm_eps": f.eps("vision"),
    }
    raw = {"model_type": "gemma3", "vision_config": vision, "mm_tokens_per_image": tokens_a_side**2}
    return raw, {"image_mean": f.each_color("image_mean", 0.5), "image_std": f.each_color("image_std", 0.5)}


def _gemma4(f: Projector, text: ModelConfig) -> tuple[Raw, Raw]:
    heads = max(1, f.size("vision", "attention.head_count"))
    head_dim = f.shape("v.blk.0.attn_q.weight", 2)[0] // heads
    vision = {
        "model_type": "gemma4_vision",
        "patch_size": f.size("vision", "patch_size"),
        "pooling_kernel_size": f.size("vision", "projector.scale_factor", 3),
        "hidden_size": f.size("vision", "embedding_length"),
        "intermediate_size": f.size("vision", "feed_forward_length"),
        "num_hidden_layers": f.size("vision", "block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": f.shape("v.blk.0.attn_k.weight", 2)[0] // max(1, head_dim),
        "head_dim": head_dim,
        "position_embedding_size": f.shape("v.position_embd.weight", 3)[1],
        "rms_norm_eps": f.eps("vision"),
        "use_clipped_linears": f.has(f"v.blk.0.attn_q.{LIMITS[0]}"),
        "standardize": f.has("v.std_bias"),
    }
    _check_colors(f)
    # A picture's tokens see each other in the sizes that have no inputs for each layer.
    sight = None if text.per_layer_input is not None else "vision"
    raw: dict[str, Any] = {
        "model_type": "gemma4",
        "vision_config": vision,
        "text_config": {"use_bidirectional_attention": sight},
    }
    if f.heard:
        raw["audio_config"] = _conformer(f)
    return raw, {}


def _conformer(f: Projector) -> Raw:
    if (pitches := f.size("audio", "num_mel_bins", PITCHES)) != PITCHES:
        raise f.metadata.error("clip.audio.num_mel_bins", f"{PITCHES}", pitches)
    return {
        "model_type": "gemma4_audio",
        "hidden_size": f.size("audio", "embedding_length"),
        "num_hidden_layers": f.size("audio", "block_count"),
        "num_attention_heads": f.size("audio", "attention.head_count"),
        "subsampling_conv_channels": [f.shape(f"a.conv1d.{index}.weight", 4)[0] for index in range(2)],
        "conv_kernel_size": f.shape("a.blk.0.conv_dw.weight", 2)[1],
        "output_proj_dims": f.shape("a.pre_encode.out.weight", 2)[0],
        "rms_norm_eps": f.eps("audio"),
        "use_clipped_linears": f.has(f"a.blk.0.attn_q.{LIMITS[0]}"),
    }


def _gemma4_unified(f: Projector, text: ModelConfig) -> tuple[Raw, Raw]:
    del text  # in all sizes of this kind, the tokens of a picture see each other
    vision = {
        "patch_size": f.size("vision", "patch_size"),
        "pooling_kernel_size": f.size("vision", "projector.scale_factor", 3),
        "mm_embed_dim": f.size("vision", "embedding_length"),
        "mm_posemb_size": f.shape("v.position_embd.weight", 3)[1],
        "rms_norm_eps": f.eps("vision"),
    }
    _check_colors(f)
    raw: dict[str, Any] = {"model_type": "gemma4_unified", "vision_config": vision}
    if f.heard:
        frame = f.shape("mm.a.input_projection.weight", 2)[1]
        raw["audio_config"] = {"audio_embed_dim": frame, "rms_norm_eps": f.eps("audio")}
    return raw, {}


def _check_colors(f: Projector) -> None:
    """Refuse a file that normalizes pixels for a model that does so itself."""
    for name, harmless in (("image_mean", 0.0), ("image_std", 1.0)):
        if (found := f.each_color(name, harmless)) != [harmless] * 3:
            raise f.metadata.error(f"clip.vision.{name}", f"three times {harmless:g}", found)


_READERS: Mapping[str, Callable[[Projector, ModelConfig], tuple[Raw, Raw]]] = {
    "gemma3": _gemma3,
    "gemma4v": _gemma4,
    "gemma4uv": _gemma4_unified,
}
