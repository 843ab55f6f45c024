"""Pictures of another size, beside the same sums written out one by one."""

from __future__ import annotations

import numpy as np
import pytest

from langchain_gemma_jax.models.vision.resize import resize


def curve(kind, x):
    x = abs(x)
    if kind == "bilinear":
        return max(0.0, 1 - x)
    if x < 1:
        return 1.5 * x**3 - 2.5 * x**2 + 1
    return -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2 if x < 2 else 0.0


def slowly(row, wanted, kind):
    """A row of numbers, made so long."""
    scale = len(row) / wanted
    stretch, found = max(scale, 1.0), []
    for place in range(wanted):
        middle = (place + 0.5) * scale
        weights = [curve(kind, (at + 0.5 - middle) / stretch) for at in range(len(row))]
        found.append(sum(w * value for w, value in zip(weights, row, strict=True)) / sum(weights))
    return np.clip(np.floor(np.array(found) + 0.5), 0, 255)


@pytest.mark.parametrize("kind", ["bilinear", "bicubic"])
def test_each_pixel_is_the_weighted_mean_of_those_around_it(kind):
    numbers = np.random.default_rng(3)
    for height, width, tall, wide in [(5, 7, 9, 3), (8, 8, 3, 20), (1, 2, 4, 4), (13, 4, 5, 4), (6, 6, 6, 6)]:
        pixels = numbers.integers(0, 256, (height, width, 3), dtype=np.uint8)
        across = [[slowly(pixels[row, :, c], wide, kind) for c in range(3)] for row in range(height)]
        middle = np.array(across).transpose(0, 2, 1) if wide != width else pixels.astype(float)
        down = [[slowly(middle[:, column, c], tall, kind) for c in range(3)] for column in range(wide)]
        wanted = np.array(down).transpose(2, 0, 1) if tall != height else middle
        found = resize(pixels, tall, wide, kind)
        assert found.dtype == np.uint8
        assert np.abs(found - wanted).max() <= 1, (height, width, tall, wide)
        assert (found != wanted).mean() < 0.1, "halves may be rounded either way"


def test_a_plain_picture_stays_plain():
    for kind in ("bilinear", "bicubic"):
        assert (resize(np.full((7, 200, 3), 201, np.uint8), 91, 13, kind) == 201).all()
