"""Files of keys, and who is whom by them."""

from __future__ import annotations

import hmac
import os

import pytest

from langchain_gemma_jax import ApiKeyError, InputError
from langchain_gemma_jax.server.http import api_keys
from langchain_gemma_jax.server.http.api_keys import ApiKeys, read_keys

KEY, OTHER = "k" * 20, "o" * 20


def written(tmp_path, text: str, mode: int = 0o600):
    file = tmp_path / "keys"
    file.write_text(text)
    file.chmod(mode)
    return file


def test_each_key_has_a_scope(tmp_path):
    keys = read_keys(written(tmp_path, f"# ours\nalice {KEY}\n\n{OTHER} # without a name\n"))
    assert keys.scope_of({"authorization": f"Bearer {KEY}"}) == "key:alice"
    assert keys.scope_of({"x-api-key": OTHER}).startswith("key:")
    assert OTHER not in keys.scope_of({"x-api-key": OTHER})
    for shown in ("", KEY[:-1], KEY + "k", "ü" * 20):
        with pytest.raises(ApiKeyError):
            keys.scope_of({"x-api-key": shown})


def test_all_keys_are_compared_in_constant_time(monkeypatch):
    seen = []
    monkeypatch.setattr(api_keys.hmac, "compare_digest", lambda a, b: seen.append(a) or a == b)
    ApiKeys({KEY: "a", OTHER: "b"}).scope_of({"x-api-key": KEY})
    assert len(seen) == 2  # the first one that fits does not end it
    assert hmac.compare_digest is api_keys.hmac.compare_digest


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a key on each line, found none"),
        ("short", "line 1: expected a key of at least 16"),
        (f"a/b {KEY}", "line 1: expected"),
        (f"a b {KEY}", "line 1: expected"),
        (f"a {KEY}\na {OTHER}", "line 2: this key, or its name, is in the file twice"),
    ],
)
def test_files_that_are_none(tmp_path, text, said):
    with pytest.raises(InputError, match=said):
        read_keys(written(tmp_path, text))


def test_a_file_that_others_can_read_is_refused(tmp_path):
    with pytest.raises(InputError, match="Do: chmod 600"):
        read_keys(written(tmp_path, KEY, 0o640))
    with pytest.raises(InputError, match="cannot be read"):
        read_keys(tmp_path / "none")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of root's")
def test_a_secret_of_a_pod_is_read_by_the_pods_group(tmp_path, monkeypatch):
    file = written(tmp_path, KEY, 0o440)
    with pytest.raises(InputError, match="Do: chmod 600"):
        read_keys(file)  # root's own
    monkeypatch.setattr(os, "geteuid", lambda: 10001)
    assert read_keys(file).scope_of({"x-api-key": KEY})
    for mode in (0o444, 0o460, 0o441):
        file.chmod(mode)
        with pytest.raises(InputError, match="Do: chmod 600"):
            read_keys(file)
    file.chmod(0o440)
    os.chown(file, 12345, -1)
    with pytest.raises(InputError, match="Do: chmod 600"):
        read_keys(file)
