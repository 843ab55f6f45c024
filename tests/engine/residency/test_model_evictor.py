"""Which models go to make room, and which stay."""

from __future__ import annotations

import time
import weakref

import numpy as np
import pytest

from langchain_gemma_jax.engine.api.model_estimate import first_workspace
from langchain_gemma_jax.errors import DeviceMemoryError, InputError
from tests.engine.faults_support import SMALL, assert_works, copied, greedy, slowed
from tests.engine.residents_support import PROMPT, baseline, is_there, need_of, on_device, status
from tests.engine.tiny import settle
from tests.waiting import until


@pytest.mark.long
def test_the_least_recently_used_makes_room_and_nothing_of_it_stays(fitting, folders):
    engine = fitting(2)
    before = baseline()
    one, two = (engine.load(folder) for folder in folders[:2])
    assert_works(engine, one)
    assert_works(engine, two)
    weights, library = one.model.params["embed"], weakref.ref(engine._owner.models.runners[one].library)
    three = engine.load(folders[2])
    assert [is_there(engine, each) for each in (one, two, three)] == [False, True, True]
    assert weights.is_deleted()
    assert one.model.closed
    assert library() is not None, "the second has the same shape"
    (evicted,) = engine.report().eviction_log
    assert (evicted.model, evicted.what, evicted.reason) == ("model-0", "weights", "room for model-2")
    assert evicted.nbytes >= one.model.nbytes
    assert evicted.seconds > 0
    assert "model-0: weights" in str(engine.report())
    for each in (one, two, three):
        engine.unload(each)
    assert on_device() == before


def test_one_in_use_is_not_evicted_and_who_needs_its_memory_waits(fitting, folders, alone):
    engine = fitting(1)
    one = engine.load(folders[0])
    with slowed(0.01):
        going = engine.submit(one, PROMPT, greedy(60))
        next(pieces := iter(going))
        two = engine.load(folders[1])  # waits
        assert len(list(pieces)) > 0
        assert len(going.result().ids) == 60
    assert engine.submit(two, PROMPT, greedy(6)).result().ids == alone[1]


def test_a_pinned_one_stays_and_what_does_not_fit_beside_it_is_refused_at_once(fitting, folders):
    engine = fitting(1)
    one = engine.load(folders[0])
    engine.pin(one)
    with pytest.raises(DeviceMemoryError, match=r"'model-1' needs .* more .*pinned") as caught:
        engine.load(folders[1])
    (holder,) = caught.value.holders
    assert holder.startswith("model-0: ")
    engine.pin(one, pinned=False)
    engine.load(folders[1])
    assert not is_there(engine, one)
    engine.pin(one)
    assert is_there(engine, one), "pinning brings it back"


def test_time_that_nobody_uses_it_is_counted_and_then_it_goes(engine_of, folders):
    engine = engine_of(ladders=SMALL)
    served = engine.load(folders[0])
    engine.keep_alive(served, 0.15)
    assert_works(engine, served)
    until(lambda: served.model.closed)
    settle(engine)  # it is in the log a moment later
    assert engine.report().eviction_log[-1].reason == "unused for 0.15 s"
    engine.keep_alive(served, None)
    assert_works(engine, served)
    time.sleep(0.3)
    assert is_there(engine, served)


def test_time_is_not_up_while_it_is_in_use(engine_of, folders):
    engine = engine_of(ladders=SMALL, keep_alive=0.0)
    served = engine.load(folders[0])
    with engine.hold(served):
        time.sleep(0.05)
        assert is_there(engine, served)
        assert np.asarray(served.model.params["final_norm"]).shape == (16,)
    settle(engine)
    settle(engine)
    assert not is_there(engine, served)


def test_a_model_of_the_callers_is_never_evicted(fitting, folders, tiny_model):
    engine = fitting(2)
    mine = engine.serve(copied(tiny_model))
    engine.load(folders[0])
    engine.load(folders[1])
    assert not mine.model.closed
    with pytest.raises(InputError, match="was not loaded by this engine"):
        engine.evict(mine)
    engine.unload(mine)
    assert not mine.model.closed


def test_a_smaller_budget_is_kept_at_once(fitting, folders):
    engine = fitting(3)
    models = [engine.load(folder) for folder in folders]
    need = engine._owner.models.known[models[0]].entry.need
    engine.reconfigure(engine.settings.replace(memory_budget=need + need // 2))
    assert [is_there(engine, each) for each in models] == [False, False, True]
    # Tests share programs, which may turn out to need more meanwhile: that is another reason in the log.
    assert "a smaller budget" in [each.reason for each in engine.report().eviction_log]
    assert_works(engine, models[0])


def test_programs_that_need_more_than_was_expected_cost_what_is_idle(fitting, folders, monkeypatch):
    engine = fitting(2)
    one, two = (engine.load(folder) for folder in folders[:2])
    known = engine._owner.models.known[two]
    library = engine._owner.models.runners[two].library  # which tests share
    monkeypatch.setattr(library, "workspace", known.entry.workspace + known.entry.need)
    assert_works(engine, two)
    assert not is_there(engine, one)
    assert engine.report().eviction_log[-1].reason == "programs need more than was expected"


@pytest.mark.long
def test_a_conversation_that_grows_has_an_idle_model_evicted(engine_of, folders, lazily):
    need = need_of(engine_of(ladders=SMALL), folders[0])
    engine = engine_of(ladders=SMALL, memory_budget=2 * need + 100)
    one, two = (engine.load(folder) for folder in folders[:2])
    done = [engine.submit(two, PROMPT, greedy(80), scope=str(number)) for number in range(2)]
    assert {len(each.result().ids) for each in done} == {80}
    assert not is_there(engine, one)
    assert engine.report().eviction_log[-1].reason == "room for conversations of model-1"


def test_conversations_never_pass_what_models_leave_of_the_budget(engine_of, folders, lazily):
    engine = engine_of(ladders=SMALL)
    served = engine.load(folders[0])
    assert_works(engine, served)
    settle(engine)
    entry, pool = engine._owner.models.known[served].entry, engine._owner.evictor.ledger
    engine.reconfigure(engine.settings.replace(memory_budget=entry.nbytes + 16 * entry.floor))
    keeper, used = engine._owner.evictor, []
    turn = keeper.round

    def watched():
        used.append(pool.used(entry.home))
        turn()

    keeper.round = watched
    for number in range(6):
        engine.submit(served, [10 + number, *PROMPT], greedy(20), scope=str(number)).result()
    settle(engine)
    assert 0 < max(used) <= pool.budget(entry.home)
    assert engine.report().evictions > 0


def test_idle_conversations_go_before_an_idle_model(engine_of, folders, lazily):
    engine = engine_of(ladders=SMALL)
    one = engine.load(folders[0])
    engine.submit(one, PROMPT, greedy(80)).result()
    kept, known = status(engine, one).kv, engine._owner.models.known[one]
    need = known.entry.weights + known.entry.floor + first_workspace(known.shape, known.ladders)
    engine.reconfigure(engine.settings.replace(memory_budget=known.entry.nbytes + need - 100))
    engine.load(folders[1])
    assert is_there(engine, one)
    assert status(engine, one).kv < kept
    assert engine.report().eviction_log[-1].what == "conversations"
    assert engine.report().eviction_log[-1].reason == "room for a model"
