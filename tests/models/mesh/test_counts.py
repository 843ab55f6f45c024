"""How many devices a model is on: what was asked for, the fewest that have room, or an error that says what works."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace

import pytest

from langchain_gemma_jax.errors import DevicesError, InputError
from langchain_gemma_jax.models.configuration.catalog import published
from langchain_gemma_jax.models.configuration.division import why_not
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.mesh.counts import Fit, beyond_its_share, checked_devices, encoders_on_each, plan_for
from langchain_gemma_jax.models.mesh.device_mesh import DeviceMesh
from langchain_gemma_jax.models.packed.quantize import Quantized
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.block_forms import BlockForms
from langchain_gemma_jax.models.seams.placement import SingleDevice

SMALL = published("gemma-3-1b")  # four query heads


@dataclass(frozen=True)
class Card:
    id: int
    device_kind: str = "a card"
    platform: str = "gpu"
    process_index: int = 0

    @property
    def client(self):
        return SimpleNamespace(process_index=lambda: 0)


def cards(count):
    return [Card(number) for number in range(count)]


def place(asked, devices, measure=lambda _: Fit(0, 0), config=SMALL):
    return plan_for(asked, "x", partial(why_not, config), lambda where: where, measure, devices)


def needs(gigabytes):
    """The measure of a model of so many gigabytes, which its devices share evenly; each has 24."""
    return lambda where: Fit(gigabytes * 10**9 // len(where.devices), 24 * 10**9)


def test_a_number_of_devices_is_the_first_of_them():
    (where, chosen) = place(2, cards(4))
    assert (where.devices, chosen) == (tuple(cards(2)), "devices=2")
    assert place(1, cards(4))[0] == SingleDevice(Card(0))
    assert where == place(2, cards(8))[0]
    assert where != place(4, cards(4))[0]
    assert len({place(count, cards(8))[0].key for count in (2, 4, 8)}) == 3
    assert where.key != DeviceMesh((Card(0), Card(1, process_index=1))).key, "of two hosts"


def test_auto_takes_the_fewest_on_which_a_model_fits_and_says_why():
    assert place("auto", cards(8), needs(20)) == (SingleDevice(Card(0)), 'devices="auto"')
    where, chosen = place("auto", cards(8), needs(62))
    assert len(where.devices) == 4
    assert chosen == 'devices="auto", as 2 devices would need 31.0 GB each, of 24.0 GB'
    with pytest.raises(DevicesError, match=r"1 device would need 900.0 GB each, of 24.0 GB; .*8 devices .* 112.5 GB"):
        place("auto", cards(8), needs(900))


def test_what_does_not_work_is_told_with_what_does():
    with pytest.raises(DevicesError, match=r"devices=4 .* has 2 a card. What works here: devices=1 or 2\.") as caught:
        place(4, cards(2))
    assert caught.value.working == (1, 2)
    with pytest.raises(DevicesError, match=r"4 query heads do not divide among 3 .*: devices=1, 2 or 4"):
        place(3, cards(5))


def test_devices_of_several_kinds_are_not_one_mesh_and_the_first_that_are_alike_may_be():
    mixed = [Card(0), Card(1), *(Card(number, "another card") for number in range(2, 8))]
    with pytest.raises(
        DevicesError, match=r"of one kind, and the first 4 here are a card, another card.*: devices=1 or 2\. For more"
    ) as caught:
        place(4, mixed)
    assert caught.value.working == (1, 2)
    assert place(2, mixed)[0] == DeviceMesh(tuple(mixed[:2]))
    with pytest.raises(DevicesError, match=r"has 2 a card and 6 another card\. What works here: devices=1 or 2\."):
        place(16, mixed)
    assert len(place("auto", mixed, needs(40))[0].devices) == 2
    with pytest.raises(
        DevicesError, match=r"2 devices .* 45\.0 GB each, of 24\.0 GB\. 6 of the 8 here are of another kind"
    ):
        place("auto", mixed, needs(90))


def test_what_each_device_has_beyond_its_share_is_said_with_the_reason():
    config = published("gemma-3-4b")  # eight query heads, four of keys
    dense = Recipe("bfloat16")
    packed = Recipe("bfloat16", storage=Quantized(4, BlockForms()))
    said = {
        (count, name): beyond_its_share(DeviceMesh(tuple(cards(count))), recipe.abstract(config))
        for count in (2, 8)
        for name, recipe in (("dense", dense), ("packed", packed))
    }
    assert said[2, "dense"] == said[2, "packed"] == ""
    keys = 34 * 2 * 4 * 256 * 2560 * 2  # layers, keys and values, heads, numbers of each, width, bytes of a number
    more = keys / 4 - keys / 8
    assert said[8, "dense"] == f"; beyond its share each has {more / 1e6:.1f} MB as 4 key-value heads go 4 ways"
    narrow = replace(config, layers=tuple(replace(layer, ffw_width=10272) for layer in config.layers))  # 321 groups
    whole = beyond_its_share(DeviceMesh(tuple(cards(2))), packed.abstract(narrow))
    assert whole.endswith("as blocks of 32 numbers stay whole")
    assert "on each" not in beyond_its_share(SingleDevice(Card(0)), dense.abstract(config))


def test_encoders_are_whole_on_each_device_of_one_host_and_nowhere_on_several():
    one, hosts = DeviceMesh(tuple(cards(2))), DeviceMesh((Card(0), Card(1, process_index=1)))
    sees = Gemma(SMALL, ("an encoder",))
    assert (sees.at(one).encoders, sees.at(hosts).encoders) == (("an encoder",), ())
    told = encoders_on_each(one, 840_000_000)
    assert told == "; with the first picture or sound each gets its encoders whole, of 0.8 GB"
    assert encoders_on_each(hosts, 840_000_000) == "; its encoders do not run on several hosts"
    assert encoders_on_each(one, 0) == encoders_on_each(SingleDevice(Card(0)), 840_000_000) == ""


@pytest.mark.parametrize("wrong", [0, -1, True, 2.0, "all", 2**20])
def test_what_is_no_number_of_devices_is_refused(wrong):
    with pytest.raises(InputError, match=r'devices: expected a whole number from 1, "auto"'):
        checked_devices(wrong)


def test_a_number_of_devices_goes_with_no_device():
    with pytest.raises(InputError, match=r"devices=2 was asked for, with device=0\. Leave one"):
        checked_devices(2, 0)
    assert checked_devices(None, 0) is None


def test_what_is_one_passes():
    assert [checked_devices(good) for good in (None, 1, 8, "auto")] == [None, 1, 8, "auto"]
