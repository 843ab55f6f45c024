"""The strings of a vocabulary that steer the model, as opposed to ordinary text.

Vocabularies single out two kinds of strings. *Markers* open and close turns, tool calls and thoughts:
a user who can write one can forge another speaker's turn. *Ordinary text* is singled out only to
be one token: Gemma does that to runs of newlines and spaces, and to some HTML tags. The files do not
distinguish the two (both are "user defined", or "added" and not "special"), so there is a rule here. By
default a string is a marker. Ordinary text taken for a marker by mistake can still be written, in smaller
pieces; a marker taken for text by mistake would be a security hole.
"""

from __future__ import annotations

import unicodedata

TURN_ENDS = ("<end_of_turn>", "<turn|>")

MARKERS = frozenset(
    {
        *("<pad>", "<eos>", "<bos>", "<unk>", "<mask>"),
        *("<start_of_turn>", "<|turn>", *TURN_ENDS),
        *("<start_function_declaration>", "<end_function_declaration>", "<|tool>", "<tool|>"),
        *("<start_function_call>", "<end_function_call>", "<|tool_call>", "<tool_call|>"),
        *("<start_function_response>", "<end_function_response>", "<|tool_response>", "<tool_response|>"),
        *("<escape>", '<|"|>', "<|channel>", "<channel|>", "<|think|>"),
        *("<start_of_image>", "<end_of_image>", "<image_soft_token>", "<|image>", "<image|>", "<|image|>"),
        *("<start_of_audio>", "<end_of_audio>", "<audio_soft_token>", "<|audio>", "<audio|>", "<|audio|>"),
        "<|video|>",
    }
)
"""Gemma's own markers. They are markers even if a converted file lists them as plain pieces."""

HTML_TAGS = frozenset(
    {
        *("table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td"),
        *("h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "code"),
        *("strong", "em", "b", "i", "u", "s", "sub", "sup"),
    }
)
"""The HTML tags that are one token each in Gemma's vocabularies, with and without ``/``."""


def is_marker(text: str, *, special: bool) -> bool:
    """Return True if a string that the vocabulary singles out is a marker.

    Args:
        text: the string, with spaces as spaces.
        special: True if the file lists it as a control token.
    """
    return special or not (len(text) == 1 or _is_words(text) or _is_html_tag(text))


def _is_words(text: str) -> bool:
    """Return True if a text has only white space, letters, marks on letters, and digits."""
    return all(character.isspace() or unicodedata.category(character)[0] in "LMN" for character in text)


def _is_html_tag(text: str) -> bool:
    return text[:1] == "<" and text[-1:] == ">" and text[1:-1].removeprefix("/") in HTML_TAGS
