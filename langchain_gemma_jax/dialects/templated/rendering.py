"""A model's chat template, rendered so that no text in a conversation becomes a control token."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from langchain_gemma_jax.dialects.conversation.rendered_prompt import PromptPiece
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.stopping import StoppedError, looking

_GUARDS = "".join(map(chr, range(0xFDD0, 0xFDF0)))  # noncharacters: Unicode reserves them for internal use


class Guarded:
    """Data for a template, with a guard character in everything that could be taken for a control token.

    A template copies text of users, tools and models. If that has the string of a control token, the string is broken
    up by a character that is nowhere in the data. The character is removed again after the rendered text has been
    split into control tokens and text.
    """

    def __init__(self, control: Collection[str], data: object) -> None:
        used: set[str] = set()
        for text in looking(_texts(data)):
            used.update(text)
        guard = next((each for each in _GUARDS if each not in used), None)
        if guard is None:
            raise InputError("messages: they hold every one of Unicode's noncharacters, which no text should.")
        self._guard = guard
        names = sorted((name for name in control if name), key=len, reverse=True)
        self._control = re.compile("|".join(map(re.escape, names)) or r"(?!)")
        self.data = self._guarded(data)

    def pieces(self, text: str) -> Iterator[PromptPiece]:
        """Split a rendered text into the template's control tokens and text."""
        done = 0
        for match in self._control.finditer(text):
            if before := self._mended(text[done : match.start()]):
                yield PromptPiece(before)
            yield PromptPiece(match[0], is_control=True)
            done = match.end()
        if rest := self._mended(text[done:]):
            yield PromptPiece(rest)

    def _guarded(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._control.sub(lambda match: match[0][:1] + self._guard + match[0][1:], value)
        if isinstance(value, Mapping):
            return {self._guarded(key): self._guarded(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self._guarded(each) for each in looking(value)]
        return value

    def _mended(self, text: str) -> str:
        return text.replace(self._guard, "")


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _texts(key)
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


class _Looked(list[Any]):
    """Messages, of which a template that goes through them sees none any more when the prompt's call was canceled."""

    def __iter__(self) -> Iterator[Any]:
        return looking(super().__iter__())

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        return _Looked(found) if isinstance(place, slice) else found


def render(
    template: str,
    chat: Sequence[Mapping[str, object]],
    tools: Sequence[Mapping[str, object]],
    names: Mapping[str, str],
    **variables: bool,
) -> str:
    """Return a conversation, rendered with a template by transformers in its sandbox.

    Raises:
        InputError: the template refuses the conversation, or is no valid template.
    """
    from transformers.utils.chat_template_utils import render_jinja_template

    try:
        (text,), _ = render_jinja_template(
            [_Looked(chat)], tools=tools or None, chat_template=template, **names, **variables
        )
    except StoppedError:
        raise
    except Exception as error:  # a template can raise anything
        problem = " ".join(str(error).split())[:300]
        raise InputError(
            f"The model's chat template cannot render this conversation ({type(error).__name__}): {problem}. Some "
            "templates want users and models to take turns, and some know no system message."
        ) from error
    return str(text)
