from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from langchain_gemma_jax.compile_cache import platform
from langchain_gemma_jax.compile_cache.platform import platform_folder
from tests.counted import lines

CPU = "processor\t: 0\nmodel name\t: One\ncpu MHz\t: 2000.1\nflags\t: fma avx2\n\nprocessor\t: 1\nflags\t: fma avx2\n"


class Machine:
    """An installation of JAX and a processor that a test can change."""

    def __init__(self, folder: Path) -> None:
        self.site, self.cpu_info = folder / "site-packages", folder / "cpuinfo"
        self.cpu_info.write_text(CPU)
        self.install("jax", "0.9.2")
        self.install("jaxlib", "0.9.2", library=b"machine code")
        self.install("jax_cuda12_plugin", "0.9.2", library=b"for a GPU")
        self.install("nvidia_cudnn_cu12", "9.8.0")

    def install(self, name: str, version: str, *, library: bytes = b"", digest: str = "one") -> None:
        self.remove(name)
        info = self.site / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (self.site / name).mkdir(exist_ok=True)
        (self.site / name / "lib.so").write_bytes(library)
        (info / "RECORD").write_text(f"{name}/lib.so,sha256={digest},12\n{name}/__init__.py,sha256=x,1\n")

    def remove(self, name: str) -> None:
        for info in self.site.glob(f"{name}-*.dist-info"):
            (info / "RECORD").unlink(missing_ok=True)
            info.rmdir()


@pytest.fixture
def machine(tmp_path, monkeypatch) -> Machine:
    machine = Machine(tmp_path)
    monkeypatch.setattr(sys, "path", [str(machine.site), "/nonexistent"])
    monkeypatch.setattr(platform, "CPU_INFO", machine.cpu_info)
    for name in ("jax", "jaxlib"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return machine


CHANGES = {
    "a jaxlib of another version": lambda m: m.install("jaxlib", "0.9.3", library=b"machine code"),
    "a jaxlib built otherwise": lambda m: m.install("jaxlib", "0.9.2", library=b"machine code", digest="two"),
    "a library changed in place": lambda m: (m.site / "jaxlib" / "lib.so").write_bytes(b"other machine code"),
    "a library gone": lambda m: (m.site / "jaxlib" / "lib.so").unlink(),
    "another jax": lambda m: m.install("jax", "0.9.3"),
    "another plugin": lambda m: m.install("jax_cuda12_plugin", "0.9.2.post1", library=b"for a GPU"),
    "a plugin built otherwise": lambda m: m.install("jax_cuda12_plugin", "0.9.2", library=b"for a GPU", digest="two"),
    "a plugin more": lambda m: m.install("libtpu", "0.0.17"),
    "a plugin less": lambda m: m.remove("jax_cuda12_plugin"),
    "another library of the GPU's maker": lambda m: m.install("nvidia_cudnn_cu12", "9.9.0"),
    "an instruction more": lambda m: m.cpu_info.write_text(CPU.replace("fma", "fma avx512f")),
    "another processor": lambda m: m.cpu_info.write_text(CPU.replace("One", "Two")),
    "no word about the processor": lambda m: m.cpu_info.unlink(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_name_for_what_compiles_otherwise(machine, change):
    before = platform_folder()
    CHANGES[change](machine)
    assert platform_folder() != before


@pytest.mark.parametrize("attribute", ["machine", "node"])
def test_another_name_on_another_machine(machine, monkeypatch, attribute):
    machine.cpu_info.unlink()  # so that the machine's name is what is left to go by
    before = platform_folder()
    monkeypatch.setattr(platform.platform, attribute, lambda: "another")
    assert platform_folder() != before


def test_another_name_with_fewer_cores(machine, monkeypatch):
    before = platform_folder()
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(9)), raising=False)
    assert platform_folder() != before


def test_another_name_for_another_python(machine, monkeypatch):
    before = platform_folder()
    monkeypatch.setattr(sys, "implementation", SimpleNamespace(cache_tag="cpython-399"))
    assert platform_folder() != before


def test_processors_of_one_class_share_a_name_and_those_below_it_do_not(machine, monkeypatch):
    features = "fpu fma f16c avx2 avx512f avx512dq avx512bw avx512vl avx512_vnni amx_tile amx_int8"
    one = CPU.replace("fma", features)
    other = one.replace("One", "Two").replace("fpu", "fpu more")
    for kind, lacking in (("avx2", "f16c"), ("avx512", "avx512_vnni"), ("amx", "amx_int8")):
        monkeypatch.setenv("GEMMA_JAX_PROCESSOR", kind)
        monkeypatch.setenv("XLA_FLAGS", f"--xla_cpu_max_isa={kind.upper()}")
        names = []
        for text in (one, other, one.replace(lacking, ""), other.replace(lacking, "")):
            machine.cpu_info.write_text(text)
            names.append(platform_folder())
        assert names[0] == names[1]
        assert len(set(names)) == 3
    monkeypatch.delenv("GEMMA_JAX_PROCESSOR")
    machine.cpu_info.write_text(one)
    alone = platform_folder()
    machine.cpu_info.write_text(other)
    assert platform_folder() != alone


def test_the_same_name_for_what_does_not_matter(machine):
    before = platform_folder()
    machine.install("requests", "2.0", library=b"not ours")
    machine.install("jaxtyping", "0.3")
    machine.cpu_info.write_text(CPU.replace("2000.1", "3100.7"))
    (machine.site / "jaxlib" / "lib.so").touch()
    assert platform_folder() == before


def test_the_same_name_from_another_folder_with_the_same_files(machine, tmp_path, monkeypatch):
    before = platform_folder()
    monkeypatch.setattr(sys, "path", [str(machine.site.rename(tmp_path / "elsewhere"))])
    assert platform_folder() == before


def test_what_is_in_memory_counts_after_an_upgrade_under_a_running_process(machine, monkeypatch):
    before = platform_folder()
    monkeypatch.setitem(sys.modules, "jaxlib", SimpleNamespace(__version__="0.9.1"))
    assert platform_folder() != before
    assert platform_folder().startswith("jaxlib-0.9.1-")


def test_the_installation_that_is_imported_counts(machine, tmp_path, monkeypatch):
    before = platform_folder()
    (tmp_path / "first" / "jaxlib-0.9.9.dist-info").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "first")])
    assert platform_folder() == before
    monkeypatch.setattr(sys, "path", [str(tmp_path / "first"), *sys.path])
    assert platform_folder().startswith("jaxlib-0.9.9-")


def test_a_jaxlib_that_no_pip_installed(machine):
    machine.remove("jaxlib")
    (machine.site / "jaxlib" / "__init__.py").touch()
    before = platform_folder()
    assert before.startswith("jaxlib-unknown-")
    (machine.site / "jaxlib" / "lib.so").write_bytes(b"built again")
    assert platform_folder() != before


def test_no_jax_at_all(machine):
    for name in ("jax", "jaxlib", "jax_cuda12_plugin", "nvidia_cudnn_cu12"):
        machine.remove(name)
    assert platform_folder().startswith("jaxlib-unknown-")


def test_here_it_is_a_file_name_that_costs_next_to_nothing():
    assert re.fullmatch(r"jaxlib-\d[\w.+]*-[0-9a-f]{12}", platform_folder())
    assert lines(platform_folder) < 20_000
