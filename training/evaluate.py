"""How good a model is at each skill, on conversations that have nothing in common with what it learned from.

python -m training.evaluate models/sprout/sprout-s --each 100
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Protocol

from training.chat_player import ChatPlayer
from training.data.conversation import Call, Calls, Json, Say
from training.data.mixture import Skill
from training.data.render import Question, Step, steps
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
    schema,
    session,
    small_talk,
    system,
)
from training.data.world import World
from training.parse import Answer

DESIGN, FINAL = "exam", "final"
"""Seeds: of conversations that may be looked at while the training is designed, and of those that scores are of."""


class Player(Protocol):
    """A model that answers questions: a chat model, or a test's."""

    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        """What it does at each question."""


@dataclass(frozen=True)
class Exam:
    """One figure: which conversations it is about, and what counts."""

    name: str
    skill: Skill
    counts: Callable[[Sequence[tuple[Step, Answer]]], tuple[int, int]]  # how many are right, of how many
    tag: str = ""
    bar_s: float = 0.0
    bar_m: float = 0.0


Graded = Sequence[tuple[Step, Answer]]


def calls_exact(graded: Graded) -> tuple[int, int]:
    """Every call with exactly its arguments; the conversation counts as one."""
    return _all(graded, Calls, _same_calls)


def right_name(graded: Graded) -> tuple[int, int]:
    """The right tool, whatever the arguments."""
    return _all(
        graded, Calls, lambda step, answer: [name for name, _ in answer.calls] == [c.tool for c in _calls(step)]
    )


def says(graded: Graded) -> tuple[int, int]:
    """No call, and all the facts in the answer."""
    return _all(graded, Say, _says)


def no_call_made(graded: Graded) -> tuple[int, int]:
    """No call, whatever the words."""
    return _all(graded, Say, lambda _, answer: not answer.calls)


def everything(graded: Graded) -> tuple[int, int]:
    """Every step of the conversation."""
    right = all(
        _same_calls(step, answer) if isinstance(step.wanted, Calls) else _says(step, answer) for step, answer in graded
    )
    return int(right), 1


def fields_exact(graded: Graded) -> tuple[int, int]:
    """Each field of a schema by itself."""
    right = total = 0
    for step, answer in graded:
        wanted = _calls(step)[0].arguments if isinstance(step.wanted, Calls) else json.loads(step.wanted.text)
        found = answer.calls[0][1] if answer.calls else _json(answer.text)
        found = found if isinstance(found, dict) else {}
        names = wanted.keys() | found.keys()
        total += len(names)
        right += sum(name in wanted and name in found and _same(wanted[name], found[name]) for name in names)
    return right, total


EXAMS = (
    Exam("single call exact", call.one_call, calls_exact, bar_s=0.85, bar_m=0.95),
    Exam("right tool of 8", call.right_tool, right_name, "8 tools", bar_s=0.85, bar_m=0.95),
    Exam("call exact, of 8", call.right_tool, calls_exact, "8 tools"),
    Exam("everyday request", everyday.everyday, calls_exact),
    Exam("unusual errand", everyday.unusual, calls_exact),
    Exam("two errands in a row", errand_chain.two_errands, calls_exact),
    Exam("no call when none fits", no_call.no_tool_fits, no_call_made, bar_s=0.90, bar_m=0.95),
    Exam("no call in small talk", no_call.talk_beside_tools, no_call_made),
    Exam("answer from result", call.one_call, says, bar_s=0.85, bar_m=0.95),
    Exam("chain of two", chain.two_calls, calls_exact, bar_s=0.60, bar_m=0.85),
    Exam("chain of three", chain.three_calls, calls_exact),
    Exam("schema fields, as call", schema.as_call, fields_exact, bar_s=0.75, bar_m=0.90),
    Exam("schema fields, as JSON", schema.as_json, fields_exact, bar_s=0.75, bar_m=0.90),
    Exam("form, as call", forms.as_call, fields_exact),
    Exam("form, as JSON", forms.as_json, fields_exact),
    *(
        Exam(f"copy {name}", call.copy_foreign, calls_exact, f"script {name}", bar_s=0.80, bar_m=0.95)
        for name in ("cjk", "cyrillic", "arabic")
    ),
    Exam("copy any script", call.copy_foreign, calls_exact),
    Exam("parallel, same tool", parallel.same_tool, calls_exact),
    Exam("parallel, two tools", parallel.two_tools, calls_exact),
    Exam("error: try again", errors.try_again, everything),
    Exam("error: put right", errors.put_right, calls_exact),
    Exam("error: say so", errors.give_up, everything),
    Exam("ask back", ask_back.ask_back, everything),
    Exam("say after me", echo.echo, says),
    Exam("remember", memory.remember, says),
    Exam("remember, beside tools", beside.personal, says),
    Exam("system line", system.follow, says),
    Exam("system line, beside tools", beside.follow, says),
    Exam("small talk", small_talk.small_talk, says),
    Exam("end of a long session", session.session, everything),
    Exam("follow-up, same tool", follow_up.same_again, calls_exact),
    Exam("follow-up, other tool", follow_up.something_else, calls_exact),
)


