"""GGUF files of tiny models, written with the format's own package, and the dense models that they stand for.

Names and metadata are written out here from what llama.cpp's converter does, so that a mistake in the package's own
tables cannot hide behind the same mistake in its tests.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import gguf
import ml_dtypes
import numpy as np
import sentencepiece
import tokenizers

from langchain_gemma_jax.models.configuration.abstract import abstract, walk
from langchain_gemma_jax.models.configuration.model_config import (
    LayerConfig,
    ModelConfig,
    MoeConfig,
    PerLayerInputConfig,
    Rope,
)
from langchain_gemma_jax.models.tokenizer.sentencepiece_model import piece_types

WIDTH, HEADS, FFW, VOCABULARY = 256, 4, 256, 320
QUANTIZED = (
    "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K", "Q2_K", "Q3_K", "IQ4_NL", "IQ4_XS", "IQ3_S",
    "IQ3_XXS", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_M", "IQ1_S", "TQ1_0", "TQ2_0", "MXFP4", "NVFP4", "Q1_0",
)  # fmt: skip
KINDS = ("F32", "F16", "BF16", *QUANTIZED)

_PLAIN = {
    "vocab_size": VOCABULARY, "width": WIDTH, "heads": HEADS, "max_context": 512, "attention_scale": 64**-0.5,
    "norm_offset": 0.0, "eos_ids": (1,),
}  # fmt: skip
_GEMMA3 = _PLAIN | {"post_norms": True, "qk_norm": True}
_GEMMA4 = _GEMMA3 | {"v_norm": True, "layer_scale": True, "attention_scale": 1.0, "logits_softcap": 30.0}


def layer(window: int | None = None, **changes: object) -> LayerConfig:
    values = {"kv_heads": 2, "head_dim": 64, "ffw_width": FFW, "rope": Rope(10_000.0), "window": window} | changes
    return LayerConfig(**values)  # type: ignore[arg-type]


_GLOBAL = Rope(1e6, rotated_share=0.25)
CONFIGS = {
    "gemma": ModelConfig("gemma", layers=(layer(kv_heads=1),) * 2, **_PLAIN),
    "gemma, untied": ModelConfig("gemma", layers=(layer(kv_heads=4),) * 2, tied_head=False, **_PLAIN),
    "gemma2": ModelConfig(
        "gemma2", layers=(layer(8), layer()), post_norms=True, attention_softcap=50.0, logits_softcap=30.0, **_PLAIN
    ),
    "gemma3": ModelConfig("gemma3", layers=(layer(8), layer(rope=Rope(1e6, position_scale=8.0))), **_GEMMA3),
    "gemma4, per-layer inputs and shared KV": ModelConfig(
        "gemma4",
        layers=(
            layer(8),
            layer(head_dim=128, rope=_GLOBAL),
            layer(8, kv_from=0, ffw_width=2 * FFW),
            layer(head_dim=128, kv_from=1, ffw_width=2 * FFW, rope=_GLOBAL),
        ),
        per_layer_input=PerLayerInputConfig(64, VOCABULARY),
        **_GEMMA4,
    ),
    "gemma4, the key as value": ModelConfig(
        "gemma4", layers=(layer(8), layer(kv_heads=1, head_dim=128, k_eq_v=True, rope=_GLOBAL)), **_GEMMA4
    ),
    "gemma4, experts": ModelConfig(
        "gemma4",
        layers=(layer(8), layer(kv_heads=1, head_dim=128, k_eq_v=True, rope=_GLOBAL)),
        moe=MoeConfig(experts=3, experts_per_token=2, ffw_width=256),
        **_GEMMA4,
    ),
}

_OF_MODEL = {
    "embed": "token_embd.weight", "head": "output.weight", "final_norm": "output_norm.weight",
    "ple_embed": "per_layer_token_embd.weight", "ple_in": "per_layer_model_proj.weight",
    "ple_in_norm": "per_layer_proj_norm.weight", "dense_0": "dense_2.weight", "dense_1": "dense_3.weight",
}  # fmt: skip
_OF_LAYER = {
    "attn_norm": "attn_norm.weight", "attn_out": "attn_output.weight", "q_norm": "attn_q_norm.weight",
    "k_norm": "attn_k_norm.weight", "post_attn_norm": "post_attention_norm.weight", "ffw_norm": "ffn_norm.weight",
    "down": "ffn_down.weight", "post_ffw_norm": "post_ffw_norm.weight", "dense_post_norm": "post_ffw_norm_1.weight",
    "moe_norm": "pre_ffw_norm_2.weight", "moe_post_norm": "post_ffw_norm_2.weight",
    "router_scale": "ffn_gate_inp.scale", "router": "ffn_gate_inp.weight", "expert_scale": "ffn_down_exps.scale",
    "experts_gate_up": "ffn_gate_up_exps.weight", "experts_down": "ffn_down_exps.weight", "ple_gate": "inp_gate.weight",
    "ple_out": "proj.weight", "ple_norm": "post_norm.weight", "scale": "layer_output_scale.weight",
}  # fmt: skip

_OWN = {"ffn_gate_inp.scale", "ffn_down_exps.scale"}  # arrays of a model: the converter makes one of two factors


def tensors_of(config: ModelConfig, path: tuple, *, experts_apart: bool = False) -> list[tuple[str, int | None]]:
    """The stored tensors of one array, with the outputs of each; None: all of them."""
    if len(path) == 1:
        return [(_OF_MODEL[path[0]], None)]
    _, index, key = path
    one, at = config.layers[index], f"blk.{index}."
    if key == "qkv":
        found = [(f"{at}attn_q.weight", config.heads * one.head_dim)]
        if one.kv_from is None:
            found += [(f"{at}attn_{n}.weight", one.kv_heads * one.head_dim) for n in ("k" if one.k_eq_v else "kv")]
        return found
    if key == "gate_up":
        return [(f"{at}ffn_gate.weight", one.ffw_width), (f"{at}ffn_up.weight", one.ffw_width)]
    if key == "experts_gate_up" and experts_apart:
        return [(f"{at}ffn_{name}_exps.weight", config.moe.ffw_width) for name in ("gate", "up")]
    return [(at + _OF_LAYER[key], None)]


def random_blocks(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """A matrix of ordinary size in a block format: bytes as in a file, ``[..., bytes of a row]``."""
    size = shape[-1] ** -0.5
    if kind == "INT4":
        raw = random_blocks("Q4_0", shape, rng).reshape(*shape[:-1], -1, 18)
        scales = raw[..., :2].copy().view(np.float16).astype(ml_dtypes.bfloat16)
        return np.concatenate([scales.view(np.uint8), raw[..., 2:]], -1).reshape(*shape[:-1], -1)
    if (places := _SCALES.get(kind)) is None:
        return gguf.quantize((rng.standard_normal(shape) * size).astype(np.float32), gguf.GGMLQuantizationType[kind])
    elements, nbytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    raw = rng.integers(0, 256, (*shape[:-1], shape[-1] // elements, nbytes), dtype=np.uint8)
    lead = raw.shape[:-1]
    if kind == "NVFP4":  # floats of eight bits
        raw[..., :4] = gguf.quants.NVFP4.fp32_to_ue4m3(
            (size / 3 * rng.uniform(0.5, 1.5, (*lead, 4))).astype(np.float32)
        )
    for at, most in places:
        scales = (size / most * rng.uniform(0.5, 1.5, lead)).astype(np.float16)
        if kind == "IQ1_M":  # four bits in each of four words
            bits = scales.view(np.uint16)
            for word in range(4):
                top = raw[..., at + 2 * word + 1]
                top[...] = (top & 15) | ((bits >> (4 * word)) << 4).astype(np.uint8)
        else:
            raw[..., at : at + 2] = scales[..., None].view(np.uint8)
    return raw.reshape(*shape[:-1], -1)


# Formats that the format's own package cannot write: where a block's scales are, and the size of what they multiply.
_SCALES = {
    "Q4_K": ((0, 255), (2, 34)), "Q5_K": ((0, 527), (2, 34)), "Q6_K": ((208, 1350),), "Q2_K": ((80, 12), (82, 12)),
    "Q3_K": ((108, 45),), "IQ4_NL": ((0, 70),), "IQ4_XS": ((0, 1200),), "IQ3_S": ((0, 150),), "IQ3_XXS": ((0, 160),),
    "IQ2_S": ((0, 60),), "IQ2_XS": ((0, 60),), "IQ2_XXS": ((0, 60),), "IQ1_M": ((48, 6),), "IQ1_S": ((0, 6),),
    "Q1_0": ((0, 1),), "NVFP4": (),
}  # fmt: skip


def dequantize(raw: np.ndarray, kind: gguf.GGMLQuantizationType) -> np.ndarray:
    """The numbers of blocks ``[..., bytes of a row]``, by the format's own package."""
    if kind.name != "Q1_0":
        return gguf.dequantize(raw, kind)
    blocks = raw.reshape(*raw.shape[:-1], -1, 18)  # known to the package by its size alone: a scale, and a sign each
    signs = np.where(np.unpackbits(blocks[..., 2:], axis=-1, bitorder="little"), np.float32(1), np.float32(-1))
    scales = blocks[..., :2].copy().view(np.float16).astype(np.float32)
    return (scales * signs).reshape(*raw.shape[:-1], -1)


