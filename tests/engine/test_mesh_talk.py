"""Conversations with a model that is divided among devices are those with the model on one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.mesh.eight_devices import start

SCRIPT = Path(__file__).with_name("mesh_talk.py")

pytestmark = pytest.mark.timeout(1200)


def talk(folder, runs, *, cache="off", loop_steps=1, devices=8):
    # Which programs conversations need may depend on who was faster. What is kept is to be all of them.
    asked = {"folder": str(folder), "runs": runs, "loop_steps": loop_steps, "warm": cache != "off"}
    settings = {"GEMMA_JAX_COMPILE_CACHE": str(cache), "GEMMA_JAX_CACHE_DIR": str(folder / "measured")}
    settings["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
    found = start(SCRIPT, asked, **settings)
    for name, seen in found.items():
        assert set(seen["weights"]) == {seen["foretold"]}, name  # the books hold what each device does
        count = len(seen["weights"])
        assert seen["kv on each"] == [seen["kv"]] * count + [0] * (devices - count), name
        assert seen["ties"] < 0.1 * seen["checked"], name
        assert seen["seen"] <= seen["bound"], name
        assert f"on {count} devices" in seen["status"], name
        assert seen["left"] == [0] * devices, name
    return found


@pytest.mark.long
def test_a_few_conversations_on_four_devices(tiny_folder):
    (seen,) = talk(tiny_folder, [["folder", 4, 6, 3]]).values()
    assert seen["checked"] > 40
    assert seen["reused"] > 100
    assert len(seen["after each cycle"]) == 1  # gone and there: each time the same bytes on each device


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "devices", "cycles"), [("folder", 2, 0), ("folder", 4, 200), ("folder", 8, 0), ("shared KV", 4, 0)]
)
def test_a_hundred_conversations(tiny_folder, tmp_path, name, devices, cycles):
    tmp_path.chmod(0o700)
    cache = tmp_path / "programs"
    (seen,) = talk(tiny_folder, [[name, devices, 100, cycles]], cache=cache).values()
    assert seen["checked"] > 1000
    assert seen["drafted"] > 0  # if not right ones
    assert 0 < seen["misses"] <= seen["bound"]
    if cycles:
        assert len(seen["after each cycle"]) == 1
    (again,) = talk(tiny_folder, [[name, devices, 5, 0]], cache=cache).values()
    assert again["misses"] == 0


@pytest.mark.slow
def test_a_mesh_may_change_between_processes_with_one_folder_of_programs(tiny_folder, tmp_path):
    tmp_path.chmod(0o700)
    cache = tmp_path / "programs"
    # How many devices are simulated, XLA's flags say: so programs for four of eight are none for all of four.
    for devices, count, fresh in ((8, 4, True), (4, 4, True), (4, 2, True), (8, 4, False), (4, 4, False)):
        (seen,) = talk(tiny_folder, [["folder", count, 4, 0]], cache=cache, devices=devices).values()
        assert seen["checked"] > 20
        assert (seen["misses"] > 0) == fresh, (devices, count)


@pytest.mark.slow
def test_a_device_whose_memory_is_full_has_room_made_and_nothing_is_lost(tiny_folder):
    (seen,) = talk(tiny_folder, [["shared KV", 4, 2, 0, 30]]).values()
    faults = seen["faults"]
    assert faults["raised"] == faults["retries"] > 10
    assert faults["answered"] == 60
    assert faults["held"] == 1  # the same bytes on each device, whenever it was full
    assert faults["the other stays"]  # room was made where there was none, and nowhere else


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gemma4, per-layer inputs and shared KV", "gemma4, experts"])  # three experts: whole
def test_a_file_of_packed_matrices_on_two_devices(tiny_folder, name):
    (seen,) = talk(tiny_folder, [[f"gguf {name}", 2, 20, 2]]).values()
    assert seen["checked"] > 150
    assert len(seen["after each cycle"]) == 1


@pytest.mark.slow
def test_steps_in_a_loop_on_the_devices(tiny_folder):
    (seen,) = talk(tiny_folder, [["folder", 4, 20, 0]], loop_steps=4).values()
    assert seen["checked"] > 150


SIGHTS = [["local and global", 8, "causal"], ["local and global", 2, "local"], ["shared KV", 4, "everywhere"]]


@pytest.mark.long
@pytest.mark.parametrize("shown", [[["folder", 4, "its own"]], pytest.param(SIGHTS, marks=pytest.mark.slow)])
def test_a_model_that_sees_sees_on_several_devices_what_it_sees_on_one(tiny_folder, shown):
    settings = {"GEMMA_JAX_COMPILE_CACHE": "off", "GEMMA_JAX_CACHE_DIR": str(tiny_folder / "measured")}
    for name, seen in start(SCRIPT, {"folder": str(tiny_folder), "shown": shown}, **settings).items():
        count = int(name.rpartition(" on ")[2].split(",")[0])
        assert seen["checked"] == 2 * 4 * 4, name
        assert all(seen["same"]), name  # the very tokens
        assert all(seen["reused"]), name
        assert max(seen["apart"]) < 1e-5, name  # soft tokens: no sum of the tower's is divided
        assert seen["encoded"] == [4, 4], name  # two pictures, once on one device and once on several
        assert seen["tower"] == [seen["foretold"]] * count + [0] * (8 - count), name  # whole on each
        assert seen["in the books"] == seen["foretold"]
        assert {"encode_begin", "encode_layer", "encode_end", "read_medium"} <= set(seen["kinds"]), name
        assert seen["within the bound"], name
        told = "with the first picture or sound each gets its encoders whole"
        assert (told in " ".join(seen["status"])) == (name[:6] == "folder"), seen["status"]
        assert seen["left"] == [0] * 8, name


PREFIXES = [["paligemma-1", 4], ["paligemma-2-odd", 2]]


@pytest.mark.long
@pytest.mark.parametrize("family", [[["paligemma-2", 4]], pytest.param(PREFIXES, marks=pytest.mark.slow)])
def test_a_picture_and_its_words_see_each_other_on_several_devices(tiny_folder, tmp_path, family):
    settings = {"GEMMA_JAX_COMPILE_CACHE": "off", "GEMMA_JAX_CACHE_DIR": str(tiny_folder / "measured")}
    for name, seen in start(SCRIPT, {"folder": str(tmp_path), "family": family}, **settings).items():
        assert seen["said"] == [True] * 3, name  # as transformers does
        assert seen["reused"], name
        assert name.endswith(f" on {seen['devices']}")
        assert seen["within the bound"], name
        assert seen["left"] == [0] * 8, name


@pytest.mark.long
@pytest.mark.parametrize(("replicas", "devices"), [(3, 1), pytest.param(2, 2, marks=pytest.mark.slow)])
def test_each_conversation_stays_with_one_replica_and_new_ones_are_spread(tiny_folder, replicas, devices):
    settings = {"GEMMA_JAX_COMPILE_CACHE": "off", "GEMMA_JAX_CACHE_DIR": str(tiny_folder / "measured")}
    asked = {"folder": str(tiny_folder), "replicas": [replicas, devices, 9]}
    seen = start(SCRIPT, asked, **settings)
    assert all(len(set(replica)) == 1 for replica in seen["taken"]), seen["taken"]
    spread = [[replica[0] for replica in seen["taken"]].count(number) for number in range(replicas)]
    assert max(spread) - min(spread) <= 1, spread
    assert seen["checked"] == 9 * 3 * 4
    assert seen["reused"] > 9 * 20  # also what waited in host memory
    assert seen["homes"] == [list(range(first, first + devices)) for first in range(0, replicas * devices, devices)]
    for number, status in enumerate(seen["status"], 1):
        assert f"replica {number} of {replicas}" in status
    assert (seen["there"], seen["known"]) == ([replicas, True], 0)
    too_many, too_many_of_four, no_number = seen["refused"]
    assert "need 9 devices, and this process has 8. What works here: replicas=1 to 8" in too_many
    assert "need 12 devices" in too_many_of_four
    assert "replicas: expected a whole number from 1" in no_number
    assert seen["left"] == [0] * 8
