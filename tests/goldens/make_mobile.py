"""Writes ``gemma-4-mobile.npz``: tiny models of E2B's kind as a mobile release, and what transformers computes.

    python tests/goldens/make_mobile.py

Needs an environment with torch and transformers 5. Numbers and scales are random; the grids are those of what one pass
without any gives, so that a few numbers pass their ends. The file holds, for each seed, the stored tensors by their
names, the tokens and their logits; and the configuration.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import numpy as np
import torch
import transformers
from transformers.integrations.gemma_quant import QuantizedEmbedding, QuantizedLinear, replace_with_quant_layers

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.parity.architectures import GLOBAL, LOCAL, SHRUNK
from tests.parity.reference_hf import read_config

SEEDS, TOKENS, VOCABULARY = 2, 24, 160
CONFIG = dict(SHRUNK["gemma-4-e2b"]) | {
    "vocab_size": VOCABULARY,
    "vocab_size_per_layer_input": VOCABULARY,
    "tie_word_embeddings": False,
    "num_hidden_layers": 5,
    "layer_types": [LOCAL, LOCAL, GLOBAL, LOCAL, GLOBAL],
    "num_kv_shared_layers": 2,
}
SAID = {
    "quant_method": "gemma",
    "num_bits": 4,
    "quantize_embeddings": True,
    "modules_to_not_convert": ["per_layer_model_projection"],
    "module_quant_configs": {
        "^lm_head$": {"num_bits": 2},
        "embed_tokens$": {"num_bits": 2},
        "embed_tokens_per_layer$": {"num_bits": 4},
        r"layers\.[01]\.mlp\.": {"num_bits": 4},
        r"mlp\.": {"num_bits": 2},
        "per_layer_input_gate$": {"num_bits": 8},
        "per_layer_projection$": {"num_bits": 8},
    },
}


@torch.no_grad()
def make(seed: int) -> dict[str, np.ndarray]:
    """A model's stored tensors, and what it makes of some tokens."""
    random = np.random.default_rng(seed)
    config = read_config(CONFIG)
    model = transformers.AutoModelForCausalLM.from_config(
        config, attn_implementation="eager", dtype=torch.float32
    ).eval()
    said = transformers.GemmaQuantizationConfig(**{name: SAID[name] for name in SAID if name != "quant_method"})
    replace_with_quant_layers(model, said, said.modules_to_not_convert)
    for parameter in model.parameters():
        if parameter.ndim == 1:
            parameter.copy_(torch.from_numpy(random.uniform(0.5, 1.5, parameter.shape).astype(np.float32)))
    for name, module in model.named_modules():
        if isinstance(module, QuantizedEmbedding | QuantizedLinear):
            fill(name, module, random, len(config.layer_types))
    tokens = torch.from_numpy(np.concatenate([[2], random.integers(4, VOCABULARY, TOKENS - 1)]))
    calibrate(model, tokens)
    logits = model(tokens[None], use_cache=False).logits[0]
    state = {name: value.detach().numpy() for name, value in model.state_dict().items()}
    return state | {"tokens": tokens.numpy().astype(np.int32), "logits": logits.numpy()}


def fill(name: str, module: torch.nn.Module, random: np.random.Generator, layers: int) -> None:
    """Random numbers, and scales that give them an ordinary size."""
    table = isinstance(module, QuantizedEmbedding)
    numbers = module.embedding_quantized if table else module.weight
    low, high = (-128, 128) if module.num_bits == 8 else (0, 256)
    numbers.copy_(torch.from_numpy(random.integers(low, high, tuple(numbers.shape))).to(numbers.dtype))
    inputs = module.embedding_dim if table else module.in_features
    size = inputs**-0.5 / (2 ** (module.num_bits - 1) / 3**0.5)
    groups = layers if name.endswith("embed_tokens_per_layer") else 1
    scales = torch.from_numpy((size * random.uniform(0.5, 1.5, (len(numbers), groups))).astype(np.float32))
    if table:
        module.embedding_scale = torch.nn.Parameter(scales, requires_grad=False)
    else:
        module.weight_scale.copy_(scales)


def calibrate(model: transformers.PreTrainedModel, tokens: torch.Tensor) -> None:
    """Set the grids' steps by what goes in and comes out without them; the output matrix has none, as published."""
    seen = {}

    def note(module: QuantizedLinear, given: tuple[torch.Tensor], out: torch.Tensor) -> None:
        seen[module] = [float(each.abs().max()) / 110 for each in (given[0], out)]

    linears = [module for name, module in model.named_modules() if isinstance(module, QuantizedLinear)]
    hooks = [module.register_forward_hook(note) for module in linears]
    model(tokens[None], use_cache=False)
    for hook in hooks:
        hook.remove()
    for module in linears:
        if module is not model.lm_head and module in seen:
            module.input_activation_scale.fill_(seen[module][0])
            module.output_activation_scale.fill_(seen[module][1])


def main() -> None:
    """Write it."""
    logging.getLogger("transformers").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    config = json.dumps(CONFIG | {"quantization_config": SAID}).encode()
    found = {"config": np.frombuffer(config, np.uint8), "made_by": f"transformers {transformers.__version__}"}
    for seed in range(SEEDS):
        found |= {f"{seed}/{name}": value for name, value in make(seed).items()}
    np.savez_compressed(Path(__file__).with_name("gemma-4-mobile.npz"), **found)


if __name__ == "__main__":
    main()
