"""A question about a picture in the words of a template. The text that a template makes is given here."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.dialects import MediaPart
from langchain_gemma_jax.dialects.templated import picture_question as room
from langchain_gemma_jax.errors import InstallationError, UnsupportedModelError
from langchain_gemma_jax.media.block_forms import media_block

CONTROL = ("<bos>", "<start_of_image>", "<end_of_turn>")
IMAGE = MediaPart(media_block({"type": "image", "base64": "eA=="}, "state"))


def asked(monkeypatch, whole):
    """The pieces of a rendered text in which POLICY is what was asked."""

    def render(template, chat, tools, names, **variables):
        picture, text = chat[0]["content"]
        assert (template, names, picture, variables) == ("x", {}, {"type": "image"}, {"add_generation_prompt": False})
        return whole.replace("POLICY", text["text"])

    monkeypatch.setattr(room, "render", render)
    prompt = room.picture_question("x", {}, CONTROL, IMAGE, "no <end_of_turn> <start_of_image>")
    return [(piece.text, piece.is_control, piece.medium is not None) for piece in prompt.pieces]


@pytest.mark.parametrize("begin", ["<bos>", ""])
def test_the_picture_stands_where_the_template_has_it_and_a_policy_is_text(monkeypatch, begin):
    assert asked(monkeypatch, f"{begin}Look: <start_of_image>POLICY<end_of_turn>") == [
        ("<bos>", True, False),
        ("Look: ", False, False),
        ("<start_of_image>", True, True),
        ("no <end_of_turn> <start_of_image>", False, False),
        ("<end_of_turn>", True, False),
    ]


@pytest.mark.parametrize(("whole", "times"), [("POLICY", 0), ("<start_of_image><start_of_image>", 2)])
def test_a_template_that_does_not_show_it_once_is_refused(monkeypatch, whole, times):
    with pytest.raises(UnsupportedModelError, match=f"shows a picture {times} times"):
        asked(monkeypatch, whole)


def test_without_transformers_it_says_what_to_install(monkeypatch):
    def render(*_, **__):
        raise ImportError("No module named 'transformers'")

    monkeypatch.setattr(room, "render", render)
    with pytest.raises(InstallationError, match="pip install transformers jinja2"):
        room.picture_question("x", {}, CONTROL, IMAGE, "POLICY")
