"""The operations between products, by the kernels: their definition, a row's numbers in any company, or an error."""

from __future__ import annotations

import ctypes

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.kernels import fused_ops
from langchain_gemma_jax.kernels.library import kernels
from langchain_gemma_jax.kernels.targets import FUSED_OPS
from langchain_gemma_jax.kernels.targets import fused_op as target
from langchain_gemma_jax.models.gemma.feed_forward import gated
from langchain_gemma_jax.models.gemma.norms import add_and_norm, rms_norm
from langchain_gemma_jax.models.recipes import BetweenForm
from tests.kernels.made_up_matrices import library, variants

pytestmark = pytest.mark.skipif(
    not kernels().run and "not compiled: " in kernels().why, reason=f"there was no compiler: {kernels().why}"
)
EPS = 1e-6


def by_hand(loaded, variant, which, given, made, sizes, size=1.0, *, off=0):
    """One of ``FUSED_OPS`` by one variant, with its arrays ``off`` bytes aside; None: an array that is not given."""
    kept = [None if array is None else np.frombuffer(bytes(off) + array.tobytes(), np.uint8) for array in given]
    out = [np.full(shape, np.nan, np.float32) for shape in made]
    sources = (ctypes.c_void_p * 5)(*[None if array is None else array.ctypes.data + off for array in kept])
    targets = (ctypes.c_void_p * 3)(*[array.ctypes.data for array in out])
    status = loaded.gemma_jax_between(
        variant.encode(), FUSED_OPS.index(which), (ctypes.c_int64 * 8)(*sizes, *(0,) * (8 - len(sizes))),
        ctypes.c_float(EPS), ctypes.c_float(size), sources, targets,
    )  # fmt: skip
    assert status == 0, (variant, which)
    return out


def normed(x, scale):
    x = x.astype(np.float64)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * (1 if scale is None else scale)


def gelu(x):
    x = x.astype(np.float64)
    return x / (1 + np.exp(-2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def turned(x, sin, cos):
    first, second = np.split(x, 2, -1)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], -1)


