"""Files to install: a dashboard for Grafana, rules for Prometheus.

``copy_to`` runs on its caller's thread. This room imports no other but ``errors``.
"""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from langchain_gemma_jax.errors import InputError

DASHBOARD = "grafana-dashboard.json"
RULES = "prometheus-rules.yaml"


def text_of(name: str) -> str:
    """Return the text of a file that comes with the package."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def copy_to(folder: str | os.PathLike[str]) -> list[Path]:
    """Copy the dashboard and the rules to a folder, which is made if it is missing. Return their paths.

        from langchain_gemma_jax.observe.files import copy_to
        copy_to("monitoring")

    Raises:
        InputError: that is no folder, or it already has a file of this name that differs.
    """
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
        found = []
        for name in (DASHBOARD, RULES):
            target = place / name
            text = text_of(name)
            if target.exists() and target.read_text(encoding="utf-8") != text:
                raise InputError(f"{target} is there already, and differs. Move it away, or name another folder.")
            target.write_text(text, encoding="utf-8")
            found.append(target)
    except OSError as error:
        raise InputError(f"{place}: expected a folder that can be written to: {error.strerror or error}.") from None
    return found
