"""Models that continue texts and were never taught to converse: a chat with one says so once."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_gemma_jax.dialects import Dialect
from langchain_gemma_jax.engine.host.warning_sink import warn, warning_sink
from langchain_gemma_jax.errors import CheckpointError, InputError
from langchain_gemma_jax.models.configuration.strict_json import read_object

if TYPE_CHECKING:
    from langchain_gemma_jax.engine.residency.served import Served
    from langchain_gemma_jax.models.loading.model import Model

_TEMPLATES = ("chat_template.jinja", "chat_template.json")
_WHERE_TEMPLATES_WERE = "tokenizer_config.json"


class BaseModelWarning(UserWarning):
    """A model seems to be one that continues texts: it has no chat format, and was not taught to end a turn."""


@dataclass(eq=False)
class _Found:
    is_base: bool


class BaseModels:
    """The models of one engine that were checked for a chat format."""

    def __init__(self) -> None:
        self._seen: weakref.WeakKeyDictionary[Served, _Found] = weakref.WeakKeyDictionary()

    def warn(self, served: Served, dialect: Dialect) -> None:
        """Warn that a chat's model seems to be a base model: once, or in each call that has a sink of its own."""
        sink = warning_sink.get()
        first = False
        if (found := self._seen.get(served)) is None:
            # No lock: a signal's handler may call here too. Calls that come together both look, and one is the first.
            mine = _Found(is_base_model(served, dialect))
            found = self._seen.setdefault(served, mine)
            first = found is mine
        if found.is_base and (first or sink is not None):
            warning = BaseModelWarning(
                f"{served.name} seems to be a base model: there is no chat template in its files, and no turn's end "
                f"({', '.join(dialect.stops)}) among the tokens that end its answers. It continues texts, and in a "
                "chat it says what comes to mind. Take the model that was tuned for chats, whose name often ends in "
                "-it; or continue texts with GemmaJaxLLM."
            )
            warn(warning, sink, stacklevel=2)


def is_base_model(served: Served, dialect: Dialect) -> bool:
    """Return True if a model's files say nothing of conversations. False if it was taught otherwise."""
    model, tokenizer = served.model, served.model.tokenizer
    if not dialect.turns or model.chat_format.judge is not None or (read_from := model.read_from) is None:
        return False
    # The end of a text ends an answer too, and every model has that token.
    ends = {tokenizer.control_id(name) for name in dialect.stops} - {*tokenizer.eos_ids[:1], None}
    declared = model.generation_defaults.get("eos_token_id")
    known = {*model.architecture.eos_ids, *(declared if isinstance(declared, list) else [declared])}
    return ends.isdisjoint(known) and not _has_template(model, read_from.files.folder)


def _has_template(model: Model, folder: Path) -> bool:
    """Return True if a model's files have a chat template, or are of a kind that never has one."""
    if (has_template := model.chat_format.has_template) is not None:
        return has_template
    if not (folder / "config.json").is_file() or any((folder / name).is_file() for name in _TEMPLATES):
        return True
    path = folder / _WHERE_TEMPLATES_WERE
    try:
        return path.is_file() and "chat_template" in read_object(path, path)
    except (CheckpointError, InputError, OSError):
        return False
