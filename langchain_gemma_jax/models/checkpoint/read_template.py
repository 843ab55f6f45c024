"""The chat template of a model's folder."""

from __future__ import annotations

import os
from pathlib import Path

from langchain_gemma_jax.errors import CheckpointError, CorruptCheckpointError, InputError
from langchain_gemma_jax.models.configuration.chat_format import ChatTemplate, has_images_apart
from langchain_gemma_jax.models.configuration.links import real_file
from langchain_gemma_jax.models.configuration.strict_json import read_object, short

_FILE, _PROCESSOR, _TOKENIZER = "chat_template.jinja", "chat_template.json", "tokenizer_config.json"
_MOST_BYTES = 1 << 20


def read_template(folder: Path) -> ChatTemplate | None:
    """Return the chat template of a folder. None: it has none.

    Raises:
        CorruptCheckpointError: the template is no text, or far too long.
    """
    shown = folder / _TOKENIZER
    raw = read_object(real_file(folder, _TOKENIZER), shown) if os.path.lexists(shown) else {}
    names = {}
    for name, value in raw.items():
        text = value.get("content") if isinstance(value, dict) else value
        if name.endswith("_token") and isinstance(text, str):
            names[name] = text
    if os.path.lexists(folder / _FILE):
        path = real_file(folder, _FILE)
        if path.stat().st_size > _MOST_BYTES:
            raise CorruptCheckpointError(folder / _FILE, f"at most {_MOST_BYTES:,} bytes", f"{path.stat().st_size:,}")
        try:
            return ChatTemplate(path.read_text("utf-8"), None, names)
        except UnicodeDecodeError as error:
            raise CorruptCheckpointError(folder / _FILE, "text in UTF-8", str(error)) from None
    template = _of_processor(folder) or raw.get("chat_template")
    if isinstance(template, str):
        return ChatTemplate(template, None, names)
    if isinstance(template, list):
        named = {str(each.get("name")): each.get("template") for each in template if isinstance(each, dict)}
        usual, tools = named.get("default"), named.get("tool_use")
        if isinstance(usual, str):
            return ChatTemplate(usual, tools if isinstance(tools, str) else None, names)
    if template is None:
        return None
    raise CorruptCheckpointError(shown, "a text as chat_template, or a list with one called default", short(template))


def _of_processor(folder: Path) -> object:
    """Return the template in a file of older models that see."""
    if not os.path.lexists(folder / _PROCESSOR):
        return None
    return read_object(real_file(folder, _PROCESSOR), folder / _PROCESSOR).get("chat_template")


def images_apart_in(folder: Path) -> bool:
    """Return True if a folder has a readable chat template with empty lines around images."""
    try:
        template = read_template(folder)
    except (CheckpointError, InputError, OSError):  # ``read_template`` raises it where the template is needed
        return False
    return template is not None and has_images_apart(template.source)
