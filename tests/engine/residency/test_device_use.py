"""Each device's capacity, budget and use, as reports have them, from any thread."""

from __future__ import annotations

from types import SimpleNamespace

from langchain_gemma_jax.engine.residency.device_use import DeviceLimits, DeviceUse, device_uses
from langchain_gemma_jax.engine.residency.ledger_entry import State
from tests.engine.residency.books import entry


def place(*numbers: int) -> SimpleNamespace:
    devices = tuple(SimpleNamespace(platform="gpu", id=number) for number in numbers)
    return SimpleNamespace(own=devices, devices=devices)


def test_a_device_of_two_places_has_what_both_take_of_it():
    one, both = place(0), place(0, 1)
    small = entry(home=one, state=State.RESIDENT, seen_kv=10)  # 30 weights, 6 workspace
    large = entry(home=both, state=State.RESIDENT, seen_kv=1)  # its floor of 4 is reserved
    absent = entry(home=one)
    limits = {id(one): DeviceLimits(100, 90), id(both): DeviceLimits(80, 75)}
    found = device_uses([small, large, absent], lambda home: limits[id(home)])
    assert found == (DeviceUse("gpu:0", 80, 75, 46 + 40), DeviceUse("gpu:1", 80, 75, 40))
    assert device_uses([absent], lambda _: DeviceLimits(1, 1)) == ()
