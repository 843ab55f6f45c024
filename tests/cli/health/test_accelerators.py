"""The doctor's findings about drivers and plugins, on made-up machines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from langchain_gemma_jax.cli.health.accelerators import accelerator_software, driver_version, installed, pool_of
from langchain_gemma_jax.cli.health.findings import Verdict

OF_THE_KERNEL = "NVRM version: NVIDIA UNIX {kind}  {version}  Thu Jul 17 2025\nGCC version:  gcc version 13\n"


def machine(root: Path, driver: str, kind: str = "x86_64 Kernel Module") -> Path:
    if driver:
        place = root / "proc" / "driver" / "nvidia"
        place.mkdir(parents=True)
        (place / "version").write_text(OF_THE_KERNEL.format(kind=kind, version=driver))
    return root


PLUGIN_12 = {"jax": "0.9.2", "jax-cuda12-plugin": "0.9.2", "nvidia-cudnn-cu12": "9.10.2"}
PLUGIN_13 = {"jax": "0.12.0.1", "jax-cuda13-plugin": "0.12.0"}


@pytest.mark.parametrize(
    ("driver", "packages", "verdict", "said"),
    [
        ("580.65.06", PLUGIN_12, Verdict.OK, "driver 580.65.06, jax-cuda12-plugin 0.9.2, cudnn 9.10.2"),
        ("580.65.06", PLUGIN_13, Verdict.OK, "jax-cuda13-plugin 0.12.0"),
        ("470.82.01", PLUGIN_12, Verdict.BAD, "CUDA 12 needs a driver from 525 on: install a newer one."),
        (
            "570.10",
            PLUGIN_13,
            Verdict.BAD,
            "CUDA 13 needs a driver from 580 on: install a newer one, or the plugin for",
        ),
        ("580.65.06", PLUGIN_12 | {"jax": "0.12.0"}, Verdict.WARN, "Install both in one release"),
        ("580.65.06", PLUGIN_12 | PLUGIN_13, Verdict.WARN, "Keep one of the two plugins"),
        ("580.65.06", {"jax": "0.9.2"}, Verdict.WARN, r"Install JAX for the card: pip install '\.\[cuda\]'"),
        ("", PLUGIN_12, Verdict.WARN, "no driver.*Install NVIDIA's driver"),
    ],
)
def test_what_does_not_go_together_is_said_with_what_to_do(tmp_path, driver, packages, verdict, said):
    (found,) = accelerator_software(machine(tmp_path, driver), packages.get)
    assert found.verdict is verdict
    assert re.search(said, f"{found.found} {found.advice}")


def test_a_machine_without_a_card_hears_nothing_and_a_tpu_has_its_library(tmp_path):
    assert list(accelerator_software(tmp_path, {"jax": "0.9.2"}.get)) == []
    (found,) = accelerator_software(tmp_path, {"jax": "0.9.2", "libtpu": "0.0.40"}.get)
    assert found.found == "libtpu 0.0.40"
    assert installed("no-such-package-here") is None
    assert installed("jax")


def test_drivers_are_read_whatever_kind_of_kernel_module_they_are(tmp_path):
    for number, kind in enumerate(("x86_64 Kernel Module", "Open Kernel Module for aarch64")):
        assert driver_version(machine(tmp_path / str(number), "580.65.06", kind)) == "580.65.06"
    assert driver_version(machine(tmp_path / "odd", "x")) == "of an unknown version"
    assert driver_version(tmp_path / "none") is None


def test_the_pool_is_told_with_how_to_have_more_of_it():
    assert "18.0 GiB: three quarters of the card" in pool_of(18 * 2**30, "").found
    assert "XLA_CLIENT_MEM_FRACTION=.95" in pool_of(18 * 2**30, "").found
    assert pool_of(18 * 2**30, "0.9").found.endswith("as XLA_CLIENT_MEM_FRACTION=0.9 says")
