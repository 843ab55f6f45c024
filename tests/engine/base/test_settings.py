"""Settings: each is checked, and a name that is none is refused with those that are."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.errors import InputError

NUMBERS = [-(2**63), -1, 0, 2**63, float("inf"), float("nan"), True, "1", 1.5, [], None]
WRONG = {
    "max_context": [*NUMBERS[:-1], 1],
    "kv_bytes": NUMBERS[:-1],
    "memory_budget": [-1, 0, 2**63, float("nan"), True, "1 PB", "-1GB", "GB", "1e9", "", 1.5, [], b"1GB", "9" * 30],
    "replicas": [-1, 0, True, "4", "all", 1.5],
    "devices": [-1, 0, True, "4", "all", "", 1.5, []],
    "keep_alive": [-1, 2**63, float("inf"), float("nan"), True, "1", []],
    "host_kv_bytes": [value for value in NUMBERS[:-1] if value is True or value != 0],
    "max_snapshots": [value for value in NUMBERS if value is True or value != 0],
    "max_waiting": NUMBERS,
    "loop_steps": NUMBERS[:-1],
    "scope_share": [-1, 0, 1.01, 2**63, 10**400, float("inf"), float("nan"), True, "1", None],
    "drafts": [0, 1, "yes", "suffixes", 2**63, ("words",), ("prompt", "prompt"), (1,), [[]], {"prompt"}, b"prompt"],
    "cache_dir": ["relative/folder", "", ".", "on", 3, True, b"/bytes"],
    "cache_bytes": [value for value in NUMBERS[:-1] if value is True or value != 0],
    "map_weights": [0, 1, "yes", None, 2**63],
    "prefix_store": [-1, 0, 2**63, float("nan"), True, "much", "-1GB", "", 1.5, []],
    "prefix_key_file": ["relative/key", "", 3, True, b"/bytes"],
    "prefix_folder": ["relative/folder", "", 3, True, b"/bytes"],
    "prefix_peers": [
        "http://a",
        ["a:1"],
        ["ftp://a"],
        [3],
        {"http://a"},
        ["http://"],
        ["http://a?b"],
        ["http://u:p@a"],
        ["http://a:b"],
    ],
    "guards": ["on", "", None, True, 1, ["off"], "callback", {"compile": "warn"}, {"transfer": "on"}],
    "on_trip": ["print", 1],
    "loads_per_minute": [value for value in NUMBERS if value is True or value != 0],
    "compile_wait": [-1, 2**63, float("inf"), float("nan"), True, "1", []],
    "ladders": [(16, 32), {}, 1, "x"],
}
RIGHT = {
    "max_context": [None, 2, 2**31],
    "kv_bytes": [None, 1, 2**40],
    "memory_budget": [None, 1, 2**40, "1", "20GB", "1.5 GiB", "300 mb"],
    "replicas": [None, 1, 4, "auto"],
    "devices": [None, 1, 4, "auto"],
    "keep_alive": [None, 0, 300, 0.5],
    "host_kv_bytes": [None, 0, 2**40],
    "max_snapshots": [0, 1, 100],
    "max_waiting": [1, 10**6],
    "loop_steps": [None, 1, 64],
    "scope_share": [0.001, 0.5, 1, 1.0],
    "drafts": [None, True, False, (), ("prompt",), ["suffixes"], ("prompt", "suffixes")],
    "cache_dir": [None, "off", "/somewhere", Path("/somewhere"), "~/here"],
    "cache_bytes": [None, 0, 1, 2**40],
    "map_weights": [True, False],
    "prefix_store": [None, 1, "32GB", "1.5 GiB"],
    "prefix_key_file": [None, "/a/key", Path("/a/key"), "~/key"],
    "prefix_folder": [None, "/mnt/prefixes", Path("/mnt/prefixes"), "~/prefixes"],
    "prefix_peers": [None, [], ["http://gemma-peers:8000"], ("https://a.example/behind", "http://[::1]:80")],
    "guards": ["off", "warn", "raise", {}, {"recompile": "raise", "cold_start": "off"}],
    "on_trip": [None, print],
    "loads_per_minute": [0, 1, 100],
    "compile_wait": [None, 0, 0.5, 3600],
    "ladders": [None, Ladders()],
}


def test_every_setting_is_in_the_tables():
    assert set(WRONG) == set(RIGHT) == {field.name for field in dataclasses.fields(Settings)}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_value_that_is_not_possible_is_refused_by_name(name, value):
    with pytest.raises(InputError, match=f"^{name}: expected .*found "):
        Settings().replace(**{name: value})


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in RIGHT.items() for value in values])
def test_a_value_that_is_possible_is_taken(name, value):
    assert getattr(Settings().replace(**{name: value}), name) == value


def test_an_unknown_name_is_refused_with_the_list_of_known_ones():
    with pytest.raises(InputError) as raised:
        Settings().replace(max_wating=3, kv_bytes=10, other=1)
    assert "max_wating, other" in str(raised.value)
    for field in dataclasses.fields(Settings):
        assert field.name in str(raised.value)


def test_only_settings_that_exist_can_be_changed_while_running():
    assert set(Settings.CHANGEABLE) <= {field.name for field in dataclasses.fields(Settings)}
