"""A torch module as a function of arrays: called, jitted, differentiated, compiled as it is called."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.errors import ClosedError, InputError
from tests.torchax.torch_models import needs_torch, save_model, scores

pytestmark = [needs_torch, pytest.mark.slow, pytest.mark.filterwarnings("default")]

IDS = [[12, 40, 77, 130, 255, 300, 13, 14]]


@pytest.fixture
def module(tmp_path):
    import transformers

    save_model(tmp_path, "qwen 2.5")  # its head is its table: one tensor with two names
    return transformers.AutoModelForCausalLM.from_pretrained(tmp_path).eval()


def test_a_forward_pass_called_jitted_and_differentiated(module):
    from langchain_gemma_jax.models.torchax.doors.module_function import as_function

    want = scores(module, IDS[0])
    params, run = as_function(module)
    assert all(tensor.device.type == "meta" for tensor in (*module.parameters(), *module.buffers()))
    assert "lm_head.weight" not in params
    eager = run(params, input_ids=np.array(IDS), use_cache=False)
    jitted = jax.jit(partial(run, use_cache=False))(params, input_ids=jnp.array(IDS))
    assert type(jitted).__name__ == type(eager).__name__ == "CausalLMOutputWithPast"
    assert isinstance(jitted.logits, jax.Array)
    for found in (eager, jitted):
        assert np.abs(np.asarray(found.logits[0]) - want).max() < 1e-4
    assert [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(jitted)] == ["['logits']"]
    doubled = jax.tree.map(lambda array: 2 * array, jitted)
    assert np.allclose(doubled.logits, 2 * jitted.logits)

    def loss(params):
        return jnp.mean(run(params, input_ids=jnp.array(IDS), use_cache=False).logits ** 2)

    slope, name = jax.grad(loss)(params), "model.layers.1.mlp.down_proj.weight"
    step = 1e-2 * slope[name] / jnp.linalg.norm(slope[name])
    up, down = (loss(params | {name: params[name] + sign * step}) for sign in (1, -1))
    assert float(up - down) / 2 == pytest.approx(float(jnp.sum(slope[name] * step)), rel=2e-2)


def test_the_compile_form_has_a_program_for_each_shape(module):
    from langchain_gemma_jax.models.torchax.doors.module_function import CompiledModule

    want = scores(module, IDS[0])
    with CompiledModule(module) as compiled:
        for _ in range(3):
            found = compiled(np.array(IDS), use_cache=False)
        assert np.abs(np.asarray(found.logits[0]) - want).max() < 1e-4
        assert compiled.compiles == 1
        compiled(np.array(IDS)[:, :4], use_cache=False)
        compiled(np.array(IDS), use_cache=False, output_hidden_states=True)
        assert compiled.compiles == 3
        with pytest.raises(InputError, match=r"answers with a DynamicCache.*use_cache=False"):
            compiled(np.array(IDS), use_cache=True)
    compiled.close()
    with pytest.raises(ClosedError, match="Make it again"):
        compiled(np.array(IDS), use_cache=False)


def test_gemmas_that_cannot_be_served_are_functions():
    import torch
    import transformers

    from langchain_gemma_jax.models.torchax.doors.module_function import as_function

    class Scores(torch.nn.Module):
        """The scores alone, without the cache that comes with some."""

        def __init__(self, module):
            super().__init__()
            self.module = module

        def forward(self, **asked):
            return self.module(**asked).logits

    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
             "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 300, "sliding_window": 20}  # fmt: skip
    experts = {"num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 32, "global_head_dim": 16}
    kinds = ["sliding_attention", "full_attention"]
    seeing = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2,
              "num_key_value_heads": 2, "head_dim": 16, "position_embedding_size": 64}  # fmt: skip
    recurrent = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 96,
                 "lru_width": 64, "attention_window_size": 20, "vocab_size": 300}  # fmt: skip
    ids, more = [[5, 6, 7, 8]], [[2, 9, 10, 11]]
    two = {"input_ids": ids, "decoder_input_ids": more}
    for model, config, asked in (
        (
            "T5GemmaForConditionalGeneration",
            transformers.T5GemmaConfig(encoder=sizes, decoder=sizes, vocab_size=300),
            two,
        ),
        ("RecurrentGemmaForCausalLM", transformers.RecurrentGemmaConfig(**recurrent), {"input_ids": ids}),
        (
            "DiffusionGemmaForBlockDiffusion",
            transformers.DiffusionGemmaConfig(
                text_config=sizes | experts | {"layer_types": kinds}, vision_config=seeing
            ),
            two,
        ),
    ):  # fmt: skip
        config._attn_implementation = "eager"
        torch.manual_seed(0)
        module = getattr(transformers, model)(config).eval()
        module.set_experts_implementation("batched_mm")
        with torch.no_grad():
            want = module(**{name: torch.tensor(value) for name, value in asked.items()}).logits.numpy()
        params, run = as_function(Scores(module))
        found = jax.jit(run)(params, **{name: np.array(value) for name, value in asked.items()})
        assert np.abs(np.asarray(found) - want).max() < 1e-4 * max(1.0, np.abs(want).max()), model
