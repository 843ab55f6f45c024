"""How often each skill comes up."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Sequence
from itertools import accumulate

from training.data.conversation import Conversation
from training.data.side import Side
from training.data.skills import (
    ask_back,
    beside,
    call,
    chain,
    echo,
    errand_chain,
    errors,
    everyday,
    follow_up,
    forms,
    memory,
    no_call,
    parallel,
    personal,
    schema,
    session,
    small_talk,
    system,
)
from training.data.stages import CALLING, FULLER, HANDS_ON, LIFELIKE, LIKE_PEOPLE, PLAINER, WIDER
from training.data.world import World

Skill = Callable[[World], Conversation]

LATE: tuple[tuple[Skill, float], ...] = (
    (call.one_call, 20),
    (call.right_tool, 24),
    (call.nothing_to_fill_in, 8),
    (call.tell_apart, 26),
    (call.copy_foreign, 18),
    (everyday.everyday, 52),
    (everyday.not_there, 10),
    (no_call.no_tool_fits, 16),
    (no_call.talk_beside_tools, 8),
    (chain.two_calls, 19),
    (chain.three_calls, 5),
    (parallel.same_tool, 10),
    (parallel.two_tools, 10),
    (errors.try_again, 3),
    (errors.put_right, 7),
    (errors.give_up, 6),
    (schema.as_call, 17),
    (schema.as_json, 20),
    (schema.make_up, 4),
    (memory.remember, 12),
    (system.follow, 19),
    (small_talk.small_talk, 11),
    (follow_up.same_again, 7),
    (follow_up.something_else, 4),
    (session.session, 14),
    (ask_back.ask_back, 8),
    (echo.echo, 18),
)

_MORE: dict[Skill, float] = {
    call.nothing_to_fill_in: 16,
    chain.two_calls: 28,
    chain.three_calls: 8,
    memory.remember: 16,
}
LATER: tuple[tuple[Skill, float], ...] = tuple((skill, _MORE.get(skill, share)) for skill, share in LATE)
"""For a model that goes on: more of what was still wrong most."""

PEOPLES: tuple[tuple[Skill, float], ...] = (
    *LATER,
    (everyday.everyday, 16),
    (everyday.not_there, 8),
    (parallel.same_tool, 8),
    (errand_chain.two_errands, 26),
    (forms.as_call, 14),
    (forms.as_json, 30),
    (personal.personal, 12),
    (beside.remember, 7),
    (beside.personal, 10),
    (beside.follow, 10),
)
"""And then what people have and say, beside all the rest."""

_WIDE: dict[Skill, float] = {
    everyday.everyday: 84,
    everyday.not_there: 24,
    parallel.two_tools: 18,
    errand_chain.two_errands: 34,
    forms.as_call: 22,
    forms.as_json: 34,
    beside.remember: 16,
    beside.personal: 14,
    beside.follow: 22,
    small_talk.small_talk: 20,
    no_call.talk_beside_tools: 16,
}
_ONCE = {skill: sum(share for each, share in PEOPLES if each is skill) for skill, _ in PEOPLES}
WIDE: tuple[tuple[Skill, float], ...] = tuple((_ONCE | _WIDE).items())
"""Then more of what is said and asked in the widest manner."""

_PLAINLY: dict[Skill, float] = {
    call.one_call: 44,
    call.right_tool: 40,
    call.tell_apart: 30,
    call.told_by_label: 26,
    call.copy_foreign: 34,
    everyday.everyday: 76,
    chain.two_calls: 36,
    errand_chain.two_errands: 28,
    errors.give_up: 14,
    errors.put_right: 10,
    parallel.two_tools: 22,
    schema.as_call: 32,
    schema.as_json: 36,
    beside.personal: 18,
    echo.echo: 10,
}
PLAINLY: tuple[tuple[Skill, float], ...] = tuple((dict(WIDE) | _PLAINLY).items())
"""And then more of the calls themselves, in plain sentences."""

_FULLY: dict[Skill, float] = {
    call.right_tool: 46,
    chain.two_calls: 52,
    chain.three_calls: 20,
    errand_chain.two_errands: 38,
    errors.put_right: 12,
    follow_up.same_again: 16,
    follow_up.something_else: 8,
    memory.remember: 18,
    parallel.two_tools: 26,
    personal.personal: 20,
    beside.personal: 28,
    small_talk.small_talk: 24,
}
FULLY: tuple[tuple[Skill, float], ...] = tuple((dict(PLAINLY) | _FULLY).items())
"""And more of what comes one after the other, and of what somebody tells."""

_LIFELIKE: dict[Skill, float] = {
    call.one_call: 56,
    call.right_tool: 56,
    call.tell_apart: 40,
    call.told_by_label: 30,
    chain.two_calls: 60,
    echo.echo: 14,
    errors.give_up: 18,
    memory.remember: 22,
    schema.as_call: 46,
    schema.as_json: 50,
}
LIFELIKES: tuple[tuple[Skill, float], ...] = tuple((dict(FULLY) | _LIFELIKE).items())
"""And then more of what values are in."""

_HANDS_ON: dict[Skill, float] = {call.copy_foreign: 40, everyday.everyday: 116, errand_chain.two_errands: 44}
HANDS_ON_COMPUTERS: tuple[tuple[Skill, float], ...] = tuple((dict(LIFELIKES) | _HANDS_ON).items())
"""And more of what agents do."""

_CALLING: dict[Skill, float] = {
    call.one_call: 100,
    call.right_tool: 100,
    call.tell_apart: 60,
    call.told_by_label: 40,
    call.copy_foreign: 56,
    chain.two_calls: 76,
    everyday.everyday: 100,
    parallel.two_tools: 34,
    schema.as_call: 64,
    schema.as_json: 76,
}
CALLS: tuple[tuple[Skill, float], ...] = tuple((dict(HANDS_ON_COMPUTERS) | _CALLING).items())
"""And at last the calls themselves once more: which tool, and what goes into it."""

EARLY: tuple[tuple[Skill, float], ...] = (
    (echo.echo, 45),
    (call.one_call, 15),
    (call.copy_foreign, 5),
    (memory.remember, 10),
    (system.follow, 5),
    (small_talk.small_talk, 2),
    (no_call.no_tool_fits, 3),
    (everyday.everyday, 10),
    (follow_up.same_again, 5),
)
"""What is short and simple: at the very start there is nothing else. Copying is learned fastest by
copying."""


PLAIN: tuple[tuple[Skill, float], ...] = (
    (echo.echo, 6),
    (everyday.everyday, 20),
    (memory.remember, 2),
    (system.follow, 3),
    (small_talk.small_talk, 3),
    (parallel.same_tool, 4),
    (call.copy_foreign, 4),
    (follow_up.same_again, 2),
    (errors.put_right, 1),
    (errors.give_up, 2),
)
"""What is lost first beside all the rest: there is more of it beside strange tools."""

_PLAIN_SHARE = 0.13
_ALL_SKILLS_FROM = 0.35  # of how hard it gets: what comes later is more tools, and longer conversations


def conversation(seed: str, side: Side, ease: float = 1.0, strange: float = 0.0, stage: int = 1) -> Conversation:
    """The conversation of this seed, in this stage of training."""
    w = World(seed, side, ease, strange, stage)
    if strange and w.chance(_PLAIN_SHARE):
        return _PLAIN.draw(w)(w)
    skill = _BY_STAGE[stage].draw(w) if w.rng.random() < max(ease / _ALL_SKILLS_FROM, 0.1) else _EARLY.draw(w)
    return skill(w)


class _Choice:
    def __init__(self, shares: Sequence[tuple[Skill, float]]) -> None:
        self._skills = [skill for skill, _ in shares]
        self._edges = list(accumulate(share for _, share in shares))

    def draw(self, w: World) -> Skill:
        return self._skills[min(bisect(self._edges, w.rng.random() * self._edges[-1]), len(self._skills) - 1)]


_BY_STAGE = {
    1: _Choice(LATE),
    2: _Choice(LATER),
    LIKE_PEOPLE: _Choice(PEOPLES),
    WIDER: _Choice(WIDE),
    PLAINER: _Choice(PLAINLY),
    FULLER: _Choice(FULLY),
    LIFELIKE: _Choice(LIFELIKES),
    HANDS_ON: _Choice(HANDS_ON_COMPUTERS),
    CALLING: _Choice(CALLS),
}
_PLAIN = _Choice(PLAIN)
_EARLY = _Choice(EARLY)
