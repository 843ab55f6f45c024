"""Drafts of a drafter beside the model: the same tokens as without, whatever is drawn, held to a grammar or shared."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from langchain_gemma_jax.dialects import json_grammar
from langchain_gemma_jax.engine.base.draft_sources import MTP, PROMPT, SUFFIXES
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.drafting import drafter as drafter_file
from langchain_gemma_jax.engine.drafting.draft_choice import DraftLength
from langchain_gemma_jax.engine.drafting.row_costs import RowCosts
from langchain_gemma_jax.engine.steps.chains import ChainOfRequest
from langchain_gemma_jax.models.checkpoint.folder import open_folder
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.loading.drafters import DrafterFiles
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.loading.place import place
from langchain_gemma_jax.models.recipes import AttentionForm, BetweenForm, Recipe
from langchain_gemma_jax.models.seams.placement import placement_of
from langchain_gemma_jax.models.tokenizer import load_tokenizer
from tests.engine.tiny import settle
from tests.goldens.drafter_files import accepted_in, golden, write_drafter, write_target
from tests.parity.drafters import GUESSES, NEW_TOKENS, TARGETS, VOCABULARY
from tests.tiny_gemma import tiny_gemma

LADDERS = Ladders(chunks=(16,), capacities=(512,), rows=(1, 8), draft=GUESSES)
RECIPES = {
    "xla": Recipe("float32"),
    "kernels": Recipe("float32", attention=AttentionForm.KERNEL, between=BetweenForm.KERNEL),
}
WAYS = {
    "greedy": {},
    "drawn": {"temperature": 0.9, "seed": 5},
    "penalized": {"temperature": 0.5, "seed": 7, "presence_penalty": 0.3, "frequency_penalty": 0.2},
}


@pytest.fixture(scope="module")
def drafted(tmp_path_factory, tiny_folder):
    """``drafted("every token")``: a tiny model with its drafter, in memory."""
    tokenizer, known = load_tokenizer(tiny_folder), {}

    def drafted(name, way="xla", vocabulary=VOCABULARY):
        if (name, way, vocabulary) not in known:
            folder, recipe = tmp_path_factory.mktemp("drafted"), RECIPES[way]
            config, source, naming = open_folder(write_target(name, folder, vocabulary))
            where = placement_of(None)
            with source:
                params = place(source, naming, config, "float32", recipe.layout, where)
            files = DrafterFiles(write_drafter(name, folder / "assistant", vocabulary), config, name)
            drafter = files.read(files.drafter(recipe), where)
            files.close()
            model = Model(Gemma(config), params, tokenizer, recipe, name, placed=where, drafter=drafter)
            known[name, way, vocabulary] = model
        return known[name, way, vocabulary]

    return drafted


@pytest.fixture
def always(monkeypatch):
    """Each check has as many guesses as fit, whatever came of the last ones."""
    monkeypatch.setattr(RowCosts, "know_one", True)

    def as_many_as_fit(counts, most, *_):
        return DraftLength(max((count for count in counts if count <= most), default=0), 2.0)

    monkeypatch.setattr(drafter_file, "best_count", as_many_as_fit)


def ask(engine, served, prompt, **sampling):
    asked = Sampling(**{"max_tokens": NEW_TOKENS, "ignore_eos": True, **sampling})
    return engine.submit(served, prompt, asked).result()


@pytest.mark.parametrize("way", RECIPES)
@pytest.mark.parametrize("name", TARGETS)
def test_the_engine_drafts_and_accepts_what_transformers_does(name, way, engine_of, drafted, always, monkeypatch):
    rounds, guess = [], ChainOfRequest.guess

    def watched(self, count):
        rounds.append(list(guess(self, count)))
        return tuple(rounds[-1])

    monkeypatch.setattr(ChainOfRequest, "guess", watched)
    engine = engine_of(drafts=(MTP,), ladders=LADDERS)
    served = engine.serve(drafted(name, way))
    for said in golden()[name]:
        rounds.clear()
        done = ask(engine, served, said["prompt"])
        assert list(done.ids) == said["answer"]
        assert [found for found in rounds if found] == [found for found in said["drafts"] if found]
        assert done.drafts[MTP].accepted == accepted_in(said)


@pytest.mark.parametrize("way", WAYS)
def test_drafts_change_no_answer(way, engine_of, drafted, always, rng):
    engine, plain = engine_of(drafts=(MTP,), ladders=LADDERS), engine_of(ladders=LADDERS)
    served, others = engine.serve(drafted("every token")), plain.serve(drafted("every token"))
    count = 0
    for length in (3, 9, 20):
        prompt = [2, *(rng.randint(3, 11) for _ in range(length))]
        done, expected = ask(engine, served, prompt, **WAYS[way]), ask(plain, others, prompt, **WAYS[way])
        assert (done.ids, done.text) == (expected.ids, expected.text)
        assert set(done.drafts) == {MTP}
        count += done.drafts[MTP].accepted
    assert count > 0
    report = engine.report()
    assert report.accepted_from_mtp == report.accepted_tokens == count
    assert report.drafted_from_mtp == report.drafted_tokens > count
    assert "from a drafter" in str(report)


def test_what_is_drawn_is_distributed_as_without_drafts(engine_of, drafted, always):
    counts = {}
    for drafts in (False, (MTP,)):
        engine = engine_of(drafts=drafts, ladders=LADDERS)
        served = engine.serve(drafted("every token"))
        few = {"temperature": 1.5, "max_tokens": 4}
        counts[bool(drafts)] = Counter(ask(engine, served, [2, 5, 7], seed=seed, **few).ids for seed in range(60))
    assert counts[True] == counts[False]
    assert len(counts[True]) > 15


def test_requests_that_share_a_model_are_each_drafted_for(engine_of, drafted, always):
    """Two at a time have drafts; with more, steps are shared, and nothing changes."""
    engine, plain = engine_of(drafts=(MTP,), ladders=LADDERS), engine_of(ladders=LADDERS)
    model = drafted("grouped tokens")
    prompts = [[2, *range(3, 5 + number)] for number in range(6)]
    asked = Sampling(max_tokens=30, ignore_eos=True)
    found = []
    for where, count in ((engine, 2), (engine, 6), (plain, 6)):
        served = where.serve(model)
        running = [where.submit(served, prompt, asked) for prompt in prompts[:count]]
        pieces = [[token for piece in each for token in piece.ids] for each in running]
        found.append([each.result() for each in running])
        assert pieces == [list(each.ids) for each in found[-1]], "as streams, too"
    two, six, expected = found
    assert [each.ids for each in six] == [each.ids for each in expected]
    assert [each.ids for each in two] == [each.ids for each in expected[:2]]
    assert all(each.drafts[MTP].drafted > 20 for each in two)


def test_under_a_grammar_only_what_is_legal_is_checked(engine_of, drafted, always):
    schema = {"type": "array", "items": {"type": "string", "maxLength": 9}, "minItems": 4, "maxItems": 4}
    found = []
    for drafts in (False, (MTP,), True):
        engine = engine_of(drafts=drafts, ladders=LADDERS)
        served = engine.serve(drafted("every token", vocabulary=320))
        done = ask(engine, served, [2, 261, 262], grammar=json_grammar(schema), max_tokens=60, ignore_eos=False)
        found.append(done)
        assert len(json.loads(done.text)) == 4
    plain, alone, beside = found
    assert plain.ids == alone.ids == beside.ids
    assert alone.drafts[MTP].drafted > 0


def test_a_model_without_a_drafter_has_no_such_source(engine_of, tiny_model):
    engine = engine_of(drafts=True)
    known = engine._models.known(engine.serve(tiny_model))
    assert known.shape.drafter is None
    assert set(known.drafts.drafter("")._sources) == {SUFFIXES, PROMPT}


def test_a_drafter_that_is_not_asked_for_is_no_part_of_a_program(engine_of, drafted):
    engine = engine_of(drafts=(SUFFIXES,), ladders=LADDERS)
    served = engine.serve(drafted("every token"))
    assert engine._models.known(served).shape.drafter is None
    assert ask(engine, served, [2, 5, 7]).drafts == {}


def test_the_drafter_beside_a_model_goes_and_comes_back_with_it(engine_of, tmp_path, always):
    folder = write_target("every token", tmp_path / "model", 320)
    write_drafter("every token", folder / "assistant", 320)
    (folder / "tokenizer.json").write_bytes(tiny_gemma()["tokenizer.json"])
    engine, plain = engine_of(drafts=(MTP,), ladders=LADDERS), engine_of(ladders=LADDERS)
    served, others = engine.load(folder, dtype="float32"), plain.load(folder, dtype="float32")
    weights, fewer = (where.models()[0].weights for where in (engine, plain))
    beside = served.model.drafter
    assert weights == fewer + beside.nbytes
    assert others.model.drafter is None, "nothing would be drafted"
    first = ask(engine, served, [2, 261, 262])
    assert first.drafts[MTP].drafted > 0
    engine.evict(served)
    settle(engine)
    assert beside.params["from_target"].is_deleted()
    again = ask(engine, served, [2, 261, 262])
    assert again.ids == first.ids == ask(plain, others, [2, 261, 262]).ids
    assert again.drafts[MTP].drafted > 0
    assert engine.load(folder, dtype="float32", drafter="off").model.drafter is None
