"""A model whose code cannot be served is refused when it is loaded, whatever the reason, and weights are not read."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.errors import UnsupportedModelError
from langchain_gemma_jax.models.loading.load import load
from langchain_gemma_jax.models.torchax.meta_module import meta_module
from langchain_gemma_jax.models.torchax.traced_pass import PassCache
from tests.torchax.torch_models import needs_torch, save_model

pytestmark = [needs_torch, pytest.mark.slow, pytest.mark.filterwarnings("default")]


@pytest.fixture
def folder(tmp_path):
    save_model(tmp_path, "llama 3")
    (tmp_path / "model.safetensors").write_bytes(b"no weights")
    meta_module.cache_clear()  # modules that other tests left were built of other code
    yield tmp_path
    meta_module.cache_clear()


def test_what_ends_a_step_ends_the_loading(folder, monkeypatch):
    from transformers.models.llama import modeling_llama as code

    usual = code.LlamaMLP.forward

    def of(spoilt):
        def forward(self, x):
            spoilt(x)
            return usual(self, x)

        return forward

    def lost(x):  # as a context variable that nobody set. Only while JAX traces: torch's own tensors pass
        if type(x).__module__.startswith("torchax"):
            raise LookupError("<ContextVar name='now'>")

    def asks(x):
        if x.sum() > 0:
            raise AssertionError

    for spoilt, says in (
        (lost, "LlamaForCausalLM cannot be served: its code ends with LookupError: <ContextVar name='now'>"),
        (asks, "LlamaForCausalLM cannot be served: its code decides by a number that it computes from the text"),
    ):
        monkeypatch.setattr(code.LlamaMLP, "forward", of(spoilt))
        with pytest.raises(UnsupportedModelError) as caught:
            load(f"torchax:{folder}")
        assert says in str(caught.value)


def test_a_head_that_calls_layers_is_refused(folder, monkeypatch):
    from transformers.models.llama import modeling_llama as code

    usual = code.LlamaForCausalLM.forward

    def forward(self, input_ids=None, **asked):
        out = usual(self, input_ids, **asked)
        embedded = self.model.embed_tokens(input_ids)
        turns = self.model.rotary_emb(embedded, input_ids)
        self.model.layers[0].self_attn(embedded, position_embeddings=turns, attention_mask=None)
        return out

    monkeypatch.setattr(code.LlamaForCausalLM, "forward", forward)
    with pytest.raises(UnsupportedModelError, match="cannot be served: its head calls layers by itself"):
        load(f"torchax:{folder}")


def test_keys_that_are_made_of_the_cache_are_refused(folder, monkeypatch):
    usual = PassCache.update
    monkeypatch.setattr(PassCache, "update", lambda *given, **more: tuple(2 * each for each in usual(*given, **more)))
    with pytest.raises(UnsupportedModelError, match="looks at keys that are not those in its cache"):
        load(f"torchax:{folder}")
