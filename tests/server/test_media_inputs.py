"""Images in requests of each API, by users and as results of tools: read as in this process, or refused by place."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.engine.requests.prompt import MediaSpan
from langchain_gemma_jax.models.seams.media_support import MediaSupport
from tests.chat.sensing import HeardSounds, SeenPictures
from tests.media.samples import base64_of, encoded, tone, wav
from tests.serving import asked

pytest.importorskip("PIL")

DATA, SOUND = base64_of(encoded()), base64_of(wav(tone(440)))
URL = f"data:image/png;base64,{DATA}"
CALL = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
OPENAI = {"type": "image_url", "image_url": {"url": URL}}
ITEM = {"type": "input_image", "image_url": URL}
ANTHROPIC = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}}
USE = {"type": "tool_use", "id": "c", "name": "look", "input": {}}


def chat(image: dict) -> dict:
    return {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Look"}, image]},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c", "content": [image, {"type": "text", "text": "found"}]},
        ]
    }


def responses(image: dict) -> dict:
    return {
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Look"}, image]},
            {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
            {
                "type": "function_call_output",
                "call_id": "c",
                "output": [image, {"type": "input_text", "text": "found"}],
            },
        ]
    }


def anthropic(image: dict) -> dict:
    result = {"type": "tool_result", "tool_use_id": "c", "content": [image, {"type": "text", "text": "found"}]}
    return {
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Look"}, image]},
            {"role": "assistant", "content": [USE]},
            {"role": "user", "content": [result]},
        ],
    }


APIS = [
    ("/v1/chat/completions", chat, OPENAI),
    ("/v1/responses", responses, ITEM),
    ("/v1/messages", anthropic, ANTHROPIC),
]
each = pytest.mark.parametrize(("path", "body", "image"), APIS)


@each
def test_images_of_users_and_tools(path, body, image, at, says):
    engine = says("A square.<turn|>", support=MediaSupport(SeenPictures()))
    code, found, _ = asked(at, path, {"model": "scripted", **body(image)})
    assert code == 200, found
    spans = engine.submitted[0]["spans"].spans
    first, second = (span for span in spans if isinstance(span, MediaSpan))
    assert first == second
    assert len(first.ids) == 3


@each
def test_what_cannot_be_shown_is_refused_with_its_place(path, body, image, at, says):
    engine = says(support=MediaSupport(SeenPictures()))
    for content, said in (
        ({"type": "image", "path": "/etc/passwd"}, "paths of files are off"),
        ({"type": "image", "url": "file:///etc/passwd"}, "paths of files are off"),
        ({"type": "image_url", "image_url": {"url": "http://169.254.169.254/"}}, "links are off"),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}, "no image of a kind"),
    ):
        code, found, _ = asked(at, path, {"model": "scripted", **body(content)})
        assert code == 400, found
        assert said in found["error"]["message"]
        assert "].content[" in found["error"]["message"]
    says()
    code, found, _ = asked(at, path, {"model": "scripted", **body(image)})
    assert (code, "reads text alone" in found["error"]["message"]) == (400, True)
    assert engine.submitted == []


def test_images_of_assistants_and_systems_are_refused(at, says):
    says("never", support=MediaSupport(SeenPictures()))
    for role in ("system", "assistant"):
        body = {"model": "scripted", "messages": [{"role": role, "content": [OPENAI]}]}
        code, found, _ = asked(at, "/v1/chat/completions", body)
        assert (code, "by users and tools alone" in found["error"]["message"]) == (400, True)


def test_sounds_as_openais_clients_send_them(at, says):
    engine = says("A tone.<turn|>", support=MediaSupport(sounds=HeardSounds()))
    sound = {"type": "input_audio", "input_audio": {"data": SOUND, "format": "wav"}}
    body = {"model": "scripted", "messages": [{"role": "user", "content": [sound]}]}
    code, found, _ = asked(at, "/v1/chat/completions", body)
    assert code == 200, found
    assert [len(span.ids) for span in engine.submitted[0]["spans"].spans if isinstance(span, MediaSpan)] == [5]


def test_images_as_ollamas_clients_send_them(at, says):
    call = {"function": {"name": "look", "arguments": {}}}
    shown = {"content": "Look", "images": [DATA]}
    told = [{"role": "user", **shown}, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", **shown}]
    for path, body, count in (
        ("/api/chat", {"messages": told}, 2),
        ("/api/generate", {"prompt": "Look", "images": [DATA]}, 1),
        ("/api/generate", {"images": [DATA]}, 1),
    ):
        engine = says("A square.<turn|>", support=MediaSupport(SeenPictures()))
        code, found, _ = asked(at, path, {"model": "scripted", **body})
        assert code == 200, found
        assert sum(isinstance(span, MediaSpan) for span in engine.submitted[0]["spans"].spans) == count
    sees = MediaSupport(SeenPictures())
    for support, image, said in (
        (sees, "aGVsbG8=", "no image of a kind"),
        (sees, "/etc/passwd", "no image of a kind"),
        (sees, "./etc/passwd", "not"),
        (None, DATA, "reads text alone"),
    ):
        engine = says(support=support)
        code, found, _ = asked(at, "/api/generate", {"model": "scripted", "prompt": "Look", "images": [image]})
        assert (code, said in found["error"], engine.submitted) == (400, True, []), found
