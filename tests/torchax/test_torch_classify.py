"""Texts get torch's labels, in as many programs as there are lengths."""

from __future__ import annotations

import random

import numpy as np
import pytest

from langchain_gemma_jax.errors import ClosedError, InputError
from tests.torchax.torch_models import needs_torch, save_tokenizer

pytestmark = [needs_torch, pytest.mark.slow, pytest.mark.filterwarnings("default")]

WORDS = ["the", "weather", "in", "Paris", "is", "good", "bad", "a", "model", "reads", "words", "or", "does", "not"]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    import torch
    import transformers

    from langchain_gemma_jax.models.torchax.classify import TextClassifier

    folder = tmp_path_factory.mktemp("classifier")
    save_tokenizer(folder)
    config = transformers.BertConfig(
        vocab_size=407, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
        max_position_embeddings=256, num_labels=5, pad_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    module = transformers.BertForSequenceClassification(config).eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(0.4 * torch.randn_like(parameter))
    module.save_pretrained(folder)
    with TextClassifier(f"torchax:{folder}") as model:
        yield model, module


def test_labels_are_torchs_and_programs_are_as_many_as_lengths(both):
    import torch

    from langchain_gemma_jax.models.torchax.classify import classify

    model, module = both
    rng = random.Random(0)
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(1, 40))) for _ in range(500)]
    labels = classify(model, texts)
    ids = [model._tokenizer.encode(text).ids for text in texts]
    with torch.no_grad():
        want = [module(torch.tensor([each])).logits[0].numpy() for each in ids]
    found = model.scores(texts)
    assert np.abs(found - np.stack(want)).max() < 1e-4
    assert labels == [model.labels[int(each.argmax())] for each in want]
    lengths = {next(size for size in (16, 32, 64, 128, 256) if len(each) <= size) for each in ids}
    assert len(lengths) > 2
    assert model.compiles == len(lengths)


def test_what_cannot_be_classified_is_refused(both):
    model, _ = both
    with pytest.raises(InputError, match="list of strings"):
        model.classify("a text")
    with pytest.raises(InputError, match=r"texts\[1\]: expected 1 to 256 tokens"):
        model.classify(["short", "long " * 400])
    model.close()
    with pytest.raises(ClosedError, match="Make it again"):
        model.classify(["short"])
