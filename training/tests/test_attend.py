"""The gradient that is written out is the one that is derived."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from training.attend import attend, seen
from training.data.drill import ASIDES


def derived(queries, keys, values, segments, window):
    places = jnp.arange(queries.shape[3])
    distance = places[:, None] - places[None]
    visible = (distance >= 0) & (distance < (window or len(places)))
    visible = visible[None] & seen(segments[:, :, None], segments[:, None])
    scores = jnp.where(visible[:, None, None], jnp.einsum("bkgtd,bksd->bkgts", queries, keys), -1e30)
    return jnp.einsum("bkgts,bksd->bkgtd", jax.nn.softmax(scores, axis=-1), values)


@pytest.mark.parametrize("tokens", [7, 128, 300])
@pytest.mark.parametrize("window", [None, 5, 128, 200])
def test_what_is_taken_and_its_gradients(tokens, window):
    rng = np.random.default_rng(tokens)
    queries = jnp.asarray(rng.standard_normal((2, 2, 3, tokens, 8)), jnp.float32)
    keys, values = (jnp.asarray(rng.standard_normal((2, 2, tokens, 8)), jnp.float32) for _ in range(2))
    segments = jnp.asarray(np.sort(ASIDES * rng.integers(0, 2, (2, tokens)) + rng.integers(0, 3, (2, tokens)), axis=1))

    def of(way):
        def figure(*given):
            taken = way(*given, segments, window)
            return jnp.sum(jnp.sin(taken * 3)), taken

        return jax.value_and_grad(figure, argnums=(0, 1, 2), has_aux=True)(queries, keys, values)

    for one, other in zip(jax.tree.leaves(of(attend)), jax.tree.leaves(of(derived)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_an_aside_sees_itself_and_what_its_conversation_begins_with():
    first, one, other, alone = ASIDES, ASIDES + 1, ASIDES + 2, 2 * ASIDES
    segments = jnp.asarray([first, one, other, alone])
    told = seen(segments[:, None], segments[None])
    assert told.tolist() == [
        [True, False, False, False],
        [True, True, False, False],
        [True, False, True, False],
        [False, False, False, True],
    ]