@dataclass(frozen=True)
class Score:
    """How many were right."""

    exam: Exam
    right: int
    total: int
    mistakes: tuple[str, ...]


def evaluate(player: Player, each: int, seed: str = DESIGN, side: Side = Side.HELD_OUT) -> Iterator[Score]:
    """Every exam's score on so many conversations."""
    for exam in EXAMS:
        asked = list(_questions(exam, each, f"{seed}/{exam.name}", side))
        answers = player.answer(asked)
        right = total = 0
        mistakes: list[str] = []
        for index in range(each):
            graded = [(q.step, a) for q, a in zip(asked, answers, strict=True) if q.index == index]
            more_right, more = exam.counts(graded)
            right, total = right + more_right, total + more
            if more_right < more:
                mistakes.append("\n".join(f"{step.prompt}\n  wanted {step.answer}\n  found  {a}" for step, a in graded))
        yield Score(exam, right, total, tuple(mistakes))


def report(scores: Sequence[Score]) -> str:
    """The scores as a Markdown table."""
    lines = ["| skill | right | of | share | bar s | bar m |", "|---|---|---|---|---|---|"]
    for score in scores:
        bars = " | ".join(f"{bar:.0%}" if bar else "" for bar in (score.exam.bar_s, score.exam.bar_m))
        share = score.right / max(1, score.total)
        lines.append(f"| {score.exam.name} | {score.right} | {score.total} | {share:.1%} | {bars} |")
    return "\n".join(lines) + "\n"


def _questions(exam: Exam, each: int, seed: str, side: Side) -> Iterator[Question]:
    found = 0
    for number in count():
        if found == each:
            return
        made = exam.skill(World(f"{seed}/{number}", side))
        if exam.tag and exam.tag not in made.tags:
            continue
        yield from (Question(made, found, step, number) for number, step in enumerate(steps(made)) if step.graded)
        found += 1


def _all(graded: Graded, kind: type[Calls | Say], right: Callable[[Step, Answer], bool]) -> tuple[int, int]:
    chosen = [(step, answer) for step, answer in graded if isinstance(step.wanted, kind)]
    return int(all(right(step, answer) for step, answer in chosen)), 1


def _calls(step: Step) -> tuple[Call, ...]:
    return step.wanted.calls if isinstance(step.wanted, Calls) else ()


def _same_calls(step: Step, answer: Answer) -> bool:
    wanted = Counter(_key(c.tool, c.arguments) for c in _calls(step))
    return wanted == Counter(_key(name, arguments) for name, arguments in answer.calls)


def _says(step: Step, answer: Answer) -> bool:
    if not isinstance(step.wanted, Say) or answer.calls:
        return False
    if step.wanted.exact:
        return answer.text == step.wanted.text.strip()
    return all(fact in answer.text for fact in step.wanted.facts)


def _key(name: str, arguments: Json) -> str:
    return name + json.dumps(_plain(arguments), sort_keys=True, ensure_ascii=False)


def _plain(item: Json) -> Json:
    """``2.0`` and ``2`` are the same number."""
    if isinstance(item, dict):
        return {key: _plain(inner) for key, inner in item.items()}
    if isinstance(item, list):
        return [_plain(inner) for inner in item]
    return int(item) if isinstance(item, float) and item.is_integer() else item


def _same(first: Json, second: Json) -> bool:
    return _key("", first) == _key("", second)


def _json(text: str) -> Json:
    try:
        found: Json = json.loads(text)
    except ValueError:
        return None
    return found


def main() -> None:
    """Examine a model in Hugging Face's layout, through ``ChatGemmaJax``."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path, help="the model's")
    parser.add_argument("--each", type=int, default=100, help="conversations a skill")
    parser.add_argument("--seed", default=DESIGN, help="which conversations")
    parser.add_argument("--side", type=Side, choices=list(Side), default=Side.HELD_OUT)
    parser.add_argument("--show", type=int, default=0, help="print so many mistakes of each skill")
    arguments = parser.parse_args()
    scores = []
    for score in evaluate(ChatPlayer(arguments.folder), arguments.each, arguments.seed, arguments.side):
        scores.append(score)
        sys.stdout.write("".join(f"--- {score.exam.name}\n{told}\n" for told in score.mistakes[: arguments.show]))
    sys.stdout.write(report(scores))


if __name__ == "__main__":
    main()
