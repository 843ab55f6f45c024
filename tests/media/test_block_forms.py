"""Blocks of everybody's forms, and those that are of none."""

from __future__ import annotations

import base64

import pytest

from langchain_gemma_jax.errors import MediaAccessError, MediaError, MediaLimitError, UnreadableMediaError
from langchain_gemma_jax.media.block_forms import is_media, media_block
from tests.media.samples import base64_of, png

DATA = png()
TEXT = base64_of(DATA)
URL = f"data:image/png;base64,{TEXT}"
AT = "messages[3].content[1]"
PICTURES = [
    {"type": "image", "base64": TEXT, "mime_type": "image/png"},  # LangChain's, and its former ones
    {"type": "image", "url": URL},
    {"type": "image", "source_type": "base64", "data": TEXT, "mime_type": "image/png"},
    {"type": "image", "source_type": "url", "url": URL},
    {"type": "image", "base64": TEXT, "mime_type": "image/png", "extras": {"detail": "high"}, "id": "lc_1"},
    {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},  # OpenAI's
    {"type": "image_url", "image_url": URL},
    {"type": "input_image", "image_url": URL, "detail": "auto"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": TEXT}},  # Anthropic's
    {"type": "image", "source": {"type": "url", "url": URL}},
    {"type": "image", "data": TEXT, "mimeType": "image/png"},  # MCP's
    {"type": "media", "mime_type": "image/png", "data": TEXT},  # Google's
    {"type": "media", "mime_type": "image/png", "data": DATA},
    {"image": {"format": "png", "source": {"bytes": DATA}}},  # Bedrock's
    {"type": "image", "data": DATA},
    {"type": "image", "base64": "\n".join(TEXT[at : at + 20] for at in range(0, len(TEXT), 20)).rstrip("=")},
    {"type": "image", "base64": base64.urlsafe_b64encode(DATA).decode()},
    {"type": "image", "url": "DATA:image/png;charset=utf-8;BASE64," + TEXT.replace("+", "%2B").replace("/", "%2F")},
    {"type": "image", "url": "data:image/png," + "".join(f"%{byte:02x}" for byte in DATA)},
]


@pytest.mark.parametrize("block", PICTURES)
def test_pictures_of_every_form(block):
    assert is_media(block)
    found = media_block(block, AT)
    assert (found.kind, found.at, found.inline(10_000)) == ("image", AT, DATA)


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        ({"type": "audio", "base64": TEXT, "mime_type": "audio/wav"}, "audio"),
        ({"type": "audio", "source_type": "base64", "data": TEXT, "mime_type": "audio/wav"}, "audio"),
        ({"type": "audio", "data": TEXT, "mimeType": "audio/wav"}, "audio"),
        ({"type": "input_audio", "input_audio": {"data": TEXT, "format": "wav"}}, "audio"),
        ({"type": "media", "mime_type": "audio/mp3", "data": TEXT}, "audio"),
        ({"type": "file", "base64": TEXT, "mime_type": "application/pdf"}, "file"),
        ({"type": "file", "source_type": "base64", "data": TEXT, "filename": "a.pdf"}, "file"),
        ({"type": "file", "file": {"filename": "a.pdf", "file_data": URL}}, "file"),
        ({"type": "input_file", "filename": "a.pdf", "file_data": URL}, "file"),
        ({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": TEXT}}, "file"),
        ({"document": {"format": "pdf", "name": "a", "source": {"bytes": DATA}}}, "file"),
        ({"type": "media", "mime_type": "application/pdf", "data": TEXT}, "file"),
    ],
)
def test_sounds_and_files(block, kind):
    assert is_media(block)
    found = media_block(block, AT)
    assert (found.kind, found.inline(10_000)) == (kind, DATA)


@pytest.mark.parametrize(
    ("block", "form", "value"),
    [
        ({"type": "image", "url": "https://example.org/a.png"}, "link", "https://example.org/a.png"),
        ({"type": "image_url", "image_url": "HTTP://example.org"}, "link", "HTTP://example.org"),
        ({"type": "input_file", "file_url": "https://example.org/a.pdf"}, "link", "https://example.org/a.pdf"),
        ({"type": "media", "mime_type": "image/png", "file_uri": "https://a.org"}, "link", "https://a.org"),
        ({"type": "image", "path": "/a/b.png"}, "path", "/a/b.png"),
        ({"type": "image", "url": "file:///a/b%20c.png"}, "path", "/a/b c.png"),
        ({"type": "document", "source": {"type": "url", "url": "file://localhost/a.pdf"}}, "path", "/a.pdf"),
    ],
)
def test_what_lies_elsewhere(block, form, value):
    found = media_block(block, AT)
    assert (found.form, found.value, found.inline(10)) == (form, value, None)


@pytest.mark.parametrize(
    ("block", "error", "said"),
    [
        ({"type": "video", "url": "https://example.org/a.mp4"}, MediaError, "video"),
        ({"video": {"format": "mp4", "source": {"bytes": DATA}}}, MediaError, "video"),
        ({"type": "image"}, MediaError, "found none"),
        ({"type": "image_url", "image_url": {}}, MediaError, "found none"),
        ({"type": "image", "base64": 7}, MediaError, "found none"),
        ({"type": "image", "source": {"type": "file", "file_id": "f1"}}, MediaAccessError, "another company"),
        ({"type": "file", "file": {"file_id": "f1"}}, MediaAccessError, "another company"),
        ({"type": "image", "source_type": "id", "id": "f1"}, MediaAccessError, "another company"),
        ({"type": "audio", "audio": {"id": "audio_1"}}, MediaAccessError, "another company"),
        ({"type": "image", "url": "/home/me/a.png"}, MediaError, '"path"'),
        ({"type": "image", "url": "ftp://example.org/a.png"}, MediaError, "data:, https:"),
        ({"type": "image", "url": "s3://bucket/a.png"}, MediaError, "data:, https:"),
        ({"type": "image", "url": "file://elsewhere/a.png"}, MediaAccessError, "another machine"),
        ({"type": "image", "url": "data:image/png;base64"}, UnreadableMediaError, "without data"),
    ],
)
def test_blocks_of_no_form(block, error, said):
    assert is_media(block)
    with pytest.raises(MediaError, match=r"messages\[3\].content\[1\]: ") as found:
        media_block(block, AT)
    assert type(found.value) is error
    assert said in str(found.value)


@pytest.mark.parametrize("text", ["not base64!", "iVBORw0KGg=o=", "A", "é" * 8, "iVBO\0Rw0KGg"])
def test_what_is_said_to_be_base64_and_is_not(text):
    with pytest.raises(UnreadableMediaError, match="base64"):
        media_block({"type": "image", "base64": text}, AT).inline(10_000)


def test_too_many_bytes_are_refused_before_they_are_decoded():
    for block in ({"base64": base64_of(b"a" * 101)}, {"data": b"a" * 101}, {"url": "data:," + "a" * 101}):
        with pytest.raises(MediaLimitError, match="more than the 100 ") as found:
            media_block({"type": "image", **block}, AT).inline(100)
        assert (found.value.at, found.value.limit) == (AT, "bytes")
    assert media_block({"type": "image", "base64": base64_of(b"a" * 100)}, AT).inline(100) == b"a" * 100


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": "a"},
        {"type": "text-plain", "text": "a"},
        {"type": "file", "source_type": "text", "url": "a"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a"}},
        {"type": "tool_use", "name": "a"},
        {"cachePoint": {"type": "default"}},
        {"type": 7},
        {},
    ],
)
def test_what_is_no_medium(block):
    assert not is_media(block)


def test_a_digest_is_of_the_content_and_of_nothing_else():
    one, other = (media_block({"type": "image", "base64": TEXT}, at) for at in ("messages[0]", "messages[9]"))
    assert one.digest == other.digest
    assert one == other
    more = [
        {"type": "audio", "base64": TEXT},
        {"type": "image", "base64": TEXT + "="},
        {"type": "image", "path": TEXT},
        {"type": "image", "data": DATA},
    ]
    assert len({one.digest, *(media_block(each, AT).digest for each in more)}) == 5
