"""JSON of strangers: what ``json`` says of it, in pieces, and refused before anything is made where it is too much."""

from __future__ import annotations

import json
import random

import pytest

from langchain_gemma_jax import bounded_json
from langchain_gemma_jax.bounded_json import MOST_MARKS, WINDOW, TooManyValuesError, bounded_loads
from langchain_gemma_jax.stopping import Stop, StoppedError

CHARACTERS = 'ab"\\\n\u00e9\U0001f600\ud83d\ude00/\u2028'


def text(rng: random.Random) -> str:
    return "".join(rng.choice(CHARACTERS) for _ in range(rng.choice([0, 3, 40, 200])))


def value(rng: random.Random, depth: int = 0) -> object:
    kind = rng.random()
    if kind < 0.25 and depth < 4:
        return [value(rng, depth + 1) for _ in range(rng.randrange(5))]
    if kind < 0.5 and depth < 4:
        return {text(rng): value(rng, depth + 1) for _ in range(rng.randrange(5))}
    return rng.choice([1, 2.5, None, True, text(rng), text(rng), -3])


def said(read, data: bytes) -> object:
    """Return the value of a text, or that it has none. Halves of characters that meet are one, however written."""
    try:
        return json.loads(json.dumps(read(data)))
    except (ValueError, RecursionError):
        return "no JSON"


def strictly(data: bytes) -> object:
    return json.loads(data, parse_constant=int)


@pytest.mark.parametrize("window", [WINDOW, 16, 13])
def test_it_says_what_json_says(window, monkeypatch):
    monkeypatch.setattr(bounded_json, "WINDOW", window)
    for seed in range(150):
        rng = random.Random(seed)
        whole = json.dumps(value(rng), ensure_ascii=rng.random() < 0.5)
        cut = whole[: rng.randrange(len(whole) + 1)]
        changed = whole.replace(rng.choice(whole), rng.choice('"\\{[,xN'), 1)
        for each in (whole, cut, changed):
            data = each.encode("utf-8", "surrogatepass")
            assert said(bounded_loads, data) == said(strictly, data), each
    assert bounded_loads("\ufeff[1]".encode()) == [1]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"[" + b"[]," * MOST_MARKS + b"[]]", "too many values"),
        (b"[" + b'"",' * MOST_MARKS + b'""]', "too many values"),
        (b"{" + b'"a":1,' * MOST_MARKS + b'"a":1}', "too many values"),
        (b"[" * (2 * MOST_MARKS), "too many values"),
        (b"{" + b",".join(b'"%s":1' % (b"%06d" % number * 100) for number in range(2000)) + b"}", "too long"),
        (b'["' + b"a" * (1 << 22) + "\U0001f600".encode() + b'"]', "too long"),
        (b"[" + b"1" * WINDOW + b"]", "too many digits"),
        (b"[NaN]", "not JSON"),
        (b'["' + b"a" * 100 + b'", NaN]', "not JSON"),
        (b"[-Infinity]", "not JSON"),
    ],
)
def test_too_much_is_refused_before_anything_is_made_of_it(data, why, monkeypatch):
    monkeypatch.setattr(bounded_json.json, "loads", lambda *_, **__: pytest.fail("something was made"))
    kind = ValueError if "not" in why or "digits" in why else TooManyValuesError
    with pytest.raises(kind, match=why):
        bounded_loads(data)


def test_nothing_is_read_in_larger_pieces_than_a_window_and_a_little(monkeypatch):
    """So that no step keeps other threads waiting: what ``json`` reads in one go is what is left without its texts."""
    read: list[int] = []
    loads, scanned = json.loads, bounded_json._scanned

    def noted(data, **how):
        read.append(len(data))
        return loads(data, **how)

    monkeypatch.setattr(bounded_json.json, "loads", noted)
    monkeypatch.setattr(bounded_json, "_scanned", lambda part, at: read.append(len(part)) or scanned(part, at))
    for inside in ("a", "\\n", '\\"', "\\ud83d\\ude00", "\u00e9"):
        whole = f'{{"a": "{inside * (20 * WINDOW // len(inside))}", "b": ["{inside * 1000}", 1]}}'
        assert bounded_loads(whole.encode()) == loads(whole)
    assert max(read) <= WINDOW + 1


def test_it_ends_when_nobody_waits():
    looked = 0

    class Looked(Stop):
        def check(self) -> None:
            nonlocal looked
            looked += 1
            if looked > 10:
                self.ask()
            super().check()

    for data in (b'["' + b"a" * (100 * WINDOW) + b'"]', b"[" + b" " * (100 * WINDOW) + b"]"):
        looked = 0
        with Looked().over_this_work(), pytest.raises(StoppedError):
            bounded_loads(data)
        assert looked == 11
