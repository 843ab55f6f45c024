"""PaliGemma's format: a picture and a task in one message, all of it read in both directions."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.dialects import MediaPart, Message, RenderOptions, TextDelta, Tool, merged
from langchain_gemma_jax.dialects.choose import ModelFacts, dialect_for
from langchain_gemma_jax.dialects.paligemma import PaliGemmaDialect
from langchain_gemma_jax.errors import InputError, MediaError
from langchain_gemma_jax.media.block_forms import media_block

PALI = PaliGemmaDialect()
IMAGE = MediaPart(media_block({"type": "image", "base64": "eA=="}, "messages[0].content[0]"))


@pytest.mark.parametrize("content", [("caption en", IMAGE), (IMAGE, "caption en"), ("caption ", IMAGE, "en")])
def test_the_picture_comes_first_and_a_line_ends_the_task(content):
    prompt = PALI.render([Message.user(*content)])
    assert [(piece.text, piece.is_control) for piece in prompt.pieces] == [
        ("<image>", True),
        ("<bos>", True),
        ("caption en\n", False),
    ]
    assert prompt.both_ways == len(prompt.pieces)


def test_places_are_tokens_of_a_task_and_of_an_answer_and_no_other_token_is():
    said = "segment <loc0007><seg127> <eos> <loc12>"
    pieces = PALI.render([Message.user(IMAGE, said)]).pieces[2:]
    assert [piece.text for piece in pieces if piece.is_control] == ["<loc0007>", "<seg127>"]
    assert "".join(piece.text for piece in pieces) == f"{said}\n"
    parser = PALI.parser()
    heard = [("<loc0007>", True), ("<pad>", True), (" cat", False), ("<eos>", True), ("more", False)]
    events = [event for text, is_control in heard for event in parser.feed(text, is_control)]
    assert merged([*events, *parser.finish()]) == [TextDelta("<loc0007> cat")]


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([Message.user("caption en")], "expected one picture beside the text, found 0"),
        ([Message.user(IMAGE, IMAGE, "caption en")], "expected one picture beside the text, found 2"),
        ([Message.user(IMAGE), Message.assistant("a cat"), Message.user("Where?")], "found 3: user, assistant, user"),
        ([Message.system("Be brief."), Message.user(IMAGE)], "found 2: system, user.* nothing can follow its answer"),
        ([Message.assistant("a cat")], "found 1: assistant"),
        ([], "expected at least one"),
    ],
)
def test_a_conversation_is_refused(messages, said):
    with pytest.raises(InputError, match=said):
        PALI.render(messages)


def test_what_it_cannot_do_is_refused():
    asked = [Message.user(IMAGE, "caption en")]
    with pytest.raises(InputError, match="tools: a PaliGemma calls none"):
        PALI.render(asked, [Tool("look", "Look.", {"type": "object"})])
    with pytest.raises(InputError, match="thinking"):
        PALI.render(asked, (), RenderOptions(thinking=True))
    with pytest.raises(InputError, match="no thoughts"):
        PALI.parser(in_thought=True)
    document = MediaPart(media_block({"type": "file", "base64": "eA==", "mime_type": "application/pdf"}, "a"))
    with pytest.raises(MediaError, match="no place for files"):
        PALI.render([Message.user(document)])


def test_a_model_that_reads_both_ways_speaks_it_though_its_vocabulary_has_turns():
    control = ("<bos>", "<start_of_turn>", "<end_of_turn>", "<image>")
    assert dialect_for(ModelFacts("gemma2", control, both_ways=True)) == PALI
    assert dialect_for(ModelFacts("gemma2", control)).name == "gemma"
