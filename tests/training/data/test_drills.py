"""Which drills there are, as training goes on."""

import dataclasses

import pytest
import tokenizers

from training.data.drills import TOOLS_FIRST, Drills, stage
from training.data.stream import Maker, Plan
from training.tokenizer import CONTROL


@pytest.mark.parametrize(("earlier", "later"), [(0.0, 0.05), (0.05, 0.3), (0.3, 0.5), (0.6, 1.0)])
def test_drills_get_fewer(earlier, later):
    assert stage(earlier).share > stage(later).share > 0


def test_what_belongs_together_is_drilled_when_looking_up_is_learned():
    assert stage(0.5).owners == 0 < stage(0.6).owners
    assert stage(0.99).words == 0 < stage(1.0).words


@pytest.fixture(scope="module")
def drills(tokenizer_folder):
    tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_folder / "tokenizer.json"))
    return Drills(range(len(CONTROL), 4096), 2, lambda text: tokenizer.encode(text, add_special_tokens=False).ids)


@pytest.mark.parametrize(("kind", "share"), [("words", 0.6), ("calls", 0.35), ("copying", 0.05)])
def test_each_kind_has_its_share(drills, kind, share):
    declare, call = CONTROL.index("<|tool>"), CONTROL.index("<|tool_call>")

    def found(text):
        return "calls" if call in text.ids else "words" if declare in text.ids else "copying"

    made = [found(drills.text(f"{number}", TOOLS_FIRST)) for number in range(400)]
    assert made.count(kind) / len(made) == pytest.approx(share, abs=0.08)


def test_a_run_may_begin_with_drills_about_tools(tokenizer_folder):
    plan = Plan(tokenizer_folder, "seed", rows=1, length=1024, drilled_tokens=4 * 1024)
    first, without = Maker(plan), Maker(dataclasses.replace(plan, drilled_tokens=0))
    assert first.batch(3)["tokens"].tolist() != without.batch(3)["tokens"].tolist()
    assert first.batch(4)["tokens"].tolist() == without.batch(4)["tokens"].tolist()
