"""A question about one picture, in the words of a model's own template: the format of ShieldGemma 2."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from langchain_gemma_jax.dialects.conversation.messages import MediaPart
from langchain_gemma_jax.dialects.conversation.rendered_prompt import PromptPiece, RenderedPrompt
from langchain_gemma_jax.dialects.templated.rendering import Guarded, render
from langchain_gemma_jax.errors import InstallationError, UnsupportedModelError

BEGIN, PICTURE, APART = "<bos>", "<start_of_image>", "\n\n"


def picture_question(
    template: str, names: Mapping[str, str], control: Collection[str], picture: MediaPart, text: str
) -> RenderedPrompt:
    """Return the prompt in which a template asks about a picture. No part of ``text`` becomes a control token.

    Raises:
        InstallationError: there is no transformers, which renders templates.
        InputError, UnsupportedModelError: the template cannot be rendered, or shows no picture or several.
    """
    guarded = Guarded(control, [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": text}]}])
    try:
        whole = render(template, guarded.data, [], names, add_generation_prompt=False)
    except ImportError as error:
        raise InstallationError(
            "This model is asked in the words of its own chat template, and transformers renders it: "
            "pip install transformers jinja2."
        ) from error
    pieces = [_shown(piece, picture) for piece in guarded.pieces(whole)]
    count = sum(piece.medium is not None for piece in pieces)
    if count != 1:
        raise UnsupportedModelError(
            f"The model's chat template shows a picture {count} times. Expected it once, as {PICTURE}: the template may"
            " be another model's."
        )
    if not (pieces[0].is_control and pieces[0].text == BEGIN):
        pieces.insert(0, PromptPiece(BEGIN, is_control=True))
    return RenderedPrompt(tuple(pieces))


def _shown(piece: PromptPiece, picture: MediaPart) -> PromptPiece:
    if piece.is_control and piece.text == PICTURE:
        return PromptPiece(PICTURE, is_control=True, medium=picture, apart=APART)
    return piece
