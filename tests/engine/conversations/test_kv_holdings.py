"""The arrays of conversations on a device: the part of their keeper that other threads may use."""

from __future__ import annotations

import threading

import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.engine.conversations import kv_holdings


def test_nothing_is_deleted_while_another_thread_copies_it(monkeypatch):
    array, reading, go_on, freed = jnp.arange(5), threading.Event(), threading.Event(), threading.Event()
    plainly = np.asarray

    def slowly(each):
        reading.set()
        assert go_on.wait(300)
        assert not array.is_deleted()
        return plainly(each)

    monkeypatch.setattr(kv_holdings.np, "asarray", slowly)
    found = []
    copying = threading.Thread(target=lambda: found.append(kv_holdings.copied(array)))
    freeing = threading.Thread(target=lambda: (kv_holdings.free([array]), freed.set()))
    copying.start()
    assert reading.wait()
    freeing.start()
    assert not freed.wait(0.2)
    go_on.set()
    copying.join()
    freeing.join()
    monkeypatch.undo()
    assert found[0].tolist() == [0, 1, 2, 3, 4]
    assert array.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        kv_holdings.copied(array)
