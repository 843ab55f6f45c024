"""The programs of a model that comes and goes."""

from __future__ import annotations

import weakref

import pytest

from langchain_gemma_jax.engine.api import model_loading
from langchain_gemma_jax.engine.executables import libraries
from tests.engine.faults_support import SMALL, assert_works
from tests.engine.model_files import FilesAround
from tests.engine.tiny import settle


@pytest.mark.long
def test_the_programs_of_an_evicted_model_are_dropped_without_a_collection(engine_of, folders, monkeypatch):
    engine = engine_of(ladders=SMALL)
    own = libraries.Library
    monkeypatch.setattr(libraries, "library_of", lambda programs, tally, *_: own(programs, None, tally))
    served = engine.load(folders[0])
    assert_works(engine, served)
    library = weakref.ref(engine._owner.models.runners[served].library)
    engine.evict(served)
    settle(engine)
    settle(engine)
    assert library() is None


@pytest.mark.long
@pytest.mark.parametrize("cores", [2, 3])
def test_programs_that_a_model_ran_are_fetched_when_it_comes_back_but_not_by_the_cores_that_read(
    engine_of, folders, monkeypatch, cores
):
    monkeypatch.setattr(model_loading, "cores", lambda: cores)
    engine = engine_of(ladders=SMALL)
    own = libraries.Library
    monkeypatch.setattr(
        libraries,
        "library_of",
        lambda programs, tally, *_: own(programs, None, tally, background=engine._owner.background),
    )
    served, read = engine.load(folders[0]), []

    def seen(_):
        read.extend(set(library._soon) for library in engine._loader.libraries.all())

    engine._loader._files = FilesAround(done=seen)
    assert_works(engine, served)
    ran = set(engine._owner.models.runners[served].library.first_calls())
    assert ran
    engine.evict(served)
    settle(engine)
    settle(engine)
    engine.load(folders[0])
    assert read == [ran if cores > 2 else set()]
    assert engine._owner.models.runners[served].library._soon == ran, "nobody has to ask"
