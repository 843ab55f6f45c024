"""JAX on the CPU beside an accelerator: told once, unless the CPU is meant."""

from __future__ import annotations

import warnings

import pytest

from langchain_gemma_jax.engine.api import model_loading
from langchain_gemma_jax.engine.host.unused_accelerator import (
    OnceOnTheCpu,
    UnusedAcceleratorWarning,
    unused_accelerator,
)
from langchain_gemma_jax.engine.host.warning_sink import warning_sink


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("proc/driver/nvidia/version", "an NVIDIA driver is here"),
        ("dev/kfd", "an AMD GPU is here"),
        ("dev/accel0", "a TPU is here"),
        ("dev/acceleration", None),
    ],
)
def test_what_is_there_is_told_once_and_only_on_the_cpu_that_nobody_chose(tmp_path, file, said):
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).touch()
    assert unused_accelerator(tmp_path) == said
    once = OnceOnTheCpu(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        once.look("gpu", None)
        once.look("cpu", "cpu")
        if said is None:
            once.look("cpu", None)
    if said is not None:
        with pytest.warns(UnusedAcceleratorWarning, match=f"JAX computes on the CPU, and {said}: .*JAX_PLATFORMS=cpu"):
            once.look("cpu", None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        once.look("cpu", None)


def test_the_first_model_that_is_loaded_looks(engine_of, tiny_folder, tmp_path, monkeypatch):
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "accel0").touch()
    monkeypatch.setattr(model_loading, "on_the_cpu", OnceOnTheCpu(tmp_path))
    monkeypatch.setattr(model_loading, "chosen_platforms", lambda: None)
    told: list[Warning] = []
    token = warning_sink.set(told.append)
    try:
        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter("always")
            engine_of().load(tiny_folder)
    finally:
        warning_sink.reset(token)
    found = [*told, *(each.message for each in shown)]
    assert [type(each) for each in found if isinstance(each, UnusedAcceleratorWarning)] == [UnusedAcceleratorWarning]
