from __future__ import annotations

import json
import pickle
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import jax
import ml_dtypes
import numpy as np
import pytest
import tokenizers
from safetensors.numpy import save_file

from langchain_gemma_jax.errors import (
    CorruptCheckpointError,
    InputError,
    ModelNotOnHubError,
    OfflineError,
    TensorMismatchError,
    TokenizerError,
    UnsafeCheckpointError,
    UnsupportedModelError,
)
from langchain_gemma_jax.models.checkpoint.safetensors import SafetensorsSource
from langchain_gemma_jax.models.configuration.abstract import abstract, total_bytes, walk
from langchain_gemma_jax.models.configuration.hf_config import config_from_hf
from langchain_gemma_jax.models.hub import download as hub
from langchain_gemma_jax.models.loading import opened_gemma
from langchain_gemma_jax.models.loading.load import load, load_again
from langchain_gemma_jax.models.loading.opened_gemma import check_divisible
from langchain_gemma_jax.models.recipes import Recipe, choose_recipe
from langchain_gemma_jax.models.seams.params import leaves
from langchain_gemma_jax.models.seams.placement import SingleDevice

CONFIG = {
    "model_type": "gemma",
    "architectures": ["GemmaForCausalLM"],
    "vocab_size": 264,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "hidden_activation": "gelu_pytorch_tanh",
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
}


def tensors(dtype=np.float32):
    chance = np.random.default_rng(0)
    shapes = {"embed_tokens": (264, 16), "norm": (16,)}
    for index in range(2):
        shapes |= {
            f"layers.{index}.{name}": shape
            for name, shape in {
                "self_attn.q_proj": (16, 16),
                "self_attn.k_proj": (8, 16),
                "self_attn.v_proj": (8, 16),
                "self_attn.o_proj": (16, 16),
                "mlp.gate_proj": (24, 16),
                "mlp.up_proj": (24, 16),
                "mlp.down_proj": (16, 24),
                "input_layernorm": (16,),
                "post_attention_layernorm": (16,),
            }.items()
        }
    return {f"model.{name}.weight": chance.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}


def write_tokenizer(folder):
    """One of Gemma's kind, that knows no words but bytes."""
    pieces = ["<pad>", "<eos>", "<bos>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581"]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    library = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, [], unk_token="<unk>", byte_fallback=True))
    library.normalizer = tokenizers.normalizers.Replace(" ", "\u2581")
    decoders = tokenizers.decoders
    library.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    library.add_special_tokens(pieces[:4])
    library.save(str(folder / "tokenizer.json"))


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "tiny"
    path.mkdir()
    (path / "config.json").write_text(json.dumps(CONFIG))
    (path / "generation_config.json").write_text('{"temperature": 0.5, "eos_token_id": [1, 106]}')
    write_tokenizer(path)
    save_file(tensors(), path / "model.safetensors")
    return path


@pytest.fixture
def no_hub(monkeypatch):
    monkeypatch.setattr(hub, "download", lambda *_, **__: pytest.fail("asked the Hub"))


