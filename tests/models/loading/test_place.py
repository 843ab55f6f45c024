from __future__ import annotations

import functools
import gc
import json
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import jax
import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from langchain_gemma_jax.errors import TensorMismatchError
from langchain_gemma_jax.models.checkpoint.safetensors import open_safetensors
from langchain_gemma_jax.models.configuration.abstract import Layout, abstract, walk
from langchain_gemma_jax.models.configuration.model_config import LayerConfig, ModelConfig, MoeConfig, Rope
from langchain_gemma_jax.models.loading import place as place_module
from langchain_gemma_jax.models.loading.place import default_dtype, place
from langchain_gemma_jax.models.seams.params import leaves
from langchain_gemma_jax.models.seams.tensor_source import Part, TensorSource
from tests.models.int8 import Int8Storage

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
LAYER = LayerConfig(kv_heads=2, head_dim=8, ffw_width=24, rope=Rope(1e4))
CONFIG = ModelConfig(
    generation="gemma4",
    vocab_size=48,
    width=16,
    heads=4,
    layers=(LAYER, LAYER),
    max_context=64,
    attention_scale=1.0,
    post_norms=True,
    qk_norm=True,
    layer_scale=True,
    moe=MoeConfig(experts=3, experts_per_token=2, ffw_width=6),
)
OUT_FIRST = Layout()
DEVICE = jax.devices()[0]


class Memory(TensorSource):
    """A source out of a dictionary, which counts what is done to it."""

    location = "memory"

    def __init__(self, tensors):
        self.tensors, self.reads = tensors, []

    def names(self):
        return self.tensors.keys()

    def shape(self, name):
        return self.tensors[name].shape

    def dtype(self, name):
        return self.tensors[name].dtype.name

    def read(self, name):
        self.reads.append(name)
        return self.tensors[name]

    def close(self):
        pass


class Direct(Memory):
    """The same, that fills what it is given, as files can."""

    filled = ()

    def read_into(self, name, target):
        assert target.flags.c_contiguous
        assert target.dtype == self.tensors[name].dtype
        target[...] = self.tensors[name]
        self.filled = (*self.filled, name)
        return True


class Rows(Memory):
    """The same, that gives matrices in a few rows at a time and not otherwise."""

    rows = 5

    def read(self, name):
        assert self.tensors[name].ndim != 2, f"{name} was read whole"
        return super().read(name)

    def read_rows(self, name):
        for start in range(0, len(self.tensors[name]), self.rows):
            yield self.tensors[name][start : start + self.rows]


class Shared(Memory):
    """The same, that several threads may read; it counts how many do at once."""

    shared = True

    def __init__(self, tensors):
        super().__init__(tensors)
        self.inside, self.most, self.lock = 0, 0, threading.Lock()

    def read(self, name):
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        try:
            time.sleep(0.001)
            return super().read(name)
        finally:
            with self.lock:
                self.inside -= 1


def dotted(path):
    return ".".join(map(str, path))


def naming(config, path):
    """Every array is stored as it is, but matrices of a layer in two blocks of unlike size."""
    shape = dict(walk(abstract(config)))[path].shape
    if path[0] != "layers" or len(shape) < 2:
        return [Part(dotted(path), shape)]
    blocks = {"a": shape[-2] // 3, "b": shape[-2] - shape[-2] // 3}
    return [Part(f"{dotted(path)}.{block}", (*shape[:-2], rows, shape[-1])) for block, rows in blocks.items()]


def by_rows(config, path):
    return [replace(part, by_rows=len(part.shape) == 2) for part in naming(config, path)]


def tensors(dtype=np.float32, config=CONFIG, scale=1.0):
    chance = np.random.default_rng(0)
    parts = [part for path, _ in walk(abstract(config)) for part in naming(config, path)]
    return {part.name: (scale * chance.standard_normal(part.shape)).astype(dtype) for part in parts}


def load(source, dtype="float32", layout=OUT_FIRST, config=CONFIG, progress=None):
    return place(source, naming, config, dtype, layout, DEVICE, progress)


def at(params, path):
    return params[path[0]] if len(path) == 1 else params[path[0]][path[1]][path[2]]


def expected(source, path, dtype):
    """Return the content of the tree, by other means: whole arrays in float32, converted at the end."""
    blocks = [source.tensors[part.name].astype(np.float32) for part in naming(CONFIG, path)]
    whole = blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=-2)
    norms = {"attn_norm", "post_attn_norm", "ffw_norm", "post_ffw_norm", "q_norm", "k_norm", "final_norm"}
    norms |= {"dense_post_norm", "moe_norm", "moe_post_norm"}
    if path[-1] in norms:
        whole = np.float32(CONFIG.norm_offset) + whole
    return whole.astype(dtype)


