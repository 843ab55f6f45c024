"""The releases of torch, transformers and torchax that work together: few do, and others fail with obscure errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from langchain_gemma_jax.errors import InstallationError


@dataclass(frozen=True)
class Tested:
    """The tested releases of one library, and the reason to accept no others."""

    begins: str  # the begin of their version numbers
    reason: str

    def fits(self, installed: str) -> bool:
        """Return True if a release is one of them. The part after "+" is a build of the same release."""
        release = installed.partition("+")[0]
        return release == self.begins or release.startswith(f"{self.begins}.")


LIBRARIES: Mapping[str, Tested] = {
    "torch": Tested("2.13", "its operators have other names in each release, and torchax knows them by name"),
    "transformers": Tested("5.24", "how its models call their cache and their attention changes between releases"),
    "torchax": Tested(
        "0.0.14.dev20261026",
        "no release of it can be imported beside torch 2.13: 0.0.13, the last one, asks for an operator that is gone",
    ),
}
INSTALL = (
    'pip install "langchain-gemma-jax[torchax]" installs what goes together. Without a GPU, have torch\'s CPU build '
    "installed first: the other one takes several gigabytes."
)


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def check_versions(release_of: Callable[[str], str | None] = _installed) -> tuple[str, ...]:
    """Return the installed libraries with their releases, after a check that these were tested together.

    Raises:
        InstallationError: a library is missing, or of another release. The message says which, and why it matters.
    """
    there = {name: release_of(name) for name in LIBRARIES}
    missing = [name for name, release in there.items() if release is None]
    if missing:
        raise InstallationError(
            f'A model "torchax:..." needs {", ".join(LIBRARIES)}; not installed: {", ".join(missing)}. {INSTALL}'
        )
    for name, tested in LIBRARIES.items():
        if not tested.fits(str(there[name])):
            raise InstallationError(
                f'A model "torchax:..." needs {name} {tested.begins}, found {there[name]}: {tested.reason}. {INSTALL}'
            )
    return tuple(f"{name} {release}" for name, release in there.items())
