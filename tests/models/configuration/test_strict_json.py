from __future__ import annotations

from pathlib import Path

import pytest

from langchain_gemma_jax.errors import CorruptCheckpointError
from langchain_gemma_jax.models.configuration import strict_json
from langchain_gemma_jax.models.configuration.strict_json import parse_object, read_object, short

HERE = Path("some/config.json")


def test_an_object():
    assert parse_object('{"a": [1, {"b": null}], "ü": "\\u0041"}'.encode(), HERE) == {"a": [1, {"b": None}], "ü": "A"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"", "Expecting value"),
        (b"[]", "a JSON list"),
        (b"null", "a JSON NoneType"),
        (b'{"a": 1', "delimiter"),
        (b'{"a": 1} x', "Extra data"),
        (b'{"a": 1, "a": 2}', "the name 'a' twice"),
        (b'{"b": {"a": 1, "a": 1}}', "the name 'a' twice"),
        (b'{"a": NaN}', "NaN, which is not JSON"),
        (b'{"a": -Infinity}', "-Infinity, which is not JSON"),
        (b'{"a": "\xff"}', "not UTF-8 at position 7"),
        (b'\xef\xbb\xbf{"a": 1}', "BOM"),
        (b'{"a": ' * 100_000, "nested too deeply"),
        (b'{"a": %s}' % (b"9" * 5000), "digits"),
    ],
)
def test_anything_else_is_an_error_that_says_where(text, found):
    with pytest.raises(CorruptCheckpointError, match=found) as caught:
        parse_object(text, HERE)
    assert caught.value.path == str(HERE)
    assert len(str(caught.value)) < 500


def test_a_file_that_is_far_too_long_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "config.json"
    path.write_text('{"a": 1}')
    assert read_object(path, HERE) == {"a": 1}
    monkeypatch.setattr(strict_json, "MAX_BYTES", 7)
    monkeypatch.setattr(Path, "read_bytes", lambda self: pytest.fail("read"))
    with pytest.raises(CorruptCheckpointError, match="at most 7 bytes of JSON, found 8 bytes"):
        read_object(path, HERE)


def test_short_is_short_and_printable():
    assert short("a") == "'a'"
    assert len(short("x" * 10_000)) == 120
    assert short("\ud800\n").encode() == b"'\\ud800\\n'"
