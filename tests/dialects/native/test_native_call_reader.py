"""One call in the native notation: what can be understood, slips included, and what cannot."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.dialects import CallEnd, Invalid
from tests.dialects.outputs import read


def arguments(body: str) -> object:
    """Those of one call with this body, or what is wrong with it."""
    *_, end = read(f"<|tool_call>call:f{body}<tool_call|>")
    return end.arguments if isinstance(end, CallEnd) else end.error


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("{}", {}),
        ("{a:1,b:-2.5,c:1e3,d:true,e:false}", {"a": 1, "b": -2.5, "c": 1000.0, "d": True, "e": False}),
        ("{a:null}", {"a": None}),
        ("{a:[1,[],{},[{b:2}]]}", {"a": [1, [], {}, [{"b": 2}]]}),
        ('{<|"|>a:b<|"|>:<|"|><|"|>}', {"a:b": ""}),
        ("{a b:1}", {"a b": 1}),
        (f"{{a:{10**40}}}", {"a": 10**40}),
        # slips whose meaning is clear
        (" { a : 1 , b : [ 1 , 2 ] } ", {"a": 1, "b": [1, 2]}),
        ("{a:Paris}", {"a": "Paris"}),
        ("{a:New York,b:007,c:1.2.3,d:+5,e:http://x.y/z?q}", {"a": "New York", "b": "007", "c": "1.2.3", "d": "+5",
                                                                "e": "http://x.y/z?q"}),
        ('{"a":"x\\n\\"y\\"","b":[\'z\']}', {"a": 'x\n"y"', "b": ["'z'"]}),
        ("{a:1,}", {"a": 1}),
        ("{a:[1,2,],}", {"a": [1, 2]}),
        ("{a:1", {"a": 1}),
        ("{a:{b:[x", {"a": {"b": ["x"]}}),
        ("", {}),
        ("{a:1,a:2}", {"a": 2}),
        (f"{{a:{'9' * 400}}}", {"a": 10**400 - 1}),
    ],
)  # fmt: skip
def test_what_can_be_understood(body, expected):
    assert repr(arguments(body)) == repr(expected)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("{a}", "a key and a colon"),
        ("{a:}", "a value should be where '}' is"),
        ("{:1}", "a key and a colon"),
        ("{,a:1}", "a key and a colon"),
        ("{a:1}b", "something after the arguments"),
        ("{a:[1}]", "a comma or a bracket"),
        ("{a:[,1]}", "a value should be where ','"),
        ('{a:<|"|>x', "ends before its arguments do"),
        ('{a:<|"|>x<|"|>y}', "a comma or a bracket should be where 'y' is"),
        ('{a:x<|"|>y<|"|>}', "a quote where none can be"),
        ('{<|"|>a<|"|>1}', "a colon should be where '1' is"),
        ('{"a" 1}', "a colon should be where '1' is"),
        ('{a:"\\ud83d"}', "malformed"),
        ('{a:"\\x"}', "malformed"),
        ("{a:1e999}", "too large"),
        (f"{{a:{'9' * 5000}}}", "too large"),
        ("{a:" + "[" * 70, "64 levels"),
        ("{a:<|turn>}", "<|turn> is inside"),
    ],
)
def test_what_cannot(body, error):
    assert error in arguments(body)


@pytest.mark.parametrize("text", ["f{}", "call{}", "call:{}", "tool:f{}", "", "call: "])
def test_a_call_without_a_name(text):
    (event,) = read(f"<|tool_call>{text}<tool_call|>")
    assert isinstance(event, Invalid)
    assert (event.raw, event.name) == (text, None)
