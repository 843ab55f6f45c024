"""What is asked of a tool can be read out of what was said."""

from training.data import requests
from training.data.requests import unfinished
from training.data.side import Side
from training.data.tools import make_tool
from training.data.world import World


def test_what_follows_takes_no_mark_from_a_value(monkeypatch):
    ends_in_a_mark = requests.request

    def asked(w, made, values=None):
        found = ends_in_a_mark(w, made, values)
        seen.append(found.text)
        return found

    monkeypatch.setattr(requests, "request", asked)
    again = 0
    for number in range(200):
        w = World(f"{number}", Side.TRAIN)
        seen: list[str] = []
        made = unfinished(w, make_tool(w, count=1, kinds=("message",)))
        said = [value.text for value in made.values.values()]
        assert not made.text.endswith((".", "?", "!", " "))
        assert all(text.casefold() in made.text.casefold() for text in said)
        again += len(seen) > 1
    assert again  # it does come up
