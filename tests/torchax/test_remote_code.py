"""Code in a model's folder is not run unless somebody trusts it, is run loudly then, and is a part of what it is."""

from __future__ import annotations

import json
import sys

import pytest

from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.errors import InputError, UnsafeCheckpointError
from langchain_gemma_jax.models.loading.load import load
from langchain_gemma_jax.models.torchax.remote_code import RemoteCodeWarning
from tests.torchax.test_torch_serving import LADDERS
from tests.torchax.torch_models import greedy_by_torch, needs_torch, save_model

pytestmark = [needs_torch, pytest.mark.slow, pytest.mark.filterwarnings("default")]

CODE = """
import pathlib
pathlib.Path({marker!r}).write_text("ran")
from transformers import LlamaConfig, LlamaForCausalLM

class OwnConfig(LlamaConfig):
    model_type = "own-llama"

class OwnForCausalLM(LlamaForCausalLM):
    config_class = OwnConfig
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder whose model is a Llama of its own code, what torch says of it, and the file that the code leaves."""
    folder, marker = tmp_path / "own", tmp_path / "marker"
    folder.mkdir()
    module = save_model(folder, "llama 3")
    (folder / "modeling_own.py").write_text(CODE.format(marker=str(marker)))
    own = {"AutoConfig": "modeling_own.OwnConfig", "AutoModelForCausalLM": "modeling_own.OwnForCausalLM"}
    change(folder, model_type="own-llama", auto_map=own)
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    yield folder, module, marker
    for name in [name for name in sys.modules if name.startswith("transformers_modules")]:
        del sys.modules[name]


def change(folder, **fields):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_nothing_is_run_that_nobody_trusts(own):
    folder, _, marker = own
    with pytest.raises(UnsafeCheckpointError, match=r"have to be run.*Nothing of it was run.*trust_remote_code=True"):
        load(f"torchax:{folder}")
    assert not marker.exists()


def test_a_kind_that_transformers_has_needs_no_code(own):
    folder, module, marker = own
    change(folder, model_type="llama")
    with load(f"torchax:{folder}") as model:
        assert model.nbytes == sum(each.numel() * 4 for each in (*module.parameters(), *module.buffers()))
    assert not marker.exists()


def test_trusted_code_is_run_with_a_warning_and_served(own):
    folder, module, marker = own
    engine = Engine(Settings(ladders=LADDERS))
    try:
        with pytest.warns(RemoteCodeWarning, match=r"modeling_own\.py.*is run in this process now"):
            served = engine.load(f"torchax:{folder}", trust_remote_code=True)
        assert marker.exists()
        prompt = [20, 30, 40, 50]
        done = engine.submit(served, prompt, Sampling(max_tokens=16, ignore_eos=True)).result()
        assert list(done.ids) == greedy_by_torch(module, prompt, 16, served.model.tokenizer.vocab_size)
        facts = served.model.architecture.facts
        assert facts.code.folder == str(folder)
        (folder / "modeling_own.py").write_text((folder / "modeling_own.py").read_text() + "\n# another\n")
        with pytest.warns(RemoteCodeWarning), load(f"torchax:{folder}", trust_remote_code=True) as model:
            assert model.architecture.facts.code.digest != facts.code.digest, "other code makes other programs"
    finally:
        engine.close(60)


def test_trust_without_code_is_a_mistake(tmp_path):
    save_model(tmp_path, "llama 3")
    with pytest.raises(InputError, match="has no code of its own"):
        load(f"torchax:{tmp_path}", trust_remote_code=True)
    with pytest.raises(InputError, match=r'only a model "torchax:\.\.\." can have code'):
        load("sprout-s", trust_remote_code=True)
