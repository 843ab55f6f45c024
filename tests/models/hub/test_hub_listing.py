"""Lists of files that no Hub sends: whatever is wrong with one, the error is this package's."""

from __future__ import annotations

import copy
import json
import logging
import random
import shutil

import pytest

from langchain_gemma_jax.errors import GemmaJaxError, OfflineError
from langchain_gemma_jax.models.hub.download import download

FILES = {
    "config.json": b"{}",
    "model.safetensors": b"weights",
    "tokenizer.json": b"{}",
    "original/params.json": b"{}",
}
NO_SIZES = (None, True, False, 0, -1, 1.5, 1e308, 10**30, "", "7")
NO_NAMES = ("", "../../escape", "/absolute", "nul\0", "\ud800.safetensors", "a\nb", "..\\up.safetensors", "x" * 5000)
JUNK = (*NO_SIZES, *NO_NAMES, [], {}, [1], {"a": 1}, [None], [[]], "2024-01-01T00:00:00Z")
FIELDS = (
    *("siblings", "sha", "lastModified", "createdAt", "cardData", "config", "safetensors", "tags", "gated", "private"),
    *("spaces", "model-index", "transformersInfo", "gguf", "usedStorage", "lfs", "blobId", "size", "rfilename", "id"),
)


def listing(commit):
    """As the Hub itself has it."""
    siblings = [
        {
            "rfilename": name,
            "size": len(data),
            "blobId": "a" * 40,
            "lfs": {"size": len(data), "sha256": "b" * 64, "pointerSize": 9},
        }
        for name, data in FILES.items()
    ]
    about = {"cardData": {"license": "gemma", "tags": ["text"]}, "gated": "manual", "tags": ["gemma"]}
    weights = {"safetensors": {"parameters": {"F32": 1}, "total": 1}, "lastModified": "2024-01-01T00:00:00.000Z"}
    return {"id": "org/model", "sha": commit, "siblings": siblings, "private": False} | about | weights


def places(value, at=()):
    """The path of everything that can be changed in it."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*at, key)
        yield from places(each, (*at, key))


def mutated(value, chance):
    value = json.loads(json.dumps(value))
    for _ in range(chance.randint(1, 3)):
        found = list(places(value))
        if not found or chance.random() < 0.02:
            return json.dumps(chance.choice(JUNK)).encode()
        *path, last = chance.choice(found)
        owner = value
        for key in path:
            owner = owner[key]
        kind = chance.random()
        if kind < 0.2:
            del owner[last]
        elif kind < 0.3 and isinstance(owner, dict):
            owner[chance.choice(FIELDS)] = copy.deepcopy(chance.choice(JUNK))
        else:
            owner[last] = copy.deepcopy(chance.choice(JUNK))
    text = bytearray(json.dumps(value).encode())
    if chance.random() < 0.1:
        text[chance.randrange(len(text))] = chance.randrange(256)
    return bytes(text)


@pytest.mark.long
@pytest.mark.parametrize("seeds", [range(150), pytest.param(range(150, 4000), marks=pytest.mark.slow)])
def test_a_listing_that_is_malformed_is_an_error_of_this_package(hub, pauses, tmp_path, seeds, caplog):
    caplog.set_level(logging.CRITICAL)  # huggingface_hub has words about cards
    sound, messages = listing(hub.add("org/model", FILES)), []
    for seed in seeds:
        hub.faults.clear()
        hub.fail("GET /api/models/org/model/revision", 9, body=mutated(sound, random.Random(seed)))
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
        try:
            assert download("org/model", progress=False).is_relative_to(tmp_path / "cache"), seed
        except GemmaJaxError as error:
            messages.append(str(error))
    assert 0.2 * len(seeds) < len(messages) < 0.95 * len(seeds)
    assert max(map(len, messages)) < 1000


@pytest.mark.parametrize(
    ("name", "size"),
    [
        *(("notes.txt", size) for size in (True, -1, 1.5, 10**30, "7", [], {})),
        *((name, 7) for name in (7, [], {}, None)),
    ]
    + [(name, 7) for name in NO_NAMES if name in {"", "nul\0", "\ud800.safetensors", "a\nb", "..\\up.safetensors"}],
)
def test_what_is_no_file_spoils_the_list_and_nothing_is_fetched(hub, pauses, name, size):
    sound = listing(hub.add("org/model", FILES))
    sound["siblings"].append({"rfilename": name, "size": size})
    hub.fail("GET /api/models/org/model/revision", 9, body=json.dumps(sound).encode())
    with pytest.raises(OfflineError, match="does not answer as a Hub does"):
        download("org/model", progress=False)
    assert hub.requests("/resolve/") == []
