"""The chat format of a model, as far as its files give it. Templates are plain text here, and rendered elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ChatTemplate:
    """The text of a template, and the control tokens that it may name."""

    source: str
    with_tools: str | None = None  # another text, for conversations with tools
    names: Mapping[str, str] = field(default_factory=dict)  # "bos_token" and the like, to the tokens' strings


@dataclass(frozen=True)
class PictureJudge:
    """The questions of a model that judges pictures: it says yes if one violates a policy."""

    yes_id: int  # the token that begins this answer
    no_id: int
    policies: Mapping[str, str]  # those that it was trained on, by name
    template: ChatTemplate | None = field(repr=False)  # the words around a policy; None: its files lack them


@dataclass(frozen=True)
class ChatFormat:
    """The part of a model's chat format that its files give. The rest follows from its vocabulary."""

    name: str | None = None  # of a format that we have, where the files name one
    has_template: bool | None = None  # True if they have a chat template; None: ask the model's folder
    template: ChatTemplate | None = field(default=None, repr=False)  # to be rendered; None: its format is one of ours
    judge: PictureJudge | None = field(default=None, repr=False)  # None: it judges no pictures
    images_apart: bool = False  # True if its template has empty lines around images, as Gemma 4's first one


_IMAGE_APART = r"\n\n<|image|>\n\n"  # as a template spells it


def has_images_apart(source: str) -> bool:
    """Return True for Gemma 4's first kind of template, which has empty lines around images, and around nothing else.

    A template is a program. It is searched as plain text, and not run.
    """
    return _IMAGE_APART in source
