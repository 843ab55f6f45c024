"""``make wheels``: what is in each wheel, what machines it says it is for, and that the one for this machine runs."""

from __future__ import annotations

import json
import os
import platform
import re
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import langchain_gemma_jax
from langchain_gemma_jax.config import KERNEL_VARIANTS
from langchain_gemma_jax.kernels.build import LIBRARY, NOTE, OLDEST, TARGETS, sources_digest
from langchain_gemma_jax.kernels.library import checked
from scripts.release import python_of

ROOT = Path(__file__).parents[1]
LIB = "langchain_gemma_jax/kernels/lib"
ARM = {"neon", "dotprod", "i8mm"}
VARIANTS = {"linux-x86_64": {"avx2", "avx512", "amx"}, "linux-aarch64": ARM, "macos-arm64": ARM}
SYSTEMS_OWN = {"libc", "libm", "libpthread", "libdl", "ld-linux-x86-64", "ld-linux-aarch64"}
PROGRAM = """
import jax, jax.numpy as jnp
from langchain_gemma_jax.kernels.library import kernels
from langchain_gemma_jax.kernels.products import multiply
print(kernels().variant, jax.jit(lambda x, w: multiply(x, [w], "F32"))(jnp.ones((2, 64)), jnp.ones((3, 64))).tolist())
"""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def wheels() -> dict[str, zipfile.ZipFile]:
    """Made by ``scripts/wheels``; what is compiled already is not again."""
    subprocess.run([ROOT / "scripts" / "wheels"], cwd=ROOT, check=True, capture_output=True)
    version = langchain_gemma_jax.__version__
    names = {name: f"langchain_gemma_jax-{version}-py3-none-{target.wheel}.whl" for name, target in TARGETS.items()}
    return {name: zipfile.ZipFile(ROOT / "dist" / wheel) for name, wheel in names.items()}


def test_each_has_the_kernels_of_its_machines_and_all_else_alike(wheels, tmp_path):
    held = {name: {info.filename: info.CRC for info in wheel.infolist()} for name, wheel in wheels.items()}
    own = {f"{LIB}/{LIBRARY}", f"{LIB}/{NOTE}"}
    for name, wheel in wheels.items():
        inside = {file for file in held[name] if ".dist-info/" not in file}
        assert own <= inside
        assert {file: held[name][file] for file in inside - own} == {
            file: crc for file, crc in held["linux-x86_64"].items() if ".dist-info/" not in file and file not in own
        }
        note = json.loads(wheel.read(f"{LIB}/{NOTE}"))
        assert (note["machine"], note["system"]) == (TARGETS[name].machine, TARGETS[name].system)
        assert set(note["variants"]) == {"portable"} | VARIANTS[name]
        assert (note["sources"], note["interface"]) == (sources_digest(), list(OLDEST))
        (said,) = (file for file in held[name] if file.endswith(".dist-info/WHEEL"))
        assert f"Tag: py3-none-{TARGETS[name].wheel}" in wheel.read(said).decode()
        assert "Root-Is-Purelib: false" in wheel.read(said).decode()


def elf_machine_and_needs(library: bytes) -> tuple[int, set[str]]:
    """The processor of a library for Linux, and the shared libraries that it names."""
    assert library[:5] == b"\x7fELF\x02"
    return struct.unpack_from("<H", library, 18)[0], {
        name.decode() for name in re.findall(rb"\x00((?:lib|ld-)[\w.+-]+\.so\.\d+)(?=\x00)", library)
    }


@pytest.mark.parametrize(("name", "machine"), [("linux-x86_64", 62), ("linux-aarch64", 183)])
def test_those_for_linux_ask_for_no_newer_system_than_they_say(wheels, name, machine):
    library = wheels[name].read(f"{LIB}/{LIBRARY}")
    found, needs = elf_machine_and_needs(library)
    assert found == machine
    assert {need.partition(".")[0] for need in needs} <= SYSTEMS_OWN
    versions = {tuple(map(int, found)) for found in re.findall(rb"GLIBC_(\d+)\.(\d+)", library)}
    assert versions
    assert max(versions) <= tuple(map(int, TARGETS[name].wheel.split("_")[1:3]))


def test_that_for_macos_is_a_library_of_arm_with_the_systems_alone(wheels):
    """It cannot be run here. Its load commands say what it needs, and the oldest macOS that takes it."""
    library = wheels["macos-arm64"].read(f"{LIB}/{LIBRARY}")
    magic, processor, _, kind, commands, _ = struct.unpack_from("<6I", library)
    assert (magic, processor, kind) == (0xFEEDFACF, 0x0100000C, 6)  # 64 bits, ARM, a dynamic library
    at, needs, oldest = 32, set(), None
    for _ in range(commands):
        command, size = struct.unpack_from("<2I", library, at)
        if command == 0xC:  # LC_LOAD_DYLIB
            (name,) = struct.unpack_from("<I", library, at + 8)
            needs.add(library[at + name : at + size].partition(b"\0")[0].decode())
        if command == 0x32:  # LC_BUILD_VERSION
            oldest = struct.unpack_from("<I", library, at + 12)[0] >> 16
        at += size
    assert needs == {"/usr/lib/libSystem.B.dylib"}
    assert oldest == 11
    assert b"_gemma_jax_attention" in library


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
@pytest.mark.skipif((platform.machine(), sys.platform) != ("x86_64", "linux"), reason="no wheel made is tried here")
def test_the_one_for_this_machine_is_installed_and_its_kernels_run(wheels, version, tmp_path):
    if (interpreter := python_of(version)) is None:
        pytest.skip(f"there is no Python {version} here")
    subprocess.run([interpreter, "-m", "venv", tmp_path / "env"], check=True)
    python = tmp_path / "env" / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    subprocess.run([*install, str(wheels["linux-x86_64"].filename)], check=True, capture_output=True)
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "GEMMA_JAX_KERNELS"}}
    environment |= {"GEMMA_JAX_CACHE_DIR": str(tmp_path / "cache"), "JAX_PLATFORMS": "cpu"}
    ended = subprocess.run(
        [python, "-c", PROGRAM], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    variant, numbers = ended.stdout.strip().split(" ", 1)
    assert variant in KERNEL_VARIANTS
    assert json.loads(numbers) == [[64.0] * 3] * 2


def test_what_was_made_is_that_of_these_sources(wheels, tmp_path):
    """Whoever loads it looks at the sources beside it, which came out of the same wheel."""
    wheels["linux-x86_64"].extractall(tmp_path)
    if (platform.machine(), sys.platform) == ("x86_64", "linux"):
        assert checked(tmp_path / LIB)["wheel"] == TARGETS["linux-x86_64"].wheel