class TestValues:
    @pytest.mark.parametrize("layout", [Layout(a, b) for a in (True, False) for b in (True, False)])
    @pytest.mark.parametrize("target", ["float32", "bfloat16", "float16"])
    @pytest.mark.parametrize("stored", [np.float32, BFLOAT16, np.float16])
    def test_every_array_is_as_abstract_says_and_holds_what_was_stored(self, stored, target, layout):
        source = Memory(tensors(stored))
        params = load(source, target, layout)
        for path, spec in walk(abstract(CONFIG, target, layout)):
            array = at(params, path)
            assert (array.shape, array.dtype.name, array.devices()) == (spec.stored_shape, spec.dtype, {DEVICE})
            logical = np.asarray(array)
            if spec.transposed:
                logical = logical.swapaxes(-1, -2)
            np.testing.assert_array_equal(logical, expected(source, path, spec.dtype), strict=True)
        assert len(list(leaves(params))) == len(list(walk(abstract(CONFIG))))

    @pytest.mark.parametrize("layout", [Layout(a, b) for a in (True, False) for b in (True, False)])
    def test_slices_of_every_size_give_the_same(self, monkeypatch, layout):
        whole = load(Memory(tensors()), "bfloat16", layout)
        monkeypatch.setattr(place_module, "_CHUNK_BYTES", 100)
        monkeypatch.setattr(place_module, "_TURNED_ROWS", 5)
        source = Memory(tensors())
        sliced = load(source, "bfloat16", layout)
        for one, other in zip(leaves(whole), leaves(sliced), strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))

    @pytest.mark.parametrize("layout", [Layout(a, b) for a in (True, False) for b in (True, False)])
    @pytest.mark.parametrize("rows", [1, 5, 47, 48])
    def test_rows_at_a_time_give_the_same(self, rows, layout):
        source = Rows(tensors())
        source.rows = rows
        found = place(source, by_rows, CONFIG, "bfloat16", layout, DEVICE)
        for one, other in zip(leaves(load(Memory(tensors()), "bfloat16", layout)), leaves(found), strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))

    @pytest.mark.parametrize("stored", [np.float32, BFLOAT16])
    @pytest.mark.parametrize("layout", [Layout(a, b) for a in (True, False) for b in (True, False)])
    def test_what_lies_as_it_is_stored_is_read_to_its_place(self, layout, stored):
        source = Direct(tensors(stored))
        found = load(source, "bfloat16", layout)
        for one, other in zip(leaves(load(Memory(tensors(stored)), "bfloat16", layout)), leaves(found), strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
        turned = layout == Layout(False, False)  # then nothing lies as it is stored
        assert bool(source.filled) == (stored is BFLOAT16 and not turned)
        assert not set(source.filled) & set(source.reads)

    def test_norm_scales_hold_the_factor_summed_in_float32(self):
        """In bfloat16, 1 + 0.001 is 1."""
        stored = tensors(BFLOAT16)
        stored["final_norm"] = np.full(16, 0.001, BFLOAT16)
        stored["layers.0.router_scale"] = np.full(16, 0.001, BFLOAT16)
        factor = np.float32(stored["final_norm"][0])
        params = load(Memory(stored), "bfloat16")
        assert np.asarray(params["final_norm"])[0] == np.float32(1) + factor
        assert np.asarray(params["layers"][0]["router_scale"])[0] == factor
        plain = load(Memory(stored), "bfloat16", config=CONFIG.replace(norm_offset=0.0))
        assert np.asarray(plain["final_norm"])[0] == factor

    def test_rounding_is_to_nearest_even(self):
        bits = np.array([0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF, 0xBF818000], np.uint32)
        rounded = [0x3F80, 0x3F82, 0x3F81, 0x3F80, 0xBF82]
        stored = tensors()
        stored["embed"][0, :5] = bits.view(np.float32)
        embed = np.asarray(load(Memory(stored), "bfloat16")["embed"])
        assert embed[0, :5].view(np.uint16).tolist() == rounded

    @pytest.mark.parametrize("target", ["float32", "bfloat16", "float16"])
    @pytest.mark.parametrize("stored", [np.float32, BFLOAT16, np.float16])
    def test_nan_and_infinities_stay(self, stored, target):
        special = tensors(stored)
        special["embed"][0, :3] = [np.nan, np.inf, -np.inf]
        embed = np.asarray(load(Memory(special), target)["embed"]).astype(np.float32)
        np.testing.assert_array_equal(embed[0, :3], [np.nan, np.inf, -np.inf])
        assert np.isfinite(embed[1:]).all()

    def test_a_signalling_nan_is_a_nan_and_no_warning(self):
        stored = tensors()
        stored["embed"][0, 0] = np.array(0x7F800001, np.uint32).view(np.float32)
        assert np.isnan(np.asarray(load(Memory(stored), "bfloat16")["embed"]).astype(np.float32)[0, 0])

    @pytest.mark.parametrize("stored", [np.float32, BFLOAT16])
    def test_what_float16_cannot_hold_is_an_error_and_not_infinity(self, stored):
        large = tensors(stored)
        large["layers.1.down.b"][0, 0] = 70_000
        load(Memory(large), "bfloat16")
        with pytest.raises(TensorMismatchError, match=r"'layers\.1\.down\.b' to have values that float16 can hold"):
            load(Memory(large), "float16")


class TestReaders:
    """Several arrays are filled at once where the source may be read so."""

    @pytest.fixture(autouse=True)
    def handed_over(self, monkeypatch):
        monkeypatch.setattr(place_module, "_SMALL", 0)  # all of them, small as they are

    @pytest.mark.parametrize("layout", [Layout(a, b) for a in (True, False) for b in (True, False)])
    def test_the_arrays_are_the_same(self, layout):
        source = Shared(tensors())
        told = []
        found = load(source, "bfloat16", layout, progress=told.append)
        for one, other in zip(leaves(load(Memory(tensors()), "bfloat16", layout)), leaves(found), strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
        assert source.most == place_module.READERS == 2
        assert sum(told) == sum(array.nbytes for array in leaves(found))

    def test_a_source_that_may_not_be_shared_has_one_reader(self):
        source = Shared(tensors())
        source.shared = False
        load(source)
        assert source.most == 1

    def test_no_more_buffers_are_filled_than_there_are_readers(self, monkeypatch):
        made, put = [], jax.device_put
        empty = place_module._Memory.empty

        def counted(self, spec):
            made.append(spec)
            return empty(self, spec)

        def device_put(x, device):
            if isinstance(x, np.ndarray):
                done.append(len(made))
            return put(x, device)

        done = []
        monkeypatch.setattr(place_module._Memory, "empty", counted)
        monkeypatch.setattr(jax, "device_put", device_put)
        load(Shared(tensors()))
        assert len(done) == len(made)
        assert all(begun <= number + 1 + place_module.READERS for number, begun in enumerate(done))

    @pytest.mark.parametrize("count", [0, 1, 7, 30])
    def test_when_one_fails_all_have_ended_and_nothing_stays(self, count):
        class Breaks(Shared):
            def read(self, name):
                if len(self.reads) >= count:
                    raise MemoryError
                return super().read(name)

        gc.collect()
        before = {id(array) for array in jax.live_arrays()}
        source = Breaks(tensors())
        with pytest.raises(MemoryError):
            load(source)
        assert source.inside == 0
        assert [array for array in jax.live_arrays() if id(array) not in before] == []

    def test_files_of_hugging_face_may_be_shared(self, tmp_path):
        save_file({"a": np.zeros(3, np.float32)}, tmp_path / "model.safetensors")
        with open_safetensors(tmp_path) as source:
            assert source.shared


class Unreadable(Memory):
    def read(self, name):
        pytest.fail(f"{name} was read")


class TestChecks:
    """All before the first byte is read."""

    @pytest.mark.parametrize("name", ["embed", "final_norm", "layers.1.down.b", "layers.1.scale"])
    def test_a_missing_tensor(self, name):
        stored = tensors()
        shape = list(stored.pop(name).shape)
        with pytest.raises(TensorMismatchError) as caught:
            load(Unreadable(stored))
        assert (
            str(caught.value) == f"memory: expected a tensor {name!r} of shape {shape}, found no tensor of that name."
        )

    @pytest.mark.parametrize("shape", [(16, 48), (48, 17), (47, 16), (48 * 16,), (48, 16, 1), ()])
    def test_another_shape(self, shape):
        stored = tensors() | {"embed": np.zeros(shape, np.float32)}
        with pytest.raises(TensorMismatchError) as caught:
            load(Unreadable(stored))
        assert caught.value.expected == "'embed' of shape [48, 16], as the configuration has it"
        assert caught.value.found == f"the shape {list(shape)}"

    @pytest.mark.parametrize("dtype", ["int8", "float64", "float8_e4m3fn", "int32", "bool"])
    def test_another_dtype(self, dtype):
        stored = tensors()
        stored["layers.1.scale"] = np.zeros((), getattr(ml_dtypes, dtype, dtype))
        with pytest.raises(TensorMismatchError, match=rf"in float32, bfloat16, float16, found {dtype}.*unquantized"):
            load(Unreadable(stored))

    def test_a_naming_that_does_not_fill_the_array(self):
        def short(config, path):
            parts = naming(config, path)
            return parts[:1] * len(parts)

        with pytest.raises(TensorMismatchError, match="rows"):
            place(Memory(tensors()), short, CONFIG, "float32", OUT_FIRST, DEVICE)

        class Half(Rows):
            def read_rows(self, name):
                yield from [*super().read_rows(name)][::2]

        with pytest.raises(TensorMismatchError, match="embed to fill 48 rows, found 25 rows"):
            place(Half(tensors()), by_rows, CONFIG, "float32", OUT_FIRST, DEVICE)

        class Twice(Rows):
            def read_rows(self, name):
                yield from [*super().read_rows(name)] * 2

        with pytest.raises(TensorMismatchError, match=r"'embed' to fill \[0, 16\], found \[5, 16\]"):
            place(Twice(tensors()), by_rows, CONFIG, "float32", OUT_FIRST, DEVICE)

        def wrong(config, path):
            return [Part(part.name, part.shape, lambda stored: stored[..., :1]) for part in naming(config, path)]

        with pytest.raises(TensorMismatchError, match="to fill"):
            place(Memory(tensors()), wrong, CONFIG, "float32", OUT_FIRST, DEVICE)


@pytest.mark.parametrize(
    ("stored", "default"), [("float32", "float32"), ("bfloat16", "bfloat16"), ("float16", "float32")]
)
def test_the_dtype_is_the_embeddings_or_for_float16_one_that_holds_the_activations_too(stored, default):
    embed = np.zeros((48, 16), getattr(ml_dtypes, stored, stored))
    assert default_dtype(Unreadable(tensors(np.float32) | {"embed": embed}), naming, CONFIG) == default


def test_the_dtype_of_what_cannot_be_loaded():
    with pytest.raises(TensorMismatchError, match="expected a tensor 'embed'"):
        default_dtype(Unreadable({}), naming, CONFIG)
    with pytest.raises(TensorMismatchError, match="found int8"):
        default_dtype(Unreadable({"embed": np.zeros((48, 16), np.int8)}), naming, CONFIG)


@pytest.mark.parametrize("small", [0, 100, 2**20])
def test_progress_counts_every_byte_on_the_device(small, monkeypatch):
    monkeypatch.setattr(place_module, "_SMALL", small)  # bytes up to which arrays are moved together
    told = []
    params = load(Memory(tensors()), "bfloat16", progress=told.append)
    sizes = [spec.nbytes for _, spec in walk(abstract(CONFIG, "bfloat16"))]
    assert told == [*(size for size in sizes if size > small), sum(size for size in sizes if size <= small)]
    assert sum(told) == sum(array.nbytes for array in leaves(params))


@pytest.mark.parametrize("layout", [OUT_FIRST, Layout(False, False)])
@pytest.mark.parametrize("small", [0, 2**20])
def test_a_storage_packs_each_matrix_as_it_is_read_and_nothing_dense_stays(layout, small, monkeypatch):
    monkeypatch.setattr(place_module, "_SMALL", small)
    gc.collect()
    before, told, storage = {id(array) for array in jax.live_arrays()}, [], Int8Storage()
    found = place(Shared(tensors()), naming, CONFIG, "float32", layout, DEVICE, told.append, storage)
    there = [array for array in jax.live_arrays() if id(array) not in before]
    assert sum(told) == sum(array.nbytes for array in there) == sum(array.nbytes for array in leaves(found))
    dense = load(Memory(tensors()), "float32", layout)
    for path, spec in walk(abstract(CONFIG, "float32", layout)):
        one, other = at(found, path), np.asarray(at(dense, path))
        wanted = storage.pack(path, spec, other) if len(spec.shape) > 1 else other
        assert jax.tree.structure(one) == jax.tree.structure(wanted)
        for ours, theirs in zip(jax.tree.leaves(one), jax.tree.leaves(wanted), strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)


class TestNothingStaysBehind:
    @pytest.mark.parametrize("count", [0, 5, 12])
    def test_on_the_device_when_packing_fails(self, count, monkeypatch):
        packed = []
        monkeypatch.setattr(place_module, "_SMALL", 0)

        class Full(Int8Storage):
            def pack(self, path, dense, array):
                packed.append(path)
                if len(packed) > count:
                    raise MemoryError
                return super().pack(path, dense, array)

        gc.collect()
        before = {id(array) for array in jax.live_arrays()}
        with pytest.raises(MemoryError) as caught:  # whose frames hold what was there
            place(Memory(tensors()), naming, CONFIG, "float32", OUT_FIRST, DEVICE, storage=Full())
        assert caught.tb
        assert [array for array in jax.live_arrays() if id(array) not in before] == []

    @pytest.mark.parametrize("error", [TensorMismatchError("a", "b", "c"), MemoryError(), KeyboardInterrupt()])
    @pytest.mark.parametrize("count", [0, 1, 7, 30])
    def test_on_the_device_when_reading_fails(self, error, count):
        class Breaks(Memory):
            def read(self, name):
                if len(self.reads) == count:
                    raise error
                return super().read(name)

        gc.collect()
        before = {id(array) for array in jax.live_arrays()}
        with pytest.raises(type(error)) as caught:
            load(Breaks(tensors()))
        # `caught` keeps every frame of the failed call, and the arrays in it: they must be deleted, not just forgotten.
        assert [array for array in jax.live_arrays() if id(array) not in before] == []
        assert caught.value is error

    @pytest.mark.parametrize(("small", "failing"), [(0, 9), (100, 5), (2**20, 1)])
    def test_on_the_device_when_the_device_fails(self, small, failing, monkeypatch):
        monkeypatch.setattr(place_module, "_SMALL", small)
        put, calls = jax.device_put, []

        def device_put(*args):
            calls.append(args)
            if len(calls) == failing:
                raise RuntimeError("RESOURCE_EXHAUSTED")
            return put(*args)

        gc.collect()
        before = {id(array) for array in jax.live_arrays()}
        monkeypatch.setattr(jax, "device_put", device_put)
        with pytest.raises(RuntimeError, match="RESOURCE_EXHAUSTED"):
            load(Memory(tensors()))
        assert [array for array in jax.live_arrays() if id(array) not in before] == []

    def test_no_array_is_the_stored_memory_itself(self):
        stored = tensors()
        params = load(Memory(stored))
        wanted = [np.array(array) for array in leaves(params)]
        for array in stored.values():
            array.fill(7)  # what a file that changes, or is unmapped, would do
        for array, want in zip(leaves(params), wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(array), want)


@pytest.mark.skipif(DEVICE.platform != "cpu", reason="elsewhere the device has a memory of its own")
def test_small_arrays_lie_in_one_piece_and_large_ones_by_themselves(monkeypatch):
    monkeypatch.setattr(place_module, "_LARGE", 48 * 16 * 4)  # the bytes of the embedding
    params = load(Memory(tensors()))
    large = {id(array) for array in leaves(params) if array.nbytes >= 48 * 16 * 4}
    small = [array for array in leaves(params) if id(array) not in large]
    places = sorted((array.unsafe_buffer_pointer(), array.nbytes) for array in small)
    assert len(places) > 20
    assert all(0 <= after - (start + size) < 64 for (start, size), (after, _) in pairwise(places))
    begin, end = places[0][0], sum(places[-1])
    assert not any(begin <= array.unsafe_buffer_pointer() < end for array in leaves(params) if id(array) in large)


MEASURE = """
    import json, sys
    from pathlib import Path

    import jax

    from langchain_gemma_jax.models.configuration.abstract import Layout, abstract, total_bytes
    from langchain_gemma_jax.models.checkpoint.hf_names import hf_naming
    from langchain_gemma_jax.models.checkpoint.official.orbax import open_orbax
    from langchain_gemma_jax.models.loading.place import place
    from langchain_gemma_jax.models.checkpoint.safetensors import open_safetensors
    from langchain_gemma_jax.models.configuration.model_config import LayerConfig, ModelConfig, Rope

    def resident(what):
        status = Path("/proc/self/status").read_text()
        return 1024 * int(status.partition(what)[2].split()[0])

    folder, dtype, out_first = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "out_first"
    layer = LayerConfig(kv_heads=1, head_dim=256, ffw_width=2048, rope=Rope(1e4))
    config = ModelConfig("gemma", 131072, 640, 4, (layer,) * 4, 64, 1.0)
    device = jax.devices()[0]
    jax.device_put(0, device).block_until_ready()
    if (folder / "model.safetensors").exists():
        source = open_safetensors(folder)
        naming = hf_naming(config, source.names(), source.location)
    else:
        _, source, naming = open_orbax(folder, config)
    with source:
        Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
        before = resident("VmRSS:")
        params = place(source, naming, config, dtype, Layout(out_first, out_first), device)
        peak = resident("VmHWM:")
    weights = total_bytes(abstract(config, dtype))
    print(json.dumps({"weights": weights, "peak": peak - before, "before": before}))
"""


def numbers(dtype, shape):
    """Of many different ones, so that nothing can be left out of a file; of few bits, so that writing them is quick."""
    return np.random.default_rng(0).integers(0, 0x3F, shape, np.uint8).astype(dtype)


def write_safetensors(folder, dtype):
    """As in Gemma 3 270M, one array is most of the model: 213 MB in bfloat16, 168 of them the embedding."""
    shapes = {"model.embed_tokens.weight": (131072, 640), "model.norm.weight": (640,)}
    for index in range(4):
        for name, shape in {
            "self_attn.q_proj": (1024, 640),
            "self_attn.k_proj": (256, 640),
            "self_attn.v_proj": (256, 640),
            "self_attn.o_proj": (640, 1024),
            "mlp.gate_proj": (2048, 640),
            "mlp.up_proj": (2048, 640),
            "mlp.down_proj": (640, 2048),
            "input_layernorm": (640,),
            "post_attention_layernorm": (640,),
        }.items():
            shapes[f"model.layers.{index}.{name}.weight"] = shape
    save_file({name: numbers(dtype, shape) for name, shape in shapes.items()}, folder / "model.safetensors")


def write_orbax(folder, dtype):
    """The same model."""
    import orbax.checkpoint as ocp

    tree = {"transformer/embedder": {"input_embedding": (131072, 640)}, "transformer/final_norm": {"scale": (640,)}}
    for index in range(4):
        for name, shape in {
            "attn/q_einsum": (4, 640, 256),
            "attn/kv_einsum": (2, 1, 640, 256),
            "attn/attn_vec_einsum": (4, 256, 640),
            "mlp/gating_einsum": (2, 640, 2048),
            "mlp/linear": (2048, 640),
        }.items():
            tree[f"transformer/layer_{index}/{name}"] = {"w": shape}
        tree[f"transformer/layer_{index}/pre_attention_norm"] = {"scale": (640,)}
        tree[f"transformer/layer_{index}/pre_ffw_norm"] = {"scale": (640,)}
    with ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as checkpointer:
        checkpointer.save(
            folder / "checkpoint",
            {path: {name: numbers(dtype, shape) for name, shape in leaf.items()} for path, leaf in tree.items()},
        )


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """``checkpoint(write_safetensors or write_orbax, dtype)``: a folder with one, written once."""

    @functools.cache
    def checkpoint(write, dtype):
        folder = tmp_path_factory.mktemp("checkpoint")
        write(folder, dtype)
        return folder

    return checkpoint


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux counts the peak from a given moment")
@pytest.mark.parametrize(
    ("write", "stored", "dtype", "layout"),
    [
        (write_safetensors, BFLOAT16, "bfloat16", "out_first"),
        (write_orbax, BFLOAT16, "bfloat16", "in_first"),
        pytest.param(write_safetensors, np.dtype(np.float32), "bfloat16", "in_first", marks=pytest.mark.slow),
        pytest.param(write_orbax, BFLOAT16, "bfloat16", "out_first", marks=pytest.mark.slow),
        pytest.param(write_orbax, np.dtype(np.float32), "bfloat16", "in_first", marks=pytest.mark.slow),
        pytest.param(write_orbax, np.dtype(np.float32), "float32", "out_first", marks=pytest.mark.slow),
    ],
)
def test_peak_memory_is_the_weights_and_little_more(checkpoint, write, stored, dtype, layout):
    """On CPU, where the arrays are host memory themselves and so are the pages of the file that were read."""
    command = [sys.executable, "-c", textwrap.dedent(MEASURE), str(checkpoint(write, stored)), dtype, layout]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3])
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["weights"] > 200e6
    assert 0.95 * found["weights"] < found["peak"] < 1.15 * found["weights"], found