@pytest.mark.usefixtures("no_hub")
class TestAFolder:
    def test_a_model_and_all_that_belongs_to_it(self, folder):
        with load(folder) as model:
            assert model.name == "tiny"
            assert (model.config.generation, len(model.config.layers)) == ("gemma", 2)
            assert model.generation_defaults == {"temperature": 0.5, "eos_token_id": [1, 106]}
            assert model.tokenizer.decode(model.tokenizer.encode_text("Grüße an alle")) == "Grüße an alle"
            assert model.recipe == choose_recipe("float32")
            specs = list(walk(abstract(model.config, "float32", model.recipe.layout)))
            for (path, spec), array in zip(specs, leaves(model.params), strict=True):
                assert (array.shape, array.dtype.name) == (spec.stored_shape, spec.dtype), path
                assert array.devices() == {jax.local_devices()[0]}
            assert model.nbytes == total_bytes(abstract(model.config, "float32"))
        assert model.closed

    @pytest.mark.parametrize("spelling", ["absolute", "relative", "dotted", "trailing", "home", "path"])
    def test_however_it_is_written(self, folder, spelling, monkeypatch):
        monkeypatch.chdir(folder.parent)
        monkeypatch.setenv("HOME", str(folder.parent))
        source = {
            "absolute": str(folder),
            "relative": "tiny",
            "dotted": "./tiny",
            "trailing": "tiny/",
            "home": "~/tiny",
            "path": Path("tiny"),
        }[spelling]
        with load(source) as model:
            assert model.name == "tiny"

    def test_here(self, folder, monkeypatch):
        monkeypatch.chdir(folder)
        with load(".") as model:
            assert model.name == "tiny"

    def test_a_folder_is_meant_before_an_id(self, folder, monkeypatch):
        monkeypatch.chdir(folder.parent.parent)
        with load(f"{folder.parent.name}/tiny") as model:
            assert model.name == "tiny"

    @pytest.mark.parametrize(
        ("stored", "default"), [("float32", "float32"), ("bfloat16", "bfloat16"), ("float16", "float32")]
    )
    def test_the_dtype_is_the_checkpoints_but_for_float16(self, folder, stored, default):
        save_file(tensors(getattr(ml_dtypes, stored, stored)), folder / "model.safetensors")
        with load(folder) as model:
            assert model.params["embed"].dtype == default
            assert model.recipe == choose_recipe(default)

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
    def test_the_dtype_is_the_callers(self, folder, dtype):
        save_file(tensors(np.float16), folder / "model.safetensors")
        with load(folder, dtype=dtype) as model:
            assert model.params["embed"].dtype == dtype
            assert model.params["final_norm"].dtype == "float32"
            assert model.recipe == choose_recipe(dtype)

    def test_the_recipe_and_the_device_are_the_callers(self, folder):
        recipe, device = Recipe("bfloat16"), jax.local_devices()[0]
        with load(folder, recipe=recipe, device=device) as model:
            assert model.recipe is recipe
            assert model.params["embed"].dtype == "bfloat16"
            assert model.params["embed"].devices() == {device}

    def test_a_placement_may_be_named_and_a_model_knows_its_own(self, folder):
        here = SingleDevice(jax.local_devices()[0])
        for device in (None, here, here.device):
            with load(folder, device=device) as model:
                assert model.placement == here
                assert model.device == here.device
                again = load_again(model)
                assert again.placement == here
                again.close()

    def test_the_caches_dtype_is_one_that_it_can_have(self, folder):
        with load(folder, recipe=Recipe("float32", cache_dtype="bfloat16")) as model:
            assert model.recipe.kv_dtype == "bfloat16"
            assert model.params["embed"].dtype == "float32"
        with pytest.raises(InputError, match=r"cache_dtype: expected one of float32, bfloat16.* found 'int8'"):
            load(folder, recipe=Recipe("float32", cache_dtype="int8"))

    def test_the_files_are_closed(self, folder, monkeypatch):
        closed = []
        close = SafetensorsSource.close
        monkeypatch.setattr(SafetensorsSource, "close", lambda self: (closed.append(self.location), close(self)))
        load(folder).close()
        assert closed == [str(folder)]

    def test_whether_its_template_has_empty_lines_around_images(self, folder):
        template = folder / "chat_template.jinja"
        for text, apart in ((r"{{- '\n\n<|image|>\n\n' -}}", True), ("{{- '<|image|>' -}}", False)):
            template.write_text(text)
            with load(folder) as model:
                assert model.chat_format.images_apart is apart
        template.write_bytes(b"\xff")  # whoever asks for the template itself is told
        with load(folder) as model:
            assert not model.chat_format.images_apart

    def test_no_generation_defaults(self, folder):
        (folder / "generation_config.json").unlink()
        with load(folder) as model:
            assert model.generation_defaults == {}


class TestNothingIsLoadedWhen:
    """... something small is wrong: no weight is read for it, and none stays."""

    @pytest.fixture(autouse=True)
    def _nothing_is_placed(self, monkeypatch):
        monkeypatch.setattr(opened_gemma, "place", lambda *_, **__: pytest.fail("weights were read"))

    def test_the_tokenizer_is_absent(self, folder):
        (folder / "tokenizer.json").unlink()
        with pytest.raises(TokenizerError):
            load(folder)

    def test_the_generation_defaults_are_malformed(self, folder):
        (folder / "generation_config.json").write_text("{")
        with pytest.raises(CorruptCheckpointError, match="generation_config"):
            load(folder)

    def test_a_link_leads_out_of_the_folder(self, folder):
        (folder / "generation_config.json").rename(folder.parent / "defaults.json")
        (folder / "generation_config.json").symlink_to("../defaults.json")
        with pytest.raises(UnsafeCheckpointError):
            load(folder)

    @pytest.mark.parametrize("dtype", ["int8", "f32", "", "FLOAT32"])
    def test_the_dtype_is_not_possible(self, folder, dtype):
        with pytest.raises(InputError, match=rf"expected one of float32, bfloat16, float16 or None, found '{dtype}'"):
            load(folder, dtype=dtype)

    def test_the_recipe_is_for_another_dtype(self, folder):
        with pytest.raises(InputError, match=r"dtype='float32' was asked for, with a recipe for bfloat16"):
            load(folder, dtype="float32", recipe=Recipe("bfloat16"))

    def test_a_revision_of_a_folder(self, folder):
        with pytest.raises(InputError, match=r"revision='main' is for models on the Hub"):
            load(folder, revision="main")


def test_nothing_is_left_on_the_device_or_mapped_after_a_failure(folder):
    stored = tensors()
    stored["model.layers.1.mlp.down_proj.weight"][0, 0] = 1e30
    save_file(stored, folder / "model.safetensors")
    before = len(jax.live_arrays())
    with pytest.raises(TensorMismatchError):
        load(folder, dtype="float16")
    assert len(jax.live_arrays()) == before
    if (maps := Path("/proc/self/maps")).exists():
        assert str(folder) not in maps.read_text()


