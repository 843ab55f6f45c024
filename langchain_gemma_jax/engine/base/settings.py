"""``Settings``: everything that ``configure`` can set for the whole process."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

from langchain_gemma_jax.engine.base.byte_sizes import parse_bytes
from langchain_gemma_jax.engine.base.draft_sources import checked_sources
from langchain_gemma_jax.engine.base.events import Tripped
from langchain_gemma_jax.engine.base.guards import Policies
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.errors import InputError


@dataclass(eq=False)
class CurrentSettings:
    """A holder of the current settings: a running engine can get new ones, and all its parts read them here."""

    now: Settings


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The engine's settings. Each can be given to ``configure``.

    configure(max_waiting=64, kv_bytes=8 * 1024**3, guards="warn")
    """

    CHANGEABLE: ClassVar = (
        "max_waiting",
        "memory_budget",
        "keep_alive",
        "guards",
        "on_trip",
        "loads_per_minute",
        "compile_wait",
    )
    """The names of the settings that can be changed while the engine is running."""

    ladders: Ladders | None = None
    """The shapes that programs are compiled for. None: the platform's default."""
    max_context: int | None = None
    """The most tokens that a conversation may have. None: the model's own limit."""
    memory_budget: int | str | None = None
    """The most bytes of a device that models and their conversations take together: ``"20GB"``, or a number. None: nine
    tenths of a device's memory, or on the CPU four fifths of the memory that the process may use."""
    devices: int | str | None = None
    """The number of devices that a model is divided among, unless its call sets one: a number, or ``"auto"``, the
    fewest on which it fits. None: one. See docs/devices.md."""
    replicas: int | str | None = None
    """The number of copies of a model, each on devices of its own, unless its call sets one: a number, or ``"auto"``,
    as many as there are devices for. None: one. See docs/devices.md."""
    keep_alive: float | None = None
    """Seconds that an unused model stays in memory. None: until its memory is needed for another model."""
    host_kv_bytes: int | None = None
    """Host memory, in addition to ``memory_budget``, for conversations that had to leave the device. None: a sixteenth
    of the machine's; on the CPU, where it would be the same memory, only for those of models that leave. 0: none, so
    they are read again."""
    kv_bytes: int | None = None
    """Memory for conversations, running and kept. None: a quarter of the device's memory."""
    scope_share: float = 1.0
    """The share of that memory that one scope may keep while other scopes need it."""
    max_snapshots: int = 4
    """The number of copies of a conversation's local layers to keep, so that it can be continued from earlier
    points."""
    max_waiting: int = 256
    """The most requests that may wait. One more is refused with ``BusyError``."""
    loop_steps: int | None = None
    """Tokens generated in one dispatch. None: 1 on CPU, where a loop on the device is slower than single steps, else
    8."""
    drafts: bool | tuple[str, ...] | None = None
    """The sources of drafts: "suffixes", what was answered before in the same scope; "prompt", the request's own text;
    "mtp", a drafter beside the model. True: all; False: none. None: all, on platforms where checking several tokens
    costs about as much as one."""
    cache_dir: str | os.PathLike[str] | None = None
    """The absolute folder of compiled programs, or "off". None: ``GEMMA_JAX_COMPILE_CACHE``, or a folder in the user's
    cache. JAX's own setting is not changed if the user has set it."""
    cache_bytes: int | None = None
    """The most bytes of compiled programs; the least recently used ones are deleted first. None: 4 GiB."""
    map_weights: bool = True
    """Map weights from a file in the user's cache, which is written when a model is first loaded on a CPU; later
    processes share its memory. False: each process has a copy. See docs/memory.md."""
    prefix_store: int | str | None = None
    """Bytes of disk for prefixes that outlive the process: ``"32GB"``, or a number. None: no prefixes are kept on disk.
    See docs/prefix-store.md."""
    prefix_folder: str | os.PathLike[str] | None = None
    """A folder for prefixes that many machines mount. It needs ``prefix_key_file``; with ``prefix_store``, this process
    deletes what is beyond that size. None: prefixes are kept for this machine alone."""
    prefix_key_file: str | os.PathLike[str] | None = None
    """A file with the key for encrypting prefixes, which only its user can read. None: they are not encrypted."""
    prefix_peers: Sequence[str] | None = None
    """Addresses of the other replicas' servers, as in ``["http://gemma-peers:8000"]``: replicas
    ask each other for prompts that they have read. It needs ``prefix_store`` and ``prefix_key_file``. A name may have
    several addresses, this machine's among them."""
    guards: str | Mapping[str, str] = "warn"
    """The policy for trips of guards: "off", "warn", "raise" or "callback", which calls ``on_trip``. One policy for
    all, or some by name: ``{"recompile": "raise", "cold_start": "off"}``. See docs/observability.md."""
    on_trip: Callable[[Tripped], object] | None = None
    """The function that the policy "callback" calls with each trip. It should return at once."""
    loads_per_minute: int = 3
    """The number of times that an evicted model may be loaded again within a minute before the residency guard
    trips."""
    compile_wait: float | None = None
    """Seconds that a request may wait for the compiler, once its model has answered, before the recompile guard trips.
    None: ``GEMMA_JAX_COMPILE_WAIT``, or 1."""

    def __post_init__(self) -> None:
        whole = {
            "max_context": 2,
            "kv_bytes": 1,
            "host_kv_bytes": 0,
            "max_snapshots": 0,
            "max_waiting": 1,
            "loads_per_minute": 0,
            "loop_steps": 1,
            "cache_bytes": 0,
        }
        for name, least in whole.items():
            value = getattr(self, name)
            if value is None and name not in {"max_snapshots", "max_waiting", "loads_per_minute"}:
                continue
            if not _is_whole(value) or not least <= value < 2**62:
                raise InputError(f"{name}: expected a whole number from {least} to 2**62, found {value!r}.")
        self._check_models()
        share = self.scope_share
        if not _is_number(share) or not 0 < share <= 1:  # NaN is in no range
            raise InputError(f"scope_share: expected a number above 0 and up to 1, found {share!r}.")
        checked_sources(self.drafts)
        if not isinstance(self.map_weights, bool):
            raise InputError(f"map_weights: expected True or False, found {self.map_weights!r}.")
        place: object = self.cache_dir
        if place not in (None, "off") and not (isinstance(place, str | os.PathLike) and _is_absolute(place)):
            raise InputError(f'cache_dir: expected an absolute folder, "off" or None, found {place!r}.')
        self._check_prefixes()
        self._check_guards()
        if self.ladders is not None and not isinstance(self.ladders, Ladders):
            raise InputError(f"ladders: expected Ladders(...) or None, found {self.ladders!r}.")

    def _check_models(self) -> None:
        if self.memory_budget is not None:
            parse_bytes("memory_budget", self.memory_budget)
        if self.keep_alive is not None:
            checked_seconds("keep_alive", self.keep_alive)
        numbers: dict[str, object] = {"devices": self.devices, "replicas": self.replicas}
        for name, asked in numbers.items():
            if asked not in (None, "auto") and not (isinstance(asked, int) and _is_whole(asked) and 0 < asked < 2**16):
                raise InputError(f'{name}: expected a whole number from 1, "auto" or None, found {asked!r}.')

    def _check_prefixes(self) -> None:
        if self.prefix_store is not None:
            parse_bytes("prefix_store", self.prefix_store)
        places: dict[str, tuple[str, object]] = {
            "prefix_key_file": ("file", self.prefix_key_file),
            "prefix_folder": ("folder", self.prefix_folder),
        }
        for name, (kind, place) in places.items():
            if place is not None and not (isinstance(place, str | os.PathLike) and _is_absolute(place)):
                raise InputError(f"{name}: expected the absolute path of a {kind}, or None, found {place!r}.")
        peers: object = self.prefix_peers
        if peers is not None and not (isinstance(peers, list | tuple) and all(map(_is_server, peers))):
            raise InputError(
                'prefix_peers: expected a list of addresses such as "http://gemma-peers:8000", or None; found '
                f"{peers!r}."
            )

    def _check_guards(self) -> None:
        if self.compile_wait is not None:
            checked_seconds("compile_wait", self.compile_wait)
        policies = Policies.of(self.guards)
        function: object = self.on_trip
        if function is not None and not callable(function):
            raise InputError(f"on_trip: expected a function of one trip, or None, found {function!r}.")
        if function is None and "callback" in vars(policies).values():
            raise InputError('guards: expected a function for "callback" in configure(on_trip=...), found None.')

    def replace(self, **changes: object) -> Settings:
        """Return a copy of the settings with some changed.

        Raises:
            InputError: there is no such setting, or its value is not possible.
        """
        known = [field.name for field in dataclasses.fields(self)]
        if unknown := sorted(set(changes) - set(known)):
            raise InputError(f"configure: no setting is called {', '.join(unknown)}. There are: {', '.join(known)}.")
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]


def checked_seconds(name: str, value: object) -> float:
    """Return a duration in seconds, checked.

    Raises:
        InputError: the value is no duration. ``name`` is the caller's name for it.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise InputError(f"{name}: expected seconds from 0 to 2**31, or None, found {value!r}.")
    return float(value)


def _is_server(address: object) -> bool:
    """Return True for the address of a server, with nothing in it but a name, a port and a path."""
    if not isinstance(address, str) or not address.isprintable():
        return False
    try:
        parts = urlsplit(address)
        known = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # such as a port that is no number
        return False
    return known and not (parts.query or parts.fragment or "@" in parts.netloc)


def _is_absolute(place: str | os.PathLike[str]) -> bool:
    return Path(place).expanduser().is_absolute()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
