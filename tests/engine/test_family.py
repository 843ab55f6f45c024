"""Members of the family whose answers are those of transformers: cold, reused, beside others, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.requests.prompt import MediaSpan, Prompt, TokenSpan
from langchain_gemma_jax.errors import InputError
from tests.engine.faults_support import SMALL
from tests.family_folder import GOLDEN, PALIGEMMAS, golden, spans, write
from tests.goldens.test_goldens import write_checkpoint
from tests.parity.architectures import SHRUNK
from tests.parity.media_models import FAMILY, NEW_TOKENS
from tests.tiny_gemma import tiny_gemma

LONG = {"paligemma-2"}  # the others take as long


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name in LONG else pytest.mark.slow) for name in FAMILY]
)
def test_an_engine_says_what_transformers_does_cold_and_reused(name, tmp_path, engine_of):
    write(tmp_path, name)
    theirs = golden(name)["tokens"][-NEW_TOKENS:].tolist()
    asked = Sampling(max_tokens=NEW_TOKENS, ignore_eos=True)
    own = engine_of(ladders=SMALL)
    served = own.load(str(tmp_path), dtype="float32")
    prompt = spans(served.model, name)
    cold = own.submit(served, Prompt(tuple(prompt)), asked).result()
    again = own.submit(served, Prompt(tuple(prompt)), asked).result()
    assert list(cold.ids) == list(again.ids) == theirs
    assert cold.media_tokens == sum(span.soft for span in prompt if isinstance(span, MediaSpan))
    # What was said is in memory behind the prompt, and is read from there.
    longer = own.submit(served, Prompt((*prompt, TokenSpan(theirs[:20]))), asked).result()
    assert longer.reused_tokens == len(Prompt(tuple(prompt))) + 19
    assert list(longer.ids)[: NEW_TOKENS - 20] == theirs[20:]
    assert own.report().media_encoded == 1
    if name in PALIGEMMAS:
        check_other_words(own, served, name, prompt[0], asked)


def check_other_words(own, served, name, span, asked):
    """Ask at the same time with another last word, in the same way, and of another picture."""
    other = MediaSpan((*span.ids[:-1], 77), span.digest, span.inputs, words=span.words)
    (unlike,) = spans(served.model, name, shown=5)
    asking = [own.submit(served, Prompt((each,)), asked) for each in (other, span, unlike)]
    found = [each.result() for each in asking]
    assert list(found[1].ids) == golden(name)["tokens"][-NEW_TOKENS:].tolist()
    assert [each.reused_tokens for each in found] == [0, 0, 0]  # a later word would have changed it all
    assert own.report().media_encoded == 2  # the same picture with other words is not encoded again
    for each, done in zip((other, unlike), (found[0], found[2]), strict=True):
        alone = own.submit(served, Prompt((each,)), asked, scope="nobody else").result()
        assert list(alone.ids) == list(done.ids)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SHRUNK if name.startswith("vault")])
def test_vaultgemma_goes_on_from_what_is_in_memory(name, tmp_path, engine_of):
    write_checkpoint(name, tmp_path)
    files = tiny_gemma()
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / file).write_bytes(files[file])
    own = engine_of(ladders=SMALL)
    served = own.load(str(tmp_path), dtype="float32")
    asked = Sampling(max_tokens=NEW_TOKENS, ignore_eos=True)
    with np.load(GOLDEN.with_name(f"{name}.npz")) as found:
        for row, prompt in zip(found["tokens"].tolist(), found["lengths"].tolist(), strict=True):
            cold = own.submit(served, row[:prompt], asked).result()
            longer = own.submit(served, row[: prompt + 11], asked).result()
            assert longer.reused_tokens >= prompt
            assert list(cold.ids) == row[prompt : prompt + NEW_TOKENS]
            assert list(longer.ids) == row[prompt + 11 : prompt + 11 + NEW_TOKENS]


def test_a_picture_that_is_not_read_with_its_words_is_refused(tmp_path, engine_of):
    name = "paligemma-2"
    write(tmp_path, name)
    own = engine_of(ladders=SMALL)
    served = own.load(str(tmp_path), dtype="float32")
    (span,) = spans(served.model, name)
    alone = MediaSpan(span.ids[: span.soft], span.digest, span.inputs)
    most = (*span.ids[: span.soft], *[7] * 513)
    too_long = MediaSpan(most, span.digest, span.inputs, words=513)
    for given, said in (
        ((alone, TokenSpan((5,))), "expected from 1 to 512 tokens of text .* found 0. It reads them in both"),
        ((too_long,), "expected from 1 to 512 tokens of text .* found 513"),
        ((TokenSpan((5,)), span), "expected a picture at the beginning of the prompt, found one at place 1"),
        ((span, span), "expected a picture at the beginning of the prompt, found one at place"),
    ):
        with pytest.raises(InputError, match=said):
            own.submit(served, Prompt(given), Sampling(max_tokens=1))
