"""Files to install: a dashboard for Grafana, rules for Prometheus, and the objectives that some of them are made from.

``copy_to`` runs on its caller's thread. This room imports no other but ``errors``.
"""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.observe.files.burn_rules import rules_text
from langchain_gemma_jax.observe.files.objectives import read_objectives

DASHBOARD = "grafana-dashboard.json"
RULES = "prometheus-rules.yaml"
OBJECTIVES = "objectives.toml"
OBJECTIVE_RULES = "prometheus-objectives.yaml"


def text_of(name: str) -> str:
    """Return the text of a file that comes with the package."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def copy_to(
    folder: str | os.PathLike[str], *, objectives: str | os.PathLike[str] | None = None, replace: bool = False
) -> list[Path]:
    """Copy the dashboard and the rules to a folder, which is made if it is missing. Return their paths.

        from langchain_gemma_jax.observe.files import copy_to
        copy_to("monitoring")

    Args:
        folder: where to.
        objectives: a file of your own objectives, from which their rules are made. None: those that come with the
            package, whose file is copied too.
        replace: overwrite files that differ.

    Raises:
        InputError: that is no folder, or it already has a file of this name that differs; or the objectives have a name
            or a number that is not possible.
    """
    place = Path(folder)
    texts = {name: text_of(name) for name in (DASHBOARD, RULES)}
    if objectives is None:
        texts |= {name: text_of(name) for name in (OBJECTIVE_RULES, OBJECTIVES)}
    else:
        texts[OBJECTIVE_RULES] = rules_text(read_objectives(objectives))
    try:
        place.mkdir(parents=True, exist_ok=True)
        found = []
        for name, text in texts.items():
            target = place / name
            if not replace and target.exists() and target.read_text(encoding="utf-8") != text:
                raise InputError(
                    f"{target} is there already, and differs. Move it away, name another folder, or say replace=True."
                )
            target.write_text(text, encoding="utf-8")
            found.append(target)
    except OSError as error:
        raise InputError(f"{place}: expected a folder that can be written to: {error.strerror or error}.") from None
    return found
