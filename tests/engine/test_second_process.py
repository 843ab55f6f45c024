"""One process's programs are found by the next one: by JAX's own events, not only by our counters."""

from __future__ import annotations

import pytest

from tests.engine.fresh_process import answer, start
from tests.seeing_folder import write_seeing


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("private") / "programs"


@pytest.fixture(scope="module")
def together(tiny_folder, cache):
    """Two processes that start together where nothing is compiled, one of which warms up, and what they said."""
    cache.parent.chmod(0o700)
    processes = [start(tiny_folder, cache, "warmup"), start(tiny_folder, cache, "turns=2")]
    return [answer(process) for process in processes]


@pytest.fixture(scope="module")
def first(together):
    """The one of them that has compiled, or found, everything."""
    return together[0]


@pytest.mark.long
def test_processes_that_start_together_compile_each_program_once(together):
    first, other = together
    assert other["answers"] == first["answers"][:2]
    assert sum(one["misses"] for one in together) == first["programs"] > other["programs"] > 0
    assert sum(one["compiles"] for one in together) == first["programs"]
    for one in together:
        assert one["misses"] + one["hits"] == one["programs"]
        assert one["misses"] == one["compiles"] <= one["compiled"]


@pytest.mark.long
def test_after_a_warm_up_a_second_process_compiles_nothing(tiny_folder, cache, first):
    second = answer(start(tiny_folder, cache))
    assert (second["compiled"], second["lowered"], second["compiles"]) == (0, 0, 0)
    assert second["answers"] == first["answers"]
    assert len(second["answers"]) == 10
    assert second["hits"] == second["programs"] > 4
    assert second["misses"] == 0
    assert second["saved"] > 0


@pytest.mark.long
def test_a_second_process_that_is_shown_pictures_compiles_nothing(tmp_path):
    cache = tmp_path / "private" / "programs"
    cache.parent.mkdir(0o700)
    folder = tmp_path / "model"
    write_seeing(folder, "gemma-3-4b-vision")
    first, second = (answer(start(folder, cache, "turns=3")) for _ in range(2))
    assert second["answers"] == first["answers"]
    assert (second["compiled"], second["lowered"], second["compiles"], second["misses"]) == (0, 0, 0, 0)
    assert second["hits"] == second["programs"] == first["compiles"] >= 8


@pytest.mark.long
def test_another_model_of_the_same_shape_has_the_same_programs(tmp_path, cache, first):
    from tests.tiny_gemma import tiny_gemma

    for name, content in tiny_gemma(seed=7).items():
        (tmp_path / name).write_bytes(content)
    other = answer(start(tmp_path, cache))
    assert (other["compiled"], other["misses"]) == (0, 0)
    assert other["answers"] != first["answers"]


@pytest.mark.slow
def test_what_changes_a_program_changes_its_name(tiny_folder, cache, first):
    other = answer(start(tiny_folder, cache, "turns=1", JAX_DEFAULT_MATMUL_PRECISION="highest"))
    assert other["hits"] == 0
    assert other["compiled"] == other["misses"] == other["programs"]


@pytest.mark.slow
def test_a_process_for_each_request_is_no_compile_for_each_request(tiny_folder, cache, first):
    for _ in range(3):
        assert answer(start(tiny_folder, cache, "turns=1"))["compiled"] == 0


@pytest.mark.slow
def test_without_a_cache_every_process_compiles(tiny_folder, first):
    found = answer(start(tiny_folder, "off", "turns=1"))
    assert found["answers"] == first["answers"][:1]
    assert found["compiles"] == found["programs"] > 0
    assert (found["hits"], found["misses"]) == (0, 0)
