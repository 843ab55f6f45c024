"""Texts get torch's labels, in as many programs as there are lengths."""

from __future__ import annotations

import random

import numpy as np
import pytest

from langchain_gemma_jax.errors import ClosedError, InputError, TensorMismatchError, UnsupportedModelError
from tests.torchax.torch_models import COMMON, needs_torch, save_model, save_tokenizer

pytestmark = [needs_torch, pytest.mark.slow, pytest.mark.filterwarnings("default")]

WORDS = ["the", "weather", "in", "Paris", "is", "good", "bad", "a", "model", "reads", "words", "or", "does", "not"]
SIZES = (16, 32, 64, 128, 256)
KINDS = {
    "an encoder": (
        "BertConfig",
        "BertForSequenceClassification",
        {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
         "max_position_embeddings": 256, "pad_token_id": 0},
    ),
    "a decoder": (
        "Qwen3Config",
        "Qwen3ForSequenceClassification",
        COMMON | {"head_dim": 16, "max_position_embeddings": 256},
    ),
}  # fmt: skip


def save_classifier(folder, kind, labels=5):
    import torch
    import transformers

    torch.set_num_threads(1)
    save_tokenizer(folder)
    config, module, own = KINDS[kind]
    names = {number: f"label {number}" for number in range(labels)}
    numbers = {name: number for number, name in names.items()}
    made = getattr(transformers, config)(**own, vocab_size=407, id2label=names, label2id=numbers)
    torch.manual_seed(0)
    module = getattr(transformers, module)(made).eval()
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            around_one = "norm" in name.lower() and name.endswith("weight")
            parameter.copy_(0.3 * torch.randn_like(parameter) + float(around_one))
    module.save_pretrained(folder)
    return module


@pytest.fixture(scope="module", params=list(KINDS))
def both(request, tmp_path_factory):
    from langchain_gemma_jax.models.torchax.doors.classify import TextClassifier

    folder = tmp_path_factory.mktemp("classifier")
    module = save_classifier(folder, request.param)
    with TextClassifier(f"torchax:{folder}") as model:
        yield model, module


def test_labels_of_500_texts_are_torchs_and_programs_are_as_many_as_lengths(both):
    import torch

    from langchain_gemma_jax.models.torchax.doors.classify import classify

    model, module = both
    rng = random.Random(0)
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(1, 40))) for _ in range(500)]
    ids = [model._tokenizer.encode(text).ids for text in texts]
    with torch.no_grad():
        want = np.stack([module(torch.tensor([each])).logits[0].numpy() for each in ids])
    found = model.scores(texts)
    assert np.abs(found - want).max() < 1e-4
    assert classify(model, texts) == [f"label {number}" for number in want.argmax(axis=1)]
    assert len({*want.argmax(axis=1)}) > 2
    lengths = {next(size for size in SIZES if len(each) <= size) for each in ids}
    assert len(lengths) > 3
    assert model.compiles == len(lengths)


def test_what_cannot_be_classified_is_refused(both):
    model, _ = both
    with pytest.raises(InputError, match="list of strings"):
        model.scores("a text")
    with pytest.raises(InputError, match=r"texts\[1\]: expected 1 to 256 tokens"):
        model.scores(["short", "long " * 400])
    with pytest.raises(InputError, match=r"texts\[0\]: expected 1 to 256 tokens, found 0"):
        model.scores([""])


def test_a_classifier_that_is_none_is_refused_and_one_that_was_closed(tmp_path):
    from langchain_gemma_jax.models.torchax.doors.classify import TextClassifier

    for name in ("decoder", "number", "good"):
        (tmp_path / name).mkdir()
    save_model(tmp_path / "decoder", "qwen 3")
    with pytest.raises(TensorMismatchError, match=r"none that fits for score\.weight"):
        TextClassifier(f"torchax:{tmp_path / 'decoder'}")
    save_classifier(tmp_path / "number", "an encoder", labels=1)
    with pytest.raises(UnsupportedModelError, match="two labels or more, found 1"):
        TextClassifier(f"torchax:{tmp_path / 'number'}")
    save_classifier(tmp_path / "good", "an encoder")
    model = TextClassifier(f"torchax:{tmp_path / 'good'}")
    model.close()
    with pytest.raises(ClosedError, match="Make it again"):
        model.scores(["short"])
