"""Tiny random Gemmas as folders, one for each chat format."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors.numpy import load, save

from tests import tiny_gemma

CONTEXT = 2048
MARKERS = {
    "gemma": ("<start_of_turn>", "<end_of_turn>"),
    "function_gemma": (
        "<start_of_turn>",
        "<end_of_turn>",
        *(f"<{end}_function_{what}>" for what in ("declaration", "call", "response") for end in ("start", "end")),
        "<escape>",
    ),
    "gemma4": (
        *("<|turn>", "<turn|>", "<|channel>", "<channel|>", "<|think|>", "<|tool>", "<tool|>"),
        *("<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", '<|"|>'),
    ),
}
LAST = {  # what ends a turn that calls tools, and a string
    "gemma": ("<end_of_turn>",),
    "function_gemma": ("<start_function_response>", "<escape>"),
    "gemma4": ("<|tool_response>", '<|"|>'),
}
SAMPLED = {"do_sample": True, "top_k": 20, "top_p": 0.95}


def tiny_folder(
    folder: Path, dialect: str = "gemma4", *, seed: int = 0, context: int = CONTEXT, **generation: object
) -> Path:
    """Write one. ``generation`` is what its ``generation_config.json`` says."""
    folder.mkdir(parents=True)
    files = tiny_gemma.tiny_gemma(seed=seed)
    config = json.loads(files["config.json"])
    config |= {"max_position_embeddings": context, "sliding_window": 64}
    files["config.json"] = json.dumps(config).encode()
    files["tokenizer.json"] = json.dumps(_with_markers(json.loads(files["tokenizer.json"]), dialect)).encode()
    files["generation_config.json"] = json.dumps(generation).encode()
    # Large embeddings, so that what was said decides what comes next.
    tensors = load(files["model.safetensors"])
    files["model.safetensors"] = save({name: 4 * array for name, array in tensors.items()})
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / "chat_template.jinja").write_text("{{ messages }}")  # never run: it tells that the model converses
    return folder


def _with_markers(tokenizer: dict[str, object], dialect: str) -> dict[str, object]:
    """The same vocabulary with small letters, marks, digits and the format's control tokens."""
    vocabulary = tokenizer["model"]["vocab"]  # type: ignore[index]
    how = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    for marker in MARKERS[dialect]:
        vocabulary[marker] = len(vocabulary)
        tokenizer["added_tokens"].append({"id": vocabulary[marker], "content": marker} | how)  # type: ignore[attr-defined]
    # All formats have vocabularies of one size, so that their programs are the same.
    for number in range(len(MARKERS[dialect]), max(map(len, MARKERS.values()))):
        vocabulary[f"<unused{number}>"] = len(vocabulary)
    return tokenizer


def ends_of_turns(dialect: str, bias: float) -> dict[int, float]:
    """A bias of all tokens that end a turn."""
    vocabulary = _with_markers(json.loads(tiny_gemma.tiny_gemma()["tokenizer.json"]), dialect)["model"]["vocab"]  # type: ignore[index]
    ends = {"<eos>", "<end_of_turn>", "<turn|>", LAST[dialect][0]}
    return {vocabulary[name]: bias for name in ends & vocabulary.keys()}


def toward_ends(dialect: str, *, of_turns: bool = True) -> dict[int, float]:
    """A bias by which a model that knows nothing ends its strings, lists and objects, and what it writes as a whole."""
    vocabulary = _with_markers(json.loads(tiny_gemma.tiny_gemma()["tokenizer.json"]), dialect)["model"]["vocab"]  # type: ignore[index]
    stop, *quote = LAST[dialect]
    names = [*quote, *([stop] if of_turns else [])]
    marks = b"}]`" if of_turns else b"}]"  # which strings can have in them, too
    last = {vocabulary[name]: 30.0 for name in names} | {vocabulary["<0x22>"]: 22.0}
    return last | {vocabulary[f"<0x{byte:02X}>"]: 15.0 for byte in marks}
