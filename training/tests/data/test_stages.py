"""What a stage of training makes stays as it is: the weights that are shipped were learned from it."""

import zlib

import pytest

from training.data.mixture import conversation
from training.data.render import aside_pieces, pieces
from training.data.side import Side

MADE = {
    1: 2703022265,
    2: 621101976,
    3: 1433716516,
    4: 4254457064,
    5: 1316695711,
    6: 2687293639,
    7: 2481682308,
    8: 836734556,
    9: 1021274954,
}
"""By stage, the sum of 150 conversations."""


@pytest.mark.parametrize("stage", MADE)
def test_what_it_makes_is_what_it_made(stage):
    """If this fails, what was changed is for a stage of its own: ``python -m training`` would give other weights."""
    made = [conversation(f"stage/{i}", Side.TRAIN, strange=0.3 * (i % 2), stage=stage) for i in range(150)]
    texts = (piece.text for each in made for said in (pieces(each), *map(aside_pieces, each.asides)) for piece in said)
    assert zlib.crc32("".join(texts).encode()) == MADE[stage]
