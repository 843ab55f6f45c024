"""The forward pass against itself: whatever must not matter does not, in every architecture.

That it is Gemma at all is shown elsewhere: by ``tests/goldens``, and by ``make parity``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.kernels.attention import can_attend
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.gemma.forward import embed_scale, forward, logits
from langchain_gemma_jax.models.recipes import AttentionForm, BetweenForm, Form, Plan, Recipe
from langchain_gemma_jax.models.seams.kv_cache import KVCache, allocate
from tests.parity.architectures import WINDOW
from tests.parity.tiny import ARCHITECTURES, FLOAT32, Runner, parameters, small

SLACK = 16  # beyond a window
RING = WINDOW + SLACK
LENGTH = 2 * RING + WINDOW + 5  # several windows
CLOSE = 2e-5  # of the logits' spread
SHARED_KV = "gemma-4-e2b"
THREE_LAYERS = "gemma-3-1b"

# With these, whatever an architecture can have is there; the goldens are of all of them.
QUICK = {"gemma-2-27b", THREE_LAYERS, SHARED_KV, "gemma-4-26b-a4b"}
every = pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in ARCHITECTURES]
)


def most_slow(quick, rest):
    """Parameters: the first are for every run, the others for the thorough one."""
    return [*quick, *(pytest.param(value, marks=pytest.mark.slow) for value in rest)]


@cache
def model(name):
    """``(config, params, tokens [row, token], the logits of each row read at once)``."""
    config = small(name)
    params = parameters(config)
    tokens = np.random.default_rng(7).integers(3, config.vocab_size, (2, LENGTH))
    return config, params, tokens, Runner(config, params).read(tokens)


def same(ours, expected):
    assert ours.shape == expected.shape
    np.testing.assert_allclose(ours, expected, rtol=0, atol=CLOSE * float(np.std(expected)))


def differ(ours, expected):
    assert np.max(np.abs(ours - expected)) > 0.01 * np.std(expected)


def after(name, *, read):
    """A runner whose rows have read that many tokens, in one chunk."""
    config, params, tokens, _ = model(name)
    runner = Runner(config, params)
    runner.read([row[:count] for row, count in zip(tokens, read, strict=True)])
    return runner


@pytest.mark.long
@every
def test_token_by_token_is_the_same_as_at_once(name):
    config, params, tokens, whole = model(name)
    runner = Runner(config, params)
    steps = [runner.read([row[at : at + 1] for row in tokens]) for at in range(LENGTH)]
    for row in range(2):
        same(np.concatenate([step[row] for step in steps]), whole[row])


@pytest.mark.long
@every
@pytest.mark.parametrize("seed", most_slow([0, 1], [2, 3]))
def test_any_chunks_are_the_same_as_at_once(name, seed):
    """Chunks of any length up to longer than the ring, others in each row, and chunks of nothing among them."""
    config, params, tokens, whole = model(name)
    random = np.random.default_rng(seed)
    runner, found = Runner(config, params), [[], []]
    while np.any(runner.start < LENGTH):
        wanted = random.choice([0, 1, 2, 3, 6, 20, RING - 1, RING, RING + 1, 40], 2)
        chunks = [row[at : at + size] for row, at, size in zip(tokens, runner.start, wanted, strict=True)]
        for row, scores in enumerate(runner.read(chunks)):
            found[row].append(scores)
    for row in range(2):
        same(np.concatenate(found[row]), whole[row])


@pytest.mark.long
@pytest.mark.parametrize("length", most_slow([SLACK + 1, RING + 1], [SLACK, SLACK + 2, RING]))
def test_full_chunks_at_the_edges_of_slack_and_ring(length):
    """No padding: where a step becomes a chunk (one more than the slack would do), and a chunk longer than the ring."""
    config, params, tokens, whole = model(THREE_LAYERS)
    runner = Runner(config, params, lengths=(1, 3, length, 64))
    head, cuts = 3, range(3, LENGTH - length, length)
    found = [runner.read(tokens[:, :head])]
    found += [runner.read(tokens[:, at : at + length]) for at in cuts]
    assert len(cuts) > 1
    for row in range(2):
        ours = np.concatenate([scores[row] for scores in found])
        same(ours, whole[row][: len(ours)])


WILD = (-1, 2**31 - 1, 5, -(2**31), 10**6, 0)


@pytest.mark.long
@every
def test_what_stands_in_the_padding_does_not_matter(name):
    """Not even ids that no vocabulary has; neither now nor for what is read later."""
    config, params, tokens, whole = model(name)
    runner, cuts = Runner(config, params), (0, 40, 43, 44, 62)
    for begin, end in pairwise(cuts):
        for row, scores in enumerate(runner.read(tokens[:, begin:end], pad=WILD)):
            assert np.isfinite(scores).all()
            same(scores, whole[row][begin:end])


@every
def test_how_much_padding_does_not_matter(name):
    _, _, tokens, whole = model(name)
    for lengths in ((3,), (64,)):
        runner = after(name, read=(30, 30))
        runner.lengths = lengths
        for row, scores in enumerate(runner.read(tokens[:, 30:33])):
            same(scores, whole[row][30:33])


@every
def test_a_row_does_not_depend_on_its_neighbor(name):
    config, params, tokens, whole = model(name)
    others = np.random.default_rng(8).integers(3, config.vocab_size, LENGTH)
    for neighbor_at in (0, 3, 50):
        runner = Runner(config, params)
        runner.read([tokens[0, :40], others[:neighbor_at]])
        mine, _ = runner.read([tokens[0, 40:43], others[neighbor_at : neighbor_at + 2]])
        same(mine, whole[0][40:43])


def test_rows_can_change_places():
    config, params, tokens, whole = model(THREE_LAYERS)
    swapped = Runner(config, params).read(tokens[::-1])
    same(swapped[0], whole[1])
    same(swapped[1], whole[0])


@every
@pytest.mark.parametrize("way", ["tokens", "chunks"])
def test_up_to_the_slack_can_be_forgotten(name, way):
    """Reading on from a smaller ``start``, after tokens that were not to be, is as if they had never been."""
    config, _, tokens, whole = model(name)
    wrong = np.random.default_rng(9).integers(3, config.vocab_size, SLACK)
    runner = after(name, read=(45, 31))
    before = runner.start
    sizes = [1] * SLACK if way == "tokens" else [3, 3, 3, 3, 3, 1]
    for end, size in zip(np.cumsum(sizes), sizes, strict=True):
        runner.read([wrong[end - size : end]] * 2)
    runner.start = before
    for row, scores in enumerate(runner.read([tokens[0, 45:46], tokens[1, 31:32]])):
        same(scores[0], whole[row][before[row]])
    for row, scores in enumerate(runner.read([tokens[0, 46:60], tokens[1, 32:50]])):
        same(scores, whole[row][runner.start[row] - len(scores) : runner.start[row]])


def test_forgetting_is_needed():
    """The wrong tokens of the test above do change what follows, when they are not forgotten."""
    config, _, tokens, whole = model(THREE_LAYERS)
    runner = after(THREE_LAYERS, read=(45, 31))
    runner.read([np.full(3, 9)] * 2)
    differ(runner.read([tokens[0, 45:46]] * 2)[0][0], whole[0][45])
    assert config.layers[0].window == WINDOW


@pytest.mark.long
@pytest.mark.parametrize("name", [SHARED_KV, "gemma-4-26b-a4b", "gemma-2b"])
def test_keep_is_indexing(name):
    """Also where it lets the layers skip the rest of the chunk, and also what stays in the cache."""
    config, params, tokens, whole = model(name)
    runner = Runner(config, params)
    kept = runner.read(tokens, keep=[41, 17])
    same(kept[0][0], whole[0][41])
    same(kept[1][0], whole[1][17])
    runner.start[:] = (50, 50)  # the cache holds the whole chunk all the same
    for row, scores in enumerate(runner.read(tokens[:, 50:51])):
        same(scores[0], whole[row][50])


def test_keep_spares_the_layers_that_own_no_kv():
    """Only then is a long prompt cheap where half of the layers share their KV."""
    config, params, _, _ = model(SHARED_KV)

    def products(keep):
        numbers = jnp.zeros((2, 64), jnp.int32), jnp.zeros(2, jnp.int32), jnp.full(2, 64, jnp.int32)
        run = jax.make_jaxpr(
            lambda: forward(params, config, FLOAT32, *numbers, allocate(config.cache_layout, 2, 64, "float32"), keep)
        )
        shapes = [e.outvars[0].aval.shape for e in run().eqns if e.primitive.name == "dot_general"]
        return sum(shape[0] == 2 * 64 for shape in shapes)

    own, share = len(config.kv_layers), len(config.layers) - len(config.kv_layers)
    assert (own, share) == (2, 2)
    one_layer = (products(None) - 1) / 4  # all but the projection of the per-layer inputs
    assert products(jnp.zeros(2, jnp.int32)) == products(None) - share * one_layer


@pytest.mark.long
def test_where_pages_lie_and_how_large_they_are_does_not_matter():
    """Local layers go round in a table of few pages; every layer's pages are in any order."""
    config, params, tokens, whole = model(THREE_LAYERS)
    random = np.random.default_rng(8)
    for page in (4, 16):
        runner = Runner(config, params, lengths=(1, 17), page=page)
        shuffled = random.permutation(np.arange(1, 1 + runner.cache.whole.size)).reshape(runner.cache.whole.shape)
        entries = -(-(WINDOW + 17) // page) + 1
        tables = jax.device_put((shuffled.astype(np.int32), shuffled[:, :entries].astype(np.int32)))
        runner.cache = KVCache(runner.cache.layers, *tables)
        found = [runner.read(tokens[:, :17])] + [runner.read(tokens[:, at : at + 1]) for at in range(17, LENGTH)]
        for row in range(2):
            same(np.concatenate([scores[row] for scores in found]), whole[row][:LENGTH])


# One model with every mechanism, for what does not need every architecture.


@cache
def everything() -> ModelConfig:
    """One layer with each product that there is."""
    moe, ple = small("gemma-4-26b-a4b"), small(SHARED_KV)
    layer = replace(ple.layers[1], k_eq_v=True)
    return ple.replace(layers=(layer,), moe=moe.moe, attention_softcap=20.0, tied_head=False)


PLANS = [
    Recipe("float32", Plan(True, Form.PAD_ROWS, Form.EACH_ROW), Plan(False, Form.DOT, Form.DOT)),
    Recipe(
        "float32",
        Plan(False, Form.EACH_ROW, Form.DOT),
        Plan(True, Form.PAD_ROWS, Form.EACH_ROW),
        attention_pairs=100,
    ),
]


@cache
def scores_of_everything(recipe):
    """A short prompt, a step of two rows, and one of a single row."""
    config = everything()
    params = parameters(config, recipe)
    tokens = np.random.default_rng(3).integers(3, config.vocab_size, (2, 4))
    two = Runner(config, params, recipe=recipe, capacity=16, lengths=(1, 3))
    one = Runner(config, params, recipe=recipe, capacity=16, lengths=(1, 3), rows=1)
    found = [*two.read(tokens[:, :3]), *two.read(tokens[:, 3:])]
    return np.concatenate([*found, *one.read(tokens[:1, :1])])


@pytest.mark.long
@pytest.mark.parametrize("recipe", PLANS, ids=["layers out first", "layers in first"])
def test_a_recipe_does_not_change_the_numbers(recipe):
    same(scores_of_everything(recipe), scores_of_everything(FLOAT32))


@pytest.mark.parametrize(
    "name",
    most_slow([SHARED_KV, "gemma-2-27b"], [each for each in ARCHITECTURES if each not in {SHARED_KV, "gemma-2-27b"}]),
)
@pytest.mark.long
def test_kernels_attend_as_products_do(name):
    """Steps, short and long chunks, round the ring, with the last token alone kept; all as wide as kernels want.

    And they compute what lies between products, to the same bits for each token however it comes.
    """
    if not can_attend(16, jnp.dtype("float32")):
        pytest.skip("the kernels do not run here")
    config = small(name)
    layers = tuple(replace(layer, head_dim=32, ffw_width=48) for layer in config.layers)
    config = config.replace(layers=layers)
    tokens = np.random.default_rng(5).integers(3, config.vocab_size, (2, 90))
    found = []
    for form, between in zip(AttentionForm, BetweenForm, strict=True):
        recipe = Recipe("float32", attention=form, between=between)
        runner = Runner(config, parameters(config), recipe=recipe, lengths=(1, 3, 40))
        parts = [*runner.read(tokens[:, :40])]
        parts += [scores for at in (40, 43) for scores in runner.read(tokens[:, at : at + 3])]
        parts += [*runner.read([tokens[0, 46:80], tokens[1, 46:60]], keep=[33, 13])]
        parts += [*runner.read([tokens[0, 80:81], tokens[1, 60:61]])]
        found.append(np.concatenate(parts))
    same(*found)


@pytest.mark.long
@pytest.mark.parametrize("dtype", most_slow(["bfloat16"], ["float16"]))
def test_half_precision_is_near_and_its_scores_are_float32(dtype):
    config, _, tokens, whole = model("gemma-3-4b")
    recipe = Recipe(dtype)
    runner = Runner(config, parameters(config, recipe), recipe=recipe)
    ours = np.concatenate([runner.read(tokens[:, :3])[0], runner.read(tokens[:, 3:4])[0]])
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, whole[0][:4], rtol=0, atol=0.1 * float(np.std(whole[0])))
    assert {kv.keys.dtype.name for kv in runner.cache.layers} == {dtype}


