import pytest

from training.data.conversation import Calls
from training.data.mixture import conversation
from training.data.render import call, steps
from training.data.side import Side
from training.parse import parse


def test_what_is_rendered_is_read_back():
    for index in range(200):
        for step in steps(conversation(f"parse/{index}", Side.TRAIN)):
            answer = parse(step.answer)
            if isinstance(step.wanted, Calls):
                assert [each.tool for each in step.wanted.calls] == [name for name, _ in answer.calls]
                assert [each.arguments for each in step.wanted.calls] == [arguments for _, arguments in answer.calls]
                assert answer.text == ""
            else:
                assert (answer.calls, answer.text) == ((), step.wanted.text.strip())


@pytest.mark.parametrize("body", ["{a:}", "{a:1", '{a:<|"|>x}', "{a:1}}", "{a 1}", "{a:1e}", "[1]x"])
def test_what_is_not_well_formed_is_no_call(body):
    assert parse(f"<|tool_call>call:f{body}<tool_call|>").calls == ()


def test_texts_may_hold_anything_but_their_own_quotes():
    arguments = {"a": 'x},{y:"z"\n<', "b": [{}, [], "]"]}
    assert parse(call("f", arguments)).calls == (("f", arguments),)
