"""The adapters that an engine has read, in host memory: each once, and again if its files have changed."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from weakref import WeakKeyDictionary

from langchain_gemma_jax.engine.residency.known_models import KnownModel
from langchain_gemma_jax.engine.residency.served import Served
from langchain_gemma_jax.errors import InputError, UnsupportedModelError
from langchain_gemma_jax.models.adapters.adapter import Adapter, Base
from langchain_gemma_jax.models.adapters.open_adapter import AdapterFiles, find_adapter, open_adapter
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.stopping import current

MOST_BYTES = 2**30
"""Bytes of a model's adapters that are kept in host memory, beside those of running requests."""


class ReadAdapters:
    """Adapters by the model that they were read for and by their place. Any thread may ask."""

    def __init__(self, known: Callable[[Served], KnownModel], most_bytes: int = MOST_BYTES) -> None:
        """``known`` returns what is known of a model, or raises the error of who may not ask for it."""
        self._known, self._most_bytes = known, most_bytes
        self._kept: WeakKeyDictionary[Served, OrderedDict[Path, tuple[Unchanged, Adapter]]] = WeakKeyDictionary()
        self._fetched: dict[str, AdapterFiles] = {}  # by the id on the Hub: asked for once in a process
        self._lock = threading.RLock()  # a signal handler may come a second time

    def of(self, served: Served, source: str | os.PathLike[str], *, token: str | None = None) -> Adapter:
        """Return an adapter for a model, read unless it was: a PEFT folder, a GGUF file, or an id on the Hub.

            engine().submit(served, Prompt.of_tokens(ids).under(engine().adapter(served, "my-lora")))

        Raises:
            UnsupportedModelError: the model takes none, or the adapter asks for something that is not applied here.
            UnknownModelError: there is none. CheckpointError, ConfigError: its files cannot be used with this model.
            HubError: it could not be downloaded.
        """
        base = base_of(self._known(served).served.model)
        found = self._files(source, token)
        place = found.path
        files = Unchanged.now(place)
        with self._lock:
            known = self._kept.setdefault(served, OrderedDict())
            if (kept := known.get(place)) is not None and kept[0] == files:
                known.move_to_end(place)
                return kept[1]
        adapter = open_adapter(found, base)
        files.check()
        with self._lock:
            same = (each for _, each in known.values() if each.digest == adapter.digest and each.name == adapter.name)
            adapter = next(same, adapter)  # so that it has one slot, whatever it is called by
            known[place] = files, adapter
            known.move_to_end(place)
            while len(known) > 1 and sum(each.nbytes for _, each in known.values()) > self._most_bytes:
                known.popitem(last=False)
        return adapter

    def forget(self) -> None:
        """Drop all of them."""
        with self._lock:
            self._kept.clear()
            self._fetched.clear()

    def _files(self, source: str | os.PathLike[str], token: str | None) -> AdapterFiles:
        """Return an adapter's files. The Hub is asked again only if a copy that was fetched is gone."""
        if isinstance(source, str) and (known := self._fetched.get(source)) is not None and known.path.exists():
            return known
        found = find_adapter(source, token=token, stop=current())
        if found.name is not None:
            with self._lock:
                self._fetched[found.name] = found
        return found


def base_of(model: Model) -> Base:
    """Return a model as the base of adapters.

    Raises:
        UnsupportedModelError: it takes none.
    """
    where = model.placement
    if not where.one_device:
        raise UnsupportedModelError(
            f"{model.name!r} is divided among {len(where.devices)} devices, where adapters are not applied: load it "
            "with devices=1, or merge the adapter into it."
        )
    if (layers := model.architecture.adapted_layers) is None:
        raise UnsupportedModelError(
            f"{model.name!r} takes no adapter: adapters are applied to Gemmas that write, and this is another kind of "
            "model. Merge the adapter into it."
        )
    return Base(model.name, layers)


def check_adapter(model: Model, adapter: object) -> None:
    """See that an adapter can stand beside a model. None can always.

    Raises:
        InputError: it is none, or was read for another model. UnsupportedModelError: the model takes none.
    """
    if adapter is None:
        return
    if not isinstance(adapter, Adapter):
        raise InputError(f"adapter: expected one from engine().adapter(served, ...), found {type(adapter).__name__}.")
    layers = base_of(model).layers
    for (number, projection), each in adapter.matrices.items():
        shape = layers[number].shape(projection) if number < len(layers) else None
        if shape != (each.up.shape[0], each.down.shape[1]):
            raise InputError(
                f"adapter {adapter.name!r} was read for another model than {model.name!r}: see engine().adapter()."
            )