def test_one_program_serves_every_position_length_and_token():
    config, params, tokens, _ = model("gemma-2b")
    traces = []

    @jax.jit
    def step(tokens, start, count, cache, keep):
        traces.append(tokens.shape)
        hidden, cache = forward(params, config, FLOAT32, tokens, start, count, cache, keep)
        return logits(params, config, FLOAT32, hidden), cache

    cache_ = allocate(config.cache_layout, 2, 64, "float32")
    for at, count, keep in ((0, 4, 3), (4, 1, 0), (5, 3, 2), (40, 4, 1)):
        numbers = (jnp.full(2, number, jnp.int32) for number in (at, count))
        _, cache_ = step(jnp.asarray(tokens[:, at : at + 4], jnp.int32), *numbers, cache_, jnp.full(2, keep, jnp.int32))
    assert traces == [(2, 4)]


def test_a_second_embedding_may_know_fewer_tokens():
    """A token that it does not know has the entry of token 0, as multimodal placeholders have."""
    full = small(SHARED_KV)
    config = full.replace(layers=full.layers[:1], per_layer_input=replace(full.per_layer_input, vocab_size=50))
    params = parameters(config)
    embed = params["embed"].at[120].set(params["embed"][0])
    params = {**params, "embed": embed}
    tokens = np.array([[9, 120, 7], [9, 0, 7]])
    unknown, zero = Runner(config, params).read(tokens)
    np.testing.assert_array_equal(unknown, zero)
    differ(*Runner(config, params).read([[9, 49, 7], [9, 48, 7]]))


