import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.models.random_params import random_params
from langchain_gemma_jax.models.recipes import Recipe
from training import greedy, tokenizer
from training.forward import hidden_states
from training.greedy import Greedy


def one_by_one(params, config, ids, count):
    """The most likely tokens, each by reading everything anew."""
    read = jax.jit(lambda tokens, own: hidden_states(params, config, tokens, own, jnp.dtype("float32")))
    ids = list(ids)
    for _ in range(count):
        tokens, own = np.zeros((1, 64), np.int32), np.zeros((1, 64), np.int32)
        tokens[0, : len(ids)], own[0, : len(ids)] = ids, 1
        ids.append(int((read(tokens, own)[0][0, len(ids) - 1] @ params["embed"].T).argmax()))
    return ids[-count:]


@pytest.mark.parametrize("chunk", [8, 20])
def test_prompts_of_several_lengths_are_gone_on_with_as_if_alone(
    tiny_with_both_kinds_of_layers, tokenizer_folder, monkeypatch, chunk
):
    monkeypatch.setattr(greedy, "_CHUNK", chunk)
    monkeypatch.setattr(greedy, "_LEAST_CAPACITY", 64)
    config, library = tiny_with_both_kinds_of_layers, tokenizer.load(tokenizer_folder)
    params = random_params(config, Recipe("float32"), seed=5)
    prompts = ["<bos>a b c d e f g h", "<bos>1", "<bos>,;,;,;,;,;,;,;,;,;,;"]
    found = Greedy(params, config, library, most=6).write(prompts)
    for prompt, text in zip(prompts, found, strict=True):
        ids = library.encode(prompt, add_special_tokens=False).ids
        assert text == library.decode(one_by_one(params, config, ids, 6), skip_special_tokens=False)
