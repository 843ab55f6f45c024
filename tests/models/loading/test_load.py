from __future__ import annotations

import json
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import jax
import pytest
from safetensors.numpy import save_file

from langchain_gemma_jax.errors import TensorMismatchError, TokenizerError
from langchain_gemma_jax.models.configuration.abstract import abstract, total_bytes, walk
from langchain_gemma_jax.models.loading import opened_gemma
from langchain_gemma_jax.models.loading.load import load
from langchain_gemma_jax.models.recipes import choose_recipe
from langchain_gemma_jax.models.seams.params import leaves
from tests.models.loading.tiny_folder import CONFIG, tensors


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


class TestNothingIsLoadedWhen:
    """... something small is wrong: no weight is read for it, and none stays."""

    @pytest.fixture(autouse=True)
    def _nothing_is_placed(self, monkeypatch):
        monkeypatch.setattr(opened_gemma, "place", lambda *_, **__: pytest.fail("weights were read"))

    def test_the_tokenizer_is_absent(self, folder):
        (folder / "tokenizer.json").unlink()
        with pytest.raises(TokenizerError):
            load(folder)


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
