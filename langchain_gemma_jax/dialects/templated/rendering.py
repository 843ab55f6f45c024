"""A model's chat template, rendered so that nobody's words become control tokens."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from langchain_gemma_jax.dialects.conversation.rendered_prompt import PromptPiece
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.stopping import StoppedError, looking

_GUARDS = "".join(map(chr, range(0xFDD0, 0xFDF0)))  # no characters: Unicode keeps them for such things as this


class Guarded:
    """Data for a template, with a mark inside of everything that could be taken for a control token.

    A template copies words of users, tools and models into its text. Where they hold the string of a control token,
    it is broken by a character that stands nowhere in the data, and mended when the control tokens were told apart.
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
        """Take a rendered text apart: the template's control tokens, and text in which nothing is one."""
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
    """Messages, of which a template that goes through them sees none any more when nobody waits for the prompt."""

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
    """Return a conversation as a template has it, rendered by transformers in its sandbox.

    Raises:
        InputError: the template refuses the conversation, or is none.
    """
    from transformers.utils.chat_template_utils import render_jinja_template

    try:
        (text,), _ = render_jinja_template(
            [_Looked(chat)], tools=tools or None, chat_template=template, **names, **variables
        )
    except StoppedError:
        raise
    except Exception as error:  # a template can raise anything
        said = " ".join(str(error).split())[:300]
        raise InputError(
            f"The model's chat template cannot render this conversation ({type(error).__name__}): {said}. Some "
            "templates want users and models to take turns, and some know no system message."
        ) from error
    return str(text)
