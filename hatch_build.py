"""The hook by which building the package compiles its kernels: into the wheel, or into a checkout to install from.

Without a compiler, or where it fails, the package is built without them, and the note in their place says why.

``GEMMA_JAX_KERNELS_FOR`` names other machines, as ``kernels/build.py`` calls them: the wheel is for those then, with
their library from ``build/kernels``, or there is none.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

if TYPE_CHECKING:
    from types import ModuleType

KERNELS = Path(__file__).parent / "langchain_gemma_jax" / "kernels"


class KernelsHook(BuildHookInterface):  # type: ignore[type-arg]  # hatchling has no types where mypy runs
    """Compiles the kernels unless those that are there were made from these sources."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what to install for the build: a compiler, where the system has none."""
        return [] if not _wanted() and _builder().find_compiler() is not None else ["ziglang"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002  as hatchling calls it
        """Compile, and have the wheel say for which machines it is."""
        builder, folder = _builder(), KERNELS / "lib"
        if name := _wanted():
            self._for_others(builder, name, build_data)
            return
        try:
            if not builder.is_current(folder):
                self.app.display_waiting("Compiling the kernels ...")
                builder.build(folder)
        except (builder.NotBuiltError, OSError) as error:
            self.app.display_warning(f"The package is built without its kernels, and computes all by XLA: {error}")
            folder.mkdir(parents=True, exist_ok=True)
            (folder / builder.LIBRARY).unlink(missing_ok=True)
            (folder / builder.NOTE).write_text(json.dumps({"why": str(error)}) + "\n", encoding="utf-8")
        else:
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{builder.platform_tag(folder, sysconfig.get_platform())}"
        build_data["artifacts"] += [
            f"{folder.relative_to(self.root).as_posix()}/{name}" for name in (builder.LIBRARY, builder.NOTE)
        ]

    def _for_others(self, builder: ModuleType, name: str, build_data: dict[str, Any]) -> None:
        """Compile for other machines, beside the checkout's own library. What fails here fails the build."""
        target, folder = builder.target_named(name), Path(self.root, "build", "kernels", name)
        if not builder.is_current(folder, target):
            self.app.display_waiting(f"Compiling the kernels for {name} ...")
            builder.build(folder, target=target)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{builder.platform_tag(folder, target.wheel)}"
        inside = (KERNELS / "lib").relative_to(self.root).as_posix()
        for file in (builder.LIBRARY, builder.NOTE):
            build_data["force_include"][str(folder / file)] = f"{inside}/{file}"


def _wanted() -> str:
    """Return the machines that a wheel is asked for, empty for this one."""
    return os.environ.get("GEMMA_JAX_KERNELS_FOR", "")


def _builder() -> ModuleType:
    """Return kernels/build.py without the package around it, whose needs are not installed yet."""
    spec = importlib.util.spec_from_file_location("gemma_jax_kernels_build", KERNELS / "build.py")
    if spec is None or spec.loader is None:
        raise RuntimeError(f"{KERNELS / 'build.py'} is missing: this is no whole checkout of the package.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
