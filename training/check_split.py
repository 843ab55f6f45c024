"""Proves that what is held out has nothing in common with what is learned from.

    python -m training.check_split

Two proofs. The lists: no template and no word of one side is on the other, in any list. The conversations:
many are made of each side, and their tool names, property names, requests and values (all texts, and the
numbers from 1,000 on) do not meet. Small numbers, true and false, and the verbs of tools are what both sides share.

Nor does anything say what LangChain's standard test suite says: it has to be passed by ability.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from random import Random

from training.data import suite
from training.data.conversation import Calls, Conversation, Json, Model, Turn, User
from training.data.kinds import KINDS
from training.data.mixture import conversation
from training.data.render import aside_pieces, pieces
from training.data.scenario import Scenario
from training.data.scenarios import AGENTS, MORE, SCENARIOS, UNUSUAL
from training.data.side import LISTS, Side
from training.data.skills import forms
from training.data.skills.everyday import unusual
from training.data.skills.schema import PARTS
from training.data.stages import LAST
from training.data.template import Part, Slot, expand, parse, slots_of
from training.data.values import whole_templates
from training.data.words import common
from training.data.world import World

TAUGHT = (*SCENARIOS.train, *MORE, *AGENTS, *forms.FORMS.train, *forms.WIDE_FORMS)
"""What is written out of tools and of forms that are trained on."""

_SHARED_NUMBERS = 1_000
_UNUSUAL = 10  # of so many held-out conversations, one more is of an errand that few people have
_SHOWN = 20  # sentences of each template that is held out
_STRANGE = 0.5  # of the tools of every other conversation


def lists_in_common() -> dict[str, set[str]]:
    """By kind of list, what is written on both sides."""
    found: dict[str, set[str]] = {}
    for kind, splits in LISTS.items():
        if kind == "templates":  # no template of any list may be one of any other list's other side
            train, held_out = (set(chain.from_iterable(each.of(side) for each in splits)) for side in Side)
            found[kind] = {_bare(each) for each in train} & {_bare(each) for each in held_out}
            wide = set(chain.from_iterable(each.from_stage(LAST) for each in splits))
            found["templates put together"] = said_in_another_way({*wide, *whole_templates()}, held_out)
        else:
            held_out = set(chain.from_iterable(each.held_out for each in splits)) | set(_named_in(SCENARIOS.held_out))
            held_out |= set(_options_in(UNUSUAL))  # their names have several words, and are compared whole
            found[kind] = set(chain.from_iterable(set(each.train) & set(each.held_out) for each in splits))
            found["common words"] = held_out & {*common.WORDS, *common.SEVERAL}
            kept = set(chain.from_iterable(kind.labels.held_out for kind in KINDS.values()))
            kept |= {part.partition(":")[0] for part in PARTS.held_out}
            found["names of arguments"] = set(_arguments_in(TAUGHT)) & kept
    return found


def said_in_another_way(wide: Iterable[str], held_out: Iterable[str]) -> set[str]:
    """What is held out and one of the many sentences that a wide template stands for."""
    stands_for = [re.compile(_pattern(parse(each))) for each in wide]
    rng = Random("held out")
    said = {_bare(_shown(each, rng)) for each in held_out for _ in range(_SHOWN)}
    return {each for each in said if any(pattern.fullmatch(each) for pattern in stands_for)}


def _pattern(parts: tuple[Part, ...]) -> str:
    """What matches every sentence of a template, bare."""
    shown = ""
    for part in parts:
        if isinstance(part, tuple):
            shown += f"(?:{'|'.join(map(_pattern, part))})"
        else:
            shown += re.escape(_plain(f"{{{part.name}}}" if isinstance(part, Slot) else part))
    return shown


def _shown(template: str, rng: Random) -> str:
    return expand(template, rng, {slot: f"{{{slot}}}" for slot in slots_of(template)})


def conversations_in_common(count: int, seed: str = "split") -> dict[str, set[str]]:
    """By kind of thing, what conversations of both sides hold."""
    seen: dict[Side, dict[str, set[str]]] = {side: {} for side in Side}
    for side in Side:
        for index in range(count):
            made = [conversation(f"{seed}/{index}", side, strange=_STRANGE * (index % 2), stage=_stage(index))]
            if side is Side.HELD_OUT and index % _UNUSUAL == 0:
                made.append(unusual(World(f"{seed}/unusual/{index}", side)))
            for kind, what in chain.from_iterable(map(contents, made)):
                seen[side].setdefault(kind, set()).add(what)
    train, held_out = (seen[side] for side in Side)
    return {kind: train.get(kind, set()) & held_out.get(kind, set()) for kind in train}


def _stage(index: int) -> int:
    """Of what is said in each stage of training, as much."""
    return 1 + index % LAST


def contents(made: Conversation) -> Iterator[tuple[str, str]]:
    """The names, values and sentences of a conversation, each with its kind."""
    for tool in made.tools:
        yield "tool names", tool.name
        yield from (("property names", name) for name in _property_names(tool.parameters))
    for turn in _turns(made):
        if isinstance(turn, User) and made.tools:
            yield "requests", turn.text
        elif isinstance(turn, Model):
            for step in turn.steps:
                if isinstance(step, Calls):
                    yield from (("values", text) for each in step.calls for text in _texts(each.arguments))


def said_by_the_suite(count: int, seed: str = "split") -> set[str]:
    """What the conversations, of either side, have in common with LangChain's standard suite."""
    found: set[str] = set()
    for made in (
        conversation(f"{seed}/{index}", side, strange=_STRANGE * (index % 2), stage=_stage(index))
        for side in Side
        for index in range(count)
    ):
        text = "".join(piece.text for piece in (*pieces(made), *chain.from_iterable(map(aside_pieces, made.asides))))
        found |= {match[0] for match in suite.WORDS.finditer(text)}
        asked = (turn.text for turn in _turns(made) if isinstance(turn, User))
        found |= {text for text in asked if text.strip(" .!?").lower() in suite.PROMPTS}
    return found