class Heads:
    """Made-up heads of some tokens."""

    def __init__(self, random):
        self.rows, self.tokens = int(random.integers(1, 3)), int(random.integers(1, 6))
        self.queries, self.pairs, self.dim = (int(random.integers(1, high)) for high in (5, 3, 5))
        self.dim *= 32
        self.apart, self.value_norm, norms = (bool(random.integers(2)) for _ in range(3))
        self.size = float(random.uniform(0.1, 2))
        self.x = random.standard_normal((self.rows, self.tokens, self.total, self.dim)).astype(np.float32)
        angles = random.uniform(0, 7, (self.rows, self.tokens, 1, self.dim // 2))
        self.sin, self.cos = np.sin(angles).astype(np.float32), np.cos(angles).astype(np.float32)
        self.norms = [random.uniform(0.5, 2, self.dim).astype(np.float32) if norms else None for _ in range(2)]

    @property
    def total(self):
        return self.queries + self.pairs * (1 + self.apart)

    def expected(self):
        queries, keys, values = np.split(self.x, [self.queries, self.queries + self.pairs], axis=2)
        values = values if self.apart else keys
        queries, keys = (
            turned(x if scale is None else normed(x, scale), self.sin, self.cos)
            for x, scale in zip((queries, keys), self.norms, strict=True)
        )
        values = normed(values, None) if self.value_norm else values
        return queries * self.size, keys.swapaxes(1, 2), values.swapaxes(1, 2)

    def by(self, loaded, variant, row=slice(None), token=slice(None), off=0):
        x, sin, cos = (array[row, token] for array in (self.x, self.sin, self.cos))
        rows, tokens = x.shape[:2]
        kept = (rows, self.pairs, tokens, self.dim)
        sizes = (rows * tokens, self.total * self.dim, tokens, self.queries, self.pairs, self.dim, self.apart)
        return by_hand(
            loaded, variant, "heads", [x, sin, cos, *self.norms], [(rows, tokens, self.queries, self.dim), kept, kept],
            (*sizes, self.value_norm), self.size, off=off,
        )  # fmt: skip

    def by_xla(self):
        norms = None if self.norms[0] is None else tuple(self.norms)
        how = {"value_norm": self.value_norm, "eps": EPS, "size": self.size}
        run = jax.jit(lambda x, turn, norms: fused_ops.heads(x, turn, norms, self.queries, self.pairs, **how))
        return run(self.x, (self.sin, self.cos), norms)


def try_shapes(count, seed, loaded=None):
    random, loaded = np.random.default_rng(seed), loaded or library()

    def check(which, given, made, expected, rows, n):
        off = int(random.integers(0, 4))
        row = int(random.integers(0, rows))
        for variant in variants(loaded):
            found = by_hand(loaded, variant, which, given, made, (rows, n), off=off)
            alone = [a[row : row + 1] if a is not None and a.ndim == 2 else a for a in given]
            one = by_hand(loaded, variant, which, alone, [(1, shape[1]) for shape in made], (1, n))
            for result, exact, single in zip(found, expected, one, strict=True):
                np.testing.assert_allclose(result, exact, rtol=3e-6, atol=3e-6, err_msg=f"{variant} {which} {n}")
                np.testing.assert_array_equal(single[0], result[row], err_msg=f"{variant} {which}")

    for _ in range(count):
        rows, n = int(random.integers(1, 20)), 16 * int(random.integers(1, 80))
        x, h = (random.standard_normal((rows, n)).astype(np.float32) * 3 for _ in range(2))
        scale, post = (random.uniform(0.5, 2, n).astype(np.float32) for _ in range(2))
        scale_or_none, post_or_none = (a if random.integers(2) else None for a in (scale, post))
        check("norm", [x, scale_or_none], [(rows, n)], [normed(x, scale_or_none)], rows, n)
        total = x + (h if post_or_none is None else normed(h, post))
        check("join", [x, h, scale, post_or_none], [(rows, n)] * 2, [total, normed(total, scale)], rows, n)
        both = np.concatenate([x, h], axis=1)
        check("gated", [both], [(rows, n)], [gelu(x) * h], rows, n)
        heads = Heads(random)
        row, token = int(random.integers(heads.rows)), int(random.integers(heads.tokens))
        for variant in variants(loaded):
            found = heads.by(loaded, variant, off=int(random.integers(0, 4)))
            alone = heads.by(loaded, variant, slice(row, row + 1), slice(token, token + 1))
            for result, exact in zip(found, heads.expected(), strict=True):
                np.testing.assert_allclose(result, exact, rtol=3e-6, atol=1e-5, err_msg=variant)
            np.testing.assert_array_equal(alone[0][0, 0], found[0][row, token])
            for index in (1, 2):
                np.testing.assert_array_equal(alone[index][0, :, 0], found[index][row, :, token])


def best_of(loaded, variant, scores, valid):
    at = np.full(len(scores), -1, np.int32)
    top = np.full(len(scores), np.nan, np.float32)
    status = loaded.gemma_jax_between(
        variant.encode(), FUSED_OPS.index("best"), (ctypes.c_int64 * 8)(*scores.shape, valid, *(0,) * 5),
        ctypes.c_float(0), ctypes.c_float(0), (ctypes.c_void_p * 5)(scores.ctypes.data, *(None,) * 4),
        (ctypes.c_void_p * 3)(top.ctypes.data, at.ctypes.data, None),
    )  # fmt: skip
    assert status == 0
    return top, at


def try_best(count, seed, loaded=None):
    random, loaded = np.random.default_rng(seed), loaded or library()
    for turn in range(count):
        n = int(random.integers(1, 5000))
        valid = int(random.integers(1, n + 1))
        scores = random.integers(-9, 3 if turn % 2 else 10**6, (2, n)).astype(np.float32)  # ties, and none
        scores[0, random.integers(0, n, 3)] = random.choice([-np.inf, np.inf, 0.0, -0.0], 3)
        for variant in variants(loaded):
            top, at = best_of(loaded, variant, scores, valid)
            np.testing.assert_array_equal(top, scores[:, :valid].max(-1))
            np.testing.assert_array_equal(at, scores[:, :valid].argmax(-1))
        scores[1, random.integers(0, n)] = np.nan
        top, at = best_of(loaded, kernels().variant, scores, valid)
        assert np.isnan(top[1])
        assert (top[0], at[0], at[1]) == (scores[0, :valid].max(), scores[0, :valid].argmax(), 0)
    return scores, valid, (top, at)


def test_the_best_is_found_where_it_is_first():
    scores, valid, expected = try_best(300, seed=6)
    found = jax.jit(fused_ops.best, static_argnums=1)(scores, valid)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_random_shapes():
    """Every variant on every shape, and each row's very bits by itself and in company, wherever its arrays lie."""
    try_shapes(25, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_random_shapes():
    try_shapes(5000, seed=2)


def test_what_xla_runs():
    """Large enough to be shared by threads: the bits of one thread, and of one row."""
    random = np.random.default_rng(3)
    x, h = (random.standard_normal((3, 40, 640)).astype(np.float32) for _ in range(2))
    scale, post = (random.uniform(0.5, 2, 640).astype(np.float32) for _ in range(2))
    runs = {
        "norm": lambda x, h: (fused_ops.norm(x, scale, EPS),),
        "join": lambda x, h: fused_ops.join(x, h, post, scale, EPS),
        "gated": lambda x, h: (fused_ops.gated(jnp.concatenate([x, h], axis=-1)),),
    }
    for name, run in runs.items():
        assert target(name) in jax.jit(run).lower(x, h).as_text()
        found, alone = jax.jit(run)(x, h), jax.jit(run)(x[2:, 7:8], h[2:, 7:8])
        for many, one in zip(found, alone, strict=True):
            np.testing.assert_array_equal(many[2, 7], one[0, 0], err_msg=name)
    np.testing.assert_allclose(found[0], gelu(x) * h, rtol=3e-6, atol=3e-6)
    for _ in range(6):
        heads = Heads(random)
        for result, by_one in zip(heads.by_xla(), heads.by(library(), kernels().variant), strict=True):
            np.testing.assert_array_equal(result, by_one)


def test_gates_of_any_size_and_what_is_no_number():
    x = np.array([[-1e12, -1e4, -30, -5, -1, -1e-20, 0, 1e-20, 1, 5, 30, 1e4, np.nan, 2, 3, 4]], np.float32)
    for variant in variants(library()):
        (found,) = by_hand(library(), variant, "gated", [np.concatenate([x, np.ones_like(x)], 1)], [(1, 16)], (1, 16))
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(found, gelu(x), rtol=1e-5, atol=1e-10, err_msg=variant)
        assert np.isnan(found[0, 12])
        assert np.isnan(found).sum() == 1


@pytest.mark.long
def test_derivatives_and_numbers_are_those_of_xla():
    random = np.random.default_rng(5)
    x, h = (jnp.asarray(random.standard_normal((2, 3, 64)), jnp.float32) for _ in range(2))
    scale, post = (jnp.asarray(random.uniform(0.5, 2, 64), jnp.float32) for _ in range(2))

    def total(form, x, h, scale, post):
        first, second = add_and_norm(x, h, post, scale, EPS, form)
        third, fourth = add_and_norm(x, h, None, scale, EPS, form)
        fifth = gated(jnp.concatenate([first, second], axis=-1), form)
        sixth = rms_norm(fifth, None, EPS, form) + rms_norm(h, scale, EPS, form)
        return jnp.sum(jnp.sin(sixth) * third + fourth)

    found, plain = (
        jax.value_and_grad(total, argnums=(1, 2, 3, 4))(form, x, h, scale, post)
        for form in (BetweenForm.KERNEL, BetweenForm.XLA)
    )
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), found, plain)


def f32(*shape):
    return jnp.ones(shape, jnp.float32)


HEADS = f32(1, 2, 4, 32)
TURN = [f32(1, 2, 1, 16)] * 2
KEPT = [(1, 1, 2, 32)] * 2


@pytest.mark.parametrize(
    ("name", "given", "made", "words"),
    [
        ("norm", [f32(2, 24)], [(2, 24)], "rows of a multiple of 16 numbers, found [2, 24]"),
        ("norm", [f32(2, 32), f32(16)], [(2, 32)], "a scale for each of 32 numbers, found [16]"),
        ("norm", [f32(2, 32)], [(2, 16)], "results like [2, 32], found [2, 16]"),
        ("norm", [f32(2, 32).astype("bfloat16")], [(2, 32)], "expected array 0 in f32"),
        ("norm", [f32()], [()], "expected rows of a multiple of 16 numbers, found []"),
        ("norm", [f32(2, 32)] * 3, [(2, 32)], "expected 1 to 2 arrays and 1 results, found 3 and 1"),
        ("join", [f32(2, 32), f32(3, 32), f32(32)], [(2, 32)] * 2, "two arrays alike, found [2, 32] and [3, 32]"),
        ("join", [f32(2, 32), f32(2, 32), f32(32), f32(2, 32)], [(2, 32)] * 2, "a scale for each of 32"),
        ("join", [f32(2, 32), f32(2, 32), f32(32)], [(2, 32)], "expected 3 to 4 arrays and 2 results"),
        ("gated", [f32(2, 48)], [(2, 24)], "n a multiple of 16"),
        ("gated", [f32(2, 64)], [(3, 32)], "found [2, 64] and [3, 32]"),
        ("heads", [f32(1, 2, 4, 48), *[f32(1, 2, 1, 24)] * 2], [(1, 2, 2, 48), *[(1, 1, 2, 48)] * 2], "multiple of 32"),
        ("heads", [HEADS, *TURN], [(1, 2, 5, 32), *KEPT], "heads of keys"),
        ("heads", [HEADS, *TURN], [(1, 2, 1, 32), *KEPT], "expected 3 heads"),
        ("heads", [HEADS, *[f32(1, 2, 1, 8)] * 2], [(1, 2, 2, 32), *KEPT], "sines and cosines"),
        ("heads", [HEADS, *TURN], [(1, 2, 2, 32), *[(1, 1, 3, 32)] * 2], "keys and values"),
                ("best", [f32(2, 9)], [(2,), (2,)], "expected result 1 in s32"),
        (
            "heads",
            [HEADS, *TURN, f32(31), f32(32)],
            [(1, 2, 2, 32), *KEPT],
            "a scale for each of 32 numbers, found [31]",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_name(name, given, made, words):
    attributes = {"eps": np.float32(EPS), "size": np.float32(1), "value_norm": np.int64(0), "valid": np.int64(9)}
    call = jax.ffi.ffi_call(target(name), [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in made])
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.block_until_ready(jax.jit(lambda *arrays: call(*arrays, **attributes))(*given))
    assert f"gemma_jax_{name}: " in str(caught.value)
    assert words in str(caught.value)


def test_other_widths_are_not_for_kernels():
    assert [fused_ops.can_norm(width) for width in (0, 8, 16, 24, 640)] == [False, False, True, False, True]
    assert [fused_ops.can_turn(size) for size in (0, 16, 32, 48, 256)] == [False, False, True, False, True]
