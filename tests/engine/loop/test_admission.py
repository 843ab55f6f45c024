"""Who waits for what another request is just reading, and who does not."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from langchain_gemma_jax.engine.base.pages import PageSizes, Paging
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.conversations.prefix_index import PrefixIndex, Reuse
from langchain_gemma_jax.engine.loop import admission
from langchain_gemma_jax.engine.loop.admission import WORTH_WAITING, Admission, will_be_shared
from langchain_gemma_jax.engine.requests.prompt import Prompt, token_keys
from langchain_gemma_jax.engine.requests.request import Request, RequestSpec
from langchain_gemma_jax.engine.requests.resident import Resident
from langchain_gemma_jax.engine.steps.scheduler import Scheduler
from langchain_gemma_jax.errors import DeviceMemoryError

DECODER = SimpleNamespace(push=chr, finish=str)
STEM = list(range(1000, 1000 + WORTH_WAITING))  # the least that is worth waiting for


def request(*tokens, held=0, model="m", scope=""):
    asked = RequestSpec(model, Prompt.of_tokens(tokens), Sampling(), 0, frozenset(), 4096, scope=scope)
    made = Request(asked, DECODER)
    made.on_device.resident = Resident(scope, 64, token_keys(tokens[:held]), whole=list(range(64)))
    return made


def test_what_is_read_ahead_no_longer_gives_way_once_somebody_waits_for_it():
    reader = request(*STEM, 1, 2, 3, held=16)
    reader.asked = replace(reader.asked, ahead=True)
    assert reader.gives_way
    later = request(*STEM, 4)
    later.asked = replace(later.asked, ahead=True)
    assert waits(later, reader)
    assert reader.gives_way, "nobody waits for the other either"
    assert waits(request(*STEM, 4, 5), reader)
    assert not reader.gives_way


def index(*residents):
    made = PrefixIndex(Paging(64, None), PageSizes(1, 1))
    for one in residents:
        made.add(one)
    return made


def waits(late, *running, there=()):
    return will_be_shared(late, running, index(*there).plan(late.keys(), late.asked.scope))


def test_a_prompt_waits_for_a_long_beginning_that_is_just_being_read_and_the_reader_pauses_there():
    reader = request(*STEM, 1, 2, 3, held=16)
    late = request(*STEM, 4, 5)
    assert waits(late, reader)
    assert reader.progress.marks == {len(STEM)}
    reader.on_device.resident = Resident("", 64, token_keys(STEM))
    assert not waits(late, reader), "it has been read: now it can be copied"


def test_what_is_too_short_to_wait_for_is_read_twice():
    reader = request(*STEM[1:], 1, 2, 3)
    assert not waits(request(*STEM[1:], 4, 5), reader)
    assert reader.progress.marks == set()


def test_what_is_there_already_does_not_count():
    reader, there = request(*STEM, 7, 1, 2, held=16), Resident("", 64, token_keys(STEM[:32]))
    assert not waits(request(*STEM, 4), reader, there=(there,)), "half of it can be copied now"
    assert waits(request(*STEM, 4), reader)


def test_whoever_waits_goes_on_waiting_while_what_he_waits_for_is_read():
    reader, late = request(*STEM, 1, 2, held=0), request(*STEM, 4)
    assert waits(late, reader)
    partly = Resident("", 64, token_keys(STEM[:60]))
    reader.on_device.resident = partly
    assert waits(late, reader, there=(partly,)), "only four tokens are missing, and it has waited for the others"


def test_other_tenants_other_models_and_those_that_only_step_are_not_waited_for():
    late = request(*STEM, 4)
    assert not waits(late, request(*STEM, 1, 2, scope="another"))
    assert not waits(late, request(*STEM, 1, 2, model="another"))
    assert not waits(late, request(*STEM, 1, held=len(STEM)))
    assert not waits(late)
    another_tenants = request(*STEM, 1, 2, scope="another")
    assert waits(late, another_tenants, request(*STEM, 1, 2))
    assert another_tenants.progress.marks == set(), "nobody pauses for another tenant"


def test_the_last_token_of_a_prompt_is_its_own():
    reader = request(*STEM, held=0)
    assert not waits(request(*STEM), reader), "63 of 64 can be shared, which is too little"
    longer = request(*STEM, 9, held=0)
    assert waits(request(*STEM, 9), longer)
    assert longer.progress.marks == {len(STEM)}


def test_a_request_without_room_waits_while_memory_may_become_free(monkeypatch):
    """The last dispatch of a request that has ended keeps another model in use, until it is home."""
    monkeypatch.setattr(admission, "too_large", lambda *_: DeviceMemoryError("too large"))
    for flights, may_change, refused in (([], False, True), ([object()], False, False), ([], True, False)):
        scheduler, ended, late = Scheduler(8), [], request(1, 2, 3)
        scheduler.waiting.append(late)
        kv_store = SimpleNamespace(plan=lambda _: Reuse(), awaits=lambda *_: False, take=lambda *_: False)
        rows = SimpleNamespace(there=lambda _: True)
        runner = SimpleNamespace(kv_store=kv_store, device=SimpleNamespace(), media_are_there=lambda _: True, rows=rows)
        models = SimpleNamespace(runners={"m": runner}, known={"m": SimpleNamespace()})
        work = SimpleNamespace(scheduler=scheduler, models=models, flights=flights)
        evictor = SimpleNamespace(
            may_run=lambda *_: True, may_change=lambda _, may_change=may_change: may_change, statuses=tuple
        )
        endings = SimpleNamespace(finish=lambda *found, ended=ended: ended.append(found))
        Admission(work, endings, None, None, evictor).admit()
        assert [each[0] for each in ended] == ([late] if refused else [])
