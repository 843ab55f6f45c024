"""The library without Python and XLA, by tests/kernels/driver.cc: on emulated processors, and watched for races."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from langchain_gemma_jax.kernels.build import LIBRARY, TARGETS, build, find_compiler, headers
from langchain_gemma_jax.kernels.library import FOLDER, kernels
from tests.kernels.test_sanitizers import runtime

ROOT = Path(__file__).parents[2]
DRIVER = Path(__file__).parent / "driver.cc"
EMULATORS = ROOT / "build" / "emulators"
ZIG = ROOT / ".envs" / "wheels" / "bin" / "python"  # as scripts/wheels makes it
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(sys.platform != "linux" or not kernels().run, reason=f"there are no kernels: {kernels().why}"),
]


def driver(command: tuple[str, ...], to: Path, *flags: str) -> Path:
    """The driver, compiled."""
    options = (*flags, "-std=c++17", "-O1", "-w", f"-isystem{headers()}", "-pthread")
    environment = os.environ | {"ZIG_GLOBAL_CACHE_DIR": str(ROOT / "build" / "zig")}  # which scripts/wheels fills
    subprocess.run([*command, *options, str(DRIVER), "-o", str(to), "-ldl"], check=True, env=environment)
    return to


def emulator(name: str) -> str:
    found = shutil.which(name) or shutil.which(f"{name}-static", path=str(EMULATORS / "usr" / "bin"))
    return found or pytest.skip(f"{name} is not here: scripts/emulators fetches it")


def said(*command: object) -> str:
    ended = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, cwd=ROOT)
    assert ended.returncode == 0, ended.stdout + ended.stderr[-3000:]
    return ended.stdout


def test_variants_agree_and_threads_share_without_a_change(tmp_path):
    """And it is said which variants this processor ran."""
    agreed = said(driver(find_compiler().command, tmp_path / "driver"), FOLDER / LIBRARY, 40)
    assert kernels().variant in agreed.split()
    sys.stdout.write(agreed)  # what -s and -rP show


@pytest.mark.skipif(runtime("libtsan.so") is None, reason="this compiler has no sanitizers of its own")
def test_no_two_threads_touch_the_same(tmp_path):
    flags = ("-fsanitize=thread", "-g1")
    library = build(tmp_path / "lib", (*flags, "-O1"))
    assert "agree" in said(driver(find_compiler().command, tmp_path / "driver", *flags), library, 40)


@pytest.mark.parametrize(("processor", "variants"), [("Nehalem", ["portable"]), ("max", ["portable", "avx2"])])
def test_an_instruction_set_that_is_not_there_is_never_reached(tmp_path, processor, variants):
    """Emulators know no AVX-512, and older processors no AVX2: what the library chose among ends with what it found."""
    command = emulator("qemu-x86_64"), "-cpu", processor
    found = said(*command, driver(find_compiler().command, tmp_path / "driver"), FOLDER / LIBRARY, 4).split()
    assert found[: found.index("agree:")] == variants


@pytest.mark.parametrize(
    ("processor", "variants"),
    [
        ("cortex-a57", ["portable", "neon"]),
        ("neoverse-n1", ["portable", "neon", "dotprod"]),
        ("max", ["portable", "neon", "dotprod", "i8mm"]),
    ],
)
def test_the_library_for_arm(tmp_path, processor, variants):
    """That of the wheel itself, as ``scripts/wheels`` made it."""
    command = emulator("qemu-aarch64"), "-L", EMULATORS / "usr" / "aarch64-linux-gnu", "-cpu", processor
    wheels = list((ROOT / "dist").glob("*aarch64.whl"))
    if not wheels or not ZIG.exists():
        pytest.skip("there is no wheel: scripts/wheels linux-aarch64 makes it")
    zipfile.ZipFile(max(wheels, key=lambda path: path.stat().st_mtime)).extractall(tmp_path / "wheel")
    zig = (str(ZIG), "-m", "ziglang", "c++", "-target", TARGETS["linux-aarch64"].triple)
    library = tmp_path / "wheel" / "langchain_gemma_jax" / "kernels" / "lib" / LIBRARY
    found = said(*command, driver(zig, tmp_path / "driver"), library, 6).split()
    assert found[: found.index("agree:")] == variants