def test_an_untied_head_is_used():
    config, params, tokens, whole = model("gemma-2b")
    untied = config.replace(tied_head=False)
    with_head = {**params, "head": params["embed"][::-1]}
    for row, scores in enumerate(Runner(untied, with_head).read(tokens)):
        np.testing.assert_allclose(scores[:, ::-1], whole[row], rtol=0, atol=1e-5)


def test_the_embedding_is_scaled_by_a_rounded_root():
    """As the reference does it: the root of the width in the weights' dtype. Over many layers it is seen."""
    config = small("gemma-2b")
    assert config.width == 32
    assert embed_scale(config, Recipe("float32")) == pytest.approx(32**0.5, rel=1e-7)
    assert embed_scale(config, Recipe("bfloat16")) == 5.65625


@pytest.mark.long
@every
def test_global_layers_rounded_to_eight_bits_say_nearly_the_same(name):
    """As near as is asked of the sizes that people use: a hundredth of a nat, and 99 of 100 likeliest tokens."""
    config, params, tokens, exact = model(name)
    recipe = replace(FLOAT32, cache_dtype="int8")
    runner = Runner(config, params, recipe=recipe)
    assert any(layer is not None and layer.rounded for layer in runner.cache.layers)
    for ours, theirs in zip(runner.read(tokens), exact, strict=True):
        plain, found = (each - np.logaddexp.reduce(each, axis=-1, keepdims=True) for each in (theirs, ours))
        divergence = np.sum(np.exp(plain) * (plain - found), axis=-1)
        assert 0 < divergence.mean() < 0.01, name
        chosen = np.take_along_axis(theirs, ours.argmax(-1)[:, None], axis=-1)[:, 0]
        close = theirs.max(-1) - chosen < 0.02 * theirs.std(-1)  # made-up weights often leave two tokens equal
        assert close.mean() >= 0.99, name
