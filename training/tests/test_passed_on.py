"""A label, and whoever writes the value before it, are taught how that value begins."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from training.configs import BOS, model_config
from training.data.pointers import LABELS, LOOKS, VALUE_BEFORE
from training.passed_on import AFTER, BY, passed_on_loss, turned

WIDTH = 160
EMBED = jnp.asarray(np.random.default_rng(3).standard_normal((40, WIDTH), np.float32))
TOKENS = (BOS, 7, 30, 8, 9, 7, 11, 12)


def batch(*looks, look=LABELS):
    """Each of them from where, to where."""
    table = np.zeros((1, LOOKS, 4, 4), np.int32)
    for index, (place, first) in enumerate(looks):
        table[0, look, index] = place, first, first + 1, 0
    return {"looks": jnp.asarray(table), "tokens": jnp.asarray([TOKENS], jnp.int32)}


def carrying(**tokens):
    """States after the only layer: those at these places point to these tokens."""
    states = np.zeros((1, len(TOKENS), WIDTH), np.float32)
    for place, token in tokens.items():
        states[0, int(place[1:])] = turned(EMBED)[token] * 5
    return jnp.asarray(states)


def figures(states, given, embed=EMBED):
    loss, shares = passed_on_loss([states], (0, 0), embed, given)
    return float(loss) * len(BY), float(shares[BY.index(LABELS)])


def test_who_carries_the_token_that_the_value_begins_with_is_right_and_who_carries_another_is_not():
    loss, share = figures(carrying(p6=30), batch((6, 2)))
    assert loss < 0.01
    assert share > 0.99
    loss, share = figures(carrying(p6=8), batch((6, 2)))
    assert loss > 10
    assert share < 0.01


def test_a_token_that_stands_in_two_places_is_one_token():
    assert figures(carrying(p6=7), batch((6, 1))) == figures(carrying(p6=7), batch((6, 5)))
    assert figures(carrying(p6=7), batch((6, 1)))[1] > 0.99


def test_where_no_value_is_or_a_head_has_nothing_to_do_nothing_is_taught():
    assert figures(carrying(p6=8), batch()) == (0, 0)
    assert figures(carrying(p6=8), batch((6, 0))) == (0, 0), "the start is no value"
    both, one = batch((6, 2), (4, 0)), batch((6, 2))
    assert figures(carrying(p6=30), both) == figures(carrying(p6=30), one)


def test_the_directions_are_as_far_from_one_another_as_the_embeddings_and_far_from_these():
    lengths = np.linalg.norm(EMBED, axis=-1, keepdims=True)
    found, plain = np.asarray(turned(EMBED)), np.asarray(EMBED) / lengths
    np.testing.assert_allclose(found @ found.T, plain @ plain.T, atol=1e-5)
    assert np.abs(np.sum(found * plain, axis=-1)).max() < 0.5


def test_the_gradient_asks_for_more_of_it_and_leaves_the_embeddings_alone():
    rng = np.random.default_rng(0)
    states = jnp.asarray(rng.standard_normal((1, len(TOKENS), WIDTH), np.float32))
    given = batch((6, 2), (7, 3))

    def loss(states, embed):
        return passed_on_loss([states], (0, 0), embed, given)[0]

    of_states, of_embed = jax.grad(loss, argnums=(0, 1))(states, EMBED)
    assert loss(states - of_states, EMBED) < loss(states, EMBED)
    assert not np.any(of_embed)


def test_a_model_that_was_grown_to_twice_the_width_carries_what_it_did():
    states = jnp.asarray(np.random.default_rng(0).standard_normal((1, len(TOKENS), WIDTH), np.float32))
    given = batch((6, 2), (7, 3))
    twice = jnp.concatenate([states, states], axis=-1)
    embed = jnp.concatenate([EMBED, EMBED], axis=-1)
    assert figures(twice, given, embed) == pytest.approx(figures(states, given), rel=1e-4)


def test_both_a_label_and_who_writes_are_taught_after_layers_of_their_own():
    label, writer = batch((6, 2)), batch((6, 2), look=VALUE_BEFORE)
    right, wrong = carrying(p6=30), carrying(p6=8)
    for given, states in ((label, [right, wrong]), (writer, [wrong, right])):
        assert passed_on_loss(states, (0, 1), EMBED, given)[0] < 0.01
        assert passed_on_loss(states[::-1], (0, 1), EMBED, given)[0] > 5


@pytest.mark.parametrize("model", ["sprout-s", "sprout-m"])
def test_the_embedded_models_have_such_layers(model):
    config = model_config(model)
    assert len(AFTER[model]) == len(BY)
    assert list(AFTER[model]) == sorted(AFTER[model])
    assert max(AFTER[model]) < len(config.layers) - 1, "a layer is left to use it"