def _named_in(scenarios: Sequence[Scenario]) -> Iterator[str]:
    """The words of their arguments' names, and the options of those that have any."""
    for field in chain.from_iterable(each.fields for each in scenarios):
        name = field.partition(":")[0]
        yield from re.findall("[a-z]+", name)
    yield from _options_in(scenarios)


def _arguments_in(scenarios: Iterable[Scenario]) -> Iterator[str]:
    """The names of their arguments, in words."""
    for field in chain.from_iterable(each.fields for each in scenarios):
        yield field.partition(":")[0].removeprefix("?").replace("_", " ")


def _options_in(scenarios: Sequence[Scenario]) -> Iterator[str]:
    kinds = (field.partition(":")[2] for field in chain.from_iterable(each.fields for each in scenarios))
    yield from chain.from_iterable(kind.split("/") for kind in kinds if "/" in kind)


def _turns(made: Conversation) -> Iterator[Turn]:
    """Its own, and those of its asides."""
    return chain(made.turns, *made.asides)


def _bare(template: str) -> str:
    """A template without what makes no difference: case and punctuation."""
    return _plain(template).strip()


def _plain(template: str) -> str:
    return re.sub(r"[^a-z{}\w ]", "", template.casefold())


def _property_names(schema: Json) -> Iterator[str]:
    if isinstance(schema, dict) and isinstance(properties := schema.get("properties"), dict):
        for name, inner in properties.items():
            yield name
            yield from _property_names(inner)


def _texts(item: Json) -> Iterator[str]:
    """The texts and the large numbers in a value."""
    if isinstance(item, dict):
        yield from chain.from_iterable(map(_texts, item.values()))
    elif isinstance(item, list):
        yield from chain.from_iterable(map(_texts, item))
    elif isinstance(item, str) or (not isinstance(item, bool) and item is not None and abs(item) >= _SHARED_NUMBERS):
        yield str(item)


def main() -> int:
    """Check everything, and say what was found in common."""
    found = lists_in_common() | conversations_in_common(20_000)
    found["LangChain's standard suite"] = said_by_the_suite(20_000)
    for kind, both in found.items():
        sys.stdout.write(f"{kind}: {'nothing' if not both else ', '.join(sorted(both)[:20])} in common\n")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main())
