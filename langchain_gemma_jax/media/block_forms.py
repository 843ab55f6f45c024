"""The blocks in which LangChain, OpenAI, Anthropic, Google, Bedrock and MCP write images, sounds and files."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from langchain_gemma_jax.errors import MediaAccessError, MediaError, MediaLimitError, UnreadableMediaError

MediaKind: TypeAlias = Literal["image", "audio", "file"]
MediaForm: TypeAlias = Literal["base64", "bytes", "percent", "path", "link"]

_KINDS: Mapping[str, MediaKind | None] = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "audio": "audio",
    "input_audio": "audio",
    "file": "file",
    "input_file": "file",
    "document": "file",
    "media": "file",  # Google's: the MIME type, or else the bytes, give the kind
    "video": None,
}
_INNER = ("source", "file", "input_audio", "image_url", "audio", "image", "document")  # objects with the content
_DEEPEST = 2
_DATA = ("base64", "data", "bytes", "file_data", "blob")
_LINKS = ("url", "image_url", "file_url", "file_uri", "uri")
_ELSEWHERE = ("file_id", "id")
_V0_TEXT = "text"  # a source_type: text instead of a file
_FORMS = (
    'for example {"type": "image", "base64": "...", "mime_type": "image/png"}, or {"type": "image_url", "image_url": '
    '{"url": "data:image/png;base64,..."}}'
)


@dataclass(frozen=True)
class MediaBlock:
    """A block of a message that is not text: its declared kind, and its bytes or the place of its bytes."""

    kind: MediaKind
    form: MediaForm
    value: str | bytes = field(repr=False)
    at: str = field(default="", compare=False)  # the block's place, for errors

    @cached_property
    def digest(self) -> bytes:
        """A digest of the block's kind, its form and its value: the encoded bytes, a path or a link."""
        content = self.value.encode("utf-8", "surrogatepass") if isinstance(self.value, str) else self.value
        return hashlib.sha256(b"%s %s " % (self.kind.encode(), self.form.encode()) + content).digest()

    def inline(self, most: int) -> bytes | None:
        """Return the bytes that the block itself holds; None for a path or a link.

        Raises:
            UnreadableMediaError: they are not valid base64; MediaLimitError: there are more than ``most``.
        """
        if self.form in {"path", "link"}:
            return None
        length = len(self.value) * 3 // 4 if self.form == "base64" else len(self.value)
        check_bytes(length - 3 if self.form == "base64" else length, most, self.at)
        if isinstance(self.value, bytes):
            return self.value
        found = unquote_to_bytes(self.value) if self.form == "percent" else _base64(self.value, self.at)
        check_bytes(len(found), most, self.at)
        return found


def check_bytes(count: int, most: int, at: str) -> None:
    """Refuse more than ``most`` bytes.

    Raises:
        MediaLimitError: ``count`` is more.
    """
    if count > most:
        raise MediaLimitError(at, f"{count:,} bytes are more than the {most:,} that may be. Make it smaller", "bytes")


def is_media(block: Mapping[str, object]) -> bool:
    """Return True for a block that holds an image, a sound, a video or a file, in any form."""
    kind = block.get("type")
    if kind is None:  # Bedrock's have no type
        return any(isinstance(block.get(name), Mapping) for name in ("image", "document", "audio", "video"))
    return isinstance(kind, str) and kind in _KINDS and block.get("source_type") != _V0_TEXT and not _is_text(block)


def media_block(block: Mapping[str, object], at: str) -> MediaBlock:
    """Return the kind and the content of a block of any form. Errors name the block by ``at``.

    Raises:
        MediaError: the form is unknown, or the block holds a video, which no model here takes; MediaAccessError: the
            content is on another machine, such as a provider's; UnreadableMediaError: a ``data:`` link has no data.
    """
    declared = block.get("type")
    name = next((each for each in _INNER if each in block), "video") if declared is None else str(declared)
    kind = _KINDS.get(name)
    if kind is None:
        raise MediaError(at, "a video cannot be shown to a model here. Give some of its frames, as images")
    holder: Mapping[str, object] = block
    for _ in range(_DEEPEST):
        holder = next((nested for inner in _INNER if isinstance(nested := holder.get(inner), Mapping)), holder)
    mime = next((found for key in ("mime_type", "media_type", "mimeType") if (found := holder.get(key))), None)
    return _found(kind if name != "media" else _kind_of(mime), holder, at)


def _found(kind: MediaKind, holder: Mapping[str, object], at: str) -> MediaBlock:
    if isinstance(path := holder.get("path"), str):
        return MediaBlock(kind, "path", path, at)
    for name in _DATA:
        match holder.get(name):
            case bytes() | bytearray() | memoryview() as data:
                return MediaBlock(kind, "bytes", bytes(data), at)
            case str() as text if text.startswith("data:"):
                return _from_link(kind, text, at)
            case str() as text:
                return MediaBlock(kind, "base64", text, at)
    for name in _LINKS:
        if isinstance(link := holder.get(name), str):
            return _from_link(kind, link, at)
    if any(holder.get(name) for name in _ELSEWHERE):
        raise MediaAccessError(
            at, "this is the id of a file on another company's server, which cannot be read here. Give its bytes"
        )
    raise MediaError(at, f"expected the content as base64, bytes, a link or a path, {_FORMS}; found none")


def _from_link(kind: MediaKind, link: str, at: str) -> MediaBlock:
    scheme = link[:12].partition(":")[0].lower()
    if scheme == "data":
        head, comma, data = link.partition(",")
        if not comma:
            raise UnreadableMediaError(at, "expected a link such as data:image/png;base64,..., found one without data")
        encoded = head.rstrip().lower().endswith(";base64")
        return MediaBlock(kind, "base64" if encoded else "percent", unquote(data) if encoded else data, at)
    if scheme in {"http", "https"}:
        return MediaBlock(kind, "link", link, at)
    if scheme == "file":
        try:
            parts = urlsplit(link)
        except ValueError as error:
            raise MediaError(at, f"this is no link: {error}") from None
        if parts.netloc not in {"", "localhost"}:
            raise MediaAccessError(at, "a file on another machine cannot be read. Expected file:///path/to/it")
        return MediaBlock(kind, "path", unquote(parts.path), at)
    raise MediaError(
        at, f"expected a link that begins with data:, https:, http: or file:, found {link[:30]!r}. A file here is "
        'given as {"type": "image", "path": "/path/to/it.png"}'
    )  # fmt: skip


def _base64(text: str, at: str) -> bytes:
    bare = "".join(text.split()).rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise UnreadableMediaError(at, f"what is said to be base64 is not ({error})") from None


def _kind_of(mime: object) -> MediaKind:
    name = mime.partition("/")[0] if isinstance(mime, str) else ""
    return "image" if name == "image" else "audio" if name == "audio" else "file"


def _is_text(block: Mapping[str, object]) -> bool:
    """Return True for a document that holds text, in Anthropic's form."""
    source = block.get("source")
    return isinstance(source, Mapping) and source.get("type") == "text"
