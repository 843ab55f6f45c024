"""A model is taught the number of the tool that a token is about."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from training.configs import model_config
from training.data.pointers import BEHIND, NUMBERED, NUMBERS
from training.look import HEADS
from training.which import AFTER, directions, which_loss

TOKENS, WIDTH = 6, 160


def batch(*bits):
    marks = np.zeros((1, NUMBERED + 1, TOKENS), np.int32)
    marks[0, NUMBERED, : len(bits)] = bits
    return {"marks": marks}


def test_what_a_value_looks_like_points_elsewhere_than_any_tool():
    tools, values = directions(WIDTH), directions(WIDTH, 1)
    np.testing.assert_allclose(values @ values.T, np.eye(NUMBERS), atol=1e-6)
    np.testing.assert_allclose(tools @ values.T, 0, atol=1e-6)
    marks = np.zeros((1, NUMBERED + 5, TOKENS), np.int32)
    marks[0, NUMBERED + 3, :2] = 1 << 4
    states = np.zeros((1, TOKENS, WIDTH), np.float32)
    states[0, :2] = values[4] * 5
    _, shares = which_loss([jnp.asarray(states)], (0,) * 5, {"marks": marks})
    np.testing.assert_allclose(shares, [0, 0, 0, 1, 0], atol=1e-6)


def figures(states, given):
    loss, shares = which_loss([states], (0,), given)
    return float(loss), float(shares[0])


def pointing(*numbers):
    """States of which each points to one number."""
    states = np.zeros((1, TOKENS, WIDTH), np.float32)
    for token, number in enumerate(numbers):
        states[0, token] = directions(WIDTH)[number] * 5
    return jnp.asarray(states)


def test_the_directions_are_at_right_angles():
    found = directions(WIDTH)
    np.testing.assert_allclose(found @ found.T, np.eye(NUMBERS), atol=1e-6)


def test_what_points_to_its_number_is_right_and_what_points_to_another_is_not():
    loss, share = figures(pointing(3, 1), batch(1 << 3, 1 << 1))
    assert loss == pytest.approx(0, abs=1e-6)
    assert share == pytest.approx(1, abs=1e-6)
    loss, share = figures(pointing(3, 2), batch(1 << 3, 1 << 1))
    assert loss > 3
    assert share == pytest.approx(0.5, abs=1e-6)


def test_a_word_of_two_tools_points_to_both_alike():
    both = pointing(3) + pointing(5)
    loss, share = figures(both, batch(1 << 3 | 1 << 5))
    assert (loss, share) == (pytest.approx(0, abs=1e-3), pytest.approx(1, abs=1e-3))
    assert figures(pointing(3), batch(1 << 3 | 1 << 5))[0] > 1.5


def test_what_has_no_number_is_not_taught():
    assert figures(pointing(3), batch()) == (0, 0)
    assert figures(pointing(3, 4), batch(1 << 3)) == figures(pointing(3, 7), batch(1 << 3))


def test_pointing_there_more_is_what_the_gradient_asks_for():
    states = jnp.asarray(np.random.default_rng(0).standard_normal((1, TOKENS, WIDTH), np.float32))
    given = batch(1, 1 << 2, 1 << 2 | 1 << 9)
    before, _ = figures(states, given)
    better = states - jax.grad(lambda states: which_loss([states], (0,), given)[0])(states)
    assert figures(better, given)[0] < before


def test_a_model_that_was_grown_to_twice_the_width_points_where_it_did():
    states = jnp.asarray(np.random.default_rng(0).standard_normal((1, TOKENS, WIDTH), np.float32))
    given = batch(1, 1 << 2, 1 << 9)
    twice = jnp.concatenate([states, states], axis=-1)
    assert figures(twice, given) == pytest.approx(figures(states, given), rel=1e-5)


@pytest.mark.parametrize("model", ["sprout-s", "sprout-m"])
def test_the_embedded_models_have_such_layers(model):
    config = model_config(model)
    assert config.width % WIDTH == 0
    *tools, said, wanted = AFTER[model]
    assert tools == sorted(tools)
    assert said == wanted < next(each.layer for each in HEADS[model] if each.look == BEHIND), "then they are compared"
    assert max(AFTER[model]) < len(config.layers) - 1, "a layer is left to use it"
