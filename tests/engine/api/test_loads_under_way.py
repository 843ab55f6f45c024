"""One load for all who want a model, and a new one for who comes as the last of them leaves."""

from __future__ import annotations

import threading

from langchain_gemma_jax.engine.api.loads_under_way import Load, Loads
from langchain_gemma_jax.stopping import StoppedError
from tests.waiting import LONG


def test_who_comes_while_the_last_one_leaves_waits_for_the_end_of_what_was_stopped(monkeypatch):
    loads, found, inside, go = Loads(), [], threading.Event(), threading.Event()

    def bring(load):
        load.stop.sleep(LONG)

    def come():
        with loads.join("m", bring, patient=False) as joined:
            found.append(joined)
            inside.set()
            go.wait(LONG)

    others = [threading.Thread(target=come)]

    def is_wanted(load):
        wanted = load.waiting > 0
        if others and not wanted:
            other = others.pop()
            other.start()
            other.join(0.2)  # in vain: it has to wait for the lock
        return wanted

    monkeypatch.setattr(Load, "is_wanted", property(is_wanted))
    with loads.join("m", bring, patient=False) as (first, _):
        pass
    assert inside.wait(LONG)
    ((load, begins),) = found
    if load is first:  # it had not ended: whoever comes sees by its error that it was not stopped for them
        assert not begins
        assert isinstance(load.done.exception(LONG), StoppedError)
        assert load.given_up
    else:
        assert begins
        assert not load.given_up
    go.set()
    assert loads.close(LONG)
