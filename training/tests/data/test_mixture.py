from collections import Counter
from functools import cache

import pytest

from training.data.conversation import Calls, Model, Say
from training.data.mixture import conversation
from training.data.render import pieces
from training.data.side import Side
from training.data.skills.call import _of_several_kinds
from training.data.stages import LAST, LIKE_PEOPLE, WIDER
from training.data.tools import make_tool
from training.data.world import World

CONTROL = ("<bos>", "<|turn>", "<turn|>", "<|tool>", "<tool|>", "<|tool_call>", "<tool_call|>", '<|"|>')


@pytest.fixture(scope="module")
def made():
    return [conversation(f"test/{index}", side, stage=1 + index % LAST) for side in Side for index in range(1600)]


def test_every_skill_comes_up_on_both_sides(made):
    half = len(made) // 2
    assert {each.skill for each in made[:half]} == {each.skill for each in made[half:]}
    assert len({each.skill for each in made}) == 24


def test_calls_are_of_tools_that_are_there_and_fit_their_schemas(made):
    kinds = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict}
    for each in made:
        tools = {tool.name: tool.parameters for tool in each.tools}
        assert len(tools) == len(each.tools)
        for turn in each.turns:
            for step in turn.steps if isinstance(turn, Model) else ():
                for call in step.calls if isinstance(step, Calls) else ():
                    schema = tools[call.tool]
                    assert set(schema.get("required", ())) <= set(call.arguments) <= set(schema["properties"])
                    for name, item in call.arguments.items():
                        wanted = schema["properties"][name]
                        assert isinstance(item, kinds[wanted["type"]])
                        assert item in wanted.get("enum", [item])


def test_where_nothing_is_needed_the_right_tool_is_called_with_nothing(made):
    found = [each for each in made if each.skill == "nothing to fill in"]
    assert {len(each.tools) >= 8 for each in found} == {True, False}
    for each in found:
        (call,) = each.turns[1].steps[0].calls
        (tool,) = (tool for tool in each.tools if tool.name == call.tool)
        assert call.arguments == {}
        assert not tool.parameters.get("required")
    assert any(tool.parameters.get("required") for each in found for tool in each.tools), "others need something"


def test_none_of_the_values_that_are_told_apart_is_written_twice(made):
    found = [each for each in made if each.skill == "values apart"]
    several = 0
    for each in found:
        (call,) = each.turns[1].steps[0].calls
        values = list(map(str, call.arguments.values()))
        assert len(set(values)) == len(values) <= 3
        several += len(values) > 1
    assert several > len(found) / 2


def test_values_that_are_told_apart_are_each_of_another_kind():
    for number in range(100):
        ways = [each.typed for each in _of_several_kinds(World(f"{number}", Side.TRAIN)).fields]
        assert len(set(ways)) == len(ways) >= 2


def test_facts_are_in_the_answers_and_in_what_was_read_before(made):
    for each in made:
        for turn in each.turns:
            for step in turn.steps if isinstance(turn, Model) else ():
                if isinstance(step, Say):
                    assert all(fact in step.text for fact in step.facts)


def test_text_arguments_are_copied_from_the_conversation(made):
    missing = Counter()
    for each in made:
        told = ""
        for piece in pieces(each):
            if piece.by_model and each.skill != "made up":
                for text in piece.text.split('<|"|>')[1::2]:
                    missing[each.skill] += text.casefold() not in told.casefold()
            told += piece.text
    assert not +missing


def test_nobody_writes_control_tokens_into_texts(made):
    for each in made:
        texts = [getattr(turn, "text", "") for turn in each.turns] + [tool.description for tool in each.tools]
        assert not any(name in text for name in CONTROL for text in texts)


def test_early_conversations_are_short():
    lengths = [
        sum(len("".join(p.text for p in pieces(conversation(f"e/{i}", Side.TRAIN, ease)))) for i in range(300))
        for ease in (0.0, 1.0)
    ]
    assert lengths[0] < 0.75 * lengths[1]


def test_strange_tools_do_what_no_real_word_is_for():
    def verbs(strange):
        return [make_tool(World(f"verbs/{index}", Side.TRAIN, strange=strange)).verb.words[0] for index in range(300)]

    real = set(verbs(0.0))
    assert len(real) < 40
    assert sum(verb not in real for verb in verbs(0.4)) / 300 == pytest.approx(0.4, abs=0.1)


def test_beside_strange_tools_there_is_more_of_what_is_plain():
    def plain(strange):
        made = [conversation(f"plain/{index}", Side.TRAIN, strange=strange).skill for index in range(1200)]
        return made.count("everyday") + made.count("parallel")

    assert plain(0.4) > plain(0.0) + 25


def test_a_model_that_goes_on_reads_more_of_what_was_wrong_most():
    first, later = _skills(stage=1), _skills(stage=2)
    assert set(first) == set(later)
    for skill in ("chain of 2", "chain of 3", "nothing to fill in", "memory"):
        assert later[skill] > 1.1 * first[skill]


def test_in_the_end_it_reads_what_people_have_and_say_beside_all_the_rest():
    before, after = _skills(stage=2), _skills(stage=LIKE_PEOPLE)
    assert set(after) - set(before) == {"form", "personal", "two errands"}
    assert set(before) < set(after)


def test_then_more_of_that():
    before, after = _skills(stage=LIKE_PEOPLE), _skills(stage=WIDER)
    assert set(before) == set(after)
    for skill in ("two errands", "form", "personal", "small talk"):
        assert after[skill] > 1.1 * before[skill]


@cache
def _skills(stage):
    return Counter(conversation(f"test/{index}", Side.TRAIN, stage=stage).skill for index in range(2000))
