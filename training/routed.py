"""The worth of routing: two sizes behind one chat model, beside each of them alone, on tasks a third of which are hard.

    make bench-routed
    make bench-routed ARGS="--tasks 120 --light sprout-s --heavy sprout-m"

Each policy takes every task, in turns, and shares no cache with the others:

- default: the policy that a Route has.
- light, redone: the smaller size first, and what it gets wrong once more by the larger one. It is told what is wrong.
- heavy: always the larger size.

The tasks are made up, of templates, tools and values that no embedded model was trained on. A task is right if
every call and every answer in it is.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage

from langchain_gemma_jax import ChatGemmaJax, Route, configure
from training.chat_player import LONGEST, declared, messages
from training.data.conversation import Conversation
from training.data.mixture import Skill
from training.data.render import steps
from training.data.side import Side
from training.data.skills import call, chain, memory, no_call, schema
from training.data.world import World
from training.evaluate import everything
from training.parse import Answer

MOST_TIME, MOST_BEHIND = 0.85, 0.02  # of heavy's time, and how much less often right
LIGHT: tuple[Skill, ...] = (call.one_call, no_call.talk_beside_tools, memory.remember, call.copy_foreign)
HARD: tuple[Skill, ...] = (chain.two_calls, call.right_tool, chain.three_calls, schema.as_call)


@dataclass(frozen=True)
class Played:
    """One task as one policy did it."""

    seconds: float
    right: bool
    valid: bool
    sizes: tuple[str, ...]  # that answered, step by step


Play = Callable[[Conversation], Played]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m training.routed", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=90, help="90 by default")
    parser.add_argument("--light", default="sprout-s")
    parser.add_argument("--heavy", default="sprout-m")
    options = parser.parse_args(arguments)
    if options.tasks < 1:
        parser.error(f"--tasks: expected 1 or more, found {options.tasks}")
    configure(guards="off")
    players = policies(options.light, options.heavy)
    found: dict[str, list[Played]] = {name: [] for name in players}
    for number in range(-6, options.tasks):  # the first ones are not counted: what they need is compiled then
        made = task(number % options.tasks if number < 0 else number)
        for name, play in players.items():
            played = play(made)
            if number >= 0:
                found[name].append(played)
    sys.stdout.write(f"{report(found, options.light, options.heavy)}\n")
    return 0


def task(number: int) -> Conversation:
    """The task of this number: every third one is hard."""
    kinds = HARD if number % 3 == 2 else LIGHT
    return kinds[number // 3 % len(kinds)](World(f"routed/{number}", Side.HELD_OUT))


def policies(light: str, heavy: str) -> dict[str, Play]:
    """How each of them does a task."""

    def of(name: str, **model: object) -> Play:
        llm = ChatGemmaJax(temperature=0, max_tokens=LONGEST, scope=name, **model)  # type: ignore[arg-type]
        return lambda made: played(llm, made)

    smaller, larger = of("light", model=light), of("redone", model=heavy)

    def redone(made: Conversation) -> Played:
        first = smaller(made)
        if first.right:
            return first
        again = larger(made)
        return Played(first.seconds + again.seconds, again.right, again.valid, first.sizes + again.sizes)

    return {
        "default": of("default", model="auto", route=Route(light=light, heavy=heavy)),
        "light, redone": redone,
        "heavy": of("heavy", model=heavy),
    }


def played(llm: ChatGemmaJax, made: Conversation) -> Played:
    """Every step of a task, each behind the steps as they should have been."""
    tools = [declared(tool) for tool in made.tools]
    model = llm.bind_tools(tools, strict=False) if tools else llm
    graded, answers = [], []
    seconds = 0.0
    for number, step in enumerate(steps(made)):
        if not step.graded:
            continue
        told = list(messages(made, number))
        began = time.perf_counter()
        message = model.invoke(told)
        seconds += time.perf_counter() - began
        answers.append(message)
        calls = tuple((call["name"], call["args"]) for call in message.tool_calls)
        graded.append((step, Answer(calls, message.text.strip())))
    return Played(seconds, everything(graded)[0] == 1, all(map(valid, answers)), tuple(map(size, answers)))


def valid(message: AIMessage) -> bool:
    """Whether it says something, or calls something that there is as it is declared."""
    return not message.invalid_tool_calls and bool(message.tool_calls or message.text.strip())


def size(message: AIMessage) -> str:
    """Which model answered."""
    name = message.response_metadata["model_name"]
    return name if isinstance(name, str) else ""


def report(found: Mapping[str, Sequence[Played]], light: str, heavy: str) -> str:
    """The figures as Markdown."""
    total = {name: sum(each.seconds for each in tasks) for name, tasks in found.items()}
    rows = []
    for name, tasks in found.items():
        right, sound = _share(each.right for each in tasks), _share(each.valid for each in tasks)
        smaller = _share(size == light for each in tasks for size in each.sizes)
        rows.append(f"| {name} | {total[name]:.2f} | {right} | {sound} | {smaller} |")
    count = len(found["default"])
    head = f"{light} and {heavy}; {count} tasks, a third of them hard."
    share, ahead = total["default"] / total["heavy"], _right(found["default"]) - _right(found["heavy"])
    bars = [
        f"- in {MOST_TIME} of heavy's time: {share:.2f}, {_bar(share <= MOST_TIME)}",
        f"- right at least as often as heavy, but for {MOST_BEHIND:.0%}: {ahead:+.0%}, {_bar(ahead >= -MOST_BEHIND)}",
    ]
    titles = f"| policy | seconds | right | valid | steps by {light} |"
    return "\n".join((head, "", titles, "|---" * 5 + "|", *rows, "", *bars))


def _right(tasks: Sequence[Played]) -> float:
    return sum(each.right for each in tasks) / max(1, len(tasks))


def _bar(reached: bool) -> str:  # noqa: FBT001  what it says
    return "reached" if reached else "**missed**"


def _share(told: Iterable[bool]) -> str:
    known = list(told)
    return f"{sum(known) / max(1, len(known)):.0%}"


if __name__ == "__main__":
    sys.exit(main())