class TestAnId:
    def test_is_fetched(self, folder, monkeypatch):
        asked = []

        def download(model_id, *, revision, token, progress, stop, file):
            asked.append((model_id, revision, token, progress, stop, file))
            return folder

        monkeypatch.setattr(hub, "download", download)
        with load("org/name", revision="v1", token="secret", progress=False) as model:
            assert model.name == "org/name"
        assert asked == [("org/name", "v1", "secret", False, None, None)]

    @pytest.mark.usefixtures("no_hub")
    @pytest.mark.parametrize(
        "source",
        ["gemma", "", "a/b/c", "org/na me", "org/name\0", "\ud800", "x" * 9999],
    )
    def test_neither_a_folder_nor_an_id(self, source):
        with pytest.raises(InputError) as caught:
            load(source)
        assert "neither a folder nor a file that exists here, nor a model's id" in str(caught.value)
        assert '"organisation/name"' in str(caught.value)

    @pytest.mark.usefixtures("no_hub")
    @pytest.mark.parametrize("source", ["./gone.gguf", "../gone", "/gone", "~/gone"])
    def test_a_path_that_is_not_here_is_said_to_be_one(self, source):
        with pytest.raises(InputError) as caught:
            load(source)
        whole = str(Path(source).expanduser().absolute())
        assert str(caught.value) == f"{source!r} is not here: there is no file or folder at {whole}."

    @pytest.mark.parametrize("kind", [ModelNotOnHubError, OfflineError])
    def test_an_unknown_one_may_have_been_meant_as_a_folder(self, monkeypatch, tmp_path, kind):
        def download(*_, **__):
            raise kind("no such model")

        monkeypatch.setattr(hub, "download", download)
        monkeypatch.chdir(tmp_path)
        with pytest.raises(kind, match="no such model") as caught:
            load("models/gemma")
        assert caught.value.__notes__ == [
            f"If a folder or file was meant: there is none at {tmp_path / 'models/gemma'}."
        ]


class TestProgress:
    @pytest.mark.parametrize(("wanted", "terminal"), [(True, False), (None, True)])
    def test_is_drawn(self, folder, capsys, monkeypatch, wanted, terminal):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
        load(folder, progress=wanted).close()
        assert "Loading tiny: 100%" in capsys.readouterr().err

    @pytest.mark.parametrize(("wanted", "terminal"), [(False, True), (None, False)])
    def test_is_not_drawn(self, folder, capsys, monkeypatch, wanted, terminal):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
        load(folder, progress=wanted).close()
        assert capsys.readouterr().err == ""


class Canary:
    """Unpickled, it leaves a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


WATCH = """
    import sys
    from pathlib import Path

    from langchain_gemma_jax.errors import UnsafeCheckpointError
    from langchain_gemma_jax.models.loading.load import load

    seen = []

    def watch(event, arguments):
        if event.startswith("pickle."):
            seen.append((event, *arguments))
        elif event in ("open", "import", "exec") and ("canary" in str(arguments[0]) or ".bin" in str(arguments[0])):
            seen.append((event, arguments[0]))

    sys.addaudithook(watch)
    load(sys.argv[1]).close()
    assert not seen, seen
    Path(sys.argv[1], "model.safetensors").unlink()
    try:
        load(sys.argv[1])
    except UnsafeCheckpointError:
        print("refused")
    assert not seen, seen
    open(Path(sys.argv[1], "pytorch_model.bin")).close()
    assert seen, "the hook works"
"""


@pytest.mark.long
def test_no_code_that_comes_with_a_model_ever_runs(folder):
    sprung = folder.parent / "sprung"
    for name in ("pytorch_model.bin", "consolidated.canary.pth", "training_args.bin", "optimizer.canary.pt"):
        (folder / name).write_bytes(pickle.dumps(Canary(sprung)))
    (folder / "modeling_canary.py").write_text(f"open({str(sprung)!r}, 'w')")
    auto_map = {"AutoConfig": "modeling_canary.Config", "AutoModelForCausalLM": "modeling_canary.Model"}
    (folder / "config.json").write_text(json.dumps(CONFIG | {"auto_map": auto_map}))
    command = [sys.executable, "-c", textwrap.dedent(WATCH), str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3])
    assert (run.stdout, run.returncode) == ("refused\n", 0), run.stderr
    assert not sprung.exists()
    pickle.loads((folder / "pytorch_model.bin").read_bytes())
    assert sprung.exists(), "the canary works"


def test_matrices_whose_packed_numbers_change_their_format_within_a_head_are_not_divided():
    config = config_from_hf(CONFIG, "x")
    whole = abstract(config, "float32")
    check_divisible(whole)
    for name in ("qkv", "gate_up"):
        layers = [dict(layer) for layer in whole["layers"]]
        layers[1][name] = replace(layers[1][name], sections=())
        with pytest.raises(UnsupportedModelError, match="within heads or within a gate"):
            check_divisible(whole | {"layers": layers})
