"""Tools of everyday life, written by hand, with the ways in which people ask for them.

A field is ``name:kind``, ``name:a/b/c`` for an enum, with ``?`` in front if it is optional. Names and descriptions
have alternatives, as templates have.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from training.data.scenario import Scenario, read, told
from training.data.side import Split, templates

_DATA = Path(__file__).parent


def _read(*files: Path) -> tuple[Scenario, ...]:
    return tuple(chain.from_iterable(read(each.read_text(encoding="utf-8")) for each in files))


TRAIN = _read(_DATA / "errands_first.txt", *sorted((_DATA / "errands").glob("*.txt")))
HELD_OUT = _read(_DATA / "errands_examined.txt")
SCENARIOS = Split(TRAIN, HELD_OUT)

UNUSUAL = _read(_DATA / "errands_held_out.txt")
"""More that are held out, for an examination alone: what few people ask for, in as many manners as people have."""

MORE = _read(_DATA / "errands_wider.txt")
"""More to learn from, from stage ``WIDER`` of training on: what people ask an agent first."""

AGENTS = _read(_DATA / "errands_agents.txt")
"""And from stage ``HANDS_ON`` on: what takes commands, queries, code, paths, and what somebody says to somebody."""

ASKS = templates(
    *([told(ask)[0] for each in side for ask in each.asks] for side in (TRAIN + MORE + AGENTS, HELD_OUT + UNUSUAL))
)
