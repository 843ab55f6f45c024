"""Which drills there are, as training goes on."""

import pytest
import tokenizers

from training.data.drills import Drills, share
from training.tokenizer import CONTROL


@pytest.mark.parametrize(("earlier", "later"), [(0.0, 0.05), (0.05, 0.1)])
def test_drills_get_fewer(earlier, later):
    assert share(earlier) > share(later) > share(1.0) > 0


def test_calls_and_copying_are_drilled(tokenizer_folder):
    tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_folder / "tokenizer.json"))
    drills = Drills(range(len(CONTROL), 4096), 2, lambda text: tokenizer.encode(text, add_special_tokens=False).ids)
    declare = CONTROL.index("<|tool>")
    made = [declare in drills.text(f"{number}").ids for number in range(400)]
    assert sum(made) / len(made) == pytest.approx(0.6, abs=0.08)