def _that_fits(kind: str, inputs: int) -> str:
    """Return the format that a quantizing program takes instead, where a row has no whole number of blocks."""
    blocks = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]][0]
    return {"Q5_K": "Q5_1", "Q6_K": "Q8_0"}.get(kind, "Q5_0") if inputs % blocks else kind


def write(
    path: Path,
    config: ModelConfig,
    kind_of: Callable[[str], str],
    seed: int = 0,
    *,
    tokenizer: Callable[[gguf.GGUFWriter], None] | None = None,
    more: Callable[[gguf.GGUFWriter], None] | None = None,
    experts_apart: bool = False,
    factors: bool = False,
    **options: object,
) -> dict:
    """Write a model with random weights in the block formats that ``kind_of(name)`` says, with or without ``factors``.

    Returns the dense parameters that they stand for, by the paths of ``abstract(config)``.
    """
    rng = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "gemma-embedding" if config.embedding else config.generation, **options)
    metadata(writer, config)
    if tokenizer is not None:
        tokenizer(writer)
    if more is not None:
        more(writer)
    dense: dict = {}
    for at, spec in walk(abstract(config, "float32")):
        if len(spec.shape) < 2:
            value = rng.uniform(0.5, 1.5, spec.shape or (1,)).astype(np.float32)
            writer.add_tensor(tensors_of(config, at)[0][0], value)
            dense[at] = value.reshape(spec.shape)
            continue
        blocks = []
        for name, outputs in tensors_of(config, at, experts_apart=experts_apart):
            shape = (*spec.shape[:-2], outputs or spec.shape[-2], spec.shape[-1])
            kind = gguf.GGMLQuantizationType[_that_fits(kind_of(name), shape[-1])]
            raw = random_blocks(kind.name, shape, rng)
            writer.add_tensor(name, raw, raw_dtype=kind)
            blocks.append(dequantize(raw, kind) if raw.dtype == np.uint8 else raw.astype(np.float32))
            if factors and (factor := name.replace(".weight", ".scale")).rpartition("blk.")[2][2:] not in _OWN:
                value = rng.uniform(0.5, 1.5, shape[:-2] or 1).astype(np.float32)
                writer.add_tensor(factor, value)
                writer.add_tensor(name.replace(".weight", ".input_scale"), np.ones_like(value))
                blocks[-1] = blocks[-1] * value.reshape(*shape[:-2], 1, 1)
        dense[at] = np.concatenate(blocks, axis=-2)
    if config.generation == "gemma4":
        pairs = max(one.head_dim for one in config.layers) // 2
        writer.add_tensor(
            "rope_freqs.weight", np.array([1.0] * (pairs // 4) + [1e30] * (pairs - pairs // 4), np.float32)
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return dense


def metadata(writer: gguf.GGUFWriter, config: ModelConfig) -> None:
    """Return the converter's metadata of a model."""
    first, is_local = config.layers[0], [one.window is not None for one in config.layers]
    writer.add_context_length(config.max_context)
    writer.add_embedding_length(config.width)
    writer.add_block_count(len(config.layers))
    writer.add_head_count(config.heads)
    writer.add_layer_norm_rms_eps(config.norm_eps)
    writer.add_feed_forward_length(first.ffw_width)
    writer.add_head_count_kv(first.kv_heads)
    writer.add_key_length(first.head_dim)
    writer.add_value_length(first.head_dim)
    if any(is_local):  # of an embedding model: to both sides together
        writer.add_sliding_window(2 * (first.window - 1) if config.embedding else first.window)
    if config.embedding:
        writer.add_pooling_type(gguf.PoolingType.MEAN)
    if config.attention_softcap:
        writer.add_attn_logit_softcapping(config.attention_softcap)
    if config.logits_softcap:
        writer.add_final_logit_softcapping(config.logits_softcap)
    if config.generation == "gemma3":
        writer.add_sliding_window_pattern(is_local)
        writer.add_rope_freq_base(1e6)
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(8.0)
    if config.generation == "gemma4":
        _gemma4(writer, config, is_local)


def _gemma4(writer: gguf.GGUFWriter, config: ModelConfig, is_local: list[bool]) -> None:
    local = config.layers[0].head_dim
    everywhere = next(one.head_dim for one in config.layers if one.window is None)
    writer.add_rope_freq_base(1e6)
    writer.add_shared_kv_layers(sum(one.kv_from is not None for one in config.layers))
    writer.add_sliding_window_pattern(is_local)
    for add, size in (("add_key_length", everywhere), ("add_value_length", everywhere)):
        writer.kv_data[0].pop(f"gemma4.attention.{add[4:]}")
        getattr(writer, add)(size)
    writer.add_key_length_swa(local)
    writer.add_value_length_swa(local)
    writer.add_rope_dimension_count(everywhere)
    writer.add_rope_dimension_count_swa(local)
    ple = config.per_layer_input
    writer.add_embedding_length_per_layer_input(0 if ple is None else ple.width)
    for name, each in (("feed_forward_length", "ffw_width"), ("attention.head_count_kv", "kv_heads")):
        values = [getattr(one, each) for one in config.layers]
        if len(set(values)) > 1:
            writer.kv_data[0].pop(f"gemma4.{name}")
            writer.add_array(f"gemma4.{name}", values)
    if config.moe is not None:
        writer.add_expert_count(config.moe.experts)
        writer.add_expert_used_count(config.moe.experts_per_token)
        writer.add_expert_feed_forward_length(config.moe.ffw_width)


def of_one_kind(kind: str) -> Callable[[str], str]:
    return lambda _: kind


def mixed(seed: int) -> Callable[[str], str]:
    """Another block format for each tensor, as in files of mixed precision."""
    rng = np.random.default_rng(seed)
    return lambda _: str(rng.choice(KINDS))


def sentencepiece_tokenizer(model: bytes) -> Callable[[gguf.GGUFWriter], None]:
    """Return the converter's fields of a ``tokenizer.model``. It spells the spaces of what is one token as spaces."""
    library = sentencepiece.SentencePieceProcessor(model_proto=model)
    names, scores, types = [], [], []
    for token_id, kind in enumerate(piece_types(model)):
        name = library.id_to_piece(token_id)
        names.append(name.replace("\u2581", " ") if kind == gguf.TokenType.USER_DEFINED else name)
        scores.append(library.get_score(token_id))
        types.append(int(kind))

    def add(writer: gguf.GGUFWriter) -> None:
        writer.add_tokenizer_model("llama")
        writer.add_token_list(names)
        writer.add_token_scores(scores)
        writer.add_token_types(types)
        writer.add_add_space_prefix(value=False)
        _add_ends(writer)

    return add


def merges_tokenizer(content: dict, kind: str = "gemma4") -> Callable[[gguf.GGUFWriter], None]:
    """Return the converter's fields of a ``tokenizer.json``."""
    library = tokenizers.Tokenizer.from_str(json.dumps(content))
    added = {token["id"]: token["special"] for token in content["added_tokens"]}
    names = [library.id_to_token(token_id) for token_id in range(library.get_vocab_size())]
    types = [
        gguf.TokenType.NORMAL
        if token_id not in added
        else gguf.TokenType.CONTROL
        if added[token_id]
        else gguf.TokenType.USER_DEFINED
        for token_id in range(len(names))
    ]

    def add(writer: gguf.GGUFWriter) -> None:
        writer.add_tokenizer_model(kind)
        writer.add_token_list(names)
        writer.add_token_types(types)
        writer.add_token_merges([" ".join(pair) for pair in content["model"]["merges"]])
        writer.add_add_space_prefix(value=False)
        writer.add_add_bos_token(value=True)  # though the published one adds none
        _add_ends(writer)

    return add


def _add_ends(writer: gguf.GGUFWriter) -> None:
    writer.add_bos_token_id(2)
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(3)
    writer.add_pad_token_id(0)


def small_tokenizer(*more: str) -> Callable[[gguf.GGUFWriter], None]:
    """A vocabulary of 266 tokens that can spell every text, with the markers of a conversation and ``more`` of them."""
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>", *more]
    names = [*special, *(f"<0x{byte:02X}>" for byte in range(256)), *"ab\u2581", "ab"]
    matching = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    vocabulary = {name: token_id for token_id, name in enumerate(names)}
    model = {"type": "BPE", "vocab": vocabulary, "merges": [["a", "b"]], "byte_fallback": True, "unk_token": "<unk>"}
    added = [{"id": vocabulary[name], "content": name, "special": True, **matching} for name in special]
    return merges_tokenizer({"added_tokens": added, "model": model})


def file_of(path, architecture="gemma3", config="gemma3", kind="Q8_0", change=lambda writer: None, **options):
    """Write a file whose metadata or tensors are changed, and return its path."""

    def more(writer):
        writer.kv_data[0].pop("general.architecture")
        writer.add_string("general.architecture", architecture)
        change(writer)

    write(path, CONFIGS[config], of_one_kind(kind), more=more, **options)
    return path
