"""The number of a batch's calls that are under way at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, cast

from langchain_core.runnables import RunnableConfig

AT_ONCE = 64  # more than the engine puts into a step, and few enough that a large batch does not fill its queue

Configs: TypeAlias = RunnableConfig | list[RunnableConfig] | None


def together(config: Configs) -> Configs:
    """Return a batch's config with a limit that lets the engine see the whole batch, where none was set.

    LangChain's own is a few threads more than there are cores, which is for work that each thread does itself.
    """
    if isinstance(config, list):
        return [_limited(each) for each in config]
    return _limited(config or {})


def _limited(config: Mapping[str, object]) -> RunnableConfig:
    limit = config.get("max_concurrency")
    return cast("RunnableConfig", {**config, "max_concurrency": AT_ONCE if limit is None else limit})
