"""Guards count, and warn, refuse or call, as they were told: for all, or for one application."""

from __future__ import annotations

import time
import warnings
from types import SimpleNamespace

import pytest

from langchain_gemma_jax.engine.base import guards as module
from langchain_gemma_jax.engine.base.events import Events, ModelEvicted, ModelLoaded, Tripped
from langchain_gemma_jax.engine.base.guards import KINDS, Asking, CompileCost, Guards, GuardWarning, Policies
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.errors import GuardError, InputError


def guards(**settings: object) -> Guards:
    made = Settings(**settings)
    return Guards(lambda: made)


def request(**values: object) -> SimpleNamespace:
    plain = {"app": "", "guards": None, "warn_to": None, "deadline": None, "model": SimpleNamespace(name="gemma")}
    progress = SimpleNamespace(watched=False, cold=False)
    return SimpleNamespace(asked=SimpleNamespace(**{**plain, **values}), progress=progress)


def test_off_does_nothing():
    quiet, told = guards(guards="off"), []
    quiet.events.subscribe(Tripped, told.append)
    quiet.trip("recompile", "a reason")
    assert (quiet.trips.by_kind, told) == ({}, [])


def test_warn_counts_and_warns():
    warning = guards(guards="warn")
    for _ in range(2):
        with pytest.warns(GuardWarning, match=r"recompile guard: a reason\. Do this\."):
            warning.trip("recompile", "a reason", advice="Do this.")
    assert warning.trips.by_kind == {"recompile": 2}


def test_raise_counts_and_raises():
    raising = guards(guards="raise")
    with pytest.raises(GuardError, match="recompile guard: a reason"):
        raising.trip("recompile", "a reason")
    assert raising.trips.by_kind == {"recompile": 1}


def test_where_warnings_are_errors_the_error_is_ours():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(GuardError, match="a reason") as raised:
            guards(guards="warn").trip("recompile", "a reason")
    assert raised.value.__cause__ is None


def test_callback_hands_over_the_record_and_what_it_raises_stops_nothing(capsys):
    seen: list[Tripped] = []

    def call(record: Tripped) -> None:
        seen.append(record)
        raise ValueError("of the user's")

    calling = guards(guards={"transfer": "callback"}, on_trip=call)
    calling.trip("transfer", "8 B came", Asking("billing"), nbytes=8, site="agent.py:3")
    assert [(each.guard, each.app, each.nbytes, each.policy) for each in seen] == [
        ("transfer", "billing", 8, "callback")
    ]
    assert str(seen[0]) == "transfer guard: 8 B came (agent.py:3)."
    assert "on_trip raised" in capsys.readouterr().err


def test_each_guard_has_a_policy_and_an_application_may_have_its_own():
    some = guards(guards={"transfer": "raise"})
    assert [some.policy(kind) for kind in KINDS] == ["warn", "raise", "warn", "warn"]
    own = Asking("a", {"recompile": "off"})
    assert [some.policy(kind, own) for kind in KINDS] == ["off", "raise", "warn", "warn"]
    assert [some.policy(kind, Asking("a", "off")) for kind in KINDS] == ["off"] * 4
    some.trip("recompile", "nobody hears of it", own)
    assert some.trips.by_kind == {}


def test_what_is_no_policy_is_refused():
    for given in ("loud", 3, {"recompile": "loud"}):
        with pytest.raises(InputError, match="expected one of off, warn, raise, callback"):
            Policies.of(given)
    with pytest.raises(
        InputError, match="expected names such as recompile, transfer, residency, cold_start, found compile"
    ):
        Policies.of({"compile": "warn"})
    with pytest.raises(InputError, match='expected a function for "callback"'):
        Settings(guards={"residency": "callback"})
    with pytest.raises(InputError, match="on_trip: expected a function"):
        Settings(on_trip="print")


def test_trips_are_counted_by_application_for_so_many_of_them():
    silent = guards(guards="callback", on_trip=lambda _: None)
    for number in range(module.MOST_APPS + 50):
        for kind in KINDS:
            silent.trip(kind, "a reason", Asking(f"app {number}"))
    found = silent.trips.copied()
    assert {kind: len(apps) for kind, apps in found.items()} == dict.fromkeys(KINDS, module.MOST_APPS + 1)
    assert found["transfer"]["app 3"] == 1
    assert found["transfer"][module.OTHERS] == 50
    assert silent.trips.by_kind == dict.fromkeys(KINDS, module.MOST_APPS + 50)


def test_a_model_that_comes_back_too_often_within_a_minute_trips_the_residency_guard_once():
    events, now = Events(), time.monotonic()
    watching = Guards(lambda: Settings(guards="raise", loads_per_minute=2), events)

    def ask() -> None:
        watching.begins(request(app="agent"), lambda: 0, lambda: CompileCost(0.0))

    events.publish(ModelLoaded("gemma", 1.0))  # the first time
    for ago in (70, 65, 30, 20):
        events.publish(ModelEvicted("gemma", 10, 0.1))
        events.publish(ModelLoaded("gemma", 1.0, at=now - ago))
    ask()
    events.publish(ModelLoaded("gemma", 1.0))
    with pytest.raises(GuardError, match="gemma was evicted and loaded again 3 times within a minute, more than 2"):
        ask()
    ask()
    assert watching.trips.copied() == {"residency": {"agent": 1}}


def test_a_request_is_looked_at_once_before_anything_is_done_for_it():
    watching = guards(guards="raise")
    asked = request(deadline=time.monotonic() + 100)
    with pytest.raises(GuardError, match=r"deadline is in \d+\.\d+ s, and compiling .* 350.* s .*warmup\('gemma'\)"):
        watching.begins(asked, lambda: 0, lambda: CompileCost(350.0))
    watching.begins(asked, lambda: 5, lambda: CompileCost(350.0))
    with pytest.raises(GuardError, match=r"2\.0 KiB more than the budget"):
        watching.begins(request(), lambda: 2048, lambda: CompileCost(0.0))
    watching.begins(request(), lambda: 0, lambda: CompileCost(9.0))  # no deadline
    watching.begins(request(deadline=time.monotonic() + 1), lambda: 0, lambda: CompileCost(0.0))  # it is all there
    watching.begins(request(deadline=time.monotonic() + 900), lambda: 0, lambda: CompileCost(300.0))
    assert watching.trips.by_kind == {"cold_start": 1, "residency": 1}
    with pytest.raises(GuardError, match=r"takes about 7\.00 s elsewhere; here nothing was compiled so far"):
        watching.begins(request(deadline=time.monotonic()), lambda: 0, lambda: CompileCost(7.0, measured=False))


def test_a_call_whose_time_was_up_while_its_model_was_loaded_is_looked_at_too():
    watching = guards(guards="raise")
    watching.too_late_to_load("gemma", Asking("agent"), CompileCost(0.0))
    for cost, text in (
        (CompileCost(6.0, measured=False), r"takes about 6\.00 s more"),
        (None, "takes some seconds more"),
    ):
        with pytest.raises(GuardError, match=rf"while gemma was loaded, and compiling .* {text}.*warmup\('gemma'\)"):
            watching.too_late_to_load("gemma", Asking("agent"), cost)
    watching.too_late_to_load("gemma", Asking("agent", "off"), None)
    assert watching.trips.copied() == {"cold_start": {"agent": 2}}
