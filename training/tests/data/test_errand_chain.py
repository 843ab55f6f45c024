"""Two errands in a row: what the first finds is what the second takes."""

import re

import pytest

from training.data.conversation import Calls, Say
from training.data.side import Side
from training.data.skills import errand_chain
from training.data.stages import LIKE_PEOPLE
from training.data.world import World

PAIRS = (*errand_chain._ERRANDS.train, *errand_chain._ERRANDS.held_out)


def text_of(reply):
    return str(next(iter(reply.values()))) if isinstance(reply, dict) else reply


@pytest.mark.parametrize("both", PAIRS, ids=lambda each: f"{each.first.name}>{each.second.name}")
def test_the_first_result_is_an_argument_of_the_second_call(monkeypatch, both):
    side = Side.TRAIN if both in errand_chain._ERRANDS.train else Side.HELD_OUT
    monkeypatch.setattr(World, "pick", lambda *_, pick=World.pick: both if _[1] is errand_chain._ERRANDS else pick(*_))
    for number in range(4):
        made = errand_chain.two_errands(World(f"chain/{number}", side, stage=LIKE_PEOPLE))
        first, second, said = made.turns[1].steps
        assert isinstance(first, Calls)
        assert isinstance(second, Calls)
        assert isinstance(said, Say)
        found = text_of(first.calls[0].reply)
        assert found in map(str, second.calls[0].arguments.values())
        assert not re.search(rf"\b{re.escape(found)}\b", made.turns[0].text)
        names = [tool.name for tool in made.tools]
        assert len(set(names)) == len(names)
        assert {first.calls[0].tool, second.calls[0].tool} <= set(names)


def test_what_is_said_and_taken_by_neither_tool_is_refused(monkeypatch, tmp_path):
    (tmp_path / "bad.txt").write_text("web_search > save_note.note\nSearch for {query} and tell {nobody}.")
    monkeypatch.setattr(errand_chain, "_DATA", tmp_path)
    with pytest.raises(ValueError, match="expected two errands that need what is said, found none for 'web_search >"):
        errand_chain._read("bad.txt", errand_chain.TRAIN)
