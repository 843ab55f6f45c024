"""The content of a message: texts, images, files and thoughts, in the forms of several vendors."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_gemma_jax.chat.history.messages_in import conversation
from langchain_gemma_jax.dialects import Message, Text
from langchain_gemma_jax.errors import InputError, MediaError

PIXEL = "iVBORw0KGgo="


def one(message) -> Message:
    (found,) = conversation([message])
    return found


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "base64": PIXEL, "mime_type": "image/png"},
        {"type": "image", "url": "https://example.org/a.png"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
        {"type": "image", "source_type": "base64", "data": PIXEL, "mime_type": "image/png"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
        {"type": "audio", "base64": PIXEL, "mime_type": "audio/wav"},
        {"type": "input_audio", "input_audio": {"data": PIXEL, "format": "wav"}},
        {"type": "file", "base64": PIXEL, "mime_type": "application/pdf"},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PIXEL}"}},
    ],
)
@pytest.mark.parametrize("kind", [HumanMessage, lambda content: ToolMessage(content, tool_call_id="c")])
def test_images_and_files_are_parts_of_what_users_and_tools_say(block, kind):
    message = kind([{"type": "text", "text": "Look"}, block, "and tell"])
    found = conversation([HumanMessage("a"), message], piece=True)[1]
    (part,) = found.media
    assert part.block.at == "messages[1].content[1]"
    if found.result is None:
        assert found.content == (Text("Look"), part, Text("and tell"))
    else:
        assert found.result.value == "Look\nand tell"
    for other in (AIMessage, SystemMessage):
        with pytest.raises(MediaError, match=r"messages\[0\].content\[0\]: .* by users and tools alone"):
            conversation([other([block])])


@pytest.mark.parametrize("block", [{"type": "video", "url": "https://example.org/a.mp4"}, {"type": "image"}])
def test_what_is_no_image_in_any_form_is_refused(block):
    with pytest.raises(MediaError, match=r"messages\[0\].content\[1\]: "):
        conversation([HumanMessage(["a", block])])


def test_a_text_in_the_place_of_a_file_is_a_text():
    blocks = [
        {"type": "file", "source_type": "text", "url": "a"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "b"}},
    ]
    assert one(HumanMessage(blocks)).texts == ["a", "b"]
    with pytest.raises(InputError, match="with no text: expected a str"):
        conversation([HumanMessage([{"type": "text-plain", "file_id": "x", "mime_type": "text/plain"}])])
    for text, says in (
        ({"text": b"Hi"}, "with bytes as its text: expected a str. Of bytes, text.decode() makes one."),
        ({"text": 3}, "with int as its text: expected a str."),
        ({}, "with no text: expected a str."),
    ):
        with pytest.raises(InputError) as caught:
            conversation([HumanMessage([{"type": "text", **text}])])
        assert str(caught.value) == f"messages[0] holds a block of type 'text' {says}"
