"""Heads are taught to look where they should, and nowhere else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from training.configs import model_config
from training.data.pointers import (
    CHOSEN,
    KEY,
    KEY_BEGINS,
    LABEL,
    LED_HERE,
    LOOKS,
    NAME,
    VALUE,
    VALUE_BEFORE,
    VALUE_BEGINS,
)
from training.look import HEADS, Looking, look_loss

TOKENS = 12


@pytest.fixture
def config(tiny_with_both_kinds_of_layers):
    return tiny_with_both_kinds_of_layers


def looking(layer):
    return tuple(Looking(look, layer, 0, 0) for look in range(LOOKS))


def asked(seed=0):
    rng = np.random.default_rng(seed)
    queries = rng.standard_normal((1, 1, 2, TOKENS, 8), np.float32)
    keys = rng.standard_normal((1, 1, TOKENS, 8), np.float32)
    return jnp.asarray(queries), jnp.asarray(keys)


def batch(*looks, marks=None, segments=None, look=NAME):
    table = np.zeros((1, LOOKS, 4, 4), np.int32)
    for index, each in enumerate(looks):
        table[0, look, index] = each
    every = np.zeros((1, LOOKS, TOKENS), np.int32)
    every[0, look] = 0 if marks is None else marks
    return {
        "looks": table,
        "marks": every,
        "segments": np.asarray([segments or [1] * TOKENS]),
    }


def share(config, given, layer=1, of=None, look=NAME):
    queries, keys = of or asked()
    loss, shares = look_loss(config, looking(layer), [(queries, keys)] * 2, given)
    return float(loss) * LOOKS, float(shares[look])


def attention(place, first=0):
    queries, keys = asked()
    odds = np.exp(np.asarray(keys[0, 0, first : place + 1] @ queries[0, 0, 0, place]))
    return np.concatenate([np.zeros(first), odds / odds.sum()])


def test_the_loss_is_how_little_a_head_looks_there(config):
    expected = attention(9)[2:5].sum()
    loss, there = share(config, batch((9, 2, 5, 0)))
    assert there == pytest.approx(expected, rel=1e-5)
    assert loss == pytest.approx(-np.log(expected), rel=1e-5)


def test_only_tokens_with_the_mark_are_where_it_should_look(config):
    marks = np.zeros(TOKENS, np.int32)
    marks[3] = 7
    assert share(config, batch((9, 2, 5, 7), marks=marks))[1] == pytest.approx(attention(9)[3], rel=1e-5)


def test_a_negative_mark_is_of_all_tokens_that_have_its_bit(config):
    marks = np.zeros(TOKENS, np.int32)
    marks[[2, 3, 4]] = 0b01, 0b11, 0b10
    there = attention(9)
    given = batch((9, 0, 9, -0b10), marks=marks, look=LED_HERE)
    assert share(config, given, look=LED_HERE)[1] == pytest.approx(there[3] + there[4], rel=1e-5)


def test_of_several_tokens_each_counts_and_most_the_one_that_leads_to_one_tool_alone(config):
    marks = np.zeros(TOKENS, np.int32)
    marks[[2, 3, 4]] = 0b01, 0b11, 0b10
    given = batch((9, 0, 9, -0b10), marks=marks, look=LED_HERE)
    wanted = np.asarray([1 / 3, 2 / 3])
    expected = np.sum(wanted * (np.log(wanted) - np.log(attention(9)[3:5])))
    assert share(config, given, look=LED_HERE)[0] == pytest.approx(expected, rel=1e-5)
    best = np.full(TOKENS, -30.0, np.float32)
    best[3:5] = np.log(wanted)
    queries, keys = np.zeros((1, 1, 2, TOKENS, 8), np.float32), np.zeros((1, 1, TOKENS, 8), np.float32)
    queries[..., 0], keys[0, 0, :, 0] = 1, best
    assert share(config, given, of=(queries, keys), look=LED_HERE)[0] == pytest.approx(0, abs=1e-5)


def test_what_cannot_be_seen_is_not_taught(config):
    assert share(config, batch()) == (0, 0)  # nothing at all
    assert share(config, batch((3, 5, 8, 0))) == (0, 0)  # it comes later
    assert share(config, batch((9, 2, 5, 0), segments=[1] * 6 + [2] * 6)) == (0, 0)  # another conversation's
    windowed = next(index for index, layer in enumerate(config.layers) if layer.window == 8)
    assert share(config, batch((10, 0, 2, 0)), layer=windowed) == (0, 0)
    assert share(config, batch((9, 2, 5, 0)), layer=windowed)[1] == pytest.approx(attention(9, 2)[2:5].sum(), rel=1e-5)


def test_looking_there_more_is_what_the_gradient_asks_for(config):
    queries, keys = asked()

    def loss(queries):
        return look_loss(config, looking(1), [(queries, keys)] * 2, batch((9, 2, 5, 0)))[0]

    better = queries - 0.5 * jax.grad(loss)(queries)
    assert share(config, batch((9, 2, 5, 0)), of=(better, keys))[1] > attention(9)[2:5].sum()


@pytest.mark.parametrize("model", ["sprout-s", "sprout-m"])
def test_the_embedded_models_have_such_heads(model):
    config = model_config(model)
    for each in HEADS[model]:
        layer = config.layers[each.layer]
        assert each.kv_head < layer.kv_heads
        assert each.head < config.heads // layer.kv_heads
    taught = {each.look: (each.layer, each.kv_head, each.head) for each in reversed(HEADS[model])}  # the first of each
    assert set(taught) == set(range(LOOKS))
    assert len(set(HEADS[model])) == len(HEADS[model])
    assert taught[KEY] == taught[KEY_BEGINS]
    assert taught[VALUE] == taught[VALUE_BEGINS]
    # Where there is no head left: no token needs both.
    shared = 2 + (taught[LABEL] == taught[KEY]) + (taught[VALUE_BEFORE] == taught[CHOSEN])
    assert len(set(taught.values())) == LOOKS - shared, "all others have a head of their own"
