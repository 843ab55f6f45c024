"""``make build``: what is in the source distribution, and that all that is built works where only it is installed."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import langchain_gemma_jax
from tests.test_wheels import python_of

ROOT = Path(__file__).parents[1]
MOST_BYTES = 30e6
LEFT_OUT = ("tests", "training", "benchmarks", "docs", "examples", "deploy")
SMOKE = """
import json, subprocess, sys
import jax
from langchain_gemma_jax import ChatGemmaJax, engine
from langchain_gemma_jax.kernels.library import kernels

def convert(miles: float) -> str:
    "Convert miles to kilometres."
    return f"{miles * 1.609344:.1f} km"

model = ChatGemmaJax(temperature=0)
said = model.invoke("Hello!").text
calls = model.bind_tools([convert]).invoke("Convert 12 miles to kilometres.").tool_calls
streamed = "".join(chunk.text for chunk in model.stream("Hello!"))
programs = engine().report().programs
print(json.dumps({"jax": jax.__version__, "kernels": kernels().variant, "said": said, "streamed": streamed,
                  "calls": [(call["name"], call["args"]) for call in calls], "programs": programs}))
"""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]


@pytest.fixture(scope="module")
def built() -> list[Path]:
    """Made by ``scripts/build``: the source, and the wheel for Linux on x86-64."""
    subprocess.run([ROOT / "scripts" / "build", "linux-x86_64"], cwd=ROOT, check=True, capture_output=True)
    return sorted((ROOT / "dist").iterdir())


def test_the_source_has_what_builds_the_package_and_no_more(built):
    (source,) = (path for path in built if path.name.endswith(".tar.gz"))
    assert source.name == f"langchain_gemma_jax-{langchain_gemma_jax.__version__}.tar.gz"
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "hatch_build.py", "LICENSE", "README.md", "CHANGELOG.md", "PKG-INFO"} <= names
    assert "langchain_gemma_jax/kernels/native/calls.cc" in names
    assert any(name.endswith("sprout-m/model.safetensors") for name in names)
    assert not [name for name in names if name.startswith(tuple(f"{folder}/" for folder in LEFT_OUT))]
    assert not [name for name in names if name.endswith((".so", ".pyc"))]
    assert all(path.stat().st_size <= MOST_BYTES for path in built)


def installed(version: str, what: Path, folder: Path) -> dict[str, object]:
    """Install what was built, and nothing else, with the JAX that resolves; run a first conversation there."""
    subprocess.run([python_of(version), "-m", "venv", folder / "env"], check=True)
    python = folder / "env" / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", str(what)],
        check=True, capture_output=True,
    )  # fmt: skip
    environment = {
        name: value
        for name, value in os.environ.items()
        if name != "PYTHONPATH" and not name.startswith(("GEMMA_JAX_", "JAX_"))
    }
    environment |= {"GEMMA_JAX_CACHE_DIR": str(folder / "cache"), "JAX_PLATFORMS": "cpu"}
    ended = subprocess.run(
        [python, "-W", "error::DeprecationWarning", "-c", SMOKE], cwd=folder, env=environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-3000:]
    told = subprocess.run(
        [folder / "env" / "bin" / "gemma-jax", "--version"], env=environment, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert langchain_gemma_jax.__version__ in told.stdout
    return json.loads(ended.stdout)


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
@pytest.mark.skipif((platform.machine(), sys.platform) != ("x86_64", "linux"), reason="no wheel made is tried here")
def test_the_wheel_answers_where_only_it_is_installed(built, version, tmp_path):
    (wheel,) = (path for path in built if path.suffix == ".whl")
    found = installed(version, wheel, tmp_path)
    assert found["calls"] == [["convert", {"miles": 12}]]
    assert found["said"] == found["streamed"] != ""
    assert found["kernels"] != "off"
    assert found["programs"] > 0


def test_the_source_compiles_its_kernels_where_it_is_installed(built, tmp_path):
    (source,) = (path for path in built if path.name.endswith(".tar.gz"))
    found = installed("3.13", source, tmp_path)
    assert found["calls"] == [["convert", {"miles": 12}]]
    assert found["kernels"] is not None
