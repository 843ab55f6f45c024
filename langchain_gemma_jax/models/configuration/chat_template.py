"""A model's own chat template, as its files have it: plain text, which is rendered elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ChatTemplate:
    """The text of a template, and the control tokens that it may name."""

    source: str
    with_tools: str | None = None  # another text, for conversations with tools
    names: Mapping[str, str] = field(default_factory=dict)  # "bos_token" and the like, to the tokens' strings
